-- Layers of images as tf.contrib.slim builds them in TensorFlow 1.15. See studies.tensorflow.layers for
-- what a rule is.

local normalisation = require 'studies.tensorflow.normalisation'

local rules = {}

--- nn.bias_add of a weight, or x alone.
local function biased(t, x, parameter)
  if not parameter then return x end
  return t:op('BiasAdd', 'BiasAdd', { x, t:variable('biases', parameter) }, x.shape)
end

--- Whether a convolution has one input channel per group.
local function is_depthwise(layer)
  return (layer.attributes.group or 1) > 1 and layer.parameters[1].shape[2] == 1
end

function rules.Conv(t, layer, inputs)
  if not layer.parameters[1] or #layer.parameters[1].shape ~= 4 then return nil end
  local depthwise = is_depthwise(layer)
  local filter = t:variable(depthwise and 'depthwise_weights' or 'weights', layer.parameters[1])
  local type = depthwise and 'DepthwiseConv2dNative' or 'Conv2D'
  local y = t:op(type, type, { inputs[1], filter }, layer.outputs[1].shape, { flops = layer.flops,
    attributes = { group = layer.attributes.group, kernel_shape = layer.attributes.kernel_shape,
      strides = layer.attributes.strides } })
  return { biased(t, y, layer.parameters[2]) }
end

--- Offset, scale and moving statistics: { beta =, gamma =, mean =, variance = }, those that there are.
local function batch_norm_weights(t, layer)
  local trained, moving, w = {}, {}, {}
  for _, parameter in ipairs(layer.parameters) do table.insert(parameter.trainable and trained or moving, parameter) end
  if #trained > 1 then w.gamma = t:variable('gamma', trained[1]) end
  if #trained > 0 then w.beta = t:variable('beta', trained[#trained]) end
  if #moving == 2 then
    w.mean, w.variance = t:variable('moving_mean', moving[1]), t:variable('moving_variance', moving[2])
  end
  return w
end

--- contrib.layers' _fused_batch_norm.
local function fused(t, layer, x, w)
  local channels = { x.shape[2] }
  local gamma = w.gamma or t:constant('Const', channels, x.dtype)
  local vector, none = { shape = channels, dtype = gamma.dtype }, { shape = { 0 }, dtype = gamma.dtype }
  local inputs = { x, gamma, w.beta or t:constant('Const', channels, x.dtype), t:constant('Const', { 0 }, x.dtype),
    t:constant('Const', { 0 }, x.dtype) }
  local y = t:operation('FusedBatchNormV3', 'FusedBatchNormV3', inputs,
    { { shape = x.shape, dtype = x.dtype }, vector, vector, vector, vector, none }, { flops = layer.flops }).outputs
  if w.mean then
    local decay = t:constant('Const', {}, x.dtype)
    normalisation.moving_average(t, w.mean, y[2], decay)
    normalisation.moving_average(t, w.variance, y[3], decay)
  end
  return y[1]
end

--- contrib.layers' batch_norm with fused = False.
local function unfused(t, x, w)
  local axes = {}
  for axis = 1, #x.shape do
    if axis ~= 2 then axes[#axes + 1] = axis end
  end
  local mean, variance = normalisation.moments(t, x, axes)
  mean = t:op('Squeeze', 'moments/Squeeze', { mean }, { x.shape[2] })
  variance = t:op('Squeeze', 'moments/Squeeze', { variance }, { x.shape[2] })
  if w.mean then
    normalisation.moving_average(t, w.mean, mean)
    normalisation.moving_average(t, w.variance, variance)
  end
  return normalisation.normalise(t, x, mean, variance, w.beta or t:constant('beta', { x.shape[2] }, x.dtype), w.gamma)
end

function rules.BatchNormalization(t, layer, inputs)
  local w = batch_norm_weights(t, layer)
  if layer.attributes.fused == 0 then return { unfused(t, inputs[1], w) } end
  return { fused(t, layer, inputs[1], w) }
end

local function pool(type)
  return function(t, layer, inputs)
    if #inputs[1].shape ~= 4 then return nil end
    return { t:op(type, type, { inputs[1] }, layer.outputs[1].shape, { flops = layer.flops }) }
  end
end
rules.MaxPool, rules.AveragePool = pool 'MaxPool', pool 'AvgPool'

--- tf.reduce_mean over height and width.
function rules.GlobalAveragePool(t, _, inputs)
  local axes = {}
  for axis = 3, #inputs[1].shape do axes[#axes + 1] = axis end
  return { t:reduce('Mean', 'Mean', inputs[1], axes) }
end

return rules
