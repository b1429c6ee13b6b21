-- Orders of ranks in plans: searched where groups of ranks straddle machines, written and read in Megatron-LM's words.

local trinity = require 'trinity'
local gpt = require('support.graphs').gpt2
local space = require 'trinity.plan.space'
local straddling_of = require('trinity.strategy.rank_order').straddling
local text = require 'trinity.plan.text'

local function search(cluster, fields, space_fields)
  return trinity.plan(merged({ graph = gpt, cluster = trinity.cluster(cluster), global_batch = 12, quiet = true,
    simulations = 40, space = merged({ recompute = 'none', context = 1, micro_batch = 1, tensor = 1, pipeline = { 2, 3 },
      schedule = '1f1b' }, space_fields or {}) }, fields or {}))
end

describe('orders of ranks in a plan', function()
  it('are searched on machines of three GPUs, and none that was simulated is faster than the best', function()
    local found, orders = search 'dgx_h100:3x2', {}
    for _, one in ipairs(found.simulated) do
      orders[one.rank_order] = true
      expect(one.step_time_s >= found.plans[1].step_time_s or not one.feasible):truthy()
    end
    expect(orders.default):truthy()
    expect(orders['pipeline-data']):truthy()
    expect(text.report(found, 256)):matches 'groups of ranks that straddle machines: [^\n]+ groups'
    for _, one in ipairs(search('dgx_h100:4x2').simulated) do expect(one.rank_order):equals 'default' end
    local given = search('dgx_h100:3x2', {}, { pipeline = 3, rank_order = 'pipeline-data' })
    for _, one in ipairs(given.simulated) do
      expect(one.strategy.order[1]):equals 'pipeline'
      expect(one.step_time_s):equals(one.problem:evaluate(merged(space.strategy(one.point),
        { order = { 'pipeline', 'data' } })).step_time_s)
    end
    expect(#given.plans > 0):truthy()
  end)
  it('say which groups straddle machines', function()
    local function straddling(order)
      local best = search('dgx_h100:3x2', { simulations = 1 }, { pipeline = 3, data = 2, rank_order = order }).plans[1]
      return straddling_of(best.fields, best.problem.cluster)
    end
    expect(straddling 'pipeline-data'):equals '3 of 3 data groups'
    expect(straddling 'data-pipeline'):equals '1 of 3 data groups, 2 of 2 pipeline groups'
  end)
  it('of an unknown axis are refused', function()
    for _, order in ipairs { 'pipeline-dta', 'data-data' } do
      expect(function() search('dgx_h100:3x2', {}, { rank_order = order }) end):raises(
        "dimension 'rank_order': expected 'default' or different axes from the innermost")
    end
    expect(function() search('dgx_h100:3x2', { runtime = 'megatron', space = { rank_order = 'pipeline-tensor-data' } }) end)
      :raises "runtime 'megatron' runs tensor, context, expert, then data and pipeline, or pipeline and data .*got pipeline%-tensor%-data"
  end)
  it('leave GPUs idle where machines then divide no group, as rank files too', function()
    local found = search('dgx_h100:3x2', { runtime = 'megatron' }, { tensor = 2, data = 2, pipeline = 1 })
    expect(found.plans[1].segment_size):equals(2)
    expect((found.plans[1].strategy:export { format = 'rank_file' })):equals(
      'rank 0=n0 slot=0\nrank 1=n0 slot=1\nrank 2=n1 slot=0\nrank 3=n1 slot=1\n')
    expect(text.report(found, 256)):matches '\n  ranks data%-tensor: step [%d.]+ s, %+[%d.]+ %%; straddle: tensor'
  end)
  it('are those that the runtime has', function()
    local function wrong(order, runtime)
      return space.new('spec', {}, { devices = 8, per_node = 8, layers = 6, batch = 8 }, {}, runtime):wrong {
        micro_batch = 1, tensor = 2, context = 1, expert = 1, sequence_parallel = true, recompute = 'none',
        placement = 1, pipeline = 2, data = 2, schedule = '1f1b', virtual_stages = 1, stages = 'even', zero_stage = 0,
        bucket_bytes = 2e8, algorithm = 'automatic', order = 'natural', rank_order = order }
    end
    expect(wrong('tensor-pipeline-data', 'megatron')):equals(nil)
    expect(wrong('default', 'torchtitan')):equals(wrong(nil, 'torchtitan'))
    expect(wrong('pipeline-tensor-data', 'megatron')):matches '^tensor, context, expert, then data and pipeline'
    expect(wrong('tensor-pipeline-data', 'deepspeed')):truthy()
    expect(wrong('pipeline-tensor-data', 'any')):equals(nil)
  end)
  it("are written and read in Megatron-LM's words", function()
    local problem = trinity.problem { graph = gpt(1), cluster = trinity.cluster 'dgx_h100' }
    local function export(order)
      return problem:strategy({ mesh = { tensor = 2, pipeline = 2, data = 2 }, schedule = '1f1b', micro_batches = 4,
        order = order }):export { format = 'megatron' }
    end
    expect(export { 'tensor', 'pipeline', 'data' }):matches '%-%-use%-tp%-pp%-dp%-mapping\n'
    expect(export { 'tensor', 'data', 'pipeline' }:find('mapping', 1, true)):equals(nil)
  end)
end)
