-- juwels_boosterxN: N nodes of JUWELS Booster (Forschungszentrum Juelich): four A100 40 GB, joined by NVLink 3,
-- and four ConnectX-6 for HDR InfiniBand, one per GPU, on the same PCIe 4 switch. Source: "JUWELS Booster
-- Overview", apps.fz-juelich.de/jsc/hps/juwels/booster-overview.html. The four NVLinks between every two GPUs are
-- taken from NVIDIA's HGX A100 4-GPU board (12 per GPU). The network, a DragonFly+ of full fat trees of 48 nodes, is
-- assumed to be non-blocking.

local topology = require 'trinity.cluster.topology'

return function(machines)
  local net = topology.new { queue = 'route' }
  net:machines(machines, function(name)
    local gpus = net:devices(name, 4, 'a100')
    net:mesh(gpus, 'nvlink3', 4)
    for i, gpu in ipairs(gpus) do
      local nic = ('%s/nic%d'):format(name, i - 1)
      net:link(gpu, nic, 'pcie4_x16')
      net:link(nic, 'infiniband', 'infiniband_hdr')
    end
  end)
  return net:spec()
end
