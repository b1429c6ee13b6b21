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
  it('of the script take the place of its own, never of those that are built in', function()
    local function f(problem) return problem:placement() end
    trinity.methods.register('by_name', f)
    trinity.methods.register('by_name', f)
    expect(trinity.methods.by_name(small_problem()).placement[1]):equals(1)
    for name, register in trinity.system.sorted_pairs {
      heft = function(name) trinity.methods.register(name, f) end,
      piper = function(name) trinity.pipeline.register(name, { run = f }) end,
      recompute = function(name) trinity.plan.move(name, f) end,
      tensor = function(name) trinity.plan.dimension(name, { values = {}, apply = f }) end,
    } do
      expect(function() register(name) end):raises(("'%s' is built in"):format(name))
      expect(function() register 'two words' end):raises 'up to 64 letters, digits and _'
    end
  end)
  it('may give a placement as a list of devices, which is a placement everywhere', function()
    local problem = small_problem()
    local placement = problem:placement_by_unit(function(unit) return unit % 2 + 1 end)
    local list = placement:totable()
    trinity.methods.register('by_list', function() return list end)
    local step_time_s = problem:evaluate(placement).step_time_s
    local seen = { trinity.methods.by_list(problem).metrics, problem:evaluate(list), problem:evaluate { placement = list },
      problem:evaluate_batch({ placement, list })[2], problem:timeline(list).metrics }
    trinity.search.run('lists', problem, trinity.search.options('lists', {}, { evaluations = 1, quiet = true }),
      function(search) seen[#seen + 1] = select(2, search:evaluate { list })[1] end)
    for _, metrics in ipairs(seen) do expect(metrics.step_time_s):equals(step_time_s) end
    expect(#seen):equals(6)
    list[2] = 2.5
    expect(function() problem:evaluate(list) end):raises "argument 1 %('plan'%): operator 2: expected a device"
    list[2], list[#list] = 1, nil
    expect(function() problem:evaluate_batch { placement, list } end)
      :raises(("entry 2: expected a list of %d devices, one per operator, got %d entries"):format(#placement, #list))
  end)
end)

describe('the frame of searches', function()
  it('takes every plan that problem:evaluate takes, and keeps the best as it was given', function()
    local problem = trinity.problem { graph = trinity.model('mlp', { batch_size = 8, training = true }), cluster = trinity.cluster 'p100x4',
      reward = function(m) return m.samples_per_s end }
    local plans = { problem:placement(), { placement = problem:placement(), micro_batches = 2 }, { mesh = { data = 4 }, micro_batches = 2 },
      { mesh = { data = 2, pipeline = 2 }, micro_batches = 4, schedule = '1f1b' } }
    for last = 1, #plans do
      local function search(fails)
        return trinity.search.run('mine', problem, trinity.search.options('mine', {}, { quiet = true }), function(self)
          for i = last, 1, -1 do self:evaluate { plans[i] } end
          if fails then error 'end' end
        end)
      end
      local best = problem:strategy(plans[1])
      for i = 2, last do
        local other = problem:strategy(plans[i])
        if problem.better(other, best) then best = other end
      end
      expect(search() == best):equals(true)
      expect(pcall(search, true)):equals(false)
      expect(trinity.search.rescued[#trinity.search.rescued] == best):equals(true)
    end
    expect(function() trinity.search.run('mine', problem, trinity.search.options('mine', {}, { quiet = true }), function(self)
      self:evaluate { {} }
    end) end):raises "search:evaluate: argument 1 %('plans'%): entry 1: expected a placement .*, a strategy, { placement = "
  end)
end)

describe('trinity learns', function()
  -- Equal evaluations, default settings: the best reward beats random search for each of 5 seeds.
  it('more than random search on InceptionV3, 2 devices', function()
    local problem = trinity.problem { graph = trinity.model 'inception_v3', cluster = trinity.cluster 'p100x2',
      reward = trinity.rewards.mdpe() }
    for seed = 1, 5 do
      local budget = { evaluations = 48, seed = seed, quiet = true }
      local learned, drawn = trinity.methods.trinity(problem, budget), trinity.methods.random(problem, budget)
      expect(drawn.reward):below(learned.reward)
    end
  end)
end)

describe('a warm start', function()
  it('prices a placement that two entries share once', function()
    local problem, priced = small_problem(), nil
    local all_first = problem:placement()
    local other = problem:placement_by_unit(function(unit) return unit == 1 and 2 or 1 end)
    local search = { method = 'annealing', options = { evaluations = 100, seconds = math.huge }, problem = problem, evaluations = 0,
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
  it('has each of the first 1000 steps, then one step per 0.1 % more evaluations, and the last', function()
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
