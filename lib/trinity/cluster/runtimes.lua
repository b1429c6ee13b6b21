-- Runtimes: the training software on a cluster. One declaration per name; `base` is the runtime whose values hold
-- where it says nothing. trinity.cluster takes one as option `runtime`: a name, or a table of these fields with `base`.
--
-- Shares multiply the constants of the kind of GPU (constants.lua). Where a network has no such kernels (no experts, no
-- FP8) the fields for these change nothing.

local check = require 'trinity.base.check'
local options_of = require 'trinity.base.options'
local util = require 'trinity.base.util'

local runtimes = {}

local float8 = options_of.words('trinity.Float8Recipe', { 'fp8', 'fp8_rowwise', 'mxfp8', 'nvfp4' })
local dispatchers = options_of.words('trinity.MoeTokenDispatcher', { 'alltoall', 'flex' })
local graphs = options_of.words('trinity.CudaGraphs', { 'none', 'attention', 'all' })

local function share(name, help)
  return { name, 'number', above = 0, most = 100, otherwise = "the base's", help = help }
end

local declared = options_of.declare('trinity.Runtime', { kind = 'field', help = 'Training software; see runtimes.lua.',
  { 'base', 'string', otherwise = "'megatron'", help = 'name of the runtime whose values hold otherwise' },
  { 'source', 'string', help = 'where the values come from' },
  { 'fuses_elementwise', 'boolean', otherwise = "the base's",
    help = 'element-wise operators that follow each other are one kernel' },
  { 'joins_products', 'boolean', otherwise = "the base's", help = 'matmuls of one input are one kernel' },
  { 'overlap', 'number', least = 0, most = 1, otherwise = "the base's",
    help = 'how much of the lesser of arithmetic and memory traffic a kernel hides' },
  share('compute_share', 'of compute_efficiency'),
  share('memory_share', 'of memory_efficiency'),
  share('attention_share', 'of attention'),
  share('hopper_attention_share', 'of attention once more, on GPUs whose instructions its kernel does not use: Hopper'),
  share('launch_share', 'of launch_s'),
  share('inside_share', 'of the bandwidth inside nodes'),
  share('network_share', 'of the bandwidth between nodes'),
  { 'tensor_overlap', 'boolean', otherwise = "the base's", help = 'whether matmuls overlap messages of tensor '
    .. 'parallelism; else links inside nodes have the bandwidth of their description' },
  share('async_share', 'of the bandwidth inside nodes once more, under AsyncTP: messages overlap parts of matmuls'),
  share('dispatch_share', 'of host times per kernel'),
  { 'update_s', 'number', least = 0, most = 0.1, otherwise = "the base's",
    help = "host time per weight of an update of a network of dtype 'float8': it is quantised by itself" },
  { 'async_tensor', 'boolean', otherwise = "the base's", help = 'whether AsyncTP is used' },
  share('cast_share', 'of memory_efficiency, for copies of operands to FP8: more are made than the graph counts'),
  share('rowwise_cast_share', "the same where float8 is 'fp8_rowwise'"),
  share('logits_share', 'of memory_efficiency, for the copy of logits to float32: the loss passes over it more often '
    .. 'than the graph counts'),
  share('mixed_share', 'of memory_efficiency, for operators Mul, whose inputs differ in dtype or shape'),
  share('routing_speed', 'speed of routing, gates and all-to-alls of experts under CUDA graphs of whole iterations'),
  { 'float8', float8, otherwise = "the kind's", help = "how operands of dtype 'float8' are scaled" },
  { 'cuda_graphs', graphs, otherwise = "the base's",
    help = 'kernels of a mixture of experts in CUDA graphs: none, only attention and router, all' },
  { 'dispatcher', dispatchers, otherwise = "the base's", help = 'token dispatcher of experts: alltoall sends a token '
    .. 'to each of its experts, flex once to every node that has some (DeepEP, HybridEP)' },
  { 'selective', options_of.words('trinity.SelectiveRecompute', { 'core_attention', 'operators' }),
    otherwise = "the base's",
    help = "what recompute = 'selective' repeats: core attention, or all but attention and every second matmul" },
  { 'overlap_tp_grad_allreduce', 'boolean', otherwise = "the base's",
    help = 'whether reductions of input gradients overlap with weight gradients where a strategy does not say '
      .. '(tensor_overlap has it, too)' },
  { 'keeps_gradients', 'boolean', otherwise = "the base's",
    help = 'whether gradients of weights have buffers that stay from step to step' },
  { 'bucket_elements', 'number', least = 0, most = 2 ^ 50, otherwise = "the base's",
    help = 'gradients that are reduced together where a strategy has no bucket_bytes; 0: 25 MB, as FSDP does module by '
      .. 'module, and over the stages of a pipeline all' },
  { 'replica_bucket_elements', 'number', least = 0, most = 1e9, otherwise = "the base's",
    help = 'the same per rank of data parallelism, where that is more' },
  { 'context_bytes', 'number', least = 0, otherwise = "the base's",
    help = "of a GPU's memory: CUDA's context and communicators, which PyTorch's allocator does not count" },
  { 'matmul_workspace_bytes', 'number', least = 0, otherwise = "the kind's",
    help = 'that cuBLAS keeps for each of the two threads that launch matmuls, forward and backward' },
  { 'transformer_engine', 'boolean', otherwise = "the base's",
    help = 'whether Transformer Engine keeps a workspace of its own' },
  { 'expert_streams', 'integer', least = 0, most = 64, otherwise = "the base's",
    help = "streams that Transformer Engine spreads grouped matmuls of experts over, each with a workspace" },
  { 'workspace_bytes', 'number', least = 0, otherwise = "the base's", help = 'that the software holds in addition' },
})
runtimes.declared = declared

