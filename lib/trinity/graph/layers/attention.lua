-- Attention layers and transformer blocks for sequences [N, T, H]: methods of trinity.Layers.

local check = require 'trinity.base.check'
local options_of = require 'trinity.base.options'
local row_linear = require 'trinity.graph.layers.row_linear'
local util = require 'trinity.base.util'

---@class trinity.Layers
local Layers = {}

local attention_options = options_of.declare('trinity.AttentionOptions', {
  help = 'Options of attention layers and transformer blocks; the methods state which ones they use.',
  { 'heads', 'integer', least = 1, help = 'attention heads; needed except by feed_forward' },
  { 'num_kv_heads', 'integer', least = 1, otherwise = 'heads', help = 'KV heads' },
  { 'head_dim', 'integer', least = 1, otherwise = 'width / heads', help = 'width of a head of queries and keys' },
  { 'mask', 'tensor', help = 'added to the scores' },
  { 'dropout', 'number', 0, least = 0, most = 1, help = 'dropout probability of attention probabilities and results' },
  { 'causal', 'boolean', false, help = 'causal mask: a position attends to itself and earlier ones only' },
  { 'window', 'integer', least = 1, otherwise = 'all', help = 'sliding window: number of nearest positions to attend '
    .. 'to' },
  { 'softcap', 'boolean', false, help = 'bound scores by tanh' },
  { 'bias', 'boolean', true, help = 'biases of the projections' },
  { 'output_bias', 'boolean', otherwise = 'bias', help = 'bias of the output projection' },
  { 'qk_norm', 'boolean', false, help = 'normalize every head of queries and keys (QK norm)' },
  { 'fused', 'boolean', false, help = 'one fused matmul for queries, keys and values' },
  { 'rotary', 'tensors', help = 'RoPE: tables of cosines and sines' },
  { 'feed_forward', 'integer', least = 1, help = 'hidden width of the feed-forward network' },
  { 'approximate', 'string', 'none', help = 'approximation of the GELU: none or tanh' },
  { 'norm_first', 'boolean', false, help = 'normalize before the sublayers (pre-norm)' },
  { 'epsilon', 'number', 1e-5, least = 0, help = 'epsilon of the normalizations' },
  { 'kernels', options_of.words('trinity.Kernels', { 'onnx', 'megatron', 'flash' }), 'onnx',
    help = 'fusion and kept activations: as in ONNX, as in Megatron-LM, or the latter with flash attention' },
  { 'fused_softmax', 'boolean', true,
    help = "with kernels = 'megatron': fuse scale, mask and softmax into one kernel (see attention)" },
})

-- Reads the options; those named are required.
local function read_attention(owner, place, o, ...)
  return check.needed(owner, attention_options:read(owner, place, 'o', check.argument(owner, place, 'o', o, 'table')),
    ...)
end

-- Returns whether rows of query heads that share a KV head are interleaved by position, so that a part of the sequence
-- is a contiguous range of rows. With one KV head, queries need no rearrangement.
local function by_position(heads, groups) return groups > 1 and groups < heads end

--- Reshapes queries [N, T, H] to [N, A, T, D] for A heads, or to [N, G, R T, D] for G KV heads, each shared by R = A /
--- G query heads in one matmul.
local function query_heads(net, name, q, heads, groups)
  local n, t, width = q.shape[1], q.shape[2], q.shape[3] / heads
  if not by_position(heads, groups) then
    return net:transpose(name .. '/transpose', net:reshape(name .. '/heads', q, { n, t, heads, width }), { 1, 3, 2, 4 })
  end
  local shared = heads / groups
  local split = net:reshape(name .. '/heads', q, { n, t, groups, shared, width })
  local turned = net:transpose(name .. '/transpose', split, { 1, 3, 2, 4, 5 })
  return net:reshape(name .. '/rows', turned, { n, groups, shared * t, width })
end

