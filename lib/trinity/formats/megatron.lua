-- Megatron-LM's arguments for a plan (megatron/training/arguments.py at commit d98e8a64): a bash array for a script to
-- source.

local core = require 'trinity.core'
local layout = require 'trinity.strategy.layout'
local model = require 'trinity.graph.model'
local text = require 'trinity.base.text'
local unsaid = require 'trinity.formats.unsaid'
local util = require 'trinity.base.util'

local megatron = { name = 'megatron', writes = 'arguments of Megatron-LM, a bash array to source',
  of = 'Megatron-LM d98e8a64' }

local said = util.set [[data tensor pipeline context expert stages virtual_stages micro_batches recompute
  sequence_parallel zero_stage optimizer_offload_fraction activation_offload_fraction schedule cp_comm_type bucket_bytes
  operators order]]

local one_order = { ['1f1b'] = true, interleaved = true }
local strategies = { 'optim', 'optim_grads', 'optim_grads_params' }

-- Returns a layout for the stages, or nil if Megatron's ranks would have other stages.
local function layout_of(outline, unspoken)
  if outline.pipeline == 1 then return nil end
  if not outline.stages then
    unspoken[#unspoken + 1] = ('layers per stage (%s)'):format(outline.broken or 'the plan has no stages')
    return nil
  end
  if not outline:in_turn() then
    unspoken[#unspoken + 1] = ("ranks of stages (schedule '%s' is V-shaped, Megatron-LM's layout is "
      .. "round-robin)"):format(outline.schedule)
    return nil
  end
  local ahead = layout.ahead(outline.graph)
  local stages = util.map(outline.stages, function(stage)
    return { embedding = stage.embedding, layers = stage.last - stage.first + 1,
      ahead = stage.head and ahead or 0, head = stage.head }
  end)
  local said_stages = layout.text(stages)
  local why = layout.refusal(layout.read(said_stages), outline.pipeline, outline.layers, ahead)
  if why then util.fail("export: megatron: Megatron-LM would reject the layout '%s': %s", said_stages, why) end
  return said_stages
end

-- Adds arguments about the schedule.
local function add_pipeline(add, outline, unspoken)
  add('--pipeline-model-parallel-size', outline.pipeline)
  local stages = layout_of(outline, unspoken)
  if stages then add('--pipeline-model-parallel-layout', "'" .. stages .. "'") end
  local one = outline.schedule == 'gpipe' and outline.micro_batches == 1 -- which equals 1F1B
  if outline.pipeline > 1 and not one and not one_order[outline.schedule] then
    unspoken[#unspoken + 1] = ("schedule '%s' (Megatron-LM runs 1F1B, or interleaved 1F1B with virtual "
      .. "stages)"):format(outline.schedule)
  end
end

-- Returns the number of recomputed first layers per virtual stage if the other layers keep all activations; nil if the
-- strategy has other settings for single operators.
local function block_of(outline)
  local strategy, kept, operators = outline.strategy, {}, 0
  if strategy.recompute ~= 'full' or not outline.stages then return nil end
  for i, layer in ipairs(outline.layer_of) do
    local op = outline.graph:operator(i)
    local rule = op.phase == 'forward' and strategy.operators[op.name]
    if rule and (rule.split ~= nil or rule.recompute ~= false or kept[layer] == false) then return nil end
    if op.phase == 'forward' and layer >= 1 and layer <= outline.layers then
      if kept[layer] == nil then kept[layer] = rule ~= nil and rule ~= false end
      if kept[layer] and not rule then return nil end
      operators = operators + (rule and 1 or 0)
    end
  end
  if operators ~= #util.sorted_keys(strategy.operators) then return nil end
  local most = 0
  local counts = util.map(outline.stages, function(stage)
    local count = 0
    while stage.first + count <= stage.last and not kept[stage.first + count] do count = count + 1 end
    most = math.max(most, count)
    for layer = stage.first + count, stage.last do
      if not kept[layer] then return -1 end
    end
    return count
  end)
  for s, stage in ipairs(outline.stages) do
    if counts[s] ~= math.min(most, stage.last - stage.first + 1) then return nil end
  end
  return most
end

-- Ranks are numbered tensor, context, expert, data, pipeline from the innermost, or with the last two exchanged.
local function add_order(add, outline, unspoken)
  local order = outline.strategy.mesh and outline.strategy.order
  if not order or type(order[1]) ~= 'string' then return end
  local used = {}
  for _, axis in ipairs { 'tensor', 'context', 'expert', 'data', 'pipeline' } do
    local size = outline.mesh[axis] / (axis == 'data' and outline.mesh.expert or 1)
    if size > 1 then used[#used + 1] = axis end
  end
  local own, is_used = {}, util.set(used)
  for _, list in ipairs { order, used } do
    for _, axis in ipairs(list) do
      if is_used[axis] then own[#own + 1], is_used[axis] = axis, nil end
    end
  end
  local plain, said_order = table.concat(used, ' '), table.concat(own, ' ')
  if said_order == plain then return end
  if said_order == plain:gsub('data pipeline$', 'pipeline data') then return add '--use-tp-pp-dp-mapping' end
  unspoken[#unspoken + 1] = 'the order of the axes'
end

-- Adds arguments about activation recomputation; `full` recomputes in groups of one layer.
local function add_recompute(add, outline, unspoken)
  local strategy = outline.strategy
  local word = strategy.recompute or 'none'
  if strategy.operators then
    local count = block_of(outline)
    if not count then unspoken[#unspoken + 1] = 'settings of single operators' end
    if count then
      add('--recompute-granularity', 'full')
      add('--recompute-method', 'block')
      return add('--recompute-num-layers', count)
    end
  end
  if word == 'none' then return end
  add('--recompute-granularity', word == 'full' and 'full' or 'selective')
  if word == 'full' then
    add('--recompute-method', 'uniform')
    add('--recompute-num-layers', 1)
  else
    add('--recompute-modules', word == 'selective' and 'core_attn' or (word:gsub('%+', ' ')))
  end
end

local context_words = { all_gather = 'all_gather', ring = 'p2p', all_to_all = 'a2a' } -- Megatron-LM's --cp-comm-type

-- Transformer Engine offloads the first layers, copying them while all layers run.
local function add_activation_offload(add, outline, unspoken)
  local strategy = outline.strategy
  local fraction = strategy.activation_offload_fraction or 0
  local layers = math.floor(fraction * outline.layers + 0.5)
  if fraction == 0 then return end
  if outline.pipeline > 1 or (strategy.recompute or 'none') ~= 'none' or strategy.operators
    or layers == outline.layers or math.abs(layers - fraction * outline.layers) > 1e-6 then
    unspoken[#unspoken + 1] = ('activation_offload_fraction = %g (it needs a whole number of layers, fewer than all, '
      .. 'and no pipeline or recomputation)'):format(fraction)
    return
  end
  add('--cpu-offloading-num-layers', layers)
end

-- Offloading needs the distributed optimizer, which changes nothing for one replica.
local function add_offload(add, outline, unspoken)
  local fraction, shard = outline.strategy.optimizer_offload_fraction or 0, outline.strategy.zero_stage or 0
  if fraction == 0 then return end
  if shard > 1 or shard == 0 and outline.mesh.data * outline.mesh.context > 1 then
    unspoken[#unspoken + 1] = ('optimizer_offload_fraction = %g (it needs the distributed optimizer, zero_stage = 1)'
      ):format(fraction)
    return
  end
  if shard == 0 then add '--use-distributed-optimizer' end
  add '--use-precision-aware-optimizer'
  add '--optimizer-cpu-offload'
  add('--optimizer-offload-fraction', ('%.17g'):format(fraction))
  add '--overlap-cpu-optimizer-d2h-h2d'
end

local function add_sharding(add, outline)
  local shard = outline.strategy.zero_stage or 0
  if shard == 0 then return end
  if shard == 1 then
    add '--use-distributed-optimizer'
    return
  end
  add '--use-megatron-fsdp'
  add('--data-parallel-sharding-strategy', strategies[shard])
end

-- Bucket sizes are numbers of parameters, with 32-bit gradients. There are only buckets if reductions overlap.
local function add_buckets(add, outline)
  local bytes = outline.strategy.bucket_bytes
  if outline.mesh.data * outline.mesh.context == 1 or not bytes then return end
  add '--overlap-grad-reduce'
  add('--ddp-bucket-size', ('%d'):format(math.max(1, math.floor(bytes / 4))))
end

--- Returns the arguments of a plan as a list of texts (a flag and its values each), and the settings that they cannot
--- represent.
function megatron.arguments(outline)
  local lines, mesh, unspoken = {}, outline.mesh, unsaid.of(outline, said)
  local function add(flag, value) lines[#lines + 1] = value and ('%s %s'):format(flag, value) or flag end
  add('--tensor-model-parallel-size', mesh.tensor)
  if outline.strategy.sequence_parallel then add '--sequence-parallel' end
  add_pipeline(add, outline, unspoken)
  if mesh.context > 1 then
    add('--context-parallel-size', mesh.context)
    add('--cp-comm-type', context_words[outline.strategy.cp_comm_type or 'all_gather'])
  end
  if mesh.expert > 1 then
    add('--expert-model-parallel-size', mesh.expert)
    add('--expert-tensor-parallel-size', 1)
    add('--moe-token-dispatcher-type', model.token_dispatcher(outline.strategy.problem.cluster))
  end
  add('--micro-batch-size', outline.batch_size)
  add('--global-batch-size', outline.batch_size * mesh.data * outline.micro_batches)
  add_order(add, outline, unspoken)
  add_recompute(add, outline, unspoken)
  add_sharding(add, outline)
  add_offload(add, outline, unspoken)
  add_activation_offload(add, outline, unspoken)
  add_buckets(add, outline)
  return lines, unspoken
end

--- Returns the files of a plan, and the settings that they cannot represent.
function megatron.write(outline)
  if not outline.strategy.mesh and not outline.stages then
    util.fail('export: megatron: expected a mesh or a pipeline of whole layers: %s',
      outline.broken or "got a placement of operators; use a plan of 'trinity plan', or a strategy with a mesh")
  end
  local lines, unspoken = megatron.arguments(outline)
  if outline.layers == 0 then
    unspoken[#unspoken + 1] = ("the network '%s' (Megatron-LM's models have repeated layers, this one has "
      .. "none)"):format(
      core.printable(outline.graph.name))
  end
  local needs = (outline.strategy.zero_stage or 0) > 1 and '# --use-megatron-fsdp also needs --ckpt-format '
    .. 'fsdp_dtensor and CUDA_DEVICE_MAX_CONNECTIONS above 1\n' or ''
  local script = ('# %s: torchrun --nproc-per-node ... pretrain_gpt.py "${MODEL_PARALLEL_ARGS[@]}" ... (%d ranks)\n%s'
    .. 'MODEL_PARALLEL_ARGS=(\n    %s\n)\n'):format(text.one_line(core.printable(outline.graph.name)),
    outline:device_count(), needs, table.concat(lines, '\n    '))
  return { { name = 'megatron.sh', text = script } }, unspoken
end

return megatron
