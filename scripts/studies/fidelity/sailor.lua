-- Comparison sailor: plans that Sailor's authors measured (Strati et al., "Sailor", SOSP 2025;
-- github.com/eth-easl/sailor) predicted by problem:evaluate over their profiles of layers. --plans: a folder of plans;
-- --data: one with llm_info.json, profiles_tmp.json, providers/multizone_bandwidths_het.json, and, where they exist,
-- NETWORK_GPU_measured.json, profiles that replace others, and measured_again.csv, times of a second run.
--
-- A plan is { path, network, layers, stages (layers of each), groups [stage][replica], replicas, micro_batch, batch,
-- micro_batches, measured_s?, measured_bytes? }, a group { gpu, tp, zone } a tensor-parallel group of tp GPUs. It
-- becomes a graph with one operator per layer and pass, with times and bytes of Sailor's profiles; its stages a mesh
-- with 1F1B; a cluster with one GPU per group (the others of the group compute and send their parts at the same time).
--
-- DeepSpeed's pipeline engine also does this: a stage copies its input before it computes (queue 'receiver'); it sends
-- a gradient before it continues, and an activation while it waits for the next gradient (runtime/pipe/engine.py,
-- TrainSchedule); gradients are all-reduced after the last micro-batch; the optimizer is one fused call for all layers
-- of a stage, which takes the time of one layer.

local check = require 'trinity.base.check'
local core = require 'trinity.core'
local csv = require 'studies.rows'
local devices = require 'trinity.cluster.devices'
local fitted = require 'studies.fidelity.fitted'
local graphs = require 'trinity.graph'
local json = require 'trinity.base.json'
local model = require 'trinity.graph.model'
local problems = require 'trinity.strategy.problem'
local util = require 'trinity.base.util'

local sailor = {
  name = 'sailor',
  quantity = 'seconds of an iteration',
  list = 'plans',
  json = { id = 'plan', predicted = 'predicted_s', memory_bytes = 'predicted_memory_bytes', refused = 'refused' },
  help = 'measured plans of Sailor, over its profiles of layers',
  shared = { data = 'sailor', plans = 'sailor/plans' },
  takes = 'plans data',
}

sailor.priors = fitted.priors 'sailor' -- of predictions in addition to the profiles, by kind of machines

-- Our kinds of GPUs by Sailor's names. `cards`: bytes/s of the NIC of each GPU (Slingshot 11: 200 Gbit/s); without it,
-- the groups of a node have the inter-node bandwidth that Sailor measured.
local kinds = { ['GH-96'] = 'gh200', ['A100-40'] = 'a100', ['A100-80'] = 'a100_80gb', ['V100-16'] = 'v100',
  ['RTX-3090'] = 'rtx3090', ['RTX-2080'] = 'rtx2080ti', ['Titan-RTX'] = 'titan_rtx' }
local cards = { ['GH-96'] = 25e9 }

local function rounded(x) return math.floor(x + 0.5) end

--- Returns an entry of nested tables. Raises an error that names a missing one. what: the file.
local function entry(plan, what, list, ...)
  for _, key in ipairs { ... } do
    local known = type(list) == 'table' and list or {}
    if not known[key] then
      util.fail('%s: %s: no entry %s', plan.path, what, util.unknown(key, util.sorted_keys(known)))
    end
    list = known[key]
  end
  return list
end

-- The form of a plan's file: entries of a list are like the one here, groups are [[[gpu, GPUs of the node, zone], ...],
-- tp].
local form = { mbs = 1, gbs = 1,
  pipeline_list = { { layers_per_stage = { { 0 } }, tmp_per_stage = { { { { { 'GPU', 4, 'zone' } }, 4 } } } } } }

