-- Reads Megatron-LM's arguments from a list, a launch script or a YAML with MODEL_ARGS, and converts them to fields of
-- the job.

local arguments = require 'trinity.job.arguments'
local layout = require 'trinity.strategy.layout'
local patterns = require 'trinity.job.patterns'
local util = require 'trinity.base.util'
local yaml = require 'trinity.job.yaml'

local megatron = { client = 'Megatron-LM', runtime = 'megatron', release = 'd98e8a64ddf34856e74b24714e3bedb2f5a39553',
  rules = { 'megatron', 'megatron_network' }, declared = arguments.declare 'megatron',
  parser = 'NVIDIA/Megatron-LM megatron/training/arguments.py:132', base = { env = '', open = '' } }

local function is_argument(word) return word:match '^%-%-?[%a]' ~= nil end

-- Returns the value of an argument from the words after it, and the index of the next word.
local function take(job, words, at, key, attached)
  local values, kept = {}, {}
  if attached then values[1] = attached end
  while not attached and words[at] and not is_argument(words[at]) and (#values == 0 or key.several) do
    values[#values + 1] = words[at]
    at = at + 1
  end
  local function fault(code, text) arguments.fault(job, code, ('%s %s.'):format(key.name, text), key.path) end
  if #values == 0 and not key.optional then fault('argument-value', 'needs a value') end
  for _, text in ipairs(values) do
    local value, known = arguments.readers[key.kind](text), not key.choices
    for _, choice in ipairs(key.choices or {}) do known = known or choice == value end
    job.unclear[key.path] = value == nil or nil
    if text:find '[$`<]' and (key.kind ~= 'text' or key.choices) then
      job.unread[#job.unread + 1], job.unclear[key.path] = key.name .. ' ' .. text, true
    elseif value == nil then
      fault('argument-kind', ("takes %s, not '%s'"):format(key.kind == 'int' and 'a whole number' or 'a number',
        util.shortened(text, 40)))
    elseif not known and not job.source.open then
      fault('argument-choice', ("is one of %s, not '%s'"):format(table.concat(util.map(key.choices, tostring), ', '),
        util.shortened(text, 40)))
    else
      kept[#kept + 1] = value
    end
  end
  return key.several and #kept > 0 and kept or kept[1], at
end

--- Parses a list of words into a job: values by field, given arguments, faults of the parser. An unknown argument is
--- refused, or with job.source.open only listed as not understood.
function megatron.read_words(job, words)
  local at, declared = 1, job.reader.declared.words
  job.words, job.values, job.given = words, {}, {}
  while words[at] do
    local word, attached = words[at], nil
    if word:match '^%-%-.-=' then word, attached = word:match '^(%-%-.-)=(.*)$' end
    local key = declared[word]
    at = at + 1
    if not key then
      local first, known = at - 1, is_argument(word)
      while words[at] and not is_argument(words[at]) do at = at + 1 end
      for i = first, known and first or at - 1 do
        job.unread[#job.unread + 1] = words[i]
        job.source.partial = job.source.partial or words[i]:find '^[$`]' ~= nil
      end
      if not job.source.open and not word:find '[$`]' then
        arguments.fault(job, 'argument-unknown', (known and 'An unknown argument is refused: '
          .. util.unknown(word, util.sorted_keys(declared)) or 'Words that belong to no argument are refused: '
          .. table.concat(words, ' ', first, at - 1)) .. '.', word)
      end
    elseif key.kind == 'flag' or key.kind == 'off' then
      if attached then arguments.fault(job, 'argument-value', word .. ' takes no value.', key.path) end
      job.values[key.path], job.given[key.path] = key.kind == 'flag', word
    else
      job.values[key.path], at = take(job, words, at, key, attached)
      job.given[key.path] = word
    end
  end
end

-- Converts MODEL_ARGS to words: true is a bare flag, false omits it, [a b] gives several words.
local function yaml_words(map)
  local words = {}
  for name, node in util.sorted_pairs(map) do
    local list = not yaml.is_scalar(node)
    local text = list and table.concat(util.map(node, function(entry) return entry.text end), ' ') or node.text
    local plain, several = not list and not node.quoted and text:lower(), list and text
      or text:match '^%[.*%]$' and not text:find '[*+]' and text:sub(2, -2):gsub(',', ' ')
    if plain ~= 'false' and plain ~= 'null' then
      words[#words + 1] = name
      for word in (several or ''):gmatch '%S+' do words[#words + 1] = word end
      if not several and plain ~= 'true' and text ~= '' then words[#words + 1] = text end
    end
  end
  return words
end

-- Keys of a functional test that are read or do not concern its first training.
local test_keys = { MODEL_ARGS = true, ENV_VARS = true, MODE = true, TEST_TYPE = true, LAUNCHER = true, METRICS = true }

-- Arguments by which a YAML starts another program, with arguments of its own: MIMO, vision-language, Flextron.
local other_programs = { '--model-provider', '--dataloader-seq-length', '--flextron' }

--- Reads a YAML with MODEL_ARGS; repeated: keys that occur twice. A test of inference starts a program with arguments
--- of its own.
function megatron.read(job, map, repeated)
  for _, key in ipairs(repeated) do
    arguments.fault(job, 'argument-twice', key .. ' is given twice: the last value counts.', key, 'ignored')
  end
  for name in util.sorted_pairs(map) do
    if not test_keys[name] then job.unread[#job.unread + 1] = name end
  end
  job.environment, job.environment_known = {}, true
  for name, node in util.sorted_pairs(map.ENV_VARS or {}) do job.environment[name] = node.text end
  if yaml.is_scalar(map.MODEL_ARGS) and map.MODEL_ARGS.text ~= '' then
    util.fail("%s: MODEL_ARGS: expected lines '--argument: value', got '%s'", job.path, map.MODEL_ARGS.text)
  end
  for name in util.sorted_pairs(yaml.is_scalar(map.MODEL_ARGS) and {} or map.MODEL_ARGS) do
    if not is_argument(name) then
      util.fail('%s: MODEL_ARGS: expected arguments of Megatron-LM, such as --num-layers, got %s', job.path, name)
    end
  end
  job.source.open = yaml.value(map).MODE == 'inference'
  for _, name in ipairs(other_programs) do job.source.open = job.source.open or map.MODEL_ARGS[name] ~= nil end
  megatron.read_words(job, yaml_words(yaml.is_scalar(map.MODEL_ARGS) and {} or map.MODEL_ARGS))
end

-- Returns the first and the last batch of a schedule 'THRESHOLD:BATCH ...' (thresholds in tokens), or nil.
local function schedule_of(text, sequence)
  local units, list = { K = 1e3, M = 1e6, B = 1e9, T = 1e12, [''] = 1 }, {}
  local function number(part)
    local digits, unit = part:upper():match '^([%d.]+)([KMBT]?)$'
    return tonumber(digits) and tonumber(digits) * units[unit]
  end
  for entry in text:gmatch '[^%s,]+' do
    local threshold, batch = entry:match '^(.-):(.*)$'
    threshold, batch = number(threshold or ''), number(batch or '')
    if not threshold or not batch or batch <= 0 then return nil end
    list[#list + 1] = { at = math.floor(threshold / (sequence or 1)), batch = batch }
  end
  table.sort(list, function(a, b) return a.at < b.at end)
  for i, entry in ipairs(list) do
    if i == 1 and entry.at ~= 0 or i > 1 and entry.at == list[i - 1].at then return nil end
  end
  if #list > 0 then return list[1].batch, list[#list].batch end
end

local function layout_of(text, pipeline, layers, further)
  local ok, pieces = pcall(layout.read, text)
  if not ok then return { unit = true } end
  return patterns.layout_faults(pieces, pipeline, layers, further)
end

megatron.functions = { hybrid_of = patterns.hybrid, layout_of = layout_of, schedule_of = schedule_of,
  words = function(text) return util.words(text) end }

function megatron.functions.product(list)
  local all = 1
  for _, entry in ipairs(list) do all = all * entry end
  return all
end

function megatron.functions.joined(list, word) return util.joined(list, { word }) end

--- Returns the values for rules. open: the program may be another one than a pretraining.
function megatron.space(job)
  return util.merged(arguments.space(job), { open = job.source.open,
    env = util.merged(job.environment or {}, { known = job.environment_known }) })
end

local function recompute_of(v)
  if not v.recompute_granularity then return 'none' end
  local selective = v.recompute_granularity == 'selective'
  return { granularity = v.recompute_granularity, method = v.recompute_method, layers = v.recompute_num_layers,
    modules = selective and #v.modules > 0 and v.modules or nil }
end

local function precision_of(v)
  local base = v.bf16 and 'bf16' or v.fp16 and 'fp16' or 'fp32'
  if v.fp8 then return ('%s + fp8 matmuls (%s, %s)'):format(base, v.fp8, v.fp8_recipe or 'delayed') end
  if v.fp4 then return ('%s + fp4 matmuls (%s)'):format(base, v.fp4) end
  return base
end

local sizes = { fp32 = 4, fp16 = 2, bf16 = 2, fp8 = 1 }
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
    data = v.data and v.data * v.remat, sequence_parallel = v.sequence_parallel }
  job.micro_batch, job.global_batch = v.micro_batch_size, v.global_batch_size
  job.micro_batches = v.micro_batches
  job.rank_order = v.use_tp_pp_dp_mapping and { 'tensor', 'context', 'expert', 'pipeline', 'data' }
    or { 'tensor', 'context', 'expert', 'data', 'pipeline' }
  job.precision, job.recompute = precision_of(v), recompute_of(v)
  local exchange = type(v.cp_comm_type) == 'table' and v.cp_comm_type[1] or v.cp_comm_type
  job.context_exchange = exchange == 'a2a' and 'all_to_all' or exchange == 'allgather' and 'all_gather' or 'ring'
  job.distributed_optimizer = v.use_distributed_optimizer or v.layer_wise or false
  job.zero_stage = v.use_megatron_fsdp and strategies[v.data_parallel_sharding_strategy] or v.use_torch_fsdp2 and 3
    or job.distributed_optimizer and 1 or 0
  job.overlaps = { gradients = v.overlap_grad_reduce, weights = v.overlap_param_gather, tensor = v.tp_comm_overlap,
    experts = v.overlap_moe_expert_parallel_comm, pipeline = v.overlap_p2p_comm }
  job.offload = { optimizer = v.optimizer_cpu_offload and (v.optimizer_offload_fraction or 1) or nil,
    activations = v.fine_grained_activation_offloading and v.offload_modules or nil,
    layers = v.offload_layers and v.cpu_offloading_num_layers or nil }
  local master = v.bf16 and v.main_params_dtype == 'fp32' and 2 or sizes[v.main_params_dtype] -- store_param_remainders
  job.state_bytes = v.optimizer == 'sgd' and 8
    or v.use_precision_aware_optimizer and master + sizes[v.exp_avg_dtype] + sizes[v.exp_avg_sq_dtype] or 12
  job.stages = patterns.stages(v)
  job.dense_layers = v.num_experts and v.num_layers and select(3, patterns.experts(v.moe_layer_freq, v.num_layers)) or 0
end

return megatron
