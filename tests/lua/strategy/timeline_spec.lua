-- A step in scripts: times of tasks and copies, memory, the critical path, the trace. That these agree with the
-- metrics of any run: tests/simulator/reference_test.cpp; the trace of real networks: tests/formats/export/chrome_trace_test.cpp.

local core = require 'trinity.core'
local trinity = require 'trinity'

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
  it('has the time of every event', function()
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
  it('has the memory, the critical path and the cost of communication', function()
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
  it('refuses devices and tasks that are not there, and does not need its problem', function()
    local problem, placement = hand()
    local timeline = problem:timeline(placement)
    expect(function() timeline:memory(3) end):raises "timeline:memory: argument 1 %('d'%): expected an integer from 1 to 2, got number 3"
    expect(function() return timeline.start_s[4] end):raises 'index 4 is outside 1 to 3'
    problem:close()
    expect(timeline:transfers()[1].operator):equals 'a'
  end)
end)

describe('a Chrome trace', function()
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
