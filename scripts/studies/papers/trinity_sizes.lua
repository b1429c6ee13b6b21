-- Table 3 of the Trinity paper: operators and edges of its networks as TensorFlow 1.15's graphs.

local page = require 'studies.papers.page'
local tensorflow = require 'studies.tensorflow'

-- It says nothing of how long its sentences are (PTB's have 21 words on average): lengths are those with which its
-- numbers of operators come out.
local networks = {
  { model = 'inception_v3', operators = 12745, edges = 21928 },
  { model = 'nasnet_large', operators = 18644, edges = 27505 },
  { model = 'pnasnet_large', operators = 14063, edges = 20718 },
  { model = 'gnmt', sequence = 15, operators = 8738, edges = 16564, fitted = 'the length of sentences' },
  { model = 'nmt', sequence = 32, operators = 16432, edges = 24235, fitted = 'the length of sentences' },
}

return { name = 'table3', title = 'Table 3: sizes of the graphs',
  about = 'The operations of one training step in TensorFlow 1.15, with momentum. An edge is a '
    .. 'tensor and an operator that reads it, or a control dependency.',
  run = function(rows, settings)
    for _, network in ipairs(networks) do
      if not settings.models or settings.models[network.model] then
        local graph = tensorflow.load(network.model, { sequence = network.sequence })
        rows:add { what = network.model .. ', operators', claimed = network.operators, ours = graph.operators,
          verdict = page.verdict { claimed = network.operators, got = graph.operators, fitted = network.fitted } }
        rows:add { what = network.model .. ', edges', claimed = network.edges, ours = graph.edges,
          verdict = page.verdict { claimed = network.edges, got = graph.edges } }
      end
    end
  end }
