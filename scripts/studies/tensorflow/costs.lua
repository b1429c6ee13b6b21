-- FLOP and memory traffic of TensorFlow operations. Matmuls and convolutions have the FLOP of their
-- layer (each of their gradients the same again); all others a number per element. Traffic is everything
-- read and written once, except where an operation touches only a part.
--
-- Nothing is counted for what takes no time on a device: views, work on shapes (int32, which TensorFlow
-- keeps on the host), and what is known before the step, which Grappler's constant folding replaces by a
-- constant (up to 100 KiB: kMaxConstantSize of constant_folding.cc). A Transpose that changes no order
-- hands its input on (TransposeOp::Compute).

local shapes = require 'studies.tensorflow.shapes'
local util = require 'trinity.base.util'

local costs = {}

local bytes_of = { int64 = 8, float32 = 4, int32 = 4, bool = 1 }

function costs.bytes(tensor) return shapes.elements(tensor.shape) * bytes_of[tensor.dtype] end

-- FLOP per element of the output, 1 where none is given.
local per_output = {
  Sigmoid = 4, Tanh = 6, Softmax = 5, Rsqrt = 4, Sqrt = 4, SquaredDifference = 2, RandomUniform = 10, SigmoidGrad = 3,
  TanhGrad = 3, RsqrtGrad = 4, SqrtGrad = 2, FusedBatchNormGradV3 = 12,
}
for _, type in ipairs { 'ConcatV2', 'Split', 'SplitV', 'Pack', 'Unpack', 'Slice', 'StridedSlice', 'StridedSliceGrad',
  'Pad', 'Transpose', 'Tile', 'GatherV2', 'Fill', 'ZerosLike', 'Unique' } do
  per_output[type] = 0
end
-- FLOP per element of the first input.
local per_input = { Sum = 1, Mean = 1, BiasAddGrad = 1, UnsortedSegmentSum = 1 }
-- Types that take no time: the engine's rules say so (engine/graph/operator_types.cpp).
local view = util.set [[VariableV2 Placeholder NoOp Identity StopGradient PreventGradient Reshape Squeeze ExpandDims
  ShapeN]]
-- Only what is written is read.
local partial = { GatherV2 = true, Slice = true, StridedSlice = true }

local folded_bytes = 100 * 1024
local impure = { RandomUniform = true, Placeholder = true, VariableV2 = true, NoOp = true }

--- Whether an operation's result is known before the step; `known` remembers it per operation.
local function folds(node, known)
  if node.type == 'Const' then return true end
  if impure[node.type] or #node.inputs == 0 then return false end
  for _, tensor in ipairs(node.inputs) do
    if not known[tensor.node] then return false end
  end
  for _, tensor in ipairs(node.outputs) do
    if costs.bytes(tensor) > folded_bytes then return false end
  end
  return true
end

local function changes_nothing(node)
  for i, axis in ipairs(node.order or {}) do
    if i ~= axis then return false end
  end
  return node.order ~= nil
end

local function on_host(node)
  for _, tensor in ipairs(node.outputs) do
    if tensor.dtype ~= 'int32' then return false end
  end
  return #node.outputs > 0
end

--- FLOP and traffic of an optimiser's step, equal to the layer graph's Update: the weight, its gradient
--- and the float32 state are read, all but the gradient written. A table whose gradient has rows counts
--- those rows only.
local function update_cost(node)
  local weight = node.applies_to.outputs[1]
  local whole, gradient, states = costs.bytes(weight), 0, 0
  for _, tensor in ipairs(node.inputs) do
    if tensor.node.persistent_bytes then states = states + 1
    elseif tensor.node ~= node.applies_to then gradient = math.max(gradient, costs.bytes(tensor)) end
  end
  local part = node.sparse and math.min(gradient / whole, 1) or 1
  local count = part * shapes.elements(weight.shape)
  return 2 * (states + 1) * count, 2 * part * whole + gradient + 2 * states * 4 * count
end

local function traffic_of(node)
  local bytes = 0
  for i, tensor in ipairs(node.inputs) do
    if not (partial[node.type] and i == 1) then bytes = bytes + costs.bytes(tensor) end
  end
  for _, tensor in ipairs(node.outputs) do bytes = bytes + costs.bytes(tensor) * (partial[node.type] and 2 or 1) end
  return bytes
end

--- FLOP and bytes moved of one run of an operation.
function costs.of(node, known)
  known[node] = folds(node, known)
  if known[node] or on_host(node) or changes_nothing(node) or view[node.type] then return 0, 0 end
  if node.applies_to then return update_cost(node) end
  local traffic = traffic_of(node)
  if node.flops then return node.flops, traffic end
  if node.type == 'AddN' then return (#node.inputs - 1) * shapes.elements(node.outputs[1].shape), traffic end
  if node.type == 'AssignSub' then
    return shapes.elements(node.inputs[1].shape), traffic + costs.bytes(node.inputs[1])
  end
  if per_input[node.type] then return per_input[node.type] * shapes.elements(node.inputs[1].shape), traffic end
  local elements = node.outputs[1] and shapes.elements(node.outputs[1].shape) or 0
  return (per_output[node.type] or 1) * elements, traffic
end

return costs
