-- GPT-2 (Radford et al. 2019, "Language Models are Unsupervised Multitask Learners"): 124,439,808
-- (small), 354,823,168 (medium), 774,030,080 (large) and 1,557,611,200 (XL) parameters, the output tied
-- to the token embedding; as Hugging Face's GPT2LMHeadModel.

local layers = require 'trinity.graph.layers'
local util = require 'trinity.base.util'

-- Layers, hidden size and heads (table 2 of the paper).
local sizes = { small = { 12, 768, 12 }, medium = { 24, 1024, 16 }, large = { 36, 1280, 20 }, xl = { 48, 1600, 25 } }

local kernels = { onnx = true, megatron = true, flash = true }

return {
  help = 'GPT-2, small to XL',
  optimizer = 'adam',
  mixed_precision = true,
  options = {
    batch_size = { default = 8, help = 'sequences per step', min = 1, integer = true },
    sequence = { default = 1024, help = 'tokens of a sequence', min = 1, max = 2 ^ 20, integer = true },
    size = { default = 'small', help = 'small, medium, large or xl' },
    layers = { default = 0, help = 'blocks (0: by size)', min = 0, max = 1000, integer = true },
    hidden = { default = 0, help = 'hidden size (0: by size)', min = 0, integer = true },
    heads = { default = 0, help = 'attention heads (0: by size)', min = 0, integer = true },
    feed_forward = { default = 0, help = 'inner width of a block (0: 4 x hidden)', min = 0, integer = true },
    vocabulary = { default = 50257, help = 'tokens known', min = 1, integer = true },
    positions = { default = 1024, help = 'longest sequence', min = 1, integer = true },
    tied = { default = true, help = 'whether the output has the weights of the token embedding, not its own' },
    fused = { default = false, help = 'one matmul for queries, keys and values; separate ones can be split by heads' },
    kernels = { default = 'flash', help = 'onnx, megatron or flash: what is one operator, and so what is kept' },
    fused_softmax = { default = true, help = "with kernels = megatron: scale, mask and softmax are one kernel" },
    dropout = { default = 0.1, help = 'ratio of all dropouts (0: none)', min = 0, max = 1 },
  },
  build = function(o)
    local count, hidden, heads = unpack(layers.choice('gpt2', 'size', o.size, sizes))
    if o.layers > 0 then count = o.layers end
    if o.hidden > 0 then hidden = o.hidden end
    if o.heads > 0 then heads = o.heads end
    if o.sequence > o.positions then
      util.fail("model 'gpt2': expected positions of at least sequence = %d, got %d", o.sequence, o.positions)
    end
    layers.choice('gpt2', 'kernels', o.kernels, kernels)
    local net = layers.new('gpt2_' .. o.size, o)
    local block = { heads = heads, fused = o.fused, causal = true, norm_first = true, dropout = o.dropout,
      kernels = o.kernels, fused_softmax = o.fused_softmax,
      feed_forward = o.feed_forward > 0 and o.feed_forward or 4 * hidden, approximate = 'tanh' }

    local tokens = net:input('tokens', { o.batch_size, o.sequence }, 'int64')
    local positions = net:input('positions', { 1, o.sequence }, 'int64')
    local labels = net:input('labels', { o.batch_size, o.sequence }, 'int64')
    local embedding = net:variable('embedding', { o.vocabulary, hidden })
    local x = net:add('embed', net:embedding('embed/token', tokens, { weight = embedding }),
      net:embedding('embed/position', positions, { rows = o.positions, features = hidden }))
    x = net:drop('embed/dropout', x, o.dropout, o.kernels ~= 'onnx')
    for i = 1, count do x = net:transformer_block('block_' .. i, x, block) end
    x = net:layer_norm('norm', x)
    local logits = net:linear('logits', x, o.vocabulary, { weight = o.tied and embedding or nil, bias = false })
    if o.kernels ~= 'onnx' and (o.dtype == 'float16' or o.dtype == 'bfloat16') then
      logits = net:operator('Cast', 'logits/float32', { inputs = { logits }, shapes = { logits.shape },
        dtype = 'float32' })
    end
    net:softmax_cross_entropy('loss', logits, labels)
    return net:build()
  end,
}
