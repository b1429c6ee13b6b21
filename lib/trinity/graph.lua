-- trinity.graph: operator graphs. Wraps the engine's graph with fields and array views.

local core = require 'trinity.core'
local array = require 'trinity.array'
local util = require 'trinity.util'

local graph = {}

local Graph = {}
local views = { depth = true, unit_of = true }

function Graph.__index(self, key)
  if Graph[key] then return Graph[key] end
  if views[key] then
    local view = array.int32_view(self.handle, function(span) self.handle:span(key, span) end)
    rawset(self, key, view)
    return view
  end
end

function Graph.__tostring(self)
  return ('graph %s: %d operators, %d edges, %.4g M parameters'):format(self.name, self.operators,
    self.edges, self.parameters / 1e6)
end

--- Wraps an engine graph. Fields: name, operators, edges, units, parameters, parameter_bytes,
--- flops, training, fingerprint, and the read-only views depth[op] and unit_of[op] (0-based unit).
function graph.wrap(handle)
  local self = handle:summary()
  self.handle = handle
  return setmetatable(self, Graph)
end

--- A table describing operator `i`: name, type, phase, inputs, outputs, flops, ...
function Graph:operator(i) return self.handle:operator(i) end

--- The graph of one training step (forward, backward, update); see engine/graph/training.h.
--- options: colocate = 'forward' | 'parameters', optimiser = 'sgd' | 'momentum' | 'adam'.
function Graph:to_training(options) return graph.wrap(self.handle:training(options or {})) end

--- Data parallelism: copies of the graph with all-reduces of the gradients between them; see
--- engine/graph/replicas.h. options: replicas, bucket_bytes = 25e6, algorithm = 'automatic' (see
--- cluster:collective), placement = the devices of one replica, so that gradients of one device
--- share buckets (without it those of one colocation unit). Returns the graph, and two lists per
--- operator: the operator of this graph that it copies (0: an all-reduce, which belongs where its
--- first input is produced), and its replica from 0.
function Graph:replicate(options)
  util.expect('replicate', 'options', options, 'table')
  local plain = {}
  for key, value in util.sorted_pairs(options) do
    if key ~= 'placement' then plain[key] = value end
  end
  local handle, origin, replica = self.handle:replicate(plain, options.placement)
  return graph.wrap(handle), origin, replica
end

--- The graph as JSON text in the project's own format (engine/formats/graph_json.h), which
--- trinity.model reads back to an equal graph.
function Graph:to_json() return core.graph_to_json(self.handle) end

--- Writes the graph as JSON.
function Graph:save(path) core.write_file(path, self:to_json()) end

--- The graph in Graphviz's DOT language. options: units = true: a node per colocation unit;
--- label_bytes: edges of at least so many bytes show their size. With devices: problem:to_dot.
function Graph:to_dot(options) return core.graph_to_dot(self.handle, options or {}) end

function Graph:close() self.handle:close() end

local Builder = {}
Builder.__index = Builder

--- A new, empty graph builder. Layers are in trinity.layers; this is the level below.
function graph.new(options)
  util.expect('graph.new', 'name', options and options.name, 'string')
  util.refuse_unknown('graph.new', options, { name = true })
  return setmetatable({ handle = core.graph_builder(options.name) }, Builder)
end

--- Adds an operator: { name =, type =, inputs = { tensors }, outputs = { { shape =, dtype = }, ... },
--- attributes =, parameters = { { name =, shape =, dtype =, trainable = }, ... }, flops =, measured_time_s =,
--- workspace_bytes =, ... }.
--- Returns its output tensors, tables { number =, shape =, dtype = }.
function Builder:add(spec)
  local numbers, plain = {}, {}
  for i, tensor in ipairs(spec.inputs or {}) do
    if type(tensor) ~= 'table' or not tensor.number then
      util.fail("add: operator '%s': input %d: expected a tensor, got %s", tostring(spec.name), i,
        util.describe(tensor))
    end
    numbers[i] = tensor.number
  end
  for key, value in util.sorted_pairs(spec) do plain[key] = value end
  plain.inputs = numbers
  local added = self.handle:add_operator(plain)
  local outputs = {}
  for i, number in ipairs(added) do
    outputs[i] = { number = number, shape = spec.outputs[i].shape,
      dtype = spec.outputs[i].dtype or 'float32' }
  end
  return unpack(outputs)
end

--- Joins operators into a collective, which they run together without occupying their devices:
--- { name =, kind =, algorithm = 'automatic', bytes = full size of the tensor, members = { names of
--- operators } }. Kinds and algorithms: see cluster:collective.
function Builder:collective(spec)
  util.expect('collective', 'description', spec, 'table')
  self.handle:collective(spec)
end

--- Finishes: returns the graph; the builder is empty afterwards.
function Builder:build() return graph.wrap(self.handle:build()) end

return graph
