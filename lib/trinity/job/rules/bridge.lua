-- Megatron-Bridge's rules about what its YAML overrides.

return { name = 'megatron bridge', repository = 'NVIDIA-NeMo/Megatron-Bridge',
  release = '067f987df03b8355b03192d88d70f1709fedf51a',
  parts = { config = 'src/megatron/bridge/training/config.py' },
  rules = {
    { 'steps-positive', 'not positive(scheduler.max_steps)', 'The steps of the scheduler must be positive.',
      'config:409' },
    { 'scheduler-checkpoint', 'scheduler.override_opt_param_scheduler and scheduler.use_checkpoint_opt_param_scheduler',
      'The scheduler is overridden or taken from the checkpoint, not both.', 'config:416' },
    { 'scheduler-mixed', '(scheduler.lr_decay_iters or scheduler.lr_wsd_decay_iters'
      .. ' or (scheduler.lr_warmup_iters or 0) ~= 0) and (scheduler.lr_decay_samples or scheduler.lr_wsd_decay_samples'
      .. ' or (scheduler.lr_warmup_samples or 0) ~= 0)',
      'Counting in iterations and in samples may not both be given.', 'config:426' },
    { 'warmup-once', 'scheduler.lr_warmup_fraction and ((scheduler.lr_warmup_iters or 0) ~= 0'
      .. ' or (scheduler.lr_warmup_samples or 0) ~= 0)',
      'A warm-up fraction and a number of warm-up iterations may not both be given.', 'config:435' },
    { 'training-once', 'count(3, train.train_iters, train.train_samples, train.num_epochs) > 1',
      'Counting in iterations and in samples may not both be given.', 'config:481' },
    { 'samples-positive', 'not positive(train.train_samples)', 'The samples of training must be positive.',
      'config:487' },
    { 'samples-rampup', 'train.train_samples and train.rampup_batch_size',
      'Counting in samples excludes a batch ramp-up.', 'config:488' },
    { 'async-save', 'checkpoint.async_save and not checkpoint.save', 'Saving in the background needs a path.',
      'config:602' },
    { 'async-worker', 'checkpoint.async_save and checkpoint.use_persistent_ckpt_worker == false',
      'Saving in the background needs the persistent worker.', 'config:603' },
    { 'main-parameters', 'checkpoint.load_main_params_from_ckpt and checkpoint.load_optim ~= false',
      'Loading main parameters excludes loading the optimizer.', 'config:599' },
    { 'profiler-once', 'profiling.use_pytorch_profiler and profiling.use_nsys_profiler',
      'Only one profiler may be on.', 'config:757' },
    { 'profiler-order', 'above(profiling.profile_step_start, profiling.profile_step_end)',
      'Profiling may not end before it starts.', 'config:762' },
    { set = 'tensor = model.tensor_model_parallel_size or 1\npipeline = model.pipeline_model_parallel_size or 1\n'
      .. 'context = model.context_parallel_size or 1' },
    { 'gpus-multiple', 'gpus and not multiple(gpus, tensor * pipeline * context)',
      'The number of GPUs must be a multiple of tensor x pipeline x context.', 'config:1024' },
    { set = 'data = gpus and multiple(gpus, tensor * pipeline * context)'
      .. ' and gpus / (tensor * pipeline * context) or nil' },
    { 'batch-multiple', 'data and not multiple(validation.eval_global_batch_size or train.global_batch_size,'
      .. ' (validation.eval_micro_batch_size or train.micro_batch_size or 1) * data)',
      'The evaluation batch (the global batch by default) must be a multiple of micro-batch x data-parallel degree.',
      'config:1474' },
    { 'fsdp-once', 'ddp.use_megatron_fsdp and dist.use_torch_fsdp2',
      'Only one of Megatron-FSDP and PyTorch FSDP2 may be on.', 'config:1482' },
    { 'fsdp-checkpoint', "ddp.use_megatron_fsdp and checkpoint.save and checkpoint.ckpt_format"
      .. " and checkpoint.ckpt_format ~= 'fsdp_dtensor'", 'Megatron-FSDP needs the checkpoint format fsdp_dtensor.',
      'config:1107' },
    { 'registration-buffers', 'ddp.use_megatron_fsdp and ddp.fsdp_manual_registration and not ddp.nccl_ub',
      'Registration of buffers by hand needs NCCL user buffers.', 'config:1118' },
    { 'context-sequence', 'context > 1 and not multiple(model.seq_length, 2 * context)',
      'The sequence must be a multiple of twice the context-parallel degree.', 'config:1575' },
    { 'sequence-same', 'model.seq_length and dataset.seq_length and model.seq_length ~= dataset.seq_length',
      'Model and data must have the same sequence.', 'config:1644' },
    { 'a2a-p2p-sizes', "has(model.cp_comm_type, 'a2a+p2p') and not model.hierarchical_context_parallel_sizes",
      'Context messages a2a+p2p need the hierarchical context-parallel sizes:'
        .. ' without them context parallelism is silently'
        .. ' off (Megatron-Bridge 2667).', 'config:1683' },
    { 'steps-decay-samples', 'train.train_iters and scheduler.lr_decay_samples',
      'Counting in iterations and in samples may not both be given.', 'config:1720' },
    { 'steps-warmup-samples', 'train.train_iters and (scheduler.lr_warmup_samples or 0) ~= 0',
      'Counting in iterations and in samples may not both be given.', 'config:1723' },
    { 'fp16-bf16', 'model.bf16 and model.fp16', 'BF16 and FP16 may not both be on.', 'config:2154' },
  } }
