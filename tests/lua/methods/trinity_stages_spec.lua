-- The stages of methods.trinity: warm start, policy, refinement; checkpoints; the readings of eq. 8.

local graphs = dofile(root .. '/tests/lua/support/graphs.lua')
local kept = dofile(root .. '/tests/lua/support/kept.lua')
local trinity = require 'trinity'
local core = require 'trinity.core'

-- Two branches per block, a given number of blocks: 64 units and fewer are refined by local search, more by annealing.
local function problem_of(blocks, reward, cluster)
  return trinity.problem { graph = graphs.branches(blocks, 16, 32, 32), cluster = trinity.cluster(cluster or 'p100x2'),
    reward = reward }
end

local function with(options)
  return merged({ evaluations = 128, samples = 8, hidden = 16, quiet = true }, options)
end

local function search(problem, options) return trinity.methods.trinity(problem, with(options)) end

local function same_placement(a, b)
  for op = 1, #a.placement do
    if a.placement[op] ~= b.placement[op] then return false end
  end
  return true
end

local function describe_curve(found)
  local lines = {}
  for i, p in ipairs(found.curve) do
    lines[i] = ('%d %.17g %.17g %.17g'):format(p.evaluations, p.mean_reward, p.best_reward, p.best_step_time_s)
  end
  return table.concat(lines, '\n')
end

