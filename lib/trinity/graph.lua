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
--- attributes =, parameters = { { name =, shape = }, ... }, flops =, measured_time_s =, ... }.
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

--- Finishes: returns the graph; the builder is empty afterwards.
function Builder:build() return graph.wrap(self.handle:build()) end

return graph
