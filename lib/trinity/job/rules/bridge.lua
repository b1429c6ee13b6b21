-- Rules of Megatron-Bridge about what its YAML overrides (trinity.job.rules).

return { repository = 'NVIDIA-NeMo/Megatron-Bridge',
  parts = { config = 'src/megatron/bridge/training/config.py' },
  rules = [[
steps-positive config:409 not positive(scheduler.max_steps)
scheduler-checkpoint config:416 scheduler.override_opt_param_scheduler and
  scheduler.use_checkpoint_opt_param_scheduler
scheduler-mixed config:426 (scheduler.lr_decay_iters or scheduler.lr_wsd_decay_iters or (scheduler.lr_warmup_iters or
  0) ~= 0) and (scheduler.lr_decay_samples or scheduler.lr_wsd_decay_samples or (scheduler.lr_warmup_samples or 0) ~=
  0) | Counting in iterations and in samples may not both be given.
warmup-once config:435 scheduler.lr_warmup_fraction and ((scheduler.lr_warmup_iters or 0) ~= 0 or
  (scheduler.lr_warmup_samples or 0) ~= 0) | A warm-up fraction and a number of warm-up iterations may not both be
  given.
training-once config:481 count(3, train.train_iters, train.train_samples, train.num_epochs) > 1 | Counting in
  iterations and in samples may not both be given.
samples-positive config:487 not positive(train.train_samples)
samples-rampup config:488 train.train_samples and train.rampup_batch_size
async-save config:602 checkpoint.async_save and not checkpoint.save
async-worker config:603 checkpoint.async_save and checkpoint.use_persistent_ckpt_worker == false
main-parameters config:599 checkpoint.load_main_params_from_ckpt and checkpoint.load_optim ~= false
profiler-once config:757 profiling.use_pytorch_profiler and profiling.use_nsys_profiler
profiler-order config:762 above(profiling.profile_step_start, profiling.profile_step_end)
=> tensor = model.tensor_model_parallel_size or 1; pipeline = model.pipeline_model_parallel_size or 1; context =
  model.context_parallel_size or 1
gpus-multiple config:1024 gpus and not multiple(gpus, tensor * pipeline * context) | The number of GPUs must be a
  multiple of tensor x pipeline x context.
=> data = gpus and multiple(gpus, tensor * pipeline * context) and gpus / (tensor * pipeline * context) or nil
batch-multiple config:1474 data and not multiple(validation.eval_global_batch_size or train.global_batch_size,
  (validation.eval_micro_batch_size or train.micro_batch_size or 1) * data) | The evaluation batch (the global batch
  by default) must be a multiple of micro-batch x data-parallel degree.
fsdp-once config:1482 ddp.use_megatron_fsdp and dist.use_torch_fsdp2
fsdp-checkpoint config:1107 ddp.use_megatron_fsdp and checkpoint.save and checkpoint.ckpt_format and
  checkpoint.ckpt_format ~= 'fsdp_dtensor'
registration-buffers config:1118 ddp.use_megatron_fsdp and ddp.fsdp_manual_registration and not ddp.nccl_ub
context-sequence config:1575 context > 1 and not multiple(model.seq_length, 2 * context) | The sequence must be a
  multiple of twice the context-parallel degree.
sequence-same config:1644 model.seq_length and dataset.seq_length and model.seq_length ~= dataset.seq_length
a2a-p2p-sizes config:1683 has(model.cp_comm_type, 'a2a+p2p') and not model.hierarchical_context_parallel_sizes
steps-decay-samples config:1720 train.train_iters and scheduler.lr_decay_samples
steps-warmup-samples config:1723 train.train_iters and (scheduler.lr_warmup_samples or 0) ~= 0 | Counting in
  iterations and in samples may not both be given.
fp16-bf16 config:2154 model.bf16 and model.fp16
]] }