describe('the stages of the Trinity search', function()
  local problem = problem_of(6)
  it('start from the best of the heuristics', function()
    local warm, tried = search(problem, { policy = false, refine = false }), 0
    for _, name in ipairs(require('trinity.search.warm_start').portfolio) do
      local found = trinity.methods[name](problem, { quiet = true })
      if found then expect(warm.metrics.step_time_s <= found.metrics.step_time_s):truthy() end
      tried = tried + (found and 1 or 0)
    end
    expect(4):below(tried)
    expect(warm.evaluations):below(20)
  end)
  it('evaluate at most half of the budget, and at least one', function()
    local p = trinity.problem { graph = graphs.branches(3, 16, 32, 32), cluster = trinity.cluster 'p100x4' }
    for _, count in ipairs { 12, 16, 20 } do
      local found = trinity.methods.trinity(p, { evaluations = count, policy = false, refine = false, quiet = true })
      expect(found.evaluations):equals(count / 2)
    end
  end)
  it('have their options checked before anything is evaluated', function()
    local priced = 0
    local counting = problem_of(2, function(m)
      priced = priced + 1
      return -m.step_time_s
    end)
    for name, wrong in trinity.system.sorted_pairs { samples = 0, hidden = 0, groups = 4097, epochs = 1e6, learning_rate = -1,
      dropout = 2, depth_waves = 65, preset = 'papper', ratio = 'groups', device = 'tpu', node2vec = { window = 0 } } do
      for _, value in ipairs { wrong, type(wrong) == 'number' and 0 / 0 or true } do
        expect(function() search(counting, { [name] = value }) end):raises("^[^\n]*methods.trinity: .*'?" .. name)
      end
    end
    expect(priced):equals(0)
  end)
  it('refine what the warm start found, within the budget', function()
    for _, blocks in ipairs { 6, 20 } do
      local p = problem_of(blocks)
      local warm = search(p, { policy = false, refine = false, warm_start = { 'contiguous' } })
      local refined = search(p, { policy = false, warm_start = { 'contiguous' }, evaluations = 300 })
      expect(refined.metrics.step_time_s):below(warm.metrics.step_time_s)
      expect(refined.evaluations <= 300):truthy()
    end
  end)
  it('find the optimum where all placements can be tried', function()
    local p = problem_of(1)
    expect(2 ^ p.graph.units):below(2 ^ 18)
    local optimum = trinity.methods.exhaustive(p, { evaluations = 2 ^ 18, quiet = true })
    expect(search(p, { policy = false, evaluations = 2 ^ 18 }).reward):equals(optimum.reward)
  end)
  it('take placements and methods as a start', function()
    local start = problem:placement_by_unit(function(unit) return unit % 2 + 1 end)
    local found = search(problem, { warm_start = { start }, policy = false, refine = false })
    expect(found.reward):equals(problem:score(problem:evaluate(start)))
    found = search(problem, { warm_start = { start, 'single_device' }, policy = false, refine = false })
    expect(found.reward >= trinity.methods.single_device(problem).reward):truthy()
  end)
  it('give the policy its share, and all where nothing is refined', function()
    local function batches(options)
      local count = 0
      local before = 0
      for _, point in ipairs(search(problem, options).curve) do
        if point.evaluations - before == 8 then count = count + 1 end
        before = point.evaluations
      end
      return count
    end
    expect(batches { warm_start = false, refine = false }):equals(16)
    expect(batches { warm_start = false, refine = false, evaluations = 24, policy = 0.5 }):equals(3)
    -- Without a better placement the policy ends after `patience` updates, with 48 evaluations at the latest.
    local found = search(problem, { policy = 0.5, refine = 0.5, patience = 100, warm_start = false })
    expect(found.curve[8].evaluations):equals(64)
    expect(found.evaluations <= 128):truthy()
  end)
  it('are off in every other preset but for the policy', function()
    for _, preset in ipairs { 'paper', 'code', 'scratch' } do
      local found = search(problem, { preset = preset, groups = 8, node2vec = { walks_per_node = 2, epochs = 1 },
        evaluations = 16 })
      expect(#found.curve):equals(2)
      expect(found.curve[1].evaluations):equals(8)
    end
  end)
  it('keep a trained policy in a file, from which another graph starts', function()
    local path = temporary()
    local alone = { warm_start = false, refine = false, evaluations = 16, save = path }
    search(problem, alone)
    local other = problem_of(8)
    local fresh, loaded = { warm_start = false, refine = false, evaluations = 8 }, { warm_start = false, refine = false,
      evaluations = 8, load = path }
    expect(same_placement(search(other, fresh), search(other, loaded))):equals(false)
  end)
  it('are the stages of `best`, without anything learned', function()
    for _, case in ipairs { { 1, {} }, { 6, { seed = 2 } }, { 20, { evaluations = 300, warm_start = { 'metis' } } },
      { 24, { evaluations = 400 } } } do
      local p, texts = problem_of(case[1]), {}
      for i, name in ipairs { 'best', 'trinity' } do
        local options = { quiet = true }
        for key, value in trinity.system.sorted_pairs(case[2]) do options[key] = value end
        if name == 'trinity' then options.policy, options.rank = false, false end
        local found, path = trinity.methods[name](p, options), os.tmpname()
        found:save(path)
        texts[i] = core.read_file(path):gsub('"method": *"%w+"', '') .. describe_curve(found)
      end
      expect(texts[1]):equals(texts[2])
    end
    expect(function() trinity.methods.best(problem, { policy = 0.5 }) end):raises "methods.best: .*'policy'"
    expect(function() trinity.methods.best(problem, { warm_start = false, refine = false }) end):raises(
      "methods.best: option 'refine': warm_start and refine are both off: nothing to do")
  end)
  it('refuse what they cannot do', function()
    local function refused(options, message) expect(function() search(problem, options) end):raises(message) end
    refused({ policy = 2 }, "methods.trinity: option 'policy': expected true, false or a share from 0 to 1, got number 2")
    refused({ policy = 0.7, refine = 0.7 }, 'shares of policy and refine are 1.4 together')
    refused({ warm_start = false, policy = false, refine = false }, 'nothing to do')
    refused({ warm_start = { 'annealing' } }, "option 'warm_start': entry 1: expected a heuristic without a search, got method 'annealing'")
    refused({ warm_start = { 'mtis' } }, "no method 'mtis', did you mean 'metis'")
    refused({ warm_start = { 7 } }, 'entry 1: expected a method or a placement, got number 7')
    refused({ warm_start = 'metis' }, 'expected true, false or a list of methods and placements')
    refused({ patience = 0 }, "option 'patience': expected an integer")
  end)
end)

describe('searches that give up slow steps early', function()
  it('take the same decisions as without', function()
    local function plain(m) return -m.step_time_s * (m.feasible and 1 or 10) end
    for _, method in ipairs { 'annealing', 'local_search', 'best', 'mcmc' } do
      local quick = trinity.methods[method](problem_of(20), { evaluations = 400, quiet = true })
      local slow = trinity.methods[method](problem_of(20, plain), { evaluations = 400, quiet = true })
      expect(same_placement(quick, slow)):truthy()
      expect(quick.evaluations):equals(slow.evaluations)
    end
  end)
  it('cool down by the clock where only seconds are given', function()
    local p = problem_of(20)
    local start = trinity.methods.contiguous(p)
    for _, method in ipairs { 'annealing', 'best', 'trinity' } do
      local found = trinity.methods[method](p, { seconds = 0.3, evaluations = trinity.search.unlimited, quiet = true,
        starts = method == 'annealing' and { start.placement } or nil, policy = method == 'trinity' and false or nil })
      expect(found.metrics.step_time_s):below(start.metrics.step_time_s)
      expect(found.seconds):below(3)
    end
  end)
end)

-- Runs a search that ends with an error after `count` placements were scored, then goes on from its checkpoint.
local function interrupted(blocks, count, options)
  local path = temporary()
  local scored, last = 0, count
  local problem = problem_of(blocks, function(m)
    scored = scored + 1
    if scored > last then error 'the plug was pulled' end
    return -m.step_time_s
  end)
  local function run() return search(problem, options) end
  expect(function() kept.search(path, run) end):raises 'the plug was pulled'
  last = math.huge
  local text = core.read_file(path)
  return kept.search(path, run, true), text, path
end

local function same_bytes(a, b)
  local paths = { temporary(), temporary() }
  a:save(paths[1])
  b:save(paths[2])
  expect(core.read_file(paths[1])):equals(core.read_file(paths[2]))
  expect(describe_curve(a)):equals(describe_curve(b))
end

describe('checkpoints', function()
  local function unbroken(blocks, options) return search(problem_of(blocks, function(m) return -m.step_time_s end), options) end
  it('of the refinement: interrupted and resumed gives the bytes of an unbroken search', function()
    for _, blocks in ipairs { 6, 20 } do
      local found, text = interrupted(blocks, 100, { policy = false })
      expect(text):matches '\\"stage\\":\\"refine\\"'
      same_bytes(found, unbroken(blocks, { policy = false }))
    end
  end)
  it('of the policy: interrupted and resumed gives the bytes of an unbroken search', function()
    local options = { policy = 0.75, refine = 0.25, patience = 100 }
    local found, text = interrupted(6, 70, options)
    expect(text):matches '\\"stage\\":\\"policy\\"'
    same_bytes(found, unbroken(6, { policy = 0.75, refine = 0.25, patience = 100 }))
  end)
  it('do not change what is found', function()
    same_bytes(kept.search(temporary(), function() return unbroken(6, {}) end), unbroken(6, {}))
  end)
  it('can be loaded as strategies', function()
    local _, _, path = interrupted(6, 100, { policy = false })
    local problem = problem_of(6)
    expect(problem:load(path).metrics.feasible):truthy()
  end)
  it('are refused where they do not belong', function()
    local _, text, path = interrupted(6, 100, { policy = false })
    local function refused(blocks, options, message)
      expect(function() kept.search(path, function() return unbroken(blocks, options) end, true) end):raises(message)
    end
    refused(6, { policy = false, seed = 2 }, "expected option 'seed' = 1, as it was written, got 2")
    refused(6, { policy = false, evaluations = 64 }, "expected option 'evaluations' = 128, as it was written, got 64")
    refused(7, { policy = false }, "operator 'a7' of graph 'branches' is missing")
    local function elsewhere() return search(problem_of(6, nil, 'p100x4'), { policy = false }) end
    expect(function() kept.search(path, elsewhere, true) end):raises 'got a checkpoint for another cluster'
    core.write_file(path, (text:gsub('trinity search checkpoint 4', 'something else')))
    refused(6, { policy = false }, 'no checkpoint of a search')
    core.write_file(path, (text:gsub('trinity search checkpoint 4', 'trinity search checkpoint 1')))
    refused(6, { policy = false }, 'expected a checkpoint of version 4, got version 1')
  end)
end)

describe('the readings of eq. 8', function()
  local problem = problem_of(6)
  local m = problem:evaluate(problem:placement_by_unit(function(unit) return unit % 2 + 1 end))
  local c, k = m.peak_communication_bytes / 1e6, m.peak_memory_bytes / 1e9
  local function reward(options)
    options.alpha, options.beta, options.gamma = 0.5, 0.3, 0.2
    options.communication_tolerance_bytes, options.memory_tolerance_bytes = 1e6, 1e9
    return trinity.rewards.mdpe(options)(m)
  end
  local function over(x) return math.max(0, x - 1) end
  it('by the scope of the logarithm', function()
    local time, penalty = 0.5 * m.step_time_s, 0.3 * c + 0.2 * k
    expect(c > 1):truthy()
    expect(reward { mode = 'linear' }):near(-math.log(time + penalty), 1e-12)
    expect(reward { mode = 'linear', scale = 'log_time' }):near(-math.log(time) - penalty, 1e-9)
    expect(reward { mode = 'linear', scale = 'sqrt' }):near(-math.sqrt(time + penalty), 1e-12)
    expect(reward { mode = 'linear', scale = 'linear' }):near(-(time + penalty), 1e-9)
  end)
  it('by the mode of the tolerance', function()
    local time = 0.5 * m.step_time_s
    expect(reward { mode = 'hinge', scale = 'linear', hinge_factor = 4 }):near(
      -(time + 0.3 * 4 * over(c) + 0.2 * 4 * over(k)), 1e-9)
    expect(reward { mode = 'both', scale = 'linear', hinge_factor = 4 }):near(
      -(time + 0.3 * (c + 4 * over(c)) + 0.2 * (k + 4 * over(k))), 1e-9)
  end)
  it('by the signal of what does not fit', function()
    local failing = setmetatable({}, { __index = function(_, key)
      if key == 'feasible' then return false end
      if key == 'excess_memory_bytes' then return 1e9 end
      return m[key]
    end })
    local plain = trinity.rewards.mdpe { scale = 'linear' }
    expect(trinity.rewards.mdpe { failing_signal = 10 }(failing)):equals(-10)
    expect(plain(failing)):near(10 * (1 + 1e9 / 8e9) * plain(m), 1e-9)
    expect(plain(failing)):below(plain(m))
  end)
  it('refuse words that they do not know', function()
    expect(function() trinity.rewards.mdpe { failing_signal = -1 } end):raises 'failing_signal'
  end)
end)
