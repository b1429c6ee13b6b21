-- DASO: the schedule against the published oracle and against the published code retold, its merge, and training
-- times under policies of synchronisation.

local trinity = require 'trinity'

local daso, sync = trinity.daso, trinity.synchronisation

-- The skips of all epochs of a training on a constant loss: '0-3 (0,0,0); 4-6 (4,1,1)...'.
local function phases(options)
  local schedule, parts, first, last = daso.schedule(options), {}, 0, nil
  for e = 0, options.epochs do
    local now = e < options.epochs and ('(%d,%d,%d)'):format(schedule.global_skips, schedule.local_skips, schedule.batches_to_wait)
    if last and now ~= last then
      parts[#parts + 1] = ('%d-%d %s'):format(first, e - 1, last)
      first = e
    end
    last = now
    if now then
      for _ = 1, 7 do schedule:after_batch(7) end
      schedule:after_epoch(1)
    end
  end
  return table.concat(parts, '; ')
end

-- Actions of an epoch as text: 't send 0' and so on, local synchronisation after every batch.
local function told(schedule, batches)
  local lines = {}
  for t = 0, batches - 1 do
    local parts = {}
    for _, a in ipairs(schedule:after_batch(batches)) do
      parts[#parts + 1] = a.what .. ' ' .. a.group .. (a.batches and (' after %d'):format(a.batches) or '')
        .. (a.bfloat16 and ' as bfloat16' or '')
    end
    lines[#lines + 1] = ('%d: %s | %s'):format(t, table.concat(parts, ', '), tostring(schedule.gradients))
  end
  return table.concat(lines, '\n')
end

-- The published code (Heat, dp_optimizer.py, step() and _global_sync()), retold with its variables. It receives what
-- the previous group sent; with one group a node its code would receive what it just sent, so that is left out.
local function published(gs, ls, W, groups, batches)
  local lines, send_mod, send_mod_m1, outstanding, sync_on = {}, 0, nil, {}, true
  local last = batches - 1
  for batch = 0, last do
    local parts = {}
    local function add(...) parts[#parts + 1] = (...):format(select(2, ...)) end
    local function receive()
      if send_mod_m1 and outstanding[send_mod_m1] then
        add('merge %d after %d', send_mod_m1, outstanding[send_mod_m1])
        outstanding[send_mod_m1] = nil
      end
      if send_mod_m1 then add('broadcast %d', send_mod_m1) end
    end
    local gmod, lmod = gs > 0 and batch % gs or 0, ls > 0 and batch % ls or 0
    local btw = W + batch <= last and W or last - batch
    local next_batch = batch + 1
    if batch == last or gmod == 0 then
      add('send %d%s', send_mod, gs < 1 and ' as bfloat16' or '')
      local sent = btw
      if W ~= 0 then receive() end
      if batch == last or W == 0 then
        add('average %d', send_mod)
        add('broadcast %d', send_mod)
        send_mod_m1 = nil
      else
        outstanding[send_mod], send_mod_m1 = sent, send_mod
      end
      send_mod = send_mod <= groups - 2 and send_mod + 1 or 0
    elseif next_batch % gs == 0 then
      sync_on = true
    elseif gmod < btw then
      if next_batch == last then sync_on = true end
    else
      if gmod == btw then
        receive()
        if ls > 1 then sync_on = false end
      end
      if ls == 1 and next_batch ~= last then
        sync_on = true
      else
        if lmod == 0 then sync_on = false elseif next_batch % ls == 0 then sync_on = true end
        if next_batch == last then sync_on = true end
      end
    end
    lines[#lines + 1] = ('%d: %s | %s'):format(batch, table.concat(parts, ', '), sync_on and 'node' or 'nil')
  end
  return table.concat(lines, '\n')
end

-- A schedule whose running epoch has these skips.
local function with_skips(gs, ls, W, groups)
  local schedule = daso.schedule { epochs = 100, groups = groups, age = 'code' }
  schedule.global_skips, schedule.local_skips, schedule.batches_to_wait = gs, ls, W
  return schedule
end

describe('the schedule of DASO', function()
  it('has the skips of the oracle on a constant loss', function()
    expect(phases { epochs = 40 }):equals('0-3 (0,0,0); 4-6 (4,1,1); 7-9 (2,1,1); 10-12 (1,1,1); 13-15 (8,2,2); 16-18 (4,1,1); '
      .. '19-21 (2,1,1); 22-24 (1,1,1); 25-27 (8,2,2); 28-30 (4,1,1); 31-33 (2,1,1); 34-35 (1,1,1); 36-39 (0,0,0)')
    expect(phases { epochs = 16, max_global_skips = 4 }):equals '0-3 (0,0,0); 4-6 (4,1,1); 7-9 (2,1,1); 10-11 (1,1,1); 12-15 (0,0,0)'
    expect(phases({ epochs = 24, max_global_skips = 4 }):match '; 13.*'):equals('; 13-15 (4,1,1); 16-18 (2,1,1); 19-19 (1,1,1); '
      .. '20-23 (0,0,0)')
  end)
  it('keeps its skips while the loss falls by more than the stability level', function()
    local schedule = daso.schedule { epochs = 30 }
    for e = 1, 25 do
      schedule:after_batch(1)
      schedule:after_epoch(0.94 ^ e)
    end
    expect(schedule.global_skips):equals(4)
    for e = 26, 28 do
      schedule:after_batch(1)
      schedule:after_epoch(0.94 ^ 25 * 0.96 ^ (e - 25))
    end
    expect(schedule:phase()):equals 'cool-down'
  end)
  it('does what the published code does, batch by batch', function()
    local compared = 0
    for _, skips in ipairs { { 0, 0, 0 }, { 1, 1, 1 }, { 2, 1, 1 }, { 4, 1, 1 }, { 8, 2, 2 }, { 16, 4, 4 }, { 8, 1, 3 }, { 2, 0, 0 },
      { 3, 1, 1 }, { 12, 3, 2 } } do
      local gs, ls, W = unpack(skips)
      for groups = 2, 4 do
        for batches = 1, 37 do
          expect(told(with_skips(gs, ls, W, groups), batches)):equals(published(gs, ls, W, groups, batches))
          compared = compared + 1
        end
      end
    end
    expect(compared):equals(10 * 3 * 37)
  end)
  it('weighs stale data by their true age, where it is not the planned one', function()
    local function ages(age)
      local schedule, list = with_skips(2, 1, 1, 2), {}
      schedule.age = age
      for _ = 1, 6 do
        for _, action in ipairs(schedule:after_batch(6)) do list[#list + 1] = action.batches end
      end
      return table.concat(list, ' ')
    end
    expect(ages 'code'):equals '1 1 1'
    expect(ages 'true'):equals '2 2 1'
  end)
  it('does nothing on one node, nor without skips', function()
    for _, options in ipairs { { epochs = 3, nodes = 1 }, { epochs = 3, max_global_skips = 0 } } do
      local schedule = daso.schedule(options)
      for _ = 1, 5 do expect(#schedule:after_batch(5)):equals(0) end
      expect(schedule.gradients):equals(options.nodes and 'node' or 'world')
    end
  end)
  it('goes on from a saved state in the middle of an epoch', function()
    local one = daso.schedule { epochs = 20, groups = 2, warmup_epochs = 1, cooldown_epochs = 1, patience = 0 }
    local function actions_of(schedule)
      local actions = schedule:after_batch(10)
      if schedule.batch == 0 then schedule:after_epoch(1) end
      return trinity.json.encode(actions) .. tostring(schedule.gradients)
    end
    local merges = 0
    for _ = 1, 200 do
      local other = daso.schedule { epochs = 20, groups = 2, warmup_epochs = 1, cooldown_epochs = 1, patience = 0 }
      other:load_state(one:state())
      local own = actions_of(one)
      merges = merges + select(2, own:gsub('"merge"', ''))
      expect(actions_of(other)):equals(own)
    end
    expect(merges > 20):equals(true)
    expect(function() one:load_state { epoch = 1 } end):raises "field 'batch'"
  end)
  it('refuses what it cannot take', function()
    expect(function() daso.schedule { epochs = 3, held = {} } end):raises "held: option 'global_skips' is missing"
    local schedule = daso.schedule { epochs = 3 }
    schedule:after_batch(2)
    expect(function() schedule:after_epoch(1) end):raises 'expected the end of an epoch, got batch 1'
    expect(function() schedule:after_batch(1) end):raises "argument 1 %('batches'%): expected an integer from 2"
  end)
end)

-- A network of two layers with 8 MB of weights each, some milliseconds a step on an A100.
local function small_network()
  local net = trinity.layers.new 'small'
  local x = net:input('x', { 4096, 1414 })
  for i = 1, 2 do x = net:relu('relu' .. i, net:linear('linear' .. i, x, 1414)) end
  net:softmax_cross_entropy('loss', x, net:input('labels', { 4096 }, 'int64'))
  return net:build():to_training()
end

local graph = small_network()

local function replicate(nodes, way, cluster)
  return sync.replicate { graph = graph, cluster = cluster or trinity.cluster('juwels_boosterx' .. nodes),
    synchronisation = way }
end

describe('training time', function()
  local function time_s(nodes, way, options) return replicate(nodes, way):train(options or { batches = 10 }).time_s end
  it('is that of one device without replicas', function()
    local run = sync.replicate { graph = graph, cluster = trinity.cluster 'p100', synchronisation = sync.bsp {} }
    local problem = trinity.problem { graph = graph, cluster = trinity.cluster 'p100' }
    expect(run:train({ batches = 10 }).time_s):near(10 * problem:evaluate(problem:placement()).step_time_s, 1e-12)
  end)
  it('needs as many replicas in every node for DASO alone', function()
    local cluster = trinity.cluster 'dgx_a100:2+dgx1_v100:4'
    for _, way in ipairs { sync.bsp {}, sync.local_sgd {}, sync.parameter_server {} } do
      local run = replicate(0, way, cluster)
      expect(run.replicas):equals(6)
      expect(run.per_node):equals(4)
      -- The slower node is waited for: less time is that of its replicas alone.
      local alone = replicate(0, way, trinity.cluster 'dgx1_v100:4'):train { batches = 4 }
      expect(alone.compute_s):near(run:train({ batches = 4 }).compute_s, 1e-12)
    end
    expect(function() replicate(0, sync.daso {}, cluster) end)
      :raises "option 'synchronisation': daso: expected equal numbers of replicas per node, got 2 in 'n0', 4 in 'n1'"
  end)
  it('of bsp is the simulated step of the replicas', function()
    local result = replicate(2, sync.bsp { bucket_bytes = 0, algorithm = 'ring' }):train { batches = 1 }
    local cost = trinity.cluster('juwels_boosterx2'):collective { kind = 'all_reduce', algorithm = 'ring',
      devices = { 1, 2, 3, 4, 5, 6, 7, 8 }, bytes = graph.parameter_bytes }
    expect(result.time_s - result.compute_s):near(cost.time_s, 1e-8)
  end)
  it('of bsp in buckets hides what it can, and hierarchical beats flat between nodes', function()
    local flat = time_s(4, sync.bsp { bucket_bytes = 0, algorithm = 'ring' })
    local hierarchical = time_s(4, sync.bsp { bucket_bytes = 0, algorithm = 'hierarchical' })
    expect(hierarchical):below(flat)
    expect(time_s(4, sync.bsp { bucket_bytes = 4e6, algorithm = 'hierarchical' })):below(hierarchical)
  end)
  it('of DASO on one node, and without skips, is that of bsp', function()
    expect(time_s(1, sync.daso {}, { epochs = 12, batches = 7 })):near(time_s(1, sync.bsp {}, { epochs = 12, batches = 7 }), 1e-12)
    expect(time_s(2, sync.daso { max_global_skips = 0 }, { epochs = 12, batches = 7 }))
      :near(time_s(2, sync.bsp {}, { epochs = 12, batches = 7 }), 1e-12)
  end)
  it('of DASO is that of its cost model, batch by batch', function()
    local cluster = trinity.cluster 'juwels_boosterx3'
    local function collective(kind, devices, share)
      return cluster:collective({ kind = kind, devices = devices, bytes = graph.parameter_bytes * share }).time_s
    end
    local local_s = replicate(1, sync.bsp {}):train({ batches = 1 }).time_s
    local global_s, half_s = collective('all_reduce', { 1, 5, 9 }, 1), collective('all_reduce', { 1, 5, 9 }, 0.5)
    local node_s = collective('broadcast', { 1, 2, 3, 4 }, 1)
    local result = replicate(3, sync.daso { warmup_epochs = 1, cooldown_epochs = 1 }):train { epochs = 3, batches = 9 }
    local warm, cycling = result.epochs[1], result.epochs[2]
    expect(warm.phase):equals 'warm-up'
    local copies_s = (warm.time_s - 9 * (local_s + half_s + node_s)) / 9 -- pack and unpack
    expect(copies_s > 0 and copies_s < 2e-4):truthy()
    expect(result.epochs[3].time_s):near(warm.time_s, 1e-12)
    -- Cycling with 4, 1, 1: sends after batches 0 and 4, merged after 1 and 5; the last batch, 8, blocks.
    expect(cycling.global_skips):equals(4)
    expect(cycling.synchronisations):equals(3)
    expect(cycling.global_bytes):equals(3 * graph.parameter_bytes)
    local exposed_s = math.max(0, global_s - local_s)
    local expected_s = 9 * local_s + 2 * exposed_s + 2 * node_s + global_s + node_s
    -- A broadcast goes with every synchronisation that has a previous group: at batches 4 and 8, too.
    expect(cycling.time_s - expected_s - 2 * node_s):near(0, 6 * 2e-4)
    expect(expected_s):below(cycling.time_s)
  end)
  it('of local SGD and of a parameter server', function()
    local cluster = trinity.cluster 'juwels_boosterx2'
    local all = { 1, 2, 3, 4, 5, 6, 7, 8 }
    local average_s = cluster:collective({ kind = 'all_reduce', devices = all, bytes = graph.parameter_bytes }).time_s
    local result = replicate(2, sync.local_sgd { steps = 4 }):train { batches = 10 }
    expect(result.time_s - result.compute_s):near(3 * average_s, 1e-9)
    local one, two = time_s(2, sync.parameter_server {}), time_s(2, sync.parameter_server { servers = 2 })
    expect(two):below(one)
    expect(time_s(2, sync.parameter_server { asynchronous = true })):below(one)
  end)
  it('counts replicas of several devices, and the epochs of a schedule told losses', function()
    local problem = trinity.problem { graph = graph, cluster = trinity.cluster 'juwels_boosterx2' }
    local placement = problem:placement_by_unit(function(unit) return unit > graph.units / 2 and 2 or 1 end)
    local run = sync.replicate { graph = graph, cluster = trinity.cluster 'juwels_boosterx2', placement = placement,
      synchronisation = sync.daso {} }
    expect(run.replicas):equals(4)
    expect(run.per_node):equals(2)
    local result = run:train { epochs = 20, batches = 3, loss = function(e) return 0.5 ^ e end }
    expect(result.epochs[16].global_skips):equals(4)
    expect(run:train({ epochs = 20, batches = 3 }).epochs[16].global_skips):equals(8)
    local of_strategy = sync.replicate { strategy = problem:strategy(placement), cluster = problem.cluster,
      synchronisation = sync.daso {} }
    expect(of_strategy:train({ epochs = 20, batches = 3 }).time_s):equals(run:train({ epochs = 20, batches = 3 }).time_s)
  end)
  it('is part of a strategy, in its file too', function()
    local path = temporary()
    local problem = trinity.problem { graph = graph, cluster = trinity.cluster 'juwels_boosterx2' }
    for _, way in ipairs { sync.bsp { algorithm = 'ring', bucket_bytes = 0 }, sync.local_sgd { steps = 3 },
      sync.parameter_server { servers = 2, asynchronous = true }, sync.daso { stability_level = 0.1, age = 'code',
        held = { global_skips = 2, local_skips = 2 } } } do
      local run = replicate(2, way)
      run:strategy(problem):save(path)
      local loaded = problem:load(path)
      expect(tostring(loaded.replication.synchronisation)):equals(tostring(way))
      expect(loaded:train({ epochs = 12, batches = 20 }).time_s):equals(run:train({ epochs = 12, batches = 20 }).time_s)
    end
  end)
  it('refuses what does not fit', function()
    local cluster = trinity.cluster 'juwels_boosterx2'
    expect(function() sync.replicate { graph = graph, cluster = cluster, synchronisation = 'bsp' } end)
      :raises "option 'synchronisation': expected a synchronisation, got string 'bsp'"
    expect(function() sync.daso { epochs = 3 } end):raises "option 'epochs' follows from the training"
    expect(function() sync.bsp { algorithm = 'rign' } end):raises "did you mean 'ring'"
    local run = replicate(2, sync.daso {})
    expect(function() run:train { batches = 3, loss = { 'x' } } end):raises 'expected a number for epoch 1'
    expect(function() run:train { batches = 1e7, epochs = 1e5 } end):raises 'at most %d+ batches'
  end)
end)
