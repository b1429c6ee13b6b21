-- Recomputation by layer: the first layers of every virtual stage are recomputed, the fewest that the memory of its
-- device requires (Megatron-LM's recompute method 'block'; where the runtime has one number for all virtual stages, the
-- largest).
--
-- A plan of this kind takes no less time than one without recomputation, and keeps no less than one that computes
-- all again; between, bytes of a stage fall by the same for every layer.

local parallelism = require 'trinity.strategy.parallelism'
local bounds = require 'trinity.plan.bounds'
local core = require 'trinity.core'
local growth = require 'trinity.plan.growth'
local simulator = require 'trinity.strategy.simulator'
local space = require 'trinity.plan.space'
local stages = require 'trinity.plan.stages'
local util = require 'trinity.base.util'

local by_layer = {}

function by_layer.is(point) return point.recompute == 'by_layer' end

--- Layers to recompute of every virtual stage, from the numbers of every device. uniform: equal in all virtual stages.
local function dealt(point, wanted, has, uniform)
  if not uniform then
    return stages.virtual(wanted, point.virtual_stages, parallelism.is_v_shaped(point), has)
  end
  local most = math.ceil(math.max(unpack(wanted)) / point.virtual_stages)
  return util.map(has, function(count) return math.min(most, count) end)
end

--- Rules of a strategy that recomputes the layers that a point has settled and keeps the others.
function by_layer.operators(graph, point, layers)
  local kept, at = {}, 0
  for chunk, count in ipairs(stages.of(point, layers)) do
    for layer = 1, count do kept[at + layer] = layer > point.recomputed[chunk] end
    at = at + count
  end
  local rules = {}
  local _, _, of = core.repeated_layers(graph.handle)
  for i = 1, graph.operators do
    if kept[of[i]] then
      local op = graph:operator(i)
      if op.phase == 'forward' then rules[op.name] = { recompute = false } end
    end
  end
  return rules
end

--- Layers of every device that must be recomputed so that its bytes, without recomputation less the savings of layers,
--- fit into its memory.
local function wanted(point, has, plain, saved, room)
  return util.map(stages.by_device(point, has), function(layers, device)
    local excess = plain[device] - room(device)
    return (excess <= 0 or saved[device] <= 0) and 0 or math.min(layers, math.ceil(excess / saved[device]))
  end)
end

-- Units without recomputation and with it on the device of every stage; `gap_s`, `after_s`: the most of
-- trinity.PlanTotals.
local function units_by_stage(pricing, problem, strategy)
  local list = {}
  for stage = 1, strategy.mesh.pipeline do
    if stage > 1 and not pricing.unequal then list[stage] = list[1] else
      local one = { gap_s = 0, after_s = 0 }
      for _, word in ipairs { 'none', 'full' } do
        one[word] = simulator.mesh_units(problem, util.merged(strategy, { recompute = word }), stage,
          pricing.space.about.layers)
        local sums = bounds.totals(one[word])
        one.gap_s, one.after_s = math.max(one.gap_s, sums.gap_s), math.max(one.after_s, sums.after_s)
      end
      list[stage] = one
    end
  end
  return list
end

-- Seconds of a step that one device computes at least, and until its first micro-batch came and its last one went
-- through the stages before it. again: layers of every virtual stage that are recomputed.
local function busy_s(point, units, has, again)
  local of, at, after_s, v_shaped = {}, 1, 0, parallelism.is_v_shaped(point)
  local work = point.schedule == 'dualpipe-v' and point.pipeline > 1 -- other work fills what messages leave
  local function time(unit)
    return work and unit.forward_work_s + unit.backward_work_s
      or unit.forward_to_next_s + unit.backward_to_next_s + unit.weight_s
  end
  for chunk, count in ipairs(has) do
    local on, sum = units[parallelism.place_of(chunk, point.pipeline, v_shaped)], 0
    for i = 1, count do sum = sum + time((i <= again[chunk] and on.full or on.none)[at + i]) end
    if chunk == 1 then sum = sum + time(on.none[1]) end
    if chunk == #has then sum = sum + time(on.none[#on.none]) end
    -- nothing waits after the last layer, and maybe between layers of both kinds
    of[chunk], at, after_s = math.max(0, sum - (work and 0 or 2 * on.gap_s)), at + count, math.max(after_s, on.after_s)
  end
  local most_s, before_s = 0, 0
  for device, seconds in ipairs(stages.by_device(point, of)) do
    most_s = math.max(most_s, point.micro_batches * seconds + before_s)
    if not v_shaped and not space.delays(point.schedule, point.pipeline) then
      before_s = math.max(0, before_s + of[device] - after_s)
    end
  end
  return most_s * (1 - 1e-9) -- sums of doubles
