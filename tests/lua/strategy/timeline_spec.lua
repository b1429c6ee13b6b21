-- What scripts learn of a step: times of tasks and copies, memory, the critical path, the trace.

local core = require 'trinity.core'
local json = require 'trinity.base.json'
local trinity = require 'trinity'

local function inception(rules)
  local problem = trinity.problem { graph = trinity.model('inception_v3', { batch_size = 8 }),
    cluster = trinity.cluster 'p100x4', rules = rules }
  local units = problem.graph.units
  return problem, problem:placement_by_unit(function(unit) return math.floor((unit - 1) * 4 / units) + 1 end)
end

-- a (1 ms) on the first device is read there by b (1.5 ms), and on the second by c (2 ms), 1.01 ms away.
local function hand()
  local builder = trinity.graph.new { name = 'hand' }
  local a = builder:add { name = 'a', type = 'Work', outputs = { { bytes = 12e6 } }, measured_time_s = 1e-3 }
  builder:add { name = 'b', type = 'Work', inputs = { a }, outputs = { { bytes = 7e6 } }, measured_time_s = 1.5e-3 }
  builder:add { name = 'c', type = 'Slow', inputs = { a }, outputs = { { bytes = 5e6 } }, measured_time_s = 2e-3 }
  local problem = trinity.problem { graph = builder:build(), cluster = trinity.cluster 'p100x2' }
  local placement = problem:placement()
  placement[3] = 2
  return problem, placement
end

