-- The graph of one training step in TensorFlow 1.15's operations. A forward graph of layers is built
-- again as TensorFlow's Python front end builds it and differentiated as tf.gradients does it; what runs in a step
-- remains. Parts:
--   layers, image_layers, sequence_layers, normalisation   operations per layer
--   gradients, array_gradients, layer_gradients            operations per operation's gradient
--   optimisers                                             weight decay, clipping, updates
--   tape, operations, shapes                               the graph under construction
--   costs, emit                                            FLOP, traffic, devices to share

local check = require 'trinity.base.check'
local emit = require 'studies.tensorflow.emit'
local graph_options = require 'trinity.graph.options'
local layer_rules = require 'studies.tensorflow.layers'
local model = require 'trinity.graph.model'
local options_of = require 'trinity.base.options'
local optimisers = require 'studies.tensorflow.optimisers'
local shapes = require 'studies.tensorflow.shapes'
local tape = require 'studies.tensorflow.tape'
local util = require 'trinity.base.util'

local tensorflow = {}

local options_of_step = options_of.declare(nil, { extends = graph_options.training,
  { 'weight_decay', 'boolean', false, help = 'the optimiser decays weights' },
  { 'clip_gradients', 'boolean', false, help = 'gradients are clipped to their global norm' },
})

--- Refuses graphs that cannot be built again from types and shapes.
local function check_layer(graph, layer)
  local owner = ("tensorflow.lower: graph '%s': operator '%s'"):format(graph.name, layer.name)
  if layer.phase ~= 'forward' then
    util.fail('%s: expected a forward graph, got an operator of phase %s', owner, layer.phase)
  end
  if layer.measured_time_s then
    util.fail("%s has a measured time; TensorFlow's operations need types and shapes", owner)
  end
  if layer.collective then util.fail("%s is part of a collective, which has no TensorFlow operation", owner) end
  for _, tensor in ipairs(layer.outputs) do
    if #tensor.shape == 0 and tensor.bytes > 8 then
      util.fail("%s: output '%s' has no shape; TensorFlow's operations need types and shapes", owner, tensor.name)
    end
  end
end

--- One operation for a layer that TensorFlow has none for, with the layer graph's costs.
local function generic(t, layer, inputs, backward_flops)
  return t:operation(layer.type, layer.type, t:operands(layer, inputs), layer.outputs, { is_layer = true,
    flops = layer.flops, backward_flops = backward_flops(layer.name), attributes = layer.attributes }).outputs
end

--- FLOP of a layer's backward operator, looked up in the layer graph's training step when first needed.
local function backward_costs(graph)
  local flops
  return function(name)
    if not flops then
      flops = {}
      local step = graph:to_training {}
      for i = 1, step.operators do
        local op = step:operator(i)
        if op.phase == 'backward' then flops[op.name] = op.flops end
      end
    end
    return flops[name .. '/grad'] or 0
  end
end

--- Whether a rule has put out what a layer does, as far as anybody reads it.
local function fits(layer, number, outputs, read)
  for k, tensor in ipairs(layer.outputs) do
    local made = outputs[k]
    if not made and read[number .. '|' .. tensor.name] then return false end
    if made and #tensor.shape > 0 and shapes.elements(made.shape) ~= shapes.elements(tensor.shape) then return false end
  end
  return true
end

--- The operations of a layer, by the rule of its type, or one of its own.
local function build_layer(t, layer, number, inputs, o)
  local rule, updates = layer_rules[layer.type], #t.updates
  t.scope = layer.name
  local outputs = rule and rule(t, layer, inputs)
  if outputs and fits(layer, number, outputs, o.read) then return outputs end
  for i = updates + 1, #t.updates do t.updates[i] = nil end
  return generic(t, layer, inputs, o.backward_flops)
end

--- The outputs of layers without readers, above all the loss, and which of them are differentiated.
local function ends_of(layers, outputs, read)
  local all, ends = {}, {}
  for i, layer in ipairs(layers) do
    local is_end = true
    for _, tensor in ipairs(layer.outputs) do is_end = is_end and not read[i .. '|' .. tensor.name] end
    for k, tensor in ipairs(is_end and layer.outputs or {}) do
      local output = outputs[i][k]
      all[#all + 1] = output
      if tensor.gradient and output and output.dtype:find 'float' then ends[#ends + 1] = output end
    end
  end
  return ends, all
end

--- Builds the layers on a tape; returns the tensors to differentiate, and all that the network puts out.
local function build_forward(t, graph)
  local layers, made, outputs = {}, {}, {}
  local o = { read = {}, backward_flops = backward_costs(graph) }
  for i = 1, graph.operators do
    layers[i] = graph:operator(i)
    check_layer(graph, layers[i])
    for _, tensor in ipairs(layers[i].inputs) do o.read[tensor.producer .. '|' .. tensor.name] = true end
  end
  for i, layer in ipairs(layers) do
    local inputs = util.map(layer.inputs, function(tensor) return made[tensor.producer .. '|' .. tensor.name] end)
    outputs[i] = build_layer(t, layer, i, inputs, o)
    for k, tensor in ipairs(layer.outputs) do made[i .. '|' .. tensor.name] = outputs[i][k] end
  end
  t.scope = ''
  return ends_of(layers, outputs, o.read)
end

--- The training step of a forward graph of layers, in TensorFlow 1.15's operations. Options:
---   colocate        'forward' (default): gradients share the device of their forward operation
---                   (colocate_gradients_with_ops); 'parameters': only gradients of operations that read weights
---   optimiser       'sgd', 'momentum' (default), 'adam'
---   weight_decay    with contrib.slim's L2 regularisers of matrices and filters (default false)
---   clip_gradients  with clip_by_global_norm (default false)
--- Weights, their reads, states, moving averages and updates share a device, constants are where they are
--- read; every other forward operation may be placed freely. Control edges are tensors without bytes.
function tensorflow.lower(graph, options)
  check.object('tensorflow.lower', 1, 'graph', graph, 'graph')
  local o = options_of_step:read('tensorflow.lower', 2, 'options', options)
  local t = tape.new 'float32'
  local ends, outputs = build_forward(t, graph)
  if o.weight_decay then
    if #ends ~= 1 or shapes.elements(ends[1].shape) ~= 1 then
      util.fail("tensorflow.lower: graph '%s': 'weight_decay' is added to one loss, and there is none", graph.name)
    end
    ends = { optimisers.regularise(t, ends[1]) }
  end
  local gradients = t:differentiate(ends)
  if o.clip_gradients then optimisers.clip(t, gradients) end
  local fetched = { optimisers.apply(t, o.optimizer, gradients) }
  for _, tensors in ipairs { ends, outputs } do
    for _, tensor in ipairs(tensors) do fetched[#fetched + 1] = tensor.node end
  end
  return emit.graph(graph.name, t:running(fetched), o.colocate)
end

--- The training step of a model (trinity.model) in TensorFlow's operations. options: the model's, and lower()'s.
function tensorflow.load(name, options)
  local of_model, of_step = util.merged({}, options), {}
  for _, key in ipairs { 'colocate', 'optimizer', 'gradient_dtype', 'weight_decay', 'clip_gradients' } do
    of_step[key], of_model[key] = of_model[key], nil
  end
  of_model.training = false
  local forward = model.load(name, of_model)
  return tensorflow.lower(forward, util.merged({ optimizer = forward.own_optimizer }, of_step))
end

return tensorflow
