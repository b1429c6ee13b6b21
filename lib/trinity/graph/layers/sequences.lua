-- Layers for sequences [N, T, H]: methods of trinity.Layers. Axes are counted from 1.

local check = require 'trinity.base.check'
local declared = require 'trinity.graph.layers.options'
local util = require 'trinity.base.util'

---@class trinity.Layers
local Layers = {}

local function copy(shape) return util.map(shape, function(extent) return extent end) end

local function without(shape, axis)
  local result = copy(shape)
  table.remove(result, axis)
  return result
end

--- Gathers rows of x [rows, ...] by number: numbers [...] to [..., other axes of x].
--- Example: `net:gather('y', rows, tokens)`
function Layers:gather(name, x, numbers)
  local shape = copy(numbers.shape)
  for i = 2, #x.shape do shape[#shape + 1] = x.shape[i] end
  return (self:operator('Gather', name, { inputs = { x, numbers }, shapes = { shape }, dtype = x.dtype,
    attributes = { axis = 0 } }))
end

--- Embedding lookup: numbers [...] to [..., features], from weights [rows, features].
--- Example: `net:embedding('y', tokens, { rows = 10, features = 4 })`
---@param o trinity.EmbeddingLayerOptions
function Layers:embedding(name, numbers, o)
  check.argument('layers:embedding', 3, 'o', o, 'table')
  declared.embedding:check('layers:embedding', o)
  if o.weight == nil then check.needed('layers:embedding', o, 'rows', 'features') end
  if o.weight then return self:gather(name, o.weight, numbers) end
  local shape = copy(numbers.shape)
  shape[#shape + 1] = o.features
  return (self:operator('Gather', name, { inputs = { numbers }, shapes = { shape }, attributes = { axis = 0 },
    parameters = { self:weight('weight', { o.rows, o.features }) } }))
end

---@return fun(self: trinity.Layers, name: string, x: trinity.Tensor, o?: trinity.NormLayerOptions): trinity.Tensor
local function norm(method, type, weights)
  return function(self, name, x, o)
    o = declared.norm:read('layers:' .. method, 3, 'o', o)
    local width = { x.shape[#x.shape] }
    return (self:operator(type, name, { inputs = { x }, shapes = { x.shape },
      parameters = util.map(weights, function(weight) return self:weight(weight, width) end),
      attributes = { axis = -1, epsilon = o.epsilon } }))
  end
end

--- Layer normalization over the last axis, with scale and shift. Example: `net:layer_norm('y', x)`
Layers.layer_norm = norm('layer_norm', 'LayerNormalization', { 'scale', 'bias' })
--- RMS normalization over the last axis, with a scale. Example: `net:rms_norm('y', x)`
Layers.rms_norm = norm('rms_norm', 'RMSNormalization', { 'scale' })

--- Splits an axis into parts of these sizes. Returns a list of tensors. Example: `net:split('y', rows, 1, { 2, 4 })`
---@param axis integer
---@return trinity.Tensor[]
function Layers:split(name, x, axis, sizes)
  check.integer('layers:split', 3, 'axis', axis, 1, #x.shape)
  local shapes = {}
  for i, size in ipairs(sizes) do
    shapes[i] = copy(x.shape)
    shapes[i][axis] = size
  end
  return { self:operator('Split', name, { inputs = { x }, shapes = shapes, dtype = x.dtype,
    attributes = { axis = axis - 1, split = sizes } }) }
end

--- Splits an axis into its elements and removes it: [N, T, H] along 2 to a list of T tensors [N, H] (keepdims as of
--- ONNX's SplitToSequence). Example: `net:unstack('y', rows, 1)`
---@param axis integer
---@return trinity.Tensor[]
function Layers:unstack(name, x, axis)
  check.integer('layers:unstack', 3, 'axis', axis, 1, #x.shape)
  local shapes = util.listed(x.shape[axis], function() return without(x.shape, axis) end)
  return { self:operator('Split', name, { inputs = { x }, shapes = shapes, dtype = x.dtype,
    attributes = { axis = axis - 1, num_outputs = #shapes, keepdims = 0 } }) }
end

--- Stacks tensors of equal shape along a new axis: T tensors [N, H] along 2 to [N, T, H] (new_axis as of ONNX's
--- ConcatFromSequence). Example: `net:stack('y', { rows, rows }, 1)`
---@param axis integer
function Layers:stack(name, tensors, axis)
  check.integer('layers:stack', 3, 'axis', axis, 1, #tensors[1].shape + 1)
  local shape = copy(tensors[1].shape)
  table.insert(shape, axis, #tensors)
  return (self:operator('Concat', name, { inputs = tensors, shapes = { shape }, dtype = tensors[1].dtype,
    attributes = { axis = axis - 1, new_axis = 1 } }))
end

--- Slices `count` elements of an axis, starting with element `first`. Example: `net:slice('y', rows, 1, 2, 3)`
---@param axis integer
function Layers:slice(name, x, axis, first, count)
  check.integer('layers:slice', 3, 'axis', axis, 1, #x.shape)
  local shape = copy(x.shape)
  shape[axis] = count
  return (self:operator('Slice', name, { inputs = { x }, shapes = { shape }, dtype = x.dtype,
    attributes = { axes = { axis - 1 }, starts = { first - 1 }, ends = { first - 1 + count } } }))
end

--- Expands axes of extent 1 to `shape` by repetition. Example: `net:expand('y', net:input('a', { 1, 3 }), { 2, 3 })`
function Layers:expand(name, x, shape)
  return (self:operator('Expand', name, { inputs = { x }, shapes = { shape }, dtype = x.dtype,
    attributes = { shape = shape } }))
end

--- Returns the k largest elements of the last axis in descending order, and their positions (without gradients).
--- Example: `net:top_k('y', rows, 2)`
---@param k integer
---@return trinity.Tensor values
---@return trinity.Tensor numbers
function Layers:top_k(name, x, k)
  check.integer('layers:top_k', 3, 'k', k, 1, x.shape[#x.shape])
  local shape = copy(x.shape)
  shape[#shape] = k
  return self.builder:add { name = name, type = 'TopK', inputs = { x }, attributes = { axis = -1, k = k },
    outputs = { { shape = shape, dtype = x.dtype }, { shape = shape, dtype = 'int64', gradient = false } } }
end

--- One-hot encoding of numbers along a new axis of `depth` elements. Example: `net:one_hot('y', tokens, 10, 3)`
---@param axis integer
function Layers:one_hot(name, numbers, depth, axis)
  check.integer('layers:one_hot', 4, 'axis', axis, 1, #numbers.shape + 1)
  local shape = copy(numbers.shape)
  table.insert(shape, axis, depth)
  return (self:operator('OneHot', name, { inputs = { numbers }, shapes = { shape },
    attributes = { axis = axis - 1, depth = depth } }))
end

--- Adds `rows` to the rows of x [rows, ...] with these numbers.
--- Example: `net:scatter_add('y', rows, net:input('at', { 2 }, 'int64'), net:input('new', { 2, 4 }))`
function Layers:scatter_add(name, x, numbers, rows)
  return (self:operator('ScatterND', name, { inputs = { x, numbers, rows }, shapes = { x.shape },
    attributes = { reduction = 'add' } }))
end

---@return fun(self: trinity.Layers, name: string, x: trinity.Tensor, axis: integer): trinity.Tensor
local function reduction(method, type)
  local owner = 'layers:' .. method
  return function(self, name, x, axis)
    check.integer(owner, 3, 'axis', axis, 1, #x.shape)
    local shape = copy(x.shape)
    shape[axis] = 1
    return (self:operator(type, name, { inputs = { x }, shapes = { shape },
      attributes = { axes = { axis - 1 }, keepdims = 1 } }))
  end
end

--- Sum of one axis, which keeps one element. Example: `net:reduce_sum('y', rows, 1)`
Layers.reduce_sum = reduction('reduce_sum', 'ReduceSum')
--- Mean of one axis, which keeps one element. Example: `net:reduce_mean('y', rows, 1)`
Layers.reduce_mean = reduction('reduce_mean', 'ReduceMean')
--- Euclidean norm of one axis, which keeps one element. Example: `net:reduce_l2('y', rows, 1)`
Layers.reduce_l2 = reduction('reduce_l2', 'ReduceL2')

---@return fun(self: trinity.Layers, name: string, tensors: trinity.Tensor[]): trinity.Tensor
local function variadic(type)
  return function(self, name, tensors)
    return (self:operator(type, name, { inputs = tensors, shapes = { tensors[1].shape } }))
  end
end

--- Sum of tensors of equal shape. Example: `net:sum('y', { rows, rows })`
Layers.sum = variadic 'Sum'
--- Mean of tensors of equal shape. Example: `net:mean('y', { rows, rows })`
Layers.mean = variadic 'Mean'

--- One step of an LSTM: x [N, I], h and c [N, H] to the next h and c.
--- Example: `net:lstm_cell('y', net:input('in', { 2, 3 }), net:input('h', { 2, 5 }), net:input('c', { 2, 5 }), { weight
--- = net:input('w', { 8, 20 }), bias = net:input('b', { 20 }) })`
---@param o trinity.LstmCellOptions
---@return trinity.Tensor h
---@return trinity.Tensor c
function Layers:lstm_cell(name, x, h, c, o)
  o = declared.lstm_cell:read('layers:lstm_cell', 5, 'o', o)
  return self:operator('LSTMCell', name, { inputs = { x, h, c, o.weight, o.bias }, shapes = { h.shape, c.shape },
    attributes = { hidden_size = h.shape[2] } })
end

--- An LSTM layer unrolled over time: a function that takes the input [N, o.inputs] of the next step
--- and returns the states h and c after it, with one operator per call.
--- Example: `net:lstm_steps('y', { inputs = 3, hidden = 5, batch_size = 2 })`
---@param o trinity.LstmStepsOptions
---@return fun(x: trinity.Tensor): trinity.Tensor, trinity.Tensor
function Layers:lstm_steps(name, o)
  o = declared.lstm_steps:read('layers:lstm_steps', 2, 'o', o)
  if o.h == nil then check.needed('layers:lstm_steps', o, 'batch_size') end
  local weights = { weight = self:variable(name .. '/weight', { o.inputs + o.hidden, 4 * o.hidden }),
    bias = self:variable(name .. '/bias', { 4 * o.hidden }) }
  local h, c, step = o.h, o.c, 0
  if not h then h = self:constant(name .. '/zero_state', 0, { o.batch_size, o.hidden }) end
  c = c or h
  return function(x)
    check.tensor('the function of layers:lstm_steps', 1, 'x', x, 2)
    step = step + 1
    h, c = self:lstm_cell(('%s/step_%d'):format(name, step), x, h, c, weights)
    return h, c
  end
end

--- A whole LSTM layer as one operator, with ONNX's weights (both biases): [N, T, I] to the outputs
--- [N, T, D, H] and the last h and c [N, D, H]; D is 2 if o.bidirectional, else 1, and H
--- o.hidden. Example: `net:lstm('y', x, { hidden = 5 })`
---@param o trinity.LstmLayerOptions
---@return trinity.Tensor outputs
---@return trinity.Tensor h
---@return trinity.Tensor c
function Layers:lstm(name, x, o)
  check.tensor('layers:lstm', 2, 'x', x, 3)
  o = declared.lstm:read('layers:lstm', 3, 'o', o)
  local first, second, inputs = x.shape[1], x.shape[2], x.shape[3]
  local d, h = o.bidirectional and 2 or 1, o.hidden
  local outputs = o.time_major and { first, d, second, h } or { first, second, d, h }
  local states = o.time_major and { d, second, h } or { first, d, h }
  return self:operator('LSTM', name, { inputs = { x }, shapes = { outputs, states, states },
    parameters = { self:weight('W', { d, 4 * h, inputs }), self:weight('R', { d, 4 * h, h }),
      self:weight('B', { d, 8 * h }) },
    attributes = { hidden_size = h, direction = o.bidirectional and 'bidirectional' or 'forward',
      layout = o.time_major and 0 or 1 } })
end

--- Adds dropout if the ratio is above zero. masked: the backward pass keeps a mask of one byte per element, not the
--- output. Example: `net:drop('y', rows, 0.5)`
---@param ratio? number
function Layers:drop(name, x, ratio, masked)
  if ratio ~= nil then check.number('layers:drop', 3, 'ratio', ratio, 0,1) end
  if not ratio or ratio == 0 then return x end
  if not masked then return self:dropout(name, x, { ratio = ratio }) end
  return (self.builder:add { name = name, type = 'Dropout', inputs = { x }, attributes = { ratio = ratio },
    outputs = { { shape = x.shape, dtype = x.dtype }, { shape = x.shape, dtype = 'bool', gradient = false } } })
end

-- Returns a function from the next query [N, units] to the mean of memory [N, S, W], weighted by the softmax of
-- scores_of(at, query) [N, 1, S]; at: the name of the step.
local function stepwise(net, method, name, memory, scores_of)
  local step = 0
  return function(query)
    check.tensor('the function of layers:' .. method, 1, 'query', query, 2)
    step = step + 1
    local at = ('%s/step_%d'):format(name, step)
    local shares = net:softmax(at .. '/softmax', scores_of(at, query), { axis = -1 })
    local context = net:matmul(at .. '/context', shares, memory)
    return net:reshape(at .. '/context_row', context, { memory.shape[1], memory.shape[3] })
  end
end

--- Step-by-step attention to memory [N, S, W]: returns a function from the next query [N, units] to the context [N, W].
--- Additive and normalized (Bahdanau et al. 2015; Salimans and Kingma 2016): scores g v / |v| . tanh(keys + query + b),
--- as GNMT has it. Example: `net:additive_attention('a', x, 4)`
---@return fun(query: trinity.Tensor): trinity.Tensor
function Layers:additive_attention(name, memory, units)
  local n, s = memory.shape[1], memory.shape[2]
  local keys = self:linear(name .. '/keys', memory, units) -- its bias is b
  local query_weight = self:variable(name .. '/query_weight', { units, units })
  local v, g = self:variable(name .. '/v', { 1, units }), self:variable(name .. '/g', { 1 })
  local scoring = self:mul(name .. '/scaled_v',
    self:div(name .. '/unit_v', v, self:reduce_l2(name .. '/norm_v', v, 2)), g)
  return stepwise(self, 'additive_attention', name, memory, function(at, query)
    query = self:linear(at .. '/query', query, units, { weight = query_weight, bias = false })
    query = self:reshape(at .. '/query_row', query, { n, 1, units })
    local mixed = self:tanh(at .. '/tanh', self:add(at .. '/sum', keys, query))
    local scores = self:linear(at .. '/scores', mixed, 1, { weight = scoring, bias = false })
    return self:reshape(at .. '/scores_row', scores, { n, 1, s })
  end)
end

--- Step-by-step attention with scores query . (W memory): Luong et al. 2015, 'general'.
--- Example: `net:multiplicative_attention('a', x, 4)`
---@return fun(query: trinity.Tensor): trinity.Tensor
function Layers:multiplicative_attention(name, memory, units)
  local keys = self:linear(name .. '/keys', memory, units, { bias = false })
  keys = self:transpose(name .. '/keys_transpose', keys, { 1, 3, 2 })
  return stepwise(self, 'multiplicative_attention', name, memory, function(at, query)
    return self:matmul(at .. '/scores', self:reshape(at .. '/query_row', query, { memory.shape[1], 1, units }), keys)
  end)
end

return Layers
