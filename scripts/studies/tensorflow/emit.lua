-- From a tape's operations to a graph: costs, devices to share, control edges.

local costs = require 'studies.tensorflow.costs'
local graph = require 'trinity.graph'
local util = require 'trinity.base.util'

local emit = {}

--- Sets of operations that share a device, as a union-find structure.
local function new_sets()
  local parent = {}
  local function root(node)
    while parent[node] do node = parent[node] end
    return node
  end
  return root, function(a, b)
    a, b = root(a), root(b)
    if a ~= b then
      if a.id > b.id then a, b = b, a end
      parent[b] = a
    end
  end
end

--- Who shares a device: operations follow what they serve (gradients their forward operation; reads, moving averages,
--- states and updates their weight), and constants their first reader.
local function shared_devices(nodes)
  local root, join = new_sets()
  local first_reader = {}
  for _, node in ipairs(nodes) do
    for _, tensor in ipairs(node.inputs) do first_reader[tensor.node] = first_reader[tensor.node] or node end
  end
  for _, node in ipairs(nodes) do
    local serves = node.serves
    if serves and serves ~= node then join(serves, node) end
    if node.type == 'Const' and not node.serves and first_reader[node] then join(node, first_reader[node]) end
  end
  return root
end

local function outputs_of(node, is_awaited)
  local outputs = util.map(node.outputs, function(tensor)
    return { shape = tensor.shape, dtype = tensor.dtype, bytes = costs.bytes(tensor), gradient = false }
  end)
  -- Operations that only wait for another read nothing of it: a control edge is a tensor without bytes.
  if is_awaited then outputs[#outputs + 1] = { name = '^' .. node.name, bytes = 0, gradient = false } end
  return outputs
end

--- The forward operation that a gradient or an update serves: through AddN to the first one.
local function forward_of(node)
  local serves = node.serves
  while serves and serves.phase ~= 'forward' do serves = serves.serves end
  return serves
end

--- Adds one operation; `tensors` and `awaited` map to what the builder knows.
local function add(builder, node, o)
  local inputs = {}
  for _, tensor in ipairs(node.inputs) do inputs[#inputs + 1] = o.made[tensor] end
  for _, before in ipairs(node.controls) do inputs[#inputs + 1] = o.made[before] end
  local forward = node.phase ~= 'forward' and forward_of(node) or nil
  local leader = o.root(node)
  local flops, traffic = costs.of(node, o.known)
  local made = { builder:add { name = node.name, type = node.type, inputs = inputs,
    outputs = outputs_of(node, o.awaited[node]), attributes = node.attributes, parameters = node.parameters,
    phase = node.phase, forward = forward and forward.name, flops = flops, traffic_bytes = traffic,
    colocate_with = o.leaders[leader], persistent_bytes = node.persistent_bytes } }
  o.leaders[leader] = o.leaders[leader] or node.name
  for i, tensor in ipairs(node.outputs) do o.made[tensor] = made[i] end
  if o.awaited[node] then o.made[node] = made[#node.outputs + 1] end
end

--- The graph of these operations, which are in an order in which they can run.
function emit.graph(name, nodes)
  local builder = graph.new { name = name }
  local awaited = {}
  for _, node in ipairs(nodes) do
    for _, before in ipairs(node.controls) do awaited[before] = true end
  end
  local o = { made = {}, known = {}, leaders = {}, awaited = awaited, root = shared_devices(nodes) }
  for _, node in ipairs(nodes) do add(builder, node, o) end
  return builder:build()
end

return emit