--- Defaults of all fields.
local plain = { fuses_elementwise = true, joins_products = true, overlap = 1, compute_share = 1, memory_share = 1,
  attention_share = 1, hopper_attention_share = 1, launch_share = 1, inside_share = 1, network_share = 1,
  tensor_overlap = true, async_share = 1, async_tensor = false, dispatch_share = 1, update_s = 0,
  cast_share = 1, rowwise_cast_share = 1, logits_share = 1, mixed_share = 1, routing_speed = 1,
  cuda_graphs = 'attention', dispatcher = 'alltoall', selective = 'core_attention',
  overlap_tp_grad_allreduce = false, keeps_gradients = false, bucket_elements = 0, replica_bucket_elements = 0,
  -- A context takes some 300 MB since CUDA 11.7 (github.com/pytorch/pytorch/issues/107667), a communicator of more than
  -- two A100 688 MB (github.com/NVIDIA/nccl/issues/964).
  context_bytes = 988e6, transformer_engine = false, expert_streams = 0, workspace_bytes = 0 }

--- Bytes of one workspace of cuBLAS (aten/src/ATen/cuda/CUDABlas.cpp, getChosenWorkspaceSize) and of Transformer
--- Engine (pytorch/module/base.py, get_cublas_workspace_size_bytes).
local function workspaces(kind)
  if kind:find '^g?[hb]%d' then return 32 * 2 ^ 20, 32 * 2 ^ 20 end
  return 8320 * 2 ^ 10, 4 * 2 ^ 20
end

--- The memory of a runtime on a GPU of a kind, whatever runs there. mixture: whether the network has experts.
function runtimes.framework_bytes(runtime, kind, mixture)
  local of_cublas, of_engine = workspaces(kind)
  local engines = (runtime.transformer_engine and 1 or 0) + (mixture and runtime.expert_streams or 0)
  return runtime.context_bytes + runtime.workspace_bytes + engines * of_engine
    + 2 * (runtime.matmul_workspace_bytes or of_cublas)
end

local most_bucket_bytes = 2 ^ 50

--- Bytes of gradients, of 16 bits, that a runtime reduces together where a strategy does not say.
function runtimes.bucket_bytes(runtime, strategy)
  local mesh, by_rank = strategy.mesh, runtime.replica_bucket_elements
  if runtime.bucket_elements == 0 or strategy.zero_stage == 3 and by_rank > 0 then -- FSDP, Megatron-LM's too
    return (mesh.pipeline or 1) > 1 and most_bucket_bytes or 25000000
  end
  return math.min(most_bucket_bytes, 2 * math.max(runtime.bucket_elements, by_rank * (mesh.data or 1)))
