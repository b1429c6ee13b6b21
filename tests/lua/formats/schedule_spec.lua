-- Schedules of pipelines as PyTorch's CSV, both ways.

local core = require 'trinity.core'
local trinity = require 'trinity'
local schedules = require 'trinity.formats.pytorch_schedule'

local function read(text) return schedules.parse(text, 'order.csv') end

local function model(options)
  return trinity.model(core.home .. '/tests/data/clients/models/llama.json', options or { sequence = 32 })
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
  local record = trinity.json.decode(trinity.files.read(core.home .. '/tests/data/clients/pytorch_orders.json'))
  local problem = trinity.problem { graph = model(), cluster = trinity.cluster 'p100x8' }
  for name, text in trinity.sorted_pairs(record.orders) do
    it(('are ours, and cost what ours do, bit for bit: %s'):format(name), function()
      local orders = read(text)
      expect(orders.name):equals(name)
      local strategy = problem:strategy { mesh = { pipeline = 4, data = 2 }, schedule = name,
        virtual_stages = orders.stages / 4, micro_batches = record.micro_batches }
      same_metrics(trinity.formats.simulate_schedule(strategy, orders), strategy.metrics)
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
        local ranks = core.chunk_orders { mesh = { pipeline = p }, schedule = case[1], virtual_stages = case[2],
          micro_batches = m }
        local orders = read(schedules.text(ranks))
        expect(orders.stages):equals(p * case[2])
        expect(orders.micro_batches):equals(m)
        expect(schedules.text(orders.ranks)):equals(schedules.text(ranks))
        local named = core.chunk_orders { mesh = { pipeline = p }, schedule = orders.name, virtual_stages = case[2],
          micro_batches = m }
        expect(schedules.text(named)):equals(schedules.text(ranks))
      end
    end
  end)
  it('has no numbers beyond 32 bits', function()
    local problem = trinity.problem { graph = model { sequence = 32, layers = 2 }, cluster = trinity.cluster 'p100x2' }
    local stage = {}
    for op = 1, problem.graph.operators do stage[op] = 1 end
    for field, number in pairs { chunk = 2 ^ 32, micro_batch = -1 } do -- in any order
      local order = { work = { 'F' }, chunk = { 0 }, micro_batch = { 0 } }
      order[field] = { number }
      expect(function() core.order_schedule(problem.handle, problem:placement(), stage, 1, '1f1b', { order }) end)
        :raises("argument '" .. field .. "': expected numbers from 0 to 2%^31 %- 1, got ")
    end
  end)
  it('may be of others: more warm-up costs memory, not time', function()
    local text = '0F0,0F1,0F2,0F3,0B0,0B1,0B2,0B3\r\n1F0,1B0,1F1,1B1,1F2,1B2,1F3,1B3\r\n'
    local problem = trinity.problem { graph = model { sequence = 32, layers = 2 }, cluster = trinity.cluster 'p100x2' }
    local strategy = problem:strategy { mesh = { pipeline = 2 }, micro_batches = 4 }
    local metrics = trinity.formats.simulate_schedule(strategy, read(text))
    expect(strategy.metrics:memory_bytes(1)):below(metrics:memory_bytes(1))
    expect(metrics.total_communication_bytes):equals(strategy.metrics.total_communication_bytes)
  end)
end)

describe('files that are no schedule', function()
  local function refused(text, message)
    expect(function() read(text) end):raises((message:gsub('%p', '%%%0')))
  end
  it('are refused with row and column', function()
    refused('0F0,0f1', "order.csv: row 1, column 2: expected STAGE KIND MICROBATCH as in 0F1, got '0f1'")
    refused('0F0xyz,0B0', "order.csv: row 1, column 1: expected STAGE KIND MICROBATCH as in 0F1, got '0F0xyz'")
    refused('0Q0', "order.csv: row 1, column 1: expected a task F, B, I or W, got 'Q'")
    refused('0F', "order.csv: row 1, column 1: expected a micro-batch behind F, got '0F'")
    refused('0F0,0B0\n\n1F0,1B0', 'order.csv: row 2: the rank has no task')
    refused('(0F0)OVERLAP_F_B,0B0', "expected two tasks in OVERLAP_F_B, got '(0F0)OVERLAP_F_B'")
    refused('', 'order.csv: row 1: the rank has no task')
  end)
  it("are refused for what PyTorch's loader does not see", function()
    refused('0F0,0F0,0B0', 'order.csv: row 1: 0F0 is done twice')
    refused('0F0,0B0,0I0', 'order.csv: row 1: 0I0 is done twice')
    refused('0B0,0F0', 'order.csv: row 1: 0B0 stands before what it needs')
    refused('0F0,0W0,0I0', 'order.csv: row 1: 0W0 stands before what it needs')
    refused('0F7,0B7', 'order.csv: micro-batch 0 of stage 0 lacks a forward or backward task')
    refused('0F0,0I0', 'order.csv: micro-batch 0 of stage 0 lacks a forward or backward task')
    refused('0F0,0B0\n0F1,0B1', 'order.csv: row 2: stage 0 is in row 1, too')
    refused('999999F9999999,999999B9999999', 'are more than 4194304 tasks')
  end)
  it('are refused where the plan has other ranks, or no order goes on', function()
    local problem = trinity.problem { graph = model { sequence = 32, layers = 2 }, cluster = trinity.cluster 'p100x2' }
    local strategy = problem:strategy { mesh = { pipeline = 2 }, micro_batches = 2 }
    local function refused_by(text, message)
      expect(function() trinity.formats.simulate_schedule(strategy, read(text)) end):raises((message:gsub('%p', '%%%0')))
    end
    refused_by('0F0,0B0', 'order.csv has 1 rows, the mesh pipeline = 2')
    refused_by('0F0,0B0,0F1,0B1\n1F1,1B1,1F0,1B0', 'order.csv')
    refused_by('1F0,1B0\n0F0,0B0', 'stages go neither round the ranks in turn nor forth and back')
  end)
end)
