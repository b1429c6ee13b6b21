-- Where the time of one step goes, as `simulate --trace` says it, with a Chrome trace of the step.

local cli = require 'trinity.command.cli'
local core = require 'trinity.core'
local format_table = require('trinity.base.text').format_table
local text = require 'trinity.base.text'

local function percent(part, whole) return whole > 0 and ('%.1f %%'):format(100 * part / whole) or '-' end
local seconds = text.seconds -- in tables
local function said(s) return ('%.6g s'):format(s) end

local function print_step(metrics, plan, bounds)
  print(('step time    %s%s'):format(said(metrics.step_time_s), metrics.feasible and ''
    or (', does not fit by %s'):format(core.format_bytes(metrics.excess_memory_bytes))))
  if plan.mesh or plan.splits then -- its bound holds for the graph that it lowers to
    local bound_s = plan.mesh and plan:bounds().step_time_s
    return print(bound_s and ('lower bound  %s, the step is %.2f times that\n'):format(said(bound_s),
      metrics.step_time_s / bound_s) or '')
  end
  print(('lower bound  %s, the step is %.2f times that (longest path %s, work / devices %s, intervals %s)\n'):format(
    said(bounds.step_time_s), metrics.step_time_s / bounds.step_time_s, said(bounds.critical_path_s),
    said(bounds.work_s), said(bounds.interval_s)))
end

local function print_devices(cluster, metrics, exposed)
  local rows = {}
  for d, device in ipairs(cluster.devices) do
    local busy = metrics:compute_busy_s(d)
    rows[d] = { ('%s (%s)'):format(device.name, device.type), seconds(busy), percent(busy, metrics.step_time_s),
      seconds(metrics.step_time_s - busy), seconds(exposed[d]), core.format_bytes(metrics:memory_bytes(d)),
      percent(metrics:memory_bytes(d), device.capacity_bytes), core.format_bytes(metrics:sent_bytes(d)),
      core.format_bytes(metrics:received_bytes(d)) }
  end
  print(format_table({ 'device', 'busy', 'of step', 'idle', 'waits for data', 'memory', 'of capacity', 'sent',
    'received' }, rows))
end

-- The end of the last task: the step, or all of a stream's mini-batches.
local function span_of(timeline)
  local span_s = 0
  for task = 1, timeline.tasks do
    local end_s = timeline.end_s[task]
    if end_s == end_s then span_s = math.max(span_s, end_s) end
  end
  return span_s
end

local function print_path(timeline, exposed_s, span_s)
  local path, step_s = timeline:critical_path(), span_s
  print(('\ncritical path of %d events: %s computing, %s on links, %s in collectives, %s waiting for a device or link')
    :format(#path.steps, percent(path.compute_s, step_s), percent(path.wire_s, step_s),
      percent(path.collective_s, step_s), percent(path.queue_s, step_s)))
  print(('communication that no computation hides: %s of the step on at least one device\n'):format(
    percent(exposed_s, step_s)))
end

local function print_types(timeline)
  local rows, total = {}, 0
  local shares = timeline:by_type()
  for _, share in ipairs(shares) do total = total + share.total_s end
  for i = 1, math.min(8, #shares) do
    local share = shares[i]
    rows[i] = { share.type, tostring(share.tasks), seconds(share.total_s), percent(share.total_s, total) }
  end
  print(format_table({ 'operator type', 'tasks', 'time', 'of all' }, rows))
  if #shares > #rows then print(('and %d more types'):format(#shares - #rows)) end
end

--- Prints where the time of a plan's step goes. source: where the plan is from. path: the file of the trace.
return function(problem, plan, source, path)
  local start = core.clock_s()
  local timeline = problem:timeline(plan)
  local took = core.clock_s() - start
  print(('%s on %s, %s: %s, %d micro-batch%s'):format(problem.graph.name, problem.cluster.name, source,
    plan.schedule or 'fifo', plan.micro_batches or 1, (plan.micro_batches or 1) > 1 and 'es' or ''))
  print(('%d tasks, %d transfers, simulated in %.2f ms\n'):format(timeline.tasks, timeline.metrics.transfers,
    1e3 * took))
  local exposed_s, exposed = timeline:exposed_communication()
  local span_s = span_of(timeline)
  local stream = plan.schedule == 'pipedream' or plan.mesh and (plan.synchronise or {}).asynchronous
  print_step(plan.metrics, plan, problem:bounds(plan.micro_batches or 1, stream and 'pipedream' or plan.schedule))
  if timeline.metrics.step_time_s ~= plan.metrics.step_time_s and not stream then
    print(('the average over a synchronization period; a step with synchronization (%s) is shown below\n')
      :format(said(timeline.metrics.step_time_s)))
  end
  if stream then
    print(('a stream of %d mini-batches, %s: waiting and what follows are of all of it\n'):format(
      timeline.micro_batches, said(span_s)))
  end
  print_devices(problem.cluster, timeline.metrics, exposed)
  print_path(timeline, exposed_s, span_s)
  print_types(timeline)
  cli.print_basis(problem, plan)
  timeline:save(path)
  print(('\nto see it, open %s in https://ui.perfetto.dev'):format(path))
  timeline:close()
end
