-- Layers of today's decoders, for sequences [N, T, H]: gated feed-forward networks, mixtures of experts, latent
-- attention. Methods of what trinity.layers gives.

local arguments = require 'trinity.graph.layers.arguments'
local check = require 'trinity.base.check'
local options_of = require 'trinity.base.options'
local row_linear = require 'trinity.graph.layers.row_linear'

local begin_tensor = arguments.begin_tensor

---@class trinity.Layers
local Layers = {}

local kernels = { 'onnx', 'megatron', 'flash' }

local gated_options = options_of.declare('trinity.GatedOptions', {
  help = 'Of a feed-forward network whose values are multiplied by an activation of others (Shazeer 2020).',
  { 'feed_forward', 'integer', least = 1, needed = true, help = 'width between the linear layers' },
  { 'activation', { 'silu', 'gelu', 'relu' }, 'silu', help = 'of the gate' },
  { 'bias', 'boolean', false, help = 'of the linear layers' },
  { 'kernels', kernels, 'onnx', help = "'onnx': the activation and the product are two operators, which keep four "
    .. 'widths; else one, which keeps three' },
})

local expert_options = options_of.declare('trinity.MixtureOptions', { extends = gated_options,
  help = 'Of a mixture of experts, each a feed-forward network.',
  { 'experts', 'integer', least = 1, most = 65536, needed = true, help = 'of the layer' },
  { 'top_k', 'integer', least = 1, needed = true, help = 'experts that a token goes to' },
  { 'router', { 'softmax', 'sigmoid' }, 'softmax', help = 'what makes weights of scores' },
  { 'normalise', 'boolean', true, help = 'weights of the chosen experts add up to one' },
  { 'shared', 'integer', 0, least = 0, help = 'width of a network beside the experts, which all tokens pass' },
  { 'gated', 'boolean', true, help = 'whether an expert has gates, or is two linear layers with a GELU between them' },
  { 'apart', 'boolean', false, help = 'without gates: GELU and the weights of rows are two operators with any kernels, '
    .. 'as in Megatron-LM (core/transformer/moe/experts.py), whose backward keeps the result of the first' },
  { 'divisible_by', 'integer', 1, least = 1, help = 'rows of an expert are rounded up to a multiple of it' },
})

local latent_options = options_of.declare('trinity.LatentAttentionOptions', {
  help = 'Of attention whose keys and values come from a vector a position (DeepSeek-V2, 2024, section 2.1).',
  { 'heads', 'integer', least = 1, needed = true, help = 'of queries, keys and values' },
  { 'kv_lora_rank', 'integer', least = 1, needed = true, help = 'width of that vector' },
  { 'q_lora_rank', 'integer', least = 1, otherwise = 'queries come from x', help = 'width of another for queries' },
  { 'qk_nope_head_dim', 'integer', least = 0, needed = true,
    help = "of a head's queries and keys: elements that are not rotated" },
  { 'qk_rope_head_dim', 'integer', least = 1, needed = true,
    help = 'the rest, which is turned; of keys all heads share it' },
  { 'v_head_dim', 'integer', least = 1, needed = true, help = "of a head's values" },
  { 'rotary', 'tensors', needed = true, help = 'tables of cosines and sines' },
  { 'bias', 'boolean', false, help = 'of the products of x and of the result' },
  { 'epsilon', 'number', 1e-6, least = 0, help = 'of the normalisations' },
  { 'kernels', kernels, 'onnx', help = 'as of layers:attention' },
})

-- The GELU of values, with weights of rows.
local function activate_plain(net, name, parts, o)
  if o.kernels ~= 'onnx' and not o.apart then
    return (net:operator('WeightedGelu', name, { inputs = parts, shapes = { parts[1].shape } }))
  end
  return net:mul(name .. '/weighted', net:gelu(name .. '/gelu', parts[1]), parts[2])
end

-- The product of the gate's activation with the values (and weights of rows).
local function activate(net, name, parts, o)
  local fused = o.activation == 'silu' and 'SwiGLU' or 'GeGLU'
  if o.kernels ~= 'onnx' and o.activation ~= 'relu' then
    return (net:operator(fused, name, { inputs = parts, shapes = { parts[1].shape } }))
  end
  local gates = { silu = net.swish, gelu = net.gelu, relu = net.relu }
  local product = net:mul(name .. '/product', gates[o.activation](net, name .. '/gate', parts[1]), parts[2])
  return parts[3] and net:mul(name .. '/weighted', product, parts[3]) or product
end

