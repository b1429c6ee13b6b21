-- Rules of runtimes (lib/trinity/cluster/runtime_rules.lua): configurations of Megatron-LM's own tests are legal, what
-- it refuses is not, and every plan that is found for it exports without loss.

local csv = require 'trinity.base.csv'
local rules = require 'trinity.cluster.runtime_rules'
local space = require 'trinity.plan.space'
local trinity = require 'trinity'

local function number(text) return text ~= '' and tonumber(text) or 1 end

--- The point of a row of megatron-golden, and its layers and batch; nil where we cannot express it: no GPUs are stated,
--- encoders and hybrids, experts divided by tensor parallelism, recomputed modules, groups of micro-batches of another
--- size than the pipeline (microbatch_group_size_per_vp_stage), more stages than layers.
local function point_of(row)
  local known = { gpt = true, moe = true, mixtral = true }
  local tp, pp, cp, ep, v = number(row.tp), number(row.pp), number(row.cp), number(row.ep), number(row.vpp)
  local recompute = row.recompute == '' and 'none' or row.recompute:match '^full' or nil
  if not known[row.family] or row.hybrid_pattern ~= '' or row.dp == '' or row.layers == '' or row.global_batch == ''
    or not recompute or ep > 1 and tp > 1 and row.etp ~= '1' or number(row.dp) % ep ~= 0 then return nil end
  local layers, micro_batches = number(row.layers), number(row.global_batch) / number(row.micro_batch) / number(row.dp)
  if v > 1 and micro_batches % pp ~= 0 or pp * v > layers then return nil end
  local point = { tensor = tp, pipeline = pp, context = cp, expert = ep, data = number(row.dp), virtual_stages = v,
    micro_batch = number(row.micro_batch), placement = 1, recompute = recompute, algorithm = 'automatic',
    order = 'natural', bucket_bytes = 2e8, schedule = v > 1 and 'interleaved' or '1f1b',
    sequence_parallel = tp > 1 and row.sequence_parallel == '1', stages = layers % (pp * v) == 0 and 'even' or 'balanced',
    zero_stage = row.fsdp ~= '' and tonumber(row.fsdp:match '%d') or number(row.distributed_optimizer) }
  return point, layers, number(row.global_batch)
end

local function space_of(runtime, point, layers, batch)
  return space.new('rules_spec', {}, { devices = space.width(point) * point.pipeline * point.data, per_node = 8,
    layers = layers, batch = batch, experts = true, unequal = false }, {}, runtime)
end

--- Why a runtime does not run a row; nil where it does. bucket_bytes: replaces the row's.
local function wrong(runtime, row, bucket_bytes)
  local point, layers, batch = point_of(row)
  point.bucket_bytes = bucket_bytes or point.bucket_bytes
  return space_of(runtime, point, layers, batch):wrong(point)
end

local row = { family = 'gpt', tp = '2', pp = '2', vpp = '', cp = '1', ep = '1', etp = '', dp = '2', micro_batch = '4',
  global_batch = '32', layers = '12', fsdp = '', recompute = '', hybrid_pattern = '', sequence_parallel = '1',
  distributed_optimizer = '1' }

local first = merged(row, { sequence_parallel = '', distributed_optimizer = '0' }) -- what Megatron-LM of 2021 had

