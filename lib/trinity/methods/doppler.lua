-- Doppler (Yao et al. 2026; papers/notes.md "Doppler"): two policies place one node after the other, SEL picking the
-- node among those whose inputs are placed and PLC its device. First both imitate a list scheduler (the longest path
-- first, where it starts first) in the states that they come to, then they learn from the reward of whole placements by
-- REINFORCE. Nodes are contiguous groups of colocation units. Weights depend on neither graph nor cluster.

local array = require 'trinity.base.array'
local nn = require 'trinity.nn'
local nodes_of = require 'trinity.env.nodes'
local options_of = require 'trinity.base.options'
local rollout = require 'trinity.learn.rollout'
local search = require 'trinity.search'
local tensor = require 'trinity.nn.tensor'
local trained = require 'trinity.learn.trained'
local util = require 'trinity.base.util'

local setting = trained.option
local declared = options_of.declare('trinity.DopplerOptions', { extends = search.declared,
  help = 'Settings of methods.doppler.',
  { 'groups', 'integer', 0, least = 0, most = trained.units(512), help = 'nodes; 0: min(units, 256)' },
  setting('samples', 4, 'episodes an update'), setting('baseline_n', 10), setting('load', ''), setting('save', ''),
  { 'hidden', 'integer', 32, least = 1, most = 256, help = 'width of the networks' },
  { 'imitation', 'integer', 30, least = 0, most = 1e9, help = 'updates that imitate a scheduler, at most a quarter' },
  setting('learning_rate', 1e-3), setting('entropy_weight', 1e-3), setting('gradient_norm', 1),
  setting('last_learning_rate', 0), setting('preset', 'default'), setting('learn', true),
  { 'epsilon', 'number', 0, least = 0, most = 1, help = 'of epsilon-greedy choices, falling to 0; 0: softmax' },
})

local published = { samples = 1, hidden = 128, imitation = 2000, learning_rate = 1e-4, last_learning_rate = 1e-7,
  entropy_weight = 1e-2, baseline_n = 100, epsilon = 0.2 } -- what the paper says
local node_features, device_features, rounds, imitation_rate = 5, 6, 6, 1e-3

-- Mean 0 and deviation 1 along a dimension, of the entries that `mask` (1 or 0) keeps.
local function normalised(x, dimension, mask)
  local count = mask and mask:sum(dimension, true) or x:size(dimension)
  local off = (x - (x * (mask or 1)):sum(dimension, true) / count) * (mask or 1)
  return (off / ((off * off):sum(dimension, true) / count + 1e-12):sqrt()):to { dtype = 'float32' }
end

-- Longest paths [n] from every node, over transfers to the next [n, n] (0: no edge).
local function longest_paths(time, transfer)
  local length, edges = time, transfer:gt(0)
  for _ = 1, #time do length = time + ((transfer + length:unsqueeze(1)) * edges):max(2) end
  return length
end

-- The inputs of both policies, times in ns: time [n, devices]; edges (1 or 0) and transfers [n, n] to a node
-- from another; rows [n, 5]: compute, b-level, t-level, transfers in and out.
local function graph_of(problem, n)
  local nodes, tasks = nodes_of.new(problem, n, { node2vec = false }), problem:task_graph()
  local transfer = array.double(n * n)
  for e, to in ipairs(nodes.to) do -- more than 0 says that there is an edge
    transfer[(to - 1) * n + nodes.from[e]] = math.max(tasks:mean_transfer_ns(nodes.edge_bytes[e]), 1e-3)
  end
  transfer = tensor.new(transfer):reshape { n, n }
  local time = tensor.new(nodes.time_s):reshape { n, nodes.devices } * 1e9
  local mean, edges = time:mean(2), transfer:gt(0):to { dtype = 'float32' }
  local b_level, t_level = longest_paths(mean, transfer:transpose(1, 2)), longest_paths(mean, transfer)
  local rows = tensor.stack({ mean, b_level, t_level, transfer:sum(2), transfer:sum(1) }, 2)
  local weights = (transfer * (edges:sum() / transfer:sum():clamp(1e-3))):to { dtype = 'float32' } -- mean 1
  return { n = n, devices = nodes.devices, node_of = nodes.node_of, time = time, edges = edges, transfer = transfer,
    b_level = b_level, rows = rows, nodes = normalised(rows, 1), links = edges + edges:transpose(1, 2),
    weights = weights + weights:transpose(1, 2) }
