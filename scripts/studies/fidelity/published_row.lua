-- A row of published training speeds as a case (case.lua). Columns: id, model, parameters_b, hidden, layers, heads,
-- kv_heads, ffn, vocab, experts, experts_per_token, sequence, global_batch, micro_batch, gpus, gpu, tp, pp, vpp, dp,
-- cp, ep, etp, dispatcher, zero, recompute, precision, runtime, gradient_dtype, fused_loss, bucket_elements, source,
-- note, value, unit. What is left empty is assumed by the rules below, each of which adds its sentence to `assumed`.

local case = require 'studies.fidelity.case'
local csv = require 'studies.rows'
local json = require 'trinity.base.json'
local nodes = require 'trinity.cluster.nodes'
local runtimes = require 'trinity.cluster.runtimes'
local tables = require 'studies.fidelity.tables'
local util = require 'trinity.base.util'

local published_row = {}

local machines = tables.words 'gpu'
local precisions = tables.words 'precision' -- kinds of arithmetic: what matmuls read where it is not 16 bits
local needed = { 'id', 'hidden', 'layers', 'ffn', 'sequence', 'global_batch', 'gpus', 'gpu' }

local function expect(row, ...) csv.expect(row.path, row, ...) end
local function whole(row, column, otherwise, least) return csv.whole(row.path, row, column, otherwise, least) end
local function filled(row, column) return row[column] ~= nil and row[column] ~= '' end
local function contains(row, column, word) return (row[column] or ''):lower():find(word, 1, true) ~= nil end

--- The arithmetic of a row: `float8` and FP4 where the GPU has them; Hopper scales parts of a row as it does tensors.
local function arithmetic(row)
  local word = filled(row, 'precision') and row.precision or 'bf16'
  local kind, hopper = precisions[word], row.gpu:find '^H'
  expect(row, kind, "column 'precision': unknown precision %s", util.unknown(word, util.sorted_keys(precisions)))
  expect(row, not (kind ~= 'bf16' and row.gpu:find '^[AV]' or kind == 'nvfp4' and hopper),
    "column 'precision': %s has no such arithmetic, got %s", row.gpu, util.quoted(word))
  return kind == 'mxfp8' and hopper and 'fp8' or kind
end

local function read_network(row, assume)
  local m = { hidden = whole(row, 'hidden'), layers = whole(row, 'layers'), ffn = whole(row, 'ffn'),
    experts = whole(row, 'experts', 0, 0) }
  m.heads = whole(row, 'heads', math.max(1, math.floor(m.hidden / 128)))
  m.kv_heads, m.vocab = whole(row, 'kv_heads', m.heads), whole(row, 'vocab', 51200)
  if not filled(row, 'heads') then assume 'heads of 128' end
  if not filled(row, 'vocab') then assume 'a vocabulary of 51,200' end
  m.gated = m.experts > 0 or m.ffn ~= 4 * m.hidden
  if m.experts > 0 then
    m.top_k = whole(row, 'experts_per_token')
  elseif filled(row, 'parameters_b') then -- a gate where that comes nearer to the stated number of weights
    local stated = 1e9 * csv.number(row.path, row, 'parameters_b')
    expect(row, stated > 0, "column 'parameters_b': expected more than 0, got %s", util.describe(row.parameters_b))
    local function off(matrices)
      return math.abs(math.log((m.layers * (2 * m.hidden ^ 2 + 2 * m.hidden * m.kv_heads * (m.hidden / m.heads)
        + matrices * m.hidden * m.ffn) + 2 * m.vocab * m.hidden) / stated))
    end
    m.gated = off(3) < off(2)
  end
  -- Widths of latent attention and experts: DeepSeek-AI, "DeepSeek-V3 Technical Report", 2024, 4.2.
  m.deepseek = tostring(row.model):lower():find 'deepseek' and true or nil
  -- Qwen3's heads are 128 wide whatever the hidden size is (Qwen3 Technical Report, 2025, table 1).
  m.head_dim = m.experts > 0 and 128 or nil
  return m
end

