-- BigScience's Megatron-DeepSpeed (BLOOM): Megatron-LM of 2022 with additional arguments, which are listed as not
-- understood instead of refused.

local megatron = require 'trinity.job.megatron'

local fork = setmetatable({ client = 'Megatron-DeepSpeed', runtime = 'megatron-deepspeed-2022',
  release = '8387ae17c470', rules = { 'megatron_deepspeed' } }, { __index = megatron })

--- Converts values to fields of the job. Its BF16 optimizer shards states, although the file gives stage 0.
function fork.meaning(job, v)
  megatron.meaning(job, v)
  job.recompute = v.checkpoint_activations and { granularity = 'full', method = 'uniform', layers = 1 } or 'none'
  if v.bf16 then job.zero_stage, job.distributed_optimizer = 1, true end
end

return fork
