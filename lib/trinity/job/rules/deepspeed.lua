-- Rules of DeepSpeed (trinity.job.rules).

local rules = [[
=> zero = zero_optimization; weights = zero_optimization.offload_param; states = zero_optimization.offload_optimizer
=> batch = train_batch_size; micro = train_micro_batch_size_per_gpu; accumulation = gradient_accumulation_steps;
  sequence = sequence_parallel_size; pipeline = launched.pipeline or 1; tensor = launched.tensor or max(1,
  tensor_parallel.autotp_size); ranks = tensor * pipeline * sequence; world = gpus and multiple(gpus, ranks) and gpus
  / ranks or nil; optimizer_name = (optimizer.type or ''):lower()
gpus-multiple topology:295 gpus and not multiple(gpus, tensor * pipeline * sequence) | The number of GPUs must be a
  multiple of tensor x pipeline x sequence degrees.
elastic-batch config:764 elasticity.enabled == true and not elasticity.ignore_non_elastic_batch_info and (batch or
  micro or accumulation) | Elastic training excludes batches given apart.
elastic-batch-idle ignored config:775 elasticity.enabled == true and elasticity.ignore_non_elastic_batch_info and
  (batch or micro or accumulation) | Elastic training silently replaces the batches given.
elastic-most elastic:54 elasticity.enabled == true and elasticity.max_train_batch_size == nil
elastic-micro elastic:58 elasticity.enabled == true and elasticity.micro_batch_sizes == nil
elastic-gpus elastic:81 elasticity.enabled == true and (elasticity.min_gpus < 1 or elasticity.max_gpus < 1)
elastic-order elastic:84 elasticity.enabled == true and elasticity.min_gpus > elasticity.max_gpus
message-type config:223 communication_data_type ~= nil and not among(tostring(communication_data_type):lower(), 'fp16
  bf16 fp32') | The data type of messages is fp16, bf16 or fp32.
sequence-message-type config:223 seq_parallel_communication_data_type ~= nil and not
  among(tostring(seq_parallel_communication_data_type):lower(), 'fp16 bf16 fp32') | The data type of messages is fp16,
  bf16 or fp32.
reduce-operation config:239 not among(tostring(gradient_allreduce_op):lower(), 'mean avg sum') | Gradients are reduced
  by mean or sum.
zero-short changed zero:66 short_zero ~= nil | The short form of ZeRO is deprecated and read as stage 1, or 0 (a
  warning).
=> stage = tonumber(zero.stage)
zero-stage zero:81 not (stage and stage >= 0 and stage <= 3 and stage % 1 == 0) | The ZeRO stages are 0 to 3.
=> stage = stage or 0
offload-optimizer-device offload:58 not among(states.device, 'none cpu nvme')
offload-param-device offload:24 not among(weights.device, 'none cpu nvme')
offload-param-path offload:29 weights.device == 'nvme' and not weights.nvme_path
offload-ratio offload:99 type(states.ratio) ~= 'number' or states.ratio < 0 or states.ratio > 1 | The offloaded ratio
  is between 0 and 1.
offload-ratio-stage zero:392 given('zero_optimization.offload_optimizer.ratio') and stage ~= 3 and states.ratio < 1 |
  Partial offloading needs ZeRO stage 3.
offload-cores offload:105 type(states.cpuadam_cores_perc) == 'number' and (states.cpuadam_cores_perc < 0 or
  states.cpuadam_cores_perc > 1) | The share of CPU cores is between 0 and 1.
offload-buffers offload:67 (tonumber(states.buffer_count) or 0) < 0 | Buffers of offloading are not negative.
offload-param-buffers offload:33 (tonumber(weights.buffer_count) or 0) < 0 | Buffers of offloading are not negative.
offload-param-size offload:36 (tonumber(weights.buffer_size) or 0) < 0 | Buffers of offloading are not negative.
offload-param-host offload:39 (tonumber(weights.max_in_cpu) or 0) < 0 | Parameters kept on the host are not negative.
offload-param-idle ignored zero:157 weights.device ~= 'none' and stage ~= 3 and among(weights.device, 'cpu nvme') |
  Offloading parameters has no effect below ZeRO stage 3.
offload-optimizer-idle ignored zero:164 among(states.device, 'cpu nvme') and stage == 0
offload-old changed zero:181 zero.cpu_offload ~= nil or zero.cpu_offload_param ~= nil or
  zero.cpu_offload_use_pin_memory ~= nil | The old keys of offloading stand for offload_optimizer and offload_param.
gather-old changed zero:280 given('zero_optimization.stage3_gather_fp16_weights_on_model_save') | The old key stands
  for gather_16bit_weights_on_model_save.
stage-3-idle ignored zero:215 stage < 3 and (given('zero_optimization.stage3_max_live_parameters') or
  given('zero_optimization.stage3_max_reuse_distance') or given('zero_optimization.stage3_prefetch_bucket_size') or
  given('zero_optimization.stage3_param_persistence_threshold'))
loss-scale-kind precision:124 type(fp16.loss_scale) == 'boolean' | The loss scale is a number, not a truth value.
loss-scale-number precision:128 type(fp16.loss_scale) == 'string' and not tonumber(fp16.loss_scale) | The loss scale
  is a number.
loss-scale-positive precision:132 type(fp16.loss_scale) == 'number' and fp16.loss_scale < 0 | The loss scale is 0
  (dynamic) or positive.
loss-window-kind precision:173 type(fp16.loss_scale_window) == 'boolean' or type(fp16.min_loss_scale) == 'boolean' |
  Window and least value of the loss scale are whole numbers.
loss-window precision:193 fp16.enabled == true and fp16.loss_scale == 0 and type(fp16.loss_scale_window) == 'number'
  and fp16.loss_scale_window <= 0 | The window of the dynamic loss scale is positive.
loss-least precision:196 fp16.enabled == true and fp16.loss_scale == 0 and type(fp16.min_loss_scale) == 'number' and
  fp16.min_loss_scale <= 0 | The least dynamic loss scale is positive.
fp16-enabled-kind utils:110 type(fp16.enabled) ~= 'boolean' and not among(fp16.enabled, '0 1 true false') | Precision
  is enabled by true or false.
bf16-enabled-kind utils:110 type(bf16.enabled) ~= 'boolean' and not among(bf16.enabled, '0 1 true false') | Precision
  is enabled by true or false.
fp16-bf16 config:827 fp16.enabled == true and bf16.enabled == true
autocast-type config:181 torch_autocast.dtype ~= nil and not among(torch_autocast.dtype, 'torch.float16 fp16 float16
  half torch.bfloat16 bf16 bfloat16 torch.float32 fp32 float32 float torch.int8 int8')
sparse-mode config:281 sparse_attention.mode ~= nil and not among(sparse_attention.mode, 'dense fixed variable bigbird
  bslongformer')
tag-validation config:648 not among(tostring(checkpoint.tag_validation):lower(), 'ignore warn fail') | The check of
  checkpoint tags is Ignore, Warn or Fail.
parallel-write config:660 type(checkpoint.parallel_write.pipeline_stage) ~= 'boolean' | Writing checkpoints by
  pipeline stages is true or false.
batch-given config:984 not batch and not micro and not auto | The batch or the micro-batch must be said.
=> if world and batch and micro and not accumulation then accumulation = floor(floor(batch / micro) / world); elseif
  world and batch and accumulation and not micro then micro = accumulation > 0 and floor(floor(batch / world) /
  accumulation) or 0; elseif world and micro and accumulation and not batch then batch = micro * accumulation * world;
  elseif world and batch and not micro then accumulation, micro = 1, floor(batch / world); elseif world and micro and
  not batch then batch, accumulation = micro * world, 1 end
batch-positive config:931 not positive(batch) and (positive(accumulation) or not given('gradient_accumulation_steps'))
  | The batch is positive.
accumulation-positive config:931 not positive(accumulation) and given('gradient_accumulation_steps') and not
  positive(batch) | The accumulation steps are positive.
micro-positive config:933 positive(batch) and not positive(micro) and (given('train_micro_batch_size_per_gpu') or
  batch and world and batch < world) | The micro-batch derived must be positive.
micro-derived config:933 positive(batch) and not positive(micro) and not given('train_micro_batch_size_per_gpu') and
  not (batch and world and batch < world) | Batch = micro-batch x accumulation x data-parallel degree; what is not
  said is derived by whole division, and a rest is refused.
accumulation-derived config:935 positive(batch) and positive(micro) and not positive(accumulation)
batch-product config:937 world and batch and micro and accumulation and batch > 0 and micro > 0 and accumulation > 0
  and batch ~= micro * accumulation * world | Batch = micro-batch x accumulation x data-parallel degree; what is not
  said is derived by whole division, and a rest is refused.
sum-weights config:1031 tostring(gradient_allreduce_op):lower() == 'sum' and stage == 3 | Gradients are not reduced by
  sum at ZeRO stage 3.
sum-zenflow config:1033 tostring(gradient_allreduce_op):lower() == 'sum' and zero.zenflow ~= nil | Gradients are not
  reduced by sum with ZenFlow.
sum-compile config:1035 tostring(gradient_allreduce_op):lower() == 'sum' and compile.deepcompile | Gradients are not
  reduced by sum with DeepCompile.
fp16-master config:1038 fp16.fp16_master_weights_and_grads == true and (stage < 1 or stage > 3) | Master weights in
  FP16 need ZeRO stage 1 to 3.
bf16-master config:1042 bf16.bf16_master_weights_and_grads == true and (stage < 1 or stage > 3) | Master weights in
  BF16 need ZeRO stage 1 to 3.
bf16-states config:1046 bf16.bf16_optimizer_states == true and (stage < 1 or stage > 3) | Optimizer states in BF16
  need ZeRO stage 1 to 3.
bf16-states-master config:1049 bf16.bf16_optimizer_states == true and bf16.bf16_master_weights_and_grads ~= true
gradient-norm changed config:1068 fp16.enabled ~= true and type(optimizer.params.max_grad_norm) == 'number' and
  optimizer.params.max_grad_norm > 0 | Without FP16 a gradient norm among the optimizer parameters is silently set to
  zero (a warning).
vocabulary ignored config:1055 vocabulary_size and vocabulary_size % 8 ~= 0 | The vocabulary is no multiple of 8 (a
  warning: matmuls are slower).
pipeline-stage pipe:76 pipeline > 1 and stage > 1
scheduler-known engine:1604 scheduler.type and not among(scheduler.type, 'LRRangeTest OneCycle WarmupLR WarmupDecayLR
  WarmupCosineLR LambdaLR MultiplicativeLR StepLR MultiStepLR ConstantLR LinearLR ExponentialLR SequentialLR
  CosineAnnealingLR ChainedScheduler ReduceLROnPlateau CyclicLR CosineAnnealingWarmRestarts OneCycleLR PolynomialLR')
  | The scheduler is DeepSpeed's or one of torch.optim.lr_scheduler.
one-bit-adam engine:2152 optimizer_name == 'onebitadam' and stage > 0
zero-one-adam engine:2159 optimizer_name == 'zerooneadam' and stage > 0
one-bit-lamb engine:2166 optimizer_name == 'onebitlamb' and stage > 0
amp-half engine:2003 amp.enabled == true and (fp16.enabled == true or bf16.enabled == true)
amp-zero engine:2000 amp.enabled == true and stage > 0 | AMP excludes ZeRO.
elastic-micro-list elastic:65 elasticity.enabled == true and elasticity.micro_batch_sizes ~= nil and
  type(elasticity.micro_batch_sizes) ~= 'table' | elasticity.micro_batch_sizes is a list.
elastic-model elastic:89 elasticity.enabled == true and elasticity.model_parallel_size < 1
elastic-node elastic:94 elasticity.enabled == true and elasticity.num_gpus_per_node < 1
elastic-time elastic:99 elasticity.enabled == true and elasticity.min_time < 0
elastic-pipeline pipe:92 elasticity.enabled == true and pipeline > 1 | Elastic training excludes pipeline stages.
test-steps rate:346 scheduler.type == 'LRRangeTest' and scheduler.params.lr_range_test_step_size ~= nil and not
  above(scheduler.params.lr_range_test_step_size, 0) | lr_range_test_step_size must be a positive integer.
cycle-first rate:502 scheduler.type == 'OneCycle' and above(0.5, scheduler.params.cycle_first_step_size) |
  cycle_first_step_size must be positive.
cycle-second rate:504 scheduler.type == 'OneCycle' and above(0, scheduler.params.cycle_second_step_size) |
  cycle_second_step_size may not be negative.
warmup-steps rate:709 among(scheduler.type, 'WarmupLR WarmupDecayLR') and scheduler.params.warmup_num_steps ~= nil and
  not above(scheduler.params.warmup_num_steps, 0) | warmup_num_steps must be a positive integer.
warmup-cosine rate:850 scheduler.type == 'WarmupCosineLR' and scheduler.params.warmup_num_steps ~= nil and not
  above(scheduler.params.warmup_num_steps, 0) | warmup_num_steps must be a positive integer.
scatter-divide two:310 stage == 2 and zero.reduce_scatter == true and gradient_predivide_factor ~= 1 | ZeRO stage 2
  with reduce_scatter needs gradient_predivide_factor 1.
scatter-prescale two:311 stage == 2 and zero.reduce_scatter == true and prescale_gradients | ZeRO stage 2 with
  reduce_scatter excludes prescale_gradients.
scatter-divide-3 three:388 stage == 3 and zero.reduce_scatter == true and gradient_predivide_factor ~= 1 | ZeRO stage
  3 with reduce_scatter needs gradient_predivide_factor 1.
scatter-prescale-3 three:389 stage == 3 and zero.reduce_scatter == true and prescale_gradients | ZeRO stage 3 with
  reduce_scatter excludes prescale_gradients.
muon-offload two:231 optimizer_name == 'muon' and stage > 0 and stage < 3 and zero.reduce_scatter == true and
  states.device ~= 'none' | Muon with reduce_scatter excludes offloading the optimizer.
muon-scatter three:352 optimizer_name == 'muon' and stage == 3 and zero.reduce_scatter == true | Muon at ZeRO stage 3
  excludes reduce_scatter.
]]
for name, at in ([[reduce_bucket_size 113 allgather_bucket_size 132 sub_group_size 175 prefetch_bucket_size 215
  stage3_prefetch_bucket_size 215 param_persistence_threshold 221 stage3_param_persistence_threshold 221
  model_persistence_threshold 228 stage3_model_persistence_threshold 228 max_live_parameters 238
  stage3_max_live_parameters 238 max_reuse_distance 244 stage3_max_reuse_distance 244
  zero_hpz_partition_size 309 ]]):gmatch '(%S+) (%d+)%s' do
  rules = rules .. ([[
threshold-NAME zero:AT above(0, zero.NAME) | Thresholds are not negative.
whole-NAME zero:AT type(zero.NAME) == 'string' and not tonumber(zero.NAME) | Thresholds are whole numbers.
]]):gsub('NAME', name):gsub('AT', at)
end

local runtime = 'deepspeed/runtime/'

local labels = { gpus = 'the number of GPUs', stage = 'ZeRO stage', pipeline = 'pipeline stages',
  optimizer_name = 'optimizer.type', batch = 'train_batch_size', micro = 'train_micro_batch_size_per_gpu' }

return { repository = 'deepspeedai/DeepSpeed', rules = rules, labels = labels,
  parts = { config = runtime .. 'config.py', zero = runtime .. 'zero/config.py',
    offload = runtime .. 'zero/offload_config.py', precision = runtime .. 'precision_config.py',
    utils = runtime .. 'config_utils.py', pipe = runtime .. 'pipe/engine.py', engine = runtime .. 'engine.py',
    topology = runtime .. 'pipe/topology.py', rate = runtime .. 'lr_schedules.py',
    two = runtime .. 'zero/stage_1_and_2.py', three = runtime .. 'zero/stage3.py',
    elastic = 'deepspeed/elasticity/config.py' } }
