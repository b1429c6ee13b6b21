-- Memory of every class of ranks of a job by owner, counted in the simulated step (strategy:breakdown), and changes
-- that free memory of the fullest rank, with their cost in step time.

local account_of = require 'trinity.strategy.account'
local model = require 'trinity.graph.model'
local nodes = require 'trinity.cluster.nodes'
local patterns = require 'trinity.job.patterns'
local problems = require 'trinity.strategy.problem'
local recomputes = require 'trinity.job.recomputes'
local simulator = require 'trinity.strategy.simulator'
local util = require 'trinity.base.util'

local memory = {}

local dtypes = { bf16 = 'bfloat16', fp16 = 'float16', fp32 = 'float32', fp8 = 'float8' }

-- Options of model 'decoder' that the files of all clients give.
local function common(job)
  local m = job.model
  for _, name in ipairs { 'layers', 'hidden', 'heads', 'sequence' } do
    if not m[name] then
      util.fail("trinity.job.memory: %s: expected the network's %s, got none", job.path, name)
    end
  end
  return { layers = m.layers, hidden = m.hidden, heads = m.heads, num_kv_heads = m.kv_heads or 0,
    head_dim = not m.latent_attention and m.head_size or nil, feed_forward = m.ffn, tied = m.tied_embeddings or false,
    experts = m.experts or 0, experts_per_token = m.experts_per_token or 0, expert_feed_forward = m.expert_ffn or 0,
    shared = m.shared_expert_ffn or 0, further = m.mtp_layers or 0, vocabulary = m.vocab or 50257, gated = true,
    apart = true, optimizer = 'adam', gradient_dtype = 'float32', dtype = 'bfloat16', kernels = 'flash',
    sequence = m.sequence, batch_size = job.micro_batch }
end

local clients = {}

clients['Megatron-LM'] = function(job)
  local v, o = job.settled, common(job)
  if v.hybrid or v.linear then
    util.fail('trinity.job.memory: %s: predictions for networks with %s are not supported', job.path,
      v.hybrid and 'a hybrid pattern' or 'linear attention')
  end
  local step = v.make_vocab_size_divisible_by * v.tensor_model_parallel_size
  local tokens = o.vocabulary + (v.tokenizer_type == 'NullTokenizer' and 1 or 0)
  local here = v.transformer_impl == 'local'
  local scores = v.micro_batch_size * v.num_attention_heads / v.tensor_model_parallel_size
    * (o.sequence / v.context_parallel_size) ^ 2
  o.vocabulary = math.ceil(tokens / step) * step
  o.gated, o.norm = v.swiglu, v.normalization == 'RMSNorm' and 'rms' or 'layer'
  o.bias = v.add_bias_linear and 'all' or v.add_qkv_bias and 'qkv' or 'none'
  o.positions = v.position_embedding_type == 'learned_absolute' and v.max_position_embeddings or 0
  o.dropout, o.qk_norm = v.hidden_dropout > 0 and 0.1 or 0, v.qk_layernorm
  o.kernels = (v.attention_backend == 'unfused' or here) and 'megatron' or 'flash'
  o.dtype = (v.fp8 or v.fp4) and 'float8' or dtypes[job.precision] or 'float32'
  local reduced = v.grad_reduce_in_bf16 or v.main_grads_dtype == 'bf16' and not v.accumulate_allreduce_grads_in_fp32
  if v.fp16 then o.gradient_dtype = 'float16' elseif v.bf16 and reduced then o.gradient_dtype = 'bfloat16' end
  if v.multi_latent_attention then
    o.kv_lora_rank, o.q_lora_rank, o.qk_nope_head_dim = v.kv_lora_rank, v.q_lora_rank or 0, v.qk_head_dim
    o.qk_rope_head_dim, o.v_head_dim, o.positions = v.qk_pos_emb_head_dim, v.v_head_dim, 0
  end
  if v.num_experts then
    o.expert_groups, o.group_topk = v.moe_router_num_groups, v.moe_router_group_topk
    o.dense_layers, o.moe_layer_freq = patterns.experts(v.moe_layer_freq, o.layers)
    if not o.moe_layer_freq then
      util.fail('trinity.job.memory: %s: expected --moe-layer-freq as a number or as first layers without experts, got '
        .. 'another pattern', job.path)
    end
  end
  o.logit_bytes = (v.cross_entropy_loss_fusion or v.defer_embedding_wgrad_compute) and 6 or 0
  if job.client == 'Megatron-DeepSpeed' then o.kernels = 'megatron' end
  return o, { workspace_bytes = here and 2 * scores or v.tp_comm_overlap and 2 * 32 * 2 ^ 20 or nil,
    expert_streams = v.num_experts and not v.moe_grouped_gemm and 0 or nil,
    cuda_graphs = ({ none = 'none', full_iteration = 'all' })[v.cuda_graph_impl] or 'attention',
    dispatcher = v.moe_token_dispatcher_type == 'flex' and 'flex' or 'alltoall',
    float8 = v.fp4 and 'nvfp4' or v.fp8_recipe == 'mxfp8' and 'mxfp8' or nil,
    matmul_workspace_bytes = v.env.CUBLAS_WORKSPACE_CONFIG == ':4096:8' and 32 * 2 ^ 20 or nil }
