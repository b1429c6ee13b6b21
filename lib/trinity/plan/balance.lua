-- Layers of the stages of a point where these are to be balanced: the exact split of stages.lua over what units take on
-- the stages' devices; of unequal devices within what their memory leaves room for.

local parallelism = require 'trinity.strategy.parallelism'
local by_layer = require 'trinity.plan.by_layer'
local space = require 'trinity.plan.space'
local stages = require 'trinity.plan.stages'
local util = require 'trinity.base.util'

local balance = {}

local most_rounds = 4 -- of giving fewer layers to stages that the bound on memory finds too full

local function order_text(order) return type(order) == 'table' and table.concat(order, ',') or tostring(order) end

local function load(unit) return unit.forward_to_next_s + unit.backward_to_next_s + unit.weight_s end

local function speeds(search, point, plain, problem, layers, middle)
  return search.unequal:speeds(plain, function(stage)
    return load(problem.handle:mesh_units(plain, stage, layers)[middle])
  end, function(kind)
    return load(search.networks:base_units(point.micro_batch, point.expert, 'none')[kind][middle])
  end)
end

--- What a split is of: load of every layer, of what stands before and behind, speed (unequal devices).
local function loads(search, point)
  local problem, layers = search:bounder(util.merged(point, { placement = 1 }))
  local plain = space.strategy(util.merged(space.kept(point), { stages = 'even', placement = 1 }))
  local units = problem.handle:mesh_units(plain, 1, layers)
  local cost = {}
  for i = 2, #units - 1 do cost[#cost + 1] = load(units[i]) end
  local first, last = load(units[1]), load(units[#units])
  if parallelism.is_v_shaped(point) and point.pipeline > 1 then first, last = first + last, 0 end
  return { cost = cost, first = first, last = last, speed = search.unequal
    and speeds(search, point, plain, problem, layers, math.floor(#units / 2) + 1) or nil }
end

-- Once for all points whose stages run alike; of unequal devices those depend on which devices they are.
local function loads_of(search, point)
  local key = table.concat({ point.micro_batch, point.tensor, point.context, point.expert, point.recompute,
    tostring(point.sequence_parallel), tostring(space.delays(point.schedule, point.pipeline)),
    tostring(parallelism.is_v_shaped(point)), search.unequal and ('%d %d %d %s'):format(point.pipeline,
      point.virtual_stages, point.data, order_text(point.order)) or tostring(point.pipeline > 1) }, ' ')
  search.splits[key] = search.splits[key] or loads(search, point)
  return search.splits[key]
end

--- Layers of all virtual stages, those of a device at most `most`; nil where there is no such split.
local function split(search, point, most)
  local about = loads_of(search, point)
  local counts = stages.split(about.cost, point.pipeline, about.first, about.last, about.speed, most)
  return counts and stages.virtual(counts, point.virtual_stages, parallelism.is_v_shaped(point))
end

--- Layers of the stages; nil where that is the even split.
function balance.of(search, point)
  local list = split(search, point)
  return list and not stages.even(list) and list or nil
end

-- Whether layers of an entry may be shared out otherwise: what was balanced, or is even where balanced is the same.
local function may_change(search, entry)
  return entry.balanced or entry.point.stages == 'even' and entry.point.pipeline > 1 and not entry.moved
    and search.space:takes(entry.point, 'stages', 'balanced') and not balance.of(search, entry.point)
end

--- Of unequal devices the entry once more, with fewer layers on the stages that are fuller than the least of their
--- devices by the engine's bound; nil where that was done often enough, or nothing is left to take.
function balance.again(search, entry, memory_bytes)
  local round, layers = (entry.round or 0) + 1, search.space.about.layers
  if not search.unequal or round > most_rounds or not may_change(search, entry) then return nil end
  local counts, most = by_layer.by_device(entry.point, by_layer.stages(entry.point, layers)), entry.most or {}
  most = util.listed(#counts, function(stage)
    local room, has = search:room(entry.strategy, stage), counts[stage]
    if memory_bytes[stage] <= room then return most[stage] or layers end
    return math.max(0, math.min(has - 1, math.floor(has * room / memory_bytes[stage])))
  end)
  local list = split(search, entry.point, most)
  if not list then return nil end
  return { point = util.merged(space.kept(entry.point), { stages = list }), settled = true, balanced = true,
    round = round, most = most, bound_s = entry.bound_s, moved = entry.moved }
end

return balance
