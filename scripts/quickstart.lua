#!/usr/bin/env trinity
-- Searches a placement of a network on a cluster with Trinity and compares it with simple heuristics.

local trinity = require 'trinity'
local cli = require 'trinity.command.cli'

local options = trinity.options(cli.declare('model set batch_size cluster seed', {
  'Searches for a placement of a model on a cluster and compares it with baselines.',
  batch_size = { default = 64, help = 'samples per step; a profile keeps its own' },
  steps = { default = 90, help = 'budget of every search, in steps of --samples placements', min = 1, integer = true },
  samples = { default = 16, help = 'placements per step; a step is one update of the policy', min = 1, integer = true },
  preset = { default = 'default', help = "settings of the search: default, or paper (the paper's)" },
  seeds = { type = 'number', help = 'runs of every random method (default: 10; with another preset 1, '
    .. 'which takes hours)', min = 1, max = 10000, integer = true },
  alpha = { default = 0.5, help = 'weight of the step time in the reward', min = 0 },
  beta = { default = 0.3, help = 'weight of the peak communication', min = 0 },
  gamma = { default = 0.2, help = 'weight of the peak memory', min = 0 },
  tolerance = { default = 8e9, help = 'communication and memory that reduce no reward', min = 1, unit = 'bytes' },
  output = { default = 'runs/quickstart/strategy.json', writes = '', help = 'write the strategy found to this file' },
}, 'alpha beta gamma preset tolerance set'))

-- The reward. Replace this formula to run another experiment. Trinity's multi-dimensional reward (MDPE) weighs step
-- time, communication and memory of the fullest device; the latter two count relative to a tolerance.
local function over_tolerance(bytes)
  local x = bytes / options.tolerance
  return x + 10 * math.max(0, x - 1)
end

local function mdpe(m)
  local cost = options.alpha * m.step_time_s
    + options.beta * over_tolerance(m.peak_communication_bytes)
    + options.gamma * over_tolerance(m.peak_memory_bytes)
  if not m.feasible then cost = 10 * cost * (1 + m.excess_memory_bytes / options.tolerance) end
  return -math.log(cost)
end

local graph = cli.load_model(options)
local cluster = cli.cluster(options.cluster)
local problem = trinity.problem { graph = graph, cluster = cluster, reward = mdpe }

print(('trinity %s, %d threads'):format(trinity.system.version, trinity.system.threads()))
print(('%s: %d operators, %d edges, %d units to place, %.3f M parameters'):format(graph.name,
  graph.operators, graph.edges, graph.units, graph.parameters / 1e6))
print(('%s: %d devices; searches of %d steps of %d placements\n'):format(cluster.name,
  #cluster.devices, options.steps, options.samples))

-- `best` is `trinity` without its policy, so their difference is the gain from the policy.
local comparison = trinity.compare(problem, { 'single_device', 'heuristics', 'annealing', 'best', 'trinity' }, {
  evaluations = options.steps * options.samples,
  seed = options.seed,
  seeds = options.seeds or options.preset == 'default' and 10 or 1,
  labels = { heuristics = 'best heuristic', best = 'trinity, no policy' },
  trinity = { samples = options.samples, preset = options.preset },
})
print(comparison)

local best, found = comparison:best(), comparison:find 'trinity'
if not found then os.exit(trinity.system.stop_status()) end -- stopped by Ctrl-C before the search
found = best and best.best or found
found:save(options.output)
local again = problem:load(options.output)
assert(again.metrics.step_time_s == found.metrics.step_time_s, 'the saved strategy differs')
print(('\n%s is saved in %s; loaded back it simulates to the same %.6f s'):format(
  best and 'the best strategy (*)' or 'the strategy of trinity', options.output, again.metrics.step_time_s))
print('build/trinity help lists commands and pages, build/trinity runs lists runs, build/trinity runs report RUN '
  .. 'shows one')
