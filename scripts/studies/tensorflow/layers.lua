-- How TensorFlow 1.15 builds layers: for the ONNX types of the paper's five networks the operations that its Python
-- front end adds (tf.contrib.slim and tf.layers for images, rnn_cell and contrib.seq2seq for sequences, Python's
-- operators otherwise). A rule gets the tape, the layer as graph:operator gives it, and its input
-- tensors, and returns its output tensors, or nil where it cannot build the layer. Shapes stay
-- as in the layer graph, images [N, C, H, W], while operations have TensorFlow's default layout,
-- [N, H, W, C]: sizes are the same.

local util = require 'trinity.base.util'

local rules = {}

--- An ONNX axis (from 0, negative from the end) counted from 1.
local function axis_of(layer, rank, default)
  local axis = layer.attributes.axis or default
  return axis < 0 and axis + rank + 1 or axis + 1
end

function rules.Input(t, layer)
  return t:operation('Placeholder', 'Placeholder', {}, layer.outputs).outputs
end

function rules.Variable(t, layer) return t:operands(layer, {}) end

-- A Python number, tf.fill, or whatever else is known before the step.
function rules.Constant(t, layer)
  local tensor = layer.outputs[1]
  local number = layer.attributes.value_float ~= nil or layer.attributes.value ~= nil
  if not number then return { t:constant('Const', tensor.shape, tensor.dtype) } end
  local shape = #tensor.shape == 1 and tensor.shape[1] == 1 and {} or tensor.shape
  return { t:filled('zeros', shape, tensor.dtype) }
end

local function unary(type)
  return function(t, layer, inputs) return { t:unary(type, type, t:operands(layer, inputs)[1]) } end
end
rules.Relu, rules.Tanh = unary 'Relu', unary 'Tanh'

local function binary(type, name)
  return function(t, layer, inputs)
    local list = t:operands(layer, inputs)
    return list[2] and { t:binary(type, name, list[1], list[2]) }
  end
end
rules.Add, rules.Mul, rules.Div = binary('AddV2', 'add'), binary('Mul', 'mul'), binary('RealDiv', 'truediv')

--- tf.add_n.
function rules.Sum(t, layer, inputs)
  local list = t:operands(layer, inputs)
  return { t:op('AddN', 'AddN', list, list[1].shape) }
end

function rules.Mean(t, layer, inputs)
  return { t:with_number('RealDiv', 'truediv', rules.Sum(t, layer, inputs)[1]) }
end

--- nn_ops.dropout_v2.
function rules.Dropout(t, layer, inputs)
  local x = inputs[1]
  local shape = layer.attributes.noise_shape or x.shape
  local rate = t:constant('dropout/rate', {}, x.dtype)
  local low = t:constant('dropout/random_uniform/min', {}, x.dtype)
  local high = t:constant('dropout/random_uniform/max', {}, x.dtype)
  local noise = t:op('RandomUniform', 'dropout/random_uniform/RandomUniform',
    { t:shape_constant('dropout/Shape', #shape) }, shape, { dtype = x.dtype })
  noise = t:binary('Mul', 'dropout/random_uniform/mul', noise, t:binary('Sub', 'dropout/random_uniform/sub', high, low))
  noise = t:binary('Add', 'dropout/random_uniform', noise, low)
  local keep = t:with_number('Sub', 'dropout/sub', rate, 'x', true)
  local scale = t:with_number('RealDiv', 'dropout/truediv', keep, 'x', true)
  local mask = t:op('GreaterEqual', 'dropout/GreaterEqual', { noise, rate }, shape, { dtype = 'bool' })
  local scaled = t:binary('Mul', 'dropout/mul', x, scale)
  mask = t:op('Cast', 'dropout/Cast', { mask }, shape, { dtype = x.dtype })
  return { t:binary('Mul', 'dropout/mul', scaled, mask) }
end

--- tf.nn.softmax.
function rules.Softmax(t, layer, inputs)
  local x = inputs[1]
  return axis_of(layer, #x.shape, -1) == #x.shape and { t:unary('Softmax', 'Softmax', x) }
end

--- tf.concat, or tf.stack along a new axis.
function rules.Concat(t, layer, inputs)
  local list = t:operands(layer, inputs)
  local shape = layer.outputs[1].shape
  if layer.attributes.new_axis == 1 then return { t:op('Pack', 'stack', list, shape) } end
  return { t:concat('concat', list, axis_of(layer, #shape, 0)) }
end

--- tf.unstack.
function rules.Split(t, layer, inputs)
  if layer.attributes.keepdims ~= 0 then return nil end
  local outputs = util.map(layer.outputs, function(tensor) return { shape = tensor.shape, dtype = inputs[1].dtype } end)
  return t:operation('Unpack', 'unstack', { inputs[1] }, outputs).outputs
end

function rules.Slice(t, layer, inputs)
  return { t:strided_slice_of('strided_slice', inputs[1], layer.outputs[1].shape) }
end

function rules.Pad(t, layer, inputs)
  local paddings = t:constant('Pad/paddings', { #inputs[1].shape, 2 }, 'int32')
  return { t:op('Pad', 'Pad', { inputs[1], paddings }, layer.outputs[1].shape) }
end

function rules.Reshape(t, layer, inputs) return { t:reshape('Reshape', inputs[1], layer.outputs[1].shape) } end
rules.Flatten = rules.Reshape

function rules.ReduceSum(t, layer, inputs)
  local rank = #inputs[1].shape
  local axes = util.map(layer.attributes.axes, function(axis) return axis < 0 and axis + rank + 1 or axis + 1 end)
  return { t:reduce('Sum', 'Sum', inputs[1], axes) }
end

--- tf.norm.
function rules.ReduceL2(t, layer, inputs)
  local square = t:binary('Mul', 'norm/mul', inputs[1], inputs[1])
  return { t:unary('Sqrt', 'norm/Sqrt', rules.ReduceSum(t, layer, { square })[1]) }
end

for _, part in ipairs { 'image_layers', 'sequence_layers' } do
  for type, rule in util.sorted_pairs(require('studies.tensorflow.' .. part)) do rules[type] = rule end
end

return rules
