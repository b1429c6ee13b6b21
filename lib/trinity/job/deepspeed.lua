-- DeepSpeed's JSON, and the command line that launches the job, which has the degrees.

local nested = require 'trinity.job.nested'
local util = require 'trinity.base.util'

local deepspeed = { client = 'DeepSpeed', runtime = 'deepspeed', release = 'edaa7221267243c7be7fb49c5d5f5c4fb97b4641' }

local declared = nested.declare [[
: train_batch_size:any train_micro_batch_size_per_gpu:any gradient_accumulation_steps:any gradient_clipping:any
  steps_per_print:any wall_clock_breakdown:flag=false dump_state:flag=false disable_allgather:flag=false
  communication_data_type:any seq_parallel_communication_data_type:any prescale_gradients:flag=false
  gradient_predivide_factor:float=1 gradient_allreduce_op:any=mean sparse_gradients:flag=false
  zero_allow_untested_optimizer:flag=false zero_force_ds_cpu_optimizer:flag=true
  memory_breakdown:flag=false dataloader_drop_last:flag=false log_level:any graph_harvesting:flag=false
  use_data_before_expert_parallelism:flag=false sequence_parallel_size:int=1 vocabulary_size:int
  managed_gradient_accumulation:flag=true allgather_size:any
optimizer: type legacy_fusion:flag=false torch_adam:flag=false
optimizer.params*:
scheduler: type
scheduler.params*:
fp16: enabled:any=false auto_cast:any=false loss_scale:any=0 initial_scale_power:any=16 loss_scale_window:any=1000
  hysteresis:any=2 consecutive_hysteresis:any=false min_loss_scale:any=1 fp16_master_weights_and_grads:any=false
bf16: enabled:any=false immediate_grad_update:any=false check_grad_overflow:any=true
  bf16_master_weights_and_grads:any=false bf16_optimizer_states:any=false
bfloat16: enabled:any=false immediate_grad_update:any=false check_grad_overflow:any=true
  bf16_master_weights_and_grads:any=false bf16_optimizer_states:any=false
amp*: enabled:any=false
torch_autocast: enabled:any=false dtype:any lower_precision_safe_modules:list
zero_optimization: stage:any=0 contiguous_gradients:any=true reduce_scatter:any=true reduce_bucket_size:any=500000000
  use_multi_rank_bucket_allreduce:any=true allgather_partitions:any=true allgather_bucket_size:any=500000000
  overlap_comm:any load_from_fp32_weights:any=true elastic_checkpoint:any=false zenflow:any
  sub_group_size:any=1000000000
  cpu_offload_param:any cpu_offload_use_pin_memory:any cpu_offload:any prefetch_bucket_size:any
  stage3_prefetch_bucket_size:any=50000000 param_persistence_threshold:any stage3_param_persistence_threshold:any=100000
  model_persistence_threshold:any stage3_model_persistence_threshold:any max_live_parameters:any
  stage3_max_live_parameters:any=1000000000 max_reuse_distance:any stage3_max_reuse_distance:any=1000000000
  gather_16bit_weights_on_model_save:any stage3_gather_16bit_weights_on_model_save:any=false
  module_granularity_threshold:any stage3_module_granularity_threshold:any=0 use_all_reduce_for_fetch_params:any
  stage3_use_all_reduce_for_fetch_params:any=false allgather_sequential:any stage3_allgather_sequential:any=false
  stage3_gather_fp16_weights_on_model_save:any=false ignore_unused_parameters:any=true legacy_stage1:any=false
  round_robin_gradients:any=false zero_hpz_partition_size:any=1 zero_quantized_weights:any=false
  zero_quantized_nontrainable_weights:any=false zero_quantized_gradients:any=false zeropp_loco_param:any
  mics_shard_size:any=-1 mics_hierarchical_params_gather:any=false memory_efficient_linear:any=true
  pipeline_loading_checkpoint:any=false override_module_apply:any=true log_trace_cache_warnings:any=false
  enable_sanity_checks:any=false save_muon_momentum_buffer_in_memory:any=false leaf_module:any
zero_optimization.offload_param: device:any=none nvme_path:any buffer_count:any=5 buffer_size:any=100000000
  max_in_cpu:any=1000000000 pin_memory:any=true
zero_optimization.offload_optimizer: device:any=none nvme_path:any buffer_count:any=4 pin_memory:any=true
  pipeline_read:any=false pipeline_write:any=false fast_init:any=false ratio:any=1 super_offload:any=false
  cpuadam_cores_perc:any=0.8
tensor_parallel: dtype:any autotp_size:any=0 tp_overlap_comm:any=false tp:any tensor_parallel:any
  injection_policy_tuple:any partition_config:any preset_model:any keep_module_on_host:any=false
  kernel_inject:any=false replace_with_kernel_inject:any
activation_checkpointing*: partition_activations:flag=false cpu_checkpointing:flag=false number_checkpoints:int
  contiguous_memory_optimization:flag=false synchronize_checkpoint_boundary:flag=false profile:flag=false
checkpoint*: tag_validation:any=Warn load_universal:flag=false use_node_local_storage:flag=false
checkpoint.parallel_write*: pipeline_stage:any=false
data_types: grad_accum_dtype:any param_dtype:any buffer_dtype:any
elasticity*: enabled:any=false max_train_batch_size:any micro_batch_sizes:any min_gpus:any=1 max_gpus:any=10000
  ignore_non_elastic_batch_info:any=false model_parallel_size:any=1 num_gpus_per_node:any=1 min_time:any=0
  version:any=0.2
sparse_attention*: mode:any=fixed
flops_profiler*:
comms_logger*:
tensorboard*:
wandb*:
csv_monitor*:
comet*:
aio*:
autotuning*:
eigenvalue*:
pipeline*:
progressive_layer_drop*:
curriculum_learning*:
data_efficiency*:
compression_training*:
hybrid_engine*:
nebula*:
datastates*:
weight_quantization*:
compile*: deepcompile:flag=false
timers*:
expert_parallel*: enabled:flag=false
]]

