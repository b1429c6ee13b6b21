-- cpuxN: N cores (at most 24) of a machine with two Intel Xeon E5-2690 v3, as devices that share memory.
--
-- Cores fill one CPU, then the other. A CPU's memory bandwidth is divided equally among its
-- cores in use: 62 GB/s of 68.3 for loads (measured on a Xeon E5-2695 v3, the same memory; J. Hofmann,
-- "Memory Bandwidth on Haswell-EP"), but not more than a core alone can use. Memory is divided equally
-- among all cores. A transfer copies within memory: every byte is read once and written once, so it
-- runs at half of those rates, and all copies of a CPU share half of its memory's. The two
-- CPUs are joined by two QPI links of 19.2 GB/s per direction (9.6 GT/s; Intel's data sheet of the Xeon
-- E5-1600/2600/4600 v3). 0.5 us is about the latency of shared memory under MPI: an assumption.

local devices = require 'trinity.cluster.devices'
local topology = require 'trinity.cluster.topology'

local cores_per_processor, memory_bytes_per_s, memory_bytes = 12, 62e9, 64 * 2 ^ 30

return function(cores)
  if cores > 2 * cores_per_processor then
    error(("cluster 'cpu': expected a count from 1 to %d, got %d"):format(2 * cores_per_processor, cores), 0)
  end
  local net = topology.new { queue = 'fair' }
  for p = 0, math.ceil(cores / cores_per_processor) - 1 do
    local here = math.min(cores_per_processor, cores - p * cores_per_processor)
    local core, memory, kind = devices.cpu_core, 'memory' .. p, 'core' .. p
    core.memory_bandwidth_bytes_per_s = math.min(core.memory_bandwidth_bytes_per_s, memory_bytes_per_s / here)
    core.memory_bytes = memory_bytes / cores
    net:device_type(kind, core)
    net:switch(memory, memory_bytes_per_s / 2)
    local numbers = {}
    for i = 1, here do numbers[i] = p * cores_per_processor + i - 1 end
    net:link(net:devices('n0', numbers, kind, { name = 'core' }), memory,
      { bandwidth_bytes_per_s = devices.cpu_core.memory_bandwidth_bytes_per_s / 2, latency_s = 0.25e-6 })
    if p == 1 then net:link('memory0', memory, { bandwidth_bytes_per_s = 2 * 19.2e9 }) end
  end
  return net:spec()
end
