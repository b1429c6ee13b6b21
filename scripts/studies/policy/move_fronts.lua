-- The trade-off that searches find between two ends of a reward: the front of step time and peak memory over all
-- placements that they simulate while the weights of the two change, as a hypervolume. `trinity study policy front`
-- prints it for families of networks that a ranker was not trained on.

local core = require 'trinity.core'
local methods = require 'trinity.methods'
local problems = require 'trinity.strategy.problem'
local search = require 'trinity.search'
local training = require 'trinity.methods.move_training'
local util = require 'trinity.base.util'

local fronts = {}

local shares_of_memory = { 0, 0.25, 0.5, 0.75, 0.9 } -- of the reward, a search each
local worst_time, worst_memory = 1.3, 1.1            -- over the start's: what has more counts nothing

--- The area between the points { x, y } below 1 that no other point is better than, and (1, 1).
function fronts.area(points)
  table.sort(points, util.by(1, 2))
  local area, low = 0, 1
  for _, point in ipairs(points) do
    if point[1] < 1 and point[2] < low then
      area, low = area + (1 - point[1]) * (low - point[2]), point[2]
    end
  end
  return area
end

-- The reward of a share of memory, which also keeps what it is asked for.
local function watched(start, share, points)
  local linear = training.memory_reward(start, share)
  return function(metrics)
    if metrics.feasible then
      points[#points + 1] = { metrics.step_time_s / (worst_time * start.step_time_s),
        metrics.peak_memory_bytes / (worst_memory * start.peak_memory_bytes) }
    end
    return linear(metrics)
  end
end

-- Searches with every share; their rewards fill the list of points.
local function search_shares(method, case, budget, seed, rank, points)
  local start = case.starts[1].placement
  local metrics = case.problem:evaluate(start)
  for i, share in ipairs(shares_of_memory) do
    local problem = problems.new { graph = case.problem.graph, cluster = case.problem.cluster,
      reward = watched(metrics, share, points) }
    local options = { evaluations = budget.evaluations, seconds = budget.seconds, seed = 100 * seed + i, quiet = true }
    if method == 'annealing' then options.starts = { start } else options.warm_start, options.rank = { start }, rank end
    methods[method](problem, options)
  end
end

--- The hypervolume of a method's front from the first start of a case, a budget { evaluations =, seconds = } a share of
--- memory. All shares are one search of the run: it is what the rewards see that counts, and of a method that is done a
--- resumed run would give the end alone.
function fronts.run(method, case, budget, seed, rank)
  local points = {}
  local found = search.run('front', case.problem, search.options('front', {}, { seed = seed, quiet = true }),
    function(self)
      self:evaluate { case.starts[1].placement }
      search_shares(method, case, budget, seed, rank, points)
    end)
  if found.stopped or core.stop_requested() then util.fail 'interrupted' end
  return fronts.area(points)
end

return fronts
