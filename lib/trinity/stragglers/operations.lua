-- Reads a trace of operations: CSV (also gzip) in the columns of ByteDance's StragglerAnalysis (OSDI 2025).

local csv = require 'trinity.base.csv'
local util = require 'trinity.base.util'

local operations = {}

--- Types of operations. group: operations that end together ('pair': a send and its receive; 'replicas': operations of
--- all replicas; 'ends': of first and last stage; 'all': of all workers). typical: statistic of a typical operation.
operations.types = {
  ['forward-compute'] = { typical = 'mean' }, ['backward-compute'] = { typical = 'mean' },
  ['forward-send'] = { typical = 'median', group = 'pair', shown = 'forward-pp-comm' },
  ['forward-recv'] = { typical = 'median', group = 'pair', shown = 'forward-pp-comm' },
  ['backward-send'] = { typical = 'median', group = 'pair', shown = 'backward-pp-comm' },
  ['backward-recv'] = { typical = 'median', group = 'pair', shown = 'backward-pp-comm' },
  ['params-all-gather'] = { typical = 'median', group = 'replicas' },
  ['grads-reduce-scatter'] = { typical = 'median', group = 'replicas' },
  ['separate-grads-all-reduce'] = { typical = 'median', group = 'replicas' },
  ['layernorm-grads-all-reduce'] = { typical = 'median' },
  ['embedding-grads-all-reduce'] = { typical = 'median', group = 'ends' },
  ['optimizer-clip-main-grad'] = { typical = 'median', group = 'all' },
  optimizer = { typical = 'mean' }, gc = { typical = 'mean' },
}

local names = util.sorted_keys(operations.types)

local function operation(path, row)
  local start_s = csv.number(path, row, 'start_s')
  local duration_s = csv.number(path, row, 'duration_s')
  if duration_s < 0 then
    csv.refuse(path, row, "column 'duration_s': expected 0 or more seconds, got %s", row.duration_s)
  end
  return { type = csv.word(path, row, 'optype', names), worker = csv.whole(path, row, 'dp_rank', nil, 0),
    stage = csv.whole(path, row, 'stage', nil, 0), number = csv.whole(path, row, 'seq_id', nil, 0),
    chunk = csv.whole(path, row, 'mc', 0, -1), model_chunk = csv.whole(path, row, 'gmc', -1, -1),
    start_s = start_s, duration_s = duration_s, end_s = start_s + duration_s, line = row.line }
end

local function before(a, b)
  if a.stage ~= b.stage then return a.stage < b.stage end
  if a.worker ~= b.worker then return a.worker < b.worker end
  if a.type ~= b.type then return a.type < b.type end
  return a.number < b.number
end

local function place_of(of) return ('%d/%d/%s/%d'):format(of.worker, of.stage, of.type, of.number) end

-- Every step has the operations of the first one, each once, but for garbage collections, which are planned.
local function check(path, steps)
  local function required(step)
    local list = {}
    for _, of in ipairs(step.operations) do if of.type ~= 'gc' then list[#list + 1] = of end end
    return { step = step.step, operations = list }
  end
  local first = required(steps[1])
  for _, step in ipairs(util.map(steps, required)) do
    for i = 1, math.max(#step.operations, #first.operations) do
      local known, of, last = first.operations[i], step.operations[i], step.operations[i - 1]
      if of and last and place_of(of) == place_of(last) then
        csv.refuse(path, of, 'expected one operation %s (replica/stage/type/number) in step %d, got a second',
          place_of(of), step.step)
      elseif not known or not of or place_of(known) ~= place_of(of) then
        util.fail('%s: step %d: expected the %d operations of step %d, got %d; the first difference is %s '
          .. '(replica/stage/type/number)', util.shortened(path), step.step, #first.operations, first.step,
          #step.operations, place_of(of or known))
      end
    end
  end
end

--- Returns the steps of a trace in ascending order, each with its operations by stage, worker, type and number.
---@param path string
---@return { step: integer, operations: table[] }[]
function operations.read(path)
  local by_step = {}
  for _, row in ipairs(csv.read(path, 'step', 'dp_rank', 'stage', 'optype', 'seq_id', 'mc', 'gmc', 'start_s',
    'duration_s')) do
    local step = csv.whole(path, row, 'step', nil, 0)
    by_step[step] = by_step[step] or {}
    table.insert(by_step[step], operation(path, row))
  end
  local steps = {}
  for step, list in util.sorted_pairs(by_step) do
    table.sort(list, before)
    steps[#steps + 1] = { step = step, operations = list }
  end
  if #steps == 0 then util.fail('%s: expected at least one operation, got none', util.shortened(path)) end
  check(path, steps)
  return steps
end

return operations
