-- Recomputation by layer: the first layers of every virtual stage are recomputed, the fewest that the memory of its
-- device requires (Megatron-LM's recompute method 'block'; where the runtime has one number for all virtual stages, the
-- largest).
--
-- A plan of this kind takes no less time than one without recomputation, and keeps no less than one that computes
-- all again; between, bytes of a stage fall by the same for every layer.

local parallelism = require 'trinity.strategy.parallelism'
local core = require 'trinity.core'
local growth = require 'trinity.plan.growth'
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

-- Seconds of a micro-batch that one layer without recomputation saves at most, on one stage.
local function saved_s(problem, strategy, layers)
  local function of(word) return problem.handle:mesh_units(util.merged(strategy, { recompute = word }), 1, layers) end
  local none = of 'none'
  return math.max(unpack(util.map(of 'full', function(one, i)
    return math.max(one.backward_to_next_s - none[i].backward_to_next_s, one.backward_work_s - none[i].backward_work_s)
  end)))
end

--- Settles one entry from the bounds of computing nothing and everything again.
local function settle(search, problem, entry, plain, full)
  if plain.refused or full.refused then return plain.refused and plain or full end
  local point, layers = entry.point, search.space.about.layers
  local has = stages.of(point, layers)
  local saved = util.map(stages.by_device(point, has), function(count, device)
    return count > 0 and (plain.memory_bytes[device] - full.memory_bytes[device]) / count or 0
  end)
  local grown = search.memory:estimate(growth.features(point), 0)
  local again = point.recomputed or dealt(point, wanted(point, has, plain.memory_bytes, saved, function(device)
    return search:room(entry.strategy, device) / grown
  end), has, search.space.uniform)
  local total = util.sum(again)
  if total == 0 or total == layers then return { duplicate = true } end
  point.recomputed = again
  local memory = util.map(stages.by_device(point, again), function(count, device)
    return plain.memory_bytes[device] - count * saved[device]
  end)
  local least_s, kept = math.max(plain.step_time_s, entry.bound_s), point.micro_batches * (layers - total + 1)
  if point.pipeline == 1 then -- one layer more: between both kinds of layers fewer messages are waited for
    least_s = math.max(least_s, full.step_time_s - kept * saved_s(problem, entry.strategy, layers))
  end
  return util.merged(plain, { step_time_s = least_s, memory_bytes = memory, tasks = full.tasks, layer_bytes = saved })
end

--- The bounds of entries of this kind, whose layers are settled: as mesh_bounds() has them; `duplicate` where none or
--- all layers are recomputed.
function by_layer.bounds(search, problem, entries, layers)
  local function of(word)
    return problem.handle:mesh_bounds(util.map(entries, function(entry)
      return util.merged(entry.strategy, { recompute = word })
    end), layers)
  end
  local plain, full = of 'none', of 'full'
  return util.map(entries, function(entry, i) return settle(search, problem, entry, plain[i], full[i]) end)
end

--- A result's layers where each device recomputes only what its simulated memory requires; nil without a change.
function by_layer.corrected(result, room, layers, uniform)
  local point, saved = result.point, result.bounds.layer_bytes
  if not point.recomputed or not saved then return nil end
  local has, mesh, devices = stages.of(point, layers), result.strategy.mesh, result.strategy.devices
  local stride, now = (mesh.data or 1) * (mesh.tensor or 1) * (mesh.context or 1), stages.by_device(point,
    point.recomputed)
  local list = wanted(point, has, util.map(now, function(count, device)
    local rank = (device - 1) * stride + 1
    return result.metrics:memory_bytes(devices and devices[rank] or rank) + count * saved[device]
  end), saved, function(device) return room(result.strategy, device) end)
  for device, count in ipairs(list) do
    if count ~= now[device] then return dealt(point, list, has, uniform) end
  end
end

return by_layer
