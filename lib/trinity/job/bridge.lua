-- Megatron-Bridge's YAML of overrides. Other settings are in a Python recipe.

local nested = require 'trinity.job.nested'

local bridge = { client = 'Megatron-Bridge', runtime = 'megatron',
  release = '067f987df03b8355b03192d88d70f1709fedf51a' }

local declared = nested.declare [[
model*: seq_length:any tensor_model_parallel_size:any pipeline_model_parallel_size:any context_parallel_size:any
  expert_model_parallel_size:any expert_tensor_parallel_size:any virtual_pipeline_model_parallel_size:any
  sequence_parallel:any num_layers:any hidden_size:any num_attention_heads:any num_query_groups:any kv_channels:any
  ffn_hidden_size:any num_moe_experts:any moe_router_topk:any moe_ffn_hidden_size:any recompute_granularity:any
  recompute_method:any recompute_num_layers:any recompute_modules:any fp16:any bf16:any cp_comm_type:any
  hierarchical_context_parallel_sizes:any gradient_accumulation_fusion:any calculate_per_token_loss:any
  cross_entropy_loss_fusion:any vocab_size:any
train*: micro_batch_size:any global_batch_size:any train_iters:any train_samples:any num_epochs:any
  rampup_batch_size:any eval_iters:any eval_interval:any
validation*: eval_global_batch_size:any eval_micro_batch_size:any
scheduler*: lr_warmup_iters:any=0 lr_warmup_samples:any=0 lr_warmup_fraction:any lr_decay_iters:any
  lr_decay_samples:any lr_wsd_decay_iters:any lr_wsd_decay_samples:any max_steps:any start_weight_decay:any
  end_weight_decay:any override_opt_param_scheduler:any use_checkpoint_opt_param_scheduler:any
optimizer*: fp16:any bf16:any use_distributed_optimizer:any
ddp*: use_megatron_fsdp:any use_distributed_optimizer:any overlap_grad_reduce:any overlap_param_gather:any
  nccl_ub:any fsdp_manual_registration:any average_in_collective:any
dist*: use_torch_fsdp2:any use_tp_pp_dp_mapping:any use_gloo_process_groups:any
checkpoint*: save:any ckpt_format:any async_save:any use_persistent_ckpt_worker:any load_optim:any
  load_main_params_from_ckpt:any
dataset*: seq_length:any sequence_length:any
logger*:
rng*:
tokenizer*:
profiling*: use_pytorch_profiler:any use_nsys_profiler:any profile_step_start:any=10 profile_step_end:any=12
mixed_precision*:
peft*:
comm_overlap*:
rerun_state_machine*:
]]

function bridge.families() return { require 'trinity.job.rules.bridge' } end

local degrees = 'model.tensor_model_parallel_size model.pipeline_model_parallel_size model.context_parallel_size'
local derived = { gpus = 'gpus', given = '', tensor = 'model.tensor_model_parallel_size', data = degrees,
  pipeline = 'model.pipeline_model_parallel_size', context = 'model.context_parallel_size' }
bridge.derived = derived

function bridge.known(name) return derived[name] ~= nil or declared.sections[name] ~= nil end

function bridge.read(job, tree)
  if type(tree.mixed_precision) == 'string' then tree.mixed_precision = nil end
  nested.read(job, declared, tree, function(path) job.unread[#job.unread + 1] = path end, function() end)
end

bridge.argument, bridge.with, bridge.space = nested.argument, nested.with, nested.space

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
