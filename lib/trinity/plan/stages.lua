-- Distribution of layers over the stages of a pipeline: the split with the smallest largest load, exact where loads
-- add up; layers of virtual stages as equal as possible. As a kind of variation: such splits for plans whose stages are
-- to be balanced, by the times of units on the stages' devices; on heterogeneous devices within their free memory; and
-- neighbours that move one layer.

local core = require 'trinity.core'
local parallelism = require 'trinity.strategy.parallelism'
local simulator = require 'trinity.strategy.simulator'
local space = require 'trinity.plan.space'
local util = require 'trinity.base.util'

local stages = {}

--- Numbers of layers of p parts within a limit, as equal as the limit allows; nil where the parts cannot have all.
--- sums[i]: cost of the first i layers; ends(part): what a part bears in addition to its layers.
local function within(sums, p, ends, limit, speed, most)
  local function fits(part, from, to)
    return to - from <= most[part] and (sums[to] - sums[from] + ends(part)) * speed[part] <= limit
  end
  local least, at = {}, #sums -- layers that the parts up to each must have, for later parts to have enough
  for part = p, 1, -1 do
    if not fits(part, at, at) then return nil end
    least[part] = at
    while at > 0 and fits(part, at - 1, least[part]) do at = at - 1 end
  end
  if at > 0 then return nil end
  local counts = {}
  for part = 1, p do
    local from, goal = at, math.max(least[part], math.floor(#sums * part / p + 0.5))
    while at < goal and fits(part, from, at + 1) do at = at + 1 end
    counts[part] = at - from
  end
  return counts
end

--- Numbers of layers of p parts in a row whose largest load is least.
---@param cost number[] of every layer
---@param p integer
---@param first number load of the first part in addition to its layers
---@param last number the same of the last
---@param speed? number[] factor of the cost on every part
---@param most? integer[] layers that every part may have
---@return integer[]? nil where the parts may not have all
function stages.split(cost, p, first, last, speed, most)
  speed = speed or util.listed(p, function() return 1 end)
  most = most or util.listed(p, function() return #cost end)
  local sums = { [0] = 0 }
  for i = 1, #cost do sums[i] = sums[i - 1] + cost[i] end
  local function ends(part) return (part == 1 and first or 0) + (part == p and last or 0) end
  local low, high = 0, (first + last + sums[#cost]) * math.max(unpack(speed))
  for _ = 1, 60 do -- a double's bits are settled
    local middle = (low + high) / 2
    if within(sums, p, ends, middle, speed, most) then high = middle else low = middle end
  end
  return within(sums, p, ends, high, speed, most)
end

--- Numbers for all virtual stages in the order of the network, from every device's numbers (parallelism.place_of): the
--- loads of a device's are as equal as they can be, the larger ones first. most: of every virtual stage; first, last:
--- what the first and the last virtual stage bear in addition.
---@param counts integer[] of every device
---@param v integer virtual stages of a device
---@param v_shaped boolean
---@param most? integer[]
---@param first? number
---@param last? number
---@return integer[]
function stages.virtual(counts, v, v_shaped, most, first, last)
  local p, of = #counts, util.map(counts, function() return {} end)
  local list = util.listed(p * v, function() return 0 end)
  local loads = util.listed(p * v, function(i) return (i == 1 and first or 0) + (i == p * v and last or 0) end)
  for chunk = 1, p * v do table.insert(of[parallelism.place_of(chunk, p, v_shaped)], chunk) end
  for device, count in ipairs(counts) do
    for _ = 1, count do
      local least
      for _, chunk in ipairs(of[device]) do
        local open = not most or list[chunk] < most[chunk]
        if open and (not least or loads[chunk] < loads[least]) then least = chunk end
      end
      list[least], loads[least] = list[least] + 1, loads[least] + 1
    end
  end
  return list
end

--- Sums over the devices of a pipeline of numbers of its virtual stages.
function stages.by_device(point, numbers)
  local sums, p = util.listed(point.pipeline, function() return 0 end), point.pipeline
  for chunk, number in ipairs(numbers) do
    local device = parallelism.place_of(chunk, p, parallelism.is_v_shaped(point))
    sums[device] = sums[device] + number
  end
  return sums
end

--- Layers of every virtual stage of a point.
function stages.of(point, layers)
  if type(point.stages) == 'table' then return point.stages end
  local count = point.pipeline * point.virtual_stages
  return util.listed(count, function() return layers / count end)
end

--- Whether all numbers are equal.
function stages.even(list)
  for i = 2, #list do
    if list[i] ~= list[1] then return false end
  end
  return true
end

local most_rounds = 4 -- of giving fewer layers to stages that the bound on memory finds too full

local function load(unit) return unit.forward_to_next_s + unit.backward_to_next_s + unit.weight_s end

local function speeds(pricing, point, plain, problem, layers, middle)
  return pricing.unequal:speeds(plain, function(stage)
    return load(simulator.mesh_units(problem, plain, stage, layers)[middle])
  end, function(kind)
    return load(pricing.networks:base_units(point.micro_batch, point.expert, 'none')[kind][middle])
  end)
end

--- The input of a split: load of every layer and of the operators before and after, speed (heterogeneous devices).
local function loads(pricing, point)
  local problem, layers = pricing:bounder(util.merged(point, { placement = 1 }))
  local plain = space.strategy(util.merged(space.kept(point), { stages = 'even', placement = 1,
    recompute = point.recompute == 'by_layer' and 'none' or nil })) -- by layer few layers are recomputed
  local units = simulator.mesh_units(problem, plain, 1, layers)
  local cost = {}
  for i = 2, #units - 1 do cost[#cost + 1] = load(units[i]) end
  local first, last, mean = load(units[1]), load(units[#units]), util.sum(cost) / #cost
  local ends = mean > 0 and { first / mean, last / mean } or {}
  if parallelism.is_v_shaped(point) and point.pipeline > 1 then first, last = first + last, 0 end
  return { cost = cost, first = first, last = last, ends = ends, speed = pricing.unequal
    and speeds(pricing, point, plain, problem, layers, math.floor(#units / 2) + 1) or nil }
end

-- Once for all points whose stages run in the same way; heterogeneous devices also depend on which they are.
local function loads_of(pricing, point)
  local key = table.concat({ point.micro_batch, point.tensor, point.context, point.expert, point.recompute,
    tostring(point.sequence_parallel), tostring(space.delays(point.schedule, point.pipeline)),
    tostring(parallelism.is_v_shaped(point)), pricing.unequal and ('%d %d %d %s'):format(point.pipeline,
      point.virtual_stages, point.data, type(point.order) == 'table' and table.concat(point.order, ',') or point.order)
      or tostring(point.pipeline > 1) }, ' ')
  pricing.splits[key] = pricing.splits[key] or loads(pricing, point)
  return pricing.splits[key]
end

--- Layers of all virtual stages, at most `most` per device; nil where there is no such split.
local function shared(pricing, point, most)
  local about = loads_of(pricing, point)
  local counts = stages.split(about.cost, point.pipeline, about.first, about.last, about.speed, most)
  return counts and stages.virtual(counts, point.virtual_stages, parallelism.is_v_shaped(point), nil,
    unpack(about.ends))
end

-- Layers of balanced stages; nil where that is the even split.
local function balanced(pricing, point)
  local list = shared(pricing, point)
  return list and not stages.even(list) and list or nil
end

--- Balances the stages of a plan; false where a point with even stages is the same.
function stages.settle(pricing, plan)
  local point = plan.point
  local list = balanced(pricing, point)
  if not list and pricing.space.about.layers % (point.pipeline * point.virtual_stages) == 0
    and pricing.space:takes(point, 'stages', 'even') then
    return false
  end
  point.stages, plan.balanced = list or 'even', true
  return true
end

-- Whether layers of a plan may be distributed differently: if they were balanced, or equal where balanced is the
-- same.
local function may_change(pricing, plan)
  return plan.balanced or plan.point.stages == 'even' and plan.point.pipeline > 1 and not plan.moved
    and pricing.space:takes(plan.point, 'stages', 'balanced') and not balanced(pricing, plan.point)
end

--- For unequal devices a plan that is too large once more, with fewer layers on the stages that are fuller than the
--- least of their devices by the engine's bound; nil where that was done often enough, or nothing is left to take.
function stages.again(pricing, plan)
  local round, layers = (plan.round or 0) + 1, pricing.space.about.layers
  if not pricing.unequal or round > most_rounds or not may_change(pricing, plan) then return nil end
  local counts, most = stages.by_device(plan.point, stages.of(plan.point, layers)), plan.most or {}
  local memory_bytes = plan.bounds.memory_bytes
  most = util.listed(#counts, function(stage)
    local room, has = pricing:room(plan.strategy, stage), counts[stage]
    if memory_bytes[stage] <= room then return most[stage] or layers end
    return math.max(0, math.min(has - 1, math.floor(has * room / memory_bytes[stage])))
  end)
  local list = shared(pricing, plan.point, most)
  if not list then return nil end
  return { point = util.merged(space.kept(plan.point), { stages = list }), settled = true, balanced = true,
    round = round, most = most, bound_s = plan.bound_s, moved = plan.moved }
end

--- The first device of every stage of a strategy.
function stages.first_devices(strategy)
  return parallelism.first_devices { coordinates = core.mesh_coordinates(util.picked(strategy,
    { 'mesh', 'order', 'devices' })) }
end

-- Stages of a result whose devices work longest and are fullest, the first of each: a set.
local function pressed(result)
  local metrics, set, first = result.metrics, {}, stages.first_devices(result.strategy)
  for _, of in ipairs { 'compute_busy_s', 'memory_bytes' } do
    local most, at = -1, nil
    for stage, device in ipairs(first) do
      if metrics[of](metrics, device) > most then most, at = metrics[of](metrics, device), stage end
    end
    set[at] = true
  end
  return set
end

local most_virtual = 32 -- virtual stages that each may give a layer; of more only the stages of pressed devices

--- Neighbours: a layer less on a virtual stage, one more on a neighbour, the first or the last.
function stages.neighbours(point, about)
  local list, p = {}, point.pipeline
  if p == 1 or about.space.given.stages ~= nil then return list end
  local counts, seen = stages.of(point, about.space.about.layers), {}
  local givers = #counts > most_virtual and pressed(about.result)
  for from = 1, #counts do
    for _, to in ipairs { from - 1, from + 1, 1, #counts } do
      local key = ('%d %d'):format(from, to)
      local gives = counts[from] > 0 and (not givers
        or givers[parallelism.place_of(from, p, parallelism.is_v_shaped(point))])
      if gives and counts[to] and to ~= from and not seen[key] then
        seen[key] = true
        local other = util.merged({}, counts)
        other[from], other[to] = other[from] - 1, other[to] + 1
        list[#list + 1] = space.changed(point, { stages = other })
      end
    end
  end
  return list
end

return stages