end

--- Settles one plan from the bounds of computing nothing and everything again. No layers that fit into memory take
--- less than the fewest by the bound on memory; a plan has those that simulations will need.
local function settle(pricing, problem, plan, plain, full)
  if plain.refused or full.refused then return plain.refused and plain or full end
  local point, layers = plan.point, pricing.space.about.layers
  local has = stages.of(point, layers)
  local saved = util.map(stages.by_device(point, has), function(count, device)
    return count > 0 and (plain.memory_bytes[device] - full.memory_bytes[device]) / count or 0
  end)
  local function fewest(grown)
    return point.recomputed or dealt(point, wanted(point, has, plain.memory_bytes, saved, function(device)
      return pricing:room(plan.strategy, device) / grown
    end), has, pricing.space.uniform)
  end
  local again = fewest(pricing.memory:estimate(growth.features(point), 0))
  local total = util.sum(again)
  if total == 0 or total == layers then return { duplicate = true } end
  local units = units_by_stage(pricing, problem, plan.strategy)
  local function bound_s(recomputed)
    return math.max(plain.step_time_s, plan.bound_s, busy_s(point, units, has, recomputed))
  end
  local least_s = bound_s(fewest(1))
  point.recomputed = again
  return util.merged(plain, { least_s = least_s, step_time_s = bound_s(again), tasks = full.tasks, layer_bytes = saved,
    memory_bytes = util.map(stages.by_device(point, again), function(count, device)
      return plain.memory_bytes[device] - count * saved[device]
    end) })
end

--- The bounds of entries of this kind, whose layers are settled: as mesh_bounds() has them; `duplicate` where none or
--- all layers are recomputed.
function by_layer.bounds(pricing, problem, entries, layers)
  local function of(word)
    return simulator.mesh_bounds(problem, util.map(entries, function(entry)
      return util.merged(entry.strategy, { recompute = word })
    end), layers)
  end
  local plain, full = of 'none', of 'full'
  return util.map(entries, function(entry, i) return settle(pricing, problem, entry, plain[i], full[i]) end)
end

--- A simulated plan once more where each device recomputes only what its simulated memory requires; nil without a
--- change.
function by_layer.again(pricing, plan)
  local point, saved, layers = plan.point, plan.bounds.layer_bytes, pricing.space.about.layers
  if not point.recomputed or not saved then return nil end
  local has, now, devices = stages.of(point, layers), stages.by_device(point, point.recomputed),
    stages.first_devices(plan.strategy)
  local list = wanted(point, has, util.map(now, function(count, stage)
    return plan.metrics:memory_bytes(devices[stage]) + count * saved[stage]
  end), saved, function(stage) return pricing:room(plan.strategy, stage) end)
  for stage, count in ipairs(list) do
    if count ~= now[stage] then
      return space.changed(point, { recomputed = dealt(point, list, has, pricing.space.uniform) })
    end
  end
end

--- Neighbours: recomputation of modules, the cheapest for the bytes that they free first, or by layer.
function by_layer.neighbours(point, about)
  local fits = point.recompute == 'none' and about.result.metrics.feasible -- more takes no less time
  if by_layer.is(point) or fits or about.space.given.recompute ~= nil or point.placement > 1 then return {} end
  return util.map(util.joined({ 'by_layer' }, about.space.about.modules(point.micro_batch)), function(word)
    return space.changed(point, { recompute = word })
  end)
end

return by_layer
