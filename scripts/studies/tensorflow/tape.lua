-- A graph of TensorFlow operations under construction, and reverse differentiation over it as TensorFlow
-- 1.15 does it (python/ops/gradients_util.py, called by Optimizer.compute_gradients with its defaults).
--
-- An operation is a table:
--   id, name, type    in the order of building; TensorFlow's names and types
--   inputs, outputs   tensors; controls: operations that run before it
--   phase             'forward', 'backward', 'update'
--   serves            the operation whose device it shares; nil: it has a device of its own
--   attributes, parameters, flops, persistent_bytes   as graph builders take them, where it has any
--   axes, order       of reductions and of Transpose, counted from 1
--   is_variable, read          a VariableV2, and the tensor that its Identity gives
--   applies_to, sparse         the variable that an update changes, in all or in some rows
-- A tensor is { node =, index =, shape =, dtype = }, a scalar's shape is {}. A gradient of gathered rows is
-- { sparse = true, values =, indices =, dense_shape =, shape =, dtype = }, TensorFlow's IndexedSlices.

local gradients = require 'studies.tensorflow.gradients'
local util = require 'trinity.base.util'

local Tape = {}
Tape.__index = Tape

local floats = { float16 = true, bfloat16 = true, float32 = true, float64 = true }

--- A name nobody has, as TensorFlow makes it: NAME, NAME_1, NAME_2, ...
function Tape:unique(name)
  local count = self.names[name]
  if not count then
    self.names[name] = 0
    return name
  end
  local candidate
  repeat
    count = count + 1
    candidate = ('%s_%d'):format(name, count)
  until not self.names[candidate]
  self.names[name], self.names[candidate] = count, 0
  return candidate
end

--- Adds an operation under self.scope and returns it. outputs: { { shape =, dtype = }, ... };
--- extra: further fields of the operation.
function Tape:operation(type, name, inputs, outputs, extra)
  if self.scope ~= '' then name = self.scope .. '/' .. name end
  local node = { id = #self.nodes + 1, name = self:unique(name), type = type, inputs = inputs, outputs = {},
    controls = {}, phase = self.phase, serves = self.serves }
  if extra then
    for key, value in util.sorted_pairs(extra) do node[key] = value end
  end
  for i, output in ipairs(outputs) do
    node.outputs[i] = { node = node, index = i, shape = output.shape, dtype = output.dtype }
  end
  self.nodes[node.id] = node
  return node
end

--- Adds an operation with one output, of the dtype of its first input unless extra.dtype names another.
function Tape:op(type, name, inputs, shape, extra)
  local dtype = extra and extra.dtype or inputs[1] and inputs[1].dtype or self.dtype
  return self:operation(type, name, inputs, { { shape = shape, dtype = dtype } }, extra).outputs[1]
end

--- Runs `body` with operations going to another scope, phase and device. Settings: scope, phase, serves.
function Tape:within(settings, body)
  local scope, phase, serves = self.scope, self.phase, self.serves
  self.scope, self.phase, self.serves = settings.scope or scope, settings.phase or phase, settings.serves
  local result = body()
  self.scope, self.phase, self.serves = scope, phase, serves
  return result
end

