-- The support of each runtime: rules that restrict the planner's search space. A rule has the dimension whose values
-- it allows, the allowed values (a list, with `modules` for values that are modules of layers, or a function of a value
-- and of the point up to its dimension; `uniform`: the same choice in the layers of every virtual stage), its sentence,
-- and its source in the client. Dimensions are in the order of space.lua; layouts and virtual stages that no rule
-- mentions are free.

local runtimes = require 'trinity.cluster.runtimes'
local util = require 'trinity.base.util'

local rules = {}

local function without_pipeline(least)
  return function(zero_stage, point) return zero_stage < least or point.pipeline == 1 end
end
local function with_tensor(on, point) return on or point.tensor == 1 or point.expert == 1 end
local function even(stages) return stages == 'even' end
-- --use-tp-pp-dp-mapping exchanges data and pipeline; axes of one rank may be left out.
local function rank_order(order)
  local function is(pattern) return order:find('^' .. pattern .. '$') ~= nil end
  local inner = order:gsub('^tensor%-?', ''):gsub('^context%-?', ''):gsub('^expert%-?', '')
  order = inner
  return is 'default' or is '' or is 'data' or is 'pipeline' or is 'data%-pipeline' or is 'pipeline%-data'
end
local function distributed_optimizer(fraction, point)
  return fraction == 0 or point.zero_stage == 1 or point.data * point.context == 1
end
local function zero_offload(fraction, point)
  return fraction == 0 or point.zero_stage == 3 or fraction == 1 and point.zero_stage > 0
end
-- Transformer Engine offloads the first layers; Megatron-Core without a pipeline and recomputation.
local function first_layers(fraction, point, layers)
  return fraction == 0 or fraction < 1 and point.pipeline == 1 and point.recompute == 'none'
    and math.abs(fraction * layers - math.floor(fraction * layers + 0.5)) < 1e-6
end
local function checkpoints(fraction, point) return fraction == 0 or fraction == 1 and point.recompute == 'full' end
local function three_ranks(v, point) return v == 1 or point.pipeline > 2 end

