-- v100_ibxN: N Dell PowerEdge C4140 (configuration K), as in the cluster Beluga of Calcul Quebec: four
-- V100 SXM2 16 GB, two NVLinks between every two, one EDR InfiniBand NIC at the CPU. The links
-- are as nvidia-smi prints them on such a machine (github.com/NVIDIA/nccl-tests, issue 68).

local topology = require 'trinity.cluster.topology'

return function(machines)
  local net = topology.new { queue = 'route' }
  net:machines(machines, function(name)
    local gpus = net:devices(name, 4, 'v100')
    net:mesh(gpus, 'nvlink2', 2)
    net:link(gpus, name .. '/plx', 'pcie3_x16')
    net:link(name .. '/plx', name .. '/cpu', 'pcie3_x16_root')
    net:link(name .. '/cpu', name .. '/nic', 'pcie3_x16_inner')
    net:link(name .. '/nic', 'infiniband', 'infiniband_edr')
  end)
  return net:spec()
end
