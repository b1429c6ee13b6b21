-- Calibrated constants (lib/trinity/cluster/constants.lua, runtimes.lua), as fits of
-- `trinity fidelity SOURCE --fit --save FILE` write them. `values` are fitted, `assumed` are not: no row of that
-- kind separates them from the others. `like`: a kind has the shares of another. `mean_error`: of networks that
-- were left out of the fit; errors, by group of rows: rows, fitted mean, median, worst, left-out mean, median,
-- worst.
return {
  kinds = {
    a100 = { like = 'a100_80gb',
    },
    a100_80gb = { rows = 68, mean_error = 0.0566,
      values = {
        compute_efficiency = 0.7328, inside_share = 1.247, memory_efficiency = 0.6948,
      },
      assumed = {
        attention = 0.8, half_width = 60, launch_s = 5e-06, network_share = 1,
      },
    },
    b200 = { rows = 7, mean_error = 0.0631,
      values = {
        expert_dispatch_s = 8.242e-05, layer_dispatch_s = 0.0001861, mxfp8 = 0.5857, routing = 0.08925,
      },
      assumed = {
        compute_efficiency = 0.673, float8 = 'mxfp8', fp8 = 0.5234, half_width = 60, nvfp4 = 0.4164, nvfp4_rate = 2,
      },
    },
    b300 = { like = 'b200',
      assumed = {
        nvfp4_rate = 3,
      },
    },
    gb200 = { rows = 43, mean_error = 0.0493,
      values = {
        compute_efficiency = 0.6675, expert_dispatch_s = 0.0001075, fp8 = 0.5157, inside_share = 1.736,
        mxfp8 = 0.4888, nvfp4 = 0.41, routing = 0.1228,
      },
      assumed = {
        float8 = 'mxfp8', half_width = 60, nvfp4_rate = 2,
      },
    },
    gb300 = { rows = 43, mean_error = 0.0614,
      values = {
        compute_efficiency = 0.7689, expert_dispatch_s = 9.467e-05, fp8 = 0.6092, inside_share = 2.16,
        mxfp8 = 0.6125, nvfp4 = 0.4238, routing = 0.1096,
      },
      assumed = {
        float8 = 'mxfp8', half_width = 60, nvfp4_rate = 3,
      },
    },
    h100 = { rows = 40, mean_error = 0.0671,
      values = {
        attention = 0.7343, compute_efficiency = 0.6289, expert_dispatch_s = 9.5e-05, fp8 = 0.6191,
        inside_share = 1.544, memory_efficiency = 0.6345, network_share = 1.461,
      },
      assumed = {
        half_width = 60,
      },
    },
    h100_96gb = { rows = 24, mean_error = 0.0610,
      values = {
        attention = 0.6759, compute_efficiency = 0.4705, fp8 = 0.3983, memory_efficiency = 0.629,
      },
      assumed = {
        half_width = 60, inside_share = 1.544, network_share = 1.461,
      },
    },
    h200 = { like = 'h100',
    },
  },
  runtimes = {
    ['composer-2023'] = {
      attention_share = 0.7855, hopper_attention_share = 0.5798, launch_share = 26.69, memory_share = 0.9556,
    },
    deepspeed = {
      network_share = 0.1237,
    },
    eager = {
      memory_share = 0.4187,
    },
    megatron = {
      routing_speed = 2.7,
    },
    ['megatron-2021'] = {
      launch_share = 4.691,
    },
    ['megatron-2024'] = {
      memory_share = 0.5042,
    },
    ['megatron-deepspeed-2022'] = {
      compute_share = 1.038, launch_share = 53.11, memory_share = 0.5291,
    },
    torchtitan = {
      async_share = 1.349, inside_share = 0.4576, rowwise_cast_share = 0.037,
    },
  },
  sources = {
    collectives = {
      wires = {
        call_s = 8.279e-06, copy_share = 0.4473, efa_s = 9.444e-05, host_share = 0.6266, infiniband_s = 1.997e-05,
        low_latency_bandwidth = 0.3315, low_latency_hop = 0.7, multicast4 = 0.802, multicast5 = 0.7351,
        multicast_s = 4.197e-05, network_share = 0.9843, nvlink2_s = 3.811e-06, nvlink2_share = 0.9443,
        nvlink3_s = 4.441e-06, nvlink3_share = 0.8141, nvlink4_s = 1.863e-06, nvlink4_share = 0.8595,
        nvlink5_s = 3.2e-06, nvlink5_share = 0.8014, pcie_s = 5.647e-06, pipelining = 0.06081, rack_share = 0.9804,
        rails = 8.31, tcp_s = 0.0003895, xgmi_s = 1.617e-06, xgmi_share = 0.7385,
      },
    },
    sailor = {
      gh200 = {
        activation_share = 1.101, context_bytes = 4.36e+09, logits_share = 0.4571, network_share = 0.6698,
        slot_s = 0.001168, state_bytes = 20.07,
      },
      mixed = {
        activation_share = 1.119, context_bytes = 3.036e+09, logits_share = 0.5367, network_share = 0.9912,
        slot_s = 0.001915, state_bytes = 20.09,
      },
    },
    vtrain = {
      cluster = {
        network_share = 0.6205, shared_bandwidth = 0.4686,
      },
    },
  },
  rows = {
    collectives = [[
      v100_cubemesh8 a100x8_ml a100x8_azure h100x8_azure a100x8_sendrecv a100x16_p4de a100x16_abci h100x8_p5
      h100x8_290 h100x16_xe9680 h100x8_xe9680 h100x32_xe9680 h100x16_p5 h100x64_coreweave h100x16_a3high h200x8_ml
      h200_count b200x8_p6 b200x32_p6 b200_count gb200x72_coreweave gb200x144_coreweave gb200x1440_coreweave
      gh200x2_alps mi300x8 mi300x2 mi300x8_ml rtx2080ti_x2 vtrain_a100
    ]],
    published = [[
      p003 p004 p005 p009 p011 p012 p015 p017 p018 p020 p021 p022 p023 p024 p025 p026 p028 p029 p030 p034 p035 p036
      p040 p041 p043 p044 p045 p047 p048 p050 p051 p052 p054 p055 p056 p058 p060 p061 p062 p064 p067 p068 p069 p070
      p071 p073 p076 p078 p079 p080 p081 p082 p083 p084 p085 p086 p087 p088 p089 p090 p091 p093 p095 p096 p097 p098
      p099 p100 p101 p103 p104 p107 p108 p109 p110 p111 p113 p115 p117 p119 p120 p121 p122 p123 p124 p127 p128 p130
      p132 p133 p136 p137 p139 p140 p141 p143 p145 p146 p147 p149 p150 p151 p154 p155 p157 p159 p160 p162 p165 p166
      p167 p169 p171 p172 p173 p175 p176 p177 p180 p181 p183 p185 p186 p187 p188 p189 p191 p192 p193 p195 p197 p198
      p199 p201 p202 p203 p204 p207 p208 p210 p212 p213 p214 p216 p218 p219 p220 p221 p222 p223 p224 p228 p229 p232
      p233 p236 p237 p238 p239 p241 p242 p243 p244 p245 p246 p247 p248 p249 p250 p253 p254 p255 p256 p257 p258 p263
      p264 p265 p266 p267 p268 p269 p270 p272
    ]],
    sailor = [[
      clariden/GPT-NEO/N32/plan_config_N32_D16.json clariden/GPT-NEO/N32/plan_config_N32_D8.json
      clariden/GPT-NEO/N64/plan_config_N64_D16.json clariden/GPT-NEO/N8/plan_config_N8_D4.json
      clariden/OPT-350/N1/plan_config_N1_D1_M4_G1.json clariden/OPT-350/N16/plan_config_N16_D16.json
      clariden/OPT-350/N16/plan_config_N16_D4.json clariden/OPT-350/N16/plan_config_N16_D8.json
      clariden/OPT-350/N32/plan_config_N32_D16.json clariden/OPT-350/N32/plan_config_N32_D32.json
      clariden/OPT-350/N4/plan_config_N4_D1.json clariden/OPT-350/N4/plan_config_N4_D2.json
      clariden/OPT-350/N4/plan_config_N4_D4.json clariden/OPT-350/N8/plan_config_N8_D2.json
      clariden/OPT-350/N8/plan_config_N8_D4.json mit/N2/plan_config_N2_D1.json mit/N4/plan_config_N4_D1.json
      mit/N4/plan_config_N4_D2.json mit/N4/plan_config_N4_D4.json
    ]],
    vtrain = [[
      256_GPUs_batch_1024_hidden_6144_40_layers 64_GPUs_batch_512_hidden_3072_30_layers
    ]],
  },
  errors = {
    collectives = {
      ['a100x16_abci'] = '6, 0.1223 - 0.1730, 0.1272 - 0.1965',
      ['a100x16_p4de'] = '6, 0.2008 - 0.3753, 0.2154 - 0.4113',
      ['a100x8_azure'] = '7, 0.1017 - 0.4869, 0.1069 - 0.5475',
      ['a100x8_ml'] = '8, 0.0724 - 0.2607, 0.0758 - 0.2728',
      ['a100x8_sendrecv'] = '4, 0.2713 - 0.5157, 0.2797 - 0.5160',
      ['b200_count'] = '10, 0.0189 - 0.0540, 0.0422 - 0.0931',
      ['b200x32_p6'] = '8, 0.0979 - 0.1538, 0.0591 - 0.1722',
      ['b200x8_p6'] = '8, 0.0763 - 0.2128, 0.1008 - 0.2743',
      ['gb200x1440_coreweave'] = '6, 0.1700 - 0.4466, 0.4094 - 0.6057',
      ['gb200x144_coreweave'] = '6, 0.0499 - 0.0746, 0.0595 - 0.1040',
      ['gb200x72_coreweave'] = '5, 0.0871 - 0.1245, 0.1526 - 0.1990',
      ['gh200x2_alps'] = '4, 0.1711 - 0.2565, 0.2315 - 0.3140',
      ['h100x16_a3high'] = '5, 0.0902 - 0.1381, 0.4051 - 0.7401',
      ['h100x16_p5'] = '8, 0.0908 - 0.4213, 0.1474 - 0.8098',
      ['h100x16_xe9680'] = '8, 0.0584 - 0.1349, 0.0793 - 0.1712',
      ['h100x32_xe9680'] = '8, 0.0504 - 0.2025, 0.0765 - 0.2552',
      ['h100x64_coreweave'] = '5, 0.0295 - 0.0393, 0.0374 - 0.0480',
      ['h100x8_290'] = '3, 0.0151 - 0.0260, 0.0189 - 0.0228',
      ['h100x8_azure'] = '7, 0.0323 - 0.0862, 0.0491 - 0.1421',
      ['h100x8_p5'] = '8, 0.0831 - 0.4487, 0.1093 - 0.6219',
      ['h100x8_xe9680'] = '2, 0.0075 - 0.0128, 0.0100 - 0.0189',
      ['h200_count'] = '10, 0.0088 - 0.0205, 0.0102 - 0.0266',
      ['h200x8_ml'] = '12, 0.0215 - 0.1031, 0.0202 - 0.0746',
      ['mi300x2'] = '1, 0.0318 - 0.0318, 0.0384 - 0.0384',
      ['mi300x8'] = '7, 0.0787 - 0.4509, 0.2517 - 1.3123',
      ['mi300x8_ml'] = '1, 0.0192 - 0.0192, 0.0242 - 0.0242',
      ['rtx2080ti_x2'] = '14, 0.1786 - 0.3084, 0.2168 - 0.4267',
      ['v100_cubemesh8'] = '6, 0.0411 - 0.0741, 0.1072 - 0.1538',
      ['vtrain_a100'] = '77, 0.0849 - 0.4228, 0.1297 - 0.5912',
    },
    published = {
      ['A100-80GB, dense'] = '27, 0.0490 0.0256 0.2652, 0.0600 0.0271 0.3560',
      ['B200, mixtures of experts'] = '5, 0.0298 0.0309 0.0480, 0.0580 0.0310 0.1783',
      ['B300, mixtures of experts'] = '2, 0.0346 0.0346 0.0437, 0.0760 0.0760 0.0855',
      ['GB200, dense'] = '21, 0.0300 0.0262 0.0856, 0.0519 0.0512 0.1174',
      ['GB200, mixtures of experts'] = '22, 0.0251 0.0126 0.0985, 0.0469 0.0483 0.0978',
      ['GB300, dense'] = '17, 0.0275 0.0267 0.0733, 0.0436 0.0335 0.1066',
      ['GB300, mixtures of experts'] = '26, 0.0470 0.0504 0.0865, 0.0731 0.0792 0.1312',
      ['H100-80GB, dense'] = '34, 0.0418 0.0339 0.1919, 0.0605 0.0516 0.2293',
      ['H100-80GB, mixtures of experts'] = '5, 0.1165 0.1097 0.1508, 0.0760 0.0689 0.1119',
      ['H100-96GB, dense'] = '24, 0.0396 0.0283 0.1412, 0.0610 0.0408 0.2008',
      ['H200-141GB, dense'] = '1, 0.2701 0.2701 0.2701, 0.2497 0.2497 0.2497',
    },
    sailor = {
      ['GPT-Neo-2.7, GH200'] = '4, 0.0294 0.0306 0.0392, 0.0311 0.0332 0.0344',
      ['GPT-Neo-2.7, GH200: memory'] = '4, 0.0085 0.0058 0.0220, 0.0100 0.0067 0.0240',
      ['OPT-350, GH200'] = '11, 0.0467 0.0247 0.1293, 0.0526 0.0462 0.1318',
      ['OPT-350, GH200: memory'] = '11, 0.0087 0.0040 0.0298, 0.0109 0.0047 0.0320',
      ['OPT-350, mixed nodes'] = '4, 0.0522 0.0525 0.1016, 0.0494 0.0491 0.0993',
      ['OPT-350, mixed nodes: memory'] = '3, 0.0594 0.0297 0.1353, 0.1106 0.1140 0.1485',
    },
    vtrain = {
      ['hidden 3072, 30 layers'] = '26, 0.0525 0.0235 0.4962, 0.0640 0.0302 0.5043',
      ['hidden 6144, 40 layers'] = '15, 0.0331 0.0188 0.0990, 0.0341 0.0220 0.0980',
    },
  },
}
