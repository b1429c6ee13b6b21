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

--- Whether a search is to be helped; once.
function scout.due(search)
  local best = search.results[1]
  return not search.scouted and not (best and best.metrics.feasible) and next(search.own) == nil
    and (search.space.about.experts and search.counts.opened >= opened
      or search.counts.bounded >= bounded or search.counts.simulated >= simulated)
end

local function key_of(strategy) return json.encode(strategy) end

--- Whether a strategy was simulated here.
function scout.knows(search, strategy)
  return search.scouted ~= nil and search.scouted[key_of(strategy)] ~= nil
end

-- The fastest point of a family by closed form; nil: none leaves so much free.
local function fastest(search, family)
  local ok, totals = pcall(search.networks.totals, search.networks, family, false)
  local best, best_s = nil, math.huge
  if not ok then return nil end
  search.space:each(family, function(point, reason)
    if reason or bounds.memory_bytes(point, totals) > share * search.capacity_bytes then return end
    local step_s = bounds.step_time_s(point, totals)
    if step_s < best_s then best, best_s = space.kept(point), step_s end
  end)
  return best and { kind = 'point', bound_s = best_s, point = best }
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
    local entry = fastest(search, family.family)
    if entry and search:settle(entry) then
      entry.strategy = search:strategy(entry)
      local problem, layers = search:bounder(entry.point)
      local found = problem.handle:mesh_bounds({ entry.strategy }, layers)[1]
      local key = key_of(entry.strategy)
      if not found.refused and not search.scouted[key] and search:excess(entry, found.memory_bytes) <= 0 then
        search.scouted[key] = true
        entry.bounds, entry.bound_s, entry.number = found, found.step_time_s, family.number
        search:simulate { entry }
      end
    end
  end
end

return scout
