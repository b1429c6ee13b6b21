-- Operations that an executed strategy runs in some steps only (attribute `occasion`, engine/graph/meaning.h): when
-- weights of DASO's groups are sent, merged and distributed.

local check = require 'trinity.base.check'
local daso = require 'trinity.dist.daso'
local util = require 'trinity.base.util'

local occasions = {}

--- Options of trinity.execute for it.
occasions.options = {
  { 'daso', 'table', as = 'trinity.CyclingOptions',
    otherwise = 'a blocking synchronization in the last of `every` steps',
    help = "with sync kind 'daso': phases and skips of a training of `epochs` (without data: equal parts of "
      .. "`steps`, default 1)" },
}

local Occasions = {}
Occasions.__index = Occasions

--- State after a step from which next() continues, as numbers by name.
local function state_of(self) return util.merged(self.schedule:state(), { loss = self.loss }) end

local function way_of(plan)
  local given = type(plan) == 'table' and plan.mesh and plan.mesh.data and plan.mesh.data > 1 and plan.sync
  return given and given.kind == 'daso' and (given.every or 1) > 0 and given or nil
end

local function course_of(options, per_epoch, steps)
  if per_epoch > 0 then return per_epoch, math.ceil(steps / per_epoch) end
  local epochs = options.epochs or 1
  if steps % epochs > 0 then
    check.refuse('execute', 3, 'options', "'epochs': expected a divisor of the %d steps, got %d", steps, epochs)
  end
  return steps / epochs, epochs
end

--- Replicas of an inner group that shard a state synchronize in every step.
local function check_skips(cycling, zero_stage)
  local held = cycling.held
  local skips = held and (held.local_skips or 1) or math.floor(cycling.max_global_skips / cycling.local_skip_factor)
  if zero_stage > 0 and skips ~= 1 then
    check.refuse('execute', 3, 'options', "'daso': with zero_stage = %d the replicas of an inner group shard one state "
      .. "and synchronize in every step; expected 1 local skip (%s), got %d", zero_stage,
      held and 'held.local_skips' or 'max_global_skips over local_skip_factor', skips)
  end
end

--- Returns the scheduled operations of a plan's steps. per_epoch: steps per epoch of the data, 0 without data; steps:
--- of the whole training.
function occasions.new(plan, options, per_epoch, steps)
  local way = way_of(plan)
  if options.daso and not way then
    check.refuse('execute', 3, 'options', "'daso' needs a strategy with sync = { kind = 'daso' }, got %s",
      type(plan) == 'table' and plan.sync and plan.sync.kind or 'none')
  end
  local self = setmetatable({ way = way, done = 0, loss = 0 }, Occasions)
  if not way then return self end
  self.inner, self.nodes, self.zero_stage = way.inner or 1, plan.mesh.data / (way.inner or 1), plan.zero_stage or 0
  if not options.daso then return self end
  local cycling = daso.cycling:read('execute', 3, 'daso', options.daso)
  if cycling.max_global_skips == 0 then
    check.refuse('execute', 3, 'options', "'daso': expected skips; without skips use sync = { kind = "
      .. "'all_reduce' }")
  end
  check_skips(cycling, self.zero_stage)
  self.batches, self.epochs = course_of(options, per_epoch, steps)
  self.schedule = daso.schedule(util.merged(cycling, { epochs = self.epochs, groups = self.inner, nodes = self.nodes }))
  self.kept = state_of(self)
  return self
end

--- Returns the state of the schedule after the last completed step, even while another runs, as numbers by name; nil
--- without a schedule.
function Occasions:state() return self.kept end

--- Resumes after this number of steps from the result of state().
function Occasions:load_state(state, done)
  self.schedule:load_state(state)
  self.done, self.loss = done, check.number('execute', 'field', 'loss', state.loss)
  self.kept = state_of(self)
end

--- Converts the schedule's actions for an executor. Actions of one step change the same weights, so an average replaces
--- an earlier merge and its distribution.
local function of_actions(actions, list)
  local merge, hand_out
  for _, action in ipairs(actions) do
    local group = action.group
    if action.what == 'send' then
      list[#list + 1] = { name = 'send' .. group, rounded = action.bfloat16 or false }
    elseif action.what == 'merge' then
      merge = { name = 'merge' .. group, age = action.age, own_weight = action.batches > 0 and 2 * action.batches or 1 }
    elseif action.what == 'average' then
      merge = { name = 'merge' .. group }
    else
      hand_out = { name = 'hand_out' .. group }
    end
  end
  list[#list + 1] = merge
  return list, hand_out
end

--- Without a schedule: every `every` steps, weights are sent and merged immediately or, if asynchronous, with the next
--- step, round-robin over places.
local function of_steps(self, done, every, list)
  local late = self.way.asynchronous
  local function place(number) return late and (number - 1) % self.inner or 0 end
  local number = (done + 1) / every
  if number % 1 == 0 then list[#list + 1] = { name = 'send' .. place(number) } end
  if late then number = done / every end
  if number % 1 ~= 0 or number == 0 then return nil end
  list[#list + 1] = { name = 'merge' .. place(number), age = late and 1 or nil, own_weight = late and 2 or nil }
  return { name = 'hand_out' .. place(number) }
end

--- Returns the operations of the next step, or nil. Steps from `done` on continue a training.
function Occasions:next(done)
  if not self.way then return nil end
  local list, hand_out = {}, nil
  local every = self.way.every or 1
  local gradients = self.inner > 1 and self.zero_stage == 0 -- otherwise in every step
  if self.schedule then
    if gradients and self.schedule.gradients == 'node' then list[1] = { name = 'gradients' } end
    list, hand_out = of_actions(self.schedule:after_batch(self.batches), list)
  else
    if gradients then list[1] = { name = 'gradients' } end
    if self.nodes > 1 then hand_out = of_steps(self, done, every, list) end
  end
  -- otherwise each place has merged its own shard
  if self.inner > 1 and self.zero_stage < 3 then list[#list + 1] = hand_out end
  return list
end

--- Counts a completed step.
function Occasions:step_done(loss)
  if not self.schedule then return end
  self.done, self.loss = self.done + 1, self.loss + loss
  if self.done % self.batches == 0 then
    self.schedule:after_epoch(self.loss / self.batches)
    self.loss = 0
  end
  self.kept = state_of(self)
end

return occasions
