-- Fitted sets of constants by name (calibration.lua has units and meanings), and the rows that each was fitted to.
return {
  a100_vtrain = {
    rows = {
    },
    values = {
      compute_efficiency = 0.886,
      half_width = 60.7,
      memory_efficiency = 0.747,
      launch_s = 5.45e-06,
      dispatch_s = 1.62e-05,
      inside_share = 1.1,
      shared_bandwidth = 0.528,
      network_share = 0.64,
    },
  },
  a100_vtrain_composed = {
    rows = {
    },
    values = {
      compute_efficiency = 0.824,
      half_width = 60.6,
      memory_efficiency = 0.915,
      launch_s = 3e-06,
      dispatch_s = 8.54e-05,
      inside_share = 0.78,
      loss_share = 0.15,
    },
  },
}
