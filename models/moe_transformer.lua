-- A decoder with mixtures of experts: Granite 3.0 1B-A400M (IBM 2024; 1,334,628,352 parameters) or
-- Mixtral 8x7B (Jiang et al. 2024, "Mixtral of Experts"; 46,702,792,704 parameters), the same
-- architecture: RMS normalisation, rotary positions, heads that share keys, experts gated by SiLU, no
-- biases. Every expert is operators of its own, so that experts can be placed; dispatch and combination
-- are what a placement turns into all-to-all transfers. Experts have a capacity, as in GShard (Lepikhin
-- et al. 2021) and Switch (Fedus et al. 2022): capacity_factor x the tokens of an even load. Tokens
-- beyond it are dropped, so that all shapes are known.

local layers = require 'trinity.graph.layers'
local util = require 'trinity.base.util'

local kernels = { onnx = true, megatron = true, flash = true }
local sizes = {
  granite_1b_a400m = { layers = 24, hidden = 1024, heads = 16, num_kv_heads = 8, feed_forward = 512, experts = 32,
    top_k = 8, vocabulary = 49155, tied = true },
  mixtral_8x7b = { layers = 32, hidden = 4096, heads = 32, num_kv_heads = 8, feed_forward = 14336, experts = 8,
    top_k = 2, vocabulary = 32000, tied = false },
}

--- A network gated by SiLU: hidden to hidden, o.feed_forward wide. Gate and values are one matmul, so
--- that there is a single input gradient, unless o.fused is false. of: the expert's number, if the
--- network is one of o.experts.
local function gated(net, name, x, o, of)
  local plain, rank, inner = { bias = false, attributes = of }, #x.shape, o.feed_forward
  local parts
  if o.fused then
    parts = net:split(name .. '/split', net:linear(name .. '/up', x, 2 * inner, plain), rank, { inner, inner })
  else
    parts = { net:linear(name .. '/gate', x, inner, plain), net:linear(name .. '/up', x, inner, plain) }
  end
  local product = net:mul(name .. '/product', net:swish(name .. '/silu', parts[1]), parts[2])
  return net:linear(name .. '/down', product, x.shape[rank], plain)
end

--- Chooses experts for tokens x [S, H]. Returns the numbers [E, C] of the tokens that fill the experts'
--- places, with the weights [E, C] of their results (0 for places left empty), and the loss that
--- balances the load, E x the sum over experts of (share of tokens) x (mean probability).
local function route(net, name, x, o)
  local tokens, e, k = x.shape[1], o.experts, o.top_k
  local shares = net:softmax(name .. '/softmax', net:linear(name .. '/logits', x, e, { bias = false }), { axis = -1 })
  local weights, chosen = net:top_k(name .. '/top_k', shares, k)
  if k > 1 then weights = net:div(name .. '/weights', weights, net:reduce_sum(name .. '/sum', weights, 2)) end
  local mask = net:reshape(name .. '/mask', net:one_hot(name .. '/one_hot', chosen, e, 1), { e, tokens * k })

  -- The first places go to the tokens that chose the expert, of equal ones the earlier first.
  local places = math.max(1, math.min(tokens, math.ceil(o.capacity_factor * k * tokens / e)))
  local filled, choice = net:top_k(name .. '/places', mask, places)
  local weight = net:mul(name .. '/place_weight', filled,
    net:gather(name .. '/choice_weight', net:reshape(name .. '/choices', weights, { tokens * k }), choice))
  local token = net:operator('Div', name .. '/token', { dtype = 'int64', shapes = { choice.shape },
    inputs = { choice, net:constant(name .. '/k', k, { 1 }, 'int64') } })

  local loss
  if o.balance > 0 then
    local load = net:reduce_mean(name .. '/load', mask, 2)
    local mean = net:reshape(name .. '/mean_share', net:reduce_mean(name .. '/share', shares, 1), { e, 1 })
    local overlap = net:reduce_sum(name .. '/overlap', net:mul(name .. '/load_share', load, mean), 1)
    loss = net:reshape(name .. '/loss', overlap, { 1 })
  end
  return token, weight, loss
end

