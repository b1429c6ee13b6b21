-- Rules of BigScience's Megatron-DeepSpeed (trinity.job.rules).

return { repository = 'bigscience-workshop/Megatron-DeepSpeed',
  parts = { args = 'megatron/arguments.py', micro = 'megatron/microbatches.py', utils = 'megatron/mpu/utils.py',
    pipe = 'deepspeed/runtime/pipe/engine.py' },
  rules = [[
=> ranks, remat = tensor_model_parallel_size * pipeline_model_parallel_size, 1; modules, groups = {},
  num_attention_heads; num_layers = num_layers or encoder_num_layers
gpus-tensor args:75 gpus and not multiple(gpus, tensor_model_parallel_size) | The number of GPUs must be a multiple of
  the tensor-parallel degree.
gpus-multiple args:85 gpus and multiple(gpus, tensor_model_parallel_size) and not multiple(gpus, ranks) | The number
  of GPUs must be a multiple of tensor x pipeline.
=> data = gpus and max(1, floor(gpus / ranks)) or nil
old-batch-size args:125 batch_size ~= nil | The old argument is refused; use --micro-batch-size.
old-warmup args:128 warmup ~= nil | The old argument is refused; use --lr-warmup-fraction.
old-model-parallel args:131 model_parallel_size ~= nil | The old argument is refused; use
  --tensor-model-parallel-size.
micro-batch-given args:150 micro_batch_size == nil
micro-batch-positive args:151 not positive(micro_batch_size)
global-batch-default changed args:153 global_batch_size == nil and micro_batch_size and data | Without a global batch
  it becomes micro-batch x data-parallel degree. => global_batch_size = micro_batch_size * data
global-batch-positive args:157 not positive(global_batch_size)
batch-multiple micro:77 data and positive(micro_batch_size) and micro_batch_size and not rampup_batch_size and not
  multiple(global_batch_size, micro_batch_size * data) | The global batch must be a multiple of micro-batch x
  data-parallel degree.
=> micro_batches = data and global_batch_size and micro_batch_size and micro_batch_size > 0 and
  floor(global_batch_size / (micro_batch_size * data)) or nil
rampup-words micro:34 rampup_batch_size and length(rampup_batch_size) ~= 3 | The batch ramp-up is a start, an
  increment and samples.
rampup-increment micro:126 length(rampup_batch_size) == 3 and tonumber(rampup_batch_size[2]) > 0 and global_batch_size
  and not multiple(global_batch_size - rampup_batch_size[1], tonumber(rampup_batch_size[2])) | The ramp-up must reach
  the global batch in whole increments.
virtual-three args:159 num_layers_per_virtual_pipeline_stage and pipeline_model_parallel_size <= 2
virtual-layers args:162 not multiple(num_layers, num_layers_per_virtual_pipeline_stage)
fp16-bf16 args:174 fp16 and bf16
steps-samples args:210 train_iters and train_samples
steps-decay-samples args:212 train_iters and lr_decay_samples
steps-warmup-samples args:214 train_iters and (lr_warmup_samples or 0) ~= 0 | Counting in iterations and in samples
  may not both be given.
steps-rampup args:216 train_iters and rampup_batch_size
samples-decay-steps args:228 train_samples and not train_iters and lr_decay_iters
samples-warmup-steps args:230 train_samples and not train_iters and (lr_warmup_iters or 0) ~= 0 | Counting in
  iterations and in samples may not both be given.
warmup-once args:219 lr_warmup_fraction and ((lr_warmup_iters or 0) ~= 0 or (lr_warmup_samples or 0) ~= 0) | A warm-up
  fraction and a number of warm-up steps may not both be given.
network-given args:346 not (num_layers and hidden_size and num_attention_heads) | Layers, hidden size and heads must
  be given.
=> ffn_hidden_size = ffn_hidden_size or hidden_size and 4 * hidden_size
hidden-heads args:247 kv_channels == nil and not multiple(hidden_size, num_attention_heads)
=> if not kv_channels and hidden_size and num_attention_heads then kv_channels = floor(hidden_size /
  num_attention_heads) end; seq_length = seq_length or encoder_seq_length
positions-sequence args:260 max_position_embeddings and seq_length and max_position_embeddings < seq_length
least-rate args:267 lr and min_lr and min_lr > lr
save-interval args:269 save and save_interval == nil
loss-fp16 args:272 fp16_lm_cross_entropy and not fp16
residual-fp32 args:274 fp32_residual_connection and not (fp16 or bf16)
heads-tensor utils:22 not multiple(num_attention_heads, tensor_model_parallel_size)
]] }
