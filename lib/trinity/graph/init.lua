-- trinity.graph: operator graphs. Wraps the engine's graph with fields and methods: here what it is and
-- becomes, in graph/traverse walking over it, in graph/algorithms the algorithms, in graph/builder making
-- one by hand.

local arguments = require 'trinity.graph.arguments'
local array = require 'trinity.base.array'
local arrays = require 'trinity.graph.arrays'
local check = require 'trinity.base.check'
local printed = require 'trinity.base.printed'
local core = require 'trinity.core'
local graph_options = require 'trinity.graph.options'
local util = require 'trinity.base.util'

---@class trinity.GraphModule
---@since 0.1.0
---@field new fun(options: { name: string }): trinity.Builder A new, empty graph builder.
local graph = {}

---@class trinity.Graph
---@field name string
---@field operators integer number of operators
---@field edges integer number of edges, one a tensor and reader
---@field units integer number of colocation units, which share a device each
---@field parameters integer number of weights
---@field active_parameters integer of these the ones that a token meets: of experts those that it goes to
---@field parameter_bytes integer
---@field flops number floating-point operations of a step
---@field training boolean whether it has backward operators
---@field batch_size integer samples that it takes at once: the first axis of its first input; 0: not known
---@field fingerprint string equal for equal graphs
---@field depth trinity.Int32View per operator: edges on the longest path from an input
---@field unit_of trinity.Int32View per operator: its colocation unit, from 1
---@field flops_of trinity.DoubleArray per operator
---@field output_bytes trinity.DoubleArray per operator: sum of its output tensors
---@field parameter_bytes_of trinity.DoubleArray per operator
---@field persistent_bytes_of trinity.DoubleArray per operator: resident all step beside the weights (optimiser state)
---@field workspace_bytes_of trinity.DoubleArray per operator: needed only while it runs
---@field activation_bytes_of trinity.DoubleArray per operator: its outputs, 0 for a variable (they are its weights)
---@field measured_time_s trinity.DoubleArray per operator, NaN where it was not measured
--- of a file that others wrote
---@field source? { format: string, whole_step: boolean, warnings: string[], unknown_types: string[] }
local Graph = { __name = 'graph' }

--- Arrays are made when first asked for.
function Graph.__index(self, key)
  local make = arrays.fields[key]
  if not make then return Graph[key] end
  if rawget(self, 'closed') then util.fail("graph.%s: this graph is closed", key) end
  local values = make(self)
  rawset(self, key, values)
  return values
end

function Graph.__tostring(self)
  return ('graph %s: %d operators, %d edges, %.4g M parameters'):format(self.name, self.operators,
    self.edges, self.parameters / 1e6)
end

require 'trinity.graph.traverse'(Graph)
require 'trinity.graph.algorithms'(Graph)

--- Wraps a graph of the engine.
---@param handle userdata
---@return trinity.Graph
function graph.wrap(handle)
  if type(handle) ~= 'userdata' or util.class_of(handle) ~= 'graph' then
    check.wrong('graph.wrap', 1, 'handle', handle, 'a graph of the engine')
  end
  local self = handle:summary()
  self.handle = handle
  return setmetatable(self, Graph)
end

local operator = printed.as('operator', { 'name', 'type', 'phase', 'flops', 'parameter_bytes' })
local tensor = printed.as('tensor', { 'name', 'dtype', 'bytes' })

--- Operator `i` (a number or a name) in words and numbers.
---@param i trinity.OperatorRef
---@return trinity.Operator
function Graph:operator(i)
  local found = self.handle:operator(arguments.operator('graph:operator', 1, 'i', self, i))
  printed.each(tensor, found.inputs)
  printed.each(tensor, found.outputs)
  return operator(found)
end

--- The graph of one training step: forward, backward, update (engine/graph/training.h).
---@param options? trinity.TrainingOptions
---@return trinity.Graph
function Graph:to_training(options)
  return graph.wrap(self.handle:training(graph_options.training:read('graph:to_training', 1, 'options', options)))
