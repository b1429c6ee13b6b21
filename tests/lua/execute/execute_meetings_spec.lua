-- Local SGD, DASO, parameter servers, and pipelines without a flush, executed: weights and losses equal a
-- short reference in plain numbers, written from the definition of each.

local bit = require 'bit'
local ffi = require 'ffi'
local array = require 'trinity.base.array'
local core = require 'trinity.core'
local same = dofile(root .. '/tests/lua/support/same_training.lua')
local trinity = require 'trinity'
local util = require 'trinity.base.util'

with_torch()

local two = dofile(root .. '/tests/lua/support/two_layers.lua')(expect)
local network, differentiate, combine, stepped, mean = two.network, two.differentiate, two.combine, two.stepped, two.mean
local execute, in_rows, layers_of, rate = two.execute, two.in_rows, two.layers_of, two.rate
local expect_weights, expect_losses = two.expect_weights, two.expect_losses

--- Replicas that train alone in runs of `inner`, in which gradients are averaged, and average weights every `every` steps.
local function meeting_seldom(run, replicas, inner, every)
  local w, losses = {}, {}
  for r = 1, replicas do w[r] = layers_of(run.before) end
  for step, given in ipairs(run.read) do
    local gradient, sum = {}, 0
    for r = 1, replicas do
      local loss
      loss, gradient[r] = differentiate(w[r], in_rows(given[1][r].inputs), given[1][r].labels)
      sum = sum + loss / replicas
    end
    losses[step] = sum
    for r = 1, replicas do
      local first = r - (r - 1) % inner
      local of_run = {}
      for i = 0, inner - 1 do of_run[i + 1] = gradient[first + i] end
      w[r] = stepped(w[r], mean(of_run), rate)
    end
    if step % every == 0 then
      local all = mean(w)
      for r = 1, replicas do w[r] = all end
    end
  end
  return w, losses
end

--- A number as bfloat16 has it: the nearest, of two the even one.
local function bfloat16(x)
  local bits = ffi.new('union { float f; uint32_t u; }')
  bits.f = x
  local low = bit.band(bits.u, 0xffff)
  local up = low > 0x8000 or low == 0x8000 and bit.band(bits.u, 0x10000) ~= 0
  bits.u = bit.band(bits.u, 0xffff0000)
  if up then bits.u = bits.u + 0x10000 end
  return bits.f
end

