-- Pipelines, executed: gradients of micro-batches add up to the gradients of the whole batch, whatever the schedule and
-- the placement; what is measured, and its trace.

local array = require 'trinity.base.array'
local core = require 'trinity.core'
local json = require 'trinity.base.json'
local simulator = require 'trinity.strategy.simulator'
local trinity = require 'trinity'

with_torch()

--- A network without batch normalisation and dropout, whose batches are their micro-batches, joined.
local function network(batch_size)
  local net = trinity.graph.layers.new('rows', { batch_size = batch_size })
  local x = net:input('x', { batch_size, 6 })
  for i = 1, 4 do x = net:relu('relu' .. i, net:linear('layer' .. i, x, 5 + i)) end
  net:softmax_cross_entropy('loss', net:linear('out', x, 4), net:input('labels', { batch_size }, 'int64'))
  return net:build():to_training()
end

local function problem_of(graph, devices)
  return trinity.problem { graph = graph, cluster = trinity.cluster('p100x' .. devices) }
end

--- Units in order of their first operator, cut into equal runs.
local function stages(problem, devices)
  local units, i = problem.graph.units, 0
  return problem:placement_by_unit(function()
    i = i + 1
    return math.min(devices, math.ceil(i * devices / units))
  end)
end

--- Losses of three steps and the weights after them.
local function train(problem, plan, micro_batches)
  local graph, numbers = problem.graph, {}
  local timeline = problem:timeline(plan)
  local order = array.double(timeline.tasks)
  for task = 1, timeline.tasks do
    local start_s = timeline.start_s[task]
    order[task] = start_s == start_s and start_s or 0
  end
  local placement = simulator.parts('train', problem, plan)
  local executor = core.executor(graph.handle, placement, #problem.cluster.devices, order,
    { seed = 3, learning_rate = 0.05, micro_batches = micro_batches })
  for step = 1, 3 do numbers[step] = executor:step().loss end
  for op = 1, graph.operators do
    for i = 1, #(graph:operator(op).parameters or {}) do
      for _, value in ipairs(executor:weight(op, i)) do numbers[#numbers + 1] = value end
    end
  end
  executor:close()
  return numbers
end

local function expect_near(found, expected)
  expect(#found):equals(#expected)
  local largest = 0
  for _, value in ipairs(expected) do largest = math.max(largest, math.abs(value)) end
  for i = 1, #expected do expect(found[i]):near(expected[i], 1e-5 * math.max(math.abs(expected[i]), 0.01 * largest)) end
end

describe('an executed pipeline', function()
  local graph = network(2)
  local three = problem_of(graph, 3)
  it('computes what the whole batch computes at once', function()
    local whole = problem_of(network(8), 1)
    local expected = train(whole, whole:placement(), 1)
    for _, schedule in ipairs { 'gpipe', '1f1b', 'fifo' } do
      expect_near(train(three, { placement = stages(three, 3), schedule = schedule, micro_batches = 4 }, 4), expected)
    end
  end)
  it('keeps the order of its schedule on every device', function()
    local found = trinity.execute(three, { placement = stages(three, 3), schedule = '1f1b', micro_batches = 4 },
      { steps = 2, warm_up = 1 })
    expect(found.micro_batches):equals(4)
    local last, operators = found.last, graph.operators
    expect(#last.start_s):equals(4 * operators)
    for op = 1, operators do
      for m = 0, 3 do
        for _, before in ipairs(graph:predecessors(op)) do
          local task = m * operators + op
          if last.end_s[task] > 0 then expect(last.start_s[task] >= last.end_s[m * operators + before]):equals(true) end
        end
      end
    end
    -- The matmuls of a device in the order of the schedule, which differs between schedules.
    local on = stages(three, 3)
    local function products(start_s, device)
      local list = {}
      for task = 1, 4 * operators do
        local op = (task - 1) % operators + 1
        if on[op] == device and graph:operator(op).type:find '^Gemm' then list[#list + 1] = task end
      end
      table.sort(list, function(a, b) return start_s[a] < start_s[b] end)
      return table.concat(list, ' ')
    end
    local function simulated(schedule)
      return three:timeline({ placement = stages(three, 3), schedule = schedule, micro_batches = 4 }).start_s
    end
    for device = 1, 3 do
      expect(products(last.start_s, device)):equals(products(simulated '1f1b', device))
    end
    expect(products(last.start_s, 1) == products(simulated 'gpipe', 1)):equals(false)
  end)
end)

describe('an execution measures', function()
  local problem = problem_of(network(16), 2)
  local graph, placement = problem.graph, stages(problem, 2)
  local found = trinity.execute(problem, placement, { steps = 4, warm_up = 1 })
  it('operators, by their medians', function()
    expect(#found.step_times_s):equals(3)
    expect(#found.operator_time_s):equals(graph.operators)
    local total = 0
    for op = 1, graph.operators do
      expect(found.operator_start_s[op]):equals(found.last.start_s[op])
      total = total + found.operator_time_s[op]
    end
    expect(total > 0 and total < 3 * found.step_time_s):equals(true)
    for op = 1, graph.operators do
      local about = graph:operator(op)
      if about.type == 'Gemm' or about.phase == 'update' then expect(found.operator_time_s[op] > 0):equals(true) end
    end
  end)
  it('copies between devices', function()
    local bytes = 0
    for _, copy in ipairs(found.last.copies) do
      local op = copy.task
      expect(copy.from):equals(placement[op])
      expect(copy.to):equals(3 - copy.from)
      expect(copy.end_s >= copy.start_s and copy.start_s >= found.last.end_s[op]):equals(true)
      bytes = bytes + copy.bytes
    end
    expect(#found.last.copies > 0):equals(true)
    expect(found.transferred_bytes):equals(bytes)
  end)
  it('memory as it was allocated, weights and saved values included', function()
    local all = trinity.execute(problem, problem:placement(), { steps = 2, warm_up = 0 })
    local least = graph.parameter_bytes
    for op = 1, graph.operators do
      local about = graph:operator(op)
      if about.type == 'Relu' then least = least + 16 * 4 * about.outputs[1].shape[2] end
    end
    expect(all.peak_memory_bytes[1] > least):equals(true)
    expect(all.peak_memory_bytes[2]):equals(0)
    expect(all.peak_memory_bytes[1] < 10 * least):equals(true)
    expect(found.peak_memory_bytes[1] + found.peak_memory_bytes[2] > least):equals(true)
    -- The same step needs the same memory.
    local again = trinity.execute(problem, problem:placement(), { steps = 2, warm_up = 0 })
    expect(again.peak_memory_bytes[1]):equals(all.peak_memory_bytes[1])
  end)
  it('and writes both steps into one trace', function()
    local text = require 'trinity.execute.trace'(problem, placement, found, { 'cpu:0', 'cpu:1' })
    local trace = json.decode(text, 'trace')
    local simulated, measured, name = 0, 0, nil
    for _, event in ipairs(trace.traceEvents) do
      if event.name == 'process_name' and event.pid == 2 then name = event.args.name end
      if event.ph == 'X' and event.cat ~= 'copy' and event.cat ~= 'transfer' then
        if event.pid == 2 then measured = measured + 1 else simulated = simulated + 1 end
      end
    end
    expect(name):equals 'measured'
    expect(measured):equals(graph.operators)
    expect(simulated):equals(graph.operators)
    expect(trace.otherData.measured_step_time_s):near(found.step_time_s, 1e-6)
    expect(trace.otherData.step_time_s):near(problem:evaluate(placement).step_time_s, 1e-6)
  end)
end)
