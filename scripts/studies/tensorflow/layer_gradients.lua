-- Registered gradients of matmuls, convolutions and layers: python/ops/nn_grad.py and math_grad.py of
-- TensorFlow 1.15. See studies.tensorflow.gradients for what a rule is.

local shapes = require 'studies.tensorflow.shapes'

local rules = {}

-- _MatMulGrad: both matmuls have the multiplications of the forward one.
function rules.MatMul(t, node, grad)
  local a, b = node.inputs[1], node.inputs[2]
  return { t:matmul('MatMul', grad, b, a.shape, node.flops), t:matmul('MatMul', a, grad, b.shape, node.flops) }
end

--- The leading axes of a shape as an operation on it: StridedSlice.
local function leading(t, shape, rank) return t:strided_slice_of('strided_slice', shape, { rank - 2 }) end

function rules.BatchMatMulV2(t, node, grad)
  local x, y = node.inputs[1], node.inputs[2]
  local function product(a, b, shape)
    return t:op('BatchMatMulV2', 'MatMul', { a, b }, shape, { flops = node.flops })
  end
  local gx, gy = product(grad, y, x.shape), product(x, grad, y.shape)
  if shapes.same(x.shape, y.shape) then return { gx, gy } end
  local sx, sy = t:shape_constant('Shape', #x.shape), t:shape_constant('Shape_1', #y.shape)
  local axes = t:operation('BroadcastGradientArgs', 'BroadcastGradientArgs', { leading(t, sx, #x.shape),
    leading(t, sy, #y.shape) }, { { shape = { #x.shape - 2 }, dtype = 'int32' },
    { shape = { #y.shape - 2 }, dtype = 'int32' } }).outputs
  local function reduce(g, axis, shape, target)
    return t:op('Reshape', 'Reshape', { t:op('Sum', 'Sum', { g, axis }, shape), target }, shape)
  end
  return { reduce(gx, axes[1], x.shape, sx), reduce(gy, axes[2], y.shape, sy) }
end

function rules.BiasAdd(t, node, grad)
  return { grad, t:op('BiasAddGrad', 'BiasAddGrad', { grad }, node.inputs[2].shape) }
end

function rules.Conv2D(t, node, grad)
  local x, filter = node.inputs[1], node.inputs[2]
  local extents = t:operation('ShapeN', 'ShapeN', { x, filter },
    { { shape = { #x.shape }, dtype = 'int32' }, { shape = { #filter.shape }, dtype = 'int32' } }).outputs
  local same_work = { flops = node.flops, dtype = x.dtype, attributes = node.attributes }
  return { t:op('Conv2DBackpropInput', 'Conv2DBackpropInput', { extents[1], filter, grad }, x.shape, same_work),
    t:op('Conv2DBackpropFilter', 'Conv2DBackpropFilter', { x, extents[2], grad }, filter.shape, same_work) }
end

-- _DepthwiseConv2dNativeGrad.
function rules.DepthwiseConv2dNative(t, node, grad)
  local x, filter = node.inputs[1], node.inputs[2]
  local function back(part, inputs, shape)
    local type = 'DepthwiseConv2dNativeBackprop' .. part
    return t:op(type, type, inputs, shape, { flops = node.flops, dtype = x.dtype, attributes = node.attributes })
  end
  return { back('Input', { t:shape_constant('Shape', #x.shape), filter, grad }, x.shape),
    back('Filter', { x, t:shape_constant('Shape_1', #filter.shape), grad }, filter.shape) }
end

-- _BaseFusedBatchNormGrad in training.
function rules.FusedBatchNormV3(t, node, grad)
  local x, scale, y = node.inputs[1], node.inputs[2], node.outputs
  local function of(tensor) return { shape = tensor.shape, dtype = tensor.dtype } end
  local none = { shape = { 0 }, dtype = scale.dtype }
  return t:operation('FusedBatchNormGradV3', 'FusedBatchNormGradV3', { grad, x, scale, y[4], y[5], y[6] },
    { of(x), of(scale), of(scale), none, none }).outputs
end

-- _MaxPoolGrad and _AvgPoolGrad: as much work as the pooling itself.
function rules.MaxPool(t, node, grad)
  local x = node.inputs[1]
  return { t:op('MaxPoolGrad', 'MaxPoolGrad', { x, node.outputs[1], grad }, x.shape, { flops = node.flops }) }
end

function rules.AvgPool(t, node, grad)
  local x = node.inputs[1]
  return { t:op('AvgPoolGrad', 'AvgPoolGrad', { t:shape_constant('Shape', #x.shape), grad }, x.shape,
    { flops = node.flops, dtype = grad.dtype }) }
end

-- _SparseSoftmaxCrossEntropyWithLogitsGrad.
function rules.SparseSoftmaxCrossEntropyWithLogits(t, node, grad)
  local backprop = t:unary('PreventGradient', 'PreventGradient', node.outputs[2])
  local rows = t:op('ExpandDims', 'ExpandDims', { grad, t:axis_constant 'ExpandDims/dim' }, { grad.shape[1], 1 })
  return { t:binary('Mul', 'mul', rows, backprop) }
end

return rules
