-- Methods of placement inside the stages of a plan: where they win, one's own, what bounds say, what is refused.

local trinity = require 'trinity'
local inside = require 'trinity.plan.inside'
local space = require 'trinity.plan.space'

--- Layers of four branches.
local function branches(layers, width)
  width = width or 512
  return function(micro_batch)
    local net = trinity.graph.layers.new('branches', { batch_size = micro_batch })
    local x = net:input('x', { micro_batch, width })
    for i = 1, layers do
      local parts = {}
      for b = 1, 4 do
        local name = ('layer_%d/branch_%d'):format(i, b)
        parts[b] = net:tanh(name .. '/tanh', net:linear(name .. '/product', x, width))
      end
      x = net:add(('layer_%d/sum_1'):format(i), parts[1], parts[2])
      x = net:add(('layer_%d/sum_2'):format(i), x, parts[3])
      x = net:add(('layer_%d/sum_3'):format(i), x, parts[4])
    end
    net:softmax_cross_entropy('loss', net:linear('head', x, 10), net:input('labels', { micro_batch }, 'int64'))
    return net:build():to_training()
  end
end

local function plan(options)
  local given = { quiet = true }
  for name, value in trinity.system.sorted_pairs(options) do given[name] = value end
  return trinity.plan(given)
end

describe('a plan places operators inside stages', function()
  it('and wins where a network has branches that neither tensor nor pipeline can use', function()
    local graph = trinity.model('inception_v3', { batch_size = 32 })
    for _, devices in ipairs { 2, 4 } do
      local on = { graph = graph, cluster = trinity.cluster('p100x' .. devices), global_batch = 32 }
      local placed = { graph = graph, cluster = on.cluster, global_batch = 32, space = { placement = { 1, 2, 4 } } }
      local without, with = plan(on).plans[1], plan(placed).plans[1]
      expect(with.placement > 1):equals(true)
      expect(with.step_time_s):below(0.9 * without.step_time_s)
      expect(with.lower_bound_s <= with.step_time_s):equals(true)
      expect(with.strategy.metrics.step_time_s):equals(with.step_time_s)
      expect(#with.strategy.inside):equals(graph.operators)
    end
  end)

  it('in addition to all other dimensions, too: over data, tensor and pipeline together', function()
    local on = { graph = branches(8, 1024), cluster = trinity.cluster 'dgx1_v100:4', global_batch = 64,
      space = { micro_batch = { 8, 16, 32, 64 } } }
    local without = plan(on).plans[1]
    on.space = { micro_batch = { 8, 16, 32, 64 }, placement = { 1, 2, 4 } }
    local with = plan(on).plans[1]
    expect(with.placement > 1):equals(true)
    expect(with.step_time_s):below(0.8 * without.step_time_s)
  end)

  it('by methods of one\'s own, stage by stage', function()
    local seen = {}
    trinity.methods.register('spec_thirds', function(problem, options)
      seen[#seen + 1] = { operators = problem.graph.operators, devices = #problem.cluster.devices,
        evaluations = options.evaluations, seed = options.seed }
      return problem:placement_by_unit(function(unit) return unit % 3 == 0 and 2 or 1 end)
    end)
    local found = plan { graph = branches(4), cluster = trinity.cluster 'p100x4', global_batch = 32, plans = 1,
      methods = { 'spec_thirds' }, evaluations = 7, seed = 3,
      space = { placement = 2, pipeline = 2, tensor = 1, context = 1, micro_batch = 8, schedule = '1f1b', stages = 'even',
        recompute = 'none' } }
    expect(#seen):equals(2)
    for _, one in ipairs(seen) do
      expect(one.devices):equals(2)
      expect(one.evaluations):equals(7)
      expect(one.seed):equals(3)
      expect(one.operators):below(found.plans[1].problem.graph.operators)
    end
    local best = found.plans[1]
    expect(best.placement * best.pipeline):equals(4)
    local counts = { 0, 0 }
    for _, place in ipairs(best.strategy.inside) do counts[place] = counts[place] + 1 end
    expect(counts[2] > 0 and counts[1] > counts[2]):equals(true)
  end)

  it('within bounds that hold, with every other dimension', function()
    local graph, cluster, priced = branches(4), trinity.cluster 'p100x8', 0
    local points = space.new('inside_spec', { placement = 2, micro_batch = { 2, 4 }, stages = 'even' },
      { devices = 8, per_node = 8, layers = 4, batch = 16, experts = false, unequal = false }, {})
    local problems, networks = {}, require('trinity.plan.networks').new('inside_spec', graph, cluster)
    local bounds = require 'trinity.plan.bounds'
    for _, family in ipairs(points:families()) do
      local ok, totals = pcall(networks.totals, networks, family, true)
      points:each(family, function(point, reason)
        if reason or not ok or point.bucket_bytes == nil then return end
        local b = point.micro_batch
        problems[b] = problems[b] or trinity.problem { check_memory = false, graph = graph(b), cluster = cluster }
        local strategy = space.strategy(point)
        strategy.inside = inside.place(problems[b], strategy, { 'random' }, { evaluations = 4, seed = priced, quiet = true })
        local done, metrics = pcall(problems[b].evaluate, problems[b], strategy)
        if not done then return end
        priced = priced + 1
        local found = problems[b].handle:mesh_bounds({ strategy })[1]
        expect(found.step_time_s <= metrics.step_time_s):equals(true)
        expect(bounds.step_time_s(point, totals) <= metrics.step_time_s):equals(true)
        expect(bounds.memory_bytes(point, totals) <= metrics.peak_memory_bytes):equals(true)
        for _, bytes in ipairs(found.memory_bytes) do expect(bytes <= metrics.peak_memory_bytes):equals(true) end
      end)
    end
    expect(priced > 40):equals(true)
  end)

  it('or says why not', function()
    local graph, cluster = branches(2), trinity.cluster 'p100x2'
    local function refused(options, message)
      options.graph, options.cluster, options.global_batch = graph, cluster, 8
      expect(function() plan(options) end):raises(message)
    end
    refused({ methods = { 'anealing' } }, "'methods': no method 'anealing', did you mean 'annealing'")
    refused({ methods = {} }, 'expected names of methods, got none')
    refused({ space = { placement = 0 } }, "'placement'")
    trinity.methods.register('spec_none', function() return nil, 'nothing to be found here' end)
    local found = plan { graph = graph, cluster = cluster, global_batch = 8, methods = { 'spec_none' },
      space = { placement = 2 } }
    expect(#found.plans):equals(0)
    expect(found.refused[1].reason):equals 'no method places operators inside stage 1: nothing to be found here'
  end)
end)
