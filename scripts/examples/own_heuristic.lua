#!/usr/bin/env trinity
-- A custom partition heuristic: cuts the network where few bytes are sent. Near every equal share of the work, it
-- changes the device at the minimum cut between the operators well before and well after this point.

local trinity = require 'trinity'

local options = trinity.options {
  'Compares a cut-aware cut, written here with graph:min_cut, with the built-in cut by work alone.',
  model = { default = 'inception_v3', help = 'model by name, or a file' },
  cluster = { default = 'p100x2', help = "cluster with a number of devices ('p100x2'), a Lua file, or a profile" },
  slack = { default = 0.1, help = 'how far a cut may move, as a fraction of the work', min = 0, max = 0.5 },
}

trinity.methods.register('thin_cuts', function(problem)
  local graph, devices, device = problem.graph, #problem.cluster.devices, {}
  local position = trinity.learn.features(problem, { node2vec = false }).position
  for u = 1, graph.units do device[u] = devices end
  for d = devices - 1, 1, -1 do
    local before, behind = {}, {}
    for i in graph:nodes() do
      local beyond = position[graph.unit_of[i]] - d / devices
      if beyond < -options.slack / devices then before[#before + 1] = i end
      if beyond > options.slack / devices then behind[#behind + 1] = i end
    end
    if #before > 0 and #behind > 0 then
      for _, i in ipairs(graph:min_cut(before, behind, { backward = 'counted' }).source_side) do
        local u = graph.unit_of[i]
        if graph:unit(u)[1] == i then device[u] = math.min(d, device[u]) end
      end
    end
  end
  return problem:placement_by_unit(function(unit) return device[unit] end)
end)
local problem = trinity.problem { graph = trinity.model(options.model), cluster = trinity.cluster(options.cluster) }
print(trinity.compare(problem, { 'single_device', 'contiguous', 'thin_cuts' }))
