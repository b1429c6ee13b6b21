-- Rules of Megatron-LM (trinity.job.rules): degrees, batches, stages, sharding, training; then those of the network.

local core = 'megatron/core/'

local parts = {
  args = 'megatron/training/arguments.py',
  utils = 'megatron/training/argument_utils.py',
  globals = 'megatron/training/global_vars.py',
  determinism = 'megatron/training/determinism.py',
  training = 'megatron/training/training.py',
  config = core .. 'transformer/transformer_config.py',
  parallel = core .. 'model_parallel_config.py',
  groups = core .. 'parallel_state.py',
  micro = core .. 'num_microbatches_calculator.py',
  schedules = core .. 'pipeline_parallel/schedules.py',
  block = core .. 'transformer/transformer_block.py',
  layout = core .. 'transformer/pipeline_parallel_layer_layout.py',
  mappings = core .. 'tensor_parallel/mappings.py',
  routing = core .. 'transformer/moe/moe_utils.py',
  moe = core .. 'transformer/moe/moe_layer.py',
  dispatcher = core .. 'transformer/moe/token_dispatcher.py',
  specs = core .. 'models/gpt/gpt_layer_specs.py',
  hybrid = core .. 'models/hybrid/hybrid_layer_allocation.py',
}

local labels = { gpus = 'the number of GPUs', data = 'the data-parallel degree', remat = 'weight shards per rank',
  hybrid = '--hybrid-layer-pattern', layout = '--pipeline-model-parallel-layout', virtual = 'virtual stages',
  uneven = '--decoder-first-pipeline-num-layers or --decoder-last-pipeline-num-layers', counted = 'the layers',
  per_rank = 'the layers of a stage', use_dist_ckpt = 'a --ckpt-format other than torch', by_steps = '--train-iters',
  by_samples = '--train-samples', linear = 'a gated delta network', offload_layers = '--cpu-offloading-num-layers',
  modules = '--recompute-modules', choice = '--moe-router-group-topk', groups = 'the key-value groups',
  padding = '--moe-router-padding-for-quantization',
  ['env.CUDA_DEVICE_MAX_CONNECTIONS'] = 'CUDA_DEVICE_MAX_CONNECTIONS',
  ['hybrid.segments'] = 'the segments of the pattern', ['layout.stages'] = 'its stages' }