--- Rules by runtime; a runtime without an entry has the rules of its base.
---@type table<string, { [1]: string, [2]: any[]|fun(value: any, point: table): boolean, [3]: string, [4]: string }[]>
rules.list = {
  any = {},
  megatron = { -- Megatron-LM d98e8a64
    { 'schedule', { '1f1b', 'interleaved' }, '1F1B, interleaved 1F1B', 'megatron/core/pipeline_parallel/schedules.py' },
    { 'zero_stage', without_pipeline(2), 'ZeRO 2 and 3 without a pipeline',
      'megatron/core/distributed/fsdp/mcore_fsdp_adapter.py:629' },
    { 'sequence_parallel', with_tensor, 'experts with tensor parallelism need sequence parallelism',
      'megatron/core/model_parallel_config.py:560' },
    { 'recompute', { 'none', 'selective', 'full', 'by_layer', modules = true, uniform = true },
      'none, all layers or the first N of every virtual stage, or modules of all layers',
      'megatron/core/transformer/transformer_config.py: recompute_method, recompute_modules' },
    { 'placement', { 1 }, 'whole layers', 'megatron/core/transformer/transformer_block.py' },
    { 'algorithm', { 'automatic' }, 'NCCL chooses the algorithm', 'megatron/core/distributed' },
    { 'moved', { false }, 'ranks in the order of the cluster', 'megatron/core/parallel_state.py' },
    { 'rank_order', rank_order, 'tensor, context, expert, then data and pipeline, or pipeline and data',
      'megatron/training/arguments.py: use_tp_pp_dp_mapping' },
    { 'optimizer_offload_fraction', distributed_optimizer, 'CPU offload with the distributed optimizer (ZeRO 1)',
      'megatron/core/optimizer/cpu_offloading/hybrid_optimizer.py' },
    { 'activation_offload_fraction', first_layers, 'activations of some layers on the host, without a pipeline or '
      .. 'recomputation', 'megatron/core/transformer/transformer_config.py: cpu_offloading_num_layers' },
  },
  ['megatron-core-0.8'] = {
    { 'base', 'megatron' },
    { 'recompute', { 'none', 'selective', 'full', 'by_layer' }, 'none, core attention, layers',
      'megatron/training/arguments.py' },
    { 'stages', even, 'layers that divide over all stages', 'megatron/training/arguments.py: num_layers %' },
    { 'zero_stage', { 0, 1 }, 'ZeRO 0 and 1 (distributed optimizer)', 'megatron/core/optimizer/distrib_optimizer.py' },
    { 'optimizer_offload_fraction', { 0 }, 'no CPU offload', 'megatron/core/optimizer before 0.12' },
    { 'activation_offload_fraction', { 0 }, 'no activations on the host', 'megatron/training/arguments.py' },
  },
  ['megatron-core-0.7'] = {
    { 'base', 'megatron-core-0.8' },
    { 'virtual_stages', three_ranks, 'interleaving over three ranks or more',
      'megatron/core/parallel_state.py before 3ee489d9ea (Megatron-Core 0.8)' },
  },
  ['megatron-2023'] = {
    { 'base', 'megatron-core-0.7' },
    { 'context', { 1 }, 'no context parallelism', 'megatron before 292543d342 (October 2023)' },
    { 'expert', { 1 }, 'no expert parallelism', 'megatron before e8c22152ea (October 2023)' },
  },
  ['megatron-2022'] = { { 'base', 'megatron-2023' } }, -- Korthikanti et al., 2022
  ['megatron-2021'] = { -- Narayanan et al., SC 2021
    { 'base', 'megatron-2022' },
    { 'sequence_parallel', { false }, 'no sequence parallelism', 'megatron before cfd2e21607 (April 2022)' },
    { 'recompute', { 'none', 'full', 'by_layer' }, 'none, layers', 'megatron before bbab79f869 (May 2022)' },
    { 'zero_stage', { 0 }, 'no distributed optimizer', 'megatron before 28b63ec78b (March 2022)' },
  },
  ['megatron-deepspeed-2022'] = { -- bigscience-workshop/Megatron-DeepSpeed 8387ae17
    { 'base', 'megatron' },
    { 'schedule', { '1f1b' }, '1F1B', 'deepspeed/runtime/pipe/schedule.py: TrainSchedule' },
    { 'context', { 1 }, 'no context parallelism', 'megatron/arguments.py' },
    { 'expert', { 1 }, 'no experts', 'megatron/arguments.py' },
    { 'sequence_parallel', { false }, 'no sequence parallelism', 'megatron/arguments.py' },
    { 'recompute', { 'none', 'full' }, 'none, whole layers', 'megatron/arguments.py: checkpoint_activations' },
    { 'zero_stage', { 0, 1 }, 'ZeRO 0 and 1', 'deepspeed/runtime/pipe/engine.py' },
    { 'optimizer_offload_fraction', { 0 }, 'no CPU offload', 'megatron/arguments.py' },
    { 'activation_offload_fraction', { 0 }, 'no activations on the host', 'megatron/arguments.py' },
  },
  deepspeed = {
    { 'tensor', { 1 }, 'no tensor parallelism', 'Narayanan et al., SC 2021, section 5.2' },
    { 'context', { 1 }, 'no context parallelism', 'the same' },
    { 'expert', { 1 }, 'no expert parallelism', 'the same' },
    { 'recompute', { 'none', 'full' }, 'none, whole layers', 'deepspeed/runtime/activation_checkpointing' },
    { 'placement', { 1 }, 'whole layers', 'deepspeed/runtime/pipe/module.py' },
    { 'schedule', { '1f1b' }, '1F1B', 'deepspeed/runtime/pipe/schedule.py: TrainSchedule' },
    { 'stages', even, 'layers that divide over all stages', 'deepspeed/runtime/pipe/module.py: partition_method' },
    { 'zero_stage', without_pipeline(2), 'ZeRO 2 and 3 without a pipeline', 'deepspeed/runtime/pipe/engine.py' },
    { 'algorithm', { 'automatic' }, 'NCCL chooses the algorithm', 'deepspeed/comm' },
    { 'moved', { false }, 'ranks in the order of the cluster', 'deepspeed/runtime/pipe/topology.py' },
    { 'rank_order', { 'default' }, 'data before pipeline', 'deepspeed/runtime/pipe/topology.py' },
    { 'optimizer_offload_fraction', zero_offload, 'CPU offload of all with ZeRO 1 and 2, of any share with ZeRO 3',
      'deepspeed/runtime/zero/config.py: offload_optimizer' },
    { 'activation_offload_fraction', checkpoints, 'all checkpoints on the host with full recomputation',
      'deepspeed/runtime/activation_checkpointing/checkpointing.py: cpu_checkpointing' },
  },
  torchtitan = { -- torchtitan b5bcd76
    { 'recompute', { 'none', 'full' }, 'none, whole layers (its selective mode chooses other operators)',
      'torchtitan/distributed/activation_checkpoint.py' },
    { 'placement', { 1 }, 'whole layers', 'torchtitan/distributed/pipeline_parallel.py' },
    { 'schedule', { 'gpipe', '1f1b', 'interleaved', 'zb-h1', 'zb-interleaved', 'zb-v', 'dualpipe-v' },
      'the schedules of torch.distributed.pipelining', 'torch/distributed/pipelining/schedules.py' },
    { 'zero_stage',
      function(stage, point) return stage >= 2 or stage == 0 and point.context == 1 and point.expert == 1 end,
      'fully_shard: ZeRO 2 or 3; 0 only without context and expert parallelism',
      'torchtitan/distributed/parallel_dims.py' },
    { 'bucket_bytes', { 0 }, 'fully_shard reduces gradients module by module', 'torch/distributed/fsdp' },
    { 'algorithm', { 'automatic' }, 'NCCL chooses the algorithm', 'torch/distributed/fsdp' },
    { 'moved', { false }, 'ranks in the order of the cluster', 'torchtitan/distributed/parallel_dims.py' },
    { 'rank_order', { 'default' }, 'data before pipeline', 'torchtitan/distributed/parallel_dims.py' },
    { 'optimizer_offload_fraction', { 0 }, 'CPU offload only with the weights, which is not simulated',
      'torchtitan/distributed/fsdp.py' },
    { 'activation_offload_fraction', { 0 }, 'no activations on the host', 'torchtitan/distributed' },
  },
  ['composer-2023'] = {
    { 'tensor', { 1 }, 'no tensor parallelism', 'llm-foundry 8c8dd48f, llmfoundry/models/mpt' },
    { 'context', { 1 }, 'no context parallelism', 'the same' },
    { 'expert', { 1 }, 'no expert parallelism', 'the same' },
    { 'recompute', { 'none', 'full' }, 'none, whole layers', 'the same: activation_checkpointing' },
    { 'placement', { 1 }, 'whole layers', 'the same' },
    { 'pipeline', { 1 }, 'no pipeline', 'the same' },
    { 'zero_stage', { 0, 2, 3 }, 'FSDP: NO_SHARD, SHARD_GRAD_OP, FULL_SHARD', 'the same: fsdp_config' },
    { 'bucket_bytes', { 0 }, 'FSDP reduces gradients module by module', 'torch/distributed/fsdp' },
    { 'algorithm', { 'automatic' }, 'NCCL chooses the algorithm', 'the same' },
    { 'moved', { false }, 'ranks in the order of the cluster', 'the same' },
    { 'rank_order', { 'default' }, 'data before pipeline', 'the same' },
    { 'optimizer_offload_fraction', { 0 }, 'CPU offload only with the weights', 'the same: fsdp_config' },
    { 'activation_offload_fraction', { 0 }, 'copies of activations that overlap with nothing, which are not simulated',
      'torch/distributed/algorithms/_checkpoint/checkpoint_wrapper.py: OffloadWrapper' },
  },
}