--- down(activation(gate(x)) * up(x)): x [..., H] to [..., H].
---@param name string
---@param x trinity.Tensor
---@param o trinity.GatedOptions
---@return trinity.Tensor
function Layers:gated_feed_forward(name, x, o)
  begin_tensor('layers:gated_feed_forward', name, x)
  o = gated_options:read('layers:gated_feed_forward', 3, 'o', o)
  local bias, input = { bias = o.bias }, self:operand(name .. '/input', x)
  local gate = self:linear(name .. '/gate', input, o.feed_forward, bias)
  local up = self:linear(name .. '/up', input, o.feed_forward, bias)
  local product = activate(self, name .. '/activation', { gate, up }, o)
  return row_linear(self, name .. '/down', product, x.shape[#x.shape], o)
end

-- Chooses experts for x [N, T, H]: weights and numbers [N, T, top_k].
local function route(net, name, x, o)
  local scores = net:linear(name .. '/scores', x, o.experts, { bias = false })
  local shares = o.router == 'softmax' and net:softmax(name .. '/softmax', scores, { axis = -1 })
    or net:sigmoid(name .. '/sigmoid', scores)
  local weights, numbers = net:top_k(name .. '/top_k', shares, o.top_k)
  if o.normalise and o.top_k > 1 then
    weights = net:div(name .. '/weights', weights, net:reduce_sum(name .. '/sum', weights, #weights.shape))
  end
  return weights, numbers
end

--- A mixture of experts for x [N, T, H], load balanced and nothing dropped: every expert gets top_k / experts of all
--- choices, rounded up. All experts of a layer are one operator a product (Einsum with weights [E, ., .]): '/experts/
--- gate' (of gated ones), '/experts/up', '/experts/down' between '/dispatch' and '/combine'; what weighs a result is
--- multiplied in between, so that dispatch and combination keep nothing. x [N, T, H] to [N, T, H].
---@param name string
---@param x trinity.Tensor
---@param o trinity.MixtureOptions
---@return trinity.Tensor
function Layers:mixture_of_experts(name, x, o)
  begin_tensor('layers:mixture_of_experts', name, x)
  check.tensor('layers:mixture_of_experts', 2, 'x', x, 3)
  o = expert_options:read('layers:mixture_of_experts', 3, 'o', o)
  if o.top_k > o.experts then
    check.refuse('layers:mixture_of_experts', 'option', 'top_k', 'expected at most the %d experts, got %d', o.experts,
      o.top_k)
  end
  local e, f, h = o.experts, o.feed_forward, x.shape[3]
  local rows = math.ceil(x.shape[1] * x.shape[2] * o.top_k / (e * o.divisible_by)) * o.divisible_by
  local about = { experts = e, experts_per_token = o.top_k }
  local weights, numbers = route(self, name .. '/router', x, o)
  local tokens, shares = self:operator('ExpertDispatch', name .. '/dispatch',
    { inputs = { x, weights, numbers }, shapes = { { e, rows, h }, { e, rows, 1 } }, attributes = about })
  local function product(part, of, from, to)
    return (self:operator('Einsum', name .. '/experts/' .. part, { inputs = { of }, shapes = { { e, rows, to } },
      attributes = { equation = 'eci,eio->eco', experts = e, experts_per_token = o.top_k },
      parameters = { self:weight('weight', { e, from, to }) } }))
  end
  local input = self:operand(name .. '/experts/input', tokens)
  local at = name .. '/experts/activation'
  local inner = o.gated and activate(self, at, { product('gate', input, h, f), product('up', input, h, f), shares }, o)
    or activate_plain(self, at, { product('up', input, h, f), shares }, o)
  local results = product('down', self:operand(name .. '/experts/down/input', inner), f, h)
  local sum = self:operator('ExpertCombine', name .. '/combine', { inputs = { results, numbers }, shapes = { x.shape },
    attributes = about })
  if o.shared == 0 then return sum end
  return self:add(name .. '/sum', sum, self:gated_feed_forward(name .. '/shared', x,
    { feed_forward = o.shared, activation = o.activation, bias = o.bias, kernels = o.kernels }))
end

-- Queries [N, T, heads (qk_nope_head_dim + qk_rope_head_dim)] of x; the last elements of every head are rotated.
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

--- Attention of x [N, T, H] to itself by way of a latent vector a position, from which all heads' keys and values are
--- made; the part of the keys that is turned is one for all heads (engine/graph/operator_types.h: LatentKeyValue).
---@param name string
---@param x trinity.Tensor
---@param o trinity.LatentAttentionOptions
---@return trinity.Tensor
function Layers:latent_attention(name, x, o)
  begin_tensor('layers:latent_attention', name, x)
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