end

-- A policy's network: an encoder of nodes, which passes messages along edges both ways, and a head of two layers over
-- the features of every choice, in parts that broadcast.
local Network = nn.class 'doppler_network'

function Network:build(spec)
  local hidden, width = spec.hidden, math.max(8, math.floor(spec.hidden / 2))
  local function linear(inputs, outputs) return nn.linear { inputs = inputs, outputs = outputs } end
  self.first, self.message = linear(node_features, hidden), linear(2 * hidden, hidden)
  self.update = nn.gru { inputs = hidden, hidden = hidden }
  self.parts = util.map(spec.parts, function(inputs) return linear(inputs, hidden) end)
  self.mixed, self.score = linear(hidden, width), linear(width, 1)
end

--- Rows of nodes [n, hidden]. A message is linear in its node, by a matrix that is linear in the edge's transfer.
function Network:encode(graph)
  local x = self.first(graph.nodes):relu()
  for _ = 1, rounds do
    local sums = tensor.cat({ graph.links:matmul(x), graph.weights:matmul(x) }, 2)
    x = self.update(self.message(sums):relu():unsqueeze(1), x:unsqueeze(1)):squeeze(1)
  end
  return x:maximum(x * 0.1)
end

function Network:forward(parts)
  local sum = 0
  for i, part in ipairs(self.parts) do sum = sum + part(parts[i]) end
  sum = self.mixed(sum)
  return self.score(sum:maximum(sum * 0.1)):squeeze(3)
end

-- Both policies. An observation has all states of an episode, [episodes, n, ...]: ready nodes, the node that was taken,
-- rows of devices for it, and the nodes on them; actions are nodes and devices [episodes, n, 2].
local Policy = nn.class 'doppler'

function Policy:build(spec)
  self.spec, self.graph = spec, spec.graph
  self.sel = Network { hidden = spec.hidden, parts = { node_features, spec.hidden } }
  self.plc = Network { hidden = spec.hidden, parts = { device_features, node_features, spec.hidden, spec.hidden } }
end

--- Log-probabilities of nodes [states, n], by what SEL encodes of them.
function Policy:select(encoded, ready)
  local rows = normalised(self.graph.rows:unsqueeze(1), 2, ready:unsqueeze(3))
  return self.sel { rows, encoded }:masked_fill(ready:eq(0), -1e9):log_softmax(-1)
end

--- Log-probabilities of devices for nodes [states], by what PLC encodes of them and of those that are on devices.
function Policy:place(encoded, node, rows, on)
  local function of_node(x) return x:index_select(1, node):unsqueeze(2) end
  local there = normalised(on:transpose(2, 3):matmul(encoded), 2)
  return self.plc { normalised(rows, 2), of_node(self.graph.nodes), of_node(encoded), there }:log_softmax(-1)
end

-- Rows [episodes, devices, 6] of where nodes may go: compute there; compute of their inputs there, least start and
-- greatest end of these; the nodes' time there, which the paper's equal devices do not need, and earliest start.
local function device_rows(graph, node, on, start)
  local inputs, transfer = graph.edges:index_select(1, node):unsqueeze(3), graph.transfer:index_select(1, node)
  local there, time_there = on * inputs, on * graph.time
  local ends = start + time_there:sum(3, true)
  local arrival = (ends + transfer:unsqueeze(3) * (1 - on)) * inputs
  local first = start:masked_fill(there:eq(0), math.huge):min(2)
  return tensor.stack({ time_there:sum(2), (there * graph.time):sum(2), first:masked_fill(first:eq(math.huge), 0),
    (there * ends):max(2), graph.time:index_select(1, node), (tensor.cat({ on * ends, arrival }, 2):max(2)) }, 3)
end

-- Samples from every row of log-probabilities: uniformly with probability epsilon, else greedily or by softmax.
local function draw(log_probs, epsilon, greedy, stream)
  local likely = greedy and log_probs:argmax(-1):one_hot(log_probs:size(2)) or log_probs:exp()
  local possible = log_probs:gt(-1e8)
  return tensor.categorical((likely * (1 - epsilon) + possible / possible:sum(2, true) * epsilon):log(), stream)
end

