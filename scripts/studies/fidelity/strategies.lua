-- trinity study fidelity strategies: memory and messages of regular strategies of decoders, stage by stage (weights,
-- gradients, optimiser, activations, messages), counted in the graphs that they lower to; compared with others' counts
-- where a case has some.
--
-- A case is { name, model, batch, strategy, bytes, expected or refused }: model has layers, hidden, heads, ffn,
-- vocabulary and kv_heads, head_dim, gated, tied, positions, norm, norms_per_layer, qk_norm, bias (none, qkv, all),
-- dropout, experts, top_k; batch micro_batch, sequence, micro_batches; strategy mesh, virtual_stages, stages,
-- schedule, recompute, sequence_parallel, zero_stage, flash; bytes (of one element) activation, weight, gradient,
-- optimizer.

local check = require 'trinity.base.check'
local core = require 'trinity.core'
local csv = require 'trinity.base.csv'
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

local function integer(name, least, most, default)
  return { name, 'integer', default, least = least, most = most, needed = default == nil }
end

local function optional(name, most) return { name, 'integer', least = 1, most = most } end

local fields = {
  model = declare { integer('layers', 1, 10000), integer('hidden', 1, 2 ^ 24), integer('heads', 1, 2 ^ 20),
    optional('kv_heads', 2 ^ 20), optional('head_dim', 2 ^ 20), integer('ffn', 1, 2 ^ 30),
    { 'gated', 'boolean', false }, integer('vocabulary', 1, 2 ^ 31), { 'tied', 'boolean', false },
    integer('positions', 0, 2 ^ 30, 0),
    { 'norm', { 'layernorm', 'rmsnorm' }, 'layernorm' }, integer('norms_per_layer', 2, 4, 2),
    { 'qk_norm', 'boolean', false }, { 'bias', { 'none', 'qkv', 'all' }, 'none' }, { 'dropout', 'boolean', false },
    integer('experts', 0, 65536, 0), integer('top_k', 0, 65536, 0) },
  batch = declare { integer('micro_batch', 1, 2 ^ 24), integer('sequence', 1, 2 ^ 24),
    integer('micro_batches', 1, 2 ^ 20) },
  bytes = declare { integer('activation', 1, 8, 2), integer('weight', 1, 8, 2), integer('gradient', 1, 8, 4),
    integer('optimizer', 0, 64, 12) },
  strategy = declare { { 'mesh', 'table' }, { 'flash', 'boolean' }, { 'virtual_stages', 'any' }, { 'stages', 'any' },
    { 'schedule', 'any' }, { 'recompute', 'any' }, { 'sequence_parallel', 'any' }, { 'zero_stage', 'any' } },
  case = declare { { 'name', 'string', needed = true }, { 'model', 'table', needed = true },
    { 'batch', 'table', needed = true }, { 'strategy', 'table', needed = true }, { 'bytes', 'table' },
    { 'expected', 'table' }, { 'refused', 'string' } },
}

--- A part of a case, checked, with what it leaves out.
local function read(owner, case, part)
  return fields[part]:filled(fields[part]:check(('%s: %s'):format(owner, part), case[part] or {}))
end

local null = 0 / 0 -- as JSON has no number for it

-- How weights are trained, by bytes per weight and bytes of optimiser state per weight.
local optimisers = { ['2 12'] = 'adam', ['2 8'] = 'momentum', ['2 4'] = 'sgd', ['4 8'] = 'adam', ['4 4'] = 'momentum',
  ['4 0'] = 'sgd' }
local dtypes = { [2] = 'bfloat16', [4] = 'float32' }

-- The devices of an axis of a mesh that may not have been checked.
local function size_of(mesh, axis)
  local size = type(mesh) == 'table' and mesh[axis] or 1
  return type(size) == 'number' and math.floor(math.min(math.max(1, size), 2 ^ 16)) or 1
end

local function graph_of(owner, case)
  local m, batch, bytes = read(owner, case, 'model'), read(owner, case, 'batch'), read(owner, case, 'bytes')
  local optimiser = optimisers[('%d %d'):format(bytes.weight, bytes.optimizer)]
  if bytes.activation ~= bytes.weight or not optimiser or not dtypes[bytes.gradient] then
    util.fail('%s: bytes: expected activations like weights (2 or 4), gradients of 2 or 4, an optimiser of 4, 8 or 12 '
      .. 'bytes with weights of 2 and of 0, 4 or 8 with weights of 4 (SGD, momentum, Adam), got weights of %d, '
      .. 'activations of %d, gradients of %d and an optimiser of %d', owner, bytes.weight, bytes.activation,
      bytes.gradient, bytes.optimizer)
  end
  local parts = size_of(case.strategy.mesh, 'tensor') * size_of(case.strategy.mesh, 'context')
  local graph = model.load('decoder', { layers = m.layers, hidden = m.hidden, heads = m.heads,
    num_kv_heads = m.kv_heads, head_dim = m.head_dim, feed_forward = m.ffn, gated = m.gated, bias = m.bias,
    vocabulary = m.vocabulary, norm = m.norm == 'rmsnorm' and 'rms' or 'layer', qk_norm = m.qk_norm,
    post_norms = m.norms_per_layer == 4, tied = m.tied, positions = m.positions, dropout = m.dropout and 0.1 or 0,
    experts = m.experts, experts_per_token = m.top_k, expert_rows_multiple = parts, batch_size = batch.micro_batch,
    sequence = batch.sequence, dtype = dtypes[bytes.weight], optimizer = optimiser,
    gradient_dtype = dtypes[bytes.gradient], kernels = case.strategy.flash == false and 'megatron' or 'flash' })
  return graph, batch.micro_batches
