-- trinity.stragglers.replay: simulates recorded steps again, and predicts their time if some operations were typical.

local array = require 'trinity.base.array'
local check = require 'trinity.base.check'
local operations = require 'trinity.stragglers.operations'
local options_of = require 'trinity.base.options'
local order_of = require 'trinity.stragglers.order'
local printed = require 'trinity.base.printed'
local statistics = require 'trinity.base.statistics'
local tasks_of = require 'trinity.stragglers.tasks'
local util = require 'trinity.base.util'

---@class trinity.Replay
---@since 0.1.0
---@field path string
---@field steps integer[] numbers of the recorded steps
---@field workers integer replicas of the model, numbered from 0
---@field stages integer numbered from 0
---@field types string[] types of operations; sends and receives of one direction are one type
---@field recorded_s number[] per step: time from first start to last end
---@field replayed_s number[] per step: simulated with the gaps between operations
---@field busy_s number[] per step: simulated without gaps
---@field typical_s number[] per step: simulated without gaps and with typical operations
---@field slowdown number mean of busy_s / mean of typical_s
local Replay = { __name = 'replay' }
Replay.__index = Replay

function Replay.__tostring(self)
  return ('replay of %s: %d steps, %d replicas, %d stages, slowdown %.4g'):format(self.path, #self.steps, self.workers,
    self.stages, self.slowdown)
end

-- Returns the tasks of a step: one per operation, one before it for its gap, and one per group for its common start.
local function tasks_for(step, order)
  local tasks, own, gap, join = tasks_of.new(('step %d'):format(step.step)), {}, {}, {}
  for i = 1, #step.operations do gap[i], own[i] = tasks:add(), tasks:add() end
  for g, members in ipairs(order.groups) do
    join[g] = tasks:add()
    for _, i in ipairs(members) do
      tasks:after(join[g], gap[i])
      tasks:after(own[i], join[g])
    end
  end
  for i, earlier in ipairs(order.waits) do
    if not order.group_of[i] then tasks:after(own[i], gap[i]) end
    for _, before in ipairs(earlier) do tasks:after(gap[i], own[before]) end
  end
  tasks:build()
  tasks.own, tasks.gap, tasks.operation = own, gap, {}
  for i, task in ipairs(own) do tasks.operation[task] = i end
  return tasks
end

local function key_of(order)
  local parts = {}
  for i, earlier in ipairs(order.waits) do
    parts[i] = ('%s:%s'):format(table.concat(earlier, ','), order.group_of[i] or '')
  end
  return table.concat(parts, ';')
end

