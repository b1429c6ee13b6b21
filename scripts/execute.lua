#!/usr/bin/env trinity
-- Executes training steps of a model under a strategy with LibTorch. Device i of the strategy is worker i: a thread
-- bound to a CPU core, or a GPU. Losses are the same under every placement; times and bytes are measured. For a
-- pipeline, --batch-size is the size of one micro-batch:
--   trinity execute --model gpt2 --batch-size 1 --devices cpu:0,cpu:1 --method contiguous --schedule 1f1b \
--     --micro-batches 4
-- As processes that communicate with c10d, where rank r runs worker r + 1:
--   mpirun -n 2 trinity execute --model alexnet --devices cpu:0,cpu:1 --method contiguous
-- --trace FILE writes the last step and the simulated one for https://ui.perfetto.dev. --profile FILE executes no
-- strategy: it measures the network's operators and the copies between --devices, and fits the cost model to them. The
-- file can be used as a cluster (--cluster FILE.json in every command, trinity.cluster 'FILE.json') and gives measured
-- times to the network it was made from (trinity.problem { graph =, profile = 'FILE.json' }). With --profile, --json
-- prints the profile; trinity help Profile lists its fields. Otherwise, --json prints one object with
--   model, devices, steps (executed), warm_up, schedule, micro_batches, processes (true: workers are processes)
--   stopped                 true: stopped by Ctrl-C
--   cores                   per device: CPU core that its thread is bound to, -1: none
--   losses                  per step
--   step_time_s             median of the steps after the warm-up; step_times_s: each of them
--   simulated_step_time_s   predicted for --cluster
--   transferred_bytes       copied between devices in one step
--   peak_memory_bytes       per device: peak of LibTorch's allocator
--   simulated_memory_bytes  per device
--   accuracy, samples_per_s with --data: on held-out samples at the end; training rate in the median step
--   busy_s                  per device, in the last step: time in operators; copy_s: time copying their inputs
--   types                   per operator type { type, operators, measured_s, simulated_s } of one step, longest first

local trinity = require 'trinity'
local cli = require 'trinity.command.cli'
local measure = require 'trinity.execute.measure'
local model = require 'trinity.graph.model'
local progress = require 'trinity.base.progress'
local settings = require 'trinity.command.settings'
local training = require 'trinity.execute.training'
local text = require 'trinity.base.text'
local util = require 'trinity.base.util'

local options = trinity.options(cli.declare('model set batch_size cluster cost strategy reevaluate schedule '
    .. 'micro_batches method method_set seconds seed json', {
  'Executes training steps under a strategy on this machine and measures them; --profile measures operators.',
  batch_size = { default = 4, help = 'samples per micro-batch; a model file with a fixed batch size keeps it' },
  cluster = { default = 'p100',
    help = 'cluster or profile to simulate for comparison, one device per worker by default' },
  devices = { default = 'cpu:0', help = 'workers, one per device of the strategy: cpu:0,cpu:1 or cuda:0' },
  method = { default = 'single_device' },
  steps = { type = 'number', help = 'training steps (default: 15, with --profile 10)', min = 1, integer = true },
  warm_up = { default = 5, help = 'steps before the measurement', min = 0, integer = true },
  seconds = { help = 'start no further step after this time' },
  learning_rate = { default = 0.01, help = "learning rate of the model's optimizer", min = 0 },
  data = { type = 'string', help = 'file or folder to train on: CSV, CIFAR-10, text, safetensors '
    .. '(default: random numbers)' },
  scale = { type = 'number', help = 'factor of the numbers in --data (default: 1; image bytes: 1 / 255)' },
  train_rows = { type = 'number', help = 'samples to train on; the rest is held out (default: by the files)',
    min = 1, integer = true },
  epochs = { type = 'number', help = 'passes over the training samples, in place of --steps', min = 1,
    integer = true },
  warm_up_epochs = { default = 0, help = 'epochs in which the learning rate rises', min = 0, integer = true },
  decay = { default = 'none', help = 'decay of the learning rate after the warm-up: none, step or cosine' },
  checkpoint = { type = 'string', writes = '',
    help = 'file to resume from, written after every epoch and at the end' },
  load = { type = 'string', help = 'read initial weights from this safetensors file', rare = true },
  save = { type = 'string', writes = '', help = 'write the final weights to this safetensors file' },
  daso = { default = {}, help = 'phases and skips of DASO: warmup_epochs=1,held.global_skips=4 '
    .. '(trinity help CyclingOptions)' },
  worker_memory_limit = { type = 'number', help = "memory limit of a worker's tensors", min = 1, unit = 'bytes' },
  trace = { type = 'string', writes = '', help = 'write a Chrome trace of the last step, measured and simulated' },
  profile = { type = 'string', writes = '', help = 'write measured times of operators and copies to this file' },
  copies = { default = 7, help = 'for --profile: copies of every size', min = 1, integer = true },
  largest_copy = { default = 2 ^ 28, help = 'for --profile: size of the largest copy', min = 4096, unit = 'bytes' },
  gpu_memory = { default = 2 ^ 34, help = 'for --profile: memory of a GPU', min = 1, unit = 'bytes' },
}, 'copies cost daso decay gpu_memory largest_copy method_set reevaluate scale schedule seconds seed train_rows '
  .. 'warm_up warm_up_epochs worker_memory_limit'))

