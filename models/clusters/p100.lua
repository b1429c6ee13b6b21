-- p100xN: N NVIDIA Tesla P100 (PCIe, 16 GB) on one host. PCIe 3 x16 carries 15.75 GB/s per direction raw,
-- about 12 GB/s for copies; 10 us covers launch and staging of a copy. A GPU sends one tensor at a
-- time.

local devices = require 'trinity.cluster.devices'

return function(count)
  local p100 = devices.p100
  p100.peak_flops_per_s.float64 = nil -- left out: strategy files of before know the cluster without it
  local spec = { device_types = { p100 = p100 }, devices = {}, links = {} }
  for i = 1, count do
    local name = 'gpu' .. i - 1
    spec.devices[i] = { name = name, type = 'p100' }
    spec.links[i] = { from = name, to = 'pcie', bandwidth_bytes_per_s = 12e9, latency_s = 5e-6 }
  end
  return spec
end
