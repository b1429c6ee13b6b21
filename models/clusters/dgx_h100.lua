-- dgx_h100xN: N NVIDIA DGX H100 (8 x H100 80 GB). Source: data sheet "NVIDIA DGX H100": four NVSwitches
-- join all GPUs with 18 NVLinks each, without blocking; eight ConnectX-7 for NDR InfiniBand (400 Gbit/s),
-- here one to each GPU. The fabric between machines is taken as free of blocking (a fat tree). For a
-- DGX H200, device type h200.

local topology = require 'trinity.cluster.topology'

return function(machines)
  local net = topology.new { queue = 'route' }
  for m = 0, machines - 1 do
    local name = 'n' .. m
    local gpus = net:devices(name, 8, 'h100')
    net:link(gpus, name .. '/nvswitch', 'nvswitch4', 18)
    for i, gpu in ipairs(gpus) do
      local nic = ('%s/nic%d'):format(name, i - 1)
      net:link(gpu, nic, 'pcie5_x16')
      net:link(nic, 'infiniband', 'infiniband_ndr')
    end
  end
  net:collectives { multicast_bandwidth = 0.82 } -- NVLink SHARP; fitted (`trinity fidelity --constants`, multicast4)
  return net:spec()
end
