local tensorflow = require 'studies.tensorflow'
local trinity = require 'trinity'

local function problem_of(name, options, cluster)
  return trinity.problem { graph = trinity.model(name, options), cluster = trinity.cluster(cluster or 'p100x2') }
end

--- The devices of all operators whose name matches, as a set in text: '1', '1 2', ...
local function devices_of(problem, placement, pattern)
  local seen = {}
  for i = 1, problem.graph.operators do
    if problem.graph:operator(i).name:match(pattern) then seen[placement[i]] = true end
  end
  local list = {}
  for device = 1, #problem.cluster.devices do
    if seen[device] then list[#list + 1] = tostring(device) end
  end
  return table.concat(list, ' ')
end

local function expert(problem, options)
  return trinity.methods.expert(problem, merged({ quiet = true }, options or {}))
end

describe('the expert', function()
  it('keeps InceptionV3 and ResNet on a single device', function()
    for _, name in ipairs { 'inception_v3', 'resnet50' } do
      local found = expert(problem_of(name))
      expect(found.metrics.total_communication_bytes):equals(0)
      expect(found.evaluations):equals(2)
    end
  end)
  it('gives each LSTM layer of NMT a device, attention and softmax the last, of TensorFlow\'s operations too', function()
    local options = { sequence = 4, hidden = 64, vocabulary = 500 }
    for _, graph in ipairs { trinity.model('nmt', options), tensorflow.load('nmt', options) } do
      local problem = trinity.problem { graph = graph, cluster = trinity.cluster 'p100x4' }
      local placement = expert(problem).placement
      for name, device in trinity.system.sorted_pairs { source = '1', target = '1', ['encoder/layer_1'] = '1', ['encoder/layer_2'] = '2',
        ['decoder/layer_1'] = '3', ['decoder/layer_2'] = '4', attention = '4', projection = '4' } do
        expect(devices_of(problem, placement, '^' .. name .. '/')):equals(device)
      end
    end
  end)
  it('puts layers in turn where devices are fewer: GNMT on two', function()
    local problem = problem_of('gnmt', { sequence = 4, hidden = 64, vocabulary = 500 })
    local placement = expert(problem).placement
    for name, device in trinity.system.sorted_pairs { ['encoder/forward'] = '1', ['encoder/backward'] = '2', ['encoder/layer_2'] = '1',
      ['encoder/both'] = '1', ['decoder/layer_1'] = '2', ['decoder/layer_2'] = '1', projection = '2' } do
      expect(devices_of(problem, placement, '^' .. name)):equals(device)
    end
  end)
  it('splits NASNet by cells, in order and in parts of equal work', function()
    local problem = problem_of('nasnet_large', { batch_size = 2 })
    local found = expert(problem)
    local before = 1
    for cell = 1, 18 do
      local device = devices_of(problem, found.placement, ('^cell_%d/'):format(cell))
      expect(#device):equals(1)
      expect(tonumber(device) >= before):truthy()
      before = tonumber(device)
    end
    expect(before):equals(2)
    expect(found.metrics:compute_busy_s(1) / found.metrics:compute_busy_s(2)):near(1, 0.25)
  end)
  it('splits a profile without layer names by depth, and any network on request', function()
    local problem = problem_of('vgg16', { batch_size = 2 })
    local depth = expert(problem, { rule = 'depth' })
    for i = 1, problem.graph.operators do
      for j = 1, problem.graph.operators do
        if problem.graph:operator(i).phase == 'forward' and problem.graph:operator(j).phase == 'forward'
          and problem.graph.depth[i] < problem.graph.depth[j] then
          expect(depth.placement[i] <= depth.placement[j]):truthy()
        end
      end
    end
    expect(devices_of(problem, depth.placement, '.')):equals '1 2'
    local net = trinity.graph.layers.new 'plain'
    local x = net:input('x', { 8, 64 })
    for i = 1, 8 do x = net:linear('n' .. i, x, 64) end
    local plain = trinity.problem { graph = net:build():to_training(), cluster = trinity.cluster 'p100x2' }
    expect(devices_of(plain, expert(plain).placement, '^n[12]$')):equals '1'
    expect(devices_of(plain, expert(plain).placement, '^n[78]$')):equals '2'
  end)
  it('takes names for layers where at most half of the operators have different ones', function()
    local function devices(names)
      local net = trinity.graph.layers.new 'named'
      local x = net:input('x', { 8, 64 })
      for _, name in ipairs(names) do x = net:linear(name, x, 64) end
      local problem = trinity.problem { graph = net:build():to_training(), cluster = trinity.cluster 'p100x2' }
      local placement = expert(problem).placement
      return devices_of(problem, placement, '^a[./]'), devices_of(problem, placement, '^d[./]')
    end
    expect((devices { 'a/1', 'b/1', 'c/1', 'd/1', 'a/2', 'b/2', 'c/2', 'd/2' })):equals '1 2' -- more with the input
    local a, d = devices { 'a/1', 'b/1', 'c/1', 'd/1', 'a/2', 'b/2', 'c/2', 'd/2', 'c/3', 'd/3' } -- 5 of 11
    expect(a):equals '1'
    expect(d):equals '2'
  end)
end)
