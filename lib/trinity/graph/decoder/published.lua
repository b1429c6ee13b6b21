-- Published decoders by name: the fields of their config.json that define the network, their source, and the published
-- number of weights.

local published = {}

--- The fields of Llama 3 and 3.1. Source: "The Llama 3 Herd of Models" (2024), table 3, and the config.json of
--- meta-llama/Meta-Llama-3-8B, -70B and Llama-3.1-405B (vocabulary, context).
local function llama(layers, hidden, feed_forward, heads, context)
  return { model_type = 'llama', num_hidden_layers = layers, hidden_size = hidden, intermediate_size = feed_forward,
    num_attention_heads = heads, num_key_value_heads = 8, vocab_size = 128256, max_position_embeddings = context,
    rms_norm_eps = 1e-5 }
end
published['llama-3-8b'] = { parameters = 8030261248, config = llama(32, 4096, 14336, 32, 8192) }
published['llama-3-70b'] = { parameters = 70553706496, config = llama(80, 8192, 28672, 64, 8192) }
published['llama-3.1-405b'] = { parameters = 405853388800, config = llama(126, 16384, 53248, 128, 131072) }

--- Source: "Mistral 7B" (2023), table 1, and config.json of mistralai/Mistral-7B-v0.1.
published['mistral-7b'] = { parameters = 7241732096, config = { model_type = 'mistral', num_hidden_layers = 32,
  hidden_size = 4096, intermediate_size = 14336, num_attention_heads = 32, num_key_value_heads = 8, vocab_size = 32000,
  max_position_embeddings = 32768, sliding_window = 4096, rms_norm_eps = 1e-5 } }

--- Source: "Mixtral of Experts" (2024), table 1, and config.json of mistralai/Mixtral-8x7B-v0.1; of
--- mistralai/Mixtral-8x22B-v0.1.
local function mixtral(layers, hidden, feed_forward, heads, context)
  return { model_type = 'mixtral', num_hidden_layers = layers, hidden_size = hidden, intermediate_size = feed_forward,
    num_attention_heads = heads, num_key_value_heads = 8, num_local_experts = 8, num_experts_per_tok = 2,
    vocab_size = 32000, max_position_embeddings = context, rms_norm_eps = 1e-5 }
end
published['mixtral-8x7b'] = { parameters = 46702792704, active = 12879925248,
  config = mixtral(32, 4096, 14336, 32, 32768) }
published['mixtral-8x22b'] = { parameters = 140620634112, config = mixtral(56, 6144, 16384, 48, 65536) }

--- Source: "Qwen3 Technical Report" (2025), tables 1 and 2, and config.json of Qwen/Qwen3-8B and Qwen/Qwen3-30B-A3B.
published['qwen3-8b'] = { parameters = 8190735360, config = { model_type = 'qwen3', num_hidden_layers = 36,
  hidden_size = 4096, intermediate_size = 12288, num_attention_heads = 32, num_key_value_heads = 8, head_dim = 128,
  vocab_size = 151936, max_position_embeddings = 40960, rms_norm_eps = 1e-6 } }
published['qwen3-30b-a3b'] = { parameters = 30532122624, config = { model_type = 'qwen3_moe', num_hidden_layers = 48,
  hidden_size = 2048, intermediate_size = 6144, moe_intermediate_size = 768, num_experts = 128, num_experts_per_tok = 8,
  norm_topk_prob = true, num_attention_heads = 32, num_key_value_heads = 4, head_dim = 128, vocab_size = 151936,
  max_position_embeddings = 40960, rms_norm_eps = 1e-6 } }

--- Source: "DeepSeek-V3 Technical Report" (2024), section 4.2, and config.json of deepseek-ai/DeepSeek-V3. Without its
--- module that predicts a second token (14 billion weights) and 14,848 corrections of its routers' scores, which are
--- no weights that gradients train.
published['deepseek-v3'] = { parameters = 671026404352, active = 37552282624, config = { model_type = 'deepseek_v3',
  num_hidden_layers = 61, hidden_size = 7168, intermediate_size = 18432, moe_intermediate_size = 2048,
  n_routed_experts = 256, n_shared_experts = 1, num_experts_per_tok = 8, n_group = 8, topk_group = 4,
  first_k_dense_replace = 3,
  num_attention_heads = 128, q_lora_rank = 1536, kv_lora_rank = 512, qk_nope_head_dim = 128, qk_rope_head_dim = 64,
  v_head_dim = 128, vocab_size = 129280, max_position_embeddings = 163840, rms_norm_eps = 1e-6 } }

--- Source: "Gemma 2: Improving Open Language Models at a Practical Size" (2024), tables 1 and 2, and config.json of
--- google/gemma-2-9b.
published['gemma-2-9b'] = { parameters = 9241705984, config = { model_type = 'gemma2', num_hidden_layers = 42,
  hidden_size = 3584, intermediate_size = 14336, num_attention_heads = 16, num_key_value_heads = 8, head_dim = 256,
  vocab_size = 256000, max_position_embeddings = 8192, sliding_window = 4096, tie_word_embeddings = true,
  rms_norm_eps = 1e-6 } }

--- Source: "Language Models are Few-Shot Learners" (2020), table 2.1; vocabulary and layers of GPT-2.
--- Table D.1 states 174,600 million weights.
published['gpt-3-175b'] = { parameters = 174604259328, config = { model_type = 'gpt2', n_layer = 96, n_embd = 12288,
  n_head = 96, vocab_size = 50257, n_positions = 2048 } }

return published
