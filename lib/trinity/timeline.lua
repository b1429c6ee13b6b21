-- Timelines: what a simulated step did when. Made by simulator:timeline(plan).

local array = require 'trinity.array'
local check = require 'trinity.check'
local util = require 'trinity.util'

local Timeline = { __name = 'timeline' }
local arrays = { start_s = true, end_s = true, ready_s = true, device = true }

--- The arrays over all tasks are filled when first asked for.
function Timeline.__index(self, key)
  if Timeline[key] then return Timeline[key] end
  if not arrays[key] then return nil end
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

--- Fields: tasks, micro_batches, metrics, and per task (micro_batch - 1) * operators + operator the
--- arrays ready_s, start_s, end_s (NaN where a task does not run) and device.
local function new(simulator, handle)
  local tasks, micro_batches = handle:tasks()
  local self = setmetatable({ simulator = simulator, handle = handle, tasks = tasks,
    micro_batches = micro_batches, metrics = array.metrics(#simulator.cluster.devices) }, Timeline)
  handle:metrics(self.metrics)
  return self
end

--- Every copy of a tensor, by start: { operator =, micro_batch =, output =, from =, to =, bytes =,
--- ready_s =, start_s =, end_s = }.
function Timeline:transfers()
  check.self('timeline:transfers', self, 'timeline')
  return self.handle:transfers()
end

--- Every run of a collective: { collective =, micro_batch =, ready_s =, start_s =, end_s = }.
function Timeline:collectives()
  check.self('timeline:collectives', self, 'timeline')
  return self.handle:collectives()
end

--- Memory of device `d`, a list of { time_s =, bytes = } that each hold until the next.
function Timeline:memory(d)
  check.self('timeline:memory', self, 'timeline')
  check.integer('timeline:memory', 1, 'd', d, 1, #self.simulator.cluster.devices)
  return self.handle:memory(d)
end

--- The chain of events that ends the step: { steps = { { kind = 'compute' | 'transfer' |
--- 'collective', ... }, ... }, compute_s =, wire_s =, collective_s =, queue_s = }; the four sum to
--- the step time.
function Timeline:critical_path()
  check.self('timeline:critical_path', self, 'timeline')
  return self.handle:critical_path()
end

--- Seconds in which at least one device runs nothing while one of its inputs is on its way, and the
--- list of these seconds per device.
function Timeline:exposed_communication()
  check.self('timeline:exposed_communication', self, 'timeline')
  return self.handle:exposed_communication()
end

--- Per operator type { type =, tasks =, total_s = }, the largest first.
function Timeline:by_type()
  check.self('timeline:by_type', self, 'timeline')
  return self.handle:by_type()
end

--- The step as Chrome trace JSON, which ui.perfetto.dev opens; save() writes it to a file.
function Timeline:chrome_trace()
  check.self('timeline:chrome_trace', self, 'timeline')
  return self.handle:chrome_trace()
end

function Timeline:save(path)
  check.self('timeline:save', self, 'timeline')
  check.argument('timeline:save', 1, 'path', path, 'string')
  util.write_file('timeline:save', path, self:chrome_trace())
  return path
end

function Timeline:close() check.closing('timeline:close', self, 'timeline').handle:close() end

return { new = new }
