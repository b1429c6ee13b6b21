-- Real data: the network of 64, 128 and 10 units reads handwritten digits (Alpaydin and Kaynak 1998) as well under every
-- strategy as on one device.

local trinity = require 'trinity'
local util = require 'trinity.base.util'

with_torch()

local seeds = 5
local path = root .. '/../shared/data/digits/digits.csv.gz'

--- The mean accuracy on held-out rows, of seeds from 1.
local function accuracy(strategy, batch_size, options)
  local graph = trinity.model('mlp', { inputs = 64, hidden = { 128 }, classes = 10, batch_size = batch_size })
  local problem, sum = trinity.problem { graph = graph, cluster = trinity.cluster 'p100x4' }, 0
  for seed = 1, seeds do
    sum = sum + trinity.execute(problem, problem:strategy(strategy), util.merged({ data = path, scale = 1 / 16,
      train_rows = 1500, epochs = 40, learning_rate = 0.1, seed = seed, quiet = true }, options)).accuracy
  end
  return sum / seeds
end

describe('digits are read', function()
  local found
  local function alone()
    found = found or accuracy({ mesh = {}, micro_batches = 2 }, 25)
    return found
  end
  it_shared('by one device', function() expect(alone() >= 0.9):equals(true) end)
  for _, case in ipairs {
    { 'a pipeline', { mesh = { pipeline = 2 }, micro_batches = 2 }, 25 },
    { 'tensor splits', { mesh = { tensor = 2 }, micro_batches = 2 }, 25 },
    { 'replicas', { mesh = { data = 2 } }, 25 },
    { 'ZeRO 1', { mesh = { data = 2 }, shard = 1 }, 25 },
    { 'ZeRO 3', { mesh = { data = 2 }, shard = 3 }, 25 },
    { 'DASO', { mesh = { data = 4 }, synchronise = { kind = 'daso', inner = 2, every = 4 } }, 12 },
    { 'DASO as published', { mesh = { data = 4 }, synchronise = { kind = 'daso', inner = 2 } }, 12, { daso = {} } },
    { 'an asynchronous server', { mesh = { data = 4 }, synchronise = { kind = 'parameter_server', asynchronous = true } }, 12 },
    { 'local SGD', { mesh = { data = 2 }, synchronise = { kind = 'local_sgd', every = 4 } }, 25 },
  } do
    it_shared('as well by ' .. case[1], function()
      local as_well = accuracy(case[2], case[3], case[4])
      expect(as_well >= 0.9):equals(true)
      expect(as_well):near(alone(), 0.02)
    end)
  end
end)
