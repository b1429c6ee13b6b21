-- Memory and messages of regular strategies of decoders, stage by stage (weights, gradients, optimizer, activations,
-- messages), counted in the graphs that they lower to, as independent counts list them.
--
-- A case is { name, model, batch, strategy, bytes }: model has layers, hidden, heads, ffn, vocabulary and kv_heads, gated,
-- tied, positions, norm, qk_norm, bias, dropout, experts, top_k; batch micro_batch, sequence, micro_batches; strategy mesh,
-- virtual_stages, stages, schedule, recompute, sequence_parallel, zero_stage, flash; bytes (of one element) weight,
-- gradient, optimizer.

local csv = require 'trinity.base.csv'
local model = require 'trinity.graph.model'
local parallelism = require 'trinity.strategy.parallelism'
local problems = require 'trinity.strategy.problem'
local simulator = require 'trinity.strategy.simulator'
local util = require 'trinity.base.util'

local counts = {}

-- How weights are trained, by bytes per weight and bytes of optimizer state per weight.
local optimizers = { ['2 12'] = 'adam', ['2 8'] = 'momentum', ['2 4'] = 'sgd', ['4 8'] = 'adam', ['4 4'] = 'momentum',
  ['4 0'] = 'sgd' }
local dtypes = { [2] = 'bfloat16', [4] = 'float32' }

local function graph_of(case)
  local m, batch = case.model, case.batch
  local bytes = util.merged({ weight = 2, gradient = 4, optimizer = 12 }, case.bytes)
  local mesh = case.strategy.mesh
  return model.load('decoder', { layers = m.layers, hidden = m.hidden, heads = m.heads, num_kv_heads = m.kv_heads,
    feed_forward = m.ffn, gated = m.gated or false, bias = m.bias or 'none', vocabulary = m.vocabulary, qk_norm = m.qk_norm,
    norm = m.norm == 'rmsnorm' and 'rms' or 'layer', tied = m.tied or false, positions = m.positions or 0,
    dropout = m.dropout and 0.1 or 0, experts = m.experts or 0, experts_per_token = m.top_k or 0,
    expert_rows_multiple = (mesh.tensor or 1) * (mesh.context or 1), batch_size = batch.micro_batch, sequence = batch.sequence,
    dtype = dtypes[bytes.weight], optimizer = optimizers[('%d %d'):format(bytes.weight, bytes.optimizer)],
    gradient_dtype = dtypes[bytes.gradient], kernels = case.strategy.flash == false and 'megatron' or 'flash' })
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
function counts.lowered(case)
  local given = case.strategy
  local plan = util.merged(given, { zero_stage = given.zero_stage or given.shard, micro_batches = case.batch.micro_batches,
    bucket_bytes = 2 ^ 50 })
  plan.flash, plan.shard = nil, nil
  if (plan.mesh.context or 1) > 1 and given.flash ~= false then plan.cp_comm_type = 'ring' end
  local devices = 1
  for _, axis in ipairs { 'data', 'tensor', 'pipeline', 'context' } do devices = devices * (plan.mesh[axis] or 1) end
  return problems.new { graph = graph_of(case), cluster = cluster_of(devices) }:strategy(plan), plan
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
function counts.weights(problem, plan, take)
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
    whole = counts.weights(found.problem, plain, function() return true end)
    experts = alone and counts.weights(found.problem, plain, function(of, op)
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

--- The stages of a case and the part of a step that the pipeline idles; or nil and the sentence that refuses it.
function counts.of(case)
  return csv.attempt(function()
    local strategy, plan = counts.lowered(case)
    local idle, m, batch = parallelism.schedule_bubble(plan), case.model, case.batch
    return { bubble_fraction = idle / (1 + idle),
      stages = stages_of(strategy, plan, (m.experts or 0) > 0 and { experts = m.experts, top_k = m.top_k,
        tokens = batch.micro_batch * batch.sequence, bytes = (case.bytes or {}).activation or 2 } or nil) }
  end)
end

--- Bytes of the activations of layers on the fullest device, and of the weights, gradients and states of its layers.
function counts.of_layers(case)
  local found = counts.lowered(case)
  local in_layers = counts.weights(found.problem, found, function(low, op) return low.part[op] == 2 end)
  local activations, states = 0, 0
  for s, stage in ipairs(found:breakdown().stages) do
    local all = stage.weight_bytes + stage.gradient_bytes + stage.optimizer_bytes
    activations = math.max(activations, stage.activations.layers)
    states = math.max(states, all * (in_layers[s] / stage.parameters))
  end
  found.problem:close()
  found.problem.graph:close()
  return activations, states
end

return counts
