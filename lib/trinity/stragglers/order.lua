-- The dependencies of a recorded step: for every operation, the operations before it and the group with which it ends.
-- Rules of ByteDance's StragglerAnalysis (OSDI 2025), `analyzer/dependency_model.py`.

local types = require('trinity.stragglers.operations').types
local util = require 'trinity.base.util'

local clock_error_s = 5e-5 -- maximum difference between the clocks of two machines

--- Returns the operations of a step by stage, worker and type, from 0 each.
local function grid_of(step)
  local grid, stages, workers, chunks = {}, 0, 0, 1
  for i, of in ipairs(step.operations) do
    stages, workers = math.max(stages, of.stage + 1), math.max(workers, of.worker + 1)
    if of.type:find '%-compute$' then chunks = math.max(chunks, of.chunk + 1) end
    local row = grid[of.stage] or {}
    local cell = row[of.worker] or { all = {} }
    grid[of.stage], row[of.worker] = row, cell
    cell[of.type] = cell[of.type] or {}
    table.insert(cell[of.type], i)
    cell.all[#cell.all + 1] = i
  end
  for stage = 0, stages - 1 do
    for worker = 0, workers - 1 do
      if not (grid[stage] or {})[worker] then
        util.fail('step %d: expected operations of replica %d, stage %d, got none', step.step, worker, stage)
      end
    end
  end
  return grid, stages, workers, chunks
end

return function(step)
  local all = step.operations
  local grid, stages, workers, chunks = grid_of(step)
  local waits, group_of, groups = {}, {}, {} -- per operation: predecessors and group; members of groups
  for i = 1, #all do waits[i] = {} end

  local function after(i, earlier) table.insert(waits[i], earlier) end
  local function chain(list) for k = 2, #list do after(list[k], list[k - 1]) end end
  local function join(members)
    groups[#groups + 1] = members
    for _, i in ipairs(members) do group_of[i] = #groups end
  end
  local function by_start(list)
    table.sort(list, function(a, b)
      if all[a].start_s ~= all[b].start_s then return all[a].start_s < all[b].start_s end
      if all[a].number ~= all[b].number then return all[a].number < all[b].number end
      return all[a].type < all[b].type
    end)
    return list
  end
  local function picked(cell, ...)
    local list = {}
    for _, kind in ipairs { ... } do
      for _, i in ipairs(cell[kind] or {}) do list[#list + 1] = i end
    end
    return list
  end

  --- Sends or receives of a compute operation, without those that only exist in the recording.
  local function launched(list, computes, kind)
    local first_end_s, last_start_s = math.huge, -math.huge
    for _, i in ipairs(computes) do
      first_end_s, last_start_s = math.min(first_end_s, all[i].end_s), math.max(last_start_s, all[i].start_s)
    end
    local found = {}
    for _, i in ipairs(list) do
      local real
      if kind == 'recv' then real = all[i].start_s <= last_start_s + clock_error_s
      else real = all[i].end_s >= first_end_s - clock_error_s end
      if real then found[#found + 1] = i end
    end
    return found
  end

  --- Compute operations that communicate with another stage, by model chunk.
  local function with_peer(computes, delta)
    local found = {}
    for _, i in ipairs(computes) do
      local peer = all[i].model_chunk + delta
      if peer >= 0 and peer < chunks * stages then found[#found + 1] = i end
    end
    return found
  end

  --- Pairs the sends (or receives) of a worker with compute operations. Returns those with a peer.
  local function matched(cell, direction, kind, delta)
    local computes = cell[direction .. '-compute'] or {}
    local list = cell[direction .. '-' .. kind] or {}
    local real, peers = launched(list, computes, kind), with_peer(computes, delta)
    local skipped, of = 0, nil
    if #real == #peers then of = peers
    elseif #real == #computes then of = computes
    elseif kind == 'recv' and #real + 1 == #computes then of, skipped = computes, 1
    else
      local where = all[(computes[1] or list[1])]
      util.fail('step %d: replica %d, stage %d: expected %d operations of type %s-%s, one for each %s-compute with '
        .. 'another stage before or after it, got %d', step.step, where.worker, where.stage, #peers, direction, kind,
        direction, #real)
    end
    local has_peer, number, valid = {}, {}, {}
    for _, i in ipairs(peers) do has_peer[i] = true end
    for k, i in ipairs(computes) do number[i] = k end
    for k, i in ipairs(real) do
      local compute = of[k + skipped]
      if kind == 'send' then after(i, compute)
      else
        after(compute, i)
        local last = computes[number[compute] - 1]
        if last then after(i, last) end
      end
      if has_peer[compute] then valid[#valid + 1] = i end
    end
    return valid
  end

  local function exchanges(worker)
    for direction, step_of in util.sorted_pairs { forward = 1, backward = -1 } do
      local sends, receives = {}, {}
      for stage = 0, stages - 1 do
        local cell = grid[stage][worker]
        sends[stage] = matched(cell, direction, 'send', step_of)
        receives[(stage - step_of) % stages] = matched(cell, direction, 'recv', -step_of) -- by the sender's stage
      end
      for stage = 0, stages - 1 do
        local from, to = sends[stage], receives[stage]
        if #from ~= #to then
          util.fail('step %d: replica %d: stage %d has %d operations of type %s-send, its receiver %d of type %s-recv',
            step.step, worker, stage, #from, direction, #to, direction)
        end
        for k, i in ipairs(from) do join { i, to[k] } end
      end
    end
  end

  --- The last computation, then operations that follow it once per step.
  local function finish(cell, computes)
    local last = computes[1]
    for _, i in ipairs(computes) do if all[i].end_s > all[last].end_s then last = i end end
    local separate = cell['separate-grads-all-reduce']
    local tail = picked(cell, 'gc', 'layernorm-grads-all-reduce', 'embedding-grads-all-reduce',
      separate and 'separate-grads-all-reduce' or 'grads-reduce-scatter', 'optimizer-clip-main-grad', 'optimizer')
    table.insert(tail, 1, last)
    chain(tail)
    if not separate then return end
    local scatters = cell['grads-reduce-scatter'] or {}
    local next_one = picked(cell, 'layernorm-grads-all-reduce', 'embedding-grads-all-reduce',
      'separate-grads-all-reduce')[1]
    if #scatters > 0 then after(next_one, scatters[#scatters]) end
    local seen = {}
    for _, i in ipairs(scatters) do -- after the last backward computation of its chunk
      local chunk, latest = all[i].chunk, nil
      for _, c in ipairs(cell['backward-compute'] or {}) do
        if all[c].chunk == chunk and (not latest or all[c].end_s > all[latest].end_s) then latest = c end
      end
      if not seen[chunk] and latest then after(i, latest) end
      seen[chunk] = true
    end
  end

  local function inside(cell)
    local computes = by_start(picked(cell, 'forward-compute', 'backward-compute'))
    if #computes == 0 then
      util.fail('step %d: replica %d, stage %d: expected compute operations, got none', step.step,
        all[cell.all[1]].worker, all[cell.all[1]].stage)
    end
    chain(computes)
    for kind, about in util.sorted_pairs(types) do
      if about.group == 'pair' then chain(by_start(picked(cell, kind))) end
    end
    for k, i in ipairs(computes) do
      if all[i].type == 'backward-compute' then
        for _, kind in ipairs { 'backward-recv', 'backward-send' } do
          if k > 2 and cell[kind] then after(cell[kind][1], computes[k - 2]) end
        end
        break
      end
    end
    chain(by_start(picked(cell, 'params-all-gather', 'grads-reduce-scatter')))
    local gathers, seen = cell['params-all-gather'] or {}, {}
    for g = #gathers, 1, -1 do -- weights before the first forward computation of their chunk
      local chunk = all[gathers[g]].chunk
      for _, i in ipairs(seen[chunk] and {} or computes) do
        if all[i].type == 'forward-compute' and all[i].chunk == chunk then
          after(i, gathers[g])
          break
        end
      end
      seen[chunk] = true
    end
    finish(cell, computes)
  end

  for worker = 0, workers - 1 do
    exchanges(worker)
    for stage = 0, stages - 1 do inside(grid[stage][worker]) end
  end
  local members = {}
  for i, of in ipairs(all) do
    local group = types[of.type].group
    local key = group == 'replicas' and ('%s/%d/%d'):format(of.type, of.stage, of.number)
      or group == 'ends' and ('%s/%d/%d'):format(of.type, of.worker, of.number)
      or group == 'all' and ('%s/%d'):format(of.type, of.number)
      or group == 'pair' and not group_of[i] and ('alone/%d'):format(i)
    if key then
      members[key] = members[key] or {}
      table.insert(members[key], i)
    end
  end
  for _, list in util.sorted_pairs(members) do join(list) end
  return { waits = waits, group_of = group_of, groups = groups, stages = stages, workers = workers }
end
