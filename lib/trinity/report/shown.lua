-- Data of a strategy for pictures (plan_picture.lua): the mesh and its axes, stages with their layers, memory by owner,
-- and the simulated timeline of the first device of every stage. For a placement, every device is a row.

local account = require 'trinity.strategy.account'
local networks = require 'trinity.plan.networks'
local owners = require 'trinity.strategy.owners'
local simulator = require 'trinity.strategy.simulator'
local space = require 'trinity.plan.space'
local util = require 'trinity.base.util'

local shown = {}

-- Limits of a timeline for a picture: operators of all devices and micro-batches (0.2 seconds of simulation), and
-- blocks to show.
local most_tasks, most_passes = 200000, 4000

-- Estimates the operators of a step on all devices: operators of a stage on each of its devices.
local function tasks_of(strategy)
  local mesh = strategy.mesh or {}
  return strategy.problem.graph.operators * (strategy.micro_batches or 1) * (mesh.data or 1) * (mesh.tensor or 1)
    * (mesh.context or 1) * (mesh.placement or 1)
end

-- Returns operators with a duration on the first device of every stage: { start_s, end_s, micro_batch, phase, task },
-- by start.
local function tasks_by_stage(graph, timeline, first)
  local stage_of, by_stage, phases = {}, {}, {}
  for stage, device in ipairs(first) do stage_of[device], by_stage[stage] = stage, {} end
  for o = 1, graph.operators do
    local op = graph:operator(o)
    phases[o] = not op.collective and op.phase
  end
  for task = 1, timeline.tasks do
    local stage, start_s, end_s = stage_of[timeline.device[task]], timeline.start_s[task], timeline.end_s[task]
    local phase = phases[(task - 1) % graph.operators + 1]
    if stage and phase and end_s > start_s then
      table.insert(by_stage[stage], { start_s, end_s, math.ceil(task / graph.operators), phase, task })
    end
  end
  for _, list in ipairs(by_stage) do
    table.sort(list, util.by(1, 5))
  end
  return by_stage
end

-- Joins consecutive operators of one phase and micro-batch to passes.
local function passes_of(tasks)
  local list = {}
  for _, task in ipairs(tasks) do
    local last = list[#list]
    if not last or last.micro_batch ~= task[3] or last.phase ~= task[4] then
      last = { micro_batch = task[3], phase = task[4], start_s = task[1], busy_s = 0 }
      list[#list + 1] = last
    end
    last.end_s, last.busy_s = task[2], last.busy_s + task[2] - task[1]
  end
  return list
end

-- Returns passes by row, or nil if there are too many.
local function passes(strategy, devices)
  if tasks_of(strategy) > most_tasks then return nil end
  local inner, there = strategy.problem, strategy
  if strategy.mesh or strategy.splits then
    inner, there = simulator.lowered('strategy:picture', strategy.problem, strategy)
  end
  local timeline = simulator.timeline('strategy:picture', inner, there)
  local count = 0
  local list = util.map(tasks_by_stage(inner.graph, timeline, devices), function(tasks)
    local made = passes_of(tasks)
    count = count + #made
    return made
  end)
  return count <= most_passes and list or nil
end

local function mesh_rows(strategy)
  return util.map(owners.of_stages(strategy), function(row)
    return { device = row.device, layers = row.chunks, peak_bytes = row.peak_bytes, busy_s = row.compute_busy_s }
  end)
end

local function placed_rows(strategy)
  local rows, metrics, devices = {}, strategy.metrics, strategy.problem.cluster.devices
  for d, device in ipairs(account(strategy).devices) do
    if metrics:compute_busy_s(d) > 0 then
      rows[#rows + 1] = { device = d, name = devices[d].name, peak_bytes = device.peak_bytes,
        busy_s = metrics:compute_busy_s(d) }
    end
  end
  return rows
end

local function placed_text(strategy, rows)
  return ('%d operators on %d devices, %s, %d micro-batches'):format(strategy.problem.graph.operators, #rows,
    strategy.schedule or 'fifo', strategy.micro_batches or 1)
end

--- Returns the data of a strategy for a picture: { text, step_time_s, lower_bound_s, capacity_bytes = of a device,
--- axes = { name, size } of those with several devices, outermost first, expert, placed = whether rows are devices of a
--- placement, stages = { device = the first, name = with a placement, layers = { first, last } of its virtual stages,
--- peak_bytes, busy_s, passes = nil or { micro_batch, phase, start_s, end_s, busy_s } each } each }. lower_bound_s: of
--- its step time, if it is known.
function shown.of(strategy, lower_bound_s)
  local mesh, axes = strategy.mesh, {}
  local rows = mesh and mesh_rows(strategy) or placed_rows(strategy)
  local done = passes(strategy, util.map(rows, function(row) return row.device end))
  for s, row in ipairs(rows) do row.passes = done and done[s] end
  for _, name in ipairs { 'pipeline', 'data', 'placement', 'context', 'tensor' } do
    if mesh and (mesh[name] or 1) > 1 then axes[#axes + 1] = { name = name, size = mesh[name] } end
  end
  return { text = mesh and space.text(space.point_of(strategy, (networks.samples(strategy.problem.graph))))
      or placed_text(strategy, rows),
    step_time_s = strategy.metrics.step_time_s, lower_bound_s = lower_bound_s or strategy:bounds().step_time_s,
    capacity_bytes = strategy.problem.cluster.devices[1].capacity_bytes, axes = axes,
    expert = mesh and mesh.expert or 1, placed = not mesh, stages = rows }
end

return shown