end

--- A profile's forward graph with one operator a layer that takes as long as its forward and backward pass
--- together; see engine/graph/fold.h.
---@return trinity.Graph
function Graph:fold_backward() return graph.wrap(self.handle:fold_backward()) end

--- Data parallelism: copies of the graph with all-reduces of the gradients between them (engine/graph/replicas.h). An
--- all-reduce belongs where its first input is produced.
---@param options trinity.ReplicaOptions
---@return trinity.Graph graph
---@return integer[] origin per operator: the operator of this graph that it copies, 0 for an all-reduce
---@return integer[] replica per operator, from 0
function Graph:replicate(options)
  local plain = graph_options.replicas:read('graph:replicate', 1, 'options', options)
  plain.placement = nil
  local handle, origin, replica = self.handle:replicate(plain,
    array.placement('graph:replicate', 'option', 'placement', options.placement, self))
  return graph.wrap(handle), origin, replica
end

--- Recomputation: forward operators run again before the backward ones, so that of a segment only what comes in stays
--- alive in between (engine/graph/recompute.h). Segments are layers or smaller, not stages of a pipeline: all of one is
--- alive when it has run again.
---@param options trinity.RecomputeOptions
---@return trinity.Graph graph
---@return integer[] origin per operator: the operator of this graph that it is or repeats
function Graph:recompute(options)
  local given = graph_options.recompute:read('graph:recompute', 1, 'options', options)
  local handle, origin = self.handle:recompute { stage = given.segment, eager = given.eager }
  return graph.wrap(handle), origin
end

--- A pipeline whose stages have several replicas, each for its part of every micro-batch, with all-reduces of their
--- gradients (engine/graph/replicas.h).
---@param options trinity.StageReplicaOptions
---@return trinity.Graph graph
---@return integer[] origin per operator: the operator of this graph that it copies, 0 for an all-reduce
---@return integer[] stage per operator
---@return integer[] replica per operator, from 1
function Graph:replicate_stages(options)
  local plain, shares = graph_options.stage_replicas:read('graph:replicate_stages', 1, 'options', options), {}
  plain.at_share = nil
  for s, share in ipairs(options.at_share or {}) do
    shares[s] = share and check.object('graph:replicate_stages', 'option', 'at_share', share, 'graph').handle or false
  end
  local handle, origin, stage, replica = self.handle:replicate_stages(plain, shares)
  return graph.wrap(handle), origin, stage, replica
end

--- The graph as JSON text in the project's own format (engine/formats/json/graph_json.h), which
--- trinity.model reads back to an equal graph.
---@return string
function Graph:to_json() return core.graph_to_json(self.handle) end

--- Writes the graph as JSON.
---@param path string
function Graph:save(path)
  util.write_file('graph:save', check.path('graph:save', 1, 'path', path), self:to_json())
end

--- The graph in Graphviz's DOT language. With devices: problem:to_dot.
---@param options? trinity.DotOptions
---@return string
function Graph:to_dot(options)
  options = graph_options.dot:read('graph:to_dot', 1, 'options', options)
  return core.graph_to_dot(self.handle, options.units)
end

--- Frees the engine's graph as soon as no problem uses it. Arrays that were taken from it stay.
function Graph:close()
  check.closing('graph:close', self, 'graph').handle:close()
  for key in pairs(arrays.fields) do rawset(self, key, nil) end -- all of them: needs no sorted order
end

--- The operator types whose FLOP and gradients the engine knows, sorted: names of ONNX where ONNX has the operator.
--- Others (`known` of an operator is false) cost launch and memory traffic alone.
---@return string[]
function graph.operator_types()
  local types = core.operator_types()
  table.sort(types)
  return types
end

check.methods(Graph, 'trinity.Graph', 'own_optimizer')
graph.new = require 'trinity.graph.builder'(graph.wrap)

return graph
