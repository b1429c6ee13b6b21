-- Registered gradients of operations that move elements: python/ops/array_grad.py of TensorFlow 1.15. See
-- studies.tensorflow.gradients for what a rule is.

local shapes = require 'studies.tensorflow.shapes'
local util = require 'trinity.base.util'

local rules = {}

--- _ReshapeToInput.
local function to_input(t, node, grad) return { t:reshape('Reshape', grad, node.inputs[1].shape, 'Shape') } end

rules.Reshape, rules.Squeeze = to_input, to_input

local function inverse_order(order)
  local inverse = {}
  for i, axis in ipairs(order) do inverse[axis] = i end
  return inverse
end

function rules.Transpose(t, node, grad)
  local inverse = t:op('InvertPermutation', 'InvertPermutation', { node.inputs[2] }, node.inputs[2].shape)
  return { t:op('Transpose', 'transpose', { grad, inverse }, node.inputs[1].shape,
    { dtype = grad.dtype, order = inverse_order(node.order) }) }
end

-- _ConcatGradHelper, of at most 16 inputs.
function rules.ConcatV2(t, node, grad)
  local parts = util.listed(#node.inputs - 1, function(i) return node.inputs[i] end)
  if #parts > 16 then util.fail('TensorFlow: %s: expected at most 16 tensors, got %d', node.name, #parts) end
  local axis = t:op('FloorMod', 'mod', { node.inputs[#node.inputs], t:axis_constant 'Rank' }, {})
  local sizes, outputs, list = { axis }, {}, {}
  for i, part in ipairs(parts) do
    sizes[i + 1] = t:shape_constant('Shape', #part.shape)
    outputs[i] = { shape = { #part.shape }, dtype = 'int32' }
  end
  local offsets = t:operation('ConcatOffset', 'ConcatOffset', sizes, outputs).outputs
  for i, part in ipairs(parts) do
    list[i] = t:op('Slice', 'Slice', { grad, offsets[i], sizes[i + 1] }, part.shape)
  end
  return list
end

function rules.Split(t, node, _, grads)
  local parts = util.listed(#node.outputs, function(i) return grads[i] end)
  parts[#parts + 1] = node.inputs[1]
  return { false, t:op('ConcatV2', 'concat', parts, node.inputs[2].shape) }
end

function rules.Pack(t, node, grad)
  local outputs = util.map(node.inputs, function(part) return { shape = part.shape, dtype = grad.dtype } end)
  return t:operation('Unpack', 'unstack', { grad }, outputs).outputs
end

function rules.Unpack(t, node, _, grads)
  return { t:op('Pack', 'stack', grads, node.inputs[1].shape) }
end

function rules.StridedSlice(t, node, grad)
  local x = node.inputs[1]
  local inputs = { t:shape_constant('Shape', #x.shape), node.inputs[2], node.inputs[3], node.inputs[4], grad }
  return { t:op('StridedSliceGrad', 'StridedSliceGrad', inputs, x.shape, { dtype = grad.dtype }) }
end

-- _PadGrad.
function rules.Pad(t, node, grad)
  local x, paddings = node.inputs[1], node.inputs[2]
  local rank = #x.shape
  local column = t:op('Pack', 'stack', { t:axis_constant 'Rank', t:axis_constant 'stack/1' }, { 2 })
  local before = t:op('Slice', 'Slice', { paddings, t:shape_constant('Slice/begin', 2), column }, { rank, 1 })
  local begin = t:reshape('Reshape', before, { rank })
  return { t:op('Slice', 'Slice', { grad, begin, t:shape_constant('Shape', rank) }, x.shape) }
end

-- _GatherV2Grad along axis 0: rows of the table and their numbers.
function rules.GatherV2(t, node, grad)
  local params, indices = node.inputs[1], node.inputs[2]
  local rank, count = #params.shape, shapes.elements(indices.shape)
  local table_shape = t:constant('Shape', { rank }, 'int64')
  table_shape = t:op('Cast', 'Cast', { table_shape }, { rank }, { dtype = 'int32' })
  local size = t:op('ExpandDims', 'ExpandDims', { t:axis_constant 'Size', t:axis_constant 'ExpandDims/dim' }, { 1 })
  local tail = t:strided_slice_of('strided_slice', table_shape, { rank - 1 })
  local rows = { count, unpack(params.shape, 2) }
  local values = t:op('Reshape', 'Reshape', { grad, t:concat('concat', { size, tail }, 1) }, rows)
  local numbers = t:op('Reshape', 'Reshape', { indices, size }, { count })
  return { { sparse = true, values = values, indices = numbers, dense_shape = table_shape, shape = params.shape,
    dtype = params.dtype } }
end

return rules
