-- Pipelines: searches on them, the picture of their traces, recomputation, replicated stages.

local core = require 'trinity.core'
local trinity = require 'trinity'
local pipelines = dofile(root .. '/tests/lua/support/pipelines.lua')

local ms = 1e-3

local cluster, chain_graph, pipeline = pipelines.cluster, pipelines.chain, pipelines.problem

-- A stage a layer.
local function staged(problem) return problem:placement_by_unit(function(unit) return unit end) end

describe('the stages of a placement', function()
  -- Every part of equal work a device, with the labels where the loss reads them: their operator comes first.
  local model = trinity.model('gpt2', { layers = 6, sequence = 128 })
  local problem = trinity.problem { graph = model, cluster = trinity.cluster 'p100x4', rules = { memory = 'none' } }
  local placement, last = trinity.methods.contiguous(problem, { quiet = true }).placement, 1
  local number = {}
  for op = 1, model.operators do
    number[model:operator(op).name], last = op, math.max(last, placement[op])
  end
  local labels, loss = number.labels, number.loss
  for op = 1, model.operators do
    if model.unit_of[op] == model.unit_of[labels] then placement[op] = placement[loss] end
  end
  it('follow the gradients, so that labels may be on the last one', function()
    expect(last):equals(4)
    expect(placement[labels]):equals(placement[loss])
    for _, schedule in ipairs { '1f1b', 'pipedream', 'gpipe' } do
      local plain = problem:evaluate { placement = placement, schedule = schedule, micro_batches = 8 }
      local given = problem:evaluate { placement = placement, schedule = schedule, micro_batches = 8, stage = placement }
      expect(plain.step_time_s):equals(given.step_time_s)
      expect(plain.peak_memory_bytes):equals(given.peak_memory_bytes)
    end
  end)
  it('are refused by name where they form a cycle', function()
    local circle = problem:placement()
    for op = 1, model.operators do circle[op] = placement[op] == 4 and 1 or placement[op] end
    local function evaluate() problem:evaluate { placement = circle, schedule = '1f1b', micro_batches = 8 } end
    expect(evaluate):raises "operator '[^']+' in stage 1 on device 1 reads '[^']+' in stage 3 on device 3"
    expect(evaluate):raises "Use field 'stage'"
  end)
end)

describe('a search on a pipeline', function()
  -- With layers on nodes 1, 2, 1 the order of 1F1B blocks itself.
  local problem = pipeline(chain_graph { { 1, 8 }, { 1, 8 }, { 1, 8 } }, cluster { 1, 1 })
  local blocked = problem:placement_by_unit(function(unit) return unit == 2 and 2 or 1 end)
  it('goes on where a placement contradicts the order', function()
    expect(function() problem:evaluate(blocked) end):raises "pipelines_spec%.lua:%d+: problem:evaluate: the order contradicts graph 'chain'"
    expect(function() problem:evaluate_batch { blocked } end):raises 'the order contradicts'
    for _, name in ipairs { 'random', 'annealing', 'hierarchical', 'tapp' } do
      local found = trinity.methods[name](problem, { evaluations = 40, quiet = true })
      expect(found.metrics.feasible):equals(true)
      expect(found.metrics.step_time_s):below(0.073)
    end
  end)
  it('returns what does not fit when nothing fits', function()
    local found = trinity.search.run('blocked', problem, trinity.search.options('blocked', {}, { quiet = true }),
      function(run)
        local rewards, metrics = run:evaluate { blocked, blocked }
        expect(metrics[1].feasible):equals(false)
        expect(metrics[1].step_time_s):near(problem:evaluate({ placement = blocked, micro_batches = 8 }).step_time_s, 1e-12)
        expect(rewards[1]):near(-10 * metrics[1].step_time_s, 1e-9)
      end)
    expect(found.metrics.feasible):equals(false)
  end)
  it('counts placements that no interleaving takes', function()
    local other = pipeline(problem.graph, cluster { 1, 1, 1 }, 'interleaved', 4)
    local found = trinity.methods.random(other, { evaluations = 60, quiet = true })
    expect(found.metrics.feasible):equals(true)
  end)
end)

