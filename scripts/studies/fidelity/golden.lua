-- trinity study fidelity golden: peak and resting memory of Megatron-LM's functional tests (columns as in
-- megatron-golden/rows.csv, one argument of Megatron-LM each) compared with problem:evaluate. Both are bytes that
-- PyTorch's allocator has given out on the last rank. What no column states is Megatron-LM's default; words of the
-- test's name state the rest.

local case = require 'studies.fidelity.case'
local csv = require 'trinity.base.csv'
local errors = require 'studies.fidelity.errors'
local json = require 'trinity.base.json'
local layout = require 'trinity.strategy.layout'
local nodes = require 'trinity.cluster.nodes'
local owners = require 'trinity.strategy.owners'
local parallel_map = require 'trinity.parallel'
local recomputes = require 'trinity.job.recomputes'
local runtimes = require 'trinity.cluster.runtimes'
local statistics = require 'trinity.base.statistics'
local text = require 'trinity.base.text'
local util = require 'trinity.base.util'

local golden = {
  help = "peak and resting memory of Megatron-LM's functional tests",
  shared = { rows = 'megatron-golden/rows.csv' },
  options = {
    rows = { default = '', help = 'table of tests (CSV)' },
    only = { default = '', help = 'rows whose test has these words in its name' },
  },
}

local machines = { dgx_a100 = 'dgx_a100_80gb', dgx_h100 = 'dgx_h100', dgxh100_dgxc = 'dgx_h100',
  dgx_gb200 = 'gb200_nvl72' }
local families = { gpt = true, moe = true, mixtral = true }
local least_hidden = 1024 -- networks of less measure logits and the framework

--- Layers of every virtual stage: of a layout ("Et*3|(tt|)*6L"), of first and last stages, or equally many.
local function stages_of(row, count, virtual, whole)
  if (row.pipeline_layout or '') ~= '' then
    return util.map(layout.read(row.pipeline_layout, row.path), function(stage) return stage.layers end)
  end
  local layers, parts = whole 'layers', count * virtual
  local first, last = tonumber(row.layers_first), tonumber(row.layers_last)
  if first or last then
    local stages, middle = {}, count - (first and 1 or 0) - (last and 1 or 0)
    for s = 1, count do
      local own = s == 1 and first or s == count and last or (layers - (first or 0) - (last or 0)) / middle
      for v = 1, virtual do stages[(v - 1) * count + s] = own / virtual end
    end
    return stages
  end
  local embedding, loss = row.account_embedding == '1' and 1 or 0, row.account_loss == '1' and 1 or 0
  if embedding + loss > 0 then
    local each = (layers + embedding + loss) / parts
    return util.listed(parts, function(s) return each - (s == 1 and embedding or 0) - (s == parts and loss or 0) end)
  end
  return nil
end

--- Bytes per logit that the loss holds in addition to those in float32: fused without Transformer Engine, those in 16
--- bits and exponentials; where weight gradients of logits are deferred, the gradients of logits of two micro-batches
--- (--wgrad-deferral-limit 2) and of this one.
local function logit_bytes(name)
  return (name:find 'cross_entropy_loss_fusion' or name:find 'defer_embedding_wgrad') and 6 or 0
end

