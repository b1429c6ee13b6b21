-- Cuts of layers over unequal nodes, and TAPP against all cuts of small chains.

local baselines = require 'studies.papers.tapp_baselines'
local layer_chain = require 'trinity.search.layer_chain'
local stage_moves = require 'trinity.search.stage_moves'
local trinity = require 'trinity'
local pipelines = dofile(root .. '/tests/lua/support/pipelines.lua')

local cluster, chain_graph, uneven, pipeline = pipelines.cluster, pipelines.chain, pipelines.uneven, pipelines.problem

-- Calls use(device_of) for all cuts of `layers` layers into consecutive parts on different nodes.
local function each_cut(layers, nodes, use, device_of, used)
  device_of, used = device_of or {}, used or {}
  if #device_of == layers then return use(device_of) end
  for d = 1, nodes do
    if not used[d] then
      used[d] = true
      local from = #device_of
      for last = from + 1, layers do
        device_of[last] = d
        each_cut(layers, nodes, use, device_of, used)
      end
      for l = layers, from + 1, -1 do device_of[l] = nil end
      used[d] = nil
    end
  end
end

-- The best step of all cuts, s.
local function best_step_s(problem)
  local chain, batch, best = layer_chain.of(problem), {}, math.huge
  each_cut(chain.layers, #problem.cluster.devices, function(device_of)
    batch[#batch + 1] = layer_chain.placement(problem, chain, device_of)
  end)
  for _, metrics in ipairs(problem:evaluate_batch(batch)) do
    if metrics.feasible then best = math.min(best, metrics.step_time_s) end
  end
  return best
end

describe('the cut of the fastest step', function()
  it('is the best of all cuts by the simulator, and none is found below it', function()
    local problem = pipeline(uneven(9), cluster { 1, 2, 0.5, 1.5 })
    local chain, best = layer_chain.of(problem), best_step_s(problem)
    local found = baselines.fastest_cut(problem, chain, { micro_batches = 8, below_s = 1.1 * best })
    expect(found.step_time_s):equals(best)
    expect(problem:evaluate(layer_chain.placement(problem, chain, found.device_of)).step_time_s):equals(best)
    expect(baselines.fastest_cut(problem, chain, { micro_batches = 8, below_s = best }).device_of):equals(nil)
  end)
end)

describe('a move', function()
  it('leads from a pipeline to another one, and every pipeline can be reached', function()
    local at, stream = stage_moves.of(layer_chain.of(pipeline(uneven(5), cluster { 1, 2, 0.5 })), 3), trinity.random(1, 'moves')
    local all, seen, count = {}, {}, 0
    each_cut(5, 3, function(device_of) all[table.concat(device_of, ' ')] = true end)
    local scheme = { 1, 1, 1, 1, 1 }
    for _ = 1, 3000 do
      scheme = stage_moves.neighbour(at, scheme, stream)
      local text = table.concat(scheme, ' ')
      expect(all[text]):equals(true)
      if not seen[text] then seen[text], count = true, count + 1 end
    end
    expect(count):equals(3 + 6 * 4 + 6 * 6)
    expect(table.concat(stage_moves.neighbour(stage_moves.of({ layers = 1, kinds = {}, forward_bytes = { 0 },
      backward_bytes = { 0 } }, 1), { 1 }, stream), ' ')):equals '1'
  end)
  it('to something worse is accepted at first only, and by 3 %', function()
    expect(stage_moves.accepts(0.9, 1, 1)):equals(true)
    expect(stage_moves.accepts(1, 1, 1)):equals(false)
    expect(stage_moves.accepts(1.029, 1, 0)):equals(true)
    expect(stage_moves.accepts(1.031, 1, 0)):equals(false)
    expect(stage_moves.accepts(1.01, 1, 0.5)):equals(false)
    expect(stage_moves.accepts(-0.99, -1, 0)):equals(true)
  end)
end)

describe('tapp', function()
  it('comes within 2 % of the best of all cuts, for 2 seeds', function()
    for _, case in ipairs { { 16, { 1, 2 }, 160 }, { 12, { 1, 0.5, 2 }, 640 }, { 9, { 1, 2, 0.5, 1.5 }, 800 } } do
      local problem = pipeline(uneven(case[1]), cluster(case[2]))
      local best = best_step_s(problem)
      for seed = 1, 2 do -- the policy alone, and with moves in half of the budget
        local alone = trinity.methods.tapp(problem, { seed = seed, evaluations = case[3], refine = 0, quiet = true })
        local both = trinity.methods.tapp(problem, { seed = seed, evaluations = case[3] / 2, quiet = true })
        expect(alone.metrics.step_time_s):below(1.02 * best)
        expect(both.metrics.step_time_s):below(1.02 * best)
      end
    end
  end)
  it('learns: its last schemes are better than its first', function()
    local problem = pipeline(uneven(24), cluster { 1, 0.5, 2, 1 })
    local first, last = 0, 0
    for seed = 1, 3 do
      local curve = trinity.methods.tapp(problem, { evaluations = 640, refine = 0, seed = seed, quiet = true }).curve
      for i = 1, 10 do first, last = first + curve[i].mean_reward, last + curve[#curve + 1 - i].mean_reward end
    end
    expect(last / first):below(0.9) -- rewards are negative
  end)
  it('accepts moves by the share of its evaluations that is used, where time has no limit', function()
    local shares, accepts = {}, stage_moves.accepts
    stage_moves.accepts = function(cost, present, share)
      shares[#shares + 1] = share
      return accepts(cost, present, share)
    end
    local ok, message = pcall(trinity.methods.tapp, pipeline(uneven(6), cluster { 1, 2, 0.5 }),
      { evaluations = 120, refine = 0.5, quiet = true })
    stage_moves.accepts = accepts
    expect(ok or message):equals(true)
    expect(shares[1]):below(0.2)
    for i = 2, #shares do expect(shares[i - 1] < shares[i]):truthy() end
    expect(shares[#shares]):equals(1)
  end)
  it('tries the same schemes for the same seed, in more groups than nodes', function()
    local problem = pipeline(uneven(6), cluster { 1, 2, 0.5 })
    local options = { evaluations = 70, quiet = true, groups = 4 }
    local a, b = trinity.methods.tapp(problem, options), trinity.methods.tapp(problem, options)
    expect(a.evaluations <= 70 and a.evaluations > 60):truthy()
    for i = 1, #a.curve do expect(a.curve[i].mean_reward):equals(b.curve[i].mean_reward) end
    expect(a.metrics.feasible):equals(true)
  end)
  it('gives pipelines of consecutive layers, a node each', function()
    local problem = pipeline(uneven(7), cluster { 1, 2, 0.5 })
    local chain = layer_chain.of(problem)
    local seen
    local judged = trinity.problem { graph = problem.graph, cluster = problem.cluster, schedule = '1f1b', micro_batches = 4,
      reward = function(m) seen = (seen or 0) + (m.feasible and 0 or 1) return -m.step_time_s end }
    local found = trinity.methods.tapp(judged, { evaluations = 64, quiet = true, published_reward = false })
    expect(seen):equals(0)
    local left, last = {}, nil
    for op = 1, #chain.layer_of do
      local device = found.placement[op]
      if problem.graph:operator(op).phase == 'forward' then
        expect(left[device]):equals(nil)
        if last and last ~= device then left[last] = true end
        last = device
      end
    end
  end)
  it('keeps to the memory of every node', function()
    local graph = chain_graph { { 1, 1e3 }, { 1, 1e3 }, { 1, 1e3 }, { 1, 1e3 } }
    local problem = pipeline(graph, cluster({ 1, 100 }, 6.5e6), '1f1b', 2)
    local found = trinity.methods.tapp(problem, { evaluations = 60, quiet = true })
    expect(found.metrics.feasible):equals(true)
  end)
  it('takes the smallest graph', function()
    local builder = trinity.graph.new { name = 'one' }
    builder:add_operator { name = 'a', time_s = 1e-3 }
    local one = trinity.problem { graph = builder:build(), cluster = trinity.cluster 'p100x2' }
    local function run(options)
      options.quiet, options.evaluations = true, 20
      return trinity.methods.tapp(one, options)
    end
    expect(run({}).metrics.step_time_s):near(1e-3, 1e-9)
    for _, refine in ipairs { 0, 0.3, 1 } do expect(run({ refine = refine }).evaluations):equals(20) end
    expect(trinity.methods.info('tapp').source):equals 'Appl. Sci. 2021, 11(11), 4785'
  end)
  it('keeps its policy without learning, and samples the same first schemes as with it', function()
    local problem = pipeline(uneven(12), cluster { 1, 2, 0.5 })
    local function run(options)
      return trinity.methods.tapp(problem, merged({ evaluations = 48, quiet = true }, options))
    end
    local frozen, trained = run { refine = 0, learn = false }, run { refine = 0 }
    expect(frozen.updates):equals(0)
    expect(frozen:found_by()):equals 'tapp, untrained'
    expect(trained.updates):equals(6)
    expect(frozen.curve[1].mean_reward):equals(trained.curve[1].mean_reward)
    expect(frozen.curve[6].mean_reward ~= trained.curve[6].mean_reward):truthy()
    local moves = run { refine = 1, learn = false }
    expect(moves.updates):equals(0)
    expect(moves.evaluations):equals(48)
    expect(moves:found_by()):equals 'untrained policy + moves'
    expect(run({}).updates):equals(3)
  end)
end)
