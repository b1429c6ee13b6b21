-- trinity.synchronisation: predicts the time of a step, an epoch and a training for data-parallel training of a placed
-- network on a cluster, with a given synchronization.
--
--   local sync = trinity.synchronisation
--   local run = sync.replicate { graph = trinity.model('resnet50', { batch_size = 256 }),
--     cluster = trinity.cluster 'juwels_boosterx16', synchronisation = sync.bsp { algorithm = 'automatic' } }
--   print(run:train({ epochs = 90, batches = 78 }).time_s)
--
-- Replicas fill the devices in order. Computation and reductions during the backward pass are simulated as a step: a
-- graph of trinity.graph:replicate on the cluster. Communication between steps (parameters of DASO and local SGD) takes
-- the time of cluster:collective; transfers of the parameter server are simulated as a graph.
-- engine/strategy/replica_clock.h computes the time of epochs. Simplification: background messages of DASO do not slow
-- the all-reduce inside nodes (on the intended clusters, they use different links).

local core = require 'trinity.core'
local array = require 'trinity.base.array'
local check = require 'trinity.base.check'
local daso = require 'trinity.dist.daso'
local declared = require 'trinity.dist.synchronisation_options'
local fields_of = require 'trinity.base.fields'
local graphs = require 'trinity.graph'
local simulator = require 'trinity.strategy.simulator'
local strategies = require 'trinity.strategy.strategy'
local util = require 'trinity.base.util'

---@class trinity.SynchronisationModule
---@since 0.1.0
local synchronisation = {}

local Way = { __name = 'synchronisation' }
Way.__index = Way
fields_of.class(Way, 'trinity.Synchronisation', 'algorithm bucket_bytes servers asynchronous steps options')

function Way.__tostring(self) return self.text end

local function way(kind, text, fields)
  fields.kind, fields.text = kind, text
  return setmetatable(fields, Way)
end

--- Bulk-synchronous training: gradients of all replicas are averaged in every batch. Example:
--- `trinity.synchronisation.bsp { algorithm = 'ring' }`
---@param options? trinity.BspOptions
---@return trinity.Synchronisation
function synchronisation.bsp(options)
  options = declared.bsp:read('synchronisation.bsp', 1, 'options', options)
  local algorithm, bucket = options.algorithm, options.bucket_bytes
  return way('bsp', ('bsp, %s, %s'):format(algorithm, bucket > 0 and ('buckets of %g MB'):format(bucket / 1e6)
    or 'after backward'), { algorithm = algorithm, bucket_bytes = bucket })
end

--- Parameter servers: replicas send gradients to servers and receive parameters. Example:
--- `trinity.synchronisation.parameter_server { servers = 2 }`
---@param options? trinity.ServerOptions
---@return trinity.Synchronisation
function synchronisation.parameter_server(options)
  options = declared.parameter_server:read('synchronisation.parameter_server', 1, 'options', options)
  local servers, asynchronous = options.servers, options.asynchronous
  return way('parameter_server', ('parameter server, %d servers, %s'):format(servers, asynchronous
    and 'asynchronous' or 'in step'), { servers = servers, asynchronous = asynchronous })
end

--- Local SGD: every replica trains independently; parameters are averaged every `steps` batches and at the end of an
--- epoch. Example: `trinity.synchronisation.local_sgd { steps = 8 }`
---@param options? trinity.LocalSgdOptions
---@return trinity.Synchronisation
function synchronisation.local_sgd(options)
  options = declared.local_sgd:read('synchronisation.local_sgd', 1, 'options', options)
  return way('local_sgd', ('local sgd, %d steps'):format(options.steps), { steps = options.steps,
    algorithm = options.algorithm })
end

--- DASO, with the options of daso.schedule except epochs, groups and nodes. Example: `trinity.synchronisation.daso {
--- warmup_epochs = 2 }`
---@param options? trinity.CyclingOptions
---@return trinity.Synchronisation
function synchronisation.daso(options)
  for _, name in ipairs(type(options) == 'table' and { 'epochs', 'groups', 'nodes' } or {}) do
    if options[name] ~= nil then util.fail("synchronisation.daso: option '%s' follows from the training", name) end
  end
  options = daso.cycling:read('synchronisation.daso', 1, 'options', options)
  return way('daso', options.held and ('daso, global skips %d'):format(options.held.global_skips)
    or ('daso, at most %d global skips'):format(options.max_global_skips), { options = options })
