-- BigScience's Megatron-DeepSpeed (BLOOM): Megatron-LM of 2022 with arguments of its own, which are listed as not
-- understood, not refused.

local megatron = require 'trinity.job.megatron'

local fork = setmetatable({ client = 'Megatron-DeepSpeed', runtime = 'megatron-deepspeed-2022', open = true,
  release = '8387ae17c470' }, { __index = megatron })

function fork.families() return { require 'trinity.job.rules.megatron_deepspeed' } end

--- What values mean. Its BF16 optimizer shards states, though its file says stage 0.
function fork.meaning(job, v)
  megatron.meaning(job, v)
  job.recompute = v.checkpoint_activations and { granularity = 'full', method = 'uniform', layers = 1 } or 'none'
  if v.bf16 then job.zero_stage, job.distributed_optimizer = 1, true end
end

return fork
