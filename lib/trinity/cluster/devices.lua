-- trinity.devices: kinds of devices by name, in the form that cluster descriptions take under
-- `device_types`. A description that names one of these need not define it.
--
-- Every access makes a new table, so changing one changes nothing else:
--   local half = devices.with(devices.p100, { memory_bytes = 8 * 2 ^ 30 })
--
-- Peak rates are the published dense ones (multiply and add count two), without structured sparsity:
-- * float32 is IEEE arithmetic on the ordinary cores. The TF32 mode of Ampere and Hopper (A100 156,
--   H100 and H200 495 TFLOP/s) is faster and less exact; PyTorch has it off for matmuls since
--   version 1.12, and on for convolutions (below). For graphs whose matmuls run in it, too:
--   devices.with(devices.a100, { operators = { ['Gemm:float32'] = { compute_efficiency = 0.5 * 156 / 19.5 } } }).
-- * float16 and bfloat16 are Tensor Core rates with float32 accumulation, where there are any. A dtype
--   that is left out is simulated at the float32 rate.
-- * float64 is the Tensor Cores' from the A100 on, else the ordinary cores'.
-- Bandwidths are the data sheets'. memory_bytes is the name's GB as 2^30 bytes; the few percent that
-- the driver shows less are inside reserved_memory_bytes. Efficiencies, launch_s and reserved_memory_bytes (but
-- those with a source below) are not published: starting values, to be fitted to measurements.

local check = require 'trinity.base.check'
local checked = require 'trinity.cluster.device_fields'
local suggestions = require 'trinity.cluster.suggestions'
local util = require 'trinity.base.util'

local gib = 2 ^ 30
local presets = {}

--- Adds a kind of GPU. launch_s: a kernel launch costs the host about 5 us.
local function gpu(name, memory_gib, reserved_gib, memory_bandwidth_bytes_per_s, peak_flops_per_s, operators)
  presets[name] = {
    peak_flops_per_s = peak_flops_per_s,
    memory_bandwidth_bytes_per_s = memory_bandwidth_bytes_per_s,
    memory_bytes = memory_gib * gib,
    reserved_memory_bytes = reserved_gib * gib,
    launch_s = 5e-6,
    compute_efficiency = 0.5,
    memory_efficiency = 0.75,
    operators = operators,
  }
end

--- Efficiencies of convolutions: kernels other than 3 x 3; 3 x 3 kernels with stride 1 (above 1 where they need
--- fewer multiplications than the FLOP count assumes: Lavin and Gray 2016); depthwise kernels.
local function convolutions(any, of_3x3, depthwise)
  return { Conv = { compute_efficiency = any }, Conv3x3 = { compute_efficiency = of_3x3 },
    DepthwiseConv = { compute_efficiency = depthwise } }
end

-- Fitted to what TensorFlow's own benchmarks reached (tensorflow/docs, site/en/r1/guide/performance/
-- benchmarks.md, May 2017, cuDNN 5.1, one GPU, synthetic data): images/s of InceptionV3, ResNet-50 and
-- VGG-16, P100 SXM2 142, 219, 154, K80 30.5, 51.9, 35.4. tests/lua/graph/costs_spec.lua holds the model to them.
-- Depthwise: tensorflow/tensorflow issue 12132, comment of 2018-03-29: TensorFlow 1.6 takes 31 ms on a GTX
-- 1080 Ti for 7.55 GFLOP (batch 64, 32 channels times 8, 32 x 32 pixels, 15 x 15 kernels).
local pascal_depthwise = 7.55e9 / 31e-3 / 11.34e12
local pascal = convolutions(0.45, 1.5, pascal_depthwise)
local kepler = convolutions(0.24, 0.75)

-- Convolutions from Volta on, in float32 (on ordinary cores on Volta; by TF32 on Tensor Cores since Ampere, PyTorch's
-- default; a share of the float32 peak, which may be above 1) and in 16 bits. Fitted to images/s of ResNet-50 v1.5 in
-- training on one GPU, NVIDIA's own code in PyTorch (NVIDIA/DeepLearningExamples at 3bbe228d, README of ResNet50 v1.5,
-- PyTorch, container 21.03): V100 16 GB 367 in float32, 1,200 in mixed precision; A100 80 GB 938 by TF32, 2,470 mixed.
-- H100: its speed-up over the A100 80 GB in one set of runs, times these: 1,895 / 1,066 and 2,787 / 1,582 images/s
-- (lambdal/deeplearning-benchmark at 0551cb70, pytorch-train-throughput-fp32.csv and -fp16.csv, SXM, without
-- channels_last). 3 x 3 kernels in float32 on Volta: the ratio of the Pascals to other kernels. Blackwell: Hopper's
-- shares of the TF32 peak (1,125 TFLOP/s, of a superchip 1,250) and of the 16-bit peak, without a run.
-- tests/lua/graph/costs_spec.lua holds the model to these.
local function tensor_convolutions(float32, half)
  return { ['Conv:float32'] = { compute_efficiency = float32 }, ['Conv:float16'] = { compute_efficiency = half },
    ['Conv:bfloat16'] = { compute_efficiency = half } }
