-- The simulator as scripts see it: plans in every form, metrics, rules, bounds. Times are worked out by hand.

local array = require 'trinity.base.array'
local cluster = require('support.pipelines').cluster
local trinity = require 'trinity'

local ms = 1e-3

-- Operators { name, milliseconds, inputs ... }, each with one output of 1 MB.
local function graph(operators)
  local builder, tensors = trinity.graph.new { name = 'hand' }, {}
  for _, op in ipairs(operators) do
    local inputs = {}
    for i = 3, #op do inputs[i - 2] = tensors[op[i]] end
    tensors[op[1]] = builder:add { name = op[1], type = 'Work', inputs = inputs, outputs = { { bytes = 1e6 } },
      measured_time_s = op[2] * ms }
  end
  return builder:build()
end

local function placed(problem, devices)
  local placement = problem:placement()
  for i = 1, #placement do placement[i] = devices[i] end
  return placement
end

local function expect_step(metrics, milliseconds) expect(metrics.step_time_s):near(milliseconds * ms, 1e-6) end

-- b and c read a; c is short and d, which follows it on the other device, is long.
local fork = { { 'a', 1 }, { 'b', 4, 'a' }, { 'c', 1, 'a' }, { 'd', 5, 'c' } }

describe('a field that is not there', function()
  it('is refused with the one that was meant, of modules, objects, metrics and arrays', function()
    local problem = trinity.problem { graph = trinity.model('alexnet'), cluster = trinity.cluster 'p100x2' }
    local found = trinity.methods.single_device(problem)
    for expected, read in pairs { -- each by itself: in any order
      ["trinity: no field 'metods', did you mean 'methods'?"] = function() return trinity.metods end,
      ["trinity.graph: no field 'neww', did you mean 'new'?"] = function() return trinity.graph.neww end,
      ["problem: no field 'clusters', did you mean 'cluster'?"] = function() return problem.clusters end,
      ["problem: no field 'evalute', did you mean 'evaluate'?"] = function() return problem:evalute() end,
      ["strategy: no field 'metric', did you mean 'metrics'?"] = function() return found.metric end,
      ["array: no field 'totabel', did you mean 'totable'?"] = function() return found.placement:totabel() end,
      ["metrics.memory_bytes is a function of a device: expected metrics:memory_bytes(1)"] = function()
        return found.metrics.memory_bytes[1]
      end,
    } do
      expect(read):raises('simulator_spec%.lua:%d+: ' .. expected:gsub('%p', '%%%0'))
    end
    expect(found.mesh):equals(nil) -- which others have
  end)
end)