end

--- Devices of one kind on one switch, with more memory than any case needs: the counts depend on no time.
local function cluster_of(count)
  local spec = { name = ('%d devices'):format(count), devices = {}, links = {}, device_types = { any = {
    peak_flops_per_s = { float32 = 1e15 }, memory_bandwidth_bytes_per_s = 1e13, memory_bytes = 2 ^ 49 } } }
  for d = 1, count do
    spec.devices[d] = { name = 'd' .. d, type = 'any' }
    spec.links[d] = { from = 'd' .. d, to = 'switch', bandwidth_bytes_per_s = 1e15, latency_s = 0 }
  end
  return model.cluster(spec)
end

--- The strategy of a case, with its network on the number of devices that it takes, and its plan.
function strategies.lowered(owner, case)
  fields.strategy:check(owner .. ': strategy', case.strategy)
  local graph, micro_batches = graph_of(owner, case)
  local plan = util.merged(case.strategy, { mesh = case.strategy.mesh or {}, micro_batches = micro_batches,
    bucket_bytes = 2 ^ 50 })
  plan.flash = nil
  if (plan.mesh.context or 1) > 1 and case.strategy.flash ~= false then plan.cp_comm_type = 'ring' end
  local devices = 1
  for _, axis in ipairs { 'data', 'tensor', 'pipeline', 'context' } do devices = devices * size_of(plan.mesh, axis) end
  local problem = problems.new { graph = graph, cluster = cluster_of(math.min(devices, 4096)) }
  return problem:strategy(plan), plan
end

--- Returns the sizes in bytes of messages that send router probabilities (one number per row) with the rows to the
--- experts: of all rows, and of one tensor rank's fraction.
local function row_weight_bytes(plan, mixture)
  if not mixture then return {} end
  local tokens = mixture.tokens / (plan.mesh.context or 1)
  local rows = mixture.experts * math.ceil(tokens * mixture.top_k / mixture.experts) * mixture.bytes
  return { [rows] = true, [rows / (plan.mesh.tensor or 1)] = true }
end

local dealing = { all_to_all = true, all_gather = true, reduce_scatter = true }

