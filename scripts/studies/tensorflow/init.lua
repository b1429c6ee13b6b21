-- The graph of one training step of the Trinity paper's networks in TensorFlow 1.15's operations. A forward graph of
-- layers is built again as TensorFlow's Python front end builds it and differentiated as tf.gradients does it; what
-- runs in a step remains. Parts:
--   layers, image_layers, sequence_layers, normalisation   operations per layer
--   gradients, array_gradients, layer_gradients            operations per operation's gradient
--   optimiser                                              updates with momentum
--   tape, operations, shapes                               the graph under construction
--   costs, emit                                            FLOP, traffic, devices to share

local check = require 'trinity.base.check'
local emit = require 'studies.tensorflow.emit'
local layer_rules = require 'studies.tensorflow.layers'
local model = require 'trinity.graph.model'
local optimiser = require 'studies.tensorflow.optimiser'
local tape = require 'studies.tensorflow.tape'
local util = require 'trinity.base.util'

local tensorflow = {}

--- The operations of a layer, by the rule of its type.
local function build_layer(t, graph, layer, inputs)
  local rule = layer_rules[layer.type]
  for _, parameter in ipairs(layer.parameters) do
    if parameter.dtype ~= 'float32' then rule = nil end
  end
  t.scope = layer.name
  return rule and rule(t, layer, inputs) or util.fail("tensorflow.lower: graph '%s': operator '%s' (%s): expected a "
    .. "layer of the paper's networks in float32", graph.name, layer.name, layer.type)
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
  local layers, made, outputs, read = {}, {}, {}, {}
  for i = 1, graph.operators do
    layers[i] = graph:operator(i)
    for _, tensor in ipairs(layers[i].inputs) do read[tensor.producer .. '|' .. tensor.name] = true end
  end
  for i, layer in ipairs(layers) do
    local inputs = util.map(layer.inputs, function(tensor) return made[tensor.producer .. '|' .. tensor.name] end)
    outputs[i] = build_layer(t, graph, layer, inputs)
    for k, tensor in ipairs(layer.outputs) do made[i .. '|' .. tensor.name] = outputs[i][k] end
  end
  t.scope = ''
  return ends_of(layers, outputs, read)
end

--- The training step of a forward graph of layers in TensorFlow 1.15's operations, with momentum. Weights, their reads,
--- states, moving averages and updates share a device; gradients share the one of their forward operation
--- (colocate_gradients_with_ops); constants are where they are read; every other forward operation may be placed
--- freely. Control edges are tensors without bytes.
function tensorflow.lower(graph)
  check.object('tensorflow.lower', 1, 'graph', graph, 'graph')
  local t = tape.new 'float32'
  local ends, outputs = build_forward(t, graph)
  local fetched = { optimiser.apply(t, t:differentiate(ends)) }
  for _, tensors in ipairs { ends, outputs } do
    for _, tensor in ipairs(tensors) do fetched[#fetched + 1] = tensor.node end
  end
  return emit.graph(graph.name, t:running(fetched))
end

--- The training step of a model (trinity.model) in TensorFlow's operations; options: the model's.
function tensorflow.load(name, options)
  return tensorflow.lower(model.load(name, util.merged(options, { training = false })))
end

return tensorflow