--- DASO on weights of plain numbers, by replica, as require('trinity.dist.daso').schedule says what is sent and merged (daso_spec.lua holds
--- that to the published code): what is sent is summed over nodes, as bfloat16 where no batch is skipped, and merges weigh
--- own weights by twice their age (Coquelin et al. 2022). The losses, the weights, and the skips seen.
local function daso(run, nodes, groups, epochs, batches, given)
  local schedule = require('trinity.dist.daso').schedule(util.merged(given, { epochs = epochs, nodes = nodes, groups = groups }))
  local w, losses, sent, seen, step = {}, {}, {}, {}, 0
  for r = 1, nodes * groups do w[r] = layers_of(run.before) end
  local function each_node(group, change)
    for n = 0, nodes - 1 do change(n * groups + group + 1, n * groups) end
  end
  local function sum_of(group, as_bfloat16)
    local parts = {}
    each_node(group, function(r) parts[#parts + 1] = w[r] end)
    return combine(function(...)
      local total
      for _, x in ipairs { ... } do
        if as_bfloat16 then total = bfloat16(total and total + bfloat16(x) or x) else total = (total or 0) + x end
      end
      return total
    end, unpack(parts))
  end
  local does = {
    send = function(action) sent[action.group] = sum_of(action.group, action.bfloat16) end,
    merge = function(action)
      local age = 2 * action.batches
      each_node(action.group, function(r)
        w[r] = combine(function(x, sum) return (age * x + sum) / (age + nodes) end, w[r], sent[action.group])
      end)
    end,
    average = function(action)
      each_node(action.group, function(r) w[r] = combine(function(sum) return sum / nodes end, sent[action.group]) end)
    end,
    broadcast = function(action)
      each_node(action.group, function(r, first) for g = 1, groups do w[first + g] = w[r] end end)
    end,
  }
  for _ = 1, epochs do
    local sum = 0
    for _ = 1, batches do
      step = step + 1
      local gradient, loss, in_node = {}, {}, schedule.gradients == 'node'
      for r = 1, #w do
        local read = run.read[step][1][r]
        loss[r], gradient[r] = differentiate(w[r], in_rows(read.inputs), read.labels)
      end
      for first = 1, #w, groups do
        local all = mean { unpack(gradient, first, first + groups - 1) }
        for r = first, first + groups - 1 do w[r] = stepped(w[r], in_node and all or gradient[r], rate) end
      end
      losses[step] = 0
      for r = 1, #w do losses[step] = losses[step] + loss[r] / #w end
      sum = sum + losses[step] / batches
      seen[schedule.global_skips] = true
      for _, action in ipairs(schedule:after_batch(batches)) do does[action.what](action) end
    end
    schedule:after_epoch(sum)
  end
  return losses, mean(w), seen
end

--- Expects the result of executing a number of epochs of 10 batches.
local function expect_daso(nodes, groups, zero_stage, most)
  local cycling = { warmup_epochs = 1, cooldown_epochs = 1, patience = 0, max_global_skips = most }
  local run = execute(network 'sgd', { mesh = { data = nodes * groups }, zero_stage = zero_stage,
    sync = { kind = 'daso', inner = groups, every = 1 } }, nodes * groups, 90, nil, { daso = cycling, epochs = 9 })
  local losses, w, seen = daso(run, nodes, groups, 9, 10, cycling)
  for skips = 0, 3 do expect(seen[skips == 0 and 0 or most / 2 ^ (skips - 1)]):equals(true) end
  for step, loss in ipairs(losses) do expect(run.losses[step]):near(loss, 1e-9) end
  for k, list in ipairs(w) do
    for i, value in ipairs(list) do expect(layers_of(run.weights)[k][i]):near(value, 1e-9) end
  end
end

describe('DASO whole, with stale merges, groups in turn and skips that cycle, is the published one', function()
  for _, case in ipairs { { 2, 2 }, { 4, 2 }, { 2, 4 } } do
    it(('on %d nodes of %d'):format(case[1], case[2]), function() expect_daso(case[1], case[2], nil, 8) end)
  end
end)

describe('periodic synchronization of replicas is executed:', function()
  it('local SGD, also between synchronizations', function()
    for _, steps in ipairs { 3, 5, 6 } do
      local run = execute(network 'sgd', { mesh = { data = 2 }, sync = { kind = 'local_sgd', every = 3 } }, 2, steps)
      local w, losses = meeting_seldom(run, 2, 1, 3)
      expect_losses(run, losses)
      expect_weights(layers_of(run.weights), mean(w))
    end
  end)
  it('DASO: gradients in a node in every step, weights between nodes every few', function()
    local run = execute(network 'sgd', { mesh = { data = 4 }, sync = { kind = 'daso', inner = 2, every = 2 } }, 4, 5)
    local w, losses = meeting_seldom(run, 4, 2, 2)
    expect_losses(run, losses)
    expect_weights(layers_of(run.weights), mean(w))
  end)
  --- The same where weights that a step sends are merged after the next step by the devices of a node in round-robin order.
  local function merging_late(run, inner, every)
    local w, losses, sent = {}, {}, nil
    for r = 1, 4 do w[r] = layers_of(run.before) end
    for step, given in ipairs(run.read) do
      local gradient, sum = {}, 0
      for r = 1, 4 do
        local loss
        loss, gradient[r] = differentiate(w[r], in_rows(given[1][r].inputs), given[1][r].labels)
        sum = sum + loss / 4
      end
      losses[step] = sum
      for r = 1, 4 do
        local first = r - (r - 1) % inner
        w[r] = stepped(w[r], mean { gradient[first], gradient[first + 1] }, rate)
      end
      local before = sent
      sent = nil
      if step % every == 0 then
        local place = (step / every - 1) % inner
        sent = { place = place, w[1 + place], w[1 + inner + place] }
      end
      if before then
        for first = 1, 4, inner do
          local merged = combine(function(own, a, b) return (2 * own + a + b) / (2 + 2) end, w[first + before.place], before[1],
            before[2])
          for r = first, first + inner - 1 do w[r] = merged end
        end
      end
    end
    return w, losses
  end
  for zero_stage = 0, 3 do
    for every = 1, 2 do
      it(('DASO for which nobody waits, level %d, every %d'):format(zero_stage, every), function()
        local run = execute(network 'sgd', { mesh = { data = 4 }, zero_stage = zero_stage,
          sync = { kind = 'daso', inner = 2, every = every, asynchronous = true } }, 4, 7)
        local w, losses = merging_late(run, 2, every)
        expect_losses(run, losses)
        expect_weights(layers_of(run.weights), mean(w))
      end)
    end
  end
  for zero_stage = 1, 3 do
    it(('DASO with states sharded within nodes, ZeRO stage %d'):format(zero_stage), function()
      local run = execute(network 'sgd', { mesh = { data = 4 }, zero_stage = zero_stage,
        sync = { kind = 'daso', inner = 2, every = 2 } }, 4, 5)
      local w, losses = meeting_seldom(run, 4, 2, 2)
      expect_losses(run, losses)
      expect_weights(layers_of(run.weights), mean(w))
    end)
    it(('and with weights on their way, as published, level %d'):format(zero_stage), function() expect_daso(2, 2, zero_stage, 4) end)
  end
  it('but not where replicas of a node skip synchronizations', function()
    expect(function()
      execute(network 'sgd', { mesh = { data = 4 }, zero_stage = 1, sync = { kind = 'daso', inner = 2 } }, 4, 8, nil,
        { daso = { max_global_skips = 8 }, epochs = 2 })
    end):raises "'daso': with zero_stage = 1 the replicas of an inner group shard one state and synchronize in every step; expected 1 local skip"
  end)
  --- A training in one piece, and the same stopped after every step: what each piece reports, and the last one.
  local function in_pieces(plan, devices, options)
    local path, data = temporary(), temporary() .. '.csv'
    core.write_file(data, ('1,2,3,4,0\n-1,0,2,5,1\n3,1,0,-2,2\n0,0,1,1,0\n'):rep(10))
    local problem = trinity.problem { graph = network 'momentum', cluster = trinity.cluster('p100x' .. devices) }
    local function train(more)
      return trinity.execute(problem, problem:strategy(plan), util.merged(util.merged({ data = data, learning_rate = rate,
        double_precision = true, quiet = true, keep_weights = true }, options), more))
    end
    two.expect_same_in_pieces(train, path)
    return train, path
  end
  it('and stopped after any step they resume to the same numbers: between synchronizations', function()
    in_pieces({ mesh = { data = 2 }, sync = { kind = 'local_sgd', every = 3 } }, 2, { epochs = 2 })
    for zero_stage = 1, 3, 2 do
      in_pieces({ mesh = { data = 4 }, zero_stage = zero_stage, sync = { kind = 'daso', inner = 2, every = 3 } }, 4, { epochs = 2 })
    end
    in_pieces({ mesh = { data = 4 }, sync = { kind = 'daso', inner = 2, every = 2, asynchronous = true } }, 4,
      { epochs = 2 })
  end)
  it('and while DASO has weights on their way', function()
    local plan = { mesh = { data = 4 }, sync = { kind = 'daso', inner = 2, every = 1 } }
    local train, path
    for _, held in ipairs { { global_skips = 4 }, { global_skips = 2 }, { global_skips = 5, local_skips = 2, batches_to_wait = 3 } } do
      train, path = in_pieces(plan, 4, { epochs = 4, rate = { decay = 'plateau', patience = 0 },
        daso = { warmup_epochs = 1, cooldown_epochs = 1, held = held } })
    end
    in_pieces(plan, 4, { epochs = 7, daso = { warmup_epochs = 1, cooldown_epochs = 1, patience = 0, max_global_skips = 8 } })
    expect(core.read_file(path)):matches '"course.daso.batch":"0"'
    os.remove(path)
    for _ = 1, 7 do train { seconds = 1e-9, checkpoint = path } end -- two steps into the second epoch of five
    expect(core.read_file(path)):matches '"[^"]*#sent0@%d+":{"dtype":"F64"'
    plan.sync = { kind = 'local_sgd', every = 3 }
    local problem = trinity.problem { graph = network 'momentum', cluster = trinity.cluster 'p100x4' }
    expect(function()
      trinity.execute(problem, problem:strategy(plan), { steps = 9, warm_up = 0, quiet = true, double_precision = true,
        checkpoint = path })
    end):raises "weights: the checkpoint has an unmerged send '.*#sent0@%d+' of another strategy"
  end)
end)

describe('servers', function()
  local trained = same.new(network 'adam')
  for _, servers in ipairs { 1, 2 } do
    it(('%d: sum gradients, update and hand weights out'):format(servers), function()
      expect(trained:off { mesh = { data = 2 }, micro_batches = 2, bucket_bytes = 100,
        sync = { kind = 'parameter_server', servers = servers } }):near(0, 1e-9)
    end)
  end
  it('that are asynchronous are refused', function()
    expect(function()
      trained:off { mesh = { data = 2 }, sync = { kind = 'parameter_server', asynchronous = true } }
    end):raises 'an asynchronous parameter server can be simulated but not executed; use asynchronous = false'
  end)
  it('keep tied weights and pipelines equal, too', function()
    local gpt = same.new(trinity.model('gpt2', { batch_size = 2, sequence = 8, layers = 2, hidden = 16, heads = 4,
      vocabulary = 32, positions = 8, fused = false, dropout = 0.1, optimizer = 'adam' }))
    expect(gpt:off { mesh = { data = 2, pipeline = 2 }, micro_batches = 2, sync = { kind = 'parameter_server' } }):near(0, 1e-9)
  end)
end)

describe('a pipeline without a flush', function()
  it('runs every backward pass with the weights of its forward pass, and updates after it', function()
    local graph = network 'sgd'
    local stage, placement = {}, array.int32(graph.operators)
    for op = 1, graph.operators do
      local about = graph:operator(op)
      local forward = about.forward and graph:operator(about.forward) or about
      local last = forward.name:find '2' or forward.name:find 'loss' or forward.name == 'labels'
      stage[op], placement[op] = last and 2 or 1, last and 2 or 1
    end
    local run = execute(graph, { placement = placement, schedule = 'pipedream', micro_batches = 12, stage = stage }, 2, 2,
      { stream = true })
    local w = layers_of(run.before)
    for step, given in ipairs(run.read) do
      local versions = { [0] = w } -- after that number of updates of this stream
      local sum = 0
      for m = 0, run.micro_batches - 1 do
        -- Stage 1 is one mini-batch ahead: its forward pass came before the last update.
        local first, second = versions[math.max(0, m - 1)], versions[m]
        local loss, gradient = differentiate({ first[1], first[2], second[3], second[4] }, in_rows(given[m + 1][1].inputs),
          given[m + 1][1].labels)
        versions[m + 1] = stepped(versions[m], gradient, rate)
        sum = sum + loss / run.micro_batches
      end
      w = versions[run.micro_batches]
      expect(run.losses[step]):near(sum, 1e-12)
    end
    expect_weights(layers_of(run.weights), w)
    local found = trinity.execute(trinity.problem { graph = graph, cluster = trinity.cluster 'p100x2' },
      { placement = placement, schedule = 'pipedream', micro_batches = 12, stage = stage },
      { steps = 2, warm_up = 0, learning_rate = rate, double_precision = true, quiet = true })
    for step, loss in ipairs(run.losses) do expect(found.losses[step]):equals(loss) end
  end)
end)
