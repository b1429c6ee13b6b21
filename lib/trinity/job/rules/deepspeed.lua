-- DeepSpeed's rules.

local thresholds = { reduce_bucket_size = 113, allgather_bucket_size = 132, sub_group_size = 175,
  prefetch_bucket_size = 215, stage3_prefetch_bucket_size = 215, param_persistence_threshold = 221,
  stage3_param_persistence_threshold = 221, model_persistence_threshold = 228,
  stage3_model_persistence_threshold = 228, max_live_parameters = 238, stage3_max_live_parameters = 238,
  max_reuse_distance = 244, stage3_max_reuse_distance = 244, zero_hpz_partition_size = 309 }

local rules = {
  { 'gpus-multiple', 'gpus and not multiple(gpus, tensor * pipeline * sequence)',
    'The number of GPUs must be a multiple of tensor x pipeline x sequence degrees.', 'topology:295' },
  { 'elastic-batch', "elasticity.enabled == true and not elasticity.ignore_non_elastic_batch_info"
    .. ' and (batch or micro or accumulation)', 'Elastic training excludes batches given apart.', 'config:764' },
  { 'elastic-batch-idle', 'elasticity.enabled == true and elasticity.ignore_non_elastic_batch_info'
    .. ' and (batch or micro or accumulation)', 'Elastic training silently replaces the batches given.', 'config:775',
    'ignored' },
  { 'elastic-most', 'elasticity.enabled == true and elasticity.max_train_batch_size == nil',
    'Elastic training needs the largest batch.', 'elastic:54' },
  { 'elastic-micro', 'elasticity.enabled == true and elasticity.micro_batch_sizes == nil',
    'Elastic training needs its micro-batches.', 'elastic:58' },
  { 'elastic-gpus', 'elasticity.enabled == true and (elasticity.min_gpus < 1 or elasticity.max_gpus < 1)',
    'The GPUs of elastic training must be positive.', 'elastic:81' },
  { 'elastic-order', 'elasticity.enabled == true and elasticity.min_gpus > elasticity.max_gpus',
    'The fewest GPUs of elastic training may not exceed the most.', 'elastic:84' },
  { 'message-type', "communication_data_type ~= nil and not among(tostring(communication_data_type):lower(),"
    .. " 'fp16 bf16 fp32')", 'The data type of messages is fp16, bf16 or fp32.', 'config:223' },
  { 'sequence-message-type', "seq_parallel_communication_data_type ~= nil"
    .. " and not among(tostring(seq_parallel_communication_data_type):lower(), 'fp16 bf16 fp32')",
    'The data type of messages is fp16, bf16 or fp32.', 'config:223' },
  { 'reduce-operation', "not among(tostring(gradient_allreduce_op):lower(), 'mean avg sum')",
    'Gradients are reduced by mean or sum.', 'config:239' },
  { 'zero-short', 'short_zero ~= nil', 'The short form of ZeRO is deprecated and read as stage 1, or 0 (a warning).',
    'zero:66', 'changed' },
  { set = 'stage = tonumber(zero_optimization.stage)' },
  { 'zero-stage', 'not (stage and stage >= 0 and stage <= 3 and stage % 1 == 0)', 'The ZeRO stages are 0 to 3.',
    'zero:81' },
  { set = 'stage = stage or 0' },
  { 'offload-optimizer-device', "not among(zero_optimization.offload_optimizer.device, 'none cpu nvme')",
    'Offloading goes to none, cpu or nvme.', 'offload:58' },
  { 'offload-param-device', "not among(zero_optimization.offload_param.device, 'none cpu nvme')",
    'Offloading goes to none, cpu or nvme.', 'offload:24' },
  { 'offload-param-path', "zero_optimization.offload_param.device == 'nvme'"
    .. ' and not zero_optimization.offload_param.nvme_path', 'Offloading to NVMe needs its path.', 'offload:29' },
  { 'offload-ratio', 'type(zero_optimization.offload_optimizer.ratio) ~= "number"'
    .. ' or zero_optimization.offload_optimizer.ratio < 0 or zero_optimization.offload_optimizer.ratio > 1',
    'The offloaded ratio is between 0 and 1.', 'offload:99' },
  { 'offload-ratio-stage', "given('zero_optimization.offload_optimizer.ratio') and stage ~= 3"
    .. ' and zero_optimization.offload_optimizer.ratio < 1', 'Partial offloading needs ZeRO stage 3.', 'zero:392' },
  { 'offload-cores', 'type(zero_optimization.offload_optimizer.cpuadam_cores_perc) == "number"'
    .. ' and (zero_optimization.offload_optimizer.cpuadam_cores_perc < 0'
    .. ' or zero_optimization.offload_optimizer.cpuadam_cores_perc > 1)',
    'The share of CPU cores is between 0 and 1.', 'offload:105' },
  { 'offload-buffers', '(tonumber(zero_optimization.offload_optimizer.buffer_count) or 0) < 0',
    'Buffers of offloading are not negative.', 'offload:67' },
  { 'offload-param-buffers', '(tonumber(zero_optimization.offload_param.buffer_count) or 0) < 0',
    'Buffers of offloading are not negative.', 'offload:33' },
  { 'offload-param-size', '(tonumber(zero_optimization.offload_param.buffer_size) or 0) < 0',
    'Buffers of offloading are not negative.', 'offload:36' },
  { 'offload-param-host', '(tonumber(zero_optimization.offload_param.max_in_cpu) or 0) < 0',
    'Parameters kept on the host are not negative.', 'offload:39' },
  { 'offload-param-idle', "zero_optimization.offload_param.device ~= 'none' and stage ~= 3"
    .. " and among(zero_optimization.offload_param.device, 'cpu nvme')",
    'Offloading parameters has no effect below ZeRO stage 3.', 'zero:157', 'ignored' },
  { 'offload-optimizer-idle', "among(zero_optimization.offload_optimizer.device, 'cpu nvme') and stage == 0",
    'Offloading the optimizer has no effect without ZeRO.', 'zero:164', 'ignored' },
  { 'offload-old', 'zero_optimization.cpu_offload ~= nil or zero_optimization.cpu_offload_param ~= nil'
    .. ' or zero_optimization.cpu_offload_use_pin_memory ~= nil',
    'The old keys of offloading stand for offload_optimizer and offload_param.', 'zero:181', 'changed' },
  { 'gather-old', "given('zero_optimization.stage3_gather_fp16_weights_on_model_save')",
    'The old key stands for gather_16bit_weights_on_model_save.', 'zero:280', 'changed' },
  { 'stage-3-idle', "stage < 3 and (given('zero_optimization.stage3_max_live_parameters')"
    .. " or given('zero_optimization.stage3_max_reuse_distance')"
    .. " or given('zero_optimization.stage3_prefetch_bucket_size')"
    .. " or given('zero_optimization.stage3_param_persistence_threshold'))",
    'Keys of ZeRO stage 3 have no effect below it.', 'zero:215', 'ignored' },
  { 'loss-scale-kind', 'type(fp16.loss_scale) == "boolean"', 'The loss scale is a number, not a truth value.',
    'precision:124' },
  { 'loss-scale-number', 'type(fp16.loss_scale) == "string" and not tonumber(fp16.loss_scale)',
    'The loss scale is a number.', 'precision:128' },
  { 'loss-scale-positive', 'type(fp16.loss_scale) == "number" and fp16.loss_scale < 0',
    'The loss scale is 0 (dynamic) or positive.', 'precision:132' },
  { 'loss-window-kind', 'type(fp16.loss_scale_window) == "boolean" or type(fp16.min_loss_scale) == "boolean"',
    'Window and least value of the loss scale are whole numbers.', 'precision:173' },
  { 'loss-window', 'fp16.enabled == true and fp16.loss_scale == 0 and type(fp16.loss_scale_window) == "number"'
    .. ' and fp16.loss_scale_window <= 0', 'The window of the dynamic loss scale is positive.', 'precision:193' },
  { 'loss-least', 'fp16.enabled == true and fp16.loss_scale == 0 and type(fp16.min_loss_scale) == "number"'
    .. ' and fp16.min_loss_scale <= 0', 'The least dynamic loss scale is positive.', 'precision:196' },
  { 'fp16-enabled-kind', 'type(fp16.enabled) ~= "boolean" and not among(fp16.enabled, "0 1 true false")',
    'Precision is enabled by true or false.', 'utils:110' },
  { 'bf16-enabled-kind', 'type(bf16.enabled) ~= "boolean" and not among(bf16.enabled, "0 1 true false")',
    'Precision is enabled by true or false.', 'utils:110' },
  { 'fp16-bf16', 'fp16.enabled == true and bf16.enabled == true', 'BF16 and FP16 may not both be on.', 'config:827' },
  { 'autocast-type', "torch_autocast.dtype ~= nil and not among(torch_autocast.dtype, 'torch.float16 fp16 float16 half"
    .. " torch.bfloat16 bf16 bfloat16 torch.float32 fp32 float32 float torch.int8 int8')",
    'The data type of autocast is fp16, bf16 or fp32.', 'config:181' },
  { 'sparse-mode', "sparse_attention.mode ~= nil and not among(sparse_attention.mode, 'dense fixed variable bigbird"
    .. " bslongformer')", 'Only the sparse attention modes known are taken.', 'config:281' },
  { 'tag-validation', "not among(tostring(checkpoint.tag_validation):lower(), 'ignore warn fail')",
    'The check of checkpoint tags is Ignore, Warn or Fail.', 'config:648' },
  { 'parallel-write', 'type(checkpoint.parallel_write.pipeline_stage) ~= "boolean"',
    'Writing checkpoints by pipeline stages is true or false.', 'config:660' },
  { 'batch-given', "not batch and not micro and not auto", 'The batch or the micro-batch must be said.', 'config:984' },
  { set = 'if world and batch and micro and not accumulation then'
    .. ' accumulation = floor(floor(batch / micro) / world)\n'
    .. 'elseif world and batch and accumulation and not micro then'
    .. ' micro = accumulation > 0 and floor(floor(batch / world) / accumulation) or 0\n'
    .. 'elseif world and micro and accumulation and not batch then batch = micro * accumulation * world\n'
    .. 'elseif world and batch and not micro then accumulation, micro = 1, floor(batch / world)\n'
    .. 'elseif world and micro and not batch then batch, accumulation = micro * world, 1 end' },
  { 'batch-positive', 'not positive(batch) and (positive(accumulation) or not given("gradient_accumulation_steps"))',
    'The batch is positive.', 'config:931' },
  { 'accumulation-positive', 'not positive(accumulation) and given("gradient_accumulation_steps")'
    .. ' and not positive(batch)', 'The accumulation steps are positive.', 'config:931' },
  { 'micro-positive', 'positive(batch) and not positive(micro) and (given("train_micro_batch_size_per_gpu")'
    .. ' or batch and world and batch < world)', 'The micro-batch derived must be positive.', 'config:933' },
  { 'micro-derived', 'positive(batch) and not positive(micro) and not given("train_micro_batch_size_per_gpu")'
    .. ' and not (batch and world and batch < world)',
    'Batch = micro-batch x accumulation x data-parallel degree; what is not said is derived by whole division, and a'
      .. ' rest is refused.', 'config:933' },
  { 'accumulation-derived', 'positive(batch) and positive(micro) and not positive(accumulation)',
    'The accumulation steps are positive.', 'config:935' },
  { 'batch-product', 'world and batch and micro and accumulation and batch > 0 and micro > 0 and accumulation > 0'
    .. ' and batch ~= micro * accumulation * world',
    'Batch = micro-batch x accumulation x data-parallel degree; what is not said is derived by whole division, and a'
      .. ' rest is refused.', 'config:937' },
  { 'sum-weights', "tostring(gradient_allreduce_op):lower() == 'sum' and stage == 3",
    'Gradients are not reduced by sum at ZeRO stage 3.', 'config:1031' },
  { 'sum-zenflow', "tostring(gradient_allreduce_op):lower() == 'sum' and zero_optimization.zenflow ~= nil",
    'Gradients are not reduced by sum with ZenFlow.', 'config:1033' },
  { 'sum-compile', "tostring(gradient_allreduce_op):lower() == 'sum' and compile.deepcompile",
    'Gradients are not reduced by sum with DeepCompile.', 'config:1035' },
  { 'fp16-master', 'fp16.fp16_master_weights_and_grads == true and (stage < 1 or stage > 3)',
    'Master weights in FP16 need ZeRO stage 1 to 3.', 'config:1038' },
  { 'bf16-master', 'bf16.bf16_master_weights_and_grads == true and (stage < 1 or stage > 3)',
    'Master weights in BF16 need ZeRO stage 1 to 3.', 'config:1042' },
  { 'bf16-states', 'bf16.bf16_optimizer_states == true and (stage < 1 or stage > 3)',
    'Optimizer states in BF16 need ZeRO stage 1 to 3.', 'config:1046' },
  { 'bf16-states-master', 'bf16.bf16_optimizer_states == true and bf16.bf16_master_weights_and_grads ~= true',
    'Optimizer states in BF16 need master weights and gradients in BF16.', 'config:1049' },
  { 'gradient-norm', 'fp16.enabled ~= true and type(optimizer.params.max_grad_norm) == "number"'
    .. ' and optimizer.params.max_grad_norm > 0',
    'Without FP16 a gradient norm among the optimizer parameters is silently set to zero (a warning).', 'config:1068',
    'changed' },
  { 'vocabulary', 'vocabulary_size and vocabulary_size % 8 ~= 0',
    'The vocabulary is no multiple of 8 (a warning: matmuls are slower).', 'config:1055', 'ignored' },
  { 'pipeline-stage', 'pipeline > 1 and stage > 1', 'Pipeline stages go along with ZeRO stage 0 or 1 only.',
    'pipe:76' },
  { 'scheduler-known', "scheduler.type and not among(scheduler.type, 'LRRangeTest OneCycle WarmupLR WarmupDecayLR"
    .. ' WarmupCosineLR LambdaLR MultiplicativeLR StepLR MultiStepLR ConstantLR LinearLR ExponentialLR SequentialLR'
    .. ' CosineAnnealingLR ChainedScheduler ReduceLROnPlateau CyclicLR CosineAnnealingWarmRestarts OneCycleLR'
    .. " PolynomialLR')", "The scheduler is DeepSpeed's or one of torch.optim.lr_scheduler.", 'engine:1604' },
  { 'one-bit-adam', "optimizer_name == 'onebitadam' and stage > 0", '1-bit Adam excludes ZeRO.', 'engine:2152' },
  { 'zero-one-adam', "optimizer_name == 'zerooneadam' and stage > 0", '0/1 Adam excludes ZeRO.', 'engine:2159' },
  { 'one-bit-lamb', "optimizer_name == 'onebitlamb' and stage > 0", '1-bit LAMB excludes ZeRO.', 'engine:2166' },
  { 'amp-half', 'amp.enabled == true and (fp16.enabled == true or bf16.enabled == true)',
    'AMP excludes FP16 and BF16.', 'engine:2003' },
  { 'amp-zero', 'amp.enabled == true and stage > 0', 'AMP excludes ZeRO.', 'engine:2000' },
}

