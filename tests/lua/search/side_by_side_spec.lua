-- Annealings that run in the engine, one a thread, and the searches of seconds that use them.

local core = require 'trinity.core'
local side_by_side = require 'trinity.search.side_by_side'
local graphs = dofile(root .. '/tests/lua/support/graphs.lua')
local trinity = require 'trinity'

-- More units than local search takes.
local function problem_of(reward)
  return trinity.problem { graph = graphs.branches(12, 8, 8, 8), cluster = trinity.cluster 'p100x4', reward = reward }
end

local function searcher_of(problem, seed)
  return core.searcher(problem.handle, 'annealing', { seed = seed, evaluations = 2000, starts = { problem:placement() } })
end

-- The result of the same searcher through Lua.
local function told(problem, seed, evaluations)
  local array = require 'trinity.base.array'
  local searcher, room = searcher_of(problem, seed), problem:placements(256)
  local values, excess = array.double(256), array.double(256)
  while searcher:evaluations() < evaluations do
    local count, limit = searcher:ask(room, math.min(256, evaluations - searcher:evaluations()))
    local batch = {}
    for i = 1, count do batch[i] = room[i] end
    local metrics = problem:evaluate_batch(batch, limit < math.huge and { reject_above_s = limit + 1e-9 } or nil)
    for i = 1, count do values[i], excess[i] = metrics[i].step_time_s, metrics[i].excess_memory_bytes end
    searcher:tell(values, excess)
  end
  local placement = problem:placement()
  return searcher:best(placement), placement
end

describe('searchers side by side', function()
  it('find what each finds alone', function()
    local problem, searchers = problem_of(), {}
    expect(problem.graph.units > 64):truthy()
    for seed = 1, 3 do searchers[seed] = searcher_of(problem, seed) end
    core.run_searchers(searchers, 500)
    for seed = 1, 3 do
      local placement = problem:placement()
      local value = searchers[seed]:best(placement)
      local alone, its_placement = told(problem, seed, 500)
      expect(value):equals(alone)
      for op = 1, #placement do expect(placement[op]):equals(its_placement[op]) end
      expect(problem:evaluate(placement).step_time_s):equals(value)
      expect(searchers[seed]:evaluations()):equals(500)
    end
    expect(function() core.run_searchers(searchers, 0) end):raises 'evaluations'
  end)

  it('are for searches of many seconds by step times alone', function()
    local problem = problem_of()
    local function team_of(seconds, changed)
      local options = merged({ evaluations = trinity.search.unlimited, seconds = seconds, seed = 1 }, changed or {})
      return side_by_side.new({ problem = problem, options = options, start = core.clock_s(), evaluations = 0 },
        problem:placement())
    end
    local team = team_of(1e6)
    if core.threads() == 1 then return expect(team):equals(nil) end
    local room = problem:placements(256)
    local count, limit = team:ask(room, 256)
    expect(limit):equals(math.huge)
    expect(count >= 1 and count <= core.threads()):truthy()
    local before = team:evaluations()
    expect(before >= 2 * 512 * core.threads()):truthy()
    local first_s = problem:evaluate(room[1]).step_time_s
    expect(first_s):below(problem:evaluate(problem:placement()).step_time_s)
    team:progress(1)
    team:ask(room, 256)
    expect(before):below(team:evaluations())
    expect(problem:evaluate(room[1]).step_time_s <= first_s):truthy()
    team:close()
    expect(team_of(0.01)):equals(nil)
    expect(team_of(1e6, { evaluations = 2000 })):equals(nil)
  end)

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
