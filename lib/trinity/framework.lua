-- trinity.framework: the graph of one training step at the granularity of a framework, TensorFlow 1.15's
-- operations. A forward graph of layers is built again as TensorFlow's Python front end builds it and
-- differentiated as tf.gradients does it; what runs in a step remains. Parts, in trinity.framework:
--   layers, image_layers, sequence_layers, normalisation   operations per layer
--   gradients, array_gradients, layer_gradients            operations per operation's gradient
--   optimisers                                             weight decay, clipping, updates
--   tape, operations, shapes                               the graph under construction
--   costs, emit                                            FLOP, traffic, devices to share

local core = require 'trinity.core'
local emit = require 'trinity.framework.emit'
local layer_rules = require 'trinity.framework.layers'
local optimisers = require 'trinity.framework.optimisers'
local tape = require 'trinity.framework.tape'
local util = require 'trinity.util'

local framework = {}

local choices = {
  colocate = { forward = true, parameters = true },
  optimiser = { sgd = true, momentum = true, adam = true },
}

local function check_options(given)
  local known = { colocate = true, optimiser = true, weight_decay = true, clip_gradients = true }
  util.refuse_unknown('framework.lower', given, known)
  local o = { colocate = given.colocate or 'forward', optimiser = given.optimiser or 'momentum',
    weight_decay = given.weight_decay or false, clip_gradients = given.clip_gradients or false }
  for key, words in util.sorted_pairs(choices) do
    if not words[o[key]] then
      local names = {}
      for name in util.sorted_pairs(words) do names[#names + 1] = name end
      util.fail("framework.lower: '%s': unknown value '%s'%s (known: %s)", key, tostring(o[key]),
        core.suggestion(tostring(o[key]), names), table.concat(names, ', '))
    end
  end
  util.expect('framework.lower', 'weight_decay', o.weight_decay, 'boolean')
  util.expect('framework.lower', 'clip_gradients', o.clip_gradients, 'boolean')
  return o
end

--- Refuses graphs that cannot be built again from types and shapes.
local function check_layer(graph, layer)
  local owner = ("framework.lower: graph '%s': operator '%s'"):format(graph.name, layer.name)
  if layer.phase ~= 'forward' then util.fail('%s is of phase %s, expected a forward graph', owner, layer.phase) end
  if layer.measured_time_s then
    util.fail("%s has a measured time; granularity 'framework' needs types and shapes", owner)
  end
  if layer.collective then util.fail("%s is part of a collective, which has no TensorFlow operation", owner) end
  for _, tensor in ipairs(layer.outputs) do
    if #tensor.shape == 0 and tensor.bytes > 8 then
      util.fail("%s: output '%s' has no shape; granularity 'framework' needs types and shapes", owner, tensor.name)
    end
  end
end

--- One operation for a layer that TensorFlow has none for, with the layer graph's costs.
local function generic(t, layer, inputs, backward_flops)
  local operands, outputs = {}, {}
  for i, tensor in ipairs(inputs) do operands[i] = tensor end
  for _, parameter in ipairs(layer.parameters) do operands[#operands + 1] = t:variable(parameter.name, parameter) end
  for i, tensor in ipairs(layer.outputs) do outputs[i] = { shape = tensor.shape, dtype = tensor.dtype } end
  return t:operation(layer.type, layer.type, operands, outputs, { is_layer = true, flops = layer.flops,
    backward_flops = backward_flops(layer.name), attributes = layer.attributes }).outputs
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

--- Builds the layers on a tape; returns the outputs that nobody reads.
local function build_forward(t, graph)
  local made, read, backward_flops, sinks = {}, {}, backward_costs(graph), {}
  for i = 1, graph.operators do
    local layer = graph:operator(i)
    check_layer(graph, layer)
    local inputs = {}
    for k, tensor in ipairs(layer.inputs) do
      inputs[k] = made[tensor.producer .. '|' .. tensor.name]
      read[inputs[k]] = true
    end
    t.scope = layer.name
    local rule = layer_rules[layer.type]
    local outputs = rule and rule(t, layer, inputs) or generic(t, layer, inputs, backward_flops)
    for k, tensor in ipairs(layer.outputs) do
      made[i .. '|' .. tensor.name] = outputs[k]
      if tensor.gradient then sinks[#sinks + 1] = outputs[k] end
    end
  end
  t.scope = ''
  local ends = {}
  for _, tensor in ipairs(sinks) do
    if not read[tensor] then ends[#ends + 1] = tensor end
  end
  return ends
end

--- The training step of a forward graph of layers, in TensorFlow 1.15's operations. Options:
---   colocate        'forward' (default): gradients share the device of their forward operation
---                   (colocate_gradients_with_ops); 'parameters': only those of operations that read weights
---   optimiser       'sgd', 'momentum' (default), 'adam'
---   weight_decay    with contrib.slim's L2 regularisers of matrices and filters (default false)
---   clip_gradients  with clip_by_global_norm (default false)
--- Weights, their reads, states, moving averages and updates share a device, constants are where they are
--- read; every other forward operation may be placed freely. Control edges are tensors without bytes.
function framework.lower(graph, options)
  util.expect('framework.lower', 'graph', graph, 'table')
  local o = check_options(options or {})
  local t = tape.new 'float32'
  local ends = build_forward(t, graph)
  if o.weight_decay and #t.variables > 0 and #ends == 1 then ends[1] = optimisers.regularise(t, ends[1]) end
  local gradients = t:differentiate(ends)
  if o.clip_gradients then optimisers.clip(t, gradients) end
  local fetched = { optimisers.apply(t, o.optimiser, gradients) }
  for _, tensor in ipairs(ends) do fetched[#fetched + 1] = tensor.node end
  return emit.graph(graph.name, t:running(fetched), o.colocate)
end

return framework
