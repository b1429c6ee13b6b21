-- Baselines of trinity.plan on heterogeneous devices (scripts/studies/unequal): grids, AMP's formula, budgets, errors.

local trinity = require 'trinity'
local graphs = require 'support.graphs'
local grid = require 'studies.unequal.grid'
local baselines = require 'studies.unequal.baselines'

local function gpt(micro_batch, changes)
  return graphs.gpt2(micro_batch, merged({ vocabulary = 8192, dtype = 'float16' }, changes))
end

--- Devices of some speeds, all joined by links of one bandwidth.
local function linked(speeds, bandwidth)
  local spec = { name = 'linked', devices = {}, links = {}, queue = 'route' }
  for i, speed in ipairs(speeds) do
    spec.devices[i] = { name = 'd' .. i, type = 'h100', node = 'n', speed = speed }
    for other = 1, i - 1 do
      spec.links[#spec.links + 1] = { from = 'd' .. other, to = 'd' .. i, bandwidth_bytes_per_s = bandwidth,
        latency_s = 2e-6 }
    end
  end
  return trinity.cluster(spec)
end

describe('a baseline of a plan', function()
  it('has the grids of a pool and AMP\'s formula', function()
    local list = grid.of { devices = 8, per_node = 4, layers = 6, batch = 8, most_micro_batch = 8 }
    local seen = {}
    for _, point in ipairs(list) do
      expect(point.tensor * point.data * point.pipeline):equals(8)
      expect(point.pipeline <= 6 and point.tensor <= 4):truthy()
      expect(point.micro_batch * point.micro_batches * point.data):equals(8)
      seen[('%d %d %d'):format(point.tensor, point.data, point.micro_batch)] = true
    end
    expect(seen['2 4 2'] and seen['4 2 4'] and seen['1 8 1']):truthy()
    local on = linked({ 1, 1, 0.5, 0.5 }, 1e9)
    local point = { tensor = 1, data = 2, pipeline = 2, micro_batch = 1, micro_batches = 4 }
    -- three more of the longest, one of each, a message of 1 ms, gradients of 3e6 bytes in a ring of two
    expect(grid.predicted_s(on, point, { 0.5, 0.25 }, { 2e6, 3e6 }, 1e6)):near(3 * 0.5 + 0.75 + 0.001 + 0.003, 1e-12)
  end)

  it('is simulated on one pool, within its budget', function()
    local pool = baselines.pool { graph = gpt, batch = 8, message_bytes = 2 * 256 * 512,
      cluster = trinity.cluster 'dgx_a100:2+rtx2080ti_8:2' }
    for _, method in ipairs(baselines.list) do
      local found = method.run(pool, 9, 1)
      expect(found.step_time_s > 0 and found.step_time_s < 1):truthy()
      expect(found.evaluations <= (method.name == 'tapp' and 27 or 9)):truthy()
    end
  end)

  it('leaves out grids whose tensor degree does not divide the heads, and hides no other error', function()
    local pool = baselines.pool { batch = 8, message_bytes = 2 * 256 * 516, cluster = trinity.cluster 'dgx_a100:4',
      graph = function(micro_batch) return gpt(micro_batch, { hidden = 516, heads = 6 }) end }
    local even
    for _, method in ipairs(baselines.list) do even = method.name == 'even' and method or even end
    expect(even.run(pool, 100, 1).evaluations > 3):truthy()
    pool.nets.units = function() error 'no such network' end
    expect(function() even.run(pool, 9, 1) end):raises '.*no such network'
  end)
end)
