-- BERT-base, uncased (Devlin et al. 2019, "BERT: Pre-training of Deep Bidirectional Transformers"):
-- 109,482,240 parameters with the pooler (Hugging Face's BertModel), 110,106,428 with both pre-training
-- heads (BertForPreTraining, the published checkpoint), 109,514,298 with masked tokens alone and no
-- pooler (BertForMaskedLM). The output is tied to the token embedding.

local layers = require 'trinity.graph.layers'
local util = require 'trinity.base.util'

local kernels = { onnx = true, megatron = true, flash = true }

-- Which of the pooler, the masked tokens and the next sentence are there.
local heads = {
  none = { pooler = true },
  mlm = { tokens = true },
  pretraining = { pooler = true, tokens = true, sentences = true },
}

--- Token, segment and position embeddings, summed and normalised.
local function embed(net, o, weight)
  local tokens = net:input('tokens', { o.batch_size, o.sequence }, 'int64')
  local segments = net:input('segments', { o.batch_size, o.sequence }, 'int64')
  local positions = net:input('positions', { 1, o.sequence }, 'int64')
  local x = net:add('embed/token_segment', net:embedding('embed/token', tokens, { weight = weight }),
    net:embedding('embed/segment', segments, { rows = 2, features = o.hidden }))
  x = net:add('embed/sum', x,
    net:embedding('embed/position', positions, { rows = o.positions, features = o.hidden }))
  return net:drop('embed/dropout', net:layer_norm('embed/norm', x, { epsilon = 1e-12 }), o.dropout)
end

--- The loss of masked tokens: of all positions, or of o.predictions of each sequence.
local function token_loss(net, o, x, weight)
  local labels_shape = { o.batch_size, o.sequence }
  if o.predictions > 0 then
    labels_shape = { o.batch_size * o.predictions }
    local masked = net:input('masked_positions', labels_shape, 'int64')
    x = net:gather('tokens_head/gather', net:reshape('tokens_head/rows', x, { -1, o.hidden }), masked)
  end
  x = net:gelu('tokens_head/gelu', net:linear('tokens_head/transform', x, o.hidden))
  x = net:layer_norm('tokens_head/norm', x, { epsilon = 1e-12 })
  local logits = net:linear('tokens_head/logits', x, o.vocabulary, { weight = weight })
  return net:softmax_cross_entropy('tokens_head/loss', logits, net:input('token_labels', labels_shape, 'int64'))
end

local function check(o)
  if o.sequence > o.positions then
    util.fail("model 'bert_base': expected positions of at least sequence = %d, got %d", o.sequence, o.positions)
  end
  if o.predictions > o.sequence then
    util.fail("model 'bert_base': %d predictions in a sequence of %d tokens", o.predictions, o.sequence)
  end
end

return {
  help = 'BERT-base, uncased, with its pre-training heads',
  optimizer = 'adam',
  mixed_precision = true,
  options = {
    batch_size = { default = 32, help = 'sequences per step', min = 1, integer = true },
    sequence = { default = 128, help = 'tokens of a sequence', min = 1, max = 2 ^ 20, integer = true },
    layers = { default = 12, help = 'blocks', min = 1, max = 1000, integer = true },
    hidden = { default = 768, help = 'hidden size', min = 1, integer = true },
    heads = { default = 12, help = 'attention heads', min = 1, integer = true },
    feed_forward = { default = 3072, help = 'inner width of a block', min = 1, integer = true },
    vocabulary = { default = 30522, help = 'tokens known', min = 1, integer = true },
    positions = { default = 512, help = 'longest sequence', min = 1, integer = true },
    head = { default = 'pretraining', help = 'pretraining (masked tokens, next sentence), mlm or none' },
    predictions = { default = 0, help = 'masked tokens of a sequence (0: a loss at every one)', min = 0,
      integer = true },
    kernels = { default = 'flash', help = 'onnx, megatron or flash: what is one operator; flash: no mask of padding' },
    dropout = { default = 0.1, help = 'ratio of all dropouts (0: none)', min = 0, max = 1 },
  },
  build = function(o)
    local head = layers.choice('bert_base', 'head', o.head, heads)
    check(o)
    local net = layers.new('bert_base', o)
    local weight = net:variable('embedding', { o.vocabulary, o.hidden })
    local x = embed(net, o, weight)
    layers.choice('bert_base', 'kernels', o.kernels, kernels)
    local block = { heads = o.heads, feed_forward = o.feed_forward, dropout = o.dropout, epsilon = 1e-12,
      kernels = o.kernels,
      mask = o.kernels ~= 'flash' and net:input('mask', { o.batch_size, 1, 1, o.sequence }) or nil }
    for i = 1, o.layers do x = net:transformer_block('block_' .. i, x, block) end

    local pooled, loss
    if head.pooler then
      local first = net:reshape('pooler/row', net:slice('pooler/first', x, 2, 1, 1), { o.batch_size, o.hidden })
      pooled = net:tanh('pooler/tanh', net:linear('pooler/linear', first, o.hidden))
    end
    if head.tokens then loss = token_loss(net, o, x, weight) end
    if head.sentences then
      local labels = net:input('sentence_labels', { o.batch_size }, 'int64')
      net:add('loss', loss, net:softmax_cross_entropy('sentence_head/loss',
        net:linear('sentence_head/logits', pooled, 2), labels))
    end
    return net:build()
  end,
}