--- The options of model 'decoder'.
local function network_of(row, whole, plan)
  local name, hidden, experts = row.case, whole 'hidden', whole('experts', 0, 0)
  local latent, gated = row.mla == '1', row.swiglu == '1'
  local sequence = whole 'sequence' / plan.context
  local tokens = whole('vocab', 50257) + (row.tokenizer == 'NullTokenizer' and 1 or 0)
  local rotary = latent or name:find 'rope' ~= nil
  local unfused = row.attention_backend == 'unfused' or row.transformer_impl == 'local'
  local dense = row.moe_layer_freq and row.moe_layer_freq:match '^%(%[0%]%*(%d+)'
  local ffn = whole('ffn', gated and 64 * math.floor(8 * hidden / 3 / 64) or 4 * hidden)
  return { layers = whole 'layers', hidden = hidden, heads = whole 'heads', num_kv_heads = whole('kv_groups', 0, 0),
    head_dim = not latent and whole('kv_channels', 0, 0) or nil, feed_forward = ffn, gated = gated,
    bias = (experts > 0 or gated or name:find 'disable_bias') and 'none' or 'all', norm = gated and 'rms' or 'layer',
    vocabulary = math.ceil(tokens / (128 * plan.tensor)) * 128 * plan.tensor, tied = row.tied == '1',
    positions = rotary and 0 or whole 'sequence', dropout = (plan.context > 1 or latent) and 0 or 0.1,
    qk_norm = name:find 'qk_layernorm' ~= nil, experts = experts, experts_per_token = whole('top_k', 0, 0),
    expert_feed_forward = whole('moe_ffn', 0, 0), apart = true, shared = whole('shared_ffn', 0, 0),
    dense_layers = tonumber(dense) or 0, kv_lora_rank = latent and 512 or 0, q_lora_rank = latent and 1536 or 0,
    further = whole('mtp_layers', 0, 0), logit_bytes = logit_bytes(name),
    kernels = unfused and 'megatron' or 'flash', sequence = sequence, batch_size = whole 'micro_batch',
    dtype = (row.fp8 or '') ~= '' and 'float8' or row.precision == 'fp16' and 'float16' or 'bfloat16',
    gradient_dtype = row.precision == 'fp16' and 'float16' or 'float32', optimizer = 'adam' }
end

--- The runtime of a row. CUBLAS_WORKSPACE_CONFIG of deterministic tests and of family moe is ":4096:8". Attention of
--- "local" layers keeps
--- a buffer of scores (core/transformer/dot_product_attention.py, get_global_memory_buffer). Overlap of messages with
--- matmuls takes three workspaces (transformer_engine/pytorch/module/base.py, _NUM_MAX_UB_STREAMS). Tests with one
--- expert a token are of before grouped matmuls, but for two whose configuration states --moe-grouped-gemm.
local function runtime_of(row, whole, plan)
  local here = row.transformer_impl == 'local'
  local scores = whole 'micro_batch' * whole 'heads' / plan.tensor * (whole 'sequence' / plan.context) ^ 2
  local overlaps = row.case:find 'tp_overlap' ~= nil
  local changes = { base = 'megatron', workspace_bytes = here and 2 * scores or overlaps and 2 * 32 * 2 ^ 20 or nil,
    matmul_workspace_bytes = (row.deterministic == '1' or row.family == 'moe') and 32 * 2 ^ 20 or nil }
  if here and not row.case:find '_te_' then changes.transformer_engine = false end
  local single = whole('experts', 0, 0) > 0 and whole 'top_k' == 1 and not row.case:find 'groupedGEMM'
    and not row.case:find 'ddp_average_in_collective'
  if single then changes.expert_streams = 0 end
  return changes
end

local function recompute_of(row)
  local word = row.recompute or ''
  if word == '' then return 'none' end
  if word:find '^full' then return 'full' end
  if row.case:find 'fine_grained_offloading' then return recomputes.offloaded end
  local modules = word:match '%[(.*)%]' or 'core_attn'
  return modules == 'core_attn' and 'selective' or recomputes.of(modules)
end

