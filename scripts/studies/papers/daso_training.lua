-- The time of a data-parallel training, one device per replica: with an all-reduce of gradients in every step, or with
-- DASO.
--
-- Computation and reductions during the backward pass are simulated as a step: a graph of trinity.graph:replicate on
-- the cluster. DASO's communication of weights between steps takes the time of cluster:collective. All nodes take
-- equally long, so one clock serves them. Another clock belongs to the network between them, which carries one sum at
-- a time while the nodes go on. Simplification: background messages of DASO do not slow the all-reduce inside nodes
-- (on the intended clusters, they use different links).

local array = require 'trinity.base.array'
local daso = require 'trinity.dist.daso'
local graphs = require 'trinity.graph'
local simulator = require 'trinity.strategy.simulator'
local util = require 'trinity.base.util'

local training = {}

--- Returns the synchronization by an all-reduce of gradients in buckets of `bucket_bytes`; 0: one after the backward
--- pass.
function training.all_reduce(algorithm, bucket_bytes) return { algorithm = algorithm, bucket_bytes = bucket_bytes } end

--- Returns the synchronization by DASO, with the options of daso.schedule that do not follow from the training.
function training.daso(options) return { daso = daso.cycling:read('training.daso', 1, 'options', options) } end

local Run = {}
Run.__index = Run

