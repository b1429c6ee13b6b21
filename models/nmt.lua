-- NMT: an encoder and a decoder of LSTM layers with attention (Bahdanau et al. 2015; Luong et al. 2015),
-- unrolled. The decoder's top layer attends to the encoder's outputs; its output and the context are
-- joined into the attentional state tanh(W [context; output]), which is projected to the vocabulary and
-- fed to the next step together with its token (Luong's input feeding, as in github.com/tensorflow/nmt and
-- OpenNMT).
--
-- The paper on Trinity states neither sizes nor lengths. 32 tokens give its number of operators as
-- TensorFlow counts them (`trinity study papers trinity --only table3`).

local layers = require 'trinity.graph.layers'
local translation = require 'trinity.graph.layers.translation'

local attentions = { additive = 'additive_attention', multiplicative = 'multiplicative_attention' }

--- The attentional states [N, H], one per step.
local function decode(net, o, attention, memory, states)
  local attend = net[attention](net, 'attention', memory, o.hidden)
  local state, cells, outputs = translation.no_context(net, o), {}, {}
  for layer = 1, o.layers do
    cells[layer] = translation.cell(net, 'decoder/layer_' .. layer, o,
      { inputs = layer == 1 and 2 * o.hidden or o.hidden, h = states[layer].h, c = states[layer].c })
  end
  local weight = net:variable('attention/state_weight', { o.hidden, 2 * o.hidden })
  for i, x in ipairs(translation.target(net, o)) do
    x = net:concat('decoder/input/step_' .. i, { x, state }, 2)
    for layer = 1, o.layers do x = cells[layer](x) end
    local joined = net:concat('attention/join/step_' .. i, { attend(x), x }, 2)
    state = net:tanh('attention/state/step_' .. i, net:linear('attention/state_linear/step_' .. i, joined, o.hidden,
      { weight = weight, bias = false }))
    outputs[i] = state
  end
  return outputs
end

return {
  help = 'NMT: LSTM encoder and decoder with attention, unrolled over time',
  options = translation.options({ sequence = 32, hidden = 1024, vocabulary = 32000, fewest_layers = 1,
    projection = 'step' }, {
    attention = { default = 'additive', help = 'additive (Bahdanau) or multiplicative (Luong)' },
  }),
  build = function(o)
    local attention = layers.choice('nmt', 'attention', o.attention, attentions)
    local net = layers.new('nmt', o)
    local steps, states = translation.source(net, o), {}
    for layer = 1, o.layers do
      steps, states[layer] = translation.encoder_layer(net, 'encoder/layer_' .. layer, steps, o)
    end
    local memory = net:stack('encoder/memory', steps, 2)
    translation.loss(net, 'nmt', decode(net, o, attention, memory, states), o)
    return net:build()
  end,
}
