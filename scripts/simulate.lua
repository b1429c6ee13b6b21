#!/usr/bin/env trinity
-- Simulates one strategy: a saved one, the result of a method, or a placement. With --trace FILE, prints how the time
-- of the step is spent and writes a Chrome trace for https://ui.perfetto.dev. With --json, prints one object with the
-- fields
--   model, cluster          names
--   step_time_s             of the whole strategy
--   fits                    true: every device has enough memory
--   peak_memory_bytes       a list, one number per device
--   peak_communication_bytes, total_communication_bytes   of the busiest device, of all
--   lower_bound_s           lower bound of the step time of all strategies
--   placement               devices from 0, one per operator in the order of the model's file
--   makespan                with --rules doppler: the step time in integer units of its files
--   reward, evaluations, seconds, schedule, micro_batches
--   reevaluated             with --reevaluate: the problem that the strategy was made for
--   cost                    with --cost: the operators whose times the file gives
--   expert_load             with --expert-load: result of trinity.stragglers.expert_load (trinity help ExpertLoad)
--   stragglers              with --noise or --lengths: step_time_s, mean_s, p50_s, p95_s, error_s, 'draws', waits,
--                           replica_waits, remedies
--   context_degrees         with --context-degrees: a list of what, mesh, micro_batches, mean_s, p50_s, p95_s, error_s,
--                           degrees (trinity help ContextDegree)

local trinity = require 'trinity'
local cli = require 'trinity.command.cli'
local seconds = require('trinity.base.text').seconds
local util = require 'trinity.base.util'

local options = trinity.options(cli.declare('model set batch_size cluster rules devices cost strategy reevaluate '
    .. 'schedule micro_batches method method_set evaluations seconds seed lengths fill deal expert_load dispatcher '
    .. 'capacity_factor json', {
  'Simulates a step of a model on a cluster; --trace shows where its time goes.',
  method = { default = 'given',
    help = 'given: simulate --placement; or the method that makes it (trinity help methods)' },
  evaluations = { default = 320 },
  placement = { type = 'string',
    help = 'a device, from 0, per operator in file order or per unit: 0,0,1 (default: all 0)' },
  schedule_csv = { type = 'string',
    help = "pipeline order, instead of the mesh's schedule: a CSV file of PyTorch's schedules" },
  output = { type = 'string', writes = '', help = 'write the strategy to this file, for --strategy of any command' },
  picture = { type = 'string', writes = '', help = 'write a picture of the strategy to this file (SVG)' },
  noise = { type = 'number', min = 0, max = 10,
    help = 'coefficient of variation of a pass: prints mean and 95th percentile of the step, and causes of waiting' },
  context_degrees = { default = false,
    help = 'with --lengths: compare context-parallel degrees, one for all micro-batches and the best one of each' },
  draws = { default = 200, min = 1, integer = true, help = 'steps that --noise or --lengths simulates' },
  trace = { type = 'string', writes = '', help = 'write a Chrome trace, and print where the time of the step goes; '
    .. 'missing folders of outputs are made' },
}, 'capacity_factor context_degrees cost deal devices draws evaluations dispatcher expert_load fill method_set '
  .. 'reevaluate rules schedule_csv seconds'))

cli.complete(options)

local problem = cli.problem(options)
if options.placement then cli.refuse(options, 'strategy method', 'not with --placement') end
if not (options.noise or options.lengths) then cli.refuse(options, 'draws', 'belongs to --noise') end
if not options.lengths then cli.refuse(options, 'context_degrees', 'belongs to --lengths') end
local uneven = cli.uneven(options)
if options.method == 'given' then cli.refuse(options, 'method_set evaluations seconds', 'belongs to --method') end

local function make_strategy()
  if options.strategy then return cli.load_strategy(options, problem) end
  if options.method == 'given' then
    local placement = options.placement and cli.read_placement(problem, options.placement) or problem:placement()
    return problem:strategy(placement, { method = 'given', evaluations = 1 })
  end
  return cli.run_method(options, problem, { seed = options.seed, evaluations = options.evaluations,
    seconds = options.seconds })
end

