-- Rules of nanotron (trinity.job.rules).

return { repository = 'huggingface/nanotron',
  parts = { context = 'src/nanotron/parallel/context.py', config = 'src/nanotron/config/config.py' },
  rules = [[
=> heads = model.model_config.num_attention_heads; kv = model.model_config.num_key_value_heads or heads
log-level config:65 logging.log_level and not among(logging.log_level, 'debug info warning error critical passive')
log-level-replica config:78 logging.log_level_replica and not among(logging.log_level_replica, 'debug info warning
  error critical passive')
warmup-style config:375 optimizer.learning_rate_scheduler.lr_warmup_style and not
  among(optimizer.learning_rate_scheduler.lr_warmup_style, 'linear constant')
decay-style config:383 optimizer.learning_rate_scheduler.lr_decay_style and not
  among(optimizer.learning_rate_scheduler.lr_decay_style, 'linear cosine 1-sqrt')
evaluation-interval config:472 lighteval.eval_interval and not multiple(lighteval.eval_interval,
  checkpoints.checkpoint_interval)
heads-tensor config:536 not multiple(heads, parallelism.tp) | The heads must be a multiple of the tensor-parallel
  degree.
kv-heads config:539 above(kv, heads) | There may not be more key-value heads than heads.
kv-tensor config:542 above(parallelism.tp, kv)
heads-kv config:545 not multiple(heads, kv) | The heads must be a multiple of the key-value heads.
gpus-product context:26 gpus and parallelism.tp * parallelism.pp * parallelism.context_parallel_size * parallelism.dp
  ~= gpus | The product of tensor, pipeline, context and data degrees must be the number of GPUs.
]] }
