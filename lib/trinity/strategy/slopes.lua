-- How a reward changes with what a step costs, around the metrics of one plan: by differences, so that any reward has
-- slopes. The plan itself stays.

local array = require 'trinity.base.array'

local costs = { { 'step_time_s', 1e-6 }, { 'peak_communication_bytes', 1e3 }, { 'peak_memory_bytes', 1e3 } }
local step = 1e-4 -- of the cost, added to the smallest step above

--- The slopes of problem.reward by step time, peak communication and peak memory, one after the other for every entry
--- of a list of metrics and their plans: a double array.
return function(problem, list, plans)
  local values = array.double(#costs * #list)
  for i, metrics in ipairs(list) do
    local base = problem:score(metrics, plans[i], true)
    for c, cost in ipairs(costs) do
      local more = metrics[cost[1]] * step + cost[2]
      local changed = array.changed_metrics(metrics, cost[1], metrics[cost[1]] + more)
      values[#costs * (i - 1) + c] = (problem:score(changed, plans[i], true) - base) / more
    end
  end
  return values
end
