-- Settings of torchtitan's job files at commit 238fa995 (torchtitan/config/job_config.py), the last with TOML, and the
-- sizes of the flavors of models (torchtitan/models/*/__init__.py).

local titan = {}

--- Sections and keys (trinity.job.arguments).
titan.keys = [[
job: config_file dump_folder=./outputs description print_config:flag=false save_config_file custom_config_module
profiling: enable_profiling:flag=false save_traces_folder=profile_traces profile_freq:int=10 profiler_active:int=1
  profiler_warmup:int=3 enable_memory_snapshot:flag=false save_memory_snapshot_folder=memory_snapshot
metrics: log_freq:int=10 enable_tensorboard:flag=false disable_color_printing:flag=false save_tb_folder=tb
  save_for_all_ranks:flag=false enable_wandb:flag=false
model: name=llama3 flavor=debugmodel hf_assets_path=./tests/assets/tokenizer tokenizer_path converters:list
  print_after_conversion:flag=false
optimizer: name=AdamW lr:float=0.0008 beta1:float=0.9 beta2:float=0.95 eps:float=1e-08 weight_decay:float=0.1
  implementation{for-loop|foreach|fused}=fused early_step_in_backward:flag=false
lr_scheduler: warmup_steps:int=200 total_steps:int decay_ratio:float decay_type{linear|sqrt|cosine}=linear
  min_lr_factor:float=0.0
training.dataloader: num_workers:int=0 persistent_workers:flag=false pin_memory:flag=false prefetch_factor:int
training: dataset=c4_test dataset_path local_batch_size:int=8 global_batch_size:int=-1 seq_len:int=2048
  max_norm:float=1.0 steps:int=10000 enable_cpu_offload:flag=false dtype{bfloat16|float32}=float32
  mixed_precision_param{bfloat16|float32}=bfloat16 mixed_precision_reduce{float32}=float32 gc_freq:int=50
  gc_debug:flag=false
parallelism: data_parallel_replicate_degree:int=1 data_parallel_shard_degree:int=-1
  fsdp_reshard_after_forward{default|always|never}=default tensor_parallel_degree:int=1
  disable_loss_parallel:flag=false enable_async_tensor_parallel:flag=false pipeline_parallel_degree:int=1
  module_fqns_per_model_part:list pipeline_parallel_first_stage_less_layers:int=1
  pipeline_parallel_last_stage_less_layers:int=1 pipeline_parallel_layers_per_stage:int
  pipeline_parallel_schedule=1F1B pipeline_parallel_schedule_csv pipeline_parallel_microbatch_size:int=1
  pipeline_parallel_expert_parallel_overlap:flag=true context_parallel_degree:int=1
  context_parallel_load_balancer=headtail context_parallel_rotate_method{allgather|alltoall}=allgather
  expert_parallel_degree:int=1 expert_tensor_parallel_degree:int=1
  expert_parallel_comm_backend{standard|deepep}=standard
checkpoint: enable:flag=false enable_ft_dataloader_checkpoints:flag=true folder=checkpoint interval:int=500
  initial_load_path initial_load_model_only:flag=true initial_load_in_hf:flag=false
  initial_load_in_hf_quantized:flag=false last_save_model_only:flag=true last_save_in_hf:flag=false
  export_dtype{float16|bfloat16|float32}=float32 async_mode{disabled|async|async_with_pinned_mem}=disabled
  keep_latest_k:int=10 load_step:int=-1 exclude_from_loading:list enable_first_step_checkpoint:flag=false
  create_seed_checkpoint:flag=false load_only:flag=false
activation_checkpoint: mode{selective|full|memory_budget|none}=selective selective_ac_option=2
  per_op_sac_force_recompute_mm_shapes_by_fqns:list early_stop:flag=false memory_budget:float=0.5
  visualize_memory_budget_pareto:flag=false preserve_rng_state:flag=true determinism_check=default debug:flag=false
compile: enable:flag=false components:list backend=inductor
quantize.linear.float8: enable_fsdp_float8_all_gather:flag=false precompute_float8_dynamic_scale_for_fsdp:flag=false
  recipe_name{tensorwise|rowwise|rowwise_with_gw_hp} filter_fqns:list emulate:flag=false
quantize.linear.mx: mxfp8_dim1_cast_kernel_choice{triton|cuda|torch}=triton recipe_name=mxfp8_cublas filter_fqns:list
quantize.grouped_mm.float8: fqns:list
quantize.grouped_mm.mx: recipe_name{mxfp8}=mxfp8 fqns:list
comm: init_timeout_seconds:int=300 train_timeout_seconds:int=100 trace_buf_size:int=20000
  save_traces_folder=comm_traces save_traces_file_prefix=rank_ mode{default|fake_backend|local_tensor}=default
memory_estimation: enable:flag=false disable_fake_mode:flag=false
fault_tolerance: enable:flag=false process_group=gloo process_group_timeout_ms:int=10000 replica_id:int=0
  group_size:int=0 min_replica_size:int=1 semi_sync_method
experimental: custom_import custom_args_module
validation.dataloader: num_workers:int=0 persistent_workers:flag=false pin_memory:flag=false prefetch_factor:int
validation: enable:flag=false dataset=c4_validation dataset_path local_batch_size:int=8 seq_len:int=2048 freq:int=10
  steps:int=-1
debug: seed:int deterministic:flag=false deterministic_warn_only:flag=false moe_force_load_balance:flag=false
]]

--- Sizes by model and flavor: layers hidden heads kv_heads head_size ffn vocab, then experts (/ of a token / inner
--- width), shared, dense (layers without experts), every (n-th layer has experts), latent, query; attn: attention
--- implementation (default sdpa).
titan.flavors = [[
llama3 debugmodel 6 256 16 16 16 768 2048
llama3 debugmodel_flex_attn 6 256 16 16 16 768 2048 attn=flex
llama3 debugmodel_varlen_attn 6 256 16 16 16 768 2048 attn=varlen
llama3 8B 32 4096 32 8 128 14336 128256
llama3 8B_flex 32 4096 32 8 128 14336 128256 attn=flex
llama3 8B_varlen 32 4096 32 8 128 14336 128256 attn=varlen
llama3 70B 80 8192 64 8 128 28672 128256
llama3 405B 126 16384 128 8 128 53248 128256
llama4 debugmodel 6 256 16 16 16 768 2048 experts=8/1 every=2
llama4 17bx16e 48 5120 40 8 128 16384 202048 experts=16/1 every=1
llama4 17bx128e 48 5120 40 8 128 16384 202048 experts=128/1 every=2
llama4 debugmodel_irope 6 256 16 16 16 768 2048 experts=8/1 every=2 attn=flex
llama4 17bx16e_irope 48 5120 40 8 128 16384 202048 experts=16/1 every=1 attn=flex
llama4 17bx128e_irope 48 5120 40 8 128 16384 202048 experts=128/1 every=2 attn=flex
deepseek_v3 debugmodel 6 256 16 0 0 1024 2048 experts=8/3/256 shared=2 dense=1 latent=512
deepseek_v3 debugmodel_flex_attn 6 256 16 0 0 1024 2048 experts=8/3/256 shared=2 dense=1 latent=512 attn=flex
deepseek_v3 16B 27 2048 16 0 0 10944 102400 experts=64/6/1408 shared=2 dense=1 latent=512 attn=flex
deepseek_v3 236B 60 5120 128 0 0 12288 102400 experts=160/6/1536 shared=2 dense=1 latent=512 query=1536 attn=flex
deepseek_v3 671B 61 7168 128 0 0 18432 129280 experts=256/8/2048 shared=1 dense=3 latent=512 query=1536 attn=flex
qwen3 debugmodel 8 256 16 8 128 3072 2048 tied=1
qwen3 0.6B 28 1024 16 8 128 3072 151936 tied=1
qwen3 1.7B 28 2048 16 8 128 6144 151936 tied=1
qwen3 4B 36 2560 32 8 128 9728 151936 tied=1
qwen3 8B 36 4096 32 8 128 12288 151936
qwen3 14B 40 5120 40 8 128 17408 151936
qwen3 32B 64 5120 64 8 128 25600 151936
qwen3 debugmodel_moe 8 256 16 8 128 3072 2048 experts=64/8/768
qwen3 30B-A3B 48 2048 32 4 128 6144 151936 experts=128/8/768
qwen3 235B-A22B 94 4096 64 4 128 12288 151936 experts=128/8/1536
gpt_oss debugmodel 4 256 64 8 64 2880 201088 experts=8/4/2880 attn=flex
gpt_oss 20b 24 2880 64 8 64 2880 201088 experts=32/4/2880 attn=flex
gpt_oss 120b 36 2880 64 8 64 2880 201088 experts=128/4/2880 attn=flex
]]

return titan