-- Returns the results of --noise as JSON fields.
local function straggler_facts(found)
  local facts = util.picked(found, { 'step_time_s', 'mean_s', 'p50_s', 'p95_s', 'error_s' })
  facts.draws = #found.draws_s
  facts.waits = util.map(found.waits, function(row)
    return util.picked(row, { 'device', 'stage', 'replica', 'type', 'time_s' })
  end)
  facts.replica_waits = util.map(found.replica_waits, util.merged)
  facts.remedies = util.map(found.remedies, function(row)
    return util.picked(row, { 'what', 'step_time_s', 'samples_per_s', 'gain', 'stages', 'devices', 'micro_batches' })
  end)
  return facts
end

local shown_waits = 6

-- Prints the results of --noise.
local function print_stragglers(found)
  print(('sampled         %.6g s on average over %d samples (+- %.2g), median %.6g s, 95 %% within %.6g s'):format(
    found.mean_s, #found.draws_s, found.error_s, found.p50_s, found.p95_s))
  print()
  local rows = {}
  for i = 1, math.min(shown_waits, #found.waits) do
    local of = found.waits[i]
    rows[i] = { of.device, of.type, of.stage and tostring(of.stage) or '', of.replica and tostring(of.replica) or '',
      ('%.6g'):format(of.time_s), ('%.1f'):format(100 * of.time_s / found.mean_s) }
  end
  print(trinity.system.format_table({ 'the step waits for', 'work', 'stage', 'replica', 'seconds', '% of the step' },
    rows))
  local stages = util.grouped(found.replica_waits, function(row) return row.stage end)
  if #stages > 0 then
    print()
    print(trinity.system.format_table({ 'stage', 'a replica waits s', 'at most s', 'for replica' }, util.map(stages,
      function(list)
        local times_s = util.map(list, function(row) return row.time_s end)
        local order = util.order_of(times_s)
        return { tostring(list[1].stage), ('%.6g'):format(util.sum(times_s) / #times_s),
          ('%.6g'):format(times_s[order[#order]]), tostring(list[order[1]].replica) }
      end)))
  end
  if #found.remedies == 0 then return end
  print()
  print(trinity.system.format_table({ 'what helps', 'step s', 'samples/s', 'gain %', 'layers of stages' },
    util.map(found.remedies, function(of)
      return { of.what, ('%.6g'):format(of.step_time_s), ('%.6g'):format(of.samples_per_s),
        ('%.1f'):format(100 * of.gain), table.concat(of.stages or {}, ' ') }
    end)))
end

-- Returns a result of --context-degrees as JSON fields.
local function degree_facts(row)
  local by_degree = {}
  for degree, share in util.sorted_pairs(row.degrees) do by_degree[tostring(degree)] = share end
  return util.merged(row, { degrees = by_degree })
end

-- Prints the results of --context-degrees.
local function print_degrees(rows)
  print()
  print(trinity.system.format_table({ 'degree', 'mean s', 'median s', '95 % within', 'micro-batches by degree' },
    util.map(rows, function(row)
      local parts = {}
      for degree, share in util.sorted_pairs(row.degrees) do
        parts[#parts + 1] = ('%d: %.0f %%'):format(degree, 100 * share)
      end
      return { row.what, ('%.6g'):format(row.mean_s), ('%.6g'):format(row.p50_s), ('%.6g'):format(row.p95_s),
        table.concat(parts, ', ') }
    end)))
end

local function percent(part, whole) return whole > 0 and ('%.1f %%'):format(100 * part / whole) or '-' end

local function print_busy(cluster, metrics, exposed)
  local rows = {}
  for d, device in ipairs(cluster.devices) do
    local busy = metrics:compute_busy_s(d)
    rows[d] = { ('%s (%s)'):format(device.name, device.type), percent(busy, metrics.step_time_s),
      seconds(metrics.step_time_s - busy), seconds(exposed[d]),
      percent(metrics:memory_bytes(d), device.capacity_bytes), trinity.system.format_bytes(metrics:sent_bytes(d)),
      trinity.system.format_bytes(metrics:received_bytes(d)) }
  end
  print(trinity.system.format_table({ 'device', 'busy', 'idle', 'waits for data', 'memory', 'sent', 'received' }, rows))
end

-- Returns the end of the last task: the step time, or the time of all mini-batches of an asynchronous pipeline.
local function span_of(timeline)
  local span_s = 0
  for task = 1, timeline.tasks do
    local end_s = timeline.end_s[task]
    if end_s == end_s then span_s = math.max(span_s, end_s) end
  end
  return span_s
end

local function print_path(timeline, exposed_s, span_s)
  local path = timeline:critical_path()
  print(('\ncritical path of %d events: %s computing, %s in transfers, %s in collectives, %s waiting for a device or '
    .. 'link'):format(#path.steps, percent(path.compute_s, span_s), percent(path.wire_s, span_s),
    percent(path.collective_s, span_s), percent(path.queue_s, span_s)))
  print(('exposed communication: %s of the step on at least one device\n'):format(percent(exposed_s, span_s)))
end

local function print_types(timeline)
  local rows, total = {}, 0
  local shares = timeline:by_type()
  for _, share in ipairs(shares) do total = total + share.total_s end
  for i = 1, math.min(8, #shares) do
    local share = shares[i]
    rows[i] = { share.type, tostring(share.tasks), seconds(share.total_s), percent(share.total_s, total) }
  end
  print(trinity.system.format_table({ 'operator type', 'tasks', 'time', 'of all' }, rows))
  if #shares > #rows then print(('and %d more types'):format(#shares - #rows)) end
end

-- Returns the span of the timeline in words where it is not one step of the strategy's step time, or nil.
local function other_span(found, timeline)
  if found.schedule == 'pipedream' or found.mesh and (found.sync or {}).asynchronous then
    return ('all %d mini-batches of the asynchronous pipeline'):format(timeline.micro_batches)
  elseif timeline.metrics.step_time_s ~= found.metrics.step_time_s then
    return 'the step that synchronizes the replicas'
  end
end

-- Prints how the time of a strategy's step is spent, and writes its trace to `path`.
local function print_timeline(found, path)
  local timeline = found.problem:timeline(found)
  local exposed_s, exposed = timeline:exposed_communication()
  local span_s, other = span_of(timeline), other_span(found, timeline)
  print(('\n%s, %d micro-batch%s: %d tasks, %d transfers in %.6g s%s\n'):format(found.schedule or 'fifo',
    found.micro_batches or 1, (found.micro_batches or 1) > 1 and 'es' or '', timeline.tasks,
    timeline.metrics.transfers, span_s, other and (' (%s)'):format(other) or ''))
  print_busy(found.problem.cluster, timeline.metrics, exposed)
  print_path(timeline, exposed_s, span_s)
  print_types(timeline)
  timeline:save(path)
  print(('\nopen %s in https://ui.perfetto.dev to view the trace'):format(path))
  timeline:close()
end

local found = cli.rescheduled(options, problem, make_strategy())
local further, spread, degrees = {}, nil, nil
if options.schedule_csv then
  if not found.mesh then
    util.fail_usage "option '--schedule-csv': expected a --strategy with a mesh, got a placement of operators"
  end
  found = cli.called(require('trinity.strategy.parallelism').with_tasks, found, options.schedule_csv)
  further.order = ('%s (%s)'):format(options.schedule_csv, found.tasks and 'no named schedule' or found.schedule)
end
if options.lengths or options.expert_load then
  if not found.mesh then
    util.fail_usage("option '--%s': expected --strategy with a mesh, as trinity plan --output writes, got a placement",
      options.lengths and 'lengths' or 'expert_load')
  end
end
local experts = uneven.experts
if options.noise or options.lengths then
  local sampled = util.merged(uneven, { noise = options.noise or 0, draws = options.draws, seed = options.seed })
  spread = trinity.stragglers(found, sampled)
  degrees = options.context_degrees and trinity.stragglers.context_degrees(found, sampled) or nil
  if options.json then
    further.stragglers, further.context_degrees = straggler_facts(spread), degrees and util.map(degrees, degree_facts)
  end
end
if experts then
  local loaded = trinity.stragglers.expert_load(found, experts)
  further.expert_load = options.json and util.merged(loaded) or ('step %.6g s (%.4g times the even one), fullest rank '
    .. '%.4g times an even load, %.3g %% of tokens dropped, peak memory %s on %s'):format(loaded.step_time_s,
    loaded.slowdown, loaded.rank_factor, 100 * loaded.dropped, trinity.system.format_bytes(loaded.peak_memory_bytes),
    loaded.fullest_device)
end
if options.output then found:save(options.output) end
if options.picture then found:picture(options.picture) end
if options.strategy or options.method == 'given' then cli.keep(found) end -- a search saves its own result
cli.report(options, found, further, function()
  if options.trace then print_timeline(found, options.trace) end
  if spread then print_stragglers(spread) end
  if degrees then print_degrees(degrees) end
end)
if options.trace and options.json then problem:timeline(found):save(options.trace) end
