-- CPOP (Topcuoglu, Hariri and Wu, IEEE TPDS 13(3), 2002): the ready task of largest upward plus downward rank first;
-- tasks of the critical path on the one device where their costs sum to least, others as in HEFT.

local List = require 'trinity.methods.list_schedule'

--- The tasks of a longest path: from the entry of highest priority on always the reader of highest priority (ties: the
--- lowest). Sums are not compared for equality, which rounding would decide.
local function critical_path(graph, priority)
  local has_input, critical, task = {}, {}, nil
  for edge = 1, graph.edge_count do has_input[graph.edge_to[edge]] = true end
  for t = 1, graph.task_count do
    if not has_input[t] and (not task or priority[t] > priority[task]) then task = t end
  end
  while task do
    critical[task] = true
    local reader
    for edge = graph.first_out[task], graph.first_out[task + 1] - 1 do
      local to = graph.edge_to[edge]
      if not reader or priority[to] > priority[reader] then reader = to end
    end
    task = reader
  end
  return critical
end

--- The device on which the tasks of the critical path take least.
local function critical_device(graph, critical)
  local best, least = 1, math.huge
  for device = 1, graph.device_count do
    local sum = 0
    for task = 1, graph.task_count do
      if critical[task] then sum = sum + graph.cost_ns[(task - 1) * graph.device_count + device] end
    end
    if sum < least then best, least = device, sum end
  end
  return best
end

return function(graph)
  local priority, down = graph:upward_ranks(), graph:downward_ranks()
  for task = 1, graph.task_count do priority[task] = priority[task] + down[task] end
  local critical = critical_path(graph, priority)
  local device = critical_device(graph, critical)
  local missing, list = graph:awaited_inputs(), List.new(graph)
  local ready = List.queue(function(a, b) return priority[a] > priority[b] or priority[a] == priority[b] and a < b end)
  for task = 1, graph.task_count do
    if missing[task] == 0 and not graph.follows[task] then ready.add(task) end
  end
  while ready.first() do
    local task = ready.take()
    list:place_earliest_finish(task, critical[task] and device or nil)
    for edge = graph.first_out[task], graph.first_out[task + 1] - 1 do
      local to = graph.edge_to[edge]
      missing[to] = missing[to] - 1
      if missing[to] == 0 then ready.add(to) end
    end
  end
  return list:finish()
end
