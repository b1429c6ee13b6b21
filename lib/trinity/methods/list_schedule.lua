-- A list schedule under construction, and a priority queue: what HEFT, CPOP and ETF share.
--
-- A task runs on one device without pause; what it reads from a task on another device arrives transfer_ns() after that
-- task's end, however much else is under way. Memory has no limit, as in these papers. The first task of a colocation
-- unit that is scheduled chooses the unit's device; tasks that follow (see task graph) go just before their first
-- reader.

local core = require 'trinity.core'
local util = require 'trinity.base.util'

local List = {}
List.__index = List

--- An empty schedule. device, start_ns, finish_ns: per task; sequence: tasks in the order of scheduling.
function List.new(graph)
  local self = setmetatable({ graph = graph, device = {}, start_ns = {}, finish_ns = {}, sequence = {}, makespan_ns = 0,
    device_of_unit = {}, starts = {}, finishes = {} }, List)
  for task = 1, graph.task_count do self.device[task], self.device_of_unit[graph.unit[task]] = 0, 0 end
  for device = 1, graph.device_count do self.starts[device], self.finishes[device] = {}, {} end
  return self
end

--- The device of a task's unit; 0 while it is open.
function List:pinned(task) return self.device_of_unit[self.graph.unit[task]] end

--- When everything that `task` reads has arrived on a device. Tasks that follow and have no device yet are taken to be
--- there from the start.
function List:arrival_ns(task, device)
  local graph, latest, transfer = self.graph, 0, 0
  local in_edges, last = graph.in_edges, graph.first_in[task + 1] - 1
  for i = graph.first_in[task], last do
    local edge = in_edges[i]
    local writer = graph.edge_from[edge]
    local from = self.device[writer]
    if from == 0 then from = self:pinned(writer) end
    if from > 0 then transfer = transfer + graph:transfer_ns(from, device, graph.edge_bytes[edge]) end
    if i == last or graph.edge_from[in_edges[i + 1]] ~= writer then
      latest, transfer = math.max(latest, (self.finish_ns[writer] or 0) + transfer), 0
    end
  end
  return latest
end

--- The earliest start from `ready_ns` on in an idle gap of a device that fits `cost_ns`.
function List:gap_ns(device, ready_ns, cost_ns)
  local starts, finishes = self.starts[device], self.finishes[device]
  local low, high = 1, #finishes + 1
  while low < high do -- the first task that finishes after ready_ns
    local middle = math.floor((low + high) / 2)
    if finishes[middle] > ready_ns then high = middle else low = middle + 1 end
  end
  local start = ready_ns
  while low <= #starts and start + cost_ns > starts[low] do start, low = finishes[low], low + 1 end
  return start
end

function List:put(task, device, start)
  local starts, finishes = self.starts[device], self.finishes[device]
  local finish, at = start + self.graph.cost_ns[(task - 1) * self.graph.device_count + device], #starts
  while at > 0 and (starts[at] > start or starts[at] == start and finishes[at] > finish) do
    starts[at + 1], finishes[at + 1], at = starts[at], finishes[at], at - 1
  end
  starts[at + 1], finishes[at + 1] = start, finish
  self.device[task], self.start_ns[task], self.finish_ns[task] = device, start, finish
  self.makespan_ns = math.max(self.makespan_ns, finish)
  self.sequence[#self.sequence + 1] = task
  self.device_of_unit[self.graph.unit[task]] = device
  if #self.sequence % 1024 == 0 and core.stop_requested() then util.fail 'interrupted' end
  return start
end

--- Places a task into the first gap of a device, or after everything that is there; the tasks that follow it first.
--- Returns its start.
function List:place(task, device, appended)
  for _, follower in ipairs(self.graph:missing_followers(self.device, task)) do
    local own = self:pinned(follower)
    own = own > 0 and own or device
    self:put(follower, own, self:gap_ns(own, self:arrival_ns(follower, own), 0))
  end
  local ready, last = self:arrival_ns(task, device), self.finishes[device]
  if appended then return self:put(task, device, math.max(ready, last[#last] or 0)) end
  return self:put(task, device, self:gap_ns(device, ready, self.graph.cost_ns[(task - 1) * self.graph.device_count
    + device]))
end

--- Places a task where it finishes first; only on a device that is given.
function List:place_earliest_finish(task, only)
  local graph, best, best_finish = self.graph, nil, math.huge
  if self:pinned(task) > 0 then only = self:pinned(task) end
  for device = only or 1, only or graph.device_count do
    local cost = graph.cost_ns[(task - 1) * graph.device_count + device]
    local finish = self:gap_ns(device, self:arrival_ns(task, device), cost) + cost
    if finish < best_finish then best, best_finish = device, finish end
  end
  self:place(task, best)
end

--- Places what follows and has no reader; gives self with `order`, the tasks of each device as they run.
function List:finish()
  for task = 1, self.graph.task_count do
    if self.device[task] == 0 then self:place(task, math.max(1, self:pinned(task))) end
  end
  return self:ordered()
end

--- Adds `order`: per device its tasks by start, then as they were scheduled.
function List:ordered()
  local place, order = {}, {}
  for i, task in ipairs(self.sequence) do place[task] = i end
  for device = 1, self.graph.device_count do order[device] = {} end
  for task = 1, self.graph.task_count do
    local own = order[self.device[task]]
    own[#own + 1] = task
  end
  for device = 1, self.graph.device_count do
    table.sort(order[device], function(a, b)
      local a_ns, b_ns = self.start_ns[a], self.start_ns[b]
      return a_ns < b_ns or a_ns == b_ns and place[a] < place[b]
    end)
  end
  self.order = order
  return self
end

--- A priority queue: take() gives the entry that comes before all others by `before(a, b)`.
function List.queue(before)
  local queue = {}
  function queue.first() return queue[1] end
  function queue.add(entry)
    local at = #queue + 1
    while at > 1 do
      local parent = math.floor(at / 2)
      if not before(entry, queue[parent]) then break end
      queue[at], at = queue[parent], parent
    end
    queue[at] = entry
  end
  function queue.take()
    local first, last, count = queue[1], queue[#queue], #queue - 1
    queue[count + 1] = nil
    local at = 1
    while 2 * at <= count do
      local child = 2 * at
      if child < count and before(queue[child + 1], queue[child]) then child = child + 1 end
      if not before(queue[child], last) then break end
      queue[at], at = queue[child], child
    end
    if count > 0 then queue[at] = last end
    return first
  end
  return queue
end

return List
