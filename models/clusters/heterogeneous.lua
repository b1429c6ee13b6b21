-- heterogeneous: four machines with two GPUs each, of four kinds, on 10 Gbit/s Ethernet: the case of TAPP
-- (Appl. Sci. 2021, 11(11), 4785), which allocates layers to machines of different speeds. The paper does
-- not say which machines it used; this mix is ours. Rates come from trinity.devices and
-- trinity.devices.topology.

local topology = require 'trinity.cluster.topology'

local net = topology.new { queue = 'route' }
for m, type in ipairs { 'v100_pcie', 'gtx1080ti', 'p100', 'k80' } do
  local name = 'n' .. m - 1
  net:link(net:devices(name, 2, type), name .. '/pcie', 'pcie3_x16')
  net:link(name .. '/pcie', 'ethernet', 'ethernet_10g')
end
return net:spec()
