#!/usr/bin/env trinity
-- A reward of one's own: the energy of a step. Busy devices draw more power than waiting ones, so it
-- favours placements that finish early without waking every device.

local trinity = require 'trinity'

local options = trinity.options {
  'Searches with the energy of a step as the reward and compares with the step time as the reward.',
  model = { default = 'inception_v3', help = 'a model in models/, or a file' },
  cluster = { default = 'p100x2', help = 'a cluster in models/clusters with a count, or a Lua file' },
  evaluations = { default = 480, help = 'placements a search may try', min = 1, integer = true },
  busy_w = { default = 250, help = 'power of a computing device, W', min = 0 },
  idle_w = { default = 30, help = 'power of a waiting device, W', min = 0 },
  seed = { default = 1, help = 'fixes every random number', min = 0, integer = true },
}

local graph = trinity.model(options.model)
local cluster = trinity.cluster(options.cluster)

local function energy_j(m)
  local sum = 0
  for d = 1, m.device_count do
    sum = sum + m:compute_busy_s(d) * options.busy_w + (m.step_time_s - m:compute_busy_s(d)) * options.idle_w
  end
  return m.feasible and sum or 10 * sum
end

for _, goal in ipairs { 'step time', 'energy' } do
  local problem = trinity.problem { graph = graph, cluster = cluster,
    reward = goal == 'energy' and function(m) return -energy_j(m) end or nil }
  local found = trinity.methods.trinity(problem, { evaluations = options.evaluations, seed = options.seed })
  print(('%-9s as the goal: %.4f s, %.2f J a step (simulated, seed %d, %d evaluations)'):format(goal,
    found.metrics.step_time_s, energy_j(found.metrics), options.seed, found.evaluations))
end
