-- Output of `simulate --trace` besides the costs of a strategy: how the time of its step is spent, and a Chrome trace.

local core = require 'trinity.core'
local format_table = require('trinity.base.text').format_table
local seconds = require('trinity.base.text').seconds

local function percent(part, whole) return whole > 0 and ('%.1f %%'):format(100 * part / whole) or '-' end

local function print_devices(cluster, metrics, exposed)
  local rows = {}
  for d, device in ipairs(cluster.devices) do
    local busy = metrics:compute_busy_s(d)
    rows[d] = { ('%s (%s)'):format(device.name, device.type), percent(busy, metrics.step_time_s),
      seconds(metrics.step_time_s - busy), seconds(exposed[d]),
      percent(metrics:memory_bytes(d), device.capacity_bytes), core.format_bytes(metrics:sent_bytes(d)),
      core.format_bytes(metrics:received_bytes(d)) }
  end
  print(format_table({ 'device', 'busy', 'idle', 'waits for data', 'memory', 'sent', 'received' }, rows))
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
  print(format_table({ 'operator type', 'tasks', 'time', 'of all' }, rows))
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

--- Prints how the time of a strategy's step is spent, and writes its trace to `path`.
return function(found, path)
  local timeline = found.problem:timeline(found)
  local exposed_s, exposed = timeline:exposed_communication()
  local span_s, other = span_of(timeline), other_span(found, timeline)
  print(('\n%s, %d micro-batch%s: %d tasks, %d transfers in %.6g s%s\n'):format(found.schedule or 'fifo',
    found.micro_batches or 1, (found.micro_batches or 1) > 1 and 'es' or '', timeline.tasks,
    timeline.metrics.transfers, span_s, other and (' (%s)'):format(other) or ''))
  print_devices(found.problem.cluster, timeline.metrics, exposed)
  print_path(timeline, exposed_s, span_s)
  print_types(timeline)
  timeline:save(path)
  print(('\nopen %s in https://ui.perfetto.dev to view the trace'):format(path))
  timeline:close()
end
