-- nanotron's YAML.

local nested = require 'trinity.job.nested'

local nanotron = { client = 'nanotron', runtime = 'megatron', release = '2411b022a75fb7f7561a1bb4166706da5e1b76de' }

local declared = nested.declare [[
parallelism*: dp:any tp:any pp:any pp_engine:any tp_mode:any=ALL_REDUCE tp_linear_async_communication:any
  context_parallel_size:any=1 expert_parallel_size:any=1 expert_tensor_parallel_size:any recompute_layer:any=false
tokens*: sequence_length:any train_steps:any micro_batch_size:any
  batch_accumulation_per_replica:any val_check_interval:any
model*: dtype:any ddp_bucket_cap_mb:any make_vocab_size_divisible_by:any=1
model.init_method*:
model.model_config*: hidden_size:any intermediate_size:any num_attention_heads:any num_hidden_layers:any
  num_key_value_heads:any vocab_size:any max_position_embeddings:any tie_word_embeddings:any=false
optimizer*: zero_stage:any=0 accumulate_grad_in_fp32:any=false
optimizer.learning_rate_scheduler*: lr_warmup_style:any=linear lr_decay_style:any=linear
optimizer.optimizer_factory*:
general*:
logging*: log_level:any=info log_level_replica:any=info
checkpoints*: checkpoint_interval:any
profiler*:
tokenizer*:
data_stages*:
lighteval*: eval_interval:any
s3_upload*:
metrics_logging*:
]]

function nanotron.families() return { require 'trinity.job.rules.nanotron' } end

local derived = { gpus = 'gpus', given = '', heads = 'model.model_config.num_attention_heads',
  kv = 'model.model_config.num_key_value_heads' }
nanotron.derived = derived

function nanotron.known(name) return derived[name] ~= nil or declared.sections[name] ~= nil or name == 'data_stages' end

function nanotron.read(job, tree)
  nested.read(job, declared, tree, function(path) job.unread[#job.unread + 1] = path end, function() end)
  local p = tree.parallelism
  if type(p.dp) == 'number' and type(p.tp) == 'number' and type(p.pp) == 'number' then
    job.gpus_said = p.dp * p.tp * p.pp * (p.context_parallel_size or 1)
  end
end

nanotron.argument, nanotron.with = nested.argument, nested.with

function nanotron.space(job)
  local tree = nested.space(job)
  tree.heads = tree.model.model_config.num_attention_heads
  tree.kv = tree.model.model_config.num_key_value_heads or tree.heads
  return tree
end

local precisions = { bfloat16 = 'bf16', float16 = 'fp16', float32 = 'fp32' }

function nanotron.meaning(job, v)
  local c, p, t = v.model.model_config, v.parallelism, v.tokens
  job.model = { layers = c.num_hidden_layers, hidden = c.hidden_size, heads = c.num_attention_heads, kv_heads = v.kv,
    head_size = c.hidden_size and v.heads and math.floor(c.hidden_size / v.heads), ffn = c.intermediate_size,
    vocab = c.vocab_size, sequence = t.sequence_length, positions = c.max_position_embeddings,
    latent_attention = false, tied_embeddings = c.tie_word_embeddings }
  job.mesh = { tensor = p.tp, pipeline = p.pp, context = p.context_parallel_size, expert = p.expert_parallel_size,
    expert_tensor = p.expert_tensor_parallel_size, data = p.dp, sequence_parallel = p.tp_mode == 'REDUCE_SCATTER' }
  job.micro_batch, job.micro_batches = t.micro_batch_size, t.batch_accumulation_per_replica
  if t.micro_batch_size and t.batch_accumulation_per_replica and p.dp then
    job.global_batch = t.micro_batch_size * t.batch_accumulation_per_replica * p.dp
  end
  job.precision = (precisions[v.model.dtype] or v.model.dtype or 'precision not said')
    .. (v.optimizer.accumulate_grad_in_fp32 and ', gradients accumulated in fp32' or '')
  job.recompute = p.recompute_layer and { granularity = 'full' } or nil
  job.zero_stage = v.optimizer.zero_stage
  job.distributed_optimizer = v.optimizer.zero_stage > 0
  job.overlaps = { tensor = p.tp_linear_async_communication }
end

return nanotron