end
local volta = { ['Conv:float32'] = { compute_efficiency = 0.61 }, ['Conv3x3:float32'] = { compute_efficiency = 2.04 },
  ['Conv:float16'] = { compute_efficiency = 0.5 } }
local ampere_convolutions = tensor_convolutions(1.81, 0.377)
local hopper_convolutions = tensor_convolutions(0.92, 0.202)
local hopper_tf32_share = 0.92 * 67 / 494.7
local blackwell_convolutions = tensor_convolutions(hopper_tf32_share * 1125 / 80, 0.202)

-- Reserved from Turing on is what driver, libraries and workspaces hold by `trinity study fidelity sailor`, without the
-- context that a runtime holds (runtimes.lua, context_bytes): mixed.context_bytes before Hopper, fitted to memory that
-- Sailor's authors measured on RTX 3090, RTX 2080 Ti and Titan RTX under DeepSpeed, then gh200.context_bytes.
local ampere_gib, hopper_gib = (3.04e9 - 988e6) / gib, (4.36e9 - 988e6) / gib
local superchip_convolutions = tensor_convolutions(hopper_tf32_share * 1250 / 80, 0.202)

-- NVIDIA Tesla K80, one of the board's two GPUs: half of 8.73 (float32) and 2.91 TFLOP/s (float64) at
-- the boost clock, of 480 GB/s and 24 GB. Source: Tesla K80 board specification BD-07317-001.
gpu('k80', 12, 0.5, 240e9, { float32 = 4.365e12, float64 = 1.455e12 }, kepler)

-- NVIDIA Tesla P100 for PCIe. Source: data sheet "NVIDIA Tesla P100 PCIe".
gpu('p100', 16, 0.5, 732e9, { float32 = 9.3e12, float16 = 18.7e12, float64 = 4.7e12 }, pascal)
gpu('p100_12gb', 12, 0.5, 549e9, { float32 = 9.3e12, float16 = 18.7e12, float64 = 4.7e12 }, pascal)
-- With NVLink. Source: whitepaper "NVIDIA Tesla P100".
gpu('p100_sxm2', 16, 0.5, 732e9, { float32 = 10.6e12, float16 = 21.2e12, float64 = 5.3e12 }, pascal)

-- NVIDIA GeForce GTX 1080 Ti: 3,584 cores at the boost clock of 1,582 MHz; float64 at 1/32. Its float16
-- runs at 1/64, so libraries compute in float32. Source: NVIDIA's data sheet of the board, GP102.
gpu('gtx1080ti', 11, 0.5, 484e9, { float32 = 11.34e12, float64 = 0.354e12 },
  { DepthwiseConv = { compute_efficiency = pascal_depthwise } })

-- NVIDIA Tesla V100. Source: data sheet "NVIDIA V100 Tensor Core GPU" (SXM2 and PCIe columns).
gpu('v100', 16, 0.5, 900e9, { float32 = 15.7e12, float16 = 125e12, float64 = 7.8e12 }, volta)
gpu('v100_32gb', 32, 0.5, 900e9, { float32 = 15.7e12, float16 = 125e12, float64 = 7.8e12 }, volta)
gpu('v100_pcie', 16, 0.5, 900e9, { float32 = 14e12, float16 = 112e12, float64 = 7e12 }, volta)
gpu('v100_pcie_32gb', 32, 0.5, 900e9, { float32 = 14e12, float16 = 112e12, float64 = 7e12 }, volta)

-- NVIDIA T4 (float64 at 1/32), GeForce RTX 2080 Ti at its reference clock, Titan RTX. Source: data sheet
-- "NVIDIA T4"; whitepaper "NVIDIA Turing GPU Architecture", tables of the RTX 2080 Ti and (130.5 TFLOP/s) the Titan
-- RTX.
gpu('t4', 16, 0.5, 320e9, { float32 = 8.1e12, float16 = 65e12, float64 = 0.254e12 })
gpu('rtx2080ti', 11, ampere_gib, 616e9, { float32 = 13.4e12, float16 = 53.8e12, float64 = 0.42e12 })

