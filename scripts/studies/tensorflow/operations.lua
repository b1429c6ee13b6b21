-- TensorFlow 1.15's Python functions as methods of a tape that add to a graph: the operation itself and
-- the constants that it reads. Axes are counted from 1.

local shapes = require 'studies.tensorflow.shapes'
local util = require 'trinity.base.util'

local Tape = {}

function Tape:constant(name, shape, dtype, extra)
  local settings = { dtype = dtype or self.dtype, controls = extra and extra.controls }
  return self:op('Const', name, {}, shape, settings)
end

--- A constant vector of int32, as shapes and axes are.
function Tape:shape_constant(name, length) return self:constant(name, { length }, 'int32') end

--- A constant int32 scalar, as axes are.
function Tape:axis_constant(name) return self:constant(name, {}, 'int32') end

--- Inputs of a layer, and its weights, read, in their order.
function Tape:operands(layer, inputs)
  local list = util.map(inputs, function(tensor) return tensor end)
  for _, parameter in ipairs(layer.parameters) do list[#list + 1] = self:variable(parameter.name, parameter) end
  return list
end

function Tape:unary(type, name, x, extra) return self:op(type, name, { x }, x.shape, extra) end

--- An element-wise operation with broadcasting.
function Tape:binary(type, name, a, b, extra)
  return self:op(type, name, { a, b }, shapes.broadcast(a.shape, b.shape), extra)
end

--- The same with a Python number as the second operand, or with `first` as the first one.
function Tape:with_number(type, name, x, label, first)
  local number = self:constant(('%s/%s'):format(name, label or 'y'), {}, x.dtype)
  if first then return self:op(type, name, { number, x }, x.shape, { dtype = x.dtype }) end
  return self:op(type, name, { x, number }, x.shape)
end

--- array_ops.reshape to a shape known in Python; `constant` names the constant ('NAME/shape').
function Tape:reshape(name, x, shape, constant)
  local target = self:shape_constant(constant or name .. '/shape', #shape)
  return self:op('Reshape', name, { x, target }, shape)
end

--- math_ops.reduce_sum and the like over these axes, which stay as 1.
function Tape:reduce(type, name, x, axes)
  local indices = self:shape_constant(name .. '/reduction_indices', #axes)
  return self:op(type, name, { x, indices }, shapes.reduced(x.shape, axes), { axes = axes })
end

--- The same over all axes, to a scalar: its constant is called 'Const'.
function Tape:reduce_all(type, name, x)
  local axes = util.listed(#x.shape, function(axis) return axis end)
  return self:op(type, name, { x, self:shape_constant('Const', #x.shape) }, {}, { axes = axes })
end

--- array_ops.concat along an axis. One tensor alone is only copied.
function Tape:concat(name, tensors, axis)
  local constant = self:axis_constant(name .. '/axis')
  if #tensors == 1 then return self:unary('Identity', name, tensors[1]) end
  local shape, inputs = shapes.copy(tensors[1].shape), {}
  shape[axis] = 0
  for i, tensor in ipairs(tensors) do
    inputs[i] = tensor
    shape[axis] = shape[axis] + tensor.shape[axis]
  end
  inputs[#inputs + 1] = constant
  return self:op('ConcatV2', name, inputs, shape)
end

--- tf.transpose; order lists axes from 1.
function Tape:transpose(name, x, order)
  local shape = util.map(order, function(axis) return x.shape[axis] end)
  return self:op('Transpose', name, { x, self:shape_constant(name .. '/perm', #order) }, shape, { order = order })
end

--- x[...] in Python, of this shape: StridedSlice with three constants.
function Tape:strided_slice_of(name, x, shape)
  local inputs, rank = { x }, math.max(#x.shape, 1)
  for i, label in ipairs { '/stack', '/stack_1', '/stack_2' } do
    inputs[i + 1] = self:shape_constant(name .. label, rank)
  end
  return self:op('StridedSlice', name, inputs, shape)
end

--- tf.matmul of matrices, or of stacks of them; flops as the layer has them.
function Tape:matmul(name, a, b, shape, flops)
  return self:op(#shape > 2 and 'BatchMatMulV2' or 'MatMul', name, { a, b }, shape, { flops = flops })
end

--- array_ops.zeros and tf.fill of one number: small ones are constants.
function Tape:filled(name, shape, dtype)
  if shapes.elements(shape) < 1000 then return self:constant(name, shape, dtype) end
  local extents = self:shape_constant(name .. '/shape_as_tensor', #shape)
  return self:op('Fill', name, { extents, self:constant(name .. '/Const', {}, dtype) }, shape, { dtype = dtype })
end

return Tape