--- Plays `count` episodes: an observation, actions and the devices of all nodes [episodes, n].
function Policy:act(count, epsilon, stream)
  local graph, greedy, o = self.graph, self.spec.greedy, { ready = {}, node = {}, rows = {}, on = {}, device = {} }
  local nodes, places = self.sel:encode(graph), self.plc:encode(graph)
  local on, start = tensor.zeros { count, graph.n, graph.devices }, tensor.zeros { count, graph.n, 1 }
  for t = 1, graph.n do
    local open = 1 - on:sum(3)
    local ready = open:matmul(graph.edges:transpose(1, 2)):eq(0) * open
    local node = draw(self:select(nodes, ready), epsilon, greedy, stream)
    local rows = device_rows(graph, node, on, start)
    local device = draw(self:place(places, node, rows, on), epsilon, greedy, stream)
    o.ready[t], o.node[t], o.rows[t], o.on[t], o.device[t] = ready, node, rows, on, device
    local now = node:one_hot(graph.n):unsqueeze(3) * device:one_hot(graph.devices):unsqueeze(2)
    on, start = on + now, start + (now * rows:select(3, device_features):unsqueeze(2)):sum(3, true)
  end
  for name, list in util.sorted_pairs(o) do o[name] = tensor.stack(list, 2) end
  return o, tensor.stack({ o.node, o.device }, 3), on:argmax(3)
end

--- Log-probabilities and entropies of actions [episodes, n], of nodes and devices together, with gradients.
function Policy:evaluate(o, actions)
  local by_node = self:select(self.sel:encode(self.graph), rollout.rows(o.ready))
  local by_device = self:place(self.plc:encode(self.graph), o.node:flatten(), rollout.rows(o.rows), rollout.rows(o.on))
  local function of(log_probs, choice) return log_probs:gather(2, actions:select(3, choice):reshape { -1, 1 }) end
  local entropies = -(by_node:exp() * by_node):sum(2) - (by_device:exp() * by_device):sum(2)
  return (of(by_node, 1) + of(by_device, 2)):reshape(o.node:size()), entropies:reshape(o.node:size())
end

local function doppler(problem, given)
  local options = trained.preset('doppler', declared, problem, given, published)
  return trained.run('doppler', problem, options, function(run)
    local graph = graph_of(problem, options.groups > 0 and options.groups or math.min(problem.graph.units, 256))
    local policy = Policy { graph = graph, hidden = options.hidden, greedy = options.epsilon > 0, seed = options.seed }
    local imitated = options.learn and options.load == ''
      and math.min(options.imitation, math.floor(options.evaluations / options.samples / 4)) or 0
    local reinforce = trained.reinforce(policy, util.merged(options, { normalize_advantage = true }))
    return { policy = policy, notes = reinforce.notes, resume = reinforce.resume,
      rate = function(number) return number <= imitated and math.max(imitation_rate, options.learning_rate) end,
      play = function(number, stream)
        if not run:more() then return nil end
        local count, epsilon = run:allowance(options.samples), number <= imitated and 1 - (number - 1) / imitated
          or options.epsilon * (1 - run.evaluations / options.evaluations)
        local o, actions, devices = tensor.no_grad(policy.act, policy, count, options.learn and epsilon or 0, stream)
        local rewards = run:evaluate(util.map(devices:totable(), function(device)
          return problem:placement_by_unit(function(unit) return device[graph.node_of[unit]] end)
        end))
        return { observations = { o }, actions = actions:unsqueeze(1), rewards = tensor.new(rewards):unsqueeze(1),
          dones = tensor.ones { 1, count } }
      end,
      learn = function(batch, number, step)
        if number > imitated then return trained.row(reinforce.learn(batch, step, options.entropy_weight)) end
        local o = batch.observations[1]
        local longest, first = (o.ready * (graph.b_level + 1)):argmax(-1), o.rows:select(4, device_features):argmin(-1)
        local log_probs, entropies = policy:evaluate(o, tensor.stack({ longest, first }, 3))
        step(-log_probs:mean() - entropies:mean() * options.entropy_weight)
        return { loss = -log_probs:mean():item(), entropy = entropies:mean():item() }
      end }
  end)
end

return function(methods)
  methods.register('doppler', doppler, { help = 'two policies that imitate a list scheduler, then learn by REINFORCE',
    budget = true, source = 'Yao et al. 2026', options = declared })
end
