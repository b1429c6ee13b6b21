local trinity = require 'trinity'

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
      expect(problem:bounds().step_time_s):below(metrics.step_time_s + 1e-12)
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
