-- Properties of a cluster that trinity.pipeline uses: devices, their memory, bandwidth by level.

local trinity = require 'trinity'
local topology = require 'trinity.cluster.topology'
local pipelines = dofile(root .. '/tests/lua/support/pipelines.lua')

local graph = pipelines.chain { { 1, 8 }, { 2, 8 }, { 1, 8 }, { 3, 8 } }

-- Machines with given numbers of GPUs; an inner bandwidth and one between machines.
local function nodes(sizes)
  local net = topology.new { queue = 'route' }
  for m, size in ipairs(sizes) do
    local name = 'n' .. m
    net:link(net:devices(name, size, 'p100'), name .. '/pcie', { bandwidth_bytes_per_s = 12e9, latency_s = 1e-6 })
    net:link(name .. '/pcie', 'net', { bandwidth_bytes_per_s = 2e9, latency_s = 1e-6 })
  end
  return trinity.cluster(net:spec())
end

local function plan(cluster, options)
  options = options or {}
  options.quiet, options.method = true, options.method or 'gpipe'
  return trinity.pipeline(trinity.problem { graph = graph, cluster = cluster }, options)
end

describe('the machine of a problem', function()
  it('is its cluster', function()
    local cluster = trinity.cluster 'p100x8'
    local found = plan(cluster)
    local _, bandwidth = cluster:wire(1, 2)
    expect(found.machine.devices):equals(8)
    expect(found.machine.bandwidth_bytes_per_s):equals(bandwidth)
    expect(bandwidth > 1e9):equals(true)
    expect(found.machine.memory_bytes):equals(math.floor(cluster.devices[1].capacity_bytes))
    expect(plan(cluster, { devices = 2 }).machine.devices):equals(2)
    expect(plan(cluster, { bandwidth_bytes_per_s = 5e8 }).machine.bandwidth_bytes_per_s):equals(5e8)
    expect(plan(cluster, { memory_bytes = 1e9 }).machine.memory_bytes):equals(1e9)
  end)
  it('has a level of nodes where they are equal', function()
    local found = plan(nodes { 4, 4, 4 }, { method = 'pipedream' })
    expect(found.machine.devices):equals(12)
    expect(found.machine.bandwidth_bytes_per_s):equals(2e9)
    expect(#found.stages[1].replicas):equals(2)
    expect(#plan(nodes { 4, 2 }, { method = 'pipedream' }).stages[1].replicas):equals(1)
    expect(plan(nodes { 4, 2 }).machine.devices):equals(6)
    expect(plan(nodes { 1, 1, 1 }).machine.devices):equals(3)
    expect(plan(nodes { 1, 1, 1 }).machine.bandwidth_bytes_per_s):equals(2e9)
  end)
  it('has the bandwidth of the slowest link between the requested devices', function()
    local cluster = nodes { 4, 4 }
    expect(plan(cluster, { devices = 4 }).machine.bandwidth_bytes_per_s):equals(12e9)
    expect(plan(cluster, { devices = 5 }).machine.bandwidth_bytes_per_s):equals(2e9)
    expect(plan(cluster, { devices = 64 }).machine.bandwidth_bytes_per_s):equals(2e9)
    expect(plan(cluster, { devices = { 2, 2 } }).machine.bandwidth_bytes_per_s):equals(12e9)
    expect(plan(cluster, { devices = { 2, 4 } }).machine.bandwidth_bytes_per_s):equals(2e9)
    -- More than are compared pair by pair.
    expect(plan(nodes { 40, 40 }, { devices = 40 }).machine.bandwidth_bytes_per_s):equals(12e9)
    expect(plan(nodes { 40, 40 }, { devices = 80 }).machine.bandwidth_bytes_per_s):equals(2e9)
    expect(plan(trinity.cluster 'p100x1').machine.devices):equals(1)
  end)
  it('has the least memory of its devices', function()
    local cluster, least = trinity.cluster 'heterogeneous', math.huge
    for _, device in ipairs(cluster.devices) do least = math.min(least, device.capacity_bytes) end
    expect(plan(cluster).machine.memory_bytes):equals(math.floor(least))
    expect(least < cluster.devices[1].capacity_bytes):equals(true)
  end)
end)

describe('the machine of a model', function()
  local function of(cluster, options)
    options = options or {}
    options.quiet, options.method, options.cluster = true, 'gpipe', cluster
    return trinity.pipeline('alexnet', options).machine
  end
  it('is a whole cluster, or of a kind of device', function()
    expect(of('dgx_a100x2').devices):equals(16)
    expect(of('dgx_a100x2').bandwidth_bytes_per_s):equals(plan(trinity.cluster 'dgx_a100x2').machine.bandwidth_bytes_per_s)
    expect(of('heterogeneous').devices):equals(8)
    expect(of('p100').devices):equals(4)
    expect(of('p100', { devices = 3 }).devices):equals(3)
    expect(of(nil).bandwidth_bytes_per_s):equals(of('p100').bandwidth_bytes_per_s)
    expect(function() of 'p10' end):raises "p10'"
  end)
  it('is one for the command, too', function()
    trinity_says('pipeline alexnet --cluster dgx_a100x2 --method gpipe --json', 0, '"devices": 16')
  end)
end)
