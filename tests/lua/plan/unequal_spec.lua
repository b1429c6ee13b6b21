-- trinity.plan on heterogeneous devices: bounds below what is simulated whatever devices form a stage, slow devices that stay
-- idle, layers by what fits the smallest device of a stage, moves of devices.

local trinity = require 'trinity'
local bounds = require 'trinity.plan.bounds'
local graphs = require 'support.graphs'
local networks = require 'trinity.plan.networks'
local space = require 'trinity.plan.space'
local stages = require 'trinity.plan.stages'
local unequal = require 'trinity.plan.unequal'

local function gpt(micro_batch, changes)
  return graphs.gpt2(micro_batch, merged({ vocabulary = 8192, dtype = 'float16' }, changes))
end

--- Devices { speed =, memory_bytes = } of one kind otherwise, and links { from, to, bytes a second }.
local function cluster_of(devices, links)
  local spec = { name = 'unlike', device_types = {}, devices = {}, links = {}, queue = 'route' }
  for i, device in ipairs(devices) do
    local kind = trinity.devices.with('h100', { memory_bytes = device.memory_bytes or 80e9, reserved_memory_bytes = 0 })
    local name = ('kind %g %g'):format(device.speed or 1, kind.memory_bytes)
    spec.device_types[name] = kind
    spec.devices[i] = { name = 'd' .. i, type = name, node = device.node or 'n', speed = device.speed }
  end
  for i, link in ipairs(links) do
    spec.links[i] = { from = 'd' .. link[1], to = 'd' .. link[2], bandwidth_bytes_per_s = link[3], latency_s = 2e-6 }
  end
  return trinity.cluster(spec)
end

