-- Megatron-Bridge's YAML of overrides. Other settings are in a Python recipe.

local arguments = require 'trinity.job.arguments'

local bridge = { client = 'Megatron-Bridge', runtime = 'megatron', rules = 'trinity.job.rules.bridge',
  release = '067f987df03b8355b03192d88d70f1709fedf51a', base = {},
  parser = 'NVIDIA-NeMo/Megatron-Bridge src/megatron/bridge/training/utils/omegaconf_utils.py:454' }

bridge.declared = arguments.declare [[
model int: seq_length tensor_model_parallel_size pipeline_model_parallel_size context_parallel_size
  expert_model_parallel_size expert_tensor_parallel_size virtual_pipeline_model_parallel_size sequence_parallel:flag
  num_layers hidden_size num_attention_heads num_query_groups kv_channels ffn_hidden_size num_moe_experts
  moe_router_topk moe_ffn_hidden_size recompute_granularity:text recompute_method:text recompute_num_layers
  recompute_modules:any fp16:flag bf16:flag cp_comm_type:any hierarchical_context_parallel_sizes:any
  gradient_accumulation_fusion:flag calculate_per_token_loss:flag cross_entropy_loss_fusion:flag vocab_size
train int: micro_batch_size global_batch_size train_iters train_samples num_epochs rampup_batch_size:any eval_iters
  eval_interval
validation int: eval_global_batch_size eval_micro_batch_size
scheduler int: lr_warmup_iters=0 lr_warmup_samples=0 lr_warmup_fraction:float lr_decay_iters lr_decay_samples
  lr_wsd_decay_iters lr_wsd_decay_samples max_steps start_weight_decay:float end_weight_decay:float
  override_opt_param_scheduler:flag use_checkpoint_opt_param_scheduler:flag
optimizer flag: fp16 bf16 use_distributed_optimizer
ddp flag: use_megatron_fsdp use_distributed_optimizer overlap_grad_reduce overlap_param_gather nccl_ub
  fsdp_manual_registration average_in_collective
dist flag: use_torch_fsdp2 use_tp_pp_dp_mapping use_gloo_process_groups
checkpoint flag: save:text ckpt_format:text async_save use_persistent_ckpt_worker load_optim load_main_params_from_ckpt
dataset int: seq_length sequence_length
profiling int: use_pytorch_profiler:flag use_nsys_profiler:flag profile_step_start=10 profile_step_end=12
logger* rng* tokenizer* mixed_precision* peft* comm_overlap* rerun_state_machine*:
]]

--- The recipe may have further settings: they are listed as not understood.
function bridge.undeclared() end

function bridge.read(job, tree)
  if type(tree.mixed_precision) == 'string' then tree.mixed_precision = nil end
  arguments.read(job, tree)
end

function bridge.meaning(job, v)
  local m = v.model
  job.model = { layers = m.num_layers, hidden = m.hidden_size, heads = m.num_attention_heads,
    kv_heads = m.num_query_groups, head_size = m.kv_channels, ffn = m.ffn_hidden_size, vocab = m.vocab_size,
    sequence = m.seq_length or v.dataset.seq_length or v.dataset.sequence_length, experts = m.num_moe_experts,
    experts_per_token = m.moe_router_topk, expert_ffn = m.moe_ffn_hidden_size }
  job.mesh = { tensor = m.tensor_model_parallel_size, pipeline = m.pipeline_model_parallel_size,
    virtual_stages = m.virtual_pipeline_model_parallel_size, context = m.context_parallel_size,
    expert = m.expert_model_parallel_size, expert_tensor = m.expert_tensor_parallel_size, data = v.data,
    sequence_parallel = m.sequence_parallel }
  job.micro_batch, job.global_batch = v.train.micro_batch_size, v.train.global_batch_size
  job.micro_batches = v.data and job.global_batch and job.micro_batch
    and math.floor(job.global_batch / (job.micro_batch * v.data)) or nil
  job.overlaps = { gradients = v.ddp.overlap_grad_reduce, weights = v.ddp.overlap_param_gather }
end

return bridge