describe('what a runtime runs', function()
  it('is what its client takes', function()
    expect(wrong('megatron', row)):equals(nil)
    expect(wrong('megatron', merged(row, { vpp = '3' }))):equals(nil)
    expect(wrong('megatron', merged(row, { fsdp = 'megatron:3' }))):matches '^ZeRO 2 and 3 without a pipeline'
    expect(wrong('megatron', merged(row, { fsdp = 'megatron:3', pp = '1' }))):equals(nil)
    expect(wrong('any', merged(row, { fsdp = 'megatron:3' }))):equals(nil)
    expect(wrong('megatron-2021', merged(first, { cp = '2' }))):matches '^no context parallelism'
    for _, runtime in ipairs { 'megatron-2021', 'megatron-2022', 'megatron-2023', 'megatron-core-0.7' } do
      expect(wrong(runtime, merged(first, { vpp = '3' }))):matches '^interleaving over three ranks'
    end
    for _, runtime in ipairs { 'megatron-2022', 'megatron-2023' } do
      expect(wrong(runtime, row)):equals(nil)
      expect(wrong(runtime, merged(row, { cp = '2' }))):matches '^no context parallelism'
    end
    expect(wrong('megatron-2021', first)):equals(nil)
    expect(wrong('megatron-2021', merged(first, { sequence_parallel = '1' }))):matches '^no sequence parallelism'
    expect(wrong('megatron-2021', merged(first, { distributed_optimizer = '1' }))):matches '^no distributed optimizer'
    -- BLOOM's plan: 70 layers, embedding and logits make 12 equal stages
    expect(wrong('megatron-deepspeed-2022', merged(first, { tp = '4', pp = '12', dp = '8', layers = '70',
      distributed_optimizer = '1', recompute = 'full' }))):equals(nil)
    expect(wrong('megatron-core-0.8', merged(row, { vpp = '3' }))):equals(nil)
    expect(wrong('eager', row, 0)):matches '^fully_shard: ZeRO' -- the rules of its base, torchtitan
    expect(wrong('eager', row)):matches '^fully_shard reduces gradients module by module'
    expect(function() rules.of 'megatrn' end):raises "unknown runtime 'megatrn'"
  end)

  it('is refused by name and source where it is asked for', function()
    expect(function()
      space.new('rules_spec', { schedule = { '1f1b', 'zb-v' } }, {}, {}, 'megatron')
    end):raises ".*runtime 'megatron' runs 1F1B, interleaved 1F1B %(megatron/core.*, got zb%-v"
  end)

  it('has a sentence and a source for every rule', function()
    for _, list in pairs(rules.list) do -- in any order
      for _, rule in ipairs(list) do
        expect(rule[1] == 'base' or type(rule[3]) == 'string' and type(rule[4]) == 'string'):truthy()
      end
    end
  end)

  it('exports without loss', function()
    for _, runtime in ipairs { 'megatron', 'torchtitan', 'deepspeed' } do
      local on = trinity.cluster('dgx_h100x2', { runtime = runtime })
      local found = trinity.plan { cluster = on, global_batch = 64, quiet = true, simulations = 24, runtime = runtime,
        graph = function(micro_batch, layers)
          return trinity.model('llama-3-8b', { batch_size = micro_batch, layers = layers, sequence = 4096, cluster = on })
        end }
      expect(#found.plans):equals(5)
      for _, plan in ipairs(found.plans) do
        expect(#plan.strategy:export { format = runtime, lossless = true, folder = temporary() } > 0):truthy()
      end
    end
  end)

  it_shared('takes every configuration of Megatron-LM\'s own tests that we can say', function()
    local count = 0
    for _, one in ipairs(csv.read(shared 'megatron-golden/rows.csv', 'case', 'family', 'tp', 'pp', 'recompute')) do
      if point_of(one) then
        count = count + 1
        local why = wrong('megatron', one)
        if why then error(('%s: %s'):format(one.case, why)) end
      end
    end
    expect(count > 100):truthy()
  end)
end)

describe('the text of a point', function()
  it('has the number of recomputed layers', function()
    local point = { micro_batch = 1, micro_batches = 8, pipeline = 2, data = 4, schedule = '1f1b', virtual_stages = 1, zero_stage = 1,
      recompute = 'by_layer' }
    for recomputed, words in pairs { [1] = '1 layer, ZeRO 1', [3] = '3 layers, ZeRO 1' } do -- in any order
      expect(space.text(merged(point, { recomputed = { recomputed, 0 } }))):matches('recompute ' .. words .. '$')
    end
  end)
end)
