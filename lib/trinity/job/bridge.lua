-- Megatron-Bridge's YAML of overrides. Other settings are in a Python recipe.

local arguments = require 'trinity.job.arguments'

local bridge = { client = 'Megatron-Bridge', runtime = 'megatron', rules = { 'bridge' },
  release = '067f987df03b8355b03192d88d70f1709fedf51a', base = {},
  parser = 'NVIDIA-NeMo/Megatron-Bridge src/megatron/bridge/training/utils/omegaconf_utils.py:454' }

bridge.declared = arguments.declare 'bridge'

--- The recipe may have further settings: they are listed as not understood.
function bridge.undeclared() end

function bridge.read(job, tree)
  if type(tree.mixed_precision) == 'string' then tree.mixed_precision = nil end
  arguments.read(job, tree)
end

function bridge.meaning(job, v)
  local m = v.model
  job.model = { layers = m.num_layers, hidden = m.hidden_size, heads = m.num_attention_heads,
    kv_heads = m.num_query_groups, head_size = m.kv_channels, ffn = m.ffn_hidden_size, vocab = m.vocab_size,
    sequence = m.seq_length or v.dataset.seq_length or v.dataset.sequence_length, experts = m.num_moe_experts,
    experts_per_token = m.moe_router_topk, expert_ffn = m.moe_ffn_hidden_size }
  job.mesh = { tensor = m.tensor_model_parallel_size, pipeline = m.pipeline_model_parallel_size,
    virtual_stages = m.virtual_pipeline_model_parallel_size, context = m.context_parallel_size,
    expert = m.expert_model_parallel_size, expert_tensor = m.expert_tensor_parallel_size, data = v.data,
    sequence_parallel = m.sequence_parallel }
  job.micro_batch, job.global_batch = v.train.micro_batch_size, v.train.global_batch_size
  job.micro_batches = v.data and job.global_batch and job.micro_batch
    and math.floor(job.global_batch / (job.micro_batch * v.data)) or nil
  job.overlaps = { gradients = v.ddp.overlap_grad_reduce, weights = v.ddp.overlap_param_gather }
end

return bridge
