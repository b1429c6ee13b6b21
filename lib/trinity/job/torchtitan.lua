-- torchtitan's job files (TOML) and command line overrides (--section.key value).

local arguments = require 'trinity.job.arguments'
local toml = require 'trinity.job.toml'
local util = require 'trinity.base.util'

local titan = { client = 'torchtitan', runtime = 'torchtitan', release = '238fa9953e4aec2a62582121564273d7cbb1e9f1',
  rules = { 'torchtitan' }, declared = arguments.declare 'torchtitan', base = { network = 'model.flavor' },
  parser = 'pytorch/torchtitan torchtitan/config/manager.py:167' }

local function network_of(name, flavor)
  name = name == 'llama3_ft' and 'llama3' or name
  for line in arguments.records 'torchtitan_flavors':gmatch '[^\n]+' do
    local model, own, rest = line:match '^(%S+) (%S+) (.*)$'
    if model == name and own == flavor then
      local found = { attn = 'sdpa' }
      for key, value in rest:gmatch '([%w_]+)=(%S+)' do found[key] = tonumber(value) or value end
      return found
    end
  end
end

local function overrides(job, tree)
  local list, at = util.words(job.source.launch or '', '%S+'), 1
  while list[at] do
    local path, attached = list[at]:match '^%-%-([%w_]+%.[%w_.]+)=?(.*)$'
    at = at + 1
    if path then
      local key, value = titan.declared.keys[path]
      local last = path:match '([%w_]+)$'
      local text = attached ~= '' and attached or list[at] and not list[at]:match '^%-%-' and list[at]
      if text then
        at = attached == '' and at + 1 or at
        value = key and key.kind == 'text' and text or key and key.kind == 'list'
          and not text:match '^%[' and util.words(text) or toml.value(text)
      else
        value = not last:match '^no_'
        if not value then path = path:gsub('no_([%w_]+)$', '%1') end
      end
      arguments.put(tree, path, value)
    elseif job.path == 'arguments' then
      job.unread[#job.unread + 1] = list[at - 1]
    end
  end
end

--- Reads the tables of a file; a comment may give the number of GPUs ('64 H100 GPUs').
function titan.read(job, tree, text)
  job.gpus_said = tonumber(text:match '#[^\n]-(%d+) [%w ]-GPUs' or nil)
  overrides(job, tree)
  job.source.custom = type(tree.job) == 'table' and (tree.job.custom_config_module or '') ~= ''
    or type(tree.experimental) == 'table' and (tree.experimental.custom_args_module or '') ~= ''
  arguments.read(job, tree)
end

--- An unknown field is refused, but a custom config module declares additional fields.
function titan.undeclared(job) return not job.source.custom and 'refused' or nil end

--- Returns the values for rules, with the network of the flavor.
function titan.space(job)
  local tree = arguments.space(job)
  tree.network = network_of(tree.model.name, tree.model.flavor) or {}
  return tree
end

--- Converts values to fields of the job.
function titan.meaning(job, v)
  local n, p, t = v.network, v.parallelism, v.training
  local latent = n.latent ~= nil
  job.model = { layers = n.layers, hidden = n.hidden, heads = n.heads, kv_heads = not latent and n.kv_heads or nil,
    head_size = not latent and n.head_size or nil, ffn = n.ffn, vocab = n.vocab, sequence = t.seq_len,
    experts = n.experts, experts_per_token = n.per_token, expert_ffn = n.expert_ffn, latent_attention = latent,
    tied_embeddings = n.tied == 1 }
  job.network = n
  job.dense_layers = n.experts and (n.dense or 0) + n.layers - math.ceil(n.layers / (n.every or 1)) or nil
  if not n.layers then
    job.unknown[#job.unknown + 1] = ('model.flavor %s of %s'):format(v.model.flavor, v.model.name)
  end
  for _, name in ipairs(v.model.converters or {}) do -- names of earlier releases
    if not tostring(name):match '^quantize%.' then job.unknown[#job.unknown + 1] = 'model.converters ' .. name end
  end
  local pipeline = p.pipeline_parallel_degree
  job.mesh = { tensor = p.tensor_parallel_degree, pipeline = pipeline,
    virtual_stages = pipeline > 1 and v.per_rank or 1, context = p.context_parallel_degree,
    expert = p.expert_parallel_degree, expert_tensor = p.expert_tensor_parallel_degree, data = v.batch,
    sequence_parallel = p.tensor_parallel_degree > 1, data_replicate = p.data_parallel_replicate_degree,
    data_shard = v.shard }
  job.global_batch = t.global_batch_size > 0 and t.global_batch_size or v.batch and t.local_batch_size * v.batch or nil
  local pieces = pipeline > 1 and math.max(1, math.floor(t.local_batch_size / p.pipeline_parallel_microbatch_size)) or 1
  job.micro_batch = pipeline > 1 and p.pipeline_parallel_microbatch_size or t.local_batch_size
  job.micro_batches = v.batch and math.floor(job.global_batch / (t.local_batch_size * v.batch)) * pieces or nil
  job.precision = ('parameters %s, matmuls %s, reductions %s'):format(t.dtype, t.mixed_precision_param,
    t.mixed_precision_reduce)
  local mode = v.activation_checkpoint.mode
  job.recompute = mode == 'none' and 'none' or { granularity = mode,
    option = mode == 'selective' and v.activation_checkpoint.selective_ac_option or nil }
  job.context_exchange = p.context_parallel_rotate_method == 'alltoall' and 'ring' or 'all_gather'
  job.zero_stage = v.shard and (v.shard > 1 or p.context_parallel_degree > 1)
    and (p.fsdp_reshard_after_forward == 'never' and 2 or p.fsdp_reshard_after_forward == 'default' and pipeline > 1
    and 2 or 3) or 0
  job.distributed_optimizer = job.zero_stage > 0
  job.overlaps = { gradients = job.zero_stage > 0, weights = job.zero_stage > 2,
    tensor = p.enable_async_tensor_parallel, pipeline = false, experts = false }
  job.offload = { parameters = t.enable_cpu_offload or nil, optimizer = t.enable_cpu_offload and 1 or nil }
end

return titan
