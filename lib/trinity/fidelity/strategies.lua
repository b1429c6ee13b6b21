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
local options_of = require 'trinity.base.options'
local parallelism = require 'trinity.strategy.parallelism'
local problems = require 'trinity.strategy.problem'
local simulator = require 'trinity.strategy.simulator'
local text = require 'trinity.base.text'
local util = require 'trinity.base.util'

local strategies = {
  help = 'memory, messages and bubbles of strategies, from the graphs that they lower to',
  options = { cases = { default = '', help = 'file of cases (JSON)' } },
}

local function declare(fields) return options_of.declare(nil, util.merged({ kind = 'field' }, fields)) end

local function whole(name, least, most, default)
  return { name, 'integer', default, least = least, most = most, needed = default == nil }
end

local function count(name, most) return { name, 'integer', least = 1, most = most } end

local fields = {
  model = declare { whole('layers', 1, 10000), whole('hidden', 1, 2 ^ 24), whole('heads', 1, 2 ^ 20),
    count('kv_heads', 2 ^ 20), count('head_dim', 2 ^ 20), whole('ffn', 1, 2 ^ 30), { 'gated', 'boolean', false },
    whole('vocabulary', 1, 2 ^ 31), { 'tied', 'boolean', false }, whole('positions', 0, 2 ^ 30, 0),
    { 'norm', { 'layernorm', 'rmsnorm' }, 'layernorm' }, whole('norms_per_layer', 2, 4, 2),
    { 'qk_norm', 'boolean', false }, { 'bias', { 'none', 'qkv', 'all' }, 'none' }, { 'dropout', 'boolean', false },
    whole('experts', 0, 65536, 0), whole('top_k', 0, 65536, 0) },
  batch = declare { whole('micro_batch', 1, 2 ^ 24), whole('sequence', 1, 2 ^ 24), whole('micro_batches', 1, 2 ^ 20) },
  bytes = declare { whole('activation', 1, 8, 2), whole('weight', 1, 8, 2), whole('gradient', 1, 8, 4),
    whole('optimizer', 0, 64, 12) },
  strategy = declare { { 'mesh', 'table' }, { 'flash', 'boolean' }, { 'virtual_stages', 'any' }, { 'stages', 'any' },
    { 'schedule', 'any' }, { 'recompute', 'any' }, { 'sequence_parallel', 'any' }, { 'shard', 'any' } },
  case = declare { { 'name', 'string', needed = true }, { 'model', 'table', needed = true },
    { 'batch', 'table', needed = true }, { 'strategy', 'table', needed = true }, { 'bytes', 'table' },
    { 'expected', 'table' }, { 'refused', 'string' } },
}

--- A part of a case, checked, with what it leaves out.
local function read(owner, case, part)
  return fields[part]:filled(fields[part]:check(('%s: %s'):format(owner, part), case[part] or {}))
end

local null = 0 / 0 -- as JSON has no number for it

-- How weights of so many bytes are trained that their optimiser holds so many an element.
local optimisers = { ['2 12'] = 'adam', ['2 8'] = 'momentum', ['2 4'] = 'sgd', ['4 8'] = 'adam', ['4 4'] = 'momentum',
  ['4 0'] = 'sgd' }
local dtypes = { [2] = 'bfloat16', [4] = 'float32' }

-- The devices of an axis of a mesh that may not have been checked.
local function size_of(mesh, axis)
  local size = type(mesh) == 'table' and mesh[axis] or 1
  return type(size) == 'number' and math.floor(math.min(math.max(1, size), 2 ^ 16)) or 1
end

--- The training graph of a case, and its micro-batches.
local function graph_of(owner, case)
  local m, batch, bytes = read(owner, case, 'model'), read(owner, case, 'batch'), read(owner, case, 'bytes')
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

