---@meta _
-- What trinity.select takes and gives (LuaLS annotations); nothing runs it.
error 'this file is for editors'

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
---@field misfit? string what keeps the solution from being feasible: then it is the least infeasible that was met
---@field optimal boolean proven; where feasible is false: proven that nothing is feasible
---@field solution integer[] the strategy of every node
---@field seconds number of reading and solving
---@field stopped boolean whether Ctrl-C ended it
---@field table_entries integer of all tables of the exact solver
---@field peak_table_entries integer held at one time
---@field widest_set integer PaSE's largest dependent set of the graph as given
---@field largest_table number most combinations of a node and its dependent set
