-- Tables of others as rows of published speeds (published_row.lua): MLPerf's steps, MosaicML's runs of MPT, BLOOM's
-- plans. What a table is follows from its columns. A translation returns a row, or nil and why there is none.

local util = require 'trinity.base.util'

local tables = {}

local accelerators = { { 'H100', 'H100-80GB' }, { 'H200', 'H200-141GB' }, { 'GB200', 'GB200' }, { 'Ultra', 'GB300' },
  { 'B200', 'B200' }, { 'A100', 'A100-80GB' } }

local networks = {
  gpt3 = { model = 'GPT3-175B', hidden = 12288, layers = 96, heads = 96, ffn = 49152, vocab = 51200 },
  llama31_405b = { model = 'Llama-3.1-405B', hidden = 16384, layers = 126, heads = 128, kv_heads = 8, ffn = 53248,
    vocab = 128256, parameters_b = 405.85 },
  llama31_8b = { model = 'Llama-3.1-8B', hidden = 4096, layers = 32, heads = 32, kv_heads = 8, ffn = 14336,
    vocab = 128256, parameters_b = 8.03 },
}

--- Elements of a bucket of gradients in the recipe of an MLPerf run: bucket_cap_mb of Apex's optimizer (GPT-3) in 16
--- bits; bucket_size of conf/custom.yaml, 200 in v5.0 and 64 in the only recipe of v5.1 that copies it, so that every
--- weight is a bucket. The others of v5.1 state 2^27 and 768e6, which are not taken (RESULTS.md).
local function mlperf_buckets(row, round)
  if row.benchmark == 'gpt3' then return (round < 'v4.0' and 100 or 200) * 2 ^ 20 / 2 end
  return round == 'v5.0' and 200 or row.config:find '^Cisco/' and 64 or ''
end

local function tokens_per_s(row) return tonumber(row.global_batch) * tonumber(row.sequence) / tonumber(row.step_s) end

--- MLPerf training's results: one row a submission. Recipes of before v4.1 are of NeMo 23 and 24.
local function of_mlperf(row, number)
  local network = networks[row.benchmark]
  if not network then return nil, ('benchmark %s: adapters alone are trained'):format(tostring(row.benchmark)) end
  local found = util.find(accelerators, function(pair) return row.accelerator:find(pair[1], 1, true) end)
  if not found then return nil, ('no GPU %s here'):format(row.accelerator) end
  if row.plan == 'unknown' then return nil, 'its plan is unknown' end
  local gpu, round = found[2], (row.duplicate_of or ''):match '^v%S+' or row.round -- of a repeated log, its first round
  return util.merged(network, { id = ('%s %s %s'):format(row.round, row.system, row.benchmark), row_number = number,
    gpu = gpu, zero = 1, ep = '', experts = '', note = '', value = tokens_per_s(row), unit = 'tokens_per_s_total',
    precision = row.precision == 'fp4' and 'nvfp4' or 'fp8', -- where none is stated, the speed is FP8's
    doubt = row.plan ~= 'sure' and ('the plan of its configuration: %s'):format(row.plan) or '',
    bucket_elements = mlperf_buckets(row, round),
    -- its pretrain.py comments out what would read TP_COMM_OVERLAP: get_overlap_callback
    tp_overlap = row.config:find '^Cisco/' and 'False' or row.tp_overlap,
    recompute = round == 'v3.0' and 'selective' or 'none', -- ACT_CKPT_GRANULARITY of run_and_time.sh
    runtime = round < 'v4.0' and 'megatron-2023' or round < 'v4.1' and gpu == 'H100-80GB' and 'megatron-2024'
      or 'megatron', source = 'MLPerf ' .. row.round })
end

local mpt_gpus = { a100_40gb = 'A100-40GB', a100_80gb = 'A100-80GB', h100_80gb = 'H100-80GB' }

--- llm-foundry's runs: FSDP under Composer.
local function of_mpt(row)
  return { id = ('%s:%s'):format(row.model, row.line), gpu = mpt_gpus[row.gpu] or row.gpu,
    ffn = 4 * tonumber(row.hidden), parameters_b = tonumber(row.parameters) / 1e9, tp = 1, pp = 1, dp = row.gpus,
    zero = row.sharding == 'FULL_SHARD' and 3 or 2, precision = row.precision == 'amp_fp8' and 'fp8' or 'bf16',
    recompute = row.activation_checkpointing == 'True' and 'full' or 'none', runtime = 'composer-2023',
    doubt = row.activation_offload == 'True' and 'copies of activations to the host take no time' or '',
    value = row.tokens_per_s_per_gpu, unit = 'tokens_per_s_per_gpu', source = 'llm-foundry' }
end

--- BLOOM's plans: Megatron-DeepSpeed, full recomputation, a network of a quarter of a DGX's.
local function of_bloom(row)
  if row.outcome ~= 'ran' then return nil, 'out of memory: no step was measured' end
  return { model = 'BLOOM ' .. (row.group or ''), gpu = 'A100-80GB Jean Zay', ffn = 4 * tonumber(row.hidden),
    recompute = 'full', runtime = 'megatron-deepspeed-2022', source = 'BLOOM', value = tokens_per_s(row),
    unit = 'tokens_per_s_total' }
end

--- The translation for a table with these columns; nil where it has published speeds' own.
function tables.translation(row)
  local of = row.benchmark and of_mlperf or row.sharding and of_mpt or row.outcome and of_bloom
  return of and function(line, number)
    local fields, why = of(line, number)
    for name, value in pairs(fields or {}) do fields[name] = tostring(value) end -- each by itself: in any order
    return fields and util.merged(line, fields), why
  end
end

return tables