--- Reverses query_heads: [N, A, T, D] or [N, G, R T, D] to [N, T, H].
local function join_heads(net, name, x, heads, groups, t)
  local n, width = x.shape[1], x.shape[4]
  if not by_position(heads, groups) then
    x = net:transpose(name .. '/transpose', x, { 1, 3, 2, 4 })
  else
    local split = net:reshape(name .. '/rows', x, { n, groups, t, heads / groups, width })
    x = net:transpose(name .. '/transpose', split, { 1, 3, 2, 4, 5 })
  end
  return net:reshape(name .. '/join', x, { n, t, heads * width })
end

local function divisors_of(whole)
  local list = {}
  for part = 1, math.min(whole, 256) do
    if whole % part == 0 then list[#list + 1] = part end
  end
  return table.concat(list, ', ')
end

local function check_heads(name, width, heads, groups)
  if width % heads == 0 and heads % groups == 0 then return end
  local of, divisors = 'heads', divisors_of(width)
  if width % heads == 0 then of, divisors = 'KV heads', divisors_of(heads) end
  util.fail("attention '%s': expected a width divisible by heads and heads divisible by KV heads, got width %d, %d "
    .. "heads and %d KV heads; %s may be %s", name,
    width, heads, groups, of, divisors)
end

-- Flash attention as one operator, which keeps the log-sum-exp of each row and skips blocks outside of the mask (Dao et
-- al. 2022).
local function flash_attention(net, name, parts, o)
  local q, k, v = unpack(parts)
  if o.mask then check.refuse('layers:attention', 'option', 'mask', "cannot be combined with kernels = 'flash'") end
  local groups, shape = o.num_kv_heads or o.heads, { q.shape[1], q.shape[2], 0 }
  shape[3] = v.shape[3] / groups * o.heads
  return (net.builder:add { name = name, type = 'Attention', inputs = parts,
    attributes = { q_num_heads = o.heads, kv_num_heads = groups, is_causal = o.causal and 1 or 0, log_sum_exp = 1,
      window = o.window and o.window < k.shape[2] and o.window or nil, softcap = o.softcap and 1 or nil },
    outputs = { { shape = shape, dtype = q.dtype },
      { shape = { shape[1], o.heads, shape[2] }, dtype = 'float32', gradient = false } } })
end

-- Softmax as Megatron-LM computes it if its fused kernel of scale, mask and softmax does not support the shape: in 32
-- bits, after a scale and a masked_fill, each a kernel (fused_softmax.py, forward_torch_softmax). Here the Softmax
-- operator has the mask, so the fill only has the kernel's cost.
local function softmax_apart(net, name, scores, width, attributes)
  local own = { own_kernel = 1 }
  local wide = net:operator('Cast', name .. '/float32', { inputs = { scores }, shapes = { scores.shape },
    dtype = 'float32', attributes = own })
  local scaled = net:operator('Mul', name .. '/scaled', { inputs = { wide, net:constant(name .. '/scale', width ^ -0.5,
    { 1 }, 'float32') }, shapes = { scores.shape }, dtype = 'float32', attributes = own })
  local filled = net:operator('Where', name .. '/filled', { inputs = { net:constant(name .. '/seen', 1, { 1 }, 'bool'),
    scaled, net:constant(name .. '/fill', -10000, { 1 }, 'float32') }, shapes = { scores.shape }, dtype = 'float32',
    attributes = own })
  local shares = net:operator('Softmax', name, { inputs = { filled }, shapes = { scores.shape }, dtype = 'float32',
    attributes = attributes })
  return (net:operator('Cast', name .. '/narrow', { inputs = { shares }, shapes = { scores.shape },
    dtype = scores.dtype, attributes = own }))
end

--- Scaled dot-product attention as ONNX operators: queries [N, T, A D], keys [N, S, K D] and values [N, S, K V] to [N,
--- T, A V]. Queries are scaled before the matmul, which is cheaper than scaling its result. o: heads (A),
--- num_kv_heads (K; default heads), mask (added to the scores [N, A, T, S], or where 1 < K < A [N, K, A / K T, S] with
--- the rows of a position together), dropout (of the probabilities), causal and window (each position attends to
--- earlier ones, or to the nearest of them: attributes of the Softmax; the matmuls are computed in full except with
--- kernels = 'flash'), softcap, fused_softmax (with kernels = 'megatron': Megatron-LM's kernel for scale, mask and
--- softmax takes sequences of 17 to 2,048 whose heads times batch on a device are a multiple of 4; otherwise three
--- kernels compute in 32 bits). Example: `net:attention('a', x, x, x, { heads = 2 })`
---@param k trinity.Tensor
---@param o trinity.AttentionOptions
function Layers:attention(name, q, k, v, o)
  check.tensor('layers:attention', 3, 'k', k, 3)
  o = read_attention('layers:attention', 5, o, 'heads')
  local heads, groups = o.heads, o.num_kv_heads or o.heads
  check_heads(name, q.shape[3], heads, groups)
  if v.shape[3] % groups ~= 0 then check_heads(name, v.shape[3], groups, groups) end
  if o.kernels == 'flash' then return flash_attention(self, name, { q, k, v }, o) end
  local n, t, s, width = q.shape[1], q.shape[2], k.shape[2], q.shape[3] / heads
  local masked = o.kernels == 'megatron'
  if not masked then -- otherwise the softmax operator scales
    q = self:mul(name .. '/q/scaled', q, self:constant(name .. '/q/scale', width ^ -0.5, { 1 }))
  end
  local queries = query_heads(self, name .. '/q', q, heads, groups)
  local keys = self:transpose(name .. '/k/transpose',
    self:reshape(name .. '/k/heads', k, { n, s, groups, width }), { 1, 3, 4, 2 })
  local values = self:transpose(name .. '/v/transpose',
    self:reshape(name .. '/v/heads', v, { n, s, groups, v.shape[3] / groups }), { 1, 3, 2, 4 })
  local scores = self:matmul(name .. '/scores', queries, keys)
  if o.softcap then scores = self:tanh(name .. '/softcap', scores) end
  if o.mask then scores = self:add(name .. '/masked', scores, o.mask) end
  if #scores.shape ~= 4 then
    check.refuse('layers:attention', 'option', 'mask', 'expected at most 4 dimensions, got %d', #scores.shape)
  end
  local attributes = { axis = -1, causal = o.causal and 1 or 0, window = o.window and o.window < s and o.window or nil,
    rows_of_position = by_position(heads, groups) and heads / groups or nil }
  local shares = masked and not o.fused_softmax and softmax_apart(self, name .. '/softmax', scores, width, attributes)
    or self:softmax(name .. '/softmax', scores, attributes)
  shares = self:drop(name .. '/dropout', shares, o.dropout, masked)
  return join_heads(self, name .. '/context', self:matmul(name .. '/context', shares, values), heads, groups, t)
end

-- Normalizes every head of x [N, T, H], with one scale for all heads.
local function norm_heads(net, name, x, heads, o)
  local parts = net:reshape(name .. '/heads', x, { x.shape[1], x.shape[2], heads, x.shape[3] / heads })
  return net:reshape(name .. '/joined', net:rms_norm(name, parts, { epsilon = o.epsilon }), x.shape)
end

-- Returns queries, keys and values [N, T, ...] of x.
local function project(net, name, x, width, narrow, o)
  local bias = { bias = o.bias }
  x = net:operand(name .. '/input', x)
  if o.fused then
    local all = net:linear(name .. '/qkv', x, width + 2 * narrow, bias)
    return unpack(net:split(name .. '/split', all, 3, { width, narrow, narrow }))
  end
  return net:linear(name .. '/query', x, width, bias), net:linear(name .. '/key', x, narrow, bias),
    net:linear(name .. '/value', x, narrow, bias)
end

--- Self-attention of x [N, T, H] with its projections. o: as for attention; head_dim (default H over the heads), bias
--- (default true), output_bias, fused: one matmul for queries, keys and values; qk_norm: RMS normalization of every
--- head of queries and keys; rotary = { cos, sin }: RoPE tables [T, width / 2] (Su et al. 2021); if they are narrower
--- than the heads, only the first elements are rotated. Example: `net:self_attention('a', x, { heads = 2 })`
---@param o trinity.AttentionOptions
function Layers:self_attention(name, x, o)
  check.tensor('layers:self_attention', 2, 'x', x, 3)
  o = read_attention('layers:self_attention', 3, o, 'heads')
  local groups = o.num_kv_heads or o.heads
  local width = o.head_dim and o.head_dim * o.heads or x.shape[3]
  check_heads(name, width, o.heads, groups)
  local q, k, v = project(self, name, x, width, width / o.heads * groups, o)
  if o.qk_norm then
    q = norm_heads(self, name .. '/query_norm', q, o.heads, o)
    k = norm_heads(self, name .. '/key_norm', k, groups, o)
  end
  if o.rotary then
    q = self:rotary(name .. '/query_rotary', q, o.rotary, o.heads)
    k = self:rotary(name .. '/key_rotary', k, o.rotary, groups)
  end
  local bias = o.output_bias
  if bias == nil then bias = o.bias end
  return row_linear(self, name .. '/output', self:attention(name, q, k, v, o), x.shape[3],
    { kernels = o.kernels, bias = bias })
end

--- Rotates the heads of x [N, T, H] by RoPE: tables = { cos, sin }.
--- Example: `net:rotary('r', x, { net:input('cos', { 6, 2 }), net:input('sin', { 6, 2 }) }, 2)`
function Layers:rotary(name, x, tables, heads)
  return (self:operator('RotaryEmbedding', name, { inputs = { x, tables[1], tables[2] }, shapes = { x.shape },
    attributes = { num_heads = heads } }))
end

--- Feed-forward network: two linear layers with a GELU between them. o: feed_forward (hidden width), approximate, bias
--- (default true). Example: `net:feed_forward('f', x, { feed_forward = 16 })`
---@param o trinity.AttentionOptions
function Layers:feed_forward(name, x, o)
  o = read_attention('layers:feed_forward', 3, o, 'feed_forward')
  local inner = self:linear(name .. '/inner', self:operand(name .. '/input', x), o.feed_forward,
    { bias = o.bias })
  inner = self:gelu(name .. '/gelu', inner, { approximate = o.approximate })
  return row_linear(self, name .. '/outer', inner, x.shape[#x.shape], { kernels = o.kernels, bias = o.bias })
end

--- Transformer block: self-attention and a feed-forward network, each with a residual connection. o: as for
--- self_attention and feed_forward; norm_first: normalization before the sublayers (GPT-2, ViT) instead of after the
--- sum (BERT); epsilon; dropout: of attention probabilities and of both results.
--- Example: `net:transformer_block('b', x, { heads = 2, feed_forward = 16 })`
---@param o trinity.AttentionOptions
function Layers:transformer_block(name, x, o)
  o = read_attention('layers:transformer_block', 3, o, 'heads', 'feed_forward')
  local epsilon = { epsilon = o.epsilon }
  local function residual(part, layer, norm)
    local inner = o.norm_first and self:layer_norm(norm, x, epsilon) or x
    inner = self:drop(part .. '/output_dropout', layer(self, part, inner, o), o.dropout, o.kernels ~= 'onnx')
    x = self:add(part .. '/residual', x, inner)
    if not o.norm_first then x = self:layer_norm(norm, x, epsilon) end
  end
  residual(name .. '/attention', self.self_attention, name .. '/norm_1')
  residual(name .. '/feed_forward', self.feed_forward, name .. '/norm_2')
  return x
end

return Layers
