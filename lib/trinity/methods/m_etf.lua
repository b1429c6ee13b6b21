-- m-ETF of Baechi (Jeon et al., "Baechi: Fast Device Placement of Machine Learning Graphs", SoCC 2020): earliest task
-- first, within memory. At every instant of its clock, of all free devices and operators whose inputs can be there by
-- now, the lowest operator (ties: the lower device) is scheduled; then the clock moves to when the next can start.
--
-- Memory, as Baechi counts it: a unit's fixed bytes are held from its placement on; an operator's workspace while it
-- runs; its outputs until the last reader is scheduled; copies on other devices do not count. The simulator is
-- stricter, so that a placement that fits here may not fit there. A transfer occupies the one channel of its sender and
-- of its receiver, and is booked when its reader is scheduled; a tensor goes to a device once.
-- Baechi stops where its first try does not fit. Here it tries again with 0.1 to 0.9 of every device's memory closed to
-- new units, so that operators of placed units (gradients) find space.

local List = require 'trinity.methods.list_schedule'

--- Schedules with a share of every device's memory closed to new units. Returns the list, or nil and why not.
local function try(graph, problem, headroom)
  local list, now_ns, missing, ready, copies = List.new(graph), 0, graph:awaited_inputs(), {}, {}
  local readers_left, unit_bytes, free_bytes, free_ns, channel_ns = {}, {}, {}, {}, {}
  for task = 1, graph.task_count do
    local unit = graph.unit[task]
    unit_bytes[unit] = (unit_bytes[unit] or 0) + graph.fixed_bytes[task]
    readers_left[task] = graph.first_out[task + 1] - graph.first_out[task]
    if missing[task] == 0 and not graph.follows[task] then ready[#ready + 1] = task end
  end
  for device, bytes in ipairs(graph.capacity_bytes) do
    free_bytes[device], free_ns[device], channel_ns[device] = bytes, 0, 0
  end

  --- When everything that `task` reads could be on `device`; with `book` the transfers are booked.
  local function arrival_ns(task, device, book)
    local latest, transfers, previous = 0, 0, 0
    for i = graph.first_in[task], graph.first_in[task + 1] - 1 do
      local edge = graph.in_edges[i]
      local writer = graph.edge_from[edge]
      local from, key = list.device[writer], graph.edge_tensor[edge] * graph.device_count + device
      local travels = from > 0 and from ~= device -- without a device it follows, and goes with its reader
      local arrival = travels and copies[key] or list.finish_ns[writer] or 0
      if writer ~= previous then transfers, previous = 0, writer end
      if travels and not copies[key] then
        local transfer = graph:transfer_ns(from, device, graph.edge_bytes[edge])
        local send = math.max(arrival, channel_ns[from])
        local receive = math.max(send, channel_ns[device])
        transfers = transfers + transfer
        arrival = receive + (book and transfer or transfers)
        if book then channel_ns[from], channel_ns[device], copies[key] = send + transfer, arrival, arrival end
      end
      latest = math.max(latest, arrival)
    end
    return latest
  end

  --- The bytes that `task` takes when it runs, with its unit's where that has no device yet and is not `entering`.
  local function needed_bytes(task, entering)
    local unit = graph.unit[task]
    return graph.output_bytes[task] + graph.workspace_bytes[task]
      + (list:pinned(task) == 0 and not (entering and entering[unit]) and unit_bytes[unit] or 0)
  end

  --- Whether `task` may and can run on a device, with what follows it.
  local function fits(task, device)
    local own = list:pinned(task)
    if own > 0 and own ~= device then return false end
    local needs, entering = { [device] = needed_bytes(task) }, { [graph.unit[task]] = true }
    if own == 0 then needs[device] = needs[device] + math.floor(headroom * graph.capacity_bytes[device]) end
    for _, follower in ipairs(graph:missing_followers(list.device, task)) do
      local at = list:pinned(follower) > 0 and list:pinned(follower) or device
      needs[at] = (needs[at] or 0) + needed_bytes(follower, entering)
      entering[graph.unit[follower]] = true
    end
    for at = 1, graph.device_count do
      if needs[at] and needs[at] > free_bytes[at] then return false end
    end
    return true
  end

  --- Books transfers and memory of a task, what follows it first; its readers that wait for no other become ready.
  local function start(task, device)
    for _, follower in ipairs(graph:missing_followers(list.device, task)) do
      start(follower, list:pinned(follower) > 0 and list:pinned(follower) or device)
    end
    if list:pinned(task) == 0 then free_bytes[device] = free_bytes[device] - unit_bytes[graph.unit[task]] end
    local arrival = arrival_ns(task, device, true)
    list:put(task, device, graph.follows[task] and arrival or math.max(now_ns, arrival))
    free_bytes[device] = free_bytes[device] - graph.output_bytes[task]
    local function drop_if_read(writer)
      local at = list.device[writer]
      if readers_left[writer] == 0 then free_bytes[at] = free_bytes[at] + graph.output_bytes[writer] end
    end
    drop_if_read(task)
    for i = graph.first_in[task], graph.first_in[task + 1] - 1 do
      local writer = graph.edge_from[graph.in_edges[i]]
      readers_left[writer] = readers_left[writer] - 1
      drop_if_read(writer)
    end
    for edge = graph.first_out[task], graph.follows[task] and 0 or graph.first_out[task + 1] - 1 do
      local reader = graph.edge_to[edge]
      missing[reader] = missing[reader] - 1
      if missing[reader] == 0 then ready[#ready + 1] = reader end
    end
    table.sort(ready)
  end

  --- The position in `ready` of the lowest task that can start now and its device; else nil and the next instant at
  --- which a device is free or a task could start.
  local function choose()
    local best, best_device, next_ns = nil, nil, math.huge
    for device = 1, graph.device_count do
      if free_ns[device] > now_ns then next_ns = math.min(next_ns, free_ns[device]) end
      for i = 1, free_ns[device] <= now_ns and (best and best - 1 or #ready) or 0 do
        local at_ns = fits(ready[i], device) and arrival_ns(ready[i], device) or math.huge
        if at_ns <= now_ns then
          best, best_device = i, device
          break
        end
        next_ns = math.min(next_ns, at_ns)
      end
    end
    return best, best_device or next_ns
  end

  repeat
    local at, device = choose()
    if at then
      local task = table.remove(ready, at)
      start(task, device)
      free_ns[device] = list.finish_ns[task]
    else
      now_ns = device
    end
  until now_ns == math.huge
  local left = ready[1]
  for task = 1, left and 0 or graph.task_count do -- what follows and has no reader
    for other = 1, graph.device_count do
      if not left and list.device[task] == 0 and fits(task, other) then start(task, other) end
    end
    left = left or list.device[task] == 0 and task or nil
  end
  if not left then return list:ordered() end
  local own = list:pinned(left)
  return nil, ("operator '%s' needs %.0f bytes, more than is free on %s after %d of %d operators"):format(
    problem.graph:operator(left).name, needed_bytes(left),
    own > 0 and ("device '%s', its unit's,"):format(problem.cluster.devices[own].name) or 'any device',
    #list.sequence, graph.task_count)
end

return function(graph, problem)
  local found, why = try(graph, problem, 0)
  for step = 1, found and 0 or 9 do found = found or try(graph, problem, 0.1 * step) end
  return found, why
end
