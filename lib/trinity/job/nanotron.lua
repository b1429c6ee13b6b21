-- nanotron's YAML.

local arguments = require 'trinity.job.arguments'

local nanotron = { client = 'nanotron', runtime = 'megatron', rules = 'trinity.job.rules.nanotron',
  release = '2411b022a75fb7f7561a1bb4166706da5e1b76de', base = {},
  parser = 'huggingface/nanotron src/nanotron/config/config.py:632' }

nanotron.declared = arguments.declare [[
parallelism int: dp tp pp pp_engine:any tp_mode:text=ALL_REDUCE tp_linear_async_communication:flag
  context_parallel_size=1 expert_parallel_size=1 expert_tensor_parallel_size=1 recompute_layer:flag=false
  tp_recompute_allgather:flag=true moe_layer_recompute:flag=false enabled_moe:flag=false
tokens int: sequence_length train_steps micro_batch_size batch_accumulation_per_replica val_check_interval=-1
  limit_val_batches=0 limit_test_batches=0
model: dtype ddp_bucket_cap_mb:int=25 make_vocab_size_divisible_by:int=1
model.model_config* int: hidden_size intermediate_size num_attention_heads num_hidden_layers num_key_value_heads
  vocab_size max_position_embeddings tie_word_embeddings:flag=false
optimizer: zero_stage:int=0 accumulate_grad_in_fp32:flag=false weight_decay:float clip_grad:float
  weight_decay_exclude_named_params:list
optimizer.learning_rate_scheduler int: learning_rate:float lr_warmup_steps=0 lr_warmup_style:text=linear
  lr_decay_style:text=linear lr_decay_steps lr_decay_starting_step min_decay_lr:float
logging int: log_level:text=info log_level_replica:text=info iteration_step_info_interval=1
checkpoints flag: checkpoint_interval:int checkpoints_path:text save_initial_state=false save_final_state=true
  resume_checkpoint_path:text load_lr_scheduler=true load_optimizer=true checkpoints_path_is_shared_file_system=false
general int: project:text run:text seed step consumed_train_samples benchmark_csv_path:text ignore_sanity_checks:flag
tokenizer: tokenizer_name_or_path tokenizer_revision tokenizer_max_length:int
metrics_logging int: log_level log_detail_interval
lighteval*: eval_interval:int
model.init_method* optimizer.optimizer_factory* profiler* data_stages* s3_upload*:
]]

--- An unknown key of a section is refused; further sections belong to configurations of other classes.
function nanotron.undeclared(_, section) return section ~= '' and 'refused' or nil end

function nanotron.read(job, tree)
  arguments.read(job, tree)
  local p = arguments.space(job).parallelism
  if p.dp and p.tp and p.pp then job.gpus_said = p.dp * p.tp * p.pp * p.context_parallel_size end
end

local precisions = { bfloat16 = 'bf16', float16 = 'fp16', float32 = 'fp32' }

function nanotron.meaning(job, v)
  local c, p, t = v.model.model_config, v.parallelism, v.tokens
  job.model = { layers = c.num_hidden_layers, hidden = c.hidden_size, heads = c.num_attention_heads, kv_heads = v.kv,
    head_size = c.hidden_size and v.heads and math.floor(c.hidden_size / v.heads), ffn = c.intermediate_size,
    vocab = c.vocab_size, sequence = t.sequence_length, positions = c.max_position_embeddings,
    latent_attention = false, tied_embeddings = c.tie_word_embeddings }
  job.mesh = { tensor = p.tp, pipeline = p.pp, context = p.context_parallel_size, expert = p.expert_parallel_size,
    expert_tensor = p.expert_tensor_parallel_size, data = p.dp, sequence_parallel = p.tp_mode == 'REDUCE_SCATTER' }
  job.micro_batch, job.micro_batches = t.micro_batch_size, t.batch_accumulation_per_replica
  if t.micro_batch_size and t.batch_accumulation_per_replica and p.dp then
    job.global_batch = t.micro_batch_size * t.batch_accumulation_per_replica * p.dp
  end
  job.precision = (precisions[v.model.dtype] or v.model.dtype or 'precision not said')
    .. (v.optimizer.accumulate_grad_in_fp32 and ', gradients accumulated in fp32' or '')
  job.recompute = p.recompute_layer and { granularity = 'full' } or nil
  job.zero_stage = v.optimizer.zero_stage
  job.distributed_optimizer = v.optimizer.zero_stage > 0
  job.overlaps = { tensor = p.tp_linear_async_communication }
end

return nanotron
