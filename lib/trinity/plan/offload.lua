-- Shares of the optimizer and of activations on the host. As a kind of variation: the least shares with which the bound
-- on memory allows a point; more of a plan that its bound or its simulation finds too large; and neighbours.

local bounds = require 'trinity.plan.bounds'
local by_layer = require 'trinity.plan.by_layer'
local space = require 'trinity.plan.space'
local util = require 'trinity.base.util'

local offload = {}

local first, second = unpack(space.offloads)

-- Shares that a point may have, ascending; only its own where they are not searched.
local function shares(made, point, name)
  if not made:offloads(name) then return { point[name] or 0 } end
  return util.filtered(made:fractions(name), function(fraction) return made:allows(name, fraction, point) end)
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

--- Points in place of a plan that is too large: the next share of the optimizer on the host, and of activations.
function offload.again(pricing, plan)
  local list = {}
  for _, name in ipairs(space.offloads) do
    local more = util.filtered(shares(pricing.space, plan.point, name), function(fraction)
      return fraction > (plan.point[name] or 0)
    end)
    list[#list + 1] = more[1] and space.changed(plan.point, { [name] = more[1] })
  end
  return list
end

--- Neighbours: less on the host, and more where that leaves fewer layers to recompute.
function offload.neighbours(point, about)
  local list, free = {}, about.space.given.recompute == nil
  for _, name in ipairs(space.offloads) do
    local now, values = point[name] or 0, shares(about.space, point, name)
    for i, fraction in ipairs(values) do
      local less = values[i + 1] and fraction < now and now <= values[i + 1]
      if less or by_layer.is(point) and fraction > now then
        list[#list + 1] = space.changed(point, { [name] = fraction })
      end
      if less and free and point.recompute == 'none' then
        list[#list + 1] = space.changed(point, { [name] = fraction, recompute = 'by_layer' })
      end
    end
  end
  return list
end

return offload
