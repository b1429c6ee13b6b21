-- Instances of Piper (Tarnawski, Narayanan, Phanishayee, "Piper: Multidimensional Planner for DNN Parallelization",
-- NeurIPS 2021): layers with costs for every degree of tensor parallelism. Unknown fields are ignored.
--
-- The graph has the configuration 'vanilla' of degree 1, else its first one: parameter_bytes is the parameter size,
-- each distinct cost of a layer's edges is a tensor of that many bytes, and the one time for forward and backward is
-- the forward time (attribute time_includes_backward). The format states no unit of time; seconds are assumed. The
-- published bert32a100.json is in seconds; gnmt.json and resnet.json are in milliseconds by their magnitude, although
-- the planner adds bytes / bandwidth in seconds to them.

local core = require 'trinity.core'
local json_file = require 'trinity.graph.instances.json_file'
local util = require 'trinity.base.util'

local piper = { format = 'Piper instance', network_format = 'Piper', whole_step = true }

local most_bytes, most_degree = 2 ^ 50, 2 ^ 20

local integer, number = json_file.integer, json_file.number

local function bytes_of(object, key, ...) return math.ceil(number(object, key, 0, most_bytes, ...)) end

-- Returns the fields of an object whose names are whole numbers from low: a sorted list of these numbers.
local function numbered(object, low, ...)
  local numbers = {}
  for key in util.sorted_pairs(json_file.object(object, ...)) do
    local value = tonumber(key)
    if not value or value % 1 ~= 0 or value < low or ('%d'):format(value) ~= key then
      json_file.fail(('expected whole numbers as names of fields, got %s'):format(util.quoted(tostring(key))), ...)
    end
    numbers[#numbers + 1] = value
  end
  table.sort(numbers)
  return numbers
end

local function read_layer(entry, i, known)
  local layer = json_file.identified(entry, i, 'layer', known, 'nodes[%d]', i - 1)
  layer.into, layer.from, layer.outputs = {}, {}, {} -- readers and sources by id, tensors by bytes
  return layer
end

local function read_edge(entry, i, known)
  local source, target = json_file.ends(entry, 'layer', known, 'edges[%d]', i - 1)
  if source.into[target.id] then json_file.fail('this edge is repeated', 'edges[%d]', i - 1) end
  source.into[target.id], target.from[source.id] = true, true
  return { source = source, target = target, bytes = bytes_of(entry, 'communicationCost', 'edges[%d]', i - 1) }
end

-- Returns the bytes by the id of a layer's neighbor, which must be exactly the other ends of its edges.
local function read_sync(entry, key, ends, at, ...)
  local object, sync = json_file.field(entry, key, at, ...), {}
  at = ('%s.%s'):format(at, key)
  for _, id in ipairs(numbered(object, -2 ^ 53, at, ...)) do
    if not ends[id] then json_file.fail('no edge between these two layers', ('%s.%d'):format(at, id), ...) end
    sync[id] = bytes_of(object, ('%d'):format(id), at, ...)
  end
  for _, id in ipairs(util.sorted_keys(ends)) do
    if not sync[id] then json_file.fail(('the edge with layer %d is missing'):format(id), at, ...) end
  end
  return sync
end

local function read_configuration(entry, layer, ...)
  return { id = json_file.text(entry, 'id', ...), time = number(entry, 'timePerSample', nil, nil, ...),
    parameter_bytes = bytes_of(entry, 'parameterSize', ...), bytes_per_batch = bytes_of(entry, 'memoryUsageA', ...),
    fixed_bytes = bytes_of(entry, 'memoryUsageB', ...), from = read_sync(entry, 'syncTimeFw', layer.from, ...),
    into = read_sync(entry, 'syncTimeBw', layer.into, ...) }
end

-- Reads the configurations of a layer and chooses the one of its graph.
local function read_configurations(entry, layer)
  local at, i = 'nodes[%d].TMPCs', layer.number - 1
  local degrees = json_file.field(entry, 'TMPCs', 'nodes[%d]', i)
  layer.degrees = {}
  for _, degree in ipairs(numbered(degrees, 1, at, i)) do
    if degree > most_degree then json_file.fail(('degree %d is larger than %d'):format(degree, most_degree), at, i) end
    local list, known = json_file.list(degrees, ('%d'):format(degree), at, i), {}
    local configurations = util.map(list, function(one, c)
      local configuration = read_configuration(one, layer, at .. '.%d[%d]', i, degree, c - 1)
      if known[configuration.id] then
        json_file.fail(('configuration %s is repeated'):format(util.quoted(configuration.id)), at .. '.%d[%d]', i,
          degree, c - 1)
      end
      known[configuration.id] = configuration
      return configuration
    end)
    if degree == 1 then layer.plain = known.vanilla or configurations[1] end
    if configurations[1] then
      layer.degrees[#layer.degrees + 1] = { degree = degree, configurations = configurations }
    end
  end
  if not layer.plain then json_file.fail('expected a configuration for degree "1"', at, i) end
end

local function graph_of(name, list, edges)
  local builder = core.graph_builder(name)
  for _, layer in ipairs(list) do
    local type = layer.stated and layer.stated:find '^%a+$' and layer.stated or 'Operator'
    builder:add_operator { name = layer.name, type = type, measured_time_s = layer.plain.time, flops = 0,
      measured_backward_time_s = 0, parameter_bytes = layer.plain.parameter_bytes,
      attributes = { id = layer.id, name = layer.stated, time_includes_backward = 1 } }
  end
  for _, edge in ipairs(edges) do
    local outputs = edge.source.outputs
    outputs[edge.bytes] = builder:add_edge(outputs[edge.bytes] or edge.source.name, edge.target.name, edge.bytes)
  end
  return builder:build()
end

-- Returns the edges in the order of the graph, in which Piper's sums are taken.
local function ordered_edges(graph, known)
  local edges = {}
  for op = 1, graph:summary().operators do
    local reader = graph:operator(op)
    for _, tensor in ipairs(reader.inputs) do
      local source = known[graph:operator(tensor.producer).name]
      edges[#edges + 1] = { source.number, known[reader.name].number, tensor.bytes }
    end
  end
  return edges
end

-- Gives every configuration its bytes by the layer's edges.
local function add_sync_bytes(list, edges)
  for _, edge in ipairs(edges) do
    local source, target = list[edge[1]], list[edge[2]]
    source.output_bytes = math.max(source.output_bytes or 0, edge[3])
    for _, side in ipairs { { source, 'into', target }, { target, 'from', source } } do
      for _, degree in ipairs(side[1].degrees) do
        for _, configuration in ipairs(degree.configurations) do
          configuration.sync_bytes = configuration.sync_bytes or {}
          table.insert(configuration.sync_bytes, configuration[side[2]][side[3].id])
        end
      end
    end
  end
end

-- For methods without configurations a layer has its plain one, with one micro-batch in flight, and its largest edge as
-- output.
local function network(graph, list, known, bandwidth_bytes_per_s)
  local edges = ordered_edges(graph, known)
  add_sync_bytes(list, edges)
  return { bandwidth_bytes_per_s = bandwidth_bytes_per_s, edges = edges, nodes = util.map(list, function(layer)
    local plain = layer.plain
    return { time = plain.time, parameter_bytes = plain.parameter_bytes, output_bytes = layer.output_bytes or 0,
      memory_bytes = plain.bytes_per_batch + plain.fixed_bytes }
  end), layers = util.map(list, function(layer)
    return util.map(layer.degrees, function(degree)
      return { degree = degree.degree, configurations = util.map(degree.configurations, function(one)
        return util.picked(one, { 'id', 'time', 'parameter_bytes', 'bytes_per_batch', 'fixed_bytes', 'sync_bytes' })
      end) }
    end)
  end) }
end

function piper.read(root, name)
  local about = { unit = 's', devices = integer(root, 'maxDevices', 1, 2 ^ 20, ''),
    memory_bytes = math.floor(number(root, 'maxMemoryPerDevice', 0, 2 ^ 60, '')),
    bandwidth_bytes_per_s = number(root, 'bandwidth', nil, nil, ''),
    micro_batches = integer(root, 'mbsInBatch', 1, 2 ^ 30, '') }
  if about.bandwidth_bytes_per_s == 0 then json_file.wrong('a number above 0', 0, 'bandwidth') end
  local known, entries = {}, json_file.list(root, 'nodes', '')
  local list = util.map(entries, function(entry, i) return read_layer(entry, i, known) end)
  local edges = util.map(json_file.list(root, 'edges', ''), function(entry, i) return read_edge(entry, i, known) end)
  for i, layer in ipairs(list) do read_configurations(entries[i], layer) end
  about.nodes = util.map(list, function(layer) return layer.id end)
  local graph = graph_of(name, list, edges)
  return graph, function() return network(graph, list, known, about.bandwidth_bytes_per_s), about end
end

return piper
