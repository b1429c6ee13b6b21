-- Tables of others as rows of published speeds (published_row.lua): MLPerf's steps, MosaicML's runs of MPT, BLOOM's
-- plans. What a table is follows from its columns. A translation returns a row, or nil and why there is none.
-- words.csv has what words of these and of other tables mean, mlperf_networks.csv the networks of MLPerf.

local core = require 'trinity.core'
local csv = require 'trinity.base.csv'
local util = require 'trinity.base.util'

local tables = {}

local folder = core.home .. '/scripts/studies/fidelity/'
local words = csv.read(folder .. 'words.csv', 'of', 'word', 'means')
local networks = csv.read(folder .. 'mlperf_networks.csv', 'benchmark', 'model')

--- Returns the meanings of words of a kind, by word.
function tables.words(of)
  local own = {}
  for _, row in ipairs(words) do if row.of == of then own[row.word] = row.means end end
  return own
end

--- Returns the meaning of the first pattern of a kind that a text has; nil for none.
function tables.meaning(of, text)
  local found = util.find(words, function(row) return row.of == of and text:find(row.word) end)
  return found and found.means
end

local function tokens_per_s(row) return tonumber(row.global_batch) * tonumber(row.sequence) / tonumber(row.step_s) end

--- MLPerf training's results: one row a submission.
local function of_mlperf(row, number)
  local network = util.find(networks, function(one) return one.benchmark == row.benchmark end)
  if not network then return nil, ('benchmark %s: adapters alone are trained'):format(tostring(row.benchmark)) end
  local gpu = tables.meaning('accelerator of mlperf', row.accelerator)
  if not gpu then return nil, ('no GPU %s here'):format(row.accelerator) end
  if row.plan == 'unknown' then return nil, 'its plan is unknown' end
  local round = (row.duplicate_of or ''):match '^v%S+' or row.round -- of a repeated log, its first round
  return util.merged(network, { id = ('%s %s %s'):format(row.round, row.system, row.benchmark), row_number = number,
    gpu = gpu, zero = 1, ep = '', experts = '', note = '', value = tokens_per_s(row), unit = 'tokens_per_s_total',
    precision = row.precision == 'fp4' and 'nvfp4' or 'fp8', -- where none is stated, the speed is FP8's
    doubt = row.plan ~= 'sure' and ('the plan of its configuration: %s'):format(row.plan) or '',
    bucket_elements = tables.meaning('bucket elements of mlperf',
      ('%s %s %s'):format(row.benchmark, round, row.config)) or '', -- but v5.1's of 2^27 and 768e6 (RESULTS.md)
    -- its pretrain.py comments out what would read TP_COMM_OVERLAP: get_overlap_callback
    tp_overlap = row.config:find '^Cisco/' and 'False' or row.tp_overlap,
    recompute = round == 'v3.0' and 'selective' or 'none', -- ACT_CKPT_GRANULARITY of run_and_time.sh
    runtime = tables.meaning('runtime of mlperf', ('%s %s'):format(round, gpu)), source = 'MLPerf ' .. row.round })
end

--- llm-foundry's runs: FSDP under Composer.
local function of_mpt(row)
  return { id = ('%s:%s'):format(row.model, row.line), gpu = tables.words 'gpu of mpt'[row.gpu] or row.gpu,
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
    return fields and util.merged(line, fields, { line = line.line }), why
  end
end

return tables