end

---@class trinity.Replication
---@since 0.1.0
---@field graph trinity.Graph
---@field cluster trinity.Cluster
---@field synchronisation trinity.Synchronisation
---@field placement? trinity.Placement
---@field replicas integer
---@field nodes integer
---@field per_node integer maximum number of replicas per node
---@field width integer devices per replica
---@field parameter_bytes integer
---@field device_bytes integer[] parameter bytes by device of a replica
---@field times table<string, number> simulated times so far, in seconds
local Run = { __name = 'replication' }
Run.__index = Run

function Run.__tostring(self)
  return ('%s on %s: %d replicas, %s'):format(self.graph.name, self.cluster.name, self.replicas,
    tostring(self.synchronisation))
end

--- Checks that the devices of a replica are numbered from 1 to `width`.
local function width_of(owner, placement, graph, cluster)
  local width = 1
  for i = 1, placement and #placement or 0 do
    if placement[i] < 1 or placement[i] > #cluster.devices then
      util.fail("%s: option 'placement': operator %d: got device %d of %d", owner, i, placement[i], #cluster.devices)
    end
    width = math.max(width, placement[i])
  end
  if placement and #placement ~= graph.operators then
    util.fail("%s: option 'placement': expected %d entries, got %d", owner, graph.operators, #placement)
  end
  return width
end

--- Returns the replicas of every node, from 0: { node =, first =, last = }, in the order of devices. Raises an error if
--- a replica spans nodes.
local function replicas_by_node(owner, self)
  local list = {}
  for r = 0, self.replicas - 1 do
    local node = self.cluster.devices[r * self.width + 1].node
    for d = 2, self.width do
      if self.cluster.devices[r * self.width + d].node ~= node then
        util.fail('%s: expected every replica within one node, got replica %d on several', owner, r + 1)
      end
    end
    local last = list[#list]
    if last and last.node == node then last.last = r else list[#list + 1] = { node = node, first = r, last = r } end
  end
  return list
end

local function count_of(range) return range.last - range.first + 1 end

--- Returns the maximum number of replicas per node. DASO's groups have one replica per node, so it needs equal nodes.
local function replicas_per_node(owner, self)
  local most, first = 0, self.description[1]
  for _, range in ipairs(self.description) do
    if self.synchronisation.kind == 'daso' and count_of(range) ~= count_of(first) then
      util.fail("%s: option 'synchronisation': daso: expected equal numbers of replicas per node, got %d in '%s', %d "
        .. "in '%s'",
        owner, count_of(first), first.node, count_of(range), range.node)
    end
    most = math.max(most, count_of(range))
  end
  return most
end

--- Returns the parameter bytes on every device of a replica.
local function bytes_by_device(self)
  local bytes, of = {}, self.graph.parameter_bytes_of
  for d = 1, self.width do bytes[d] = 0 end
  for i = 1, self.graph.operators do
    local d = self.placement and self.placement[i] or 1
    bytes[d] = bytes[d] + of[i]
  end
  return bytes
end

--- Adds the data of a strategy for one replica to `given`.
local function from_strategy(owner, given)
  local found = given.strategy
  if found == nil then return given end
  if not strategies.is(found) then check.wrong(owner, 'option', 'strategy', found, 'a strategy') end
  if given.graph or given.placement then
    util.fail("%s: options 'graph' and 'placement' cannot be combined with 'strategy'", owner)
  end
  if found.schedule or (found.micro_batches or 1) > 1 then
    util.fail("%s: option 'strategy': expected a strategy without a schedule, got %s", owner,
      found.schedule or 'micro-batches')
  end
  return { graph = found.problem.graph, placement = found.placement, cluster = given.cluster,
    synchronisation = given.synchronisation, replicas = given.replicas }
end

--- Makes the replication of a network: its replicas and their synchronization. Raises an error if the replicas do not
--- fit the cluster. Example: `trinity.synchronisation.replicate { graph = graph, cluster = cluster, synchronisation =
--- trinity.synchronisation.bsp {} }`
---@param spec trinity.ReplicationSpec
---@return trinity.Replication
function synchronisation.replicate(spec)
  local owner = 'synchronisation.replicate'
  spec = check.needed(owner, from_strategy(owner, declared.replicate:read(owner, 1, 'spec', spec)), 'graph')
  spec.placement = array.placement(owner, 'option', 'placement', spec.placement, spec.graph)
  if spec.placement ~= nil and not array.is_int32(spec.placement) then
    check.wrong(owner, 'option', 'placement', spec.placement, 'a placement')
  end
  local self = setmetatable({ graph = spec.graph, cluster = spec.cluster, synchronisation = spec.synchronisation,
    placement = spec.placement, width = width_of(owner, spec.placement, spec.graph, spec.cluster),
    parameter_bytes = spec.graph.parameter_bytes, times = {} }, Run)
  local most = math.floor(#spec.cluster.devices / self.width)
  self.replicas = spec.replicas or most
  if self.replicas > most then
    util.fail("%s: option 'replicas': %d replicas x %d devices = %d, but the cluster has %d devices", owner,
      self.replicas, self.width, self.replicas * self.width, #spec.cluster.devices)
  end
  self.description = replicas_by_node(owner, self) -- replicas per node
  self.per_node, self.nodes = replicas_per_node(owner, self), #self.description
  self.device_bytes = bytes_by_device(self)
  return self
end

--- Returns a strategy of `problem` with the placement of one replica and this replication. Its file stores both;
--- strategy:train() predicts times. Raises an error if graph or cluster differ. Example:
--- `replication:strategy(problem):save 'bsp.json'`
---@param problem trinity.Problem problem with the same graph and cluster
---@return trinity.Strategy
function Run:strategy(problem)
  check.object('replication:strategy', 1, 'problem', problem, 'problem')
  for _, name in ipairs { 'graph', 'cluster' } do
    if problem[name].fingerprint ~= self[name].fingerprint then
      check.refuse('replication:strategy', 1, 'problem', 'expected the %s of the replication, got %s where the '
        .. 'replication has %s', name,
        problem[name].name, self[name].name)
    end
  end
  local placement = problem:placement()
  for i = 1, self.placement and #placement or 0 do placement[i] = self.placement[i] end
  return strategies.new('replication:strategy', problem, placement, { method = 'replication', replication = self })
end

--- Returns the devices (from 1) of replica `r` (from 0).
local function device_of(self, r, d) return r * self.width + d end

local function price(self, graph, placement, rules)
  return simulator.run('replication', simulator.make('replication', { graph = graph, cluster = self.cluster,
    rules = rules }), placement)
end

--- Simulates a step of replicas `first` to `last` (from 0) with gradients averaged in buckets. A single replica has no
--- all-reduce.
local function simulate(self, first, last, bucket_bytes, algorithm)
  local one = self.placement or array.filled(self.graph.operators, 1)
  local graph, origin, replica = self.graph:replicate { replicas = last - first + 1, placement = one,
    algorithm = algorithm, bucket_bytes = bucket_bytes > 0 and bucket_bytes or 2 ^ 50 }
  local placement, gathers = array.int32(graph.operators), {}
  for i = 1, #placement do
    if origin[i] > 0 then
      placement[i] = device_of(self, first + replica[i], one[origin[i]])
    else
      gathers[#gathers + 1] = i
    end
  end
  for _, i in ipairs(gathers) do placement[i] = placement[graph:predecessors(i)[1]] end
  local metrics = price(self, graph, placement)
  if not metrics.feasible then
    util.fail('replication: a replica of %s does not fit the memory of %s', self.graph.name, self.cluster.name)
  end
  return metrics.step_time_s
end

--- Calls body(...) once per key.
local function once(self, key, body, ...)
  if not self.times[key] then self.times[key] = body(...) end
  return self.times[key]
end

--- Returns a text that is equal for ranges of replicas with equal devices.
local function signature(self, first, last)
  local parts = {}
  for d = device_of(self, first, 1), device_of(self, last, self.width) do
    local device = self.cluster.devices[d]
    parts[#parts + 1] = ('%s %.17g'):format(device.type, device.speed)
  end
  return table.concat(parts, ';')
end

--- Returns the time of one replica alone: the slowest of a node (from 0).
local function compute_s(self, node)
  local slowest, range = 0, self.description[node + 1]
  for r = range.first, range.last do
    slowest = math.max(slowest, once(self, 'one ' .. signature(self, r, r), simulate, self, r, r, 0))
  end
  return slowest
end

--- Returns the time of a node's replicas with gradients averaged inside the node, in buckets.
local function node_step_s(self, node)
  if self.per_node == 1 then return compute_s(self, node) end
  local first, last = self.description[node + 1].first, self.description[node + 1].last
  return once(self, 'node ' .. signature(self, first, last), simulate, self, first, last, 25000000, 'automatic')
end

local function world_step_s(self, bucket_bytes, algorithm)
  return once(self, ('world %d %s'):format(bucket_bytes, algorithm), simulate, self, 0, self.replicas - 1, bucket_bytes,
    algorithm)
end

--- Returns the time of a collective over the parameters of replicas, on all devices of a replica in parallel; `share`:
--- fraction of their bytes.
local function collective_s(self, kind, algorithm, replicas, share)
  local slowest = 0
  for d, bytes in ipairs(self.device_bytes) do
    local devices = util.map(replicas, function(r) return device_of(self, r, d) end)
    slowest = math.max(slowest, self.cluster:collective({ kind = kind, algorithm = algorithm, devices = devices,
      bytes = math.floor(bytes * share) }).time_s)
  end
  return slowest
end

--- Returns the time to add `inputs` parameter buffers on the first device: one to pack, two to merge.
local function addition_s(self, inputs)
  local builder, read = graphs.new { name = 'addition' }, {}
  for i = 1, inputs do
    read[i] = builder:add { name = 'buffer' .. i, type = 'Input', outputs = { { bytes = self.parameter_bytes } } }
  end
  builder:add { name = 'sum', type = 'Add', inputs = read, outputs = { { bytes = self.parameter_bytes } } }
  local graph = builder:build()
  return price(self, graph, array.filled(graph.operators, 1), { memory = 'none' }).step_time_s
end

--- Simulates the transfers of gradients of `workers` replicas to the servers and of parameters back, as a graph.
--- Additions are free.
local function exchange_s(self, workers, servers)
  local builder, sent, place = graphs.new { name = 'parameter server' }, {}, {}
  local share = math.ceil(self.parameter_bytes / servers)
  local function add(name, replica, inputs, outputs)
    local list = util.listed(outputs, function() return { bytes = share } end)
    place[#place + 1] = device_of(self, replica, 1)
    return { builder:add { name = name, type = 'Work', measured_time_s = 0, inputs = inputs, outputs = list } }
  end
  for w = 1, workers do sent[w] = add('gradients' .. w, w - 1, {}, servers) end
  local parameters = {}
  for k = 1, servers do
    local arrived = util.listed(workers, function(w) return sent[w][k] end)
    parameters[k] = add('server' .. k, math.floor((k - 1) * self.replicas / servers), arrived, 1)[1]
  end
  for w = 1, workers do add('worker' .. w, w - 1, parameters, 0) end
  return price(self, builder:build(), array.int32_of(place), { memory = 'none' }).step_time_s
end

local function all_replicas(self) return util.listed(self.replicas, function(r) return r - 1 end) end

--- Returns time_of(node) for every node, from 0.
local function by_node(self, time_of)
  return util.listed(self.nodes, function(node) return time_of(self, node - 1) end)
end

--- Returns the time of an epoch, for a synchronization with equal epochs.
local function even_epoch_s(self, clock, batches)
  local kind, plan, several = self.synchronisation.kind, self.synchronisation, self.replicas > 1
  if kind == 'bsp' then return batches * world_step_s(self, plan.bucket_bytes, plan.algorithm) end
  if kind == 'local_sgd' then
    local average_s = several and collective_s(self, 'all_reduce', plan.algorithm, all_replicas(self), 1) or 0
    return clock:local_sgd_epoch_s(batches, plan.steps, average_s)
  end
  if plan.servers > self.replicas then
    util.fail('replication: servers: got %d, expected at most %d (the number of replicas)', plan.servers, self.replicas)
  end
  local all_s = several and once(self, 'exchange', exchange_s, self, self.replicas, plan.servers) or 0
  local one_s = several and plan.asynchronous and once(self, 'exchange alone', exchange_s, self, 1, plan.servers) or 0
  return clock:server_epoch_s(batches, all_s, one_s, plan.asynchronous)
end

--- DASO on the clocks of all nodes and of the network between them.
local Daso = {}
Daso.__index = Daso

local function new_daso(self, clock)
  return setmetatable({ run = self, clock = clock, sent_bytes = 0, syncs = 0,
    pack_s = once(self, 'pack', addition_s, self, 1), merge_s = once(self, 'merge', addition_s, self, 2) }, Daso)
end

function Daso:compute(gradients)
  if gradients == 'world' then return self.clock:step_of_all(world_step_s(self.run, 25000000, 'automatic')) end
  self.clock:step(gradients == 'node')
end

local function group_members(self, group)
  local list = {}
  for node = 0, self.nodes - 1 do list[node + 1] = node * self.per_node + group end
  return list
end

local moves = {}

function moves.send(self, action)
  local run, share = self.run, action.bfloat16 and 0.5 or 1
  self.clock:add(self.pack_s)
  self.clock:send(once(run, ('global %d %g'):format(action.group, share), collective_s, run, 'all_reduce', 'automatic',
    group_members(run, action.group), share))
  self.syncs, self.sent_bytes = self.syncs + 1, self.sent_bytes + share * run.parameter_bytes
end

function moves.merge(self)
  self.clock:wait_for_earlier()
  self.clock:add(self.merge_s)
end

function moves.average(self)
  self.clock:wait_for_sent()
  self.clock:add(self.pack_s)
end

function moves.broadcast(self, action)
  local run, node = self.run, {}
  if run.per_node == 1 then return end
  for r = 0, run.per_node - 1 do node[r + 1] = r end
  self.clock:add(once(run, 'broadcast ' .. action.group, collective_s, run, 'broadcast', 'automatic', node, 1))
end

--- Returns the time of a DASO epoch, batch by batch.
local function daso_epoch(self, schedule, batches)
  local clock = self.clock
  local row = { global_skips = schedule.global_skips, local_skips = schedule.local_skips,
    batches_to_wait = schedule.batches_to_wait, phase = schedule:phase() }
  local start_s, syncs, bytes = clock:latest_s(), self.syncs, self.sent_bytes
  for _ = 1, batches do
    self:compute(schedule.gradients)
    for _, action in ipairs(schedule:after_batch(batches)) do moves[action.what](self, action) end
    clock:end_batch()
  end
  row.time_s, row.synchronisations = clock:latest_s() - start_s, self.syncs - syncs
  row.global_bytes = self.sent_bytes - bytes
  return row
end

--- Returns the loss of epoch `e` (from 1) for the schedule.
local function loss_of(given, e)
  local value = 1
  if type(given) == 'function' then value = given(e) elseif given ~= nil then value = given[e] or given[#given] end
  if type(value) ~= 'number' then
    util.fail("replication:train: option 'loss': expected a number for epoch %d, got %s", e, util.describe(value))
  end
  return value
end

local most_batches = 1e8

--- Predicts the time of a training with this replication. Example: `replication:train({ epochs = 90, batches = 78
--- }).time_s`
---@param options trinity.ReplicatedTraining
---@return trinity.TrainingTime
function Run:train(options)
  options = declared.train:read('replication:train', 1, 'options', options)
  local epochs, batches, given = options.epochs, options.batches, options.loss
  if given ~= nil and type(given) ~= 'function' and (type(given) ~= 'table' or #given == 0) then
    check.wrong('replication:train', 'option', 'loss', given, 'a list of numbers or a function')
  end
  if epochs * batches > most_batches then util.fail('replication:train: expected at most %d batches in total',
    most_batches) end
  local of_daso = self.synchronisation.kind == 'daso'
  local clock = core.replica_clock(by_node(self, compute_s), of_daso and by_node(self, node_step_s) or {})
  local result = { epochs = {}, time_s = 0, compute_s = epochs * batches * clock:compute_s() }
  local schedule, on_clock, even_s
  if of_daso then
    schedule, on_clock = daso.schedule(util.merged({ epochs = epochs, groups = self.per_node, nodes = self.nodes },
      self.synchronisation.options)), new_daso(self, clock)
  else
    even_s = even_epoch_s(self, clock, batches)
  end
  for e = 1, epochs do
    local row = schedule and daso_epoch(on_clock, schedule, batches) or { time_s = even_s }
    if schedule then schedule:after_epoch(loss_of(given, e)) end
    result.epochs[e], result.time_s = row, result.time_s + row.time_s
  end
  return result
end

check.methods(Run, 'trinity.Replication')

return synchronisation
