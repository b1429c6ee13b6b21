---@meta _
-- PaSE, splits and what they lower to, and the choice of strategies (trinity.select). See trinity.lua.
error 'this file is for editors'

---@alias trinity.PaseFactors 'divisors'|'powers_of_two'|'all'
---@alias trinity.PaseSpace 'code'|'paper'

---@class trinity.PaseOptions
---@field devices? integer p: no layer has more parts; default 8
---@field peak_flops? number of a device, for the cost model; default 10e12
---@field bandwidth_bytes_per_s? number default 16e9
---@field word_bytes? number of an element on the wire; default 8
---@field cutoff? integer the smallest block of a dimension; default 4
---@field factors? trinity.PaseFactors default 'divisors'
---@field halo? boolean convolutions split along height and width too; default false
---@field sum_edges? boolean all tensors between two layers count, not the last alone; default false
---@field space? trinity.PaseSpace 'paper': all factors, cutoff 1, halo, sum_edges, for few devices; default 'code', the reference code's

--- Settings of methods.pase.
---@class trinity.PaseMethodOptions: trinity.SearchOptions
---@field choose? string 'best' (default), 'mcmc', 'data_parallel', 'owt', 'expert' or 'tofu'
---@field cutoff? integer (1)
---@field factors? trinity.PaseFactors ('divisors')
---@field peak_flops? number of the cost model (10e12)
---@field bandwidth_bytes_per_s? number of the cost model; 0: that of the slowest route
---@field iterations? integer of 'mcmc' (250000)

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

---@class trinity.PaseStrategy
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

---@class trinity.PaseSolveOptions
---@field seconds? number for what dynamic programming cannot do; default 60
---@field seed? integer
---@field table_bytes? integer
---@field quiet? boolean

---@class trinity.PaseWalkOptions
---@field seed? integer default 1
---@field iterations? integer default 250000
---@field alpha_per_ms? number default 0: 100 over the start's milliseconds
---@field start? integer[][] configurations; default expert's. Layers of it outside the space start unsplit

---@class trinity.PaseRow
---@field layers string 'conv_1 .. conv_4'
---@field type string
---@field dimensions string 'b c h w r s n'
---@field factors string '(32,1,...)'

---@alias trinity.Splits table<string, table> by operator: { b = 8, n = 2, copies = 1, devices = { 1, 2, ... } }, factors by dimension; what is left out is 1, or all devices

---@class trinity.LowerSpec
---@field graph trinity.Graph
---@field cluster trinity.Cluster
---@field splits? trinity.Splits
---@field placement? trinity.Placement of operators that are not split; default device 1

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

---@class trinity.SelectOptions
---@field seconds? number wall-clock limit, reading a file included; default 60
---@field seed? integer fixes every random number; default 1
---@field rounds? integer of search at most; default as many as there is time for. What ends by rounds is the same on every machine
---@field table_bytes? integer what tables of the exact solver may take; default 2 GiB
---@field quiet? boolean no progress line; default false

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
