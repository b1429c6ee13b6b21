-- A row of published training speeds as a network and a plan. Columns: id, model, parameters_b, hidden, layers,
-- heads, kv_heads, ffn, vocab, experts, experts_per_token, sequence, global_batch, micro_batch, gpus, gpu, tp, pp, vpp,
-- dp, cp, ep, zero, recompute, precision, source, note, value, unit. What a row leaves empty is assumed by the rules
-- below, each of which adds its sentence to the row's `assumed`.

local csv = require 'trinity.fidelity.csv'
local recipe = require 'trinity.fidelity.published_recipe'
local util = require 'trinity.base.util'

local published_row = {}

--- GPUs by the words of the column: kind of machine, and the set of constants.
local gpus = {
  ['V100-16GB'] = { machine = 'dgx1_v100', family = 'a100' },
  ['A100-40GB'] = { machine = 'dgx_a100', family = 'a100' },
  ['A100-80GB'] = { machine = 'dgx_a100_80gb', family = 'a100' },
  ['H100-80GB'] = { machine = 'dgx_h100', family = 'h100' },
  ['H100-96GB'] = { machine = 'hgx_h100_96gb', family = 'h100_96gb' },
  ['H200-141GB'] = { machine = 'dgx_h200', family = 'h100_96gb' },
  B200 = { machine = 'dgx_b200', family = 'b200' },
  B300 = { machine = 'dgx_b300', family = 'b200' },
  GB200 = { machine = 'gb200_nvl72', family = 'gb200' },
  GB300 = { machine = 'gb300_nvl72', family = 'gb300' },
}

--- Kinds of arithmetic by the words of `precision`; what products read where it is not 16 bits.
local precisions = { bf16 = 'bf16', fp16 = 'bf16', fp8 = 'fp8', ['fp8-cs'] = 'fp8', ['fp8 tensorwise'] = 'fp8',
  ['fp8-sc'] = 'mxfp8', ['fp8 rowwise'] = 'fp8_rowwise', mxfp8 = 'mxfp8', ['fp8-mx'] = 'mxfp8', nvfp4 = 'nvfp4' }

local needed = { 'id', 'hidden', 'layers', 'ffn', 'sequence', 'global_batch', 'gpus', 'gpu' }

local function refuse(row, message, ...)
  csv.refuse(row.path, row, message, ...)
end

local function whole(row, column, otherwise) return csv.whole(row.path, row, column, otherwise) end

local function filled(row, column) return row[column] ~= nil and row[column] ~= '' end

--- The arithmetic of a row: `float8` and FP4 where the GPU has them; Hopper scales parts of a row as it does tensors.
local function arithmetic(row, about)
  local word = filled(row, 'precision') and row.precision or 'bf16'
  local kind = precisions[word]
  if not kind then
    refuse(row, "column 'precision': unknown precision %s", util.unknown(word, util.sorted_keys(precisions)))
  end
  local hopper = about.family == 'h100' or about.family == 'h100_96gb'
  if kind ~= 'bf16' and about.family == 'a100' or kind == 'nvfp4' and hopper then
    refuse(row, "column 'precision': %s has no such arithmetic, got %s", row.gpu, util.quoted(word))
  end
  return kind == 'mxfp8' and hopper and 'fp8' or kind
end

--- Latent attention and widths of DeepSeek-V3's layers (DeepSeek-AI, "DeepSeek-V3 Technical Report", 2024, 4.2).
local deepseek_v3 = { latent = 512, query_latent = 1536, plain_width = 128, rotary_width = 64, value_width = 128,
  expert_ffn = 2048, shared = 2048, dense_layers = 3 }

--- Weights of the layers of a network without experts, and of its embedding and logits.
local function parameters(m, matrices)
  local width = m.hidden / m.heads
  return m.layers * (2 * m.hidden ^ 2 + 2 * m.hidden * m.kv_heads * width + matrices * m.hidden * m.ffn)
    + 2 * m.vocab * m.hidden
end

--- Whether a gate multiplies the feed-forward network's values: what comes nearer to the stated number of weights.
local function is_gated(row, m)
  if m.experts > 0 then return true end
  if not filled(row, 'parameters_b') then return m.ffn ~= 4 * m.hidden end
  local stated = 1e9 * csv.number(row.path, row, 'parameters_b')
  if not (stated > 0) then
    refuse(row, "column 'parameters_b': expected more than 0, got %s", util.describe(row.parameters_b))
  end
  return math.abs(math.log(parameters(m, 3) / stated)) < math.abs(math.log(parameters(m, 2) / stated))
end

