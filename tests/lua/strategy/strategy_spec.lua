-- Strategy files: schedules are saved and loaded, and broken files are distinguished.

local array = require 'trinity.base.array'
local core = require 'trinity.core'
local trinity = require 'trinity'

-- Five layers of known times on two devices.
local function chain_problem(settings)
  local builder = trinity.graph.new { name = 'chain' }
  local x = builder:add { name = 'data', type = 'Input', outputs = { { bytes = 8, gradient = false } } }
  for i = 1, 5 do
    x = builder:add { name = 'layer' .. i, type = 'Work', inputs = { x }, outputs = { { bytes = 1e6 * i } },
      parameters = { { name = 'w', shape = { 4 } } }, measured_time_s = i * 1e-3, measured_backward_time_s = 2e-3 }
  end
  return trinity.problem(merged({ graph = builder:build():to_training(), cluster = trinity.cluster 'p100x2' },
    settings or {}))
end

-- Layers 1 and 2 on the first device, the rest on the second.
local function halves(problem)
  return problem:placement_by_unit(function(unit) return unit <= 3 and 1 or 2 end)
end

-- An order that a simulation took, which is one that works.
local function order_of(problem, plan)
  local timeline = problem:timeline(plan)
  local order = {}
  for d = 1, #problem.cluster.devices do order[d] = {} end
  for task = 1, timeline.tasks do
    local list = order[timeline.device[task]]
    if timeline.start_s[task] >= 0 then list[#list + 1] = task end
  end
  for _, list in ipairs(order) do
    table.sort(list, function(a, b)
      local x, y = timeline.start_s[a], timeline.start_s[b]
      return x < y or (x == y and a < b)
    end)
  end
  return order
end

local names = { 'step_time_s', 'peak_memory_bytes', 'peak_communication_bytes', 'total_communication_bytes',
  'transfers', 'feasible' }

local function expect_same(a, b)
  for _, name in ipairs(names) do expect(b[name]):equals(a[name]) end
  for d = 1, a.device_count do
    expect(b:compute_busy_s(d)):equals(a:compute_busy_s(d))
    expect(b:memory_bytes(d)):equals(a:memory_bytes(d))
  end
end

local function saved_text(strategy)
  local path = temporary()
  strategy:save(path)
  return core.read_file(path)
end

local function load_text(problem, text)
  local ok, result = pcall(problem.load, problem, file_with(text))
  if not ok then error(result, 0) end
  return result
end

describe('a strategy file', function()
  local problem = chain_problem()
  local n = problem.graph.operators
  local priority, list, stage, array_stage = array.double(n), {}, {}, array.int32(n)
  for i = 1, n do
    priority[i], list[i] = (i * 7 % 5) / 3, i % 3
    stage[i] = halves(problem)[i]
    array_stage[i] = stage[i]
  end
  list[2], list[3] = math.huge, -math.huge
  local plans = {
    fifo = {}, lifo = { schedule = 'lifo' }, four = { micro_batches = 4 },
    critical_path = { schedule = 'critical_path', micro_batches = 2 },
    array = { schedule = 'priority', priority = priority },
    list = { schedule = 'priority', priority = list, micro_batches = 3 },
    gpipe = { schedule = 'gpipe', micro_batches = 4 },
    stages = { schedule = '1f1b', micro_batches = 4, stage = stage },
    array_stages = { schedule = '1f1b', micro_batches = 4, stage = array_stage },
    interleaved = { schedule = 'interleaved', micro_batches = 2 }, stream = { schedule = 'pipedream', micro_batches = 2 },
    order = { schedule = 'order', order = order_of(problem, { placement = halves(problem), schedule = 'lifo' }) },
    orders = { schedule = 'order', micro_batches = 3,
      order = order_of(problem, { placement = halves(problem), micro_batches = 3 }) },
  }
  for name, plan in trinity.system.sorted_pairs(plans) do
    it('carries the schedule of ' .. name, function()
      plan.placement = halves(problem)
      local found = problem:strategy(plan, { method = 'hand' })
      local text = saved_text(found)
      expect(text:find '"schedule"' ~= nil):equals(name ~= 'fifo')
      local again = load_text(problem, text)
      expect_same(found.metrics, again.metrics)
      expect(again.schedule):equals(name ~= 'fifo' and (plan.schedule or 'fifo') or nil)
      expect(again.micro_batches):equals(name ~= 'fifo' and (plan.micro_batches or 1) or nil)
      expect(saved_text(again) == text):truthy()
      expect(again == found):truthy()
      expect(again == problem:strategy { placement = problem:placement(), schedule = 'lifo' }):equals(false)
      expect_same(found.metrics, problem:evaluate(again))
    end)
  end
  it('carries the schedule of the problem', function()
    local other = chain_problem { schedule = 'gpipe', micro_batches = 4 }
    local found = other:strategy(halves(other))
    expect(found.schedule):equals 'gpipe'
    expect_same(found.metrics, load_text(problem, saved_text(found)).metrics)
    -- And a file without one means the default, whatever the problem's.
    local plain = problem:strategy(halves(problem))
    expect_same(plain.metrics, load_text(other, saved_text(plain)).metrics)
  end)
  it('bounds a strategy by its own number of micro-batches, as a problem', function()
    expect(problem:strategy(halves(problem)):bounds().critical_path_s):equals(problem:bounds().critical_path_s)
    local found = problem:strategy { placement = halves(problem), micro_batches = 4 }
    expect(found:bounds().step_time_s):equals(problem:bounds(4).step_time_s)
    expect(problem:bounds(4, 'pipedream').critical_path_s):below(problem:bounds(4).critical_path_s)
    expect(load_text(problem, saved_text(found)).saved.lower_bound_s + 0):equals(found:bounds().step_time_s)
  end)
  it('keeps the schedule of a search that failed', function()
    local count = 0
    local other = chain_problem { schedule = 'lifo', micro_batches = 2, reward = function(m)
      count = count + 1
      if count > 20 then error 'enough' end
      return -m.step_time_s
    end }
    pcall(trinity.methods.random, other, { evaluations = 40, batch = 10, quiet = true })
    local best = trinity.search.rescued[#trinity.search.rescued]
    expect(core.read_file(best:save(temporary()))):matches '"schedule": {%s*"name": "lifo",%s*"micro_batches": 2%s*}'
  end)
end)

describe('a broken schedule', function()
  local problem = chain_problem()
  local function broken(plan, from, to, pattern)
    plan.placement = halves(problem)
    local text = saved_text(problem:strategy(plan))
    expect(text:find(from, 1, true)):truthy()
    local changed = text:gsub(from:gsub('%p', '%%%0'), (to:gsub('%%', '%%%%')), 1)
    expect(function() load_text(problem, changed) end):raises('strategy_spec%.lua:%d+: [%l_:]*%s?/tmp/[%w_/]+: .*' .. pattern)
  end
  it('names the file where only a simulation finds the mistake', function()
    local order = order_of(problem, halves(problem))
    broken({ schedule = 'order', order = order }, '"layer1",', '',
      "the order contradicts graph 'chain': device 'gpu0' waits for 'layer2' of micro%-batch 1")
  end)
end)
