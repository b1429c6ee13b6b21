-- Calibrated constants by kind of GPU (constants.lua has names, units and meanings). `values` are fitted by
-- `trinity fidelity published --fit`; `assumed` are not fitted: no row of that kind separates them from the others.
-- `rows`: published runs that the fit used; `mean_error`: of networks that were left out of the fit. `like`: a kind
-- without rows enough of its own has another kind's shares of its own data sheet.
return {
  a100_80gb = {
    rows = 27, mean_error = 0.063,
    values = { compute_efficiency = 0.7004, memory_efficiency = 0.7343, launch_s = 6.51e-06, inside_share = 1.38 },
    assumed = { attention = 0.8, half_width = 60, network_share = 1 },
  },
  a100 = { like = 'a100_80gb' },
  h100 = {
    rows = 39, mean_error = 0.066,
    values = { compute_efficiency = 0.6289, fp8 = 0.6191, attention = 0.7343, memory_efficiency = 0.6345,
      inside_share = 1.544, network_share = 1.461, expert_dispatch_s = 9.5e-05 },
    assumed = { half_width = 60 },
  },
  h200 = { like = 'h100' },
  h100_96gb = {
    rows = 24, mean_error = 0.071,
    values = { compute_efficiency = 0.4705, fp8 = 0.3983, attention = 0.6759, memory_efficiency = 0.629 },
    assumed = { half_width = 60, inside_share = 1.544, network_share = 1.461 },
  },
  gb200 = {
    rows = 43, mean_error = 0.052,
    values = { compute_efficiency = 0.673, fp8 = 0.5234, mxfp8 = 0.496, nvfp4 = 0.4164, inside_share = 1.679,
      routing = 0.1297, expert_dispatch_s = 9.5e-05 },
    assumed = { float8 = 'mxfp8', nvfp4_rate = 2 },
  },
  gb300 = {
    rows = 43, mean_error = 0.065,
    values = { compute_efficiency = 0.682, fp8 = 0.6218, mxfp8 = 0.6223, nvfp4 = 0.4397, inside_share = 1.684,
      routing = 0.1404, expert_dispatch_s = 9.377e-05 },
    assumed = { float8 = 'mxfp8', nvfp4_rate = 3 },
  },
  b200 = {
    rows = 5, mean_error = 0.051,
    values = { mxfp8 = 0.5857, routing = 0.08925, expert_dispatch_s = 8.242e-05, layer_dispatch_s = 0.0001861 },
    assumed = { compute_efficiency = 0.673, fp8 = 0.5234, nvfp4 = 0.4164, float8 = 'mxfp8', nvfp4_rate = 2 },
  },
  b300 = { like = 'b200', assumed = { nvfp4_rate = 3 } },
}