local function read_network(row, assume)
  local m = { hidden = whole(row, 'hidden'), layers = whole(row, 'layers'), ffn = whole(row, 'ffn'),
    experts = filled(row, 'experts') and row.experts ~= '0' and whole(row, 'experts') or 0 }
  m.heads = filled(row, 'heads') and whole(row, 'heads') or math.max(1, math.floor(m.hidden / 128))
  m.kv_heads, m.vocab = whole(row, 'kv_heads', m.heads), whole(row, 'vocab', 51200)
  if not filled(row, 'heads') then assume 'heads of 128' end
  if not filled(row, 'vocab') then assume 'a vocabulary of 51,200' end
  m.gated = is_gated(row, m)
  if m.experts > 0 then m.top_k = whole(row, 'experts_per_token') end
  if tostring(row.model):lower():find 'deepseek' then m.deepseek = deepseek_v3 end
  -- Qwen3's heads are 128 wide whatever the hidden size is (Qwen3 Technical Report, 2025, table 1).
  m.head_width = m.experts > 0 and 128 or nil
  return m
end

local function contains(row, column, word) return (row[column] or ''):lower():find(word, 1, true) ~= nil end

--- Micro-batch and micro-batches of a step, where none is stated. torchtitan cuts the local batch into as many as
--- there are stages (twice as many where it interleaves). Without a pipeline small ones have no use.
local function read_batch(row, plan, assume)
  local replicas = plan.data
  local total = whole(row, 'global_batch')
  if total % replicas ~= 0 then
    refuse(row, "column 'global_batch': %d sequences do not divide over %d replicas", total, replicas)
  end
  local own = total / replicas
  if filled(row, 'micro_batch') then
    plan.micro_batch = whole(row, 'micro_batch')
  elseif plan.torchtitan and plan.pipeline > 1 then
    local parts = plan.pipeline * plan.virtual
    plan.micro_batch = math.max(1, math.floor(own / parts))
    assume('micro-batches of %d: as many as virtual stages', plan.micro_batch)
  elseif plan.pipeline == 1 or plan.unfused and plan.pipeline == 2 then
    plan.micro_batch = own % 4 == 0 and 4 or 1
    assume('micro-batches of %d: no long pipeline is to be kept full', plan.micro_batch)
  else
    plan.micro_batch = 1
    assume 'micro-batches of one sequence'
  end
  if own % plan.micro_batch ~= 0 then
    refuse(row, "column 'micro_batch': %d sequences of a replica are no multiple of %d", own, plan.micro_batch)
  end
  plan.micro_batches = own / plan.micro_batch
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
  plan.shard = csv.number(row.path, row, 'zero', -1)
  if plan.shard == -1 then
    plan.shard = 1
    assume 'ZeRO 1'
  end
  if not ({ [0] = true, [1] = true, [2] = true, [3] = true })[plan.shard] then
    refuse(row, "column 'zero': expected 0 to 3, got %s", util.describe(row.zero))
  end
  if plan.shard == 3 and plan.pipeline > 1 then
    plan.shard = 1
    assume 'weights of a pipeline are gathered once a step'
  end
end

local recomputes = { 'none', 'selective', 'full' }

--- That the columns of a plan agree with each other and with the network.
local function check_plan(row, m, plan)
  local inner = plan.tensor * plan.pipeline * plan.context
  if plan.data * inner ~= plan.gpus then
    refuse(row, 'dp %d x tp %d x pp %d x cp %d is not %d GPUs', plan.data, plan.tensor, plan.pipeline, plan.context,
      plan.gpus)
  end
  if plan.pipeline > m.layers then
    refuse(row, "column 'pp': expected at most %d (layers), got %d", m.layers, plan.pipeline)
  end
  if m.heads % plan.tensor ~= 0 then
    refuse(row, "column 'tp': expected a divisor of %d (heads), got %d", m.heads, plan.tensor)
  end
  if m.experts > 0 and m.top_k > m.experts then
    refuse(row, "column 'experts_per_token': expected at most %d (experts), got %d", m.experts, m.top_k)
  end
end