describe('a plan', function()
  local problem = trinity.problem { graph = graph(fork), cluster = cluster { 1, 1 } }
  local apart = placed(problem, { 1, 1, 1, 2 })
  it('is a placement, a strategy or a table', function()
    -- a 0-1, b 1-5, c 5-6, link 6-7, d 7-12.
    local metrics = problem:evaluate(apart)
    expect_step(metrics, 12)
    expect(problem:evaluate(problem:strategy(apart)).step_time_s):equals(metrics.step_time_s)
    expect(problem:evaluate({ placement = apart }).step_time_s):equals(metrics.step_time_s)
    local batch = problem:evaluate_batch { apart, { placement = apart, schedule = 'lifo' }, problem:strategy(apart),
      { placement = problem:placement() } }
    expect(#batch):equals(4)
    for i, milliseconds in ipairs { 12, 8, 12, 11 } do expect_step(batch[i], milliseconds) end
    expect(#problem:evaluate_batch {}):equals(0)
  end)
  it('keeps the schedule of a strategy', function()
    local found = problem:strategy { placement = apart, schedule = 'lifo' }
    expect_step(problem:evaluate(found), 8)
    expect(problem:evaluate_batch({ found })[1].step_time_s):equals(found.metrics.step_time_s)
    expect(problem:timeline(found).metrics.step_time_s):equals(found.metrics.step_time_s)
  end)
  it('takes the schedule of its problem when it is only a placement', function()
    local other = trinity.problem { graph = problem.graph, cluster = problem.cluster, schedule = 'lifo' }
    expect_step(other:evaluate(apart), 8)
    expect_step(other:evaluate { placement = apart }, 12)
    expect_step(other:evaluate { placement = apart, schedule = 'fifo' }, 12)
  end)
  it('is refused with the line of the script', function()
    local function fails(plan, pattern)
      expect(function() problem:evaluate(plan) end):raises('simulator_spec%.lua:%d+: [%l_.:]+ .*' .. pattern)
      expect(function() problem:evaluate_batch { apart, plan } end):raises('simulator_spec%.lua:%d+: [%l_.:]+ .*' .. pattern)
      expect(function() problem:timeline(plan) end):raises('simulator_spec%.lua:%d+: [%l_.:]+ .*' .. pattern)
    end
    fails(placed(problem, { 1, 1, 1, 3 }), "operator 'd' is placed on device 3, expected 1 to 2")
    fails(placed(problem, { 1, 0, 1, 1 }), "operator 'b' is placed on device 0, expected 1 to 2")
    fails(array.int32(3), "a placement of graph 'hand' needs 4 entries, got 3")
    fails(array.double(4), 'expected a placement')
    fails('apart', "expected a placement .*, got string 'apart'")
    fails({ placment = apart }, 'expected a placement')
    fails({ placement = apart, schedule = 7 }, "schedule: field 'schedule': expected a string, got 7")
  end)
end)

describe('a schedule', function()
  local problem = trinity.problem { graph = graph(fork), cluster = cluster { 1, 1 } }
  local apart = placed(problem, { 1, 1, 1, 2 })
  local function step(plan, milliseconds)
    plan.placement = plan.placement or apart
    expect_step(problem:evaluate(plan), milliseconds)
  end
  it('decides which of b and c runs first', function()
    step({ schedule = 'fifo' }, 12)
    step({ schedule = 'lifo' }, 8)
    step({ schedule = 'critical_path' }, 8)
    step({ schedule = 'priority', priority = { 0, 2, 1, 0 } }, 12)
    step({ schedule = 'priority', priority = { 0, -1, 0.5, 0 } }, 8)
    local priority = array.double(4)
    priority[3] = 1
    step({ schedule = 'priority', priority = priority }, 8)
    step({ schedule = 'order', order = { { 1, 2, 3 }, { 4 } } }, 12)
    local first = array.int32(3)
    first[1], first[2], first[3] = 1, 3, 2
    step({ schedule = 'order', order = { first, { 4 } } }, 8)
  end)
  it('repeats the step for micro-batches', function()
    step({ micro_batches = 3, placement = problem:placement() }, 33)
    expect(problem:evaluate({ placement = apart, micro_batches = 3 }).transfers):equals(3)
    -- Tasks 1 to 4 are the first micro-batch. d runs 3-8 and 8-13, the rest meanwhile.
    step({ schedule = 'order', micro_batches = 2, order = { { 1, 3, 5, 7, 2, 6 }, { 4, 8 } } }, 13)
  end)
  it('is refused when it does not fit', function()
    local function fails(plan, pattern)
      plan.placement = apart
      expect(function() problem:evaluate(plan) end):raises('simulator_spec%.lua:%d+: [%l_.:]+ .*' .. pattern)
    end
    fails({ micro_batches = 0 }, "schedule: field 'micro_batches': expected an integer from 1")
    fails({ micro_batches = 1.5 }, "schedule: field 'micro_batches': expected an integer from 1")
    fails({ schedule = 'priority', priority = { 1, 2, 3, '4' } }, "schedule: 'priority': entry 4: expected a number, got string")
    fails({ schedule = 'priority', priority = 7 }, "schedule: 'priority': expected a list or a double array, got 7")
    fails({ schedule = 'priority', priority = array.int32(4) }, "schedule: 'priority': expected a list or a double array, got cdata")
    fails({ schedule = 'order', order = { { 1, 2, 3 }, { 5 } } }, "schedule: 'order': device 2: expected 1 to 4, got 5")
    fails({ schedule = 'order', order = { 1, 2 } }, "schedule: 'order': device 1: expected a list or an int32 array, got 1")
    fails({ schedule = 'order', order = { { 1, 2, 'c' }, {} } }, "schedule: 'order': device 1: entry 3: expected an integer")
    fails({ schedule = 'gpipe', stage = 7 }, "schedule: 'stage': expected a list or an int32 array, got 7")
  end)
end)

describe('metrics', function()
  local problem = trinity.problem { graph = graph(fork), cluster = cluster { 1, 1 } }
  local metrics = problem:evaluate(placed(problem, { 1, 1, 1, 2 }))
  it('have totals and values of every device', function()
    expect(metrics.transfers):equals(1)
    expect(metrics.total_communication_bytes):equals(1e6)
    expect(metrics.peak_communication_bytes):equals(1e6)
    expect(metrics.peak_memory_bytes):equals(math.max(metrics:memory_bytes(1), metrics:memory_bytes(2)))
    expect(metrics:memory_bytes(1)):equals(2e6) -- nobody reads what b made, so it is gone when c runs
    expect(metrics.excess_memory_bytes):equals(0)
    local all, names = metrics:totable(), {}
    for name, value in pairs(metrics) do
      names[#names + 1] = name
      if type(value) ~= 'table' then expect(value):equals(metrics[name])
      else expect(value[2]):equals(metrics[name](metrics, 2)) end
    end
    expect(table.concat(names, ' ')):equals('compute_busy_s device_count excess_memory_bytes feasible memory_bytes peak_communication_bytes '
      .. 'peak_memory_bytes received_bytes rejected samples samples_per_s send_busy_s sent_bytes step_time_s total_communication_bytes transfers')
    expect(all.memory_bytes[1]):equals(2e6)
    expect(metrics.feasible):equals(true)
    expect(metrics.rejected):equals(false)
    expect(metrics.device_count):equals(2)
    expect(metrics:compute_busy_s(1)):near(6 * ms, 1e-12)
    expect(metrics:compute_busy_s(2)):near(5 * ms, 1e-12)
    expect(metrics:send_busy_s(1)):near(1 * ms, 1e-12)
    expect(metrics:sent_bytes(1)):equals(1e6)
    expect(metrics:received_bytes(1)):equals(0)
    expect(metrics:received_bytes(2)):equals(1e6)
    expect(tostring(metrics)):equals 'step 0.012 s, memory 2 MB, communication 1 MB'
  end)
  it('are read by names in a variable, in compiled code too', function()
    local sum = 0
    for _ = 1, 200 do
      for _, name in ipairs { 'samples_per_s', 'step_time_s', 'transfers', 'peak_memory_bytes', 'samples' } do
        sum = sum + metrics[name]
      end
    end
    expect(sum > 200 * metrics.peak_memory_bytes):truthy()
  end)
  it('refuse writing, unknown fields and devices outside the cluster', function()
    local here = 'simulator_spec%.lua:%d+: '
    for _, name in ipairs { 'step_time_s', 'feasible', 'device_count' } do
      expect(function() metrics[name] = 1 end):raises(here .. 'attempt to write to constant location')
    end
    expect(function() metrics.note = 1 end):raises(here .. 'metrics are read%-only')
    expect(metrics.device_count):equals(2)
    expect(function() return metrics.step_time end):raises(here .. "metrics have no field 'step_time', did you mean 'step_time_s'%?")
    for _, device in ipairs { 0, 3, -1, 1.5, 0 / 0 } do
      expect(function() metrics:memory_bytes(device) end):raises(here .. "metrics:memory_bytes: argument 1 %('d'%): expected an integer from 1 to 2, got")
    end
  end)
  it('say what does not fit', function()
    local small = cluster({ 1, 1 }, 1.5e6)
    expect(function() trinity.problem { graph = problem.graph, cluster = small } end):raises 'does not fit'
    local result = trinity.problem({ check_memory = false, graph = problem.graph, cluster = small }):evaluate(placed(problem, { 1, 1, 1, 2 }))
    expect(result.feasible):equals(false)
    expect(result.excess_memory_bytes):equals(0.5e6)
    expect(tostring(result)):matches 'does not fit$'
  end)
end)

describe('a limit', function()
  local problem = trinity.problem { graph = graph(fork), cluster = cluster { 1, 1 } }
  local long, short = placed(problem, { 1, 1, 1, 2 }), problem:placement()
  it('rejects the longer plans and leaves the others alone', function()
    local metrics = problem:evaluate_batch({ long, short }, { reject_above_s = 11.5 * ms })
    expect(metrics[1].rejected and not metrics[1].feasible):equals(true)
    expect(tostring(metrics[1])):equals 'rejected'
    expect(metrics[2].rejected):equals(false)
    expect_step(metrics[2], 11)
    expect(problem:evaluate_batch({ long }, { reject_above_s = math.huge })[1].rejected):equals(false)
    expect(function() problem:evaluate_batch({ long }, { reject_above_s = 0 / 0 }) end)
      :raises "simulator_spec%.lua:%d+: problem:evaluate_batch: option 'reject_above_s': expected a number from 0, got number %-?nan"
  end)
end)

describe('bounds', function()
  it('are of the number of micro-batches of the call, or of the problem', function()
    local problem = trinity.problem { graph = graph(fork), cluster = cluster { 1, 1 } }
    local bounds = problem:bounds()
    expect(bounds.critical_path_s):near(7 * ms, 1e-12) -- a, c, d
    expect(bounds.peak_memory_bytes):equals(2e6)
    expect(problem:bounds(3).work_s):near(3 * bounds.work_s, 1e-12)
    local other = trinity.problem { graph = problem.graph, cluster = problem.cluster, micro_batches = 3 }
    expect(other:bounds().step_time_s):equals(problem:bounds(3).step_time_s)
  end)
end)

-- x and y read what the other device made.
local cross = { { 'a', 1 }, { 'b', 1 }, { 'x', 1, 'a' }, { 'y', 1, 'b' } }
-- Two tensors at once: to one reader on another device, or to readers on two.
local join = { { 'a', 1 }, { 'e', 0, 'a' }, { 'x', 1, 'a', 'e' } }
local spread = { { 'a', 1 }, { 'e', 0, 'a' }, { 'x', 1, 'a' }, { 'y', 1, 'e' } }

describe('rules', function()
  local function step(operators, devices, rules, settings)
    local problem = trinity.problem { graph = graph(operators), cluster = cluster({ 1, 1, 1 }, nil, settings), rules = rules }
    return problem:evaluate(placed(problem, devices))
  end
  it('queue as the cluster says, or otherwise', function()
    expect_step(step(join, { 1, 1, 2 }), 4)
    expect_step(step(join, { 1, 1, 2 }, 'standard'), 4)
    expect_step(step(join, { 1, 1, 2 }, nil, { queue = 'none' }), 3)
    local times = { sender = { 4, 4 }, pair = { 4, 3 }, none = { 3, 3 }, route = { 4, 4 }, fair = { 4, 4 } }
    for queue, expected in trinity.system.sorted_pairs(times) do
      expect_step(step(join, { 1, 1, 2 }, { queue = queue }), expected[1])
      expect_step(step(spread, { 1, 1, 2, 3 }, { queue = queue }), expected[2])
      expect_step(step(cross, { 1, 2, 2, 1 }, { queue = queue }), 3)
    end
  end)
  it('account no memory on request', function()
    expect(0):below(step(cross, { 1, 2, 2, 1 }).peak_memory_bytes)
    local metrics = step(cross, { 1, 2, 2, 1 }, { memory = 'none' })
    expect(metrics.peak_memory_bytes):equals(0)
    expect(metrics.feasible):equals(true)
    expect_step(metrics, 3)
  end)
  it('pause devices and links', function()
    expect_step(step(cross, { 1, 1, 1, 1 }), 4)
    expect_step(step(cross, { 1, 1, 1, 1 }, { device_pause_s = 0.5 * ms }), 5.5)
    expect_step(step(join, { 1, 1, 2 }, { link_pause_s = 2 * ms }), 6)
  end)
  it('of published simulators know no limit of memory, in problems either', function()
    local large = trinity.graph.new { name = 'large' }
    large:add { name = 'a', type = 'Work', outputs = { { bytes = 1e12 } }, measured_time_s = 1, parameter_bytes = 1e13 }
    local spec = { graph = large:build(), cluster = trinity.cluster 'p100x2' }
    expect(function() trinity.problem(spec) end):raises 'simulator_spec%.lua:%d+: trinity%.problem: '
    for _, rules in ipairs { 'compat', 'placeto' } do
      spec.rules = rules
      expect(trinity.problem(spec).rules):equals(rules)
    end
  end)
  it('are refused when misspelt', function()
    local function fails(rules, pattern)
      expect(function() step(cross, { 1, 1, 1, 1 }, rules) end):raises('simulator_spec%.lua:%d+: [%l_.:]+ .*' .. pattern)
    end
    fails({ device_pause_s = -1 }, "rules: field 'device_pause_s': expected 0 to 1000 s, got %-1")
    fails({ link_pause_s = 'long' }, "rules: field 'link_pause_s': expected a number")
    fails(7, "option 'rules': expected 'standard', 'compat', 'placeto', 'doppler' or a table of rules, got 7")
  end)
end)
