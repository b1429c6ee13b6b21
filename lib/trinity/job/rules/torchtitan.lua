-- Rules of torchtitan (trinity.job.rules), at its last commit with TOML files.

local rules = [[
=> tp = parallelism.tensor_parallel_degree; pp = parallelism.pipeline_parallel_degree; cp =
  parallelism.context_parallel_degree; ep = parallelism.expert_parallel_degree; etp =
  parallelism.expert_tensor_parallel_degree; replicas = parallelism.data_parallel_replicate_degree; recompute =
  activation_checkpoint; linear8 = quantize.linear.float8; backend = parallelism.expert_parallel_comm_backend;
  balancer = parallelism.context_parallel_load_balancer; stage_layers =
  parallelism.pipeline_parallel_layers_per_stage; early_step = optimizer.early_step_in_backward; rate = lr_scheduler
=> rank = replicas * cp * tp * pp; shard = parallelism.data_parallel_shard_degree
degrees-positive dims:46 replicas < 1 or cp < 1 or tp < 1 or pp < 1 or ep < 1 or etp < 1 | Every degree except sharded
  data parallelism must be at least 1.
shard-positive dims:48 shard ~= -1 and shard < 1 | The sharded data-parallel degree must be -1 or at least 1.
=> if shard < 0 then shard = gpus and rank >= 1 and floor(gpus / rank) or nil end
shard-left dims:51 shard and shard < 1 and parallelism.data_parallel_shard_degree == -1 | The product of the degrees
  may not exceed the number of GPUs.
gpus-product dims:53 gpus and shard and shard >= 1 and rank * shard ~= gpus | The product of all degrees must be the
  number of GPUs.
expert-tensor dims:59 ep > 1 and etp ~= 1 and etp ~= tp
expert-product dims:154 shard and shard >= 1 and ep > 1 and not multiple(shard * cp * tp, ep * etp) | The expert
  degree must divide sharded data x context x tensor degrees.
expert-tensor-idle ignored dims:58 ep == 1 and etp > 1 and etp ~= tp | The expert tensor degree has no effect without
  expert parallelism.
experts-multiple expert:110 network.experts and ep > 1 and not multiple(network.experts, ep)
expert-dense ignored llama3:76 network.layers and not network.experts and ep > 1 | Expert parallelism has no effect in
  a model without experts.
=> batch = shard and shard >= 1 and replicas * shard or nil
batch-positive train:201 training.global_batch_size == 0
local-batch-positive train:201 training.local_batch_size < 1
batch-multiple train:202 batch and training.global_batch_size > 0 and training.local_batch_size > 0 and not
  multiple(training.global_batch_size, training.local_batch_size * batch)
pipeline-model train:220 pp > 1 and among(model.name, 'qwen3 gpt_oss')
replicas-only llama3:151 shard == 1 and cp == 1 and replicas > 1 and (tp > 1 or pp > 1) | Replicas without sharding
  exclude other degrees (DDP).
replicas-model llama4:219 shard == 1 and cp == 1 and gpus and replicas > 1 and ep > 1 | Replicas without sharding
  exclude expert parallelism.
=> schedule = parallelism.pipeline_parallel_schedule:lower(); single = among(schedule, '1f1b gpipe
  pipelineschedulesingle')
schedule-known pipeline:54 pp > 1 and not among(schedule, '1f1b interleaved1f1b gpipe loopedbfs interleavedzerobubble
  pipelineschedulesingle pipelineschedulemulti zbvzerobubble dualpipev') | The schedule is one of
  torch.distributed.pipelining.
=> effective = network.layers and network.layers + parallelism.pipeline_parallel_first_stage_less_layers +
  parallelism.pipeline_parallel_last_stage_less_layers or nil; stages = stage_layers and effective and ceil(effective
  / stage_layers) or nil; if not stages then stages = pp * (single and 1 or 2) end; per_rank = stages / pp
stages-multiple pipeline:86 pp > 1 and stage_layers and not multiple(stages, pp)
stages-single pipeline:97 pp > 1 and stage_layers and multiple(stages, pp) and single and per_rank ~= 1 | A schedule
  of one stage per rank needs one stage for each rank.
stages-multi pipeline:105 pp > 1 and stage_layers and multiple(stages, pp) and not single and per_rank < 2 | A
  schedule of several stages per rank needs two stages per rank.
stages-two pipeline:402 pp > 1 and among(schedule, 'zbvzerobubble dualpipev') and per_rank ~= 2 | The schedule needs
  two stages per rank.
stages-layers pipeline:270 pp > 1 and not parallelism.module_fqns_per_model_part and effective and stages > effective
  | There may not be more stages than layers plus the weights of embedding and output.
stages-first pipeline:290 pp > 1 and not parallelism.module_fqns_per_model_part and effective and stages <= effective
  and parallelism.pipeline_parallel_first_stage_less_layers > floor(effective / stages) | The weight of the embedding
  may not exceed the layers of a stage.
stages-last pipeline:294 pp > 1 and not parallelism.module_fqns_per_model_part and effective and stages <= effective
  and parallelism.pipeline_parallel_last_stage_less_layers > floor(effective / stages) | The weight of the output may
  not exceed the layers of a stage.
micro-batch-multiple pipeline:190 pp > 1 and (parallelism.pipeline_parallel_microbatch_size < 1 or not
  multiple(training.local_batch_size, parallelism.pipeline_parallel_microbatch_size)) | The local batch must be a
  multiple of the pipeline micro-batch.
micro-batch-idle ignored train:218 pp == 1 and given('parallelism.pipeline_parallel_microbatch_size')
layers-idle ignored train:218 pp == 1 and given('parallelism.pipeline_parallel_layers_per_stage')
schedule-idle ignored train:218 pp == 1 and given('parallelism.pipeline_parallel_schedule') and schedule ~= '1f1b'
split-idle ignored train:218 pp == 1 and (given('parallelism.pipeline_parallel_first_stage_less_layers') or
  given('parallelism.pipeline_parallel_last_stage_less_layers') or given('parallelism.module_fqns_per_model_part'))
balancer-empty config:441 balancer == ''
balancer-known context:208 cp > 1 and balancer and not among(balancer, 'headtail ptrr') and balancer ~= '' | The load
  balancer of context parallelism is headtail or ptrr.
context-varlen llama3_args:61 cp > 1 and network.attn == 'varlen'
context-llama4 llama4_args:83 cp > 1 and model.name == 'llama4' and network.attn ~= nil and network.attn ~= 'sdpa'
context-deepseek deepseek_args:105 cp > 1 and model.name == 'deepseek_v3' and network.attn ~= nil and network.attn ~=
  'sdpa'
context-gpt-oss gpt_oss_args:90 cp > 1 and model.name == 'gpt_oss'
async-tensor tensor:21 parallelism.enable_async_tensor_parallel and tp > 1 and not (compile.enable and
  has(compile.components, 'model')) | Asynchronous tensor parallelism needs the model compiled.
async-tensor-idle ignored llama3:76 parallelism.enable_async_tensor_parallel and tp == 1
=> compiled = compile.enable and has(compile.components or 'model', 'model'); float8 = has(model.converters,
  'quantize.linear.float8 float8'); tensorwise = float8 and not among(linear8.recipe_name, 'rowwise
  rowwise_with_gw_hp')
float8-deepseek deepseek:85 model.name == 'deepseek_v3' and tp > 1 and tensorwise
float8-gather float8:66 float8 and linear8.recipe_name and linear8.enable_fsdp_float8_all_gather
float8-experts-pipeline float8:193 has(model.converters, 'quantize.grouped_mm.float8') and pp > 1
float8-experts-context float8:196 has(model.converters, 'quantize.grouped_mm.float8') and cp > 1
mx-tensor mx:50 has(model.converters, 'quantize.linear.mx') and compiled and tp > 1
deepep-experts llama4:116 backend == 'deepep' and model.name == 'llama4' and ep == 1
deepep-experts-deepseek deepseek:102 backend == 'deepep' and model.name == 'deepseek_v3' and ep == 1
deepep-tensor llama4:122 backend == 'deepep' and model.name == 'llama4' and ep > 1 and etp > 1
deepep-tensor-deepseek deepseek:108 backend == 'deepep' and model.name == 'deepseek_v3' and ep > 1 and etp > 1
deepep-idle ignored llama3:76 backend == 'deepep' and not among(model.name, 'llama4 deepseek_v3')
dual-pipe-recompute dualpipe:46 ep > 1 and pp > 1 and schedule == 'dualpipev' and
  parallelism.pipeline_parallel_expert_parallel_overlap and recompute.mode ~= 'none'
reshard-known llama3:329 not among(parallelism.fsdp_reshard_after_forward, 'default always never')
recompute-known recompute:169 not among(recompute.mode, 'none full selective memory_budget')
recompute-option recompute:180 recompute.mode == 'selective' and recompute.selective_ac_option ~= 'op' and not
  tostring(recompute.selective_ac_option):match "^%d+$" | Selective recomputation is op or a number of layers.
recompute-every recompute:147 recompute.mode == 'selective' and tonumber(recompute.selective_ac_option) == 0 |
  Selective recomputation is op or a positive number of layers.
recompute-budget recompute:227 recompute.mode == 'memory_budget' and not compiled
recompute-idle ignored recompute:173 given('activation_checkpoint.selective_ac_option') and recompute.mode ~=
  'selective'
step-experts optimizer:280 early_step and ep > 1
step-pipeline optimizer:284 early_step and pp > 1
step-tolerant optimizer:288 early_step and fault_tolerance.enable
step-implementation optimizer:300 not among(optimizer.implementation, 'fused foreach for-loop')
optimizer-known optimizer:319 not among(optimizer.name, 'Adam AdamW')
=> total = rate.total_steps or training.steps; warmup = rate.warmup_steps; decay = rate.decay_ratio and floor(total *
  rate.decay_ratio + 0.5) or 0
warmup-steps changed rate:116 above(warmup, total) | More warm-up steps than steps are silently cut to the steps (a
  warning). => warmup = total
decay-steps changed rate:125 rate.decay_ratio and warmup + decay > total | Where warm-up and decay are more than all
  steps the decay is silently cut (a warning).
decay-known rate:187 not among(rate.decay_type, 'linear sqrt cosine')
checkpoint-kept checkpoint:299 checkpoint.enable and checkpoint.keep_latest_k == 1
checkpoint-async checkpoint:321 checkpoint.enable and not among(checkpoint.async_mode, 'disabled async
  async_with_pinned_mem')
checkpoint-model checkpoint:586 checkpoint.enable and checkpoint.initial_load_in_hf and not
  checkpoint.initial_load_model_only
checkpoint-quantized checkpoint:591 checkpoint.enable and checkpoint.initial_load_in_hf_quantized and not
  checkpoint.initial_load_in_hf
checkpoint-seed train:759 checkpoint.create_seed_checkpoint and gpus and gpus > 1
checkpoint-seed-enabled train:762 checkpoint.create_seed_checkpoint and not checkpoint.enable
validation-steps config:979 validation.steps < -1 or validation.steps == 0 | Steps of validation are positive, or -1.
validation-model train:327 validation.enable and among(model.name, 'deepseek_v3 gpt_oss')
offload-idle ignored llama3:118 training.enable_cpu_offload and shard == 1 and cp == 1
tokenizer-old changed manager:195 model.tokenizer_path | The old path of the tokenizer replaces model.hf_assets_path
  (a warning).
custom-old changed manager:184 (experimental.custom_args_module or '') ~= '' | The old module of arguments stands for
  job.custom_config_module (a warning).
profile-frequency profiling:65 profiling.enable_profiling and profiling.profile_freq < profiling.profiler_active +
  profiling.profiler_warmup | profiling.profile_freq must not be below profiler_warmup + profiler_active.
tolerant-group ft:53 fault_tolerance.enable and not among(fault_tolerance.process_group, 'gloo nccl')
tolerant-method ft:167 fault_tolerance.enable and fault_tolerance.semi_sync_method and not
  among(fault_tolerance.semi_sync_method:lower(), 'diloco local_sgd') | fault_tolerance.semi_sync_method is diloco or
  local_sgd.
float8-capability float8:42 float8 and capability < 8.9 and not (linear8.emulate and not compiled) | Float8 needs GPUs
  of compute capability 8.9, or quantize.linear.float8.emulate without compilation.
float8-experts-capability float8:185 has(model.converters, 'quantize.grouped_mm.float8') and capability < 8.9 | Float8
  experts need GPUs of compute capability 8.9.
mx-capability mx:42 has(model.converters, 'quantize.linear.mx') and capability < 10 | MXFP8 needs GPUs of compute
  capability 10 (Blackwell).
mx-experts-capability mx:112 has(model.converters, 'quantize.grouped_mm.mx') and capability < 10 | MXFP8 needs GPUs of
  compute capability 10 (Blackwell).
context-qwen3 qwen3:71 cp > 1 and model.name == 'qwen3' and network.attn ~= nil and network.attn ~= 'sdpa'
model-known spec:87 not among(model.name, 'deepseek_v3 flux gpt_oss llama3 llama3_ft llama4 qwen3') and not
  among(model.name, 'simple_fsdp.llama3 simple_fsdp.deepseek_v3 vlm compiler_toolkit.deepseek_v3
  compiler_toolkit.llama3 transformers_modeling_backend autoparallel.llama3 autoparallel.deepseek_v3
  autoparallel.local_map_deepseek_v3') and (experimental.custom_import or '') == '' | model.name must be a model of
  torchtitan (llama3, llama4, deepseek_v3, qwen3, gpt_oss, flux).
flavor-known train:138 among(model.name, 'deepseek_v3 gpt_oss llama3 llama3_ft llama4 qwen3') and not network.layers |
  model.flavor must be a flavor of the model.
data-known data:60 among(model.name, 'deepseek_v3 gpt_oss llama3 llama3_ft llama4 qwen3') and not
  among(training.dataset, 'c4 c4_test c4_validation') and (experimental.custom_import or '') == '' | training.dataset
  must be c4, c4_test or c4_validation.
converter-known converter:62 outside(model.converters, 'quantize.linear.float8 quantize.linear.mx
  quantize.grouped_mm.float8 quantize.grouped_mm.mx float8 mx') and (experimental.custom_import or '') == '' |
  model.converters must be quantize.linear or quantize.grouped_mm, with .float8 or .mx.
]]
for model, at in ('llama3 69 llama3_ft 69 llama4 84 deepseek_v3 60 qwen3 62 gpt_oss 66 '):gmatch '(%S+) (%S+) ' do
  rules = rules .. ([[
sequence-%s %s:%s model.name == '%s' and not multiple(training.seq_len, 2 * cp * tp)
]]):format(model, model:gsub('_v3', ''):gsub('_ft', ''), at, model)
end

local infra = 'torchtitan/models/%s/infra/parallelize.py'

local labels = { gpus = 'the number of GPUs', network = 'model.flavor', stages = 'the stages',
  schedule = 'parallelism.pipeline_parallel_schedule', shard = 'parallelism.data_parallel_shard_degree',
  compiled = 'compile.enable', float8 = 'model.converters quantize.linear.float8', tensorwise = 'Float8 by tensor',
  ['network.experts'] = 'the number of experts', ['network.attn'] = 'the attention of model.flavor' }

return { repository = 'pytorch/torchtitan', rules = rules, labels = labels,
  parts = { spec = 'torchtitan/protocols/train_spec.py', data = 'torchtitan/hf_datasets/text_datasets.py',
    converter = 'torchtitan/protocols/model_converter.py', profiling = 'torchtitan/tools/profiling.py',
    ft = 'torchtitan/components/ft/manager.py',
    dims = 'torchtitan/distributed/parallel_dims.py', train = 'torchtitan/train.py',
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
