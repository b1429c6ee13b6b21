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

local most_edge, line_width = 4, 78 -- entries shown at either end of a long dimension; line width

-- Returns the indices of shown entries of a list of `count`; 0 represents omitted ones.
local function shown(count, edge)
  edge = edge or most_edge
  local list = {}
  if count <= 2 * edge + 2 then
    for i = 1, count do list[i] = i end
    return list
  end
  for i = 1, edge do list[i] = i end
  list[edge + 1] = 0
  for i = count - edge + 1, count do list[#list + 1] = i end
  return list
end

local function number_text(x, integer)
  if type(x) == 'boolean' then return tostring(x) end
  return ((integer or x % 1 ~= x % 1) and '%.0f' or '%.5g'):format(x)
end

-- Returns cells of a matrix and their width; `edge` columns at either end if there are many.
local function matrix_cells(x, edge)
  local rows, width, integer = {}, 0, x.dtype == 'int64'
  for _, r in ipairs(shown(x:size(1))) do
    local cells = {}
    for _, c in ipairs(shown(x:size(2), edge)) do
      local cell = (r == 0 or c == 0) and '...' or number_text(x:select(1, r):select(1, c):item(), integer)
      cells[#cells + 1], width = cell, math.max(width, #cell)
    end
    rows[#rows + 1] = cells
  end
  return rows, width
end

-- Returns lines of a matrix (or row), with right-aligned columns that fit a line.
local function matrix_lines(x, prefix)
  local lines, rows, width = {}, nil, nil
  if x:dim() == 1 then x = x:unsqueeze(1) end
  for edge = most_edge, 1, -1 do
    rows, width = matrix_cells(x, edge)
    if #prefix + #rows[1] * (width + 2) - 2 <= line_width then break end
  end
  for i, cells in ipairs(rows) do
    for c, cell in ipairs(cells) do cells[c] = (' '):rep(width - #cell) .. cell end
    lines[i] = prefix .. table.concat(cells, '  ')
  end
  return lines
end

-- Returns lines of a tensor of any number of dimensions: matrices with heads like (2,.,.).
local function tensor_lines(x, head, lines)
  if x:dim() <= 2 then
    if head ~= '' then lines[#lines + 1] = ('(%s.,.)'):format(head) end
    for _, line in ipairs(matrix_lines(x, ' ')) do lines[#lines + 1] = line end
    return
  end
  for _, i in ipairs(shown(x:size(1))) do
    if #lines > 60 then
      lines[#lines + 1] = '...'
      return
    end
    if i ~= 0 then tensor_lines(x:select(1, i), head .. i .. ',', lines) end
  end
end

--- Returns elements as a small matrix, then shape, dtype and unusual properties.
function class.__tostring(x)
  if internal.is_closed(x) then return 'tensor (closed)' end
  local notes = { x.dtype }
  if x.device ~= 'cpu' then notes[#notes + 1] = x.device end
  if x.requires_grad then notes[#notes + 1] = 'requires_grad' end
  if x:dim() == 0 then
    return ('%s [%s]'):format(number_text(x:item(), x.dtype == 'int64'), table.concat(notes, ', '))
  end
  local lines = {}
  if x:numel() > 0 then tensor_lines(x:detach(), '', lines) end
  lines[#lines + 1] = ('[%s %s]'):format(table.concat(x:size(), ' x '), table.concat(notes, ', '))
  return table.concat(lines, '\n')
end

return methods
