-- TensorFlow 1.15's registered gradients, by operation type. A rule gets the tape, the operation and the
-- gradients of its outputs, adds what the Python function of python/ops/math_grad.py, nn_grad.py or
-- array_grad.py adds where all shapes are known, and returns the gradients of its inputs in their order
-- (nil or false: none). Types without a rule stop the gradient, as ops.NotDifferentiable does.

local shapes = require 'studies.tensorflow.shapes'
local util = require 'trinity.base.util'

local same = shapes.same
local rules = {}

--- A gradient of a broadcast result brought back to the shape of an operand: SmartBroadcastGradientArgs
--- knows the axes, so only Sum and Reshape with their constants are added.
local function reduce_to(t, x, grad)
  if same(x.shape, grad.shape) then return grad end
  local axes = t:shape_constant('Sum/reduction_indices', math.max(#grad.shape - #x.shape, 1))
  local sum = t:op('Sum', 'Sum', { grad, axes }, x.shape)
  return t:reshape('Reshape', sum, x.shape)
end

-- _AddGrad, _SubGrad, _MulGrad, _SquaredDifferenceGrad.
function rules.AddV2(t, node, grad)
  return { reduce_to(t, node.inputs[1], grad), reduce_to(t, node.inputs[2], grad) }
end
rules.Add = rules.AddV2

function rules.Sub(t, node, grad)
  local x, y = node.inputs[1], node.inputs[2]
  return { reduce_to(t, x, grad), reduce_to(t, y, t:unary('Neg', 'Neg', grad)) }
end

function rules.Mul(t, node, grad)
  local x, y = node.inputs[1], node.inputs[2]
  local gx = reduce_to(t, x, t:binary('Mul', 'Mul', grad, y))
  return { gx, reduce_to(t, y, t:binary('Mul', 'Mul', x, grad)) }
end

function rules.SquaredDifference(t, node, grad)
  local x, y = node.inputs[1], node.inputs[2]
  local after = { controls = { grad.node } }
  local two = t:constant('scalar', {}, grad.dtype, after)
  local doubled = t:op('Mul', 'Mul', { two, grad }, grad.shape)
  local difference = t:op('Sub', 'sub', { x, y }, grad.shape, after)
  local gx = t:binary('Mul', 'mul', doubled, difference)
  return { reduce_to(t, x, gx), t:unary('Neg', 'Neg', reduce_to(t, y, gx)) }
end

--- Shapes of both operands and the axes of each that were broadcast, as operations on shapes: for
--- functions that call broadcast_gradient_args whatever is known.
local function broadcast_axes(t, x, y)
  local sx, sy = t:shape_constant('Shape', #x.shape), t:shape_constant('Shape_1', #y.shape)
  local axes = t:operation('BroadcastGradientArgs', 'BroadcastGradientArgs', { sx, sy },
    { { shape = { #x.shape }, dtype = 'int32' }, { shape = { #y.shape }, dtype = 'int32' } }).outputs
  return function(grad, operand)
    local shape = operand == 1 and x.shape or y.shape
    local sum = t:op('Sum', 'Sum', { grad, axes[operand] }, shape)
    return t:op('Reshape', 'Reshape', { sum, operand == 1 and sx or sy }, shape)
  end
end

-- _RealDivGrad before 2019-09-14, which is TensorFlow 1.15.0's horizon of compatibility.
function rules.RealDiv(t, node, grad)
  local x, y = node.inputs[1], node.inputs[2]
  local reduce = broadcast_axes(t, x, y)
  local gx = reduce(t:binary('RealDiv', 'RealDiv', grad, y), 1)
  local ratio = t:binary('RealDiv', 'RealDiv', t:unary('Neg', 'Neg', x), y)
  ratio = t:binary('RealDiv', 'RealDiv', ratio, y)
  return { gx, reduce(t:binary('Mul', 'mul', grad, ratio), 2) }
end

-- Functions of one tensor whose gradient is one operation of (output, gradient).
for _, type in ipairs { 'Sigmoid', 'Tanh', 'Sqrt', 'Rsqrt' } do
  rules[type] = function(t, node, grad)
    return { t:op(type .. 'Grad', type .. 'Grad', { node.outputs[1], grad }, grad.shape) }
  end
end
function rules.Relu(t, node, grad) return { t:op('ReluGrad', 'ReluGrad', { grad, node.outputs[1] }, grad.shape) } end

function rules.Identity(_, _, grad) return { grad } end

function rules.AddN(_, node, grad) return util.listed(#node.inputs, function() return grad end) end

function rules.Softmax(t, node, grad)
  local y = node.outputs[1]
  local sum = t:reduce('Sum', 'Sum', t:binary('Mul', 'mul', grad, y), { #y.shape })
  return { t:binary('Mul', 'mul', t:binary('Sub', 'sub', grad, sum), y) }
end

-- _SumGrad: the constants that it evaluates at once, and what is left to run.
function rules.Sum(t, node, grad)
  local x = node.inputs[1]
  grad = t:reshape('Reshape', grad, shapes.reduced(x.shape, node.axes))
  local whole = #node.axes == #x.shape
  local multiples = t:shape_constant(whole and 'Const' or 'Tile/multiples', #x.shape)
  return { t:op('Tile', 'Tile', { grad, multiples }, x.shape) }
end

-- _MeanGrad.
function rules.Mean(t, node, grad)
  local sum = rules.Sum(t, node, grad)[1]
  return { t:op('RealDiv', 'truediv', { sum, t:constant('Const', {}, sum.dtype) }, sum.shape) }
end

for _, part in ipairs { 'array_gradients', 'layer_gradients' } do
  for type, rule in util.sorted_pairs(require('studies.tensorflow.' .. part)) do rules[type] = rule end
end

return rules
