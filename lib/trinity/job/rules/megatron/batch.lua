-- Megatron-LM: batches and old arguments.

return require 'trinity.job.rules.megatron.family' ('batch', {
  { 'old-batch-size', 'batch_size ~= nil', 'The old argument is refused; use --micro-batch-size.', 'args:591' },
  { 'old-warmup', 'warmup ~= nil', 'The old argument is refused; use --lr-warmup-fraction.', 'args:594' },
  { 'old-model-parallel', 'model_parallel_size ~= nil',
    'The old argument is refused; use --tensor-model-parallel-size.', 'args:597' },
  { 'old-checkpoint-activations', 'checkpoint_activations',
    'The old argument is refused; use --recompute-granularity and --recompute-method.', 'args:602' },
  { 'data-path-once', 'data_path and data_args_path', 'Only one of --data-path and --data-args-path may be given.',
    'args:677' },
  { 'split-data-once', '(train_data_path or valid_data_path or test_data_path) and per_split_data_args_path',
    'Data of a split are given by paths or by a file, not by both.', 'args:684' },
  { 'micro-batch-given', 'micro_batch_size == nil', 'The micro-batch must be given: it has no default.', 'args:693' },
  { 'micro-batch-positive', 'not positive(micro_batch_size)', 'The micro-batch must be positive.', 'args:694' },
  { 'batch-schedule-once', 'step_batch_size_schedule and global_batch_size',
    'A schedule of batches and a global batch may not both be given.', 'args:699' },
  { 'batch-schedule-form', 'step_batch_size_schedule and schedule_fault(step_batch_size_schedule, seq_length)',
    'A schedule of batches is a list of THRESHOLD:BATCH, from 0, with growing thresholds and positive batches.',
    'micro:517' },
  { 'batch-schedule-decrease', 'step_batch_size_schedule and decrease_batch_size_if_needed',
    'A schedule of batches excludes decreasing the batch.', 'micro:433' },
  { 'global-batch-default', 'global_batch_size == nil and micro_batch_size and data'
    .. ' and not step_batch_size_schedule',
    'Without a global batch it becomes micro-batch x data-parallel degree (one micro-batch a step).', 'args:703',
    'changed' },
  { set = 'if not global_batch_size and micro_batch_size'
    .. ' and data then global_batch_size = micro_batch_size * data end' },
  { 'global-batch-positive', 'not positive(global_batch_size)', 'The global batch must be positive.', 'args:705' },
  { set = 'eval_batch, eval_micro = eval_global_batch_size or global_batch_size,'
    .. ' eval_micro_batch_size or micro_batch_size' },
  { 'batch-multiple', 'eval_batch and eval_micro and eval_micro > 0 and data'
    .. ' and not multiple(eval_batch, eval_micro * data * remat)',
    'The evaluation batch (the global batch by default) must be a multiple of micro-batch x data-parallel degree.',
    'args:715' },
  { 'train-batch-multiple', 'data and (eval_global_batch_size or eval_micro_batch_size)'
    .. ' and not decrease_batch_size_if_needed and not multiple(global_batch_size, micro_batch_size * data * remat)',
    'The global batch must be a multiple of micro-batch x data-parallel degree.', 'micro:381' },
  { set = 'micro_batches = data and global_batch_size and positive(micro_batch_size) and micro_batch_size'
    .. ' and floor(global_batch_size / (micro_batch_size * data * remat)) or nil' },
  { 'rampup-idle', 'rampup_batch_size', 'The old batch ramp-up is silently ignored; use --step-batch-size-schedule.',
    'globals:148', 'ignored' },
})
