-- The tasks of a simulated step in simulation order: computation, transfers, collectives.

local simulator = require 'trinity.strategy.simulator'
local tasks = require 'trinity.stragglers.tasks'
local util = require 'trinity.base.util'

local most_tasks = 2e6

--- Returns a function: two devices -> the queues that a message between them occupies under the cluster's rule.
local function queues_of(cluster)
  local rule, known = cluster.queue, {}
  return function(from, to)
    local pair = from * 1048576 + to
    known[pair] = known[pair] or rule == 'sender' and { from } or rule == 'pair' and { pair }
      or (rule == 'route' or rule == 'fair') and cluster:route(from, to) or {}
    return known[pair]
  end
end

--- Returns { nodes, earlier (of each the ones that it waits for), node_of (by task of the timeline), time_s, run, low,
--- graph, ops, timeline }; a node is { number, kind, start_s, end_s, device, devices (all), micro_batch, stage, op }.
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
  if timeline.tasks > most_tasks then
    util.fail('%s: strategy: expected at most %.0f tasks, got %.0f; use fewer replicas, layers or micro-batches', owner,
      most_tasks, timeline.tasks)
  end
  local graph, count, device = inner.graph, inner.graph.operators, timeline.device
  local ops = util.listed(count, function(i) return graph:operator(i) end)
  local nodes, node_of, earlier, queues, members, sent = {}, {}, {}, {}, {}, {}
  local function occupy(queue, node)
    queues[queue] = queues[queue] or {}
    table.insert(queues[queue], node)
  end
  local function add(node, of)
    nodes[#nodes + 1], earlier[#earlier + 1] = node, {}
    node.number, node.start_s, node.end_s, node.micro_batch = #nodes, of.start_s, of.end_s, of.micro_batch
    return node
  end
  local function after(node, before) -- a task that ends later in this step is no predecessor
    if before and before ~= node and before.end_s <= node.start_s then earlier[node.number][before.number] = true end
  end

  for i, op in ipairs(ops) do
    if op.collective then
      members[op.collective] = members[op.collective] or {}
      table.insert(members[op.collective], i)
    end
  end
  for task = 1, timeline.tasks do
    local i, start_s = (task - 1) % count + 1, timeline.start_s[task]
    if start_s == start_s and not ops[i].collective then -- NaN: it does not run
      node_of[task] = add({ kind = ops[i].phase, device = device[task], op = ops[i], stage = low and low.stage
        and low.stage[i] }, { start_s = start_s, end_s = timeline.end_s[task],
        micro_batch = math.floor((task - 1) / count) + 1 })
      occupy(-device[task], node_of[task])
    end
  end
  local queues_between = queues_of(problem.cluster)
  local function message(kind, of, devices, op)
    local node = add({ kind = kind, device = devices[1], devices = devices, op = op }, of)
    for k, from in ipairs(devices) do
      local to = devices[k + 1] or kind == 'collective' and devices[1] -- around a ring
      for _, queue in ipairs(to and to ~= from and queues_between(from, to) or {}) do occupy(queue, node) end
    end
    return node
  end
  for _, run in ipairs(timeline:collectives()) do
    local own, devices = members[run.collective], {}
    local function task_of(i) return (run.micro_batch - 1) * count + i end
    for _, i in ipairs(own) do devices[device[task_of(i)]] = true end
    local node = message('collective', run, util.sorted_keys(devices), ops[own[1]])
    for _, i in ipairs(own) do node_of[task_of(i)] = node end
  end
  for _, transfer in ipairs(timeline:transfers()) do
    local node, to = message('send', transfer, { transfer.from, transfer.to }), sent[transfer.task] or {}
    after(node, node_of[transfer.task])
    sent[transfer.task], to[transfer.to] = to, to[transfer.to] or {}
    table.insert(to[transfer.to], node)
  end

  local rows = graph:csr 'in'
  for task = 1, timeline.tasks do
    local node, i, own = node_of[task], (task - 1) % count + 1, math.floor((task - 1) / count)
    for e = rows.first[i], node and rows.first[i + 1] - 1 or -1 do
      local source = rows.source[e]
      -- accumulated values come from every micro-batch
      local is_sum = ops[i].phase == 'update' and ops[source].phase ~= 'update'
      for micro_batch = is_sum and 0 or own, is_sum and timeline.micro_batches - 1 or own do
        local written = micro_batch * count + source
        after(node, node_of[written])
        for _, transfer in ipairs((sent[written] or {})[device[task]] or {}) do after(node, transfer) end
      end
    end
  end
  for _, queue in util.sorted_pairs(queues) do
    table.sort(queue, util.by('start_s', 'end_s', 'number'))
    local open = {} -- latest start first: no node that ended followed them; messages of several groups overlap
    for _, node in ipairs(queue) do
      local latest_s, still = 0, { node }
      for _, before in ipairs(open) do
        if latest_s == 0 and before.end_s <= node.start_s then latest_s = before.start_s end
        if before.end_s >= latest_s then
          after(node, before)
          still[#still + 1] = before
        end
      end
      open = still
    end
  end

  earlier = util.map(earlier, util.sorted_keys)
  local step = tasks.new('step', earlier)
  local time_s = util.map(nodes, function(node) return node.end_s - node.start_s end)
  local step_s, quiet_s = timeline.metrics.step_time_s, (step(time_s))
  if math.abs(quiet_s - step_s) > 1e-6 * step_s then
    util.fail("%s: strategy: expected a step that a fixed order reproduces, got %.6g s, and %.6g s in that order; "
      .. "the cluster's transfers contend by rule '%s'", owner, step_s, quiet_s, problem.cluster.queue)
  end
  --- Returns the seconds of the step where its nodes take these, the nodes on its critical path, and their starts.
  local function run(seconds)
    local changed_s, path, start_of = step(seconds) -- metrics: mean of a period of `sync.every`
    return found.metrics.step_time_s + (changed_s - quiet_s), path, start_of
  end
  return { nodes = nodes, node_of = node_of, time_s = time_s, run = run, low = low, graph = graph, ops = ops,
    timeline = timeline, earlier = earlier }
end