end

clients.torchtitan = function(job)
  local v, o, n = job.settled, common(job), job.network
  o.dtype = v.float8 and 'float8' or v.training.mixed_precision_param
  -- without compilation log-softmax and two gradients of the size of the logits are in float32 (components/loss.py)
  local compiled = v.compile.enable and table.concat(v.compile.components or { 'loss' }, ' '):find 'loss'
  o.logit_bytes = compiled and 0 or 6
  o.dense_layers, o.moe_layer_freq, o.shared = n.dense or 0, n.every or 1, (n.shared or 0) * (n.expert_ffn or 0)
  if n.experts and not n.expert_ffn then o.expert_feed_forward = n.ffn end
  if n.latent then
    o.kv_lora_rank, o.q_lora_rank = n.latent, n.query or 0
    o.qk_nope_head_dim, o.qk_rope_head_dim, o.v_head_dim = 128, 64, 128
  end
  return o, { base = v.compiled and 'torchtitan' or 'eager',
    float8 = v.float8 and not v.tensorwise and 'fp8_rowwise' or nil,
    async_tensor = v.parallelism.enable_async_tensor_parallel or nil }
end

clients.nanotron = function(job)
  local o = common(job)
  o.gradient_dtype = job.precision:find 'fp32' and 'float32' or 'bfloat16'
  return o
end

clients['LLM Foundry'] = function(job)
  local o, m = common(job), job.settled.model
  o.gated, o.norm, o.bias = job.settled.experts.ffn_type == 'mptglu', 'layer', m.no_bias and 'none' or 'all'
  o.positions, o.dtype = job.model.positions or 0, dtypes[job.precision] or 'bfloat16'
  return o
end

clients['Megatron-DeepSpeed'] = clients['Megatron-LM']

-- Returns trinity's value of `recompute` for the recomputation of the job.
local function recompute_of(job)
  local r = job.recompute
  local offload = job.offload or {}
  if offload.activations then return recomputes.offloaded end
  if type(r) ~= 'table' then return 'none' end
  if r.granularity == 'full' then return 'full' end
  local modules = table.concat(r.modules or {}, ' ')
  if modules == '' or modules == 'core_attn' then return 'selective' end
  return recomputes.of(modules)
end

--- Returns the number of GPUs of a cluster, or nil for a machine type ('dgx_h100'), of which a job takes the number it
--- needs.
function memory.gpus_of(cluster)
  if not cluster or nodes.find(cluster) then return nil end
  return #model.cluster(cluster).devices
end

