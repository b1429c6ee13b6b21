-- gtx1080ti_ibxN: N GeForce GTX 1080 Ti, eight per machine over PCIe, machines on EDR InfiniBand: the first
-- cluster of PaSE (Elango, IPDPS 2021), as far as the paper describes it. The eight are connected as in
-- models/clusters/pcie_tree, four per CPU; the NIC is at the first CPU.

local topology = require 'trinity.cluster.topology'

return function(devices)
  local net = topology.new { queue = 'route' }
  for first = 0, devices - 1, 8 do
    local name = 'n' .. math.floor(first / 8)
    for s = 0, math.ceil(math.min(8, devices - first) / 2) - 1 do
      local cards = {}
      for i = 2 * s, math.min(2 * s + 1, devices - first - 1) do cards[#cards + 1] = i end
      local switch = name .. '/plx' .. s
      net:link(net:devices(name, cards, 'gtx1080ti'), switch, 'pcie3_x16')
      net:link(switch, ('%s/cpu%d'):format(name, math.floor(s / 2)), 'pcie3_x16_root')
    end
    if devices - first > 4 then net:link(name .. '/cpu0', name .. '/cpu1', 'qpi') end
    if devices > 8 then net:link(name .. '/cpu0', 'infiniband', 'infiniband_edr') end
  end
  return net:spec()
end
