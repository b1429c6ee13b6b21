-- Training on real data: epochs, learning rate, accuracy on held-out samples, checkpoints.

local core = require 'trinity.core'
local check = require 'trinity.base.check'
local learning_rate = require 'trinity.dist.learning_rate'
local util = require 'trinity.base.util'

local training = {}

--- Reads the data of a training on `graph`, from the options of trinity.execute. Errors name the file and position if
--- it is malformed or does not match the inputs of the graph.
function training.read(graph, path, scale, train_rows)
  return core.data_set(path, { scale = scale, train_rows = train_rows }, graph.handle)
end

local function check_data(owner, place, name, data)
  if type(data) ~= 'string' and type(data) ~= 'userdata' then check.wrong(owner, place, name, data, 'a path') end
end

--- Options of trainings, in addition to the options of every execution.
training.options = {
  { 'data', 'any', check = check_data, as = 'string', otherwise = 'random numbers',
    help = 'training data, a file or directory: CSV (also .gz), CIFAR-10 batches, PTB or other text, safetensors' },
  { 'scale', 'number', otherwise = "1, of images' bytes 1 / 255", help = 'factor applied to the numbers in `data`' },
  { 'train_rows', 'integer', least = 1, most = 2 ^ 40, otherwise = 'what the files say',
    help = 'training samples (symbols of a text); the others are held out' },
  { 'epochs', 'integer', least = 1, most = 1e6, otherwise = '`steps`', help = 'passes over the training samples' },
  { 'rate', learning_rate.declared, otherwise = 'the same in every epoch',
    help = 'warm-up and decay of the learning rate' },
  { 'checkpoint', 'string', otherwise = 'none',
    help = 'checkpoint file: training resumes from it if it exists, and writes it after every epoch and at the end' },
  { 'load', 'string', otherwise = 'random weights', help = 'safetensors file with the initial weights' },
  { 'save', 'string', otherwise = 'none', help = 'write the final weights to this safetensors file' },
}

local Training = {}
Training.__index = Training

--- Returns the entries of a table with names 'PREFIX.NAME', by NAME.
local function with_prefix(numbers, prefix)
  local found = {}
  for name, value in util.sorted_pairs(numbers) do
    local rest = name:match('^' .. prefix .. '%.(.+)$')
    if rest then found[rest] = value end
  end
  return found
end

function training.new(executor, graph, options)
  local per_epoch, held_out, samples = executor:epoch()
  local self = setmetatable({ executor = executor, graph = graph, options = options, per_epoch = per_epoch,
    held_out = held_out, samples = samples, done = 0, accuracies = {} }, Training)
  self.epoch_loss, self.epoch_steps = 0, 0
  if options.load then executor:load(options.load) end
  if options.checkpoint and util.exists(options.checkpoint) then
    self.done, self.kept = executor:load(options.checkpoint, true)
    self.epoch_loss, self.epoch_steps = self.kept.epoch_loss or 0, self.kept.epoch_steps or 0
  end
  self.rate = options.rate and learning_rate.new('execute', options.learning_rate, options.rate)
  self.steps = options.epochs and per_epoch > 0 and options.epochs * per_epoch or options.steps
  if self.done >= self.steps then
    check.refuse('execute', 3, 'options', "'checkpoint': %s: expected fewer than the %d steps of this training, got %d",
      options.checkpoint, self.steps, self.done)
  end
  if self.rate and self.kept then
    local epoch = per_epoch > 0 and math.floor(self.done / per_epoch) or 0
    self.rate:load_state(util.merged(self.rate:state(), { epoch = epoch }, with_prefix(self.kept, 'rate')))
  end
  return self
end

--- Returns the scheduled operations (trinity.execute.occasions), resumed from the checkpoint.
function Training:follow(happens)
  self.happens = happens
  if not self.kept or not happens.schedule then return end
  local state, path = with_prefix(self.kept, 'daso'), self.options.checkpoint
  if next(state) == nil then
    check.refuse('execute', 3, 'options', "'checkpoint': %s: expected a training with option 'daso', got one without",
      path)
  end
  local batch = self.done % happens.batches
  if state.batch ~= batch then
    check.refuse('execute', 3, 'options', "'checkpoint': %s: expected batch %d of an epoch (step %d of epochs of %d), "
      .. 'got %s', path, batch, self.done, happens.batches, tostring(state.batch))
  end
  happens:load_state(state, self.done)
end

--- Returns the learning rate of the next step, or nil if it does not change.
function Training:learning_rate() return self.rate and self.rate:rate() end

--- Returns the accuracy on the held-out samples, or nil if there are none.
function Training:evaluate()
  if self.held_out == 0 then return nil end
  local samples, loss, accuracy = self.executor:evaluate(self.graph.handle)
  return accuracy, loss, samples
end

--- Counts a completed step, and does the work at the end of an epoch.
function Training:step_done(loss)
  self.done = self.done + 1
  self.epoch_loss, self.epoch_steps = self.epoch_loss + loss, self.epoch_steps + 1
  if self.per_epoch == 0 or self.done % self.per_epoch > 0 then return end
  if self.rate then self.rate:after_epoch(self.epoch_loss / self.epoch_steps) end
  self.epoch_loss, self.epoch_steps = 0, 0
  self.accuracies[#self.accuracies + 1] = self:evaluate()
  self:keep()
end

--- Writes the checkpoint.
function Training:keep()
  if not self.options.checkpoint then return end
  local numbers = { epoch_loss = self.epoch_loss, epoch_steps = self.epoch_steps }
  local states = { rate = self.rate and self.rate:state(), daso = self.happens:state() }
  for prefix, state in util.sorted_pairs(states) do
    for name, value in util.sorted_pairs(state) do numbers[prefix .. '.' .. name] = value end
  end
  self.executor:save(self.options.checkpoint, numbers)
end

--- Returns the progress text after a step with this loss and step time.
function Training:says(loss, step_time_s)
  local text = ('step %d/%d  loss %.6g  %.4g s'):format(self.done, self.steps, loss, step_time_s)
  if self.samples == 0 then return text end
  local accuracy = self.accuracies[#self.accuracies]
  return ('%s  %.4g samples/s%s'):format(text, self.samples / step_time_s,
    accuracy and ('  accuracy %.4f'):format(accuracy) or '')
end

function Training:result(result)
  if self.per_epoch > 0 then
    result.accuracies = self.accuracies
    result.samples_per_s = self.samples / result.step_time_s
    result.accuracy, result.held_out_loss, result.held_out_samples = self:evaluate()
  end
  if self.options.save then self.executor:save(self.options.save) end
  result.steps_done = self.done
  return result
end

--- Checks before any computation that output files can be written.
function training.check(options)
  for _, name in ipairs { 'checkpoint', 'save' } do
    if options[name] then core.check_output(options[name]) end
  end
end

return training
