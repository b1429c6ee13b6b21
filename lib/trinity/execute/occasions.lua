-- What happens in single steps of an executed strategy beside what happens in every one (attribute `occasion`,
-- engine/graph/meaning.h): when weights of DASO's groups are sent, merged and handed out.

local check = require 'trinity.base.check'
local daso = require 'trinity.dist.daso'
local util = require 'trinity.base.util'

local occasions = {}

--- What trinity.execute takes of it.
occasions.options = {
  { 'daso', 'table', as = 'trinity.CyclingOptions', otherwise = 'weights meet and wait in the last of `every` steps',
    help = "of strategies whose replicas meet by 'daso': phases and skips of a training of `epochs` (without data "
      .. 'of so many equal parts of `steps`, by default one)' },
}

local Occasions = {}
Occasions.__index = Occasions

--- What next() goes by behind a step, as numbers by name.
local function state_of(self) return util.merged(self.schedule:state(), { loss = self.loss }) end

local function way_of(plan)
  local given = type(plan) == 'table' and plan.mesh and plan.mesh.data and plan.mesh.data > 1 and plan.synchronise
  return given and given.kind == 'daso' and (given.every or 1) > 0 and given or nil
end

--- Steps of an epoch and epochs of a training.
local function course_of(options, per_epoch, steps)
  if per_epoch > 0 then return per_epoch, math.ceil(steps / per_epoch) end
  local epochs = options.epochs or 1
  if steps % epochs > 0 then
    check.refuse('execute', 3, 'options', "'epochs': expected a divisor of the %d steps, got %d", steps, epochs)
  end
  return steps / epochs, epochs
end

--- The occasions of a plan's steps. per_epoch: steps of an epoch of the data, 0 without; steps: of the whole training.
function occasions.new(plan, options, per_epoch, steps)
  local way = way_of(plan)
  if options.daso and not way then
    check.refuse('execute', 3, 'options', "'daso': expected a strategy whose replicas meet by 'daso', got %s",
      type(plan) == 'table' and plan.synchronise and plan.synchronise.kind or 'none')
  end
  local self = setmetatable({ way = way, done = 0, loss = 0 }, Occasions)
  if not way then return self end
  self.inner, self.nodes = way.inner or 1, plan.mesh.data / (way.inner or 1)
  if not options.daso then return self end
  local cycling = daso.cycling:read('execute', 3, 'daso', options.daso)
  if cycling.max_global_skips == 0 then
    check.refuse('execute', 3, 'options', "'daso': without skips it is synchronise = { kind = 'all_reduce' }")
  end
  self.batches, self.epochs = course_of(options, per_epoch, steps)
  self.schedule = daso.schedule(util.merged(cycling, { epochs = self.epochs, groups = self.inner, nodes = self.nodes }))
  self.kept = state_of(self)
  return self
end

--- What the steps to come go by, as numbers by name: behind the last step that was done, even while another runs. nil:
--- without a schedule.
function Occasions:state() return self.kept end

--- Goes on behind so many steps of a training, where state() was that.
function Occasions:load_state(state, done)
  self.schedule:load_state(state)
  self.done, self.loss = done, check.number('execute', 'field', 'loss', state.loss)
  self.kept = state_of(self)
end

--- What the schedule's actions are to an executor. Those of one step work on the same weights: an average leaves
--- nothing of a merge before it, nor its handing out of another's.
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

--- Of the next step, nil: none. Steps from `done` on are those of a training that goes on.
function Occasions:next(done)
  if not self.way then return nil end
  local list, hand_out = {}, nil
  local every = self.way.every or 1
  if self.schedule then
    if self.inner > 1 and self.schedule.gradients == 'node' then list[1] = { name = 'gradients' } end
    list, hand_out = of_actions(self.schedule:after_batch(self.batches), list)
  else
    if self.inner > 1 then list[1] = { name = 'gradients' } end
    if self.nodes > 1 and (done + 1) % every == 0 then
      list[#list + 1], list[#list + 2], hand_out = { name = 'send0' }, { name = 'merge0' }, { name = 'hand_out0' }
    end
  end
  if self.inner > 1 then list[#list + 1] = hand_out end
  return list
end

--- A step is done.
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
