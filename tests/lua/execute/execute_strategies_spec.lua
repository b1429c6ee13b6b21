-- Strategies executed for real: whatever a strategy lowers to computes the losses and weights of one device that trains
-- the same samples, dropout included, to the order of sums.

local trinity = require 'trinity'
local util = require 'trinity.base.util'

with_torch()

local function gpt(options)
  return trinity.model('gpt2', util.merged({ batch_size = 2, sequence = 8, layers = 4, hidden = 16, heads = 4,
    vocabulary = 32, positions = 8, fused = false, dropout = 0.1, optimiser = 'adam' }, options))
end

local function run(graph, strategy, devices, options)
  local problem = trinity.problem { graph = graph, cluster = trinity.cluster('p100x' .. devices) }
  return trinity.execute(problem, problem:strategy(strategy), util.merged({ steps = 3, warm_up = 0,
    double_precision = true, quiet = true, keep_weights = true }, options))
end

--- The largest difference of losses and weights, over the largest number of the loss or weight. Biases of keys have no
--- gradient (a softmax does not see what all of its arguments share): Adam divides what rounding leaves by itself.
local function difference(one, other)
  local worst = 0
  for i, loss in ipairs(one.losses) do worst = math.max(worst, math.abs(loss - other.losses[i]) / math.abs(loss)) end
  expect(#other.weights):equals(#one.weights)
  for i, weight in ipairs(one.weights) do
    expect(other.weights[i].name):equals(weight.name)
    local largest, off = 0, 0
    for k, value in ipairs(weight.values) do
      largest = math.max(largest, math.abs(value))
      off = math.max(off, math.abs(value - other.weights[i].values[k]))
    end
    if not weight.name:find 'key/bias' then worst = math.max(worst, off / largest) end
  end
  return worst
end

local pipeline, data = { pipeline = 2 }, { data = 2 }
local parts = {
  { 'gpipe', 'schedule', { mesh = pipeline, schedule = 'gpipe', micro_batches = 2 } },
  { '1f1b', 'schedule', { mesh = pipeline, schedule = '1f1b', micro_batches = 2 } },
  { 'interleaved', 'schedule', { mesh = pipeline, schedule = 'interleaved', virtual_stages = 2, micro_batches = 2 } },
  { 'zb-h1', 'schedule', { mesh = pipeline, schedule = 'zb-h1', micro_batches = 2 } },
  { 'zb-v', 'schedule', { mesh = pipeline, schedule = 'zb-v', virtual_stages = 2, micro_batches = 4 } },
  { 'dualpipe-v', 'schedule', { mesh = pipeline, schedule = 'dualpipe-v', virtual_stages = 2, micro_batches = 4 } },
  { 'all-reduce', 'data', { mesh = data } },
  { 'ZeRO 1', 'data', { mesh = data, shard = 1 } },
  { 'ZeRO 2', 'data', { mesh = data, shard = 2 } },
  { 'ZeRO 3', 'data', { mesh = data, shard = 3 } },
  { 'tensor', 'tensor', { mesh = { tensor = 2 } } },
  { 'sequence', 'tensor', { mesh = { tensor = 2 }, sequence_parallel = true } },
  { 'parts sent', 'tensor', { mesh = { tensor = 2 }, scatter_gather = true } },
  { 'sums overlapped', 'tensor', { mesh = { tensor = 2 }, overlap_tensor = true } },
  { 'context', 'context', { mesh = { context = 2 } } },
  { 'recompute', 'recompute', { recompute = 'full' } },
  { 'selective', 'recompute', { recompute = 'selective' } },
}

local function together(a, b)
  return util.merged(util.merged(a, b), { mesh = util.merged(a.mesh or {}, b.mesh or {}) })
end

local function devices_of(mesh)
  return (mesh.data or 1) * (mesh.pipeline or 1) * (mesh.tensor or 1) * (mesh.context or 1)
end

local graph, alone = gpt(), {}
--- One device on as many micro-batches as all replicas have.
local function on_one(micro_batches)
  alone[micro_batches] = alone[micro_batches] or run(graph, { mesh = {}, micro_batches = micro_batches }, 1)
  return alone[micro_batches]
end

local function expect_same(strategy)
  local expected = on_one((strategy.micro_batches or 1) * (strategy.mesh.data or 1))
  local found = run(graph, strategy, devices_of(strategy.mesh))
  local off = difference(expected, found)
  expect(off):near(0, 1e-9)
end

describe('a small GPT trains as on one device:', function()
  for i, first in ipairs(parts) do
    for k = i + 1, #parts do
      local second = parts[k]
      if first[2] ~= second[2] then
        it(first[1] .. ' and ' .. second[1], function() expect_same(together(first[3], second[3])) end)
      end
    end
  end
  it('zero bubble, ZeRO 3, tensor and recompute', function()
    expect_same { mesh = { pipeline = 2, data = 2, tensor = 2 }, schedule = 'zb-h1', micro_batches = 2, shard = 3,
      recompute = 'full' }
  end)
  it('interleaved, ZeRO 2, context and recompute', function()
    expect_same { mesh = { pipeline = 2, data = 2, context = 2 }, schedule = 'interleaved', virtual_stages = 2,
      micro_batches = 2, shard = 2, recompute = 'full' }
  end)
end)

describe('where sums keep their order', function()
  it('bits are the same: what is computed again, and a pipeline without shared weights', function()
    local again, expected = run(graph, { mesh = {}, micro_batches = 2, recompute = 'full' }, 1), on_one(2)
    for i, loss in ipairs(expected.losses) do expect(again.losses[i]):equals(loss) end
    local mlp = trinity.model('mlp', { inputs = 6, hidden = { 5 }, classes = 3, batch_size = 4, optimiser = 'adam' })
    local one = run(mlp, { mesh = {}, micro_batches = 4 }, 1)
    for _, schedule in ipairs { 'gpipe', '1f1b', 'zb-h1' } do
      local two = run(mlp, { mesh = { pipeline = 2 }, schedule = schedule, micro_batches = 4 }, 2)
      for i, loss in ipairs(one.losses) do
        if schedule == 'gpipe' then
          expect(two.losses[i]):near(loss, 1e-14) -- it adds its gradients up in reverse
        else
          expect(two.losses[i]):equals(loss)
        end
      end
    end
  end)
  it('another seed gives other numbers, and a test that compares them fails', function()
    local other = run(graph, { mesh = {}, micro_batches = 2 }, 1, { seed = 2 })
    expect(difference(on_one(2), other) > 1e-3):equals(true)
  end)
end)
