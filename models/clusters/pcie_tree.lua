-- pcie_tree: eight Tesla P100 (PCIe, 16 GB) in one machine with two root complexes, the CPUs; two
-- PCIe switches at each, two GPUs at each switch, QPI between the CPUs. Built like the 8-GPU
-- servers without NVLink of the time (Supermicro SYS-4028GR-TR and the like). Two GPUs share a switch's
-- uplink, four share QPI, whose rate for GPU traffic is half of a slot's. With Skylake CPUs and
-- later, replace 'qpi' by 'upi'.

local topology = require 'trinity.cluster.topology'

local net = topology.new { queue = 'route' }
for s = 0, 3 do
  local switch = 'plx' .. s
  net:link(net:devices('n0', { 2 * s, 2 * s + 1 }, 'p100'), switch, 'pcie3_x16')
  net:link(switch, 'cpu' .. math.floor(s / 2), 'pcie3_x16_root')
end
net:link('cpu0', 'cpu1', 'qpi')
return net:spec()
