#!/usr/bin/env trinity
-- Trains a small network on all ranks of a job, in step and with DASO, and compares wall time and loss:
--   trinity launch -n 4 --per_node 2 scripts/train_distributed.lua
--   trinity launch -n 4 --per_node 2 scripts/train_distributed.lua --task characters
-- The link between the pretended nodes is made slow by a delay (--link_mbit_s, --link_ms; engine/distribute/job.h).
-- Data are generated: 'images' are pictures of 3 x 32 x 32 of ten classes under noise, 'characters' a text of
-- invented words whose next character is to be told; 'deep' takes the pictures through layers of which the last hold
-- most parameters, so that gradients can travel while the backward pass goes on.

local trinity = require 'trinity'
local progress = require 'trinity.base.progress'
local util = require 'trinity.base.util'
local nn, tensor = trinity.nn, trinity.tensor

local options = trinity.options {
  'Trains a small network in several processes, in step (bsp) and with DASO.',
  task = { default = 'images', help = 'images, characters or deep' },
  method = { default = 'both', help = 'bsp, daso or both' },
  epochs = { default = 0, help = 'of the training; 0: as many as the task needs (characters 16, others 12)', min = 0,
    integer = true },
  seconds = { default = math.huge,
    help = 'of each training, after which none of its epochs begins; results then depend '
    .. 'on the machine', min = 0 },
  batches = { default = 20, help = 'an epoch, on every rank', min = 1, integer = true },
  batch_size = { default = 32, help = 'samples a batch and rank', min = 1, integer = true },
  learning_rate = { default = 0, min = 0,
    help = 'of stochastic gradient descent with momentum 0.9; 0: characters 0.3, others 0.05' },
  lr_warmup = { default = 0, help = 'epochs in which the learning rate rises in even steps', min = 0, integer = true },
  lr_decay = { default = 'none', help = 'of the learning rate behind them: none, plateau, step or cosine' },
  lr_factor = { default = 0.5, help = 'of plateau and step', min = 0.001, max = 1 },
  lr_epochs = { default = 5, help = 'of plateau: its patience; of step: epochs between', min = 1, integer = true },
  overlap = { default = true, help = 'gradients travel while the backward pass goes on' },
  bucket_bytes = { default = 262144, help = 'of gradients that travel together; 0: all, behind it', min = 0,
    integer = true },
  warmup = { default = 1, help = 'epochs of DASO that synchronise every batch at the start', min = 0, integer = true },
  cooldown = { default = 1, help = 'and at the end', min = 0, integer = true },
  max_global_skips = { default = 8, help = 'of DASO; 0: as bsp', min = 0, integer = true },
  link_mbit_s = { default = 200, help = 'injected bandwidth between nodes; 0: no limit', min = 0 },
  link_ms = { default = 1, help = 'injected latency between nodes', min = 0 },
  seed = { default = 1, help = 'the first seed', min = 0, integer = true },
  seeds = { default = 1, help = 'trainings of each method, a seed each', min = 1, integer = true },
  checkpoint = { default = '', help = 'folder to save to after every epoch and to go on from; of several trainings a '
    .. 'folder METHOD-SEED in it each' },
  output = { default = '', writes = '', help = "rows as JSON in this file and nothing printed; '': the table" },
  timeout_s = { default = 20, help = 'a rank that others wait for this long hangs', min = 1 },
}

local job = trinity.dist.init { timeout_s = options.timeout_s,
  link = { bandwidth_bytes_per_s = options.link_mbit_s * 1e6 / 8, latency_s = options.link_ms * 1e-3 } }

local tasks = {}
local usual = { images = { epochs = 12, learning_rate = 0.05 }, characters = { epochs = 16, learning_rate = 0.3 },
  deep = { epochs = 12, learning_rate = 0.05 } }

