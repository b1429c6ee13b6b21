-- What GNMT and NMT share: options, LSTM encoders unrolled over time, and the loss of the decoder's
-- outputs. One cell operator per layer and time step, weights in variables that the steps share, as
-- TensorFlow unrolls such networks.

local layers = require 'trinity.graph.layers'
local util = require 'trinity.base.util'

local translation = {}

--- The options of both, with the given defaults and any more.
function translation.options(defaults, more)
  local options = {
    batch_size = { default = 64, help = 'pairs of sentences per step', min = 1, integer = true },
    sequence = { default = defaults.sequence, help = 'tokens of a source and of a target sentence', min = 1,
      max = 1000, integer = true },
    hidden = { default = defaults.hidden, help = 'units of a layer, of the attention and of the embeddings', min = 1,
      integer = true },
    layers = { default = 2, help = 'layers of the encoder, and of the decoder', min = defaults.fewest_layers,
      max = 100, integer = true },
    vocabulary = { default = defaults.vocabulary, help = 'target tokens known', min = 1, integer = true },
    source_vocabulary = { default = 0, help = 'source tokens known (0: as many as target tokens)', min = 0,
      integer = true },
    dropout = { default = 0.2, help = 'ratio of the dropout before each cell (0: none)', min = 0, max = 1 },
    projection = { default = defaults.projection, help = "softmax over the vocabulary: 'step' by step or 'stacked'" },
  }
  for name, option in util.sorted_pairs(more or {}) do options[name] = option end
  return options
end

--- Embedded tokens as a list of steps [N, H].
local function embed(net, name, o, rows)
  local tokens = net:input(name .. '/tokens', { o.batch_size, o.sequence }, 'int64')
  return net:unstack(name .. '/steps', net:embedding(name .. '/embedding', tokens,
    { rows = rows, features = o.hidden }), 2)
end

--- The source sentence as a list of embedded steps.
function translation.source(net, o)
  return embed(net, 'source', o, o.source_vocabulary > 0 and o.source_vocabulary or o.vocabulary)
end

--- The target sentence, shifted by one, as a list of embedded steps.
function translation.target(net, o) return embed(net, 'target', o, o.vocabulary) end

--- A layer to be fed step by step, with dropout before each cell and, with `residual`, the part
--- `residual` of the input added to the output; see layers.lstm_steps for `spec`.
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

--- Zeros for the context before the first step.
function translation.no_context(net, o) return net:constant('decoder/no_context', 0, { o.batch_size, o.hidden }) end

--- Projects outputs [N, H], one a step, to the vocabulary and adds the mean cross-entropy.
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
