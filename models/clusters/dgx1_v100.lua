-- dgx1_v100xN: N NVIDIA DGX-1 with Tesla V100. Source: whitepaper "NVIDIA DGX-1 With Tesla V100 System
-- Architecture"; the NVLinks are those that NCCL prints on the machine (github.com/NVIDIA/nccl, issue
-- 671). AWS p3.16xlarge has the same graph of NVLinks.
--
-- Eight GPUs with six NVLinks each in a hybrid cube mesh, in bundles of one or two. Pairs without a
-- bundle go over PCIe: two GPUs and one EDR NIC on each of four switches, two switches on each of two
-- CPUs, QPI between these. GPUs do not forward.
--
-- Collectives run as many rings at once as the NVLinks hold (NCCL prints six of one NVLink each).
--
-- Devices are numbered along the ring of double bundles, 0 3 2 1 5 6 7 4, so that neighbours in a pipeline
-- and in the ring of a collective are joined by NVLink. Names follow nvidia-smi.

local topology = require 'trinity.cluster.topology'

-- GPU, GPU, NVLinks between them.
local bundles = {
  { 0, 1, 1 }, { 0, 2, 1 }, { 0, 3, 2 }, { 0, 4, 2 }, { 1, 2, 2 }, { 1, 3, 1 }, { 1, 5, 2 }, { 2, 3, 2 },
  { 2, 6, 1 }, { 3, 7, 1 }, { 4, 5, 1 }, { 4, 6, 1 }, { 4, 7, 2 }, { 5, 6, 2 }, { 5, 7, 1 }, { 6, 7, 2 },
}

local function add_machine(net, name)
  local function part(kind, number) return ('%s/%s%d'):format(name, kind, number) end
  net:devices(name, { 0, 3, 2, 1, 5, 6, 7, 4 }, 'v100')
  for _, bundle in ipairs(bundles) do
    net:link(part('gpu', bundle[1]), part('gpu', bundle[2]), 'nvlink2', bundle[3])
  end
  for s = 0, 3 do
    local switch = part('plx', s)
    net:link({ part('gpu', 2 * s), part('gpu', 2 * s + 1) }, switch, 'pcie3_x16')
    net:link(switch, part('cpu', math.floor(s / 2)), 'pcie3_x16_root')
    net:link(switch, part('nic', s), 'pcie3_x16_inner')
    net:link(part('nic', s), 'infiniband', 'infiniband_edr')
  end
  net:link(part('cpu', 0), part('cpu', 1), 'qpi')
end

return function(machines)
  local net = topology.new { queue = 'route' }
  net:machines(machines, function(name) add_machine(net, name) end)
  net:collectives()
  return net:spec()
end
