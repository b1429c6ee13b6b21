-- Attention with the sequence divided: keys and values gathered, or passed round a ring.

local trinity = require 'trinity'

local cluster = trinity.cluster 'dgx_a100'
local about = { layers = 2, hidden = 64, heads = 4, sequence = 64, positions = 64, vocabulary = 200, batch_size = 2,
  dropout = 0, fused = false, kernels = 'flash' }
local problem = trinity.problem { cluster = cluster, graph = trinity.model('gpt2', about) }
local several = trinity.problem { cluster = cluster, graph = trinity.model('gpt2', merged(about, { kernels = 'onnx' })) }
local own = 4 * 2 * about.batch_size * about.sequence * about.hidden -- bytes of all keys and values of a layer

local function plan(kind, more) return merged({ mesh = { context = 4 }, cp_comm_type = kind }, more) end

-- Number and bytes of the first device's messages by kind and phase, on the axis context.
local function messages(given)
  local found = {}
  for _, row in ipairs(problem:strategy(given):breakdown().stages[1].traffic) do
    if row.axis == 'context' and row.part == 'layers' and row.phase ~= 'update' then
      local key = row.kind .. ' ' .. row.phase
      found[key] = found[key] or { 0, 0 }
      found[key][1], found[key][2] = found[key][1] + row.count, found[key][2] + row.count * row.bytes
    end
  end
  return found
end

describe('attention over context', function()
  it('sends to the neighbour alone', function()
    for _, row in ipairs(problem:strategy(plan 'ring'):breakdown().traffic) do
      if row.kind == 'send' then expect((row.devices[2] - row.devices[1]) % 4):equals(1) end
    end
  end)
  it('does the same work in a ring, and repeats it with its layers', function()
    local gathered, ring = problem:strategy(plan()):breakdown(), problem:strategy(plan 'ring'):breakdown()
    for d = 1, 4 do expect(ring.devices[d].flops):near(gathered.devices[d].flops, 1e-6 * ring.devices[d].flops) end
    local again = messages(plan('ring', { recompute = 'full' }))
    local sends = again['send forward'][1] + again['send backward'][1]
    expect(sends):equals(about.layers * 4 * 3)
  end)
  it('takes as long at work in a ring, but for launches and what packs keys and values', function()
    local long = merged(about, { sequence = 8192, positions = 8192, hidden = 768, dtype = 'bfloat16' })
    local of = trinity.problem { cluster = cluster, graph = trinity.model('gpt2', long) }
    local gathered, ring = of:evaluate(plan()), of:evaluate(plan 'ring')
    expect(ring:compute_busy_s(1)):below(1.1 * gathered:compute_busy_s(1))
    expect(gathered:compute_busy_s(1)):below(ring:compute_busy_s(1))
  end)
  it('goes by heads between all-to-alls of queries, keys, values and outputs', function()
    for _, c in ipairs { 2, 4 } do
      local found = messages(plan('all_to_all', { mesh = { context = c } }))
      local bytes = about.layers * 4 * own / 2 / c -- own: keys and values; each a device's part of a tensor
      for _, key in ipairs { 'all_to_all forward', 'all_to_all backward' } do
        expect(found[key][1]):equals(about.layers * 4)
        expect(found[key][2]):equals(bytes)
      end
      expect(found['all_gather forward']):equals(nil)
      expect(found['send forward']):equals(nil)
    end
    local by_heads = problem:strategy(plan('all_to_all', { mesh = { context = 2, tensor = 2 }, recompute = 'full' }))
    local count = 0
    for _, row in ipairs(by_heads:breakdown().stages[1].traffic) do
      if row.kind == 'all_to_all' then
        expect(row.axis):equals 'context'
        count = count + row.count
      end
    end
    expect(count):equals(about.layers * 12) -- the repeated pass repeats them
    expect(by_heads:explain()):matches 'attention is split by heads, between all%-to%-alls'
    local gathered = problem:strategy(plan()):breakdown()
    expect(problem:strategy(plan 'all_to_all'):breakdown().devices[1].flops):near(gathered.devices[1].flops, 1)
  end)
  it('goes by heads where attention is several operators, and is refused where heads do not divide', function()
    local count = 0
    for _, row in ipairs(several:strategy(plan 'all_to_all'):breakdown().stages[1].traffic) do
      if row.kind == 'all_to_all' then count = count + row.count end
    end
    expect(count):equals(about.layers * 8)
    expect(function() problem:strategy(plan('all_to_all', { mesh = { context = 8 } })) end):raises(
      "cp_comm_type: all_to_all: operator '.*' has 4 heads, which tensor 1 x context 8 does not divide %(nearest "
        .. 'that do: 4%)')
    local none = trinity.problem { cluster = cluster, graph = trinity.model('mlp', { batch_size = 8 }) }
    expect(function() none:strategy(plan 'all_to_all') end):raises 'no attention to split by heads'
  end)
  it('is refused where attention is several operators', function()
    expect(function() several:strategy(plan 'ring') end):raises "cp_comm_type: ring: expected attention in one operator .*, graph .* has none; use all_gather"
    expect(several:evaluate(plan('ring', { mesh = { data = 2 } })).step_time_s):equals(
      several:evaluate({ mesh = { data = 2 } }).step_time_s)
  end)
end)
