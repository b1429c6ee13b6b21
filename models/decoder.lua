-- A decoder by numbers: what published tables state of GPT, Llama, mixtures of experts and DeepSeek. Layers are
-- called layer_1, layer_2, ...; config.json files come to the same networks (lib/trinity/graph/decoder).

local layers = require 'trinity.graph.layers'
local network = require 'trinity.graph.decoder.network'
local util = require 'trinity.base.util'

local function count(default, help, least)
  return { default = default, help = help, min = least or 0, integer = true }
end

local kernels, norms, biases = { onnx = true, megatron = true, flash = true }, { rms = true, layer = true },
  { none = true, qkv = true, all = true }

local function attention_of(o, width)
  if o.kv_lora_rank > 0 then
    return { heads = o.heads, kv_lora_rank = o.kv_lora_rank, q_lora_rank = o.q_lora_rank > 0 and o.q_lora_rank or nil,
      qk_nope_head_dim = o.qk_nope_head_dim,
      qk_rope_head_dim = o.qk_rope_head_dim, v_head_dim = o.v_head_dim }
  end
  return { heads = o.heads, num_kv_heads = o.num_kv_heads > 0 and o.num_kv_heads or o.heads, head_dim = width,
    bias = o.bias ~= 'none', output_bias = o.bias == 'all', qk_norm = o.qk_norm }
end

local function feed_forward_of(o, layer)
  if o.experts > 0 and layer > o.dense_layers and (layer - o.dense_layers - 1) % o.moe_layer_freq == 0 then
    return { feed_forward = o.expert_feed_forward > 0 and o.expert_feed_forward or o.feed_forward, experts = o.experts,
      top_k = o.experts_per_token, expert_groups = math.max(1, o.expert_groups),
      group_topk = o.group_topk > 0 and o.group_topk or nil, gated = o.gated, shared = o.shared > 0 and o.shared or nil,
      router = o.kv_lora_rank > 0 and 'sigmoid' or nil, apart = o.apart, divisible_by = o.expert_rows_multiple }
  end
  if o.gated then return { feed_forward = o.feed_forward, bias = o.bias == 'all' } end
  return { plain = true, feed_forward = o.feed_forward, bias = o.bias == 'all', approximate = 'tanh' }
end

local function check(o)
  layers.choice('decoder', 'kernels', o.kernels, kernels)
  layers.choice('decoder', 'norm', o.norm, norms)
  layers.choice('decoder', 'bias', o.bias, biases)
  if o.hidden % o.heads ~= 0 and o.head_dim == 0 and o.kv_lora_rank == 0 then
    util.fail("model 'decoder': hidden = %d is no multiple of heads = %d: give head_dim", o.hidden, o.heads)
  end
  if o.positions > 0 and o.sequence > o.positions then
    util.fail("model 'decoder': expected positions of at least sequence = %d, got %d", o.sequence, o.positions)
  end
  if o.experts > 0 and (o.experts_per_token < 1 or o.experts_per_token > o.experts) then
    util.fail("model 'decoder': experts_per_token: expected 1 to %d (experts), got %d", o.experts, o.experts_per_token)
  end
end

return {
  help = 'a decoder by numbers: GPT, Llama, mixtures of experts, DeepSeek',
  optimizer = 'adam',
  float8 = true,
  options = {
    batch_size = count(1, 'sequences per step', 1),
    sequence = count(2048, 'tokens of a sequence', 1),
    layers = count(32, 'layers', 1),
    hidden = count(4096, 'hidden size', 1),
    heads = count(32, 'attention heads', 1),
    num_kv_heads = count(0, 'KV heads (0: heads)'),
    head_dim = count(0, 'of queries and keys (0: hidden / heads)'),
    feed_forward = count(11008, 'inner width of the feed-forward network', 1),
    gated = { default = true, help = 'whether a gate multiplies the inner values (SwiGLU)' },
    bias = { default = 'none', help = 'none, qkv, or all linear layers' },
    norm = { default = 'rms', help = 'rms or layer' },
    qk_norm = { default = false, help = 'queries and keys are normalised head by head' },
    post_norms = { default = false, help = 'results of attention and feed-forward network are normalised, too' },
    vocabulary = count(32000, 'tokens known', 1),
    tied = { default = false, help = 'whether the output has the weights of the token embedding' },
    positions = count(0, 'rows of a learned table of positions (0: none, rotary)'),
    dropout = { default = 0, help = 'ratio of all dropouts (0: none)', min = 0, max = 1 },
    experts = count(0, 'of a layer (0: none)'),
    experts_per_token = count(0, 'that a token is sent to'),
    expert_groups = count(0, 'of experts, of which a token uses group_topk (0: one)'),
    group_topk = count(0, 'groups whose experts a token may use (0: all)'),
    expert_feed_forward = count(0, 'inner width of an expert (0: feed_forward)'),
    expert_rows_multiple = count(1, 'tokens of an expert are rounded up to a multiple', 1),
    apart = { default = false, help = "experts without gates: as layers:mixture_of_experts has it" },
    shared = count(0, 'inner width of a shared expert (0: none)'),
    dense_layers = count(0, 'first layers without experts'),
    moe_layer_freq = count(1, 'one of moe_layer_freq layers after dense_layers has experts', 1),
    kv_lora_rank = count(0, "width of latent keys and values, as DeepSeek's (0: none)"),
    q_lora_rank = count(0, 'width of latent queries'),
    qk_nope_head_dim = count(128, 'with kv_lora_rank: of a head without rotary'),
    qk_rope_head_dim = count(64, 'with kv_lora_rank: of a head with rotary'),
    v_head_dim = count(128, 'with kv_lora_rank: of a head of values'),
    further = count(0, 'tokens predicted beyond the next, each by a layer of its own (DeepSeek-V3: 1)'),
    kernels = { default = 'flash', help = 'onnx, megatron or flash: what is one operator, and so what is kept' },
    fused_loss = { default = false, help = 'the loss reads logits in 16 bits: no copy in float32' },
    logit_bytes = count(0, "extra bytes per logit that the loss keeps (Megatron-LM's compiled loss: 6)"),
  },
  build = function(o)
    check(o)
    local width = o.head_dim > 0 and o.head_dim or math.floor(o.hidden / o.heads)
    local rotary = o.kv_lora_rank > 0 and o.qk_rope_head_dim or width
    return network.build({ name = 'decoder', layers = o.layers, hidden = o.hidden, vocabulary = o.vocabulary,
      tied = o.tied, positions = o.positions, norm = o.norm, epsilon = 1e-5, dropout = o.dropout,
      post_norms = o.post_norms, further = o.further,
      qk_rope_head_dim = o.positions > 0 and 0 or 2 * math.floor(rotary / 2),
      attention = function() return attention_of(o, width) end,
      feed_forward = function(layer) return feed_forward_of(o, layer) end },
      { batch_size = o.batch_size, sequence = o.sequence, dtype = o.dtype, kernels = o.kernels,
        fused_loss = o.fused_loss, logit_bytes = o.logit_bytes })
  end,
}
