-- What of a plan is drawn (report/plan_picture.lua): the mesh and its axes, stages with their layers, memory by owner,
-- and what the first device of every stage does when, simulated.

local parallelism = require 'trinity.strategy.parallelism'
local simulator = require 'trinity.strategy.simulator'
local space = require 'trinity.plan.space'
local text = require 'trinity.plan.text'
local util = require 'trinity.base.util'

local shown = {}

-- Of a step that is followed for a picture: operators of all devices and micro-batches (a fifth of a second), and
-- blocks that it shows.
local most_tasks, most_passes = 200000, 4000

-- About how many operators a step runs on all devices: those of a stage on each of its devices.
local function tasks_of(plan)
  return plan.problem.graph.operators * plan.micro_batches * plan.data * space.width(plan)
end

-- Operators that take time on the first device of every stage: { start_s, end_s, micro_batch, phase, task }, by start.
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
    table.sort(list, function(a, b)
      if a[1] ~= b[1] then return a[1] < b[1] end
      return a[5] < b[5]
    end)
  end
  return by_stage
end

-- Passes of micro-batches: neighbours in time of one phase and micro-batch are one.
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

-- By stage; nil where there are too many.
local function passes(plan)
  if tasks_of(plan) > most_tasks then return nil end
  local inner, there, low = simulator.lowered('trinity.plan', plan.problem, plan.strategy)
  local timeline = simulator.timeline('trinity.plan', inner, there)
  local count = 0
  local list = util.map(tasks_by_stage(inner.graph, timeline, parallelism.first_devices(low)), function(tasks)
    local made = passes_of(tasks)
    count = count + #made
    return made
  end)
  return count <= most_passes and list or nil
end

---@class trinity.PlanShown
---@field text string
---@field step_time_s number
---@field lower_bound_s number
---@field capacity_bytes number of a device
---@field axes { name: string, size: integer }[] outermost first, those of several devices
---@field expert integer ranks of `data` that share out experts
---@field stages trinity.PlanStageShown[]
---@field shares { computing: number, within_stages: number, between_stages: number, rest: number } seconds of a step

---@class trinity.PlanStageShown
---@field device integer the first
---@field layers { [1]: integer, [2]: integer }[] first and last of its virtual stages
---@field peak_bytes trinity.PeakBytes
---@field busy_s number
---@field passes? { micro_batch: integer, phase: trinity.Phase, start_s: number, end_s: number, busy_s: number }[]

--- A plan for a picture. layers: of the network.
---@param plan table one of trinity.plan()
---@param layers integer
---@return trinity.PlanShown
function shown.of(plan, layers)
  local axes, chunks, done = {}, text.chunks(plan, layers), passes(plan)
  for _, name in ipairs { 'pipeline', 'data', 'placement', 'context', 'tensor' } do
    if plan[name] > 1 then axes[#axes + 1] = { name = name, size = plan[name] } end
  end
  local stages = util.map(text.memory(plan, layers), function(row, s)
    return { device = row.device, layers = chunks[s], busy_s = row.compute_busy_s,
      peak_bytes = row.peak_bytes, passes = done and done[s] }
  end)
  return { text = space.text(plan.point), step_time_s = plan.step_time_s, lower_bound_s = plan.lower_bound_s,
    capacity_bytes = plan.problem.cluster.devices[1].capacity_bytes, axes = axes, expert = plan.expert, stages = stages,
    shares = util.picked(text.shares(plan), { 'computing', 'within_stages', 'between_stages', 'rest' }) }
end

return shown
