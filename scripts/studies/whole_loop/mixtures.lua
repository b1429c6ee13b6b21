-- Compares simulated with measured step times of strategies: mixtures of data parallelism, ZeRO, tensor, sequence and
-- context parallelism, pipelines and recomputation on two or four workers. They run in rounds, so that other processes
-- disturb all of them equally.
--
-- The simulation of a mixture follows the executor (engine/execute/run_layout.h, WrittenOut): its operators, including
-- those that reduce and move tensors, on their devices, in its order, with the copies between them. Operator times are
-- measured with all operators of the mixture on one worker, one after the other. Copies and the slowdown by other
-- workers come from a profile (lib/trinity/execute/measure.lua). No step of a mixture on its workers is used for a fit.

local array = require 'trinity.base.array'
local core = require 'trinity.core'
local fidelity = require 'studies.papers.figure9'
local graphs = require 'trinity.graph'
local lowered = require 'trinity.execute.lowered'
local measure = require 'trinity.execute.measure'
local model = require 'trinity.graph.model'
local problems = require 'trinity.strategy.problem'
local progress = require 'trinity.base.progress'
local runs = require 'trinity.runs'
local simulator = require 'trinity.strategy.simulator'
local text = require 'trinity.base.text'
local util = require 'trinity.base.util'

local mixtures = {}

local function pipeline(schedule, micro_batches, others)
  return util.merged({ mesh = { pipeline = 2 }, schedule = schedule, micro_batches = micro_batches }, others)
end

--- By number of workers, { name, strategy } each.
local known = {
  [2] = {
    { 'replicas', { mesh = { data = 2 } } },
    { 'tensor', { mesh = { tensor = 2 } } },
    { '1f1b, 4 micro-batches', pipeline('1f1b', 4) },
    { 'context', { mesh = { context = 2 } } },
    { 'ZeRO 1', { mesh = { data = 2 }, zero_stage = 1 } },
    { 'tensor, sequence', { mesh = { tensor = 2 }, sequence_parallel = true } },
    { 'gpipe, 4 micro-batches', pipeline('gpipe', 4) },
    { 'ZeRO 2, 2 micro-batches', { mesh = { data = 2 }, zero_stage = 2, micro_batches = 2 } },
    { 'interleaved, 4 micro-batches', pipeline('interleaved', 4, { virtual_stages = 2 }) },
    { 'ZeRO 3', { mesh = { data = 2 }, zero_stage = 3 } },
    { 'zb-h1, 4 micro-batches', pipeline('zb-h1', 4) },
    { 'tensor, recomputed', { mesh = { tensor = 2 }, recompute = 'full' } },
    { 'replicas, 2 micro-batches', { mesh = { data = 2 }, micro_batches = 2 } },
    { 'zb-v, 4 micro-batches', pipeline('zb-v', 4, { virtual_stages = 2 }) },
    { 'context, recomputed', { mesh = { context = 2 }, recompute = 'full' } },
    { 'ZeRO 2, recomputed', { mesh = { data = 2 }, zero_stage = 2, recompute = 'full' } },
    { '1f1b, 4 micro-batches, recomputed', pipeline('1f1b', 4, { recompute = 'full' }) },
    { 'tensor, sequence, attention recomputed', { mesh = { tensor = 2 }, sequence_parallel = true,
      recompute = 'selective' } },
    { 'tensor, 2 micro-batches', { mesh = { tensor = 2 }, micro_batches = 2 } },
    { '1f1b, 2 micro-batches', pipeline('1f1b', 2) },
  },
  [4] = {
    { 'replicas of 1f1b', pipeline('1f1b', 2, { mesh = { pipeline = 2, data = 2 } }) },
    { 'replicas of tensor', { mesh = { data = 2, tensor = 2 } } },
    { '4 replicas', { mesh = { data = 4 } } },
    { '1f1b of tensor', pipeline('1f1b', 2, { mesh = { pipeline = 2, tensor = 2 } }) },
    { 'ZeRO 3 over 4', { mesh = { data = 4 }, zero_stage = 3 } },
    { '4 stages of 1f1b', pipeline('1f1b', 4, { mesh = { pipeline = 4 } }) },
    { 'ZeRO 2 of tensor, recomputed', { mesh = { data = 2, tensor = 2 }, zero_stage = 2, recompute = 'full' } },
    { 'replicas of context', { mesh = { data = 2, context = 2 } } },
    { 'zb-h1 of tensor', pipeline('zb-h1', 2, { mesh = { pipeline = 2, tensor = 2 } }) },
    { 'tensor and context', { mesh = { tensor = 2, context = 2 } } },
  },
}

