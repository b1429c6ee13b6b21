-- The tasks of a simulated step in simulation order: computation, transfers, collectives.

local array = require 'trinity.base.array'
local simulator = require 'trinity.strategy.simulator'
local tasks_of = require 'trinity.stragglers.tasks'
local util = require 'trinity.base.util'

local most_tasks = 2e6

--- Returns the queues that a transfer or collective occupies under the cluster's rule.
local function queues_of(cluster)
  local routes = {}
  local function route(list, from, to)
    local key = from * 1048576 + to
    routes[key] = routes[key] or cluster:route(from, to)
    for _, channel in ipairs(routes[key]) do list[#list + 1] = channel end
  end
  local by_rule = {
    sender = function(list, from) list[#list + 1] = from end,
    pair = function(list, from, to) list[#list + 1] = from * 1048576 + to end,
    route = route, fair = route,
  }
  local occupy = by_rule[cluster.queue] or function() end
  return function(devices, is_ring)
    local list = {}
    for k, from in ipairs(devices) do
      local to = devices[k + 1] or is_ring and devices[1]
      if to and to ~= from then occupy(list, from, to) end
    end
    return list
  end
end

--- Returns the step as tasks: { tasks, nodes, time_s, low, graph, timeline, quiet_s, node_of }. A node is { kind,
--- start_s, end_s, device, micro_batch, operator, stage }, a collective's with all its devices.
return function(owner, found)
  local problem, inner, low = found.problem, found.problem, nil
  if found.mesh or found.splits then
    local there
    inner, there, low = simulator.lowered(owner, problem, found)
    if there.schedule == 'round-robin' then
      util.fail('%s: strategy: expected a strategy with a step boundary, got an asynchronous one', owner)
    end
  end
  local timeline = simulator.timeline(owner, problem, found)
  local graph, count = inner.graph, inner.graph.operators
  if timeline.tasks > most_tasks then
    util.fail('%s: strategy: expected at most %.0f tasks, got %.0f; use fewer replicas, layers or micro-batches', owner,
      most_tasks, timeline.tasks)
  end
  local phase, members, is_member = {}, {}, {}
  for i = 1, count do
    local op = graph:operator(i)
    phase[i], is_member[i] = op.phase, op.collective ~= nil
    if op.collective then
      members[op.collective] = members[op.collective] or {}
      table.insert(members[op.collective], i)
    end
  end
  local start_s, end_s, device = timeline.start_s, timeline.end_s, timeline.device
  local nodes, node_of, by_device = {}, {}, {}
  local function add(node)
    nodes[#nodes + 1] = node
    node.number, node.earlier = #nodes, {}
    return node
  end
  local function after(node, earlier)
    -- a task that ends later in this step is no predecessor
    if earlier and earlier ~= node and earlier.end_s <= node.start_s then node.earlier[earlier.number] = true end
  end

  for task = 1, timeline.tasks do
    local op = (task - 1) % count + 1
    if start_s[task] == start_s[task] and not is_member[op] then
      local node = add { kind = phase[op], start_s = start_s[task], end_s = end_s[task], device = device[task],
        micro_batch = math.floor((task - 1) / count) + 1, rank = task, operator = op,
        stage = low and low.stage and low.stage[op] }
      node_of[task] = node
      by_device[node.device] = by_device[node.device] or {}
      table.insert(by_device[node.device], node)
    end
  end
  local queues, occupied = queues_of(problem.cluster), {}
  local function occupy(node, devices, is_ring)
    for _, queue in ipairs(queues(devices, is_ring)) do
      occupied[queue] = occupied[queue] or {}
      table.insert(occupied[queue], node)
    end
  end
  for _, run in ipairs(timeline:collectives()) do
    local node = add { kind = 'collective', start_s = run.start_s, end_s = run.end_s, micro_batch = run.micro_batch }
    local devices, seen = {}, {}
    for _, op in ipairs(members[run.collective]) do
      local task = (run.micro_batch - 1) * count + op
      node_of[task] = node
      local at = device[task]
      if not seen[at] then devices[#devices + 1], seen[at] = at, true end
    end
    table.sort(devices)
    node.device, node.devices, node.operator = devices[1], devices, members[run.collective][1]
    occupy(node, devices, true)
  end
  local sent = {}
  for _, transfer in ipairs(timeline:transfers()) do
    local node = add { kind = 'send', start_s = transfer.start_s, end_s = transfer.end_s, device = transfer.from,
      devices = { transfer.from, transfer.to }, micro_batch = transfer.micro_batch }
    after(node, node_of[transfer.task])
    local to = sent[transfer.task] or {}
    sent[transfer.task], to[transfer.to] = to, to[transfer.to] or {}
    table.insert(to[transfer.to], node)
    occupy(node, { transfer.from, transfer.to })
  end

  --- Adds the dependency of `task` on operator `source`: in the same micro-batch or, for accumulated values, in every
  --- one.
  local function reads(node, task, source)
    local micro_batch = math.floor((task - 1) / count)
    local accumulated = phase[(task - 1) % count + 1] == 'update' and phase[source] ~= 'update'
    for m = accumulated and 0 or micro_batch, accumulated and timeline.micro_batches - 1 or micro_batch do
      local written = m * count + source
      after(node, node_of[written])
      for _, transfer in ipairs((sent[written] or {})[device[task]] or {}) do after(node, transfer) end
    end
  end
  local rows = graph:csr 'in'
  for task = 1, timeline.tasks do
    local node, op = node_of[task], (task - 1) % count + 1
    if node then
      for e = rows.first[op], rows.first[op + 1] - 1 do reads(node, task, rows.source[e]) end
    end
  end
  local function chain(list)
    table.sort(list, function(a, b)
      if a.start_s ~= b.start_s then return a.start_s < b.start_s end
      if a.end_s ~= b.end_s then return a.end_s < b.end_s end
      return (a.rank or a.number) < (b.rank or b.number)
    end)
    local last = {} -- last task per kind: some kinds share a queue
    for _, node in ipairs(list) do
      for _, earlier in util.sorted_pairs(last) do after(node, earlier) end
      last[node.kind] = node
    end
  end
  for _, list in util.sorted_pairs(by_device) do chain(list) end
  for _, list in util.sorted_pairs(occupied) do chain(list) end

  local tasks = tasks_of.new 'step'
  for _ = 1, #nodes do tasks:add() end
  for i, node in ipairs(nodes) do
    for earlier in util.sorted_pairs(node.earlier) do tasks:after(i, earlier) end
    node.earlier = nil
  end
  tasks:build()
  local time_s = array.double(#nodes)
  for i, node in ipairs(nodes) do
    time_s[i] = node.end_s - node.start_s
    tasks:set(i, time_s[i])
  end
  local step_s, repeated_s = timeline.metrics.step_time_s, (tasks:run())
  if math.abs(repeated_s - step_s) > 1e-6 * step_s then
    util.fail("%s: strategy: expected a step that a fixed order reproduces, got %.6g s, and %.6g s in that order; "
      .. "the cluster's transfers contend by rule '%s'", owner, step_s, repeated_s, problem.cluster.queue)
  end
  return { tasks = tasks, nodes = nodes, time_s = time_s, low = low, graph = graph, timeline = timeline,
    quiet_s = repeated_s, node_of = node_of, operators = count }
end
