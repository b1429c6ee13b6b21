-- trinity.execute: executes training steps of a strategy on LibTorch devices (engine/execute/executor.h) and measures
-- them. Operators run in the order of their simulated ends. Workers are threads or, in a job of several processes
-- (mpirun -n N trinity ...), processes: rank r runs device r + 1.

local array = require 'trinity.base.array'
local check = require 'trinity.base.check'
local core = require 'trinity.core'
local lowered = require 'trinity.execute.lowered'
local occasions = require 'trinity.execute.occasions'
local options_of = require 'trinity.base.options'
local progress = require 'trinity.base.progress'
local training = require 'trinity.execute.training'
local util = require 'trinity.base.util'

local entries = { help = 'Options of trinity.execute.',
  { 'steps', 'integer', 15, least = 1, most = 1e6, help = 'number of training steps' },
  { 'warm_up', 'integer', 5, least = 0, help = 'first steps, which are not measured' },
  { 'seed', 'integer', 1, least = 0, help = 'random seed of weights, data and dropout' },
  { 'learning_rate', 'number', 0.01, least = 0, help = "learning rate of the graph's optimizer" },
  { 'devices', 'table', as = 'string[]', otherwise = "'cpu:0', 'cpu:1', ...",
    help = "worker per device of the cluster: 'cpu:N' (core N, from 0) or 'cuda:N'" },
  { 'double_precision', 'boolean', false, help = 'compute in float64 instead of float32' },
  { 'keep_weights', 'boolean', false, help = 'return the final weights' },
  { 'memory_limit_bytes', 'integer', least = 0, most = 2 ^ 53, otherwise = 'no limit',
    help = 'maximum memory of the tensors of a device; more is an error' },
  { 'seconds', 'number', above = 0, otherwise = 'no limit', help = 'time limit after which no step starts' },
  { 'quiet', 'boolean', false, help = 'print no progress line' },
}
for _, entry in ipairs(training.options) do entries[#entries + 1] = entry end
for _, entry in ipairs(occasions.options) do entries[#entries + 1] = entry end
local declared = options_of.declare('trinity.ExecuteOptions', entries)

local most_runs = 1000 -- maximum number of steps whose operator times are kept (the latest)

--- Returns the job whose ranks are the workers, if there is one.
local function job_of(problem, what)
  local job = require('trinity.dist').current()
  if not job then return nil end
  local devices = #problem.cluster.devices
  if job.size ~= devices then
    check.refuse('execute', 1, 'problem', 'expected a device for each of %d processes of the job, got %d', job.size,
      devices)
  end
  job:agree('what is executed', ('%s of %s, devices %s'):format(problem.graph.name, what.graph.fingerprint,
    table.concat(what.placement:totable(), ' ')))
  return job
end

local function device_names(problem, given)
  if given == nil then return nil end
  check.list('execute', 3, 'devices', given, 'string')
  local devices = #problem.cluster.devices
  if #given ~= devices then
    check.refuse('execute', 3, 'options', "'devices': expected a name for each of %d devices, got %d", devices, #given)
  end
  return given
end

--- Returns the median time per operator over measured steps and micro-batches.
local function operator_medians(operators, runs)
  local medians = array.double(operators)
  for op = 1, operators do
    local times = {}
    for _, run in ipairs(runs) do
      for task = op, #run.start_s, operators do
        if run.end_s[task] > 0 then times[#times + 1] = run.end_s[task] - run.start_s[task] end
      end
    end
    medians[op] = #times > 0 and util.median(times) or 0
  end
  return medians
end

--- Returns whether there is time for another step; with several ranks, rank 0 decides.
local function time_left(options, start_s, job)
  if not options.seconds then return true end
  local elapsed_s = core.clock_s() - start_s
  if job then elapsed_s = job:mean(job.rank == 0 and elapsed_s * job.size or 0) end
  return elapsed_s < options.seconds
end

--- Executes steps and adds their results to `all`, until all are done or the time is up.
local function measure(course, happens, options, job, all)
  local start_s, line = core.clock_s(), progress.new('execute', options.quiet or job and job.rank > 0)
  local executor, steps = course.executor, course.steps - course.done
  for step = 1, steps do
    if #all.times > 0 and not time_left(options, start_s, job) then break end
    local took = executor:step(course:learning_rate(), happens:next(course.done))
    all.losses[step] = took.loss
    if step > options.warm_up then
      all.times[#all.times + 1], all.last = took.step_time_s, took
      all.runs[(step - options.warm_up - 1) % most_runs + 1] = took
      for d, bytes in ipairs(took.peak_memory_bytes) do
        all.peaks[d] = math.max(all.peaks[d] or 0, bytes)
        all.busy[d] = (all.busy[d] or 0) + took.busy_s[d]
      end
    end
    happens:step_done(took.loss)
    course:step_done(took.loss) -- after the results are stored
    line:update { text = course:says(took.loss, took.step_time_s) }
  end
  line:finish()
end

--- Collects results of steps: losses, times, runs (the latest), peaks, last, stopped. The first Ctrl-C ends the
--- execution with the steps so far if any was measured and there are no other ranks, which would wait.
local function measured(course, happens, options, job)
  local all = { losses = {}, times = {}, runs = {}, peaks = {}, busy = {} }
  if job then
    measure(course, happens, options, job, all)
  else
    core.begin_search()
    local ok, message = xpcall(function() measure(course, happens, options, nil, all) end,
      function(raised) return raised end)
    all.stopped = core.stop_requested()
    core.end_search()
    if not ok and not (all.stopped and #all.times > 0) then error(message, 0) end
  end
  if course.done < course.steps then course:keep() end
  return all
end

--- Arguments of the engine in addition to graph, placement and order.
local function executor_options(options, what, devices, job)
  return { seed = options.seed, learning_rate = options.learning_rate, micro_batches = what.micro_batches,
    stream = what.stream or false, devices = devices, double_precision = options.double_precision,
    data = options.data, memory_limit_bytes = options.memory_limit_bytes, job = job and job.handle }
end

--- Executes training steps of a problem's graph (one micro-batch of one replica) under a placement or strategy, with
--- one worker thread per device, LibTorch kernels, and copies as transfers. Losses are equal under every strategy for
--- the same samples. Ctrl-C ends it with the measurements so far. Raises an error if the strategy cannot be executed.
--- Example: `trinity.execute(problem, problem:placement(), { steps = 10 }).step_time_s`
---@param problem trinity.Problem
---@param plan trinity.Placement|trinity.Strategy
---@param options? trinity.ExecuteOptions
---@return trinity.Execution
return function(problem, plan, options)
  check.object('execute', 1, 'problem', problem, 'problem')
  options = declared:read('execute', 3, 'options', options)
  if options.data then options.warm_up = 0 end
  training.check(options)
  if options.warm_up >= options.steps then
    check.refuse('execute', 3, 'options', "'warm_up': expected fewer than the %d steps, got %d", options.steps,
      options.warm_up)
  end
  local devices = device_names(problem, options.devices)
  if type(options.data) == 'string' then
    options.data = training.read(problem.graph, options.data, options.scale, options.train_rows)
  end
  local what = lowered(problem, plan)
  local graph, placement = what.graph, what.placement
  local job = job_of(problem, what)
  local executor = core.executor(graph.handle, placement, #problem.cluster.devices, what.order,
    executor_options(options, what, devices, job))
  local course = training.new(executor, problem.graph, options)
  local happens = occasions.new(plan, options, course.per_epoch, course.steps)
  course:follow(happens)
  local all = measured(course, happens, options, job)
  local result = { losses = all.losses, graph = graph, placement = placement, steps = #all.losses,
    warm_up = options.warm_up, micro_batches = what.micro_batches, last = all.last, step_times_s = all.times,
    step_time_s = util.median(all.times), cores = executor:cores(),
    operator_time_s = operator_medians(graph.operators, all.runs),
    operator_start_s = array.double_of(all.last.start_s), transferred_bytes = all.last.transferred_bytes,
    weights = options.keep_weights and executor:weights() or nil,
    peak_memory_bytes = all.peaks, busy_s = all.busy, stopped = all.stopped or false }
  course:result(result)
  executor:close()
  return result
end
