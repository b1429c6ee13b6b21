-- Shares of the optimizer and of activations on the host: the least with which the bound on memory allows a point, and
-- neighbours, also of plans that the engine's bound or a simulation finds too large.

local bounds = require 'trinity.plan.bounds'
local by_layer = require 'trinity.plan.by_layer'
local rules = require 'trinity.cluster.runtime_rules'
local space = require 'trinity.plan.space'
local util = require 'trinity.base.util'

local offload = {}

local first, second = unpack(space.offloads)

-- Over PCIe, activations share the way with messages between machines, which is not simulated: they are offloaded
-- where an option says so, or over links that are faster (NVLink-C2C).
local pcie_bytes_per_s = 100e9

-- Shares that a point may have, ascending; of activations whole numbers of layers, as clients count. Only its own where
-- an option gives them.
local function shares(made, point, name)
  local layers, link = made.about.layers, made.about.host_bandwidth_bytes_per_s
  local searched = link and (name == first or link > pcie_bytes_per_s)
  if not searched or made.given[name] ~= nil then return { point[name] or 0 } end
  return util.filtered(util.map(space.offload_fractions, function(fraction)
    return name == first and fraction or math.floor(fraction * layers) / layers
  end), function(fraction) return not rules.broken(made.rules, name, fraction, point, layers) end)
end

--- Calls visit(bytes) for a point with the least shares that the bound on memory allows: the least of activations for
--- each of the optimizer. Where none does, with the largest.
function offload.each(made, point, totals, capacity_bytes, visit)
  local bytes = bounds.memory_bytes(point, totals)
  if bytes <= capacity_bytes then return visit(bytes) end
  local own, other = point[first], point[second]
  local states, activations = shares(made, point, first), shares(made, point, second)
  local function bytes_of(i, j)
    point[first], point[second] = states[i], activations[j]
    return bounds.memory_bytes(point, totals)
  end
  local j = #activations
  bytes = bytes_of(#states, j)
  if bytes > capacity_bytes then
    visit(bytes)
  else
    for i = 1, #states do
      local least
      while j > 0 and bytes_of(i, j) <= capacity_bytes do least, j = j, j - 1 end
      if least then visit(bytes_of(i, least)) end
    end
  end
  point[first], point[second] = own, other
end

--- Neighbours: the next share of what does not fit; else less, or more where that leaves fewer layers to recompute.
function offload.neighbours(point, about)
  local list, metrics = {}, about.result.metrics
  local fits, free = metrics and metrics.feasible, about.space.given.recompute == nil
  for _, name in ipairs(space.offloads) do
    local now, values = point[name] or 0, shares(about.space, point, name)
    for i, fraction in ipairs(values) do
      local less = fits and values[i + 1] and fraction < now and now <= values[i + 1]
      local more = fraction > now and (fits and by_layer.is(point) or not fits and now >= (values[i - 1] or 0))
      if less or more then list[#list + 1] = space.changed(point, { [name] = fraction }) end
      if less and free and point.recompute == 'none' then
        list[#list + 1] = space.changed(point, { [name] = fraction, recompute = 'by_layer' })
      end
    end
  end
  return list
end

return offload
