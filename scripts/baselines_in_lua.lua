#!/usr/bin/env trinity
-- Three baselines written in Lua (lib/trinity/methods/in_lua.lua) beside the engine's own in C++: m-TOPO and HEFT,
-- which build a placement, and FlexFlow's Markov chain, which searches for one. Same rules, same results; what the
-- language costs is in the last column. The first call in Lua compiles it and reads the graph.

local trinity = require 'trinity'
require 'trinity.methods.in_lua'

local options = trinity.options {
  'Compares baselines written in Lua with the same ones of the engine: results and seconds.',
  model = { default = 'inception_v3', help = 'a model in models/, or a file' },
  cluster = { default = 'p100x4', help = 'a cluster in models/clusters with a count, or a Lua file' },
  evaluations = { default = 1000, help = 'placements that the Markov chains may try', min = 1, integer = true },
  seed = { default = 1, help = 'fixes every random number', min = 0, integer = true },
  rounds = { default = 15, help = 'runs of each, whose median counts', min = 1, max = 1000, integer = true },
}

local graph, cluster = trinity.model(options.model), trinity.cluster(options.cluster)

-- A problem of its own for every run: a simulator remembers what it has priced.
local function run(method, budget)
  return trinity.methods[method](trinity.problem { graph = graph, cluster = cluster }, budget)
end

local function milliseconds(seconds) return ('%.3f ms'):format(1e3 * seconds) end

local rows = {}
for _, name in ipairs { 'm_topo', 'heft', 'mcmc' } do
  local budget = name == 'mcmc' and { evaluations = options.evaluations, seed = options.seed, quiet = true } or {}
  local engine, lua, times = run(name, budget), run('lua_' .. name, budget), { engine = {}, lua = {} }
  local first_s = lua.seconds
  for i = 1, options.rounds do
    times.engine[i], times.lua[i] = run(name, budget).seconds, run('lua_' .. name, budget).seconds
  end
  local engine_s, lua_s = trinity.median(times.engine), trinity.median(times.lua)
  rows[#rows + 1] = { name, ('%.6f s'):format(engine.metrics.step_time_s), ('%.6f s'):format(lua.metrics.step_time_s),
    milliseconds(engine_s), milliseconds(first_s), milliseconds(lua_s), ('%.2f'):format(lua_s / engine_s) }
end

print(trinity.format_table(
  { 'method', 'step time', 'in Lua', 'engine', 'Lua, first call', 'Lua', 'Lua / engine' }, rows))
print(('\nsimulated; %s on %s, %d operators, seed %d, %d evaluations of mcmc'):format(graph.name, cluster.name,
  graph.operators, options.seed, options.evaluations))
print(('times to find the placement (for mcmc with all pricing), median of %d runs after the first'):format(
  options.rounds))