--- Micro-batch and micro-batches of a step, where none is stated. torchtitan cuts the local batch into one part per
--- stage (two per stage where it interleaves). Without a pipeline small ones have no use.
local function read_batch(row, plan, assume)
  local total = whole(row, 'global_batch')
  local own, size = total / plan.data, whole(row, 'micro_batch', 1)
  expect(row, own % 1 == 0, "column 'global_batch': %d sequences do not divide over %d replicas", total, plan.data)
  if not filled(row, 'micro_batch') and plan.torchtitan and plan.pipeline > 1 then
    size = math.max(1, math.floor(own / (plan.pipeline * plan.virtual)))
    assume('micro-batches of %d: one per virtual stage', size)
  elseif not filled(row, 'micro_batch') and (plan.pipeline == 1 or plan.unfused and plan.pipeline == 2) then
    size = own % 4 == 0 and 4 or 1
    assume('micro-batches of %d: no long pipeline is to be kept full', size)
  elseif not filled(row, 'micro_batch') then assume 'micro-batches of one sequence' end
  expect(row, own % size == 0, "column 'micro_batch': %d sequences of a replica are no multiple of %d", own, size)
  plan.micro_batch, plan.micro_batches = size, own / size
end

--- Model chunks of a GPU where none are stated: none but in recipes of NeMo, whose pipelines interleave.
local function read_virtual(row, plan, m, assume)
  plan.virtual = whole(row, 'vpp', 1)
  if filled(row, 'vpp') or plan.pipeline == 1 then return end
  if plan.torchtitan and contains(row, 'note', 'interleaved') then plan.virtual = 2
  elseif not plan.torchtitan and not plan.unfused and m.experts == 0 then
    plan.virtual = math.max(1, math.min(5, math.floor(m.layers / plan.pipeline)))
  end
  assume('%d model chunks a GPU', plan.virtual)
end

local function read_shard(row, plan, assume)
  plan.zero_stage = whole(row, 'zero', 1, 0)
  if not filled(row, 'zero') then assume 'ZeRO 1' end
  expect(row, plan.zero_stage <= 3, "column 'zero': expected 0 to 3, got %s", util.describe(row.zero))
  if plan.zero_stage == 3 and plan.pipeline > 1 then
    plan.zero_stage = 1
    assume 'weights of a pipeline are gathered once a step'
  end
end

--- The plan of a row, whose columns agree; problem:evaluate refuses what the network does not divide into.
local function read_plan(row, m, assume)
  local plan = { gpus = whole(row, 'gpus'), tensor = whole(row, 'tp', 1), pipeline = whole(row, 'pp', 1),
    context = whole(row, 'cp', 1), expert = whole(row, 'ep', 1) }
  local inner = plan.tensor * plan.pipeline * plan.context
  plan.data = whole(row, 'dp', math.max(1, math.floor(plan.gpus / inner)))
  expect(row, plan.data * inner == plan.gpus, 'dp %d x tp %d x pp %d x cp %d is not %d GPUs', plan.data, plan.tensor,
    plan.pipeline, plan.context, plan.gpus)
  expect(row, plan.pipeline <= m.layers, "column 'pp': expected at most %d (layers), got %d", m.layers, plan.pipeline)
  plan.expert_ranks = plan.expert -- that have experts of their own; a mesh has them along data, then along tensor
  plan.expert = math.max(1, math.floor(plan.expert * whole(row, 'etp', 1) / plan.tensor))
  plan.torchtitan = contains(row, 'source', 'torchtitan') or row.gpu == 'H100-96GB'
  plan.unfused = row.gpu:find '^[AV]' ~= nil and not plan.torchtitan and not contains(row, 'runtime', 'composer')
  read_virtual(row, plan, m, assume)
  read_batch(row, plan, assume)
  if plan.virtual > 1 and plan.micro_batches % plan.pipeline ~= 0 then
    plan.virtual = 1
    assume 'no interleaving: micro-batches do not fill the pipeline'
  end
  read_shard(row, plan, assume)
  plan.recompute = csv.word(row.path, row, 'recompute', { 'none', 'selective', 'full' }, 'none')
  if not filled(row, 'recompute') then assume 'no recomputation' end
  plan.sequence_parallel = plan.tensor > 1 and (not plan.unfused or plan.recompute == 'selective')
  return plan
