#!/usr/bin/env trinity
-- Another custom heuristic: the operators of the longest path stay on one device, so that none of them waits for a
-- transfer. The other operators are distributed over the other devices branch by branch.

local trinity = require 'trinity'

local options = trinity.options {
  'Compares a cut around the longest path, written here with graph:critical_path, with a cut by work alone.',
  model = { default = 'inception_v3', help = 'model by name, or a file' },
  cluster = { default = 'p100x2', help = "cluster with a number of devices ('p100x2'), a Lua file, or a profile" },
}

trinity.methods.register('long_path', function(problem)
  local graph, devices, device = problem.graph, #problem.cluster.devices, {}
  local time_s, rest_s, dealt_s = trinity.learn.features(problem, { node2vec = false }).time_s, 0, 0
  local path = graph:critical_path { time_s = function(i) return time_s[graph.unit_of[i]] end }
  for _, i in ipairs(path.operators) do device[graph.unit_of[i]] = 1 end
  for u = 1, graph.units do rest_s = rest_s + (device[u] and 0 or time_s[u]) end
  for _, i in graph:topological_order('depth_first'):each() do
    local u = graph.unit_of[i]
    if not device[u] then
      device[u] = 2 + math.min(devices - 2, math.floor((devices - 1) * dealt_s / math.max(rest_s, 1e-12)))
      dealt_s = dealt_s + time_s[u]
    end
  end
  return problem:placement_by_unit(function(unit) return math.min(device[unit], devices) end)
end)
local problem = trinity.problem { graph = trinity.model(options.model), cluster = trinity.cluster(options.cluster) }
print(trinity.compare(problem, { 'single_device', 'contiguous', 'long_path' }))
