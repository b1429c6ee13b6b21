-- The machine of a cluster for which a pipeline is cut: devices, their memory, bandwidth per level.

local model = require 'trinity.graph.model'

local pipeline_machine = {}

local most_compared = 64 -- devices: in larger clusters, only pairs with device 1 and neighbours are compared

--- Returns the cluster of option `cluster`, and whether all of it is used. A family ('p100') only gives the device type
--- and the link between two machines; a name with a count ('p100x4'), a file, or a cluster without a count is the
--- machine itself.
function pipeline_machine.named(name)
  local pair = name:match '%.lua$' and name or model.counted(name, 2)
  return model.cluster(pair), pair == name
end

--- Returns the devices per level, innermost first: { devices per node, nodes } for several nodes with equal numbers of
--- consecutive devices, otherwise { devices }.
function pipeline_machine.levels(cluster)
  local all, sizes = #cluster.devices, {}
  for i, device in ipairs(cluster.devices) do
    local same = i > 1 and device.node == cluster.devices[i - 1].node
    if same then sizes[#sizes] = sizes[#sizes] + 1 else sizes[#sizes + 1] = 1 end
  end
  for _, size in ipairs(sizes) do
    if size ~= sizes[1] then return { all } end
  end
  if #sizes == 1 or sizes[1] == 1 then return { all } end
  return { sizes[1], #sizes }
end

--- Returns the smallest capacity of a device, in bytes.
function pipeline_machine.memory_bytes(cluster)
  local least = math.huge
  for _, device in ipairs(cluster.devices) do least = math.min(least, device.capacity_bytes) end
  return least
end

-- Returns the slowest link between pairs of the first `count` devices in different groups of `size`.
local function slowest(cluster, count, size)
  local least = math.huge
  local function look(a, b)
    if math.floor((a - 1) / size) ~= math.floor((b - 1) / size) then
      local _, bandwidth = cluster:wire(a, b)
      least = math.min(least, bandwidth)
    end
  end
  for b = 2, count do
    if count > most_compared then
      look(1, b)
      look(b - 1, b)
    else
      for a = 1, b - 1 do look(a, b) end
    end
  end
  return least
end

--- Returns bytes/s per level for these numbers of devices: the slowest link between groups of the level below among the
--- first devices (or all devices, if the cluster has fewer); nil for a cluster of one device.
function pipeline_machine.bandwidths(cluster, devices)
  if #cluster.devices < 2 then return nil end
  local list, size = {}, 1
  for level, count in ipairs(devices) do
    local whole = math.min(#cluster.devices, math.max(2, size * count))
    local found = slowest(cluster, whole, size)
    if found == math.huge then found = list[level - 1] or slowest(cluster, #cluster.devices, 1) end
    list[level] = found
    size = size * math.max(1, count)
  end
  return list
end

return pipeline_machine