it('orders of four stages and eight micro-batches are the golden picture', function() -- their idle time: chunk_order_test.cpp
  --- The work of each node, a row a chunk: forward passes of micro-batch 1 as 1, backward ones as a. A layer takes a cell
  --- forwards, two backwards; layer l is on node (l - 1) % 4 + 1.
  local function picture(schedule, chunks)
    local layers, stage, rows, lines, last = {}, {}, {}, {}, 0
    for l = 1, 4 * chunks do layers[l], rows[l] = { 1 / chunks, 8 }, {} end
    local problem = trinity.problem { graph = chain_graph(layers), cluster = cluster { 1, 1, 1, 1 } }
    local n, placement = problem.graph.operators, problem:placement()
    for op = 1, n do
      stage[op] = tonumber(problem.graph:operator(op).name:match '^layer(%d+)')
      placement[op] = (stage[op] - 1) % 4 + 1
    end
    local timeline = problem:timeline { placement = placement, schedule = schedule, micro_batches = 8, stage = stage }
    local function cells(time_s) return math.floor(time_s * chunks / ms + 0.5) end
    for task = 1, timeline.tasks do
      local layer, micro = stage[(task - 1) % n + 1], math.ceil(task / n)
      local phase = problem.graph:operator((task - 1) % n + 1).phase
      local row = rows[(layer - 1) % 4 * chunks + math.ceil(layer / 4)]
      for at = cells(timeline.start_s[task]) + 1, phase == 'update' and 0 or cells(timeline.end_s[task]) do
        expect(row[at]):equals(nil)
        row[at], last = string.char((phase == 'forward' and 48 or 96) + micro), math.max(last, at)
      end
    end
    for r, row in ipairs(rows) do
      for at = 1, last do row[at] = row[at] or '.' end
      local chunk = chunks > 1 and (', chunk %d'):format((r - 1) % chunks + 1) or ''
      lines[r] = ('device %d%s  %s\n'):format(math.ceil(r / chunks), chunk, table.concat(row))
    end
    return table.concat(lines)
  end
  local golden = core.read_file(root .. '/tests/golden/pipelines.txt')
  for schedule, chunks in trinity.system.sorted_pairs { gpipe = 1, ['1f1b'] = 1, interleaved = 2 } do
    expect(golden:find(picture(schedule, chunks), 1, true) ~= nil):equals(true)
  end
end)

describe('costs of a micro-batch', function()
  -- A step of AlexNet on one device, and how many operators run in a micro-batch and once. A launch costs launch_s.
  local function step(batch_size, micro_batches, launch_s)
    local device = trinity.devices.with('p100', { launch_s = launch_s })
    local graph = trinity.model('alexnet', { batch_size = batch_size })
    local problem = trinity.problem { graph = graph, cluster = trinity.cluster { device_types = { gpu = device },
      devices = { { name = 'a', type = 'gpu' } }, links = {} } }
    local placement, each, once = problem:placement(), 0, 0
    local timeline = problem:timeline(placement)
    for op = 1, #placement do
      if timeline.end_s[op] > timeline.start_s[op] then -- inputs and views are never launched
        if graph:operator(op).phase == 'update' then once = once + 1 else each = each + 1 end
      end
    end
    local metrics = problem:evaluate { placement = placement, schedule = 'gpipe', micro_batches = micro_batches }
    return metrics.step_time_s, each, once
  end
  it('come from the cost model at its size, so that fixed overheads count in each', function()
    local launch_s = 1e-3
    local whole, each, once = step(64, 1, launch_s)
    local parts = step(8, 8, launch_s)
    expect(once):equals(8) -- AlexNet's layers with weights
    expect(each > 4 * once):truthy()
    expect(parts > 2 * whole):truthy()
    -- Every operator of a part is launched for itself; updates are not.
    expect(whole - step(64, 1, 0)):near((each + once) * launch_s, 1e-6)
    expect(parts - step(8, 8, 0)):near((8 * each + once) * launch_s, 1e-6)
    -- Without launches parts still read all weights again.
    expect(step(8, 8, 0) > 1.05 * step(64, 1, 0)):truthy()
  end)
end)

