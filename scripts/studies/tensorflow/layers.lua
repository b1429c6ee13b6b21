-- How TensorFlow 1.15 builds layers: for every ONNX type the operations that its Python front end adds
-- (tf.contrib.slim and tf.layers for images, rnn_cell and contrib.seq2seq for sequences, Python's
-- operators otherwise). A rule gets the tape, the layer as graph:operator gives it, and its input
-- tensors, and returns its output tensors, or nil where TensorFlow has no way to build it. Shapes stay
-- as in the layer graph, images [N, C, H, W], while operations have TensorFlow's default layout,
-- [N, H, W, C]: sizes are the same.

local shapes = require 'studies.tensorflow.shapes'
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
for _, type in ipairs { 'Relu', 'Sigmoid', 'Tanh', 'Exp', 'Log', 'Sqrt', 'Abs', 'Neg', 'Erf', 'Elu', 'Selu', 'Softplus',
  'Softsign', 'Reciprocal', 'Identity' } do
  rules[type] = unary(type)
end
rules.LeakyRelu = unary 'LeakyRelu'

local function binary(type, name)
  return function(t, layer, inputs)
    local list = t:operands(layer, inputs)
    return list[2] and { t:binary(type, name, list[1], list[2]) }
  end
end
rules.Add, rules.Sub, rules.Mul = binary('AddV2', 'add'), binary('Sub', 'sub'), binary('Mul', 'mul')
rules.Div, rules.Pow = binary('RealDiv', 'truediv'), binary('Pow', 'Pow')

--- tf.add_n.
function rules.Sum(t, layer, inputs)
  local list = t:operands(layer, inputs)
  return { t:op('AddN', 'AddN', list, list[1].shape) }
end

function rules.Mean(t, layer, inputs)
  return { t:with_number('RealDiv', 'truediv', rules.Sum(t, layer, inputs)[1]) }
end

--- tf.clip_by_value, or relu6.
function rules.Clip(t, layer, inputs)
  local x, low, high = inputs[1], layer.attributes.min, layer.attributes.max
  if low == 0 and high == 6 then return { t:unary('Relu6', 'Relu6', x) } end
  x = t:with_number('Minimum', 'clip_by_value/Minimum', x)
  return { t:with_number('Maximum', 'clip_by_value', x) }
end

--- x * tf.sigmoid(x).
function rules.Swish(t, _, inputs)
  return { t:binary('Mul', 'mul', inputs[1], t:unary('Sigmoid', 'Sigmoid', inputs[1])) }
end

--- gelu of BERT's modeling.py, with erf or with the approximation.
function rules.Gelu(t, layer, inputs)
  local x = inputs[1]
  local inner
  if layer.attributes.approximate == 'tanh' then
    local cube = t:with_number('Mul', 'mul', t:with_number('Pow', 'Pow', x), 'x', true)
    local sum = t:with_number('Mul', 'mul', t:binary('AddV2', 'add', x, cube), 'x', true)
    inner = t:unary('Tanh', 'Tanh', sum)
  else
    local root = t:unary('Sqrt', 'Sqrt', t:constant('Sqrt/x', {}, x.dtype))
    inner = t:unary('Erf', 'Erf', t:binary('RealDiv', 'truediv', x, root))
  end
  local cdf = t:with_number('Mul', 'mul', t:with_number('AddV2', 'add', inner, 'x', true), 'x', true)
  return { t:binary('Mul', 'mul', x, cdf) }
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

--- tf.nn.softmax; a causal one is masked as in GPT-2's model.py: w * b - 1e10 * (1 - b).
function rules.Softmax(t, layer, inputs)
  local x = inputs[1]
  local rank = #x.shape
  local axis = axis_of(layer, rank, -1)
  if layer.attributes.causal == 1 then
    local mask = t:constant('mask', { 1, 1, x.shape[rank - 1], x.shape[rank] }, x.dtype)
    local far = t:with_number('Mul', 'mul', t:with_number('Sub', 'sub', mask, 'x', true), 'x', true)
    x = t:binary('Sub', 'sub', t:binary('Mul', 'mul', x, mask), far)
  end
  if axis == rank then return { t:unary('Softmax', 'Softmax', x) } end
  local order = util.listed(rank, function(i) return i end)
  order[axis], order[rank] = rank, axis
  return { t:transpose('transpose', t:unary('Softmax', 'Softmax', t:transpose('transpose', x, order)), order) }
