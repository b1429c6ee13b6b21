-- Instances of the device placement problem of Tarnawski et al., "Efficient Algorithms for Device Placement of DNN
-- Graph Operators" (NeurIPS 2020): a graph with costs, to be divided among accelerators and CPUs. Unknown fields are
-- ignored.
--
-- Latencies and costs are milliseconds, as the files of the layer graphs state; the operator graphs' costs are sizes
-- / 2 GiB/s in milliseconds. The only memory figure of a node, its weights and what they need in training, becomes
-- persistent_bytes: resident, not sent, not updated. The simulator adds outputs in flight, so it is stricter than the
-- instance's limit. A backward operator serves the forward operator of its colocation class if there is exactly one.
-- A node has one output per size of its edges; edges without size get cost times 2 GiB/s, which is size / cost in the
-- published files, with two exceptions. Layer graphs for throughput have costs in seconds (the published objectives
-- add them unconverted, and so does this reader). In the backward half of the layer graphs for training, sizes and
-- costs come from different edges; it repeats the forward half's edges in their direction, and no edge joins the
-- halves: loads are right, but a simulated step of such a graph is not a training step.

local core = require 'trinity.core'
local json_file = require 'trinity.graph.instances.json_file'
local util = require 'trinity.base.util'

local dnn_partitioning = { format = 'dnn-partitioning instance', network_format = 'dnn-partitioning',
  whole_step = true }

local unit_s = 1e-3
local bytes_per_s = 2 ^ 31 -- between accelerator and host
local same_cost = 1e-6 -- tolerance of the authors' planner
local most_bytes = 2 ^ 50 -- of a tensor

local integer, number, truth = json_file.integer, json_file.number, json_file.truth
local has_rule = util.set(core.operator_types())

--- Returns the type in a name like 'MatMul64', 'Conv_3' or 'MatMul64_Grad/Transpose_0', if it has a rule.
local function type_of(name)
  name = name:match '[^/]*$'
  local type = name:sub(1, name:find '[^%d]%d*$' or 0):gsub('_$', '')
  return has_rule[type:match '^(.+)Grad$' or type] and type or 'Operator'
end

local function read_node(entry, i, known)
  local at = 'nodes[%d]'
  local node = json_file.identified(entry, i, 'node', known, at, i - 1)
  node.cpu_time = number(entry, 'cpuLatency', nil, nil, at, i - 1)
  node.time = number(entry, 'fpgaLatency', nil, nil, at, i - 1)
  node.supported = truth(entry, 'supportedOnFpga', at, i - 1)
  node.bytes = entry.size == nil and 0 or math.ceil(number(entry, 'size', 0, most_bytes, at, i - 1))
  node.backward = truth(entry, 'isBackwardNode', at, i - 1)
  node.class = entry.colorClass ~= nil and integer(entry, 'colorClass', nil, nil, at, i - 1) or nil
  node.layer = entry.layerId ~= nil and integer(entry, 'layerId', nil, nil, at, i - 1) or nil
  node.outputs = {} -- by bytes
  return node
end

local function read_edge(entry, i, known)
  local source, target = json_file.ends(entry, 'node', known, 'edges[%d]', i - 1)
  local cost = number(entry, 'cost', nil, nil, 'edges[%d]', i - 1)
  source.transfer = source.transfer or cost
  if math.abs(source.transfer - cost) > same_cost then
    json_file.wrong(('%.17g, as on other edges of its source'):format(source.transfer), cost, 'edges[%d].cost', i - 1)
  end
  local bytes = entry.size ~= nil and number(entry, 'size', 0, most_bytes, 'edges[%d]', i - 1)
  if not bytes and cost * unit_s * bytes_per_s > most_bytes then
    json_file.wrong('a time that corresponds to at most 2^50 bytes', cost, 'edges[%d].cost', i - 1)
  end
  return { source = source, target = target, bytes = math.ceil(bytes or source.transfer * unit_s * bytes_per_s) }
end

-- Returns the nodes of every colocation class, in the order of the file, and notes in each the first of its class.
local function classes_of(list)
  local classes = {}
  for _, node in ipairs(list) do
    if node.class then
      classes[node.class] = classes[node.class] or {}
      table.insert(classes[node.class], node)
      node.first = classes[node.class][1]
    end
  end
  return classes
end

local function add_operators(builder, list)
  local classes = classes_of(list)
  for _, node in ipairs(list) do
    builder:add_operator { name = node.name, type = node.stated and type_of(node.stated) or 'Operator', flops = 0,
      phase = node.backward and 'backward' or 'forward', measured_time_s = node.time * unit_s,
      persistent_bytes = node.bytes, colocate_with = node.first and node.first ~= node and node.first.name or nil,
      attributes = { id = node.id, name = node.stated, layer = node.layer, cpu_time_s = node.cpu_time * unit_s,
        transfer_time_s = (node.transfer or 0) * unit_s, supported_on_accelerator = node.supported and 1 or 0 } }
  end
  for _, members in util.sorted_pairs(classes) do
    local forward = util.filtered(members, function(node) return not node.backward end)
    for _, node in ipairs(#forward == 1 and members or {}) do
      if node ~= forward[1] then builder:serves(node.name, forward[1].name) end
    end
  end
end

-- Adds a tensor per source and size. An operator reads it once.
local function add_edges(builder, edges)
  for _, edge in ipairs(edges) do
    local outputs = edge.source.outputs
    local output = outputs[edge.bytes] or {}
    if not outputs[edge.bytes] then
      output.tensor = builder:add_edge(edge.source.name, edge.target.name, edge.bytes)
    elseif not output[edge.target] then
      builder:add_edge(output.tensor, edge.target.name)
    end
    outputs[edge.bytes], output[edge.target] = output, true
  end
end

local function network(list, edges)
  return { unit_s = unit_s, bandwidth_bytes_per_s = bytes_per_s, nodes = util.map(list, function(node)
    return { time = node.time, cpu_time = node.cpu_time, transfer = node.transfer or 0, parameter_bytes = node.bytes,
      memory_bytes = node.bytes, unit = (node.first or node).number, backward = node.backward,
      supported = node.supported }
  end), edges = util.map(edges, function(edge) return { edge.source.number, edge.target.number } end) }
end

function dnn_partitioning.read(root, name)
  local about = { unit = 'ms', bandwidth_bytes_per_s = bytes_per_s,
    devices = integer(root, 'maxFPGAs', 0, 2 ^ 20, ''), cpus = integer(root, 'maxCPUs', 0, 2 ^ 20, ''),
    memory_bytes = math.floor(number(root, 'maxSizePerFPGA', 0, 2 ^ 60, '')) }
  local known = {}
  local list = util.map(json_file.list(root, 'nodes', ''), function(entry, i) return read_node(entry, i, known) end)
  local edges = util.map(json_file.list(root, 'edges', ''), function(entry, i) return read_edge(entry, i, known) end)
  about.nodes = util.map(list, function(node) return node.id end)
  local builder = core.graph_builder(name)
  add_operators(builder, list)
  add_edges(builder, edges)
  return builder:build(), function() return network(list, edges), about end
end

return dnn_partitioning