cli.complete(options)
local steps = options.steps or 15
if options.profile then
  cli.refuse(options, 'cluster cost strategy schedule micro_batches method method_set learning_rate data scale '
    .. 'train_rows epochs warm_up_epochs decay checkpoint load save daso worker_memory_limit trace',
    'cannot be combined with --profile')
else
  cli.refuse(options, 'copies largest_copy gpu_memory', 'needs --profile')
end

--- Returns the strategy from a file or from a method, with the schedule of the command line.
local function make_plan(problem)
  local found = options.strategy and cli.load_strategy(options, problem)
    or cli.run_method(options, problem, { seed = options.seed })
  return cli.rescheduled(options, problem, found)
end

--- Returns the seconds of one step per operator type, measured and simulated, longest first.
local function by_type(problem, plan, found)
  local rows, of = {}, {}
  for op = 1, found.graph.operators do
    local about = found.graph:operator(op)
    local row = of[about.type]
    if not row then
      row = { type = about.type, operators = 0, measured_s = 0, simulated_s = 0 }
      of[about.type], rows[#rows + 1] = row, row
    end
    row.operators = row.operators + 1
    row.measured_s = row.measured_s
      + found.operator_time_s[op] * (about.phase == 'update' and 1 or found.micro_batches)
  end
  local timeline = problem:timeline(plan)
  for _, share in ipairs(timeline:by_type()) do
    if of[share.type] then of[share.type].simulated_s = share.total_s end
  end
  timeline:close()
  table.sort(rows, util.by('-measured_s', 'type'))
  return rows
end

local function copying(devices, copies)
  local seconds = util.listed(#devices, function() return 0 end)
  for _, copy in ipairs(copies) do seconds[copy.to] = seconds[copy.to] + copy.end_s - copy.start_s end
  return seconds
end

local function print_report(problem, found, about)
  local rows = util.map(about.devices, function(name, d)
    return { name, found.cores[d] < 0 and '-' or tostring(found.cores[d]), text.seconds(about.busy_s[d]),
      text.seconds(about.copy_s[d]), trinity.system.format_bytes(about.peak_memory_bytes[d]),
      trinity.system.format_bytes(about.simulated_memory_bytes[d]) }
  end)
  print(trinity.system.format_table({ 'device', 'core', 'busy', 'copies', 'peak memory', 'simulated' }, rows))
  local types = {}
  for i = 1, math.min(10, #about.types) do
    local row = about.types[i]
    types[i] = { row.type, tostring(row.operators), text.seconds(row.measured_s),
      text.seconds(row.simulated_s) }
  end
  print('\n' .. trinity.system.format_table({ 'operator type', 'operators', 'measured', 'simulated' }, types))
  if #about.types > 10 then print(('and %d more types'):format(#about.types - 10)) end
  local micro = found.micro_batches > 1 and (', %d micro-batches'):format(found.micro_batches) or ''
  print(('\nmeasured: step time %s (median of %d steps after %d%s), %s copied between devices, loss %.6g to %.6g')
    :format(text.seconds(found.step_time_s), found.steps - found.warm_up, found.warm_up, micro,
      trinity.system.format_bytes(found.transferred_bytes), found.losses[1], found.losses[#found.losses]))
  if about.samples_per_s then
    print(('%.4g samples/s%s'):format(about.samples_per_s, found.accuracy and (', accuracy %.4f on %d held-out samples')
      :format(found.accuracy, found.held_out_samples) or ''))
  end
  print(('simulated on %s: %s'):format(problem.cluster.name, text.seconds(about.simulated_step_time_s)))
  cli.print_basis(problem, about)
end

--- Returns the learning-rate schedule, or nil if the rate is constant.
local function learning_rate()
  if options.warm_up_epochs == 0 and options.decay == 'none' then return nil end
  return { warmup_epochs = options.warm_up_epochs, decay = options.decay, epochs = options.epochs }
end

local function percent(x) return ('%.1f %%'):format(100 * x) end

local function print_profile(profile)
  print(profile)
  print(('%s, %d cores, %s; %s'):format(profile.machine.processor, profile.machine.cores,
    trinity.system.format_bytes(profile.machine.memory_bytes), profile.libraries.torch))
  local rows = {}
  for kind, of in util.sorted_pairs(profile.kinds) do
    local total = 0
    for _, time_s in util.sorted_pairs(of.operator_time_s) do total = total + time_s end
    rows[#rows + 1] = { kind, text.seconds(total), ('%.3g GFLOP/s'):format(of.peak_flops_per_s / 1e9),
      ('%.3g GB/s'):format(of.memory_bandwidth_bytes_per_s / 1e9), ('%.1f us'):format(of.launch_s * 1e6),
      percent(of.residuals.median), percent(of.residuals.mean), ('%.2f'):format(of.contention) }
  end
  print('\n' .. text.format_table({ 'kind', 'all operators', 'matmuls', 'memory', 'launch', 'fit: median off',
    'mean off', 'contention' }, rows))
  rows = {}
  for i, link in ipairs(profile.links) do
    rows[i] = { link.from .. ' to ' .. link.to, ('%.2f us'):format(link.latency_s * 1e6),
      ('%.2f GB/s'):format(link.bandwidth_bytes_per_s / 1e9), percent(link.residuals.median),
      percent(link.residuals.largest) }
  end
  if #rows > 0 then
    print('\n' .. text.format_table({ 'copies', 'latency', 'bandwidth', 'fit: median off', 'largest' }, rows))
  end
end

-- Measures a profile of `graph` on `devices`, writes it to options.profile and prints it. Operators are measured on
-- the first device. If it was stopped early, returns the number of measured steps.
local function measure_profile(graph, devices)
  local profile, stopped = trinity.profile.measure(graph, { devices = devices, steps = options.steps or 10,
    warm_up = options.warm_up, copies = options.copies, sizes = measure.copy_sizes(options.largest_copy),
    gpu_memory_bytes = options.gpu_memory, seed = options.seed,
    seconds = options.seconds and math.max(options.seconds, 1e-9), model = options.model,
    batch_size = options.batch_size or 0, quiet = options.json })
  profile:save(options.profile)
  if options.json then
    io.write(util.read_file(options.profile))
  else
    print_profile(profile)
    print(('\nmeasured; the profile is in %s'):format(options.profile))
  end
  return stopped and profile.settings.steps or nil
end

local devices = util.words(options.devices)
if #devices == 0 then util.fail_usage "option '--devices': expected at least one device" end
local graph = cli.load_model(options)
if options.profile then
  local measured = measure_profile(graph, devices)
  if not measured then return end
  progress.warn(('stopped by %s after %d of %d measured steps; their profile is in %s; a new one starts at step 1')
    :format(trinity.system.stop_name(), measured, options.steps or 10, options.profile))
  os.exit(trinity.system.stop_status())
end
-- read before a run folder is made, so that an error leaves none
local data = options.data and training.read(graph, options.data, options.scale, options.train_rows)
local problem = trinity.problem { graph = graph, cost = options.cost,
  cluster = cli.cluster(model.counted(options.cluster, #devices)) }
local plan = make_plan(problem)
local found = trinity.execute(problem, plan, { steps = steps, devices = devices, seed = options.seed,
  warm_up = not data and math.min(options.warm_up, steps - 1) or nil, data = data, epochs = options.epochs,
  checkpoint = options.checkpoint, load = options.load, save = options.save, rate = learning_rate(),
  learning_rate = options.learning_rate, daso = #options.daso > 0 and settings.read('daso', options.daso) or nil,
  seconds = options.seconds and math.max(options.seconds, 1e-9),
  memory_limit_bytes = options.worker_memory_limit and math.floor(options.worker_memory_limit) })
local job = trinity.dist.current()
if job and job.rank > 0 then return end

local about = { model = problem.graph.name, method = plan.method, reevaluated = plan.reevaluated,
  cost = problem:cost_text(), devices = devices, steps = found.steps, stopped = found.stopped,
  warm_up = found.warm_up, schedule = plan.schedule or 'fifo', micro_batches = found.micro_batches,
  processes = job ~= nil, cores = found.cores, losses = found.losses, step_time_s = found.step_time_s,
  step_times_s = found.step_times_s,
  simulated_step_time_s = plan.metrics.step_time_s, transferred_bytes = found.transferred_bytes,
  peak_memory_bytes = found.peak_memory_bytes, simulated_memory_bytes = {}, busy_s = found.last.busy_s,
  copy_s = copying(devices, found.last.copies), types = by_type(problem, plan, found) }
if options.data then
  about.accuracy = found.accuracy
  about.samples_per_s = found.samples_per_s
end
for d = 1, #devices do about.simulated_memory_bytes[d] = plan.metrics:memory_bytes(d) end
if options.trace then
  trinity.files.write(options.trace, require('trinity.execute.trace')(problem, plan, found, devices))
end
local kept = util.merged(about, { simulated_busy_s = {} })
for d = 1, #devices do kept.simulated_busy_s[d] = plan.metrics:compute_busy_s(d) end
trinity.run:result('measured', kept, ('A step of %s on %d devices took %.4g s, measured; %.4g s simulated on %s.')
  :format(about.model, #devices, about.step_time_s, about.simulated_step_time_s, problem.cluster.name))
if options.json then
  print(trinity.files.json.encode(about))
else
  print_report(problem, found, about)
  if options.trace then print(('open %s in https://ui.perfetto.dev to view the trace'):format(options.trace)) end
end
if found.stopped then
  local advice = options.checkpoint and 'the same command resumes from --checkpoint'
    or 'measurements cannot be resumed: a new run starts at step 1'
  local whole = options.epochs and '' or (' of %d'):format(steps)
  progress.warn(('stopped by %s after %d%s steps; %s'):format(trinity.system.stop_name(), found.steps_done, whole,
    advice))
  os.exit(trinity.system.stop_status())
end
