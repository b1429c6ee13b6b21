-- Converts a plan of Sailor to a problem and a strategy: a graph with one operator per layer and pass, with times and
-- bytes of Sailor's profiles; its stages as a mesh with 1F1B; a cluster with one GPU per tensor-parallel group (the
-- other GPUs of the group compute and send their parts at the same time).
--
-- DeepSpeed's pipeline engine also does this: a stage copies its input before it computes (queue 'receiver'); it sends
-- a gradient before it continues, and an activation while it waits for the next gradient (runtime/pipe/engine.py,
-- TrainSchedule); gradients are all-reduced after the last micro-batch; the optimizer is one fused call for all layers
-- of a stage, which takes the time of one layer.

local devices = require 'trinity.cluster.devices'
local graphs = require 'trinity.graph'
local model = require 'trinity.graph.model'
local problems = require 'trinity.strategy.problem'
local sailor_plan = require 'studies.fidelity.sailor_plan'
local util = require 'trinity.base.util'

local sailor_step = {}

local function kind_of(group) return ('%s, 1 of %d'):format(group.gpu, group.tp) end

local function rounded(x) return math.floor(x + 0.5) end

--- Returns the data of a layer (from 0) in llm_info.json.
local function size_of(plan, info, group, layer)
  return sailor_plan.entry(plan, 'llm_info.json', info, plan.network, tostring(group.tp), tostring(layer))
end

--- Returns the bytes that a stage sends for a layer's output: with one NIC per GPU each GPU sends all of it; otherwise
--- they share the NIC and send a part each.
local function sent_bytes(plan, group, size)
  local parts = sailor_plan.gpus[group.gpu].card and 1 or group.tp
  return rounded(4 * plan.micro_batch * size.act_output_floats / parts)
end

--- Returns the seconds { forward, backward, update } of a layer on a group. Profiles of small micro-batches include
--- launch times, because layers were timed one by one; therefore no pass takes longer than with a larger micro-batch.
local function times_of(plan, profiles, group, layer)
  local by_batch = sailor_plan.entry(plan, 'profiles', profiles, plan.network, group.gpu)
  local function at(batch)
    return sailor_plan.entry(plan, 'profiles', by_batch, batch, tostring(group.tp), tostring(layer))
  end
  local times = at(tostring(plan.micro_batch))
  local forward, backward = times[1], times[2]
  for batch, by_tp in util.sorted_pairs(by_batch) do
    if tonumber(batch) > plan.micro_batch and by_tp[tostring(group.tp)] then
      forward, backward = math.min(forward, at(batch)[1]), math.min(backward, at(batch)[2])
    end
  end
  return { forward = forward, backward = backward, update = times[3] }
end

--- Returns for every layer (from 0) whether a stage begins or ends with it.
local function edges_of(plan)
  local first, last, at = {}, {}, 0
  for _, layers in ipairs(plan.stages) do
    first[at], last[at + layers - 1] = true, true
    at = at + layers
  end
  return first, last
end

local function name_of(layer) return ('block_%d/layer'):format(layer) end

--- Adds the forward passes. Returns per layer the tensors that it keeps and sends, and its sizes.
local function add_forward(builder, plan, info, values)
  local group, b, carried, layers = plan.groups[1][1], plan.micro_batch, nil, {}
  for layer = 0, plan.layers - 1 do
    local size = size_of(plan, info, group, layer)
    local kept
    carried, kept = builder:add { name = name_of(layer), type = 'Work', inputs = { carried },
      outputs = { { bytes = sent_bytes(plan, group, size) },
        { bytes = rounded(values.activation_share * 4 * b * size.act_mem_floats) } },
      parameters = { { name = name_of(layer) .. '/weights', shape = { size.params_floats } } },
      persistent_bytes = rounded((values.state_bytes - 8) * size.params_floats),
      workspace_bytes = layer == plan.layers - 1 and rounded(values.logits_share * 4 * b * size.act_mem_floats) or 0 }
    layers[layer] = { sent = carried, kept = kept, size = size }
  end
  return layers
end

--- Returns the training graph: per layer a forward, a backward and an update operator, and one that sends a gradient.
local function graph_of(plan, info, values)
  local builder, first = graphs.new { name = plan.network }, edges_of(plan)
  local layers, gradient = add_forward(builder, plan, info, values), nil
  for layer = plan.layers - 1, 0, -1 do
    local name, own, before = name_of(layer), layers[layer], layers[layer - 1]
    local function add(what, kind, phase, inputs, outputs)
      return builder:add { name = what, type = kind, phase = phase, forward = name, inputs = inputs, outputs = outputs }
    end
    local weights
    gradient, weights = add(name .. '/grad', 'WorkGrad', 'backward', { gradient or own.sent, own.kept },
      { { bytes = before and sent_bytes(plan, plan.groups[1][1], before.size) or 0 },
        { shape = { own.size.params_floats } } })
    if first[layer] and before then add(('block_%d/send'):format(layer), 'WorkGrad', 'backward', { gradient }, {}) end
    add(name .. '/update', 'Update', 'update', { weights }, {})
  end
  return builder:build()
