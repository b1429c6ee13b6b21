---@meta _
-- Options that functions of lib/trinity/fidelity take, made of what its modules declare (lib/trinity/base/options.lua) by
-- `build/trinity tests/lua/golden.lua --accept options`.
error 'this file is for editors'

--- What a step of a case takes.
---@class trinity.CaseBatch
---@field micro_batch integer sequences of a micro-batch of a replica (1 or more)
---@field sequence integer tokens of each (1 or more)
---@field micro_batches integer of a step (1 or more)

--- Bytes of an element in a case.
---@class trinity.CaseBytes
---@field activation? integer of an element (default 2; 1 or more)
---@field weight? integer of an element (default 2; 1 or more)
---@field gradient? integer of an element (default 4; 1 or more)
---@field optimizer? integer of a weight: its copy in float32 and its moments (default 12; 0 or more)

--- The network of a case.
---@class trinity.CaseModel
---@field layers? integer of the network (default 1; 1 to 10000)
---@field hidden? integer width of a position (default 1; 1 or more)
---@field heads? integer of queries (default 1; 1 or more)
---@field kv_heads? integer of keys and values (default: heads; 1 or more)
---@field head_dim? integer width of a head (default: hidden over heads; 1 or more)
---@field ffn? integer width of the feed-forward network, of one expert where there are some (default 1; 1 or more)
---@field gated? boolean three matrices in place of two (default false)
---@field vocabulary? integer tokens known (default 1; 1 or more)
---@field tied? boolean the logits share the table of tokens (default false)
---@field positions? integer rows of a learned table (default 0; 0 or more)
---@field norm? 'layernorm'|'rmsnorm' kind of normalisation (default 'layernorm')
---@field norms_per_layer? integer two, or four with those of results (default 2; 2 to 4)
---@field qk_norm? boolean queries and keys are normalised head by head (default false)
---@field bias? 'none'|'qkv'|'all' which products have one (default 'none')
---@field dropout? boolean of embedding, shares and results (default false)
---@field experts? integer of a layer (default 0; 0 or more)
---@field top_k? integer experts of a token (default 0; 0 or more)
