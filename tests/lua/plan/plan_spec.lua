-- trinity.plan: nothing better than what it finds is in its space, what it prints is what is simulated, dimensions,
-- rewards and moves of one's own, uneven stages, what does not fit.

local trinity = require 'trinity'
local graphs = require 'support.graphs'
local space = require 'trinity.plan.space'
local text = require 'trinity.plan.text'

local function gpt(micro_batch, changes) return graphs.gpt2(micro_batch, merged({ vocabulary = 8192 }, changes)) end

--- An H100 with so much memory.
local function h100_of(bytes, host_bandwidth_bytes_per_s)
  return trinity.devices.with('h100', { memory_bytes = bytes, reserved_memory_bytes = 0,
    host_bandwidth_bytes_per_s = host_bandwidth_bytes_per_s })
end

local function one_gpu(bytes)
  return trinity.cluster { name = 'one', device_types = { own = h100_of(bytes) }, links = {},
    devices = { { name = 'd', type = 'own' } } }
end

local cluster = trinity.cluster 'dgx_h100'

--- Simulates every point of a space, stages 'even': the best step time that fits, and the number.
local function exhaust(given, about, graph, on)
  local points, best, count = space.new('plan_spec', given, about, {}), math.huge, 0
  local problems = {}
  for _, family in ipairs(points:families()) do
    points:each(family, function(point, reason)
      if reason then return end
      problems[point.micro_batch] = problems[point.micro_batch]
        or trinity.problem { check_memory = false, graph = graph(point.micro_batch), cluster = on }
      local ok, metrics = pcall(problems[point.micro_batch].evaluate, problems[point.micro_batch], space.strategy(point))
      if ok then
        count = count + 1
        if metrics.feasible then best = math.min(best, metrics.step_time_s) end
      end
    end)
  end
  return best, count
end

