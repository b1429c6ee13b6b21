-- Features of Megatron-LM in addition to splitting: stages that send parts (scatter_gather), all-reduces that overlap
-- with gradients of weights (overlap_tp_grad_allreduce).

local trinity = require 'trinity'

local graph = trinity.model('gpt2', { layers = 4, hidden = 64, heads = 4, sequence = 32, positions = 32, vocabulary = 64,
  batch_size = 2, fused = false, kernels = 'megatron', dtype = 'float16', optimizer = 'adam' })

-- Four devices, two per machine; links between machines are slow.
local function cluster(between)
  local net = require('trinity.cluster.topology').new { queue = 'route' }
  net:machines(2, function(name)
    net:link(net:devices(name, 2, 'a100'), name .. '/switch', { bandwidth_bytes_per_s = 100e9, latency_s = 1e-6 })
    net:link(name .. '/switch', 'network', { bandwidth_bytes_per_s = between, latency_s = 1e-6 })
  end)
  return trinity.cluster(net:spec(), { constants = 'data_sheet' })
end

local problem = trinity.problem { graph = graph, cluster = cluster(1e9) }

local function plan(changes)
  return merged({ mesh = { pipeline = 2, tensor = 2 }, micro_batches = 4, recompute = 'full' }, changes)
end

--- Number and bytes of the messages of a stage by axis and kind.
local function messages(strategy, stage)
  local found = {}
  for _, row in ipairs(strategy:breakdown().stages[stage].traffic) do
    local key = row.axis .. ' ' .. row.kind
    found[key] = found[key] or { count = 0, bytes = 0 }
    found[key].count, found[key].bytes = found[key].count + row.count, found[key].bytes + row.count * row.bytes
  end
  return found
end

describe('stages that send each other parts', function()
  it('send half as much with two parts, which are gathered once a micro-batch and pass', function()
    local whole, parts = problem:strategy(plan()), problem:strategy(plan { scatter_gather = true })
    local before, after = messages(whole, 1), messages(parts, 1)
    expect(after['pipeline send'].count):equals(before['pipeline send'].count)
    expect(after['pipeline send'].bytes):equals(before['pipeline send'].bytes / 2)
    expect(before['tensor all_gather']):equals(nil)
    expect(after['tensor all_gather'].count):equals(4) -- gradients; the second stage gathers activations
    expect(messages(parts, 2)['tensor all_gather'].count):equals(4)
    expect(after['tensor all_reduce'].bytes):equals(before['tensor all_reduce'].bytes)
    expect(parts.metrics.step_time_s < whole.metrics.step_time_s):equals(true)
    expect(parts:explain()):matches 'stages send each other slices'
  end)
  it('change nothing without tensor or pipeline, or where sequences are cut already', function()
    for _, changes in ipairs { { mesh = { pipeline = 4 } }, { mesh = { tensor = 4 } }, { sequence_parallel = true } } do
      local without = problem:evaluate(plan(changes)).step_time_s
      changes.scatter_gather = true
      expect(problem:evaluate(plan(changes)).step_time_s):equals(without)
    end
  end)
end)

describe('sums of input gradients', function()
  it('overlap with gradients of weights: the same number of messages, a shorter step', function()
    local wide = trinity.problem { cluster = cluster(1e9), graph = trinity.model('gpt2', { layers = 2, hidden = 1024, heads = 4,
      sequence = 256, positions = 256, vocabulary = 64, batch_size = 4, fused = false, kernels = 'megatron', dtype = 'float16',
      optimizer = 'adam' }) }
    local apart = wide:strategy { mesh = { tensor = 2 }, micro_batches = 2 }
    local hidden = wide:strategy { mesh = { tensor = 2 }, micro_batches = 2, overlap_tp_grad_allreduce = true }
    local before, after = messages(apart, 1)['tensor all_reduce'], messages(hidden, 1)['tensor all_reduce']
    expect(after.count):equals(before.count)
    expect(after.bytes):equals(before.bytes)
    expect(hidden.metrics.step_time_s < apart.metrics.step_time_s):equals(true)
    expect(hidden:explain()):matches 'overlap the computation of weight gradients'
  end)
end)
