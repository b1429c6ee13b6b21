-- Baselines written in Lua (lib/trinity/methods/in_lua.lua) against the same ones of the engine in C++:
--   build/trinity tests/bench/bench_baselines.lua
-- Every run has a problem of its own, as simulators remember what they have priced; engine and Lua take turns in
-- being first. What counts is finding the placement; the Markov chain's time holds all of its pricing.

local core = require 'trinity.core'
local trinity = require 'trinity'
require 'trinity.methods.in_lua'

local options = trinity.options {
  'Measures what baselines cost in Lua and in C++.',
  rounds = { default = 21, help = 'of which the median counts', min = 3, integer = true },
  warm_up_s = { default = 1, help = 'seconds of rounds before that, in which LuaJIT compiles', min = 0 },
  evaluations = { default = 300, help = 'of the Markov chain', min = 1, integer = true },
  profiles = { default = '../shared/data/pipedream', help = "a folder of PipeDream profiles; '': none" },
}

local function seconds_of(graph, cluster, method, budget)
  local problem = trinity.problem { graph = graph, cluster = cluster }
  local seconds = trinity.methods[method](problem, budget).seconds
  problem:close()
  return seconds
end

--- Medians of engine and Lua, and the seconds of Lua's first call.
local function measure(graph, cluster, name)
  local budget = name == 'mcmc' and { evaluations = options.evaluations, quiet = true } or {}
  local first_s, start = seconds_of(graph, cluster, 'lua_' .. name, budget), core.clock_s()
  while core.clock_s() - start < options.warm_up_s do seconds_of(graph, cluster, 'lua_' .. name, budget) end
  local engine, lua = {}, {}
  for round = 1, options.rounds do
    local order = round % 2 == 0 and { name, 'lua_' .. name } or { 'lua_' .. name, name }
    collectgarbage()
    for _, method in ipairs(order) do
      table.insert(method == name and engine or lua, seconds_of(graph, cluster, method, budget))
    end
  end
  return trinity.median(engine), trinity.median(lua), first_s
end

local function profile(name)
  if options.profiles == '' then return nil end
  return trinity.model(('%s/%s.graph.txt'):format(options.profiles, name), { training = false }):fold_backward()
end

local cases = {
  { profile 'gnmt' or nil, 'p100x2' },
  { profile 'densenet121', 'p100x4' },
  { trinity.model 'inception_v3', 'p100x4' },
  { trinity.model('nasnet_large', { batch_size = 8 }), 'p100x4' },
  { trinity.model('nasnet_large', { batch_size = 8, granularity = 'framework' }), 'p100_paperx2' },
}

local rows = {}
for _, case in ipairs(cases) do
  local graph, cluster = case[1], trinity.cluster(case[2])
  for _, name in ipairs(graph and { 'm_topo', 'heft', 'mcmc' } or {}) do
    local engine_s, lua_s, first_s = measure(graph, cluster, name)
    rows[#rows + 1] = { graph.name, tostring(graph.operators), cluster.name, name, ('%.3f'):format(1e3 * engine_s),
      ('%.3f'):format(1e3 * lua_s), ('%.2f'):format(lua_s / engine_s), ('%.3f'):format(1e3 * first_s) }
    io.stderr:write(('%s, %s: %.2f times\n'):format(graph.name, name, lua_s / engine_s))
  end
end
print(trinity.format_table({ 'graph', 'operators', 'cluster', 'method', 'engine ms', 'Lua ms', 'Lua / engine',
  'first call ms' }, rows))
print(('\nmedian of %d after %g s; the first call compiles, and m_topo reads the graph in it'):format(options.rounds,
  options.warm_up_s))
