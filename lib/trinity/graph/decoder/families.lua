-- Decoder families by the model_type of their config.json: how their fields describe a network
-- (trinity.graph.decoder.network). Names, defaults and shapes follow the library transformers 5.23.0 (Hugging
-- Face, src/transformers/models/KIND/{configuration,modeling}_KIND.py).

local families = {}

local gated = { silu = 'silu', swish = 'silu', gelu = 'gelu', gelu_new = 'gelu', gelu_fast = 'gelu',
  gelu_pytorch_tanh = 'gelu', quick_gelu = 'gelu', relu = 'relu' }
local plain = { gelu = 'none', gelu_new = 'tanh', gelu_fast = 'tanh', gelu_pytorch_tanh = 'tanh', quick_gelu = 'tanh' }

local function constant(value) return function() return value end end

--- Fields that most families share. o: tied, epsilon, and differing field names.
local function common(f, o)
  o = o or {}
  return { name = f.values.model_type, layers = f:integer('num_hidden_layers|n_layer', nil, { most = 10000 }),
    hidden = f:integer(o.hidden or 'hidden_size'),
    vocabulary = f:integer 'vocab_size', tied = f:boolean('tie_word_embeddings', o.tied or false),
    norm = 'rms', epsilon = f:number('rms_norm_eps', o.epsilon or 1e-6), positions = 0, dropout = 0 }
end

local function even_width(f, about, heads)
  if about.hidden % heads ~= 0 then
    f:fail("expected hidden_size divisible by the number of attention heads, got %d and %d; use field 'head_dim'",
      about.hidden, heads)
  end
  return about.hidden / heads
end

--- Grouped attention. o: num_kv_heads (default of the family; false: the number of heads), head_dim (the kind's
--- default), bias, output_bias, qk_norm, window (a function of the layer).
local function grouped(f, about, o)
  local heads = f:integer 'num_attention_heads|n_head'
  local num_kv_heads = f:integer('num_key_value_heads', o.num_kv_heads or heads,
    { as_null = heads, quiet = not o.num_kv_heads })
  local width = f:integer('head_dim', o.head_dim or false, { as_null = false }) or even_width(f, about, heads)
  if heads % num_kv_heads ~= 0 then
    f:fail('expected num_attention_heads divisible by num_key_value_heads, got %d and %d', heads, num_kv_heads)
  end
  about.qk_rope_head_dim = 2 * math.floor(width * (o.rotary_share or 1) / 2)
  local what = { heads = heads, num_kv_heads = num_kv_heads, head_dim = width, bias = o.bias or false,
    output_bias = o.output_bias or false, qk_norm = o.qk_norm or false, softcap = o.softcap or false }
  about.attention = function(layer)
    what.window = o.window and o.window(layer) or nil
    return what
  end
end

local function one_window(f)
  local window = f:integer('sliding_window', false, { quiet = true, as_null = false })
  return window and constant(window) or nil
end