--- A row as a case (case.lua). Parts of a sequence are more replicas of shorter ones: a GPU holds as much.
local function case_of(row)
  local function whole(column, otherwise, least) return csv.whole(row.path, row, column, otherwise, least) end
  if not machines[row.platform] then
    csv.refuse(row.path, row, "column 'platform': unknown platform %s",
      util.unknown(row.platform, util.sorted_keys(machines)))
  end
  local plan = { tensor = whole('tp', 1), pipeline = whole('pp', 1), context = whole('cp', 1), data = whole('dp', 1) }
  local gpus = plan.tensor * plan.pipeline * plan.context * plan.data
  if whole('gpus', gpus) ~= gpus then
    csv.refuse(row.path, row, 'dp %d x tp %d x pp %d x cp %d is not %d GPUs', plan.data, plan.tensor, plan.pipeline,
      plan.context, whole 'gpus')
  end
  local experts = whole('ep', 1) * whole('etp', plan.tensor) / plan.tensor
  if whole('experts', 0, 0) == 0 then experts = 1 end
  local replicas, micro_batches = plan.data * plan.context, whole 'global_batch' / (plan.data * whole 'micro_batch')
  local run = row.case:find 'multi_dist_optimizer_instances' and replicas / 2 -- that shard states: two instances
  local virtual = whole('vpp', 1)
  local stages = stages_of(row, plan.pipeline, virtual, whole)
  if stages then virtual = #stages / plan.pipeline end
  return { model = 'decoder', model_options = network_of(row, whole, plan),
    cluster = nodes.job(machines[row.platform], gpus), runtime = runtime_of(row, whole, plan),
    strategy = { mesh = { data = replicas, tensor = plan.tensor, pipeline = plan.pipeline, expert = experts },
      schedule = virtual > 1 and 'interleaved' or '1f1b', virtual_stages = virtual, stages = stages,
      sync = run and run > 1 and { kind = 'hierarchical', inner = run } or nil,
      micro_batches = virtual > 1 and plan.pipeline * math.ceil(micro_batches / plan.pipeline) or micro_batches,
      recompute = recompute_of(row),
      zero_stage = (row.fsdp or '') ~= '' and 3 or row.distributed_optimizer == '1' and run ~= 1 and 1 or 0,
      sequence_parallel = row.sequence_parallel == '1' } }
end

--- Memory that stays allocated after a step in addition to states and workspaces: the input that each pipeline chunk
--- received last, with its gradient (core/models/gpt/gpt_model.py, set_input_tensor;
--- core/pipeline_parallel/schedules.py, retain_grad), and of float16 weights gradients in float32
--- (core/optimizer/optimizer.py, _copy_model_grads_to_main_grads).
local function left_bytes(one, last)
  local o, strategy = one.model_options, one.strategy
  local tensor, data = strategy.mesh.tensor, strategy.mesh.data
  local input = 2 * o.batch_size * o.sequence * o.hidden / (strategy.sequence_parallel and tensor or 1)
  local chunks = strategy.mesh.pipeline > 1 and strategy.virtual_stages or 0
  local copies = o.dtype == 'float16' and 4 * last.parameters / (strategy.zero_stage > 0 and data or 1) or 0
  return 2 * chunks * input + copies
end

