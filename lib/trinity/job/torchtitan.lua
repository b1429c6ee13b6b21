-- torchtitan's job files (TOML) and command line overrides (--section.key value).

local nested = require 'trinity.job.nested'
local toml = require 'trinity.job.toml'
local util = require 'trinity.base.util'
local words = require 'trinity.job.titan_words'

local titan = { client = 'torchtitan', runtime = 'torchtitan', release = words.release }

local declared = nested.declare(words.keys)
local manager = 'pytorch/torchtitan torchtitan/config/manager.py:167'

function titan.families() return { require 'trinity.job.rules.torchtitan' } end

local degrees = 'parallelism.data_parallel_replicate_degree parallelism.context_parallel_degree'
  .. ' parallelism.tensor_parallel_degree parallelism.pipeline_parallel_degree'
local split = 'parallelism.pipeline_parallel_degree parallelism.pipeline_parallel_schedule'
  .. ' parallelism.pipeline_parallel_layers_per_stage'
local derived = { gpus = 'gpus', given = '', rank = degrees,
  shard = degrees .. ' parallelism.data_parallel_shard_degree',
  batch = degrees .. ' parallelism.data_parallel_shard_degree', stages = split, per_rank = split, effective = split,
  single = 'parallelism.pipeline_parallel_schedule', schedule = 'parallelism.pipeline_parallel_schedule',
  network = 'model.flavor', compiled = 'compile.enable', float8 = 'model.converters', tensorwise = 'model.converters',
  warmup = 'lr_scheduler.warmup_steps', total = 'training.steps', decay = 'lr_scheduler.decay_ratio' }

titan.derived = derived

function titan.known(name) return derived[name] ~= nil or declared.sections[name] ~= nil end

-- Returns the network of a flavor, or nil if it is unknown.
local function network_of(name, flavor)
  name = name == 'llama3_ft' and 'llama3' or name
  for line in words.flavors:gmatch '[^\n]+' do
    local list = {}
    for word in line:gmatch '%S+' do list[#list + 1] = word end
    if list[1] == name and list[2] == flavor then
      local found = { attn = 'sdpa' }
      for i, key in ipairs { 'layers', 'hidden', 'heads', 'kv_heads', 'head_size', 'ffn', 'vocab' } do
        found[key] = tonumber(list[i + 2])
      end
      for i = 10, #list do
        local key, value = list[i]:match '^(%w+)=(.*)$'
        if key == 'experts' then
          found.experts, found.per_token, found.expert_ffn = value:match '^(%d+)/(%d+)/?(%d*)$'
          for _, part in ipairs { 'experts', 'per_token', 'expert_ffn' } do found[part] = tonumber(found[part]) end
        else
          found[key] = tonumber(value) or value
        end
      end
      return found
    end
  end
end

local function add_fault(job, code, text, path)
  job.faults[#job.faults + 1] = { code = code, effect = 'refused', text = text, source = manager, paths = { path },
    release = titan.release }
end

-- Returns overrides of the command line, as a tree.
local function overrides(job, tree)
  local list = {}
  for word in (job.launch or ''):gmatch '%S+' do list[#list + 1] = word end
  local at = 1
  while list[at] do
    local path, attached = list[at]:match '^%-%-([%w_]+%.[%w_.]+)=?(.*)$'
    at = at + 1
    if path then
      local key, value = declared.keys[path]
      local last = path:match '([%w_]+)$'
      if attached ~= '' then value = toml.value(attached)
      elseif list[at] and not list[at]:match '^%-%-' then
        value = key and key.kind == 'text' and list[at] or toml.value(list[at])
        at = at + 1
      else
        value = not last:match '^no_'
        if not value then path = path:gsub('no_([%w_]+)$', '%1') end
      end
      local into = tree
      for name in path:match('^(.*)%.'):gmatch '[^.]+' do
        into[name] = into[name] or {}
        into = into[name]
      end
      into[path:match '([%w_]+)$'] = value
    end
  end
end

--- Reads the tables of a file; a comment may give the number of GPUs ('64 H100 GPUs').
function titan.read(job, tree, text)
  job.gpus_said = tonumber(text:match '#[^\n]-(%d+) [%w ]-GPUs' or nil)
  overrides(job, tree)
  local custom = tree.job and (tree.job.custom_config_module or '') ~= ''
    or tree.experimental and (tree.experimental.custom_args_module or '') ~= ''
  nested.read(job, declared, tree, function(path, section)
    job.unread[#job.unread + 1] = path
    if custom then return end -- a custom config module declares additional fields
    local names = {}
    for full, key in util.sorted_pairs(declared.keys) do
      if key.section == section then names[#names + 1] = full end
    end
    add_fault(job, 'key-unknown', 'An unknown field is refused: ' .. util.unknown(path, names) .. '.', path)
  end, function(path, key, value)
    add_fault(job, 'value-kind', ('%s: expected %s, got %s.'):format(path, key.kind == 'int' and 'a whole number'
      or key.kind == 'float' and 'a number' or key.kind == 'flag' and 'true or false' or 'a ' .. key.kind,
      util.describe(value)), path)
  end)
end

titan.argument, titan.with = nested.argument, nested.with

--- Returns the values for rules, with the network of the flavor.
function titan.space(job)
  local tree = nested.space(job)
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
  if not n.layers then
    job.unknown[#job.unknown + 1] = ('model.flavor %s of %s'):format(v.model.flavor, v.model.name)
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
  job.precision = ('parameters %s, products %s, reductions %s'):format(t.dtype, t.mixed_precision_param,
    t.mixed_precision_reduce)
  local mode = v.activation_checkpoint.mode
  job.recompute = mode == 'none' and 'none' or { granularity = mode,
    option = mode == 'selective' and v.activation_checkpoint.selective_ac_option or nil }
  job.zero_stage = v.shard and (v.shard > 1 or p.context_parallel_degree > 1)
    and (p.fsdp_reshard_after_forward == 'never' and 2 or p.fsdp_reshard_after_forward == 'default' and pipeline > 1
    and 2 or 3) or 0
  job.distributed_optimizer = job.zero_stage > 0
  job.overlaps = { gradients = job.zero_stage > 0, weights = job.zero_stage > 2,
    tensor = p.enable_async_tensor_parallel, pipeline = false, experts = false }
  job.offload = { parameters = t.enable_cpu_offload or nil, optimizer = t.enable_cpu_offload and 1 or nil }
end

return titan
