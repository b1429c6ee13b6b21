#!/usr/bin/env trinity
-- A reward of one's own: the energy of a step. A device that computes takes more power than one that waits, and
-- one that is given nothing is switched off: waking a second device has to pay.

local trinity = require 'trinity'

local options = trinity.options {
  'Searches with the energy of a step as the reward and compares with the step time as the reward.',
  model = { default = 'inception_v3', help = 'a model in models/, or a file' },
  cluster = { default = 'p100x2', help = 'a cluster in models/clusters with a count, a Lua file, a profile' },
  method = { default = 'annealing', help = 'the search' },
  evaluations = { default = 2000, help = 'placements it may try', min = 1, integer = true },
  busy_w = { default = 250, help = 'power of a computing device, W', min = 0 },
  idle_w = { default = 30, help = 'power of a waiting device, W', min = 0 },
  seed = { default = 1, help = 'fixes every random number', min = 0, integer = true },
}

local graph, cluster = trinity.model(options.model), trinity.cluster(options.cluster)

local function energy_j(m)
  local sum = 0
  for d = 1, m.device_count do
    local busy_s = m:compute_busy_s(d)
    if busy_s > 0 then sum = sum + busy_s * options.busy_w + (m.step_time_s - busy_s) * options.idle_w end
  end
  return m.feasible and sum or 10 * sum
end

for _, goal in ipairs { 'step time', 'energy' } do
  local problem = trinity.problem { graph = graph, cluster = cluster,
    reward = goal == 'energy' and function(m) return -energy_j(m) end or nil }
  local found = trinity.methods[options.method](problem, { evaluations = options.evaluations, seed = options.seed })
  print(('%-9s as the goal: %.4g s, %.4g J a step (simulated, seed %d, %d evaluations)'):format(goal,
    found.metrics.step_time_s, energy_j(found.metrics), options.seed, found.evaluations))
end
