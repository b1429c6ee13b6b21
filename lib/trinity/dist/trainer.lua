-- trinity.dist.trainer: trains a network of trinity.nn on all ranks of a job, in step ('bsp') or with DASO.
--
-- bsp: the gradients of every batch are averaged over all ranks before the optimiser's step: added up in the node,
-- by one rank a node between the nodes, and handed out in the node. They travel in buckets while the backward pass
-- goes on (engine/distribute/gradient_buckets.h), as with Horovod or PyTorch: what DASO has to be compared with.
-- daso: trinity.daso says what happens when. Gradients are averaged in the node; parameters travel between the
-- nodes, in one buffer, while the next batches are computed.
--
-- A job of one node, and a schedule with max_global_skips = 0, take the road of bsp, to the byte.

local core = require 'trinity.core'
local check = require 'trinity.base.check'
local checkpoints = require 'trinity.runs.checkpoints'
local daso = require 'trinity.dist.daso'
local learning_rate = require 'trinity.dist.learning_rate'
local nn = require 'trinity.nn'
local optimisers = require 'trinity.nn.optimisers'
local options_of = require 'trinity.base.options'
local tensor = require 'trinity.nn.tensor'
local util = require 'trinity.base.util'

---@class trinity.Trainer
---@since 0.1.0
---@field job trinity.Job
---@field module trinity.Module
---@field optimiser trinity.NetworkOptimiser
---@field method trinity.TrainingMethod
---@field schedule? trinity.DasoSchedule
---@field bucket_bytes integer of gradients that travel together
---@field overlap boolean whether they travel while the backward pass goes on
---@field parameters trinity.TorchTensor[]
---@field count integer elements of all parameters
---@field chunk_elements integer
---@field epochs_done integer
---@field wait_s number seconds spent in communication so far that nothing hid
local Trainer = { __name = 'trainer' }
Trainer.__index = Trainer

function Trainer.__tostring(self)
  return ('trainer: %s, %d parameters, epoch %d'):format(self.method, self.count, self.epochs_done)
end

local function check_module(owner, place, name, module)
  if not nn.is_module(module) then check.wrong(owner, place, name, module, 'a module') end
end

local function check_optimiser(owner, place, name, optimiser)
  if util.class_of(optimiser) ~= 'optimiser' then check.wrong(owner, place, name, optimiser, 'an optimiser') end
end

local declared = options_of.declare('trinity.TrainerOptions', { help = 'What dist.trainer takes.',
  { 'module', 'any', check = check_module, needed = true, as = 'trinity.Module',
    help = 'parameters of float32 on the processor' },
  { 'optimiser', 'any', check = check_optimiser, needed = true, as = 'trinity.NetworkOptimiser',
    help = 'of these parameters' },
  { 'method', options_of.words('trinity.TrainingMethod', { 'bsp', 'daso' }), 'bsp',
    help = "'bsp': gradients averaged in every batch" },
  { 'schedule', 'table', as = 'trinity.ScheduleOptions', help = "of method 'daso'; groups and nodes are the job's" },
  { 'chunk_elements', 'integer', 10000000, least = 1, most = 2 ^ 31, help = 'of one message' },
  { 'bucket_bytes', 'integer', 25000000, least = 0, most = 2 ^ 50,
    help = 'of gradients that travel together; 0: all, when the backward pass has ended' },
  { 'overlap', 'boolean', true, help = 'buckets travel while the backward pass goes on; false: behind it' },
  { 'learning_rate', learning_rate.declared, help = "warm-up and decay; without it the optimiser's own stays" },
})

--- What all ranks must have in common, a line a parameter.
local function describe_module(module)
  local lines = util.map(module:named_parameters(), function(item, i)
    return ("parameter %d '%s' [%s %s]"):format(i, item[1], table.concat(item[2]:size(), ' x '), item[2].dtype)
  end)
  return table.concat(lines, '\n')
end

local function check_parameters(owner, parameters)
  if #parameters == 0 then util.fail('%s: the module has no parameters', owner) end
  for _, parameter in ipairs(parameters) do
    if parameter.dtype ~= 'float32' or parameter.device ~= 'cpu' then
      util.fail('%s: expected parameters of float32 on the processor, got %s on %s', owner, parameter.dtype,
        parameter.device)
    end
  end
end

local function follow_rates(owner, self, options)
  if not options then return end
  self.rates = learning_rate.new(owner, self.optimiser.learning_rate, options)
  self.optimiser.learning_rate = self.rates:rate()
end

