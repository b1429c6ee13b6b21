-- GNMT (Wu et al. 2016, "Google's Neural Machine Translation System"), unrolled: a bidirectional layer
-- and then others in the encoder, additive attention from the decoder's first layer, its context fed to
-- every layer, residual connections from the third layer on (so none with two). Details that the paper
-- leaves open follow github.com/tensorflow/nmt, 'gnmt_v2': normalised attention, whose context
-- the first layer gets a step later, and decoder states that start from the encoder's.

local layers = require 'trinity.graph.layers'
local translation = require 'trinity.graph.layers.translation'

--- Outputs [N, H] of the encoder, one per step, and the final state of each layer.
local function encode(net, o)
  local steps = translation.source(net, o)
  local forward = translation.encoder_layer(net, 'encoder/forward', steps, o)
  local backward, state = translation.encoder_layer(net, 'encoder/backward', steps, o, { reverse = true })
  local states = { state }
  for i = 1, #steps do
    steps[i] = net:concat('encoder/both/step_' .. i, { forward[i], backward[i] }, 2)
  end
  for layer = 2, o.layers do
    steps, states[layer] = translation.encoder_layer(net, 'encoder/layer_' .. layer, steps, o,
      { residual = layer > 2 })
  end
  return steps, states
end

--- The top layer's outputs [N, H], one per step.
local function decode(net, o, memory, states)
  local attend = net:additive_attention('attention', memory, o.hidden)
  local context, cells, outputs = translation.no_context(net, o), {}, {}
  for layer = 1, o.layers do
    cells[layer] = translation.cell(net, 'decoder/layer_' .. layer, o,
      { inputs = 2 * o.hidden, h = states[layer].h, c = states[layer].c })
  end
  for i, x in ipairs(translation.target(net, o)) do
    local function with_context(layer, y)
      return net:concat(('decoder/input_%d/step_%d'):format(layer, i), { y, context }, 2)
    end
    x = cells[1](with_context(1, x))
    context = attend(x)
    for layer = 2, o.layers do x = cells[layer](with_context(layer, x), layer > 2 and x) end
    outputs[i] = x
  end
  return outputs
end

return {
  help = 'GNMT, unrolled over time',
  options = translation.options { sequence = 15, hidden = 1024, vocabulary = 32000, fewest_layers = 2,
    projection = 'stacked' },
  build = function(o)
    local net = layers.new('gnmt', o)
    local steps, states = encode(net, o)
    local memory = net:stack('encoder/memory', steps, 2)
    translation.loss(net, 'gnmt', decode(net, o, memory, states), o)
    return net:build()
  end,
}
