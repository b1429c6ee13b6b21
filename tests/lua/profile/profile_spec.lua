-- Profiles of real devices: the fit recovers a cost model from the times that it gives, files are checked, and what is
-- measured serves as a cluster and as times.

local core = require 'trinity.core'
local fit = require 'trinity.profile.fit'
local json = require 'trinity.base.json'
local trinity = require 'trinity'

local peaks = { flops_per_s = 80e9, memory_bytes_per_s = 12e9 }
local truth = { Conv = { 0.8, 0.5 }, Gemm = { 1.1, 0.7 }, Relu = { 0.3, 0.9 } }
local launch_s = 3e-6

--- Operators of three types that take exactly what the cost model says.
local function synthetic()
  local samples, random = {}, trinity.random(1, 'profile_spec')
  for key, of in trinity.system.sorted_pairs(truth) do
    for _ = 1, 30 do
      local flops, bytes = 10 ^ (4 + 5 * random:uniform()), 10 ^ (4 + 4 * random:uniform())
      samples[#samples + 1] = { key = key, flops = flops, bytes = bytes,
        time_s = launch_s + math.max(flops / (of[1] * peaks.flops_per_s), bytes / (of[2] * peaks.memory_bytes_per_s)) }
    end
  end
  return samples
end

--- A small network that takes a few milliseconds.
local function small_graph(batch_size)
  local net = trinity.graph.layers.new('small', { batch_size = batch_size or 8 })
  local x = net:input('x', { batch_size or 8, 64 })
  local a = net:relu('relu', net:linear('first', x, 96))
  local b = net:linear('second', x, 96)
  net:softmax_cross_entropy('loss', net:linear('last', net:add('sum', a, b), 10),
    net:input('labels', { batch_size or 8 }, 'int64'))
  return net:build():to_training()
end

local quick = { devices = { 'cpu:0', 'cpu:1' }, steps = 3, warm_up = 1, copies = 3, sizes = { 1024, 16384, 262144 },
  quiet = true, model = 'small', batch_size = 8 }
local graph = small_graph()
local profile = trinity.profile.measure(graph, quick)

local function temporary(content)
  local path = file_with(content, '.json')
  return path
end

--- The profile's text with `change` applied to the decoded value.
local function changed(change)
  local path = temporary ''
  profile:save(path)
  local value = json.decode(core.read_file(path))
  change(value)
  local again = temporary(json.encode(value))
  return again
end

describe('the fit of a profile', function()
  it('recovers the cost model that made the times', function()
    local found = fit.operators(synthetic(), peaks)
    expect(found.launch_s):near(launch_s, 1e-9 * launch_s + 1e-12)
    for key, of in trinity.system.sorted_pairs(truth) do
      expect(found.operators[key].compute_efficiency):near(of[1], 1e-6)
      expect(found.operators[key].memory_efficiency):near(of[2], 1e-6)
    end
    expect(found.residuals.largest < 1e-6):equals(true)
    expect(found.residuals.count):equals(90)
  end)

  it('is hardly moved by operators that were disturbed', function()
    local samples = synthetic()
    for i = 1, #samples, 9 do samples[i].time_s = 8 * samples[i].time_s end
    local found = fit.operators(samples, peaks)
    for key, of in trinity.system.sorted_pairs(truth) do
      expect(found.operators[key].compute_efficiency):near(of[1], 0.1 * of[1])
      expect(found.operators[key].memory_efficiency):near(of[2], 0.1 * of[2])
    end
  end)

  it('gives an efficiency that never binds to a term without operators', function()
    local found = fit.operators({ { key = 'Relu', flops = 1e6, bytes = 1e7, time_s = 2e-3 },
      { key = 'Relu', flops = 2e6, bytes = 2e7, time_s = 4e-3 } }, peaks)
    local of = found.operators.Relu
    expect(of.memory_efficiency):near(1e7 / 2e-3 / 12e9, 1e-6)
    expect(1e6 / (of.compute_efficiency * 80e9) <= 2e-3 * (1 + 1e-9)):equals(true)
  end)

  it('recovers latency and bandwidth, whatever one copy suffered', function()
    local points = {}
    for i = 1, 10 do
      local bytes = 1024 * 4 ^ (i - 1)
      points[i] = { bytes = bytes, time_s = 2e-6 + bytes / 5e9 }
    end
    local found = fit.link(points)
    expect(found.latency_s):near(2e-6, 1e-12)
    expect(found.bandwidth_bytes_per_s):near(5e9, 1e3)
    points[6].time_s = 10 * points[6].time_s
    found = fit.link(points)
    expect(found.latency_s):near(2e-6, 0.2e-6)
    expect(found.bandwidth_bytes_per_s):near(5e9, 0.5e9)
  end)
end)

