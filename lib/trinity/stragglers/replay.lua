-- trinity.stragglers.replay: simulates recorded steps again, and predicts their time if some operations were typical.

local check = require 'trinity.base.check'
local csv = require 'trinity.base.csv'
local json = require 'trinity.base.json'
local operations = require 'trinity.stragglers.operations'
local options_of = require 'trinity.base.options'
local order_of = require 'trinity.stragglers.order'
local statistics = require 'trinity.base.statistics'
local tasks_of = require 'trinity.stragglers.tasks'
local util = require 'trinity.base.util'

---@class trinity.Replay
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

-- Returns the tasks of a step: one per operation, one before each for its gap, and one per group for its common start.
-- known: tasks by dependencies, which most steps share.
local function tasks_for(step, known)
  local count, waits, key = #step.operations, {}, json.encode { step.order.waits, step.order.groups }
  for i, earlier in ipairs(step.order.waits) do
    local group = step.order.group_of[i]
    waits[i], waits[count + i] = { group and 2 * count + group or count + i }, earlier
  end
  for g, members in ipairs(step.order.groups) do
    waits[2 * count + g] = util.map(members, function(i) return count + i end)
  end
  known[key] = known[key] or csv.attempt(tasks_of.new, 'step', waits)
  return known[key]
    or util.fail('%s: expected an order of operations, got some that wait for each other', step.where)
end

-- Returns the gap before every operation, in which none of its predecessors runs, its time since all operations of its
-- group could start, and the time of the step.
local function recorded(step)
  local list, order, ready, gap_s, begin_s, end_s = step.operations, step.order, {}, {}, math.huge, -math.huge
  for _, of in ipairs(list) do begin_s, end_s = math.min(begin_s, of.start_s), math.max(end_s, of.end_s) end
  for i, of in ipairs(list) do
    local free_s = begin_s
    for _, before in ipairs(order.waits[i]) do free_s = math.max(free_s, list[before].end_s) end
    gap_s[i], ready[i] = math.max(0, of.start_s - free_s), math.max(of.start_s, free_s)
  end
  return gap_s, util.map(list, function(of, i)
    local start_s = ready[i]
    for _, other in ipairs(order.groups[order.group_of[i]] or {}) do start_s = math.max(start_s, ready[other]) end
    return math.max(0, of.end_s - start_s)
  end), end_s - begin_s
end

-- Returns the typical time of every type, by its rule, over all workers and steps.
local function typical_of(steps)
  local times = {}
  for _, step in ipairs(steps) do
    for i, of in ipairs(step.operations) do
      times[of.type] = times[of.type] or {}
      table.insert(times[of.type], step.time_s[i])
    end
  end
  for kind, list in util.sorted_pairs(times) do times[kind] = operations.types[kind].typical(list) end
  return times
end

local function shown(kind) return operations.types[kind].shown or kind end

--- Simulates a step. gaps: include gaps; chosen: function of an operation, whether it is as recorded (otherwise
--- typical). Returns its seconds and its critical path.
local function run(self, step, gaps, chosen)
  local time_s, count = {}, #step.operations
  for i, of in ipairs(step.operations) do
    time_s[i] = chosen(of) and step.time_s[i] or self.handle.typical[of.type]
    time_s[count + i] = gaps and step.gap_s[i] or 0
  end
  for g = 1, #step.order.groups do time_s[2 * count + g] = 0 end
  return step.tasks(time_s)
end

local function simulate(self, gaps, chosen)
  return util.map(self.handle.steps, function(step) return (run(self, step, gaps, chosen)) end)
end

local function all() return true end

local function number_of(name, help)
  local most = options_of.bound('the last ' .. name, function(replay) return replay[name .. 's'] - 1 end)
  return { name, 'integer', least = 0, most = most, help = help }
end

local declared = options_of.declare('trinity.ReplayChoice', {
  help = 'A choice of operations of a replay: those that match all fields.',
  { 'type', 'string', help = 'type of operation, one of replay.types' },
  number_of('worker', 'replica of the model, from 0'), number_of('stage', 'stage of the pipeline, from 0'),
})


--- Predicts the cost of chosen operations, by simulating only them as recorded and only them as typical, without gaps.
--- Raises an error for an unknown type, worker or stage. Example: `replay:what_if({ stage = 0 }).slowdown`
---@param choice trinity.ReplayChoice
---@return trinity.ReplayAnswer
function Replay:what_if(choice)
  local owner = 'replay:what_if'
  declared:check(owner, check.argument(owner, 1, 'choice', choice, 'table'), self)
  if choice.type then check.choice(owner, 'option', 'type', choice.type, self.handle.types) end
  if next(choice) == nil then
    util.fail('%s: choice: expected at least one of type, worker and stage, got none', owner)
  end
  local function only(of)
    return (choice.type == nil or choice.type == shown(of.type))
      and (choice.worker == nil or choice.worker == of.worker) and (choice.stage == nil or choice.stage == of.stage)
  end
  local mean, alone_s = statistics.mean, simulate(self, false, only)
  local without_s = simulate(self, false, function(of) return not only(of) end)
  local busy_s, typical_s = mean(self.busy_s), mean(self.typical_s)
  return { slowdown = mean(alone_s) / typical_s, alone_s = alone_s, without_s = without_s,
    saved = busy_s > typical_s and (busy_s - mean(without_s)) / (busy_s - typical_s) or 0 }
end


--- Returns what the steps wait for, without gaps: the critical path by worker, stage and type, longest time first.
--- Example: `replay:waits()[1]`
---@return trinity.ReplayWait[]
function Replay:waits()
  local add, list = tasks_of.sums(function(of)
    return { worker = of.worker, stage = of.stage, type = shown(of.type), time_s = 0 }
  end)
  for _, step in ipairs(self.handle.steps) do
    local _, path = run(self, step, false, all)
    for _, task in ipairs(path) do
      local of = step.operations[task] -- nil: a gap, or the start of a group
      if of then add(('%d/%d/%s'):format(of.worker, of.stage, shown(of.type)), step.time_s[task] / #self.steps, of) end
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
  local steps = operations.read(check.path('trinity.stragglers.replay', 1, 'path', path))
  local self, known = setmetatable({ path = path, handle = { steps = steps } }, Replay), {}
  self.recorded_s = util.map(steps, function(step)
    local recorded_s
    step.order = order_of(step)
    step.tasks, step.gap_s, step.time_s, recorded_s = tasks_for(step, known), recorded(step)
    self.stages, self.workers = step.order.stages, step.order.workers
    return recorded_s
  end)
  self.handle.typical = typical_of(steps)
  self.handle.types = {}
  for kind in util.sorted_pairs(self.handle.typical) do self.handle.types[shown(kind)] = true end
  self.types, self.steps = util.sorted_keys(self.handle.types), util.map(steps, function(step) return step.step end)
  self.replayed_s, self.busy_s = simulate(self, true, all), simulate(self, false, all)
  self.typical_s = simulate(self, false, function() return false end)
  self.slowdown = statistics.mean(self.busy_s) / statistics.mean(self.typical_s)
  return self
end
