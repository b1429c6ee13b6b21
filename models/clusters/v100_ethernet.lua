-- v100_ethernetxN: N machines with one V100 (16 GB) each on 25 Gbit/s Ethernet: configuration B of DAPPLE
-- (PPoPP 2021). Its planner reckons with 3.0 GB/s for NCCL there and 0.8 GB/s for gRPC
-- (github.com/AlibabaPAI/DAPPLE, analysis_dapple.py).

local topology = require 'trinity.cluster.topology'

return function(machines)
  local net = topology.new { queue = 'route' }
  net:machines(machines, function(name)
    net:link(net:devices(name, 1, 'v100'), name .. '/pcie', 'pcie3_x16')
    net:link(name .. '/pcie', 'ethernet', 'ethernet_25g')
  end)
  return net:spec()
end
