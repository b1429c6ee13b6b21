-- nanotron's rules.

return { name = 'nanotron', repository = 'huggingface/nanotron', release = '2411b022a75fb7f7561a1bb4166706da5e1b76de',
  parts = { context = 'src/nanotron/parallel/context.py', config = 'src/nanotron/config/config.py' },
  rules = {
    { 'log-level', "logging.log_level and not among(logging.log_level, 'debug info warning error critical passive')",
      'The level of logs is debug, info, warning, error, critical or passive.', 'config:65' },
    { 'log-level-replica', "logging.log_level_replica"
      .. " and not among(logging.log_level_replica, 'debug info warning error critical passive')",
      'The level of logs is debug, info, warning, error, critical or passive.', 'config:78' },
    { 'warmup-style', "optimizer.learning_rate_scheduler.lr_warmup_style"
      .. " and not among(optimizer.learning_rate_scheduler.lr_warmup_style, 'linear constant')",
      'The warm-up is linear or constant.', 'config:375' },
    { 'decay-style', "optimizer.learning_rate_scheduler.lr_decay_style"
      .. " and not among(optimizer.learning_rate_scheduler.lr_decay_style, 'linear cosine 1-sqrt')",
      'The decay is linear, cosine or 1-sqrt.', 'config:383' },
    { 'evaluation-interval', 'lighteval.eval_interval and not multiple(lighteval.eval_interval,'
      .. ' checkpoints.checkpoint_interval)', 'The interval of evaluation must be a multiple of that of checkpoints.',
      'config:472' },
    { 'heads-tensor', 'not multiple(heads, parallelism.tp)',
      'The heads must be a multiple of the tensor-parallel degree.', 'config:536' },
    { 'kv-heads', 'above(kv, heads)', 'There may not be more key-value heads than heads.', 'config:539' },
    { 'kv-tensor', 'above(parallelism.tp, kv)',
      'There must be at least as many key-value heads as the tensor-parallel degree.', 'config:542' },
    { 'heads-kv', 'not multiple(heads, kv)', 'The heads must be a multiple of the key-value heads.', 'config:545' },
    { 'gpus-product', 'gpus and parallelism.tp * parallelism.pp * parallelism.context_parallel_size * parallelism.dp'
      .. ' ~= gpus', 'The product of tensor, pipeline, context and data degrees must be the number of GPUs.',
      'context:26' },
  } }
