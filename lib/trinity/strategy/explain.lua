-- strategy:explain(): the settings and costs of a strategy as text.

local account_of = require 'trinity.strategy.account'
local owners = require 'trinity.strategy.owners'
local parallelism = require 'trinity.strategy.parallelism'
local util = require 'trinity.base.util'

local axes = { 'pipeline', 'data', 'expert', 'placement', 'context', 'tensor' }
local sharded = { 'optimizer states', 'optimizer states and gradients',
  'optimizer states, gradients and weights' }

-- Returns the line about the pipeline bubble, which includes recomputed forward passes.
local function bubble_line(found)
  local of_device, of_step = parallelism.schedule_bubble(found)
  return ('bubble with equal stages: %.4g of their work%s'):format(of_device,
    of_step - of_device > 1e-9 and (', %.4g including the start of the last stage'):format(of_step) or '')
end

-- Returns the line about synchronization of replicas, or nil if all replicas reduce gradients in every step.
local function replicas_line(found)
  local way = found.sync or {}
  local kind, every = way.kind or 'all_reduce', way.every or 1
  local steps = every > 1 and ('every %d steps (the step below is one of these)'):format(every)
    or every == 1 and 'every step' or 'never'
  if (found.mesh.data or 1) == 1 or kind == 'all_reduce' then return nil end
  if kind == 'hierarchical' then
    return ('replicas: gradients are reduced within groups of %d and then across the groups'):format(way.inner)
  elseif kind == 'parameter_server' and way.asynchronous then
    return ('replicas: %d of them are asynchronous parameter servers, which apply one gradient at a time, %d updates '
      .. 'old; every micro-batch has its own update'):format(way.servers or 1, found.mesh.data - 1)
  elseif kind == 'parameter_server' then
    return ('replicas: %d of them are parameter servers, which update the weights for all'):format(way.servers or 1)
  elseif kind == 'local_sgd' then
    return ('replicas: weights are averaged %s'):format(steps)
  end
  return ('replicas: gradients are reduced within groups of %d, weights averaged across groups '
    .. '%s%s'):format(way.inner, steps,
    way.asynchronous and ', and merged after the next step' or '')
end

-- Returns the line with the number of operators per device slot of a stage, or nil if stages have one slot.
local function places_line(found)
  local places = found.mesh.placement or 1
  if places == 1 then return nil end
  local counts = util.listed(places, function() return 0 end)
  for _, place in ipairs(found.inside) do counts[place] = counts[place] + 1 end
  return ('operators by device slot of their stage: %s'):format(table.concat(counts, ', '))
end