end

-- "Fitted": calibrated.lua has the value, by `trinity study fidelity published --fit` to rows of that software.
runtimes.list = {
  megatron = { keeps_gradients = true, transformer_engine = true, expert_streams = 4, bucket_elements = 40e6,
    replica_bucket_elements = 1e6, dispatcher = 'flex',
    source = 'NeMo and Megatron-Bridge, 25.09 to 26.08 (github NVIDIA-NeMo/Megatron-Bridge, perf_recipes); '
    .. 'fused layer norm, bias and dropout, joined QKV; routing_speed: fitted, rows from 26.06 on; buffers of '
    .. 'gradients: core/distributed/param_and_grad_buffer.py of Megatron-LM @ d98e8a64; '
    .. 'buckets: core/distributed/distributed_data_parallel.py, by the data-parallel size without context parallelism; '
    .. 'expert_streams: transformer_engine/pytorch/module/grouped_linear.py, _NUM_CUBLAS_STREAMS; update_s: fitted, '
    .. 'core/optimizer/distrib_optimizer.py, _copy_main_params_to_model_params: FP8 weights one by one; dispatcher: '
    .. 'perf_recipes of B300, GB200 and GB300, and of Megatron-MoE-ModelZoo on H100' },
  ['megatron-core-0.8'] = { base = 'megatron', logits_share = 6 / 34, dispatcher = 'alltoall',
    source = 'Megatron-LM, README of Megatron-Core 0.8; logits_share: core/tensor_parallel/cross_entropy.py moves 34 '
      .. 'bytes a logit up to the loss (copy, maximum, difference, exponential, sum, ratio), the copy 6' },
  ['megatron-core-0.7'] = { base = 'megatron-2024',
    source = 'NeMo 24.05 (docs.nvidia.com/nemo-framework, Software Component Versions)' },
  ['megatron-2024'] = { base = 'megatron-core-0.8',
    source = 'NeMo 24; memory_share: fitted, fewer memory-bound kernels were fused' },
  ['megatron-2023'] = { base = 'megatron-2024', attention_share = 0.81, hopper_attention_share = 0.65,
    launch_share = 3.4,
    source = "NeMo and Transformer Engine of MLPerf's rounds 3.0 and 3.1; assumed, no source states it: attention as "
      .. 'composer-2023 has it, launches as megatron-2021, whose shares were fitted to llm-foundry and to A100; later '
      .. 'rounds record CUDA graphs or have twice the micro-batch' },
  ['llama-3'] = { base = 'megatron', tensor_overlap = false,
    source = 'The Llama 3 Herd of Models (arXiv 2407.21783); tensor_overlap: assumed, no source states it' },
  ['megatron-2021'] = { base = 'megatron', transformer_engine = false, expert_streams = 0, update_s = 0,
    dispatcher = 'alltoall', bucket_elements = most_bucket_bytes / 2,
    source = 'Narayanan et al., SC 2021; Korthikanti et al., 2022: unfused attention (kernels = megatron), gradients '
      .. 'reduced after the last backward pass' },
  ['megatron-2022'] = { base = 'megatron-2021', overlap_tp_grad_allreduce = true,
    source = 'Megatron-LM since 16c90445e7 (September 2021, LinearWithGradAccumulationAndAsyncCommunication): '
      .. 'Korthikanti et al., 2022; NeMo 2023' },
  ['megatron-deepspeed-2022'] = { base = 'megatron-2021',
    source = 'github bigscience-workshop/bigscience, chronicles of BLOOM: ZeRO 1; shares: fitted' },
  deepspeed = { base = 'megatron-2021', keeps_gradients = false, bucket_elements = 5e8, replica_bucket_elements = 0,
    source = 'DeepSpeed ZeRO-3 (Narayanan et al., SC 2021, table 2); compute_share: fitted, gathers take '
      .. 'multiprocessors while matmuls run, as in torchtitan; network_share: fitted; buckets: runtime/zero/config.py, '
      .. 'reduce_bucket_size' },
  torchtitan = { base = 'megatron', keeps_gradients = false, transformer_engine = false, expert_streams = 0,
    dispatcher = 'alltoall',
    network_share = 1.365, cast_share = 0.2, selective = 'operators', update_s = 0, bucket_elements = 0,
    source = 'github pytorch/torchtitan, benchmarks of Llama 3, torch.compile; shares: fitted; copies to '
      .. 'FP8 in both orders and of gradients too: torchao/float8, benchmarks/float8/float8_roofline.py; selective: '
      .. 'torchtitan/distributed/activation_checkpoint.py, option "op"' },
  eager = { base = 'torchtitan',
    source = 'torchtitan without torch.compile; memory_share: fitted' },
  ['composer-2023'] = { base = 'torchtitan', compute_share = 1,
    source = 'github mosaicml/llm-foundry @ 8c8dd48f: FSDP, torch 1.13 and 2.x, Triton attention of 2023; shares: '
      .. 'fitted to its benchmarks' },
}