function mixtures.of(workers, count)
  local list = known[workers]
  if not list then
    util.fail_usage("option '--mixtures': expected 2 or 4 devices, got %d", workers)
  end
  if count > #list then
    util.fail_usage("option '--mixtures': expected at most %d mixtures for %d devices, got %d", #list, workers, count)
  end
  return util.listed(count, function(i) return { name = list[i][1], strategy = list[i][2] } end)
end

--- Returns the names, once each, in order.
local function distinct(names)
  return util.map(util.grouped(names, tostring), function(group) return group.name end)
end

--- Returns the profile's devices for the workers. Workers on one core each have its full speed while the others wait,
--- and share it while they compute.
local function cluster_of(profile, devices)
  local spec, cores = profile:cluster_spec(), distinct(devices)
  if #cores == #devices then return model.cluster(spec) end
  local by_core, made = {}, { name = spec.name, queue = spec.queue, device_types = {}, devices = {}, links = {} }
  local kind = spec.device_types.cpu
  for _, core_name in ipairs(cores) do
    local type_name = core_name:gsub(':', '_')
    made.device_types[type_name] = util.merged(kind, { contention = 0, operators = {}, launch_s = 0 })
    by_core[core_name] = { type = type_name, workers = 0 }
  end
  for d, name in ipairs(devices) do
    local of = by_core[name]
    of.workers = of.workers + 1
    made.device_types[of.type].contention = math.max(1, of.workers)
    made.devices[d] = { name = ('worker %d'):format(d), type = of.type, node = name }
    for e = 1, d - 1 do
      made.links[#made.links + 1] = util.merged(spec.links[1],
        { from = made.devices[e].name, to = made.devices[d].name })
    end
  end
  return model.cluster(made)
end

--- Adds the executor of its workers to an entry, and one with all operators on one worker.
local function make_executors(entry, problem, devices, seed)
  local what = lowered(problem, problem:strategy(entry.strategy))
  local options = { seed = seed, micro_batches = what.micro_batches, stream = false, devices = devices }
  entry.micro_batches, entry.graph = what.micro_batches, what.graph
  entry.on_workers = core.executor(what.graph.handle, what.placement, #devices, what.order, options)
  entry.on_one = core.executor(what.graph.handle, array.filled(what.graph.operators, 1), 1, what.order,
    util.merged(options, { devices = { devices[1] } }))
  entry.spans = util.listed(what.graph.operators, function() return {} end)
  entry.alone_s, entry.times_s, entry.halves = {}, {}, { {}, {} }
  local made = entry.on_workers:written_out()
  entry.written, entry.origin = graphs.wrap(made.graph), made.origin
  entry.plan = { schedule = 'order', order = made.order, micro_batches = what.micro_batches,
    placement = array.int32(what.graph.operators) }
  for op, origin in ipairs(made.origin) do entry.plan.placement[op] = what.placement[origin] end
end

--- Adds the simulated step time of an entry on the cluster of its workers. busy: slowdown of operators while all cores
--- compute; 1 if the cluster's contention rule includes it.
local function simulate(entry, cluster, busy)
  local times = measure.operator_times(entry.spans, #entry.alone_s, util.median(entry.alone_s))
  local number = {}
  for op = 1, entry.written.operators do number[entry.written:operator(op).name] = op end
  local problem = problems.new { graph = entry.written, cluster = cluster, cost = function(op, device)
    return times[entry.origin[number[op.name]]] * busy / (device.speed or 1)
  end }
  entry.simulated_s = simulator.run('mixtures', problem, entry.plan).step_time_s
  problem:close()
end

--- Visits an entry: an uncounted step, then a counted one, on one worker and on all workers.
local function visit(entry, half, counted)
  entry.on_one:step()
  local alone = entry.on_one:step()
  entry.on_workers:step()
  local took = entry.on_workers:step()
  if not counted then return end
  measure.add_spans(entry.spans, alone)
  entry.alone_s[#entry.alone_s + 1] = alone.step_time_s
  entry.times_s[#entry.times_s + 1] = took.step_time_s
  half[#half + 1] = took.step_time_s
end

--- Visits entries round by round; the first round is not counted. Ctrl-C ends it once a round is counted. Returns the
--- number of counted rounds, and whether it was stopped.
local function visit_rounds(session, entries, options)
  local counted, start_s = 0, core.clock_s()
  local function rounds()
    for round = 0, options.rounds do
      if counted > 0 and core.clock_s() - start_s >= (options.seconds or math.huge) then return end
      if options.progress then options.progress(round, options.rounds) end
      session:visit(round > 0)
      for _, entry in ipairs(entries) do visit(entry, entry.halves[2 - round % 2], round > 0) end
      counted = round
    end
  end
  core.begin_search()
  local ok, message = pcall(rounds)
  local stopped = core.stop_requested()
  core.end_search()
  if not ok and not (stopped and counted > 0) then error(message, 0) end
  return counted, stopped
end

--- Mixtures as { name =, strategy =, simulated_s =, measured_s =, halves_s = } in the order of mixtures.of(). options:
--- devices, count, rounds (of one counted step of each, at most), seconds (for these, one at the least), seed,
--- progress(round, rounds). Also returns the number of counted rounds, and whether Ctrl-C ended them.
function mixtures.measure(graph, options)
  local devices = options.devices
  local entries = mixtures.of(#devices, options.count)
  if #distinct(devices) < 2 then
    util.fail_usage("option '--devices': expected at least two different cores, to measure copies between them, got %s",
      devices[1])
  end
  local plain = problems.new { graph = graph, cluster = model.cluster(('p100x%d'):format(#devices)) }
  local session = measure.start('mixtures', graph, { devices = distinct(devices), quiet = true, seed = options.seed,
    sizes = measure.copy_sizes(2 ^ 24) })
  for _, entry in ipairs(entries) do make_executors(entry, plain, devices, options.seed) end
  local counted, stopped = visit_rounds(session, entries, options)
  local profile = session:profile()
  session:close()
  local cluster = cluster_of(profile, devices)
  local busy = #distinct(devices) == #devices and 1 or profile.kinds.cpu.contention
  for _, entry in ipairs(entries) do
    entry.on_one:close()
    entry.on_workers:close()
    entry.measured_s = util.median(entry.times_s)
    entry.halves_s = util.map(entry.halves, function(half) return util.median(#half > 0 and half or entry.times_s) end)
    simulate(entry, cluster, busy)
  end
  return entries, counted, stopped
end

--- Returns the agreement of simulated and measured times, and rows.
function mixtures.summary(entries)
  return util.merged(fidelity.agreement(entries), { rows = util.map(entries, function(entry)
    return util.picked(entry, { 'name', 'simulated_s', 'measured_s', 'halves_s' })
  end) })
end

--- Compares simulated with measured step times of options.mixtures strategies of a graph, in at most options.steps
--- rounds, and prints them.
function mixtures.report(graph, devices, options)
  local line = progress.new('mixtures', false)
  local function progress_of(round, rounds) line:update { text = ('round %d/%d'):format(round, rounds) } end
  local entries, rounds, stopped = mixtures.measure(graph, { devices = devices, count = options.mixtures,
    rounds = options.steps, seed = options.seed, progress = progress_of })
  line:finish()
  local about = mixtures.summary(entries)
  about.model, about.devices, about.rounds, about.stopped = graph.name, devices, rounds, stopped
  runs:result('mixtures', about, ('Simulated step times of %d strategies are off by %.1f %% on average.'):format(
    #entries, 100 * about.mean_error))
  if stopped then
    progress.warn(('stopped by %s after %d of %d rounds; they cannot be resumed: a new run starts at round 1')
      :format(core.stop_name(), rounds, options.steps))
  end
  print(text.format_table({ 'strategy', 'simulated', 'measured', 'error' }, util.map(about.rows, function(row)
    return { row.name, text.seconds(row.simulated_s), text.seconds(row.measured_s),
      ('%+.1f %%'):format(100 * (row.simulated_s / row.measured_s - 1)) }
  end)))
  print(('\nmean error %.1f %%, largest %.1f %%; rank correlation (tau) %.2f, of odd with even rounds %.2f; medians '
    .. 'of %d rounds on %s'):format(100 * about.mean_error, 100 * about.largest_error, about.tau, about.halves_tau,
      rounds, table.concat(devices, ', ')))
end

return mixtures
