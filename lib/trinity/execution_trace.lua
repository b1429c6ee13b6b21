-- An executed step beside the simulated one as Chrome trace JSON, which ui.perfetto.dev opens: two processes,
-- "measured" and "simulated". Each has two threads a device, what it computes and the tensors that it receives, and
-- the memory of every device as a counter. Copies are made by the reading device when it needs them; simulated
-- transfers lie where their wires are busy.

local core = require 'trinity.core'
local simulator = require 'trinity.simulator'

local phases = { forward = 'forward', backward = 'backward', update = 'update' }

--- Collects events; names are quoted once.
local function writer(graph)
  local self = { events = {}, operators = graph.operators, names = {}, categories = {} }
  for op = 1, graph.operators do
    local about = graph:operator(op)
    self.names[op] = core.to_json(about.name)
    self.categories[op] = ('%s","args":{"type":%s,"micro_batch":'):format(phases[about.phase] or 'forward',
      core.to_json(about.type))
  end
  return self
end

local function add(self, text, ...) self.events[#self.events + 1] = text:format(...) end

local function name_threads(self, pid, process, devices)
  add(self, '{"ph":"M","pid":%d,"name":"process_name","args":{"name":"%s"}}', pid, process)
  for d, name in ipairs(devices) do
    for k, thread in ipairs { name, name .. ' receives' } do
      local tid = 2 * d + k
      add(self, '{"ph":"M","pid":%d,"tid":%d,"name":"thread_name","args":{"name":%s}}', pid, tid, core.to_json(thread))
      add(self, '{"ph":"M","pid":%d,"tid":%d,"name":"thread_sort_index","args":{"sort_index":%d}}', pid, tid, tid)
    end
  end
end

local function add_slice(self, pid, tid, of, rest, ...)
  add(self, '{"ph":"X","pid":%d,"tid":%d,"ts":%.3f,"dur":%.3f,' .. rest, pid, tid, 1e6 * of.start_s,
    1e6 * (of.end_s - of.start_s), ...)
end

local function add_task(self, pid, device, task, start_s, end_s)
  local op = (task - 1) % self.operators + 1
  add_slice(self, pid, 2 * device + 1, { start_s = start_s, end_s = end_s }, '"name":%s,"cat":"%s%d}}', self.names[op],
    self.categories[op], (task - op) / self.operators + 1)
end

local function add_copy(self, pid, copy)
  local op = (copy.task - 1) % self.operators + 1
  add_slice(self, pid, 2 * copy.to + 2, copy, '"name":%s,"cat":"copy","args":{"from":%d,"bytes":%.0f}}',
    self.names[op], copy.from, copy.bytes)
end

local function add_memory(self, pid, device, time_s, bytes)
  add(self, '{"ph":"C","pid":%d,"ts":%.3f,"name":%s,"args":{"bytes":%.0f}}', pid, 1e6 * time_s,
    core.to_json('memory of ' .. device), bytes)
end

local function add_measured(self, execution, placement, devices)
  name_threads(self, 1, 'measured', devices)
  local last = execution.last
  for task = 1, #last.start_s do
    if last.end_s[task] > 0 then
      local device = placement[(task - 1) % self.operators + 1]
      add_task(self, 1, device, task, last.start_s[task], last.end_s[task])
      add_memory(self, 1, devices[device], last.end_s[task], last.memory_bytes[task])
    end
  end
  for _, copy in ipairs(last.copies) do add_copy(self, 1, copy) end
end

local function add_simulated(self, timeline, cluster)
  local names = {}
  for d, device in ipairs(cluster.devices) do names[d] = device.name end
  name_threads(self, 2, 'simulated', names)
  for task = 1, timeline.tasks do
    local end_s = timeline.end_s[task]
    if end_s == end_s then add_task(self, 2, timeline.device[task], task, timeline.start_s[task], end_s) end
  end
  for _, transfer in ipairs(timeline:transfers()) do add_copy(self, 2, transfer) end
  for d, name in ipairs(names) do
    for _, level in ipairs(timeline:memory(d)) do add_memory(self, 2, name, level.time_s, level.bytes) end
  end
end

--- The last measured step of an execution of `plan`, and the step that the simulator predicts, as JSON. `devices` names
--- the workers.
return function(problem, plan, execution, devices)
  local timeline = problem:timeline(plan)
  local placement = simulator.parts('execution trace', problem, plan)
  local self = writer(problem.graph)
  add_measured(self, execution, placement, devices)
  add_simulated(self, timeline, problem.cluster)
  local text = ('{"displayTimeUnit":"ms","otherData":{"graph":%s,"cluster":%s,"measured_step_time_s":%.9g,'
    .. '"simulated_step_time_s":%.9g},"traceEvents":[\n%s\n]}\n'):format(core.to_json(problem.graph.name),
    core.to_json(problem.cluster.name), execution.step_time_s, timeline.metrics.step_time_s,
    table.concat(self.events, ',\n'))
  timeline:close()
  return text
end
