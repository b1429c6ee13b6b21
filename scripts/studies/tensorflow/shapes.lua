-- Shapes as TensorFlow's static inference has them: lists of extents, {} for a scalar.

local util = require 'trinity.base.util'

local shapes = {}

function shapes.same(a, b)
  if #a ~= #b then return false end
  for i = 1, #a do
    if a[i] ~= b[i] then return false end
  end
  return true
end

function shapes.elements(shape)
  local count = 1
  for _, extent in ipairs(shape) do count = count * extent end
  return count
end

function shapes.copy(shape) return util.map(shape, function(extent) return extent end) end

--- The shape of two operands under broadcasting. Images are [N, C, H, W] here, and a vector is
--- broadcast along the channels, as along TensorFlow's last axis.
function shapes.broadcast(a, b)
  if #a == 4 and #b == 1 and b[1] == a[2] then return a end
  if #b == 4 and #a == 1 and a[1] == b[2] then return b end
  local result, rank = {}, math.max(#a, #b)
  for i = 1, rank do result[i] = math.max(a[i - rank + #a] or 1, b[i - rank + #b] or 1) end
  return result
end

--- The shape with these axes (counted from 1) reduced to 1.
function shapes.reduced(shape, axes)
  local result = shapes.copy(shape)
  for _, axis in ipairs(axes) do result[axis] = 1 end
  return result
end

return shapes
