-- First plans that fit, where the best bounds lead to none for long: of families that compute all layers again the
-- fastest points that leave memory free by closed form.

local bounds = require 'trinity.plan.bounds'
local json = require 'trinity.base.json'
local space = require 'trinity.plan.space'

local scout = {}

-- Without a plan that fits: families of a mixture (there are many) that were opened, points that were bounded or
-- simulated.
local opened, bounded, simulated = 48, 4000, 2
local families, share = 12, 0.75 -- how many are looked at, and of a device's memory what a point may take at most

--- Whether a search is to be helped; once. Not of unlike devices, of which the first simulations are of many kinds.
function scout.due(search)
  local best = search.results[1]
  return not search.scouted and not search.unequal and not (best and best.metrics.feasible) and next(search.own) == nil
    and (search.space.about.experts and search.counts.opened >= opened
      or search.counts.bounded >= bounded or search.counts.simulated >= simulated)
end

local function key_of(strategy) return json.encode(strategy) end

--- Whether a strategy was simulated here.
function scout.knows(search, strategy)
  return search.scouted ~= nil and search.scouted[key_of(strategy)] ~= nil
end

-- The fastest points of a family by closed form, of every number of stages and level of sharding one, of those that
-- leave so much free.
local function fastest(search, family)
  local ok, totals = pcall(search.networks.totals, search.networks, family, false)
  local best, list = {}, {}
  if not ok then return list end
  search.space:each(family, function(point, reason)
    if reason or bounds.memory_bytes(point, totals) > share * search.capacity_bytes then return end
    local step_s, key = bounds.step_time_s(point, totals), 10 * point.pipeline + point.shard
    if not best[key] then
      list[#list + 1] = { kind = 'point', bound_s = math.huge }
      best[key] = list[#list]
    end
    if step_s < best[key].bound_s then best[key].point, best[key].bound_s = space.kept(point), step_s end
  end)
  return list
end

-- Of these the one with the least bound of the engine that fits by it; nil: none.
local function chosen(search, family)
  local best
  for _, entry in ipairs(fastest(search, family)) do
    if search:settle(entry) then entry.strategy = search:strategy(entry) end
    if entry.strategy then
      local problem, layers = search:bounder(entry.point)
      local found = problem.handle:mesh_bounds({ entry.strategy }, layers)[1]
      local fits = not found.refused and search:excess(entry, found.memory_bytes) <= 0
      if fits and found.tasks <= search.tasks and (not best or found.step_time_s < best.bound_s) then
        entry.bounds, entry.bound_s, best = found, found.step_time_s, entry
      end
    end
  end
  return best
end

-- Families that compute everything again, those of the least bounds first.
local function again(search)
  local list = {}
  for _, entry in ipairs(search.queue) do
    if entry.kind == 'family' and entry.family.recompute == 'full' then list[#list + 1] = entry end
  end
  table.sort(list, function(a, b)
    if a.bound_s ~= b.bound_s then return a.bound_s < b.bound_s end
    return a.number < b.number
  end)
  return list
end

--- Simulates the fastest point of each; what is simulated here is a duplicate where the search comes to it.
function scout.run(search)
  search.scouted = {}
  for i, family in ipairs(again(search)) do
    if i > families or search:stopping() then return end
    local entry = chosen(search, family.family)
    if entry and not search.scouted[key_of(entry.strategy)] then
      search.scouted[key_of(entry.strategy)] = true
      entry.number = family.number
      search:simulate { entry }
    end
  end
end

return scout
