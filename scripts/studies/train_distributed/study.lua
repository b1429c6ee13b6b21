#!/usr/bin/env trinity
-- Trains a small network on replicas, in step and with DASO, and compares time and loss (trinity.execute):
--   trinity study train_distributed
--   torchrun --no-python --nproc_per_node 4 trinity study train_distributed --task characters
-- Ranks of a job are replicas, else threads are (--replicas, --per_node). Between processes the link of the emulated
-- nodes is made slow by a delay (--link_mbit_s, --link_ms; engine/distribute/groups.h). Data are generated: 'images'
-- are pictures of 3 x 16 x 16 of ten classes under noise, 'characters' a text of invented words whose next character is
-- to be predicted.

local trinity = require 'trinity'
local daso_data = require 'studies.papers.daso_data'
local daso_jobs = require 'studies.papers.daso_jobs'
local learning_rate = require 'trinity.dist.learning_rate'
local progress = require 'trinity.base.progress'
local util = require 'trinity.base.util'

local options = trinity.options {
  'Trains a small network on several replicas, in step (bsp) and with DASO.',
  task = { default = 'images', help = 'images or characters' },
  method = { default = 'both', help = 'bsp, daso or both' },
  epochs = { default = 0, help = 'of the training; 0: what the task needs (characters 16, images 12)', min = 0,
    integer = true },
  seconds = { default = math.huge, help = 'of each training, after which none of its steps begins; results then depend '
    .. 'on the machine', min = 0 },
  batches = { default = 20, help = 'an epoch, on every replica', min = 1, integer = true },
  batch_size = { default = 32, help = 'samples a batch and replica', min = 1, integer = true },
  learning_rate = { default = 0, min = 0,
    help = 'of stochastic gradient descent with momentum 0.9; 0: characters 0.3, images 0.04' },
  lr_warmup = { default = 0, help = 'epochs in which the learning rate rises in even steps', min = 0, integer = true },
  lr_decay = { default = 'none', help = 'of the learning rate after them: none, plateau, step or cosine' },
  lr_factor = { default = 0.5, help = 'of plateau and step', min = 0.001, max = 1 },
  lr_epochs = { default = 5, help = 'of plateau: its patience; of step: epochs between', min = 1, integer = true },
  bucket_bytes = { default = 262144, help = 'of gradients that travel together', min = 1, integer = true },
  warmup = { default = 1, help = 'epochs of DASO that synchronise every batch at the start', min = 0, integer = true },
  cooldown = { default = 1, help = 'and at the end', min = 0, integer = true },
  max_global_skips = { default = 8, help = 'of DASO; 0: as bsp', min = 0, integer = true },
  replicas = { default = 4, help = 'threads, where there is no job', min = 2, max = 64, integer = true },
  per_node = { default = 2, help = 'the same: of an emulated node', min = 1, max = 64, integer = true },
  link_mbit_s = { default = 200, help = 'injected bandwidth between nodes of processes; 0: no limit', min = 0 },
  link_ms = { default = 1, help = 'injected latency between them', min = 0 },
  seed = { default = 1, help = 'the first seed', min = 0, integer = true },
  seeds = { default = 1, help = 'trainings of each method, a seed each', min = 1, integer = true },
  checkpoint = { default = '', help = 'folder of a file METHOD-SEED a training, written after every epoch '
    .. 'and gone on from, and METHOD-SEED.json with its row in the end' },
  output = { default = '', writes = '', help = "rows as JSON in this file and nothing printed; '': the table" },
  timeout_s = { default = 20, help = 'a rank that others wait for this long hangs', min = 1 },
}

local task = daso_data.tasks[options.task]
if not task then
  util.fail_usage("option '--task': unknown task %s", util.unknown(options.task, util.sorted_keys(daso_data.tasks)))
end
for _, name in ipairs { 'epochs', 'learning_rate' } do
  if options[name] == 0 then options[name] = task[name] end
end
local methods = options.method == 'both' and { 'bsp', 'daso' } or { options.method }

local job = trinity.dist.init { timeout_s = options.timeout_s,
  link = { bandwidth_bytes_per_s = options.link_mbit_s * 1e6 / 8, latency_s = options.link_ms * 1e-3 } }
local replicas = job.size > 1 and job.size or options.replicas
local per_node = job.size > 1 and job.local_size or options.per_node
if replicas % per_node > 0 then
  util.fail_usage("option '--per_node': expected a divisor of the %d replicas, got %d", replicas, per_node)
end
if options.method ~= 'bsp' and options.max_global_skips > 0 and (per_node < 2 or replicas == per_node) then
  util.fail_usage("option '--method': daso needs at least two nodes of two replicas, got %d of %d", replicas / per_node,
    per_node)
