-- Matmuls, embeddings, LSTM cells and losses as tf.layers, rnn_cell and contrib.seq2seq build them in
-- TensorFlow 1.15. See studies.tensorflow.layers for what a rule is.

local shapes = require 'studies.tensorflow.shapes'

local rules = {}

--- tf.tensordot of x's last axis and a matrix [columns, K] or [K, columns], as tf.layers.Dense has it for
--- more than two axes: both turned and flattened, though their order is right already.
local function tensordot(t, x, weight, shape, flops)
  local rank, inner = #x.shape, x.shape[#x.shape]
  local order, rows = {}, shapes.elements(x.shape) / inner
  for axis = 1, rank do order[axis] = axis end
  local flat = t:reshape('Tensordot/Reshape', t:transpose('Tensordot/transpose', x, order), { rows, inner })
  local matrix = t:transpose('Tensordot/transpose', weight, { 1, 2 })
  matrix = t:reshape('Tensordot/Reshape', matrix, weight.shape)
  local product = t:matmul('Tensordot/MatMul', flat, matrix, { rows, shape[#shape] }, flops)
  return t:reshape('Tensordot', product, shape, 'Tensordot/shape')
end

--- Tensors and weights of a matmul: x, the matrix, the bias if any.
local function product_operands(t, layer, inputs)
  local x, matrix, bias = inputs[1], inputs[2], inputs[3]
  for _, parameter in ipairs(layer.parameters) do
    if not matrix then matrix = t:variable('weights', parameter)
    else bias = t:variable('biases', parameter) end
  end
  return x, matrix, bias
end

--- tf.layers.dense. A matrix of one row that is itself computed is contrib.seq2seq's additive score,
--- reduce_sum(v * x, [2]).
function rules.Gemm(t, layer, inputs)
  local x, matrix, bias = product_operands(t, layer, inputs)
  local shape = layer.outputs[1].shape
  if not matrix or #matrix.shape ~= 2 then return nil end
  local y
  if #shape == 3 and shape[3] == 1 and matrix.node.type ~= 'Identity' and not bias then
    y = t:reduce('Sum', 'Sum', t:binary('Mul', 'mul', matrix, x), { 3 })
  elseif #shape > 2 then
    y = tensordot(t, x, matrix, shape, layer.flops)
  else
    y = t:matmul('MatMul', x, matrix, shape, layer.flops)
  end
  if bias then y = t:op('BiasAdd', 'BiasAdd', { y, bias }, shape) end
  return { y }
end

function rules.MatMul(t, layer, inputs)
  local a, b = product_operands(t, layer, inputs)
  local shape = layer.outputs[1].shape
  if not b or #a.shape < 2 or #b.shape < 2 then return nil end
  if #a.shape > 2 and #b.shape == 2 then return { tensordot(t, a, b, shape, layer.flops) } end
  return { t:matmul('MatMul', a, b, shape, layer.flops) }
end

--- tf.nn.embedding_lookup of weights, tf.gather of anything else.
function rules.Gather(t, layer, inputs)
  local rows, numbers = inputs[1], inputs[2]
  if layer.parameters[1] then
    rows, numbers = t:variable('weights', layer.parameters[1]), inputs[1]
  end
  if not numbers or numbers.dtype:find '^float' or (layer.attributes.axis or 0) ~= 0 then return nil end
  local y = t:op('GatherV2', 'embedding_lookup', { rows, numbers, t:axis_constant 'embedding_lookup/axis' },
    layer.outputs[1].shape)
  local is_table = rows.node.type == 'Identity' and rows.node.inputs[1].node.is_variable
  return { is_table and t:unary('Identity', 'embedding_lookup/Identity', y) or y }
end

--- rnn_cell_impl.BasicLSTMCell.call.
function rules.LSTMCell(t, layer, inputs)
  local x, h, c, kernel, bias = unpack(inputs, 1, 5)
  if not bias then return nil end
  local width = 4 * h.shape[2]
  local axis = t:axis_constant 'Const'
  local gates = t:matmul('MatMul', t:concat('concat', { x, h }, 2), kernel, { x.shape[1], width }, layer.flops)
  gates = t:op('BiasAdd', 'BiasAdd', { gates, bias }, gates.shape)
  local part = { shape = h.shape, dtype = h.dtype }
  local i, j, f, o = unpack(t:operation('Split', 'split', { axis, gates }, { part, part, part, part }).outputs)
  local forget = t:binary('Add', 'Add', f, t:constant('Const', {}, f.dtype))
  local kept = t:binary('Mul', 'Mul', c, t:unary('Sigmoid', 'Sigmoid', forget))
  local new = t:binary('Mul', 'Mul', t:unary('Sigmoid', 'Sigmoid', i), t:unary('Tanh', 'Tanh', j))
  local state = t:binary('Add', 'Add', kept, new)
  return { t:binary('Mul', 'Mul', t:unary('Tanh', 'Tanh', state), t:unary('Sigmoid', 'Sigmoid', o)), state }
end

--- nn_ops.sparse_softmax_cross_entropy_with_logits for more than two axes: rows of logits and labels, and
--- what turns the losses back.
local function flatten_logits(t, logits, labels)
  local classes, rank = logits.shape[#logits.shape], #logits.shape
  local labels_shape, logits_shape = t:shape_constant('xent/Shape', #labels.shape), t:shape_constant('xent/Shape', rank)
  local last = t:with_number('Sub', 'xent/sub', t:axis_constant 'xent/Rank')
  local behind = t:with_number('AddV2', 'xent/add', last)
  local begin, finish = t:op('Pack', 'xent/strided_slice/stack', { last }, { 1 }),
    t:op('Pack', 'xent/strided_slice/stack', { behind }, { 1 })
  local width = t:op('StridedSlice', 'xent/strided_slice', { logits_shape, begin, finish,
    t:shape_constant('xent/strided_slice/stack', 1) }, {})
  local target = t:op('Pack', 'xent/Reshape/shape', { t:axis_constant 'xent/Reshape/shape/0', width }, { 2 })
  local rows = shapes.elements(labels.shape)
  local flat = t:op('Reshape', 'xent/Reshape', { logits, target }, { rows, classes })
  return flat, t:reshape('xent/Reshape', labels, { rows }), function(losses)
    return t:op('Reshape', 'xent/Reshape', { losses, labels_shape }, labels.shape)
  end
end

--- tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(...)).
function rules.SoftmaxCrossEntropyLoss(t, layer, inputs)
  local logits, labels, back = inputs[1], inputs[2], nil
  if #logits.shape > 2 then logits, labels, back = flatten_logits(t, logits, labels) end
  local type = 'SparseSoftmaxCrossEntropyWithLogits'
  local losses = t:operation(type, 'xent/' .. type, { logits, labels },
    { { shape = { logits.shape[1] }, dtype = logits.dtype }, { shape = logits.shape, dtype = logits.dtype } },
    { flops = layer.flops }).outputs[1]
  if back then losses = back(losses) end
  return { t:reduce_all('Mean', 'Mean', losses) }
end

return rules
