-- torchtitan's rules, at its last commit with TOML files.

local models = { { 'llama3', 69, 21 }, { 'llama3_ft', 69, 21 }, { 'llama4', 84, 21 }, { 'deepseek_v3', 60, 21 },
  { 'qwen3', 62, 85 }, { 'gpt_oss', 66, 82 } }

local rules = {
  { set = 'rank = parallelism.data_parallel_replicate_degree * parallelism.context_parallel_degree'
    .. ' * parallelism.tensor_parallel_degree * parallelism.pipeline_parallel_degree\n'
    .. 'shard = parallelism.data_parallel_shard_degree' },
  { 'degrees-positive', 'parallelism.data_parallel_replicate_degree < 1 or parallelism.context_parallel_degree < 1'
    .. ' or parallelism.tensor_parallel_degree < 1 or parallelism.pipeline_parallel_degree < 1'
    .. ' or parallelism.expert_parallel_degree < 1 or parallelism.expert_tensor_parallel_degree < 1',
    'Every degree except sharded data parallelism must be at least 1.', 'dims:46' },
  { 'shard-positive', 'shard ~= -1 and shard < 1', 'The sharded data-parallel degree must be -1 or at least 1.',
    'dims:48' },
  { set = 'if shard < 0 then shard = gpus and rank >= 1 and floor(gpus / rank) or nil end' },
  { 'shard-left', 'shard and shard < 1 and parallelism.data_parallel_shard_degree == -1',
    'The product of the degrees may not exceed the number of GPUs.', 'dims:51' },
  { 'gpus-product', 'gpus and shard and shard >= 1 and rank * shard ~= gpus',
    'The product of all degrees must be the number of GPUs.', 'dims:53' },
  { 'expert-tensor', 'parallelism.expert_parallel_degree > 1 and parallelism.expert_tensor_parallel_degree ~= 1'
    .. ' and parallelism.expert_tensor_parallel_degree ~= parallelism.tensor_parallel_degree',
    'With expert parallelism the expert tensor degree is 1 or the tensor degree.', 'dims:59' },
  { 'expert-product', 'shard and shard >= 1 and parallelism.expert_parallel_degree > 1'
    .. ' and not multiple(shard * parallelism.context_parallel_degree * parallelism.tensor_parallel_degree,'
    .. ' parallelism.expert_parallel_degree * parallelism.expert_tensor_parallel_degree)',
    'The expert degree must divide sharded data x context x tensor degrees.', 'dims:154' },
  { 'expert-tensor-idle', 'parallelism.expert_parallel_degree == 1 and parallelism.expert_tensor_parallel_degree > 1'
    .. ' and parallelism.expert_tensor_parallel_degree ~= parallelism.tensor_parallel_degree',
    'The expert tensor degree has no effect without expert parallelism.', 'dims:58', 'ignored' },
  { 'experts-multiple', 'network.experts and parallelism.expert_parallel_degree > 1'
    .. ' and not multiple(network.experts, parallelism.expert_parallel_degree)',
    'The experts must be a multiple of the expert degree.', 'expert:110' },
  { 'expert-dense', 'network.layers and not network.experts and parallelism.expert_parallel_degree > 1',
    'Expert parallelism has no effect in a model without experts.', 'llama3:76', 'ignored' },
  { set = 'batch = shard and shard >= 1 and parallelism.data_parallel_replicate_degree * shard or nil' },
  { 'batch-positive', 'training.global_batch_size == 0', 'The global batch must be positive.', 'train:201' },
  { 'local-batch-positive', 'training.local_batch_size < 1', 'The local batch must be positive.', 'train:201' },
  { 'batch-multiple', 'batch and training.global_batch_size > 0 and training.local_batch_size > 0'
    .. ' and not multiple(training.global_batch_size, training.local_batch_size * batch)',
    'The global batch must be a multiple of local batch x data-parallel degree.', 'train:202' },
  { 'pipeline-model', "parallelism.pipeline_parallel_degree > 1 and among(model.name, 'qwen3 gpt_oss')",
    'The model has no pipeline stages.', 'train:220' },
  { 'replicas-only', 'shard == 1 and parallelism.context_parallel_degree == 1'
    .. ' and parallelism.data_parallel_replicate_degree > 1 and (parallelism.tensor_parallel_degree > 1'
    .. ' or parallelism.pipeline_parallel_degree > 1)',
    'Replicas without sharding exclude other degrees (DDP).', 'llama3:151' },
  { 'replicas-model', "shard == 1 and parallelism.context_parallel_degree == 1 and gpus"
    .. ' and parallelism.data_parallel_replicate_degree > 1 and parallelism.expert_parallel_degree > 1',
    'Replicas without sharding exclude expert parallelism.', 'llama4:219' },
  { set = 'schedule = parallelism.pipeline_parallel_schedule:lower()\n'
    .. "single = among(schedule, '1f1b gpipe pipelineschedulesingle')" },
  { 'schedule-known', "parallelism.pipeline_parallel_degree > 1 and not among(schedule, '1f1b interleaved1f1b gpipe"
    .. " loopedbfs interleavedzerobubble pipelineschedulesingle pipelineschedulemulti zbvzerobubble dualpipev')",
    'The schedule is one of torch.distributed.pipelining.', 'pipeline:54' },
  { set = 'effective = network.layers and network.layers + parallelism.pipeline_parallel_first_stage_less_layers'
    .. ' + parallelism.pipeline_parallel_last_stage_less_layers or nil\n'
    .. 'stages = parallelism.pipeline_parallel_layers_per_stage and effective'
    .. ' and ceil(effective / parallelism.pipeline_parallel_layers_per_stage) or nil\n'
    .. 'if not stages then stages = parallelism.pipeline_parallel_degree * (single and 1 or 2) end\n'
    .. 'per_rank = stages / parallelism.pipeline_parallel_degree' },
  { 'stages-multiple', 'parallelism.pipeline_parallel_degree > 1 and parallelism.pipeline_parallel_layers_per_stage'
    .. ' and not multiple(stages, parallelism.pipeline_parallel_degree)',
    'The stages by layers of a stage must be a multiple of the pipeline degree.', 'pipeline:86' },
  { 'stages-single', 'parallelism.pipeline_parallel_degree > 1 and parallelism.pipeline_parallel_layers_per_stage'
    .. ' and multiple(stages, parallelism.pipeline_parallel_degree) and single and per_rank ~= 1',
    'A schedule of one stage per rank needs one stage for each rank.', 'pipeline:97' },
  { 'stages-multi', 'parallelism.pipeline_parallel_degree > 1 and parallelism.pipeline_parallel_layers_per_stage'
    .. ' and multiple(stages, parallelism.pipeline_parallel_degree) and not single and per_rank < 2',
    'A schedule of several stages per rank needs two stages per rank.', 'pipeline:105' },
  { 'stages-two', "parallelism.pipeline_parallel_degree > 1 and among(schedule, 'zbvzerobubble dualpipev')"
    .. ' and per_rank ~= 2', 'The schedule needs two stages per rank.', 'pipeline:402' },
  { 'stages-layers', 'parallelism.pipeline_parallel_degree > 1 and not parallelism.module_fqns_per_model_part'
    .. ' and effective and stages > effective',
    'There may not be more stages than layers plus the weights of embedding and output.', 'pipeline:270' },
  { 'stages-first', 'parallelism.pipeline_parallel_degree > 1 and not parallelism.module_fqns_per_model_part'
    .. ' and effective and stages <= effective and parallelism.pipeline_parallel_first_stage_less_layers'
    .. ' > floor(effective / stages)', 'The weight of the embedding may not exceed the layers of a stage.',
    'pipeline:290' },
  { 'stages-last', 'parallelism.pipeline_parallel_degree > 1 and not parallelism.module_fqns_per_model_part'
    .. ' and effective and stages <= effective and parallelism.pipeline_parallel_last_stage_less_layers'
    .. ' > floor(effective / stages)', 'The weight of the output may not exceed the layers of a stage.',
    'pipeline:294' },
  { 'micro-batch-multiple', 'parallelism.pipeline_parallel_degree > 1'
    .. ' and (parallelism.pipeline_parallel_microbatch_size < 1'
    .. ' or not multiple(training.local_batch_size, parallelism.pipeline_parallel_microbatch_size))',
    'The local batch must be a multiple of the pipeline micro-batch.', 'pipeline:190' },
  { 'micro-batch-idle', "parallelism.pipeline_parallel_degree == 1"
    .. " and given('parallelism.pipeline_parallel_microbatch_size')",
    'The size of pipeline micro-batches is silently ignored without pipeline stages.', 'train:218', 'ignored' },
  { 'layers-idle', "parallelism.pipeline_parallel_degree == 1"
    .. " and given('parallelism.pipeline_parallel_layers_per_stage')",
    'The layers of a stage are silently ignored without pipeline stages.', 'train:218', 'ignored' },
  { 'schedule-idle', "parallelism.pipeline_parallel_degree == 1 and given('parallelism.pipeline_parallel_schedule')"
    .. " and schedule ~= '1f1b'", 'The pipeline schedule is silently ignored without pipeline stages.', 'train:218',
    'ignored' },
  { 'split-idle', "parallelism.pipeline_parallel_degree == 1"
    .. " and (given('parallelism.pipeline_parallel_first_stage_less_layers')"
    .. " or given('parallelism.pipeline_parallel_last_stage_less_layers')"
    .. " or given('parallelism.module_fqns_per_model_part'))",
    'The split in stages is silently ignored without pipeline stages.', 'train:218', 'ignored' },
  { 'balancer-empty', "parallelism.context_parallel_load_balancer == ''",
    'The load balancer of context parallelism is a name or null, not empty.', 'config:441' },
  { 'balancer-known', "parallelism.context_parallel_degree > 1 and parallelism.context_parallel_load_balancer"
    .. " and not among(parallelism.context_parallel_load_balancer, 'headtail ptrr')"
    .. " and parallelism.context_parallel_load_balancer ~= ''",
    'The load balancer of context parallelism is headtail or ptrr.', 'context:208' },
  { 'context-varlen', "parallelism.context_parallel_degree > 1 and network.attn == 'varlen'",
    'Context parallelism excludes attention of variable lengths.', 'llama3_args:61' },
  { 'context-llama4', "parallelism.context_parallel_degree > 1 and model.name == 'llama4' and network.attn ~= nil"
    .. " and network.attn ~= 'sdpa'",
    'Context parallelism goes along with plain scaled-dot-product attention only.', 'llama4_args:83' },
  { 'context-deepseek', "parallelism.context_parallel_degree > 1 and model.name == 'deepseek_v3'"
    .. " and network.attn ~= nil and network.attn ~= 'sdpa'",
    'Context parallelism goes along with plain scaled-dot-product attention only.', 'deepseek_args:105' },
  { 'context-gpt-oss', "parallelism.context_parallel_degree > 1 and model.name == 'gpt_oss'",
    'Context parallelism goes along with plain scaled-dot-product attention only.', 'gpt_oss_args:90' },
  { 'async-tensor', "parallelism.enable_async_tensor_parallel and parallelism.tensor_parallel_degree > 1"
    .. " and not (compile.enable and has(compile.components, 'model'))",
    'Asynchronous tensor parallelism needs the model compiled.', 'tensor:21' },
  { 'async-tensor-idle', 'parallelism.enable_async_tensor_parallel and parallelism.tensor_parallel_degree == 1',
    'Asynchronous tensor parallelism has no effect at tensor degree 1.', 'llama3:76', 'ignored' },
  { set = "compiled = compile.enable and has(compile.components or 'model', 'model')\n"
    .. "float8 = has(model.converters, 'quantize.linear.float8 float8')\n"
    .. "tensorwise = float8 and not among(quantize.linear.float8.recipe_name, 'rowwise rowwise_with_gw_hp')" },
  { 'float8-deepseek', "model.name == 'deepseek_v3' and parallelism.tensor_parallel_degree > 1 and tensorwise",
    'Float8 by tensor is not tested with tensor parallelism of DeepSeek-V3.', 'deepseek:85' },
  { 'float8-gather', 'float8 and quantize.linear.float8.recipe_name'
    .. ' and quantize.linear.float8.enable_fsdp_float8_all_gather',
    'A Float8 recipe excludes gathering weights in Float8.', 'float8:66' },
  { 'float8-experts-pipeline', "has(model.converters, 'quantize.grouped_mm.float8')"
    .. ' and parallelism.pipeline_parallel_degree > 1', 'Float8 experts exclude pipeline stages.', 'float8:193' },
  { 'float8-experts-context', "has(model.converters, 'quantize.grouped_mm.float8')"
    .. ' and parallelism.context_parallel_degree > 1', 'Float8 experts exclude context parallelism.', 'float8:196' },
  { 'mx-tensor', "has(model.converters, 'quantize.linear.mx') and compiled"
    .. ' and parallelism.tensor_parallel_degree > 1', 'A compiled model in MXFP8 excludes tensor parallelism.',
      'mx:50' },
  { 'deepep-experts', "parallelism.expert_parallel_comm_backend == 'deepep' and model.name == 'llama4'"
    .. ' and parallelism.expert_parallel_degree == 1', 'DeepEP needs expert parallelism.', 'llama4:116' },
  { 'deepep-experts-deepseek', "parallelism.expert_parallel_comm_backend == 'deepep' and model.name == 'deepseek_v3'"
    .. ' and parallelism.expert_parallel_degree == 1', 'DeepEP needs expert parallelism.', 'deepseek:102' },
  { 'deepep-tensor', "parallelism.expert_parallel_comm_backend == 'deepep' and model.name == 'llama4'"
    .. ' and parallelism.expert_parallel_degree > 1 and parallelism.expert_tensor_parallel_degree > 1',
    'DeepEP excludes expert tensor parallelism.', 'llama4:122' },
  { 'deepep-tensor-deepseek', "parallelism.expert_parallel_comm_backend == 'deepep' and model.name == 'deepseek_v3'"
    .. ' and parallelism.expert_parallel_degree > 1 and parallelism.expert_tensor_parallel_degree > 1',
    'DeepEP excludes expert tensor parallelism.', 'deepseek:108' },
  { 'deepep-idle', "parallelism.expert_parallel_comm_backend == 'deepep'"
    .. " and not among(model.name, 'llama4 deepseek_v3')", 'The model has no DeepEP: the back end is ignored.',
    'llama3:76', 'ignored' },
  { 'dual-pipe-recompute', "parallelism.expert_parallel_degree > 1 and parallelism.pipeline_parallel_degree > 1"
    .. " and schedule == 'dualpipev' and parallelism.pipeline_parallel_expert_parallel_overlap"
    .. " and activation_checkpoint.mode ~= 'none'",
    'DualPipeV with expert parallelism excludes recomputation.', 'dualpipe:46' },
  { 'reshard-known', "not among(parallelism.fsdp_reshard_after_forward, 'default always never')",
    'Resharding after the forward pass is default, always or never.', 'llama3:329' },
  { 'recompute-known', "not among(activation_checkpoint.mode, 'none full selective memory_budget')",
    'Recomputation is none, selective, full or memory_budget.', 'recompute:169' },
  { 'recompute-option',
    "activation_checkpoint.mode == 'selective' and activation_checkpoint.selective_ac_option ~= 'op'"
    .. ' and not tostring(activation_checkpoint.selective_ac_option):match "^%d+$"',
    'Selective recomputation is op or a number of layers.', 'recompute:180' },
  { 'recompute-every', "activation_checkpoint.mode == 'selective'"
    .. " and tonumber(activation_checkpoint.selective_ac_option) == 0",
    'Selective recomputation is op or a positive number of layers.', 'recompute:147' },
  { 'recompute-budget', "activation_checkpoint.mode == 'memory_budget' and not compiled",
    'A memory budget of recomputation needs the model compiled.', 'recompute:227' },
  { 'recompute-idle',
    "given('activation_checkpoint.selective_ac_option') and activation_checkpoint.mode ~= 'selective'",
    'The option of selective recomputation has no effect in another mode.', 'recompute:173', 'ignored' },
  { 'step-experts', 'optimizer.early_step_in_backward and parallelism.expert_parallel_degree > 1',
    'Optimizer steps inside the backward pass exclude expert parallelism.', 'optimizer:280' },
  { 'step-pipeline', 'optimizer.early_step_in_backward and parallelism.pipeline_parallel_degree > 1',
    'Optimizer steps inside the backward pass exclude pipeline stages.', 'optimizer:284' },
  { 'step-tolerant', 'optimizer.early_step_in_backward and fault_tolerance.enable',
    'Optimizer steps inside the backward pass exclude fault tolerance.', 'optimizer:288' },
  { 'step-implementation', "not among(optimizer.implementation, 'fused foreach for-loop')",
    'The optimizer is fused, foreach or for-loop.', 'optimizer:300' },
  { 'optimizer-known', "not among(optimizer.name, 'Adam AdamW')", 'The optimizer is Adam or AdamW.', 'optimizer:319' },
  { set = 'total = lr_scheduler.total_steps or training.steps\nwarmup = lr_scheduler.warmup_steps\n'
    .. 'decay = lr_scheduler.decay_ratio and floor(total * lr_scheduler.decay_ratio + 0.5) or 0' },
  { 'warmup-steps', 'above(warmup, total)', 'More warm-up steps than steps are silently cut to the steps (a warning).',
    'rate:116', 'changed', set = 'warmup = total' },
  { 'decay-steps', 'lr_scheduler.decay_ratio and warmup + decay > total',
    'Where warm-up and decay are more than all steps the decay is silently cut (a warning).', 'rate:125', 'changed' },
  { 'decay-known', "not among(lr_scheduler.decay_type, 'linear sqrt cosine')",
    'The decay is linear, sqrt or cosine.', 'rate:187' },
  { 'checkpoint-kept', 'checkpoint.enable and checkpoint.keep_latest_k == 1',
    'Checkpoints kept must be none (0) or at least two.', 'checkpoint:299' },
  { 'checkpoint-async',
    "checkpoint.enable and not among(checkpoint.async_mode, 'disabled async async_with_pinned_mem')",
    'Checkpoints are written disabled, async or async_with_pinned_mem.', 'checkpoint:321' },
  { 'checkpoint-model',
    'checkpoint.enable and checkpoint.initial_load_in_hf and not checkpoint.initial_load_model_only',
    'A checkpoint in the format of Hugging Face holds the model only.', 'checkpoint:586' },
  { 'checkpoint-quantized', 'checkpoint.enable and checkpoint.initial_load_in_hf_quantized'
    .. ' and not checkpoint.initial_load_in_hf', 'A quantized checkpoint is in the format of Hugging Face.',
    'checkpoint:591' },
  { 'checkpoint-seed', 'checkpoint.create_seed_checkpoint and gpus and gpus > 1',
    'A seed checkpoint is made on one GPU.', 'train:759' },
  { 'checkpoint-seed-enabled', 'checkpoint.create_seed_checkpoint and not checkpoint.enable',
    'A seed checkpoint needs checkpoints enabled.', 'train:762' },
  { 'validation-steps', 'validation.steps < -1 or validation.steps == 0', 'Steps of validation are positive, or -1.',
    'config:979' },
  { 'validation-model', "validation.enable and among(model.name, 'deepseek_v3 gpt_oss')",
    'The model has no validation.',
    'train:327' },
  { 'offload-idle', 'training.enable_cpu_offload and shard == 1 and parallelism.context_parallel_degree == 1',
    'Offloading to the host has no effect without sharding.', 'llama3:118', 'ignored' },
  { 'tokenizer-old', 'model.tokenizer_path', 'The old path of the tokenizer replaces model.hf_assets_path (a warning).',
    'manager:195', 'changed' },
  { 'custom-old', "(experimental.custom_args_module or '') ~= ''",
    'The old module of arguments stands for job.custom_config_module (a warning).', 'manager:184', 'changed' },
}

