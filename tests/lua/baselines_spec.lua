-- Baselines written in Lua give what the engine's own give (lib/trinity/methods/in_lua.lua).

local core = require 'trinity.core'
local trinity = require 'trinity'
local baselines = require 'trinity.methods.in_lua'

--- A random graph: every operator reads up to three earlier ones (a chain: the last one). Sizes and times are drawn;
--- some operators cost nothing, and with `joined` some share a unit with their neighbour.
local function drawn_graph(seed, operators, kind)
  local random, builder = trinity.random(seed, 'baselines spec'), trinity.graph.new { name = 'drawn' }
  for i = 1, operators do
    local free = i == 1 or random:uniform() < 0.1
    builder:add_operator { name = 'op' .. i, time_s = free and 0 or random:integer(5000) * 1e-6,
      memory_bytes = random:integer(100) * 1e6, workspace_bytes = random:integer(50) * 1e6,
      colocate_with = kind == 'joined' and i > 1 and random:uniform() < 0.3 and 'op' .. i - 1 or nil }
    for _ = 1, kind == 'chain' and math.min(1, i - 1) or math.min(random:integer(3), i - 1) do
      local from = kind == 'chain' and i - 1 or random:integer(i - 1)
      builder:add_edge('op' .. from, 'op' .. i, random:integer(20) * 1e6)
    end
  end
  return builder:build()
end

--- Two kinds of cards behind wires that differ.
local function mixed_cluster()
  return trinity.cluster { name = 'mixed',
    devices = { { name = 'a', type = 'p100' }, { name = 'b', type = 'v100' }, { name = 'c', type = 'p100', speed = 0.5 } },
    links = { { from = 'a', to = 'b', bandwidth_bytes_per_s = 10e9, latency_s = 5e-6 },
      { from = 'b', to = 'c', bandwidth_bytes_per_s = 3e9, latency_s = 20e-6 } } }
end

--- How many devices the engine's placement uses; refuses one in Lua that differs.
local function same(problem, name)
  local engine = problem:placement()
  assert(core.construct(problem.handle, name, {}, engine))
  local lua, used, count = baselines[name](problem), {}, 0
  for i = 1, #engine do
    if lua[i] ~= engine[i] then error(('%s: operator %d is on %d, not on %d'):format(name, i, lua[i], engine[i]), 0) end
    if not used[engine[i]] then used[engine[i]], count = true, count + 1 end
  end
  return count
end

describe('placements built in Lua', function()
  for _, name in ipairs { 'm_topo', 'heft' } do
    for _, kind in ipairs { 'chain', 'dag', 'joined' } do
      it(('%s places a random %s as the engine does'):format(name, kind), function()
        local most = 0
        for seed = 1, 12 do
          local graph = drawn_graph(seed, 5 + 6 * seed, kind)
          for _, cluster in ipairs { trinity.cluster 'p100x2', trinity.cluster 'p100x4', mixed_cluster() } do
            most = math.max(most, same(trinity.problem { graph = graph, cluster = cluster }, name))
          end
        end
        expect(most > 1 or name == 'heft' and kind == 'chain'):truthy() -- HEFT leaves a chain on one device
      end)
    end
    it(name .. ' places a training graph with colocation as the engine does', function()
      for _, model in ipairs { 'vgg16', 'inception_v3' } do
        local graph = trinity.model(model, { batch_size = 4 })
        for _, cluster in ipairs { trinity.cluster 'p100x4', mixed_cluster() } do
          expect(same(trinity.problem { graph = graph, cluster = cluster }, name) > 1 or name == 'heft'):truthy()
        end
      end
    end)
    it(name .. ' places the published profiles as the engine does', function()
      local most = 0
      for _, profile in ipairs { 'alexnet', 'gnmt', 'inception_v3', 'densenet121' } do
        local forward = trinity.model(shared(('pipedream/%s.graph.txt'):format(profile)), { training = false })
        for _, cluster in ipairs { 'p100x2', 'p100x4' } do
          most = math.max(most, same(trinity.problem { graph = forward:fold_backward(), cluster = trinity.cluster(cluster) }, name))
        end
      end
      expect(1):below(most)
    end)
  end
  it('are methods like others', function()
    local problem = trinity.problem { graph = drawn_graph(1, 30, 'dag'), cluster = trinity.cluster 'p100x2' }
    for _, name in ipairs { 'lua_m_topo', 'lua_heft' } do
      expect(trinity.methods[name](problem).metrics.step_time_s):equals(
        trinity.methods.get(name:sub(5))(problem).metrics.step_time_s)
    end
  end)
end)

