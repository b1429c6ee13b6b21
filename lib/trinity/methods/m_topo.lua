-- m-TOPO of Baechi (Jeon et al., "Baechi: Fast Device Placement of Machine Learning Graphs", SoCC 2020): units in order
-- of their first operator, device by device. The next device begins where the memory of the present one (fixed bytes,
-- workspace and outputs of all operators, nothing given back) would exceed the total over the devices plus the largest
-- unit. Balances memory, not time; looks at no device's capacity, as published.

return function(graph)
  local bytes, units, total, largest = {}, 0, 0, 0
  for task = 1, graph.task_count do
    local unit = graph.unit[task]
    local more = graph.fixed_bytes[task] + graph.output_bytes[task] + graph.workspace_bytes[task]
    bytes[unit], total, units = (bytes[unit] or 0) + more, total + more, math.max(units, unit)
  end
  for unit = 1, units do largest = math.max(largest, bytes[unit]) end
  local limit = math.floor(total / graph.device_count) + largest
  local device_of_unit, device, load = {}, 1, 0
  for unit = 1, units do
    if bytes[unit] > limit - load and device < graph.device_count then device, load = device + 1, 0 end
    device_of_unit[unit], load = device, load + bytes[unit]
  end
  local list = { device = {} }
  for task = 1, graph.task_count do list.device[task] = device_of_unit[graph.unit[task]] end
  return list
end
