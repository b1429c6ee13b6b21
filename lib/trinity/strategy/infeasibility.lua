-- Explains why a strategy does not fit: which device exceeds its memory, and by how much. A search that finds no
-- strategy that fits returns the least infeasible one (problem.better).

local core = require 'trinity.core'
local nodes = require 'trinity.cluster.nodes'

local infeasibility = {}

--- Returns what limits a plan on the devices of `cluster` (trinity.Infeasibility), or nil if it fits.
function infeasibility.of(metrics, cluster)
  if metrics.feasible then return nil end
  if metrics.rejected then return { text = 'its simulation was stopped as too slow before its memory was known' } end
  local worst, over_bytes, count = nil, 0, 0
  for d, device in ipairs(cluster.devices) do
    local over = metrics:memory_bytes(d) - device.capacity_bytes
    if over > 0 then count = count + 1 end
    if over > over_bytes then worst, over_bytes = d, over end
  end
  if not worst then return { text = 'its schedule contradicts its placement' } end
  local device, needed = cluster.devices[worst], metrics:memory_bytes(worst)
  local larger = nodes.larger(cluster.name)
  return { device = worst, name = device.name, needed_bytes = needed, capacity_bytes = device.capacity_bytes,
    over_bytes = over_bytes, devices_over = count,
    text = ("device '%s' needs %s, %s (%.0f bytes) more than the %s that a step may use%s"):format(device.name,
      core.format_bytes(needed), core.format_bytes(over_bytes), over_bytes, core.format_bytes(device.capacity_bytes),
      (count > 1 and ('; %d of %d devices are over'):format(count, #cluster.devices) or '')
      .. (larger and ('; %s has more memory'):format(larger) or '')) }
end

--- Returns the excess memory of the fullest device in bytes, to compare strategies that do not fit. Plans that were
--- rejected early or contradict their schedule have no excess and come last.
function infeasibility.distance(metrics)
  return metrics.excess_memory_bytes > 0 and metrics.excess_memory_bytes or math.huge
end

--- Returns whether result `a` { metrics =, reward = } is better than `b` (or nil). A result that fits is better than
--- one that does not; if neither fits, the one with less excess memory is better; otherwise the larger reward. Reads
--- feasible and excess_memory_bytes of the metrics.
function infeasibility.better(a, b)
  if not b then return true end
  if a.metrics.feasible ~= b.metrics.feasible then return a.metrics.feasible end
  if not a.metrics.feasible then
    local far_a, far_b = infeasibility.distance(a.metrics), infeasibility.distance(b.metrics)
    if far_a ~= far_b then return far_a < far_b end
  end
  return a.reward > b.reward
end

return infeasibility
