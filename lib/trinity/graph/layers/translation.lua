-- Shared parts of GNMT and NMT: options, LSTM encoders unrolled over time, and the decoder's loss. There is one cell
-- operator per layer and time step, and the steps share weights, as TensorFlow unrolls such networks.

local layers = require 'trinity.graph.layers'
local util = require 'trinity.base.util'

local translation = {}

--- Returns the options of both, with the given defaults and additional ones.
function translation.options(defaults, more)
  local options = {
    batch_size = { default = 64, help = 'pairs of sentences per step', min = 1, integer = true },
    sequence = { default = defaults.sequence, help = 'tokens per source and target sentence', min = 1,
      max = 1000, integer = true },
    hidden = { default = defaults.hidden, help = 'width of layers, attention and embeddings', min = 1,
      integer = true },
    layers = { default = 2, help = 'layers of the encoder and of the decoder', min = defaults.fewest_layers,
      max = 100, integer = true },
    vocabulary = { default = defaults.vocabulary, help = 'size of the target vocabulary', min = 1, integer = true },
    source_vocabulary = { default = 0, help = 'size of the source vocabulary (0: as the target vocabulary)', min = 0,
      integer = true },
    dropout = { default = 0.2, help = 'dropout probability before each cell (0: none)', min = 0, max = 1 },
    projection = { default = defaults.projection, help = "projection to the vocabulary: 'step' by step, or 'stacked' "
      .. "for all steps" },
  }
  for name, option in util.sorted_pairs(more or {}) do options[name] = option end
  return options
end

--- Returns embedded tokens as a list of steps [N, H].
local function embed(net, name, o, rows)
  local tokens = net:input(name .. '/tokens', { o.batch_size, o.sequence }, 'int64')
  return net:unstack(name .. '/steps', net:embedding(name .. '/embedding', tokens,
    { rows = rows, features = o.hidden }), 2)
end

--- Returns the source sentence as a list of embedded steps.
function translation.source(net, o)
  return embed(net, 'source', o, o.source_vocabulary > 0 and o.source_vocabulary or o.vocabulary)
end

--- Returns the target sentence, shifted by one, as a list of embedded steps.
function translation.target(net, o) return embed(net, 'target', o, o.vocabulary) end

--- Returns a layer that takes one step at a time, with dropout before each cell and, with `residual`, that part of the
--- input added to the output; see layers.lstm_steps for `spec`.
function translation.cell(net, name, o, spec)
  spec.hidden, spec.batch_size = o.hidden, o.batch_size
  local advance, step = net:lstm_steps(name, spec), 0
  return function(x, residual)
    step = step + 1
    local at = ('%s/step_%d'):format(name, step)
    local h, c = advance(net:drop(at .. '/dropout', x, o.dropout))
    return residual and net:add(at .. '/residual', h, residual) or h, h, c
  end
end

--- An encoder layer over all steps, from the last to the first if o is reversed. Returns the outputs in
--- the order of the steps and the final state { h =, c = }.
function translation.encoder_layer(net, name, steps, o, options)
  local cell = translation.cell(net, name, o, { inputs = steps[1].shape[2] })
  local outputs, h, c = {}, nil, nil
  for i = 1, #steps do
    local at = options and options.reverse and #steps + 1 - i or i
    outputs[at], h, c = cell(steps[at], options and options.residual and steps[at])
  end
  return outputs, { h = h, c = c }
end

--- Returns the zero context before the first step.
function translation.no_context(net, o) return net:constant('decoder/no_context', 0, { o.batch_size, o.hidden }) end

--- Projects outputs [N, H], one per step, to the vocabulary and adds the mean cross-entropy.
function translation.loss(net, model, outputs, o)
  local stacked = layers.choice(model, 'projection', o.projection, { stacked = true, step = false })
  local labels = net:input('labels', { o.batch_size, o.sequence }, 'int64')
  if stacked then
    local all = net:stack('projection/stack', outputs, 2)
    return net:softmax_cross_entropy('loss', net:linear('projection', all, o.vocabulary, { bias = false }), labels)
  end
  local weight = net:variable('projection/weight', { o.vocabulary, o.hidden })
  local losses = {}
  for i, label in ipairs(net:unstack('labels/steps', labels, 2)) do
    local logits = net:linear('projection/step_' .. i, outputs[i], o.vocabulary, { weight = weight, bias = false })
    losses[i] = net:softmax_cross_entropy('loss/step_' .. i, logits, label)
  end
  return net:mean('loss', losses)
end

return translation
