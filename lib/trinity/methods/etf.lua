-- ETF (Hwang, Chow, Anger and Lee, "Scheduling precedence graphs in systems with interprocessor communication times",
-- SIAM J. Computing 18(2), 1989): of all ready tasks and devices the pair that can start first; ties: the largest
-- static level, then the lower task, then the lower device. Nothing is inserted before what is already scheduled.

local List = require 'trinity.methods.list_schedule'

return function(graph)
  local level, missing, list, left = graph:static_levels(), graph:awaited_inputs(), List.new(graph), 0
  local function before_by_level(a, b)
    local first, second = level[a.task], level[b.task]
    return first > second or first == second and a.task < b.task
  end
  local function before_by_arrival(a, b)
    return a.arrival_ns < b.arrival_ns or a.arrival_ns == b.arrival_ns and before_by_level(a, b)
  end
  -- Per device: tasks whose inputs arrive later than it is free, by arrival; those that could start at once, by level.
  local later, now, free_ns, placed = {}, {}, {}, {}
  for device = 1, graph.device_count do
    later[device], now[device], free_ns[device] = List.queue(before_by_arrival), List.queue(before_by_level), 0
  end

  local function add(task)
    local own = list:pinned(task)
    for device = own > 0 and own or 1, own > 0 and own or graph.device_count do
      later[device].add { task = task, arrival_ns = list:arrival_ns(task, device) }
    end
  end

  --- The entry that can start first on a device, without those that were placed, or whose unit went elsewhere.
  local function top(device)
    local soon, ready = later[device], now[device]
    local function drop_stale(queue)
      while queue.first() do
        local task = queue.first().task
        local own = list:pinned(task)
        if not placed[task] and (own == 0 or own == device) then return queue.first() end
        queue.take()
      end
    end
    while soon.first() and soon.first().arrival_ns <= free_ns[device] do ready.add(soon.take()) end
    return drop_stale(ready) or drop_stale(soon)
  end

  for task = 1, graph.task_count do
    if not graph.follows[task] then
      left = left + 1
      if missing[task] == 0 then add(task) end
    end
  end
  for _ = 1, left do
    local best, best_device, best_ns = nil, nil, nil
    for device = 1, graph.device_count do
      local entry = top(device)
      local start = entry and math.max(entry.arrival_ns, free_ns[device])
      if entry and (not best or start < best_ns or start == best_ns and before_by_level(entry, best)) then
        best, best_device, best_ns = entry, device, start
      end
    end
    local task = best.task
    placed[task] = true
    local start = list:place(task, best_device, true)
    free_ns[best_device] = start + graph.cost_ns[(task - 1) * graph.device_count + best_device]
    for edge = graph.first_out[task], graph.first_out[task + 1] - 1 do
      local to = graph.edge_to[edge]
      missing[to] = missing[to] - 1
      if missing[to] == 0 then add(to) end
    end
  end
  return list:finish()
end
