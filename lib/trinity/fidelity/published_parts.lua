-- What a published run's step is made of, by the constant that it goes by: parts of the step, from the operators of its
-- graph and the collectives of its cluster. The fit moves constants along these parts and then asks problem:evaluate
-- again, so that a few rounds do what hundreds of simulations would.

local model = require 'trinity.graph.model'
local problems = require 'trinity.strategy.problem'
local published_step = require 'trinity.fidelity.published_step'
local util = require 'trinity.base.util'

local published_parts = {}

local matrix = { Gemm = true, MatMul = true, Linear = true }

--- Which constant an operator's time goes by, beside its launch.
local function class_of(op, row)
  local type = op.type:gsub('Grad$', '')
  if type == 'Attention' then return 'attention' end
  if type == 'Einsum' then return 'expert' end
  if type:find '^Expert' then return 'routing' end
  if type == 'Cast' and row.precision == 'fp8_rowwise' then return 'rowwise' end
  if (type == 'SwiGLU' or type == 'Cast') and row.recorded then return 'fused' end
  if matrix[type] then
    local wide = op.name:find '^logits' or op.name:find '/router/'
    return row.precision ~= 'bf16' and not wide and 'eight_bit' or 'compute_efficiency'
  end
  return 'memory_efficiency'
end

--- Devices of a row's mesh along an axis whose neighbours are `stride` apart.
local function along(count, stride)
  local members = {}
  for i = 1, count do members[i] = (i - 1) * stride + 1 end
  return members
end

local function collective_s(problem, kind, members, bytes)
  if #members == 1 then return 0 end
  return problem.cluster:collective { kind = kind, devices = members, bytes = math.max(1, math.floor(bytes)) }.time_s
end

--- Seconds of a micro-batch's messages that go by links inside machines: gathers and scatters of what layers share,
--- and tokens on their way to experts.
local function inside_s(row, problem, recompute)
  local plan, m = row.plan, row.network
  local bytes = 2 * plan.micro_batch * row.sequence / plan.context * m.hidden
  local count = (plan.sequence_parallel and 10 or 8) + (recompute == 'full' and 4 or 0)
  local tensor = count * collective_s(problem, 'all_gather', along(plan.tensor, 1), bytes)
  local tokens = m.experts > 0 and 4 * collective_s(problem, 'all_to_all', along(plan.expert, plan.tensor),
    bytes * m.top_k) or 0
  return m.layers * (tensor + tokens)
end

--- Seconds of a step's gradients and weights over the replicas, without what the last backward pass hides.
local function data_s(row, problem, hidden_s)
  local plan, weights = row.plan, problem.graph.parameters
  if row.network.experts > 0 then weights = problem.graph.active_parameters end
  local own = weights / (plan.tensor * plan.pipeline)
  local members = along(plan.data, plan.tensor * plan.context)
  if plan.shard == 3 and not plan.deepspeed then return 0 end
  local reduce_s = collective_s(problem, 'reduce_scatter', members, 4 * own)
  return math.max(0, reduce_s - hidden_s) + collective_s(problem, 'all_gather', members, 2 * own)
end

--- What of a product's time is lost to its width: n / (w + n), with the width w of most products of the network.
local function narrowness(row, class, half_width)
  local m = row.network
  local widths = { expert = math.min(m.hidden, m.deepseek and m.deepseek.expert_ffn or m.ffn),
    eight_bit = m.hidden / row.plan.tensor, compute_efficiency = m.hidden / row.plan.tensor }
  return widths[class] and half_width / (widths[class] + half_width) or 0
end

--- What the host needs for kernels, each constant for its own.
local hosts, no_host = { 'expert_dispatch_s', 'layer_dispatch_s' }, { expert_dispatch_s = 0, layer_dispatch_s = 0 }

--- Seconds of every operator where the host needs so long for one, by constant.
local function times_of(row, problem, values, host)
  if row.network.experts == 0 then return problem:operator_times(1) end
  local alone = util.merged(row, { plan = util.merged(row.plan, { gpus = 1 }) })
  local spec = published_step.cluster(alone, util.merged(values, host))
  for _, type in util.sorted_pairs(spec.device_types) do
    -- A device reads the weights of its own experts; the graph here has all of them.
    for _, name in ipairs { 'Einsum', 'EinsumGrad' } do
      type.operators[name] = util.merged(type.operators[name],
        { memory_efficiency = values.memory_efficiency * row.plan.expert })
    end
  end
  local one = problems.simulator { graph = problem.graph, cluster = model.cluster(spec) }
  local times = one:operator_times(1)
  one:close()
  return times
end