local function mesh_lines(found)
  local mesh, devices, sizes, used = found.mesh, #found.problem.cluster.devices, {}, 1
  for _, axis in ipairs(axes) do
    local size = mesh[axis] or 1
    if size > 1 then sizes[#sizes + 1] = ('%s %d'):format(axis, size) end
    if axis ~= 'expert' then used = used * size end
  end
  local data, micro_batches = mesh.data or 1, found.micro_batches or 1
  local lines = { ('mesh: %s: %d of %d devices%s'):format(#sizes > 0 and table.concat(sizes, ' x ') or 'one device',
    used, devices, used < devices and (', %d idle'):format(devices - used) or ''),
    ('schedule: %s, %d micro-batch%s per step (each the batch of the graph) on %d '
      .. 'replica%s'):format(found.schedule or '1f1b',
      micro_batches, micro_batches > 1 and 'es' or '', data, data > 1 and 's' or ''),
    bubble_line(found),
    ('activation recomputation: %s'):format(found.recompute or 'none') }
  local sees = { ring = 'context parallelism: keys and values are passed round a ring',
    all_to_all = 'context parallelism: attention is split by heads, between all-to-alls' }
  if (mesh.context or 1) > 1 then lines[#lines + 1] = sees[found.cp_comm_type] end
  lines[#lines + 1] = places_line(found)
  lines[#lines + 1] = replicas_line(found)
  if found.sequence_parallel then lines[#lines + 1] = 'sequence parallelism: operators that tensor parallelism does '
    .. 'not split are split along the sequence' end
  if found.scatter_gather then lines[#lines + 1] = 'stages send each other slices of activations, which the receiver '
    .. 'gathers' end
  if found.overlap_tp_grad_allreduce then
    lines[#lines + 1] = 'all-reduces of input gradients overlap the computation of weight gradients'
  end
  local zero_stage = found.zero_stage or 0
  if zero_stage > 0 then lines[#lines + 1] = ('sharded over data: %s'):format(sharded[zero_stage]) end
  for name, what in util.sorted_pairs { optimizer = 'its states and updates are on the host',
    activation = "what layers keep is on the host until their backward pass" } do
    local fraction = found[name .. '_offload_fraction'] or 0
    if fraction > 0 then lines[#lines + 1] = ('%s offload: %g %% of %s'):format(name, 100 * fraction, what) end
  end
  if zero_stage > 1 and (mesh.pipeline or 1) > 1 and data > 1 then
    lines[#lines + 1] = ('gradients are reduced after every micro-batch, which sends %d times the bytes of '
      .. 'zero_stage = 1'):format(
      micro_batches)
  end
  return lines
end

local function gigabytes(bytes) return ('%.3g'):format(bytes / 1e9) end

-- Returns the text of a device's peak memory by owner, without owners that have none.
local function peak_text(peak_bytes)
  return table.concat(util.map(owners.of_any { peak_bytes }, function(owner)
    return ('%s %s'):format(owner.name, gigabytes(peak_bytes[owner.key]))
  end), ', ')
end

-- Returns the lines about the first device of every stage: layers, busy time, memory by owner.
local function stage_lines(metrics, account)
  return util.map(account.stages, function(stage)
    local d = stage.device
    return ('stage %d: %d layers, device %d: busy %.6g of %.6g s; peak memory %s GB: %s'):format(stage.stage,
      stage.layers, d, metrics:compute_busy_s(d), metrics.step_time_s, gigabytes(metrics:memory_bytes(d)),
      peak_text(stage.peak_bytes))
  end)
end

-- Returns the line about messages and collectives of the first stage's device, by axis and kind.
local function traffic_line(account)
  local sums = {}
  for _, row in ipairs(account.stages[1].traffic) do
    local key = ('%s %s'):format(row.axis or 'several axes', row.kind:gsub('_', '-'))
    local sum = sums[key] or { count = 0, bytes = 0 }
    sum.count, sum.bytes = sum.count + row.count, sum.bytes + row.count * row.bytes
    sums[key] = sum
  end
  local words = {}
  for key, sum in util.sorted_pairs(sums) do
    words[#words + 1] = ('%s %d x, %s GB'):format(key, sum.count, gigabytes(sum.bytes))
  end
  return #words > 0 and 'messages of stage 1: ' .. table.concat(words, '; ') or 'messages: none'
end

local function placed_lines(found)
  local used, list = {}, found.placement
  for i = 1, #list do used[list[i]] = true end
  local count = #util.sorted_keys(used)
  return { ('placement: %d operators on %d of %d devices'):format(#list, count, #found.problem.cluster.devices),
    ('schedule: %s, %d micro-batch%s'):format(found.schedule or 'fifo', found.micro_batches or 1,
      (found.micro_batches or 1) > 1 and 'es' or '') }
end

local purposes = { 'splits', 'activations', 'weights', 'gradients' }

-- Returns the line about how the devices with work spend the step on average.
local function time_line(timeline, account)
  local sums, devices = { computation = 0, again = 0, host = 0, idle = 0 }, 0
  for _, device in ipairs(account.devices) do
    if device.computation_s > 0 then
      devices = devices + 1
      sums.computation, sums.again = sums.computation + device.computation_s, sums.again + device.recomputation_s
      sums.host, sums.idle = sums.host + device.host_wait_s, sums.idle + device.idle_s
      for _, purpose in ipairs(purposes) do sums[purpose] = (sums[purpose] or 0) + device.exposed_s[purpose] end
    end
  end
  local function share(name) return ('%.3g s'):format((sums[name] or 0) / devices) end
  local waits = {}
  for _, purpose in ipairs(purposes) do
    if (sums[purpose] or 0) > 0 then waits[#waits + 1] = ('%s %s'):format(purpose, share(purpose)) end
  end
  local parts = {}
  if sums.again > 0 then parts[1] = ('%s of it recomputation'):format(share 'again') end
  if sums.host > 0 then parts[#parts + 1] = ('%s of it waiting for the host'):format(share 'host') end
  local within = parts[1] and (' (%s)'):format(table.concat(parts, ', ')) or ''
  return ('step %.6g s: %s computation%s, waiting for %s, %s idle otherwise (mean over %d devices)'):format(
    timeline.metrics.step_time_s, share 'computation', within,
    #waits > 0 and table.concat(waits, ', ') or 'no messages', share 'idle', devices)
end

local most_devices = 256 -- whose timeline is made: thousands take minutes

-- Returns the lines about the stages, messages and waits of a mesh.
local function cost_lines(found)
  local devices = 1
  for _, axis in ipairs(axes) do devices = devices * (axis ~= 'expert' and found.mesh[axis] or 1) end
  if devices > most_devices then
    local lines = stage_lines(found.metrics, { stages = owners.of_stages(found) })
    lines[#lines + 1] = ('step %.6g s; messages and waits are counted on at most %d devices'):format(
      found.metrics.step_time_s, most_devices)
    return lines, { samples = found.metrics.samples, samples_per_s = found.metrics.samples_per_s }
  end
  local account, timeline = account_of(found)
  return util.joined(stage_lines(timeline.metrics, account), { traffic_line(account), time_line(timeline, account) }),
    account
end

return function(found)
  if not found.mesh then
    local account, timeline = account_of(found)
    return table.concat(util.joined(placed_lines(found), { time_line(timeline, account) }), '\n')
  end
  local costs, account = cost_lines(found)
  local lines = util.joined(mesh_lines(found), costs)
  local every = found.sync and found.sync.every or 1
  if every > 1 and (found.mesh.data or 1) > 1 then
    lines[#lines + 1] = ('mean over %d steps: %.6g s'):format(every, found.metrics.step_time_s)
  end
  if account.samples > 0 then
    lines[#lines + 1] = ('samples: %d per step, %.6g per second'):format(account.samples, account.samples_per_s)
  end
  return table.concat(lines, '\n')
end
