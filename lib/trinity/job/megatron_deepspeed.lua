-- BigScience's Megatron-DeepSpeed (BLOOM): Megatron-LM of 2022 with additional arguments, which are listed as not
-- understood instead of refused.

local megatron = require 'trinity.job.megatron'
local util = require 'trinity.base.util'

local fork = setmetatable({ client = 'Megatron-DeepSpeed', runtime = 'megatron-deepspeed-2022',
  release = '8387ae17c470', rules = { 'megatron_deepspeed' } }, { __index = megatron })

-- Returns the layers of stages that differ: --pp-partition-method type:transformer|embedding counts the embedding and
-- the output as a layer each.
local function stages_of(job, v)
  local counted = table.concat(job.words, ' '):find('transformer|embedding', 1, true) and 1 or 0
  local count, layers = v.pipeline_model_parallel_size, v.num_layers + 2 * counted
  return util.listed(count, function(s)
    return math.floor(layers / count) + (s <= layers % count and 1 or 0) - ((s == 1 or s == count) and counted or 0)
  end)
end

--- Converts values to fields of the job. Its BF16 optimizer shards states, although the file gives stage 0.
function fork.meaning(job, v)
  megatron.meaning(job, v)
  job.stages = v.num_layers and (job.mesh.pipeline or 1) > 1 and stages_of(job, v) or nil
  job.recompute = v.checkpoint_activations and { granularity = 'full', method = 'uniform', layers = 1 } or 'none'
  if v.bf16 then job.zero_stage, job.distributed_optimizer = 1, true end
end

return fork
