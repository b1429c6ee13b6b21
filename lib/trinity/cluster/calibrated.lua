-- Calibrated constants (lib/trinity/cluster/constants.lua, runtimes.lua), as fits of
-- `trinity study fidelity SOURCE --fit --save FILE` write them. `values` are fitted, `assumed` are not: no row of that
-- kind separates them from the others. `like`: a kind has the shares of another. `mean_error`: of networks that
-- were left out of the fit. Rows and errors of the fits are in scripts/studies/fidelity/fits.json.
return {
  kinds = {
    a100 = { like = 'a100_80gb' },
    a100_80gb = {
      assumed = { attention = 0.8, half_width = 60, launch_s = 5e-06, network_share = 1 }, mean_error = 0.05275,
      rows = 27,
      values = {
        compute_efficiency = 0.7318, inside_share = 1.256, memory_efficiency = 0.6805, unaligned = 0.5092,
      },
    },
    a800_80gb = { like = 'a100_80gb' },
    b200 = {
      assumed = {
        compute_efficiency = 0.673, float8 = 'mxfp8', half_width = 60, nvfp4 = 0.4164, nvfp4_rate = 2,
      },
      mean_error = 0.05978, rows = 15,
      values = {
        attention = 0.7143, expert_dispatch_s = 8.285e-05, fp8 = 0.5598, layer_dispatch_s = 0.0001797,
        mxfp8 = 0.5868, network_share = 2.2, routing = 0.08818,
      },
    },
    b300 = { assumed = { nvfp4_rate = 3 }, like = 'b200' },
    gb200 = {
      assumed = { float8 = 'mxfp8', half_width = 60, nvfp4_rate = 2 }, mean_error = 0.03594, rows = 64,
      values = {
        compute_efficiency = 0.5562, expert_dispatch_s = 9.686e-05, fp8 = 0.4881, inside_share = 1.317,
        mxfp8 = 0.5033, network_share = 3.637, nvfp4 = 0.4401, routing = 0.1235,
      },
    },
    gb300 = {
      assumed = { float8 = 'mxfp8', half_width = 60, nvfp4_rate = 3 }, mean_error = 0.04078, rows = 45,
      values = {
        compute_efficiency = 0.7548, expert_dispatch_s = 9.225e-05, fp8 = 0.6195, inside_share = 1.971,
        mxfp8 = 0.6145, network_share = 3.007, nvfp4 = 0.419, routing = 0.1134,
      },
    },
    h100 = {
      assumed = { half_width = 60 }, mean_error = 0.04997, rows = 78,
      values = {
        attention = 0.6743, compute_efficiency = 0.6415, expert_dispatch_s = 9.5e-05, fp8 = 0.5919,
        inside_share = 1.753, memory_efficiency = 0.6934, network_share = 2.295,
      },
    },
    h100_96gb = { assumed = { clock = 0.8939 }, like = 'h100' }, h200 = { like = 'h100' },
    h800 = { like = 'h100' },
  },
  runtimes = {
    ['composer-2023'] = {
      attention_share = 0.822, hopper_attention_share = 0.6407, launch_share = 32.69, memory_share = 1.117,
    },
    deepspeed = { compute_share = 0.7037, network_share = 0.1448 }, eager = { memory_share = 0.3942 },
    megatron = { routing_speed = 2.268, update_s = 0.0001187 }, ['megatron-2021'] = { launch_share = 3.409 },
    ['megatron-2024'] = { memory_share = 0.4798 },
    ['megatron-deepspeed-2022'] = { launch_share = 36.24, memory_share = 0.5289 },
    torchtitan = {
      async_share = 1.32, compute_share = 0.8352, inside_share = 0.4502, memory_share = 0.6634,
      rowwise_cast_share = 0.04076,
    },
  },
  sources = {
    collectives = {
      wires = {
        call_s = 9.754e-06, copy_share = 0.3102, efa_s = 0.0001069, exchange_bandwidth = 0.8209, host_share = 0.61,
        infiniband_s = 2.376e-05, low_latency_bandwidth = 0.512, low_latency_hop = 0.7, multicast4 = 0.8005,
        multicast5 = 0.7106, multicast_s = 2.959e-05, network_share = 1, nvlink2_s = 3.275e-06, nvlink2_share = 1,
        nvlink3_s = 4.425e-06, nvlink3_share = 0.8858, nvlink4_s = 9.321e-07, nvlink4_share = 0.88,
        nvlink5_s = 1.93e-06, nvlink5_share = 0.7782, pcie_s = 4.526e-06, pipelining = 0.1718, rails = 8,
        tcp_s = 0.0004615, xgmi_s = 1.219e-06, xgmi_share = 0.7532,
      },
    },
    sailor = {
      gh200 = {
        activation_share = 1.102, context_bytes = 4347000000, logits_share = 0.4565, network_share = 0.7838,
        slot_s = 0.001341, state_bytes = 20.08,
      },
      mixed = {
        activation_share = 1.119, context_bytes = 3036000000, logits_share = 0.5367, network_share = 0.9912,
        slot_s = 0.001915, state_bytes = 20.09,
      },
    },
    vtrain = { cluster = { network_share = 0.6579, shared_bandwidth = 0.4402 } },
  },
}
