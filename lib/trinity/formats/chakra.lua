-- Execution traces of MLCommons' Chakra, schema 1.0.0 (schema/protobuf/et_def.proto at commit 21585d8): one file per
-- rank, for the simulated step. Operators are COMP nodes, in the order of their device; collectives are COMM_COLL;
-- messages are COMM_SEND and COMM_RECV with a unique tag. All dependencies are in data_deps, because feeders only read
-- these. groups.json has the ranks of every named group. chakra_reader.lua reads these files.

local core = require 'trinity.core'
local ordered = require 'trinity.formats.ordered'
local simulator = require 'trinity.strategy.simulator'
local unsaid = require 'trinity.formats.unsaid'
local util = require 'trinity.base.util'
local wire = require 'trinity.formats.wire'

local chakra = { name = 'chakra', writes = 'execution traces of the simulated step, one file per rank',
  reads = 'traces of all ranks as one network, .et', of = 'Chakra 21585d8 (1.0.0)' }

local said = util.set [[data tensor pipeline context expert stages schedule virtual_stages micro_batches recompute
  sequence_parallel zero_stage optimizer_offload_fraction activation_offload_fraction bucket_bytes cp_comm_type sync
  operators order devices placement splits]]

local types = { comp = 4, send = 5, receive = 6, collective = 7 }
local kinds = { all_reduce = 0, all_gather = 2, broadcast = 5, all_to_all = 6, reduce_scatter = 7 }
local most_nodes = 2 ^ 22

-- Fields of AttributeProto's oneof that Chakra's feeder reads; it treats values in other fields as 0.
local fields = { int32 = 7, int64 = 9, uint64 = 13, bool = 27, string = 29 }

local function attribute(name, kind, value)
  local text = kind == 'string' and wire.bytes(fields.string, value) or wire.chosen_integer(fields[kind], value)
  return wire.bytes(10, wire.text(1, name) .. text)
end

local function micros(seconds) return math.floor(seconds * 1e6 + 0.5) end

