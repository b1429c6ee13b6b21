-- DeepSpeed's JSON, and the command line that launches the job, which has the degrees.

local arguments = require 'trinity.job.arguments'
local util = require 'trinity.base.util'

local deepspeed = { client = 'DeepSpeed', runtime = 'deepspeed', release = 'edaa7221267243c7be7fb49c5d5f5c4fb97b4641',
  rules = 'trinity.job.rules.deepspeed', auto = true,
  base = { launched = '', auto = '', short_zero = 'zero_optimization' },
  parser = 'deepspeedai/DeepSpeed deepspeed/runtime/config_utils.py:110' }

deepspeed.declared = arguments.declare [[
.: train_batch_size:any train_micro_batch_size_per_gpu:any gradient_accumulation_steps:any gradient_clipping:any
  steps_per_print:any wall_clock_breakdown:flag=false dump_state:flag=false disable_allgather:flag=false
  communication_data_type:any seq_parallel_communication_data_type:any prescale_gradients:flag=false
  gradient_predivide_factor:float=1 gradient_allreduce_op:any=mean sparse_gradients:flag=false
  zero_allow_untested_optimizer:flag=false zero_force_ds_cpu_optimizer:flag=true memory_breakdown:flag=false
  dataloader_drop_last:flag=false log_level:any graph_harvesting:flag=false
  use_data_before_expert_parallelism:flag=false sequence_parallel_size:int=1 vocabulary_size:int
  managed_gradient_accumulation:flag=true allgather_size:any
optimizer: type legacy_fusion:flag=false torch_adam:flag=false
scheduler: type
fp16 any: enabled=false auto_cast=false loss_scale=0 initial_scale_power=16 loss_scale_window=1000 hysteresis=2
  consecutive_hysteresis=false min_loss_scale=1 fp16_master_weights_and_grads=false
bf16 any: enabled=false immediate_grad_update=false check_grad_overflow=true bf16_master_weights_and_grads=false
  bf16_optimizer_states=false
bfloat16 any: enabled=false immediate_grad_update=false check_grad_overflow=true bf16_master_weights_and_grads=false
  bf16_optimizer_states=false
amp* any: enabled=false
torch_autocast any: enabled=false dtype lower_precision_safe_modules:list
zero_optimization any: stage=0 contiguous_gradients=true reduce_scatter=true reduce_bucket_size=500000000
  use_multi_rank_bucket_allreduce=true allgather_partitions=true allgather_bucket_size=500000000 overlap_comm
  load_from_fp32_weights=true elastic_checkpoint=false zenflow sub_group_size=1000000000 cpu_offload_param
  cpu_offload_use_pin_memory cpu_offload prefetch_bucket_size stage3_prefetch_bucket_size=50000000
  param_persistence_threshold stage3_param_persistence_threshold=100000 model_persistence_threshold
  stage3_model_persistence_threshold max_live_parameters stage3_max_live_parameters=1000000000 max_reuse_distance
  stage3_max_reuse_distance=1000000000 gather_16bit_weights_on_model_save
  stage3_gather_16bit_weights_on_model_save=false module_granularity_threshold stage3_module_granularity_threshold=0
  use_all_reduce_for_fetch_params stage3_use_all_reduce_for_fetch_params=false allgather_sequential
  stage3_allgather_sequential=false stage3_gather_fp16_weights_on_model_save=false ignore_unused_parameters=true
  legacy_stage1=false round_robin_gradients=false zero_hpz_partition_size=1 zero_quantized_weights=false
  zero_quantized_nontrainable_weights=false zero_quantized_gradients=false zeropp_loco_param mics_shard_size=-1
  mics_hierarchical_params_gather=false memory_efficient_linear=true pipeline_loading_checkpoint=false
  override_module_apply=true log_trace_cache_warnings=false enable_sanity_checks=false
  save_muon_momentum_buffer_in_memory=false leaf_module
zero_optimization.offload_param any: device=none nvme_path buffer_count=5 buffer_size=100000000 max_in_cpu=1000000000
  pin_memory=true
zero_optimization.offload_optimizer any: device=none nvme_path buffer_count=4 pin_memory=true pipeline_read=false
  pipeline_write=false fast_init=false ratio=1 super_offload=false cpuadam_cores_perc=0.8
tensor_parallel any: dtype autotp_size:int=0 tp_overlap_comm=false tp tensor_parallel injection_policy_tuple
  partition_config preset_model keep_module_on_host=false kernel_inject=false replace_with_kernel_inject
activation_checkpointing*: partition_activations:flag=false cpu_checkpointing:flag=false number_checkpoints:int
  contiguous_memory_optimization:flag=false synchronize_checkpoint_boundary:flag=false profile:flag=false
checkpoint*: tag_validation:any=Warn load_universal:flag=false use_node_local_storage:flag=false
checkpoint.parallel_write* any: pipeline_stage=false
data_types any: grad_accum_dtype param_dtype buffer_dtype
elasticity* any: enabled=false max_train_batch_size micro_batch_sizes min_gpus=1 max_gpus=10000
  ignore_non_elastic_batch_info=false model_parallel_size=1 num_gpus_per_node=1 min_time=0 version=0.2
sparse_attention* any: mode=fixed
compile*: deepcompile:flag=false
expert_parallel*: enabled:flag=false
optimizer.params* scheduler.params* flops_profiler* comms_logger* tensorboard* wandb* csv_monitor* comet* aio*
  autotuning* eigenvalue* pipeline* progressive_layer_drop* curriculum_learning* data_efficiency*
  compression_training* hybrid_engine* nebula* datastates* weight_quantization* timers*:
]]

