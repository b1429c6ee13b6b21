-- pcie_tree: eight Tesla P100 (PCIe, 16 GB) in one machine with two root complexes, the processors; two
-- PCIe switches at each, two cards at each switch, QPI between the processors. Built like the 8-GPU
-- servers without NVLink of the time (Supermicro SYS-4028GR-TR and the like). Two cards share a switch's
-- way up, four share QPI, whose rate for what GPUs send is half of a slot's. With Skylake processors and
-- after, replace 'qpi' by 'upi'.

local topology = require 'trinity.cluster.topology'

local net = topology.new { queue = 'route' }
for s = 0, 3 do
  local switch = 'plx' .. s
  net:link(net:devices('n0', { 2 * s, 2 * s + 1 }, 'p100'), switch, 'pcie3_x16')
  net:link(switch, 'cpu' .. math.floor(s / 2), 'pcie3_x16_root')
end
net:link('cpu0', 'cpu1', 'qpi')
return net:spec()