describe('a timeline', function()
  it('tells when everything happened', function()
    local problem, placement = hand()
    local timeline = problem:timeline(placement)
    expect(timeline.tasks):equals(3)
    expect(timeline.micro_batches):equals(1)
    expect(tostring(timeline)):equals 'timeline of 3 tasks, 0.00401 s'
    local ready, starts, ends = { 0, 1e-3, 2.01e-3 }, { 0, 1e-3, 2.01e-3 }, { 1e-3, 2.5e-3, 4.01e-3 }
    for task = 1, 3 do
      expect(timeline.ready_s[task]):near(ready[task], 1e-12)
      expect(timeline.start_s[task]):near(starts[task], 1e-12)
      expect(timeline.end_s[task]):near(ends[task], 1e-12)
      expect(timeline.device[task]):equals(task == 3 and 2 or 1)
    end
    local transfers = timeline:transfers()
    expect(#transfers):equals(1)
    local copy = transfers[1]
    expect(copy.operator):equals 'a'
    expect(copy.task):equals(1)
    expect(copy.micro_batch):equals(1)
    expect(copy.output):equals(1)
    expect(copy.from):equals(1)
    expect(copy.to):equals(2)
    expect(copy.bytes):equals(12e6)
    expect(copy.ready_s):near(1e-3, 1e-12)
    expect(copy.start_s):near(1e-3, 1e-12)
    expect(copy.end_s):near(2.01e-3, 1e-12)
    expect(#timeline:collectives()):equals(0)
  end)
  it('tells the memory, the path and what communication cost', function()
    local problem, placement = hand()
    local timeline = problem:timeline(placement)
    local levels = {}
    for _, level in ipairs(timeline:memory(1)) do levels[#levels + 1] = level.bytes end
    expect(table.concat(levels, ' ')):equals '12000000 19000000'
    expect(timeline:memory(2)[1].time_s):near(2.01e-3, 1e-12)
    expect(timeline:memory(2)[1].bytes):equals(17e6)
    expect(timeline.metrics.peak_memory_bytes):equals(19e6)
    local path, kinds = timeline:critical_path(), {}
    for i, step in ipairs(path.steps) do kinds[i] = ('%s %s'):format(step.kind, step.operator) end
    expect(table.concat(kinds, ', ')):equals 'compute a, transfer a, compute c'
    expect(path.compute_s):near(3e-3, 1e-12)
    expect(path.wire_s):near(1.01e-3, 1e-12)
    expect(path.queue_s + path.collective_s):equals(0)
    local exposed, by_device = timeline:exposed_communication()
    expect(exposed):near(1.01e-3, 1e-12) -- the second device has nothing else to do
    expect(by_device[1]):equals(0)
    expect(by_device[2]):near(1.01e-3, 1e-12)
    local types = timeline:by_type()
    expect(#types):equals(2)
    expect(('%s %d, %s %d'):format(types[1].type, types[1].tasks, types[2].type, types[2].tasks)):equals 'Work 2, Slow 1'
    expect(types[1].total_s):near(2.5e-3, 1e-12)
  end)
  it('agrees with the metrics of a real network', function()
    local problem, placement = inception()
    for _, plan in ipairs { { schedule = 'lifo' }, { schedule = 'critical_path' }, { schedule = 'gpipe', micro_batches = 3 } } do
      plan.placement = placement
      local timeline, metrics = problem:timeline(plan), problem:evaluate(plan)
      local m = timeline.micro_batches
      expect(m):equals(plan.micro_batches or 1)
      expect(timeline.tasks):equals(m * problem.graph.operators)
      expect(timeline.metrics.step_time_s):equals(metrics.step_time_s)
      expect(#timeline:transfers()):equals(metrics.transfers)
      local last, total, idle = 0, 0, 0
      for task = 1, timeline.tasks do
        local from, to = timeline.start_s[task], timeline.end_s[task]
        if from == from then
          expect(timeline.ready_s[task] <= from and from <= to):truthy()
          last, total = math.max(last, to), total + to - from
        else
          idle = idle + 1 -- updates run in the last micro-batch only
          expect(problem.graph:operator((task - 1) % problem.graph.operators + 1).phase):equals 'update'
        end
      end
      expect(last):near(metrics.step_time_s, 1e-12)
      expect(idle > 0):equals(m > 1)
      local types, by_type, tasks = timeline:by_type(), 0, 0
      for _, share in ipairs(types) do by_type, tasks = by_type + share.total_s, tasks + share.tasks end
      expect(by_type):near(total, 1e-9)
      expect(tasks):equals(timeline.tasks - idle)
      local path = timeline:critical_path()
      expect(path.compute_s + path.wire_s + path.collective_s + path.queue_s):near(metrics.step_time_s, 1e-12)
      expect(path.steps[#path.steps].end_s):near(metrics.step_time_s, 1e-12)
      for d = 1, 4 do
        local peak, bytes = 0, 0
        for _, level in ipairs(timeline:memory(d)) do peak = math.max(peak, level.bytes) end
        for _, copy in ipairs(timeline:transfers()) do if copy.from == d then bytes = bytes + copy.bytes end end
        expect(peak):equals(metrics:memory_bytes(d))
        expect(bytes):equals(metrics:sent_bytes(d))
      end
    end
  end)
  it('shows collectives', function()
    local builder, gradients, members = trinity.graph.new { name = 'reduced' }, {}, {}
    for i = 1, 2 do
      gradients[i] = builder:add { name = 'gradient' .. i, type = 'Work', outputs = { { bytes = 12e6 } }, measured_time_s = i * 1e-3 }
      members[i] = 'sum' .. i
      builder:add { name = members[i], type = 'AllReduce', inputs = { gradients[i] }, outputs = { { bytes = 12e6 } } }
    end
    builder:collective { name = 'sum', kind = 'all_reduce', algorithm = 'ring', bytes = 12e6, members = members }
    local problem = trinity.problem { graph = builder:build(), cluster = trinity.cluster 'p100x2' }
    local placement = problem:placement()
    placement[3], placement[4] = 2, 2
    local timeline = problem:timeline(placement)
    local runs = timeline:collectives()
    expect(#runs):equals(1)
    expect(runs[1].collective):equals 'sum'
    expect(runs[1].micro_batch):equals(1)
    expect(runs[1].ready_s):near(2e-3, 1e-12)
    expect(runs[1].end_s - runs[1].start_s):near(problem.cluster:collective { kind = 'all_reduce', algorithm = 'ring',
      devices = { 1, 2 }, bytes = 12e6 }.time_s, 1e-9)
    local path = timeline:critical_path()
    expect(path.steps[#path.steps].kind):equals 'collective'
    expect(path.steps[#path.steps].collective):equals 'sum'
    expect(path.collective_s):near(runs[1].end_s - runs[1].start_s, 1e-12)
  end)
  it('is refused and closed like other objects', function()
    local problem, placement = hand()
    local timeline = problem:timeline(placement)
    local here = 'timeline_spec%.lua:%d+: '
    expect(function() timeline:memory(3) end):raises(here .. "timeline:memory: argument 1 %('d'%): expected an integer from 1 to 2, got number 3")
    expect(function() timeline:memory() end):raises(here .. "timeline:memory: argument 1 %('d'%): expected an integer from 1 to 2, got nil")
    expect(function() return timeline.start_s[4] end):raises(here .. 'index 4 is outside 1 to 3')
    expect(function() return timeline.nothing end):raises(here .. "timeline: no field 'nothing'")
    placement[3] = 3
    expect(function() problem:timeline(placement) end):raises(here .. "problem:timeline: operator 'c' is placed on device 3, expected 1 to 2")
    problem:close()
    expect(timeline:transfers()[1].operator):equals 'a' -- it does not need its problem
    timeline:close()
    expect(function() timeline:transfers() end):raises(here .. '.*this timeline is closed')
  end)
  it('has no memory levels where memory is not accounted', function()
    local problem, placement = inception { memory = 'none' }
    local timeline = problem:timeline(placement)
    expect(#timeline:memory(1)):equals(0)
    expect(timeline.metrics.peak_memory_bytes):equals(0)
  end)
end)

describe('a Chrome trace', function()
  it('is JSON with a slice for every task and copy', function()
    local problem, placement = inception()
    local timeline = problem:timeline { placement = placement, schedule = '1f1b', micro_batches = 2 }
    local trace = json.decode(timeline:chrome_trace(), 'the trace')
    local slices, names = { compute = 0, transfer = 0 }, {}
    local last = 0
    for _, event in ipairs(trace.traceEvents) do
      if event.ph == 'X' then
        local kind = event.cat == 'transfer' and 'transfer' or 'compute'
        slices[kind] = slices[kind] + 1
        last = math.max(last, event.ts + event.dur)
      elseif event.name == 'process_name' then
        names[#names + 1] = event.args.name
      end
    end
    local updates = 0
    for op = 1, problem.graph.operators do
      if problem.graph:operator(op).phase == 'update' then updates = updates + 1 end
    end
    expect(slices.compute):equals(timeline.tasks - updates)
    expect(slices.transfer):equals(timeline.metrics.transfers)
    expect(last * 1e-6):near(timeline.metrics.step_time_s, 1e-12)
    expect(table.concat(names, ', ')):equals 'gpu0 (p100), gpu1 (p100), gpu2 (p100), gpu3 (p100)'
    expect(trace.otherData.step_time_s):near(timeline.metrics.step_time_s, 1e-12)
    expect(trace.otherData.graph):equals 'inception_v3'
  end)
  it('goes into a file, the same bytes every time', function()
    local problem, placement = hand()
    local folder = temporary()
    local path = folder .. '/deep/trace.json'
    local timeline = problem:timeline(placement)
    expect(timeline:save(path)):equals(path)
    expect(core.read_file(path)):equals(timeline:chrome_trace())
    expect(problem:timeline(placement):chrome_trace()):equals(timeline:chrome_trace())
    expect(function() timeline:save '/proc/nowhere/trace.json' end):raises 'timeline_spec%.lua:%d+: timeline:save: /proc/nowhere/trace.json: cannot'
  end)
end)
