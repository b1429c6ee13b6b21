-- p100_ibxN: N machines with four Tesla P100 (PCIe, 16 GB) and one EDR InfiniBand NIC on one PCIe
-- switch, the arrangement that GPUDirect RDMA asks for (NVIDIA's GPUDirect RDMA guide, "Supported
-- Systems": best when only PCIe switches lie between). No particular machine; rates come from
-- trinity.devices.topology.

local topology = require 'trinity.cluster.topology'

return function(machines)
  local net = topology.new { queue = 'route' }
  net:machines(machines, function(name)
    net:link(net:devices(name, 4, 'p100'), name .. '/plx', 'pcie3_x16')
    net:link(name .. '/plx', name .. '/nic', 'pcie3_x16_inner')
    net:link(name .. '/nic', 'infiniband', 'infiniband_edr')
  end)
  return net:spec()
end
