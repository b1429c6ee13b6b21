-- Reads Megatron-LM's arguments from a list, a launch script or a YAML with MODEL_ARGS, and converts them to fields of
-- the job.

local layout = require 'trinity.strategy.layout'
local patterns = require 'trinity.job.patterns'
local util = require 'trinity.base.util'
local words_of = require 'trinity.job.megatron_words'
local yaml = require 'trinity.job.yaml'

local megatron = { client = 'Megatron-LM', runtime = 'megatron', release = words_of.release }

local families = { 'mesh', 'batch', 'stages', 'sharding', 'training', 'network', 'precision', 'recompute', 'experts' }

--- The families of its rules, in the order in which the client checks values.
function megatron.families()
  return util.map(families, function(name) return require('trinity.job.rules.megatron.' .. name) end)
end

-- Arguments by name, and fields by name: { name, field, kind, several, optional, choices, default }.
local arguments, fields = {}, {}

local patterned = { moe_layer_freq = true, linear_attention_freq = true, no_rope_freq = true }
local readers = {
  ints = function(text)
    local plain = text:gsub('(%d)_', '%1') -- 300_000, as in Python
    return plain:match '^[+-]?%d+$' and tonumber(plain) or nil
  end,
  floats = function(text) return not text:match '^0[xX]' and tonumber((text:gsub('(%d)_', '%1'))) or nil end,
  texts = function(text) return text end,
}

for kind, default in util.sorted_pairs { flags = false, off = true, ints = 0, floats = 0, texts = '' } do
  for word in words_of[kind]:gsub('|\n', '|'):gmatch '%S+' do
    local name, rest = word:match '^([%w_-]+)(.*)$'
    local argument = { name = '--' .. name, kind = kind, field = rest:match '^:([%w_]+)' or name:gsub('%-', '_'),
      several = rest:find '^:?[%w_]*%+' ~= nil, optional = rest:find '^:?[%w_]*%?' ~= nil, choices = nil }
    local choices, value = rest:match '{(.-)}', rest:match '=([^{}]*)$'
    if choices then
      argument.choices = {}
      for choice in choices:gmatch '[^|]+' do table.insert(argument.choices, readers[kind](choice)) end
    end
    if kind == 'flags' or kind == 'off' then argument.default = default
    elseif value then
      argument.default = patterned[argument.field] and patterns.layers(value) or readers[kind](value)
    end
    arguments[argument.name] = argument
    fields[argument.field] = fields[argument.field] or argument
  end
end

-- Values that rules derive (rules/megatron), with the arguments that they depend on.
local mesh = 'tensor_model_parallel_size pipeline_model_parallel_size context_parallel_size'
local cut = 'num_layers pipeline_model_parallel_size account_for_embedding_in_pipeline_split'
  .. ' account_for_loss_in_pipeline_split'
local ends = 'num_layers pipeline_model_parallel_size decoder_first_pipeline_num_layers'
  .. ' decoder_last_pipeline_num_layers'
local stages = 'num_layers_per_virtual_pipeline_stage num_virtual_stages_per_pipeline_rank'
  .. ' pipeline_model_parallel_layout'
local derived = { ranks = mesh, data = mesh, remat = 'tensor_parallel_num_weight_shards', counted = cut, per_rank = cut,
  eval_batch = 'global_batch_size eval_global_batch_size', eval_micro = 'micro_batch_size eval_micro_batch_size',
  micro_batches = 'global_batch_size micro_batch_size', uneven = ends, middle = ends, middle_stages = ends,
  virtual = stages, layout = 'pipeline_model_parallel_layout', hybrid = 'hybrid_layer_pattern', accounted = cut,
  group = 'microbatch_group_size_per_vp_stage pipeline_model_parallel_size', use_dist_ckpt = 'ckpt_format',
  by_steps = 'train_iters', by_samples = 'train_samples', groups = 'num_query_groups group_query_attention',
  linear = 'experimental_attention_variant', offload_layers = 'cpu_offloading_num_layers',
  modules = 'recompute_modules recompute_granularity', layered = 'cuda_graph_impl', choice = 'moe_router_group_topk',
  padding = 'moe_router_padding_for_quantization moe_router_padding_for_fp8' }
derived.gpus = 'gpus'
for name in ([[env capability given product layer_wise sized hybrid_of layout_of schedule_fault nccl_fault contains
  joined all_experts]]):gmatch '%S+' do derived[name] = '' end

