-- The dependencies of a recorded step: for every operation, the operations before it and the group with which it ends.
-- Rules of ByteDance's StragglerAnalysis (OSDI 2025), `analyzer/dependency_model.py`.

local operations = require 'trinity.stragglers.operations'
local util = require 'trinity.base.util'

local starts_before = util.by('start_s', 'number', 'type')

--- Returns { waits (by operation: the operations before it), groups (lists of operations), group_of (by operation),
--- stages, workers }.
return function(step)
  local all, cells, stages, workers, chunks = step.operations, {}, 0, 0, 1
  local waits, group_of, groups = {}, {}, {}
  for i, of in ipairs(all) do
    local key = ('%d/%d'):format(of.stage, of.worker)
    local cell = cells[key] or {}
    cells[key], cell[of.type], waits[i] = cell, cell[of.type] or {}, {}
    table.insert(cell[of.type], i)
    stages, workers = math.max(stages, of.stage + 1), math.max(workers, of.worker + 1)
    if of.type:find '%-compute$' then chunks = math.max(chunks, of.chunk + 1) end
  end
  local function cell_of(stage, worker)
    local cell = cells[('%d/%d'):format(stage, worker)] or {}
    if cell['forward-compute'] or cell['backward-compute'] then return cell end
    util.fail('%s: replica %d, stage %d: expected compute operations, got none', step.where, worker, stage)
  end
  local function after(i, earlier) if i and earlier then table.insert(waits[i], earlier) end end
  local function chain(list) for k = 2, #list do after(list[k], list[k - 1]) end end
  --- Returns the operations of some types in a cell, of every type by number.
  local function picked(cell, ...)
    return util.joined(unpack(util.map({ ... }, function(kind) return cell[kind] or {} end)))
  end
  local function by_start(list)
    table.sort(list, function(a, b) return starts_before(all[a], all[b]) end)
    return list
  end

  --- Makes the sends of a cell wait for computations with another stage after them (delta 1) or before them (-1), or
  --- such computations for receives, which follow the computation before. Returns the sends or receives.
  local function matched(stage, worker, direction, kind, delta)
    local cell, count, previous = cell_of(stage, worker), 0, nil
    local list = picked(cell, direction .. '-' .. kind)
    for _, i in ipairs(picked(cell, direction .. '-compute')) do
      local peer = all[i].model_chunk + delta
      if peer >= 0 and peer < chunks * stages then
        count = count + 1
        if kind == 'send' then after(list[count], i) else after(i, list[count]) end
        if kind == 'recv' then after(list[count], previous) end
      end
      previous = i
    end
    if count == #list then return list end
    util.fail('%s: replica %d, stage %d: expected %d operations of type %s-%s, one for each %s-compute with '
      .. 'another stage before or after it, got %d', step.where, worker, stage, count, direction, kind, direction,
      #list)
  end

  --- Orders the operations of a replica on a stage.
  local function inside(cell)
    local computes = by_start(picked(cell, 'forward-compute', 'backward-compute'))
    local gather, is_forward, last = {}, true, computes[1] -- gather: the last one of a chunk
    chain(computes)
    for _, kind in ipairs { 'backward-recv', 'backward-send', 'forward-recv', 'forward-send' } do
      chain(by_start(picked(cell, kind)))
    end
    chain(by_start(picked(cell, 'params-all-gather', 'grads-reduce-scatter')))
    for _, i in ipairs(picked(cell, 'params-all-gather')) do gather[all[i].chunk] = i end
    for k, i in ipairs(computes) do
      local of = all[i]
      if of.end_s > all[last].end_s then last = i end
      if of.type == 'forward-compute' then -- the first of its chunk waits for weights
        after(i, gather[of.chunk])
        gather[of.chunk] = nil
      else
        for _, kind in ipairs { 'backward-recv', 'backward-send' } do
          if is_forward then after((cell[kind] or {})[1], computes[k - 2]) end
        end
        is_forward = false
      end
    end
    chain(util.joined({ last }, picked(cell, 'gc', 'layernorm-grads-all-reduce', 'embedding-grads-all-reduce',
      'grads-reduce-scatter', 'optimizer-clip-main-grad', 'optimizer')))
  end

  for worker = 0, workers - 1 do
    for stage = 0, stages - 1 do
      inside(cell_of(stage, worker))
      for direction, delta in util.sorted_pairs { forward = 1, backward = -1 } do
        local from = matched(stage, worker, direction, 'send', delta)
        local to = matched((stage + delta) % stages, worker, direction, 'recv', -delta)
        if #from ~= #to then
          util.fail('%s: replica %d: stage %d has %d operations of type %s-send, its receiver %d of type %s-recv',
            step.where, worker, stage, #from, direction, #to, direction)
        end
        for k, i in ipairs(from) do groups[#groups + 1] = { i, to[k] } end
      end
    end
  end
  local members = {}
  for i, of in ipairs(all) do
    local together = operations.types[of.type].together
    if together then
      local key = ('%s/%d/%s'):format(of.type, of.number, of[together] or '')
      members[key] = members[key] or {}
      table.insert(members[key], i)
    end
  end
  for _, list in util.sorted_pairs(members) do groups[#groups + 1] = list end
  for g, list in ipairs(groups) do
    for _, i in ipairs(list) do group_of[i] = g end
  end
  return { waits = waits, group_of = group_of, groups = groups, stages = stages, workers = workers }
end