--- Returns the case of a job: network, cluster, runtime and strategy. Experts that span parts of a sequence count the
--- parts as replicas with shorter sequences.
---@param job trinity.JobFile
---@param cluster string a machine type, or a cluster with the GPUs of the job
---@param whole? boolean simulate all micro-batches (not needed for memory)
function memory.case(job, cluster, whole)
  local build = clients[job.client]
  if not build then
    util.fail('trinity.job.memory: %s: files of %s do not contain the network', job.path, job.client)
  end
  if not job.mesh.data then util.fail("trinity.job.memory: %s: expected the number of GPUs, got none; use option "
    .. "'gpus' (--gpus)", job.path) end
  if (job.micro_batches or 0) < 1 then
    util.fail('trinity.job.memory: %s: expected at least one micro-batch per step; use trinity check', job.path)
  end
  local count = memory.gpus_of(cluster)
  if count and count ~= job.gpus then
    util.fail("option 'cluster': expected %d GPUs as in %s, got %s with %d", job.gpus, job.path, cluster, count)
  end
  local options, runtime = build(job)
  local mesh, v = job.mesh, job.settled
  local context, virtual = mesh.context or 1, mesh.virtual_stages or 1
  local experts = math.max(1, (mesh.expert or 1) * (mesh.expert_tensor or mesh.tensor) / mesh.tensor)
  if options.experts == 0 then experts = 1 end
  local micro_batches = whole and job.micro_batches or math.min(job.micro_batches, 2 * mesh.pipeline * virtual)
  if virtual > 1 then micro_batches = mesh.pipeline * math.ceil(micro_batches / mesh.pipeline) end
  local replicas = mesh.data
  if replicas % experts ~= 0 then
    options.sequence, replicas, context = options.sequence / context, replicas * context, 1
  end
  local instances = v.num_distributed_optimizer_instances or mesh.data_replicate or 1
  local run = instances > 1 and replicas % instances == 0 and replicas / instances -- replicas that shard states
  return { options = options, runtime = util.merged({ base = job.runtime }, runtime),
    cluster = count and cluster or nodes.job(cluster, job.gpus),
    strategy = { mesh = { data = replicas, tensor = mesh.tensor, pipeline = mesh.pipeline, expert = experts,
        context = context },
      cp_comm_type = context > 1 and job.context_exchange or nil,
      schedule = virtual > 1 and 'interleaved' or '1f1b', virtual_stages = virtual, stages = job.stages,
      order = job.rank_order and job.rank_order[5] == 'data' and job.rank_order or nil,
      micro_batches = micro_batches, recompute = recompute_of(job),
      sync = run and run > 1 and { kind = 'hierarchical', inner = run } or nil,
      zero_stage = run == 1 and 0 or job.zero_stage or 0,
      optimizer_offload_fraction = job.offload and job.offload.optimizer and (tonumber(job.offload.optimizer) or 1),
      activation_offload_fraction = job.offload and job.offload.layers and job.offload.layers / options.layers,
      sequence_parallel = mesh.sequence_parallel or false } }
end

local unmodelled = 'attention_output_gate enable_mhc_connections experimental_attention_variant freeze_all_layers '
  .. 'heterogeneous_layers_config_path hybrid_context_parallel moe_expert_capacity_factor moe_latent_size '
  .. 'tensor_parallel_num_weight_shards window_size'

