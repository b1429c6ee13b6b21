-- Timelines of simulated steps. problem:timeline(plan) makes them.

local array = require 'trinity.base.array'
local check = require 'trinity.base.check'
local util = require 'trinity.base.util'

---@class trinity.Timeline
---@field cluster trinity.Cluster
---@field metrics trinity.Metrics
---@field micro_batches integer
---@field tasks integer number of tasks: (micro_batch - 1) * operators + operator
---@field ready_s trinity.DoubleArray per task: arrival of its last input in seconds; NaN if it does not run
---@field start_s trinity.DoubleArray per task
---@field end_s trinity.DoubleArray per task
---@field device trinity.Placement per task
local Timeline = { __name = 'timeline' }
local arrays = { start_s = true, end_s = true, ready_s = true, device = true }

--- The arrays over all tasks are filled at the first access.
function Timeline.__index(self, key)
  if not arrays[key] then return Timeline[key] end
  local tasks = self.tasks
  local values = { start_s = array.double(tasks), end_s = array.double(tasks),
    ready_s = array.double(tasks), device = array.int32(tasks) }
  self.handle:fill(values.start_s, values.end_s, values.ready_s, values.device)
  for name, value in util.sorted_pairs(values) do rawset(self, name, value) end
  return values[key]
end

function Timeline.__tostring(self)
  return ('timeline of %d tasks, %.6g s'):format(self.tasks, self.metrics.step_time_s)
end

-- Fills `metrics`.
local function new(handle, cluster, metrics)
  local tasks, micro_batches = handle:tasks()
  local self = setmetatable({ cluster = cluster, handle = handle, tasks = tasks,
    micro_batches = micro_batches, metrics = metrics }, Timeline)
  handle:metrics(self.metrics)
  return self
end

--- Returns all transfers of tensors, sorted by start. Example: `#timeline:transfers()`
---@return trinity.Transfer[]
function Timeline:transfers() return self.handle:transfers() end

--- Returns all executions of collectives. Example: `#timeline:collectives()`
---@return trinity.CollectiveRun[]
function Timeline:collectives() return self.handle:collectives() end

--- Returns the memory of device `d` (from 1) over time, as levels that each last until the next one. Example:
--- `timeline:memory(1)`
---@param d integer
---@return trinity.MemoryLevel[]
function Timeline:memory(d)
  check.integer('timeline:memory', 1, 'd', d, 1, #self.cluster.devices)
  return self.handle:memory(d)
end

--- Returns the critical path of the step and its time in seconds by kind; the four times sum to the step time. Example:
--- `timeline:critical_path().wire_s`
---@return trinity.CriticalPath
function Timeline:critical_path() return self.handle:critical_path() end

--- The events of the critical path as arrays.
---@class trinity.CriticalSteps
---@field count integer
---@field kind trinity.Placement 1: a task, 2: a transfer, 3: a collective
---@field task trinity.Placement the task, the task whose output is sent, or 0
---@field device trinity.Placement device of the task, receiving device, or 0
---@field ready_s trinity.DoubleArray arrival of its last input: the end of the previous event
---@field start_s trinity.DoubleArray
---@field end_s trinity.DoubleArray

--- Returns the critical path as arrays without names, which is faster in loops. Example:
--- `timeline:critical_steps().count`
---@return trinity.CriticalSteps
function Timeline:critical_steps()
  local n = self.handle:critical_steps()
  local steps = { count = n, kind = array.int32(n), task = array.int32(n), device = array.int32(n),
    ready_s = array.double(n), start_s = array.double(n), end_s = array.double(n) }
  self.handle:critical_steps(steps.kind, steps.task, steps.device, steps.ready_s, steps.start_s, steps.end_s)
  return steps
end

--- Returns the seconds in which a device is idle while one of its inputs is being sent. Example:
--- `timeline:exposed_communication()`
---@return number any seconds in which at least one device waits
---@return number[] by_device
function Timeline:exposed_communication() return self.handle:exposed_communication() end

--- Returns the time per operator type, largest first. Example: `timeline:by_type()[1].type`
---@return trinity.TypeShare[]
function Timeline:by_type() return self.handle:by_type() end

--- Returns the step as Chrome trace JSON for ui.perfetto.dev; save() writes it to a file. Example:
--- `#timeline:chrome_trace()`
---@return string
function Timeline:chrome_trace() return self.handle:chrome_trace() end

--- Writes the Chrome trace to a file and returns the path. Raises an error if the file cannot be written. Example:
--- `timeline:save 'step.json'`
---@param path string
---@return string path
function Timeline:save(path)
  check.path('timeline:save', 1, 'path', path)
  util.write_file('timeline:save', path, self:chrome_trace())
  return path
end

--- Example: `timeline:close()`
function Timeline:close() check.closing('timeline:close', self, 'timeline').handle:close() end

check.methods(Timeline, 'trinity.Timeline')

return { new = new }