describe('a profile', function()
  it('has a time for every operator and both directions of every link', function()
    local of = profile.kinds.cpu
    for i = 1, graph.operators do
      expect(type(of.operator_time_s[graph:operator(i).name])):equals 'number'
    end
    expect(#profile.links):equals(2)
    expect(profile.links[1].from .. profile.links[1].to):equals 'cpu:0cpu:1'
    expect(#profile.links[1].time_s):equals(3)
    expect(profile.trinity):equals(core.version)
    expect(profile.machine.cores >= 1 and profile.machine.processor ~= ''):equals(true)
    expect(profile.model.operators):equals(graph.operators)
    expect(profile:is_of(graph)):equals(true)
    expect(tostring(profile):match '^profile: small at batch size 8'):equals 'profile: small at batch size 8'
  end)

  it('is the same after a file, and is a cluster by name', function()
    local path = temporary ''
    profile:save(path)
    local loaded = trinity.profile.load(path)
    expect(loaded.kinds.cpu.operator_time_s['first']):equals(profile.kinds.cpu.operator_time_s['first'])
    local cluster = trinity.cluster(path)
    expect(#cluster.devices):equals(2)
    expect(cluster.devices[2].name):equals 'cpu:1'
    expect(cluster.queue):equals 'receiver'
    local latency_s, bandwidth = cluster:wire(1, 2)
    expect(bandwidth):near(select(2, profile:cluster():wire(1, 2)), 1)
    expect(latency_s):near((profile.links[1].latency_s + profile.links[2].latency_s) / 2, 1e-9)
    expect(latency_s > 0):equals(true) -- a copy within a step takes longer than its bytes
  end)

  it('applies its measured times to the network that was profiled', function()
    local problem = trinity.problem { graph = graph, profile = profile }
    local total = 0
    for _, time_s in trinity.system.sorted_pairs(profile.kinds.cpu.operator_time_s) do total = total + time_s end
    local shares = 0 -- of the mean time that the two devices take
    for _, device in ipairs(profile.devices) do shares = shares + 0.5 / device.speed end
    expect(shares):near(1, 1e-12)
    total = total / profile.devices[1].speed -- where everything is placed
    local metrics = problem:evaluate(problem:placement())
    expect(metrics.step_time_s):near(total, 1e-9 * graph.operators)
    local double = trinity.problem { graph = graph, profile = profile,
      cost = function(_, _, default_s) return 2 * default_s end }
    expect(double:evaluate(double:placement()).step_time_s):near(2 * total, 2e-9 * graph.operators)
    local other = trinity.problem { graph = small_graph(16), cluster = profile:cluster() }
    expect(other:evaluate(other:placement()).step_time_s > 0):equals(true)
  end)

  it('brings them from the file of a cluster, too, so that commands say the same digits', function()
    local path, network, plan = temporary '', temporary(graph:to_json()), temporary ''
    profile:save(path)
    local measured = trinity.problem { graph = graph, profile = profile }
    local step_s = measured:evaluate(measured:placement()).step_time_s
    measured:strategy(measured:placement()):save(plan)
    for _, checked in ipairs { true, false } do
      local problem = trinity.problem { graph = graph, cluster = trinity.cluster(path), check_memory = checked }
      expect(problem:evaluate(problem:placement()).step_time_s):equals(step_s)
    end
    for _, words in ipairs { 'simulate --model', 'info', ('simulate --strategy %s --trace %s --model'):format(plan, temporary '') } do
      trinity_says(('%s %s --cluster %s --run none'):format(words, network, path), 0, (' %.6g s'):format(step_s))
    end
  end)

  it('is refused for another network or batch size', function()
    expect(function() return trinity.problem { graph = small_graph(16), profile = profile } end):raises(
      "trinity.problem: option 'profile': this is a profile of small at batch size 8 %(.*another batch size")
    local path = temporary ''
    profile:save(path)
    local alexnet = trinity.model('alexnet', { batch_size = 1, image_size = 67 })
    expect(function() return trinity.problem { graph = alexnet, profile = path } end):raises(
      'the graph is alexnet with %d+ operators')
    expect(function() return trinity.problem { graph = graph, profile = profile, cluster = trinity.cluster 'p100x2' } end)
      :raises "option 'profile': expected a cluster with measured devices %(cpu%), but p100x2 has p100; omit the cluster"
    expect(function() return trinity.problem { graph = graph, profile = 7 } end):raises(
      "option 'profile': expected a profile or its file, got number 7")
  end)

  it('refuses files that are none, with one error', function()
    local cases = {
      { function(p) p.format = 'cake' end, "expected a profile %(field 'format' = " },
      { function(p) p.version = 99 end, 'format version 99' },
      { function(p) p.kinds.cpu.launch_s = 'fast' end, "kinds: 'cpu': field 'launch_s': expected a number from 0" },
      { function(p) p.kinds.cpu.memory_efficiency = 0 end, "field 'memory_efficiency': expected more than 0" },
      { function(p) p.kinds.cpu.operator_time_s.first = -1 end, "operator_time_s: 'first': expected a number from 0" },
      { function(p) p.kinds.cpu.sped = 1 end, "unknown field 'sped'" },
      { function(p) p.devices[2].name = 'cpu:0' end, "device 2: expected different names, got 'cpu:0' twice" },
      { function(p) p.devices[2].kind = 'tpu' end, "device 2: kind 'tpu' is not among kinds" },
      { function(p) p.links[2] = nil end, "expected a link from 'cpu:1' to 'cpu:0', got none" },
      { function(p) p.links[1].bytes[4] = 5 end, 'link 1: expected equal numbers of sizes and times, got 4 and 3' },
      { function(p) p.machine = 3 end, 'machine: expected a list or an object' },
    }
    for _, case in ipairs(cases) do
      local path = changed(case[1])
      expect(function() return trinity.cluster(path) end):raises(case[2])
    end
    local path = temporary '{"format": '
    expect(function() return trinity.profile.load(path) end):raises 'not valid JSON'
    expect(function() return trinity.cluster 'nowhere.json' end):raises 'no profile or cluster file nowhere.json'
  end)

  it('refuses devices and options that are not there', function()
    expect(function() return trinity.profile.measure(graph, { devices = { 'gpu' } }) end):raises(
      "device 'gpu': expected cpu:0")
    expect(function() return trinity.profile.measure(graph, { sizes = {} }) end):raises(
      "option 'sizes': expected at least one")
    expect(function() return core.measure_copies('cpu:0', 'cpu:1', { 2 }, 1) end):raises 'entry 1: expected 4 to 2^32'
  end)
end)