--- The mixture of experts for x [N, T, H]; returns its output and its loss.
local function mixture(net, name, x, o)
  local shape, width = x.shape, x.shape[3]
  local rows = net:reshape(name .. '/rows', x, { -1, width })
  local token, weight, loss = route(net, name .. '/router', rows, o)
  local parts = net:unstack(name .. '/split', net:gather(name .. '/dispatch', rows, token), 1)
  local one = { experts = o.experts, experts_per_token = o.top_k }
  for i, part in ipairs(parts) do parts[i] = gated(net, ('%s/expert_%d'):format(name, i), part, o, one) end
  local results = net:stack(name .. '/stack', parts, 1)
  local weighted = net:mul(name .. '/weighted', results,
    net:reshape(name .. '/weight', weight, { o.experts, weight.shape[2], 1 }))
  local sum = net:scatter_add(name .. '/combine', net:constant(name .. '/zeros', 0, rows.shape), token, weighted)
  return net:reshape(name .. '/output', sum, shape), loss
end

--- The size's numbers with those that the options replace.
local function resolve(o)
  local preset = layers.choice('moe_transformer', 'size', o.size, sizes)
  local full = { tied = preset.tied }
  for key, value in util.sorted_pairs(o) do
    full[key] = value == 0 and preset[key] or value
  end
  if full.top_k > full.experts then
    util.fail("model 'moe_transformer': 'top_k': expected at most the %d experts, got %d", full.experts, full.top_k)
  end
  if full.hidden % (2 * full.heads) ~= 0 then
    util.fail("model 'moe_transformer': 'hidden': expected a multiple of 2 x %d heads, got %d", full.heads, full.hidden)
  end
  return full
end

--- The loss, with the mean of those that balance the experts, weighted.
local function add_losses(net, o, loss, balance)
  if #balance > 0 then
    net:add_loss('total_loss', loss, net:mean('balance', balance), o.balance * o.experts)
  end
end

local function by_size(help, most)
  return { default = 0, help = help .. ' (0: by size)', min = 0, max = most, integer = true }
end

return {
  help = 'a decoder with mixtures of experts (Granite 3.0 1B-A400M, Mixtral 8x7B)',
  optimizer = 'adam',
  mixed_precision = true,
  options = {
    batch_size = { default = 8, help = 'sequences per step', min = 1, integer = true },
    sequence = { default = 512, help = 'tokens of a sequence', min = 1, max = 2 ^ 20, integer = true },
    size = { default = 'granite_1b_a400m', help = 'granite_1b_a400m or mixtral_8x7b' },
    layers = by_size('blocks', 200),
    hidden = by_size 'hidden size',
    heads = by_size 'attention heads',
    num_kv_heads = by_size 'KV heads (grouped-query attention)',
    feed_forward = by_size 'inner width of an expert',
    experts = by_size('experts of a layer', 512),
    top_k = by_size 'experts that a token goes to',
    vocabulary = by_size 'tokens known',
    every = { default = 1, help = 'one block in `every` has experts, the others a dense network', min = 1,
      integer = true },
    capacity_factor = { default = 1, help = 'places of an expert over the tokens of an even load', min = 0 },
    fused = { default = false,
      help = 'gate and values of an expert in one matmul; separate ones can be split by columns' },
    kernels = { default = 'flash', help = 'onnx, megatron or flash: what of attention is one operator' },
    balance = { default = 0.01, help = 'weight of the loss that balances the experts (0: none)', min = 0 },
  },
  build = function(options)
    local o = resolve(options)
    local net = layers.new('moe_' .. o.size, o)
    local tokens = net:input('tokens', { o.batch_size, o.sequence }, 'int64')
    local labels = net:input('labels', { o.batch_size, o.sequence }, 'int64')
    local angles = { o.sequence, o.hidden / o.heads / 2 }
    layers.choice('moe_transformer', 'kernels', o.kernels, kernels)
    local attention = { heads = o.heads, num_kv_heads = o.num_kv_heads, bias = false, causal = true,
      kernels = o.kernels, rotary = { net:input('rotary/cos', angles), net:input('rotary/sin', angles) } }
    local embedding = net:variable('embedding', { o.vocabulary, o.hidden })
    local x, balance = net:embedding('embed', tokens, { weight = embedding }), {}
    for i = 1, o.layers do
      local name = 'block_' .. i
      x = net:add(name .. '/attention/residual', x,
        net:self_attention(name .. '/attention', net:rms_norm(name .. '/norm_1', x), attention))
      local y = net:rms_norm(name .. '/norm_2', x)
      if i % o.every == 0 then y, balance[#balance + 1] = mixture(net, name .. '/moe', y, o)
      else y = gated(net, name .. '/feed_forward', y, o) end
      x = net:add(name .. '/feed_forward/residual', x, y)
    end
    local logits = net:linear('logits', net:rms_norm('norm', x), o.vocabulary,
      { bias = false, weight = o.tied and embedding or nil })
    add_losses(net, o, net:softmax_cross_entropy('loss', logits, labels), balance)
    return net:build()
  end,
}
