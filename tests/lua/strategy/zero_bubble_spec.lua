-- Zero-bubble schedules of meshes: what they lower to, their bubbles in papers, orders and simulations, memory, refusals.

local trinity = require 'trinity'

--- Devices with equal matmuls and nothing else that takes time, and links that take none.
local function ideal_cluster(count)
  local kind = trinity.devices.with('p100', { peak_flops_per_s = { float32 = 1e12 }, memory_bytes = 1e13,
    memory_bandwidth_bytes_per_s = 1e15, launch_s = 0 })
  local devices, links = {}, {}
  for i = 1, count do
    devices[i] = { name = 'd' .. i, type = 'ideal' }
    for k = 1, i - 1 do
      links[#links + 1] = { from = 'd' .. k, to = 'd' .. i, bandwidth_bytes_per_s = 1e17, latency_s = 0 }
    end
  end
  return trinity.cluster { name = 'ideal', device_types = { ideal = kind }, devices = devices, links = links }
end

--- Equal matmuls in a row; the operators around them take a thousandth of one.
local function chain(layers)
  local net = trinity.graph.layers.new('chain', { batch_size = 2048 })
  local x = net:linear('enter', net:input('x', { 2048, 1 }), 2048)
  for i = 1, layers do x = net:linear(('block_%d/product'):format(i), x, 2048) end
  net:softmax_cross_entropy('loss', net:linear('leave', x, 1), net:input('y', { 2048 }, 'int64'))
  return net:build():to_training()
end

local function gpt2(options)
  return trinity.model('gpt2', merged({ layers = 8, hidden = 64, heads = 4, sequence = 32, positions = 32, vocabulary = 100,
    batch_size = 2, dropout = 0, fused = false }, options))
end

local function lowered(problem, plan)
  return require('trinity.strategy.simulator').lowered('zero_bubble_spec', problem, plan)
end

describe('equal stages with free links', function()
  local problem = trinity.problem { graph = chain(8), cluster = ideal_cluster(4) }
  -- The formulas of the papers: tests/strategy/chunk_order_test.cpp.
  it('idle as long as their order does, within what stands around them', function()
    for _, schedule in ipairs { 'gpipe', '1f1b', 'interleaved', 'zb-h1', 'zb-h2', 'zb-interleaved', 'zb-v', 'dualpipe-v' } do
      local plan = { mesh = { pipeline = 4 }, schedule = schedule, micro_batches = 8, recompute = schedule == 'zb-h1' and 'full'
        or nil, virtual_stages = schedule:match 'v' and 2 or nil }
      local metrics, work = problem:strategy(plan).metrics, 0
      for d = 1, 4 do work = work + metrics:compute_busy_s(d) end
      local _, of_step = trinity.pipeline.schedule_bubble(plan)
      expect(metrics.step_time_s * 4 / work - 1):near(of_step, 0.004)
    end
  end)
end)

describe('zero-bubble schedules', function()
  local problem = trinity.problem { graph = gpt2(), cluster = trinity.cluster('dgx_a100x4', { constants = 'data_sheet' }) }
  local function strategy(schedule, more)
    return problem:strategy(merged({ mesh = { pipeline = 4 }, schedule = schedule, micro_batches = 8,
      virtual_stages = schedule:match 'v$' and 2 or nil }, more))
  end

  it('make steps shorter than 1F1B does, where launches of kernels are short compared with their work', function()
    local large = trinity.problem { cluster = trinity.cluster('dgx_a100x4', { constants = 'data_sheet' }),
      graph = gpt2 { hidden = 1024, heads = 16, sequence = 512, positions = 512, batch_size = 4 } }
    local function step(schedule, virtual)
      return large:strategy({ mesh = { pipeline = 4 }, schedule = schedule, micro_batches = 8, virtual_stages = virtual })
        .metrics.step_time_s
    end
    expect(step('zb-h1') / step('1f1b')):below(0.85)
    expect(step('zb-interleaved', 2) / step('interleaved', 2)):below(0.92)
    expect(step('zb-v', 2)):below(step('dualpipe-v', 2))
    expect(step('dualpipe-v', 2)):below(step('zb-h1'))
    expect(strategy('1f1b').metrics.step_time_s):below(strategy('zb-h1').metrics.step_time_s) -- launches alone
  end)
  it('keep on stage r of ZB-H2 p - r - 1 micro-batches and r weight gradients more than ZB-H1', function()
    local h1, h2, more = strategy('zb-h1').metrics, strategy('zb-h2').metrics, {}
    for r = 0, 3 do more[r] = h2:memory_bytes(r + 1) - h1:memory_bytes(r + 1) end
    expect(more[0] > 0 and more[3] > 0):truthy() -- 3 micro-batches, 3 weight gradients
    for r = 1, 2 do expect(more[r] / ((3 - r) / 3 * more[0] + r / 3 * more[3])):near(1, 0.1) end
  end)
  it('gather for a part what that part reads: sequences again for weights, shares of weights for inputs', function()
    local function inputs(plan, name)
      local graph = lowered(problem, plan).graph
      for op = 1, graph.operators do
        local about, writers = graph:operator(op), {}
        for i, input in ipairs(about.inputs) do writers[i] = graph:operator(input.producer).name:gsub('@%d+', '') end
        if about.name == name then return table.concat(writers, ' ') end
      end
    end
    local plan = { mesh = { tensor = 2, pipeline = 2 }, schedule = 'zb-h1', micro_batches = 2, sequence_parallel = true }
    local inner = 'block_1/feed_forward/inner/grad'
    expect(inputs(plan, inner .. '@0')):equals 'block_1/feed_forward/gelu/grad'
    expect(inputs(plan, inner .. '@0/weight')):equals 'block_1/feed_forward/gelu/grad block_1/norm_2/gather2'
    plan = { mesh = { data = 2, pipeline = 2 }, schedule = 'zb-h1', micro_batches = 2, zero_stage = 3 }
    expect(inputs(plan, inner .. '@0')):matches '^block_1/feed_forward/gelu/grad [^ ]*/gather_again$'
    expect(inputs(plan, inner .. '/weight@0')):equals 'block_1/feed_forward/gelu/grad block_1/norm_2'
    for zero_stage = 1, 3 do
      plan.zero_stage = zero_stage
      local found = problem:strategy(plan)
      expect(found:bounds().step_time_s <= found.metrics.step_time_s):truthy()
    end
  end)
  it('have both ends of a V on the first device, with one copy of a tied embedding', function()
    local found = strategy('zb-v', { stages = { 1, 1, 1, 2, 1, 1, 1, 0 } })
    local text = found:explain()
    expect(text):matches 'bubble with equal stages: 0 of their work, 0.0625 including the start of the last stage'
    expect(text):matches 'stage 1: 1 layers'
    expect(text):matches 'stage 4: 3 layers'
    local inner = lowered(problem, found)
    for op = 1, inner.graph.operators do expect(inner.graph:operator(op).name:match '/shared'):equals(nil) end
    local path = os.tmpname()
    found:save(path)
    expect(problem:load(path).metrics.step_time_s):equals(found.metrics.step_time_s)
  end)
  it('are accumulation on one stage, and ZB-H1 where nothing is interleaved', function()
    local function step(plan) return problem:strategy(plan).metrics.step_time_s end
    for _, schedule in ipairs { 'zb-h1', 'zb-h2', 'zb-interleaved', 'zb-v', 'dualpipe-v' } do
      expect(step { mesh = { data = 2 }, schedule = schedule, micro_batches = 2 }):equals(
        step { mesh = { data = 2 }, micro_batches = 2 })
    end
    expect(strategy('zb-interleaved').metrics.step_time_s):equals(strategy('zb-h1').metrics.step_time_s)
  end)
  it('refuse sizes that they do not take', function()
    local function refused(plan, message) expect(function() problem:strategy(plan) end):raises(message) end
    refused({ mesh = { pipeline = 4 }, schedule = 'zb-h1', micro_batches = 3 },
      "schedule 'zb%-h1': expected at least 4 micro_batches, pipeline = 4, got 3")
    refused({ mesh = { pipeline = 4 }, schedule = 'zb-h2', micro_batches = 6 },
      "schedule 'zb%-h2': expected at least 7 micro_batches, one less than twice pipeline = 4, got 6")
    refused({ mesh = { pipeline = 4 }, schedule = 'zb-v', virtual_stages = 2, micro_batches = 7 },
      "schedule 'zb%-v': expected at least 8 micro_batches, twice pipeline = 4, got 7")
    refused({ mesh = { pipeline = 4 }, schedule = 'dualpipe-v', micro_batches = 8 },
      "schedule 'dualpipe%-v': expected virtual_stages = 2 .* got 1")
    refused({ mesh = { pipeline = 2 }, schedule = 'zb-h1', virtual_stages = 2, micro_batches = 2 },
      "schedule 'zb%-h1' expects one stage per device; use schedule 'zb%-interleaved' for several")
    refused({ mesh = { pipeline = 2 }, schedule = 'zb-interleaved', virtual_stages = 2, micro_batches = 3 },
      "schedule 'zb%-interleaved': expected micro_batches that pipeline = 2 divides, got 3")
    refused({ placement = problem:placement(), schedule = 'zb-h1', micro_batches = 4 },
      "computes input and weight gradients together; use a mesh strategy, which splits them")
  end)
end)
