-- The operations that TensorFlow 1.15's optimisers add per weight (python/training/optimizer.py, gradient_descent.py,
-- momentum.py, adam.py), and the operations between gradients and updates: weight decay as contrib.slim's
-- regularisers have it, clipping by the global norm as contrib.training and tensorflow/nmt do.

local shapes = require 'studies.tensorflow.shapes'
local util = require 'trinity.base.util'

local optimisers = {}

--- slim.l2_regularizer of every matrix and filter, and tf.losses.get_total_loss over it.
function optimisers.regularise(t, loss)
  local losses = { loss }
  for _, variable in ipairs(t.variables) do
    local read = variable.read
    if #read.shape > 1 then
      t:within({ scope = variable.name .. '/Regularizer/l2_regularizer', serves = variable }, function()
        local scale, squares = t:constant('scale', {}, read.dtype), t:op('L2Loss', 'L2Loss', { read }, {})
        losses[#losses + 1] = t:op('Mul', 'mul', { scale, squares }, {})
      end)
    end
  end
  return t:op('AddN', 'total_loss', losses, {})
end

--- clip_ops.clip_by_global_norm; every multiplication is colocated with its gradient.
function optimisers.clip(t, gradients)
  local function of(gradient) return gradient.sparse and gradient.values or gradient end
  t:within({ scope = '', phase = 'update' }, function()
    local squares = {}
    for _, variable in ipairs(t.variables) do
      local gradient = gradients[variable]
      if gradient then
        t.serves = of(gradient).node
        squares[#squares + 1] = t:op('L2Loss', 'global_norm/L2Loss', { of(gradient) }, {})
      end
    end
    t.serves = nil
    local sum = t:reduce_all('Sum', 'global_norm/Sum', t:op('Pack', 'global_norm/stack', squares, { #squares }))
    local norm = t:unary('Sqrt', 'global_norm/global_norm', t:with_number('Mul', 'global_norm/mul', sum))
    local function named(name) return 'clip_by_global_norm/' .. name end
    local inverse = t:with_number('RealDiv', named 'truediv', norm, 'x', true)
    local limit = t:with_number('RealDiv', named 'truediv', t:constant(named 'Const', {}, norm.dtype))
    local scale = t:with_number('Mul', named 'mul', t:binary('Minimum', named 'Minimum', inverse, limit), 'x', true)
    local finite = t:unary('IsFinite', named 'IsFinite', norm, { dtype = 'bool' })
    scale = t:op('Select', named 'Select', { finite, scale, t:constant(named 'Const', {}, norm.dtype) }, {},
      { dtype = norm.dtype })
    for _, variable in ipairs(t.variables) do
      local gradient = gradients[variable]
      if gradient then
        t.serves = of(gradient).node
        local scaled = t:binary('Mul', named 'mul', of(gradient), scale)
        scaled = t:unary('Identity', named 'clip_by_global_norm', scaled)
        if gradient.sparse then gradient.values = scaled else gradients[variable] = scaled end
      end
    end
  end)
end

--- optimizer.py's _deduplicate_indexed_slices: sums of the rows with one number, and the numbers.
local function deduplicated(t, gradient)
  local count = gradient.indices.shape
  local unique = t:operation('Unique', 'Unique', { gradient.indices },
    { { shape = count, dtype = gradient.indices.dtype }, { shape = count, dtype = 'int32' } }).outputs
  local extent = t:op('Shape', 'Shape', { unique[1] }, { 1 }, { dtype = 'int32' })
  local rows = t:strided_slice_of('strided_slice', extent, {})
  return t:op('UnsortedSegmentSum', 'UnsortedSegmentSum', { gradient.values, unique[2], rows }, gradient.values.shape),
    unique[1]
end

--- The state that an optimiser keeps in addition to a weight; in float32, whatever the weight's dtype.
local function slot(t, variable, name)
  local weight = variable.outputs[1]
  local output = { shape = weight.shape, dtype = 'float32' }
  return t:operation('VariableV2', name, {}, { output }, { serves = variable, is_variable = true,
    persistent_bytes = 4 * shapes.elements(weight.shape) }).outputs[1]
end

--- Bytes of a weight of half precision's copy in float32; nil for other weights.
local function master_bytes(variable)
  local weight = variable.outputs[1]
  return weight.dtype:find '16$' and 4 * shapes.elements(weight.shape) or nil
end

local function apply(t, type, variable, inputs, sparse)
  return t:operation(type, type, inputs, {}, { applies_to = variable, sparse = sparse,
    persistent_bytes = master_bytes(variable) })
end

local kinds = {}

function kinds.sgd(t)
  local rate = t:constant('GradientDescent/learning_rate', {}, 'float32')
  return {
    name = 'GradientDescent',
    dense = function(variable, gradient)
      return apply(t, 'ApplyGradientDescent', variable, { variable.outputs[1], rate, gradient })
    end,
    sparse = function(variable, gradient)
      local scaled = t:binary('Mul', 'mul', gradient.values, rate)
      return apply(t, 'ScatterSub', variable, { variable.outputs[1], gradient.indices, scaled }, true)
    end,
  }
end

function kinds.momentum(t)
  local rate = t:constant('Momentum/learning_rate', {}, 'float32')
  local momentum = t:constant('Momentum/momentum', {}, 'float32')
  return {
    name = 'Momentum', slots = { 'Momentum' },
    dense = function(variable, gradient, slots)
      return apply(t, 'ApplyMomentum', variable, { variable.outputs[1], slots[1], rate, gradient, momentum })
    end,
    sparse = function(variable, gradient, slots)
      local values, numbers = deduplicated(t, gradient)
      local inputs = { variable.outputs[1], slots[1], rate, values, numbers, momentum }
      return apply(t, 'SparseApplyMomentum', variable, inputs, true)
    end,
  }
end

--- adam.py's _apply_sparse_shared: the averages of all rows decay; the rows with gradients are then updated.
local function adam_rows(t, variable, gradient, slots, state)
  local values, numbers = deduplicated(t, gradient)
  local function complement(name, x) return t:with_number('Sub', name, x, 'x', true) end
  local rate = t:binary('Mul', 'mul', state.rate, t:unary('Sqrt', 'Sqrt', complement('sub', state.powers[2])))
  rate = t:binary('RealDiv', 'truediv', rate, complement('sub', state.powers[1]))
  local function average(slot_tensor, beta, rows)
    local read = t:within({ scope = '', serves = variable }, function()
      return t:unary('Identity', slot_tensor.node.name .. '/read', slot_tensor)
    end)
    local added = t:binary('Mul', 'mul', rows, complement('sub', beta))
    local decayed = t:operation('Assign', 'Assign', { slot_tensor, t:binary('Mul', 'mul', read, beta) }, {})
    return t:op('ScatterAdd', 'ScatterAdd', { slot_tensor, numbers, added }, slot_tensor.shape,
      { controls = { decayed }, in_place = true })
  end
  local m = average(slots[1], state.betas[1], values)
  local v = average(slots[2], state.betas[2], t:binary('Mul', 'mul', values, values))
  local root = t:binary('AddV2', 'add', t:unary('Sqrt', 'Sqrt', v), state.epsilon)
  local step = t:binary('RealDiv', 'truediv', t:binary('Mul', 'mul', rate, m), root)
  local assign = t:operation('AssignSub', 'AssignSub', { variable.outputs[1], step }, {},
    { persistent_bytes = master_bytes(variable) })
  return t:operation('NoOp', 'group_deps', {}, {}, { controls = { assign, m.node, v.node } })
end

function kinds.adam(t)
  local state = { powers = {}, betas = {} }
  local variables = {}
  for i, name in ipairs { 'beta1_power', 'beta2_power' } do
    variables[i] = t:operation('VariableV2', name, {}, { { shape = {}, dtype = 'float32' } }, { is_variable = true })
    state.powers[i] = t:op('Identity', name .. '/read', variables[i].outputs, {}, { serves = variables[i] })
  end
  state.rate = t:constant('Adam/learning_rate', {}, 'float32')
  state.betas = { t:constant('Adam/beta1', {}, 'float32'), t:constant('Adam/beta2', {}, 'float32') }
  state.epsilon = t:constant('Adam/epsilon', {}, 'float32')
  return {
    name = 'Adam', slots = { 'Adam', 'Adam' },
    dense = function(variable, gradient, slots)
      return apply(t, 'ApplyAdam', variable, { variable.outputs[1], slots[1], slots[2], state.powers[1],
        state.powers[2], state.rate, state.betas[1], state.betas[2], state.epsilon, gradient })
    end,
    sparse = function(variable, gradient, slots) return adam_rows(t, variable, gradient, slots, state) end,
    -- _finish: the powers of beta for the next step.
    finish = function(applied)
      local weights = util.map(applied, function(node) return node end)
      for i = 1, 2 do
        local power = t:op('Mul', 'Adam/mul', { state.powers[i], state.betas[i] }, {},
          { controls = weights, serves = variables[i] })
        applied[#applied + 1] = t:operation('Assign', 'Adam/Assign', { variables[i].outputs[1], power }, {},
          { serves = variables[i] })
      end
    end,
  }
end

--- Adds Optimizer.apply_gradients and joins it with the moving averages, as `tf.group(minimize_op,
--- update_ops)` does; returns that operation.
function optimisers.apply(t, kind, gradients)
  return t:within({ scope = '', phase = 'update' }, function()
    local optimiser, applied = kinds[kind](t), {}
    for _, variable in ipairs(t.variables) do
      local gradient = gradients[variable]
      if gradient then
        local slots = {}
        for i, name in ipairs(optimiser.slots or {}) do slots[i] = slot(t, variable, variable.name .. '/' .. name) end
        local add = gradient.sparse and optimiser.sparse or optimiser.dense
        applied[#applied + 1] = t:within({ scope = ('%s/update_%s'):format(optimiser.name, variable.name),
          serves = variable }, function() return add(variable, gradient, slots) end)
      end
    end
    if optimiser.finish then optimiser.finish(applied) end
    local minimise = t:operation('NoOp', optimiser.name, {}, {}, { controls = applied })
    local all = { minimise }
    for _, update in ipairs(t.updates) do all[#all + 1] = update end
    return t:operation('NoOp', 'train', {}, {}, { controls = all })
  end)
end

return optimisers