end

--- tf.concat, or tf.stack along a new axis.
function rules.Concat(t, layer, inputs)
  local list = t:operands(layer, inputs)
  local shape = layer.outputs[1].shape
  if layer.attributes.new_axis == 1 then return { t:op('Pack', 'stack', list, shape) } end
  return { t:concat('concat', list, axis_of(layer, #shape, 0)) }
end

--- tf.split, or tf.unstack where the axis goes.
function rules.Split(t, layer, inputs)
  local x, outputs, equal = inputs[1], {}, true
  for i, tensor in ipairs(layer.outputs) do
    outputs[i] = { shape = tensor.shape, dtype = x.dtype }
    equal = equal and shapes.same(tensor.shape, layer.outputs[1].shape)
  end
  if layer.attributes.keepdims == 0 then return t:operation('Unpack', 'unstack', { x }, outputs).outputs end
  if equal then
    return t:operation('Split', 'split', { t:axis_constant 'split/split_dim', x }, outputs).outputs
  end
  return t:operation('SplitV', 'split', { x, t:shape_constant('split/size_splits', #outputs),
    t:axis_constant 'split/split_dim' }, outputs).outputs
end

function rules.Slice(t, layer, inputs)
  return { t:strided_slice_of('strided_slice', inputs[1], layer.outputs[1].shape) }
end

function rules.Pad(t, layer, inputs)
  local paddings = t:constant('Pad/paddings', { #inputs[1].shape, 2 }, 'int32')
  return { t:op('Pad', 'Pad', { inputs[1], paddings }, layer.outputs[1].shape) }
end

function rules.Expand(t, layer, inputs)
  local shape = layer.outputs[1].shape
  return { t:op('BroadcastTo', 'BroadcastTo', { inputs[1], t:shape_constant('BroadcastTo/shape', #shape) }, shape) }
end

function rules.Tile(t, layer, inputs)
  local shape = layer.outputs[1].shape
  return { t:op('Tile', 'Tile', { inputs[1], t:shape_constant('Tile/multiples', #shape) }, shape) }
end

function rules.Transpose(t, layer, inputs)
  local order = util.listed(#inputs[1].shape, function(i)
    return layer.attributes.perm and layer.attributes.perm[i] + 1 or #inputs[1].shape + 1 - i
  end)
  return { t:transpose('transpose', inputs[1], order) }
end

function rules.Reshape(t, layer, inputs) return { t:reshape('Reshape', inputs[1], layer.outputs[1].shape) } end
rules.Flatten = rules.Reshape

function rules.Squeeze(t, layer, inputs)
  return { t:op('Squeeze', 'Squeeze', { inputs[1] }, layer.outputs[1].shape) }
end

function rules.Unsqueeze(t, layer, inputs)
  return { t:op('ExpandDims', 'ExpandDims', { inputs[1], t:axis_constant 'ExpandDims/dim' }, layer.outputs[1].shape) }
end

function rules.Cast(t, layer, inputs)
  return { t:unary('Cast', 'Cast', inputs[1], { dtype = layer.outputs[1].dtype }) }
end

--- The reduced axes: stated, those that became 1, or all.
local function reduced_axes(layer, x)
  local rank, to, axes = #x.shape, layer.outputs[1].shape, {}
  if layer.attributes.axes then
    for i, axis in ipairs(layer.attributes.axes) do axes[i] = axis < 0 and axis + rank + 1 or axis + 1 end
    return axes
  end
  for axis = 1, rank do
    if #to ~= rank or to[axis] ~= x.shape[axis] then axes[#axes + 1] = axis end
  end
  return axes
end

local function reduction(type)
  return function(t, layer, inputs)
    return { t:reduce(type, type, inputs[1], reduced_axes(layer, inputs[1]), layer.attributes.keepdims ~= 0) }
  end
end
rules.ReduceMean, rules.ReduceSum = reduction 'Mean', reduction 'Sum'

--- tf.norm.
function rules.ReduceL2(t, layer, inputs)
  local square = t:binary('Mul', 'norm/mul', inputs[1], inputs[1])
  return { t:unary('Sqrt', 'norm/Sqrt', rules.ReduceSum(t, layer, { square })[1]) }
end

for _, part in ipairs { 'image_layers', 'sequence_layers' } do
  for type, rule in util.sorted_pairs(require('studies.tensorflow.' .. part)) do rules[type] = rule end
end

return rules
