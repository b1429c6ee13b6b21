---@meta _
-- Graphs and what makes them. See lib/trinity/graph.lua.
error 'this file is for editors'

---@alias trinity.OrderKind 'number'|'depth_first'|'breadth_first'
---@alias trinity.BackwardEdges 'free'|'counted'|'forbidden'
---@alias trinity.OperatorRef integer|string

---@class trinity.Graph
---@field name string
---@field operators integer number of operators
---@field edges integer number of edges, one a tensor and reader
---@field units integer number of colocation units, which share a device each
---@field parameters integer number of weights
---@field parameter_bytes integer
---@field flops number floating-point operations of a step
---@field training boolean whether it has backward operators
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
---@field source? { format: string, whole_step: boolean, warnings: string[], unknown_types: string[] } of a file that others wrote
local Graph = {}

--- Operator `i` (a number or a name) in words and numbers.
---@param i trinity.OperatorRef
---@return trinity.Operator
function Graph:operator(i) end

--- The number of the operator called `name`, or nil.
---@param name string
---@return integer?
function Graph:find(name) end

--- Iterates over operators in topological order: for i in graph:nodes() do ... end
---@return fun(operators: integer, i: integer): integer?
---@return integer operators
---@return integer start
function Graph:nodes() end

--- Iterates over edges: for from, to, bytes in graph:each_edge() do ... end
---@return fun(): integer?, integer?, number?
function Graph:each_edge() end

--- Edges as arrays for compiled loops: those that leave operators ('out', the default) or enter them.
---@param direction? 'out'|'in'
---@return trinity.GraphRows
function Graph:csr(direction) end

--- The operators that read outputs of operator `i`, each once, ascending.
---@param i trinity.OperatorRef
---@return integer[]
function Graph:successors(i) end

--- The operators whose outputs operator `i` reads, each once, ascending.
---@param i trinity.OperatorRef
---@return integer[]
function Graph:predecessors(i) end

--- The producers of what operator `i` reads, in the order of its arguments, with repetitions.
---@param i trinity.OperatorRef
---@return integer[]
function Graph:inputs(i) end

--- The operators that read nothing.
---@return integer[]
function Graph:sources() end

--- The operators that nobody reads.
---@return integer[]
function Graph:sinks() end

--- The operators of colocation unit `u`.
---@param u integer
---@return integer[]
function Graph:unit(u) end

--- Operators by depth.
---@return integer[][]
function Graph:levels() end

--- Operators in a topological order: as numbered (default), each shortly before it is needed, by depth.
---@param kind? trinity.OrderKind
---@return trinity.Int32View
function Graph:topological_order(kind) end

--- The longest path where operators, and edges if wanted, take time.
---@param options trinity.GraphPathOptions
---@return trinity.GraphPath
function Graph:critical_path(options) end

--- The least cut with all of `sources` on one side and all of `sinks` on the other.
---@param sources trinity.OperatorRef|trinity.OperatorRef[]
---@param sinks trinity.OperatorRef|trinity.OperatorRef[]
---@param options? trinity.CutOptions
---@return trinity.Cut
function Graph:min_cut(sources, sinks, options) end

--- The graph of one training step: forward, backward, update.
---@param options? trinity.TrainingOptions
---@return trinity.Graph
function Graph:to_training(options) end

--- A profile's forward graph with one operator a layer that takes as long as its forward and backward
--- pass together.
---@return trinity.Graph
function Graph:fold_backward() end

--- Data parallelism: copies of the graph with all-reduces of the gradients between them.
---@param options trinity.ReplicaOptions
---@return trinity.Graph graph
---@return integer[] origin per operator: the operator of this graph that it copies, 0 for an all-reduce
---@return integer[] replica per operator, from 0
function Graph:replicate(options) end

--- Recomputation: forward operators run again before the backward ones.
---@param options trinity.RecomputeOptions
---@return trinity.Graph graph
---@return integer[] origin per operator: the operator of this graph that it is or repeats
function Graph:recompute(options) end