--- Peak and resting bytes of the last rank, and owners of the peak, without what PyTorch's allocator does not count.
local function predict(one)
  local problem = case.problem(one)
  local account = problem:strategy(one.strategy):breakdown()
  local last = account.stages[#account.stages]
  local context = runtimes.read(one.runtime).context_bytes
  local owned = util.merged(last.peak_bytes, { framework = last.peak_bytes.framework - context })
  problem:close()
  problem.graph:close()
  return { peak = owners.sum(owned), owners = owned, resting = last.weight_bytes + last.gradient_bytes
    + last.optimizer_bytes + owned.framework + left_bytes(one, last) }
end

--- The rows of a file that are compared: of decoders, on GPUs that the recipe states, whose platforms agree; and how
--- many are not.
function golden.read(options)
  local rows, others = {}, 0
  for _, line in ipairs(csv.read(options.rows, 'case', 'family', 'platform', 'gpus', 'agrees', 'mem_allocated_bytes',
    'mem_max_allocated_bytes', 'layers', 'hidden', 'heads', 'sequence', 'micro_batch', 'global_batch')) do
    if not families[line.family] or line.gpus == '' or line.agrees ~= 'yes' then others = others + 1
    elseif line.case:find(options.only, 1, true) then
      line.path = options.rows
      local row = { id = ('%s %s %s'):format(line.case, line.platform, line.environment), line = line.line,
        family = line.family, hidden = csv.whole(options.rows, line, 'hidden'),
        measured = { peak = csv.number(options.rows, line, 'mem_max_allocated_bytes'),
          resting = csv.number(options.rows, line, 'mem_allocated_bytes') } }
      row.case, row.refused = csv.attempt(case_of, line)
      rows[#rows + 1] = row
    end
  end
  return rows, others
end

--- The rows with `found`, or why they are refused.
function golden.predicted(rows)
  local list = parallel_map(rows, function(row)
    if row.refused then return { refused = row.refused } end
    local found, why = csv.attempt(predict, row.case)
    return found or { refused = why }
  end, { quiet = true })
  for i, row in ipairs(rows) do
    row.refused = list[i].refused
    row.found = not row.refused and list[i] or nil
  end
  return rows
end

local refused_off = -0.5 -- what a refused row counts as

--- Errors of peak and resting bytes by family, of all rows, and of wide networks alone: { name, errors } each.
function golden.groups(rows)
  local list = {}
  local function add(name, off) list[#list + 1] = { name = name, off = off } end
  for _, row in ipairs(rows) do
    for _, what in ipairs { 'peak', 'resting' } do
      local off = row.found and row.found[what] / row.measured[what] - 1 or refused_off
      add(('%s, %s'):format(row.family, what), off)
      add(('all, %s'):format(what), off)
      if row.hidden >= least_hidden then add(('hidden %d and more, %s'):format(least_hidden, what), off) end
    end
  end
  local groups = util.map(util.grouped(list, function(one) return one.name end), function(group)
    return { name = group.name, errors = util.map(group, function(one) return one.off end) }
  end)
  table.sort(groups, util.by 'name')
  return groups
end

local function gigabytes(bytes) return ('%.3f'):format(bytes / 1e9) end

local function cells_of(row)
  local cells = { row.id }
  for _, what in ipairs { 'peak', 'resting' } do
    local measured, found = row.measured[what], row.found and row.found[what]
    cells[#cells + 1] = gigabytes(measured)
    cells[#cells + 1] = found and gigabytes(found) or 'refused'
    cells[#cells + 1] = found and errors.signed(found / measured - 1) or ''
  end
  return cells
end

function golden.run(options)
  local rows, others = golden.read(options)
  golden.predicted(rows)
  if options.json then
    return print(json.encode { rows = util.map(rows, function(row)
      local found = row.found or {}
      return { row = row.id, peak_bytes = found.peak, resting_bytes = found.resting, owners = found.owners,
        measured_peak_bytes = row.measured.peak, measured_resting_bytes = row.measured.resting, refused = row.refused }
    end) })
  end
  print(text.format_table({ 'test', 'peak', 'predicted', 'off', 'resting', 'predicted', 'off' },
    util.map(rows, cells_of)))
  print 'GB that PyTorch has allocated on the last rank; a refused row counts as 50 % off'
  if others > 0 then
    print(('%d rows are not compared: their family is no decoder (T5, BERT, hybrids, images), the recipe states '
      .. 'no GPUs, or platforms do not agree'):format(others))
  end
  print ''
  for _, row in ipairs(rows) do if row.refused then print(('refused: %s: %s'):format(row.id, row.refused)) end end
  print(text.format_table({ '', 'rows', 'mean error', 'worst', 'mean, signed' }, util.map(golden.groups(rows),
    function(group)
      local s = statistics.summary(group.errors)
      return { group.name, ('%d'):format(s.count), errors.percent(s.mean), errors.percent(s.worst),
        errors.signed(s.signed) }
    end)))
end

return golden
