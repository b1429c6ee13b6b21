-- How a reward changes with what a step costs, around the metrics of one plan: by differences, so that any reward of
-- metrics alone has slopes.

local array = require 'trinity.base.array'
local util = require 'trinity.base.util'

local costs = { { 'step_time_s', 1e-6 }, { 'peak_communication_bytes', 1e3 }, { 'peak_memory_bytes', 1e3 } }
local step = 1e-4 -- of the cost, beside the least step above

--- The slopes of problem.reward by step time, peak communication and peak memory, one after the other for every entry
--- of a list of metrics: a double array.
local function slopes(owner, problem, list)
  local reward = problem.reward
  if debug.getinfo(reward, 'u').nparams > 1 then
    util.fail("%s: option 'credit': 'action' needs a reward of metrics alone; the one at %s takes the plan too", owner,
      util.function_place(reward))
  end
  local values = array.double(#costs * #list)
  for i, metrics in ipairs(list) do
    local base = reward(metrics)
    for c, cost in ipairs(costs) do
      local more = metrics[cost[1]] * step + cost[2]
      local changed = array.changed_metrics(metrics, cost[1], metrics[cost[1]] + more)
      values[#costs * (i - 1) + c] = (reward(changed) - base) / more
    end
  end
  return values
end

return slopes
