local core = require 'trinity.core'
local graphs = dofile(root .. '/tests/lua/support/graphs.lua')
local search_curve = require 'trinity.search.curve'
local trinity = require 'trinity'
local warm_start = require 'trinity.search.warm_start'

-- A network small enough to learn on in a second, with the shape of the real ones.
local function small_problem(reward)
  return trinity.problem { graph = graphs.branches(6, 16, 32, 32), cluster = trinity.cluster 'p100x2', reward = reward }
end

local quick = { evaluations = 96, hidden = 32, quiet = true }
local function with(options) return merged(quick, options) end

describe('a strategy', function()
  it('saves, loads and simulates back to the same numbers', function()
    local problem = small_problem(trinity.rewards.mdpe())
    local found = trinity.methods.random(problem, { evaluations = 50, quiet = true })
    local path = temporary()
    found:save(path)
    local again = problem:load(path)
    for _, name in ipairs { 'step_time_s', 'peak_memory_bytes', 'peak_communication_bytes', 'feasible' } do
      expect(again.metrics[name]):equals(found.metrics[name])
    end
    expect(again.reward):equals(found.reward)
    expect(tonumber(again.saved.step_time_s)):equals(found.metrics.step_time_s)
    expect(again.same_graph and again.same_cluster):truthy()
  end)
  it('says which operator or device a broken file means', function()
    local problem = small_problem()
    local path = temporary()
    local function broken(from, to, pattern)
      problem:strategy(problem:placement()):save(path)
      local text = core.read_file(path)
      expect(text:find(from, 1, true)):truthy()
      core.write_file(path, (text:gsub(from:gsub('%p', '%%%0'), to, 1)))
      expect(function() problem:load(path) end):raises(pattern)
    end
    broken('"a1": "gpu0"', '"a1": "gpu7"', "placement of operator 'a1': no device 'gpu7' in cluster 'p100x2', did you mean 'gpu0'")
    broken('"a1": "gpu0",', '', "placement: operator 'a1' of graph 'branches' is missing")
    broken('"a1":', '"aa1":', "graph 'branches' has no operator 'aa1', did you mean 'a1'")
    broken('trinity-strategy', 'x', 'expected format')
    broken('{', '[', 'not valid JSON near byte')
    broken('"a1": "gpu0"', '"a1": "gpu1"', 'are colocated but placed')
    expect(function() problem:load '/nowhere/file.json' end):raises '/nowhere/file.json: cannot read'
  end)
end)

describe('methods', function()
  it('give the same result again, and another one from another seed', function()
    local problem = small_problem(trinity.rewards.mdpe())
    for _, name in ipairs { 'random', 'trinity' } do
      local options = name == 'trinity' and with {} or { evaluations = 96, quiet = true }
      local a, b = trinity.methods[name](problem, options), trinity.methods[name](problem, options)
      expect(a.reward):equals(b.reward)
      expect(a.curve[6 > #a.curve and #a.curve or 6].mean_reward):equals(
        b.curve[6 > #b.curve and #b.curve or 6].mean_reward)
      options.seed = 2
      expect(trinity.methods[name](problem, options).curve[1].mean_reward == a.curve[1].mean_reward):equals(false)
    end
  end)
  it('keep to their budget of evaluations', function()
    local problem = small_problem()
    expect(trinity.methods.random(problem, { evaluations = 70, batch = 32, quiet = true }).evaluations):equals(70)
    expect(trinity.methods.trinity(problem, with { evaluations = 48 }).evaluations):equals(48)
    expect(trinity.methods.round_robin(problem, { quiet = true }).evaluations):equals(1)
  end)
  it('stop after a number of seconds', function()
    local found = trinity.methods.random(small_problem(), { evaluations = 1e9, seconds = 0.2, quiet = true })
    expect(found.seconds):below(2)
    expect(0.2):below(found.seconds + 0.01)
    expect(found.evaluations):below(1e9)
  end)
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
    for name, register in trinity.sorted_pairs {
      heft = function(name) trinity.methods.register(name, f) end,
      gpipe = function(name) trinity.methods.register(name, f) end, -- an earlier name of contiguous
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
  it('run with the settings of the paper', function()
    local found = trinity.methods.trinity(small_problem(trinity.rewards.mdpe()),
      { preset = 'paper', evaluations = 40, hidden = 16, quiet = true })
    expect(found.evaluations):equals(40)
    expect(#found.curve):equals(2) -- batches of 20 from the policy alone, nothing before and after
    expect(found.curve[1].evaluations):equals(20)
  end)
end)

describe('the curve of a search', function()
  it('has its first thousand steps, then one per thousandth more or another best, and the last', function()
    local problem = small_problem()
    local steps, bests = 0, 0
    local found = trinity.search.run('long', problem, trinity.search.options('long', {}, { evaluations = 5001, quiet = true }),
      function(self)
        local best
        while self:more() do
          self:evaluate { problem:placement_by_unit(function(unit) return (unit * steps) % 2 + 1 end) }
          steps = steps + 1
          if steps > 1000 and self.best.reward ~= best then bests = bests + 1 end
          best = self.best.reward
        end
      end)
    expect(steps):equals(5001)
    for i = 1, 1000 do expect(found.curve[i].evaluations):equals(i) end
    expect(#found.curve > 2000 and #found.curve < 2700 + bests):equals(true)
    for i = 1002, #found.curve - 1 do
      local before, now = found.curve[i - 1], found.curve[i]
      expect(now.evaluations >= 1.001 * before.evaluations or now.best_reward ~= before.best_reward):equals(true)
    end
    expect(found.curve[#found.curve].evaluations):equals(5001)
    expect(found.curve[#found.curve].best_reward):equals(found.reward)
  end)
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
  it('more than random search on InceptionV3, 4 devices', function()
    beats_random(trinity.model 'inception_v3', 'p100x4')
  end)
  it_shared('more than random search on a PipeDream profile', function()
    beats_random(trinity.model(shared 'pipedream/resnet50.graph.txt'), 'p100x2')
  end)

  -- Learning itself: how the mean reward of the samples changes, the sign of the reward turned or not.
  local function change(sign, options)
    local reward = trinity.rewards.mdpe()
    local problem = small_problem(function(m) return sign * reward(m) end)
    options.warm_start, options.refine = false, false
    local curve = trinity.methods.trinity(problem, with(options)).curve
    local function mean(first, last)
      local sum = 0
      for i = first, last do sum = sum + sign * curve[i].mean_reward end
      return sum / (last - first + 1)
    end
    return mean(#curve - 4, #curve) - mean(1, 2)
  end
  it('to raise the mean reward of its samples, from a start that knows nothing', function()
    expect(0.2):below(change(1,
      { evaluations = 480, contiguity = 0, switch_probability = 0, learning_rate = 5e-3 }))
  end)
  it('from placements that fit, of which none is left out for failing', function()
    local function curve(steps)
      local found = trinity.methods.trinity(small_problem(trinity.rewards.mdpe()), with { warm_start = false, refine = false,
        exclude_failing_after = steps })
      expect(found.metrics.feasible):equals(true)
      return found.curve[#found.curve].mean_reward
    end
    expect(curve(0)):equals(curve(-1))
  end)
  it('and gets worse when trained against the negated reward', function()
    expect(change(-1, { evaluations = 480, learning_rate = 5e-3 })):below(-0.2)
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
