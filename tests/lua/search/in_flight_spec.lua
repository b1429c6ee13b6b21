-- Annealing that all threads share in the engine, in searches of seconds (lib/trinity/search/in_flight.lua).

local graphs = dofile(root .. '/tests/lua/support/graphs.lua')
local trinity = require 'trinity'

-- More units than local search takes.
local function problem_of(reward)
  return trinity.problem { graph = graphs.branches(12, 8, 8, 8), cluster = trinity.cluster 'p100x4', reward = reward }
end

describe('threads', function()
  it('share what a search of seconds refines, with a ranker and without', function()
    local problem = problem_of()
    local start_s = problem:evaluate(problem:placement()).step_time_s
    for _, rank in ipairs { false, true } do
      local found = trinity.methods.annealing(problem, { seconds = 0.5, rank = rank, quiet = true })
      expect(found.metrics.step_time_s):below(start_s)
      expect(problem:evaluate(found.placement).step_time_s):equals(found.metrics.step_time_s)
      if rank then
        expect(found.ranking.trials > 0 and found.ranking.improving > 0):truthy()
        expect(found.ranking.trials + found.ranking.plain_trials <= found.evaluations):truthy()
      end
    end
    local counted = 0
    local by_function = function(candidates)
      counted = counted + 1
      local scores = {}
      for i = 1, candidates.count do scores[i] = -i end
      return scores
    end
    expect(trinity.methods.annealing(problem, { seconds = 0.3, rank = by_function, quiet = true }).metrics.step_time_s)
      :below(start_s)
    expect(counted > 0):truthy()
  end)

  it('leave a reward of a script to the search', function()
    local calls = 0
    local problem = problem_of(function(metrics)
      calls = calls + 1
      return -metrics.step_time_s
    end)
    local found = trinity.methods.best(problem, { seconds = 1, quiet = true })
    expect(calls >= found.evaluations / 2):truthy() -- replays are not scored
  end)
end)
