-- LibTorch tensors, as bound by the engine. The first function call that makes a tensor loads LibTorch. Dimensions,
-- indices and categories are numbered from 1 (dimensions also from -1, the last, backwards).

local check = require 'trinity.base.check'
local core = require 'trinity.core'
local late = require 'trinity.base.late'
local util = require 'trinity.base.util'

--- LibTorch tensors with gradients.
---@class trinity.TensorModule
local tensor = late.table('trinity.tensor', function()
  local functions = core.tensor.functions
  late.require 'trinity.nn.tensor_methods' -- again, if Ctrl-C interrupted loading LibTorch
  return functions
end)

--- Returns whether a value is a tensor, closed or not. Example: `trinity.tensor.is(x)`
---@param value? any
---@return boolean
function tensor.is(value) return type(value) == 'userdata' and getmetatable(value) == 'tensor' end

--- Saves tensors by name in one file (safetensors; in Python: safetensors.torch.load_file). Example:
--- `trinity.tensor.save('x.safetensors', { x = trinity.tensor.zeros { 2 } })`
---@param path string
---@param tensors table<string, trinity.TorchTensor>
function tensor.save(path, tensors)
  check.path('tensor.save', 1, 'path', path)
  check.argument('tensor.save', 2, 'tensors', tensors, 'table')
  local names, list = {}, {}
  for name, value in util.sorted_pairs(tensors) do
    if type(name) ~= 'string' or not tensor.is(value) then
      check.refuse('tensor.save', 2, 'tensors', 'expected tensors by name, got %s at %s', util.describe(value),
        util.describe(name))
    end
    names[#names + 1], list[#list + 1] = name, value
  end
  if #names == 0 then check.refuse('tensor.save', 2, 'tensors', 'expected at least one tensor') end
  core.tensor.internal.write(path, names, list)
end

--- Loads tensors by name from a safetensors file with dtypes F32, F64, I64, BOOL. Raises an error if a file of save()
--- was changed or truncated. Example: `trinity.tensor.load 'x.safetensors'`
---@param path string
---@return table<string, trinity.TorchTensor>
function tensor.load(path)
  local names, list = core.tensor.internal.read(check.path('tensor.load', 1, 'path', path))
  local tensors = {}
  for i, name in ipairs(names) do tensors[name] = list[i] end
  return tensors
end

local function add_methods() late.require 'trinity.nn.tensor_methods' end
if core.torch_is_open() then add_methods() else core.when_torch_opens(add_methods) end

return tensor
