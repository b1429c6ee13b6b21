#!/usr/bin/env trinity
-- A partition heuristic of one's own: cut the network where little is sent. Walks along the forward pass and
-- changes the device near every equal share of the work, at the place that the fewest bytes cross.

local trinity = require 'trinity'

local options = trinity.options {
  'Compares a cut-aware contiguous split, written here, with the built-in split by work alone.',
  model = { default = 'inception_v3', help = 'a model in models/, or a file' },
  cluster = { default = 'p100x2', help = 'a cluster in models/clusters with a count, or a Lua file' },
  slack = { default = 0.1, help = 'how far a cut may move, as a share of the work', min = 0, max = 0.5 },
}

-- The bytes that a cut after unit u sends: of all edges from one side to the other.
local function crossing_bytes(f)
  local crossing = {}
  for u = 1, f.units do crossing[u] = 0 end
  for e = 1, f.edges do
    for u = math.min(f.from[e], f.to[e]), math.max(f.from[e], f.to[e]) - 1 do crossing[u] = crossing[u] + f.bytes[e] end
  end
  return crossing
end

trinity.methods.register('thin_cuts', function(problem)
  local f, devices = trinity.features(problem), #problem.cluster.devices
  local crossing, cuts = crossing_bytes(f), {}
  for d = 1, devices - 1 do
    for u = 1, f.units - 1 do
      local near = math.abs(f.position[u] - d / devices) <= options.slack / devices
      if near and (not cuts[d] or crossing[u] < crossing[cuts[d]]) then cuts[d] = u end
    end
  end
  return problem:placement_by_unit(function(unit)
    for d = devices - 1, 1, -1 do if cuts[d] and unit > cuts[d] then return d + 1 end end
    return 1
  end)
end)
local problem = trinity.problem { graph = trinity.model(options.model), cluster = trinity.cluster(options.cluster) }
print(trinity.compare(problem, { 'single_device', 'contiguous', 'thin_cuts' }))
