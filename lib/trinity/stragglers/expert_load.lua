-- trinity.expert_load: predicts the step of a strategy whose experts get unequal numbers of tokens.

local check = require 'trinity.base.check'
local json = require 'trinity.base.json'
local model = require 'trinity.graph.model'
local options_of = require 'trinity.base.options'
local printed = require 'trinity.base.printed'
local random = require 'trinity.base.random'
local step_of = require 'trinity.stragglers.step'
local util = require 'trinity.base.util'

local owner = 'trinity.expert_load'

local declared = options_of.declare('trinity.ExpertLoadOptions', { help = 'Options of trinity.expert_load.',
  { 'load', 'any', needed = true,
    as = "'uniform'|string|{ zipf: number }|fun(layer: integer, expert: integer): number",
    help = 'tokens per expert: uniform, a JSON file with one list of counts per layer, Zipf with a random order per '
      .. 'layer, or a function' },
  { 'capacity_factor', 'number', above = 0, most = 1e6, otherwise = 'dropless',
    help = 'maximum tokens of an expert, relative to an even load; other tokens are dropped' },
  { 'place', 'any', 'in_order', as = "'in_order'|'by_load'|fun(layer: integer, loads: number[]): integer[]",
    help = 'assignment of experts to ranks: in_order, by_load (the fullest expert first, to the emptiest rank), or a '
      .. 'function' },
  { 'seed', 'integer', 1, least = 0, most = 2 ^ 31, help = 'random seed of the order of experts with Zipf' },
})

---@class trinity.ExpertLoad
---@field step_time_s number
---@field slowdown number step time / step time with even load
---@field rank_factor number maximum tokens of a rank in any layer / tokens of an even load
---@field expert_factor number same, for the fullest expert
---@field dropped number fraction of tokens that capacity_factor drops
---@field peak_memory_bytes number of the fullest device
---@field fullest_device string

local result = printed.as('expert load', { 'step_time_s', 'slowdown', 'rank_factor', 'peak_memory_bytes' })

--- Returns the expert layers by the common prefix of their matmuls ('layer_1/feed_forward/experts/'), for the graph and
--- per rank: { name, number, all, experts, tokens }; all: experts of all ranks.
local function layers_of(graph, step)
  local layers, count, is_product = {}, 0, {}
  for i = 1, graph.operators do
    local op = graph:operator(i)
    local weights, out = op.parameters[1], op.outputs[1]
    if op.type == 'Einsum' and weights and out and #weights.shape == 3 and #(out.shape or {}) == 3
      and weights.shape[1] == out.shape[1] and out.shape[1] > 1 then
      local name = op.name:match '^.*/' or op.name
      if not layers[name] then
        count = count + 1
        layers[name] = { name = name, number = count, all = out.shape[1] }
      end
      is_product[i] = layers[name]
    end
  end
  for i = 1, step.graph.operators do
    local layer = is_product[step.low.origin[i]]
    if layer and not layer.tokens then
      local op = step.graph:operator(i)
      if op.phase == 'forward' then layer.experts, layer.tokens = op.outputs[1].shape[1], op.outputs[1].shape[2] end
    end
  end
  return layers, count
end

--- Returns whether a tensor has rows for every expert of a rank.
local function is_of(layer, tensor)
  local shape = tensor.shape or {}
  return #shape >= 2 and shape[1] == layer.experts and shape[2] == layer.tokens
end

