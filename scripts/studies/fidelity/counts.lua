-- Weights, gradients, optimizer states, activations and messages per stage of a decoder's regular strategy, in the way
-- that papers and other programs count them. They are counted in the lowered graph, in addition to the account.

local parallelism = require 'trinity.strategy.parallelism'
local simulator = require 'trinity.strategy.simulator'
local util = require 'trinity.base.util'

local counts = {}

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

--- Splits messages of gradients and weights into the experts' fraction and the rest. Without expert parallelism they
--- are reduced together, as in Megatron-LM (core/transformer/moe/experts.py unsets `allreduce` of expert parameters
--- only with expert parallelism), but counts list them separately.
local function experts_apart(rows, share)
  local found = {}
  for _, row in ipairs(rows) do
    local experts = row.axis == 'data' and math.floor(row.bytes * share + 0.5) or 0
    found[#found + 1] = util.merged(row, { bytes = row.bytes - experts })
    if experts > 0 then found[#found + 1] = util.merged(row, { bytes = experts }) end
  end
  return found
end

--- Joins messages of equal kind, axis and size in one row, at the position of the first one.
local function tallied(rows)
  local same = util.grouped(rows, function(row) return ('%s %s %d'):format(row.kind, row.axis, row.bytes) end)
  return util.map(same, function(group)
    local sent = util.sum(group, function(row) return row.count end)
    return util.merged(group[1], { count = sent })
  end)
end

--- Returns the stages of a strategy: { parameters, weight_bytes, gradient_bytes, optimizer_bytes,
--- gathered_weight_bytes, activation_bytes by part, collectives, row_weights }. mixture: { experts, top_k, tokens (of a
--- micro-batch), bytes (of an activation) }, nil for a network without experts.
function counts.stages(found, plan, mixture)
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
    if alone then rows = experts_apart(rows, experts[s] / math.max(1, whole[s])) end
    return { parameters = whole and whole[s] or stage.parameters, weight_bytes = stage.weight_bytes,
      gradient_bytes = stage.gradient_bytes, optimizer_bytes = stage.optimizer_bytes,
      gathered_weight_bytes = low and gathered_bytes(low, parallelism.first_devices(low)[s])
        or stage.gathered_weight_bytes,
      activation_bytes = { layers = kept.layers, embedding = kept.embedding, head = kept.head,
        delayed = stage.delayed_bytes },
      collectives = tallied(rows), row_weights = apart }
  end)
end

return counts
