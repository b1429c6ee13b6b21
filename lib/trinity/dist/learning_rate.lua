-- trinity.dist.learning_rate: the learning rate by epoch: a linear warm-up, then decay.

local check = require 'trinity.base.check'
local options_of = require 'trinity.base.options'
local util = require 'trinity.base.util'

local learning_rate = {}

local function check_factor(owner, place, name, value)
  if type(value) ~= 'number' or not (value > 0 and value <= 1) then
    check.wrong(owner, place, name, value, 'a number above 0 to 1')
  end
end

learning_rate.declared = options_of.declare('trinity.LearningRateOptions', {
  help = "The learning rate by epoch, relative to the optimizer's learning rate.",
  { 'warmup_epochs', 'integer', 0, least = 0, most = 1e6,
    help = 'warm-up epochs: epoch e, from 1, has e / (warmup_epochs + 1) of the full rate' },
  { 'decay', options_of.words('trinity.LearningRateDecay', { 'none', 'plateau', 'step', 'cosine' }), 'none',
    help = "decay after the warm-up; 'plateau': when the loss stops falling" },
  { 'factor', 'number', 0.5, check = check_factor, help = "with 'plateau' and 'step': factor on the rate" },
  { 'patience', 'integer', 5, least = 0, most = 1e6, help = "with 'plateau': epochs without a better loss before a "
    .. "decay" },
  { 'threshold', 'number', 0.05, least = 0, most = 1,
    help = "with 'plateau': relative improvement of the loss that counts" },
  { 'step_epochs', 'integer', 30, least = 1, most = 1e6, help = "with 'step': epochs between decays" },
  { 'epochs', 'integer', least = 1, most = 1e6, help = "needed with 'cosine': epochs of the whole training" },
  { 'least_rate', 'number', 0, least = 0, help = 'minimum rate' },
})

local Schedule = {}
Schedule.__index = Schedule

--- Returns the learning-rate schedule of a training. `full`: the optimizer's rate; options as
--- trinity.LearningRateOptions.
function learning_rate.new(owner, full, options)
  options = learning_rate.declared:filled(options)
  if options.decay == 'cosine' and not options.epochs then
    util.fail("%s: learning_rate: decay 'cosine' needs option 'epochs'", owner)
  end
  return setmetatable(util.merged(options, { full = full, epoch = 0, scale = 1, best_loss = math.huge,
    bad_epochs = 0 }), Schedule)
end

local function decayed(self, done)
  if self.decay == 'plateau' then return self.full * self.scale end
  if self.decay == 'step' then return self.full * self.factor ^ math.floor(done / self.step_epochs) end
  if self.decay == 'cosine' then
    local share = math.min(1, done / math.max(1, self.epochs - self.warmup_epochs))
    return self.least_rate + (self.full - self.least_rate) * (1 + math.cos(math.pi * share)) / 2
  end
  return self.full
end

--- Returns the rate of the current epoch.
function Schedule:rate()
  local done = self.epoch - self.warmup_epochs
  if done < 0 then return self.full * (self.epoch + 1) / (self.warmup_epochs + 1) end
  return math.min(self.full, math.max(self.least_rate, decayed(self, done)))
end

-- As PyTorch's ReduceLROnPlateau (min, relative threshold, no cool-down).
local function watch(self, loss)
  if loss < self.best_loss * (1 - self.threshold) then
    self.best_loss, self.bad_epochs = loss, 0
  else
    self.bad_epochs = self.bad_epochs + 1
  end
  if self.bad_epochs > self.patience then
    self.scale, self.bad_epochs = math.max(self.scale * self.factor, self.least_rate / self.full), 0
  end
end

--- loss: mean loss of the last epoch over all ranks. Losses of the warm-up do not count for a plateau.
function Schedule:after_epoch(loss)
  if self.decay == 'plateau' and self.epoch >= self.warmup_epochs then watch(self, loss) end
  self.epoch = self.epoch + 1
end

local saved = { 'epoch', 'scale', 'best_loss', 'bad_epochs' }

--- Returns the state as numbers by name.
function Schedule:state() return util.picked(self, saved) end

--- Restores a state.
function Schedule:load_state(state)
  for _, name in ipairs(saved) do
    self[name] = check.number('learning rate', 'field', name, state[name])
  end
end

return learning_rate
