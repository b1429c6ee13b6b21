-- trinity fidelity strategies: what regular strategies of decoders come to, stage by stage (weights, gradients,
-- optimiser, activations, messages), counted in the graphs that they lower to; beside counts of others where a case has
-- some.
--
-- A case is { name, model, batch, strategy, bytes, expected or refused }: model has layers, hidden, heads, ffn,
-- vocabulary and kv_heads, head_dim, gated, tied, positions, norm, norms_per_layer, qk_norm, bias (none, qkv, all),
-- dropout, experts, top_k; batch micro_batch, sequence, micro_batches; strategy mesh, virtual_stages, stages,
-- schedule, recompute, sequence_parallel, shard, flash; bytes (of one element) activation, weight, gradient, optimizer.

local check = require 'trinity.base.check'
local core = require 'trinity.core'
local json = require 'trinity.base.json'
local model = require 'trinity.graph.model'
local parallelism = require 'trinity.strategy.parallelism'
local problems = require 'trinity.strategy.problem'
local simulator = require 'trinity.strategy.simulator'
local text = require 'trinity.base.text'
local util = require 'trinity.base.util'

local strategies = {
  help = 'memory, messages and bubbles of strategies, from the graphs that they lower to',
  options = { cases = { default = '', help = 'file of cases (JSON)' } },
}

local function words(...)
  local set = {}
  for _, word in ipairs { ... } do set[word] = true end
  return { 'choice', set }
end

local model_rules = { layers = { 'integer', 1, 10000 }, hidden = { 'integer', 1, 2 ^ 24 },
  heads = { 'integer', 1, 2 ^ 20 }, kv_heads = { 'integer', 1, 2 ^ 20 }, head_dim = { 'integer', 1, 2 ^ 20 },
  ffn = { 'integer', 1, 2 ^ 30 },
  gated = 'boolean', vocabulary = { 'integer', 1, 2 ^ 31 }, tied = 'boolean', positions = { 'integer', 0, 2 ^ 30 },
  norm = words('layernorm', 'rmsnorm'), norms_per_layer = { 'integer', 2, 4 }, qk_norm = 'boolean',
  bias = words('none', 'qkv', 'all'), dropout = 'boolean', experts = { 'integer', 0, 65536 },
  top_k = { 'integer', 0, 65536 } }
local model_defaults = { gated = false, tied = false,
  positions = 0, norm = 'layernorm', norms_per_layer = 2, qk_norm = false, bias = 'none', dropout = false, experts = 0,
  top_k = 0 }
local batch_rules = { micro_batch = { 'integer', 1, 2 ^ 24 }, sequence = { 'integer', 1, 2 ^ 24 },
  micro_batches = { 'integer', 1, 2 ^ 20 } }
local bytes_rules = { activation = { 'integer', 1, 8 }, weight = { 'integer', 1, 8 }, gradient = { 'integer', 1, 8 },
  optimizer = { 'integer', 0, 64 } }
local bytes_defaults = { activation = 2, weight = 2, gradient = 4, optimizer = 12 }

local function need(owner, given, ...)
  for _, name in ipairs { ... } do
    if given[name] == nil then util.fail("%s: field '%s' is missing", owner, name) end
  end
end

-- A part of a case, checked, with what it leaves out.
local function read(owner, part, given, rules, defaults)
  check.fields(('%s: %s'):format(owner, part), given or {}, rules, 'field')
  return util.merged(defaults, given)
end

local null = 0 / 0 -- as JSON has no number for it
local own_fields = { 'mesh', 'virtual_stages', 'stages', 'schedule', 'recompute', 'sequence_parallel', 'shard' }
local strategy_rules = { mesh = 'table', flash = 'boolean' }
for _, name in ipairs(own_fields) do strategy_rules[name] = strategy_rules[name] or 'any' end

-- How weights of so many bytes are trained that their optimiser holds so many an element.
local optimisers = { ['2 12'] = 'adam', ['2 8'] = 'momentum', ['2 4'] = 'sgd', ['4 8'] = 'adam', ['4 4'] = 'momentum',
  ['4 0'] = 'sgd' }
local dtypes = { [2] = 'bfloat16', [4] = 'float32' }

-- The devices of an axis of a mesh that may not have been checked.
local function size_of(mesh, axis)
  local size = type(mesh) == 'table' and mesh[axis] or 1
  return type(size) == 'number' and math.floor(math.min(math.max(1, size), 2 ^ 16)) or 1
end

