-- Synchronization of a mesh's replicas: collectives, the mean step of periodic synchronization, refusals.

local nodes = require 'trinity.cluster.nodes'
local simulator = require 'trinity.strategy.simulator'
local trinity = require 'trinity'

local sheet = { constants = 'data_sheet' }
local cluster = trinity.cluster('dgx_a100x4', sheet)
local problem = trinity.problem { cluster = cluster, graph = trinity.model('gpt2', { layers = 2, hidden = 64, heads = 4,
  sequence = 32, positions = 32, vocabulary = 200, batch_size = 2, dropout = 0, fused = false, optimizer = 'adam' }) }

local function plan(sync, more)
  return merged({ mesh = { data = 8 }, micro_batches = 2, bucket_bytes = 1e5, sync = sync }, more)
end

-- Bytes of collectives of the first device by kind and number of devices.
local function met(given)
  local found = {}
  for _, row in ipairs(problem:strategy(given):breakdown().stages[1].traffic) do
    local key = row.kind == 'send' and 'send' or ('%s %d'):format(row.kind, #row.devices)
    found[key] = (found[key] or 0) + row.count * row.bytes
  end
  return found
end

local gradients = met(plan())['all_reduce 8']

describe('replicas of a mesh', function()
  it('reduce gradients after the last one that their stage sends', function()
    local spec = nodes.spec 'dgx_a100:1x8' -- one network for both
    spec.queue = 'route'
    local apart = trinity.problem { cluster = trinity.cluster(spec, sheet), graph = problem.graph }
    for _, bytes in ipairs { 1e4, 1e9 } do
      local found = apart:strategy { mesh = { pipeline = 2, data = 4 }, micro_batches = 4, bucket_bytes = bytes }
      local timeline, inner, there = apart:timeline(found), simulator.lowered('spec', apart, found)
      local device = {}
      for op = 1, inner.graph.operators do device[inner.graph:operator(op).name] = there.placement[op] end
      local last, first = 0, math.huge -- on the second stage, devices 5 to 8
      for _, sent in ipairs(timeline:transfers()) do
        if sent.from > 4 then last = math.max(last, sent.start_s) end
      end
      for _, run in ipairs(timeline:collectives()) do
        local on = device[run.collective .. '@0']
        if on and on > 4 and run.collective:find '^all_reduce' then first = math.min(first, run.start_s) end
      end
      expect(first < math.huge and last > 0 and last < first):truthy()
    end
  end)
  it('reduce gradients in two levels', function()
    local found = met(plan { kind = 'hierarchical', inner = 4 })
    expect(found['reduce_scatter 4']):equals(gradients)
    expect(found['all_gather 4']):equals(gradients)
    expect(math.abs(found['all_reduce 2'] - gradients / 4)):below(1000) -- rounded up by gradient
    expect(found['all_reduce 8']):equals(nil)
  end)
  it('shard states within a node, and all-reduce shards across nodes', function()
    local whole = problem:strategy(plan()):breakdown().devices[1]
    local given = plan({ kind = 'hierarchical', inner = 4 }, { zero_stage = 1 })
    local share, found = problem:strategy(given):breakdown().devices[1], met(given)
    expect(math.abs(share.optimizer_bytes - whole.optimizer_bytes / 4)):below(1000)
    expect(found['reduce_scatter 4']):equals(gradients)
    expect(math.abs(found['all_reduce 2'] - gradients / 4)):below(1000)
    expect(found['all_gather 4']):equals(gradients) -- of weights, the same bytes
    given.zero_stage = 3
    local weights = problem:strategy(given):breakdown().devices[1].weight_bytes
    expect(math.abs(weights - whole.weight_bytes / 4)):below(1000)
  end)
  it('shard states within the nodes of DASO, which send gradients of a node whole or shard by shard', function()
    local whole = problem:strategy(plan { kind = 'daso', inner = 4 }):breakdown().devices[1]
    for zero_stage = 1, 3 do
      local given = plan({ kind = 'daso', inner = 4 }, { zero_stage = zero_stage })
      local share, found = problem:strategy(given):breakdown().devices[1], met(given)
      expect(math.abs(share.optimizer_bytes - whole.optimizer_bytes / 4)):below(1000)
      expect(found['reduce_scatter 4']):equals(gradients * (zero_stage > 1 and 2 or 1)) -- of two micro-batches
      expect(found['all_reduce 4']):equals(nil)
      if zero_stage == 3 then
        expect(math.abs(share.weight_bytes - whole.weight_bytes / 4)):below(1000)
        expect(math.abs(found['all_reduce 2'] - gradients / 4)):below(1000)
        expect(found['broadcast 4']):equals(nil)
      else
        expect(found['all_gather 4']):equals(gradients)
        expect(found['all_reduce 2']):equals(gradients)
        expect(found['broadcast 4']):equals(gradients)
      end
    end
  end)
  it('of asynchronous DASO cost less where there is work to overlap, and no less than without synchronization', function()
    for zero_stage = 0, 3 do
      local function step(every, asynchronous)
        return problem:evaluate(plan({ kind = 'daso', inner = 4, every = every, asynchronous = asynchronous or nil },
          { zero_stage = zero_stage, micro_batches = 8 })).step_time_s
      end
      if zero_stage < 3 then
        expect(step(1, true)):below(step(1))
      else -- little is reduced, and the gathers with which a step begins come after it
        expect(step(1, true)):near(step(1), 0.01 * step(1))
      end
      expect(step(0) <= step(1, true)):truthy()
      expect(step(4, true)):near((step(1, true) + 3 * step(0, true)) / 4, 2e-9)
      expect(step(0, true)):equals(step(0))
    end
  end)
  it('cost the mean step from one synchronization to the next', function()
    for _, kind in ipairs { 'local_sgd', 'daso' } do
      local function step(every)
        return problem:evaluate(plan { kind = kind, every = every, inner = kind == 'daso' and 4 or nil })
      end
      local meets, apart = step(1), step(0)
      expect(apart.step_time_s):below(meets.step_time_s)
      local last = meets.step_time_s
      for _, every in ipairs { 2, 5, 64 } do
        local found = step(every)
        expect(found.step_time_s):near((meets.step_time_s + (every - 1) * apart.step_time_s) / every, 2e-9)
        expect(found.step_time_s):below(last)
        expect(found.samples):equals(meets.samples)
        expect(found.samples_per_s):near(found.samples / found.step_time_s, 1e-6 * found.samples_per_s)
        expect(found.peak_memory_bytes):equals(math.max(meets.peak_memory_bytes, apart.peak_memory_bytes))
        expect(found.total_communication_bytes):near((meets.total_communication_bytes
          + (every - 1) * apart.total_communication_bytes) / every, 1)
        last = found.step_time_s
      end
    end
  end)
  it('average weights where they synchronize, and nothing between', function()
    expect(met(plan { kind = 'local_sgd' })['all_reduce 8']):equals(gradients)
    expect(next(met(plan { kind = 'local_sgd', every = 0 }))):equals(nil)
    local found = met(plan { kind = 'daso', inner = 4 })
    expect(found['all_reduce 4']):equals(gradients)
    expect(found['all_reduce 2']):equals(gradients)
    expect(found['broadcast 4']):equals(gradients)
    local between = met(plan { kind = 'daso', inner = 4, every = 0 })
    expect(between['all_reduce 4']):equals(gradients)
    expect(between['all_reduce 2']):equals(nil)
  end)
  it('have servers that hold the states, and their own weights where they take one replica after the other', function()
    local whole = problem:strategy(plan()):breakdown().devices[1]
    for _, servers in ipairs { 1, 2, 8 } do
      for _, asynchronous in ipairs { false, true } do
        local account = problem:strategy(plan({ kind = 'parameter_server', servers = servers, asynchronous = asynchronous },
          { micro_batches = asynchronous and 1 or 2 })):breakdown()
        local held, sent = 0, 0
        for d = 1, 8 do
          local bytes = account.devices[d].optimizer_bytes
          if d > servers then expect(bytes):equals(0) end
          held = held + bytes
        end
        for _, row in ipairs(account.traffic) do
          expect(row.kind):equals 'send'
          sent = sent + row.count * row.bytes
        end
        expect(held):equals(whole.optimizer_bytes + (asynchronous and whole.weight_bytes or 0))
        expect(sent):equals(2 * 7 * gradients) -- gradients there, weights back
      end
    end
  end)
  it('cost less where servers do not wait for the slowest, and no more than the servers hold up', function()
    local function step(asynchronous, micro_batches)
      return problem:evaluate(plan({ kind = 'parameter_server', asynchronous = asynchronous }, { micro_batches = micro_batches }))
    end
    local waits, goes_on = step(false, 1), step(true, 1)
    expect(goes_on.step_time_s):below(waits.step_time_s)
    expect(goes_on.samples):equals(waits.samples)
    expect(step(true, 3).step_time_s):near(3 * goes_on.step_time_s, 2e-9)
    local most_s = 0 -- nobody is busy for longer than a round
    for d = 1, 8 do most_s = math.max(most_s, goes_on:compute_busy_s(d)) end
    expect(most_s <= goes_on.step_time_s):truthy()
  end)
  it('cost the round of who is slowest: a server that has all to do, or messages there and back', function()
    local bytes, bound_by = 0, {} -- of the largest gradient: what one message has there, and one back
    for op = 1, problem.graph.operators do
      local about = problem.graph:operator(op)
      if about.phase == 'forward' then bytes = math.max(bytes, about.parameter_bytes) end
    end
    for _, gbit_s in ipairs { 0.1, 1, 10, 1e6 } do
      local spec = nodes.spec 'dgx_a100:2x1'
      spec.queue = 'none'
      for _, link in ipairs(spec.links) do link.bandwidth_bytes_per_s, link.latency_s = gbit_s * 1e9 / 8, 1e-6 end
      local apart = trinity.problem { graph = problem.graph, cluster = trinity.cluster(spec, sheet) }
      local function price(asynchronous)
        return apart:evaluate { mesh = { data = 2 }, sync = { kind = 'parameter_server', asynchronous = asynchronous } }
      end
      local found, waits = price(true), price(false)
      local busy_s, messages_s = found:compute_busy_s(1), 2 * bytes / (gbit_s * 1e9 / 8)
      expect(busy_s > found:compute_busy_s(2)):truthy() -- it updates by two gradients
      expect(found.step_time_s >= math.max(busy_s, messages_s)):truthy()
      expect(found.step_time_s):below(waits.step_time_s)
      bound_by[#bound_by + 1] = found.step_time_s == busy_s and 'work' or 'messages'
    end
    expect(table.concat(bound_by, ' ')):matches '^messages .*work$'
  end)
  it('take an algorithm', function()
    local ring = problem:evaluate(plan { algorithm = 'ring' })
    local automatic = problem:evaluate(plan())
    expect(automatic.step_time_s <= ring.step_time_s):truthy()
    expect(problem:evaluate(plan { algorithm = 'hierarchical' }).step_time_s ~= ring.step_time_s):truthy()
  end)
  it('say how in words', function()
    local text = problem:strategy(plan { kind = 'local_sgd', every = 8 }):explain()
    expect(text):matches 'replicas: weights are averaged every 8 steps'
    expect(text):matches 'mean over 8 steps'
    expect(problem:strategy(plan { kind = 'hierarchical', inner = 4 }):explain()):matches 'within groups of 4 and then across the groups'
    expect(problem:strategy(plan { kind = 'daso', inner = 4, asynchronous = true }):explain()):matches 'merged after the next step'
    expect(problem:strategy(plan { kind = 'parameter_server', asynchronous = true }):explain())
      :matches 'which apply one gradient at a time, 7 updates old'
  end)
  it('are refused with what they contradict', function()
    local function refused(way, more, text) expect(function() problem:evaluate(plan(way, more)) end):raises(text) end
    refused({ kind = 'local_sgd' }, { zero_stage = 1 }, 'local_sgd cannot be combined with zero_stage = 1: replicas diverge between synchronizations')
    refused({ kind = 'parameter_server' }, { zero_stage = 3 }, 'servers hold the optimiser states')
    refused({ kind = 'hierarchical', inner = 3 }, {}, 'smaller than data = 8 and divides it, got inner = 3 %(possible: 2, 4%)')
    refused({ kind = 'daso' }, {}, 'got inner = 1 %(possible: 2, 4%)')
    refused({ kind = 'parameter_server', servers = 9 }, {}, 'sync: servers: expected 1 to data = 8, got 9')
    refused({ kind = 'local_sgd', servers = 2 }, {}, "field 'servers' needs kind parameter_server, got local_sgd")
    refused({ kind = 'all_reduce', asynchronous = true }, {}, "field 'asynchronous' needs kind parameter_server or daso, got all_reduce")
    refused({ kind = 'parameter_server', asynchronous = true }, { mesh = { data = 4, pipeline = 2 } },
      'would use different weights, since each stage pulls its own')
    refused({ kind = 'local_sgd' }, { mesh = { data = 8, expert = 2 } }, 'have diverged')
    refused({ kind = 'parameter_server' }, { mesh = { data = 8, expert = 2 } }, 'no server would see')
  end)
end)
