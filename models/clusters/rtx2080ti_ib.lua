-- rtx2080ti_ibxN: N GeForce RTX 2080 Ti, eight per machine over PCIe, machines on EDR InfiniBand: the second
-- cluster of PaSE (Elango, IPDPS 2021). GPUs of this type have no peer-to-peer access over PCIe, so their
-- transfers go through the CPU that they are attached to, four per CPU.

local topology = require 'trinity.cluster.topology'

return function(devices)
  local net = topology.new { queue = 'route' }
  for first = 0, devices - 1, 8 do
    local name = 'n' .. math.floor(first / 8)
    local count = math.min(8, devices - first)
    for i = 0, count - 1 do
      net:link(net:devices(name, { i }, 'rtx2080ti'), name .. '/slot' .. i, 'pcie3_x16')
      net:link(name .. '/slot' .. i, ('%s/cpu%d'):format(name, math.floor(i / 4)), 'pcie3_x16_root')
    end
    if count > 4 then net:link(name .. '/cpu0', name .. '/cpu1', 'qpi') end
    if devices > 8 then net:link(name .. '/cpu0', 'infiniband', 'infiniband_edr') end
  end
  return net:spec()
end