-- Returns the gap before every operation, in which none of its predecessors runs, and its time since all operations of
-- its group could start.
local function recorded(step, order)
  local list, ready, begin_s = step.operations, {}, math.huge
  for _, of in ipairs(list) do begin_s = math.min(begin_s, of.start_s) end
  step.gap_s, step.time_s, step.recorded_s = array.double(#list), array.double(#list), 0
  for i, of in ipairs(list) do
    local free_s = begin_s
    for _, before in ipairs(order.waits[i]) do free_s = math.max(free_s, list[before].end_s) end
    step.gap_s[i] = math.max(0, of.start_s - free_s)
    ready[i] = math.max(of.start_s, free_s)
    step.recorded_s = math.max(step.recorded_s, of.end_s - begin_s)
  end
  for i, of in ipairs(list) do
    local start_s = ready[i]
    for _, other in ipairs(order.groups[order.group_of[i]] or {}) do start_s = math.max(start_s, ready[other]) end
    step.time_s[i] = math.max(0, of.end_s - start_s)
  end
end

-- Returns the typical time of every type, by its rule, over all workers and steps.
local function typical_of(steps)
  local times, typical = {}, {}
  for _, step in ipairs(steps) do
    for i, of in ipairs(step.operations) do
      times[of.type] = times[of.type] or {}
      table.insert(times[of.type], step.time_s[i])
    end
  end
  for kind, list in util.sorted_pairs(times) do
    local rule = operations.types[kind].typical == 'mean' and statistics.mean or util.median
    typical[kind] = rule(list)
  end
  return typical
end

local function shown(kind) return operations.types[kind].shown or kind end

--- Simulates a step. gaps: include gaps; chosen: function of an operation, whether it is as recorded (otherwise
--- typical).
local function run(self, step, gaps, chosen)
  local tasks = step.tasks
  for i, of in ipairs(step.operations) do
    tasks:set(tasks.gap[i], gaps and step.gap_s[i] or 0)
    tasks:set(tasks.own[i], chosen(of) and step.time_s[i] or self.handle.typical[of.type])
  end
  return tasks:run()
end

local function simulate(self, gaps, chosen)
  return util.map(self.handle.steps, function(step) return (run(self, step, gaps, chosen)) end)
end

local function all() return true end
local function none() return false end

local declared = options_of.declare('trinity.ReplayChoice', {
  help = 'A choice of operations of a replay: those that match all fields.',
  { 'type', 'string', help = 'type of operation, one of replay.types' },
  { 'worker', 'integer', least = 0, help = 'replica of the model, from 0' },
  { 'stage', 'integer', least = 0, help = 'stage of the pipeline, from 0' },
})

--- The cost of chosen operations.
---@class trinity.ReplayAnswer
---@field slowdown number mean step time with only these as recorded / with all typical
---@field alone_s number[] per step: these as recorded, all others typical
---@field without_s number[] per step: these typical, all others as recorded
---@field saved number fraction of the slowdown that disappears if these are typical

local answer = printed.as('replay answer', { 'slowdown', 'saved' })

local function refuse_choice(self, given)
  local owner = 'replay:what_if'
  declared:check(owner, check.argument(owner, 1, 'choice', given, 'table'))
  local known = {}
  for _, kind in ipairs(self.types) do known[kind] = true end
  if given.type and not known[given.type] then
    util.fail("%s: option 'type': unknown type of operations %s", owner, util.unknown(given.type, self.types))
  end
  for name, count in util.sorted_pairs { worker = self.workers, stage = self.stages } do
    if given[name] and given[name] >= count then
      util.fail("%s: option '%s': expected 0 to %d, got %d", owner, name, count - 1, given[name])
    end
  end
  if next(given) == nil then util.fail('%s: choice: expected at least one of type, worker and stage, got none',
    owner) end
end

--- Predicts the cost of chosen operations, by simulating only them as recorded and only them as typical, without gaps.
--- Raises an error for an unknown type, worker or stage. Example: `replay:what_if({ stage = 0 }).slowdown`
---@param choice trinity.ReplayChoice
---@return trinity.ReplayAnswer
function Replay:what_if(choice)
  refuse_choice(self, choice)
  local function only(of)
    return (choice.type == nil or choice.type == shown(of.type))
      and (choice.worker == nil or choice.worker == of.worker) and (choice.stage == nil or choice.stage == of.stage)
  end
  local mean, alone_s = statistics.mean, simulate(self, false, only)
  local without_s = simulate(self, false, function(of) return not only(of) end)
  local busy_s, typical_s = mean(self.busy_s), mean(self.typical_s)
  return answer { slowdown = mean(alone_s) / typical_s, alone_s = alone_s, without_s = without_s,
    saved = busy_s > typical_s and (busy_s - mean(without_s)) / (busy_s - typical_s) or 0 }
end

--- A cause of waiting of the step: a worker's operations of one type on the critical path.
---@class trinity.ReplayWait
---@field worker integer replica of the model
---@field stage integer
---@field type string
---@field time_s number mean over the steps

local wait = printed.as('wait', { 'worker', 'stage', 'type', 'time_s' })

--- Returns what the steps wait for, without gaps: the critical path by worker, stage and type, longest time first.
--- Example: `replay:waits()[1]`
---@return trinity.ReplayWait[]
function Replay:waits()
  local add, list = tasks_of.sums(function(of)
    return wait { worker = of.worker, stage = of.stage, type = shown(of.type), time_s = 0 }
  end)
  for _, step in ipairs(self.handle.steps) do
    local _, path = run(self, step, false, all)
    for _, task in ipairs(path) do
      local i = step.tasks.operation[task]
      local of = step.operations[i]
      if of then
        add(('%d/%d/%s'):format(of.worker, of.stage, shown(of.type)), step.time_s[i] / #self.steps, of)
      end
    end
  end
  return list()
end

check.methods(Replay, 'trinity.Replay', 'handle')

--- Reads a trace of operations (CSV, also gzip, with the columns of ByteDance's StragglerAnalysis) and replays its
--- steps. Raises an error that names the line of a malformed row. Example:
--- `trinity.stragglers.replay('operations.csv').slowdown`
---@param path string
---@return trinity.Replay
return function(path)
  local steps, by_key = operations.read(check.path('trinity.stragglers.replay', 1, 'path', path)), {}
  local self = setmetatable({ path = path, handle = { steps = steps } }, Replay)
  for _, step in ipairs(steps) do
    local order = order_of(step)
    local key = key_of(order)
    by_key[key] = by_key[key] or tasks_for(step, order)
    step.tasks, self.stages, self.workers = by_key[key], order.stages, order.workers
    recorded(step, order)
  end
  self.handle.typical = typical_of(steps)
  local types = {}
  for kind in util.sorted_pairs(self.handle.typical) do types[shown(kind)] = true end
  self.types = util.sorted_keys(types)
  self.steps = util.map(steps, function(step) return step.step end)
  self.recorded_s = util.map(steps, function(step) return step.recorded_s end)
  self.replayed_s, self.busy_s = simulate(self, true, all), simulate(self, false, all)
  self.typical_s = simulate(self, false, none)
  self.slowdown = statistics.mean(self.busy_s) / statistics.mean(self.typical_s)
  return self
end