for _, name in ipairs { 'reduce_bucket_size', 'allgather_bucket_size', 'sub_group_size', 'prefetch_bucket_size',
  'stage3_prefetch_bucket_size', 'param_persistence_threshold', 'stage3_param_persistence_threshold',
  'model_persistence_threshold', 'stage3_model_persistence_threshold', 'max_live_parameters',
  'stage3_max_live_parameters', 'max_reuse_distance', 'stage3_max_reuse_distance', 'zero_hpz_partition_size' } do
  table.insert(rules, { 'threshold-' .. name, ('type(zero_optimization.%s) == "number" and zero_optimization.%s < 0')
    :format(name, name), 'Thresholds are not negative.', 'zero:' .. thresholds[name] })
  table.insert(rules, { 'whole-' .. name, ('type(zero_optimization.%s) == "string" and not tonumber('
    .. 'zero_optimization.%s)'):format(name, name), 'Thresholds are whole numbers.', 'zero:' .. thresholds[name] })
end

local runtime = 'deepspeed/runtime/'

return { name = 'deepspeed', repository = 'deepspeedai/DeepSpeed', rules = rules,
  release = 'edaa7221267243c7be7fb49c5d5f5c4fb97b4641',
  parts = { config = runtime .. 'config.py', zero = runtime .. 'zero/config.py',
    offload = runtime .. 'zero/offload_config.py', precision = runtime .. 'precision_config.py',
    utils = runtime .. 'config_utils.py', pipe = runtime .. 'pipe/engine.py', engine = runtime .. 'engine.py',
    topology = runtime .. 'pipe/topology.py', elastic = 'deepspeed/elasticity/config.py' } }