end

local function release_of(row) return (row.source or ''):match 'NeMo (%d%d%.%d%d)' or '' end

--- A recipe of Megatron-Bridge by the words that decide its settings: 'B200 deepseek one stage'.
local function recipe_of(row, m, plan)
  return row.gpu .. (m.deepseek and ' deepseek' or '') .. (plan.pipeline == 1 and ' one stage' or '')
end

--- Kernels of a mixture of experts that recipes of Megatron-Bridge have in CUDA graphs (github NVIDIA-NeMo/
--- Megatron-Bridge @ 067f987df03b, perf_recipes/qwen and deepseek, cuda_graph_impl and cuda_graph_scope): from 26.06 on
--- recipes of MXFP8 record whole iterations; before, and in other precisions, modules.
local function cuda_graphs(row, m, plan, kind)
  local whole_iterations = kind == 'mxfp8' and release_of(row) >= '26.06'
  return tables.meaning(whole_iterations and 'graphs of iterations' or 'graphs of modules', recipe_of(row, m, plan))
end

--- The token dispatcher of recipes of Megatron-Bridge (perf_recipes, and the configurations of earlier releases):
--- flex, with HybridEP or DeepEP, from a release on. Qwen3 235B on H100 and B200 has all-to-alls.
local function dispatcher(row, m, plan)
  if filled(row, 'dispatcher') then return csv.word(row.path, row, 'dispatcher', { 'alltoall', 'flex' }) end
  if not contains(row, 'source', 'megatron-bridge') then return nil end
  local since = tables.meaning('flex dispatcher since', recipe_of(row, m, plan))
  return since and release_of(row) >= since and 'flex' or 'alltoall'
end

--- The runtime of a row by its source, with what its precision and recipe change.
local function runtime_of(row, m, plan, kind, assume)
  local name, changes = row.runtime, {}
  if not filled(row, 'runtime') then
    if plan.torchtitan then
      name = filled(row, 'note') and not contains(row, 'note', 'compile') and 'eager' or 'torchtitan'
    elseif plan.unfused and row.zero == '3' then name = 'deepspeed'
    else
      name = tables.meaning('runtime', ('%s: %s'):format(row.gpu, (row.source or ''):lower()))
        or plan.unfused and 'megatron-2021' or 'megatron'
    end
  end
  runtimes.read(name) -- refuses what is none
  if kind ~= 'bf16' then changes.float8 = kind end
  if m.experts > 0 then
    changes.cuda_graphs = cuda_graphs(row, m, plan, kind)
    changes.dispatcher = dispatcher(row, m, plan)
    assume('CUDA graphs hold %s kernels', tables.words 'kernels in graphs'[changes.cuda_graphs])
  end
  -- MLPerf's recipes overlap where TP_COMM_OVERLAP is set (conf/custom.yaml of v3.1: else False)
  if row.tp_overlap and row.tp_overlap ~= 'True' and plan.tensor > 1 then changes.tensor_overlap = false end
  if filled(row, 'bucket_elements') then
    changes.bucket_elements, changes.replica_bucket_elements = whole(row, 'bucket_elements'), 0
  end
  if plan.torchtitan and contains(row, 'note', 'asynctp') then changes.async_tensor = true end
  -- rings without balance: the last part of a causal sequence has 2 - 1/c times the mean's work
  local attention = 1 / plan.context / (plan.torchtitan and 2 - 1 / plan.context or 1)
  if attention ~= 1 then
    local own = runtimes.read(name)
    changes.attention_share = attention * own.attention_share
    changes.replica_bucket_elements = changes.replica_bucket_elements or own.replica_bucket_elements / plan.context
  end
  if m.experts > 0 and plan.expert < plan.expert_ranks then changes.dispatch_share = plan.expert / plan.expert_ranks end
  if next(changes) == nil then return name, name end
  return util.merged({ base = name }, changes), name
end

