-- Megatron-LM: degrees of parallelism and GPUs.

return require 'trinity.job.rules.megatron.family' ('mesh', {
  { 'weight-shards',
    'tensor_parallel_num_weight_shards and (tensor_parallel_num_weight_shards < tensor_model_parallel_size'
    .. ' or not multiple(tensor_parallel_num_weight_shards, tensor_model_parallel_size))',
    'The shards of a weight must be a multiple of the tensor-parallel degree.', 'parallel:37' },
  { set = 'remat = tensor_parallel_num_weight_shards and max(1,'
    .. ' floor(tensor_parallel_num_weight_shards / tensor_model_parallel_size)) or 1' },
  { set = 'ranks = tensor_model_parallel_size * pipeline_model_parallel_size * context_parallel_size * remat' },
  { 'degrees-positive',
    'tensor_model_parallel_size < 1 or pipeline_model_parallel_size < 1 or context_parallel_size < 1',
    'Degrees of parallelism must be positive.', 'args:432' },
  { 'gpus-multiple', 'gpus and (ranks < 1 or gpus % ranks ~= 0)',
    'The number of GPUs must be a multiple of tensor x pipeline x context.', 'args:432' },
  { 'local-attention', "attention_backend == 'local' and not has(spec, 'local')",
    'The local attention back end needs the local specification (--spec local).', 'args:437' },
  { set = 'data = gpus and ranks >= 1 and max(1, floor(gpus / ranks)) or nil' },
  { 'hierarchical-context', 'hierarchical_context_parallel_sizes and product(hierarchical_context_parallel_sizes)'
    .. ' ~= context_parallel_size', 'The hierarchical context-parallel sizes must multiply to the context degree.',
    'args:582' },
  { 'a2a-p2p-sizes', "has(cp_comm_type, 'a2a+p2p') and not hierarchical_context_parallel_sizes",
    'Context messages a2a+p2p need the hierarchical context-parallel sizes.', 'args:584' },
  { 'context-messages-idle', "given('cp_comm_type') and context_parallel_size == 1 and not has(cp_comm_type, 'p2p')",
    'The kind of context-parallel messages has no effect at context degree 1.', 'config:3102', 'ignored' },
  { 'context-messages-layers', 'context_parallel_size > 1 and length(cp_comm_type) > 1'
    .. ' and length(cp_comm_type) ~= num_layers',
    'A list of context-parallel message types must have one entry per layer.', 'config:3105' },
  { set = 'if not expert_tensor_parallel_size then expert_tensor_parallel_size = tensor_model_parallel_size end' },
  { 'expert-gpus-multiple', 'gpus and not multiple(gpus, expert_model_parallel_size * expert_tensor_parallel_size'
    .. ' * pipeline_model_parallel_size)',
    'The number of GPUs must be a multiple of expert x expert tensor x pipeline degrees.', 'groups:882' },
  { 'expert-degree-positive', 'expert_model_parallel_size < 1 or expert_tensor_parallel_size < 1',
    'Degrees of expert parallelism must be positive.', 'groups:882' },
  { 'optimizer-instances', 'data and not multiple(data * context_parallel_size, num_distributed_optimizer_instances)',
    'The data-parallel degree must be a multiple of the instances of the distributed optimizer.', 'groups:922' },
  { 'context-sequence', 'context_parallel_size > 1 and not multiple(seq_length, 2 * context_parallel_size)',
    'The sequence must be a multiple of twice the context-parallel degree.', 'args:1336' },
  { 'sequence-parallel-off', 'sequence_parallel and tensor_model_parallel_size == 1',
    'Sequence parallelism is silently turned off where the tensor-parallel degree is 1.', 'args:1436', 'ignored',
    set = 'sequence_parallel = false' },
  { 'tensor-overlap-sequence', 'tp_comm_overlap and not sequence_parallel',
    'Overlapping tensor-parallel messages with matmuls needs sequence parallelism.', 'args:1442' },
  { 'hybrid-context-pipeline', 'hybrid_context_parallel and pipeline_model_parallel_size > 1',
    'Hybrid context parallelism excludes pipeline stages.', 'args:1445' },
  { 'hybrid-context-fsdp', 'hybrid_context_parallel and use_megatron_fsdp',
    'Hybrid context parallelism excludes Megatron-FSDP.', 'args:1447' },
  { 'hybrid-context-loader', "hybrid_context_parallel and dataloader_type ~= nil and dataloader_type ~= 'single'",
    'Hybrid context parallelism needs the single data loader.', 'args:1448' },
  { 'hybrid-context-loss', 'hybrid_context_parallel and not calculate_per_token_loss',
    'Hybrid context parallelism needs the loss per token.', 'args:1449' },
  { 'one-connection', '(tensor_model_parallel_size > 1 or context_parallel_size > 1) and capability < 10'
    .. ' and not use_torch_fsdp2 and not use_megatron_fsdp and not overlap_moe_expert_parallel_comm'
    .. " and env.known and env.CUDA_DEVICE_MAX_CONNECTIONS ~= '1'",
    'Before Blackwell tensor or context parallelism needs CUDA_DEVICE_MAX_CONNECTIONS=1.', 'args:1477' },
  { 'sequence-tensor',
    'sequence_parallel and not multiple(seq_length, tensor_model_parallel_size * context_parallel_size)',
    'With sequence parallelism the sequence must be a multiple of tensor x context degrees.', 'mappings:73' },
})
