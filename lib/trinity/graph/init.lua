-- trinity.graph: operator graphs. Wraps the engine's graph with fields and methods. This file has fields and
-- transformations; graph/traverse has iteration, graph/algorithms algorithms, graph/builder construction by hand.

local arguments = require 'trinity.graph.arguments'
local array = require 'trinity.base.array'
local arrays = require 'trinity.graph.arrays'
local check = require 'trinity.base.check'
local core = require 'trinity.core'
local graph_options = require 'trinity.graph.options'
local util = require 'trinity.base.util'

---@class trinity.GraphModule
--- A new, empty graph builder. Example: `local builder = trinity.graph.new { name = 'mine' }`
---@field new fun(options: { name: string }): trinity.Builder
---@field layers trinity.LayersModule networks made from layers
local graph = {}

---@class trinity.Graph
---@field name string
---@field operators integer number of operators
---@field edges integer number of edges, one per tensor and reader
---@field units integer number of colocation units; the operators of a unit share a device
---@field parameters integer number of weights
---@field active_parameters integer weights that are active per token: of experts, only those that it is sent to
---@field parameter_bytes integer
---@field flops number floating-point operations per step
---@field training boolean whether it has backward operators
---@field batch_size integer samples per step: first axis of the first input; 0: unknown
---@field fingerprint string equal for equal graphs
---@field depth trinity.Int32View per operator: edges on the longest path from an input
---@field unit_of trinity.Int32View per operator: its colocation unit, from 1
---@field flops_of trinity.DoubleArray per operator
---@field output_bytes trinity.DoubleArray per operator: sum of its output tensors
---@field parameter_bytes_of trinity.DoubleArray per operator
---@field persistent_bytes_of trinity.DoubleArray per operator: resident in addition to the weights (optimizer states)
---@field workspace_bytes_of trinity.DoubleArray per operator: needed only while it runs
---@field activation_bytes_of trinity.DoubleArray per operator: its outputs; 0 for a variable, whose outputs are weights
---@field measured_time_s trinity.DoubleArray per operator; NaN if it was not measured
--- origin of a graph from a file
---@field source? { format: string, whole_step: boolean, warnings: string[], unknown_types: string[] }
local Graph = { __name = 'graph' }

--- Arrays are made at the first access.
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

--- Wraps a graph of the engine. Raises an error for any other value. Example: `trinity.graph.wrap(graph.handle)`
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

--- Returns the fields of operator `i` (a number or name). Raises an error for an unknown operator. Example:
--- `graph:operator(1).type`
---@param i trinity.OperatorRef
---@return trinity.Operator
function Graph:operator(i)
  return self.handle:operator(arguments.operator('graph:operator', 1, 'i', self, i))
end

--- Returns the graph of one training step: forward, backward and update operators (engine/graph/training.h). Example:
--- `graph:to_training { optimizer = 'adam' }`
---@param options? trinity.TrainingOptions
---@return trinity.Graph
function Graph:to_training(options)
  return graph.wrap(self.handle:training(graph_options.training:read('graph:to_training', 1, 'options', options)))
end

--- Returns a profile's graph with one operator per layer that takes the time of its forward and backward pass together
--- (engine/graph/training.h). Example: `graph:fold_backward()`
---@return trinity.Graph
function Graph:fold_backward() return graph.wrap(self.handle:fold_backward()) end

--- Data parallelism: returns copies of the graph with all-reduces of the gradients between them
--- (engine/graph/replicas.h). Place an all-reduce on the device of its first input. Example: `graph:replicate {
--- replicas = 2 }`
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

--- Activation recomputation: returns the graph with forward operators repeated before the backward ones, so that only
--- the inputs of a segment are kept (engine/graph/recompute.h). Segments should be layers or smaller, not pipeline
--- stages, because a recomputed segment is alive as a whole. Example: `graph:recompute { segment = segment_of }`
---@param options trinity.RecomputeOptions
---@return trinity.Graph graph
---@return integer[] origin per operator: the operator of this graph that it is or repeats
function Graph:recompute(options)
  local given = graph_options.recompute:read('graph:recompute', 1, 'options', options)
  local handle, origin = self.handle:recompute { stage = given.segment, eager = given.eager }
  return graph.wrap(handle), origin
end

--- Returns a pipeline whose stages have several replicas, each for its part of every micro-batch, with all-reduces of
--- their gradients (engine/graph/replicas.h). Example: `graph:replicate_stages { stage = stage_of, replicas = { 2, 1 }
--- }`
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

--- Returns the graph as JSON text (engine/formats/json/graph_json.h), from which trinity.model makes an equal graph.
--- Example: `#graph:to_json()`
---@return string
function Graph:to_json() return core.graph_to_json(self.handle) end

--- Writes the graph as JSON. Raises an error if the file cannot be written. Example: `graph:save 'graph.json'`
---@param path string
function Graph:save(path)
  util.write_file('graph:save', check.path('graph:save', 1, 'path', path), self:to_json())
end

--- Returns the graph in Graphviz's DOT language (with devices: problem:to_dot). Example: `graph:to_dot { units = true
--- }`
---@param options? trinity.DotOptions
---@return string
function Graph:to_dot(options)
  options = graph_options.dot:read('graph:to_dot', 1, 'options', options)
  return core.graph_to_dot(self.handle, options.units)
end

--- Frees the engine's graph once no problem uses it. Arrays taken from it stay valid. Example: `graph:close()`
function Graph:close()
  check.closing('graph:close', self, 'graph').handle:close()
  for key in pairs(arrays.fields) do rawset(self, key, nil) end -- the order does not matter
end

--- Returns the sorted operator types whose FLOP and gradients the engine knows, with ONNX names if ONNX has the
--- operator. Other operators (field `known` is false) only cost launch time and memory traffic. Example:
--- `#trinity.graph.operator_types()`
---@return string[]
function graph.operator_types()
  local types = core.operator_types()
  table.sort(types)
  return types
end

check.methods(Graph, 'trinity.Graph', 'own_optimizer')
graph.new = require 'trinity.graph.builder'(graph.wrap)

return graph
