-- DeepSpeed's JSON, and the command line that launches the job, which has the degrees.

local arguments = require 'trinity.job.arguments'
local util = require 'trinity.base.util'

local deepspeed = { client = 'DeepSpeed', runtime = 'deepspeed', release = 'edaa7221267243c7be7fb49c5d5f5c4fb97b4641',
  rules = { 'deepspeed' }, auto = true,
  base = { launched = '--launch', auto = '', short_zero = 'zero_optimization' },
  parser = 'deepspeedai/DeepSpeed deepspeed/runtime/config_utils.py:110' }

deepspeed.declared = arguments.declare 'deepspeed'

--- An unknown key is ignored among the outermost keys, and refused in a section.
function deepspeed.undeclared(_, section)
  if section ~= '' then return 'refused' end
  return 'ignored', 'deepspeedai/DeepSpeed deepspeed/runtime/config.py:780'
end

-- Returns the degrees of the launch line.
local function launched(job)
  local list, found = util.words(job.source.launch or '', '[^%s=]+'), {}
  local names = { ['-p'] = 'pipeline', ['--pipeline-parallel-size'] = 'pipeline', ['--pipe-parallel-size'] = 'pipeline',
    ['--pipeline-model-parallel-size'] = 'pipeline', ['--tensor-model-parallel-size'] = 'tensor',
    ['--model-parallel-size'] = 'tensor' }
  for i, word in ipairs(list) do
    if names[word] then found[names[word]] = tonumber(list[i + 1]) end
  end
  return found
end

--- Reads a JSON object.
function deepspeed.read(job, tree)
  job.launched = launched(job)
  if type(tree.zero_optimization) == 'boolean' then
    job.short_zero = tree.zero_optimization
    tree = util.merged(tree)
    tree.zero_optimization = { stage = job.short_zero and 1 or 0 }
  end
  if type(tree.bf16) ~= 'table' and type(tree.bfloat16) == 'table' then tree.bf16 = tree.bfloat16 end
  job.auto = tree.train_batch_size == 'auto' or tree.train_micro_batch_size_per_gpu == 'auto'
  arguments.read(job, tree)
end

--- Returns the values for rules, with the degrees of the launch line.
function deepspeed.space(job)
  return util.merged(arguments.space(job), { launched = job.launched, auto = job.auto, short_zero = job.short_zero })
end

--- Converts values to fields of the job.
function deepspeed.meaning(job, v)
  local stage = tonumber(v.zero_optimization.stage)
  job.model = {}
  job.mesh = { tensor = (job.launched.tensor or job.launched.pipeline or v.tensor > 1) and v.tensor or nil,
    pipeline = job.launched.pipeline, data = v.world }
  job.micro_batch, job.global_batch, job.micro_batches = v.micro, v.batch, v.accumulation
  local auto = false
  for _, path in ipairs(job.unread) do auto = auto or path == 'bf16.enabled: auto' or path == 'fp16.enabled: auto' end
  job.precision = v.bf16.enabled == true and 'bf16' or v.fp16.enabled == true and 'fp16' or not auto and 'fp32' or nil
  job.zero_stage, job.distributed_optimizer = stage, (stage or 0) > 0
  local overlap = v.zero_optimization.overlap_comm
  if overlap == nil then overlap = stage == 3 end
  job.overlaps = { gradients = overlap, weights = stage == 3 }
  local states, parameters = v.zero_optimization.offload_optimizer, v.zero_optimization.offload_param.device
  local optimizer, ratio = states.device, tonumber(states.ratio)
  local checkpoints = v.activation_checkpointing.cpu_checkpointing and 1 or nil
  job.offload = (optimizer ~= 'none' or parameters ~= 'none' or checkpoints) and { checkpoints = checkpoints,
    optimizer = optimizer == 'cpu' and ratio and ratio < 1 and ratio or optimizer ~= 'none' and optimizer or nil,
    parameters = parameters ~= 'none' and parameters or nil } or nil
end

return deepspeed
