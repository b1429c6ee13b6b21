local trinity = require 'trinity'

-- Multiply-adds and weights of the forward graph.
local function facts(graph)
  local flops = 0
  for i = 1, graph.operators do
    local op = graph:operator(i)
    if op.type == 'Conv' or op.type == 'Gemm' then flops = flops + op.flops end
  end
  return flops / 2, graph.parameters
end

describe('inception_v3', function()
  it('has the published parameters and multiply-adds', function()
    -- torchvision's inception_v3 without the auxiliary head: 27,161,264 - 3,326,696 parameters;
    -- 5.71 G multiply-adds at 299 x 299 (torchvision's model page), 5.7 in the issue of the paper.
    local multiply_adds, parameters = facts(trinity.model('inception_v3', { batch_size = 1, training = false }))
    expect(parameters):equals(23834568)
    expect(multiply_adds):near(5.713e9, 0.02 * 5.713e9)
  end)
  it('has the published shapes at the ends of its stages', function()
    local graph = trinity.model('inception_v3', { batch_size = 2, training = false })
    local shape = {}
    for i = 1, graph.operators do
      local op = graph:operator(i)
      shape[op.name] = table.concat(op.outputs[1].shape, 'x')
    end
    -- Szegedy et al. 2016, table 1, and torchvision's comments.
    expect(shape['stem_1/relu']):equals '2x32x149x149'
    expect(shape['stem_3/relu']):equals '2x64x147x147'
    expect(shape['stem/pool_1']):equals '2x64x73x73'
    expect(shape['stem/pool_2']):equals '2x192x35x35'
    expect(shape['mixed_a1/concat']):equals '2x256x35x35'
    expect(shape['mixed_a2/concat']):equals '2x288x35x35'
    expect(shape['mixed_a3/concat']):equals '2x288x35x35'
    expect(shape['mixed_b/concat']):equals '2x768x17x17'
    expect(shape['mixed_c4/concat']):equals '2x768x17x17'
    expect(shape['mixed_d/concat']):equals '2x1280x8x8'
    expect(shape['mixed_e1/concat']):equals '2x2048x8x8'
    expect(shape['mixed_e2/concat']):equals '2x2048x8x8'
    expect(shape['classifier']):equals '2x1000'
  end)
  it('becomes a training graph: backward about twice forward, an update per weighted operator', function()
    local forward = trinity.model('inception_v3', { batch_size = 4, training = false })
    local graph = trinity.model('inception_v3', { batch_size = 4 })
    local flops, updates, weighted = { forward = 0, backward = 0, update = 0 }, 0, 0
    for i = 1, graph.operators do
      local op = graph:operator(i)
      flops[op.phase] = flops[op.phase] + op.flops
      if op.phase == 'update' then updates = updates + 1 end
      if op.parameter_bytes > 0 then weighted = weighted + 1 end
    end
    expect(flops.forward):equals(forward.flops)
    expect(flops.backward / flops.forward):near(2, 0.05)
    expect(updates):equals(weighted)
    expect(graph.parameters):equals(forward.parameters)
    expect(graph.units):equals(forward.operators)
  end)
  it('frees the backward operators without weights when asked', function()
    local all = trinity.model('inception_v3', { batch_size = 1 })
    local free = trinity.model('inception_v3', { batch_size = 1, colocate = 'parameters' })
    expect(free.operators):equals(all.operators)
    expect(all.units):below(free.units)
  end)
end)

describe('PipeDream profiles', function()
  local function keep_times(path)
    local forward_ms, backward_ms, parameters = 0, 0, 0
    for line in io.lines(path) do
      local f, b, p = line:match 'forward_compute_time=([%d.]+), backward_compute_time=([%d.]+), .*parameter_size=([%d.]+)'
      if f and not line:find '%-%- Input' then
        forward_ms, backward_ms, parameters = forward_ms + f, backward_ms + b, parameters + p
      end
    end
    local graph, sum = trinity.model(path), { forward = 0, backward = 0, update = 0 }
    for i = 1, graph.operators do
      local op = graph:operator(i)
      sum[op.phase] = sum[op.phase] + (op.measured_time_s or 0)
    end
    expect(sum.forward):near(forward_ms / 1e3, 1e-9)
    expect(sum.backward):near(backward_ms / 1e3, 1e-9)
    expect(graph.parameter_bytes):equals(parameters)
  end
  it('keep their measured times, forward and backward', function() keep_times(root .. '/tests/data/profiles/small.graph.txt') end)
  it_shared('keep the measured times of a published network', function() keep_times(shared 'pipedream/vgg16.graph.txt') end)
  it_shared('all load, and simulate above their bound', function()
    local cluster = trinity.cluster 'p100x4'
    for _, name in ipairs { 'alexnet', 'densenet121', 'gnmt', 'inception_v3', 'nasnetamobile', 'resnet18',
      'resnet50', 'resnext50', 'squeezenet1_0', 'vgg16' } do
      local graph = trinity.model(shared(('pipedream/%s.graph.txt'):format(name)))
      local problem = trinity.problem { graph = graph, cluster = cluster }
      local metrics = problem:evaluate(problem:placement())
      expect(problem.lower_bound_s):below(metrics.step_time_s + 1e-12)
      expect(metrics.total_communication_bytes):equals(0)
    end
  end)
end)

describe('a cluster', function()
  it('folds routes into latency and bandwidth', function()
    local latency_s, bandwidth = trinity.cluster('p100x4'):wire(1, 3)
    expect(latency_s):equals(1e-5)
    expect(bandwidth):equals(12e9)
  end)
  it('comes from a file as well', function()
    local cluster = trinity.cluster(root .. '/models/clusters/p100.lua')
    expect(#cluster.devices):equals(1)
  end)
end)
