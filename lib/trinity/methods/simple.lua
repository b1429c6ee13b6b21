-- Placements that need no search.

local search = require 'trinity.search'

--- Everything on one device: the best of all single devices.
local function single_device(problem, options)
  options = search.options('single_device', search.declared, options)
  return search.run('single_device', problem, options, function(self)
    local candidates = problem:placements(#problem.cluster.devices)
    for device, placement in ipairs(candidates) do
      for op = 1, #placement do placement[op] = device end
    end
    self:evaluate(candidates)
  end)
end

--- Devices in turn by depth: operators at the same distance from the inputs share a device.
local function round_robin(problem, options)
  options = search.options('round_robin', search.declared, options)
  local depth, devices = problem.graph.depth, #problem.cluster.devices
  return search.run('round_robin', problem, options, function(self)
    self:evaluate { problem:placement_by_unit(function(_, op) return depth[op] % devices + 1 end) }
  end)
end

return function(methods)
  methods.register('single_device', single_device,
    { help = 'everything on one device, the best one', deterministic = true, options = search.declared })
  methods.register('round_robin', round_robin, { help = 'devices in turn by depth in the graph',
    deterministic = true, options = search.declared })
end
