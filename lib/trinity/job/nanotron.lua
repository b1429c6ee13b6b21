-- nanotron's YAML.

local arguments = require 'trinity.job.arguments'

local nanotron = { client = 'nanotron', runtime = 'megatron', rules = { 'nanotron' },
  release = '2411b022a75fb7f7561a1bb4166706da5e1b76de', base = {},
  parser = 'huggingface/nanotron src/nanotron/config/config.py:632' }

nanotron.declared = arguments.declare 'nanotron'

--- An unknown key of a section is refused; further sections belong to configurations of other classes.
function nanotron.undeclared(_, section) return section ~= '' and 'refused' or nil end

function nanotron.read(job, tree)
  arguments.read(job, tree)
  local p = arguments.space(job).parallelism
  if p.dp and p.tp and p.pp then job.gpus_said = p.dp * p.tp * p.pp * p.context_parallel_size end
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