for _, model in ipairs(models) do
  table.insert(rules, { 'sequence-' .. model[1], ("model.name == '%s'"
    .. " and not multiple(training.seq_len,"):format(model[1])
    .. ' 2 * parallelism.context_parallel_degree * parallelism.tensor_parallel_degree)',
    'The sequence must be a multiple of tensor degree x twice the context degree, even where both are 1.',
    (model[1] == 'deepseek_v3' and 'deepseek' or model[1] == 'llama3_ft' and 'llama3' or model[1]) .. ':' .. model[2] })
end

local infra = 'torchtitan/models/%s/infra/parallelize.py'

return { name = 'torchtitan', repository = 'pytorch/torchtitan', rules = rules,
  release = require('trinity.job.titan_words').release,
  parts = { dims = 'torchtitan/distributed/parallel_dims.py', train = 'torchtitan/train.py',
    pipeline = 'torchtitan/distributed/pipeline_parallel.py', config = 'torchtitan/config/job_config.py',
    manager = 'torchtitan/config/manager.py', context = 'torchtitan/distributed/context_parallel.py',
    tensor = 'torchtitan/distributed/tensor_parallel.py', expert = 'torchtitan/distributed/expert_parallel.py',
    recompute = 'torchtitan/distributed/activation_checkpoint.py', dualpipe = 'torchtitan/distributed/dual_pipe_v.py',
    optimizer = 'torchtitan/components/optimizer.py', rate = 'torchtitan/components/lr_scheduler.py',
    checkpoint = 'torchtitan/components/checkpoint.py', float8 = 'torchtitan/components/quantization/float8.py',
    mx = 'torchtitan/components/quantization/mx.py', llama3 = infra:format 'llama3', llama4 = infra:format 'llama4',
    deepseek = infra:format 'deepseek_v3', qwen3 = infra:format 'qwen3', gpt_oss = infra:format 'gpt_oss',
    llama3_args = 'torchtitan/models/llama3/model/args.py', llama4_args = 'torchtitan/models/llama4/model/args.py',
    gpt_oss_args = 'torchtitan/models/gpt_oss/model/args.py',
    deepseek_args = 'torchtitan/models/deepseek_v3/model/args.py' } }
