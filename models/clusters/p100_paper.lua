-- p100_paperxN: the machine of the Trinity paper (Algorithms 2022, 15(4), 108, section 5.1) with N of
-- its GPUs; the paper has results for 2 and 4. It names "Tesla P100" with "11 GB", a size that was
-- never sold: the 12 GB GPU, of which TensorFlow leaves about 11 to a program. Its "bandwidth of 28
-- MB/s" cannot be (table 4 moves 6.0 GB in a step of 0.73 s); the code that goes by the name of Trinity
-- (github.com/kumulaor/test2) assumes 9.2 GB/s, as here. A GPU sends one tensor at a time, as in the
-- paper's simulator. launch_s is fitted: with
-- 40 us per operation, models/gnmt.lua in TensorFlow's operations takes the paper's 0.30 s on one GPU
-- (table 4). TensorFlow's dispatch of a small kernel was measured at about 20 us on a faster machine.

local devices = require 'trinity.cluster.devices'

return function(count)
  local spec = {
    device_types = { p100 = devices.with(devices.p100_12gb, { reserved_memory_bytes = 2 ^ 30, launch_s = 40e-6 }) },
    devices = {},
    links = {},
    queue = 'sender',
  }
  for i = 1, count do
    local name = 'gpu' .. i - 1
    spec.devices[i] = { name = name, type = 'p100' }
    spec.links[i] = { from = name, to = 'pcie', bandwidth_bytes_per_s = 9.2e9, latency_s = 5e-6 }
  end
  return spec
end
