-- Constructions in Lua: list schedulers, Baechi's, GPipe's cut (lib/trinity/methods/heft.lua and the like).

local graphs = require 'support.graphs'
local trinity = require 'trinity'
local scheduler = setmetatable({}, { __index = function(_, name) return require('trinity.methods.' .. name) end })

--- Devices d1, d2, ... of types of the same names, every two joined by a link.
local function cluster_of(count, memory_bytes, bandwidth_bytes_per_s, latency_s)
  local spec = { name = 'hand', device_types = {}, devices = {}, links = {} }
  for i = 1, count do
    spec.device_types['d' .. i] = { peak_flops_per_s = { float32 = 1e12 }, memory_bandwidth_bytes_per_s = 1e11,
      memory_bytes = memory_bytes }
    spec.devices[i] = { name = 'd' .. i, type = 'd' .. i }
    for j = 1, i - 1 do
      spec.links[#spec.links + 1] = { from = 'd' .. j, to = 'd' .. i, bandwidth_bytes_per_s = bandwidth_bytes_per_s,
        latency_s = latency_s }
    end
  end
  return trinity.cluster(spec)
end

--- A problem of operators { [name] = ns on each device }, in a row, and edges { from, to, bytes }.
local function problem_of(costs_ns, edges, memory_bytes, latency_s)
  local builder = trinity.graph.new { name = 'hand' }
  for i, row in ipairs(costs_ns) do
    builder:add_operator { name = 'op' .. i, time_s = 1e-6, memory_bytes = row.memory_bytes }
  end
  for _, edge in ipairs(edges) do builder:add_edge('op' .. edge[1], 'op' .. edge[2], edge[3]) end
  return trinity.problem { check_memory = false, graph = builder:build(),
    cluster = cluster_of(#costs_ns[1], memory_bytes or 1e9, 1e9, latency_s or 0),
    cost = function(op, device)
      return costs_ns[tonumber(op.name:match '%d+')][tonumber(device.type:match '%d+')] * 1e-9
    end }
end

--- The ten tasks of the HEFT paper (papers/notes.md "HEFT"): one byte takes 1 ns.
local function article()
  return problem_of({ { 14, 16, 9 }, { 13, 19, 18 }, { 11, 13, 19 }, { 13, 8, 17 }, { 12, 13, 10 }, { 13, 16, 9 },
    { 7, 15, 11 }, { 5, 11, 14 }, { 18, 12, 20 }, { 21, 7, 16 } },
    { { 1, 2, 18 }, { 1, 3, 12 }, { 1, 4, 9 }, { 1, 5, 11 }, { 1, 6, 14 }, { 2, 8, 19 }, { 2, 9, 16 }, { 3, 7, 23 },
      { 4, 8, 27 }, { 4, 9, 23 }, { 5, 9, 13 }, { 6, 8, 15 }, { 7, 10, 17 }, { 8, 10, 11 }, { 9, 10, 13 } })
end

--- Holds a list schedule to what every one obeys: units together, inputs before readers, one task at a time.
local function check_list(graph, list)
  local device_of_unit, place = {}, {}
  for i, task in ipairs(list.sequence) do place[task] = i end
  for task = 1, graph.task_count do
    local device, unit = list.device[task], graph.unit[task]
    expect(device_of_unit[unit] or device):equals(device)
    device_of_unit[unit] = device
    expect(list.finish_ns[task] - list.start_ns[task]):equals(graph.cost_ns[(task - 1) * graph.device_count + device])
  end
  for edge = 1, graph.edge_count do
    local from, to = graph.edge_from[edge], graph.edge_to[edge]
    expect(place[from]):below(place[to])
    expect(list.start_ns[to] >= list.finish_ns[from]
      + graph:transfer_ns(list.device[from], list.device[to], graph.edge_bytes[edge])):equals(true)
  end
  for device = 1, graph.device_count do
    local last = 0
    for _, task in ipairs(list.order[device]) do
      if list.finish_ns[task] > list.start_ns[task] then
        expect(list.start_ns[task] >= last):equals(true)
        last = list.finish_ns[task]
      end
    end
  end
end

--- A random step of `count` operators with random units, costs and edges.
local function random_problem(stream, count, devices, memory_bytes)
  local costs, edges = {}, {}
  for i = 1, count do
    costs[i] = { memory_bytes = stream:integer(4) * 1e3 }
    for device = 1, devices do costs[i][device] = (stream:integer(4) - 1) * 700 end
    for j = math.max(1, i - 8), i - 1 do
      if stream:integer(4) == 1 then edges[#edges + 1] = { j, i, stream:integer(3) * 1100 } end
    end
  end
  return problem_of(costs, edges, memory_bytes, stream:integer(5) * 1e-7)
end

describe('list schedulers', function()
  it('HEFT and CPOP schedule the example of their paper', function()
    local graph = article():task_graph()
    local expected = { 108, 77, 80, 80, 69, 63.333, 42.667, 35.667, 44.333, 14.667 }
    for task, rank in ipairs(graph:upward_ranks()) do expect(rank):near(expected[task], 2e-3) end
    local list = scheduler.heft(graph)
    expect(list.makespan_ns):equals(80)
    expect(table.concat(list.device, ' ')):equals '3 1 3 2 3 2 3 1 2 2'
    check_list(graph, list)
    expect(scheduler.cpop(graph).makespan_ns):equals(86)
  end)
  it('HEFT fills an idle gap, ETF takes the pair that starts first', function()
    local problem = problem_of({ { 10, 50 }, { 10, 20 }, { 5, 5 } }, { { 1, 3, 100 } })
    local list = scheduler.etf(problem:task_graph())
    expect(table.concat({ list.start_ns[1], list.start_ns[2], list.start_ns[3] }, ' ')):equals '0 0 10'
    expect(table.concat(list.device, ' ')):equals '1 2 1'
    local gap = problem_of({ { 10, 90 }, { 90, 10 }, { 10, 90 }, { 5, 90 } }, { { 1, 2, 40 }, { 2, 3, 40 } })
    expect(scheduler.heft(gap:task_graph()).start_ns[4]):equals(10)
  end)
  it('keep precedence, units and one task at a time, and give an order that the simulator runs', function()
    for draw = 1, draws(60) do
      local stream = trinity.random(law_seed(), 'lists ' .. draw)
      local problem = random_problem(stream, 4 + stream:integer(40), stream:integer(4))
      for _, name in ipairs { 'heft', 'cpop', 'etf', 'm_etf' } do
        local list = scheduler[name](problem:task_graph(), problem)
        check_list(problem:task_graph(), list)
        local metrics = problem:evaluate { placement = list.device, schedule = 'order', order = list.order }
        local graph = problem:task_graph()
        for device = 1, graph.device_count do
          local busy_ns = 0
          for _, task in ipairs(list.order[device]) do
            busy_ns = busy_ns + graph.cost_ns[(task - 1) * graph.device_count + device]
          end
          expect(metrics:compute_busy_s(device)):near(busy_ns * 1e-9, 1e-12)
        end
      end
    end
  end)
end)

describe('m-ETF', function()
  it('leaves a full device, and says what fits nowhere', function()
    local function chain(devices)
      local rows = {}
      for i = 1, 2 do
        rows[i] = { memory_bytes = 600 }
        for device = 1, devices do rows[i][device] = 1000 end
      end
      return problem_of(rows, { { 1, 2, 10 } }, 1000)
    end
    local two = chain(2)
    expect(table.concat(scheduler.m_etf(two:task_graph(), two).device, ' ')):equals '1 2'
    local one = chain(1)
    local list, reason = scheduler.m_etf(one:task_graph(), one)
    expect(list):equals(nil)
    expect(reason):equals "operator 'op2' needs 600 bytes, more than is free on any device after 1 of 2 operators"
  end)
  it('sends two tensors to one device one after the other', function()
    local problem = problem_of({ { 1e4, 1e4 }, { 1e4, 1e4 }, { 1e3, 1e3 } }, { { 1, 3, 1e4 }, { 2, 3, 1e4 } }, nil,
      5e-6)
    local list = scheduler.m_etf(problem:task_graph(), problem)
    expect(list.device[1] ~= list.device[2]):equals(true)
    expect(list.finish_ns[3]):equals(26000)
  end)
  it('keeps to the memory, or says why not', function()
    local fitted, refused = 0, 0
    for draw = 1, draws(60) do
      local stream = trinity.random(law_seed(), 'memory ' .. draw)
      local problem = random_problem(stream, 20, stream:integer(4), draw % 2 == 0 and 4e3 or 4e5)
      local list, reason = scheduler.m_etf(problem:task_graph(), problem)
      if list then
        local used, graph = {}, problem:task_graph()
        for task = 1, graph.task_count do
          local device = list.device[task]
          used[device] = (used[device] or 0) + graph.fixed_bytes[task]
          expect(used[device] <= graph.capacity_bytes[device]):equals(true)
        end
        fitted = fitted + 1
      else
        expect(reason):matches 'bytes, more than is free on'
        refused = refused + 1
      end
    end
    expect(fitted > 0 and refused > 0):equals(true)
  end)
end)

describe('cuts', function()
  it('m-TOPO fills devices up to a share of the memory', function()
    local problem = trinity.problem { check_memory = false, cluster = cluster_of(3, 1e6, 1e9, 0),
      graph = graphs.chain(9, function() return { time_s = 1e-6, memory_bytes = 100 } end, 0) }
    expect(table.concat(scheduler.m_topo(problem:task_graph()).device, ' ')):equals '1 1 1 1 2 2 2 2 3'
  end)
  it('contiguous is the balanced cut of the forward pass, on devices of different speed', function()
    local rows, edges = {}, {}
    for i = 1, 9 do rows[i] = { 300, 100 } end
    for i = 1, 8 do edges[i] = { i, i + 1, 8 } end
    local list = scheduler.contiguous(problem_of(rows, edges):task_graph())
    expect(table.concat(list.device, ' ')):equals '1 1 2 2 2 2 2 2 2'
  end)
  it('contiguous puts weights where they are first read', function()
    local builder = trinity.graph.new { name = 'net' }
    builder:add_operator { name = 'weight', type = 'Variable', memory_bytes = 100 }
    for i = 1, 4 do builder:add_operator { name = 'layer' .. i, time_s = 1e-6 } end
    for i = 1, 3 do builder:add_edge('layer' .. i, 'layer' .. i + 1, 100) end
    builder:add_edge('weight', 'layer4', 100)
    local problem = trinity.problem { graph = builder:build(), cluster = cluster_of(2, 1e9, 1e9, 0) }
    local list = scheduler.contiguous(problem:task_graph())
    local names = {}
    for op = 1, problem.graph.operators do
      local name = problem.graph:operator(op).name
      names[name] = list.device[op]
    end
    expect(names.weight):equals(names.layer4)
    expect(names.layer1 + names.layer2 + names.layer3 + names.layer4):equals(6)
  end)
end)
