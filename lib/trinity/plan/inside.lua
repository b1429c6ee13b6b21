-- Operators placed inside the stages of a mesh (its axis `placement`): methods of placement run on the graph of a
-- stage, on the first devices of its places.

local parallelism = require 'trinity.strategy.parallelism'
local core = require 'trinity.core'
local graphs = require 'trinity.graph'
local infeasibility = require 'trinity.strategy.infeasibility'
local model = require 'trinity.graph.model'
local placement_methods = require 'trinity.methods'
local problems = require 'trinity.strategy.problem'
local strategy = require 'trinity.strategy.strategy'
local util = require 'trinity.base.util'

local inside = {}

--- The operators of every stage of the pipeline, as lists. Operators before the layers are in the first virtual
--- stage, operators after them in the last; also data sources, which are wherever they are read.
local function operators_of(graph, plan)
  local p, v = plan.mesh.pipeline or 1, plan.virtual_stages or 1
  local list, stage_of = util.listed(p, function() return {} end), { [0] = 1 }
  local count, _, of = core.repeated_layers(graph.handle)
  for stage, chunks in ipairs(parallelism.chunks(plan, count)) do
    for _, layers in ipairs(chunks) do
      for layer = layers[1], layers[2] do stage_of[layer] = stage end
    end
  end
  local last = parallelism.place_of(p * v, p, parallelism.is_v_shaped(plan))
  for i = 1, graph.operators do table.insert(list[stage_of[of[i]] or last], i) end
  return list
end

--- The first device of every place of a stage, of the first replica.
local function devices_of(plan, stage)
  local at, list = core.mesh_coordinates(util.picked(plan, { 'mesh', 'order', 'devices' })), {}
  for device, place in util.sorted_pairs(at.placement) do
    local first = at.data[device] == 0 and at.context[device] == 0 and at.tensor[device] == 0
    if first and at.pipeline[device] == stage - 1 then list[place + 1] = device end
  end
  return list
end

--- These devices as a cluster, each linked to each by what is between them.
local function cluster_of(cluster, numbers)
  local devices, links, types = {}, {}, {}
  for i, d in ipairs(numbers) do
    local device = cluster.devices[d]
    types[device.type] = model.device_type(cluster, device.type)
    devices[i] = { name = 'place' .. i, type = device.type, speed = device.speed }
    for j = 1, i - 1 do
      local latency_s, bandwidth = cluster:wire(d, numbers[j])
      links[#links + 1] = { from = 'place' .. j, to = 'place' .. i, latency_s = latency_s,
        bandwidth_bytes_per_s = bandwidth }
    end
  end
  return model.cluster { name = cluster.name, device_types = types, devices = devices, links = links }
end

--- The graph of a stage, and of each of its operators the original one.
local function part_of(graph, operators)
  if #operators == graph.operators then return graph, operators end
  local handle, origin = core.subgraph(graph.handle, operators)
  return graphs.wrap(handle), origin
end

--- The best placement that the methods find for a stage; nil and why there is none.
local function placed(problem, methods, options)
  local best, reason
  for _, name in ipairs(methods) do
    local found, why = placement_methods.info(name).run(problem, options)
    if found and not strategy.is(found) then found = problem:strategy(found) end
    if found and (found.mesh or found.splits) then
      found, why = nil, ("method '%s' found no placement of whole operators"):format(name)
    end
    if found and (not best or infeasibility.better(found, best)) then best = found end
    reason = reason or why
  end
  return best, reason
end

--- Places of all operators inside the stages of a strategy with a mesh (its own `inside` is not read): of each stage
--- those that one of the methods found to be the best on its graph, one micro-batch, first in, first out.
---@param problem trinity.Problem
---@param plan trinity.MeshStrategy
---@param methods string[] names of methods of placement
---@param options table what they are given: evaluations, seed
---@return integer[]? places by operator, from 1; nil, and why, where no method finds any
function inside.place(problem, plan, methods, options)
  local graph, places = problem.graph, {}
  for stage, operators in ipairs(operators_of(graph, plan)) do
    local own, origin = part_of(graph, operators)
    local found, why = placed(problems.simulator { graph = own, rules = problem.rules,
      cluster = cluster_of(problem.cluster, devices_of(plan, stage)) }, methods, options)
    if not found then return nil, ('no method places operators inside stage %d: %s'):format(stage, why) end
    for i = 1, #origin do
      if origin[i] > 0 then places[origin[i]] = found.placement[i] end
    end
  end
  local of_unit = {} -- one whose operators are in several stages goes where the first one does
  for i = 1, graph.operators do
    local unit = graph.unit_of[i]
    of_unit[unit] = of_unit[unit] or places[i]
    places[i] = of_unit[unit]
  end
  return places
end

local function wires_text(problem, plan)
  local words = {}
  for stage = 1, plan.mesh.pipeline or 1 do
    local devices = devices_of(plan, stage)
    for i, d in ipairs(devices) do
      words[#words + 1] = ('%s %.17g'):format(problem.cluster.devices[d].type, problem.cluster.devices[d].speed)
      for j = 1, i - 1 do words[#words + 1] = ('%.17g %.17g'):format(problem.cluster:wire(d, devices[j])) end
    end
  end
  return table.concat(words, ' ')
end

--- The same for a strategy of a search, once for all that have the same stages on devices of the same types and links.
--- Throws why there is none.
function inside.settle(pricing, plan, micro_batch)
  local problem = pricing.networks:problem(micro_batch)
  local key = ('%d %s %s %s %s'):format(micro_batch, plan.virtual_stages or 1,
    tostring(parallelism.is_v_shaped(plan)), plan.stages and table.concat(plan.stages, ',') or 'even',
    wires_text(problem, plan))
  pricing.places[key] = pricing.places[key] or { inside.place(problem, plan, pricing.methods, pricing.method_options) }
  local places, why = unpack(pricing.places[key], 1, 2)
  return places or error(why, 0)
end

return inside
