-- Consecutive parts of the forward pass with the smallest largest load: the balance of GPipe (Huang et al., "GPipe",
-- NeurIPS 2019). A unit stands where its first operator does that costs something; weights, which follow, where they
-- are first read.

local util = require 'trinity.base.util'

--- Units in the order of the forward pass.
local function pipeline_order(graph)
  local key = {}
  for task = graph.task_count, 1, -1 do
    if not graph.follows[task] then key[graph.unit[task]] = task end
  end
  -- A weight's own gradient and update cost something, but its first reader comes before them.
  for task = graph.task_count, 1, -1 do
    local unit = graph.unit[task]
    for edge = graph.first_out[task], graph.follows[task] and graph.first_out[task + 1] - 1 or 0 do
      local to = graph.edge_to[edge]
      local at = graph.follows[to] and key[graph.unit[to]] or not graph.follows[to] and to or math.huge
      key[unit] = math.min(key[unit] or math.huge, at)
    end
  end
  for task = 1, graph.task_count do key[graph.unit[task]] = key[graph.unit[task]] or math.huge end
  return util.order_of(key)
end

--- Parts, device by device as long as the load stays within a limit; nil where elements are left.
local function fill(loads, count, devices, limit)
  local part, at = {}, 1
  for device = 1, devices do
    local load = 0
    while at <= count and loads[device][at] <= limit - load do
      load, part[at], at = load + loads[device][at], device, at + 1
    end
  end
  return at > count and part or nil
end

return function(graph)
  local order, devices, loads, cost, high = pipeline_order(graph), graph.device_count, {}, {}, 0
  for device = 1, devices do
    cost[device] = {}
    for task = 1, graph.task_count do
      local unit = graph.unit[task]
      cost[device][unit] = (cost[device][unit] or 0) + graph.cost_ns[(task - 1) * devices + device]
    end
    local sum = 0
    loads[device] = {}
    for i, unit in ipairs(order) do loads[device][i], sum = cost[device][unit], sum + cost[device][unit] end
    high = math.max(high, sum)
  end
  local low = 0
  while low < high do -- the smallest limit that fits
    local middle = math.floor((low + high) / 2)
    if fill(loads, #order, devices, middle) then high = middle else low = middle + 1 end
  end
  local part, device_of_unit, list = fill(loads, #order, devices, high), {}, { device = {} }
  for i, unit in ipairs(order) do device_of_unit[unit] = part[i] end
  for task = 1, graph.task_count do list.device[task] = device_of_unit[graph.unit[task]] end
  return list
end