gpu('titan_rtx', 24, ampere_gib, 672e9, { float32 = 16.3e12, float16 = 130.5e12, float64 = 0.51e12 })

-- NVIDIA GeForce RTX 3090. Source: whitepaper "NVIDIA Ampere GA102 GPU Architecture", appendix A.
gpu('rtx3090', 24, ampere_gib, 936e9, { float32 = 35.6e12, float16 = 71e12, bfloat16 = 71e12, float64 = 0.556e12 })

-- NVIDIA GeForce RTX 4090; float16 and float8 with float32 sums. Source: whitepaper "NVIDIA Ada GPU Architecture",
-- appendix A.
gpu('rtx4090', 24, 1, 1008e9, { float32 = 82.6e12, float16 = 165.2e12, bfloat16 = 165.2e12, float8 = 330.3e12,
  float64 = 1.29e12 })

-- NVIDIA A40 and L40S. Source: data sheets "NVIDIA A40" and "NVIDIA L40S".
gpu('a40', 48, 1, 696e9, { float32 = 37.4e12, float16 = 149.7e12, bfloat16 = 149.7e12, float64 = 0.585e12 })
-- NVIDIA A10 and L4. Source: data sheets "NVIDIA A10 Tensor Core GPU", "NVIDIA L4 Tensor Core GPU".
gpu('a10', 24, 1, 600e9, { float32 = 31.2e12, float16 = 125e12, bfloat16 = 125e12, float64 = 0.976e12 })
gpu('l4', 24, 1, 300e9, { float32 = 30.3e12, float16 = 121e12, bfloat16 = 121e12, float8 = 242.5e12,
  float64 = 0.473e12 })
gpu('l40s', 48, 1, 864e9, { float32 = 91.6e12, float16 = 362e12, bfloat16 = 362e12, float8 = 733e12,
  float64 = 1.43e12 })

-- NVIDIA A100, SXM4 and PCIe. Source: data sheet "NVIDIA A100 Tensor Core GPU".
gpu('a100', 40, ampere_gib, 1555e9, { float32 = 19.5e12, float16 = 312e12, bfloat16 = 312e12, float64 = 19.5e12 },
  ampere_convolutions)
gpu('a100_80gb', 80, ampere_gib, 2039e9, { float32 = 19.5e12, float16 = 312e12, bfloat16 = 312e12, float64 = 19.5e12 },
  ampere_convolutions)
-- NVIDIA A800, an A100 with 8 of its 12 NVLinks and without Tensor Cores for float64.
gpu('a800_80gb', 80, ampere_gib, 2039e9, { float32 = 19.5e12, float16 = 312e12, bfloat16 = 312e12, float64 = 9.7e12 },
  ampere_convolutions)

local ampere = { float32 = 19.5e12, float16 = 312e12, bfloat16 = 312e12, float64 = 19.5e12 }
gpu('a100_pcie', 40, ampere_gib, 1555e9, ampere, ampere_convolutions)
gpu('a100_pcie_80gb', 80, ampere_gib, 1935e9, ampere, ampere_convolutions)

-- NVIDIA H100, H200, GH200 (of which the GPU); the sheets print rates with sparsity, which are twice these. Source:
-- data sheets "NVIDIA H100 Tensor Core GPU" (SXM5 and PCIe), "NVIDIA H200 Tensor Core GPU", "NVIDIA GH200 Grace Hopper
-- Superchip".
local hopper = { float32 = 67e12, float16 = 989.4e12, bfloat16 = 989.4e12, float8 = 1978.9e12, float64 = 67e12 }
gpu('h100', 80, hopper_gib, 3350e9, hopper, hopper_convolutions)
-- H800, an H100 with 8 of its 18 NVLinks; H20, with 78 of its 132 multiprocessors and less of their Tensor Cores; both
-- almost without float64.
gpu('h800', 80, hopper_gib, 3350e9, { float32 = 67e12, float16 = 989.4e12, bfloat16 = 989.4e12, float8 = 1978.9e12,
  float64 = 1e12 }, hopper_convolutions)
gpu('h20', 96, hopper_gib, 4000e9, { float32 = 44e12, float16 = 148e12, bfloat16 = 148e12, float8 = 296e12,
  float64 = 1e12 })
gpu('h200', 141, hopper_gib, 4800e9, hopper, hopper_convolutions)
gpu('gh200', 96, hopper_gib, 4000e9, hopper, hopper_convolutions)
gpu('gh200_141gb', 141, hopper_gib, 4800e9, hopper, hopper_convolutions)
gpu('h100_pcie', 80, hopper_gib, 2000e9, { float32 = 51e12, float16 = 756e12, bfloat16 = 756e12, float8 = 1513e12,
  float64 = 51e12 }, hopper_convolutions)
