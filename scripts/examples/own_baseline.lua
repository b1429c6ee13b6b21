#!/usr/bin/env trinity
-- A custom baseline: hill climbing. It moves a range of neighbouring units to one device and keeps the better
-- placement. trinity.search.run provides budget, progress line, Ctrl-C and the best placement.

local trinity = require 'trinity'

local options = trinity.options {
  'Compares hill climbing, written here, with random search under one budget.',
  model = { default = 'inception_v3', help = 'model by name, or a file' },
  cluster = { default = 'p100x2', help = "cluster with a number of devices ('p100x2'), a Lua file, or a profile" },
  evaluations = { default = 2000, help = 'placements that each method may simulate', min = 1, integer = true },
  seed = { default = 1, help = 'random seed', min = 0, integer = true },
}

trinity.methods.register('hill_climbing', function(problem, given)
  local settings = trinity.search.options('hill_climbing', { batch = 16 }, given)
  local random = trinity.random(settings.seed, 'hill climbing')
  local units, devices, unit_of = problem.graph.units, #problem.cluster.devices, problem.graph.unit_of
  return trinity.search.run('hill_climbing', problem, settings, function(search)
    local batch = problem:placements(settings.batch)
    while search:more() do
      for _, placement in ipairs(batch) do
        local first, device = random:integer(units), random:integer(devices)
        local last = first + random:integer(math.ceil(units / 4)) - 1
        for op = 1, #placement do
          local inside = unit_of[op] >= first and unit_of[op] <= last
          placement[op] = inside and device or search.placement[op]
        end
      end
      search:evaluate(batch)
    end
  end)
end, { help = 'moves ranges of units, keeps improvements', budget = true })

local problem = trinity.problem { graph = trinity.model(options.model), cluster = trinity.cluster(options.cluster) }
print(trinity.compare(problem, { 'single_device', 'random', 'hill_climbing' },
  { evaluations = options.evaluations, seed = options.seed }))
