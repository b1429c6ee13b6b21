-- A recurrent language model (Jozefowicz et al. 2016, "Exploring the Limits of Language Modeling") as
-- PaSE's graphs have it: an embedding, LSTM layers as wide as it, a dense layer over the vocabulary.

local layers = require 'trinity.graph.layers'

return {
  help = 'language model of whole LSTM layers',
  options = {
    batch_size = { default = 64, help = 'sentences per step', min = 1, integer = true },
    sequence = { default = 256, help = 'tokens of a sentence', min = 1, integer = true },
    hidden = { default = 2048, help = 'width of the embedding and of a layer', min = 1, integer = true },
    layers = { default = 2, help = 'LSTM layers', min = 1, integer = true },
    vocabulary = { default = 100000, help = 'words', min = 1, integer = true },
  },
  build = function(o)
    local net = layers.new('rnnlm', o)
    local tokens = net:input('tokens', { o.batch_size, o.sequence }, 'int64')
    local labels = net:input('labels', { o.batch_size, o.sequence }, 'int64')
    local x = net:embedding('embedding', tokens, { rows = o.vocabulary, features = o.hidden })
    for i = 1, o.layers do
      local name = 'lstm_' .. i
      local y = net:lstm(name, x, { hidden = o.hidden }) -- [N, T, 1, H]
      x = net:reshape(name .. '/output', y, { o.batch_size, o.sequence, o.hidden })
    end
    net:softmax_cross_entropy('loss', net:linear('projection', x, o.vocabulary), labels)
    return net:build()
  end,
}