-- The H100 of Meta's Grand Teton: 96 GB of HBM2e, 500 W of 700 W. Source of memory, bandwidth and power: torchtitan,
-- its benchmark of Llama 3 on H100, December 2024, which says that its peak is not known; the rates are upper bounds.
gpu('h100_96gb', 96, hopper_gib, 2400e9, hopper, hopper_convolutions)

-- NVIDIA B200, B300, and one GPU of the superchips GB200 and GB300. Source: data sheets "NVIDIA DGX B200", "NVIDIA
-- GB200 NVL72", "NVIDIA GB300 NVL72"; B300: 75 or 80 TFLOP/s float32 are printed, here the less. FP4 has no dtype here.
gpu('b200', 180, hopper_gib, 8000e9, { float32 = 80e12, float16 = 2250e12, bfloat16 = 2250e12, float8 = 4500e12,
  float64 = 37e12 }, blackwell_convolutions)
gpu('b300', 288, hopper_gib, 8000e9, { float32 = 75e12, float16 = 2250e12, bfloat16 = 2250e12, float8 = 4500e12,
  float64 = 1.25e12 }, blackwell_convolutions)
gpu('gb200', 186, hopper_gib, 8000e9, { float32 = 80e12, float16 = 2500e12, bfloat16 = 2500e12, float8 = 5000e12,
  float64 = 40e12 }, superchip_convolutions)
gpu('gb300', 288, hopper_gib, 8000e9, { float32 = 80e12, float16 = 2500e12, bfloat16 = 2500e12, float8 = 5000e12,
  float64 = 1.3e12 }, superchip_convolutions)

-- AMD Instinct MI250X, a module of two dies that software sees as two GPUs (mi250x_die is one of them), MI300X, MI325X
-- and MI355X; float32 and float64 of the matrix units. Source: AMD's data sheets of these names.
gpu('mi250x', 128, 1, 3277e9, { float32 = 95.7e12, float16 = 383e12, bfloat16 = 383e12, float64 = 95.7e12 })
gpu('mi250x_die', 64, 1, 1638.5e9, { float32 = 47.85e12, float16 = 191.5e12, bfloat16 = 191.5e12, float64 = 47.85e12 })
local cdna3 = { float32 = 163.4e12, float16 = 1307.4e12, bfloat16 = 1307.4e12, float8 = 2614.9e12, float64 = 163.4e12 }
gpu('mi300x', 192, 1, 5300e9, cdna3)
gpu('mi325x', 256, 1, 6000e9, cdna3)
gpu('mi355x', 288, 1, 8000e9, { float32 = 157.3e12, float16 = 2516.6e12, bfloat16 = 2516.6e12, float8 = 5033.2e12,
  float64 = 78.6e12 })

