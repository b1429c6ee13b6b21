-- trinity.stragglers.expert_load: predicts the step of a strategy whose experts get unequal numbers of tokens.

local balance = require 'trinity.stragglers.balance'
local check = require 'trinity.base.check'
local dispatchers = require 'trinity.stragglers.dispatcher'
local json = require 'trinity.base.json'
local model = require 'trinity.graph.model'
local options_of = require 'trinity.base.options'
local random = require 'trinity.base.random'
local statistics = require 'trinity.base.statistics'
local step_of = require 'trinity.stragglers.step'
local util = require 'trinity.base.util'

local experts = {}

experts.declared = options_of.declare('trinity.ExpertLoadOptions', {
  help = 'Options of trinity.stragglers.expert_load.',
  { 'load', 'any', needed = true,
    as = "'uniform'|string|{ zipf: number }|fun(layer: integer, expert: integer): number",
    help = 'tokens per expert: uniform, a JSON file with a list of counts per layer, Zipf (shuffled), or a function' },
  { 'capacity_factor', 'number', above = 0, most = 1e6, otherwise = 'dropless',
    help = 'maximum tokens of an expert, relative to an even load; other tokens are dropped' },
  { 'place', 'any', 'in_order', as = "'in_order'|'by_load'|fun(layer: integer, loads: number[]): integer[]",
    help = 'experts on ranks: in_order, by_load (the fullest first, to the emptiest rank), or a function' },
  { 'seed', 'integer', 1, least = 0, most = 2 ^ 31, help = 'random seed of the order of experts with Zipf' },
  { 'dispatcher', options_of.words('trinity.TokenDispatcher', dispatchers.names),
    otherwise = "the strategy's all-to-alls",
    help = "of Megatron-LM: its messages of 16 bits, and its passes over memory in place of the constant 'routing'" },
  { 'group_topk', 'integer', least = 1, most = 65536, otherwise = 'all',
    help = 'with dispatcher: ranks whose experts a token may use (--moe-router-group-topk, one group per rank)' },
})