local function read_plan(row, m, about, assume)
  local plan = { gpus = whole(row, 'gpus'), tensor = whole(row, 'tp', 1), pipeline = whole(row, 'pp', 1),
    context = whole(row, 'cp', 1), expert = whole(row, 'ep', 1) }
  local inner = plan.tensor * plan.pipeline * plan.context
  plan.data = whole(row, 'dp', math.max(1, math.floor(plan.gpus / inner)))
  check_plan(row, m, plan)
  plan.expert_ranks = math.min(plan.expert, plan.data * plan.tensor) -- that have experts of their own
  if plan.expert > plan.data then
    assume('experts over the %d replicas: more ranks would share those of tensor parallelism', plan.data)
    plan.expert = plan.data
  end
  plan.torchtitan = contains(row, 'source', 'torchtitan') or about.family == 'h100_96gb'
  plan.unfused = about.family == 'a100'
  plan.deepspeed = plan.unfused and row.zero == '3'
  plan.early = about.family == 'h100' and recipe.is_early(row.source or '')
  -- recipes of Llama in Megatron-Bridge: cross_entropy_fusion_impl = 'te'
  plan.fused_loss = m.experts == 0 and contains(row, 'source', 'megatron-bridge')
  plan.async = plan.torchtitan and contains(row, 'note', 'asynctp')
  plan.eager = plan.torchtitan and filled(row, 'note') and not contains(row, 'note', 'compile')
  read_virtual(row, plan, m, assume)
  read_batch(row, plan, assume)
  if plan.virtual > 1 and plan.micro_batches % plan.pipeline ~= 0 then
    plan.virtual = 1
    assume 'no interleaving: micro-batches do not fill the pipeline'
  end
  read_shard(row, plan, assume)
  plan.recompute = csv.word(row.path, row, 'recompute', recomputes, 'none')
  if not filled(row, 'recompute') then assume 'no recomputation' end
  plan.sequence_parallel = plan.tensor > 1 and (not plan.unfused or plan.recompute == 'selective')
  return plan
end

--- Tokens per second and GPU that a row states; nil where it states none. Formulas of FLOP a token: Narayanan et al.,
--- SC 2021, equation 3 (with recomputation); 6 a weight and 12 l s h for attention without.
local function measured_of(row, m, plan)
  if not filled(row, 'value') then return nil end
  local value, s, h = csv.number(row.path, row, 'value'), whole(row, 'sequence'), m.hidden
  if not (value > 0 and value < math.huge) then
    refuse(row, "column 'value': expected more than 0, got %s", util.describe(row.value))
  end
  local tokens = whole(row, 'global_batch') * s
  local function by_flops(flops) return value * 1e12 / flops end
  local units = {
    tokens_per_s_per_gpu = function() return value end,
    tokens_per_s_total = function() return value / plan.gpus end,
    s_per_iteration = function() return tokens / (value * plan.gpus) end,
    hardware_tflops_per_gpu = function()
      return by_flops(96 * m.layers * h ^ 2 * (1 + s / (6 * h) + m.vocab / (16 * m.layers * h)))
    end,
    model_tflops_per_gpu = function()
      return by_flops(6 * (m.layers * (2 * h ^ 2 * (1 + m.kv_heads / m.heads) + (m.gated and 3 or 2) * h * m.ffn)
        + m.vocab * h) + 12 * m.layers * s * h)
    end,
  }
  if not units[row.unit] then
    refuse(row, "column 'unit': unknown unit %s", util.unknown(tostring(row.unit), util.sorted_keys(units)))
  end
  return units[row.unit]()
end

--- What a row comes to: { id, network, plan, sequence, family, machine, precision, assumed, measured }; `recorded` of
--- mixtures of experts and `recent` as in published_recipe.lua.
---@param path string
---@param row table<string, string>
---@return table
function published_row.read(path, row)
  row.path = path
  local assumed = {}
  local function assume(message, ...) assumed[#assumed + 1] = message:format(...) end
  local about = gpus[row.gpu]
  if not about then refuse(row, "column 'gpu': unknown GPU %s", util.unknown(row.gpu, util.sorted_keys(gpus))) end
  local kind = arithmetic(row, about)
  local m = read_network(row, assume)
  local plan = read_plan(row, m, about, assume)
  local found = { id = row.id, line = row.line, path = path, network = m, plan = plan,
    sequence = whole(row, 'sequence'), family = about.family, gpu = row.gpu, machine = about.machine,
    precision = kind, assumed = assumed, tokens = whole(row, 'global_batch') * whole(row, 'sequence'),
    measured = measured_of(row, m, plan), model = row.model or '' }
  found.recent = recipe.is_recent(row.source or '')
  found.recorded = recipe.recorded(found, row.source or '')
  if found.recorded then assume('%s', recipe.sentence(found.recorded)) end
  return found
end

--- All rows of a table, in its order.
---@param path string
---@param keep? boolean a row that is refused is { id, refused }, with the sentence; else it is an error
---@return table[]
function published_row.all(path, keep)
  return util.map(csv.read(path, unpack(needed)), function(row)
    if not keep then return published_row.read(path, row) end
    local found, why = csv.attempt(published_row.read, path, row)
    return found or { id = row.id, refused = why }
  end)
end

--- What decides a prediction, or a plan, beside constants: rows of one configuration have one key.
---@param row table
---@return string
function published_row.key(row)
  local list = { row.gpu, row.precision, row.sequence, row.tokens, row.family, row.recorded }
  for _, of in ipairs { row.network, row.plan } do
    for name, value in util.sorted_pairs(of) do
      if type(value) ~= 'table' then list[#list + 1] = ('%s=%s'):format(name, tostring(value)) end
    end
  end
  return table.concat(list, ' ')
end

return published_row
