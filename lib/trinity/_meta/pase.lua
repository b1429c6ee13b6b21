---@meta _
-- PaSE, splits and what they lower to, and the choice of strategies (trinity.select). See trinity.lua.
error 'this file is for editors'

---@class trinity.Dimension
---@field name string
---@field size number
---@field role string 'rows', 'batch', 'columns', 'reduced' or 'coupled'
---@field splits boolean

---@class trinity.PaseLayer
---@field name string that of its first operator
---@field type string
---@field kind string how the cost model prices it
---@field pointwise integer element-wise operators that run with it and count
---@field dimensions trinity.Dimension[]
---@field operators integer[] of the graph
---@field configurations integer how many

--- Configurations of layers and what they cost in PaSE's model; pase:splits says them as a strategy does.
---@class trinity.PaseResult
---@field name string
---@field configurations integer[][] a factor per dimension, per layer
---@field cost number FLOP equivalents a device
---@field compute number
---@field communication number in layers
---@field edges number between layers
---@field in_space boolean
---@field solution? integer[] strategy of every layer, where it comes from a search
---@field optimal? boolean
---@field bound? number no strategy costs less
---@field seconds? number of the search
---@field table_entries? integer
---@field peak_table_entries? integer
---@field largest_table? number combinations of a layer and its dependent set
---@field widest_set? integer
---@field stopped? boolean by Ctrl-C
---@field iterations? integer of a chain
---@field accepted? integer

---@alias trinity.Splits table<string, table> by operator: { b = 8, n = 2, copies = 1, devices = { 1, 2, ... } }, factors by dimension; what is left out is 1, or all devices

---@class trinity.Lowered
---@field graph trinity.Graph
---@field placement trinity.Placement
---@field origin integer[] operator of the graph that was split, per operator; 0: none
---@field part integer[]

--- A strategy-selection problem. Costs may be negative; math.huge, or 1e17 and above, forbids.
---@class trinity.SelectionTable
---@field name? string
---@field nodes trinity.SelectionNodes
---@field edges trinity.SelectionEdges
---@field usage_limit? integer what usages may sum to at any time; none: usages do not matter

--- Lists in parallel, an entry a node.
---@class trinity.SelectionNodes
---@field costs number[][] by strategy
---@field usages? integer[][] by strategy; together with intervals
---@field intervals? integer[][] { start, end }: a usage counts at times start <= t < end

--- Lists in parallel, an entry an edge.
---@class trinity.SelectionEdges
---@field nodes integer[][] { node, node }
---@field costs number[][] all pairs of strategies: that of the second node changes fastest

---@class trinity.SelectResult
---@field name string of the problem
---@field nodes integer
---@field edges integer
---@field strategies integer of all nodes
---@field usage_limit? integer of the problem
---@field cost number of the solution
---@field feasible boolean whether the solution is within the limit and nothing in it is forbidden
---@field peak_usage integer the largest sum of usages over time
---@field bound number no feasible selection costs less
---@field infeasibility? string what keeps the solution from being feasible: then it is the least infeasible that was met
---@field optimal boolean proven; where feasible is false: proven that nothing is feasible
---@field solution integer[] the strategy of every node
---@field seconds number of reading and solving
---@field stopped boolean whether Ctrl-C ended it
---@field table_entries integer of all tables of the exact solver
---@field peak_table_entries integer held at one time
---@field widest_set integer PaSE's largest dependent set of the graph as given
---@field largest_table number most combinations of a node and its dependent set