--- Seconds that the host needs for the operators of a mixture by constant, and their sum; 0 of other networks.
local function dispatch_s(row, problem, values)
  local most, found, all = 100, {}, 0
  for _, name in ipairs(row.network.experts > 0 and hosts or {}) do
    local sum, times = 0, times_of(row, problem, values, util.merged(no_host, { [name] = most }))
    for i = 1, problem.graph.operators do
      if problem.graph:operator(i).phase ~= 'update' then sum = sum + times[i] end
    end
    found[name] = sum / most * values[name]
    all = all + found[name]
  end
  return found, all
end

--- Seconds of a micro-batch's operators by the constant that they go by.
local function operators_s(row, problem, values, recompute)
  local graph, found, gap = problem.graph, {}, 'launch_s'
  local times, width = times_of(row, problem, values, no_host), row.plan.tensor * row.plan.context
  local function add(name, seconds) found[name] = (found[name] or 0) + seconds end
  for i = 1, graph.operators do
    local op = graph:operator(i)
    if op.phase ~= 'update' and times[i] > 0 then
      local again = recompute == 'full' and op.phase == 'forward' and 2 or 1
      local seconds = times[i]
      local launch, class = math.min(seconds, values[gap]), class_of(op, row)
      local own = again * (seconds - launch) / width
      local narrow_s = own * narrowness(row, class, values.half_width)
      add(gap, again * launch)
      add('half_width', narrow_s)
      add(class, own - narrow_s)
    end
  end
  return found
end

--- Parts of the step by constant; what the host takes, by constant too, is beside the sum of the operators' parts,
--- `operators`.
---@param row table
---@param problem trinity.Problem of published_step.problem
---@param values table<string, number>
---@param recompute string
---@return { parts: table<string, number>, operators: table<string, boolean>, host: table<string, number> }
function published_parts.of(row, problem, values, recompute)
  local plan = row.plan
  local found, sum, operators = operators_s(row, problem, values, recompute), 0, {}
  for name, seconds in util.sorted_pairs(found) do
    operators[name], sum = true, sum + seconds
  end
  local host, host_s = dispatch_s(row, problem, values)
  local inside = inside_s(row, problem, recompute)
  sum = math.max(host_s, sum) + inside
  local slots = (plan.micro_batches + (plan.pipeline - 1) / plan.virtual) / plan.pipeline
  local exposed = data_s(row, problem, plan.pipeline == 1 and sum * 2 / 3 or 0) / slots
  local name = plan.deepspeed and 'zero3' or 'network_share'
  found.inside_share = inside
  found[name] = plan.deepspeed and math.max(2 * exposed, 2 * sum) or exposed
  sum = sum + found[name]
  local function shares(parts)
    local of = {}
    for key, seconds in util.sorted_pairs(parts) do of[key] = 0.97 * seconds / sum end
    return of
  end
  return { parts = shares(found), operators = operators, host = shares(host) }
end

--- How many times as long a step takes when constants move from `before` to `after`.
---@param row table
---@param shares table of published_parts.of
---@param before table<string, number>
---@param after table<string, number>
---@return number
function published_parts.factor(row, shares, before, after)
  local kinds = { bf16 = 'compute_efficiency', fp8_rowwise = 'fp8' }
  local narrow = kinds[row.precision] or row.precision
  local function slower(name) return before[name] / after[name] end
  local release = row.recorded == 'all' and slower 'release' or 1
  local memory = slower 'memory_efficiency' * (row.plan.eager and slower 'eager' or 1)
    * (row.plan.early and slower 'early' or 1)
  local moved = { launch_s = 1 / slower 'launch_s', attention = slower 'attention', eight_bit = slower(narrow),
    compute_efficiency = slower 'compute_efficiency', memory_efficiency = memory,
    fused = memory * release, rowwise = memory * slower 'rowwise', routing = memory * slower 'routing' * release,
    inside_share = slower 'inside_share' * release * (row.plan.async and slower 'async' or 1),
    network_share = slower 'network_share', zero3 = slower 'zero3', half_width = slower(narrow) / slower 'half_width',
    expert = slower(narrow) * slower 'expert' }
  local factor, now, later = 1, 0, 0
  for name, share in util.sorted_pairs(shares.parts) do
    if shares.operators[name] then
      now, later = now + share, later + share * moved[name]
    else
      factor = factor + share * (moved[name] - 1)
    end
  end
  local host_now, host_later = 0, 0
  for name, share in util.sorted_pairs(shares.host) do
    host_now, host_later = host_now + share, host_later + share / slower(name)
  end
  return factor + math.max(later, host_later) - math.max(now, host_now)
end

return published_parts
