-- Graphs of PyTorch's exported programs (.pt2 of torch.export.save): archive.lua reads the zip file, program.lua the
-- graph in it, and operators.lua maps PyTorch's operators to types of graphs.

local operators = require 'trinity.graph.exported.operators'
local program = require 'trinity.graph.exported.program'
local util = require 'trinity.base.util'

local exported = {}

local element_bytes = { float64 = 8, int64 = 8, float32 = 4, int32 = 4, float16 = 2, bfloat16 = 2, int16 = 2, int8 = 1,
  uint8 = 1, bool = 1 }

-- Adds the operators of a program one by one.
local Maker = {}
Maker.__index = Maker

--- Returns a name that no operator has yet.
function Maker:unique(name)
  local made, n = name, 1
  while self.taken[made] do
    n = n + 1
    made = ('%s_%d'):format(name, n)
  end
  self.taken[made] = true
  return made
end

--- Collects weights by the tensors that refer to them, and their readers. A view of a weight counts as the weight.
function Maker:find_weights()
  for _, input in ipairs(self.program.inputs) do
    if input.kind ~= 'user_input' and input.tensor and self.program.tensors[input.tensor] then
      self.weight_of[input.tensor] = { name = input.name or input.tensor, buffer = input.kind ~= 'parameter',
        readers = 0, owned = true }
    end
  end
  for _, node in ipairs(self.program.nodes) do
    local weight = node.tensors[1] and self.weight_of[node.tensors[1]]
    if weight and #node.tensors == 1 and operators.is_view(node.operator) and #node.outputs == 1 then
      self.weight_of[node.outputs[1]], self.views[node] = weight, true
    else
      local data = operators.type(node.operator) == 'Gather'
      for _, name in ipairs(node.tensors) do data = data or not self.weight_of[name] end
      for _, name in ipairs(node.tensors) do
        local read = self.weight_of[name]
        if read then
          read.readers, read.owned = read.readers + 1, read.owned and data
          if node.operator == 'einsum' then read.owned = false end
        end
      end
    end
  end
end

function Maker:tensor(name)
  local tensor = self.program.tensors[name]
  if not tensor then
    util.fail("%s: models/model.json: no tensor '%s' in 'tensor_values'", util.shortened(self.program.path), name)
  end
  return tensor
end

--- Returns the builder's description of a tensor; a scalar is given by its bytes.
local function spec_of(tensor, gradient)
  local spec = { name = tensor.name, dtype = tensor.dtype, gradient = gradient and tensor.floating }
  if #tensor.shape > 0 then spec.shape = tensor.shape else spec.bytes = element_bytes[tensor.dtype] end
  return spec
end

--- Returns a weight as the parameter of an operator, in the shape that the operator reads.
local function parameter_of(weight, tensor, statistic)
  return { name = weight.name, shape = #tensor.shape > 0 and tensor.shape or { 1 }, dtype = tensor.dtype,
    trainable = tensor.floating and not statistic and not weight.buffer }
end

--- Adds an operator for a weight with several readers, or without a reader that also reads data.
function Maker:variable(name)
  local weight, tensor = self.weight_of[name], self:tensor(name)
  local key = weight.name .. ' ' .. table.concat(tensor.shape, 'x')
  if not self.variables[key] then
    self.variables[key] = self.builder:add { name = self:unique(weight.name), type = 'Variable',
      parameters = not weight.made and { parameter_of(weight, tensor) } or nil,
      outputs = { spec_of(tensor, not weight.buffer) } }
    weight.made = true
  end
  return self.variables[key]
end

--- Returns the tensors of a node in the order of its cost rule.
local function ordered(node)
  local order, list, seen = operators.order(node.operator), {}, {}
  for _, argument in ipairs(order or {}) do
    local name = node.by_name[argument]
    if name then list[#list + 1], seen[name] = name, true end
  end
  for _, name in ipairs(node.tensors) do
    if not seen[name] then list[#list + 1] = name end
  end
  return list
end

--- Splits a node's tensors into data and its own weights.
function Maker:arguments(node)
  local inputs, shapes, parameters = {}, {}, {}
  local argument_of = {}
  for argument, name in util.sorted_pairs(node.by_name) do argument_of[name] = argument end
  for _, name in ipairs(ordered(node)) do
    local weight = self.weight_of[name]
    if weight and weight.readers == 1 and weight.owned then
      parameters[#parameters + 1] = parameter_of(weight, self:tensor(name),
        operators.is_statistic(argument_of[name] or ''))
    else
      inputs[#inputs + 1] = weight and self:variable(name) or self.made[name]
      shapes[#shapes + 1] = self:tensor(name)
      if not inputs[#shapes] then
        util.fail("%s: models/model.json: node '%s': expected an earlier node that makes its input '%s', got none",
          util.shortened(self.program.path), node.name, name)
      end
    end
  end
  return inputs, shapes, parameters
end

function Maker:add(node)
  if self.views[node] or #node.outputs == 0 then return end
  local outputs, specs = {}, {}
  for i, name in ipairs(node.outputs) do
    outputs[i] = self:tensor(name)
    specs[i] = spec_of(outputs[i], true)
  end
  local inputs, shapes, parameters = self:arguments(node)
  local type, attributes, flops = operators.describe(node, { inputs = shapes, outputs = outputs,
    parameters = parameters })
  if not operators.type(node.operator) then self.unknown[node.target] = (self.unknown[node.target] or 0) + 1 end
  attributes.module, attributes.target = node.module, node.target
  local made = { self.builder:add { name = self:unique(node.name), type = type, inputs = inputs, outputs = specs,
    parameters = parameters, attributes = attributes, flops = flops } }
  for i, name in ipairs(node.outputs) do self.made[name] = made[i] end
end

function Maker:run()
  self:find_weights()
  for _, input in ipairs(self.program.inputs) do
    if input.kind == 'user_input' and input.tensor and self.program.tensors[input.tensor] then
      self.made[input.tensor] = self.builder:add { name = self:unique(input.tensor), type = 'Input',
        outputs = { spec_of(self:tensor(input.tensor), false) } }
    end
  end
  for _, node in ipairs(self.program.nodes) do self:add(node) end
  local built = self.builder:build()
  local warnings, names = {}, {}
  for target, count in util.sorted_pairs(self.unknown) do
    names[#names + 1] = target
    warnings[#warnings + 1] = ('operator %s (%d times) has no cost rule: counted as element-wise'):format(
      target, count)
  end
  built.source = { format = 'PyTorch .pt2', whole_step = false, warnings = warnings, unknown_types = names }
  return built
end

--- Returns the forward graph of an exported program. Symbolic sizes have the values of the example input at export.
--- Attributes of an operator give its origin: `module` (path) and `target`.
function exported.graph(path, new_builder)
  local read = program.read(path)
  local name = path:match '([^/]*)%.pt2$' or path
  local maker = setmetatable({ program = read, builder = new_builder { name = name }, taken = {}, weight_of = {},
    views = {}, variables = {}, made = {}, unknown = {} }, Maker)
  local ok, made = pcall(maker.run, maker)
  if ok then return made end
  local message = util.unplaced(tostring(made)):gsub('^builder:[%w_]+: ', '')
  if message:find(util.shortened(path), 1, true) then error(message, 0) end
  util.fail('%s: models/model.json: %s', util.shortened(path), message)
end

return exported