describe('the Markov chain in Lua', function()
  -- The best reward after every step: what the engine gives up early has no reward of its own.
  local function bests(search, problem, options)
    local list = {}
    for i, point in ipairs(search(problem, options).curve) do list[i] = point.best_reward end
    return list
  end
  it('takes the same steps as the engine does', function()
    for seed = 1, 4 do
      local graph = drawn_graph(seed, 40, 'joined')
      for _, cluster in ipairs { trinity.cluster 'p100x2', mixed_cluster() } do
        local problem = trinity.problem { graph = graph, cluster = cluster }
        local options = { seed = seed, evaluations = 400, quiet = true }
        local engine = bests(trinity.methods.mcmc, problem, options)
        local lua = bests(trinity.methods.lua_mcmc, problem, options)
        expect(#lua):equals(#engine)
        for i = 1, #lua do expect(lua[i]):equals(engine[i]) end
      end
    end
  end)
  it('accepts by alpha: without temperature it only descends', function()
    local problem = trinity.problem { graph = drawn_graph(9, 20, 'dag'), cluster = trinity.cluster 'p100x2' }
    local options = { evaluations = 200, alpha_per_ms = 1e12, quiet = true }
    local engine, lua = bests(trinity.methods.mcmc, problem, options), bests(trinity.methods.lua_mcmc, problem, options)
    for i = 1, #lua do expect(lua[i]):equals(engine[i]) end
    options.alpha_per_ms = 1e-9 -- accepts everything: another chain
    local different = false
    for i, value in ipairs(bests(trinity.methods.lua_mcmc, problem, options)) do different = different or value ~= lua[i] end
    expect(different):truthy()
  end)
  it('counts memory beyond a card as time', function()
    local builder = trinity.graph.new { name = 'large' }
    for i = 1, 8 do
      builder:add_operator { name = 'op' .. i, time_s = 1e-3, memory_bytes = 4 * 2 ^ 30 }
      if i > 1 then builder:add_edge('op' .. i - 1, 'op' .. i, 1e6) end
    end
    local problem = trinity.problem { graph = builder:build(), cluster = trinity.cluster 'p100x4' }
    local engine = trinity.methods.mcmc(problem, { evaluations = 300, quiet = true })
    local lua = trinity.methods.lua_mcmc(problem, { evaluations = 300, quiet = true })
    expect(problem:evaluate(problem:placement()).feasible):equals(false)
    expect(lua.metrics.feasible):equals(true)
    expect(lua.reward):equals(engine.reward)
    for i = 1, #lua.placement do expect(lua.placement[i]):equals(engine.placement[i]) end
  end)
  it('ends with its budget, and on one device', function()
    local problem = trinity.problem { graph = drawn_graph(3, 10, 'chain'), cluster = trinity.cluster 'p100x1' }
    expect(trinity.methods.lua_mcmc(problem, { evaluations = 5, quiet = true }).evaluations):equals(1)
    problem = trinity.problem { graph = drawn_graph(3, 10, 'chain'), cluster = trinity.cluster 'p100x2' }
    expect(trinity.methods.lua_mcmc(problem, { evaluations = 5, quiet = true }).evaluations):equals(5)
  end)
end)