function deepspeed.families() return { require 'trinity.job.rules.deepspeed' } end

local batches = 'train_batch_size train_micro_batch_size_per_gpu gradient_accumulation_steps'
local derived = { gpus = 'gpus', given = '', auto = '', world = '', tensor = 'tensor_parallel.autotp_size',
  pipeline = '',
  sequence = 'sequence_parallel_size', batch = batches, micro = batches, accumulation = batches,
  stage = 'zero_optimization.stage', optimizer_name = 'optimizer.type', short_zero = 'zero_optimization' }

deepspeed.derived = derived

function deepspeed.known(name)
  return derived[name] ~= nil or declared.sections[name] ~= nil or declared.keys[name] ~= nil
end

-- Reads the degrees of the launch line.
local function launched(job)
  local list, found = {}, {}
  for word in (job.launch or ''):gmatch '[^%s=]+' do list[#list + 1] = word end
  local names = { ['-p'] = 'pipeline', ['--pipeline-parallel-size'] = 'pipeline', ['--pipe-parallel-size'] = 'pipeline',
    ['--pipeline-model-parallel-size'] = 'pipeline', ['--tensor-model-parallel-size'] = 'tensor',
    ['--model-parallel-size'] = 'tensor', ['--num_gpus'] = 'gpus_per_node', ['--num_nodes'] = 'nodes' }
  for i, word in ipairs(list) do
    if names[word] then found[names[word]] = tonumber(list[i + 1]) end
  end
  job.gpus_said = found.gpus_per_node and found.gpus_per_node * (found.nodes or 1) or nil
  return found
end

-- Values 'auto', which the Hugging Face trainer fills in, count as missing.
local function without_auto(tree, job, path)
  local copy = {}
  for name, value in util.sorted_pairs(tree) do
    local full = path == '' and tostring(name) or path .. '.' .. name
    if type(value) == 'table' and #value == 0 then
      copy[name] = without_auto(value, job, full)
    elseif value == 'auto' then
      job.unread[#job.unread + 1] = full .. ': auto'
    else
      copy[name] = value
    end
  end
  return copy
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
  local plain = without_auto(tree, job, '')
  job.auto = tree.train_batch_size == 'auto' or tree.train_micro_batch_size_per_gpu == 'auto'
  nested.read(job, declared, plain, function(path, section)
    job.unread[#job.unread + 1] = path
    local top = section == ''
    local names = {}
    for full, key in util.sorted_pairs(declared.keys) do
      if key.section == section then names[#names + 1] = full end
    end
    job.faults[#job.faults + 1] = { code = 'key-unknown', effect = top and 'ignored' or 'refused', paths = { path },
      text = top and ('An unknown key is silently ignored: %s.'):format(util.unknown(path, names))
        or ('An unknown key of %s is refused: %s.'):format(section, util.unknown(path, names)),
      source = 'deepspeedai/DeepSpeed deepspeed/runtime/' .. (top and 'config.py:780' or 'config_utils.py:110'),
      release = deepspeed.release }
  end, function(path, key, value)
    job.faults[#job.faults + 1] = { code = 'value-kind', effect = 'refused', paths = { path },
      text = ('%s: expected a value of type %s, got %s.'):format(path, key.kind, util.describe(value)),
      source = 'deepspeedai/DeepSpeed deepspeed/runtime/config_utils.py:110', release = deepspeed.release }
  end)
end

deepspeed.argument, deepspeed.with = nested.argument, nested.with

function deepspeed.space(job)
  local tree = nested.space(job)
  tree.tensor = job.launched.tensor or tree.tensor_parallel.autotp_size
  if tree.tensor == 0 then tree.tensor = 1 end
  tree.pipeline, tree.sequence = job.launched.pipeline or 1, tree.sequence_parallel_size
  tree.short_zero = job.short_zero
  local ranks = tree.tensor * tree.pipeline * tree.sequence
  tree.world = job.gpus and job.gpus % ranks == 0 and job.gpus / ranks or nil
  tree.batch, tree.micro = tree.train_batch_size, tree.train_micro_batch_size_per_gpu
  tree.accumulation = tree.gradient_accumulation_steps
  tree.optimizer_name = (tree.optimizer.type or ''):lower()
  tree.auto = job.auto
  return tree
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