local function starts_with(text, start) return text:sub(1, #start) == start end
local function is_permutation(op) return op.type:find '^ExpertDispatch' or op.type:find '^ExpertCombine' end

--- Returns the expert layers in the order of the network. The common prefix of their matmuls is their `name`
--- ('layer_1/feed_forward/experts/'). all: experts of all ranks; experts, tokens: of one rank, tokens of one expert.
local function layers_of(owner, graph, step)
  local layers, by_name, of_matmul = {}, {}, {}
  for i = 1, graph.operators do
    local op = graph:operator(i)
    local weights, out, name = op.parameters[1], op.outputs[1], op.name:match '^.*/' or op.name
    if op.type == 'Einsum' and weights and out and #weights.shape == 3 and #(out.shape or {}) == 3
      and weights.shape[1] == out.shape[1] and out.shape[1] > 1 then
      if not by_name[name] then
        by_name[name] = { name = name, around = name:match '^(.*/)[^/]*/$' or name, all = out.shape[1],
          top_k = op.attributes.experts_per_token, groups = op.attributes.expert_groups,
          groups_used = op.attributes.group_topk, padded = op.inputs[1].dtype == 'float8',
          token_bytes = op.inputs[1].shape[3] * (op.inputs[1].dtype == 'float32' and 4 or 2) }
        layers[#layers + 1] = by_name[name]
      end
      of_matmul[i] = by_name[name]
    end
  end
  for i, op in ipairs(step.ops) do
    local layer = op.phase == 'forward' and of_matmul[step.low.origin[i]]
    if layer then layer.experts, layer.tokens = unpack(op.outputs[1].shape) end
  end
  if #layers > 0 then return layers end
  util.fail("%s: strategy: expected experts with one operator per matmul (as from a config.json), got graph '%s'",
    owner, graph.name)
end

--- Returns whether a tensor has rows for every expert of a rank.
local function is_of(layer, tensor)
  local shape = tensor.shape or {}
  return #shape >= 2 and shape[1] == layer.experts and shape[2] == layer.tokens
end

--- Returns the expert layer of an operator of the lowered graph: an operator with the prefix of its matmuls, or an
--- all-to-all, reduction, dispatch or combination next to them; nil for other operators.
local function layer_of(layers, op)
  for _, layer in ipairs(layers) do
    if starts_with(op.name, layer.around) then
      if is_permutation(op) then return layer end
      local is_near = starts_with(op.name, layer.name) or op.type:find '^AllToAll' or op.type == 'Sum'
      for _, tensor in ipairs(is_near and util.joined(op.inputs, op.outputs) or {}) do
        if is_of(layer, tensor) then return layer end
      end
    end
  end
end

--- Returns a function: number of a layer, its experts -> tokens of each, in any unit; and its source, for messages.
local function tokens_of(owner, options, count)
  local load, source = options.load, "option 'load'"
  local weight = load == 'uniform' and function() return 1 end or type(load) == 'function' and load
  if weight then
    return function(layer, all) return util.listed(all, function(e) return weight(layer, e) end) end, source
  end
  if type(load) == 'string' and load:find '%.json$' then
    source = util.shortened(load)
    local function sized(list, size, expected)
      if type(list) == 'table' and #list == size then return list end
      util.fail('%s: %s: %s, got %s', owner, source, expected:format(size),
        type(list) == 'table' and tostring(#list) or util.describe(list))
    end
    local rows = sized(json.read(load), count, 'expected a list of %d layers')
    return function(layer, all)
      return sized(rows[layer], all, ('layer %d: expected counts of %%d experts'):format(layer))
    end, source
  end
  if type(load) ~= 'table' or type(load.zipf) ~= 'number' or not (load.zipf >= 0 and load.zipf <= 100) then
    check.wrong(owner, 'option', 'load', load, "'uniform', a file .json, { zipf = 0 to 100 } or a function")
  end
  return function(layer, all)
    local stream, order = random(options.seed, 'expert load', layer), util.listed(all, function(e) return e end)
    for e = all, 2, -1 do
      local other = stream:integer(e)
      order[e], order[other] = order[other], order[e]
    end
    stream:close()
    return util.map(order, function(rank) return rank ^ -load.zipf end)
  end, source
end

--- Returns the experts of a layer in the order of the ranks.
local function placed(owner, options, layer, loads, ranks, totals)
  local place = options.place
  if place == 'in_order' then return util.listed(#loads, function(e) return e end) end
  if place == 'by_load' then -- of equal ranks, to the one with the least tokens of previous layers
    local items = util.map(loads, function(load, e) return { work = load, size = 1, expert = e } end)
    local bins = balance(items, ranks, #loads / ranks, totals)
    return util.map(util.joined(unpack(bins)), function(item) return item.expert end)
  end
  if type(place) ~= 'function' then
    check.wrong(owner, 'option', 'place', place, "'in_order', 'by_load' or a function")
  end
  local order, seen = place(layer, loads), {}
  for k = 1, #loads do
    local e = type(order) == 'table' and order[k]
    if not loads[e] or seen[e] then
      util.fail('%s: the function at %s returned %s for layer %d, expected every expert from 1 to %d once', owner,
        util.function_place(place), util.describe(e or order), layer, #loads)
    end
    seen[e] = true
  end
  return order
end

--- Sets the expert loads of every layer by rank (1: an even load): `loads`, their mean `factor`, and the largest mean,
--- `most`. Returns the largest factors, and the dropped fraction.
local function place_loads(owner, options, layers, ranks)
  local facts, totals = { rank_factor = 0, expert_factor = 0, dropped = 0 }, {}
  local tokens, source = tokens_of(owner, options, #layers)
  for number, layer in ipairs(layers) do
    local sum, given = 0, tokens(number, layer.all)
    for e = 1, layer.all do
      local load = given[e]
      if type(load) ~= 'number' or not (load >= 0 and load < math.huge) then
        util.fail('%s: %s: layer %d, expert %d: expected 0 or more tokens, got %s', owner, source, number, e,
          util.describe(load))
      end
      sum = sum + load
    end
    if not (sum > 0 and sum < math.huge) then
      util.fail('%s: %s: layer %d: expected a finite sum above 0, got %g', owner, source, number, sum)
    end
    local loads = util.map(given, function(tokens_of_one)
      local load = tokens_of_one * layer.all / sum
      local kept = math.min(load, options.capacity_factor or load)
      facts.dropped = facts.dropped + (load - kept) / layer.all / #layers
      facts.expert_factor = math.max(facts.expert_factor, kept)
      return kept
    end)
    local order = placed(owner, options, number, loads, ranks, totals)
    layer.loads, layer.factor, layer.most = {}, {}, 0
    for rank = 0, ranks - 1 do
      local own = util.listed(layer.experts, function(k) return loads[order[rank * layer.experts + k]] end)
      layer.loads[rank], layer.factor[rank] = own, statistics.mean(own)
      layer.most = math.max(layer.most, layer.factor[rank])
    end
    facts.rank_factor = math.max(facts.rank_factor, layer.most)
  end
  return facts
end

--- Returns what a dispatcher needs to know of a rank with `most` times the tokens of an even load.
local function dispatched(options, layer, most)
  local groups = options.group_topk and { group_topk = options.group_topk }
    or { expert_groups = layer.groups, group_topk = layer.groups_used }
  return util.merged(layer, { tokens = most * layer.experts * layer.tokens / layer.top_k, experts = layer.all }, groups)
end

--- Returns a function: node, its layer, whether the load is even, seconds as simulated -> its seconds.
local function times_of(options, step, cluster, ranks, rank_of)
  local function moved_s(device, bytes, launch_s) -- through memory
    local kind = model.device_type(cluster, device.type)
    return ((launch_s or kind.launch_s or 0)
      + bytes / kind.memory_bandwidth_bytes_per_s / (kind.memory_efficiency or 0.75)) / device.speed
  end
  --- Matmuls of all experts, one after the other; each takes at least the time to read its weights.
  local function matmuls_s(op, loads, device, even_s)
    local weight_bytes = (step.ops[op.forward] or op).parameter_bytes
    local launch_s = math.min(even_s, moved_s(device, 0))
    local each_s, sum_s, is_even = (even_s - launch_s) / #loads, launch_s, true
    local least_s = math.min(each_s, moved_s(device, weight_bytes / #loads, 0))
    for _, load in ipairs(loads) do sum_s, is_even = sum_s + math.max(each_s * load, least_s), is_even and load == 1 end
    return is_even and even_s or sum_s -- without rounding
  end
  local function ordered_s(device, layer, factor)
    return moved_s(device, dispatchers.permuted_bytes(options.dispatcher, ranks, dispatched(options, layer, 1), factor))
  end
  local function message_s(node, layer, most, even_s)
    local name, op = options.dispatcher, node.op
    if name and op.outputs[1].shape[3] == 1 and name ~= 'alltoall' then return 0 end -- weights travel with tokens
    if name and op.outputs[1].shape[3] > 1 then
      local is_first = op.phase == 'forward' and is_of(layer, op.outputs[1])
      return dispatchers.message_s(name, cluster, node.devices, dispatched(options, layer, most),
        is_first and ordered_s(cluster.devices[node.device], layer, 1) or nil)
    end
    local function exchange_s(bytes)
      return cluster:collective({ kind = 'all_to_all', devices = node.devices, bytes = bytes }).time_s
    end
    local bytes = node.op.outputs[1].bytes
    return even_s * (exchange_s(math.floor(bytes * most + 0.5)) / exchange_s(bytes))
  end
  return function(node, layer, is_even, even_s)
    local op, device = node.op, cluster.devices[node.device]
    if node.kind == 'collective' then
      return op.type:find '^AllToAll' and message_s(node, layer, is_even and 1 or layer.most, even_s) or even_s
    end
    local rank = rank_of(node.device)
    local factor = is_even and 1 or layer.factor[rank]
    if is_permutation(op) then
      return options.dispatcher and ordered_s(device, layer, factor) or even_s
    end
    if is_even or not op.type:find '^Einsum' then return even_s * factor end
    return matmuls_s(op, layer.loads[rank], device, even_s)
  end
end

--- Returns the peak memory of a device with changed tensors. events: { time_s, 0, bytes more } each.
local function peak_of(timeline, device, events)
  local bytes, more, even, uneven = 0, 0, 0, 0
  for _, level in ipairs(timeline:memory(device)) do
    events[#events + 1] = { level.time_s, level.bytes - bytes, 0 }
    bytes = level.bytes
  end
  table.sort(events, function(a, b) return a[1] < b[1] end)
  bytes = 0
  for k, event in ipairs(events) do
    bytes, more = bytes + event[2], more + event[3]
    if not events[k + 1] or events[k + 1][1] > event[1] then
      even, uneven = math.max(even, bytes), math.max(uneven, bytes + more)
    end
  end
  return timeline.metrics:memory_bytes(device) + math.floor(uneven - even + 0.5)
end

local views = { Reshape = true, Flatten = true }

--- Returns the changes of every device's expert tensors, each from its writer's start to its last reader's end, and of
--- rows that a dispatcher holds from the dispatch to the combination of a micro-batch.
local function changes_of(options, step, ranks, layer_of_op, rank_of)
  local rows, changes, count, since_s = step.graph:csr 'out', {}, #step.ops, {}
  local function change(device, from_s, to_s, bytes)
    local events = changes[device] or {}
    changes[device], events[#events + 1] = events, { from_s, 0, bytes }
    events[#events + 1] = { to_s, 0, -bytes }
  end
  for task = 1, step.timeline.tasks do
    local i, node, device = (task - 1) % count + 1, step.node_of[task], step.timeline.device[task]
    local op, layer = step.ops[i], node and layer_of_op[step.ops[i]]
    for _, tensor in ipairs(layer and not views[op.type] and op.outputs or {}) do
      local more = is_of(layer, tensor) and layer.factor[rank_of(device)] - 1 or 0
      if more ~= 0 then
        local end_s = node.end_s
        for e = rows.first[i], rows.first[i + 1] - 1 do
          local reader = step.node_of[task - i + rows.target[e]]
          if reader then end_s = math.max(end_s, reader.end_s) end
        end
        change(device, node.start_s, end_s, more * tensor.bytes)
      end
    end
    if options.dispatcher and layer and op.phase == 'forward' and is_permutation(op) then
      local key = ('%s %d %d'):format(layer.name, device, node.micro_batch)
      local from_s = since_s[key]
      since_s[key] = node.end_s
      if from_s then change(device, from_s, node.end_s, dispatchers.held_bytes(options.dispatcher, ranks,
        dispatched(options, layer, 1), layer.factor[rank_of(device)])) end
    end
  end
  return changes
end

--- Returns { facts, even_s, time_s } of a step whose experts have this load: the facts of trinity.ExpertLoad, and the
--- seconds of every node with an even load and with this one.
function experts.load(owner, strategy, step, options)
  if not strategy.mesh then util.fail('%s: strategy: expected a mesh, got a placement', owner) end
  local cluster, ranks = strategy.problem.cluster, strategy.mesh.expert or 1
  local layers, layer_of_op = layers_of(owner, strategy.problem.graph, step), {}
  if options.group_topk and not options.dispatcher then
    check.refuse(owner, 'option', 'group_topk', "expected option 'dispatcher' with it")
  end
  if options.dispatcher and not layers[1].top_k then
    util.fail("%s: option 'dispatcher': expected matmuls with attribute 'experts_per_token', got none", owner)
  end
  for _, op in ipairs(step.ops) do layer_of_op[op] = layer_of(layers, op) end
  local function rank_of(device) return step.low.coordinates.data[device] % ranks end
  local facts, time_of = place_loads(owner, options, layers, ranks), times_of(options, step, cluster, ranks, rank_of)
  local function seconds(is_even)
    return util.map(step.nodes, function(node, i)
      local layer = layer_of_op[node.op or 0]
      return layer and time_of(node, layer, is_even, step.time_s[i]) or step.time_s[i]
    end)
  end
  local changes = changes_of(options, step, ranks, layer_of_op, rank_of)
  facts.peak_memory_bytes = -1
  for d, device in ipairs(cluster.devices) do
    local bytes = changes[d] and peak_of(step.timeline, d, changes[d]) or step.timeline.metrics:memory_bytes(d)
    if bytes > facts.peak_memory_bytes then facts.peak_memory_bytes, facts.fullest_device = bytes, device.name end
  end
  return { facts = facts, even_s = options.dispatcher and seconds(true) or step.time_s, time_s = seconds(false) }
end

--- Predicts the step of a strategy with unequal expert load: matmuls by the tokens of each expert, all-to-alls by their
--- fullest rank, memory of the fullest device. The order of work is the one of an even load. Raises an error if the
--- strategy has no experts. Example: `trinity.stragglers.expert_load(strategy, { load = { zipf = 0.5 } }).slowdown`
---@param strategy trinity.Strategy
---@param options trinity.ExpertLoadOptions
---@return trinity.ExpertLoad
function experts.expert_load(strategy, options)
  local owner = 'trinity.stragglers.expert_load'
  check.object(owner, 1, 'strategy', strategy, 'strategy')
  local step = step_of(owner, strategy)
  local loaded = experts.load(owner, strategy, step, experts.declared:read(owner, 2, 'options', options))
  local time_s, even_s = step.run(loaded.time_s), step.run(loaded.even_s)
  return util.merged(loaded.facts, { step_time_s = time_s, slowdown = time_s / even_s })
end

return experts
