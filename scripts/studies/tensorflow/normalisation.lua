-- Normalisations of TensorFlow 1.15 as nn.moments, nn.batch_normalization and contrib.layers write them.

local normalisation = {}

--- nn.moments over these axes, kept as 1: mean and variance.
function normalisation.moments(t, x, axes)
  local mean = t:reduce('Mean', 'moments/mean', x, axes)
  local stopped = t:unary('StopGradient', 'moments/StopGradient', mean)
  local squares = t:binary('SquaredDifference', 'moments/SquaredDifference', x, stopped)
  return mean, t:reduce('Mean', 'moments/variance', squares, axes)
end

--- nn.batch_normalization with an offset, and a scale if any.
function normalisation.normalise(t, x, mean, variance, offset, scale)
  local inverse = t:unary('Rsqrt', 'batchnorm/Rsqrt', t:with_number('AddV2', 'batchnorm/add', variance))
  if scale then inverse = t:binary('Mul', 'batchnorm/mul', inverse, scale) end
  local scaled = t:binary('Mul', 'batchnorm/mul', x, inverse)
  local shift = t:binary('Sub', 'batchnorm/sub', offset, t:binary('Mul', 'batchnorm/mul', mean, inverse))
  return t:binary('AddV2', 'batchnorm/add', scaled, shift)
end

--- moving_averages.assign_moving_average without zero debiasing, of what `read` reads, on its device.
--- `decay`: a tensor, as the fused kernel's caller has it; nil: a Python number.
function normalisation.moving_average(t, read, value, decay)
  local variable = read.node.inputs[1].node
  t:within({ scope = t:unique(t.scope .. '/AssignMovingAvg'), serves = variable }, function()
    local rate
    if decay then
      rate = t:binary('Sub', 'sub', t:constant('sub/x', {}, value.dtype), decay)
    else
      rate = t:constant('decay', {}, value.dtype)
    end
    local step = t:binary('Mul', 'mul', t:binary('Sub', 'sub', read, value), rate)
    t.updates[#t.updates + 1] = t:operation('AssignSub', 'AssignSub', { variable.outputs[1], step }, {})
  end)
end

return normalisation
