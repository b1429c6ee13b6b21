-- The schedule of DASO (Coquelin et al., "Accelerating neural network training with distributed
-- asynchronous and selective optimization (DASO)", Journal of Big Data 9:14, 2022) as its published code runs it
-- (Heat, heat/optim/dp_optimizer.py). It returns the actions after every batch and epoch; its user executes them:
-- lib/trinity/execute/occasions.lua in a training, the study `papers` with simulated times.
--
--   local schedule = daso.schedule { epochs = 40 }
--   -- before a batch: average gradients over schedule.gradients: 'node', 'world', or nobody (nil)
--   for _, action in ipairs(schedule:after_batch(batches)) do ... end
--   schedule:after_epoch(loss) -- the mean loss of all ranks
--
-- Epochs, batches and groups count from 0, as local ranks do: group j is the GPU with local rank j of every node.

local check = require 'trinity.base.check'
local options_of = require 'trinity.base.options'
local util = require 'trinity.base.util'

local daso = {}

-- Counts of epochs, batches and groups start at 0. `gradients`: ranks over which gradients of the next batch are
-- averaged: 'node', 'world' or nil.
local Schedule = { __name = 'schedule of DASO' }
Schedule.__index = Schedule

function Schedule.__tostring(self)
  return ('DASO: epoch %d of %d, global skips %d, local skips %d, batches to wait %d'):format(self.epoch, self.epochs,
    self.global_skips, self.local_skips, self.batches_to_wait)
end

local held_skips = options_of.declare('trinity.HeldSkips', { help = 'Constant skips.',
  { 'global_skips', 'integer', least = 1, most = 1e6, needed = true, help = 'batches between global synchronizations' },
  { 'local_skips', 'integer', 1, least = 1, most = 1e6, help = 'batches between synchronizations within a node' },
  { 'batches_to_wait', 'integer', 1, least = 0, most = 1e6, help = 'batches until sent weights are merged' },
})

--- Options of a schedule that do not follow from the training.
daso.cycling = options_of.declare('trinity.CyclingOptions', {
  help = 'Options of the schedule of DASO that do not follow from the training.',
  { 'warmup_epochs', 'integer', 4, least = 0, most = 1e6, help = 'first epochs, which synchronize every batch' },
  { 'cooldown_epochs', 'integer', 4, least = 0, most = 1e6, help = 'last epochs, which synchronize every batch' },
  { 'stability_level', 'number', 0.05, least = 0, most = 1,
    help = 'relative improvement of the loss over the best that counts' },
  { 'patience', 'integer', 2, least = 0, most = 1e6, help = 'epochs without improvement before the skips change' },
  { 'max_global_skips', 'integer', 8, least = 0, most = 1e6, help = 'maximum of global_skips; 0: gradients are '
    .. 'averaged over all ranks in every batch, as without DASO' },
  { 'skip_reduction_factor', 'integer', 2, least = 2, most = 1e6, help = 'divisor of the skips when they change' },
  { 'local_skip_factor', 'integer', 4, least = 1, most = 1e6, help = 'global skips per local skip' },
  { 'held', held_skips, help = 'constant skips for the whole cycling phase' },
  { 'age', options_of.words('trinity.DataAge', { 'true', 'code' }), 'true', help = "weights of stale data by their "
    .. "'true' age, or by the planned one ('code'); they differ for global_skips = 2" },
  { 'bfloat16', 'boolean', true, help = 'round data of blocking phases to bfloat16' },
})

local schedule_options = options_of.declare('trinity.ScheduleOptions', { extends = daso.cycling,
  help = 'Options of daso.schedule.',
  { 'epochs', 'integer', least = 1, most = 1e6, needed = true, help = 'epochs of the whole training' },
  { 'groups', 'integer', 1, least = 1, most = 1e6, help = 'GPUs per node' },
  { 'nodes', 'integer', 2, least = 1, most = 1e6, help = 'number of nodes' },
})

local function set(self, global_skips, local_skips, batches_to_wait)
  self.global_skips, self.local_skips, self.batches_to_wait = global_skips, local_skips, batches_to_wait
end

--- The first values of the cycling phase: 4, 1, 1 for every max_global_skips, as in the code.
local function start_cycling(self)
  local held = self.held
  if held then return set(self, held.global_skips, held.local_skips, held.batches_to_wait) end
  set(self, 4, 1, 1)
end

--- Returns the ranks over which gradients of the next batch are averaged.
local function set_gradients(self)
  self.gradients = self.max_global_skips == 0 and 'world' or self.local_sync and 'node' or nil
end

--- Returns the schedule of a training. Raises an error for wrong options.
function daso.schedule(options)
  options = schedule_options:read('daso.schedule', 1, 'options', options)
  local self = setmetatable(util.merged(options, { epoch = 0, batch = 0, group = 0, local_sync = true,
    best_loss = math.huge, bad_epochs = 0 }), Schedule)
  set(self, 0, 0, 0)
  if self.warmup_epochs == 0 and self.epochs > self.cooldown_epochs then start_cycling(self) end
  set_gradients(self)
  return self
end

local function receive(self, actions)
  if self.sent then
    local age = self.batch - self.sent.batch
    actions[#actions + 1] = { what = 'merge', group = self.sent.group, age = age,
      batches = self.age == 'code' and self.sent.planned or age }
    self.sent = nil
  end
  if self.previous then actions[#actions + 1] = { what = 'broadcast', group = self.previous } end
end

--- Returns the actions of a batch with a global synchronization; its data is merged after `planned` batches.
local function sync(self, last, planned, actions)
  local blocking = self.batch == last or self.batches_to_wait == 0
  local outgoing = { group = self.group, batch = self.batch, planned = planned }
  actions[#actions + 1] = { what = 'send', group = self.group, bfloat16 = self.bfloat16 and self.global_skips < 1 }
  if self.batches_to_wait ~= 0 then receive(self, actions) end
  if blocking then
    actions[#actions + 1] = { what = 'average', group = self.group }
    actions[#actions + 1] = { what = 'broadcast', group = self.group }
    self.sent, self.previous = nil, nil
  else
    self.sent, self.previous = outgoing, self.group
  end
  self.group = (self.group + 1) % self.groups
end

local function between(self, last, wait, actions)
  local t, skips = self.batch, self.global_skips
  if (t + 1) % skips == 0 then
    self.local_sync = true
    return
  end
  local place = t % skips
  if place >= wait then
    if place == wait then
      receive(self, actions)
      if self.local_skips > 1 then self.local_sync = false end
    end
    if self.local_skips == 1 then
      self.local_sync = true
    elseif self.local_skips == 0 or t % self.local_skips == 0 then
      self.local_sync = false
    elseif (t + 1) % self.local_skips == 0 then
      self.local_sync = true
    end
  end
  if t + 1 == last then self.local_sync = true end
end

--- Returns the actions after the optimizer's step of the current batch, of `batches` in the epoch, in order. An
--- action is one of
---   { what = 'send', group =, bfloat16 = }    members of the group start the sum of their parameters
---   { what = 'merge', group =, age =, batches = }    they wait for the sum sent `age` batches ago, and merge it as
---                                             if it were of `batches`: of own values x and a sum s of m
---                                             members (2 batches x + s) / (2 batches + m), x once for 0
---   { what = 'average', group = }             they wait for what they just sent, and take the mean
---   { what = 'broadcast', group = }           in every node, the member gives its parameters to the others
function Schedule:after_batch(batches)
  check.integer('schedule:after_batch', 1, 'batches', batches, self.batch + 1, 2 ^ 40)
  local actions, t, last = {}, self.batch, batches - 1
  if self.nodes > 1 and self.max_global_skips > 0 then
    local wait = math.min(self.batches_to_wait, last - t)
    if t == last or self.global_skips == 0 or t % self.global_skips == 0 then
      sync(self, last, wait, actions)
    else
      between(self, last, wait, actions)
    end
  end
  self.batch = t + 1
  if t == last then
    self.epoch, self.batch, self.group = self.epoch + 1, 0, 0
  end
  set_gradients(self)
  return actions
end

--- Returns whether the loss has stopped improving. A plateau resets the count.
local function is_plateau(self, loss)
  local bar = loss ~= loss and -math.huge or self.best_loss * (1 - self.stability_level)
  if self.best_loss < 0 then bar = self.best_loss * (1 + self.stability_level) end
  if loss < bar then
    self.best_loss, self.bad_epochs = loss, 0
  else
    self.bad_epochs = self.bad_epochs + 1
  end
  if self.bad_epochs <= self.patience then return false end
  self.bad_epochs = 0
  return true
end

local function reduce_skips(self)
  local factor = self.skip_reduction_factor
  local global_skips = math.floor(self.global_skips / factor)
  local local_skips, wait = math.floor(self.local_skips / factor), self.batches_to_wait - 1
  if global_skips > 0 then local_skips, wait = math.max(local_skips, 1), math.max(wait, 1) end
  set(self, global_skips, local_skips, math.max(wait, 0))
end

--- Sets the skips of the next epoch from the loss of the last one. Raises an error within an epoch.
function Schedule:after_epoch(loss)
  if type(loss) ~= 'number' then check.wrong('schedule:after_epoch', 1, 'loss', loss, 'a number') end
  if self.batch ~= 0 then util.fail('schedule:after_epoch: expected the end of an epoch, got batch %d', self.batch) end
  if self.epoch < self.warmup_epochs then return set(self, 0, 0, 0) end
  if self.epoch == self.warmup_epochs then start_cycling(self) end
  if self.epoch >= self.epochs - self.cooldown_epochs then return set(self, 0, 0, 0) end
  local plateau = is_plateau(self, loss)
  if self.held or not plateau then return end
  if self.global_skips > 1 then
    reduce_skips(self)
  elseif self.global_skips == 1 then
    local part = math.floor(self.max_global_skips / self.local_skip_factor)
    set(self, self.max_global_skips, part, part)
  end
end

--- Returns the phase of the current epoch: 'warm-up', 'cycling' or 'cool-down'.
function Schedule:phase()
  if self.epoch >= self.epochs - self.cooldown_epochs then return 'cool-down' end
  return self.epoch < self.warmup_epochs and 'warm-up' or 'cycling'
end

local saved = { 'epoch', 'batch', 'group', 'global_skips', 'local_skips', 'batches_to_wait', 'best_loss', 'bad_epochs' }
local of_sent = { 'group', 'batch', 'planned' }

--- Returns the state of the schedule as numbers by name (-1: none), for checkpoints.
function Schedule:state()
  local state = util.merged(util.picked(self, saved), { local_sync = self.local_sync and 1 or 0,
    previous = self.previous or -1 })
  for _, name in ipairs(of_sent) do state['sent_' .. name] = self.sent and self.sent[name] or -1 end
  return state
end

--- Restores a state.
function Schedule:load_state(state)
  check.argument('schedule:load_state', 1, 'state', state, 'table')
  local function number(name) return check.number('schedule:load_state', 'field', name, state[name]) end
  for _, name in ipairs(saved) do self[name] = number(name) end
  self.local_sync, self.previous, self.sent = number 'local_sync' > 0, number 'previous', {}
  for _, name in ipairs(of_sent) do self.sent[name] = number('sent_' .. name) end
  if self.previous < 0 then self.previous = nil end
  if self.sent.batch < 0 then self.sent = nil end
  set_gradients(self)
end

return daso
