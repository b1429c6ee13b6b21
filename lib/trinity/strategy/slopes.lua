-- Slopes of a reward with respect to the costs of a step, at the metrics of one plan. They are finite differences, so
-- they exist for every reward. The plan stays the same.

local array = require 'trinity.base.array'

local costs = { { 'step_time_s', 1e-6 }, { 'peak_communication_bytes', 1e3 }, { 'peak_memory_bytes', 1e3 } }
local step = 1e-4 -- relative step, added to the absolute step above

--- Returns a double array with the slopes of problem.reward by step time, peak communication and peak memory, three per
--- entry of a list of metrics and their plans.
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
