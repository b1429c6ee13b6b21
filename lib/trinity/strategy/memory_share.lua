-- The memory weight of a reward, 0 to 1. Step time, peak communication and peak memory of a plan are each raised by the
-- same small fraction; the memory weight is the reward's fall for memory divided by the sum of the three falls. It
-- exists for every reward of these three metrics. A reward that only reads the memory of single devices has weight 0.

local array = require 'trinity.base.array'
local rewards = require 'trinity.strategy.rewards'

local costs = { 'step_time_s', 'peak_communication_bytes', 'peak_memory_bytes' }
local rise = 1e-3

--- Returns the memory weight around a placement. score: another reward of metrics (nil: the problem's reward). The
--- simulation does not count as an evaluation of a search.
return function(problem, placement, score)
  if not score and problem.reward == rewards.step_time() then return 0 end
  score = score or function(metrics) return problem:score(metrics, placement, true) end
  local metrics, sum, of_memory = problem:evaluate(placement), 0, 0
  local base = score(metrics)
  for _, cost in ipairs(costs) do
    of_memory = math.max(0, base - score(array.changed_metrics(metrics, cost, metrics[cost] * (1 + rise))))
    sum = sum + of_memory
  end
  return sum > 0 and of_memory / sum or 0
end
