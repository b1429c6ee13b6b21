local core = require 'trinity.core'
local model = require 'trinity.graph.model'
local trinity = require 'trinity'

local devices, topology = trinity.devices, trinity.devices.topology

-- Device numbers of a cluster by name.
local function numbers(cluster)
  local number = {}
  for i, device in ipairs(cluster.devices) do number[device.name] = i end
  return number
end

-- The route between two devices by name: its channels as one text, its bandwidth, its latency.
local function way(cluster, from, to)
  local number = numbers(cluster)
  local latency_s, bandwidth = cluster:wire(number[from], number[to])
  return table.concat(cluster:route(number[from], number[to]), ' | '), bandwidth, latency_s
end

-- The bus bandwidth of nccl-tests: 2 (p - 1) / p times bytes over the time of an all-reduce.
local function bus_bandwidth(cluster, count, algorithm)
  local members, bytes = {}, 8e9
  for i = 1, count do members[i] = i end
  local cost = cluster:collective { kind = 'all_reduce', devices = members, bytes = bytes, algorithm = algorithm }
  return bytes / cost.time_s * 2 * (count - 1) / count
end

local function write_cluster(text)
  local path = temporary()
  core.write_file(path .. '.lua', text)
  return path .. '.lua'
end

--- The devices of a cluster, and the routes of its first device to others: one line per route, names without their numbers.
local function lines_of(name)
  local cluster, types, seen = trinity.cluster(name), {}, {}
  for _, device in ipairs(cluster.devices) do types[device.type] = (types[device.type] or 0) + 1 end
  local parts = {}
  for type, count in trinity.system.sorted_pairs(types) do parts[#parts + 1] = ('%d %s'):format(count, type) end
  local lines = { ('%s: %s, %.4g GiB, queue %s'):format(name, table.concat(parts, ' + '), cluster.devices[1].capacity_bytes / 2 ^ 30,
    cluster.queue) }
  for j = 2, #cluster.devices do
    local route, bandwidth, latency_s = way(cluster, cluster.devices[1].name, cluster.devices[j].name)
    local kind = ('%s %g %g'):format(route:gsub('%d+', 'N'), bandwidth, latency_s)
    if not seen[kind] then lines[#lines + 1] = ('  %.6g GB/s, %.3g us: %s'):format(bandwidth / 1e9, latency_s * 1e6, route) end
    seen[kind] = true
  end
  return table.concat(lines, '\n')
end

describe('the machines of the library', function()
  it_golden('clusters', function()
    local lines = {}
    for _, name in ipairs(model.cluster_names()) do
      lines[#lines + 1] = lines_of(name .. ((name == 'heterogeneous' or name == 'pcie_tree') and '' or 'x2'))
    end
    for _, name in ipairs(require 'trinity.cluster.nodes'.names()) do lines[#lines + 1] = lines_of(name .. 'x2') end
    for _, name in ipairs { 'dgx_h100:4x2+dgx_a100+rtx4090_8:1', 'gb300_nvl72:36x2', 'cpux24', 'rtx4090_8+l40s_8' } do
      lines[#lines + 1] = lines_of(name)
    end
    return table.concat(lines, '\n') .. '\n'
  end)
end)

describe('every cluster', function()
  for _, name in ipairs(model.cluster_names()) do
    it(name .. ' loads, and joins all its devices', function()
      local counts = { '', 'x1', 'x2', 'x4', 'x8' }
      if name == 'heterogeneous' or name == 'pcie_tree' then counts = { '' } end
      for _, count in ipairs(counts) do
        local cluster = trinity.cluster(name .. count)
        expect(cluster.name):equals(name .. count)
        for i, device in ipairs(cluster.devices) do
          expect(0):below(device.capacity_bytes)
          for j = 1, #cluster.devices do
            if i ~= j then
              local latency_s, bandwidth = cluster:wire(i, j)
              expect(0):below(bandwidth)
              expect(0):below(latency_s)
              expect(0):below(#cluster:route(i, j))
            end
          end
        end
      end
    end)
  end
  it('begins with a comment that says what it is', function()
    for _, name in ipairs(model.cluster_names()) do
      expect(io.open(('%s/models/clusters/%s.lua'):format(root, name)):read '*l'):matches('^%-%- ' .. name)
    end
  end)
end)

describe('device types', function()
  it('have the published rates', function()
    -- TFLOP/s float32, TFLOP/s float16, GB/s, GB: data sheets of the GPUs.
    for name, sheet in trinity.system.sorted_pairs { p100 = { 9.3, 18.7, 732, 16 }, p100_12gb = { 9.3, 18.7, 549, 12 },
      v100 = { 15.7, 125, 900, 16 }, v100_pcie = { 14, 112, 900, 16 }, a100 = { 19.5, 312, 1555, 40 },
      a100_80gb = { 19.5, 312, 2039, 80 }, h100 = { 67, 989.4, 3350, 80 }, h200 = { 67, 989.4, 4800, 141 },
      t4 = { 8.1, 65, 320, 16 } } do
      local kind = devices[name]
      expect(kind.peak_flops_per_s.float32):equals(sheet[1] * 1e12)
      expect(kind.peak_flops_per_s.float16):equals(sheet[2] * 1e12)
      expect(kind.memory_bandwidth_bytes_per_s):equals(sheet[3] * 1e9)
      expect(kind.memory_bytes):equals(sheet[4] * 2 ^ 30)
    end
  end)
  it_shared('have the rates, memory and bandwidths of a table of data sheets', function()
    local known = { ['P100 PCIe 16GB'] = 'p100', ['P100 SXM2 16GB'] = 'p100_sxm2', ['K80 (one of two GPUs)'] = 'k80',
      ['V100 SXM2 16GB'] = 'v100', ['V100 PCIe 16GB'] = 'v100_pcie', ['V100 SXM2 32GB'] = 'v100_32gb',
      ['V100 PCIe 32GB'] = 'v100_pcie_32gb', T4 = 't4', ['A100 SXM 40GB'] = 'a100', ['A100 SXM 80GB'] = 'a100_80gb',
      ['A100 PCIe 40GB'] = 'a100_pcie', ['A100 PCIe 80GB'] = 'a100_pcie_80gb', A40 = 'a40', ['H100 SXM5 80GB'] = 'h100',
      ['H100 PCIe 80GB'] = 'h100_pcie', ['H100 SXM 96GB HBM2e 500W'] = 'h100_96gb', ['H200 SXM'] = 'h200',
      ['GH200 96GB'] = 'gh200', ['GH200 141GB'] = 'gh200_141gb', ['B200 SXM'] = 'b200', ['B300 SXM'] = 'b300',
      ['GB200 (one GPU)'] = 'gb200', ['GB300 (one GPU)'] = 'gb300', ['RTX 2080 Ti'] = 'rtx2080ti', ['RTX 3090'] = 'rtx3090',
      ['Titan RTX'] = 'titan_rtx', ['RTX 4090'] = 'rtx4090', L40S = 'l40s', ['MI250X (module of 2 dies)'] = 'mi250x',
      MI300X = 'mi300x' }
    local columns = { fp64 = 'float64', fp32 = 'float32', fp16 = 'float16', bf16 = 'bfloat16', fp8 = 'float8' }
    local count = 0
    for _, row in ipairs(require('trinity.base.csv').read(shared 'gpus/gpus.csv', 'gpu', 'memory_bytes')) do
      local name = known[row.gpu]
      local kind = devices[name]
      for column, dtype in trinity.system.sorted_pairs(columns) do
        local told = tonumber(row[column])
        if told then
          expect(('%s %s'):format(name, dtype) .. ' '
            .. tostring(math.abs(kind.peak_flops_per_s[dtype] / told - 1) < 0.005)):matches 'true$'
        end
      end
      expect(kind.memory_bytes):near(tonumber(row.memory_bytes), 1)
      expect(kind.memory_bandwidth_bytes_per_s):near(tonumber(row.memory_bytes_per_s), 1e6)
      count = count + 1
    end
    expect(count):equals(30)
  end)
  it('reserve what was measured, of later kinds no less', function()
    for _, name in ipairs { 'rtx3090', 'a100', 'a100_80gb' } do expect(devices[name].reserved_memory_bytes):near(2.05e9, 0.01e9) end
    for _, name in ipairs { 'h100', 'b200', 'gb300' } do expect(devices[name].reserved_memory_bytes):near(3.37e9, 0.01e9) end
  end)
  it('derived from clocks agree with them', function()
    -- cores * 2 * boost clock; 32 operations a cycle.
    expect(devices.gtx1080ti.peak_flops_per_s.float32):near(3584 * 2 * 1.582e9, 0.01e12)
    expect(devices.k80.peak_flops_per_s.float32):near(2496 * 2 * 0.875e9, 0.01e12)
    expect(devices.cpu_core.peak_flops_per_s.float32):near(32 * 2.6e9, 1)
  end)
  it('are all accepted by the engine, alone and by name', function()
    for _, name in ipairs(devices.names()) do
      local cluster = trinity.cluster { devices = { { name = 'a', type = name } } }
      local kind = devices[name]
      expect(cluster.devices[1].capacity_bytes):near(kind.memory_bytes - (kind.reserved_memory_bytes or 0), 1)
    end
  end)
  it('come as copies', function()
    local one = devices.v100
    one.peak_flops_per_s.float32, one.memory_bytes = 1, 1
    expect(devices.v100.peak_flops_per_s.float32):equals(15.7e12)
    expect(devices.v100.memory_bytes):equals(16 * 2 ^ 30)
  end)
  it('change entry by entry', function()
    local tf32 = devices.with('a100', { peak_flops_per_s = { float32 = 156e12 }, launch_s = 1e-6 })
    expect(tf32.peak_flops_per_s.float32):equals(156e12)
    expect(tf32.peak_flops_per_s.bfloat16):equals(312e12)
    expect(tf32.launch_s):equals(1e-6)
    expect(tf32.memory_bytes):equals(40 * 2 ^ 30)
    expect(devices.a100.peak_flops_per_s.float32):equals(19.5e12)
  end)
  it('of the description come before types of the library with the same name', function()
    local small = devices.with(devices.p100, { memory_bytes = 2 ^ 30, reserved_memory_bytes = 0 })
    local cluster = trinity.cluster { device_types = { p100 = small }, devices = { { name = 'a', type = 'p100' } } }
    expect(cluster.devices[1].capacity_bytes):equals(2 ^ 30)
  end)
  it('unknown ones are refused with a suggestion', function()
    expect(function() return devices.v10 end):raises "no device type 'v10', did you mean 'v100', 'v100_32gb' or 'v100_pcie'%?"
    expect(function() devices.with('h10', {}) end):raises "did you mean 'h100'"
    expect(function() trinity.cluster { name = 'mine', device_types = { big = devices.h100 },
      devices = { { name = 'a', type = 'big' }, { name = 'b', type = 'bigg' } } } end)
      :raises "cluster 'mine': device 2: unknown device type 'bigg', did you mean 'big'%? %(trinity.devices.names"
    expect(function()
      trinity.cluster { devices = { { name = 'a', type = 'big' } }, device_types = { big = trinity.devices.with(trinity.devices.p100,
        { memory_efficiency = 75 }) } }
    end):raises "device type 'big': field 'memory_efficiency': expected a share of the peak, at most 10, got number 75"
  end)
end)

describe('names as people write them', function()
  it('are GPUs with their memory, a number of GPUs, or machines', function()
    for name, expected in trinity.system.sorted_pairs { A100 = '1 a100_80gb', ['a100-40gb'] = '1 a100', ['A100-SXM4-80GB'] = '1 a100_80gb',
      ['H200-141GB'] = '1 h200', ['8xH100'] = '8 h100', ['16xH100'] = '16 h100', h100x4 = '4 h100', ['DGX-H100x2'] = '16 h100',
      P100 = '1 p100', ['Tesla T4'] = '1 t4', ['NVIDIA H100 PCIe'] = '1 h100_pcie', ['rtx 3090'] = '1 rtx3090',
      ['4x RTX 4090'] = '4 rtx4090', gb200x72 = '72 gb200', a100x8 = '8 a100_80gb' } do
      local cluster = trinity.cluster(name)
      expect(('%s: %d %s'):format(name, cluster.device_count, cluster.devices[1].type)):equals(name .. ': ' .. expected)
    end
    expect(trinity.cluster('8xH100').name):equals 'dgx_h100'
    expect(trinity.cluster('8xH100').fingerprint):equals(trinity.cluster('dgx_h100').fingerprint)
  end)
  it('are device types of a description where their memory is said', function()
    local function device(type) return trinity.cluster { devices = { { name = 'a', type = type } } }.devices[1].capacity_bytes end
    expect(device 'A100-80GB'):equals(device 'a100_80gb')
    expect(device 'a100-40gb'):equals(device 'a100')
    expect(function() device 'A100' end):raises "unknown device type 'A100', did you mean 'a100', "
  end)
  it('are refused with at most three names of the same family', function()
    for _, name in ipairs { 'H300', 'A12', 'dgx_h20x2', 'B200-192GB', 'p1000x2', 'V10', 'dgx_a10x2', 'X100', 'GH20' } do
      local message = select(2, pcall(trinity.cluster, name))
      local letters, count = name:lower():gsub('dgx_', ''):match '^%a+', 0
      for near in message:gsub('%(expected.*', ''):gmatch "'([^']+)'" do
        if near ~= name then
          count = count + 1
          expect(near:find(('%%f[%%a]%s%%d'):format(letters)) ~= nil):equals(true)
        end
      end
      expect(count <= 3):truthy()
    end
    expect(function() trinity.cluster '12xH100' end):raises "cluster '12xH100': expected whole machines of 8 GPUs %(dgx_h100%): 8 or 16 GPUs"
  end)
  it('are bandwidths of links in words, with thousands apart', function()
    local function bandwidth(wire)
      local net = topology.new()
      net:link(net:devices('a', 1, 't4'), net:devices('b', 1, 't4'), wire)
      return select(2, trinity.cluster(net:spec()):wire(1, 2))
    end
    expect(bandwidth '3,200 Gbit/s'):equals(400e9)
    expect(bandwidth '50GB/s'):equals(50e9)
    expect(bandwidth '1,000,000 B/s'):equals(1e6)
    for _, wrong in ipairs { '3,20 Gbit/s', '3,200', '400 Gbits', '-1GB/s' } do
      expect(function() bandwidth(wrong) end):raises "argument 3 %('wire'%)"
    end
  end)
end)

describe('dgx1_v100', function()
  local cluster = trinity.cluster 'dgx1_v100x2'
  it('has six NVLinks on every GPU, in bundles of one or two', function()
    for i = 1, 8 do
      local links = 0
      for j = 1, 8 do
        if i ~= j and #cluster:route(i, j) == 1 then
          local _, bandwidth = cluster:wire(i, j)
          expect(bandwidth == 20e9 or bandwidth == 40e9):truthy()
          links = links + bandwidth / 20e9
        end
      end
      expect(links):equals(6)
    end
  end)
  it('numbers its devices along a ring of double bundles', function()
    for i = 1, 8 do
      local _, bandwidth = cluster:wire(i, i % 8 + 1)
      expect(bandwidth):equals(40e9)
    end
  end)
end)

describe('machines by name', function()
  local nodes = require 'trinity.cluster.nodes'
  it('all load, whole, in parts and in numbers, and join all their devices', function()
    for _, name in ipairs(nodes.names()) do
      local gpus, type = nodes.find(name)
      local two = trinity.cluster(name .. 'x2')
      expect(#two.devices):equals(2 * gpus)
      expect(two.devices[1].type):equals(type)
      for j = 2, 2 * gpus do expect(0):below(select(2, two:wire(1, j))) end
      local part = trinity.cluster(('%s:1x2'):format(name))
      expect(#part.devices):equals(2)
      expect(select(2, part:wire(1, 2))):equals(select(2, two:wire(1, gpus + 1)))
    end
  end)
  it('are refused in a sentence', function()
    expect(function() trinity.cluster 'dgx_h100:9' end):raises "cluster 'dgx_h100:9': dgx_h100 has 8 GPUs, got a part of 9"
    expect(function() trinity.cluster 'dgx_h100x0+dgx_a100' end):raises 'expected at least 1 dgx_h100, got 0'
    expect(function() trinity.cluster 'dgx_h10+dgx_a100' end):raises "no machine 'dgx_h10', did you mean 'dgx_h100'"
    expect(function() trinity.cluster 'gb200_nvl72x1821' end):raises 'has 131112 devices, more than 131072'
  end)
end)

-- Two tensors of 100 MB at once, each between two devices of the cluster.
local function two_transfers(cluster, pairs_of_names)
  local builder, number, at = trinity.graph.new { name = 'transfers' }, numbers(cluster), {}
  for i, pair in ipairs(pairs_of_names) do
    local x = builder:add { name = 'from' .. i, type = 'Work', outputs = { { shape = { 25e6 } } }, measured_time_s = 1e-3 }
    builder:add { name = 'to' .. i, type = 'Work', inputs = { x }, outputs = { { shape = { 1 } } }, measured_time_s = 1e-3 }
    at[2 * i - 1], at[2 * i] = number[pair[1]], number[pair[2]]
  end
  local problem = trinity.problem { graph = builder:build(), cluster = cluster }
  local placement = problem:placement()
  for i = 1, #placement do placement[i] = at[i] end
  return problem:evaluate(placement).step_time_s - 2e-3
end

describe('pcie_tree', function()
  local cluster = trinity.cluster 'pcie_tree'
  it('lets transfers share QPI and run side by side below switches', function()
    local alone = two_transfers(cluster, { { 'n0/gpu0', 'n0/gpu4' } })
    expect(alone):near(100e6 / 6e9 + 5.7e-6, 1e-7)
    expect(two_transfers(cluster, { { 'n0/gpu0', 'n0/gpu4' }, { 'n0/gpu2', 'n0/gpu6' } })):near(2 * alone, 1e-6)
    expect(two_transfers(cluster, { { 'n0/gpu0', 'n0/gpu4' }, { 'n0/gpu2', 'n0/gpu3' } })):near(alone, 1e-6)
  end)
end)

describe('heterogeneous', function()
  it('has machines of different speeds on one network', function()
    local cluster = trinity.cluster 'heterogeneous'
    local builder = trinity.graph.new { name = 'product' }
    builder:add { name = 'product', type = 'Gemm', outputs = { { shape = { 1000, 1000 } } }, flops = 1e12, traffic_bytes = 1 }
    local problem, before = trinity.problem { graph = builder:build(), cluster = cluster }, 0
    for machine = 0, 3 do
      local placement = problem:placement()
      placement[1] = numbers(cluster)[('n%d/gpu1'):format(machine)]
      local step_time_s = problem:evaluate(placement).step_time_s
      expect(before):below(step_time_s)
      before = step_time_s
    end
    expect(select(2, way(cluster, 'n0/gpu0', 'n0/gpu1'))):equals(12e9)
    local route, bandwidth = way(cluster, 'n0/gpu0', 'n3/gpu1')
    expect(route):matches 'n0/pcie %-> ethernet'
    expect(bandwidth):near(1.25e9 * 1448 / 1538, 1e6)
  end)
end)

describe('cpu', function()
  -- Seconds that every core takes for 1 GB of memory traffic.
  local function memory_time_s(cores)
    local builder = trinity.graph.new { name = 'traffic' }
    builder:add { name = 'scan', type = 'Work', outputs = { { shape = { 1 } } }, flops = 0, traffic_bytes = 1e9 }
    local problem = trinity.problem { graph = builder:build(), cluster = trinity.cluster('cpux' .. cores) }
    return problem:evaluate(problem:placement()).step_time_s
  end
  it('divides the memory bandwidth among the cores in use', function()
    expect(memory_time_s(1)):near(1e9 / 19.9e9, 2e-6)
    expect(memory_time_s(2)):near(1e9 / 19.9e9, 2e-6)
    expect(memory_time_s(12)):near(12 * 1e9 / 62e9, 2e-6)
    expect(memory_time_s(24)):near(12 * 1e9 / 62e9, 2e-6)
  end)
  it('has the cores of its description and no more', function()
    expect(function() trinity.cluster 'cpux25' end):raises "cluster 'cpu': expected a count from 1 to 24, got 25"
  end)
end)

describe('collectives against measurements', function()
  it('DGX A100: 232.5 GB/s', function() -- github.com/NVIDIA/nccl-tests, issue 175
    expect(bus_bandwidth(trinity.cluster 'dgx_a100', 8)):near(232.54e9, 0.05 * 232.54e9)
  end)
  it('H100 behind NVSwitches: 482 GB/s in a machine, 469 and 366 over two and four', function() -- github.com/NVIDIA/nccl-tests, issue 309
    for name, measured in trinity.system.sorted_pairs { dgx_h100 = 482e9, dgx_h100x2 = 469e9, dgx_h100x4 = 366e9 } do
      expect(bus_bandwidth(trinity.cluster(name), tonumber(name:match 'x(%d)$' or 1) * 8)):near(measured, 0.08 * measured)
    end
  end)
  it('DGX H100 without NVLink SHARP: 370 GB/s', function() -- NVIDIA in nccl-tests, issue 212
    expect(bus_bandwidth(trinity.cluster 'dgx_h100', 8, 'ring')):near(370e9, 0.05 * 370e9)
  end)
  it('four machines with 25 Gbit/s: 3.0 GB/s', function() -- DAPPLE's planner
    expect(bus_bandwidth(trinity.cluster 'v100_ethernetx4', 4)):near(3e9, 0.05 * 3e9)
  end)
  it('DGX-1: as many rings at once as it has links', function()
    -- DAPPLE's planner reckons with 40 GB/s between two GPUs and 130 over eight. Six rings of NVLinks, one way each.
    local cluster = trinity.cluster 'dgx1_v100'
    local _, between_two = cluster:wire(1, 2)
    expect(between_two):equals(40e9)
    expect(bus_bandwidth(cluster, 8)):near(6 * 20e9, 0.02 * 120e9)
    expect(bus_bandwidth(cluster, 8)):near(130e9, 0.1 * 130e9)
  end)
end)

describe('an all-to-all of tokens', function()
  it('is refused where its experts are not all said', function()
    local cluster = trinity.cluster 'dgx_h100x2'
    local function query(more)
      local all = { kind = 'all_to_all', devices = { 1, 9 }, bytes = 1e6 }
      for name, value in pairs(more) do all[name] = value end -- in any order
      return function() return cluster:collective(all) end
    end
    expect(query { experts = 8 }):raises 'experts_per_token: expected with experts, expert_groups and group_topk, got nil'
    expect(query { experts = 8, experts_per_token = 9 }):raises 'experts_per_token: expected 1 to 8 .*got 9'
    expect(query { experts = 8, experts_per_token = 2, expert_groups = 513 }):raises 'expert_groups.*1 to 512'
    expect(query { experts = 8, experts_per_token = 2 }().time_s):below(query {}().time_s)
  end)
end)

describe('parts of an all-reduce', function()
  it('go through nodes: half of an all-reduce on four DGX H100', function()
    local cluster, members = trinity.cluster 'dgx_h100x4', {}
    for i = 1, 32 do members[i] = i end
    local function cost(kind)
      return cluster:collective { kind = kind, devices = members, bytes = 1e9, algorithm = 'hierarchical' }
    end
    local whole = cost 'all_reduce'
    expect(whole.algorithm):equals 'hierarchical'
    for _, kind in ipairs { 'reduce_scatter', 'all_gather' } do
      expect(cost(kind).algorithm):equals 'hierarchical'
      expect(cost(kind).time_s):equals(whole.time_s / 2)
    end
  end)
end)

describe('a cluster of your own', function()
  it('takes ten lines', function()
    local text = [[
local topology = require 'trinity.cluster.topology'
local net = topology.new { queue = 'route' }
for m = 0, 2 do
  local name = 'n' .. m
  net:link(net:devices(name, 2, 'rtx2080ti'), name .. '/pcie', 'pcie3_x16')
  net:link(name .. '/pcie', 'ethernet', 'ethernet_10g')
end
return net:spec()
]]
    expect(select(2, text:gsub('\n', '')) <= 10):truthy()
    local path = write_cluster(text)
    local cluster = trinity.cluster(path)
    expect(cluster.name):equals(path:match '([^/]*)%.lua$')
    expect(#cluster.devices):equals(6)
    expect(cluster.devices[3].node):equals 'n1'
    expect(cluster.devices[3].type):equals 'rtx2080ti'
    expect((way(cluster, 'n0/gpu1', 'n2/gpu0'))):equals
      'n0/gpu1 -> n0/pcie | n0/pcie -> ethernet | ethernet -> n2/pcie | n2/pcie -> n2/gpu0'
  end)
  it('has kinds, switches, meshes and bundles', function()
    local net = topology.new { name = 'own', queue = 'fair' }
    net:device_type('slow', devices.with(devices.t4, { memory_bytes = 2 ^ 30 }))
    local gpus = net:devices('a', { 0, 2, 4 }, 'v100')
    net:mesh(gpus, 'nvlink2', 2)
    net:switch('hub', 1e9)
    net:link(gpus, 'hub', { bandwidth_bytes_per_s = 5e9, latency_s = 1e-6, duplex = 'half' })
    net:link(net:devices('b', 1, 'slow', { name = 'card', speed = 0.5 }), 'hub', topology.wire('qpi', { latency_s = 2e-6 }))
    local cluster = trinity.cluster(net:spec())
    expect(cluster.devices[4].speed):equals(0.5)
    local route, bandwidth = way(cluster, 'a/gpu0', 'a/gpu4')
    expect(route):equals 'a/gpu0 -> a/gpu4'
    expect(bandwidth):equals(40e9)
    local latency_s
    route, bandwidth, latency_s = way(cluster, 'a/gpu2', 'b/card0')
    expect(route):equals 'a/gpu2 - hub | hub | hub -> b/card0'
    expect(bandwidth):equals(1e9)
    expect(latency_s):near(3e-6, 1e-12)
  end)
  it('is checked key by key, naming file, cluster and field', function()
    local function refuses(text, pattern)
      local path = write_cluster(text)
      local ok, message = pcall(trinity.cluster, path)
      expect(ok):equals(false)
      expect(message):matches(path:gsub('%p', '%%%0'))
      expect(message):matches(pattern)
    end
    local head = "local net = require('trinity.cluster.topology').new(); net:link(net:devices('n', 2, 't4'), 's', 'qpi')\n"
    refuses(head .. "local spec = net:spec(); spec.links[2].bandwith_bytes_per_s = 1; return spec",
      "cluster '[%w_]+': link 2: unknown field 'bandwith_bytes_per_s', did you mean 'bandwidth_bytes_per_s'")
    refuses(head .. "net:device_type('t4', { peak_flops_per_s = { float32 = 1 }, memory_bytes = 1, memory_bandwidth_bytes_per_s = 1,"
      .. "launch = 1 }); return net:spec()", "unknown field 'launch', did you mean 'launch_s'")
    refuses(head .. "local spec = net:spec(); spec.device_types.t4 = { peak_flops_per_s = { float23 = 1 } }; return spec",
      "unknown dtype 'float23', did you mean 'float32'")
    refuses(head .. "net:link('s', 't', 'qip')", ":2: topology:link: argument 3 %('wire'%): unknown value 'qip' %(known: .*qpi")
    refuses(head .. "net:link('s', 't', { bandwidth_bytes_per_s = 1, latency = 1 })",
      ":2: topology:link: wire: unknown field 'latency', did you mean 'latency_s'")
    refuses(head .. "net:devices('n', 0, 't4')", ":2: topology:devices: argument 2 %('which'%): expected an integer from 1 to 131072, got number 0")
    refuses("return 7", 'expected a table or a function that returns one, got number 7')
  end)
  it('by name is refused for a misspelt name or a wrong count', function()
    expect(function() trinity.cluster 'dgx_a10x2' end):raises "no cluster 'dgx_a10x2', did you mean 'dgx_a100'"
    expect(function() trinity.cluster 'p100x0' end):raises "cluster 'p100x0': expected a count from 1 to 131072, got 0"
    expect(function() trinity.cluster('p100x' .. ('9'):rep(400)) end):raises 'expected a count from 1 to 131072'
    expect(function() trinity.cluster 'pcie_treex2' end):raises "cluster 'pcie_treex2': pcie_tree%.lua takes no count"
    expect(function() trinity.cluster 'dgx_a100x20000' end):raises 'has 160000 devices, more than 131072'
    expect(function() trinity.cluster { devices = 3 } end):raises "field 'devices': expected a table, got 3"
  end)
end)