-- Returns a node as a record. Start and end are rounded, so that rounding errors of adjacent nodes cancel.
local function encode(node)
  local parts = { wire.integer(1, node.id), wire.text(2, node.name), wire.integer(3, types[node.kind]),
    wire.packed(5, node.deps), wire.integer(6, micros(node.start_s)),
    wire.integer(7, micros(node.end_s) - micros(node.start_s)), attribute('is_cpu_op', 'bool', 0) }
  for _, about in ipairs(node.attributes) do parts[#parts + 1] = attribute(about[1], about[2], about[3]) end
  return wire.record(table.concat(parts))
end

local Trace = {}
Trace.__index = Trace

local function new_trace(strategy)
  local owner = 'export: chakra'
  local self = setmetatable({ nodes = {}, node_of_task = {}, received = {}, groups = {}, group_names = {} }, Trace)
  if strategy.mesh or strategy.splits then
    self.graph = simulator.lowered(owner, strategy.problem, strategy).graph
  else
    self.graph = strategy.problem.graph
  end
  self.timeline = simulator.timeline(owner, strategy.problem, strategy)
  if strategy.schedule == 'pipedream' or strategy.mesh and (strategy.sync or {}).asynchronous then
    util.fail('%s: asynchronous schedules (pipedream, asynchronous = true) have no step boundary and cannot be '
      .. 'exported as a trace', owner)
  end
  if self.timeline.tasks > most_nodes then
    util.fail('%s: got %d tasks, expected at most %d', owner, self.timeline.tasks, most_nodes)
  end
  self:number_ranks(#strategy.problem.cluster.devices)
  return self
end

--- Returns whether a task is executed.
function Trace:runs(task) return self.timeline.start_s[task] == self.timeline.start_s[task] end

--- Ranks are the devices with tasks, in order.
function Trace:number_ranks(devices)
  local used, at = {}, self.timeline.device
  for task = 1, self.timeline.tasks do
    if self:runs(task) then used[at[task]] = true end
  end
  self.rank_of, self.ranks = {}, 0
  for device = 1, devices do
    if used[device] then
      self.rank_of[device], self.ranks = self.ranks, self.ranks + 1
    end
  end
end

-- Returns whether a node has no cost and no dependency.
local sources = { Input = true, Constant = true, Variable = true }

--- Returns the `pg_name` of a group of ranks: '' for all ranks, otherwise a number in groups.json.
function Trace:group_name(members)
  local seen, ranks = {}, {}
  for _, op in ipairs(members) do
    local rank = self.rank_of[self.timeline.device[op]]
    if rank and not seen[rank] then
      seen[rank], ranks[#ranks + 1] = true, rank
    end
  end
  table.sort(ranks)
  if #ranks == self.ranks then return '', #ranks end
  local key = table.concat(ranks, ',')
  if not self.group_names[key] then
    self.groups[#self.groups + 1] = { tostring(#self.groups + 1), ranks }
    self.group_names[key] = tostring(#self.groups)
  end
  return self.group_names[key], #ranks
end

function Trace:add(node)
  node.deps, self.nodes[#self.nodes + 1] = {}, node
  return node
end

--- Makes the nodes of operators and collectives.
function Trace:add_tasks()
  local timeline, count = self.timeline, self.graph.operators
  local joined = {}
  for _, collective in ipairs(core.collectives(self.graph.handle)) do
    local name, size = self:group_name(collective.members)
    for _, op in ipairs(collective.members) do
      if size > 1 then joined[op] = { kind = collective.kind, bytes = collective.bytes, group = name } end
    end
  end
  local about = util.listed(count, function(i) return self.graph:operator(i) end)
  self.about = about
  for task = 1, timeline.tasks do
    local i = (task - 1) % count + 1
    local op = about[i]
    if self:runs(task) and not sources[op.type] then
      local node = self:add { task = task, op = i, name = op.name, rank = self.rank_of[timeline.device[task]],
        kind = joined[i] and 'collective' or 'comp', start_s = timeline.start_s[task], end_s = timeline.end_s[task] }
      node.attributes = joined[i] and { { 'comm_type', 'int64', kinds[joined[i].kind] },
        { 'comm_size', 'int64', joined[i].bytes }, { 'pg_name', 'string', joined[i].group } }
        or { { 'num_ops', 'int64', math.floor(op.flops) },
          { 'tensor_size', 'uint64', math.floor(op.traffic_bytes or 0) } }
      self.node_of_task[task] = node
    end
  end
end

--- Makes the nodes of messages, with a tag for each.
function Trace:add_messages()
  for tag, message in ipairs(self.timeline:transfers()) do
    local from, to = self.rank_of[message.from], self.rank_of[message.to]
    local about = { { 'comm_size', 'int64', math.floor(message.bytes) }, { 'comm_src', 'int32', from },
      { 'comm_dst', 'int32', to }, { 'comm_tag', 'int32', tag } }
    local name = message.operator .. ':' .. (message.output - 1)
    local send = self:add { name = name .. '/send', kind = 'send', rank = from, attributes = about,
      start_s = message.start_s, end_s = message.end_s, after = message.task }
    local receive = self:add { name = name .. '/receive', kind = 'receive', rank = to, attributes = about,
      start_s = message.start_s, end_s = message.end_s }
    send.is_message, receive.is_message = true, true
    local key = ('%d>%d'):format(message.task, message.to)
    local list = self.received[key] or {}
    self.received[key], list[#list + 1] = list, receive
  end
end

--- Returns the task of a reader's input: of the same micro-batch, or the last one before it that was executed.
function Trace:producer(task, op)
  local count = self.graph.operators
  local micro_batch = math.floor((task - 1) / count)
  for m = micro_batch, 0, -1 do
    if self:runs(m * count + op) then return m * count + op end
  end
  for m = micro_batch + 1, self.timeline.tasks / count - 1 do
    if self:runs(m * count + op) then return m * count + op end
  end
end

local function depend(node, on)
  if on and on ~= node and not node.seen[on.id] then
    node.seen[on.id], node.deps[#node.deps + 1] = true, on.id
  end
end

--- Sets dependencies: inputs and, for operators, the previous one on the device.
function Trace:add_dependencies()
  local device_of = self.timeline.device
  for _, list in ipairs(self.by_rank) do
    local before
    for _, node in ipairs(list) do
      node.seen = {}
      if node.kind == 'comp' then
        depend(node, before)
        before = node
      end
      if node.after then depend(node, self.node_of_task[node.after]) end
      for _, input in ipairs(node.op and self.about[node.op].inputs or {}) do
        local task = self:producer(node.task, input.producer)
        if task and device_of[task] == device_of[node.task] then
          depend(node, self.node_of_task[task])
        elseif task then
          for _, receive in ipairs(self.received[('%d>%d'):format(task, device_of[node.task])] or {}) do
            depend(node, receive)
          end
        end
      end
      node.seen = nil
      table.sort(node.deps)
    end
  end
end

local order = { receive = 1, comp = 2, collective = 3, send = 4 }

--- Sorts the nodes of every rank by start and numbers them from 0.
function Trace:sort()
  self.by_rank = util.listed(self.ranks, function() return {} end)
  for k, node in ipairs(self.nodes) do
    node.number = k
    local list = self.by_rank[node.rank + 1]
    list[#list + 1] = node
  end
  for _, list in ipairs(self.by_rank) do
    table.sort(list, function(a, b)
      if a.start_s ~= b.start_s then return a.start_s < b.start_s end
      if a.end_s ~= b.end_s then return a.end_s < b.end_s end
      if order[a.kind] ~= order[b.kind] then return order[a.kind] < order[b.kind] end
      return a.number < b.number
    end)
    for id, node in ipairs(list) do node.id = id - 1 end
  end
end

function Trace:text(rank)
  local parts = { wire.record(wire.text(1, '1.0.0')) }
  for _, node in ipairs(self.by_rank[rank + 1]) do parts[#parts + 1] = encode(node) end
  return table.concat(parts)
end

--- Returns the files of a plan, and the settings that they cannot represent.
function chakra.write(outline)
  local trace = new_trace(outline.strategy)
  trace:add_tasks()
  trace:add_messages()
  trace:sort()
  trace:add_dependencies()
  local files = util.listed(trace.ranks, function(r)
    return { name = ('trace.%d.et'):format(r - 1), text = trace:text(r - 1) }
  end)
  files[#files + 1] = { name = 'groups.json', text = ordered.text(ordered.object(trace.groups)) }
  return files, unsaid.of(outline, said)
end

return chakra
