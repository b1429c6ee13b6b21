-- A problem to learn on, whose optimum is known: every chain on the devices of its kind.

local trinity = require 'trinity'

local two_chains = { length = 7 } -- operators of each

--- Two chains whose operators take 1 ms on a device of their own kind and 2 ms on the other. `sign` is the
--- reward's: 1 wants short steps, -1 long ones.
function two_chains.problem(sign)
  local kind = { peak_flops_per_s = { float32 = 1e12 }, memory_bandwidth_bytes_per_s = 1e11, memory_bytes = 1e9 }
  local cluster = trinity.cluster { name = 'two_kinds', device_types = { left = kind, right = kind },
    devices = { { name = 'd1', type = 'left' }, { name = 'd2', type = 'right' } },
    links = { { from = 'd1', to = 'd2', bandwidth_bytes_per_s = 1e10 } } }
  local builder = trinity.graph.new { name = 'two_chains' }
  for _, chain in ipairs { 'left', 'right' } do
    for i = 1, two_chains.length do
      builder:add_operator { name = chain .. i, type = chain, time_s = 1e-3 }
      if i > 1 then builder:add_edge(chain .. i - 1, chain .. i, 5e5) end
    end
  end
  return trinity.problem { graph = builder:build(), cluster = cluster,
    cost = function(op, device) return op.type == device.type and 1e-3 or 2e-3 end,
    reward = function(m) return -sign * math.log(m.step_time_s) end }
end

return two_chains