local function model_options(row, m, plan, kind)
  local d, sequence = m.deepseek, whole(row, 'sequence') / plan.context
  local bridge, mlperf = contains(row, 'source', 'megatron-bridge'), contains(row, 'source', 'mlperf')
  -- NeMo-Framework-Launcher, examples/training/gpt and llama, h100/*_fp8*.sh: optim.grad_sync_dtype=bf16
  local launcher = kind == 'fp8' and contains(row, 'source', 'nemo 24')
  return { layers = m.layers, hidden = m.hidden, heads = m.heads, num_kv_heads = m.kv_heads, head_dim = m.head_dim,
    feed_forward = m.ffn, gated = m.gated, bias = m.gated and 'none' or 'all', norm = m.gated and 'rms' or 'layer',
    vocabulary = math.ceil(m.vocab / plan.tensor) * plan.tensor, positions = m.gated and 0 or sequence,
    dropout = plan.unfused and 0.1 or 0, experts = m.experts, experts_per_token = m.top_k,
    expert_feed_forward = d and 2048, shared = d and 2048, dense_layers = d and 3,
    expert_groups = d and 8, group_topk = d and 4, kv_lora_rank = d and 512,
    q_lora_rank = d and 1536, sequence = sequence, batch_size = plan.micro_batch,
    kernels = plan.unfused and 'megatron' or 'flash', dtype = kind == 'bf16' and 'bfloat16' or 'float8',
    -- Megatron-Bridge, perf_recipes/_common.py: cross_entropy_fusion_impl = 'te', grad_reduce_in_fp32 = False; likewise
    -- NeMo's configurations for MLPerf (grad_sync_dtype: bf16), the loss in the configurations of Llama
    fused_loss = row.fused_loss == 'yes' or bridge or mlperf and m.gated, optimizer = 'adam',
    -- torchtitan 9dec370, train.py: the loss is not compiled (job/memory.lua)
    logit_bytes = contains(row, 'verified', 'llama3_h100_202412') and 6 or nil,
    gradient_dtype = filled(row, 'gradient_dtype') and row.gradient_dtype
      or (bridge or mlperf or launcher) and 'bfloat16' or 'float32' }
end

local function case_of(row, m, plan, kind, assume)
  local runtime = runtime_of(row, m, plan, kind, assume)
  local on_host = plan.zero_stage == 3 and contains(row, 'source', 'megatron-bridge')
    and tables.meaning('layers on the host', ('%s %s %s'):format(row.gpu, row.model, kind))
  if on_host then assume('activations of %s layers are on the host', on_host) end
  return { model = 'decoder', model_options = model_options(row, m, plan, kind),
    cluster = nodes.job(machines[row.gpu], plan.gpus), runtime = runtime,
    recomputes = plan.unfused and plan.recompute == 'none' and { 'none', 'selective', 'full' } or nil,
    strategy = { mesh = { data = plan.data * plan.context, tensor = plan.tensor, pipeline = plan.pipeline,
      expert = plan.expert }, schedule = plan.virtual > 1 and 'interleaved' or '1f1b',
      virtual_stages = plan.virtual, stages = case.stages(m.layers, plan.pipeline * plan.virtual),
      micro_batches = plan.micro_batches, recompute = plan.recompute, zero_stage = plan.zero_stage,
      sequence_parallel = plan.sequence_parallel,
      activation_offload_fraction = on_host and on_host / m.layers or nil } }
end

--- Tokens per second and GPU that a row states; nil where it states none. Formulas of FLOP a token: Narayanan et al.,
--- SC 2021, equation 3 (with recomputation); 6 a weight and 12 l s h for attention without.
local function measured_of(row, m, plan)
  if not filled(row, 'value') then return nil end
  local value, s, h = csv.number(row.path, row, 'value'), whole(row, 'sequence'), m.hidden
  expect(row, value > 0 and value < math.huge, "column 'value': expected more than 0, got %s",
    util.describe(row.value))
  local units = { tokens_per_s_per_gpu = value, tokens_per_s_total = value / plan.gpus,
    s_per_iteration = whole(row, 'global_batch') * s / (value * plan.gpus),
    hardware_tflops_per_gpu = value * 1e12 / (96 * m.layers * h ^ 2 * (1 + s / (6 * h)
      + m.vocab / (16 * m.layers * h))),
    model_tflops_per_gpu = value * 1e12 / (6 * (m.layers * (2 * h ^ 2 * (1 + m.kv_heads / m.heads)
      + (m.gated and 3 or 2) * h * m.ffn) + m.vocab * h) + 12 * m.layers * s * h) }
  return units[row.unit] or csv.refuse(row.path, row, "column 'unit': unknown unit %s",
    util.unknown(tostring(row.unit), util.sorted_keys(units)))
end

--- The group of a row's error: GPU, kind of network and, where the GPU has FP8, the width of arithmetic;
--- MLPerf's rows are separate, because they are tuned for time and not for a table.
local function group_of(row, m, kind)
  local cloud = contains(row, 'source', 'dgxc')
  if m.experts > 0 then return row.gpu .. (cloud and ', mixtures, DGX Cloud' or ', mixtures of experts') end
  local width = row.gpu:find '^[AV]' and '' or (', %d bits'):format(kind == 'bf16' and 16 or 8)
  return row.gpu .. ', dense' .. (contains(row, 'source', 'mlperf') and ', MLPerf' or cloud and ', DGX Cloud' or width)
end

--- A row as read: { id, place, kind, group, from, left_out, tokens, gpus, measured, assumed, plan, network, case, said
--- (what its column says, or false) }. left_out: the key of rows that a fit leaves out together: a network on a kind of
--- GPU, however its name is written.
local function read(path, row)
  row.path = path
  local assumed = {}
  local function assume(message, ...) assumed[#assumed + 1] = message:format(...) end
  expect(row, machines[row.gpu], "column 'gpu': unknown GPU %s",
    util.unknown(row.gpu or '', util.sorted_keys(machines)))
  local kind = arithmetic(row)
  if filled(row, 'doubt') then assume('%s', row.doubt) end
  local m = read_network(row, assume)
  local plan = read_plan(row, m, assume)
  -- Parts of a ring are more replicas of shorter sequences: a device has the same tokens, and attention, which sees
  -- 1 / context of its keys, reaches that much less. (FSDP shards weights over parts of sequences, too: torchtitan's
  -- mesh dp_shard_cp.)
  if plan.context > 1 then assume('messages of a ring of %d parts are hidden by attention', plan.context) end
  local _, gpu = nodes.find(machines[row.gpu])
  local said = case_of(row, m, plan, kind, assume)
  local gradients, tokens = said.model_options.gradient_dtype, whole(row, 'global_batch') * whole(row, 'sequence')
  if gradients ~= 'float32' then assume('gradients are reduced in %s', gradients) end
  return { id = row.id, place = csv.place(path, row), kind = gpu, group = group_of(row, m, kind),
    from = filled(row, 'submitter') and row.submitter or row.source,
    left_out = ('%s %s'):format(gpu, (row.model or ''):upper():gsub('%-3%.1', '3.1')), network = m, plan = plan,
    assumed = assumed, tokens = tokens, said = function(column) return filled(row, column) and row[column] end,
    configuration = json.encode { said, tokens }, title = ('row %s: %s'):format(row.id, row.model or ''),
    gpus = plan.gpus, measured = measured_of(row, m, plan), case = said, runtimes = case.runtimes(said),
    recompute = plan.recompute, network_name = row.model or '', gpus_text = ('%d %s'):format(plan.gpus, row.gpu),
    plan_text = ('%s t%d p%dx%d d%d c%d e%d b%d'):format(kind, plan.tensor, plan.pipeline, plan.virtual, plan.data,
      plan.context, plan.expert, plan.micro_batch) }
end

--- All rows of a table, in its order; one that is refused is { id, refused }, with the sentence.
function published_row.all(path)
  local lines = csv.read(path)
  local translate = lines[1] and tables.translation(lines[1])
  if not translate then csv.check(path, unpack(needed)) end
  return csv.attempted(lines, function(line, i)
    local row, why = line, nil
    if translate then row, why = translate(line, i) end
    return read(path, row or csv.refuse(path, line, '%s', why))
  end)
end

return published_row