-- Ten classes of three pictures each, under noise, through layers of these widths.
local function pictures_task(seed, widths)
  local pictures = tensor.normal({ 30, 3 * 32 * 32 }, trinity.random(1, 'pictures')) * 0.1
  local layers, inputs = { seed = seed }, 3 * 32 * 32
  for i, width in ipairs(widths) do
    if i > 1 then layers[#layers + 1] = nn.relu end
    layers[#layers + 1], inputs = nn.linear { inputs = inputs, outputs = width }, width
  end
  local net = nn.sequential(layers)
  local function draw(stream, count)
    local which, class = {}, {}
    for i = 1, count do
      which[i] = stream:integer(30)
      class[i] = (which[i] - 1) % 10 + 1
    end
    local x = pictures:index_select(1, tensor.new(which, { dtype = 'int64' }))
    return x + tensor.normal({ count, 3 * 32 * 32 }, stream), tensor.new(class, { dtype = 'int64' })
  end
  return net, function(stream, count)
    local x, class = draw(stream, count)
    return nn.cross_entropy(net(x), class)
  end
end

function tasks.images(seed) return pictures_task(seed, { 128, 64, 10 }) end
function tasks.deep(seed) return pictures_task(seed, { 64, 512, 512, 512, 512, 10 }) end

local alphabet, steps = 27, 24

-- Words of two to six letters; each is followed by one of four others.
local function make_words()
  local stream, words = trinity.random(1, 'words'), {}
  for w = 1, 40 do
    local letters, followers = {}, {}
    for i = 1, 1 + stream:integer(5) do letters[i] = stream:integer(26) end
    letters[#letters + 1] = alphabet -- a blank
    for i = 1, 4 do followers[i] = stream:integer(40) end
    words[w] = { letters = letters, followers = followers }
  end
  return words
end

function tasks.characters(seed)
  local words, net = make_words(), nn.class 'characters'
  function net:build()
    self.embedding = nn.embedding { count = alphabet, size = 32 }
    self.memory = nn.gru { inputs = 32, hidden = 128 }
    self.head = nn.linear { inputs = 128, outputs = alphabet }
  end
  function net:forward(x) return self.head((self.memory(self.embedding(x)))) end
  net = net { seed = seed }
  local function text(stream)
    local word, letters = stream:integer(40), {}
    while #letters <= steps do
      for _, letter in ipairs(words[word].letters) do letters[#letters + 1] = letter end
      word = words[word].followers[stream:integer(4)]
    end
    return letters
  end
  return net, function(stream, count)
    local x, y = {}, {}
    for t = 1, steps do x[t], y[t] = {}, {} end
    for n = 1, count do
      local letters = text(stream)
      for t = 1, steps do x[t][n], y[t][n] = letters[t], letters[t + 1] end
    end
    local logits = net(tensor.new(x, { dtype = 'int64' }))
    return nn.cross_entropy(logits:reshape { steps * count, alphabet },
      tensor.new(y, { dtype = 'int64' }):reshape { steps * count })
  end
end

if not tasks[options.task] then
  util.fail_usage("option '--task': unknown task %s", util.unknown(options.task, { 'characters', 'deep', 'images' }))
end
for name, value in trinity.sorted_pairs(usual[options.task]) do
  if options[name] == 0 then options[name] = value end
end
local methods = options.method == 'both' and { 'bsp', 'daso' } or { options.method }

-- Where a training is saved; nil: nowhere.
local function folder_of(method, seed)
  if options.checkpoint == '' then return nil end
  if #methods == 1 and options.seeds == 1 then return options.checkpoint end
  return ('%s/%s-%d'):format(options.checkpoint, method, seed)
end

local function say(text, ...)
  if options.output == '' then job:print(text:format(...)) end
end

local function rates()
  return { warmup_epochs = options.lr_warmup, decay = options.lr_decay, factor = options.lr_factor,
    patience = options.lr_epochs, step_epochs = options.lr_epochs, epochs = options.epochs }
end

-- Says how far a training is, on standard error.
local function tell(text, ...)
  if job.rank == 0 then progress.note(text:format(...)) end
end

--- Whether rank 0's clock says that a training has had its seconds: all ranks say the same.
local function is_over(began_s)
  if options.seconds == math.huge then return false end
  return job:mean(job.rank == 0 and trinity.clock_s() - began_s >= options.seconds and 1 or 0) > 0
end

--- One training: wall time, seconds in communication that computation did not hide, loss on data that no rank saw.
local function train(method, seed, stop_requested)
  local net, loss_of = tasks[options.task](seed)
  local trainer = trinity.dist.trainer(job, { module = net, method = method, learning_rate = rates(),
    overlap = options.overlap, bucket_bytes = options.bucket_bytes,
    optimiser = nn.sgd { parameters = net:parameters(), learning_rate = options.learning_rate, momentum = 0.9 },
    schedule = method == 'daso' and { epochs = options.epochs, warmup_epochs = options.warmup,
      cooldown_epochs = options.cooldown, max_global_skips = options.max_global_skips } or nil })
  local folder = folder_of(method, seed)
  if folder and trainer:load(folder) then
    tell('%s, seed %d: goes on after epoch %d', method, seed, trainer.epochs_done)
  end
  job:barrier()
  local began_s = trinity.clock_s()
  local first = trainer.epochs_done
  while trainer.epochs_done < options.epochs and (trainer.epochs_done == first or not is_over(began_s)) do
    local epoch = trainer.epochs_done + 1
    local skips = trainer.schedule and trainer.schedule.global_skips or 0
    local loss = trainer:epoch(options.batches, function(batch)
      if stop_requested() then util.fail 'interrupted' end
      return loss_of(trinity.random(seed, ('epoch %d batch %d'):format(epoch, batch), job.rank), options.batch_size)
    end)
    tell('%s, seed %d, epoch %d/%d: loss %.4f%s', method, seed, epoch, options.epochs, loss,
      skips > 0 and (', global skips %d'):format(skips) or '')
    if folder then trainer:save(folder) end
  end
  job:barrier()
  local seconds = trinity.clock_s() - began_s
  local test_loss = tensor.no_grad(function() return loss_of(trinity.random(1, 'test'), 1000):item() end)
  return { method = method, seed = seed, epochs = trainer.epochs_done, seconds = seconds, waited_s = trainer.wait_s,
    loss = job:mean(test_loss) }
end

local found = {}
local stopped = trinity.stoppable(function(stop_requested)
  for seed = options.seed, options.seed + options.seeds - 1 do
    for _, method in ipairs(methods) do
      local ok, row = pcall(train, method, seed, stop_requested)
      if not ok and stop_requested() then return end
      if not ok then error(row, 0) end
      found[#found + 1] = row
    end
  end
end)
if job.rank == 0 and #found > 0 then
  trinity.run:result('training', { task = options.task, ranks = job.size, rows = found },
    ('%d trainings on %s.'):format(#found, tostring(job)))
  if options.output ~= '' then trinity.files.write(options.output, trinity.json.encode { rows = found }) end
end
say('%s on %s: %d x %d batches of %d a rank; link between nodes %g Mbit/s, %g ms', options.task, tostring(job),
  options.epochs, options.batches, options.batch_size, options.link_mbit_s, options.link_ms)
say('%s', trinity.format_table({ 'method', 'seed', 'epochs', 'seconds', 'of them waiting', 'test loss' },
  util.map(found, function(row)
    return { row.method, tostring(row.seed), tostring(row.epochs), ('%.2f'):format(row.seconds),
      ('%.2f'):format(row.waited_s),
      ('%.4f'):format(row.loss) }
  end)))
if stopped then
  if job.rank == 0 then
    progress.warn(('stopped by %s: %d of %d trainings are done; the one that ran %s'):format(
      trinity.stop_name(), #found, options.seeds * #methods,
      options.checkpoint ~= '' and 'goes on from its last epoch with the same --checkpoint'
      or 'was not saved (--checkpoint FOLDER saves every epoch)'))
  end
  os.exit(trinity.stop_status())
end
job:close()