--- A weight: VariableV2 and the Identity that reads it, both on one device. Returns what is read.
function Tape:variable(name, parameter)
  local variable = self:operation('VariableV2', name, {}, { { shape = parameter.shape, dtype = parameter.dtype } },
    { parameters = { parameter }, is_variable = true })
  if parameter.trainable then self.variables[#self.variables + 1] = variable end
  variable.read = self:operation('Identity', name .. '/read', { variable.outputs[1] }, variable.outputs,
    { serves = variable }).outputs[1]
  return variable.read
end

--- The sum of the gradients that arrive at one tensor: AddN.
local function aggregate(self, list)
  if #list == 1 then return list[1] end
  return self:op('AddN', 'AddN', list, list[1].shape)
end

--- control_flow_ops.tuple: nobody goes on with one of the gradients before all are there.
local function gate(self, list, count)
  local operations, seen = {}, {}
  for i = 1, count do
    local grad = list[i]
    local node = grad and grad.node
    if node and not seen[node] then
      seen[node] = true
      operations[#operations + 1] = node
    end
  end
  local join = self:operation('NoOp', 'tuple/group_deps', {}, {}, { controls = operations })
  local function pass(tensor)
    return self:op('Identity', 'tuple/control_dependency', { tensor }, tensor.shape, { controls = { join } })
  end
  local gated = {}
  for i = 1, count do
    local grad = list[i]
    gated[i] = grad and pass(grad)
  end
  return gated
end

--- Operations on a way from a trainable weight to one of the tensors: _PendingCount's.
function Tape:between(ends)
  local reached, needed = util.set(self.variables), {}
  for _, node in ipairs(self.nodes) do
    for _, tensor in ipairs(node.inputs) do
      if reached[tensor.node] and floats[tensor.dtype] then reached[node] = true end
    end
  end
  for _, tensor in ipairs(ends) do needed[tensor.node] = reached[tensor.node] end
  for id = #self.nodes, 1, -1 do
    local node = self.nodes[id]
    for _, tensor in ipairs(needed[node] and node.inputs or {}) do
      if reached[tensor.node] and floats[tensor.dtype] then needed[tensor.node] = true end
    end
  end
  return needed
end

--- The gradients of an operation's outputs: the sum of what arrived, zeros where nothing did; nil when
--- nothing arrived at any.
local function output_gradients(self, node, grads)
  local result, any = {}, false
  for i, output in ipairs(node.outputs) do
    if grads[output] then
      result[i], any = aggregate(self, grads[output]), true
      grads[output] = { result[i] }
    end
  end
  return any and result
end

local function backpropagate(self, node, grads)
  local rule = gradients[node.type]
  local out = output_gradients(self, node, grads)
  if not out or not rule then return end
  for i, output in ipairs(node.outputs) do
    if not out[i] and floats[output.dtype] then
      out[i] = self:op('ZerosLike', 'zeros_like', { output }, output.shape)
    end
  end
  self.scope = ('gradients/%s_grad'):format(node.name)
  local wanted, list = 0, rule(self, node, out[1], out)
  for i = 1, #node.inputs do wanted = wanted + (list[i] and 1 or 0) end
  if wanted > 1 then list = gate(self, list, #node.inputs) end
  self.scope = 'gradients'
  for i, tensor in ipairs(node.inputs) do
    if list[i] then
      grads[tensor] = grads[tensor] or {}
      table.insert(grads[tensor], list[i])
    end
  end
end

--- Adds the gradients of the tensors `ends` (the loss) and returns a table from trainable VariableV2
--- operations to theirs; nil where no end depends on the weight.
function Tape:differentiate(ends)
  local needed, grads, last = self:between(ends), {}, #self.nodes
  self:within({ scope = 'gradients', phase = 'backward' }, function()
    for i, tensor in ipairs(ends) do
      self.serves = tensor.node
      local one = self:constant('grad_ys_' .. i - 1, {}, tensor.dtype)
      grads[tensor] = { self:op('Fill', 'Fill', { self:shape_constant('Shape', #tensor.shape), one }, tensor.shape,
        { dtype = tensor.dtype }) }
    end
    for id = last, 1, -1 do
      local node = self.nodes[id]
      self.serves = node
      if needed[node] then backpropagate(self, node, grads) end
    end
  end)
  local of = {}
  for _, variable in ipairs(self.variables) do
    local found = grads[variable.outputs[1]]
    of[variable] = found and found[1]
  end
  return of
end

--- The operations that run when these are fetched, in their order.
function Tape:running(fetched)
  local runs, stack = {}, {}
  local function visit(node)
    if not runs[node] then
      runs[node] = true
      stack[#stack + 1] = node
    end
  end
  for _, node in ipairs(fetched) do visit(node) end
  while #stack > 0 do
    local node = table.remove(stack)
    for _, tensor in ipairs(node.inputs) do visit(tensor.node) end
    for _, before in ipairs(node.controls) do visit(before) end
  end
  return util.filtered(self.nodes, function(node) return runs[node] end)
end

for name, method in util.sorted_pairs(require 'studies.tensorflow.operations') do Tape[name] = method end

local tape = {}

--- An empty tape; dtype: of tensors without inputs.
function tape.new(dtype)
  return setmetatable({ nodes = {}, names = {}, variables = {}, updates = {}, scope = '', phase = 'forward',
    dtype = dtype }, Tape)
end

return tape