--- The training graph of a case.
local function graph_of(owner, case)
  local m = read(owner, 'model', case.model, model_rules, model_defaults)
  need(owner .. ': model', m, 'layers', 'hidden', 'heads', 'ffn', 'vocabulary')
  local batch = read(owner, 'batch', case.batch, batch_rules)
  need(owner .. ': batch', batch, 'micro_batch', 'sequence', 'micro_batches')
  local bytes = read(owner, 'bytes', case.bytes, bytes_rules, bytes_defaults)
  local optimiser = optimisers[('%d %d'):format(bytes.weight, bytes.optimizer)]
  if bytes.activation ~= bytes.weight or not optimiser or not dtypes[bytes.gradient] then
    util.fail('%s: bytes: no training here has weights of %d, activations of %d, gradients of %d and an optimiser of '
      .. '%d bytes an element', owner, bytes.weight, bytes.activation, bytes.gradient, bytes.optimizer)
  end
  local parts = size_of(case.strategy.mesh, 'tensor') * size_of(case.strategy.mesh, 'context')
  local graph = model.load('decoder', { layers = m.layers, hidden = m.hidden, heads = m.heads, key_heads = m.kv_heads,
    head_width = m.head_dim, feed_forward = m.ffn, gated = m.gated, bias = m.bias, vocabulary = m.vocabulary,
    norm = m.norm == 'rmsnorm' and 'rms' or 'layer', head_norm = m.qk_norm, post_norms = m.norms_per_layer == 4,
    tied = m.tied, positions = m.positions, dropout = m.dropout and 0.1 or 0, experts = m.experts,
    experts_per_token = m.top_k, expert_rows_multiple = parts, batch_size = batch.micro_batch,
    sequence = batch.sequence, dtype = dtypes[bytes.weight], optimizer = optimiser,
    gradient_dtype = dtypes[bytes.gradient], kernels = case.strategy.flash == false and 'megatron' or 'flash' })
  return graph, batch.micro_batches
end

--- Devices of one kind behind one switch, with more memory than any case needs: what is counted depends on no time.
local function cluster_of(count)
  local spec = { name = ('%d devices'):format(count), devices = {}, links = {}, device_types = { any = {
    peak_flops_per_s = { float32 = 1e15 }, memory_bandwidth_bytes_per_s = 1e13, memory_bytes = 2 ^ 49 } } }
  for d = 1, count do
    spec.devices[d] = { name = 'd' .. d, type = 'any' }
    spec.links[d] = { from = 'd' .. d, to = 'switch', bandwidth_bytes_per_s = 1e15, latency_s = 0 }
  end
  return model.cluster(spec)
end

local function devices_of(mesh)
  local count = 1
  for _, axis in ipairs { 'data', 'tensor', 'pipeline', 'context' } do
    count = count * size_of(mesh, axis)
  end
  return math.min(count, 4096)
end

-- Bytes of the messages that take the weights of experts' rows, a number each, to where the rows go: of all rows, and
-- of a share of tensor.
local function row_weight_bytes(case)
  local m, batch, mesh = case.model, case.batch, case.strategy.mesh or {}
  if (m.experts or 0) == 0 then return {} end
  local bytes = read('', 'bytes', case.bytes, bytes_rules, bytes_defaults).activation
  local tokens = batch.micro_batch * batch.sequence / (mesh.context or 1)
  local rows = m.experts * math.ceil(tokens * m.top_k / m.experts) * bytes
  return { [rows] = true, [rows / (mesh.tensor or 1)] = true }
end

local dealing = { all_to_all = true, all_gather = true, reduce_scatter = true }

