-- DASO: the schedule against the published oracle and against the published code retold, and its merge.

local trinity = require 'trinity'

local daso = require 'trinity.dist.daso'

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
      return trinity.files.json.encode(actions) .. tostring(schedule.gradients)
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