--- A trainer of trinity.TrainerOptions. All ranks begin with rank 0's parameters. Ends the job when a rank's module has
--- other shapes.
local function new(job, options)
  local owner = 'dist.trainer'
  check.object(owner, 1, 'job', job, 'job')
  options = declared:read(owner, 2, 'options', options)
  local self = setmetatable({ job = job, module = options.module, optimiser = options.optimiser,
    method = options.method, chunk_elements = options.chunk_elements, bucket_bytes = options.bucket_bytes,
    overlap = options.overlap and options.bucket_bytes > 0,
    parameters = options.module:parameters(), epochs_done = 0, wait_s = 0 }, Trainer)
  check_parameters(owner, self.parameters)
  self.count = options.module:parameter_count()
  if self.method == 'daso' then
    self.schedule = daso.schedule(util.merged({ groups = job.local_size, nodes = job.nodes }, options.schedule))
  elseif options.schedule then
    util.fail("%s: option 'schedule' belongs to method 'daso'", owner)
  end
  follow_rates(owner, self, options.learning_rate)
  job:agree("the model's shape", describe_module(options.module))
  local flat = self:pack()
  job:broadcast(flat, { scope = 'world' })
  self:unpack(flat)
  return self
end

--- All parameters as one new vector.
---@return trinity.TorchTensor
function Trainer:pack()
  local flat = tensor.zeros(self.count)
  core.dist.pack(self.parameters, flat)
  return flat
end

--- Sets all parameters from such a vector.
---@param flat trinity.TorchTensor
function Trainer:unpack(flat)
  core.dist.unpack(flat, self.parameters)
end

local function timed(self, body, ...)
  local began_s = core.clock_s()
  body(...)
  self.wait_s = self.wait_s + core.clock_s() - began_s
end

--- Over whom gradients of this batch are averaged: 'world', 'node', or nil where that is this rank alone.
local function gradient_scope(self)
  local scope = 'world'
  if self.schedule then scope = self.schedule.gradients end
  local members = scope == 'world' and self.job.size or self.job.local_size
  return members > 1 and scope or nil
end

--- The backward pass, and gradients averaged over the ranks of a scope.
local function differentiate(self, loss, scope)
  if not scope then return loss:backward() end
  self.buckets = self.buckets or core.dist.gradient_buckets(self.job.handle, self.parameters, { overlap = self.overlap,
    bucket_bytes = self.bucket_bytes > 0 and self.bucket_bytes or 2 ^ 50 })
  self.buckets:begin(scope)
  loss:backward()
  timed(self, function() self.buckets:finish() end)
end

local actions = {}

function actions.send(self, action)
  local flat = self:pack()
  local work = self.job:start_all_reduce(flat, { scope = 'across', bfloat16 = action.bfloat16,
    chunk_elements = self.chunk_elements })
  self.outgoing = { work = work, flat = flat }
end

function actions.merge(self, action)
  local arrived = self.pending
  self.pending = nil
  timed(self, function() arrived.work:wait() end)
  self:unpack(daso.merge(self:pack(), arrived.flat, action.batches, self.job.nodes))
end

function actions.average(self)
  local arrived = self.outgoing
  self.outgoing, self.pending = nil, nil
  timed(self, function() arrived.work:wait() end)
  self:unpack(arrived.flat / self.job.nodes)
end

local function broadcast(self, group)
  if self.job.local_size == 1 then return end
  local flat = self:pack()
  timed(self, function() self.job:broadcast(flat, { scope = 'node', root = group }) end)
  if self.job.local_rank ~= group then self:unpack(flat) end
end

--- Carries out what the schedule asks for after a batch.
local function synchronise(self, batches)
  for _, action in ipairs(self.schedule:after_batch(batches)) do
    if action.what == 'broadcast' then
      broadcast(self, action.group)
    elseif self.job.local_rank == action.group then
      actions[action.what](self, action)
    end
  end
  if self.outgoing then self.pending, self.outgoing = self.outgoing, nil end
end

local function train_batch(self, loss_of, batch, batches)
  self.optimiser:zero_grad()
  local loss = loss_of(batch)
  if not tensor.is(loss) or loss:numel() ~= 1 then
    util.fail('trainer:epoch: the function at %s returned %s, expected a loss (a tensor of one element)',
      util.function_place(loss_of), util.describe(loss))
  end
  differentiate(self, loss, gradient_scope(self))
  self.optimiser:step()
  if self.schedule then synchronise(self, batches) end
  return loss:item()
end

