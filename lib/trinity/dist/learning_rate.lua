-- trinity.dist.learning_rate: the learning rate of a training by epoch: a warm-up in even steps, then decay.

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
  help = "The optimiser's learning rate by epoch; its own one is the full one.",
  { 'warmup_epochs', 'integer', 0, least = 0, most = 1e6,
    help = 'epoch e of these, from 1, has the share e / (warmup_epochs + 1) of the full rate' },
  { 'decay', options_of.words('trinity.LearningRateDecay', { 'none', 'plateau', 'step', 'cosine' }), 'none',
    help = "behind the warm-up; 'plateau': when the loss stops falling" },
  { 'factor', 'number', 0.5, check = check_factor, help = "of 'plateau' and 'step': what the rate is multiplied by" },
  { 'patience', 'integer', 5, least = 0, most = 1e6, help = "of 'plateau': epochs without a better loss, before" },
  { 'threshold', 'number', 0.05, least = 0, most = 1,
    help = "of 'plateau': a loss is better when it is below the best by this share" },
  { 'step_epochs', 'integer', 30, least = 1, most = 1e6, help = "of 'step': epochs between" },
  { 'epochs', 'integer', least = 1, most = 1e6, help = "of 'cosine', which needs it: of the whole training" },
  { 'least_rate', 'number', 0, least = 0, help = 'decay goes no lower' },
})

local Schedule = {}
Schedule.__index = Schedule

--- What a training follows. `full`: the optimiser's rate; options as trinity.LearningRateOptions.
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

--- Of the running epoch.
function Schedule:rate()
  local done = self.epoch - self.warmup_epochs
  if done < 0 then return self.full * (self.epoch + 1) / (self.warmup_epochs + 1) end
  return math.min(self.full, math.max(self.least_rate, decayed(self, done)))
end

-- As PyTorch's ReduceLROnPlateau has it (min, relative threshold, no cool-down).
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

--- loss: of the epoch that ended, the mean of all ranks. Losses of the warm-up tell no plateau.
function Schedule:after_epoch(loss)
  if self.decay == 'plateau' and self.epoch >= self.warmup_epochs then watch(self, loss) end
  self.epoch = self.epoch + 1
end

local saved = { 'epoch', 'scale', 'best_loss', 'bad_epochs' }

--- What changes, as numbers by name.
function Schedule:state() return util.picked(self, saved) end

--- Takes back what state() gave.
function Schedule:load_state(state)
  for _, name in ipairs(saved) do
    self[name] = check.number('learning rate', 'field', name, state[name])
  end
end

return learning_rate