--- Returns the messages of a stage: { kind, axis, count, bytes (of each) }. The layer-wise weight gathers of ZeRO stage
--- 3 count as one gather per pass and micro-batch, with the same total bytes (one for experts, one for other weights).
--- The second value { count =, bytes = } has the messages with router probabilities. Megatron-LM sends them, too
--- (core/transformer/moe/token_dispatcher.py, MoEAlltoAllTokenDispatcher: one all-to-all for `global_probs`, another
--- for `global_input_tokens`), but formulas with A x top_k bytes per message omit them.
local function messages(stage, plan, small)
  local rows, gathers, apart = {}, {}, { count = 0, bytes = 0 }
  for _, row in ipairs(stage.traffic) do
    -- With ring attention, only gradients and weights are reduced over parts of the sequence, in their data group.
    local axis = row.axis == 'context' and row.kind ~= 'send' and plan.cp_comm_type == 'ring' and 'data' or row.axis
    local own = { kind = row.kind:gsub('_', '-'), axis = axis, count = row.count, bytes = row.bytes }
    if small[row.bytes] and dealing[row.kind] and axis ~= 'data' and row.part == 'layers' then
      apart.count, apart.bytes = apart.count + row.count, apart.bytes + row.count * row.bytes
    elseif plan.zero_stage == 3 and row.kind == 'all_gather' and axis == 'data' then
      local key = ('%s %d'):format(row.phase, #row.devices) -- experts are gathered over fewer devices
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

--- Lowers a strategy. Returns its lowered graph and plan, and the facts about its operators.
local function lowered(problem, plan)
  local inner, there, low = simulator.lowered('problem:strategy', problem, plan)
  return util.merged(low, { graph = inner.graph, plan = there })
end

--- Returns the number of weights on the first device of every stage, of operators that take(low, op) holds for.
function strategies.weights(problem, plan, take)
  local low, count = lowered(problem, plan), {}
  for op = 1, low.graph.operators do
    if low.graph.parameter_bytes_of[op] > 0 and take(low, op) then
      for _, parameter in ipairs(low.graph:operator(op).parameters) do
        local elements, at = 1, low.plan.placement[op]
        for _, extent in ipairs(parameter.shape) do elements = elements * extent end
        count[at] = (count[at] or 0) + elements
      end
    end
  end
  return util.map(parallelism.first_devices(low), function(device) return count[device] or 0 end)
end

--- Returns the maximum bytes that ZeRO stage 3 gathers on a device for one layer, embedding or head. Experts are
--- gathered separately from the rest of their layer, over fewer replicas.
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

--- Joins messages of equal kind, axis and size in one row, at the position of the first one. share: the experts' of
--- gradients and weights, which are then rows of their own: without expert parallelism they are reduced together, as in
--- Megatron-LM (core/transformer/moe/experts.py unsets `allreduce` of expert parameters only with expert parallelism),
--- but counts list them separately.
local function tallied(rows, share)
  local found, of = {}, {}
  local function add(row, bytes)
    local key = ('%s %s %d'):format(row.kind, row.axis, bytes)
    if not of[key] then
      of[key] = { kind = row.kind, axis = row.axis, count = 0, bytes = bytes }
      found[#found + 1] = of[key]
    end
    of[key].count = of[key].count + row.count
  end
  for _, row in ipairs(rows) do
    local experts = row.axis == 'data' and math.floor(row.bytes * share + 0.5) or 0
    add(row, row.bytes - experts)
    if experts > 0 then add(row, experts) end
  end
  return found
end

--- Returns the stages of a strategy: { parameters, weight_bytes, gradient_bytes, optimizer_bytes,
--- gathered_weight_bytes, activation_bytes by part, collectives, row_weights }. mixture: { experts, top_k, tokens (of a
--- micro-batch), bytes (of an activation) }, nil for a network without experts.
local function stages_of(found, plan, mixture)
  local small, alone = row_weight_bytes(plan, mixture), mixture and (plan.mesh.expert or 1) == 1
  local whole, low, experts
  if plan.zero_stage == 3 or alone then
    local plain = util.merged(plan, { zero_stage = 0 })
    whole = strategies.weights(found.problem, plain, function() return true end)
    experts = alone and strategies.weights(found.problem, plain, function(of, op)
      return of.graph:operator(op).type == 'Einsum'
    end)
  end
  if plan.zero_stage == 3 and mixture then low = lowered(found.problem, found) end
  return util.map(found:breakdown().stages, function(stage, s)
    local kept = stage.activations
    local rows, apart = messages(stage, plan, small)
    return { parameters = whole and whole[s] or stage.parameters, weight_bytes = stage.weight_bytes,
      gradient_bytes = stage.gradient_bytes, optimizer_bytes = stage.optimizer_bytes,
      gathered_weight_bytes = low and gathered_bytes(low, parallelism.first_devices(low)[s])
        or stage.gathered_weight_bytes,
      activation_bytes = { layers = kept.layers, embedding = kept.embedding, head = kept.head,
        delayed = stage.delayed_bytes },
      collectives = tallied(rows, alone and experts[s] / math.max(1, whole[s]) or 0), row_weights = apart }
  end)
end

--- Evaluates every case of a list; a contradictory one is refused in a sentence.
function strategies.cases(path, cases)
  return util.map(cases, function(case, i)
    local name = type(case) == 'table' and case.name or null
    local found, why = csv.attempt(function()
      local owner = ('%s: case %d'):format(util.shortened(path), i)
      fields.case:check(owner, check.argument(owner, 'entry', 'case', case, 'table'))
      local strategy, plan = strategies.lowered(owner, case)
      local idle, m, batch = parallelism.schedule_bubble(plan), case.model, case.batch
      return { name = name, refused = null, bubble_fraction = idle / (1 + idle),
        stages = stages_of(strategy, plan, (m.experts or 0) > 0 and { experts = m.experts, top_k = m.top_k,
          tokens = batch.micro_batch * batch.sequence, bytes = read(owner, case, 'bytes').activation } or nil) }
    end)
    return found or { name = type(name) == 'string' and name or null, bubble_fraction = null, stages = {},
      refused = util.unplaced(why):gsub('^problem:strategy: ', '') }
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
  if options.cases == '' then util.fail_usage "trinity study fidelity strategies: option '--cases' is missing" end
  local file = json.read(options.cases)
  local cases = check.argument(options.cases, 'field', 'cases', type(file) == 'table' and file.cases, 'table')
  local results = strategies.cases(options.cases, cases)
  if not options.json then return print_text(results) end
  print(require('trinity.files.json').encode { cases = results })
end

return strategies