--- Messages of a stage by kind, axis and size. What level 3 gathers layer by layer of weights is one gather of all of
--- them (of experts, and of the others) a pass and micro-batch: as many bytes. The second value is { count =, bytes = }
--- of the messages that take the weights of experts' rows: they are sent, as Megatron-LM does
--- (core/transformer/moe/token_dispatcher.py, MoEAlltoAllTokenDispatcher: an all-to-all for `global_probs` beside that
--- for `global_input_tokens`), but counted apart, as counts of A x top_k bytes a message leave them out.
local function messages(stage, plan, small)
  local rows, by_key, apart = {}, {}, { count = 0, bytes = 0 }
  local function add(key, kind, axis, count, bytes)
    if not by_key[key] then
      by_key[key] = { kind = kind:gsub('_', '-'), axis = axis, count = 0, bytes = 0 }
      rows[#rows + 1] = by_key[key]
    end
    local found = by_key[key]
    found.count, found.bytes = found.count + count, found.bytes + bytes
    return found
  end
  for _, row in ipairs(stage.traffic) do
    -- With rings nothing but gradients and weights meets over parts of the sequence: their data group on one replica.
    local axis = row.axis == 'context' and row.kind ~= 'send' and plan.context_kind == 'ring' and 'data' or row.axis
    if small[row.bytes] and dealing[row.kind] and axis ~= 'data' and row.part == 'layers' then
      apart.count, apart.bytes = apart.count + row.count, apart.bytes + row.count * row.bytes
    elseif plan.shard == 3 and row.kind == 'all_gather' and axis == 'data' then
      local key = ('%s %d'):format(row.phase, #row.devices) -- experts' are gathered over fewer
      add(key, row.kind, axis, 0, row.count * row.bytes / plan.micro_batches).count = plan.micro_batches
    else
      local key = ('%s %s %d'):format(row.kind, axis, row.bytes)
      add(key, row.kind, axis, row.count, by_key[key] and 0 or row.bytes)
    end
  end
  return rows, apart
end

--- What a strategy lowers to: its graph and the plan there, beside what is said of its operators.
local function lowered(owner, problem, plan)
  local inner, there, low = simulator.lowered(owner, problem, plan)
  return util.merged(low, { graph = inner.graph, plan = there })
end

--- Weights by device of a lowered graph; counts: whether those of an operator (its number) do.
local function weights_by_device(low, counts)
  local count, placement = {}, low.plan.placement
  for op = 1, low.graph.operators do
    local at = placement[op]
    if low.graph.parameter_bytes_of[op] > 0 and (not counts or counts(op)) then
      for _, parameter in ipairs(low.graph:operator(op).parameters) do
        local elements = 1
        for _, extent in ipairs(parameter.shape) do elements = elements * extent end
        count[at] = (count[at] or 0) + elements
      end
    end
  end
  return count
end

--- Weights of the layers on the first device of every stage of a strategy.
---@param found trinity.Strategy
---@return integer[]
function strategies.layer_parameters(found)
  local low = lowered('trinity fidelity', found.problem, found)
  local count = weights_by_device(low, function(op) return low.part[op] == 2 end)
  return util.map(parallelism.first_devices(low), function(device) return count[device] or 0 end)
end

--- Weights of the first device of every stage before they are shared out, and what share of them are experts'.
local function parameters_of(problem, plan)
  local low = lowered('trinity fidelity strategies', problem, util.merged(plan, { shard = 0 }))
  local function of_experts(op) return low.graph:operator(op).type == 'Einsum' end
  local count, experts = weights_by_device(low), weights_by_device(low, of_experts)
  local first = parallelism.first_devices(low)
  return util.map(first, function(device) return count[device] or 0 end),
    util.map(first, function(device) return (experts[device] or 0) / (count[device] or 1) end)
end

--- The most that level 3 gathers on a device of one layer, or of what is no layer: experts that are shared out are
--- gathered apart from the rest of their layer, over fewer replicas.
local function gathered_bytes(low, device)
  local by_unit, most = {}, 0
  for op = 1, low.graph.operators do
    local about = low.plan.placement[op] == device and low.graph:operator(op)
    if about and about.type == 'WeightGather' and about.phase == 'forward' then
      local unit = about.name:match '^layer_%d+' or about.name
      by_unit[unit] = (by_unit[unit] or 0) + about.outputs[1].bytes
      most = math.max(most, by_unit[unit])
    end
  end
  return most
end

--- Messages of gradients and weights in two, of what experts have of them (this share) and of the rest: where no axis
--- shares experts out they meet with everything else, as in Megatron-LM (core/transformer/moe/experts.py: parameters
--- of experts have `allreduce` unset with expert parallelism alone), but counts have them apart.
local function experts_apart(rows, share)
  local found = {}
  for _, row in ipairs(rows) do
    local experts = row.axis == 'data' and math.floor(row.bytes * share + 0.5) or 0
    found[#found + 1] = util.merged(row, { bytes = row.bytes - experts })
    if experts > 0 then found[#found + 1] = util.merged(row, { bytes = experts }) end
  end
  return found
end

--- Messages of one kind, axis and size in one row, where the first of them stands: what level 3 gathers forwards and
--- again backwards, or experts' as large as the rest's.
local function merged(rows)
  local found, by_key = {}, {}
  for _, row in ipairs(rows) do
    local key = ('%s %s %d'):format(row.kind, row.axis, row.bytes)
    if by_key[key] then by_key[key].count = by_key[key].count + row.count
    else
      by_key[key] = util.merged(row)
      found[#found + 1] = by_key[key]
    end
  end
  return found
end

--- The strategy of a case, with its network on as many devices as it takes.
---@param owner string what begins messages
---@param case table
---@return trinity.Strategy
---@return table plan
function strategies.lowered(owner, case)
  check.fields(owner .. ': strategy', case.strategy, strategy_rules, 'field')
  local graph, micro_batches = graph_of(owner, case)
  local plan = util.merged(util.picked(case.strategy, own_fields), { micro_batches = micro_batches,
    bucket_bytes = 2 ^ 50 })
  plan.mesh = plan.mesh or {}
  if (plan.mesh.context or 1) > 1 and case.strategy.flash ~= false then plan.context_kind = 'ring' end
  local problem = problems.new { graph = graph, cluster = cluster_of(devices_of(plan.mesh)) }
  return problem:strategy(plan), plan
end

--- What a case comes to, or why it is refused.
local function evaluate(owner, case)
  local found, plan = strategies.lowered(owner, case)
  local account, idle = found:account(), parallelism.schedule_bubble(plan)
  local small = row_weight_bytes(case)
  local mixture, alone = (case.model.experts or 0) > 0, (plan.mesh.expert or 1) == 1
  local whole, share, low
  if plan.shard == 3 or mixture and alone then whole, share = parameters_of(found.problem, plan) end
  if plan.shard == 3 and mixture then low = lowered(owner, found.problem, found) end
  local stages = util.map(account.stages, function(stage, s)
    local kept = stage.activations
    local rows, apart = messages(stage, plan, small)
    if mixture and alone then rows = experts_apart(rows, share[s]) end
    return { parameters = whole and whole[s] or stage.parameters, weight_bytes = stage.weight_bytes,
      gradient_bytes = stage.gradient_bytes, optimizer_bytes = stage.optimizer_bytes,
      gathered_weight_bytes = low and gathered_bytes(low, parallelism.first_devices(low)[s])
        or stage.gathered_weight_bytes,
      activation_bytes = { layers = kept.layers, embedding = kept.embedding, head = kept.head,
        delayed = stage.delayed_bytes },
      collectives = merged(rows), row_weights = apart }
  end)
  return { bubble_fraction = idle / (1 + idle), stages = stages }
end

local case_rules = { name = 'string', model = 'table', batch = 'table', strategy = 'table', bytes = 'table',
  expected = 'table', refused = 'string' }

local function checked(owner, case)
  check.fields(owner, check.argument(owner, 'entry', 'case', case, 'table'), case_rules, 'field')
  need(owner, case, 'name', 'model', 'batch', 'strategy')
  return evaluate(owner, case)
end

--- What every case of a list comes to; one that contradicts itself is refused in a sentence.
---@param path string of the file, for messages
---@param cases table[]
---@return table[]
function strategies.cases(path, cases)
  return util.map(cases, function(case, i)
    local name = type(case) == 'table' and case.name or null
    local ok, found = pcall(checked, ('%s: case %d'):format(util.shortened(path), i), case)
    if ok then return util.merged(found, { name = name, refused = null }) end
    if core.stop_requested() then error(found, 0) end
    local why = util.unplaced(tostring(found)):gsub('^problem:strategy: ', '')
    return { name = type(name) == 'string' and name or null, refused = why, bubble_fraction = null,
      stages = {} }
  end)
end

local function print_text(results)
  local rows = {}
  for _, result in ipairs(results) do
    if result.refused == result.refused then rows[#rows + 1] = { result.name, '-', '', '', '', '', 'refused' } end
    for s, stage in ipairs(result.stages) do
      local kept = stage.activation_bytes
      rows[#rows + 1] = { s == 1 and result.name or '', tostring(s), core.format_bytes(stage.weight_bytes),
        core.format_bytes(stage.gradient_bytes), core.format_bytes(stage.optimizer_bytes),
        core.format_bytes(kept.layers + kept.embedding + kept.head + kept.delayed),
        s == 1 and ('%.4f'):format(result.bubble_fraction) or '' }
    end
  end
  print(text.format_table({ 'case', 'stage', 'weights', 'gradients', 'optimiser', 'activations', 'bubble' }, rows))
  for _, result in ipairs(results) do
    if result.refused == result.refused then print(('%s: refused: %s'):format(result.name, result.refused)) end
  end
end

function strategies.run(options)
  if options.cases == '' then util.fail_usage "trinity fidelity strategies: option '--cases' is missing" end
  local file = json.read(options.cases)
  local cases = check.argument(options.cases, 'field', 'cases', type(file) == 'table' and file.cases, 'table')
  local results = strategies.cases(options.cases, cases)
  if not options.json then return print_text(results) end
  print(require('trinity.files.json').encode { cases = results })
end

return strategies
