-- What a strategy says and what it costs, in words: strategy:explain().

local parallelism = require 'trinity.strategy.parallelism'
local simulator = require 'trinity.strategy.simulator'
local util = require 'trinity.base.util'

local function mesh_lines(found)
  local mesh, devices = found.mesh, #found.problem.cluster.devices
  local data, tensor, pipeline = mesh.data or 1, mesh.tensor or 1, mesh.pipeline or 1
  local used = data * tensor * pipeline
  return { ('mesh: pipeline %d x data %d x tensor %d: %d of %d devices%s'):format(pipeline, data, tensor, used, devices,
    used < devices and (', %d idle'):format(devices - used) or ''),
    ('schedule: %s, %d micro-batch%s a step of the graph\'s batch, on %d replica%s'):format(found.schedule or '1f1b',
      found.micro_batches or 1, (found.micro_batches or 1) > 1 and 'es' or '', data, data > 1 and 's' or ''),
    ('recomputed before backward: %s'):format(found.recompute or 'none') }
end

-- Of the first replica's first part on every stage of the pipeline: layers, seconds of work, memory.
local function stage_lines(found)
  local mesh, metrics = found.mesh, found.metrics
  local low = parallelism.lower('strategy:explain', found.problem.graph, found.problem.cluster,
    parallelism.fields('strategy:explain', found))
  local pipeline = mesh.pipeline or 1
  local width = (mesh.data or 1) * (mesh.tensor or 1)
  return util.listed(pipeline, function(s)
    local layers = {}
    for k = s, #low.layers, pipeline do layers[#layers + 1] = tostring(low.layers[k]) end
    local first = (s - 1) * width + 1
    return ('stage %d: %s layers, devices %d to %d, busy %.6g of %.6g s, memory %.3g GB'):format(s,
      table.concat(layers, ' + '), first, first + width - 1, metrics:compute_busy_s(first), metrics.step_time_s,
      metrics:memory_bytes(first) / 1e9)
  end)
end

local function placed_lines(found)
  local used, list = {}, found.placement
  for i = 1, #list do used[list[i]] = true end
  local count = #util.sorted_keys(used)
  return { ('placement: %d operators on %d of %d devices'):format(#list, count, #found.problem.cluster.devices),
    ('schedule: %s, %d micro-batch%s'):format(found.schedule or 'fifo', found.micro_batches or 1,
      (found.micro_batches or 1) > 1 and 'es' or '') }
end

-- Where the last device to end waits, from the timeline.
local function time_line(found)
  local inner, plan = found.problem, found
  if found.mesh or found.splits then inner, plan = simulator.lowered('strategy:explain', found.problem, found) end
  local _, exposed = simulator.timeline('strategy:explain', inner, plan):exposed_communication()
  local busy, wait, devices = 0, 0, 0
  for d = 1, #exposed do
    if found.metrics:compute_busy_s(d) > 0 then
      devices, busy, wait = devices + 1, busy + found.metrics:compute_busy_s(d), wait + exposed[d]
    end
  end
  local step_s = found.metrics.step_time_s
  return ('step %.6g s: %.3g s of work, %.3g s waiting for communication, %.3g s idle otherwise (means of %d devices)')
    :format(step_s, busy / devices, wait / devices, step_s - (busy + wait) / devices, devices)
end

return function(found)
  local lines = found.mesh and mesh_lines(found) or placed_lines(found)
  if found.mesh then for _, line in ipairs(stage_lines(found)) do lines[#lines + 1] = line end end
  lines[#lines + 1] = time_line(found)
  return table.concat(lines, '\n')
end
