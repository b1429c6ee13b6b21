-- Rules of Megatron-LM (trinity.job.rules): the network, precision, recomputation, offloading, graphs, experts.

return [[
=> sized = not use_checkpoint_args and not heterogeneous_layers_config_path and not
  heterogeneous_layers_config_encoded_json
layers-once args:1305 num_layers and encoder_num_layers
layers-given args:1309 num_layers == nil and encoder_num_layers == nil and sized | The layers must be given.
=> num_layers = num_layers or encoder_num_layers
hidden-given args:2005 hidden_size == nil and sized | The hidden size must be given.
heads-given args:2005 num_attention_heads == nil and sized | The attention heads must be given.
positions-given args:2005 max_position_embeddings == nil and sized | The positions must be given.
ffn-gated changed args:1327 ffn_hidden_size == nil and swiglu and hidden_size | With SwiGLU and no FFN size given, the
  FFN size becomes 8/3 of the hidden size rounded down to a multiple of 64. => ffn_hidden_size = floor(8 * hidden_size
  / 3 / 64) * 64
=> if not ffn_hidden_size and hidden_size then ffn_hidden_size = 4 * hidden_size end
hidden-heads args:1332 kv_channels == nil and not multiple(hidden_size, num_attention_heads)
=> if not kv_channels and hidden_size and num_attention_heads and num_attention_heads > 0 then kv_channels =
  floor(hidden_size / num_attention_heads) end
sequence-once args:1347 seq_length and encoder_seq_length
sequence-given args:1350 sized and seq_length == nil and encoder_seq_length == nil | The sequence must be given.
=> seq_length = seq_length or encoder_seq_length
positions-sequence args:1354 max_position_embeddings and seq_length and max_position_embeddings < seq_length
positions-decoder args:1358 max_position_embeddings and decoder_seq_length and max_position_embeddings <
  decoder_seq_length
clip-alpha args:1615 qk_clip and not (qk_clip_alpha > 0 and qk_clip_alpha < 1) | The exponent of clipped queries and
  keys is between 0 and 1.
clip-threshold args:1617 qk_clip and not positive(qk_clip_threshold)
rotary-old changed args:1627 use_rotary_position_embeddings and position_embedding_type ~= 'rope' | The old flag of
  rotary embeddings sets the type of position embeddings to rope. => position_embedding_type = 'rope'
no-positions args:1634 not add_position_embedding and position_embedding_type ~= 'rope'
relative-te args:1639 position_embedding_type == 'relative' and transformer_impl ~= 'transformer_engine'
mrope-section args:1644 position_embedding_type == 'mrope' and not mrope_section
=> if position_embedding_type ~= 'rope' then apply_rope_fusion = false end; if not add_bias_linear then
  bias_gelu_fusion = false else add_qkv_bias = true end
latent-groups args:1974 multi_latent_attention and group_query_attention
down-fusion args:1977 mla_down_proj_fusion and not multi_latent_attention
heterogeneous-latent utils:301 heterogeneous_layers_config_path and multi_latent_attention
relu-gated utils:321 squared_relu and swiglu
geglu-gated utils:324 quick_geglu and swiglu
groups-removed ignored utils:330 num_query_groups and not group_query_attention and num_query_groups ~=
  num_attention_heads and given('num_query_groups') | The number of key-value groups counts only along with the flag
  of grouped-query attention; without it every head has its own.
=> groups = group_query_attention and num_query_groups or num_attention_heads
rope-type utils:338 rope_type and not multi_latent_attention and rope_type ~= 'rope'
mixing config:1417 mtp_hsm and (mtp_num_layers or 0) < 2 | Mixing of hidden states needs two multi-token prediction
  layers.
householder config:1438 gdp_num_householder < 1
heads-tensor config:1447 not multiple(num_attention_heads, tensor_model_parallel_size)
groups-tensor config:1465 groups and groups > 0 and not multiple(groups, tensor_model_parallel_size) and not
  multiple(tensor_model_parallel_size, groups) | The key-value groups must be a multiple or a divisor of the
  tensor-parallel degree.
=> linear = among(experimental_attention_variant, 'gdn gdn2 gated_delta_net')
linear-frequency config:1476 linear and experimental_attention_variant ~= 'gdn2' and linear_attention_freq == nil and
  not hybrid | The gated delta network needs the frequency of linear-attention layers.
linear-convolution config:1481 linear and linear_conv_kernel_dim == nil
linear-key-size config:1484 linear and linear_key_head_dim == nil
linear-value-size config:1487 linear and linear_value_head_dim == nil
linear-keys config:1490 linear and linear_num_key_heads == nil
linear-values config:1493 linear and linear_num_value_heads == nil
linear-values-keys config:1495 linear and not multiple(linear_num_value_heads, linear_num_key_heads)
linear-keys-degrees config:1502 linear and not multiple(linear_num_key_heads, tensor_model_parallel_size *
  context_parallel_size)
linear-values-degrees config:1506 linear and not multiple(linear_num_value_heads, tensor_model_parallel_size *
  context_parallel_size)
linear-old-name changed config:1406 experimental_attention_variant == 'gated_delta_net' | gated_delta_net is an old
  spelling of gdn.
linear-pattern training:1182 linear and type(linear_attention_freq) == 'table' and #linear_attention_freq ~=
  num_layers | The pattern of linear-attention layers must be as long as the layers.
sparse-bias config:1513 experimental_attention_variant == 'dsa' and add_bias_linear
sparse-frequency config:1518 experimental_attention_variant == 'dsa' and above(1, dsa_indexer_topk_freq) | The
  indexer's frequency (--dsa-indexer-topk-freq) must be positive.
sparse-offset config:1522 experimental_attention_variant == 'dsa' and above(0, dsa_indexer_skip_topk_offset) | The
  indexer's offset may not be negative.
fused-gelu-relu config:2422 squared_relu and bias_gelu_fusion
fused-geglu config:2436 quick_geglu and bias_swiglu_fusion and swiglu | Fused bias and quick GeGLU excludes SwiGLU.
fused-offset config:2441 bias_swiglu_fusion and swiglu and glu_linear_offset ~= 0
fused-te config:2447 use_te_activation_func and (swiglu and bias_swiglu_fusion or not swiglu and bias_gelu_fusion) |
  Fused bias and activation excludes the activation of Transformer Engine.
fused-residual config:2455 fused_residual_rmsnorm and normalization ~= 'RMSNorm'
te-activation config:2461 use_te_activation_func and (squared_relu or quick_geglu)
clamp-positive config:2480 activation_func_clamp_value and swiglu and activation_func_clamp_value <= 0
clamp-experts config:2484 activation_func_clamp_value and swiglu and not num_experts
clamp-offset config:2488 activation_func_clamp_value and swiglu and glu_linear_offset ~= 0
clamp-te config:2493 activation_func_clamp_value and swiglu and use_te_activation_func
interleaved-latent config:2527 multi_latent_attention and rotary_interleaved
mup-base config:2534 use_mup and above(1, mup_base_hidden_size) | The base hidden size of muP must be positive.
no-rope-multiple config:3141 type(no_rope_freq) == 'number' and not multiple(num_layers, no_rope_freq) | The layers
  must be a multiple of the frequency of layers without rotation.
no-rope-length config:3150 type(no_rope_freq) == 'table' and #no_rope_freq ~= num_layers | The pattern of layers
  without rotation must be as long as the layers.
inference-norm config:3156 sized and transformer_impl == 'inference_optimized' and normalization ~= 'RMSNorm' |
  --transformer-impl inference_optimized needs --normalization RMSNorm.
inference-bias config:3158 sized and transformer_impl == 'inference_optimized' and add_bias_linear |
  --transformer-impl inference_optimized needs --disable-bias-linear.
sparse-rope config:3163 experimental_attention_variant == 'dsa' and apply_rope_fusion
sparse-context config:3170 experimental_attention_variant == 'dsa' and context_parallel_size > 1 and
  outside(cp_comm_type, 'allgather all_gather')
inference-fuse config:3180 inference_fuse_tp_communication and transformer_impl ~= 'inference_optimized'
inference-fuse-experts config:3184 inference_fuse_tp_communication and num_experts
inference-kernels config:3189 inference_disable_triton_nvls_kernels and transformer_impl ~= 'inference_optimized'
flash-version config:3195 flash_attention_version and not (flash_attention_version >= 2 and flash_attention_version <=
  4) | The version of FlashAttention is 2, 3 or 4.
latent-fusion config:3346 multi_latent_attention and apply_rope_fusion and rope_type == 'rope'
latent-gate config:3349 multi_latent_attention and attention_output_gate
latent-cache config:3352 multi_latent_attention and cache_mla_latents and apply_rope_fusion
invariant-bf16 config:3212 batch_invariant_mode and not bf16
invariant-flash config:3217 batch_invariant_mode and attention_backend ~= 'flash'
invariant-version config:3223 batch_invariant_mode and not above(flash_attention_version, 2)
invariant-context config:3231 batch_invariant_mode and context_parallel_size > 1
invariant-dropout config:3233 batch_invariant_mode and attention_dropout ~= 0
invariant-dispatcher config:3242 batch_invariant_mode and num_experts and transformer_impl ~= 'inference_optimized'
  and moe_token_dispatcher_type ~= 'alltoall'
invariant-experts config:3261 batch_invariant_mode and num_experts and (fp8 or fp4)
invariant-permute config:3264 batch_invariant_mode and num_experts and (moe_permute_fusion or
  moe_permute_fusion_into_hybridep)
invariant-padding config:3268 batch_invariant_mode and num_experts and (moe_pad_expert_input_to_capacity or
  moe_pad_experts_for_cuda_graph_inference)
fp8-gather-sharded args:1096 fp8_param_gather and not (use_distributed_optimizer or use_torch_fsdp2 or
  use_megatron_fsdp)
fp4-fp8 args:1101 fp4 and fp8
fp4-gather args:1105 fp4_param_gather and not fp4
fp16-bf16 args:1196 fp16 and bf16
fp16-nan-check changed args:1202 fp16 and not loss_scale and given('check_for_nan_in_loss_and_grad') and
  check_for_nan_in_loss_and_grad | Dynamic loss scaling silently turns the check for NaN off.
=> if fp16 and not loss_scale then check_for_nan_in_loss_and_grad = false end
bf16-main-gradients args:1210 bf16 and accumulate_allreduce_grads_in_fp32 and main_grads_dtype ~= 'fp32'
bf16-reduce ignored args:1214 bf16 and grad_reduce_in_bf16 and accumulate_allreduce_grads_in_fp32 | Reducing gradients
  in BF16 silently turns their accumulation in FP32 off. => accumulate_allreduce_grads_in_fp32 = false
=> if bf16 and not grad_reduce_in_bf16 and main_grads_dtype == 'fp32' then accumulate_allreduce_grads_in_fp32 = true
  end
scatter-fp32 ignored args:1231 accumulate_allreduce_grads_in_fp32 and (ddp_reduce_scatter_with_fp32_accumulation or
  gtp_remat_reduce_scatter_with_fp32_accumulation) | Reduce-scatters with FP32 accumulation are silently turned off
  where gradients are reduced in FP32.
loss-fp16 args:1373 fp16_lm_cross_entropy and not fp16
residual-fp32 args:1375 fp32_residual_connection and not (fp16 or bf16)
grouped-capability args:1380 moe_grouped_gemm and capability < 8 | Grouped matmuls need GPUs of compute capability 8.
loss-te args:1697 cross_entropy_loss_fusion and cross_entropy_fusion_impl == 'te' | The fused loss of Transformer
  Engine is disabled; use --cross-entropy-fusion-impl native.
deterministic-loss determinism:141 deterministic_mode and cross_entropy_loss_fusion
deterministic-overlap determinism:141 deterministic_mode and tp_comm_overlap
deterministic-nccl determinism:91 deterministic_mode and env.NCCL_ALGO and nccl_fault(env.NCCL_ALGO) | Deterministic
  mode takes NCCL_ALGO of Ring, CollnetDirect, CollnetChain or ^NVLS.
deterministic-te determinism:100 deterministic_mode and env.NVTE_ALLOW_NONDETERMINISTIC_ALGO and
  env.NVTE_ALLOW_NONDETERMINISTIC_ALGO ~= '0' | Deterministic mode needs NVTE_ALLOW_NONDETERMINISTIC_ALGO=0.
deterministic-cublas determinism:100 deterministic_mode and env.CUBLAS_WORKSPACE_CONFIG and not
  among(env.CUBLAS_WORKSPACE_CONFIG, ':4096:8 :16:8') | Deterministic mode needs CUBLAS_WORKSPACE_CONFIG=:4096:8 or
  :16:8.
scaling-softmax changed args:1715 apply_query_key_layer_scaling and not attention_softmax_in_fp32 | Scaling of queries
  and keys by layer silently turns the softmax in FP32 on. => attention_softmax_in_fp32 = true
edges-bf16-delayed config:1530 fp8 and first_last_layers_bf16 and fp8_recipe == 'delayed'
edges-start config:1543 fp8 and first_last_layers_bf16 and num_layers and (num_layers_at_start_in_bf16 < 0 or
  num_layers_at_start_in_bf16 > floor(num_layers / pipeline_model_parallel_size)) | The first layers in BF16 may not
  be more than the layers of a stage.
edges-end config:1552 fp8 and first_last_layers_bf16 and num_layers and (num_layers_at_end_in_bf16 < 0 or
  num_layers_at_end_in_bf16 > floor(num_layers / pipeline_model_parallel_size)) | The last layers in BF16 may not be
  more than the layers of a stage.
fp8-custom config:1560 fp8 and fp8_recipe == 'custom' and not fp8_quantizer_factory
fp8-weights config:1567 fp8_param_gather and not fp8
fp8-output config:1571 fp8_output_proj and not fp8
fp8-output-recipe config:1573 fp8_output_proj and fp8 and fp8_recipe ~= 'mxfp8'
fp4-custom config:1586 fp4 and fp4_recipe == 'custom' and not fp4_quantizer_factory
inference-expert-tensor config:1600 transformer_impl == 'inference_optimized' and num_experts and
  expert_tensor_parallel_size > 1
inference-capacity config:1604 transformer_impl == 'inference_optimized' and num_experts and
  moe_expert_capacity_factor
inference-padding config:1606 transformer_impl == 'inference_optimized' and num_experts and
  moe_router_padding_for_quantization
inference-router config:1611 transformer_impl == 'inference_optimized' and num_experts and moe_router_dtype ~= 'fp32'
inference-gated config:1622 transformer_impl == 'inference_optimized' and num_experts and swiglu and not
  among(inference_grouped_gemm_backend, 'torch vllm')
fp8-recipe-idle ignored config:1527 given('fp8_recipe') and not fp8
recompute-short changed args:608 recompute_activations and recompute_granularity and recompute_granularity ~=
  'selective' | The short form of recomputation means selective granularity, and overrides the granularity given.
=> if recompute_activations then recompute_granularity = 'selective' end
graph-old args:613 (enable_cuda_graph or external_cuda_graph) and cuda_graph_impl ~= 'none'
graph-old-once args:615 enable_cuda_graph and external_cuda_graph
graph-old-name changed args:623 enable_cuda_graph or external_cuda_graph | The old flag stands for --cuda-graph-impl
  local or transformer_engine. => cuda_graph_impl = external_cuda_graph and 'transformer_engine' or 'local'
graph-scope-once args:634 cuda_graph_scope_deprecated and length(cuda_graph_modules) > 0 | Only one of
  --cuda-graph-scope (old) and --cuda-graph-modules may be given.
=> cuda_graph_modules = cuda_graph_scope_deprecated or cuda_graph_modules; if has(cuda_graph_modules,
  'full_iteration') then cuda_graph_impl, cuda_graph_modules = 'full_iteration', nil end
graph-nan args:1236 cuda_graph_impl == 'full_iteration' and check_for_nan_in_loss_and_grad
inference-graphs args:1248 cuda_graph_impl == 'local' and inference_dynamic_batching_num_cuda_graphs ~= -1 and not
  positive(inference_dynamic_batching_num_cuda_graphs)
saved-tensor args:1411 distribute_saved_activations and tensor_model_parallel_size == 1
saved-full args:1414 distribute_saved_activations and recompute_granularity ~= 'full'
saved-method args:1417 distribute_saved_activations and not recompute_method
selective-method args:1426 recompute_granularity == 'selective' and recompute_method
offload-te args:1936 fine_grained_activation_offloading and transformer_impl ~= 'transformer_engine'
offload-variable args:1939 fine_grained_activation_offloading and env.known and env.NVTE_CPU_OFFLOAD_V1 ~= '1' |
  Offloading activations needs NVTE_CPU_OFFLOAD_V1=1.
=> offload_layers = cpu_offloading_num_layers and cpu_offloading_num_layers > 0
graph-tracker changed args:1960 cuda_graph_impl ~= 'none' and not te_rng_tracker and (transformer_impl ==
  'transformer_engine' or cuda_graph_impl == 'transformer_engine') | CUDA graphs turn the random-number tracker of
  Transformer Engine on (a warning).
graph-segments args:1962 cuda_graph_impl == 'transformer_engine' and env.known and env.PYTORCH_CUDA_ALLOC_CONF and
  contains(env.PYTORCH_CUDA_ALLOC_CONF, 'expandable_segments:True') and env.NCCL_GRAPH_REGISTER ~= '0' | Graphs of
  Transformer Engine with expandable segments need NCCL_GRAPH_REGISTER=0.
graph-modules args:1969 cuda_graph_impl == 'full_iteration' and length(cuda_graph_modules) > 0 | Graphs of the whole
  iteration take no modules.
graph-modules-idle ignored config:2796 cuda_graph_impl == 'none' and length(cuda_graph_modules) > 0 | Modules of CUDA
  graphs have no effect without --cuda-graph-impl.
offload-layers config:1887 offload_layers and num_layers and cpu_offloading_num_layers >= num_layers | Layers
  offloaded to the host must be fewer than the layers.
offload-pipeline config:1892 offload_layers and pipeline_model_parallel_size > 1
offload-recompute config:1897 offload_layers and recompute_granularity
full-method config:1914 recompute_granularity == 'full' and not recompute_method
full-layers config:1920 recompute_granularity == 'full' and recompute_num_layers == nil
selective-layers config:1929 recompute_granularity == 'selective' and recompute_num_layers ~= nil
saved-sequence config:1935 recompute_granularity and distribute_saved_activations and sequence_parallel
method-idle ignored config:1901 not recompute_granularity and (recompute_method or recompute_num_layers) | The method
  of recomputation and its layers have no effect without a granularity.
modules-idle ignored config:1943 given('recompute_modules') and recompute_granularity ~= 'selective'
=> modules = recompute_granularity == 'selective' and (recompute_modules or { 'core_attn' }) or {}
modules-known config:1959 outside(modules, 'core_attn moe_act layernorm mla_up_proj mlp moe shared_experts
  gdn_norm_out gdp_in_proj gdp_qkv mhc')
modules-activation config:1965 has(modules, 'moe_act') and not moe_grouped_gemm
modules-latent config:1970 has(modules, 'mla_up_proj') and not multi_latent_attention
modules-linear config:1978 has(modules, 'gdn_norm_out') and not linear
modules-shared config:1996 has(modules, 'shared_experts') and moe_shared_expert_intermediate_size and
  moe_shared_expert_overlap
modules-delayed config:2003 fp8 and fp8_recipe == 'delayed' and has(modules, 'moe_act layernorm')
layer-recompute config:2020 moe_layer_recompute and recompute_granularity == 'full'
layer-recompute-old changed config:2023 moe_layer_recompute and recompute_granularity ~= 'full' | The old flag becomes
  selective recomputation of expert layers. => recompute_granularity, modules = 'selective', joined(modules, 'moe')
modules-connections config:2030 has(modules, 'mhc') and not enable_mhc_connections
modules-connections-mlp config:2032 has(modules, 'mhc') and has(modules, 'mlp')
connections-layers config:2041 has(modules, 'mhc') and not above(mhc_recompute_layer_num, 0)
connections-offload config:2046 has(modules, 'mhc') and fine_grained_activation_offloading
connections-mtp config:2064 enable_mhc_connections and mtp_num_layers
connections-full config:2070 enable_mhc_connections and recompute_granularity == 'full'
connections-inference config:2077 enable_mhc_connections and inference_fuse_tp_communication
connections-pipeline config:2093 enable_mhc_connections and pipeline_model_parallel_size > 1
connections-residual config:2104 enable_mhc_connections and fp32_residual_connection
connections-iterations config:2115 enable_mhc_connections and mhc_sinkhorn_iterations < 1
connections-gate config:2122 enable_mhc_connections and mhc_init_gating_factor < 0
offload-both config:2128 fine_grained_activation_offloading and offload_layers
offload-modules config:2131 fine_grained_activation_offloading and length(offload_modules) == 0 | Offloading
  activations needs modules (--offload-modules).
offload-known config:2144 fine_grained_activation_offloading and outside(offload_modules, 'core_attn attn_proj
  expert_fc1 fused_group_mlp moe_act attn_norm mlp_norm qkv_linear gdp_qkv')
offload-projection config:2149 fine_grained_activation_offloading and has(offload_modules, 'attn_proj') and not
  has(offload_modules, 'core_attn')
offload-recomputed config:2159 fine_grained_activation_offloading and has(offload_modules, 'gdp_qkv') and has(modules,
  'gdp_in_proj')
offload-inside config:2169 fine_grained_activation_offloading and has(modules, 'moe') and has(offload_modules,
  'moe_act expert_fc1 fused_group_mlp')
offload-size config:2177 fine_grained_activation_offloading and min_offloaded_tensor_size < 0
offload-fraction config:2179 fine_grained_activation_offloading and (activation_offload_fraction < 0 or
  activation_offload_fraction > 1)
offload-delta config:2182 fine_grained_activation_offloading and delta_offload_bytes_across_pp_ranks < 0
offload-fused config:2188 fine_grained_activation_offloading and has(offload_modules, 'fused_group_mlp') and not
  use_transformer_engine_op_fuser
offload-fused-part config:2191 fine_grained_activation_offloading and has(offload_modules, 'fused_group_mlp') and
  has(offload_modules, 'expert_fc1 moe_act')
chunk-states config:2197 gdp_cutedsl_kernel and (gdp_num_chunk_states_to_recompute < 0 or
  gdp_num_chunk_states_to_recompute > 64) | Recomputed chunk states are 0 to 64.
shards-modules config:2205 outside(gtp_remat_opt_in_modules, 'moe_latent_proj')
stash-offload config:2212 moe_paged_stash and offload_layers
stash-capacity config:2214 moe_paged_stash and not moe_expert_rank_capacity_factor
stash-modules config:2222 moe_paged_stash and has(offload_modules, 'expert_fc1 moe_act fused_group_mlp')
offload-idle ignored config:2126 given('offload_modules') and not fine_grained_activation_offloading
graph-offload config:2801 offload_layers and among(cuda_graph_impl, 'local transformer_engine')
=> layered = among(cuda_graph_impl, 'local transformer_engine')
graph-moe-twice config:2817 layered and has(cuda_graph_modules, 'moe') and has(cuda_graph_modules, 'moe_router') |
  Modules of CUDA graphs may not hold both moe and moe_router.
graph-preprocess config:2823 cuda_graph_impl == 'transformer_engine' and has(cuda_graph_modules, 'moe_preprocess') and
  not has(cuda_graph_modules, 'moe_router')
graph-dense config:2826 layered and (num_experts or 0) <= 1 and has(cuda_graph_modules, 'moe moe_router') | Graphs of
  experts need experts.
graph-mlp config:2834 layered and (num_experts or 0) > 1 and has(cuda_graph_modules, 'mlp') and
  all_experts(moe_layer_freq) | Graphs of mlp need dense layers.
graph-drop config:2843 layered and (num_experts or 0) > 1 and has(cuda_graph_modules, 'moe') and not
  (moe_expert_capacity_factor and moe_pad_expert_input_to_capacity) | Graphs of moe need experts padded to their
  capacity.
graph-preprocess-alltoall config:2849 layered and has(cuda_graph_modules, 'moe') and has(cuda_graph_modules,
  'moe_preprocess') and moe_token_dispatcher_type == 'alltoall' and moe_expert_capacity_factor | Graphs of
  moe_preprocess exclude an expert capacity with the all-to-all dispatcher.
graph-recompute config:2857 cuda_graph_impl ~= 'none' and recompute_granularity == 'full' and cuda_graph_impl ~=
  'full_iteration'
graph-recompute-experts config:2867 cuda_graph_impl == 'transformer_engine' and has(modules, 'moe') and
  has(cuda_graph_modules, 'moe_router')
graph-dropout config:2879 cuda_graph_impl ~= 'none' and has(modules, 'core_attn') and attention_dropout ~= 0 and
  (cuda_graph_impl == 'full_iteration' or length(cuda_graph_modules) == 0 or has(cuda_graph_modules, 'attn')) |
  Recomputed attention inside CUDA graphs excludes dropout.
graph-hidden-dropout config:2887 cuda_graph_impl ~= 'none' and recompute_granularity == 'selective' and hidden_dropout
  ~= 0 and (has(modules, 'mlp') and (cuda_graph_impl == 'full_iteration' or length(cuda_graph_modules) == 0 or
  has(cuda_graph_modules, 'mlp')) or has(modules, 'moe') and (cuda_graph_impl == 'full_iteration' or
  length(cuda_graph_modules) == 0 or has(cuda_graph_modules, 'moe'))) | Recomputed mlp or moe inside CUDA graphs
  excludes --hidden-dropout above 0.
graph-jitter config:2901 cuda_graph_impl ~= 'none' and moe_input_jitter_eps and has(modules, 'moe') and
  (cuda_graph_impl == 'full_iteration' or length(cuda_graph_modules) == 0 or has(cuda_graph_modules, 'moe')) |
  Recomputed moe inside CUDA graphs excludes --moe-input-jitter-eps.
graph-offload-local config:2934 cuda_graph_impl == 'local' and fine_grained_activation_offloading and
  outside(offload_modules, 'expert_fc1 moe_act fused_group_mlp')
graph-offload-layer config:2940 cuda_graph_impl == 'local' and fine_grained_activation_offloading and
  length(cuda_graph_modules) == 0 | Offloading activations with local CUDA graphs needs modules of graphs.
graph-offload-moe config:2960 cuda_graph_impl ~= 'none' and fine_grained_activation_offloading and
  has(cuda_graph_modules, 'moe')
graph-offload-warmup config:2963 cuda_graph_impl ~= 'none' and fine_grained_activation_offloading and
  cuda_graph_warmup_steps <= 0
graph-offload-flight config:2968 cuda_graph_impl == 'full_iteration' and fine_grained_activation_offloading and not
  above(fine_grained_offloading_max_inflight_offloads, -1)
experts-zero ignored args:1648 num_experts == 0 | Zero experts silently means a dense model. => num_experts = nil
expert-ffn changed args:1652 num_experts and moe_ffn_hidden_size == nil and ffn_hidden_size | Without an expert FFN
  size experts have the FFN size (a warning). => moe_ffn_hidden_size = ffn_hidden_size
expert-parallel-experts args:1656 expert_model_parallel_size > 1 and not num_experts
experts-multiple args:1657 expert_model_parallel_size > 1 and not multiple(num_experts, expert_model_parallel_size)
fake-flexible args:1757 fake_process_group and moe_token_dispatcher_type == 'flex'
delay-te args:1904 delay_wgrad_compute and transformer_impl ~= 'transformer_engine'
delay-graph-fusion args:1919 delay_wgrad_compute and overlap_grad_reduce and has(cuda_graph_modules, 'attn') and not
  gradient_accumulation_fusion
delay-graph-bias args:1925 delay_wgrad_compute and overlap_grad_reduce and has(cuda_graph_modules, 'attn') and
  (add_bias_linear or add_qkv_bias) | CUDA graphs of attn with --delay-wgrad-compute exclude biases.
latent-size args:1981 moe_latent_size and moe_latent_size <= 0
latent-experts args:1982 moe_latent_size and not num_experts
grouped-tensor config:1414 moe_use_grouped_tensor and not moe_grouped_gemm
experts-positive config:1683 num_experts and num_experts < 0
expert-ffn-dense config:1702 not num_experts and moe_ffn_hidden_size and not (type(moe_layer_freq) == 'number' and
  moe_layer_freq > 1 or type(moe_layer_freq) == 'table' and has(moe_layer_freq, '0')) | An expert FFN size without
  experts is refused.
single-grouped config:1709 (moe_single_grouped_weight or moe_single_grouped_bias) and not moe_grouped_gemm
single-grouped-recipe config:1726 moe_single_grouped_weight and (fp8 and fp8_recipe ~= 'mxfp8' or fp4 and fp4_recipe
  ~= 'nvfp4') | Single grouped weights take the recipes mxfp8 and nvfp4.
single-grouped-fp4 config:1731 moe_single_grouped_weight and fp4 and not fp4_param_gather
single-grouped-tensor config:1737 moe_single_grouped_weight and not moe_use_grouped_tensor
single-grouped-bias config:1739 moe_single_grouped_bias and not add_bias_linear
deepep-flexible config:1745 moe_enable_deepep and moe_token_dispatcher_type ~= 'flex'
deepep-hybrid config:1747 moe_enable_deepep and moe_token_dispatcher_type == 'flex' and moe_flex_dispatcher_backend ==
  'hybridep'
=> if moe_enable_deepep then moe_flex_dispatcher_backend = 'deepep' end
deepep-padding config:1758 moe_token_dispatcher_type == 'flex' and moe_pad_expert_input_to_capacity and
  moe_flex_dispatcher_backend == 'deepep'
nccl-flexible config:1765 moe_flex_dispatcher_backend == 'ncclep' and moe_token_dispatcher_type ~= 'flex'
nccl-grouped config:1770 moe_flex_dispatcher_backend == 'ncclep' and moe_use_grouped_tensor and not
  use_transformer_engine_op_fuser
backend-idle ignored config:1753 given('moe_flex_dispatcher_backend') and moe_flex_dispatcher_backend ~= 'ncclep' and
  moe_token_dispatcher_type ~= 'flex'
exchange-numbers config:1781 (moe_dispatch_fwd_dtype ~= 'bf16' or moe_combine_bwd_dtype ~= 'bf16') and not
  (moe_token_dispatcher_type == 'flex' and moe_flex_dispatcher_backend == 'ncclep') | The precision of the expert
  exchange needs the NCCL back end of the flexible dispatcher.
exchange-fuser config:1786 (moe_dispatch_fwd_dtype ~= 'bf16' or moe_combine_bwd_dtype ~= 'bf16') and not
  (use_transformer_engine_op_fuser and moe_grouped_gemm) | The expert exchange in MXFP8 needs
  --use-transformer-engine-op-fuser and --moe-grouped-gemm.
exchange-units config:1807 moe_deepep_num_sms and moe_hybridep_num_sms and not moe_flex_dispatcher_num_sms and
  moe_deepep_num_sms ~= moe_hybridep_num_sms | The old numbers of SMs of the flexible dispatcher may not differ.
shared-positive config:1815 moe_shared_expert_intermediate_size and moe_shared_expert_intermediate_size <= 0
shared-overlap config:1824 moe_shared_expert_intermediate_size and moe_shared_expert_overlap and not
  among(moe_token_dispatcher_type, 'alltoall flex')
shared-overlap-idle ignored config:1813 moe_shared_expert_overlap and not moe_shared_expert_intermediate_size and not
  overlap_moe_expert_parallel_comm
balancing-lists config:1829 length(moe_router_load_balancing_type) > 1 and length(moe_aux_loss_coeff) ~=
  length(moe_router_load_balancing_type) | Each load-balancing type in the list needs its own coefficient.
capacity-balancing config:1857 moe_expert_capacity_factor and outside(moe_router_load_balancing_type, 'aux_loss
  seq_aux_loss global_aux_loss none')
padding-capacity config:1864 moe_pad_expert_input_to_capacity and (not moe_expert_capacity_factor or
  moe_expert_capacity_factor < 0) | Padding experts to their capacity needs a capacity.
rank-capacity config:1870 moe_expert_rank_capacity_factor and not among(moe_flex_dispatcher_backend, 'hybridep
  ncclep')
rank-capacity-fuser config:1879 moe_expert_rank_capacity_factor and moe_flex_dispatcher_backend == 'hybridep' and not
  (use_transformer_engine_op_fuser or moe_use_grouped_tensor)
expert-bias-tensor config:2614 num_experts and add_bias_linear and expert_tensor_parallel_size > 1
router-bias-scores config:2621 moe_router_enable_expert_bias and not among(moe_router_score_function, 'sigmoid
  sqrtsoftplus')
=> padding = moe_router_padding_for_quantization or moe_router_padding_for_fp8
padding-fp8 config:2651 padding and not fp8 and not fp4
padding-dispatcher config:2656 padding and (fp8 or fp4) and moe_token_dispatcher_type == 'allgather'
one-expert-softmax config:2669 moe_router_topk == 1 and moe_router_score_function == 'softmax' and not
  moe_router_pre_softmax and not has(moe_router_load_balancing_type, 'sinkhorn') | Routing to one expert by softmax
  needs the softmax before the choice (--moe-router-pre-softmax).
=> choice = moe_router_group_topk and moe_router_group_topk > 0
groups-number config:2678 choice and not moe_router_num_groups
groups-experts config:2682 choice and moe_router_num_groups and num_experts and not multiple(num_experts,
  moe_router_num_groups)
groups-chosen config:2686 choice and above(moe_router_group_topk, moe_router_num_groups)
chosen-experts routing:879 num_experts and above(moe_router_topk, num_experts)
overlap-virtual config:3008 overlap_moe_expert_parallel_comm and pipeline_model_parallel_size > 1 and not virtual
overlap-experts config:3014 overlap_moe_expert_parallel_comm and expert_model_parallel_size == 1
overlap-dispatcher config:3016 overlap_moe_expert_parallel_comm and not among(moe_token_dispatcher_type, 'alltoall
  flex')
overlap-full config:3022 overlap_moe_expert_parallel_comm and recompute_granularity == 'full'
overlap-method config:3025 overlap_moe_expert_parallel_comm and recompute_method
overlap-layers config:3028 overlap_moe_expert_parallel_comm and recompute_num_layers
overlap-modules config:3031 overlap_moe_expert_parallel_comm and has(modules, 'moe')
overlap-numbers config:3035 overlap_moe_expert_parallel_comm and not (bf16 or fp16)
overlap-shared config:3039 overlap_moe_expert_parallel_comm and moe_shared_expert_overlap
overlap-further config:3042 overlap_moe_expert_parallel_comm and (mtp_num_layers or 0) > 1 | Overlapping the exchange
  of experts allows one multi-token prediction layer.
overlap-nccl-offload config:3054 overlap_moe_expert_parallel_comm and moe_flex_dispatcher_backend == 'ncclep' and
  fine_grained_activation_offloading and has(offload_modules, 'expert_fc1')
overlap-graphs config:3065 overlap_moe_expert_parallel_comm and cuda_graph_impl == 'transformer_engine' and
  has(cuda_graph_modules, 'moe mlp')
delay-overlap config:3075 delay_wgrad_compute and not overlap_moe_expert_parallel_comm
dispatch-overlap config:3085 overlap_dispatch_backward_with_experts_wgrad and overlap_moe_expert_parallel_comm
dispatch-delay config:3092 overlap_dispatch_backward_with_experts_wgrad and delay_wgrad_compute
release-overlap config:3098 ep_overlap_early_attn_memory_release and not overlap_moe_expert_parallel_comm
pattern-length specs:653 num_experts and type(moe_layer_freq) == 'table' and #moe_layer_freq ~= num_layers and not
  hybrid | The pattern of expert layers must be as long as the layers.
pattern-form args:132 type(moe_layer_freq) == 'string' or type(linear_attention_freq) == 'string' | A pattern of
  layers is a number or a list such as ([0]*3+[1]*5).
experts-sequence moe:636 num_experts and tensor_model_parallel_size > 1 and not sequence_parallel
flexible-degrees dispatcher:1836 num_experts and moe_token_dispatcher_type == 'flex' and not
  among(moe_flex_dispatcher_backend, 'hybridep') and expert_model_parallel_size * (expert_tensor_parallel_size or 1)
  == 1 | The flexible dispatcher needs expert x expert tensor degrees above 1.
experts-idle ignored args:1648 not num_experts and not hybrid and (given('moe_router_topk') or
  given('moe_router_num_groups') or given('moe_router_group_topk') or given('moe_expert_capacity_factor') or
  given('moe_token_dispatcher_type') or given('moe_grouped_gemm')) | Arguments about experts have no effect in a dense
  model.
]]