local function set_of(values)
  local set = util.set(values)
  return function(value) return set[value] == true or values.modules and value ~= 'by_layer' or false end
end

local function add(by_dimension, name)
  while not rules.list[name] do name = (runtimes.list[name] or {}).base or 'megatron' end
  for _, rule in ipairs(rules.list[name]) do
    if rule[1] == 'base' then
      add(by_dimension, rule[2])
    else
      by_dimension[rule[1]] = by_dimension[rule[1]] or {}
      table.insert(by_dimension[rule[1]], { allows = type(rule[2]) == 'table' and set_of(rule[2]) or rule[2],
        values = type(rule[2]) == 'table', uniform = type(rule[2]) == 'table' and rule[2].uniform, text = rule[3],
        source = rule[4] })
    end
  end
  return by_dimension
end

--- The rules of a runtime by dimension: { allows(value, point, layers), values (whether the value alone decides), text,
--- source }; none without a runtime.
function rules.of(runtime)
  if not runtime then return {} end
  if not rules.list[runtime] and not runtimes.list[runtime] then
    util.fail("trinity.plan: option 'runtime': unknown runtime %s", util.unknown(runtime, runtimes.names()))
  end
  return add({}, runtime)
end

--- The rule that forbids a value at a point; nil: none does.
function rules.broken(by_dimension, name, value, point, layers)
  for _, rule in ipairs(by_dimension[name] or {}) do
    if not rule.allows(value, point, layers) then return rule end
  end
end

return rules
