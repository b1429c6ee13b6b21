-- Calibrated constants (lib/trinity/cluster/constants.lua, runtimes.lua), as fits of
-- `trinity study fidelity SOURCE --fit --save FILE` write them. `values` are fitted, `assumed` are not: no row of that
-- kind separates them from the others. `like`: a kind has the shares of another. `mean_error`: of networks that
-- were left out of the fit; errors by group of rows as well, fitted and left out, and the two rows of a group that pull
-- apart most.
return {
  errors = {
    collectives = {
      a100x16_abci = {
        fitted = { mean = 0.1431, median = 0.1755, worst = 0.1929 },
        left_out = { mean = 0.1589, median = 0.1798, worst = 0.2063 }, rows = 6,
      },
      a100x16_p4de = {
        fitted = { mean = 0.1596, median = 0.1486, worst = 0.28 },
        left_out = { mean = 0.1913, median = 0.1652, worst = 0.3367 }, rows = 6,
      },
      a100x8_azure = {
        fitted = { mean = 0.07433, median = 0.03492, worst = 0.3307 },
        left_out = { mean = 0.09193, median = 0.03465, worst = 0.4253 }, rows = 7,
      },
      a100x8_ml = {
        fitted = { mean = 0.07576, median = 0.04147, worst = 0.3384 },
        left_out = { mean = 0.08875, median = 0.06013, worst = 0.3348 }, rows = 8,
      },
      a100x8_sendrecv = {
        fitted = { mean = 0.3162, median = 0.2423, worst = 0.5389 },
        left_out = { mean = 0.3342, median = 0.2631, worst = 0.5497 }, rows = 4,
      },
      b200_count = {
        fitted = { mean = 0.07837, median = 0.06711, worst = 0.1315 },
        left_out = { mean = 0.1234, median = 0.1093, worst = 0.182 }, rows = 10,
      },
      ['b200_sxm_nccl_2.27.5'] = {
        fitted = { mean = 0.1056, median = 0.08041, worst = 0.6939 },
        left_out = { mean = 0.1707, median = 0.09493, worst = 1.433 }, rows = 120,
      },
      b200x32_p6 = {
        fitted = { mean = 0.1095, median = 0.09348, worst = 0.2403 },
        left_out = { mean = 0.1279, median = 0.1086, worst = 0.2724 }, rows = 8,
      },
      b200x8_p6 = {
        fitted = { mean = 0.1124, median = 0.1032, worst = 0.332 },
        left_out = { mean = 0.1526, median = 0.1385, worst = 0.3853 }, rows = 8,
      },
      ['gb200_nccl_2.23'] = {
        fitted = { mean = 0.1009, median = 0.07337, worst = 0.3891 },
        left_out = { mean = 0.1023, median = 0.06996, worst = 0.4176 }, rows = 80,
      },
      gb200x1440_coreweave = {
        fitted = { mean = 0.1848, median = 0.1181, worst = 0.4846 },
        left_out = { mean = 0.1908, median = 0.1213, worst = 0.4987 }, rows = 6,
      },
      gb200x144_coreweave = {
        fitted = { mean = 0.08303, median = 0.05587, worst = 0.2138 },
        left_out = { mean = 0.08571, median = 0.05359, worst = 0.2254 }, rows = 6,
      },
      gb200x72_coreweave = {
        fitted = { mean = 0.1714, median = 0.1569, worst = 0.2903 },
        left_out = { mean = 0.2129, median = 0.1992, worst = 0.3247 }, rows = 5,
      },
      gh200x2_alps = {
        fitted = { mean = 0.2644, median = 0.2982, worst = 0.4382 },
        left_out = { mean = 0.2718, median = 0.314, worst = 0.4163 }, rows = 4,
      },
      ['h100_sxm_nccl_2.23'] = {
        fitted = { mean = 0.07449, median = 0.03923, worst = 0.3789 },
        left_out = { mean = 0.0809, median = 0.05236, worst = 0.3565 }, rows = 90,
      },
      ['h100_sxm_nccl_2.27.3'] = {
        fitted = { mean = 0.08984, median = 0.05248, worst = 0.4101 },
        left_out = { mean = 0.1032, median = 0.05594, worst = 0.4831 }, rows = 120,
      },
      h100x16_a3high = {
        fitted = { mean = 0.141, median = 0.1057, worst = 0.3249 },
        left_out = { mean = 0.3493, median = 0.2621, worst = 0.7475 }, rows = 5,
      },
      h100x16_p5 = {
        fitted = { mean = 0.1156, median = 0.0742, worst = 0.452 },
        left_out = { mean = 0.1522, median = 0.09802, worst = 0.6085 }, rows = 8,
      },
      h100x16_xe9680 = {
        fitted = { mean = 0.06861, median = 0.06773, worst = 0.1312 },
        left_out = { mean = 0.08704, median = 0.08011, worst = 0.2236 }, rows = 8,
      },
      h100x32_xe9680 = {
        fitted = { mean = 0.04736, median = 0.02904, worst = 0.1654 },
        left_out = { mean = 0.06799, median = 0.0384, worst = 0.265 }, rows = 8,
      },
      h100x64_coreweave = {
        fitted = { mean = 0.03057, median = 0.02761, worst = 0.04461 },
        left_out = { mean = 0.03568, median = 0.03157, worst = 0.0461 }, rows = 5,
      },
      h100x8_290 = {
        fitted = { mean = 0.008478, median = 0.001981, worst = 0.02217 },
        left_out = { mean = 0.01066, median = 0.009553, worst = 0.0168 }, rows = 3,
      },
      h100x8_azure = {
        fitted = { mean = 0.07262, median = 0.02459, worst = 0.3229 },
        left_out = { mean = 0.07718, median = 0.02161, worst = 0.36 }, rows = 7,
      },
      h100x8_p5 = {
        fitted = { mean = 0.01735, median = 0.006606, worst = 0.06276 },
        left_out = { mean = 0.02004, median = 0.005205, worst = 0.0577 }, rows = 8,
      },
      h100x8_xe9680 = {
        fitted = { mean = 0.005609, median = 0.005609, worst = 0.007422 },
        left_out = { mean = 0.004427, median = 0.004427, worst = 0.007104 }, rows = 2,
      },
      h200_count = {
        fitted = { mean = 0.01292, median = 0.01105, worst = 0.02668 },
        left_out = { mean = 0.01296, median = 0.01317, worst = 0.02222 }, rows = 10,
      },
      h200x8_ml = {
        fitted = { mean = 0.04927, median = 0.01334, worst = 0.3846 },
        left_out = { mean = 0.05241, median = 0.01225, worst = 0.4192 }, rows = 12,
      },
      mi300x2 = {
        fitted = { mean = 0.02241, median = 0.02241, worst = 0.02241 },
        left_out = { mean = 0.03151, median = 0.03151, worst = 0.03151 }, rows = 1,
      },
      mi300x8 = {
        fitted = { mean = 0.03856, median = 0.02103, worst = 0.1495 },
        left_out = { mean = 0.2308, median = 0.1076, worst = 0.9035 }, rows = 7,
      },
      mi300x8_ml = {
        fitted = { mean = 0.02278, median = 0.02278, worst = 0.02278 },
        left_out = { mean = 0.02517, median = 0.02517, worst = 0.02517 }, rows = 1,
      },
      rtx2080ti_x2 = {
        fitted = { mean = 0.178, median = 0.1753, worst = 0.2705 },
        left_out = { mean = 0.1993, median = 0.2083, worst = 0.4016 }, rows = 14,
      },
      v100_cubemesh8 = {
        fitted = { mean = 0.0939, median = 0.07437, worst = 0.243 },
        left_out = { mean = 0.1963, median = 0.2229, worst = 0.2513 }, rows = 6,
      },
      vtrain_a100 = {
        fitted = { mean = 0.09653, median = 0.06464, worst = 0.4555 },
        left_out = { mean = 0.1456, median = 0.1124, worst = 0.4655 }, rows = 77,
      },
    },
    published = {
      ['A100-40GB, dense'] = {
        apart = {
          {
            fitted = 0.3894, from = 'llm-foundry', left_out = 0.4461, row = 'MPT-70b:86',
          },
          {
            fitted = 0.04678, from = 'llm-foundry', left_out = 0.09163, row = 'MPT-70b:85',
          },
        },
        fitted = { mean = 0.04703, median = 0.02353, worst = 0.3894 },
        left_out = { mean = 0.04648, median = 0.0163, worst = 0.4461 }, rows = 33,
      },
      ['A100-80GB Jean Zay, dense'] = {
        fitted = { mean = 0.0575, median = 0.03517, worst = 0.3939 },
        left_out = { mean = 0.05989, median = 0.0324, worst = 0.4031 }, rows = 63,
      },
      ['A100-80GB, dense'] = {
        apart = {
          {
            fitted = 0.0549, from = 'NeMo Megatron launcher README section 7.1.2 (2023)', left_out = 0.02929,
            row = 'p051',
          },
          {
            fitted = -0.04567, from = 'NeMo Megatron launcher README section 7.1.2 (2023)', left_out = -0.06951,
            row = 'p050',
          },
        },
        fitted = { mean = 0.04222, median = 0.02947, worst = 0.1511 },
        left_out = { mean = 0.05041, median = 0.03127, worst = 0.1873 }, rows = 27,
      },
      ['B200, dense, MLPerf'] = {
        apart = {
          {
            fitted = 0.03921, from = 'University-of-Florida', left_out = 0.1296,
            row = 'v5.1 hpg.dgxb200x8.n32 llama31_8b',
          },
          {
            fitted = -0.07053, from = 'University-of-Florida', left_out = -0.008289,
            row = 'v5.1 hpg.dgxb200x8.n8 llama31_8b',
          },
        },
        fitted = { mean = 0.05749, median = 0.05102, worst = 0.1442 },
        left_out = { mean = 0.07482, median = 0.07889, worst = 0.1946 }, rows = 8,
      },
      ['B200, mixtures of experts'] = {
        apart = {
          {
            fitted = 0.02229, from = 'Megatron-Bridge performance summary, NeMo 26.02.01', left_out = 0.02704,
            row = 'p183',
          },
          {
            fitted = -0.01113, from = 'Megatron-Bridge performance summary, NeMo 26.02', left_out = -0.1714,
            row = 'p210',
          },
        },
        fitted = { mean = 0.01515, median = 0.01604, worst = 0.02229 },
        left_out = { mean = 0.05337, median = 0.02704, worst = 0.1714 }, rows = 5,
      },
      ['B300, mixtures of experts'] = {
        fitted = { mean = 0.03802, median = 0.03802, worst = 0.04717 },
        left_out = { mean = 0.08126, median = 0.08126, worst = 0.09078 }, rows = 2,
      },
      ['GB200, dense, 8 bits'] = {
        apart = {
          {
            fitted = 0.005468, from = 'Megatron-Bridge performance summary, NeMo 26.02', left_out = 0.02081,
            row = 'p197',
          },
          {
            fitted = -0.1174, from = 'Megatron-Bridge performance summary, NeMo 26.04.01', left_out = -0.1299,
            row = 'p119',
          },
        },
        fitted = { mean = 0.04502, median = 0.03834, worst = 0.1174 },
        left_out = { mean = 0.05184, median = 0.05081, worst = 0.1299 }, rows = 21,
      },
      ['GB200, dense, MLPerf'] = {
        apart = {
          {
            fitted = 0.02488, from = 'NVIDIA', left_out = 0.0559, row = 'v5.1 tyche_ngpu72_ngc25.09_nemo llama31_8b',
          },
          {
            fitted = -0.05766, from = 'NVIDIA', left_out = -0.06465,
            row = 'v5.1 tyche_ngpu512_ngc25.09_nemo llama31_8b',
          },
        },
        fitted = { mean = 0.02591, median = 0.01838, worst = 0.06543 },
        left_out = { mean = 0.03134, median = 0.01275, worst = 0.08705 }, rows = 9,
      },
      ['GB200, mixtures of experts'] = {
        apart = {
          {
            fitted = 0.04518, from = 'Megatron-Bridge performance summary, NeMo 26.08', left_out = 0.0478,
            row = 'p081',
          },
          {
            fitted = -0.05165, from = 'Megatron-Bridge performance summary, NeMo 26.04.01', left_out = -0.05139,
            row = 'p124',
          },
        },
        fitted = { mean = 0.01542, median = 0.008622, worst = 0.05165 },
        left_out = { mean = 0.0161, median = 0.007603, worst = 0.05139 }, rows = 22,
      },
      ['GB300, dense, 8 bits'] = {
        apart = {
          {
            fitted = 0.0733, from = 'Megatron-Bridge performance summary, NeMo 26.02', left_out = 0.08668,
            row = 'p189',
          },
          {
            fitted = -0.02981, from = 'Megatron-Bridge performance summary, NeMo 26.02.01', left_out = -0.03549,
            row = 'p165',
          },
        },
        fitted = { mean = 0.02356, median = 0.01377, worst = 0.0733 },
        left_out = { mean = 0.0304, median = 0.03275, worst = 0.08668 }, rows = 17,
      },
      ['GB300, dense, MLPerf'] = {
        apart = {
          {
            fitted = 0.004939, from = 'NVIDIA', left_out = 0.05176,
            row = 'v5.1 theia_ngpu512_ngc25.09_nemo llama31_8b',
          },
          {
            fitted = 0.00365, from = 'NVIDIA', left_out = 0.01594, row = 'v5.1 theia_ngpu8_ngc25.09_nemo llama31_8b',
          },
        },
        fitted = { mean = 0.004294, median = 0.004294, worst = 0.004939 },
        left_out = { mean = 0.03385, median = 0.03385, worst = 0.05176 }, rows = 2,
      },
      ['GB300, mixtures of experts'] = {
        apart = {
          {
            fitted = 0.1016, from = 'Megatron-Bridge performance summary, NeMo 25.11', left_out = 0.107,
            row = 'p220',
          },
          {
            fitted = -0.05522, from = 'Megatron-Bridge performance summary, NeMo 26.06', left_out = -0.06445,
            row = 'p100',
          },
        },
        fitted = { mean = 0.0332, median = 0.02592, worst = 0.1016 },
        left_out = { mean = 0.0471, median = 0.04446, worst = 0.107 }, rows = 26,
      },
      ['H100-80GB, dense, 16 bits'] = {
        apart = {
          {
            fitted = 0.1206, from = 'The Llama 3 Herd of Models (arXiv 2407.21783) table 4', left_out = 0.1327,
            row = 'p045',
          },
          {
            fitted = -0.02293, from = 'The Llama 3 Herd of Models (arXiv 2407.21783) table 4', left_out = -0.01221,
            row = 'p044',
          },
        },
        fitted = { mean = 0.04689, median = 0.02293, worst = 0.1206 },
        left_out = { mean = 0.05199, median = 0.0214, worst = 0.1357 }, rows = 9,
      },
      ['H100-80GB, dense, 8 bits'] = {
        apart = {
          {
            fitted = -0.005896, from = 'NeMo launcher examples README (NeMo 24.05)', left_out = -0.01388,
            row = 'p067',
          },
          {
            fitted = -0.09152, from = 'Megatron-Bridge performance summary, NeMo 26.04.01', left_out = -0.1042,
            row = 'p115',
          },
        },
        fitted = { mean = 0.03842, median = 0.03204, worst = 0.09152 },
        left_out = { mean = 0.04535, median = 0.04296, worst = 0.1042 }, rows = 25,
      },
      ['H100-80GB, dense, MLPerf'] = {
        apart = {
          {
            fitted = 0.1583, from = 'Oracle', left_out = 0.1733, row = 'v4.1 3072xBM.GPU.H100.8 gpt3',
          },
          {
            fitted = -0.07083, from = 'NVIDIA', left_out = -0.06181, row = 'v4.1 eos_n32_ngc24.09_nemo gpt3',
          },
        },
        fitted = { mean = 0.08239, median = 0.05122, worst = 0.3797 },
        left_out = { mean = 0.09304, median = 0.06181, worst = 0.3921 }, rows = 13,
      },
      ['H100-80GB, mixtures of experts'] = {
        apart = {
          {
            fitted = 7.051e-05, from = 'Megatron-Bridge performance summary, NeMo 25.11', left_out = -0.04592,
            row = 'p236',
          },
          {
            fitted = -0.06993, from = 'Megatron-Bridge performance summary, NeMo 26.04.01', left_out = -0.1127,
            row = 'p136',
          },
        },
        fitted = { mean = 0.03243, median = 0.02494, worst = 0.06993 },
        left_out = { mean = 0.07688, median = 0.06976, worst = 0.1127 }, rows = 5,
      },
      ['H100-96GB, dense, 16 bits'] = {
        apart = {
          {
            fitted = 0.05775, from = 'torchtitan benchmarks', left_out = 0.1176, row = 'p244',
          },
          {
            fitted = -0.03696, from = 'torchtitan benchmarks', left_out = -0.03831, row = 'p266',
          },
        },
        fitted = { mean = 0.02872, median = 0.02808, worst = 0.05775 },
        left_out = { mean = 0.06607, median = 0.06806, worst = 0.1176 }, rows = 6,
      },
      ['H100-96GB, dense, 8 bits'] = {
        apart = {
          {
            fitted = 0.1349, from = 'torchtitan benchmarks', left_out = 0.08208, row = 'p247',
          },
          {
            fitted = -0.1409, from = 'torchtitan benchmarks', left_out = -0.1661, row = 'p248',
          },
        },
        fitted = { mean = 0.04522, median = 0.02614, worst = 0.1409 },
        left_out = { mean = 0.05291, median = 0.0311, worst = 0.1661 }, rows = 18,
      },
      ['H200-141GB, dense, 8 bits'] = {
        fitted = { mean = 0.06897, median = 0.06897, worst = 0.06897 },
        left_out = { mean = 0.07966, median = 0.07966, worst = 0.07966 }, rows = 1,
      },
      ['H200-141GB, dense, MLPerf'] = {
        fitted = { mean = 0.01754, median = 0.01754, worst = 0.01754 },
        left_out = { mean = 0.02047, median = 0.02047, worst = 0.02047 }, rows = 1,
      },
    },
    sailor = {
      ['GPT-Neo-2.7, GH200'] = {
        fitted = { mean = 0.0294, median = 0.0306, worst = 0.0392 },
        left_out = { mean = 0.0311, median = 0.0332, worst = 0.0344 }, rows = 4,
      },
      ['GPT-Neo-2.7, GH200: memory'] = {
        fitted = { mean = 0.0085, median = 0.0058, worst = 0.022 },
        left_out = { mean = 0.01, median = 0.0067, worst = 0.024 }, rows = 4,
      },
      ['OPT-350, GH200'] = {
        fitted = { mean = 0.0467, median = 0.0247, worst = 0.1293 },
        left_out = { mean = 0.0526, median = 0.0462, worst = 0.1318 }, rows = 11,
      },
      ['OPT-350, GH200: memory'] = {
        fitted = { mean = 0.0087, median = 0.004, worst = 0.0298 },
        left_out = { mean = 0.0109, median = 0.0047, worst = 0.032 }, rows = 11,
      },
      ['OPT-350, mixed nodes'] = {
        fitted = { mean = 0.0522, median = 0.0525, worst = 0.1016 },
        left_out = { mean = 0.0494, median = 0.0491, worst = 0.0993 }, rows = 4,
      },
      ['OPT-350, mixed nodes: memory'] = {
        fitted = { mean = 0.0594, median = 0.0297, worst = 0.1353 },
        left_out = { mean = 0.1106, median = 0.114, worst = 0.1485 }, rows = 3,
      },
    },
    vtrain = {
      ['A100-80GB, dense'] = {
        apart = {
          {
            fitted = 0.0549, from = 'NeMo Megatron launcher README section 7.1.2 (2023)', left_out = 0.05545,
            row = 'p051',
          },
          {
            fitted = -0.04567, from = 'NeMo Megatron launcher README section 7.1.2 (2023)', left_out = -0.04517,
            row = 'p050',
          },
        },
        fitted = { mean = 0.04222, median = 0.02947, worst = 0.1511 },
        left_out = { mean = 0.05513, median = 0.04339, worst = 0.227 }, rows = 27,
      },
      ['hidden 3072, 30 layers'] = {
        apart = {
          { fitted = 0.03998, left_out = 0.004454, row = '26' },
          { fitted = -0.4991, left_out = -0.5114, row = '16' },
        },
        fitted = { mean = 0.05353, median = 0.02088, worst = 0.4991 },
        left_out = { mean = 0.06749, median = 0.03035, worst = 0.5114 }, rows = 26,
      },
      ['hidden 6144, 40 layers'] = {
        apart = {
          { fitted = 0.08245, left_out = 0.0873, row = '35' }, { fitted = -0.1046, left_out = -0.1058, row = '28' },
        },
        fitted = { mean = 0.03311, median = 0.02301, worst = 0.1046 },
        left_out = { mean = 0.03456, median = 0.02531, worst = 0.1058 }, rows = 15,
      },
    },
  },
  kinds = {
    a100 = { like = 'a100_80gb' },
    a100_80gb = {
      assumed = { attention = 0.8, half_width = 60, launch_s = 5e-06, network_share = 1 }, mean_error = 0.05041,
      rows = 27, values = { compute_efficiency = 0.7318, inside_share = 1.256, memory_efficiency = 0.6805 },
    },
    b200 = {
      assumed = {
        compute_efficiency = 0.673, float8 = 'mxfp8', half_width = 60, nvfp4 = 0.4164, nvfp4_rate = 2,
      },
      mean_error = 0.06853, rows = 15,
      values = {
        expert_dispatch_s = 8.288e-05, fp8 = 0.5539, layer_dispatch_s = 0.000181, mxfp8 = 0.5859,
        network_share = 1.991, routing = 0.08568,
      },
    },
    b300 = { assumed = { nvfp4_rate = 3 }, like = 'b200' },
    gb200 = {
      assumed = { float8 = 'mxfp8', half_width = 60, nvfp4_rate = 2 }, mean_error = 0.03317, rows = 52,
      values = {
        compute_efficiency = 0.6878, expert_dispatch_s = 9.274e-05, fp8 = 0.5094, inside_share = 1.148,
        mxfp8 = 0.5122, network_share = 3.088, nvfp4 = 0.4247, routing = 0.1183,
      },
    },
    gb300 = {
      assumed = { float8 = 'mxfp8', half_width = 60, nvfp4_rate = 3 }, mean_error = 0.0402, rows = 45,
      values = {
        compute_efficiency = 0.7548, expert_dispatch_s = 9.225e-05, fp8 = 0.6195, inside_share = 1.971,
        mxfp8 = 0.6145, network_share = 3.007, nvfp4 = 0.419, routing = 0.1134,
      },
    },
    h100 = {
      assumed = { half_width = 60 }, mean_error = 0.05954, rows = 78,
      values = {
        attention = 0.6743, compute_efficiency = 0.6415, expert_dispatch_s = 9.5e-05, fp8 = 0.5919,
        inside_share = 1.753, memory_efficiency = 0.6934, network_share = 2.295,
      },
    },
    h100_96gb = { assumed = { clock = 0.8939 }, like = 'h100' }, h200 = { like = 'h100' },
  },
  rows = {
    collectives = {
      'a100x16_abci', 'a100x16_p4de', 'a100x8_azure', 'a100x8_ml', 'a100x8_sendrecv', 'b200_count',
      'b200_sxm_nccl_2.27.5', 'b200x32_p6', 'b200x8_p6', 'gb200_nccl_2.23', 'gb200x1440_coreweave',
      'gb200x144_coreweave', 'gb200x72_coreweave', 'gh200x2_alps', 'h100_sxm_nccl_2.23', 'h100_sxm_nccl_2.27.3',
      'h100x16_a3high', 'h100x16_p5', 'h100x16_xe9680', 'h100x32_xe9680', 'h100x64_coreweave', 'h100x8_290',
      'h100x8_azure', 'h100x8_p5', 'h100x8_xe9680', 'h200_count', 'h200x8_ml', 'mi300x2', 'mi300x8', 'mi300x8_ml',
      'rtx2080ti_x2', 'v100_cubemesh8', 'vtrain_a100',
    },
    published = {
      'MPT-125m:116', 'MPT-125m:117', 'MPT-125m:79', 'MPT-125m:80', 'MPT-125m:81', 'MPT-125m:82', 'MPT-125m:83',
      'MPT-125m:84', 'MPT-13b:10', 'MPT-13b:20', 'MPT-13b:21', 'MPT-13b:22', 'MPT-13b:23', 'MPT-13b:24',
      'MPT-13b:25', 'MPT-13b:26', 'MPT-13b:56', 'MPT-13b:57', 'MPT-13b:58', 'MPT-13b:8', 'MPT-13b:89', 'MPT-13b:9',
      'MPT-1b:102', 'MPT-1b:103', 'MPT-1b:104', 'MPT-1b:105', 'MPT-1b:106', 'MPT-1b:107', 'MPT-1b:108', 'MPT-1b:109',
      'MPT-1b:110', 'MPT-1b:33', 'MPT-1b:34', 'MPT-1b:35', 'MPT-1b:36', 'MPT-1b:37', 'MPT-1b:38', 'MPT-1b:46',
      'MPT-1b:47', 'MPT-1b:48', 'MPT-1b:69', 'MPT-1b:70', 'MPT-1b:71', 'MPT-30b:16', 'MPT-30b:17', 'MPT-30b:18',
      'MPT-30b:19', 'MPT-30b:5', 'MPT-30b:51', 'MPT-30b:52', 'MPT-30b:53', 'MPT-30b:54', 'MPT-30b:55', 'MPT-30b:6',
      'MPT-30b:7', 'MPT-30b:87', 'MPT-30b:88', 'MPT-350m:114', 'MPT-350m:115', 'MPT-350m:76', 'MPT-350m:77',
      'MPT-350m:78', 'MPT-3b:100', 'MPT-3b:101', 'MPT-3b:29', 'MPT-3b:30', 'MPT-3b:31', 'MPT-3b:32', 'MPT-3b:44',
      'MPT-3b:45', 'MPT-3b:64', 'MPT-3b:65', 'MPT-3b:66', 'MPT-3b:67', 'MPT-3b:68', 'MPT-3b:98', 'MPT-3b:99',
      'MPT-70b:14', 'MPT-70b:15', 'MPT-70b:2', 'MPT-70b:3', 'MPT-70b:4', 'MPT-70b:49', 'MPT-70b:50', 'MPT-70b:85',
      'MPT-70b:86', 'MPT-760m:111', 'MPT-760m:112', 'MPT-760m:113', 'MPT-760m:39', 'MPT-760m:40', 'MPT-760m:41',
      'MPT-760m:42', 'MPT-760m:43', 'MPT-760m:72', 'MPT-760m:73', 'MPT-760m:74', 'MPT-760m:75', 'MPT-7b:11',
      'MPT-7b:12', 'MPT-7b:13', 'MPT-7b:27', 'MPT-7b:28', 'MPT-7b:59', 'MPT-7b:60', 'MPT-7b:61', 'MPT-7b:62',
      'MPT-7b:63', 'MPT-7b:90', 'MPT-7b:91', 'MPT-7b:92', 'MPT-7b:93', 'MPT-7b:94', 'MPT-7b:95', 'MPT-7b:96',
      'MPT-7b:97', 'b006', 'b008', 'b016', 'b017', 'b018', 'b032', 'b033', 'b034', 'b035', 'b036', 'b039', 'b046',
      'b047', 'b050', 'b052', 'b054', 'b055', 'b057', 'b060', 'b061', 'b062', 'b063', 'b064', 'b065', 'b066', 'b067',
      'b068', 'b069', 'b070', 'b071', 'b073', 'b074', 'b075', 'b076', 'b077', 'b078', 'b081', 'b082', 'b083', 'b084',
      'b085', 'b086', 'b087', 'b089', 'b090', 'b092', 'b094', 'b097', 'b102', 'b103', 'b104', 'b105', 'b106', 'b107',
      'b112', 'b118', 'b119', 'b120', 'b121', 'b122', 'b124', 'b125', 'b128', 'p003', 'p004', 'p005', 'p009', 'p011',
      'p012', 'p015', 'p017', 'p018', 'p020', 'p021', 'p022', 'p023', 'p024', 'p025', 'p026', 'p028', 'p029', 'p030',
      'p034', 'p035', 'p036', 'p040', 'p041', 'p043', 'p044', 'p045', 'p047', 'p048', 'p050', 'p051', 'p052', 'p054',
      'p055', 'p056', 'p058', 'p060', 'p061', 'p062', 'p064', 'p067', 'p068', 'p069', 'p070', 'p071', 'p073', 'p076',
      'p078', 'p079', 'p080', 'p081', 'p082', 'p083', 'p084', 'p085', 'p086', 'p087', 'p088', 'p089', 'p090', 'p091',
      'p093', 'p095', 'p096', 'p097', 'p098', 'p099', 'p100', 'p101', 'p103', 'p104', 'p107', 'p108', 'p109', 'p110',
      'p111', 'p113', 'p115', 'p117', 'p119', 'p120', 'p121', 'p122', 'p123', 'p124', 'p127', 'p128', 'p130', 'p132',
      'p133', 'p136', 'p137', 'p139', 'p140', 'p141', 'p143', 'p145', 'p146', 'p147', 'p149', 'p150', 'p151', 'p154',
      'p155', 'p157', 'p159', 'p160', 'p162', 'p165', 'p166', 'p167', 'p169', 'p171', 'p172', 'p173', 'p175', 'p176',
      'p177', 'p180', 'p181', 'p183', 'p185', 'p186', 'p187', 'p188', 'p189', 'p191', 'p192', 'p193', 'p195', 'p197',
      'p198', 'p199', 'p201', 'p202', 'p203', 'p204', 'p207', 'p208', 'p210', 'p212', 'p213', 'p214', 'p216', 'p218',
      'p219', 'p220', 'p221', 'p222', 'p223', 'p224', 'p228', 'p229', 'p232', 'p233', 'p236', 'p237', 'p238', 'p239',
      'p241', 'p242', 'p243', 'p244', 'p245', 'p246', 'p247', 'p248', 'p249', 'p250', 'p253', 'p254', 'p255', 'p256',
      'p257', 'p258', 'p263', 'p264', 'p265', 'p266', 'p267', 'p268', 'p269', 'p270', 'p272',
      'v3.0 coreweave_hgxh100_n192_ngc23.04_pytorch gpt3', 'v3.0 coreweave_hgxh100_n448_ngc23.04_pytorch gpt3',
      'v3.0 dgxh100_n64_nemo gpt3', 'v3.1 eos-dfw_n1344_ngc23.09_nemo gpt3', 'v4.0 eos-dfw_n1344_ngc24.04_nemo gpt3',
      'v4.0 eos-dfw_n1452_ngc24.04_nemo gpt3', 'v4.1 1536xBM.GPU.H100.8 gpt3', 'v4.1 3072xBM.GPU.H100.8 gpt3',
      'v4.1 b200_n8_preview_nemo gpt3', 'v4.1 eos_n32_ngc24.09_nemo gpt3', 'v4.1 eos_n64_ngc24.09_nemo gpt3',
      'v5.0 carina_ngpu1024_ngc25.04_nemo llama31_405b', 'v5.0 carina_ngpu1536_ngc25.04_nemo llama31_405b',
      'v5.0 carina_ngpu2496_ngc25.04_nemo llama31_405b', 'v5.0 eos-dfw_n1024_ngc25.01_nemo llama31_405b',
      'v5.0 eos-dfw_n320_ngc25.01_nemo llama31_405b', 'v5.0 nebius_soperator_8xH200_n64_ngc25.01_nemo llama31_405b',
      'v5.0 tyche_ngpu256_ngc25.04_nemo llama31_405b', 'v5.1 8xBM.GPU.B200.8 llama31_8b',
      'v5.1 b200_8x8_ngc25.09 llama31_8b', 'v5.1 hpf_n16 llama31_8b', 'v5.1 hpg.dgxb200x8.n32 llama31_405b',
      'v5.1 hpg.dgxb200x8.n32 llama31_8b', 'v5.1 hpg.dgxb200x8.n4 llama31_8b', 'v5.1 hpg.dgxb200x8.n8 llama31_8b',
      'v5.1 hsg_ngpu2560_ngc25.09_nemo llama31_405b', 'v5.1 hsg_ngpu5120_ngc25.09_nemo llama31_405b',
      'v5.1 nebius_b200_n4 llama31_8b', 'v5.1 theia_ngpu512_ngc25.09_nemo llama31_8b',
      'v5.1 theia_ngpu8_ngc25.09_nemo llama31_8b', 'v5.1 tyche_ngpu512_ngc25.09_nemo llama31_8b',
      'v5.1 tyche_ngpu72_ngc25.09_nemo llama31_8b', 'v5.1 tyche_ngpu8_ngc25.09_nemo llama31_8b',
    },
    sailor = {
      'clariden/GPT-NEO/N32/plan_config_N32_D16.json', 'clariden/GPT-NEO/N32/plan_config_N32_D8.json',
      'clariden/GPT-NEO/N64/plan_config_N64_D16.json', 'clariden/GPT-NEO/N8/plan_config_N8_D4.json',
      'clariden/OPT-350/N1/plan_config_N1_D1_M4_G1.json', 'clariden/OPT-350/N16/plan_config_N16_D16.json',
      'clariden/OPT-350/N16/plan_config_N16_D4.json', 'clariden/OPT-350/N16/plan_config_N16_D8.json',
      'clariden/OPT-350/N32/plan_config_N32_D16.json', 'clariden/OPT-350/N32/plan_config_N32_D32.json',
      'clariden/OPT-350/N4/plan_config_N4_D1.json', 'clariden/OPT-350/N4/plan_config_N4_D2.json',
      'clariden/OPT-350/N4/plan_config_N4_D4.json', 'clariden/OPT-350/N8/plan_config_N8_D2.json',
      'clariden/OPT-350/N8/plan_config_N8_D4.json', 'mit/N2/plan_config_N2_D1.json', 'mit/N4/plan_config_N4_D1.json',
      'mit/N4/plan_config_N4_D2.json', 'mit/N4/plan_config_N4_D4.json',
    },
    vtrain = {
      '256_GPUs_batch_1024_hidden_6144_40_layers', '64_GPUs_batch_512_hidden_3072_30_layers',
    },
  },
  runtimes = {
    ['composer-2023'] = {
      attention_share = 0.822, hopper_attention_share = 0.6407, launch_share = 32.69, memory_share = 1.117,
    },
    deepspeed = { compute_share = 0.7037, network_share = 0.1448 }, eager = { memory_share = 0.3942 },
    megatron = { routing_speed = 2.268, update_s = 0.0001187 }, ['megatron-2021'] = { launch_share = 3.409 },
    ['megatron-2024'] = { memory_share = 0.4798 },
    ['megatron-deepspeed-2022'] = { compute_share = 1.037, launch_share = 51.43, memory_share = 0.5438 },
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
        activation_share = 1.101, context_bytes = 4360000000, logits_share = 0.4571, network_share = 0.6698,
        slot_s = 0.001168, state_bytes = 20.07,
      },
      mixed = {
        activation_share = 1.119, context_bytes = 3036000000, logits_share = 0.5367, network_share = 0.9912,
        slot_s = 0.001915, state_bytes = 20.09,
      },
    },
    vtrain = { cluster = { network_share = 0.6579, shared_bandwidth = 0.4402 } },
  },
}
