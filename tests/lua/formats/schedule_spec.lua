-- Orders of pipelines that are a strategy's own, and schedules of pipelines as PyTorch's CSV, both ways.

local core = require 'trinity.core'
local trinity = require 'trinity'

local function model(options)
  return trinity.model(core.home .. '/tests/data/clients/models/llama.json', options or { sequence = 32 })
end

local function rows_of(text)
  local rows = {}
  for row in text:gmatch '[^\r\n]+' do rows[#rows + 1] = row end
  return rows
end

local function same_metrics(a, b)
  expect(a.step_time_s):equals(b.step_time_s)
  expect(a.total_communication_bytes):equals(b.total_communication_bytes)
  for d = 1, b.device_count do
    expect(a:memory_bytes(d)):equals(b:memory_bytes(d))
    expect(a:compute_busy_s(d)):equals(b:compute_busy_s(d))
  end
end

describe('orders that PyTorch wrote', function()
  local record = trinity.files.json.decode(trinity.files.read(core.home .. '/tests/data/clients/pytorch_orders.json'))
  local problem = trinity.problem { graph = model(), cluster = trinity.cluster 'p100x8' }
  for name, text in trinity.system.sorted_pairs(record.orders) do
    it(('are the schedule of that name: %s'):format(name), function()
      local found = problem:strategy { mesh = { pipeline = 4, data = 2 }, tasks = rows_of(text) }
      expect(found.schedule):equals(name)
      expect(found.micro_batches):equals(record.micro_batches)
      expect(found.tasks):equals(nil)
    end)
  end
end)

describe('orders that we write', function()
  local random = trinity.random(1, 'orders')
  it('are read back to the same schedule', function()
    for _, case in ipairs { { 'gpipe', 1, 1 }, { '1f1b', 1, 1 }, { 'interleaved', 2, 0 }, { 'interleaved', 3, 0 },
      { 'zb-h1', 1, 1 }, { 'zb-h2', 1, 2 }, { 'zb-interleaved', 2, 0 }, { 'zb-v', 2, 2 }, { 'dualpipe-v', 2, 2 } } do
      for _ = 1, 6 do
        local p = 1 + random:integer(5)
        local m = case[3] == 0 and p * random:integer(3) or case[3] * p + random:integer(6) - 1
        local rows = core.pipeline_order { mesh = { pipeline = p }, schedule = case[1], virtual_stages = case[2],
          micro_batches = m }
        local found = core.read_order(rows)
        expect(found.virtual_stages):equals(case[2])
        expect(found.micro_batches):equals(m)
        expect(table.concat(found.tasks, '\n')):equals(table.concat(rows, '\n'))
        expect(table.concat(core.pipeline_order { mesh = { pipeline = p }, schedule = found.schedule,
          virtual_stages = case[2], micro_batches = m }, '\n')):equals(table.concat(rows, '\n'))
      end
    end
  end)
end)

describe('an order of its own', function()
  local problem = trinity.problem { graph = model { sequence = 32, layers = 2 }, cluster = trinity.cluster 'p100x4' }
  local eager = { '0F0,0F1,0F2,0F3,0B0,0B1,0B2,0B3', { '1F0', '1B0', '1F1', '1B1', '1F2', '1B2', '1F3', '1B3' } }
  local function own(tasks, fields)
    return problem:strategy(merged({ mesh = { pipeline = 2, data = 2 }, tasks = tasks or eager }, fields))
  end
  local plain = problem:strategy { mesh = { pipeline = 2, data = 2 }, micro_batches = 4 }

  it('costs more memory, not time, with more warm-up', function()
    local found = own()
    expect(found.schedule):equals 'order'
    expect(plain.metrics:memory_bytes(1)):below(found.metrics:memory_bytes(1))
    expect(found.metrics.total_communication_bytes):equals(plain.metrics.total_communication_bytes)
  end)
  it('costs the same whatever was simulated before, and in a batch', function()
    local swapped = own { '0F1,0F0,0B1,0F2,0B0,0F3,0B2,0B3', '1F1,1B1,1F0,1B0,1F2,1B2,1F3,1B3' }
    local fresh = trinity.problem { graph = problem.graph, cluster = problem.cluster }
    local both = fresh:evaluate_batch { swapped, own() }
    same_metrics(both[1], swapped.metrics)
    same_metrics(both[2], own().metrics)
  end)
  it('has a timeline in its order, with the same digits', function()
    local found = own()
    local timeline = found:timeline()
    expect(timeline.metrics.step_time_s):equals(found.metrics.step_time_s)
    local _, low = require('trinity.strategy.simulator').lowered('spec', problem, found)
    expect(table.concat(low.tasks, ' ')):equals(table.concat(found.tasks, ' '))
    expect(trinity.pipeline.schedule_bubble(found) > 0):equals(true)
  end)
  it('is saved, read back and plotted', function()
    local found, path = own(), temporary '.json'
    found:save(path)
    local again = problem:load(path)
    expect(again == found):equals(true)
    expect(again == plain):equals(false)
    same_metrics(again.metrics, found.metrics)
    local svg = trinity.files.read(found:picture(temporary '.svg'))
    expect(select(2, svg:gsub('forward of micro%-batch', ''))):equals(8)
    expect(svg):matches ', order'
  end)
  it('is a CSV file, as exports write it', function()
    local found, path = own(), temporary '.csv'
    trinity.files.write(path, (found:export({ format = 'pytorch_schedule' }):gsub('\n', '\r\n')))
    expect(own(path) == found):equals(true)
  end)
  it('is one of a placement in stages, too', function()
    local two = problem:strategy({ mesh = { pipeline = 2 } }).placement
    local found, path = problem:strategy { placement = two, schedule = 'order', stage = two, micro_batches = 2,
      tasks = { '0F1,0F0,0B1,0B0', '1F1,1B1,1F0,1B0' } }, temporary '.json'
    local again = problem:load(found:save(path))
    expect(again == found):equals(true)
    same_metrics(again.metrics, found.metrics)
  end)
  it('has parts of the backward pass, and stages in V shape', function()
    expect(own({ '0F0,0F1,0I0,0I1,0W0,0W1', '1F0,1I0,1W0,1F1,1I1,1W1' }).metrics.step_time_s > 0):equals(true)
    local four = trinity.problem { graph = model { sequence = 32, layers = 4 }, cluster = trinity.cluster 'p100x2' }
    local v = four:strategy { mesh = { pipeline = 2 }, tasks = { '0F0,3F0,3B0,0B0', '1F0,2F0,2B0,1B0' } }
    expect(v.virtual_stages):equals(2)
    expect(v:breakdown().stages[1].layers):equals(2)
  end)
  it('of other micro-batches, stages or schedule is refused', function()
    local function refused(message, tasks, fields)
      expect(function() own(tasks, fields) end):raises((message:gsub('%p', '%%%0')))
    end
    refused('tasks: expected micro_batches = 4 as in the tasks, got 8', nil, { micro_batches = 8 })
    refused('tasks: expected schedule = order as in the tasks, got 1f1b', nil, { schedule = '1f1b' })
    refused('tasks: expected pipeline = 2 rows, got 3', { '0F0,0B0', '1F0,1B0', '2F0,2B0' })
    refused('tasks: expected stages that visit the rows in order, round-robin or forwards and then backwards', { '1F0,1B0', '0F0,0B0' })
    refused('tasks: row 1: task 2 never starts: tasks wait for each other', { '0F0,0B0,0F1,0B1', '1F1,1B1,1F0,1B0' })
    expect(function() problem:strategy { mesh = { pipeline = 2 }, schedule = 'order' } end)
      :raises "schedule 'order': expected 'tasks' with one row per pipeline rank, got none"
  end)
end)

describe('rows that are no order', function()
  local function refused(text, message)
    local rows = {}
    for row in (text .. '\n'):gmatch '([^\n]*)\n' do rows[#rows + 1] = row end
    expect(function() core.read_order(rows) end):raises((message:gsub('%p', '%%%0')))
  end
  it('are refused with row and column', function()
    refused('0F0,0f1', "row 1, column 2: expected STAGE KIND MICROBATCH as in 0F1, got '0f1'")
    refused('0F0xyz,0B0', "row 1, column 1: expected STAGE KIND MICROBATCH as in 0F1, got '0F0xyz'")
    refused('0Q0', "row 1, column 1: expected a task F, B, I or W, got 'Q'")
    refused('0F', "row 1, column 1: expected a micro-batch after the kind, got '0F'")
    refused('0F0,0B0\n\n1F0,1B0', 'row 2: expected tasks, got none')
    refused('(0F0)OVERLAP_F_B,0B0', "expected two tasks in OVERLAP_F_B, got '(0F0)OVERLAP_F_B'")
    refused('', 'row 1: expected tasks, got none')
  end)
  it("are refused for what PyTorch's loader does not see", function()
    refused('0F0,0F0,0B0\n1F0,1B0', 'row 1: expected each task once, got 0F0 twice')
    refused('0F0,0B0,0I0\n1F0,1B0', 'row 1: expected each task once, got 0I0 twice')
    refused('0B0,0F0\n1F0,1B0', 'row 1: 0B0 precedes a task of its stage that it depends on')
    refused('0F0,0W0,0I0\n1F0,1B0', 'row 1: 0W0 precedes a task of its stage that it depends on')
    refused('0F1,0B1\n1F1,1B1', 'micro-batch 0 of stage 0 lacks a forward or backward task')
    refused('0F0,0I0\n1F0,1B0', 'micro-batch 0 of stage 0 lacks a forward or backward task')
    refused('0F0,0B0\n0F1,0B1', 'row 2: stage 0 is also in row 1, expected all of its tasks in one row')
    refused('0F0,0B0', 'expected at least 2 rows, one per pipeline rank, got 1')
    refused('999999F9999999\n999999B9999999', 'are more than 4194304 tasks')
  end)
end)
