-- Fitted sets of constants by name (calibration.lua has units and meanings), and the rows that each was fitted to.
return {
  a100_vtrain = {
    rows = {
    },
    values = {
      compute_efficiency = 0.87,
      half_width = 59.7,
      memory_efficiency = 0.753,
      launch_s = 5.82e-06,
      dispatch_s = 1.5e-05,
      inside_share = 0.941,
      shared_bandwidth = 0.523,
      network_share = 0.596,
    },
  },
  a100_vtrain_composed = {
    rows = {
    },
    values = {
      compute_efficiency = 0.814,
      half_width = 40.3,
      memory_efficiency = 0.758,
      launch_s = 2.9e-05,
      dispatch_s = 8.98e-05,
      inside_share = 0.79,
      loss_share = 0.125,
    },
  },
}