--- Returns the expert layer of an operator of the lowered graph: an operator with the prefix of its matmuls, or an
--- all-to-all or reduction next to them; nil for other operators.
local function layer_of(layers, op)
  for name, layer in util.sorted_pairs(layers) do
    local around = name:match '^(.*/)[^/]*/$' or name
    local is_near = op.name:sub(1, #name) == name or op.name:sub(1, #around) == around
      and (op.type:find '^AllToAll' or op.type == 'Sum')
    for _, list in ipairs(is_near and { op.inputs, op.outputs } or {}) do
      for _, tensor in ipairs(list) do
        if is_of(layer, tensor) then return layer end
      end
    end
  end
end

--- Returns a function from layer and expert to the weight of its tokens.
local function weights_of(options, layers, experts)
  local load = options.load
  if load == 'uniform' then return function() return 1 end end
  if type(load) == 'function' then return load end
  if type(load) == 'string' then
    local rows = json.read(load)
    if type(rows) ~= 'table' or #rows ~= layers then
      util.fail('%s: %s: expected a list of %d layers, got %s', owner, util.shortened(load), layers,
        type(rows) == 'table' and tostring(#rows) or util.describe(rows))
    end
    return function(layer, expert)
      if type(rows[layer]) ~= 'table' or #rows[layer] ~= experts then
        util.fail('%s: %s: layer %d: expected counts of %d experts, got %s', owner, util.shortened(load), layer,
          experts, type(rows[layer]) == 'table' and tostring(#rows[layer]) or util.describe(rows[layer]))
      end
      return rows[layer][expert]
    end
  end
  if type(load) ~= 'table' or type(load.zipf) ~= 'number' or not (load.zipf >= 0 and load.zipf <= 100) then
    check.wrong(owner, 'option', 'load', load, "'uniform', a file .json, { zipf = 0 to 100 } or a function")
  end
  local orders = {}
  return function(layer, expert)
    if not orders[layer] then
      local stream, order = random(options.seed, 'expert load', layer), util.listed(experts, function(e) return e end)
      for e = experts, 2, -1 do
        local other = stream:integer(e)
        order[e], order[other] = order[other], order[e]
      end
      stream:close()
      orders[layer] = order
    end
    return orders[layer][expert] ^ -load.zipf
  end
end

--- Assigns each expert, fullest first, to the emptiest rank with a free slot; of equal ranks, to the emptiest one over
--- previous layers (`totals`).
local function by_load(loads, ranks, totals)
  local order, sums, lists = {}, {}, {}
  for e = 1, #loads do order[e] = e end
  for r = 1, ranks do sums[r], lists[r], totals[r] = 0, {}, totals[r] or 0 end
  table.sort(order, function(a, b)
    if loads[a] ~= loads[b] then return loads[a] > loads[b] end
    return a < b
  end)
  for _, e in ipairs(order) do
    local to
    for r = 1, ranks do
      local emptier = to and (sums[r] < sums[to] or sums[r] == sums[to] and totals[r] < totals[to])
      if #lists[r] < #loads / ranks and (not to or emptier) then to = r end
    end
    table.insert(lists[to], e)
    sums[to], totals[to] = sums[to] + loads[e], totals[to] + loads[e]
  end
  local placed = {}
  for r = 1, ranks do for _, e in ipairs(lists[r]) do placed[#placed + 1] = e end end
  return placed
end

local function placed_experts(options, layer, loads, ranks, totals)
  local place = options.place
  if place == 'in_order' then return util.listed(#loads, function(e) return e end) end
  if place == 'by_load' then return by_load(loads, ranks, totals) end
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

--- Returns for every layer the expert loads by rank (1: an even load), the largest factors, and the dropped fraction.
local function loads_of(options, layers, count, ranks)
  local facts, totals = { rank_factor = 0, expert_factor = 0, dropped = 0 }, {}
  for _, layer in util.sorted_pairs(layers) do
    local experts, loads, sum = layer.all, {}, 0
    local weight = weights_of(options, count, experts)
    for e = 1, experts do
      loads[e] = weight(layer.number, e)
      if type(loads[e]) ~= 'number' or not (loads[e] >= 0 and loads[e] < math.huge) then
        util.fail("%s: option 'load': layer %d, expert %d: expected 0 or more tokens, got %s", owner, layer.number, e,
          util.describe(loads[e]))
      end
      sum = sum + loads[e]
    end
    if sum == 0 then util.fail("%s: option 'load': layer %d: expected tokens, got none", owner, layer.number) end
    for e = 1, experts do
      local load = loads[e] * experts / sum
      loads[e] = math.min(load, options.capacity_factor or load)
      facts.dropped = facts.dropped + (load - loads[e]) / experts / count
      facts.expert_factor = math.max(facts.expert_factor, loads[e])
    end
    layer.loads, layer.factor, layer.most = {}, {}, 0
    local order = placed_experts(options, layer.number, loads, ranks, totals)
    for rank = 0, ranks - 1 do
      local own, total = {}, 0
      for k = 1, layer.experts do
        own[k] = loads[order[rank * layer.experts + k]]
        total = total + own[k]
      end
      layer.loads[rank], layer.factor[rank] = own, total / layer.experts
      layer.most = math.max(layer.most, total / layer.experts)
    end
    facts.rank_factor = math.max(facts.rank_factor, layer.most)
  end
  return facts
end

--- Time of the matmuls of all experts, one after the other; each takes at least the time to read its weights.
local function grouped_s(time_s, loads, weight_bytes, device, kind)
  local launch_s = math.min(time_s, (kind.launch_s or 0) / device.speed)
  local each_s = (time_s - launch_s) / #loads
  local read_s = weight_bytes / #loads / kind.memory_bandwidth_bytes_per_s / (kind.memory_efficiency or 0.75)
  local least_s, sum_s = math.min(each_s, read_s / device.speed), launch_s
  for _, load in ipairs(loads) do sum_s = sum_s + math.max(each_s * load, least_s) end
  return sum_s
end

local views = { Reshape = true, Flatten = true }

--- Returns the peak memory of a device with changed expert tensors. changes: { start_s, end_s, bytes }.
local function peak_of(step, device, changes)
  local times = {}
  local function add(time_s, level, bytes) times[#times + 1] = { time_s, level, bytes } end
  for _, level in ipairs(step.timeline:memory(device)) do add(level.time_s, level.bytes, 0) end
  for _, change in ipairs(changes) do
    add(change.start_s, nil, change.bytes)
    add(change.end_s, nil, -change.bytes)
  end
  for k, entry in ipairs(times) do entry[4] = k end
  table.sort(times, function(a, b)
    if a[1] ~= b[1] then return a[1] < b[1] end
    return a[4] < b[4]
  end)
  local level, more, before, after = 0, 0, 0, 0
  for k, entry in ipairs(times) do
    level, more = entry[2] or level, more + entry[3]
    if not times[k + 1] or times[k + 1][1] > entry[1] then
      before, after = math.max(before, level), math.max(after, level + more)
    end
  end
  return step.timeline.metrics:memory_bytes(device) + math.floor(after - before + 0.5)
end

--- Predicts the step of a strategy with unequal expert load: matmuls by the tokens of each expert, all-to-alls by their
--- fullest rank, memory of the fullest device. The order of work is the one of an even load. Raises an error if the
--- strategy has no experts. Example: `trinity.expert_load(strategy, { load = { zipf = 0.5 } }).slowdown`
---@param strategy trinity.Strategy
---@param options trinity.ExpertLoadOptions
---@return trinity.ExpertLoad
return function(strategy, options)
  check.object(owner, 1, 'strategy', strategy, 'strategy')
  options = declared:read(owner, 2, 'options', options)
  if not strategy.mesh or strategy.order then
    util.fail("%s: argument 1 ('strategy'): expected a mesh in the default order of axes, got %s", owner,
      strategy.mesh and "option 'order'" or 'a placement')
  end
  local step, cluster, ranks = step_of(owner, strategy), strategy.problem.cluster, strategy.mesh.expert or 1
  local layers, count = layers_of(strategy.problem.graph, step)
  if count == 0 then
    util.fail("%s: strategy: expected experts with one operator per matmul (as from a config.json), got graph '%s'",
      owner,
      strategy.problem.graph.name)
  end
  local facts = loads_of(options, layers, count, ranks)
  local about, changes, quiet_s = {}, {}, step.quiet_s
  local function rank_of(device) return step.low.coordinates.data[device] % ranks end
  for i = 1, step.graph.operators do
    local op = step.graph:operator(i)
    local layer = layer_of(layers, op)
    if layer then about[i] = { op = op, layer = layer } end
  end
  local rows = step.graph:csr 'out'
  for i, node in ipairs(step.nodes) do
    local of, time_s = about[node.operator or 0], step.time_s[i]
    if of and node.kind == 'collective' and of.op.type:find '^AllToAll' then
      local query = { kind = 'all_to_all', devices = node.devices, bytes = of.op.outputs[1].bytes }
      local even = cluster:collective(query)
      query.bytes = math.floor(query.bytes * of.layer.most + 0.5)
      time_s = time_s * (cluster:collective(query).time_s / even.time_s)
    elseif of and node.kind ~= 'collective' and node.kind ~= 'send' then
      local rank, device = rank_of(node.device), cluster.devices[node.device]
      local forward = of.op.forward and step.graph:operator(of.op.forward) or of.op
      if of.op.type:find '^Einsum' then
        time_s = grouped_s(time_s, of.layer.loads[rank], forward.parameter_bytes, device,
          model.device_type(cluster, device.type))
      else
        time_s = time_s * of.layer.factor[rank]
      end
    end
    step.tasks:set(i, time_s)
  end
  for task, node in util.sorted_pairs(step.node_of) do
    local op = (task - 1) % step.operators + 1
    local of, device = about[op], step.timeline.device[task]
    for _, tensor in ipairs(of and not views[of.op.type] and of.op.outputs or {}) do
      local more = is_of(of.layer, tensor) and of.layer.factor[rank_of(device)] - 1 or 0
      if more ~= 0 then
        local end_s = node.end_s
        for e = rows.first[op], rows.first[op + 1] - 1 do
          local reader = step.node_of[task - op + rows.target[e]]
          if reader then end_s = math.max(end_s, reader.end_s) end
        end
        changes[device] = changes[device] or {}
        table.insert(changes[device], { start_s = node.start_s, end_s = end_s, bytes = more * tensor.bytes })
      end
    end
  end
  local peak, fullest = -1, nil
  for d = 1, #cluster.devices do
    local bytes = changes[d] and peak_of(step, d, changes[d]) or step.timeline.metrics:memory_bytes(d)
    if bytes > peak then peak, fullest = bytes, cluster.devices[d].name end
  end
  local step_s = strategy.metrics.step_time_s + ((step.tasks:run()) - quiet_s)
  return result(util.merged(facts, { step_time_s = step_s, slowdown = step_s / strategy.metrics.step_time_s,
    peak_memory_bytes = peak, fullest_device = fullest }))
end
