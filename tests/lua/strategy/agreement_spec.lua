-- Regular strategies of GPT-2 beside the numbers of an independent count (data/strategies of the shared folder, and its
-- oracle's cases): parameters and memory by kind and stage within 1 %, messages by kind and axis equal in number and bytes.

local core = require 'trinity.core'
local trinity = require 'trinity'

local path = core.home .. '/../shared/data/strategies/expected.json'
local kinds = { ['all-reduce'] = 'all_reduce', ['reduce-scatter'] = 'reduce_scatter', ['all-gather'] = 'all_gather',
  send = 'send' }

local function problem_of(case)
  local model, batch = case.model, case.batch
  return trinity.problem { cluster = trinity.cluster 'dgx_a100x4', graph = trinity.model('gpt2', {
    layers = model.layers, hidden = model.hidden, heads = model.heads, feed_forward = model.ffn,
    vocabulary = model.vocabulary, positions = model.positions, batch_size = batch.micro_batch, sequence = batch.sequence,
    dtype = 'bfloat16', gradient_dtype = 'float32', optimizer = 'adam', fused = false,
    kernels = case.strategy.flash == false and 'megatron' or 'flash' }) }
end

local function strategy_of(case)
  local said = case.strategy
  return { mesh = said.mesh, schedule = said.schedule, virtual_stages = said.virtual_stages,
    micro_batches = case.batch.micro_batches, shard = said.shard, recompute = said.recompute,
    sequence_parallel = said.sequence_parallel, bucket_bytes = 2 ^ 50 }
end

-- Messages by kind and axis: number and bytes. Level 3 of sharding gathers layer by layer here, all weights at once there:
-- the bytes alone are compared.
local function sums(rows, kind_of, sharded)
  local found = {}
  for _, row in ipairs(rows) do
    local key = ('%s %s'):format(kind_of(row), row.axis)
    local sum = found[key] or { count = 0, bytes = 0 }
    sum.count, sum.bytes = sum.count + row.count, sum.bytes + row.count * row.bytes
    found[key] = sum
  end
  if sharded and found['all_gather data'] then found['all_gather data'].count = 0 end
  return found
end

local function near(what, got, wanted)
  if math.abs(got - wanted) > 0.01 * wanted then
    error(('%s: expected %.6g within 1 %%, got %.6g'):format(what, wanted, got), 0)
  end
end

local function check_stage(name, case, wanted, got)
  local at = ('%s, stage %d'):format(name, wanted.stage)
  local shares = case.strategy.shard == 3 and case.strategy.mesh.data or 1
  near(at .. ', parameters', got.parameters * shares, wanted.parameters)
  for _, field in ipairs { 'weight_bytes', 'gradient_bytes', 'optimizer_bytes', 'gathered_weight_bytes' } do
    near(('%s, %s'):format(at, field), got[field], wanted[field])
  end
  for _, part in ipairs { 'embedding', 'layers', 'head' } do
    near(('%s, activations of %s'):format(at, part), got.activations[part], wanted.activation_bytes[part])
  end
  local theirs = sums(wanted.collectives, function(row) return kinds[row.kind] end, case.strategy.shard == 3)
  local ours = sums(got.traffic, function(row) return row.kind end, case.strategy.shard == 3)
  for key, sum in trinity.sorted_pairs(theirs) do
    expect(('%s, %s: %d'):format(at, key, ours[key] and ours[key].count or -1)):equals(
      ('%s, %s: %d'):format(at, key, sum.count))
    near(('%s, %s'):format(at, key), ours[key].bytes, sum.bytes)
  end
  for key in trinity.sorted_pairs(ours) do expect(('%s, %s %s'):format(at, key, theirs[key] ~= nil)):matches 'true$' end
end

describe('agreement with an independent count', function()
  local here = io.open(path)
  if not here then return it_shared('of regular strategies of GPT-2', function() end) end
  here:close()
  for _, case in ipairs(trinity.json.decode(core.read_file(path)).cases) do
    if case.model.tied and case.model.positions and not (case.strategy.schedule or ''):match '^zb' then
      it_shared(case.name, function()
        local problem = problem_of(case)
        if case.refused then
          expect(function() problem:strategy(strategy_of(case)) end):raises '.'
          return
        end
        local account = problem:strategy(strategy_of(case)):account()
        expect(#account.stages):equals(#case.expected.stages)
        for s, wanted in ipairs(case.expected.stages) do check_stage(case.name, case, wanted, account.stages[s]) end
        expect(account.samples):equals(case.expected.global_batch)
      end)
    end
  end
end)
