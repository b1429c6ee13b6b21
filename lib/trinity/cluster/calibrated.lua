-- Calibrated constants (lib/trinity/cluster/constants.lua, runtimes.lua), as fits of
-- `trinity study fidelity SOURCE --fit --save FILE` write them. `values` are fitted, `assumed` are not: no row of that
-- kind separates them from the others. `like`: a kind has the shares of another. `mean_error`: of networks that
-- were left out of the fit; errors by group of rows as well, fitted and left out.
return {
  errors = {
    collectives = {
      a100x16_abci = {
        fitted = { mean = 0.1223, worst = 0.173 }, left_out = { mean = 0.1272, worst = 0.1965 }, rows = 6,
      },
      a100x16_p4de = {
        fitted = { mean = 0.2008, worst = 0.3753 }, left_out = { mean = 0.2154, worst = 0.4113 }, rows = 6,
      },
      a100x8_azure = {
        fitted = { mean = 0.1017, worst = 0.4869 }, left_out = { mean = 0.1069, worst = 0.5475 }, rows = 7,
      },
      a100x8_ml = {
        fitted = { mean = 0.0724, worst = 0.2607 }, left_out = { mean = 0.0758, worst = 0.2728 }, rows = 8,
      },
      a100x8_sendrecv = {
        fitted = { mean = 0.2713, worst = 0.5157 }, left_out = { mean = 0.2797, worst = 0.516 }, rows = 4,
      },
      b200_count = {
        fitted = { mean = 0.0189, worst = 0.054 }, left_out = { mean = 0.0422, worst = 0.0931 }, rows = 10,
      },
      b200x32_p6 = {
        fitted = { mean = 0.0979, worst = 0.1538 }, left_out = { mean = 0.0591, worst = 0.1722 }, rows = 8,
      },
      b200x8_p6 = {
        fitted = { mean = 0.0763, worst = 0.2128 }, left_out = { mean = 0.1008, worst = 0.2743 }, rows = 8,
      },
      gb200x1440_coreweave = {
        fitted = { mean = 0.17, worst = 0.4466 }, left_out = { mean = 0.4094, worst = 0.6057 }, rows = 6,
      },
      gb200x144_coreweave = {
        fitted = { mean = 0.0499, worst = 0.0746 }, left_out = { mean = 0.0595, worst = 0.104 }, rows = 6,
      },
      gb200x72_coreweave = {
        fitted = { mean = 0.0871, worst = 0.1245 }, left_out = { mean = 0.1526, worst = 0.199 }, rows = 5,
      },
      gh200x2_alps = {
        fitted = { mean = 0.1711, worst = 0.2565 }, left_out = { mean = 0.2315, worst = 0.314 }, rows = 4,
      },
      h100x16_a3high = {
        fitted = { mean = 0.0902, worst = 0.1381 }, left_out = { mean = 0.4051, worst = 0.7401 }, rows = 5,
      },
      h100x16_p5 = {
        fitted = { mean = 0.0908, worst = 0.4213 }, left_out = { mean = 0.1474, worst = 0.8098 }, rows = 8,
      },
      h100x16_xe9680 = {
        fitted = { mean = 0.0584, worst = 0.1349 }, left_out = { mean = 0.0793, worst = 0.1712 }, rows = 8,
      },
      h100x32_xe9680 = {
        fitted = { mean = 0.0504, worst = 0.2025 }, left_out = { mean = 0.0765, worst = 0.2552 }, rows = 8,
      },
      h100x64_coreweave = {
        fitted = { mean = 0.0295, worst = 0.0393 }, left_out = { mean = 0.0374, worst = 0.048 }, rows = 5,
      },
      h100x8_290 = {
        fitted = { mean = 0.0151, worst = 0.026 }, left_out = { mean = 0.0189, worst = 0.0228 }, rows = 3,
      },
      h100x8_azure = {
        fitted = { mean = 0.0323, worst = 0.0862 }, left_out = { mean = 0.0491, worst = 0.1421 }, rows = 7,
      },
      h100x8_p5 = {
        fitted = { mean = 0.0831, worst = 0.4487 }, left_out = { mean = 0.1093, worst = 0.6219 }, rows = 8,
      },
      h100x8_xe9680 = {
        fitted = { mean = 0.0075, worst = 0.0128 }, left_out = { mean = 0.01, worst = 0.0189 }, rows = 2,
      },
      h200_count = {
        fitted = { mean = 0.0088, worst = 0.0205 }, left_out = { mean = 0.0102, worst = 0.0266 }, rows = 10,
      },
      h200x8_ml = {
        fitted = { mean = 0.0215, worst = 0.1031 }, left_out = { mean = 0.0202, worst = 0.0746 }, rows = 12,
      },
      mi300x2 = {
        fitted = { mean = 0.0318, worst = 0.0318 }, left_out = { mean = 0.0384, worst = 0.0384 }, rows = 1,
      },
      mi300x8 = {
        fitted = { mean = 0.0787, worst = 0.4509 }, left_out = { mean = 0.2517, worst = 1.312 }, rows = 7,
      },
      mi300x8_ml = {
        fitted = { mean = 0.0192, worst = 0.0192 }, left_out = { mean = 0.0242, worst = 0.0242 }, rows = 1,
      },
      rtx2080ti_x2 = {
        fitted = { mean = 0.1786, worst = 0.3084 }, left_out = { mean = 0.2168, worst = 0.4267 }, rows = 14,
      },
      v100_cubemesh8 = {
        fitted = { mean = 0.0411, worst = 0.0741 }, left_out = { mean = 0.1072, worst = 0.1538 }, rows = 6,
      },
      vtrain_a100 = {
        fitted = { mean = 0.0849, worst = 0.4228 }, left_out = { mean = 0.1297, worst = 0.5912 }, rows = 77,
      },
    },
    published = {
      ['A100-80GB, dense'] = {
        fitted = { mean = 0.05088, median = 0.0414, worst = 0.2653 },
        left_out = { mean = 0.06401, median = 0.04712, worst = 0.3656 }, rows = 27,
      },
      ['B200, dense'] = {
        fitted = { mean = 0.08045, median = 0.06055, worst = 0.2302 },
        left_out = { mean = 0.09245, median = 0.05989, worst = 0.2912 }, rows = 8,
      },
      ['B200, mixtures of experts'] = {
        fitted = { mean = 0.01507, median = 0.01647, worst = 0.02271 },
        left_out = { mean = 0.05689, median = 0.03246, worst = 0.1776 }, rows = 5,
      },
      ['B300, mixtures of experts'] = {
        fitted = { mean = 0.03432, median = 0.03432, worst = 0.04343 },
        left_out = { mean = 0.07799, median = 0.07799, worst = 0.08748 }, rows = 2,
      },
      ['GB200, dense'] = {
        fitted = { mean = 0.04338, median = 0.03408, worst = 0.1121 },
        left_out = { mean = 0.06653, median = 0.05059, worst = 0.2021 }, rows = 30,
      },
      ['GB200, mixtures of experts'] = {
        fitted = { mean = 0.02321, median = 0.01254, worst = 0.06931 },
        left_out = { mean = 0.04377, median = 0.0472, worst = 0.09519 }, rows = 22,
      },
      ['GB300, dense'] = {
        fitted = { mean = 0.02833, median = 0.02091, worst = 0.07086 },
        left_out = { mean = 0.043, median = 0.03552, worst = 0.1114 }, rows = 19,
      },
      ['GB300, mixtures of experts'] = {
        fitted = { mean = 0.0477, median = 0.04906, worst = 0.08824 },
        left_out = { mean = 0.0721, median = 0.07951, worst = 0.1329 }, rows = 26,
      },
      ['H100-80GB, dense'] = {
        fitted = { mean = 0.05989, median = 0.03919, worst = 0.413 },
        left_out = { mean = 0.07697, median = 0.04771, worst = 0.4337 }, rows = 47,
      },
      ['H100-80GB, mixtures of experts'] = {
        fitted = { mean = 0.0291, median = 0.01919, worst = 0.06445 },
        left_out = { mean = 0.08812, median = 0.08108, worst = 0.1235 }, rows = 5,
      },
      ['H100-96GB, dense'] = {
        fitted = { mean = 0.03965, median = 0.03081, worst = 0.1489 },
        left_out = { mean = 0.06103, median = 0.04076, worst = 0.2012 }, rows = 24,
      },
      ['H200-141GB, dense'] = {
        fitted = { mean = 0.1215, median = 0.1215, worst = 0.2151 },
        left_out = { mean = 0.1367, median = 0.1367, worst = 0.2377 }, rows = 2,
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
      ['hidden 3072, 30 layers'] = {
        fitted = { mean = 0.05226, median = 0.02304, worst = 0.4959 },
        left_out = { mean = 0.06459, median = 0.03084, worst = 0.5044 }, rows = 26,
      },
      ['hidden 6144, 40 layers'] = {
        fitted = { mean = 0.03258, median = 0.01995, worst = 0.09924 },
        left_out = { mean = 0.03363, median = 0.0227, worst = 0.09821 }, rows = 15,
      },
    },
  },
  kinds = {
    a100 = { like = 'a100_80gb' },
    a100_80gb = {
      assumed = { attention = 0.8, half_width = 60, launch_s = 5e-06, network_share = 1 }, mean_error = 0.05753,
      rows = 68, values = { compute_efficiency = 0.7345, inside_share = 1.24, memory_efficiency = 0.6932 },
    },
    b200 = {
      assumed = {
        compute_efficiency = 0.673, float8 = 'mxfp8', half_width = 60, nvfp4 = 0.4164, nvfp4_rate = 2,
      },
      mean_error = 0.07867, rows = 15,
      values = {
        expert_dispatch_s = 8.232e-05, fp8 = 0.5267, layer_dispatch_s = 0.0001865, mxfp8 = 0.5855,
        network_share = 2.434, routing = 0.08432,
      },
    },
    b300 = { assumed = { nvfp4_rate = 3 }, like = 'b200' },
    gb200 = {
      assumed = { float8 = 'mxfp8', half_width = 60, nvfp4_rate = 2 }, mean_error = 0.0569, rows = 52,
      values = {
        compute_efficiency = 0.6806, expert_dispatch_s = 0.0001076, fp8 = 0.4836, inside_share = 1.791,
        mxfp8 = 0.4919, network_share = 2.854, nvfp4 = 0.3841, routing = 0.122,
      },
    },
    gb300 = {
      assumed = { float8 = 'mxfp8', half_width = 60, nvfp4_rate = 3 }, mean_error = 0.05981, rows = 45,
      values = {
        compute_efficiency = 0.7656, expert_dispatch_s = 9.482e-05, fp8 = 0.6109, inside_share = 2.108,
        mxfp8 = 0.6144, network_share = 1.803, nvfp4 = 0.4143, routing = 0.1143,
      },
    },
    h100 = {
      assumed = { half_width = 60 }, mean_error = 0.08022, rows = 54,
      values = {
        attention = 0.6565, compute_efficiency = 0.6079, expert_dispatch_s = 9.5e-05, fp8 = 0.5814,
        inside_share = 1.961, memory_efficiency = 0.7181, network_share = 1.883,
      },
    },
    h100_96gb = {
      assumed = { half_width = 60, inside_share = 1.544, network_share = 1.461 }, mean_error = 0.06103, rows = 24,
      values = {
        attention = 0.6769, compute_efficiency = 0.4684, fp8 = 0.4041, memory_efficiency = 0.6366,
      },
    },
    h200 = { like = 'h100' },
  },
  rows = {
    collectives = {
      'a100x16_abci', 'a100x16_p4de', 'a100x8_azure', 'a100x8_ml', 'a100x8_sendrecv', 'b200_count', 'b200x32_p6',
      'b200x8_p6', 'gb200x1440_coreweave', 'gb200x144_coreweave', 'gb200x72_coreweave', 'gh200x2_alps',
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
      attention_share = 0.8116, hopper_attention_share = 0.6771, launch_share = 27.39, memory_share = 1.052,
    },
    deepspeed = { network_share = 0.1237 }, eager = { memory_share = 0.4382 },
    megatron = { routing_speed = 2.44, update_s = 0.0001049 }, ['megatron-2021'] = { launch_share = 4.545 },
    ['megatron-2024'] = { memory_share = 0.4449 },
    ['megatron-deepspeed-2022'] = { compute_share = 1.035, launch_share = 52.86, memory_share = 0.5298 },
    torchtitan = { async_share = 1.338, inside_share = 0.4448, rowwise_cast_share = 0.03602 },
  },
  sources = {
    collectives = {
      wires = {
        call_s = 9.754e-06, copy_share = 0.3102, efa_s = 0.0001069, host_share = 0.61, infiniband_s = 2.376e-05,
        low_latency_bandwidth = 0.512, low_latency_hop = 0.7, multicast4 = 0.8005, multicast5 = 0.7106,
        multicast_s = 2.959e-05, network_share = 1, nvlink2_s = 3.275e-06, nvlink2_share = 1, nvlink3_s = 4.425e-06,
        nvlink3_share = 0.8858, nvlink4_s = 9.321e-07, nvlink4_share = 0.88, nvlink5_s = 1.93e-06,
        nvlink5_share = 0.7782, pcie_s = 4.526e-06, pipelining = 0.1718, rails = 8, tcp_s = 0.0004615,
        xgmi_s = 1.219e-06, xgmi_share = 0.7532,
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
    vtrain = { cluster = { network_share = 0.617, shared_bandwidth = 0.4672 } },
  },
}
