-- Simulated against measured step times of mixtures: what is simulated is what the executor does, and how well the two
-- agree is reported as it is.

local array = require 'trinity.base.array'
local core = require 'trinity.core'
local graphs = require 'trinity.graph'
local lowered = require 'trinity.execute.lowered'
local mixtures = require 'studies.whole_loop.mixtures'
local trinity = require 'trinity'

with_torch()

local graph = trinity.model('gpt2', { batch_size = 1, sequence = 8, layers = 4, hidden = 16, heads = 4, vocabulary = 32,
  positions = 8, fused = false })

describe('mixtures', function()
  it_all('are many for two and four workers, and all of them run', function()
    for workers, count in pairs { [2] = 20, [4] = 10 } do
      local problem = trinity.problem { graph = graph, cluster = trinity.cluster('p100x' .. workers) }
      local seen = {}
      for _, entry in ipairs(mixtures.of(workers, count)) do
        expect(seen[entry.name]):equals(nil)
        seen[entry.name] = true
        local run = trinity.execute(problem, problem:strategy(entry.strategy), { steps = 1, warm_up = 0, quiet = true })
        expect(run.losses[1] > 0):equals(true)
      end
      expect(function() mixtures.of(workers, count + 1) end):raises(('expected at most %d mixtures'):format(count))
    end
    expect(function() mixtures.of(3, 1) end):raises 'expected 2 or 4 devices, got 3'
  end)
  it_all('are simulated and measured', function()
    for _, devices in ipairs { { 'cpu:0', 'cpu:1' }, { 'cpu:0', 'cpu:1', 'cpu:0', 'cpu:1' } } do
      local about = mixtures.summary(mixtures.measure(graph, { devices = devices, count = 2, rounds = 2, seed = 1 }))
      expect(#about.rows):equals(2)
      for _, row in ipairs(about.rows) do
        expect(row.simulated_s > 0):equals(true)
        expect(row.measured_s > 0):equals(true)
      end
      expect(about.mean_error <= about.largest_error):equals(true)
    end
    expect(function()
      mixtures.measure(graph, { devices = { 'cpu:0', 'cpu:0' }, count = 1, rounds = 1, seed = 1 })
    end):raises "option '%-%-devices': expected at least two different cores"
  end)
  it('have a mean error and a rank correlation', function()
    local about = mixtures.summary { { name = 'a', simulated_s = 1, measured_s = 2, halves_s = { 1, 2 } },
      { name = 'b', simulated_s = 3, measured_s = 4, halves_s = { 2, 3 } },
      { name = 'c', simulated_s = 2, measured_s = 8, halves_s = { 3, 1 } } }
    expect(about.mean_error):near((0.5 + 0.25 + 0.75) / 3, 1e-12)
    expect(about.largest_error):near(0.75, 1e-12)
    expect(about.tau):near(1 / 3, 1e-12)
    expect(about.halves_tau):near(-1 / 3, 1e-12)
  end)
end)

describe('what an executor does, written out', function()
  local problem = trinity.problem { graph = graph, cluster = trinity.cluster 'p100x2' }
  local what = lowered(problem, problem:strategy { mesh = { data = 2 }, zero_stage = 2, micro_batches = 2 })
  local executor = core.executor(what.graph.handle, what.placement, 2, what.order, { micro_batches = 2 })
  local made = executor:written_out()
  executor:close()
  local plain = graphs.wrap(made.graph)
  it('has every operator once, and members of collectives read what all hand in', function()
    expect(plain.operators):equals(what.graph.operators)
    local members = 0
    for op = 1, plain.operators do
      local about, original = plain:operator(op), what.graph:operator(made.origin[op])
      expect(about.name):equals(original.name)
      if about.type == 'ReduceScatter' then
        members = members + 1
        expect(#about.inputs):equals(2 * #original.inputs)
      end
    end
    expect(members > 0):equals(true)
  end)
  it('is simulated in its order', function()
    local placement = array.int32(plain.operators)
    for op = 1, plain.operators do placement[op] = what.placement[made.origin[op]] end
    local inner = trinity.problem { graph = plain, cluster = problem.cluster, cost = function() return 1e-3 end }
    local metrics = inner:evaluate { placement = placement, schedule = 'order', order = made.order, micro_batches = 2 }
    local most = math.max(#made.order[1], #made.order[2])
    expect(metrics.step_time_s >= 1e-3 * most):equals(true)
    expect(metrics.step_time_s < 1e-3 * (#made.order[1] + #made.order[2])):equals(true)
  end)
end)