describe('recomputation', function()
  it('of a network leaves its weights and losses as they are', function()
    local graph = trinity.model('alexnet', { batch_size = 8 })
    local problem = trinity.problem { graph = graph, cluster = trinity.cluster 'p100x2' }
    local half = math.floor(graph.units / 2)
    local placement = problem:placement_by_unit(function(unit) return unit <= half and 1 or 2 end)
    local again, origin = graph:recompute { segment = placement }
    local other = trinity.problem { graph = again, cluster = problem.cluster }
    local same = other:placement()
    for op = 1, #same do same[op] = placement[origin[op]] end
    local function run(p, where) return p:evaluate { placement = where, schedule = 'gpipe', micro_batches = 8 } end
    local before, after = run(problem, placement), run(other, same)
    expect(before.step_time_s):below(after.step_time_s)
    expect(after:memory_bytes(1)):below(before:memory_bytes(1))
    expect(again.parameters):equals(graph.parameters)
  end)
  it('is refused where it cannot be', function()
    local graph = chain_graph { { 1, 8 }, { 1, 8 } }
    local function fails(options, pattern)
      expect(function() graph:recompute(options) end):raises('pipelines_spec%.lua:%d+: graph:recompute: .*' .. pattern)
    end
    fails({}, "option 'segment' is missing")
    fails(7, "argument 1 %('options'%): expected")
    fails({ segment = { 1, 1, 1, 1, 1, -1 } }, "field 'stage': expected 0 to %d+, got %-1")
  end)
end)

describe('replicated stages', function()
  it('divide samples and reduce gradients', function()
    local graph = chain_graph { { 2, 1e6 }, { 1, 8 } }
    local problem = trinity.problem { graph = graph, cluster = cluster { 1, 1 } }
    local placement = staged(problem)
    local copies, origin, stage, replica = graph:replicate_stages { stage = placement, replicas = { 2, 1 },
      algorithm = 'ring' }
    local wide = trinity.problem { graph = copies, cluster = cluster { 1, 1, 1 } }
    local where = wide:placement()
    for op = 1, #where do where[op] = stage[op] == 1 and replica[op] or 3 end
    local metrics = wide:evaluate { placement = where, schedule = '1f1b', stage = stage, micro_batches = 4 }
    expect(metrics:compute_busy_s(1)):near(metrics:compute_busy_s(2), 1e-12)
    -- Halves of 1 MB each way a micro-batch, and 1 MB of gradients there and back once.
    expect(metrics.total_communication_bytes):near(4 * 2e6 + 2e6, 100)
    local whole = problem:evaluate { placement = placement, schedule = '1f1b', stage = placement, micro_batches = 4 }
    expect(metrics.step_time_s):below(whole.step_time_s)
    for op = 1, #where do
      if origin[op] > 0 then
        expect(copies:operator(op).name):equals(('%s@%d'):format(graph:operator(origin[op]).name, replica[op] - 1))
      end
    end
  end)
  it('take the costs of the network at their share of the batch', function()
    local nodes = cluster { 1, 1, 1 }
    -- Seconds that a replica of the first stage works in 4 micro-batches.
    local function busy_s(whole, stage_of, at_share)
      local graph, _, stage, replica = whole:replicate_stages { stage = stage_of, replicas = { 2, 1 }, at_share = at_share }
      local wide = trinity.problem { graph = graph, cluster = nodes }
      local where = wide:placement()
      for op = 1, #where do where[op] = stage[op] == 1 and replica[op] or 3 end
      local plan = { placement = where, schedule = '1f1b', stage = stage, micro_batches = 4 }
      return wide:evaluate(plan):compute_busy_s(1)
    end
    local function halves(graph)
      local cut = math.floor(graph.units / 2)
      return trinity.problem({ graph = graph, cluster = nodes }):placement_by_unit(function(unit)
        return unit <= cut and 1 or 2
      end)
    end
    -- Measured: half of 2 ms, or 1.5 ms, and twice that backwards.
    local whole, half = chain_graph { { 2, 1e6 }, { 1, 8 } }, chain_graph { { 1.5, 5e5 }, { 1, 8 } }
    expect(busy_s(whole, halves(whole))):near(4 * 3 * ms, 1e-5)
    expect(busy_s(whole, halves(whole), { half, false })):near(4 * 4.5 * ms, 1e-5)
  end)
  it('are refused where they cannot be', function()
    local graph = chain_graph { { 1, 8 }, { 1, 8 } }
    local function fails(options, pattern)
      expect(function() graph:replicate_stages(options) end):raises('pipelines_spec%.lua:%d+: graph:replicate_stages: .*' .. pattern)
    end
    local stage = { 1, 2, 2, 1, 2, 1 }
    fails({ stage = stage }, "option 'replicas' is missing")
    fails({ stage = { 0 }, replicas = { 1 } }, "field 'stage': expected 1 to %d+, got 0")
    fails({ stage = stage, replicas = { 1, 1 }, at_share = { 7 } }, "option 'at_share': expected a graph, got number 7")
    fails({ stage = stage, replicas = { 1, 1 }, at_share = 7 }, "option 'at_share'")
  end)
end)
