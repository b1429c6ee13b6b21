-- The operations that TensorFlow 1.15's momentum optimiser adds per weight (python/training/optimizer.py, momentum.py).

local shapes = require 'studies.tensorflow.shapes'

local optimiser = {}

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

--- The state that the optimiser keeps in addition to a weight.
local function slot(t, variable)
  local weight = variable.outputs[1]
  return t:operation('VariableV2', variable.name .. '/Momentum', {}, { { shape = weight.shape, dtype = 'float32' } },
    { serves = variable, is_variable = true, persistent_bytes = 4 * shapes.elements(weight.shape) }).outputs[1]
end

--- Adds Optimizer.apply_gradients and joins it with the moving averages, as `tf.group(minimize_op,
--- update_ops)` does; returns that operation.
function optimiser.apply(t, gradients)
  return t:within({ scope = '', phase = 'update' }, function()
    local rate, applied = t:constant('Momentum/learning_rate', {}, 'float32'), {}
    local momentum = t:constant('Momentum/momentum', {}, 'float32')
    for _, variable in ipairs(t.variables) do
      local gradient = gradients[variable]
      if gradient then
        local weight, state = variable.outputs[1], slot(t, variable)
        applied[#applied + 1] = t:within({ scope = ('Momentum/update_%s'):format(variable.name), serves = variable },
          function()
            local type, inputs = 'ApplyMomentum', { weight, state, rate, gradient, momentum }
            if gradient.sparse then
              local values, numbers = deduplicated(t, gradient)
              type, inputs = 'SparseApplyMomentum', { weight, state, rate, values, numbers, momentum }
            end
            return t:operation(type, type, inputs, {}, { applies_to = variable, sparse = gradient.sparse })
          end)
      end
    end
    local minimise = t:operation('NoOp', 'Momentum', {}, {}, { controls = applied })
    local all = { minimise }
    for _, update in ipairs(t.updates) do all[#all + 1] = update end
    return t:operation('NoOp', 'train', {}, {}, { controls = all })
  end)
end

return optimiser
