-- Names of dimensions and options in Megatron-LM, PyTorch, torchtitan and DeepSpeed, which messages about unknown names
-- suggest here.

local here = {
  context = 'cp context_parallel_size context_parallel_degree ring_degree cp_size',
  cluster = 'gpus nodes world_size nproc_per_node',
  constants = 'calibration',
  data = 'dp data_parallel data_parallel_size data_parallel_replicate_degree dp_size num_replicas',
  expert = 'ep expert_model_parallel_size expert_parallel_degree ep_size',
  global_batch = 'gbs global_batch_size train_batch_size batch_size',
  micro_batch = 'mbs micro_batch_size local_batch_size train_micro_batch_size_per_gpu',
  micro_batches = 'num_microbatches gradient_accumulation_steps',
  pipeline = 'pp pipeline_model_parallel_size pipeline_parallel_degree num_stages pp_size',
  recompute = 'recompute_granularity activation_checkpointing ac',
  schedule = 'pipeline_parallel_schedule',
  sequence = 'seq_len seq_length sequence_length max_seq_len',
  sequence_parallel = 'sp',
  tensor = 'tp tensor_model_parallel_size tensor_parallel_degree tp_size',
  virtual_stages = 'vpp vp num_virtual_stages_per_pipeline_rank num_layers_per_virtual_pipeline_stage',
  zero_stage = 'zero zero_level stage fsdp use_distributed_optimizer data_parallel_shard_degree',
}

local clients_names = {}
for name, list in pairs(here) do -- in any order: into a table
  for word in list:gmatch '%S+' do clients_names[word] = name end
end

return clients_names