--- An unknown key is ignored among the outermost keys, and refused in a section.
function deepspeed.undeclared(_, section)
  if section ~= '' then return 'refused' end
  return 'ignored', 'deepspeedai/DeepSpeed deepspeed/runtime/config.py:780'
end

-- Returns the degrees of the launch line.
local function launched(job)
  local list, found = {}, {}
  for word in (job.source.launch or ''):gmatch '[^%s=]+' do list[#list + 1] = word end
  local names = { ['-p'] = 'pipeline', ['--pipeline-parallel-size'] = 'pipeline', ['--pipe-parallel-size'] = 'pipeline',
    ['--pipeline-model-parallel-size'] = 'pipeline', ['--tensor-model-parallel-size'] = 'tensor',
    ['--model-parallel-size'] = 'tensor', ['--num_gpus'] = 'gpus_per_node', ['--num_nodes'] = 'nodes' }
  for i, word in ipairs(list) do
    if names[word] then found[names[word]] = tonumber(list[i + 1]) end
  end
  job.gpus_said = found.gpus_per_node and found.gpus_per_node * (found.nodes or 1) or nil
  return found
end

--- Reads a JSON object.
function deepspeed.read(job, tree)
  job.launched = launched(job)
  if type(tree.zero_optimization) == 'boolean' then
    job.short_zero = tree.zero_optimization
    tree = util.merged(tree)
    tree.zero_optimization = { stage = job.short_zero and 1 or 0 }
  end
  if type(tree.bf16) ~= 'table' and type(tree.bfloat16) == 'table' then tree.bf16 = tree.bfloat16 end
  job.auto = tree.train_batch_size == 'auto' or tree.train_micro_batch_size_per_gpu == 'auto'
  arguments.read(job, tree)
end

--- Returns the values for rules, with the degrees of the launch line.
function deepspeed.space(job)
  return util.merged(arguments.space(job), { launched = job.launched, auto = job.auto, short_zero = job.short_zero })
end

--- Converts values to fields of the job.
function deepspeed.meaning(job, v)
  local stage = tonumber(v.zero_optimization.stage)
  job.model = {}
  job.mesh = { tensor = (job.launched.tensor or job.launched.pipeline or v.tensor > 1) and v.tensor or nil,
    pipeline = job.launched.pipeline, data = v.world }
  job.micro_batch, job.global_batch, job.micro_batches = v.micro, v.batch, v.accumulation
  local auto = false
  for _, path in ipairs(job.unread) do auto = auto or path == 'bf16.enabled: auto' or path == 'fp16.enabled: auto' end
  job.precision = v.bf16.enabled == true and 'bf16' or v.fp16.enabled == true and 'fp16' or not auto and 'fp32' or nil
  job.zero_stage, job.distributed_optimizer = stage, (stage or 0) > 0
  local overlap = v.zero_optimization.overlap_comm
  if overlap == nil then overlap = stage == 3 end
  job.overlaps = { gradients = overlap, weights = stage == 3 }
  local optimizer, parameters = v.zero_optimization.offload_optimizer.device, v.zero_optimization.offload_param.device
  job.offload = (optimizer ~= 'none' or parameters ~= 'none') and {
    optimizer = optimizer ~= 'none' and optimizer or nil,
    parameters = parameters ~= 'none' and parameters or nil } or nil
end

return deepspeed
