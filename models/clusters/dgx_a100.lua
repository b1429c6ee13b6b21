-- dgx_a100xN: N NVIDIA DGX A100 (8 x A100 40 GB). Source: data sheet "NVIDIA DGX A100": six NVSwitches
-- join all GPUs with 12 NVLinks each, without blocking; eight single-port ConnectX-6 cards for HDR
-- InfiniBand, here one to each GPU. The fabric between machines is taken as free of blocking (a fat
-- tree), as in the DGX SuperPOD.

local topology = require 'trinity.cluster.topology'

return function(machines)
  local net = topology.new { queue = 'route' }
  for m = 0, machines - 1 do
    local name = 'n' .. m
    local gpus = net:devices(name, 8, 'a100')
    net:link(gpus, name .. '/nvswitch', 'nvswitch3', 12)
    for i, gpu in ipairs(gpus) do
      local nic = ('%s/nic%d'):format(name, i - 1)
      net:link(gpu, nic, 'pcie4_x16')
      net:link(nic, 'infiniband', 'infiniband_hdr')
    end
  end
  net:collectives()
  return net:spec()
end
