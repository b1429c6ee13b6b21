-- The task graph of a problem: what list schedulers work on. problem:task_graph() gives one.

local check = require 'trinity.base.check'
local core = require 'trinity.core'

--- The operators of a problem as tasks, with their costs and the data that flows between them. Tasks, devices, edges,
--- tensors and units count from 1; tasks are in topological order. Lists by task and device are flat: entry
--- (task - 1) * device_count + device; lists by two devices likewise.
---@class trinity.TaskGraph
---@field task_count integer
---@field device_count integer
---@field edge_count integer
---@field cost_ns number[] per task and device; 0 for collectives, whose cost depends on the placement
---@field mean_cost_ns number[] per task: over all devices
---@field edge_from integer[] per edge: the task that writes the tensor; edges are sorted by writer, reader, tensor
---@field edge_to integer[] per edge: the task that reads it
---@field edge_tensor integer[] per edge: equal for two readers of one tensor
---@field edge_bytes number[]
---@field in_edges integer[] edges by reader: the edges of task t are entries first_in[t] to first_in[t + 1] - 1
---@field first_in integer[]
---@field first_out integer[] the edges out of task t are first_out[t] to first_out[t + 1] - 1
---@field latency_ns number[] per pair of devices
---@field bytes_per_ns number[] per pair of devices
---@field unit integer[] per task: tasks of one colocation unit share a device
--- per task: whether it costs nothing and depends on nothing that does (weights, data), so that it goes where its unit
--- is, or with its first reader
---@field follows boolean[]
---@field output_bytes number[] per task: what its outputs hold
---@field workspace_bytes number[] per task: held while it runs
---@field fixed_bytes number[] per task: weights and optimiser state, held all step
---@field capacity_bytes number[] per device
---@field mean_latency_ns number over all pairs of different devices; 0 on one device
---@field mean_ns_per_byte number likewise
local TaskGraph = { __name = 'task graph' }
TaskGraph.__index = TaskGraph

--- Nanoseconds that `bytes` take from one device to another. Example: `tasks:transfer_ns(1, 2, 4096)`
---@param from integer
---@param to integer
---@param bytes number
---@return number
function TaskGraph:transfer_ns(from, to, bytes)
  check.integer('task graph:transfer_ns', 1, 'from', from, 1, self.device_count)
  check.integer('task graph:transfer_ns', 2, 'to', to, 1, self.device_count)
  check.number('task graph:transfer_ns', 3, 'bytes', bytes, 0)
  if from == to then return 0 end
  local link = (from - 1) * self.device_count + to
  return self.latency_ns[link] + math.floor(bytes / self.bytes_per_ns[link] + 0.5)
end

--- The mean of transfer_ns() over all pairs of different devices. Example: `tasks:mean_transfer_ns(4096)`
---@param bytes number
---@return number
function TaskGraph:mean_transfer_ns(bytes)
  check.number('task graph:mean_transfer_ns', 1, 'bytes', bytes, 0)
  return self.mean_latency_ns + self.mean_ns_per_byte * bytes
end

--- Per task: the number of edges into it that a scheduler waits for, all but those from tasks that follow.
--- Example: `tasks:awaited_inputs()[1]`
---@return integer[]
function TaskGraph:awaited_inputs()
  local missing = {}
  for task = 1, self.task_count do missing[task] = 0 end
  for edge = 1, self.edge_count do
    local to = self.edge_to[edge]
    if not self.follows[self.edge_from[edge]] then missing[to] = missing[to] + 1 end
  end
  return missing
end

local none = {}

--- The tasks that follow, lead to `task` through such tasks only and have no device yet, ascending.
--- Example: `tasks:missing_followers({}, 1)`
---@param device_of integer[] per task; 0 for none
---@param task integer
---@return integer[]
function TaskGraph:missing_followers(device_of, task)
  check.argument('task graph:missing_followers', 1, 'device_of', device_of, 'table')
  check.integer('task graph:missing_followers', 2, 'task', task, 1, self.task_count)
  local any = false
  for i = self.first_in[task], self.first_in[task + 1] - 1 do
    local from = self.edge_from[self.in_edges[i]]
    if self.follows[from] and device_of[from] == 0 then any = true end
  end
  if not any then return none end
  local found, seen, open = {}, {}, { task }
  while #open > 0 do
    local reader = table.remove(open)
    for i = self.first_in[reader], self.first_in[reader + 1] - 1 do
      local from = self.edge_from[self.in_edges[i]]
      if self.follows[from] and device_of[from] == 0 and not seen[from] then
        seen[from], found[#found + 1], open[#open + 1] = true, from, from
      end
    end
  end
  table.sort(found)
  return found
end

-- Returns per task the longest way over its readers to an exit (`inward`: over its writers from an entry), and the same
-- with the mean cost of the task.
local function longest_ways(self, inward, transfer_ns)
  local count, way, whole = self.task_count, {}, {}
  local first, ends = inward and self.first_in or self.first_out, inward and self.edge_from or self.edge_to
  for number = 1, count do
    local task, longest, transfer = inward and number or count + 1 - number, 0, 0
    local last = first[task + 1] - 1
    for i = first[task], last do
      local edge = inward and self.in_edges[i] or i
      local after = i < last and ends[inward and self.in_edges[i + 1] or i + 1]
      transfer = transfer + transfer_ns(self, self.edge_bytes[edge])
      if after ~= ends[edge] then longest, transfer = math.max(longest, transfer + whole[ends[edge]]), 0 end
    end
    way[task], whole[task] = longest, self.mean_cost_ns[task] + longest
  end
  return way, whole
end

local function no_transfer() return 0 end

--- HEFT's upward rank in nanoseconds: a task's mean cost plus the longest way to an exit, with mean costs and mean
--- transfers. Tensors between the same two tasks add up. Example: `tasks:upward_ranks()[1]`
---@return number[] per task
function TaskGraph:upward_ranks() return (select(2, longest_ways(self, false, self.mean_transfer_ns))) end

--- HEFT's downward rank in nanoseconds: the longest way from an entry to a task's start.
--- Example: `tasks:downward_ranks()[1]`
---@return number[] per task
function TaskGraph:downward_ranks() return (longest_ways(self, true, self.mean_transfer_ns)) end

--- Hwang's static level in nanoseconds: the longest way from a task's start to an exit, without transfers.
--- Example: `tasks:static_levels()[1]`
---@return number[] per task
function TaskGraph:static_levels() return (select(2, longest_ways(self, false, no_transfer))) end

check.methods(TaskGraph, 'trinity.TaskGraph')

--- The task graph of a problem.
return function(problem)
  local graph = setmetatable(core.task_graph(problem.handle), TaskGraph)
  local devices = #graph.capacity_bytes
  graph.task_count, graph.device_count, graph.edge_count = #graph.unit, devices, #graph.edge_from
  graph.mean_cost_ns = {}
  for task = 1, graph.task_count do
    local sum = 0
    for device = 1, devices do sum = sum + graph.cost_ns[(task - 1) * devices + device] end
    graph.mean_cost_ns[task] = sum / devices
  end
  local latency, inverse, pairs_of_devices = 0, 0, devices * (devices - 1)
  for from = 1, devices do
    for to = 1, devices do
      local link = (from - 1) * devices + to
      if from ~= to then latency, inverse = latency + graph.latency_ns[link], inverse + 1 / graph.bytes_per_ns[link] end
    end
  end
  graph.mean_latency_ns = devices > 1 and latency / pairs_of_devices or 0
  graph.mean_ns_per_byte = devices > 1 and inverse / pairs_of_devices or 0
  return graph
end
