#!/usr/bin/env trinity
-- Partition heuristics of one's own, from the algorithms of graphs. 'thin_cuts' walks along the network and changes
-- the device near every equal share of the work, at the least cut in bytes. 'long_path' keeps the operators of the
-- longest path on one device, where nothing that they wait for is sent, and deals out the rest branch by branch.

local trinity = require 'trinity'

local options = trinity.options {
  'Compares two heuristics, written here with graph:min_cut and graph:critical_path, with a split by work alone.',
  model = { default = 'inception_v3', help = 'a model in models/, or a file' },
  cluster = { default = 'p100x2', help = 'a cluster in models/clusters with a count, or a Lua file' },
  slack = { default = 0.1, help = 'how far a cut may move, as a share of the work', min = 0, max = 0.5 },
}

-- The operators whose unit lies before, and those whose unit lies behind, a share of the work and the slack beside it.
local function around(graph, position, share, slack)
  local before, behind = {}, {}
  for i in graph:nodes() do
    local at = position[graph.unit_of[i]]
    if at < share - slack then before[#before + 1] = i elseif at > share + slack then behind[#behind + 1] = i end
  end
  return before, behind
end

trinity.methods.register('thin_cuts', function(problem)
  local graph, devices, device = problem.graph, #problem.cluster.devices, {}
  local position = trinity.features(problem, { node2vec = false }).position
  for u = 1, graph.units do device[u] = devices end
  for d = devices - 1, 1, -1 do
    local before, behind = around(graph, position, d / devices, options.slack / devices)
    if #before > 0 and #behind > 0 then
      local cut = graph:min_cut(before, behind, { backward = 'counted' })
      for _, i in ipairs(cut.source_side) do
        local u = graph.unit_of[i]
        if graph:unit(u)[1] == i then device[u] = math.min(d, device[u]) end
      end
    end
  end
  return problem:placement_by_unit(function(unit) return device[unit] end)
end)

trinity.methods.register('long_path', function(problem)
  local graph, devices, device = problem.graph, #problem.cluster.devices, {}
  local time_s, rest_s, dealt_s = trinity.features(problem, { node2vec = false }).time_s, 0, 0
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
print(trinity.compare(problem, { 'single_device', 'contiguous', 'thin_cuts', 'long_path' }))