end

--- Returns the bytes/s between two groups by Sailor's measured curve, c2 L^2 + c1 L + c0 GB/s with L = log2(bytes /
--- 1e6).
local function measured_rate(plan, bandwidths, a, b, bytes)
  local curve = sailor_plan.entry(plan, 'multizone_bandwidths_het.json', bandwidths, a.zone, a.gpu, tostring(a.tp),
    b.zone, b.gpu, tostring(b.tp))
  local c, l = curve[1], math.log(bytes / 1e6) / math.log(2)
  return math.max(1e6, math.min(curve[2], 1e9 * (c[1] * l * l + c[2] * l + c[3])))
end

-- message between stages for two sequences of the smaller network; the curves are flat from there
local curve_at_bytes = 16 * 2 ^ 20

--- Returns the cluster of a plan: one GPU per group, in the order of a mesh (replicas of the first stage, then of the
--- next). Groups without their own NICs share the bandwidth of their node.
function sailor_step.cluster(plan, bandwidths, values)
  local spec, all = { name = 'sailor', queue = 'receiver', device_types = {}, devices = {}, links = {} }, {}
  local function link(from, to, rate, latency_s)
    table.insert(spec.links, { from = from, to = to, latency_s = latency_s,
      bandwidth_bytes_per_s = rate * values.network_share })
  end
  for s, groups in ipairs(plan.groups) do
    for r, group in ipairs(groups) do
      spec.device_types[kind_of(group)] = devices[sailor_plan.gpus[group.gpu].kind]
      all[#all + 1] = group
      spec.devices[#all] = { name = ('stage%d_%d'):format(s, r), type = kind_of(group) }
    end
  end
  for i, group in ipairs(all) do
    local card, name = sailor_plan.gpus[group.gpu].card, spec.devices[i].name
    if card then link(name, 'network', card, 2e-6) end
    for j = i + 1, card and 0 or #all do
      link(name, spec.devices[j].name, measured_rate(plan, bandwidths, group, all[j], curve_at_bytes) / group.tp, 20e-6)
    end
  end
  return spec
end

--- Returns per device the seconds for which sending a gradient to the previous stage blocks it.
local function send_times(plan, info, cluster)
  local group, found, layer = plan.groups[1][1], {}, 0
  for s = 2, #plan.stages do
    layer = layer + plan.stages[s - 1]
    local bytes = sent_bytes(plan, group, size_of(plan, info, group, layer - 1))
    for device = (s - 1) * plan.replicas + 1, s * plan.replicas do
      local latency_s, rate = cluster:wire(device, device - plan.replicas)
      found[device] = latency_s + bytes / rate
    end
  end
  return found
end

--- Returns the costs of operators for option `cost`: the measured time of layers on a device's group, plus the engine's
--- time where a stage begins or ends. Of equal devices only the first is asked, which may send no gradient itself.
local function cost_of(plan, data, values, cluster)
  local send_s, groups, number, kept = send_times(plan, data.info, cluster), {}, {}, {}
  local first, last = edges_of(plan)
  for i, device in ipairs(cluster.devices) do
    groups[device.name] = plan.groups[math.ceil(i / plan.replicas)][(i - 1) % plan.replicas + 1]
    number[device.name] = i
  end
  return function(op, device)
    local layer, what = op.name:match 'block_(%d+)/(%a+)'
    if not layer or op.collective then return nil end
    if what == 'send' then return send_s[number[device.name]] or send_s[plan.replicas + 1] end
    local group = groups[device.name]
    local key = ('%s %s'):format(kind_of(group), layer)
    layer = tonumber(layer)
    kept[key] = kept[key] or times_of(plan, data.profiles, group, layer)
    if op.phase == 'update' then return first[layer] and kept[key].update or 0 end
    local ends = op.phase == 'forward' and first or last
    return kept[key][op.phase] + (ends[layer] and values.slot_s / 2 or 0)
  end
end

--- Returns a problem and the strategy of a plan. data: { info, profiles, bandwidths } (sailor.data); values: constants
--- by name; spec: instead of the result of sailor_step.cluster.
function sailor_step.problem(plan, data, values, spec)
  local cluster = model.cluster(spec or sailor_step.cluster(plan, data.bandwidths, values))
  local problem = problems.simulator { graph = graph_of(plan, data.info, values), cluster = cluster,
    cost = cost_of(plan, data, values, cluster) }
  return problem, { mesh = { data = plan.replicas, pipeline = #plan.stages }, stages = plan.stages, schedule = '1f1b',
    micro_batches = plan.micro_batches, bucket_bytes = 2 ^ 50 }
end

--- Returns the seconds per iteration, and the bytes of the fullest GPU as its driver counts them.
function sailor_step.predict(plan, data, values, spec)
  local problem, strategy = sailor_step.problem(plan, data, values, spec)
  local metrics = problem:evaluate(strategy)
  return { predicted_s = metrics.step_time_s,
    predicted_memory_bytes = metrics.peak_memory_bytes + values.context_bytes }
end

return sailor_step
