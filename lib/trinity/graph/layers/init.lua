-- Layers for model builders, on top of a graph builder, with ONNX's operator types and attributes. Shapes of outputs
-- and parameters are computed here; the engine derives FLOP and gradients from type, shapes and parameters. Image
-- layers (NCHW) are in trinity.graph.layers.images, sequence layers ([N, T, H]) in sequences, attention and decoders;
-- all are methods of one object.

local arguments = require 'trinity.graph.layers.arguments'
local check = require 'trinity.base.check'
local declared = require 'trinity.graph.layers.options'
local graph = require 'trinity.graph'
local util = require 'trinity.base.util'

---@class trinity.Layers
---@field builder trinity.Builder
---@field dtype string dtype of activations and weights
---@field products string dtype of net:operand: the same, or float8
local Layers = { __name = 'layers' }
Layers.__index = Layers

--- Returns the description of a weight with the network's dtype, for graph builders.
--- Example: `net:weight('w', { 8, 4 })`
---@return trinity.ParameterSpec
function Layers:weight(name, shape, trainable)
  return { name = name, shape = shape, dtype = self.dtype, trainable = trainable }
end

local operator_rules = { inputs = { 'list', 'table' }, shapes = { 'list', 'table' }, dtype = 'string',
  attributes = 'table', parameters = { 'list', 'table' }, workspace_bytes = 'number' }

--- Adds an operator and returns its outputs, with the network's dtype unless o.dtype is given: { inputs = { tensors },
--- shapes = { one per output }, dtype =, attributes =, parameters =, workspace_bytes = memory needed while it runs }.
--- Example: `net:operator('Work', 'w', { shapes = { { 2, 4 } } })`
---@param type string
---@param o table<string, any>
---@return trinity.Tensor ...
function Layers:operator(type, name, o)
  check.argument('layers:operator', 1, 'type', type, 'string')
  check.argument('layers:operator', 2, 'name', name, 'string')
  check.fields('layers:operator', check.argument('layers:operator', 3, 'o', o, 'table'), operator_rules)
  if o.shapes == nil then check.refuse('layers:operator', 3, 'o', "field 'shapes' is missing") end
  local outputs = util.map(o.shapes, function(shape) return { shape = shape, dtype = o.dtype or self.dtype } end)
  return self.builder:add { name = name, type = type, inputs = o.inputs, outputs = outputs,
    attributes = o.attributes, parameters = o.parameters, workspace_bytes = o.workspace_bytes }
end

--- Adds an input: an image batch, or token numbers. It has no gradient.
--- Example: `net:input('tokens', { 2, 6 }, 'int64')`
function Layers:input(name, shape, dtype)
  return (self.builder:add { name = name, type = 'Input',
    outputs = { { shape = shape, dtype = dtype or self.dtype, gradient = false } } })
end

--- Adds a tensor filled with one number, without a gradient. Example: `net:constant('one', 1, { 2, 4 })`
function Layers:constant(name, value, shape, dtype)
  return (self.builder:add { name = name, type = 'Constant', attributes = { value_float = value },
    outputs = { { shape = shape, dtype = dtype or self.dtype, gradient = false } } })
end

--- Adds a weight for several layers (tied embeddings, cells of an LSTM): pass the tensor as their o.weight.
--- Example: `net:variable('state', { 2, 4 })`
function Layers:variable(name, shape)
  return (self:operator('Variable', name, { shapes = { shape }, parameters = { self:weight('weight', shape) } }))
end

---@return fun(self: trinity.Layers, name: string, x: trinity.Tensor, attributes?: table<string, any>): trinity.Tensor
local function same_shape(type)
  return function(self, name, x, attributes)
    return (self:operator(type, name, { inputs = { x }, shapes = { x.shape }, attributes = attributes }))
  end
end

--- Example: `net:relu('y', x)`
Layers.relu = same_shape 'Relu'
--- Example: `net:sigmoid('y', x)`
Layers.sigmoid = same_shape 'Sigmoid'
--- Example: `net:tanh('y', x)`
Layers.tanh = same_shape 'Tanh'
--- GELU. Attributes: approximate = 'tanh' for the approximation (default 'none'). Example: `net:gelu('y', x)`
Layers.gelu = same_shape 'Gelu'
--- SiLU (swish): x sigmoid(x). Example: `net:swish('y', x)`
Layers.swish = same_shape 'Swish'
--- Dropout. Attributes: ratio. Example: `net:dropout('y', x)`
Layers.dropout = same_shape 'Dropout'
--- Softmax. Attributes: axis (default: the last). Example: `net:softmax('y', x)`
Layers.softmax = same_shape 'Softmax'

local function shape_text(x) return '[' .. table.concat(x.shape, ', ') .. ']' end