end

--- Gradients are averaged in nodes and, by one of each, between them; with DASO between nodes weights are, seldom.
local function sync(is_daso)
  local inner = replicas > per_node and per_node or 1
  if is_daso then return { kind = 'daso', inner = per_node } end
  return inner > 1 and { kind = 'hierarchical', inner = inner } or { kind = 'all_reduce' }
end

local graph = trinity.model(task.model, util.merged({ batch_size = options.batch_size, optimizer = 'momentum' },
  task.of_model))
local problem = trinity.problem { graph = graph,
  cluster = daso_jobs.cluster(replicas / per_node, per_node, options.link_mbit_s, options.link_ms) }
local rates = { warmup_epochs = options.lr_warmup, decay = options.lr_decay, factor = options.lr_factor,
  patience = options.lr_epochs, step_epochs = options.lr_epochs, epochs = options.epochs }
learning_rate.declared:read('train_distributed', 1, 'rates', rates)
local path, train_rows = daso_data.write(task, options.batches * options.batch_size * replicas)

--- One training: seconds in steps, seconds in which the first replica waited, loss on held-out samples.
local function train(method, seed)
  local kept = options.checkpoint ~= '' and ('%s/%s-%d'):format(options.checkpoint, method, seed) or nil
  local is_done, row = pcall(trinity.files.read, kept and kept .. '.json' or '')
  if is_done then return trinity.files.json.decode(row) end
  local is_daso = method == 'daso' and options.max_global_skips > 0
  local strategy = problem:strategy { mesh = { data = replicas }, bucket_bytes = options.bucket_bytes,
    sync = sync(is_daso) }
  if job.rank == 0 then progress.note(('%s, seed %d'):format(method, seed)) end
  local run = trinity.execute(problem, strategy, { data = path, train_rows = train_rows, seed = seed,
    epochs = options.epochs, learning_rate = options.learning_rate, rate = rates,
    seconds = options.seconds < math.huge and math.max(options.seconds, 1e-9) or nil,
    checkpoint = kept,
    daso = is_daso and { warmup_epochs = options.warmup, cooldown_epochs = options.cooldown,
      max_global_skips = options.max_global_skips } or nil })
  local seconds = util.sum(run.step_times_s, function(step_s) return step_s end)
  row = { method = method, seed = seed, epochs = options.epochs, seconds = seconds,
    waited_s = seconds - run.busy_s[1], loss = run.held_out_loss, accuracy = run.accuracy }
  local is_whole = not run.stopped and options.seconds == math.huge
  if kept and is_whole and job.rank == 0 then trinity.files.write(kept .. '.json', trinity.files.json.encode(row)) end
  return row
end

local found = {}
local stopped = trinity.system.stoppable(function(stop_requested)
  for seed = options.seed, options.seed + options.seeds - 1 do
    for _, method in ipairs(methods) do
      local ok, row = pcall(train, method, seed)
      if stop_requested() then return end
      if not ok then error(row, 0) end
      found[#found + 1] = row
    end
  end
end)
daso_data.remove(path)
local where = ('%d %s, %d a node'):format(replicas, job.size > 1 and 'processes' or 'threads', per_node)
if job.rank == 0 then
  if #found > 0 then
    trinity.run:result('training', { task = options.task, ranks = replicas, rows = found },
      ('%d trainings on %s.'):format(#found, where))
  end
  if #found > 0 and options.output ~= '' then
    trinity.files.write(options.output, trinity.files.json.encode { rows = found })
  end
end
if job.rank == 0 and options.output == '' then
  print(('%s on %s: %d x %d batches of %d a replica%s'):format(options.task, where, options.epochs, options.batches,
    options.batch_size, job.size > 1 and ('; link between nodes %g Mbit/s, %g ms'):format(options.link_mbit_s,
    options.link_ms) or ''))
  print(trinity.system.format_table({ 'method', 'seed', 'epochs', 'seconds', 'of them waiting', 'test loss',
    'accuracy' }, util.map(found, function(row)
      return { row.method, tostring(row.seed), tostring(row.epochs), ('%.2f'):format(row.seconds),
        ('%.2f'):format(row.waited_s), ('%.4f'):format(row.loss), ('%.4f'):format(row.accuracy) }
    end)))
end
if stopped then
  if job.rank == 0 then
    progress.warn(('stopped by %s: %d of %d trainings are done; the one that ran %s'):format(
      trinity.system.stop_name(), #found, options.seeds * #methods,
      options.checkpoint ~= '' and 'goes on with the same --checkpoint'
      or 'was not saved (--checkpoint FOLDER saves every epoch)'))
  end
  os.exit(trinity.system.stop_status())
end
job:close()
