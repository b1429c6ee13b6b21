-- Checks of tensors that a script's functions return to policies and learners.

local tensor = require 'trinity.nn.tensor'
local util = require 'trinity.base.util'

local policy_checks = {}

--- A tensor with dtype and shape, 'tensor float32 [3 x 2]'; other values as util.describe has them.
function policy_checks.describe(value)
  if not tensor.is(value) then return util.describe(value) end
  return ('tensor %s [%s]'):format(value.dtype, table.concat(value:size(), ' x '))
end

--- Whether a value is a tensor of a shape, a list of extents.
function policy_checks.is_shape(value, shape)
  if not tensor.is(value) or value:dim() ~= #shape then return false end
  for i, extent in ipairs(value:size()) do
    if extent ~= shape[i] then return false end
  end
  return true
end

--- Whether a value is a tensor of floating-point numbers.
function policy_checks.is_float(value) return tensor.is(value) and value.dtype:find '^float' ~= nil end

--- Whether all numbers of a tensor are finite: one that is not makes their sum so.
function policy_checks.is_finite(value)
  local sum = tensor.no_grad(value.sum, value):item()
  return sum > -math.huge and sum < math.huge
end

--- Raises the error about what a function of the script returned; `what` names the function.
function policy_checks.refuse_result(owner, what, f, got, expected, ...)
  util.fail('%s: the %s at %s returned %s, expected %s', owner, what, util.function_place(f), got, expected:format(...))
end

return policy_checks
