---@meta _
-- Graphs, what makes them, and layers. See trinity.lua.
error 'this file is for editors'

---@alias trinity.OrderKind 'number'|'depth_first'|'breadth_first'
---@alias trinity.BackwardEdges 'free'|'counted'|'forbidden'
---@alias trinity.OperatorRef integer|string

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

--- An operator made by hand.
---@class trinity.HandOperatorSpec: trinity.AnyOperatorSpec
---@field type? string default 'Work'
---@field time_s? number measured seconds of its forward run
---@field backward_time_s? number measured seconds of its backward operator
---@field memory_bytes? number resident all step beside the weights

--- Of attention and the blocks around it; see the methods for which they take.
---@class trinity.AttentionOptions
---@field heads integer
---@field key_heads? integer heads of keys and values (default heads)
---@field mask? trinity.Tensor added to the scores
---@field dropout? number
---@field causal? boolean
---@field bias? boolean of the projections (default true)
---@field fused? boolean one product for queries, keys and values
---@field rotary? trinity.Tensor[] tables of cosines and sines
---@field feed_forward? integer width between the two linear layers
---@field approximate? string of the GELU
---@field norm_first? boolean normalise before the sublayers
---@field epsilon? number of the normalisations
