local core = require 'trinity.core'
local graphs = dofile(root .. '/tests/lua/support/graphs.lua')
local search_curve = require 'trinity.search.curve'
local trinity = require 'trinity'
local warm_start = require 'trinity.search.warm_start'

-- A network small enough to learn on in a second, with the shape of the real ones.
local function small_problem(reward)
  return trinity.problem { graph = graphs.branches(6, 16, 32, 32), cluster = trinity.cluster 'p100x2', reward = reward }
end

describe('methods', function()
  it('may be plain functions of the script', function()
    trinity.methods.register('by_name', function(problem)
      return problem:placement_by_unit(function(unit) return unit % 2 + 1 end)
    end)
    local problem = small_problem()
    local found = trinity.methods.by_name(problem)
    expect(found.method):equals 'by_name'
    expect(tostring(trinity.compare(problem, { 'by_name', 'single_device', found }, { quiet = true }))):matches 'by_name.*single_device.*by_name'
  end)
end)

describe('the curve of a search', function()
end)

describe('determinism', function()
  it('gives the same strategy file from any number of threads', function()
    local files = {}
    for i, threads in ipairs { 1, 2, 3 } do
      files[i] = temporary()
      local status, output = run_trinity(
        ("--threads %d quickstart --steps 2 --seed 7 --save '%s'"):format(threads, files[i]))
      if status ~= 0 then error(output) end
    end
    expect(core.read_file(files[1]) == core.read_file(files[2])):truthy()
    expect(core.read_file(files[1]) == core.read_file(files[3])):truthy()
  end)
end)

describe('trinity learns', function()
  -- Equal evaluations, default settings: the best reward beats random search for each of 5 seeds.
  local function beats_random(graph, cluster)
    local problem = trinity.problem { graph = graph, cluster = trinity.cluster(cluster), reward = trinity.rewards.mdpe() }
    for seed = 1, 5 do
      local budget = { evaluations = 48, seed = seed, quiet = true }
      local learned, drawn = trinity.methods.trinity(problem, budget), trinity.methods.random(problem, budget)
      expect(drawn.reward):below(learned.reward)
    end
  end
  it('more than random search on InceptionV3, 2 devices', function()
    beats_random(trinity.model 'inception_v3', 'p100x2')
  end)
  it_shared('more than random search on a PipeDream profile', function()
    beats_random(trinity.model(shared 'pipedream/resnet50.graph.txt'), 'p100x2')
  end)

end)

describe('a warm start', function()
  it('prices a placement that two entries share once', function()
    local problem, priced = small_problem(), nil
    local all_first = problem:placement()
    local other = problem:placement_by_unit(function(unit) return unit == 1 and 2 or 1 end)
    local search = { options = { evaluations = 100, seconds = math.huge }, problem = problem, evaluations = 0,
      start = core.clock_s(), evaluate = function(_, list) priced = list end }
    warm_start.run(search, trinity.methods, { all_first, other, problem:placement(), 'single_device' })
    expect(#priced):equals(2)
    expect(priced[1]):equals(all_first)
    expect(priced[2]):equals(other)
  end)
  it('leaves out what takes long for a large graph', function()
    local tried = {}
    local methods = { get = function(name)
      tried[#tried + 1] = name
      return function() end
    end }
    warm_start.run({ options = { evaluations = 100, seconds = math.huge }, problem = { graph = { operators = 20001 } },
      evaluations = 0, start = core.clock_s() }, methods, warm_start.portfolio)
    expect(table.concat(tried, ' ')):equals 'single_device metis scotch contiguous'
  end)
end)

describe('the curve of a long search', function()
  it('has each of the first 1000 steps, then those of 0.1 % more evaluations, and the last', function()
    local best = { reward = -1, metrics = { step_time_s = 1 } }
    local search = { step = 0, evaluations = 0, curve = {}, best = best }
    local function steps(count, evaluations)
      for _ = 1, count do
        search.evaluations = search.evaluations + evaluations
        search_curve.note(search, -2)
      end
    end
    steps(1000, 100)
    expect(#search.curve):equals(1000)
    steps(9, 10) -- 100,090 of 100,000
    expect(#search.curve):equals(1000)
    steps(1, 10)
    expect(#search.curve):equals(1001)
    steps(1, 10)
    search_curve.complete(search)
    search_curve.complete(search)
    expect(#search.curve):equals(1002)
    expect(search.curve[1002].evaluations):equals(100110)
    search.best = { reward = -0.5, metrics = { step_time_s = 0.5 } }
    steps(1, 10)
    expect(search.curve[1003].best_reward):equals(-0.5)
    expect(search.sum_of_means):equals(-2 * 1012)
  end)
  it('has the 1000th step even where it takes few evaluations', function()
    local search = { step = 0, evaluations = 1e6, curve = {}, best = { reward = -1, metrics = { step_time_s = 1 } } }
    for _ = 1, 1001 do
      search.evaluations = search.evaluations + 1
      search_curve.note(search, -2)
    end
    expect(#search.curve):equals(1000)
  end)
end)
