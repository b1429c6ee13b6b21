-- Layers of current decoders for sequences [N, T, H]: gated feed-forward networks, mixtures of experts, multi-head
-- latent attention. Methods of trinity.Layers.

local check = require 'trinity.base.check'
local options_of = require 'trinity.base.options'
local row_linear = require 'trinity.graph.layers.row_linear'
local util = require 'trinity.base.util'

---@class trinity.Layers
local Layers = {}

local kernels = { 'onnx', 'megatron', 'flash' }

local gated_options = options_of.declare('trinity.GatedOptions', {
  help = 'Options of a gated feed-forward network (GLU; Shazeer 2020).',
  { 'feed_forward', 'integer', least = 1, needed = true, help = 'hidden width' },
  { 'activation', { 'silu', 'gelu', 'relu' }, 'silu', help = 'activation function of the gate' },
  { 'bias', 'boolean', false, help = 'biases of the linear layers' },
  { 'kernels', kernels, 'onnx', help = "'onnx': activation and multiplication are two operators, which keep "
    .. 'four hidden widths; otherwise one, which keeps three' },
})

local expert_options = options_of.declare('trinity.MixtureOptions', { extends = gated_options,
  help = 'Options of a mixture of experts, each a feed-forward network.',
  { 'experts', 'integer', least = 1, most = 65536, needed = true, help = 'number of experts' },
  { 'top_k', 'integer', least = 1, needed = true, help = 'experts per token' },
  { 'expert_groups', 'integer', 1, least = 1, help = 'groups of experts, of which a token uses group_topk' },
  { 'group_topk', 'integer', least = 1, otherwise = 'expert_groups', help = 'groups whose experts a token may use' },
  { 'router', { 'softmax', 'sigmoid' }, 'softmax', help = 'function that converts scores to weights' },
  { 'normalise', 'boolean', true, help = 'normalize the weights of the chosen experts to sum 1' },
  { 'shared', 'integer', 0, least = 0, help = 'hidden width of the shared expert, which all tokens pass (0: none)' },
  { 'gated', 'boolean', true, help = 'gated experts; false: two linear layers with a GELU' },
  { 'apart', 'boolean', false, help = 'without gates: GELU and router probabilities are two operators with all '
    .. 'kernels, as in Megatron-LM (core/transformer/moe/experts.py), which keeps the result of the first' },
  { 'router_dtype', { 'float32' }, otherwise = "the network's", help = 'dtype of router probabilities '
    .. '(--moe-router-dtype of Megatron-LM), in which apart multiplies' },
  { 'divisible_by', 'integer', 1, least = 1, help = 'round the rows of an expert up to a multiple of this' },
})

local latent_options = options_of.declare('trinity.LatentAttentionOptions', {
  help = 'Options of multi-head latent attention (MLA; DeepSeek-V2, 2024, section 2.1).',
  { 'heads', 'integer', least = 1, needed = true, help = 'attention heads' },
  { 'kv_lora_rank', 'integer', least = 1, needed = true,
    help = 'width of the latent vector per position from which keys and values come' },
  { 'q_lora_rank', 'integer', least = 1, otherwise = 'queries come from x',
    help = 'width of the latent vector of queries' },
  { 'qk_nope_head_dim', 'integer', least = 0, needed = true, help = "width of a head's queries and keys without RoPE" },
  { 'qk_rope_head_dim', 'integer', least = 1, needed = true,
    help = "width of a head's queries and keys with RoPE; all heads share the keys' part" },
  { 'v_head_dim', 'integer', least = 1, needed = true, help = "width of a head's values" },
  { 'rotary', 'tensors', needed = true, help = 'RoPE: tables of cosines and sines' },
  { 'bias', 'boolean', false, help = 'biases of the projections' },
  { 'epsilon', 'number', 1e-6, least = 0, help = 'epsilon of the normalizations' },
  { 'kernels', kernels, 'onnx', help = 'as for layers:attention' },
})