--- Refuses a value of field `name` that has not the form of `like`.
local function check_form(path, name, value, like)
  check.argument(path, 'field', name, value, type(like))
  if type(like) ~= 'table' then return end
  if #like == 1 and #value == 0 then check.wrong(path, 'field', name, value, 'at least one entry') end
  for _, one in ipairs(#like == 1 and value or {}) do check_form(path, name, one, like[1]) end
  for key, one in util.sorted_pairs(#like == 1 and {} or like) do
    check_form(path, type(key) == 'string' and key or name, value[key], one)
  end
end

--- Returns a measurement, or nil.
local function measured(path, given, name)
  local value = given[name]
  if value ~= nil and value ~= '' and not ((tonumber(value) or 0) > 0) then
    check.wrong(path, 'field', name, value, 'a number above 0, or none')
  end
  return tonumber(value)
end

--- Returns the network with this number of layers; if there are several, the one that the path names.
local function network_of(plan, info)
  local found
  for name, by_tp in util.sorted_pairs(info) do
    local _, layers = next(by_tp)
    if type(layers) == 'table' and #util.sorted_keys(layers) == plan.layers
      and (not found or plan.path:upper():find(name:upper(), 1, true)) then
      found = name
    end
  end
  return found or util.fail('%s: expected a network with %d layers in llm_info.json, got none', plan.path, plan.layers)
end

--- Returns a plan from the content of its file. info: llm_info.json, layers by network and tp.
function sailor.plan(path, given, info)
  path = util.shortened(path)
  check_form(path, 'plan', given, form)
  local pipeline = given.pipeline_list[1]
  local plan = { path = path, groups = {}, replicas = #pipeline.tmp_per_stage[1],
    micro_batch = check.integer(path, 'field', 'mbs', given.mbs, 1, 2 ^ 20),
    batch = check.integer(path, 'field', 'gbs', given.gbs, 1, 2 ^ 20),
    measured_s = measured(path, given, 'real'), measured_bytes = measured(path, given, 'max_mem'),
    stages = util.map(pipeline.layers_per_stage, function(layers) return #layers end) }
  for s in ipairs(plan.stages) do
    local groups = pipeline.tmp_per_stage[s] or {}
    if #groups ~= plan.replicas then
      util.fail('%s: stage %d: expected the replicas of the first stage, got %d where the first has %d', path, s,
        #groups, plan.replicas)
    end
    plan.groups[s] = util.map(groups, function(group)
      local gpu, _, zone = unpack(group[1][1])
      if not kinds[gpu] then util.fail('%s: unknown GPU %s', path, util.unknown(gpu, util.sorted_keys(kinds))) end
      return { gpu = gpu, tp = group[2], zone = zone, kind = ('%s, 1 of %d'):format(gpu, group[2]) }
    end)
  end
  plan.layers, plan.micro_batches = util.sum(plan.stages), math.ceil(plan.batch / (plan.micro_batch * plan.replicas))
  plan.family = cards[plan.groups[1][1].gpu] and 'gh200' or 'mixed'
  plan.network = network_of(plan, info)
  return plan
end

--- Returns the data of a layer (from 0) in llm_info.json, with the bytes that a stage sends for its output: with one
--- NIC per GPU each GPU sends all of it; otherwise they share the NIC and send a part each.
local function size_of(plan, info, layer)
  local group = plan.groups[1][1]
  local size = entry(plan, 'llm_info.json', info, plan.network, tostring(group.tp), tostring(layer))
  local parts = cards[group.gpu] and 1 or group.tp
  return util.merged(size, { sent_bytes = rounded(4 * plan.micro_batch * size.act_output_floats / parts) })
end

--- Returns the seconds { forward, backward, update } of a layer on a group. Profiles of small micro-batches include
--- launch times, because layers were timed one by one; therefore no pass takes longer than with a larger micro-batch.
local function times_of(plan, profiles, group, layer)
  local by_batch = entry(plan, 'profiles', profiles, plan.network, group.gpu)
  local function at(batch) return entry(plan, 'profiles', by_batch, batch, tostring(group.tp), layer) end
  local forward, backward, update = unpack(at(tostring(plan.micro_batch)), 1, 3)
  for batch, by_tp in util.sorted_pairs(by_batch) do
    if tonumber(batch) > plan.micro_batch and by_tp[tostring(group.tp)] then
      forward, backward = math.min(forward, at(batch)[1]), math.min(backward, at(batch)[2])
    end
  end
  return { forward = forward, backward = backward, update = update }
end

--- Returns the sets of layers (from 0) with which a stage begins and ends.
local function edges_of(plan)
  local first, last, at = {}, {}, 0
  for _, layers in ipairs(plan.stages) do
    first[at], last[at + layers - 1] = true, true
    at = at + layers
  end
  return first, last
end

--- Returns the training graph: per layer a forward, a backward and an update operator, and one that sends a gradient.
local function graph_of(plan, info, values)
  local builder, first, layers = graphs.new { name = plan.network }, edges_of(plan), {}
  local carried, gradient
  for layer = 0, plan.layers - 1 do
    local size, name = size_of(plan, info, layer), ('block_%d/layer'):format(layer)
    local kept_bytes = 4 * plan.micro_batch * size.act_mem_floats
    local sent, kept = builder:add { name = name, type = 'Work', inputs = { carried },
      outputs = { { bytes = size.sent_bytes }, { bytes = rounded(values.activation_share * kept_bytes) } },
      parameters = { { name = name .. '/weights', shape = { size.params_floats } } },
      persistent_bytes = rounded((values.state_bytes - 8) * size.params_floats),
      workspace_bytes = layer == plan.layers - 1 and rounded(values.logits_share * kept_bytes) or 0 }
    carried, layers[layer] = sent, { name = name, sent = sent, kept = kept, size = size }
  end
  for layer = plan.layers - 1, 0, -1 do
    local own, before = layers[layer], layers[layer - 1]
    local function add(what, kind, phase, inputs, outputs)
      return builder:add { name = what, type = kind, phase = phase, forward = own.name, inputs = inputs,
        outputs = outputs }
    end
    local of_input, weights = add(own.name .. '/grad', 'WorkGrad', 'backward', { gradient or own.sent, own.kept },
      { { bytes = before and before.size.sent_bytes or 0 }, { shape = { own.size.params_floats } } })
    gradient = of_input
    if first[layer] and before then add(('block_%d/send'):format(layer), 'WorkGrad', 'backward', { gradient }, {}) end
    add(own.name .. '/update', 'Update', 'update', { weights }, {})
  end
  return builder:build()
end

--- Returns the bytes/s between two groups by Sailor's measured curve, c2 L^2 + c1 L + c0 GB/s with L = log2(bytes /
--- 1e6), of a message between stages for two sequences of the smaller network; the curves are flat from there.
local function measured_rate(plan, bandwidths, a, b)
  local curve = entry(plan, 'multizone_bandwidths_het.json', bandwidths, a.zone, a.gpu, tostring(a.tp), b.zone, b.gpu,
    tostring(b.tp))
  local c, l = curve[1], math.log(16 * 2 ^ 20 / 1e6) / math.log(2)
  return math.max(1e6, math.min(curve[2], 1e9 * (c[1] * l * l + c[2] * l + c[3])))
end

--- Returns the cluster of a plan: one GPU per group, in the order of a mesh (replicas of the first stage, then of the
--- next). Groups without their own NICs share the bandwidth of their node.
function sailor.cluster(plan, bandwidths, values)
  local spec, all = { name = 'sailor', queue = 'receiver', device_types = {}, devices = {}, links = {} },
    util.joined(unpack(plan.groups))
  local function link(from, to, rate, latency_s)
    table.insert(spec.links, { from = from, to = to, latency_s = latency_s,
      bandwidth_bytes_per_s = rate * values.network_share })
  end
  local function name_of(i) return ('stage%d_%d'):format(math.ceil(i / plan.replicas), (i - 1) % plan.replicas + 1) end
  for i, group in ipairs(all) do
    spec.device_types[group.kind] = devices[kinds[group.gpu]]
    spec.devices[i] = { name = name_of(i), type = group.kind }
    if cards[group.gpu] then link(name_of(i), 'network', cards[group.gpu], 2e-6) end
    for j = i + 1, cards[group.gpu] and 0 or #all do
      link(name_of(i), name_of(j), measured_rate(plan, bandwidths, group, all[j]) / group.tp, 20e-6)
    end
  end
  return spec
end

--- Returns the costs of operators for option `cost`: the measured time of layers on a device's group, plus the engine's
--- time where a stage begins or ends; sending a gradient to the previous stage blocks. Of equal devices only the first
--- is asked, which may send no gradient itself.
local function cost_of(plan, data, values, cluster)
  local all, number, kept, first, last = util.joined(unpack(plan.groups)), {}, {}, edges_of(plan)
  for i, device in ipairs(cluster.devices) do number[device.name] = i end
  local function send_s(i)
    local layer = 0
    for s = 1, math.ceil(i / plan.replicas) - 1 do layer = layer + plan.stages[s] end
    local latency_s, rate = cluster:wire(i, i - plan.replicas)
    return latency_s + size_of(plan, data.info, layer - 1).sent_bytes / rate
  end
  return function(op, device)
    local layer, what = op.name:match 'block_(%d+)/(%a+)'
    if not layer or op.collective then return nil end
    local i = number[device.name]
    if what == 'send' then return send_s(math.max(i, plan.replicas + 1)) end
    local key = ('%s %s'):format(all[i].kind, layer)
    kept[key] = kept[key] or times_of(plan, data.profiles, all[i], layer)
    layer = tonumber(layer)
    if op.phase == 'update' then return first[layer] and kept[key].update or 0 end
    local ends = op.phase == 'forward' and first or last
    return kept[key][op.phase] + (ends[layer] and values.slot_s / 2 or 0)
  end
end

--- Returns the seconds per iteration, and the bytes of the fullest GPU as its driver counts them. data: { info,
--- profiles, bandwidths } (sailor.data); values: constants by name; spec: instead of the result of sailor.cluster.
function sailor.predict(plan, data, values, spec)
  local cluster = model.cluster(spec or sailor.cluster(plan, data.bandwidths, values))
  local problem = problems.simulator { graph = graph_of(plan, data.info, values), cluster = cluster,
    cost = cost_of(plan, data, values, cluster) }
  local metrics = problem:evaluate { mesh = { data = plan.replicas, pipeline = #plan.stages }, stages = plan.stages,
    schedule = '1f1b', micro_batches = plan.micro_batches, bucket_bytes = 2 ^ 50 }
  return { predicted = metrics.step_time_s, memory_bytes = metrics.peak_memory_bytes + values.context_bytes }
end

--- The object of a file of --data; nil where it is `optional` and there is none.
local function object(folder, name, optional)
  local path = ('%s/%s'):format(folder, name)
  if core.exists(path) then return check.argument(util.shortened(path), 'file', name, json.read(path), 'table') end
  if optional then return nil end
  util.fail("trinity study fidelity sailor: option '--data': no file %s in %s", name, util.shortened(folder))
end

--- Sizes of layers (info), profiles and bandwidths of a folder, and times of plans that ran again.
local function data_of(folder)
  local data = { info = object(folder, 'llm_info.json'), profiles = object(folder, 'profiles_tmp.json'),
    bandwidths = object(folder, 'providers/multizone_bandwidths_het.json'), again_s = {} }
  local again = folder .. '/measured_again.csv'
  for _, row in ipairs(core.exists(again) and csv.read(again, 'plan', 'real_again_s') or {}) do
    data.again_s[row.plan] = csv.number(again, row, 'real_again_s')
  end
  for network, by_gpu in util.sorted_pairs(data.profiles) do
    for gpu, profile in util.sorted_pairs(by_gpu) do
      by_gpu[gpu] = object(folder, ('%s_%s_measured.json'):format(network, gpu), true) or profile
    end
  end
  return data
end

local function names_below(folder, under, found)
  for _, name in ipairs(core.list_folder(folder .. under)) do
    local path = ('%s/%s'):format(under, name)
    if name:match '%.json$' then found[#found + 1] = { id = path:sub(2) }
    elseif core.exists(('%s%s/.'):format(folder, path)) then names_below(folder, path, found) end
  end
  return found
end

local function calibrated() return require('trinity.cluster.calibrated').sources.sailor end

--- A row of a plan; what is left out together are plans that differ only in the number of replicas. Memory that is less
--- than half of what the plan's tensors take was measured on another GPU than the plan's, and is left out.
local function row_of(plan, id, data)
  local gpus, first_s, values = plan.family == 'gh200' and 'GH200' or 'mixed nodes', plan.measured_s,
    calibrated()[plan.family]
  local configuration = util.map(plan.groups, function(groups)
    return table.concat(util.map(groups, function(group) return ('%s/%d'):format(group.gpu, group.tp) end), ' ')
  end)
  local found = plan.measured_bytes and csv.attempt(sailor.predict, plan, data, values)
  local least_bytes = found and 0.5 * (found.memory_bytes - values.context_bytes) or 0
  return { id = id, place = plan.path, plan = plan, data = data, family = plan.family, runtimes = {},
    measured = first_s and math.sqrt(first_s * (data.again_s[id] or first_s)),
    measured_bytes = (plan.measured_bytes or 0) >= least_bytes and plan.measured_bytes or nil,
    group = ('%s, %s'):format(plan.network, gpus), network_name = plan.network, gpus_text = gpus,
    left_out = ('%s, layers %s, micro-batch %d, %s'):format(plan.network, table.concat(plan.stages, '+'),
      plan.micro_batch, plan.family == 'mixed' and table.concat(configuration, ';') or configuration[1]:match '%S+'),
    plan_text = ('%d stages, %d replicas, micro-batch %d'):format(#plan.stages, plan.replicas, plan.micro_batch) }
end

--- All plans of a folder, each with `id`, its path there; one that is refused is { id, refused }.
function sailor.read(options)
  local data, folder = data_of(options.data), options.plans
  if not core.exists(folder .. '/.') then
    util.fail("trinity study fidelity sailor: option '--plans': %s: no such folder", util.shortened(folder))
  end
  return csv.attempted(names_below(folder, '', {}), function(one)
    local path = ('%s/%s'):format(folder, one.id)
    return row_of(sailor.plan(path, json.read(path), data.info), one.id, data)
  end)
end

function sailor.prediction(row, values)
  local own = (values and values.sources.sailor or calibrated())[row.family]
  return sailor.predict(row.plan, row.data, own)
end

return sailor
