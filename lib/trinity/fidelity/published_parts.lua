-- What a published run's step is made of, by the constant that it goes by: parts of the step, from the operators of its
-- graph and the collectives of its cluster. The fit moves constants along these parts and then asks problem:evaluate
-- again, so that a few rounds do what hundreds of simulations would.

local util = require 'trinity.base.util'

local published_parts = {}

local matrix = { Gemm = true, MatMul = true, Linear = true }

--- Which constant an operator's time goes by, beside its launch.
local function class_of(op, eight_bit)
  local type = op.type:gsub('Grad$', '')
  if type == 'Attention' then return 'attention' end
  if type == 'Einsum' then return 'expert' end
  if matrix[type] then
    local wide = op.name:find '^logits' or op.name:find '/router/'
    return eight_bit and not wide and 'eight_bit' or 'compute_efficiency'
  end
  return 'memory_efficiency'
end

--- Seconds of every all-gather of a boundary tensor over the GPUs that share layers, and how many a layer has.
local function tensor_s(row, problem, recompute)
  local plan, members = row.plan, {}
  if plan.tensor == 1 then return 0 end
  for d = 1, plan.tensor do members[d] = d end
  local bytes = 2 * plan.micro_batch * row.sequence / plan.context * row.network.hidden
  local one = problem.cluster:collective { kind = 'all_gather', devices = members, bytes = math.floor(bytes) }
  local count = (plan.sequence_parallel and 10 or 8) + (recompute == 'full' and 4 or 0)
  return row.network.layers * count * one.time_s
end

--- Parts of the step by constant, each at most 1, together at most `most`.
---@param row table
---@param problem trinity.Problem of published_step.problem
---@param values table<string, number>
---@param recompute string
---@return table<string, number>
function published_parts.of(row, problem, values, recompute)
  local graph, plan, parts = problem.graph, row.plan, {}
  local times, width = problem:operator_times(1), plan.tensor * plan.context
  local function add(name, seconds) parts[name] = (parts[name] or 0) + seconds end
  for i = 1, graph.operators do
    local op = graph:operator(i)
    if op.phase ~= 'update' and times[i] > 0 then
      local again = recompute == 'full' and op.phase == 'forward' and 2 or 1
      local launch = math.min(times[i], values.launch_s)
      add('launch_s', again * launch)
      add(class_of(op, row.precision ~= 'bf16'), again * (times[i] - launch) / width)
    end
  end
  add('inside_share', tensor_s(row, problem, recompute))
  local sum, most, shares = 0, 0.95, {}
  for _, seconds in util.sorted_pairs(parts) do sum = sum + seconds end
  for name, seconds in util.sorted_pairs(parts) do shares[name] = seconds / sum * most end
  return shares
end

--- How many times as long a step takes when constants move from `before` to `after`.
---@param row table
---@param shares table<string, number>
---@param before table<string, number>
---@param after table<string, number>
---@return number
function published_parts.factor(row, shares, before, after)
  local narrow = row.precision == 'bf16' and 'compute_efficiency' or row.precision
  local function slower(name) return before[name] / after[name] end
  local moved = { launch_s = 1 / slower 'launch_s', attention = slower 'attention', eight_bit = slower(narrow),
    compute_efficiency = slower 'compute_efficiency', memory_efficiency = slower 'memory_efficiency',
    inside_share = slower 'inside_share', expert = slower(narrow) * slower 'expert' }
  local factor = 1
  for name, share in util.sorted_pairs(shares) do factor = factor + share * (moved[name] - 1) end
  return row.recent and factor * slower 'release' or factor
end

return published_parts