-- One core of an Intel Xeon E5-2690 v3 (12 cores, 2.6 GHz): two AVX2 units for multiply and add make 32
-- float32 or 16 float64 operations a cycle (Intel's optimisation manual). A core alone reaches 19.9 GB/s
-- in STREAM Triad (J. McCalpin in Intel's forum "Software Tuning, Performance"): measured, hence
-- memory_efficiency 1. Its part of a node of TACC's Lonestar 5: 24 cores, 64 GB.
-- models/clusters/cpu.lua divides what cores share.
presets.cpu_core = {
  peak_flops_per_s = { float32 = 83.2e9, float64 = 41.6e9 },
  memory_bandwidth_bytes_per_s = 19.9e9,
  memory_bytes = 64 * gib / 24,
  launch_s = 1e-6,
  compute_efficiency = 0.5,
  memory_efficiency = 1,
}

-- Hosts, for optimizers that run there: bytes/s between a GPU and its host in each direction, three quarters of the
-- link as of PCIe 3, 4 and 5 x16 (topology.lua); and a quarter of the GPU's share of the host's memory in the usual
-- machine. The quarter is fitted to Megatron-Core's HybridDeviceOptimizer: Qwen3-0.6B on an H100 takes 0.752 s, with
-- all of the optimizer offloaded 1.678 s (github NVIDIA-NeMo/RL, pull request 3628). Kernels of an optimizer's own
-- reach more: 0.67 (PrimeIntellect-ai/prime-rl, 3234: 30.5 billion parameters on eight H200 in 2.2 s).
local function host(link_bytes_per_s, memory_bytes_per_s, names)
  for name in names:gmatch '%S+' do
    presets[name].host_bandwidth_bytes_per_s = 0.75 * link_bytes_per_s
    presets[name].host_memory_bandwidth_bytes_per_s = 0.25 * memory_bytes_per_s
  end
end

-- Channels of the two CPUs by data sheets: DGX-1 with Xeon E5-2698 v4, 2 x 4 of DDR4-2400, the same for four GPUs;
-- PCIe GPUs with Xeon Gold, 2 x 6 of DDR4-2666; DGX A100 with EPYC 7742, 2 x 8 of DDR4-3200; DGX H100 and H200 with
-- Xeon 8480C, 2 x 8 of DDR5-4800; DGX B200 with Xeon 8570, DDR5-5600; DGX B300 with Xeon 6776P, DDR5-6400.
host(16e9, 153.6e9 / 8, 'k80 p100_sxm2 v100 v100_32gb')
host(16e9, 153.6e9 / 4, 'p100 p100_12gb gtx1080ti')
host(16e9, 256e9 / 4, 'v100_pcie v100_pcie_32gb t4 titan_rtx rtx2080ti')
host(32e9, 409.6e9 / 8, 'rtx3090 rtx4090 a10 a40 l4 l40s a100 a100_80gb a100_pcie a100_pcie_80gb a800_80gb')
host(64e9, 614.4e9 / 8, 'h100 h100_96gb h100_pcie h20 h200 h800 mi300x mi325x mi355x')
host(64e9, 716.8e9 / 8, 'b200')
host(64e9, 819.2e9 / 8, 'b300')
-- NVLink-C2C, 900 GB/s in both directions together, of GB200 and GB300 for two GPUs; Grace's LPDDR5X. Source: data
-- sheets of the superchips. MI250X: one EPYC 7A53 for four modules, Infinity Fabric with 36 GB/s a die (HPE Cray
-- EX235a).
host(450e9, 512e9, 'gh200 gh200_141gb')
host(225e9, 18.4e12 / 72, 'gb200')
host(225e9, 14e12 / 72, 'gb300')
host(72e9, 204.8e9 / 4, 'mi250x')
host(36e9, 204.8e9 / 8, 'mi250x_die')

local function copy(value)
  if type(value) ~= 'table' then return value end
  local result = {}
  for key, entry in util.sorted_pairs(value) do result[key] = copy(entry) end
  return result
end

local function merge(into, changes)
  for key, value in util.sorted_pairs(changes) do
    if type(value) == 'table' and type(into[key]) == 'table' then merge(into[key], value)
    else into[key] = copy(value) end
  end
  return into
end

--- Every access gives a table of its own. Sources of the figures: lib/trinity/cluster/devices.lua.
---@class trinity.DevicesModule
---@field topology trinity.TopologyModule functions to describe clusters
---@field [string] trinity.DeviceTypeSpec a kind by its name: `trinity.devices.h100` (`names` lists them)
local devices = {}

--- Names of all kinds, sorted. Example: `#trinity.devices.names()`
---@return string[]
function devices.names() return util.sorted_keys(presets) end

--- The kind called `name`, or nil. Example: `trinity.devices.find('h100').memory_bytes`
---@param name string
---@return trinity.DeviceTypeSpec?
function devices.find(name) return copy(presets[check.argument('devices.find', 1, 'name', name, 'string')]) end

--- Returns whether the device type called `name` is a GPU. Example: `trinity.devices.is_gpu 'h100'`
---@param name string
---@return boolean
function devices.is_gpu(name)
  return presets[check.argument('devices.is_gpu', 1, 'name', name, 'string')] ~= nil and name ~= 'cpu_core'
end

local function refuse_name(owner, name)
  util.fail('%s: no device type %s%s (trinity.devices.names() lists them)', owner, util.quoted(tostring(name)),
    suggestions.near(tostring(name), devices.names()))
end

--- A copy of a kind with fields changed; tables such as peak_flops_per_s are changed entry by entry.
--- `base` is a table or a name. Example: `trinity.devices.with('h100', { launch_s = 5e-6 })`
---@param base string|trinity.DeviceTypeSpec
---@param changes table<string, any>
---@return trinity.DeviceTypeSpec
function devices.with(base, changes)
  if type(base) == 'string' then base = presets[base] or refuse_name("devices.with: argument 1 ('base')", base) end
  if type(base) ~= 'table' then check.wrong('devices.with', 1, 'base', base, 'the name of a kind or a table') end
  checked('devices.with', 1, 'base', base)
  return merge(copy(base), checked('devices.with', 2, 'changes', changes))
end

return setmetatable(devices, { __index = function(_, name)
  return copy(presets[name]) or refuse_name('trinity.devices', name)
end })
