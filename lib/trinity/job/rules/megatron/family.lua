-- Common data of the families of Megatron-LM's rules: repository, release and files.

local core = 'megatron/core/'

local parts = {
  args = 'megatron/training/arguments.py',
  utils = 'megatron/training/argument_utils.py',
  globals = 'megatron/training/global_vars.py',
  determinism = 'megatron/training/determinism.py',
  training = 'megatron/training/training.py',
  config = core .. 'transformer/transformer_config.py',
  parallel = core .. 'model_parallel_config.py',
  groups = core .. 'parallel_state.py',
  micro = core .. 'num_microbatches_calculator.py',
  schedules = core .. 'pipeline_parallel/schedules.py',
  block = core .. 'transformer/transformer_block.py',
  layout = core .. 'transformer/pipeline_parallel_layer_layout.py',
  mappings = core .. 'tensor_parallel/mappings.py',
  routing = core .. 'transformer/moe/moe_utils.py',
  moe = core .. 'transformer/moe/moe_layer.py',
  dispatcher = core .. 'transformer/moe/token_dispatcher.py',
  specs = core .. 'models/gpt/gpt_layer_specs.py',
  hybrid = core .. 'models/hybrid/hybrid_layer_allocation.py',
}

--- Makes a family of rules (trinity.job.rules) of Megatron-LM, at the commit of its arguments.
---@param name string
---@param rules table[]
return function(name, rules)
  return { name = 'megatron ' .. name, repository = 'NVIDIA/Megatron-LM', parts = parts, rules = rules,
    release = require('trinity.job.megatron_words').release }
end