megatron.derived = derived

--- Returns whether rules may read a name.
function megatron.known(name) return fields[name] ~= nil or derived[name] ~= nil end

local parser_source = 'NVIDIA/Megatron-LM megatron/training/arguments.py:132'

-- Adds a finding: the argument parser refuses an argument.
local function parser_fault(job, code, text, field)
  job.faults[#job.faults + 1] = { code = code, effect = 'refused', text = text, source = parser_source,
    release = megatron.release, paths = { field } }
end

local function is_argument(word) return word:match '^%-%-?[%a]' ~= nil end

-- Returns the value of an argument from the words after it, and the index of the next word.
local function take(job, words, at, argument, attached)
  local values, from = {}, at
  if attached then values[1] = attached end
  while not attached and words[at] and not is_argument(words[at])
    and (#values == 0 or argument.several) do
    values[#values + 1] = words[at]
    at = at + 1
  end
  if #values == 0 then
    if not argument.optional then
      parser_fault(job, 'argument-value', ('%s needs a value.'):format(argument.name), argument.field)
    end
    return nil, at
  end
  for i, text in ipairs(values) do
    local value = readers[argument.kind](text)
    if argument.kind ~= 'texts' and text:find '%$' or argument.choices and text:find '%$' then
      job.unread[#job.unread + 1], value = ('%s %s'):format(argument.name, text), nil
    elseif value == nil then
      parser_fault(job, 'argument-kind', ("%s: expected %s, got '%s'."):format(argument.name,
        argument.kind == 'ints' and 'a whole number' or 'a number', util.shortened(text, 40)), argument.field)
    elseif argument.choices then
      local found = false
      for _, choice in ipairs(argument.choices) do found = found or choice == value end
      if not found and not job.reader.open then
        parser_fault(job, 'argument-choice', ("%s: expected one of %s, got '%s'."):format(argument.name,
          table.concat(util.map(argument.choices, tostring), ', '), util.shortened(text, 40)), argument.field)
        value = nil
      end
    end
    values[i] = value
  end
  if patterned[argument.field] then values[1] = values[1] and patterns.layers(values[1]) or values[1] end
  if argument.several and #values == 0 and at == from then return nil, at end
  return argument.several and values or values[1], at
end

--- Parses a list of words into a job: values by field, given arguments, faults of the parser.
---@param job table with environment and gpus
---@param words string[]
function megatron.read_words(job, words)
  local at = 1
  job.values, job.given, job.faults, job.unread = {}, {}, job.faults, job.unread
  while words[at] do
    local word, attached = words[at], nil
    if word:match '^%-%-.-=' then word, attached = word:match '^(%-%-.-)=(.*)$' end
    local argument = arguments[word]
    at = at + 1
    if not argument then
      local why = is_argument(word) and util.unknown(word, util.sorted_keys(arguments)) or word
      job.unread[#job.unread + 1] = word
      if not job.reader.open then
        parser_fault(job, 'argument-unknown', ('An unknown argument is refused: %s.'):format(why), word)
      end
      while words[at] and not is_argument(words[at]) and is_argument(word) do at = at + 1 end
    elseif argument.kind == 'flags' or argument.kind == 'off' then
      if attached then parser_fault(job, 'argument-value', word .. ' takes no value.', argument.field) end
      job.values[argument.field], job.given[argument.field] = argument.kind == 'flags', word
    else
      local value
      value, at = take(job, words, at, argument, attached)
      job.values[argument.field], job.given[argument.field] = value, word
    end
  end
end

-- Converts MODEL_ARGS to words: true is a bare flag, false omits it, [a b] gives several words.
local function yaml_words(map)
  local words = {}
  for name, node in util.sorted_pairs(map) do
    local plain = yaml.is_scalar(node) and not node.quoted and node.text:lower()
    if yaml.is_scalar(node) and node.text:match '^%[.*%]$' and not node.text:find '[*+]' then
      words[#words + 1] = name
      for word in node.text:sub(2, -2):gmatch '[^%s,]+' do words[#words + 1] = word end
    elseif yaml.is_scalar(node) and plain ~= 'false' and plain ~= 'null' then
      words[#words + 1] = name
      if plain ~= 'true' and node.text ~= '' then words[#words + 1] = node.text end
    elseif not yaml.is_scalar(node) then
      words[#words + 1] = name
      for _, entry in ipairs(node) do
        for word in entry.text:gmatch '%S+' do words[#words + 1] = word end
      end
    end
  end
  return words
end

--- Reads a YAML with MODEL_ARGS; repeated: keys that occur twice.
function megatron.read_yaml(job, map, repeated)
  for _, key in ipairs(repeated) do
    job.faults[#job.faults + 1] = { code = 'argument-twice', effect = 'ignored', paths = { key },
      release = megatron.release, text = key .. ' is given twice: the last value counts.' }
  end
  job.environment = {}
  for name, node in util.sorted_pairs(map.ENV_VARS or {}) do job.environment[name] = node.text end
  job.environment_known = true
  if yaml.is_scalar(map.MODEL_ARGS) and map.MODEL_ARGS.text ~= '' then
    util.fail("%s: MODEL_ARGS: expected lines '--argument: value', got '%s'", job.path, map.MODEL_ARGS.text)
  end
  job.words = yaml_words(yaml.is_scalar(map.MODEL_ARGS) and {} or map.MODEL_ARGS)
  megatron.read_words(job, job.words)
end

-- Returns the number of GPUs from the launcher: --nproc_per_node x --nnodes, or srun's tasks.
local function launched_gpus(words)
  local said = {}
  for i, word in ipairs(words) do
    local name, value = word:match '^%-%-([%w_-]+)=(.+)$'
    if not name then name, value = word:match '^%-%-([%w_-]+)$', words[i + 1] end
    if name then said[name:gsub('-', '_')] = tonumber(value) or false end
  end
  if not said.nproc_per_node or said.nnodes == false then return nil end
  return said.nproc_per_node * (said.nnodes or 1)
end

--- Reads a launch script (trinity.job.shell).
function megatron.read_shell(job, script)
  job.environment, job.environment_known = script.environment, true
  job.gpus_said = launched_gpus(script.launcher)
  job.unset = script.unset
  job.words = { unpack(script.words, 2) }
  for _, word in ipairs(job.words) do
    if word == '--deepspeed' then job.reader = require 'trinity.job.megatron_deepspeed' end
  end
  megatron.read_words(job, job.words)
end

-- Checks a schedule of batch sizes.
local function schedule_fault(text, sequence)
  local last
  local units = { K = 1e3, M = 1e6, B = 1e9, T = 1e12 }
  local function number(part)
    local digits, unit = part:match '^([%d.]+)([KMBT]?)$'
    return tonumber(digits) and tonumber(digits) * (units[unit] or 1)
  end
  local list = {}
  for entry in text:gsub(',', ' '):gmatch '%S+' do
    local threshold, batch = entry:match '^(.-):(.*)$'
    threshold, batch = threshold and number(threshold), batch and number(batch)
    if not threshold or not batch or batch <= 0 then return true end
    list[#list + 1] = sequence and math.floor(threshold / sequence) or threshold
  end
  table.sort(list)
  for _, threshold in ipairs(list) do
    if last == nil and threshold ~= 0 or last and threshold <= last then return true end
    last = threshold
  end
  return last == nil
end

local function nccl_fault(text)
  local some = false
  for token in (text .. ','):gmatch '%s*(.-)%s*,' do
    if token ~= '' then
      some = true
      if not ({ Ring = 1, CollnetDirect = 1, CollnetChain = 1, ['^NVLS'] = 1 })[token] then return true end
    end
  end
  return not some
end

local function layout_of(text, pipeline, layers, further)
  local ok, pieces = pcall(layout.read, text)
  if not ok then return { unit = true } end
  return patterns.layout_faults(pieces, pipeline, layers, further)
end

--- Returns the values for rules: given values and defaults, with functions of this client.
function megatron.space(job)
  local values = { gpus = job.gpus, capability = job.capability,
    env = util.merged(job.environment or {}, { known = job.environment_known }) }
  for field, argument in util.sorted_pairs(fields) do values[field] = argument.default end
  for field, value in util.sorted_pairs(job.values) do values[field] = value end
  values.given = function(field) return job.given[field] ~= nil end
  values.product = function(list)
    local all = 1
    for _, entry in ipairs(list) do all = all * entry end
    return all
  end
  values.contains = function(text, part) return text:find(part, 1, true) ~= nil end
  values.joined = function(list, word)
    local all = { unpack(list) }
    all[#all + 1] = word
    return all
  end
  values.all_experts = function(freq)
    if type(freq) ~= 'table' then return freq == 1 end
    for _, kind in ipairs(freq) do if kind == 0 then return false end end
    return true
  end
  values.hybrid_of, values.layout_of = patterns.hybrid, layout_of
  values.schedule_fault, values.nccl_fault = schedule_fault, nccl_fault
  return values
end

--- Returns whether a path of a rule is an argument, its name, value and choices.
function megatron.argument(job, path)
  local argument = fields[path]
  if not argument then return nil end
  return { name = job.given[path] or argument.name, value = job.values[path] == nil and argument.default
    or job.values[path], choices = argument.choices, given = job.given[path] ~= nil,
    several = argument.several, kind = argument.kind }
end

--- Returns whether a path is an argument with one value.
function megatron.with(job, path, value)
  local copy = util.merged(job, { values = util.merged(job.values), given = util.merged(job.given) })
  copy.values[path] = value
  copy.given[path] = value ~= nil and (job.given[path] or fields[path].name) or nil
  return copy
end

local function recompute_of(v)
  if not v.recompute_granularity then return 'none' end
  local selective = v.recompute_granularity == 'selective'
  return { granularity = v.recompute_granularity, method = v.recompute_method, layers = v.recompute_num_layers,
    modules = selective and #v.modules > 0 and v.modules or nil }
end

local function precision_of(v)
  local base = v.bf16 and 'bf16' or v.fp16 and 'fp16' or 'fp32'
  if v.fp8 then return ('%s + fp8 products (%s, %s)'):format(base, v.fp8, v.fp8_recipe or 'delayed') end
  if v.fp4 then return ('%s + fp4 products (%s)'):format(base, v.fp4) end
  return base
end

local strategies = { no_shard = 0, optim = 1, optim_grads = 2, optim_grads_params = 3 }

--- Converts values (after the rules) to fields of the job.
function megatron.meaning(job, v)
  local latent = v.multi_latent_attention or false
  job.model = { layers = v.num_layers, hidden = v.hidden_size, heads = v.num_attention_heads,
    kv_heads = not latent and v.groups or nil, head_size = v.kv_channels, ffn = v.ffn_hidden_size,
    vocab = v.vocab_size, sequence = v.seq_length, positions = v.max_position_embeddings, experts = v.num_experts,
    experts_per_token = v.num_experts and v.moe_router_topk or nil,
    expert_ffn = v.num_experts and v.moe_ffn_hidden_size or nil,
    shared_expert_ffn = v.moe_shared_expert_intermediate_size, mtp_layers = v.mtp_num_layers,
    latent_attention = latent, tied_embeddings = not v.untie_embeddings_and_output_weights }
  job.mesh = { tensor = v.tensor_model_parallel_size, pipeline = v.pipeline_model_parallel_size,
    virtual_stages = v.virtual or 1, context = v.context_parallel_size, expert = v.expert_model_parallel_size,
    expert_tensor = (job.given.expert_tensor_parallel_size or v.num_experts) and v.expert_tensor_parallel_size or nil,
    data = v.data, sequence_parallel = v.sequence_parallel }
  job.micro_batch, job.global_batch = v.micro_batch_size, v.global_batch_size
  job.micro_batches = v.micro_batches
  job.rank_order = v.use_tp_pp_dp_mapping and { 'tensor', 'context', 'expert', 'pipeline', 'data' }
    or { 'tensor', 'context', 'expert', 'data', 'pipeline' }
  job.precision, job.recompute = precision_of(v), recompute_of(v)
  job.distributed_optimizer = v.use_distributed_optimizer or v.layer_wise or false
  job.zero_stage = v.use_megatron_fsdp and strategies[v.data_parallel_sharding_strategy] or v.use_torch_fsdp2 and 3
    or job.distributed_optimizer and 1 or 0
  job.overlaps = { gradients = v.overlap_grad_reduce, weights = v.overlap_param_gather, tensor = v.tp_comm_overlap,
    experts = v.overlap_moe_expert_parallel_comm, pipeline = v.overlap_p2p_comm }
  job.offload = { optimizer = v.optimizer_cpu_offload and (v.optimizer_offload_fraction or 1) or nil,
    activations = v.fine_grained_activation_offloading and v.offload_modules or nil,
    layers = v.offload_layers and v.cpu_offloading_num_layers or nil }
  job.stages = patterns.stages(v)
end

return megatron
