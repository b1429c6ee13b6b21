-- NVIDIA Tesla P100 (PCIe, 16 GB) cards on one host. Peak rates from NVIDIA's data sheet: 9.3 TFLOP/s
-- float32, 18.7 float16, 732 GB/s. PCIe 3 x16 carries 15.75 GB/s a direction raw, about 12 GB/s for
-- copies; 10 us covers launch and staging of a copy. compute_efficiency is what cuDNN convolutions
-- reach of the peak, memory_efficiency what streaming kernels reach.

return function(devices)
  local spec = {
    device_types = {
      p100 = {
        peak_flops_per_s = { float32 = 9.3e12, float16 = 18.7e12 },
        memory_bandwidth_bytes_per_s = 732e9,
        memory_bytes = 16 * 2 ^ 30,
        reserved_memory_bytes = 0.5 * 2 ^ 30,
        launch_s = 5e-6,
        compute_efficiency = 0.5,
        memory_efficiency = 0.75,
      },
    },
    devices = {},
    links = {},
  }
  for i = 1, devices do
    local name = 'gpu' .. i - 1
    spec.devices[i] = { name = name, type = 'p100' }
    spec.links[i] = { from = name, to = 'pcie', bandwidth_bytes_per_s = 12e9, latency_s = 5e-6 }
  end
  return spec
end