local function all_linked(count, bandwidth)
  local list = {}
  for a = 1, count - 1 do
    for b = a + 1, count do list[#list + 1] = { a, b, bandwidth } end
  end
  return list
end

describe('a plan for heterogeneous devices', function()
  it('is the best of its space, where all of it is simulated, and all bounds hold', function()
    local on = cluster_of({ { speed = 0.25 }, {}, { speed = 0.25 }, {} }, all_linked(4, 2e10))
    local given = { micro_batch = { 1, 2 }, tensor = { 1, 2 }, context = 1, pipeline = { 1, 2, 4 }, stages = 'even',
      data = function(point) return math.max(1, 4 / point.tensor / point.pipeline) end, recompute = 'none',
      bucket_bytes = 25000000, zero_stage = { 0, 1 }, virtual_stages = 1,
      schedule = { '1f1b', 'gpipe' }, order = { 'natural', 'fastest_first', 'fastest_last' } }
    local found = trinity.plan { graph = gpt, cluster = on, global_batch = 8, space = given, plans = 1,
      simulations = 100000, quiet = true }
    local sorted, problems, best, count, mixed, slow = { 2, 4, 1, 3 }, {}, math.huge, 0, 0, 0
    local points = space.new('unequal_spec', given, { devices = 4, per_node = 4, layers = 6, batch = 8,
      experts = false, unequal = true, counts = { 2, 4 }, natural_sorted = false }, {})
    local nets = networks.new('unequal_spec', gpt, on)
    local devices = unequal.new(on, nets.kinds)
    for _, family in ipairs(points:families()) do
      local sums = { nets:totals(family, false), nets:totals(family, true) }
      points:each(family, function(point, reason)
        if reason then return end
        point = space.kept(point)
        if point.order == 'fastest_first' then point.devices = sorted end
        if point.order == 'fastest_last' then point.devices = { 3, 1, 4, 2 } end
        local b = point.micro_batch
        problems[b] = problems[b] or trinity.problem { check_memory = false, graph = gpt(b), cluster = on }
        local strategy = space.strategy(point)
        strategy.stages = nil
        local ok, metrics = pcall(problems[b].evaluate, problems[b], strategy)
        if not ok then return end
        count = count + 1
        for _, totals in ipairs(sums) do
          local closed_s = bounds.step_time_s(point, totals, devices:stages_of(point, totals.slower))
          expect(closed_s <= metrics.step_time_s):truthy()
          if point.pipeline == 1 and point.data * point.tensor > 2 then -- the slow kind decides
            slow = slow + 1
            expect(closed_s > 1.5 * bounds.step_time_s(point, totals)):truthy()
          end
        end
        local bound = problems[b].handle:mesh_bounds({ strategy })[1]
        expect(bound.refused):equals(nil)
        expect(bound.step_time_s <= metrics.step_time_s):truthy()
        for _, bytes in ipairs(bound.memory_bytes) do expect(bytes <= metrics.peak_memory_bytes):truthy() end
        if point.order == 'natural' and point.pipeline == 2 then mixed = mixed + 1 end
        best = math.min(best, metrics.step_time_s)
      end)
    end
    expect(count > 50 and mixed > 5 and slow > 5):truthy()
    expect(found.left):equals(0)
    expect(found.plans[1].step_time_s):equals(best)
    expect(found.counts.simulated < count):truthy()
  end)

  it('leaves devices idle that are too slow to help', function()
    local on = cluster_of({ {}, {}, { speed = 0.02, node = 'm' }, { speed = 0.02, node = 'm' } }, all_linked(4, 5e9))
    local function plan(within)
      return trinity.plan { graph = gpt, cluster = on, global_batch = 16, quiet = true, space = within }.plans[1]
    end
    local free = plan()
    local all = plan { tensor = 1, context = 1, pipeline = { 1, 2, 4 },
      data = function(point) return 4 / point.pipeline end }
    expect(free.tensor * free.context * free.pipeline * free.data):equals(2)
    expect(free.step_time_s < 0.5 * all.step_time_s):truthy()
  end)

  it('gives a stage the layers that fit the smallest of its devices', function()
    local roomy = cluster_of({ {}, {} }, all_linked(2, 5e10))
    local tight = cluster_of({ {}, { memory_bytes = 340e6 } }, all_linked(2, 5e10))
    local function deep(b) return gpt(b, { layers = 12, vocabulary = 1024 }) end
    local function plan(on)
      return trinity.plan { graph = deep, cluster = on, global_batch = 8, quiet = true, space = {
        tensor = 1, context = 1, data = 1, pipeline = 2, micro_batch = 1, recompute = 'none', schedule = '1f1b',
        stages = 'balanced', order = 'natural' } }.plans[1]
    end
    local even, uneven = plan(roomy), plan(tight)
    expect(even.stages == nil or math.abs(even.stages[1] - even.stages[2]) <= 1):truthy()
    expect(uneven.stages[2] < 6 and uneven.stages[1] > 6):truthy()
    expect(uneven.metrics:memory_bytes(2) <= 340e6):truthy()
    expect(even.metrics:memory_bytes(2) > 340e6):truthy()
  end)

  it('moves devices from stage to stage where no order by speed is as good', function()
    -- links are fast in the ring 1, 3, 2, 4 (whose ends share the embedding), slow from 1 to 2 and from 3 to 4
    local on = cluster_of({ { speed = 1 }, { speed = 0.9 }, { speed = 0.8 }, { speed = 0.7 } }, { { 1, 2, 2e7 },
      { 3, 4, 2e7 }, { 1, 3, 5e10 }, { 3, 2, 5e10 }, { 2, 4, 5e10 }, { 4, 1, 5e10 } })
    local common = { tensor = 1, context = 1, data = 1, pipeline = 4, micro_batch = 1, recompute = 'none',
      schedule = '1f1b' }
    local function plan()
      return trinity.plan { graph = gpt, cluster = on, global_batch = 8, quiet = true, space = common }.plans[1]
    end
    local moved = plan()
    common.order = { 'natural', 'fastest_first', 'fastest_last' }
    local sorted = plan()
    expect(moved.step_time_s < 0.7 * sorted.step_time_s):truthy()
    expect(moved.moved ~= nil and type(moved.order) == 'table'):truthy()
    for i = 1, 4 do
      local a, b = moved.order[i], moved.order[i % 4 + 1]
      expect(a + b ~= 3 and a + b ~= 7):truthy() -- neither 1 and 2 nor 3 and 4
    end
  end)

  it('has a split of the layers that no other is faster than, where all are simulated', function()
    local on = cluster_of({ { speed = 0.7 }, {}, { speed = 0.4 } }, all_linked(3, 2e10))
    local function graph(b) return gpt(b, { layers = 12, vocabulary = 32768 }) end
    local found = trinity.plan { graph = graph, cluster = on, global_batch = 8, quiet = true, space = { tensor = 1,
      context = 1, data = 1, pipeline = 3, micro_batch = 1, recompute = 'none', schedule = '1f1b' } }.plans[1]
    local others, problem = {}, found.problem
    for first = 0, 12 do
      for second = 0, 12 - first do
        others[#others + 1] = merged(found.fields, { stages = { first, second, 12 - first - second } })
      end
    end
    local least_s, count = math.huge, 0
    for _, fields in ipairs(others) do
      local ok, metrics = pcall(problem.evaluate, problem, fields) -- a stage without operators is refused
      if ok then least_s, count = math.min(least_s, metrics.step_time_s), count + 1 end
    end
    expect(count > 70):truthy()
    expect(found.step_time_s):equals(least_s)
  end)

  it('knows how long a layer takes on every stage, relative to the first', function()
    local on = cluster_of({ {}, { speed = 0.5 } }, all_linked(2, 2e10))
    local devices = unequal.new(on, networks.new('unequal_spec', gpt, on).kinds)
    local times = devices:speeds({ mesh = { pipeline = 2 }, devices = { 1, 2 } },
      function(stage) return stage * 1e-3 end, function() return 1 end)
    expect(table.concat(times, ' ')):equals '1 2'
  end)

  it('splits layers so that no part has more than it may', function()
    local function list(...) return table.concat({ ... }, ' ') end
    local cost = { 1, 1, 1, 1, 1, 1, 1, 1 }
    expect(list(unpack(stages.split(cost, 2, 0, 0)))):equals '4 4'
    expect(list(unpack(stages.split(cost, 2, 0, 0, nil, { 8, 3 })))):equals '5 3'
    expect(list(unpack(stages.split(cost, 4, 0, 0, { 1, 2, 2, 1 }, { 8, 8, 1, 8 })))):equals '3 1 1 3'
    expect(stages.split(cost, 2, 0, 0, nil, { 4, 3 })):equals(nil)
  end)
end)
