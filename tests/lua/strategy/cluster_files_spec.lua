-- A cluster file of a user's own, whose devices describe themselves without a name of a type, is simulated as ours are: the
-- same bits in all metrics, with as few simulated devices; where a device or link of it is slower only what that breaks is
-- simulated in addition.

local ffi = require 'ffi'

local core = require 'trinity.core'
local json = require 'trinity.base.json'
local nodes = require 'trinity.cluster.nodes'
local trinity = require 'trinity'

local graph = trinity.model('gpt2', { layers = 8, hidden = 64, heads = 8, sequence = 32, positions = 32, vocabulary = 512,
  batch_size = 1, dropout = 0, fused = false })

--- Entries of machines one by one: '*' is the machine's number.
local function spread(spec, name)
  local list = {}
  for _, entry in ipairs(spec[name]) do list[#list + 1] = merged(entry) end
  for _, machine in ipairs(spec.machines or {}) do
    for m = machine.first, machine.first + machine.count - 1 do
      for _, entry in ipairs(machine[name]) do
        local one = {}
        for key, value in trinity.system.sorted_pairs(entry) do
          one[key] = type(value) == 'string' and value:gsub('%*', tostring(m)) or value
        end
        list[#list + 1] = one
      end
    end
  end
  return list
end

--- A user's description of a cluster of ours: every device by itself, with its properties in place of a name.
local function written_down(name)
  local spec = nodes.spec(name)
  local own = { name = name, queue = spec.queue, collectives = spec.collectives, devices = spread(spec, 'devices'),
    links = spread(spec, 'links') }
  for _, device in ipairs(own.devices) do device.type = trinity.devices[device.type] end
  return own
end

local function json_file(spec)
  local path = temporary() .. '.json'
  core.write_file(path, json.encode { kind = 'trinity cluster 1', cluster = spec })
  return path
end

local function lua_file(spec)
  local path = temporary() .. '.lua'
  core.write_file(path, ("return require('trinity.base.json').read '%s'.cluster"):format(json_file(spec)))
  return path
end

local function bytes(metrics) return ffi.string(metrics, ffi.sizeof(metrics)) end

local function on(cluster)
  return trinity.problem { graph = graph, cluster = trinity.cluster(cluster, { constants = 'data_sheet' }) }
end

local plans = {
  { mesh = { tensor = 4, pipeline = 2, data = 4 }, micro_batches = 8, zero_stage = 1 },
  { mesh = { tensor = 8, data = 4 }, micro_batches = 2, zero_stage = 3, sequence_parallel = true },
  { mesh = { tensor = 2, pipeline = 4, data = 4 }, micro_batches = 8, schedule = 'zb-h1' },
  { mesh = { context = 2, tensor = 2, pipeline = 2, data = 4 }, micro_batches = 4, recompute = 'full' },
}

describe('a cluster file without names of types', function()
  for _, name in ipairs { 'dgx_h100x4', 'dgx_a100x4', 'hgx_a100_4x8', 'rtx4090_8x4' } do
    it('has the metrics of ' .. name .. ', and as few simulated devices', function()
      local ours, fewest = on(name), 32
      for _, file in ipairs { lua_file(written_down(name)), json_file(written_down(name)) } do
        local theirs = on(file)
        for _, plan in ipairs(plans) do
          expect(bytes(theirs:evaluate(plan)) == bytes(ours:evaluate(plan))):equals(true)
          expect(theirs:simulated_devices(plan)):equals(ours:simulated_devices(plan))
          fewest = math.min(fewest, theirs:simulated_devices(plan))
        end
      end
      expect(fewest):below(9) -- of a replica at most
      expect(ours:simulated_devices(ours:placement())):equals(32)
    end)
  end

  it('has one type for equal devices, named after the first, in addition to named types', function()
    local spec = written_down 'dgx_h100x2'
    spec.devices[2].type, spec.devices[3].type = 'h100', 'mine'
    spec.device_types = { mine = trinity.devices.a100, ['like n0/gpu0'] = trinity.devices.p100 }
    local types = {}
    for i, device in ipairs(trinity.cluster(json_file(spec)).devices) do types[i] = device.type end
    expect(table.concat(types, ', ', 1, 5)):equals "like n0/gpu0', h100, mine, like n0/gpu0', like n0/gpu0'"
    expect(types[16]):equals "like n0/gpu0'"
    expect(spec.devices[1].type.memory_bytes):equals(trinity.devices.h100.memory_bytes)
  end)

  it('is refused where a type is no description', function()
    local function with(kind) return { devices = { { name = 'a', type = kind } } } end
    expect(function() trinity.cluster(with {}) end):raises "device type 'like a'"
    expect(function() trinity.cluster(with(merged(trinity.devices.t4, { memory_bites = 1 }))) end):raises 'memory_bites'
    expect(function() trinity.cluster(with(true)) end):raises "'type'"
    local machines = { machines = { { count = 2, devices = { { name = 'n*', type = trinity.devices.t4 } } } },
      links = { { from = 'n0', to = 'n1', bandwidth_bytes_per_s = 1e9 } } }
    expect(trinity.cluster(machines).devices[2].type):equals 'like n*'
  end)
end)