--- Returns the arguments of a job that change memory or time, but not the predictions.
function memory.unmodelled(job)
  local list, optimizer = {}, job.given.optimizer and job.values.optimizer
  for name in unmodelled:gmatch '%S+' do list[#list + 1] = job.values[name] and job.given[name] or nil end
  local other = type(optimizer) == 'string' and optimizer ~= 'adam' and optimizer ~= 'sgd'
  list[#list + 1] = other and '--optimizer ' .. optimizer or nil
  return list
end

-- Returns use(problem) with the simulator of a case.
local function simulated(one, use)
  local problem = problems.simulator { graph = model.load('decoder', one.options),
    cluster = model.cluster(one.cluster, { runtime = one.runtime }) }
  local result = use(problem)
  problem:close()
  problem.graph:close()
  return result
end

--- Sorts a list by a number, largest first, then by a text. Returns the list.
function memory.sorted(list, number, text)
  table.sort(list, function(a, b)
    if a[number] ~= b[number] then return a[number] > b[number] end
    return a[text] < b[text]
  end)
  return list
end

-- Returns by device the activations and their gradients at its peak, by the operator of a layer that writes them
-- ('attention/query'), and when the peak is: { time_s, operator, micro_batch }, with the operator that runs there.
local function at_peak(found, timeline)
  local graph, groups, names, numbers = simulator.lowered('trinity.job.memory', found.problem, found).graph, {}, {}, {}
  for i = 1, graph.operators do
    local name = graph:operator(i).name:match '^[^@]*'
    for _, other in ipairs { '^layer_%d+/', '/grad.*$', '/recompute$', '/gather%d*$', '/sum[%d.]+$', '/float32$' } do
      name = name:gsub(other, '')
    end
    if not numbers[name] then names[#names + 1], numbers[name] = name, #names + 1 end
    groups[i] = numbers[name]
  end
  local account = timeline.handle:account(groups)
  local peaks = util.map(account, function(_, d)
    local peak
    for _, level in ipairs(timeline:memory(d)) do
      if not peak or level.bytes > peak.bytes then peak = level end
    end
    return { time_s = peak.time_s }
  end)
  for t = 1, timeline.tasks do
    local at = peaks[timeline.device[t]]
    if timeline.start_s[t] <= at.time_s and timeline.end_s[t] > at.time_s then
      local i = (t - 1) % graph.operators + 1
      at.operator, at.micro_batch = graph:operator(i).name:match '^[^@]*', (t - i) / graph.operators + 1
    end
  end
  return util.map(account, function(device)
    local list = {}
    for g, bytes in ipairs(device.peak_activations) do
      if bytes > 0 then list[#list + 1] = { name = names[g], bytes = bytes } end
    end
    return memory.sorted(list, 'bytes', 'name')
  end), peaks
end

--- Simulates a case. Returns stages and devices (strategy:breakdown), step_time_s, whether it fits, the mean error of
--- the constants, the GPU type, and the weights used per token; with `detail` operators and peaks by device.
function memory.evaluated(one, detail)
  return simulated(one, function(problem)
    local found, kind = problem:strategy(one.strategy), problem.cluster.basis.kinds[1]
    local account, timeline = account_of(found)
    local operators, peaks
    if detail then operators, peaks = at_peak(found, timeline) end
    return { operators = operators, peaks = peaks, gpu = problem.cluster.devices[1].type,
      active_parameters = problem.graph.active_parameters,
      stages = account.stages, step_time_s = found.metrics.step_time_s,
      fits = found.metrics.feasible, capacity_bytes = problem.cluster.devices[1].capacity_bytes,
      mean_error = kind and kind.mean_error }
  end)
end

--- Returns the step time of a job in seconds, or nil if it does not fit.
function memory.step(job, cluster)
  local one = memory.case(job, cluster, true)
  return simulated(one, function(problem)
    local metrics = problem:evaluate(one.strategy)
    return metrics.feasible and metrics.step_time_s or nil
  end)
end

-- Returns the bytes of a stage by column, without offloaded weights; operators: of its activations.
local function row_of(job, stage, operators)
  local peak, offload, logits = stage.peak_bytes, job.offload or {}, 0
  for _, operator in ipairs(operators or {}) do
    if operator.name == 'logits' or operator.name == 'loss' then logits = logits + operator.bytes end
  end
  local row = { layers = stage.layers, weights = offload.parameters and 0 or peak.weights, gradients = peak.gradients,
    optimizer = peak.optimizer * (job.state_bytes or 12) / 12, logits = logits, workspaces = peak.workspace,
    activations = peak.activations + peak.activation_gradients + peak.delayed - logits,
    communication = peak.received + peak.gathered,
    framework = peak.framework, operators = operators }
  row.peak = 0
  for _, name in ipairs(memory.columns) do row.peak = row.peak + row[name] end
  return row
end

memory.columns = { 'weights', 'gradients', 'optimizer', 'activations', 'logits', 'workspaces', 'communication',
  'framework' }

--- Returns changes that a job does not have yet: { name, case }. They may free memory or, with `faster`, time.
function memory.changes(job, one, faster)
  local list, s, mesh = {}, one.strategy, one.strategy.mesh
  local function add(name, strategy, options, runtime)
    list[#list + 1] = { name = name, case = util.merged(one, { strategy = util.merged(s, strategy),
      options = util.merged(one.options, options), runtime = util.merged(one.runtime, runtime) }) }
  end
  local count, layers = 2 * mesh.pipeline, one.options.layers
  if faster and mesh.pipeline > 1 and s.virtual_stages == 1 and layers % count == 0
    and s.micro_batches % mesh.pipeline == 0 then
    add('interleaved schedule (2 virtual stages)', { schedule = 'interleaved', virtual_stages = 2,
      stages = util.listed(count, function() return layers / count end) })
  end
  if faster and one.options.experts > 0 and one.runtime.cuda_graphs ~= 'all' then
    add('use of CUDA graphs', {}, {}, { cuda_graphs = 'all' })
  end
  if faster and s.recompute ~= 'none' then add('no recomputation', { recompute = 'none' }) end
  if faster and job.micro_batch and s.micro_batches % 2 == 0 then
    add(('micro-batch %d'):format(2 * job.micro_batch), { micro_batches = s.micro_batches / 2 },
      { batch_size = 2 * job.micro_batch })
  end
  if s.recompute == 'none' and one.options.kernels ~= 'flash' then
    add('selective recomputation', { recompute = 'selective' })
  end
  if s.recompute ~= 'full' then add('full recomputation', { recompute = 'full' }) end
  if mesh.tensor > 1 and not s.sequence_parallel then add('sequence parallelism', { sequence_parallel = true }) end
  for axis, parts in util.sorted_pairs { context = one.options.sequence / 2, tensor = one.options.heads } do
    local degree = 2 * mesh[axis]
    if not faster and mesh.data % 2 == 0 and one.options.experts == 0 and parts % degree == 0 then
      add(('%s parallelism %d'):format(axis, degree), { micro_batches = 2 * s.micro_batches,
        cp_comm_type = axis == 'context' and 'ring' or s.cp_comm_type,
        mesh = util.merged(mesh, { [axis] = degree, data = mesh.data / 2 }) })
    end
  end
  if s.zero_stage == 0 and mesh.data > 1 then add('distributed optimizer (ZeRO 1)', { zero_stage = 1 }) end
  if s.zero_stage < 3 and mesh.data > 1 and mesh.pipeline == 1 then add('FSDP (ZeRO 3)', { zero_stage = 3 }) end
  if job.micro_batch > 1 and job.micro_batch % 2 == 0 then
    add(('micro-batch %d'):format(job.micro_batch / 2), { micro_batches = 2 * s.micro_batches },
      { batch_size = job.micro_batch / 2 })
  end
  return list
end

--- Returns the memory of a job: rows by stage { layers, weights, ..., peak }, the fullest stage, its peak { time_s,
--- operator, micro_batch }, and changes { name, frees_bytes, step_time_ratio }, largest first.
---@param job trinity.JobFile
---@param cluster? string as memory.case; default 'dgx_h100'
function memory.of(job, cluster)
  local one = memory.case(job, cluster or 'dgx_h100')
  local now = memory.evaluated(one, true)
  local rows, fullest = util.map(now.stages, function(s) return row_of(job, s, now.operators[s.device]) end), 1
  for s, row in ipairs(rows) do if row.peak > rows[fullest].peak then fullest = s end end
  local helps = {}
  for _, change in ipairs(memory.changes(job, one)) do
    local ok, other = pcall(memory.evaluated, change.case)
    if ok then
      local most = 0
      for _, stage in ipairs(other.stages) do most = math.max(most, row_of(job, stage).peak) end
      helps[#helps + 1] = { name = change.name, frees_bytes = rows[fullest].peak - most,
        step_time_ratio = other.step_time_s / now.step_time_s }
    end
  end
  return { rows = rows, fullest = fullest, at = now.peaks[now.stages[fullest].device],
    helps = memory.sorted(helps, 'frees_bytes', 'name'),
    capacity_bytes = now.capacity_bytes, step_time_s = now.step_time_s, cluster = one.cluster }
end

return memory
