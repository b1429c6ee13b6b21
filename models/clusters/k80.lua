-- k80xN: N GPUs of NVIDIA Tesla K80 boards on one host, as AWS p2.8xlarge has 8. 7.6 GB/s is the rate in
-- Placeto's simulator (github.com/aravic/generalizable-device-placement, sim/tf_placement_sim), whose rules
-- are rules = 'compat'. Latency as in trinity.devices.topology, half at each end. A GPU sends one tensor at a time.

return function(count)
  local spec = { devices = {}, links = {}, queue = 'sender' }
  for i = 1, count do
    local name = 'gpu' .. i - 1
    spec.devices[i] = { name = name, type = 'k80' }
    spec.links[i] = { from = name, to = 'pcie', bandwidth_bytes_per_s = 7.6e9, latency_s = 2.85e-6 }
  end
  return spec
end
