-- DeepSpeed's configuration for a plan (deepspeed/runtime/config.py at commit edaa722, 0.19.6).

local ordered = require 'trinity.formats.ordered'
local unsaid = require 'trinity.formats.unsaid'
local util = require 'trinity.base.util'

local deepspeed = { name = 'deepspeed', writes = 'ZeRO, batches, precision, JSON (and a fragment, Python)',
  of = 'DeepSpeed edaa722 (0.19.6)' }

local said = util.set [[data tensor micro_batches zero_stage optimizer_offload_fraction activation_offload_fraction
  pipeline bucket_bytes]]

--- Returns the dtype of the weights of matmuls.
function deepspeed.dtype(graph)
  for i = 1, graph.operators do
    for _, parameter in ipairs(graph:operator(i).parameters or {}) do
      if parameter.trainable then return parameter.dtype end
    end
  end
end

local function precision(pairs_of, dtype)
  if dtype == 'bfloat16' then pairs_of[#pairs_of + 1] = { 'bf16', ordered.object { { 'enabled', true } } } end
  if dtype == 'float16' then pairs_of[#pairs_of + 1] = { 'fp16', ordered.object { { 'enabled', true } } } end
end

-- Returns offload_optimizer, or nil; ZeRO 1 and 2 offload all of the optimizer.
local function offload(outline, unspoken)
  local fraction, zero_stage = outline.strategy.optimizer_offload_fraction or 0, outline.strategy.zero_stage or 0
  if fraction == 0 then return nil end
  if zero_stage == 0 or zero_stage < 3 and fraction < 1 then
    unspoken[#unspoken + 1] = ('optimizer_offload_fraction = %g (ZeRO 3 has any, ZeRO 1 and 2 have 1)'):format(fraction)
    return nil
  end
  return { 'offload_optimizer', ordered.object { { 'device', 'cpu' }, { 'pin_memory', true },
    fraction < 1 and { 'ratio', fraction } or nil } }
end

-- Returns activation_checkpointing, or nil: all checkpoints of layers go to the host.
local function checkpoints(outline, unspoken)
  local fraction = outline.strategy.activation_offload_fraction or 0
  if fraction == 0 then return nil end
  if fraction == 1 and outline.strategy.recompute == 'full' then
    return { 'activation_checkpointing', ordered.object { { 'cpu_checkpointing', true } } }
  end
  unspoken[#unspoken + 1] = ("activation_offload_fraction = %g (it has 1, with recompute = 'full')"):format(fraction)
end

local function zero(outline, unspoken)
  local zero_stage, bytes = outline.strategy.zero_stage or 0, outline.strategy.bucket_bytes
  local fields = { { 'stage', zero_stage } }
  -- Bucket sizes are numbers of elements, of 32-bit gradients.
  if bytes then fields[2] = { 'reduce_bucket_size', math.max(1, math.floor(bytes / 4)) } end
  fields[#fields + 1] = offload(outline, unspoken)
  return ordered.object(fields)
end

local function check_pipeline(outline, unspoken)
  if outline.pipeline == 1 then return end
  if (outline.strategy.zero_stage or 0) > 1 then
    util.fail('export: deepspeed: zero_stage: expected 0 or 1 with a pipeline, got %d',
      outline.strategy.zero_stage)
  end
  if outline.schedule ~= '1f1b' or outline.virtual_stages > 1 then
    unspoken[#unspoken + 1] = ("schedule '%s' (DeepSpeed's pipeline engine runs 1F1B)"):format(outline.schedule)
  end
  for _, stage in ipairs(outline.stages or {}) do
    if stage.last - stage.first ~= outline.stages[1].last - outline.stages[1].first then
      unspoken[#unspoken + 1] = 'layers per stage (PipelineModule gives all equally many)'
      return
    end
  end
end

-- The settings of the program: stages of equally many layers, or recomputation without a pipeline; nil: none. Names of
-- classes of layers in transformers end in Layer or Block.
local function fragment(outline)
  if outline.pipeline > 1 then
    return ('from deepspeed.pipe import PipelineModule\nmodel = PipelineModule(layers, num_stages=%d, '
      .. 'partition_method="type:(Layer|Block)$")\n'):format(outline.pipeline)
  end
  return outline.strategy.recompute == 'full' and 'model.gradient_checkpointing_enable()\n' or nil
end

--- Returns the files of a plan, and the settings that they cannot represent.
function deepspeed.write(outline)
  if not outline.strategy.mesh then
    util.fail("export: deepspeed: expected a mesh, got a placement of operators; use a plan of "
      .. "'trinity plan', or a strategy with a mesh")
  end
  local words = util.merged(said, { stages = true, schedule = true, virtual_stages = true,
    recompute = outline.strategy.recompute == 'full' })
  local unspoken, mesh = unsaid.of(outline, words), outline.mesh
  check_pipeline(outline, unspoken)
  local micro = outline.batch_size
  local fields = { { 'train_batch_size', micro * outline.micro_batches * mesh.data },
    { 'train_micro_batch_size_per_gpu', micro }, { 'gradient_accumulation_steps', outline.micro_batches } }
  precision(fields, deepspeed.dtype(outline.graph))
  fields[#fields + 1] = { 'zero_optimization', zero(outline, unspoken) }
  if mesh.tensor > 1 then
    fields[#fields + 1] = { 'tensor_parallel', ordered.object { { 'autotp_size', mesh.tensor } } }
  end
  if outline.pipeline > 1 then
    local again = outline.strategy.recompute == 'full' and { 'activation_checkpoint_interval', 1 } or nil
    fields[#fields + 1] = { 'pipeline', ordered.object { { 'stages', outline.pipeline }, again } }
  end
  fields[#fields + 1] = checkpoints(outline, unspoken)
  local program = fragment(outline)
  return { { name = 'deepspeed.json', text = ordered.text(ordered.object(fields)) },
    program and { name = 'program.py', text = program } }, unspoken
end

return deepspeed