--- Returns the attention windows of the layers in layer_types, or of those that `otherwise` selects.
local function windows(f, about, window, otherwise)
  if not window then return nil end
  local types = f:list 'layer_types'
  if types and #types ~= about.layers then
    f:fail("field 'layer_types': expected one entry per layer (%d), got %d", about.layers, #types)
  end
  return function(layer)
    local sliding = otherwise(layer)
    if types then sliding = types[layer] == 'sliding_attention' end
    return sliding and window or nil
  end
end

--- Qwen's windows: from layer max_window_layers on, if use_sliding_window is true.
local function qwen_windows(f, about)
  local window = f:integer('sliding_window', 4096, { quiet = true, as_null = false })
  if not f:boolean('use_sliding_window', false) then window = nil end
  local from = f:integer('max_window_layers', 28, { least = 0, quiet = true })
  return windows(f, about, window, function(layer) return layer > from end)
end

local function gated_network(f, about, o)
  about.feed_forward = constant { feed_forward = f:integer 'intermediate_size', bias = o and o.bias or false,
    activation = f:word('hidden_act|hidden_activation', o and o.activation or 'silu', gated) }
end

function families.llama(f)
  local about = common(f)
  grouped(f, about, { bias = f:boolean('attention_bias', false), output_bias = f:boolean('attention_bias', false) })
  gated_network(f, about, { bias = f:boolean('mlp_bias', false) })
  return about
end

function families.mistral(f)
  local about = common(f)
  grouped(f, about, { num_kv_heads = 8, window = one_window(f) })
  gated_network(f, about)
  return about
end

--- Experts of every layer for which sparse(layer) is true; other layers have one feed-forward network.
local function mixture(about, experts, dense, sparse)
  about.experts, about.top_k = experts.experts, experts.top_k
  about.feed_forward = function(layer) return sparse(layer) and experts or dense end
end

function families.mixtral(f)
  local about = common(f, { epsilon = 1e-5 })
  grouped(f, about, { num_kv_heads = 8, window = one_window(f) })
  mixture(about, { experts = f:integer('num_local_experts|num_experts', 8, { most = 65536 }),
    top_k = f:integer('num_experts_per_tok', 2),
    feed_forward = f:integer 'intermediate_size', activation = f:word('hidden_act', 'silu', gated) },
    nil, constant(true))
  return about
end

function families.qwen2(f)
  local about = common(f)
  grouped(f, about, { num_kv_heads = 32, bias = true, window = qwen_windows(f, about) })
  gated_network(f, about)
  return about
end

local function qwen3_attention(f, about, num_kv_heads, head_dim)
  local bias = f:boolean('attention_bias', false)
  grouped(f, about, { num_kv_heads = num_kv_heads, head_dim = head_dim, bias = bias, output_bias = bias, qk_norm = true,
    window = qwen_windows(f, about) })
end

function families.qwen3(f)
  local about = common(f)
  qwen3_attention(f, about, 32, 128)
  gated_network(f, about)
  return about
end

function families.qwen3_moe(f)
  local about = common(f)
  qwen3_attention(f, about, 4)
  local act = f:word('hidden_act', 'silu', gated)
  local dense = { feed_forward = f:integer 'intermediate_size', activation = act }
  local experts = f:integer('num_experts|num_local_experts', 128, { least = 0, most = 65536 })
  local step, alone = f:integer('decoder_sparse_step', 1, { quiet = true }), {}
  for _, layer in ipairs(f:list 'mlp_only_layers' or {}) do alone[layer + 1] = true end
  local routed = { experts = math.max(experts, 1), top_k = f:integer('num_experts_per_tok', 8), activation = act,
    feed_forward = f:integer('moe_intermediate_size', 768), normalise = f:boolean('norm_topk_prob', false) }
  mixture(about, routed, dense, function(layer) return experts > 0 and layer % step == 0 and not alone[layer] end)
  return about
end

--- Latent attention (DeepSeek-V2, 2024, section 2.1).
local function latent_attention(f, about)
  about.qk_rope_head_dim = f:integer('qk_rope_head_dim', 64)
  if about.qk_rope_head_dim % 2 ~= 0 then
    f:fail("field 'qk_rope_head_dim': expected an even number, got %d", about.qk_rope_head_dim)
  end
  about.attention = constant { heads = f:integer 'num_attention_heads', kv_lora_rank = f:integer('kv_lora_rank', 512),
    q_lora_rank = f:integer('q_lora_rank', 1536, { as_null = false }),
    qk_nope_head_dim = f:integer('qk_nope_head_dim', 128),
    qk_rope_head_dim = about.qk_rope_head_dim, v_head_dim = f:integer('v_head_dim', 128),
    bias = f:boolean('attention_bias', false) }
end

local function deepseek(f, o)
  local about = common(f)
  latent_attention(f, about)
  local act, bias = f:word('hidden_act', 'silu', gated), o.mlp_bias and f:boolean('mlp_bias', false) or false
  local width = f:integer('moe_intermediate_size', o.width)
  local dense = { feed_forward = f:integer 'intermediate_size', activation = act, bias = bias }
  local first = f:integer('first_k_dense_replace', o.dense, { least = 0, as_null = 0 })
  mixture(about, { experts = f:integer('n_routed_experts|num_experts|num_local_experts', o.experts, { most = 65536 }),
    top_k = f:integer('num_experts_per_tok', o.top_k), feed_forward = width, activation = act, bias = bias,
    expert_groups = f:integer('n_group', 1, { quiet = true, as_null = 1 }),
    group_topk = f:integer('topk_group', 1, { quiet = true, as_null = 1 }),
    router = o.router, normalise = f:boolean('norm_topk_prob', o.normalise),
    shared = width * f:integer('n_shared_experts', o.shared, { least = 0, as_null = 0 }) }, dense,
    function(layer) return layer > first end)
  local ahead = f:integer('num_nextn_predict_layers|num_mtp_layers', 0, { least = 0, quiet = true, as_null = 0 })
  if ahead > 0 then
    f:warn('num_nextn_predict_layers = %d: multi-token-prediction modules are not in the network', ahead)
  end
  return about
end

function families.deepseek_v2(f)
  return deepseek(f, { width = 1407, dense = 0, experts = 64, shared = 2, router = 'softmax', normalise = false,
    mlp_bias = true })
end

function families.deepseek_v3(f)
  return deepseek(f, { width = 2048, dense = 3, experts = 256, shared = 1, top_k = 8, router = 'sigmoid',
    normalise = true })
end

--- A feed-forward network of two linear layers with biases, without gates.
local function plain_network(f, about, width, field)
  about.feed_forward = constant { plain = true, feed_forward = width,
    approximate = f:word(field, field == 'hidden_act' and 'gelu' or 'gelu_new', plain) }
  about.norm = 'layer'
end

function families.gpt2(f)
  local about = common(f, { tied = true, hidden = 'n_embd|hidden_size' })
  if f:boolean('add_cross_attention', false) then
    f:fail("field 'add_cross_attention': expected false (a decoder-only model), got true")
  end
  about.epsilon = f:number('layer_norm_epsilon', 1e-5)
  about.positions = f:integer('n_positions|max_position_embeddings', 1024)
  about.dropout = f:number('resid_pdrop', 0.1)
  grouped(f, about, { bias = true, output_bias = true, rotary_share = 0 })
  plain_network(f, about, f:integer('n_inner', 4 * about.hidden, { quiet = true }), 'activation_function')
  return about
end

function families.gpt_neox(f)
  local about, bias = common(f), f:boolean('attention_bias', true)
  about.epsilon, about.parallel = f:number('layer_norm_eps', 1e-5), f:boolean('use_parallel_residual', true)
  about.dropout = f:number('hidden_dropout', 0)
  local rope = f.values.rope_parameters or f.values.rope_scaling
  grouped(f, about, { bias = bias, output_bias = bias,
    rotary_share = f:number('rotary_pct', type(rope) == 'table' and rope.partial_rotary_factor or 0.25) })
  plain_network(f, about, f:integer 'intermediate_size', 'hidden_act')
  return about
end

function families.gemma2(f)
  local about, bias = common(f, { tied = true }), f:boolean('attention_bias', false)
  local function capped(name, otherwise) return not f:null(name) and f:number(name, otherwise) > 0 end
  about.post_norms, about.final_softcap = true, capped('final_logit_softcapping', 30)
  local window = f:integer('sliding_window', 4096, { quiet = true, as_null = false })
  grouped(f, about, { num_kv_heads = 4, head_dim = 256, bias = bias, output_bias = bias,
    softcap = capped('attn_logit_softcapping', 50),
    window = windows(f, about, window, function(layer) return layer % 2 == 1 end) })
  about.feed_forward = constant { feed_forward = f:integer 'intermediate_size',
    activation = f:word('hidden_activation|hidden_act', 'gelu_pytorch_tanh', gated) }
  return about
end

function families.phi3(f)
  local about = common(f, { epsilon = 1e-5 })
  about.dropout = f:number('resid_pdrop', 0)
  grouped(f, about, { window = one_window(f), rotary_share = f:number('partial_rotary_factor', 1) })
  gated_network(f, about)
  return about
end

return families