--- Makes the training of a graph on all devices of a cluster, whose nodes have equal numbers of devices.
function training.new(graph, cluster, synchronization)
  local nodes = {}
  for _, device in ipairs(cluster.devices) do
    if nodes[#nodes] ~= device.node then nodes[#nodes + 1] = device.node end
  end
  return setmetatable({ graph = graph, cluster = cluster, synchronization = synchronization, nodes = #nodes,
    per_node = #cluster.devices / #nodes, times = {} }, Run)
end

local function simulate(self, graph, placement, rules)
  return simulator.run('training', simulator.make('training', { graph = graph, cluster = self.cluster,
    rules = rules }), placement)
end

--- Simulates a step of the first `replicas` devices, with gradients averaged in buckets. A single replica has no
--- all-reduce.
local function step_s(self, replicas, bucket_bytes, algorithm)
  local graph, origin, replica = self.graph:replicate { replicas = replicas,
    placement = array.filled(self.graph.operators, 1), algorithm = algorithm,
    bucket_bytes = bucket_bytes > 0 and bucket_bytes or 2 ^ 50 }
  local placement, gathers = array.int32(graph.operators), {}
  for i = 1, #placement do
    if origin[i] > 0 then placement[i] = replica[i] + 1 else gathers[#gathers + 1] = i end
  end
  for _, i in ipairs(gathers) do placement[i] = placement[graph:predecessors(i)[1]] end
  local metrics = simulate(self, graph, placement)
  if not metrics.feasible then
    util.fail('a replica of %s does not fit the memory of %s', self.graph.name, self.cluster.name)
  end
  return metrics.step_time_s
end

local function once(self, key, body, ...)
  if not self.times[key] then self.times[key] = body(...) end
  return self.times[key]
end

local function compute_s(self) return once(self, 'one', step_s, self, 1, 0) end

--- Returns the time of a step with gradients averaged inside nodes, in buckets.
local function node_step_s(self)
  if self.per_node == 1 then return compute_s(self) end
  return once(self, 'node', step_s, self, self.per_node, 25000000, 'automatic')
end

local function world_step_s(self, bucket_bytes, algorithm)
  return once(self, ('world %d %s'):format(bucket_bytes, algorithm), step_s, self, #self.cluster.devices, bucket_bytes,
    algorithm)
end

--- Returns the time of a collective over a fraction of the parameters of replicas (from 0).
local function collective_s(self, kind, replicas, share)
  return self.cluster:collective({ kind = kind, algorithm = 'automatic',
    devices = util.map(replicas, function(r) return r + 1 end),
    bytes = math.floor(self.graph.parameter_bytes * share) }).time_s
end

--- Returns the time to add `inputs` parameter buffers on the first device: one to pack, two to merge.
local function addition_s(self, inputs)
  local builder, read, bytes = graphs.new { name = 'addition' }, {}, self.graph.parameter_bytes
  for i = 1, inputs do
    read[i] = builder:add { name = 'buffer' .. i, type = 'Input', outputs = { { bytes = bytes } } }
  end
  builder:add { name = 'sum', type = 'Add', inputs = read, outputs = { { bytes = bytes } } }
  local graph = builder:build()
  return simulate(self, graph, array.filled(graph.operators, 1), { memory = 'none' }).step_time_s
end

--- DASO on the clocks of all nodes and of the network between them.
local Daso = {}
Daso.__index = Daso

function Daso:compute(gradients)
  local batch_s = gradients == 'world' and world_step_s(self.run, 25000000, 'automatic') or
    gradients == 'node' and self.node_s or self.alone_s
  self.now_s = self.now_s + batch_s
end

--- The nodes wait until the sum has arrived that this batch sent (`sent_s`), or the one before (`earlier_s`).
function Daso:wait(field)
  self.now_s = math.max(self.now_s, self[field])
  self[field] = nil
end

--- Parameters sent by the batch are under way from now on.
function Daso:end_batch()
  self.earlier_s, self.sent_s = self.sent_s or self.earlier_s, nil
end

local actions = {}

function actions.send(self, action)
  local run, share, members = self.run, action.bfloat16 and 0.5 or 1, {}
  for node = 0, run.nodes - 1 do members[node + 1] = node * run.per_node + action.group end
  self.now_s = self.now_s + self.pack_s
  self.network_free_s = math.max(self.now_s, self.network_free_s) +
    once(run, ('global %d %g'):format(action.group, share), collective_s, run, 'all_reduce', members, share)
  self.sent_s = self.network_free_s
end

function actions.merge(self)
  self:wait 'earlier_s'
  self.now_s = self.now_s + self.merge_s
end

function actions.average(self)
  self:wait 'sent_s'
  self.now_s = self.now_s + self.pack_s
end

function actions.broadcast(self, action)
  local run, node = self.run, {}
  if run.per_node == 1 then return end
  for r = 0, run.per_node - 1 do node[r + 1] = r end
  self.now_s = self.now_s + once(run, 'broadcast ' .. action.group, collective_s, run, 'broadcast', node, 1)
end

--- Returns a DASO epoch, simulated batch by batch: its time and its skips.
local function daso_epoch(self, schedule, batches)
  local row = { global_skips = schedule.global_skips, local_skips = schedule.local_skips,
    batches_to_wait = schedule.batches_to_wait, phase = schedule:phase() }
  local start_s = self.now_s
  for _ = 1, batches do
    self:compute(schedule.gradients)
    for _, action in ipairs(schedule:after_batch(batches)) do actions[action.what](self, action) end
    self:end_batch()
  end
  row.time_s = self.now_s - start_s
  return row
end

--- Returns the seconds of a training, and with DASO its epochs. DASO's skips cycle every three epochs, as on a constant
--- loss.
function Run:train(epochs, batches)
  local way = self.synchronization
  if not way.daso then return epochs * batches * world_step_s(self, way.bucket_bytes, way.algorithm) end
  local clock = setmetatable({ run = self, now_s = 0, network_free_s = 0, alone_s = compute_s(self),
    node_s = node_step_s(self), pack_s = once(self, 'pack', addition_s, self, 1),
    merge_s = once(self, 'merge', addition_s, self, 2) }, Daso)
  local schedule = daso.schedule(util.merged({ epochs = epochs, groups = self.per_node, nodes = self.nodes }, way.daso))
  local total_s, rows = 0, {}
  for e = 1, epochs do
    rows[e] = daso_epoch(clock, schedule, batches)
    schedule:after_epoch(1)
    total_s = total_s + rows[e].time_s
  end
  return total_s, rows
end

return training
