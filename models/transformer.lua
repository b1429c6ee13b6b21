-- The transformer of translation (Vaswani et al. 2017, "Attention Is All You Need") as PaSE's graphs have
-- it: 6 + 6 layers normalised after their residual sums, queries, keys and values projected by one Einsum, no
-- masks, softmax and cross-entropy over the vocabulary. Letters: b sentence, l and m position, e width,
-- h head, k width of a head, f inner width, s which of queries, keys, values, v word.

local layers = require 'trinity.graph.layers'

local function einsum(net, name, equation, inputs, shape, weight)
  return (net:operator('Einsum', name, { inputs = inputs, shapes = { shape }, attributes = { equation = equation },
    parameters = weight and { net:weight('weight', weight) } or {} }))
end

--- Attention of x to memory, both [b, l, e]; x itself where there is none.
local function attention(net, name, x, memory, o)
  local b, l, e, h = o.batch_size, o.sequence, o.hidden, o.heads
  local k, projected = e / h
  if memory then
    local both = net:stack(name .. '/inputs', { x, memory, memory }, 1)
    projected = einsum(net, name .. '/qkv', 'sble,shek->sbhlk', { both }, { 3, b, h, l, k }, { 3, h, e, k })
  else
    projected = einsum(net, name .. '/qkv', 'ble,shek->sbhlk', { x }, { 3, b, h, l, k }, { 3, h, e, k })
  end
  local parts = net:unstack(name .. '/parts', projected, 1)
  local scores = einsum(net, name .. '/scores', 'bhlk,bhmk->bhlm', { parts[1], parts[2] }, { b, h, l, l })
  local shares = net:softmax(name .. '/softmax', scores)
  local context = einsum(net, name .. '/context', 'bhlm,bhmk->bhlk', { shares, parts[3] }, { b, h, l, k })
  return einsum(net, name .. '/output', 'bhlk,hek->ble', { context }, { b, l, e }, { h, e, k })
end

local function feed_forward(net, name, x, o)
  local b, l, e, f = o.batch_size, o.sequence, o.hidden, o.feed_forward
  local inner = einsum(net, name .. '/inner', 'ble,ef->blf', { x }, { b, l, f }, { e, f })
  inner = net:dropout(name .. '/dropout', net:relu(name .. '/relu', inner), { ratio = o.dropout })
  return einsum(net, name .. '/outer', 'blf,fe->ble', { inner }, { b, l, e }, { f, e })
end

local function residual(net, name, x, y) return net:layer_norm(name .. '/norm', net:add(name .. '/sum', x, y)) end

--- Embedded tokens with their positions.
local function embedded(net, name, o)
  local tokens = net:input(name .. '/tokens', { o.batch_size, o.sequence }, 'int64')
  local positions = net:constant(name .. '/positions', 0, { o.batch_size, o.sequence, o.hidden })
  local x = net:embedding(name .. '/embedding', tokens, { rows = o.vocabulary, features = o.hidden })
  return net:add(name .. '/positioned', x, positions)
end

return {
  help = 'encoder-decoder transformer of Vaswani et al. 2017',
  options = {
    batch_size = { default = 64, help = 'sentences per step', min = 1, integer = true },
    sequence = { default = 256, help = 'tokens of a sentence', min = 1, integer = true },
    hidden = { default = 512, help = 'width of the embedding, a multiple of the heads', min = 1, integer = true },
    feed_forward = { default = 2048, help = 'inner width of a feed-forward network', min = 1, integer = true },
    heads = { default = 8, help = 'heads of attention', min = 1, integer = true },
    layers = { default = 6, help = 'layers of the encoder and of the decoder', min = 1, integer = true },
    vocabulary = { default = 50000, help = 'words', min = 1, integer = true },
    dropout = { default = 0.1, help = 'ratio inside feed-forward networks', min = 0, max = 1 },
  },
  build = function(o)
    if o.hidden % o.heads ~= 0 then
      error(("model 'transformer': a width of %d is no multiple of %d heads"):format(o.hidden, o.heads), 0)
    end
    local net = layers.new('transformer', o)
    local x = embedded(net, 'encoder', o)
    for i = 1, o.layers do
      local name = ('encoder/layer_%d'):format(i)
      x = residual(net, name .. '/attention', x, attention(net, name .. '/attention', x, nil, o))
      x = residual(net, name .. '/feed_forward', x, feed_forward(net, name .. '/feed_forward', x, o))
    end
    local memory = x
    x = embedded(net, 'decoder', o)
    for i = 1, o.layers do
      local name = ('decoder/layer_%d'):format(i)
      x = residual(net, name .. '/attention', x, attention(net, name .. '/attention', x, nil, o))
      x = residual(net, name .. '/memory', x, attention(net, name .. '/memory', x, memory, o))
      x = residual(net, name .. '/feed_forward', x, feed_forward(net, name .. '/feed_forward', x, o))
    end
    local logits = einsum(net, 'projection', 'ble,ev->blv', { x },
      { o.batch_size, o.sequence, o.vocabulary }, { o.hidden, o.vocabulary })
    local labels = net:input('labels', { o.batch_size, o.sequence }, 'int64')
    net:softmax_cross_entropy('loss', logits, labels)
    return net:build()
  end,
}
