-- Clients' own job files (../shared/data/client-jobs): what is read of them, and what their clients refuse.

local core = require 'trinity.core'
local csv = require 'trinity.base.csv'
local json = require 'trinity.base.json'
local mutants = dofile(root .. '/tests/lua/support/job_mutants.lua')
local trinity = require 'trinity'

local jobs = core.home .. '/../shared/data/client-jobs'

local function needed()
  if not core.exists(jobs .. '/expected.json') then skip 'needs ../shared/data/client-jobs' end
end

-- DeepSpeed's degrees are in its launch line; the launch line of the pipeline example is in its repository.
local launches = { ['deepspeed_pipeline_alexnet.json'] = 'deepspeed train.py --deepspeed_config=ds_config.json -p 2' }

local stated = { 'model', 'mesh', 'micro_batch', 'global_batch', 'micro_batches', 'precision', 'recompute',
  'distributed_optimizer', 'zero_stage', 'offload' }

describe('job files of clients', function()
  it('mean what is stated of them, and are legal', function()
    needed()
    local count = 0
    local function same(path, found, want)
      if type(want) ~= 'table' then
        count = count + 1
        return expect(found):equals(want, path)
      end
      for key, value in trinity.system.sorted_pairs(want) do
        same(path .. '.' .. key, type(found) == 'table' and found[key], value)
      end
    end
    for name, want in trinity.system.sorted_pairs(json.read(jobs .. '/expected.json')) do
      local found = trinity.job(jobs .. '/files/' .. name, { gpus = want.gpus_assumed, launch = launches[name] })
      expect(found.client):equals(want.client, name)
      expect(found.legal):equals(want.legal, name)
      for _, key in ipairs(stated) do
        local value = want[key]
        if key == 'precision' and value then value = value:gsub('products', 'matmuls') end -- the data's word
        if value ~= nil then same(name .. ' ' .. key, found[key], value) end
      end
    end
    expect(300):below(count)
  end)
  it('with one argument broken are refused, or reported as ignored or changed, by the rule of the client', function()
    needed()
    local folder, all, same, silent = temporary '.jobs', 0, 0, {}
    for _, row in ipairs(csv.read(jobs .. '/mutants.csv', 'file', 'argument', 'value', 'effect', 'source', 'gpus')) do
      local path = folder .. '/' .. row.file
      core.write_file(path, mutants.apply(core.read_file(jobs .. '/files/' .. row.file), row))
      local found = trinity.job(path, { gpus = tonumber(row.gpus), launch = launches[row.file] })
      local told, hit = not found.legal, false
      for _, finding in ipairs(found.findings) do
        told = told or row.effect ~= 'refused'
        hit = hit or finding.source == row.source and (finding.effect == 'refused') == (row.effect == 'refused')
      end
      all, same = all + 1, same + (hit and 1 or 0)
      if not told then silent[#silent + 1] = ('%s %s %s'):format(row.file, row.argument, row.value) end
    end
    expect(table.concat(silent, '; ')):equals ''
    expect(0.95 * all):below(same)
  end)
end)

-- Megatron-LM's functional tests by the columns of megatron-golden/rows.csv, as argument lists.
local columns = { tp = 'tensor-model-parallel-size', pp = 'pipeline-model-parallel-size', cp = 'context-parallel-size',
  ep = 'expert-model-parallel-size', etp = 'expert-tensor-parallel-size', micro_batch = 'micro-batch-size',
  global_batch = 'global-batch-size', sequence = 'seq-length', layers = 'num-layers', hidden = 'hidden-size',
  ffn = 'ffn-hidden-size', heads = 'num-attention-heads', kv_channels = 'kv-channels', experts = 'num-experts',
  top_k = 'moe-router-topk', moe_ffn = 'moe-ffn-hidden-size', shared_ffn = 'moe-shared-expert-intermediate-size',
  moe_layer_freq = 'moe-layer-freq', dispatcher = 'moe-token-dispatcher-type', transformer_impl = 'transformer-impl',
  pipeline_layout = 'pipeline-model-parallel-layout', layers_first = 'decoder-first-pipeline-num-layers',
  layers_last = 'decoder-last-pipeline-num-layers', mtp_layers = 'mtp-num-layers', vocab = 'vocab-size',
  hybrid_pattern = 'hybrid-layer-pattern', cuda_graph = 'cuda-graph-impl' }
local flags = { mla = 'multi-latent-attention', swiglu = 'swiglu', sequence_parallel = 'sequence-parallel',
  distributed_optimizer = 'use-distributed-optimizer', overlap_grad = 'overlap-grad-reduce',
  overlap_param = 'overlap-param-gather', deterministic = 'deterministic-mode',
  account_embedding = 'account-for-embedding-in-pipeline-split', account_loss = 'account-for-loss-in-pipeline-split' }

local function arguments_of(row)
  local words = {}
  local function add(name, ...)
    words[#words + 1] = '--' .. name
    for _, word in ipairs { ... } do words[#words + 1] = word end
  end
  for column, name in trinity.system.sorted_pairs(columns) do if row[column] ~= '' then add(name, row[column]) end end
  for column, name in trinity.system.sorted_pairs(flags) do if row[column] == '1' then add(name) end end
  add('max-position-embeddings', row.sequence)
  if (tonumber(row.vpp) or 1) > 1 and row.pipeline_layout == '' and row.hybrid_pattern == '' then
    add('num-virtual-stages-per-pipeline-rank', row.vpp)
  end
  if row.kv_groups ~= '' then add 'group-query-attention' add('num-query-groups', row.kv_groups) end
  if row.tied == '0' then add 'untie-embeddings-and-output-weights' end
  if row.precision ~= 'fp32' then add(row.precision) end
  if row.fp8 ~= '' then add('fp8-format', 'hybrid') add('fp8-recipe', row.fp8) end
  if row.fsdp ~= '' then add 'use-megatron-fsdp' add('ckpt-format', 'fsdp_dtensor') end
  local granularity, method = row.recompute:match '^(%a+):?(.*)$'
  if granularity then add('recompute-granularity', granularity) end
  if granularity == 'full' then
    add('recompute-method', method)
    add('recompute-num-layers', row.recompute_layers)
  elseif granularity then
    add 'recompute-modules'
    for word in method:gmatch '[%w_]+' do words[#words + 1] = word end
  end
  if row.mtp_layers ~= '' then add('position-embedding-type', 'rope') end
  -- Settings that no column states: biases and grouped matmuls of experts, softmax before the choice, groups of micro-batches.
  if row.experts ~= '' or row.hybrid_pattern ~= '' then add 'disable-bias-linear' add 'moe-grouped-gemm' end
  if row.top_k == '1' then add 'moe-router-pre-softmax' end
  if row.case:find 'tunable_overlap' then add('microbatch-group-size-per-virtual-pipeline-stage', '5') end
  return words
end

describe("Megatron-LM's functional tests", function()
  it('are legal as argument lists', function()
    local path, seen, count = core.home .. '/../shared/data/megatron-golden/rows.csv', {}, 0
    if not core.exists(path) then skip 'needs ../shared/data/megatron-golden' end
    for _, row in ipairs(csv.read(path, 'case', 'gpus')) do
      if not seen[row.case] then
        seen[row.case], count = true, count + 1
        local found, refused = trinity.job(arguments_of(row), { gpus = tonumber(row.gpus) }), {}
        for _, finding in ipairs(found.findings) do
          if finding.effect == 'refused' then refused[#refused + 1] = finding.code end
        end
        expect(table.concat(refused, ' ')):equals('', row.case)
      end
    end
    expect(count):equals(121)
  end)
end)

describe("MLPerf's rows", function()
  -- ASYM_PP_EMBED and ASYM_PP_LOSS of these recipes put embedding and loss in the place of a layer: 126 + 2 = 8 x 8 x 2.
  local counted = { '--account-for-embedding-in-pipeline-split', '--account-for-loss-in-pipeline-split' }
  local networks = { gpt3 = '--num-layers 96 --hidden-size 12288 --num-attention-heads 96 --ffn-hidden-size 49152',
    llama31_405b = '--num-layers 126 --hidden-size 16384 --num-attention-heads 128 --ffn-hidden-size 53248 --swiglu '
      .. '--group-query-attention --num-query-groups 8 --normalization RMSNorm --position-embedding-type rope',
    llama31_8b = '--num-layers 32 --hidden-size 4096 --num-attention-heads 32 --ffn-hidden-size 14336 --swiglu '
      .. '--group-query-attention --num-query-groups 8 --normalization RMSNorm --position-embedding-type rope' }
  local function arguments_for(row)
    local words = {}
    local function add(text) for word in text:gmatch '%S+' do words[#words + 1] = word end end
    add(networks[row.benchmark])
    add(('--seq-length %s --max-position-embeddings %s --micro-batch-size %s --global-batch-size %s'):format(row.sequence,
      row.sequence, row.micro_batch, row.global_batch))
    add(('--tensor-model-parallel-size %s --pipeline-model-parallel-size %s --context-parallel-size %s'):format(row.tp, row.pp,
      row.cp))
    add '--bf16 --use-distributed-optimizer --untie-embeddings-and-output-weights --disable-bias-linear'
    if row.tp ~= '1' then add '--sequence-parallel' end
    if (tonumber(row.vpp) or 1) > 1 then add('--num-virtual-stages-per-pipeline-rank ' .. row.vpp) end
    return words
  end
  it('are legal as argument lists; layers that do not divide are refused with the arguments that count two more', function()
    local path, count, uneven = core.home .. '/../shared/data/mlperf/steps.csv', 0, 0
    if not core.exists(path) then skip 'needs ../shared/data/mlperf' end
    for _, row in ipairs(csv.read(path)) do
      if networks[row.benchmark] and row.plan == 'sure' and row.accelerator:find 'NVIDIA' then
        local words, gpus = arguments_for(row), { gpus = tonumber(row.gpus), capability = 10 }
        local function refusals()
          local list = {}
          for _, finding in ipairs(trinity.job(words, gpus).findings) do
            if finding.effect == 'refused' then list[#list + 1] = finding.text end
          end
          return list
        end
        if row.benchmark == 'llama31_405b' then
          uneven = uneven + 1
          expect(refusals()[1]):matches 'count embedding and loss as a layer each'
          for _, word in ipairs(counted) do words[#words + 1] = word end
          local stages, sum = trinity.job(words, gpus).stages, 0
          for _, layers in ipairs(stages) do sum = sum + layers end
          expect(sum):equals(126)
          expect(stages[1]):equals(1)
          expect(stages[#stages]):equals(1)
        end
        expect(table.concat(refusals(), ' ')):equals('', row.config)
        count = count + 1
      end
    end
    expect(count > 25):truthy()
    expect(uneven):equals(11)
  end)
end)
