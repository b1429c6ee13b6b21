-- A decoder of mixtures of experts whose matmuls are one operator per layer (Einsum with weights [E, ., .]) between
-- ExpertDispatch and ExpertCombine: grouped-query attention, RMS normalisation, experts gated by SiLU, no biases.

local layers = require 'trinity.graph.layers'

local function mixture_of_experts(net, name, x, o)
  local n, t, h = x.shape[1], x.shape[2], x.shape[3]
  local e, k, f, rows = o.experts, o.top_k, o.feed_forward, math.ceil(x.shape[1] * x.shape[2] * o.top_k / o.experts)
  local shares = net:softmax(name .. '/router/softmax', net:linear(name .. '/router/scores', x, e, { bias = false }),
    { axis = -1 })
  local weights, numbers = net:top_k(name .. '/router/top_k', shares, k)
  local tokens, of_rows = net:operator('ExpertDispatch', name .. '/dispatch',
    { inputs = { x, weights, numbers }, shapes = { { e, rows, h }, { e, rows, 1 } } })
  local function product(part, of, from, to)
    return (net:operator('Einsum', name .. '/experts/' .. part, { inputs = { of }, shapes = { { e, rows, to } },
      attributes = { equation = 'eci,eio->eco' }, parameters = { net:weight('weight', { e, from, to }) } }))
  end
  local gate = net:swish(name .. '/experts/silu', product('gate', tokens, h, f))
  local inner = net:mul(name .. '/experts/product', gate, product('up', tokens, h, f))
  inner = net:mul(name .. '/experts/weighted', inner, of_rows)
  return (net:operator('ExpertCombine', name .. '/combine',
    { inputs = { product('down', inner, f, h), numbers }, shapes = { { n, t, h } } }))
end

--- The forward graph. o: layers, hidden, heads, num_kv_heads, feed_forward, experts, top_k, vocabulary, batch_size,
--- sequence, dtype.
return function(o)
  local net = layers.new('mixture', { dtype = o.dtype })
  local tokens = net:input('tokens', { o.batch_size, o.sequence }, 'int64')
  local labels = net:input('labels', { o.batch_size, o.sequence }, 'int64')
  local x = net:embedding('embed', tokens, { rows = o.vocabulary, features = o.hidden })
  for i = 1, o.layers do
    local at = 'layer_' .. i
    local attended = net:self_attention(at .. '/attention', net:rms_norm(at .. '/norm_1', x),
      { heads = o.heads, num_kv_heads = o.num_kv_heads or o.heads, bias = false, causal = true, kernels = 'flash' })
    x = net:add(at .. '/attention/residual', x, attended)
    local y = mixture_of_experts(net, at .. '/mixture', net:rms_norm(at .. '/norm_2', x), o)
    x = net:add(at .. '/mixture/residual', x, y)
  end
  local logits = net:linear('logits', net:rms_norm('norm', x), o.vocabulary, { bias = false })
  net:softmax_cross_entropy('loss', logits, labels)
  return net:build()
end
