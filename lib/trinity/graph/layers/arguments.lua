-- Argument checks of layers; see trinity.base.check.

local check = require 'trinity.base.check'

local arguments = {}

--- Checks the object and argument 1 'name' of every layer.
function arguments.begin(owner, name)
  check.argument(owner, 1, 'name', name, 'string')
end

--- Also checks a tensor as argument 2 'x'.
function arguments.begin_tensor(owner, name, x)
  arguments.begin(owner, name)
  check.tensor(owner, 2, 'x', x)
end

--- Checks for a permutation of the numbers from 1 to count.
function arguments.permutation(owner, place, name, order, count)
  check.integers(owner, place, name, order, 1, count)
  local seen = {}
  for _, axis in ipairs(order) do seen[axis] = true end
  for axis = 1, count do
    if #order ~= count or not seen[axis] then
      check.refuse(owner, place, name, 'expected the axes from 1 to %d, each once', count)
    end
  end
end

return arguments
