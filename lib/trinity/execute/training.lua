-- Training on data that someone else made: epochs, the learning rate, accuracy on held-out samples, checkpoints.

local core = require 'trinity.core'
local check = require 'trinity.base.check'
local learning_rate = require 'trinity.dist.learning_rate'
local util = require 'trinity.base.util'

local training = {}

--- What a training on `graph` reads, of the options of trinity.execute. A malformed file, and one that does not fit the
--- inputs of the graph, is named with its place.
function training.read(graph, path, scale, train_rows)
  return core.data_set(path, { scale = scale, train_rows = train_rows }, graph.handle)
end

local function check_data(owner, place, name, data)
  if type(data) ~= 'string' and type(data) ~= 'userdata' then check.wrong(owner, place, name, data, 'a path') end
end

--- What trainings take beside what every execution takes.
training.options = {
  { 'data', 'any', check = check_data, as = 'string', otherwise = 'drawn numbers',
    help = 'a file or folder: CSV (.gz too), CIFAR-10 batches, PTB or another text, safetensors' },
  { 'scale', 'number', otherwise = "1, of images' bytes 1 / 255", help = 'factor of the numbers in `data`' },
  { 'train_rows', 'integer', least = 1, most = 2 ^ 40, otherwise = 'what the files say',
    help = 'samples (symbols of a text) that train; the rest is held out' },
  { 'epochs', 'integer', least = 1, most = 1e6, otherwise = '`steps`', help = 'passes over the samples that train' },
  { 'rate', learning_rate.declared, otherwise = 'the same in every epoch',
    help = 'warm-up and decay of the learning rate by epoch' },
  { 'checkpoint', 'string', otherwise = 'none',
    help = 'a file that is written after every epoch and where it stops before, and gone on with where it is there' },
  { 'load', 'string', otherwise = 'drawn weights', help = 'a safetensors file of weights to begin with' },
  { 'save', 'string', otherwise = 'none', help = 'where the weights go at the end, as safetensors' },
}

local Training = {}
Training.__index = Training

--- The entries of a table whose names begin with a word and a point, without these.
local function with_prefix(numbers, prefix)
  local found = {}
  for name, value in util.sorted_pairs(numbers) do
    local rest = name:match('^' .. prefix .. '%.(.+)$')
    if rest then found[rest] = value end
  end
  return found
end

--- A training whose executor has just been made.
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
    check.refuse('execute', 3, 'options', "'checkpoint': %s has %d steps, expected fewer than the %d of this training",
      options.checkpoint, self.done, self.steps)
  end
  if self.rate and self.kept then
    local epoch = per_epoch > 0 and math.floor(self.done / per_epoch) or 0
    self.rate:load_state(util.merged(self.rate:state(), { epoch = epoch }, with_prefix(self.kept, 'rate')))
  end
  return self
end

--- What is done in single steps (trinity.execute.occasions), which goes on as the checkpoint has it.
function Training:follow(happens)
  self.happens = happens
  if not self.kept or not happens.schedule then return end
  local state, path = with_prefix(self.kept, 'daso'), self.options.checkpoint
  if next(state) == nil then
    check.refuse('execute', 3, 'options', "'checkpoint': %s is of a training without option 'daso'", path)
  end
  local batch = self.done % happens.batches
  if state.batch ~= batch then
    check.refuse('execute', 3, 'options', "'checkpoint': %s is of batch %s of an epoch, expected %d (step %d of epochs "
      .. 'of %d)', path, tostring(state.batch), batch, self.done, happens.batches)
  end
  happens:load_state(state, self.done)
end

--- The learning rate of the next step, nil: the one that the executor has.
function Training:learning_rate() return self.rate and self.rate:rate() end

--- Accuracy on the held-out samples, nil where there are none.
function Training:evaluate()
  if self.held_out == 0 then return nil end
  local samples, loss, accuracy = self.executor:evaluate(self.graph.handle)
  return accuracy, loss, samples
end

--- A step is done: at the end of an epoch what belongs there.
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

--- What is told as it goes: behind a step of this loss, where a step takes so long.
function Training:says(loss, step_time_s)
  local text = ('step %d/%d  loss %.6g  %.4g s'):format(self.done, self.steps, loss, step_time_s)
  if self.samples == 0 then return text end
  local accuracy = self.accuracies[#self.accuracies]
  return ('%s  %.4g samples/s%s'):format(text, self.samples / step_time_s,
    accuracy and ('  accuracy %.4f'):format(accuracy) or '')
end

--- What a result tells of it.
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

--- Refuses what cannot be, before anything is computed: a file that cannot be written.
function training.check(options)
  for _, name in ipairs { 'checkpoint', 'save' } do
    if options[name] then core.check_output(options[name]) end
  end
end

return training