-- Adds the GELU of values, multiplied by router probabilities of rows.
local function activate_plain(net, name, parts, o)
  if o.kernels ~= 'onnx' and not o.apart then
    return (net:operator('WeightedGelu', name, { inputs = parts, shapes = { parts[1].shape } }))
  end
  local y, shape = net:gelu(name .. '/gelu', parts[1]), parts[1].shape
  if not (o.apart and o.router_dtype) then return net:mul(name .. '/weighted', y, parts[2]) end
  local product = net:operator('Mul', name .. '/weighted', { inputs = { y, parts[2] }, shapes = { shape },
    dtype = o.router_dtype, attributes = { own_products = 1 } })
  return (net:operator('Cast', name .. '/cast', { inputs = { product }, shapes = { shape } }))
end

-- Adds the product of the gate's activation and the values (and router probabilities).
local function activate(net, name, parts, o)
  local fused = o.activation == 'silu' and 'SwiGLU' or 'GeGLU'
  if o.kernels ~= 'onnx' and o.activation ~= 'relu' then
    return (net:operator(fused, name, { inputs = parts, shapes = { parts[1].shape } }))
  end
  local gates = { silu = net.swish, gelu = net.gelu, relu = net.relu }
  local product = net:mul(name .. '/product', gates[o.activation](net, name .. '/gate', parts[1]), parts[2])
  return parts[3] and net:mul(name .. '/weighted', product, parts[3]) or product
end

