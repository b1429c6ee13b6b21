---@meta _
-- What layers take.
error 'this file is for editors'

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