return { repository = 'NVIDIA/Megatron-LM', parts = parts, labels = labels, rules = [[
weight-shards parallel:37 tensor_parallel_num_weight_shards and (tensor_parallel_num_weight_shards <
  tensor_model_parallel_size or not multiple(tensor_parallel_num_weight_shards, tensor_model_parallel_size)) | The
  shards of a weight must be a multiple of the tensor-parallel degree.
=> remat = tensor_parallel_num_weight_shards and max(1, floor(tensor_parallel_num_weight_shards /
  tensor_model_parallel_size)) or 1
=> ranks = tensor_model_parallel_size * pipeline_model_parallel_size * context_parallel_size * remat
degrees-positive args:432 tensor_model_parallel_size < 1 or pipeline_model_parallel_size < 1 or context_parallel_size
  < 1 | Degrees of parallelism must be positive.
gpus-multiple args:432 gpus and (ranks < 1 or gpus % ranks ~= 0) | The number of GPUs must be a multiple of tensor x
  pipeline x context.
local-attention args:437 attention_backend == 'local' and not has(spec, 'local')
=> data = gpus and ranks >= 1 and max(1, floor(gpus / ranks)) or nil
rl-persist-graphs args:481 rl_persist_cuda_graphs and cuda_graph_impl == 'none'
rl-training-graphs args:485 rl_training_cuda_graphs and cuda_graph_impl == 'none'
rl-offload-graphs args:501 perform_rl_step and rl_kv_cache_management_mode == 'offload' and not rl_persist_cuda_graphs
rl-submission args:551 perform_rl_step and rl_submission_granularity ~= 'B' and not rl_partial_rollouts
rl-consumption args:554 perform_rl_step and rl_consumption_granularity == 'R'
hierarchical-context args:582 hierarchical_context_parallel_sizes and product(hierarchical_context_parallel_sizes) ~=
  context_parallel_size | The hierarchical context-parallel sizes must multiply to the context degree.
a2a-p2p-sizes args:584 has(cp_comm_type, 'a2a+p2p') and not hierarchical_context_parallel_sizes
context-messages-idle ignored config:3102 given('cp_comm_type') and context_parallel_size == 1 and not
  has(cp_comm_type, 'p2p')
context-messages-layers config:3105 context_parallel_size > 1 and length(cp_comm_type) > 1 and length(cp_comm_type) ~=
  num_layers | A list of context-parallel message types must have one entry per layer.
=> if not expert_tensor_parallel_size then expert_tensor_parallel_size = tensor_model_parallel_size end
no-rope-decode config:3139 no_rope_freq and flash_decode
expert-gpus-multiple groups:882 gpus and not multiple(gpus, expert_model_parallel_size * expert_tensor_parallel_size *
  pipeline_model_parallel_size)
expert-degree-positive groups:882 expert_model_parallel_size < 1 or expert_tensor_parallel_size < 1 | Degrees of
  expert parallelism must be positive.
optimizer-instances groups:922 data and not multiple(data * context_parallel_size,
  num_distributed_optimizer_instances) | The data-parallel degree must be a multiple of the instances of the
  distributed optimizer.
context-sequence args:1336 context_parallel_size > 1 and not multiple(seq_length, 2 * context_parallel_size)
sequence-parallel-off ignored args:1436 sequence_parallel and tensor_model_parallel_size == 1 => sequence_parallel =
  false
tensor-overlap-sequence args:1442 tp_comm_overlap and not sequence_parallel
hybrid-context-pipeline args:1445 hybrid_context_parallel and pipeline_model_parallel_size > 1
hybrid-context-fsdp args:1447 hybrid_context_parallel and use_megatron_fsdp
hybrid-context-loader args:1448 hybrid_context_parallel and dataloader_type ~= nil and dataloader_type ~= 'single'
hybrid-context-loss args:1449 hybrid_context_parallel and not calculate_per_token_loss
one-connection args:1477 (tensor_model_parallel_size > 1 or context_parallel_size > 1) and capability < 10 and not
  use_torch_fsdp2 and not use_megatron_fsdp and not overlap_moe_expert_parallel_comm and env.known and
  env.CUDA_DEVICE_MAX_CONNECTIONS ~= '1' | Before Blackwell tensor or context parallelism needs
  CUDA_DEVICE_MAX_CONNECTIONS=1.
shards-fp4 args:1517 remat > 1 and fp4 and not fp4_param_gather
shards-average args:1553 remat > 1 and ddp_average_in_collective
shards-checkpoint args:1558 remat > 1 and not among(ckpt_format, 'torch torch_dist')
shards-reshardable args:1562 remat > 1 and dist_ckpt_optim_fully_reshardable and
  distrib_optim_fully_reshardable_mem_efficient
shards-mxfp8 args:1576 remat > 1 and fp8_recipe == 'mxfp8' and not fp8_param_gather
shards-mxfp8-buffer args:1583 remat > 1 and fp8_recipe == 'mxfp8' and not reuse_grad_buf_for_mxfp8_param_ag
shards-registration args:1592 remat > 1 and (gtp_remat_nccl_ub or gtp_expert_remat_nccl_ub) and
  disable_symmetric_registration
sequence-tensor mappings:73 sequence_parallel and not multiple(seq_length, tensor_model_parallel_size *
  context_parallel_size)
old-batch-size args:591 batch_size ~= nil | The old argument is refused; use --micro-batch-size.
old-warmup args:594 warmup ~= nil | The old argument is refused; use --lr-warmup-fraction.
old-model-parallel args:597 model_parallel_size ~= nil | The old argument is refused; use
  --tensor-model-parallel-size.
old-checkpoint-activations args:602 checkpoint_activations | The old argument is refused; use --recompute-granularity
  and --recompute-method.
data-path-once args:677 data_path and data_args_path
split-data-once args:684 (train_data_path or valid_data_path or test_data_path) and per_split_data_args_path
micro-batch-given args:693 micro_batch_size == nil
micro-batch-positive args:694 not positive(micro_batch_size)
batch-schedule-once args:699 step_batch_size_schedule and global_batch_size
=> if step_batch_size_schedule then first_batch, last_batch = schedule_of(step_batch_size_schedule, seq_length) end
batch-schedule-form micro:517 step_batch_size_schedule and not first_batch | A schedule of batches is a list of
  THRESHOLD:BATCH, from 0, with growing thresholds and positive batches.
batch-schedule-decrease micro:433 step_batch_size_schedule and decrease_batch_size_if_needed
global-batch-default changed args:703 global_batch_size == nil and micro_batch_size and data and not
  step_batch_size_schedule | Without a global batch it becomes micro-batch x data-parallel degree (one micro-batch a
  step).
=> if not global_batch_size and micro_batch_size and data then global_batch_size = micro_batch_size * data end
global-batch-positive args:705 not positive(global_batch_size)
=> eval_batch, eval_micro = eval_global_batch_size or global_batch_size, eval_micro_batch_size or micro_batch_size
batch-multiple args:715 eval_batch and eval_micro and eval_micro > 0 and data and not multiple(eval_batch, eval_micro
  * data * remat) | The evaluation batch (the global batch by default) must be a multiple of micro-batch x
  data-parallel degree.
train-batch-multiple micro:381 data and (eval_global_batch_size or eval_micro_batch_size) and not
  decrease_batch_size_if_needed and not multiple(global_batch_size, micro_batch_size * data * remat) | The global
  batch must be a multiple of micro-batch x data-parallel degree.
batch-schedule-multiple micro:581 first_batch and data and not multiple(first_batch, micro_batch_size * data * remat)
  | The first batch of a schedule must be a multiple of micro-batch x data-parallel degree.
=> if last_batch then global_batch_size = last_batch end
=> micro_batches = data and global_batch_size and positive(micro_batch_size) and micro_batch_size and
  floor(global_batch_size / (micro_batch_size * data * remat)) or nil
rampup-idle ignored globals:148 rampup_batch_size | The old batch ramp-up is silently ignored; use
  --step-batch-size-schedule.
hybrid-pattern-once args:746 hybrid_override_pattern and hybrid_layer_pattern
=> hybrid_layer_pattern = hybrid_layer_pattern or hybrid_override_pattern
hybrid-old-name changed args:751 hybrid_override_pattern | The old name stands for --hybrid-layer-pattern.
=> hybrid = hybrid_layer_pattern and hybrid_of(hybrid_layer_pattern) or nil
hybrid-symbols hybrid:291 hybrid and hybrid.fault == 'symbol' | Layers of a hybrid pattern are M, G, *, D, +, -, E.
hybrid-attention hybrid:298 hybrid and hybrid.fault == 'attention' | A hybrid pattern may not hold both attention (*)
  and latent attention (+, D).
hybrid-further hybrid:262 hybrid and hybrid.fault == 'further' | All multi-token prediction parts of a hybrid pattern
  must be equal.
hybrid-layers ignored args:793 hybrid and num_layers and num_layers ~= hybrid.layers | The hybrid pattern decides the
  number of layers; the number given is ignored.
=> if hybrid then num_layers = hybrid.layers end
hybrid-first args:804 hybrid and hybrid.segments > 1 and decoder_first_pipeline_num_layers
hybrid-last args:809 hybrid and hybrid.segments > 1 and decoder_last_pipeline_num_layers
hybrid-virtual-layers args:814 hybrid and num_layers_per_virtual_pipeline_stage
hybrid-virtual-stages args:820 hybrid and num_virtual_stages_per_pipeline_rank
hybrid-layout args:825 hybrid and pipeline_model_parallel_layout
hybrid-embedding args:829 hybrid and account_for_embedding_in_pipeline_split
hybrid-loss args:834 hybrid and account_for_loss_in_pipeline_split
hybrid-segments args:849 hybrid and hybrid.segments > 1 and not multiple(hybrid.segments,
  pipeline_model_parallel_size)
hybrid-even hybrid:437 hybrid and hybrid.segments == 1 and not decoder_first_pipeline_num_layers and not
  decoder_last_pipeline_num_layers and not multiple(num_layers, pipeline_model_parallel_size) | The layers of a hybrid
  pattern without | must be a multiple of the pipeline stages.
hybrid-mtp ignored args:873 hybrid and hybrid.further > 0 and mtp_num_layers and mtp_num_layers ~= hybrid.further |
  The hybrid pattern decides the multi-token prediction layers; the number given is ignored.
=> if hybrid and hybrid.further > 0 then mtp_num_layers = hybrid.further end if hybrid and hybrid.latent then
  multi_latent_attention = true end
mtp-positions args:883 mtp_num_layers and mtp_num_layers > 0 and not use_rotary_position_embeddings and not
  among(position_embedding_type, 'rope none')
mtp-mixing ignored args:890 mtp_hsm and (mtp_num_layers or 0) < 2 | Mixing of hidden states needs two multi-token
  prediction layers and is silently turned off (a warning). => mtp_hsm = false
mtp-hybrid-old ignored args:912 mtp_hybrid_override_pattern and not hybrid
virtual-once args:928 count(3, num_layers_per_virtual_pipeline_stage, num_virtual_stages_per_pipeline_rank,
  pipeline_model_parallel_layout) > 1 | Only one of: layers per virtual stage, virtual stages per rank, layout.
=> layout = pipeline_model_parallel_layout and layout_of(pipeline_model_parallel_layout, pipeline_model_parallel_size,
  num_layers, mtp_num_layers) or nil
layout-stages args:945 layout and layout.stages and not multiple(layout.stages, pipeline_model_parallel_size) | The
  pieces of a layout must be a multiple of the pipeline stages.
layout-unit layout:315 layout and layout.unit | Units of a layout are E, t, m and L.
=> counted = num_layers and num_layers + (account_for_embedding_in_pipeline_split and 1 or 0) +
  (account_for_loss_in_pipeline_split and 1 or 0) or nil; per_rank = counted and counted /
  pipeline_model_parallel_size or nil; uneven = decoder_first_pipeline_num_layers ~= nil or
  decoder_last_pipeline_num_layers ~= nil; virtual = nil
virtual-uneven args:955 not layout and num_layers_per_virtual_pipeline_stage and not
  num_virtual_stages_per_pipeline_rank and uneven | Uneven stages with virtual stages must be given by
  --num-virtual-stages-per-pipeline-rank.
virtual-even args:968 not layout and num_layers_per_virtual_pipeline_stage and not
  num_virtual_stages_per_pipeline_rank and not multiple(counted, pipeline_model_parallel_size) | The layers must be a
  multiple of the pipeline stages.
virtual-layers args:972 not layout and num_layers_per_virtual_pipeline_stage and not
  num_virtual_stages_per_pipeline_rank and multiple(counted, pipeline_model_parallel_size) and not multiple(per_rank,
  num_layers_per_virtual_pipeline_stage) | The layers of a stage must be a multiple of the layers of a virtual stage.
stages-even args:997 not layout and not hybrid and not num_layers_per_virtual_pipeline_stage and not
  num_virtual_stages_per_pipeline_rank and not uneven and not multiple(counted, pipeline_model_parallel_size) | The
  layers must be a multiple of the pipeline stages.
=> if layout then virtual = layout.stages and layout.stages / pipeline_model_parallel_size; elseif hybrid then virtual
  = hybrid.segments / pipeline_model_parallel_size; elseif num_virtual_stages_per_pipeline_rank then virtual =
  num_virtual_stages_per_pipeline_rank; elseif num_layers_per_virtual_pipeline_stage and per_rank then virtual =
  floor(per_rank / num_layers_per_virtual_pipeline_stage) end; if virtual and virtual <= 1 then virtual = nil end
virtual-one ignored args:979 not virtual and (num_layers_per_virtual_pipeline_stage or
  num_virtual_stages_per_pipeline_rank) and pipeline_model_parallel_size > 1 | One virtual stage per stage is no
  interleaved schedule: the argument has no effect.
virtual-pipeline args:1002 virtual and overlap_p2p_comm and pipeline_model_parallel_size < 2 | Virtual stages need
  pipeline stages.
virtual-three args:1006 virtual and not overlap_p2p_comm and pipeline_model_parallel_size < 3 | Virtual stages without
  overlapped messages need more than two pipeline stages.
align-idle ignored args:1013 not virtual and given('align_param_gather') and align_param_gather | Aligned gathering is
  silently turned off without an interleaved schedule.
=> if not virtual then overlap_p2p_comm, align_param_gather = false, false end
stage-first-last config:2235 (decoder_first_pipeline_num_layers or decoder_last_pipeline_num_layers) and
  (account_for_embedding_in_pipeline_split or account_for_loss_in_pipeline_split)
layout-alone config:2252 layout and (decoder_first_pipeline_num_layers or decoder_last_pipeline_num_layers or
  account_for_embedding_in_pipeline_split or account_for_loss_in_pipeline_split)
layout-embedding layout:99 layout and layout.embedding | A layout must begin with the one embedding (E).
layout-loss layout:104 layout and layout.loss | A layout must end with the one loss (L).
layout-layers layout:107 layout and layout.layers | A layout must have one t per layer.
layout-further layout:112 layout and layout.further | A layout must have one m per multi-token prediction layer, after
  all layers, in the last virtual stage of one rank.
=> middle = num_layers and num_layers - (decoder_first_pipeline_num_layers or 0) - (decoder_last_pipeline_num_layers
  or 0); middle_stages = pipeline_model_parallel_size - (decoder_first_pipeline_num_layers and 1 or 0) -
  (decoder_last_pipeline_num_layers and 1 or 0)
first-positive config:2304 not positive(decoder_first_pipeline_num_layers)
first-virtual config:2312 not layout and virtual and not multiple(decoder_first_pipeline_num_layers, virtual)
last-positive config:2323 not positive(decoder_last_pipeline_num_layers)
last-virtual config:2331 not layout and virtual and not multiple(decoder_last_pipeline_num_layers, virtual)
middle-none config:2342 not layout and uneven and middle and (middle == 0) ~= (middle_stages == 0) | Layers and stages
  between the first and the last must both be there, or neither.
middle-even config:2350 not layout and uneven and middle and middle ~= 0 and middle_stages > 0 and not
  multiple(middle, middle_stages) | The layers between first and last stage must be a multiple of those stages.
middle-virtual config:2364 not layout and uneven and virtual and middle and middle_stages > 0 and multiple(middle,
  middle_stages) and not multiple(middle / middle_stages, virtual) | The layers of stages in the middle must be a
  multiple of the virtual stages.
=> accounted = not layout and not uneven and (account_for_embedding_in_pipeline_split or
  account_for_loss_in_pipeline_split)
accounted-even config:2396 accounted and virtual and not multiple(counted, pipeline_model_parallel_size) | Layers plus
  counted embedding plus counted loss must be a multiple of the pipeline stages.
accounted-virtual config:2409 accounted and virtual and not multiple(per_rank, virtual) | Layers of a stage, with
  embedding and loss counted, must be a multiple of the virtual stages.
virtual-even-stages block:157 num_virtual_stages_per_pipeline_rank and not layout and not uneven and not accounted and
  not multiple(counted, pipeline_model_parallel_size) | The layers must be a multiple of the pipeline stages;
  --account-for-embedding-in-pipeline-split and --account-for-loss-in-pipeline-split count embedding and loss as a
  layer each.
virtual-even-layers block:176 num_virtual_stages_per_pipeline_rank and not layout and not uneven and not accounted and
  virtual and multiple(counted, pipeline_model_parallel_size) and not multiple(per_rank, virtual) | The layers of a
  stage must be a multiple of the virtual stages.
=> group = microbatch_group_size_per_vp_stage or pipeline_model_parallel_size
interleaved-micro-batches schedules:1161 virtual and micro_batches and (group > micro_batches or group <
  pipeline_model_parallel_size) | The interleaved schedule needs at least as many micro-batches as stages.
interleaved-remainder schedules:1173 virtual and micro_batches and group <= micro_batches and group > 0 and
  micro_batches % group > 0 and micro_batches % group < pipeline_model_parallel_size | What remains of the
  micro-batches divided by the stages must be none in the interleaved schedule.
pipeline-idle ignored args:985 pipeline_model_parallel_size == 1 and (given('account_for_embedding_in_pipeline_split')
  or given('account_for_loss_in_pipeline_split')) and not virtual and not layout | Counting embedding or loss as a
  layer has no effect without pipeline stages.
=> use_dist_ckpt = ckpt_format ~= 'torch'
gather-optimizer args:1026 overlap_param_gather and not (use_distributed_optimizer or use_megatron_fsdp or optimizer
  == 'dist_muon')
gather-reduce args:1028 overlap_param_gather and not overlap_grad_reduce
fsdp2-pipeline args:1034 use_torch_fsdp2 and pipeline_model_parallel_size ~= 1
fsdp2-experts args:1036 use_torch_fsdp2 and expert_model_parallel_size ~= 1
fsdp2-optimizer args:1038 use_torch_fsdp2 and use_distributed_optimizer
fsdp2-fusion args:1040 use_torch_fsdp2 and gradient_accumulation_fusion
fsdp2-checkpoint args:1042 use_torch_fsdp2 and not among(ckpt_format, 'torch_dist torch_dcp')
fsdp2-untied args:1044 use_torch_fsdp2 and not untie_embeddings_and_output_weights
fsdp2-fp16 args:1046 use_torch_fsdp2 and fp16
fsdp2-connections args:1048 use_torch_fsdp2 and env.CUDA_DEVICE_MAX_CONNECTIONS == '1'
fsdp2-fp8-gather ignored args:1054 use_torch_fsdp2 and fp8_param_gather | PyTorch FSDP2 silently gathers in BF16 in
  place of FP8 (a warning). => fp8_param_gather = false
step-gather-optimizer args:1067 overlap_param_gather_with_optimizer_step and not use_distributed_optimizer
step-gather args:1069 overlap_param_gather_with_optimizer_step and not overlap_param_gather
step-gather-virtual args:1071 overlap_param_gather_with_optimizer_step and not virtual
step-gather-checkpoint args:1073 overlap_param_gather_with_optimizer_step and use_dist_ckpt
fsdp-version-2 args:1125 use_megatron_fsdp and megatron_fsdp_version == 2 and use_distributed_optimizer
fsdp-optimizer changed args:1135 use_megatron_fsdp and megatron_fsdp_version ~= 2 and not use_distributed_optimizer |
  Megatron-FSDP turns the distributed optimizer on by itself (a warning). => use_distributed_optimizer = true
fsdp-grouped args:1143 use_megatron_fsdp and (moe_single_grouped_weight or moe_single_grouped_bias)
fsdp-optimizers args:1150 use_megatron_fsdp and not among(optimizer, 'sgd adam')
fsdp-hash args:1163 use_megatron_fsdp and data_parallel_sharding_strategy == 'optim_grads_params' and
  check_weight_hash_across_dp_replicas_interval
fsdp-connections args:1166 use_megatron_fsdp and env.CUDA_DEVICE_MAX_CONNECTIONS == '1'
fsdp-checkpoint args:1169 use_megatron_fsdp and ckpt_format ~= 'fsdp_dtensor'
fsdp-user-buffers changed args:1177 use_megatron_fsdp and nccl_ub and not fsdp_double_buffer | NCCL user buffers turn
  double buffers and registration by hand of Megatron-FSDP on (a warning). => fsdp_manual_registration,
  fsdp_double_buffer = true, true
fsdp-meta args:1184 use_megatron_fsdp and init_model_with_meta_device and data_parallel_sharding_strategy ==
  'no_shard'
registration-fsdp args:1190 fsdp_manual_registration and not use_megatron_fsdp
registration-buffers args:1191 fsdp_manual_registration and not nccl_ub
strategy-idle ignored args:1119 given('data_parallel_sharding_strategy') and not use_megatron_fsdp and
  data_parallel_sharding_strategy ~= 'no_shard'
save-params-gather args:1368 save and save_params_interval and overlap_param_gather
dcp-fsdp2 args:1668 ckpt_format == 'torch_dcp' and not use_torch_fsdp2
dcp-tensor args:1669 ckpt_format == 'torch_dcp' and tensor_model_parallel_size > 1
dcp-pipeline args:1671 ckpt_format == 'torch_dcp' and pipeline_model_parallel_size > 1
dtensor-fsdp args:1676 ckpt_format == 'fsdp_dtensor' and not use_megatron_fsdp
layer-wise-old changed args:1729 optimizer == 'dist_muon' | The old optimizer 'dist_muon' becomes muon with whole
  layers sharded (a warning).
layer-wise changed args:1733 not among(optimizer, 'sgd adam dist_muon') and use_distributed_optimizer | With an
  optimizer other than SGD and Adam the distributed optimizer is silently exchanged for one that shards whole layers.
  => use_distributed_optimizer, layer_wise = false, true
other-fsdp2 args:1739 not among(optimizer, 'sgd adam') and use_torch_fsdp2
other-megatron-fsdp args:1740 not among(optimizer, 'sgd adam') and use_megatron_fsdp | Optimizers other than SGD and
  Adam exclude Megatron-FSDP.
other-checkpoint args:1741 not among(optimizer, 'sgd adam') and not among(ckpt_format, 'torch torch_dist')
gloo-checkpoint args:1750 not use_gloo_process_groups and use_distributed_optimizer and not use_dist_ckpt
gloo-reshardable args:1753 not use_gloo_process_groups and use_distributed_optimizer and
  dist_ckpt_optim_fully_reshardable and distrib_optim_fully_reshardable_mem_efficient
frozen-optimizer changed args:1842 freeze_all_layers and (use_distributed_optimizer or overlap_param_gather) | With
  every layer frozen the distributed optimizer and overlapped gathering are silently turned off. =>
  use_distributed_optimizer, overlap_param_gather = false, false
host-optimizer args:1885 optimizer_cpu_offload and not use_precision_aware_optimizer
host-optimizer-fp8 args:1889 optimizer_cpu_offload and fp8_param_gather and fp8_recipe ~= 'delayed'
defer-pipeline parallel:546 defer_embedding_wgrad_compute and pipeline_model_parallel_size == 1
defer-fusion parallel:551 defer_embedding_wgrad_compute and not gradient_accumulation_fusion
defer-limit parallel:556 defer_embedding_wgrad_compute and wgrad_deferral_limit < 0
flush-overlap parallel:572 overlap_p2p_comm_warmup_flush and not overlap_p2p_comm
convert-save args:393 ckpt_convert_format and not ckpt_convert_save
convert-load args:394 ckpt_convert_format and not load
local-checkpoints args:398 non_persistent_ckpt_type and not among(non_persistent_ckpt_type, 'global local')
checkpoint-arguments args:98 use_checkpoint_args and not load and not pretrained_checkpoint
builder-threads args:1258 num_dataset_builder_threads and num_dataset_builder_threads <= 0
=> by_steps = train_iters and train_iters > 0 and not skip_train; by_samples = train_samples and train_samples > 0 and
  not skip_train
steps-samples args:1279 by_steps and train_samples
steps-decay-samples args:1281 by_steps and lr_decay_samples
steps-warmup-samples args:1283 by_steps and (lr_warmup_samples or 0) ~= 0 | Counting in iterations and in samples may
  not both be given.
steps-warmup-once args:1286 by_steps and lr_warmup_fraction and (lr_warmup_iters or 0) ~= 0 | A warm-up fraction and a
  number of warm-up iterations may not both be given.
samples-steps args:1293 by_samples and train_iters and not by_steps | Counting in iterations and in samples may not
  both be given.
samples-decay-steps args:1295 by_samples and not by_steps and lr_decay_iters
samples-warmup-steps args:1297 by_samples and not by_steps and (lr_warmup_iters or 0) ~= 0 | Counting in iterations
  and in samples may not both be given.
samples-warmup-once args:1300 by_samples and lr_warmup_fraction and (lr_warmup_samples or 0) ~= 0 | A warm-up fraction
  and a number of warm-up samples may not both be given.
split-default changed args:671 data_path and split == nil | Without --split the data are split 969, 30, 1 (a warning).
least-rate args:1360 lr and min_lr and min_lr > lr
save-interval args:1362 save and save_interval == nil
save-interval-positive args:1363 save and save_interval and save_interval <= 0
retain-positive args:1365 save and save_retain_interval and save_retain_interval <= 0
retain-multiple args:1366 save and save_retain_interval and not multiple(save_retain_interval, save_interval)
log-memory args:1370 log_memory_interval and not multiple(log_memory_interval, log_interval)
decay-condition args:1390 no_weight_decay_cond_type and no_weight_decay_cond_type ~= 'apply_wd_to_qk_layernorm'
decay-start args:1394 weight_decay_incr_style == 'constant' and start_weight_decay
decay-end args:1395 weight_decay_incr_style == 'constant' and end_weight_decay
decay-growing-start args:1399 weight_decay_incr_style ~= 'constant' and not start_weight_decay | A growing weight
  decay needs its start and end.
decay-growing-end args:1400 weight_decay_incr_style ~= 'constant' and start_weight_decay and not end_weight_decay
data-once args:1679 count(3, mock_data, data_path and (type(data_path) ~= 'table' or #data_path > 0), train_data_path
  or valid_data_path or test_data_path) > 1 | Only one source of data may be given.
fim-mock args:1692 fim_data and mock_data
fim-rate args:1693 fim_data and not fim_rate
fim-spm-rate args:1694 fim_data and not fim_spm_rate
old-save-flags ignored args:1766 ckpt_fully_parallel_save_deprecated or use_dist_ckpt_deprecated or
  dist_ckpt_format_deprecated | The old argument about checkpoints has no effect.
checkpoint-groups args:1799 ckpt_pg_tensors_cache_path and ckpt_fully_parallel_save_process_group ~=
  ckpt_fully_parallel_load_process_group | A cache of process groups needs the same group for saving and loading.
main-parameters args:1812 load_main_params_from_ckpt and not no_load_optim
async-worker changed args:1817 use_dist_ckpt and async_save and not use_persistent_ckpt_worker | Saving in the
  background is silently switched off without the persistent worker (a warning). => async_save = false
async-strategy ignored args:1823 not async_save and given('async_strategy') and async_strategy ~= 'mcore'
logits-top-k args:1826 logits_save_dir and not logits_save_top_k
logits-async args:1827 logits_save_dir and not async_save
override-finetune args:1852 override_ckpt_iteration and finetune
threshold-pipeline args:1856 inference_batch_times_seqlen_threshold and inference_batch_times_seqlen_threshold > -1
  and pipeline_model_parallel_size == 1
threshold-graphs args:1858 above(inference_batch_times_seqlen_threshold, -1) and cuda_graph_impl ~= 'none'
upcycling-save args:1864 moe_use_upcycling and not save
local-directory args:1895 non_persistent_ckpt_type == 'local' and not non_persistent_local_ckpt_dir
replication-jump args:1897 replication and not replication_jump
replication-local args:1898 replication and non_persistent_ckpt_type ~= 'local'
replication-idle ignored args:1900 not replication and replication_jump and replication_jump ~= 0 | The jump of
  replication is silently ignored without replication (a warning).
load-idle changed args:1877 skip_train and not perform_rl_step and not no_load_optim | Skipping training silently
  loads no optimizer.
rl-skip-offload args:1879 skip_train and perform_rl_step and no_load_optim and rl_offload_optimizer_during_inference
]] .. require 'trinity.job.rules.megatron_network' }