-- 'any' has the constants of megatron; trinity plan then searches every strategy that trinity simulates
-- (cluster/runtime_rules.lua).
runtimes.list.any = { base = 'megatron', source = 'none: the whole space of strategies' }

local function prior(start, least, most, spread)
  return { start = start, least = least, most = most, spread = spread }
end

--- Where fits of fields start, their bounds and spreads (constants.lua).
runtimes.priors = { compute_share = prior(0.85, 0.5, 1.2, 0.15), attention_share = prior(0.8, 0.2, 1.5, 0.3),
  hopper_attention_share = prior(0.6, 0.2, 1, 0.3), launch_share = prior(2.5, 0.5, 100, 0.7),
  memory_share = prior(0.6, 0.2, 1.2, 0.3), network_share = prior(0.12, 0.03, 0.5, 0.3),
  inside_share = prior(0.5, 0.2, 2, 0.5), async_share = prior(1.4, 1, 4, 0.3), routing_speed = prior(2, 1, 4, 0.3),
  rowwise_cast_share = prior(0.05, 0.015, 0.1, 0.3), update_s = prior(60e-6, 5e-6, 300e-6, 0.5) }

function runtimes.names() return util.sorted_keys(runtimes.list) end

local function named(name, fitted)
  local found = runtimes.list[name]
  if not found then util.fail("option 'runtime': unknown runtime %s", util.unknown(name, runtimes.names())) end
  return util.merged(found, require('trinity.cluster.calibrated').runtimes[name], (fitted or {})[name])
end

--- All fields of a runtime, complete, with `name`. given: a name, a table, or nil for the default; fitted: fields by
--- runtime that replace the calibrated ones (constants.read).
function runtimes.read(given, fitted)
  if given == nil or given == '' then given = 'megatron' end
  if type(given) ~= 'string' and type(given) ~= 'table' then
    check.wrong('trinity.cluster', 'option', 'runtime', given, 'a name or a table')
  end
  local own, name
  if type(given) == 'table' then
    declared:check("trinity.cluster: option 'runtime'", given)
    local changed = {}
    for key, value in util.sorted_pairs(given) do
      if key ~= 'base' and key ~= 'source' then changed[#changed + 1] = ('%s = %s'):format(key, tostring(value)) end
    end
    name = given.base or 'megatron'
    if #changed > 0 then name = ('%s with %s'):format(name, table.concat(changed, ', ')) end
    own = util.merged({ base = 'megatron' }, given)
  else
    own, name = named(given, fitted), given
  end
  local chain = { own }
  while chain[#chain].base do chain[#chain + 1] = named(chain[#chain].base, fitted) end
  local values = plain
  for i = #chain, 1, -1 do values = util.merged(values, chain[i]) end
  values.name, values.base = name, nil
  return values
end

--- torchtitan's selective recomputation: of every layer, attention and every second matmul from the first on are kept,
--- and everything else is recomputed. A function of the forward operators of one graph, in their order.
function runtimes.selective_operators()
  local matmuls = {}
  return function(op)
    local layer = op.name:match '^layer_%d+' or op.name:match '^block_%d+'
    if op.type == 'Attention' or not layer then return nil end
    if op.type ~= 'Gemm' and op.type ~= 'MatMul' then return true end
    matmuls[layer] = (matmuls[layer] or 0) + 1
    return matmuls[layer] % 2 == 0 or nil
  end
end

return runtimes
