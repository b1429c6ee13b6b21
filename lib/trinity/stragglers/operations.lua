-- Reads a trace of operations: CSV (also gzip) in the columns of ByteDance's StragglerAnalysis (OSDI 2025).

local csv = require 'trinity.base.csv'
local statistics = require 'trinity.base.statistics'
local util = require 'trinity.base.util'

local mean, median, operations = statistics.mean, util.median, {}

--- Types of operations. typical: statistic of a typical operation. together: operations of this type and number end
--- together in the whole step, or where this field is equal; a send ends with its receive (order.lua).
operations.types = {
  ['forward-compute'] = { typical = mean }, ['backward-compute'] = { typical = mean },
  ['forward-send'] = { typical = median, shown = 'forward-pp-comm' },
  ['forward-recv'] = { typical = median, shown = 'forward-pp-comm' },
  ['backward-send'] = { typical = median, shown = 'backward-pp-comm' },
  ['backward-recv'] = { typical = median, shown = 'backward-pp-comm' },
  ['params-all-gather'] = { typical = median, together = 'stage' },
  ['grads-reduce-scatter'] = { typical = median, together = 'stage' },
  ['layernorm-grads-all-reduce'] = { typical = median },
  ['embedding-grads-all-reduce'] = { typical = median, together = 'worker' },
  ['optimizer-clip-main-grad'] = { typical = median, together = 'step' },
  optimizer = { typical = mean }, gc = { typical = mean },
}

local names = util.sorted_keys(operations.types)

local function operation(path, row)
  local kind, start_s = csv.word(path, row, 'optype', names), csv.number(path, row, 'start_s')
  local duration_s, is_compute = csv.number(path, row, 'duration_s'), kind:find '%-compute$'
  if not (duration_s >= 0 and math.abs(start_s) + duration_s < math.huge) then
    csv.refuse(path, row, "column 'duration_s': expected 0 or more seconds from a finite start, got %s from %s",
      row.duration_s, row.start_s)
  end
  return { type = kind, worker = csv.whole(path, row, 'dp_rank', nil, 0),
    stage = csv.whole(path, row, 'stage', nil, 0), number = csv.whole(path, row, 'seq_id', nil, 0),
    chunk = csv.whole(path, row, 'mc', 0, -1),
    model_chunk = csv.whole(path, row, 'gmc', not is_compute and -1 or nil, is_compute and 0 or -1),
    start_s = start_s, end_s = start_s + duration_s }
end

local function place_of(of) return ('%d/%d/%s/%d'):format(of.worker, of.stage, of.type, of.number) end

--- Refuses a step that has not the operations of the first one, but for garbage collections, which are planned.
local function check(step, first)
  for _, two in ipairs { { first, step }, { step, first } } do
    for place, of in util.sorted_pairs(two[1].by_place) do
      if of.type ~= 'gc' and not two[2].by_place[place] then
        util.fail('%s: expected the %d operations of step %d, got %d; the first difference is %s '
          .. '(replica/stage/type/number)', step.where, #first.operations, first.step, #step.operations, place)
      end
    end
  end
end

--- Returns the steps { step, where (in messages), operations } of a trace in ascending order, operations by stage,
--- worker, type and number.
function operations.read(path)
  local by_step, steps = {}, {}
  for _, row in ipairs(csv.read(path, 'step', 'dp_rank', 'stage', 'optype', 'seq_id', 'mc', 'gmc', 'start_s',
    'duration_s')) do
    local number, of = csv.whole(path, row, 'step', nil, 0), operation(path, row)
    local step, place = by_step[number] or { step = number, operations = {}, by_place = {},
      where = ('%s: step %d'):format(util.shortened(path), number) }, place_of(of)
    if step.by_place[place] then
      csv.refuse(path, row, 'expected one operation %s (replica/stage/type/number) in step %d, got a second', place,
        number)
    end
    by_step[number], step.by_place[place] = step, of
    table.insert(step.operations, of)
  end
  for _, step in util.sorted_pairs(by_step) do
    table.sort(step.operations, util.by('stage', 'worker', 'type', 'number'))
    steps[#steps + 1] = step
    check(step, steps[1])
  end
  if #steps == 0 then util.fail('%s: expected at least one operation, got none', util.shortened(path)) end
  return steps
end

return operations