--- Trains an epoch on this rank's part of the data: loss_of(batch) gives the loss of batch 1 to `batches`.
---@param batches integer
---@param loss_of fun(batch: integer): trinity.TorchTensor
---@return number loss mean of all batches and ranks
function Trainer:epoch(batches, loss_of)
  check.integer('trainer:epoch', 1, 'batches', batches, 1, 2 ^ 40)
  check.argument('trainer:epoch', 2, 'loss_of', loss_of, 'function')
  if self.schedule and self.schedule.epoch >= self.schedule.epochs then
    util.fail('trainer:epoch: the schedule was for %d epochs', self.schedule.epochs)
  end
  local sum = 0
  for batch = 1, batches do sum = sum + train_batch(self, loss_of, batch, batches) end
  local loss
  timed(self, function() loss = self.job:mean(sum / batches) end)
  if self.schedule then self.schedule:after_epoch(loss) end
  if self.rates then
    self.rates:after_epoch(loss)
    self.optimiser.learning_rate = self.rates:rate()
  end
  self.epochs_done = self.epochs_done + 1
  return loss
end

local function rank_file(self, folder, epoch)
  return ('%s/epoch-%d/rank-%d.safetensors'):format(folder, epoch, self.job.rank)
end

-- A line of text with its own sum behind it, which tells whether it was changed.
local function signed(text) return ('%s, %s\n'):format(text, checkpoints.content_sum(text)) end

-- The text of a signed line in the file at `path`.
local function read_signed(path)
  local line = core.read_file(path)
  local text = line:match '^(.*), crc32c %x+\n$'
  if not text or signed(text) ~= line then
    util.fail('trainer:load: %s: of another version, or changed or cut short since it was written', path)
  end
  return text
end

-- The trainer's schedules by what their entries in a file begin with.
local function schedules_of(self) return { schedule = self.schedule, learning_rate = self.rates } end

--- Saves parameters, the optimiser's state and the schedules of all ranks in a folder, between epochs. What was saved
--- before is only replaced once all ranks have written, so whenever a rank ends, one checkpoint is whole.
---@param folder string
function Trainer:save(folder)
  check.path('trainer:save', 1, 'folder', folder)
  local epoch, tensors = self.epochs_done, { parameters = self:pack() }
  for prefix, schedule in util.sorted_pairs(schedules_of(self)) do
    for name, value in util.sorted_pairs(schedule:state()) do
      tensors[prefix .. '.' .. name] = tensor.new({ value }, { dtype = 'float64' })
    end
  end
  tensor.save(rank_file(self, folder, epoch), optimisers.pack(self.optimiser, 'optimiser.', tensors))
  self.job:barrier()
  if self.job.rank == 0 then
    core.write_file(folder .. '/last', signed(('epoch %d, %d ranks, %s'):format(epoch, self.job.size, self.method)))
  end
  self.job:barrier()
  local old = self.saved_epoch
  if old and old ~= epoch then pcall(core.remove_tree, rank_file(self, folder, old)) end
  self.saved_epoch = epoch
end

-- The epoch that was saved last by ranks as many and of the same kind as these; nil where there is none.
local function epoch_of(self, folder)
  local path = folder .. '/last'
  local last = util.exists(path) and read_signed(path) or 'none'
  self.job:agree('the checkpoint in ' .. folder, last)
  if last == 'none' then return nil end
  local epoch, ranks, method = last:match '^epoch (%d+), (%d+) ranks, (%w+)$'
  if tonumber(ranks) ~= self.job.size or method ~= self.method then
    util.fail('trainer:load: %s: saved by %s ranks with method %s, this job has %d with %s', folder, ranks, method,
      self.job.size, self.method)
  end
  return tonumber(epoch)
end

-- Tensors by name of a file that tells whether it was changed.
local function read_hashed(path)
  local names, list = core.tensor.internal.read(path, true)
  local tensors = {}
  for i, name in ipairs(names) do tensors[name] = list[i] end
  return tensors
end

--- Takes back what all ranks saved last. The job must have as many ranks.
---@param folder string
---@return boolean found false when there is nothing
function Trainer:load(folder)
  check.path('trainer:load', 1, 'folder', folder)
  local epoch, states = epoch_of(self, folder), { schedule = {}, learning_rate = {} }
  if not epoch then return false end
  local path = rank_file(self, folder, epoch)
  local tensors = read_hashed(path)
  local count = tensors.parameters and tensors.parameters:numel() or 0
  if count ~= self.count then
    util.fail('trainer:load: %s: of a model of %d parameters, this one has %d', path, count, self.count)
  end
  for name, value in util.sorted_pairs(tensors) do
    local prefix, key = name:match '^([%l_]+)%.(.+)$'
    if states[prefix] then states[prefix][key] = value:select(1, 1):item() end
  end
  optimisers.unpack(self.optimiser, 'optimiser.', tensors, 'trainer:load: ' .. path)
  self:unpack(tensors.parameters)
  for prefix, schedule in util.sorted_pairs(schedules_of(self)) do schedule:load_state(states[prefix]) end
  self.epochs_done, self.saved_epoch = epoch, epoch
  return true
end

check.methods(Trainer)

return { new = new }