--- Returns the shape of two tensors under NumPy's broadcasting, as in ONNX.
local function broadcast(owner, name, a, b)
  local shape, rank = {}, math.max(#a.shape, #b.shape)
  for i = 1, rank do
    local m, n = a.shape[i - rank + #a.shape] or 1, b.shape[i - rank + #b.shape] or 1
    if m ~= n and m ~= 1 and n ~= 1 then
      util.fail("%s '%s': expected shapes that can be broadcast, got %s and %s", owner, name, shape_text(a),
        shape_text(b))
    end
    shape[i] = math.max(m, n)
  end
  return shape
end

---@return fun(self: trinity.Layers, name: string, a: trinity.Tensor, b: trinity.Tensor): trinity.Tensor
local function binary(type)
  return function(self, name, a, b)
    return (self:operator(type, name, { inputs = { a, b }, shapes = { broadcast(type, name, a, b) } }))
  end
end

--- Adds elements, with broadcasting. Example: `net:add('y', x, x)`
Layers.add = binary 'Add'
--- Multiplies elements, with broadcasting. Example: `net:mul('y', x, x)`
Layers.mul = binary 'Mul'
--- Divides elements, with broadcasting. Example: `net:div('y', x, x)`
Layers.div = binary 'Div'

--- Concatenates tensors along an axis, counted from 1 (default: 2, the channels of images).
--- Example: `net:concat('y', { x, x }, 3)`
---@param axis? integer
function Layers:concat(name, tensors, axis)
  if axis ~= nil then check.integer('layers:concat', 3, 'axis', axis, 1,#tensors[1].shape) end
  axis = axis or 2
  for i = 1, #tensors do check.tensor('layers:concat', 2, 'tensors', tensors[i], #tensors[1].shape) end
  local shape = util.map(tensors[1].shape, function(extent) return extent end)
  for t = 2, #tensors do
    for i, extent in ipairs(tensors[t].shape) do
      if i ~= axis and extent ~= shape[i] then
        util.fail("concat '%s': expected shapes that only differ in one axis, got %s and %s for axis %d", name,
          shape_text(tensors[1]),
          shape_text(tensors[t]), axis)
      end
    end
    shape[axis] = shape[axis] + tensors[t].shape[axis]
  end
  return (self:operator('Concat', name, { inputs = tensors, shapes = { shape }, dtype = tensors[1].dtype,
    attributes = { axis = axis - 1 } }))
end

--- Reshapes a tensor. One extent may be -1: it is computed from the others. Example: `net:reshape('y', x, { 12, 8 })`
function Layers:reshape(name, x, shape)
  local total, known, open = 1, 1, nil
  for _, extent in ipairs(x.shape) do total = total * extent end
  local full = {}
  for i, extent in ipairs(shape) do
    full[i] = extent
    if extent == -1 then open = i else known = known * extent end
  end
  if open then full[open] = total / known end
  if total % known ~= 0 or (not open and total ~= known) then
    util.fail("reshape '%s': expected a shape with the elements of %s (%d), got [%s]", name, shape_text(x), total,
      table.concat(shape, ', '))
  end
  return (self:operator('Reshape', name, { inputs = { x }, shapes = { full }, dtype = x.dtype,
    attributes = { shape = full } }))
end

--- Permutes axes, counted from 1: { 1, 3, 2 } swaps the last two of three.
--- Example: `net:transpose('y', x, { 2, 1, 3 })`
---@param order integer[]
function Layers:transpose(name, x, order)
  local shape, permutation = {}, {}
  arguments.permutation('layers:transpose', 3, 'order', order, #x.shape)
  for i, axis in ipairs(order) do shape[i], permutation[i] = x.shape[axis], axis - 1 end
  return (self:operator('Transpose', name, { inputs = { x }, shapes = { shape }, dtype = x.dtype,
    attributes = { perm = permutation } }))
end

--- Flattens [N, ...] to [N, product of the other extents]. Example: `net:flatten('y', image)`
function Layers:flatten(name, x)
  local features = 1
  for i = 2, #x.shape do features = features * x.shape[i] end
  return (self:operator('Flatten', name, { inputs = { x }, shapes = { { x.shape[1], features } }, dtype = x.dtype,
    attributes = { axis = 1 } }))
end

--- Returns the operand of a matmul: x itself or, with dtype = 'float8', its FP8 copy (one byte per element), which the
--- backward pass keeps. Several matmuls of one x share the copy. (Transformer Engine's FP8 recipes; weights stay
--- bfloat16 with a master copy.) Example: `net:operand('y', x)`
function Layers:operand(name, x)
  if self.products == self.dtype then return x end
  return (self:operator('Cast', name, { inputs = { x }, shapes = { x.shape }, dtype = self.products }))
end

--- Linear layer over the last axis: [..., K] to [..., features], one Gemm with its bias.
--- Example: `net:linear('y', x, 3, { bias = false })`
---@param o? trinity.LinearLayerOptions
function Layers:linear(name, x, features, o)
  o = declared.linear:read('layers:linear', 4, 'o', o)
  local shape, inner = {}, x.shape[#x.shape]
  for i, extent in ipairs(x.shape) do shape[i] = extent end
  shape[#shape] = features
  local inputs, parameters = { x }, {}
  if o.weight then
    if o.weight.shape[1] ~= features or o.weight.shape[2] ~= inner then
      util.fail("linear '%s': expected a weight [%d, %d], got %s", name, features, inner, shape_text(o.weight))
    end
    inputs[2] = o.weight
  else
    parameters[1] = self:weight('weight', { features, inner })
  end
  if o.bias then parameters[#parameters + 1] = self:weight('bias', { features }) end
  return (self:operator('Gemm', name, { inputs = inputs, shapes = { shape }, parameters = parameters,
    attributes = util.merged(o.attributes, { transB = 1, start = o.start == 'he' and 'he' or nil }) }))
end

--- Matrix multiplication of [..., M, K] and [..., K, N]. Leading axes must be equal, or 1 in b, which is then
--- broadcast. Example: `net:matmul('y', rows, net:input('b', { 4, 3 }))`
function Layers:matmul(name, a, b)
  local rank = #a.shape
  local fits = rank == #b.shape and a.shape[rank] == b.shape[rank - 1]
  for i = 1, rank - 2 do fits = fits and (a.shape[i] == b.shape[i] or b.shape[i] == 1) end
  if not fits then util.fail("matmul '%s': expected shapes [..., M, K] and [..., K, N], got %s and %s", name,
    shape_text(a), shape_text(b)) end
  local shape = util.listed(rank - 1, function(i) return a.shape[i] end)
  shape[rank] = b.shape[rank]
  return (self:operator('MatMul', name, { inputs = { a, b }, shapes = { shape } }))
end

--- Mean cross-entropy of logits [..., classes] against labels [...]: a scalar.
--- Example: `net:softmax_cross_entropy('loss', rows, net:input('labels', { 6 }, 'int64'))`
function Layers:softmax_cross_entropy(name, logits, labels)
  return (self:operator('SoftmaxCrossEntropyLoss', name, { inputs = { logits, labels }, shapes = { { 1 } } }))
end

--- Adds loss + weight * other, for the loss of an auxiliary head.
--- Example: `net:add_loss('loss', net:input('a', { 1 }), net:input('b', { 1 }), 0.4)`
function Layers:add_loss(name, loss, other, weight)
  return self:add(name, loss, self:mul(name .. '/scaled', other, self:constant(name .. '/weight', weight, { 1 })))
end

--- Returns the finished graph. Example: `local graph = net:build()`
---@return trinity.Graph
function Layers:build() return self.builder:build() end

for _, part in ipairs { 'images', 'sequences', 'attention', 'decoders' } do
  local methods = require('trinity.graph.layers.' .. part)
  for name, method in util.sorted_pairs(methods) do Layers[name] = method end
end

for name, method in util.sorted_pairs(Layers) do
  if type(method) == 'function' and not name:match '^__' then
    Layers[name] = arguments.checked('layers:' .. name, method)
  end
end

check.methods(Layers, 'trinity.Layers')

---@class trinity.LayersModule
local layers = {}

--- Returns layers on a new graph called `name`. options.dtype: dtype of activations and weights (default 'float32';
--- 'float8': bfloat16 with FP8 operands of matmuls, see net:operand). Other fields are ignored, so a model can pass its
--- own options. Example: `local net = trinity.graph.layers.new 'mine'; net:linear('y', net:input('x', { 2, 4 }), 3)`
---@param name string
---@param options? table<string, any>
---@return trinity.Layers
function layers.new(name, options)
  check.argument('graph.layers.new', 1, 'name', name, 'string')
  if options ~= nil then check.argument('graph.layers.new', 2, 'options', options, 'table') end
  local dtype = options and options.dtype or 'float32'
  check.argument('graph.layers.new', 'option', 'dtype', dtype, 'string')
  return setmetatable({ builder = graph.new { name = name }, dtype = dtype == 'float8' and 'bfloat16' or dtype,
    products = dtype }, Layers)
end

--- Returns the entry of a table of choices for an option's value. Raises an error that lists the choices for another
--- value. Example: `trinity.graph.layers.choice('model', 'size', 'small', { small = 1, large = 2 })`
---@param model string
---@param option string
---@param value string
---@param choices table<string, any>
---@return any
function layers.choice(model, option, value, choices)
  check.argument('graph.layers.choice', 1, 'model', model, 'string')
  check.argument('graph.layers.choice', 2, 'option', option, 'string')
  check.argument('graph.layers.choice', 3, 'value', value, 'string')
  check.argument('graph.layers.choice', 4, 'choices', choices, 'table')
  if choices[value] ~= nil then return choices[value] end
  util.fail("model '%s': option '%s': unknown value %s", model, option, util.unknown(value, util.sorted_keys(choices)))
end

return layers
