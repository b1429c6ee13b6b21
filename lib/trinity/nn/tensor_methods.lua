-- Fields, operators and printing of tensors, in addition to the engine's methods. Loaded with LibTorch.

local array = require 'trinity.base.array'
local check = require 'trinity.base.check'
local core = require 'trinity.core'
local limit = require 'trinity.base.fields'
local util = require 'trinity.base.util'

local internal = core.tensor.internal
local class = core.tensor.class

--- Tensors of any number of dimensions. Dimensions and indices are numbered from 1, dimensions also from -1 (the last).
--- Operators + - * / ^ accept tensors and numbers; shapes broadcast. #x is the first extent.
---@class trinity.TorchTensor
---@field dtype string
---@field device string
---@field grad? trinity.TorchTensor gradients accumulated by backward()
---@field requires_grad boolean may be assigned
---@operator len: integer
---@operator add(trinity.TorchTensor|number): trinity.TorchTensor
---@operator sub(trinity.TorchTensor|number): trinity.TorchTensor
---@operator mul(trinity.TorchTensor|number): trinity.TorchTensor
---@operator div(trinity.TorchTensor|number): trinity.TorchTensor
---@operator pow(trinity.TorchTensor|number): trinity.TorchTensor
---@operator unm: trinity.TorchTensor
local methods = core.tensor.methods or class.__index

core.tensor.methods = methods -- the names, also for tests
internal.start()

--- Returns all elements, row by row, as a double array. Example: `trinity.tensor.zeros({ 2 }):to_array()[1]`
---@return trinity.DoubleArray
function methods:to_array()
  local is_tensor = type(self) == 'userdata' and getmetatable(self) == 'tensor'
  if not is_tensor or internal.is_closed(self) then
    util.fail("tensor:to_array: the object before ':' ('tensor'): %s",
      is_tensor and 'this tensor is closed' or 'expected tensor, got ' .. util.describe(self))
  end
  local values = array.double(self:numel())
  internal.fill_array(self, values)
  return values
end
methods.to_array = limit.limited('tensor.to_array', methods.to_array)

local fields = { dtype = internal.dtype, device = internal.device, grad = internal.grad,
  requires_grad = internal.requires_grad }

function class.__index(self, name)
  local method = methods[name]
  if method then return method end
  local field = fields[name]
  if field then return field(self) end
  local names = util.sorted_keys(methods)
  for key in util.sorted_pairs(fields) do names[#names + 1] = key end
  util.fail("a tensor has no field %s%s", util.quoted(tostring(name)), core.suggestion(tostring(name), names))
end

function class.__newindex(self, name, value)
  if name ~= 'requires_grad' then
    util.fail("a tensor's field %s cannot be assigned (only requires_grad)", util.quoted(tostring(name)))
  end
  methods.requires_grad_(self, check.argument('tensor', 'field', 'requires_grad', value, 'boolean'))
end

class.__len = internal.length
class.__add, class.__sub, class.__mul, class.__div = methods.add, methods.sub, methods.mul, methods.div
class.__pow = methods.pow
class.__unm = function(x) return methods.neg(x) end

local most_rows, most_columns = 12, 10 -- that print() shows

local function number_text(x, integer)
  if type(x) == 'boolean' then return tostring(x) end
  return ((integer or x % 1 ~= x % 1) and '%.0f' or '%.5g'):format(x)
end

-- Returns the first rows of a tensor along its last dimension as lines, with right-aligned columns.
local function lines_of(x)
  local columns, integer, width = x:size(x:dim()), x.dtype == 'int64', 0
  local rows = x:reshape { -1, columns }
  local corner = rows:narrow(1, 1, math.min(most_rows, rows:size(1))):narrow(2, 1, math.min(most_columns, columns))
  local cells = util.map(corner:totable(), function(row)
    return util.map(row, function(number)
      local cell = number_text(number, integer)
      width = math.max(width, #cell)
      return cell
    end)
  end)
  local lines = util.map(cells, function(row)
    return ' ' .. table.concat(util.map(row, function(cell) return (' '):rep(width - #cell) .. cell end), '  ')
      .. (columns > most_columns and '  ...' or '')
  end)
  if rows:size(1) > most_rows then lines[#lines + 1] = ' ...' end
  return lines
end

--- Returns the first elements, then shape, dtype and unusual properties.
function class.__tostring(x)
  if internal.is_closed(x) then return 'tensor (closed)' end
  local notes = { x.dtype }
  if x.device ~= 'cpu' then notes[#notes + 1] = x.device end
  if x.requires_grad then notes[#notes + 1] = 'requires_grad' end
  if x:dim() == 0 then
    return ('%s [%s]'):format(number_text(x:item(), x.dtype == 'int64'), table.concat(notes, ', '))
  end
  local lines = x:numel() > 0 and lines_of(x:detach()) or {}
  lines[#lines + 1] = ('[%s %s]'):format(table.concat(x:size(), ' x '), table.concat(notes, ', '))
  return table.concat(lines, '\n')
end

return methods
