-- What a cluster says of the machine that a pipeline is cut for: devices, their memory, bandwidth by level.

local model = require 'trinity.graph.model'

local pipeline_machine = {}

local most_compared = 64 -- devices: in larger clusters, device 1 with all and neighbours stand for all pairs

--- The cluster that option `cluster` names, and whether all of it is meant. A family ('p100') says what a device is
--- and how two machines of it are joined; a name with a count ('p100x4'), a file, or a cluster that takes no count is
--- the machine itself.
function pipeline_machine.named(name)
  local pair = name:match '%.lua$' and name or model.counted(name, 2)
  return model.cluster(pair), pair == name
end

--- Devices by level, innermost first: { in a node, nodes } where several nodes hold equally many devices, one after
--- the other; else { devices }.
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

--- The least capacity of a device, in bytes.
function pipeline_machine.memory_bytes(cluster)
  local least = math.huge
  for _, device in ipairs(cluster.devices) do least = math.min(least, device.capacity_bytes) end
  return least
end

-- The slowest of the wires of pairs of the first `count` devices that are in different groups of `size`.
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

--- Bytes per second by level for so many devices a level: the slowest wire between groups of the level below, among
--- the first devices; of more devices than the cluster has, that of all. nil for a cluster of one device.
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
