-- How much of what a reward answers to is memory: of its falls when the step time, the peak communication and the peak
-- memory of a plan rise by the same small share, one after the other, the part that is memory's. So any reward of these
-- has one, whatever its form; one that reads the memory of single devices instead has none.

local array = require 'trinity.base.array'
local rewards = require 'trinity.strategy.rewards'

local costs = { 'step_time_s', 'peak_communication_bytes', 'peak_memory_bytes' }
local rise = 1e-3

--- The share around a placement, 0 to 1. score: nil for the problem's reward, or another of metrics. The placement is
--- simulated aside: it is one that a search prices itself, or has priced.
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
