---@meta _
-- Graphs, what makes them, and layers. See trinity.lua.
error 'this file is for editors'

---@alias trinity.OrderKind 'number'|'depth_first'|'breadth_first'
---@alias trinity.OperatorRef integer|string

--- Edges in compressed rows: edges of operator i are first[i] to first[i + 1] - 1. 'out' has target,
--- 'in' has source and edge.
---@class trinity.GraphRows
---@field first trinity.Int32View
---@field target trinity.Int32View who reads, ascending in a row
---@field source trinity.Int32View who is read, ascending in a row
---@field edge trinity.Int32View the edge's number among those that leave
---@field bytes trinity.DoubleArray

---@class trinity.GraphPath
---@field operators integer[] along the path
---@field length_s number
---@field start_s trinity.DoubleArray per operator: the longest path up to its start
---@field tail_s trinity.DoubleArray per operator: the longest path from its start on

---@class trinity.Cut
---@field capacity number of what is cut
---@field bytes number of distinct tensors from the sources' side to the other
---@field source_side integer[] the fewest operators that such a cut has

--- An operator made by hand.
---@class trinity.HandOperatorSpec: trinity.AnyOperatorSpec
---@field type? string default 'Work'
---@field time_s? number measured seconds of its forward run
---@field backward_time_s? number measured seconds of its backward operator
---@field memory_bytes? number resident during the step in addition to the weights