--- A pipeline whose stages have several replicas, with all-reduces of their gradients.
---@param options trinity.StageReplicaOptions
---@return trinity.Graph graph
---@return integer[] origin per operator: the operator of this graph that it copies, 0 for an all-reduce
---@return integer[] stage per operator
---@return integer[] replica per operator, from 1
function Graph:replicate_stages(options) end

--- The graph as JSON text, which trinity.model reads back to an equal graph.
---@return string
function Graph:to_json() end

--- Writes the graph as JSON.
---@param path string
function Graph:save(path) end

--- The graph in Graphviz's DOT language.
---@param options? trinity.DotOptions
---@return string
function Graph:to_dot(options) end

--- Frees the engine's graph as soon as no problem uses it. Arrays that were taken from it stay.
function Graph:close() end

--- Edges in compressed rows: those of operator i are first[i] to first[i + 1] - 1. 'out' has target,
--- 'in' has source and edge.
---@class trinity.GraphRows
---@field first trinity.Int32View
---@field target trinity.Int32View who reads, ascending in a row
---@field source trinity.Int32View who is read, ascending in a row
---@field edge trinity.Int32View the edge's number among those that leave
---@field bytes trinity.DoubleArray

---@class trinity.GraphPathOptions
---@field time_s trinity.DoubleArray|number[]|fun(i: integer): number seconds of every operator
---@field transfer_s? trinity.DoubleArray|number[]|fun(bytes: number, from: integer, to: integer): number seconds of every edge of csr() (default: none)

---@class trinity.GraphPath
---@field operators integer[] along the path
---@field length_s number
---@field start_s trinity.DoubleArray per operator: the longest path up to its start
---@field tail_s trinity.DoubleArray per operator: the longest path from its start on

---@class trinity.CutOptions
---@field capacity? 'bytes'|trinity.DoubleArray|number[]|fun(bytes: number, from: integer, to: integer): number default 'bytes': a tensor counts once however many readers it has; else per edge of csr(), math.huge: never cut
---@field backward? trinity.BackwardEdges what edges cost that lead back (default 'free')

---@class trinity.Cut
---@field capacity number of what is cut
---@field bytes number of distinct tensors from the sources' side to the other
---@field source_side integer[] the fewest operators that such a cut has

---@class trinity.Builder
local Builder = {}

--- Adds an operator; returns its output tensors.
---@param spec trinity.OperatorSpec
---@return trinity.Tensor ...
function Builder:add(spec) end

--- Adds an operator of a graph made by hand; returns its name, which add_edge() takes.
---@param spec trinity.HandOperatorSpec
---@return string name
function Builder:add_operator(spec) end

--- Makes operator `to` read a new output of operator `from` of `size_bytes`, or the tensor `from`.
---@param from string|trinity.Tensor
---@param to string|trinity.Tensor
---@param size_bytes? number may be left out where `from` is a tensor
---@return trinity.Tensor
function Builder:add_edge(from, to, size_bytes) end

--- Joins operators into a collective, which they run together without occupying their devices.
---@param spec trinity.CollectiveSpec
function Builder:collective(spec) end

--- Finishes; the builder is empty afterwards.
---@return trinity.Graph
function Builder:build() end

--- An operator made by hand.
---@class trinity.HandOperatorSpec
---@field name string
---@field type? string default 'Work'
---@field time_s? number measured seconds of its forward run
---@field backward_time_s? number measured seconds of its backward operator
---@field memory_bytes? number resident all step beside the weights
---@field flops? number
---@field parameter_bytes? number of weights
---@field workspace_bytes? number needed only while it runs
---@field traffic_bytes? number memory traffic (default: inputs, outputs and weights)
---@field phase? 'forward'|'backward'|'update'
---@field forward? string the operator that a backward or update one serves
---@field colocate_with? string an operator on the same device
---@field inputs? trinity.Tensor[]
---@field outputs? trinity.TensorSpec[]
---@field parameters? trinity.ParameterSpec[]
---@field attributes? table<string, any>