describe('a plan', function()
  local small = { stages = 'even', bucket_bytes = 25000000, context = { 1, 2 }, recompute = { 'none', 'full' } }

  it('is the best of its space, where all of it is simulated', function()
    local about = { devices = 8, per_node = 8, layers = 6, batch = 16, experts = false, unequal = false }
    local best, count = exhaust(small, about, gpt, cluster)
    expect(count > 300):truthy()
    local found = trinity.plan { graph = gpt, cluster = cluster, global_batch = 16, space = small, plans = 1,
      simulations = 100000 }
    expect(found.left):equals(0)
    expect(found.plans[1].step_time_s):equals(best)
    expect(found.counts.simulated < count / 2):truthy()
  end)

  local function tight(bytes)
    local spec = { name = 'tight', device_types = { tight = h100_of(bytes, 450e9) }, devices = {}, links = {}, queue = 'route' }
    for i = 1, 4 do
      spec.devices[i] = { name = 'd' .. i, type = 'tight', node = 'n' }
      spec.links[i] = { from = 'd' .. i, to = 'switch', bandwidth_bytes_per_s = 1e11, latency_s = 2e-6 }
    end
    return trinity.cluster(spec)
  end
  local about_tight = { devices = 4, per_node = 4, layers = 6, batch = 8, experts = false, unequal = false }

  it('is the best of its space where memory rules plans out', function()
    local given = merged({ optimizer_offload_fraction = 0, activation_offload_fraction = 0 }, small)
    local best, count = exhaust(given, about_tight, gpt, tight(420e6))
    local found = trinity.plan { graph = gpt, cluster = tight(420e6), global_batch = 8, space = given, plans = 1,
      simulations = 100000 }
    expect(best < math.huge):truthy()
    expect(found.pruned.memory > 0):truthy()
    expect(found.plans[1].step_time_s):equals(best)
    expect(found.counts.simulated < count):truthy()
  end)

  it('has the shares on the host that the best of all shares has', function()
    local given = { tensor = 4, micro_batch = { 4, 8 }, recompute = { 'none', 'full' }, context = 1, stages = 'even', bucket_bytes = 25000000 }
    local all = merged({ optimizer_offload_fraction = space.offload_fractions,
      activation_offload_fraction = { 0, 1 / 6, 3 / 6, 4 / 6, 1 } }, given) -- whole layers
    for _, bytes in ipairs { 160e6, 120e6, 100e6 } do
      local best = exhaust(all, about_tight, gpt, tight(bytes))
      local found = trinity.plan { graph = gpt, cluster = tight(bytes), global_batch = 8, space = given, plans = 1, quiet = true }
      expect(found.plans[1].step_time_s):equals(best)
    end
  end)

  it('prints what is simulated, bounds below it, and fields that make the same strategy', function()
    local found = trinity.plan { graph = gpt, cluster = cluster, global_batch = 32, simulations = 12 }
    expect(#found.plans):equals(5)
    for i, plan in ipairs(found.plans) do
      expect(plan.lower_bound_s <= plan.step_time_s):truthy()
      expect(found.lower_bound_s <= plan.step_time_s):truthy()
      expect(plan.strategy.metrics.step_time_s):equals(plan.step_time_s)
      expect(plan.strategy.metrics.peak_memory_bytes):equals(plan.memory_bytes)
      expect(plan.micro_batch * plan.micro_batches * plan.data):equals(32)
      if i > 1 then expect(found.plans[i - 1].step_time_s <= plan.step_time_s):truthy() end
    end
    local sum = found.left + found.counts.simulated - found.counts.simulated_neighbours
    for _, points in pairs(found.pruned) do sum = sum + points end
    expect(found.counts.neighbours > 0):truthy()
    expect(sum):equals(found.counts.points)
  end)

  it('leaves what is too large to simulate, and says so', function()
    local sheet = trinity.cluster(cluster.name, { constants = 'data_sheet' })
    local found = trinity.plan { graph = gpt, cluster = sheet, global_batch = 16, plans = 1, simulations = 100000, space = small, tasks = 2 * gpt(1).operators }
    expect(found.too_large > 0):truthy()
    expect(found.left):equals(found.too_large)
    expect(found.lower_bound_s < found.plans[1].step_time_s):truthy()
    for _, plan in ipairs(found.simulated) do expect(plan.micro_batches <= 2):truthy() end
    local all = trinity.plan { graph = gpt, cluster = sheet, global_batch = 16, plans = 1, simulations = 100000, space = small }
    expect(found.lower_bound_s <= all.plans[1].step_time_s):truthy()
  end)

  it('takes dimensions that are fixed, listed, or functions of the point', function()
    local found = trinity.plan { graph = gpt, cluster = cluster, global_batch = 16, space = {
      pipeline = 2, tensor = { 1, 2 }, micro_batch = function(point)
        expect(point.tensor):equals(nil)
        return { 2 }
      end, recompute = function(point) return point.tensor == 1 and { 'none' } or { 'full' } end } }
    for _, plan in ipairs(found.simulated) do
      expect(plan.pipeline):equals(2)
      expect(plan.micro_batch):equals(2)
      expect(plan.recompute):equals(plan.tensor == 1 and 'none' or 'full')
    end
    for _, plan in ipairs(trinity.plan { graph = gpt, cluster = cluster, global_batch = 16, space = {
      micro_batch = { 1, 2, 4 }, data = function(point) return { 4 / point.micro_batch } end } }.simulated) do
      expect(plan.data * plan.micro_batch):equals(4)
    end
    expect(function()
      trinity.plan { graph = gpt, cluster = cluster, global_batch = 16, space = { tensors = 2 } }
    end):raises "unknown dimension 'tensors', did you mean 'tensor'"
  end)

  it('takes dimensions of one\'s own, rewards, and moves', function()
    trinity.plan.dimension('links', { values = { 'all_gather', 'ring' }, apply = function(strategy, value)
      strategy.bucket_bytes = value == 'ring' and 1000000 or 5000000
    end })
    local tried = 0
    trinity.plan.move('mine', function() tried = tried + 1 return {} end)
    local seen = {}
    local found = trinity.plan { graph = gpt, cluster = cluster, global_batch = 16, plans = 2,
      space = { links = { 'all_gather', 'ring' }, tensor = 1, pipeline = 1, context = 1, micro_batch = 1, zero_stage = { 0, 1 },
        recompute = 'none' },
      reward = function(metrics, strategy)
        seen[#seen + 1] = strategy.bucket_bytes
        return -metrics.peak_memory_bytes
      end }
    expect(#seen > 3):truthy()
    expect(tried > 0):truthy()
    for _, plan in ipairs(found.simulated) do
      expect(plan.memory_bytes >= found.plans[1].memory_bytes):truthy()
    end
    expect(found.plans[1].zero_stage):equals(1)
  end)

  it('gives the last stage fewer layers where the head is worth several, and wins by it', function()
    local function big_head(b)
      return gpt(b, { vocabulary = 131072, layers = 16, hidden = 1024, sequence = 1024, positions = 1024 })
    end
    local common = { tensor = 1, context = 1, micro_batch = 1, data = 1, pipeline = 4, recompute = 'none' }
    local function best(stages)
      common.stages = stages
      return trinity.plan { graph = big_head, cluster = cluster, global_batch = 32, space = common,
        simulations = 1000 }.plans[1]
    end
    local even, uneven = best 'even', best 'balanced'
    expect(uneven.step_time_s < 0.8 * even.step_time_s):truthy()
    expect(uneven.stages[#uneven.stages] < uneven.stages[1]):truthy()
  end)

  it('shows no pipeline bubble in a plan of one stage', function()
    local plan = trinity.plan { graph = gpt, cluster = cluster, global_batch = 32, plans = 1,
      space = { data = 8, micro_batch = 4, zero_stage = 2, tensor = 1, context = 1, pipeline = 1 } }.plans[1]
    local shares = text.shares(plan)
    expect(shares.between_stages):equals(0)
    expect(shares.rest > 0):truthy()
    expect(shares.computing + shares.within_stages + shares.rest):near(plan.step_time_s, 1e-12)
  end)

  it('divides a step into what its breakdown counts, but for 3 % of it', function()
    for _, within in ipairs { { tensor = 1, pipeline = 4 }, { tensor = 2, pipeline = 2 }, { tensor = 1, pipeline = 2,
      zero_stage = 1 } } do
      local plan = trinity.plan { graph = gpt, cluster = cluster, global_batch = 32, plans = 1, quiet = true,
        space = merged({ context = 1, micro_batch = 2 }, within) }.plans[1]
      local shares, waits, bubble_s = text.shares(plan), 0, 0
      local devices = plan.strategy:breakdown().devices
      for _, device in ipairs(devices) do
        waits = waits + device.exposed_s.splits / #devices
        bubble_s = bubble_s + (device.idle_s + device.exposed_s.activations) / #devices
      end
      expect(shares.within_stages):near(waits, 0.03 * plan.step_time_s)
      expect(shares.between_stages):near(bubble_s, 0.03 * plan.step_time_s)
      expect(bubble_s > 0.03 * plan.step_time_s):truthy()
    end
  end)

  it('lists plans with the same text in one line by memory', function()
    local found = trinity.plan { graph = gpt, cluster = cluster, global_batch = 16, quiet = true, simulations = 4 }
    local one = found.plans[1]
    local slower = setmetatable({ cost = 2 * one.cost }, { __index = one })
    found.pareto = { one, one, slower, found.plans[2] }
    local lines = text.report(found, 1)
    expect(select(2, lines:gsub('\n  [^\n]* s, [^\n]*B: ', ''))):equals(2)
    expect(lines):matches(('\n  %.4g s, [^,\n]* to %.4g s, '):format(one.step_time_s, 2 * one.step_time_s))
  end)

  it('recomputes the number of layers of a stage that memory requires, and is faster by it', function()
    local function best(bytes, recompute)
      return trinity.plan { graph = gpt, cluster = one_gpu(bytes), global_batch = 32, quiet = true,
        space = { micro_batch = 8, recompute = recompute, optimizer_offload_fraction = 0,
          activation_offload_fraction = 0 } }.plans[1]
    end
    local plain, full = best(1e12, 'none'), best(1e12, 'full')
    local between = (plain.memory_bytes + full.memory_bytes) / 2
    expect(best(between, 'none')):equals(nil)
    local some, all = best(between, 'by_layer'), best(between, 'full')
    expect(some.recomputed[1] > 0 and some.recomputed[1] < 6):truthy()
    expect(some.memory_bytes <= between):truthy()
    expect(some.bounds.step_time_s <= some.step_time_s):truthy()
    expect(plain.step_time_s < some.step_time_s and some.step_time_s < all.step_time_s):truthy()
    local free = best(between) -- by a move
    expect(free.step_time_s <= some.step_time_s):truthy()
    expect(#free.strategy:export { format = 'megatron', lossless = true } > 0):truthy()
  end)

  it('says what is missing where nothing fits', function()
    local found = trinity.plan { graph = gpt, cluster = one_gpu(20e6), global_batch = 4 }
    expect(#found.plans):equals(0)
    expect(found.nearest.excess_bytes > 0):truthy()
    expect(found.nearest.memory_bytes - found.nearest.excess_bytes):equals(20e6)
    found.refused = { { points = 7, reason = 'a sequence of 256 is not divided by 3' } }
    local lines = text.nothing(found)
    expect(lines[1]):matches '^no plan fits'
    expect(lines[#lines]):equals 'refused, 7 points: a sequence of 256 is not divided by 3'
    found = trinity.plan { graph = gpt, cluster = trinity.cluster { name = 'dgx_a100x3', device_types = { tiny = h100_of(20e6) }, links = {
      { from = 'a', to = 'b', bandwidth_bytes_per_s = 1e9, latency_s = 0 }, { from = 'b', to = 'c', bandwidth_bytes_per_s = 1e9, latency_s = 0 } },
      devices = { { name = 'a', type = 'tiny' }, { name = 'b', type = 'tiny' }, { name = 'c', type = 'tiny' } } }, global_batch = 4 }
    expect(table.concat(text.nothing(found), '\n')):matches 'what would help: .*dgx_a100_80gb, whose GPUs have more memory'
    expect(table.concat(found.nearest.helps, ' ')):matches '^[^-]*%-%-sequence$' -- nothing was excluded
    found = trinity.plan { graph = gpt, cluster = found.cluster, global_batch = 4, space = { zero_stage = 1, recompute = 'none', tensor = 1 } }
    expect(table.concat(found.nearest.helps, '; ')):matches '%-%-recompute full; other values of %-%-tensor; '
    found = trinity.plan { graph = gpt, cluster = found.cluster, global_batch = 4,
      space = { tensor = 3, activation_offload_fraction = 0 } }
    expect(found.nearest):equals(nil) -- no split by 3 is possible, so that memory is not what is missing
    expect(table.concat(text.nothing(found), '\n'))
      :matches '^no valid plan: every configuration .*\nrefused: .*which 3 does not divide'
    local function why(batch, given)
      return text.nothing(trinity.plan { graph = gpt, cluster = cluster, global_batch = batch, space = given })[2]
    end
    expect(why(16, { tensor = 8, pipeline = 4, data = 2 }))
      :matches 'refused: %d+ configurations: the mesh has more devices than the cluster'
    expect(why(7, { tensor = 1, pipeline = 1, data = 2 }))
      :matches 'the global batch is no multiple of micro%-batch x data'
    expect(why(16, { micro_batch = 5 })):matches 'micro%-batch x data that divides the global batch of 16'
  end)
end)

describe('the picture of a plan', function()
  it_golden('plan_picture', function()
    local chapter = trinity.files.read(root .. '/lib/trinity/manual/planning.md')
    local config = chapter:match '```json file=config%.json\n(.-)```'
    local command = chapter:match '\nbuild/trinity (plan [^\n]*) %-%-quiet %-%-picture plan%.svg'
    local path, out = temporary '.json', temporary '.svg'
    trinity.files.write(path, config)
    trinity_says(("%s --run none --quiet --picture '%s'"):format(command:gsub('config%.json', path), out), 0)
    return trinity.files.read(out)
  end, 'lib/trinity/report/pictures/plan.svg')
end)