--- Gated feed-forward network: down(activation(gate(x)) * up(x)), x [..., H] to [..., H].
--- Example: `net:gated_feed_forward('f', x, { feed_forward = 16 })`
---@param o trinity.GatedOptions
function Layers:gated_feed_forward(name, x, o)
  o = gated_options:read('layers:gated_feed_forward', 3, 'o', o)
  local bias, input = { bias = o.bias }, self:operand(name .. '/input', x)
  local gate = self:linear(name .. '/gate', input, o.feed_forward, bias)
  local up = self:linear(name .. '/up', input, o.feed_forward, bias)
  local product = activate(self, name .. '/activation', { gate, up }, o)
  return row_linear(self, name .. '/down', product, x.shape[#x.shape], o)
end

-- Routes x [N, T, H]: returns weights and expert numbers [N, T, top_k].
local function route(net, name, x, o)
  local scores = net:linear(name .. '/scores', x, o.experts, { bias = false })
  local shares = o.router == 'softmax' and net:softmax(name .. '/softmax', scores, { axis = -1 })
    or net:sigmoid(name .. '/sigmoid', scores)
  local weights, numbers = net:top_k(name .. '/top_k', shares, o.top_k)
  if o.normalise and o.top_k > 1 then
    weights = net:div(name .. '/weights', weights, net:reduce_sum(name .. '/sum', weights, #weights.shape))
  end
  if o.router_dtype then
    weights = net:operator('Cast', name .. '/cast', { inputs = { weights }, shapes = { weights.shape },
      dtype = o.router_dtype })
  end
  return weights, numbers
end

--- Mixture of experts, x [N, T, H] to [N, T, H], with balanced load and without dropped tokens: every expert gets top_k
--- / experts of all choices, rounded up. All experts of a layer are one operator per matmul (Einsum with weights [E, .,
--- .]): '/experts/gate' (if gated), '/experts/up' and '/experts/down', between '/dispatch' and '/combine'. Router
--- probabilities are multiplied in between, so that dispatch and combine keep no activations.
--- Example: `net:mixture_of_experts('m', x, { feed_forward = 16, experts = 4, top_k = 2 })`
---@param o trinity.MixtureOptions
function Layers:mixture_of_experts(name, x, o)
  check.tensor('layers:mixture_of_experts', 2, 'x', x, 3)
  o = expert_options:read('layers:mixture_of_experts', 3, 'o', o)
  if o.top_k > o.experts then
    check.refuse('layers:mixture_of_experts', 'option', 'top_k', 'expected at most %d (the number of experts), got '
      .. '%d', o.experts,
      o.top_k)
  end
  local e, f, h = o.experts, o.feed_forward, x.shape[3]
  local rows = math.ceil(x.shape[1] * x.shape[2] * o.top_k / (e * o.divisible_by)) * o.divisible_by
  local about = { experts = e, experts_per_token = o.top_k }
  if o.expert_groups > 1 then
    about.expert_groups, about.group_topk = o.expert_groups, o.group_topk or o.expert_groups
    if about.group_topk > o.expert_groups then
      check.refuse('layers:mixture_of_experts', 'option', 'group_topk', 'expected at most %d (expert_groups), got %d',
        o.expert_groups, about.group_topk)
    end
  end
  local weights, numbers = route(self, name .. '/router', x, o)
  local tokens, shares = self.builder:add { name = name .. '/dispatch', type = 'ExpertDispatch',
    inputs = { x, weights, numbers }, attributes = about, outputs = { { shape = { e, rows, h }, dtype = self.dtype },
      { shape = { e, rows, 1 }, dtype = o.router_dtype or self.dtype } } }
  local function projection(part, of, from, to)
    return (self:operator('Einsum', name .. '/experts/' .. part, { inputs = { of }, shapes = { { e, rows, to } },
      attributes = util.merged(about, { equation = 'eci,eio->eco' }),
      parameters = { self:weight('weight', { e, from, to }) } }))
  end
  local input = self:operand(name .. '/experts/input', tokens)
  local at = name .. '/experts/activation'
  local inner = o.gated and activate(self, at,
    { projection('gate', input, h, f), projection('up', input, h, f), shares }, o)
    or activate_plain(self, at, { projection('up', input, h, f), shares }, o)
  local results = projection('down', self:operand(name .. '/experts/down/input', inner), f, h)
  local sum = self:operator('ExpertCombine', name .. '/combine', { inputs = { results, numbers }, shapes = { x.shape },
    attributes = about })
  if o.shared == 0 then return sum end
  return self:add(name .. '/sum', sum, self:gated_feed_forward(name .. '/shared', x,
    { feed_forward = o.shared, activation = o.activation, bias = o.bias, kernels = o.kernels }))
end

-- Adds queries [N, T, heads (qk_nope_head_dim + qk_rope_head_dim)] of x; the last elements of heads are rotated (RoPE).
local function latent_queries(net, name, x, o)
  local width = o.heads * (o.qk_nope_head_dim + o.qk_rope_head_dim)
  local q
  if o.q_lora_rank then
    q = net:rms_norm(name .. '/query_norm', net:linear(name .. '/query_down', x, o.q_lora_rank, { bias = o.bias }),
      { epsilon = o.epsilon })
    q = net:linear(name .. '/query_up', net:operand(name .. '/query_up/input', q), width, { bias = false })
  else
    q = net:linear(name .. '/query', x, width, { bias = false })
  end
  return net:rotary(name .. '/query_rotary', q, o.rotary, o.heads)
end

--- Multi-head latent attention (MLA) of x [N, T, H]: keys and values of all heads come from one latent vector per
--- position; all heads share the rotated part of the keys (engine/graph/operator_types.h: LatentKeyValue).
--- Example: `net:latent_attention('a', x, { heads = 2, kv_lora_rank = 4, qk_nope_head_dim = 4, qk_rope_head_dim = 2,
--- v_head_dim = 4, rotary = { net:input('cos', { 6, 1 }), net:input('sin', { 6, 1 }) } })`
---@param o trinity.LatentAttentionOptions
function Layers:latent_attention(name, x, o)
  check.tensor('layers:latent_attention', 2, 'x', x, 3)
  o = latent_options:read('layers:latent_attention', 3, 'o', o)
  local n, t, a = x.shape[1], x.shape[2], o.heads
  local input, bias = self:operand(name .. '/input', x), { bias = o.bias }
  local q = latent_queries(self, name, input, o)
  local latent = self:rms_norm(name .. '/latent_norm', self:linear(name .. '/latent', input, o.kv_lora_rank, bias),
    { epsilon = o.epsilon })
  local turned = self:rotary(name .. '/key_rotary', self:linear(name .. '/key', input, o.qk_rope_head_dim, bias),
    o.rotary, 1)
  local heads = self:linear(name .. '/key_value', self:operand(name .. '/key_value/input', latent),
    a * (o.qk_nope_head_dim + o.v_head_dim), { bias = false })
  local k, v = self:operator('LatentKeyValue', name .. '/heads', { inputs = { heads, turned },
    shapes = { { n, t, a * (o.qk_nope_head_dim + o.qk_rope_head_dim) }, { n, t, a * o.v_head_dim } },
    attributes = { num_heads = a } })
  local result = self:attention(name, q, k, v, { heads = a, causal = true, kernels = o.kernels })
  return self:linear(name .. '/output', self:operand(name .. '/output/input', result), x.shape[3], bias)
end

return Layers