-- Bytes of the messages that take the weights of experts' rows, a number each, to where the rows go: of all rows, and
-- of a share of tensor.
local function row_weight_bytes(owner, case)
  local m, batch, mesh = case.model, case.batch, case.strategy.mesh or {}
  if (m.experts or 0) == 0 then return {} end
  local tokens = batch.micro_batch * batch.sequence / (mesh.context or 1)
  local rows = m.experts * math.ceil(tokens * m.top_k / m.experts) * read(owner, case, 'bytes').activation
  return { [rows] = true, [rows / (mesh.tensor or 1)] = true }
end

local dealing = { all_to_all = true, all_gather = true, reduce_scatter = true }

--- Messages of a stage: { kind, axis, count, bytes (of each) }. What level 3 gathers layer by layer of weights is one
--- gather of all of them (of experts, and of the others) a pass and micro-batch: as many bytes. The second value is
--- { count =, bytes = } of the messages that take the weights of experts' rows: they are sent, as Megatron-LM does
--- (core/transformer/moe/token_dispatcher.py, MoEAlltoAllTokenDispatcher: an all-to-all for `global_probs` beside that
--- for `global_input_tokens`), but counted apart, as counts of A x top_k bytes a message leave them out.
local function messages(stage, plan, small)
  local rows, gathers, apart = {}, {}, { count = 0, bytes = 0 }
  for _, row in ipairs(stage.traffic) do
    -- With rings nothing but gradients and weights meets over parts of the sequence: their data group on one replica.
    local axis = row.axis == 'context' and row.kind ~= 'send' and plan.context_kind == 'ring' and 'data' or row.axis
    local own = { kind = row.kind:gsub('_', '-'), axis = axis, count = row.count, bytes = row.bytes }
    if small[row.bytes] and dealing[row.kind] and axis ~= 'data' and row.part == 'layers' then
      apart.count, apart.bytes = apart.count + row.count, apart.bytes + row.count * row.bytes
    elseif plan.shard == 3 and row.kind == 'all_gather' and axis == 'data' then
      local key = ('%s %d'):format(row.phase, #row.devices) -- experts' are gathered over fewer
      if not gathers[key] then
        gathers[key] = util.merged(own, { count = plan.micro_batches, bytes = 0 })
        rows[#rows + 1] = gathers[key]
      end
      gathers[key].bytes = gathers[key].bytes + row.count * row.bytes / plan.micro_batches
    else
      rows[#rows + 1] = own
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

--- Messages of one kind, axis and size in one row, where the first of them stands.
local function tallied(rows)
  local same = util.grouped(rows, function(row) return ('%s %s %d'):format(row.kind, row.axis, row.bytes) end)
  return util.map(same, function(group)
    local sent = 0
    for _, row in ipairs(group) do sent = sent + row.count end
    return util.merged(group[1], { count = sent })
  end)
end

--- The strategy of a case, with its network on as many devices as it takes.
---@param owner string what begins messages
---@param case table
---@return trinity.Strategy
---@return table plan
function strategies.lowered(owner, case)
  fields.strategy:check(owner .. ': strategy', case.strategy)
  local graph, micro_batches = graph_of(owner, case)
  local plan = util.merged(case.strategy, { mesh = case.strategy.mesh or {}, micro_batches = micro_batches,
    bucket_bytes = 2 ^ 50 })
  plan.flash = nil
  if (plan.mesh.context or 1) > 1 and case.strategy.flash ~= false then plan.context_kind = 'ring' end
  local devices = 1
  for _, axis in ipairs { 'data', 'tensor', 'pipeline', 'context' } do devices = devices * size_of(plan.mesh, axis) end
  local problem = problems.new { graph = graph, cluster = cluster_of(math.min(devices, 4096)) }
  return problem:strategy(plan), plan
end

--- What a case comes to, or why it is refused.
local function evaluate(owner, case)
  local found, plan = strategies.lowered(owner, case)
  local account, idle = found:account(), parallelism.schedule_bubble(plan)
  local small = row_weight_bytes(owner, case)
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
      collectives = tallied(rows), row_weights = apart }
  end)
  return { bubble_fraction = idle / (1 + idle), stages = stages }
end

local function checked(owner, case)
  return evaluate(owner, fields.case:check(owner, check.argument(owner, 'entry', 'case', case, 'table')))
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
