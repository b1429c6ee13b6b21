---@meta _
-- trinity.nn (LuaLS annotations); nothing runs it.
error 'this file is for editors'

---@alias trinity.LossReduction 'mean'|'sum'|'none'

---@class trinity.LayerOptions
---@field seed? integer of the initial weights; default 1, until a network with a seed takes the layer
---@field name? string of the random streams; default the layer's kind

---@class trinity.LinearOptions: trinity.LayerOptions
---@field inputs integer
---@field outputs integer
---@field bias? boolean default true

---@class trinity.EmbeddingOptions: trinity.LayerOptions
---@field count integer rows
---@field size integer width

---@class trinity.LayerNormOptions: trinity.LayerOptions
---@field size integer
---@field epsilon? number default 1e-5

---@class trinity.DropoutOptions: trinity.LayerOptions
---@field p? number probability of a zero, default 0.5

---@class trinity.NetworkAttentionOptions: trinity.LayerOptions
---@field size integer
---@field heads? integer default 1

---@class trinity.RecurrentOptions: trinity.LayerOptions
---@field inputs integer
---@field hidden integer
---@field layers? integer default 1
---@field bidirectional? boolean default false

---@class trinity.ModuleOptions
---@field seed? integer initialises all weights anew, each by its path

---@class trinity.AdamOptions
---@field parameters trinity.TorchTensor[]
---@field learning_rate? number default 1e-3
---@field betas? number[] default { 0.9, 0.999 }
---@field epsilon? number default 1e-8
---@field weight_decay? number default 0

---@class trinity.SgdOptions
---@field parameters trinity.TorchTensor[]
---@field learning_rate number
---@field momentum? number default 0
---@field weight_decay? number default 0

---@class trinity.GraphEdges
---@field from trinity.TorchTensor int64
---@field to trinity.TorchTensor int64
---@field weight trinity.TorchTensor

---@class trinity.NnModule
---@field clip_grad_norm fun(parameters: trinity.TorchTensor[], max_norm: number): norm_before: number Scales gradients so that their common norm is at most max_norm.
local nn = {}

--- Of logits [..., categories] and 1-based targets [...].
---@param logits trinity.TorchTensor
---@param targets trinity.TorchTensor|integer[]
---@param reduction? trinity.LossReduction default 'mean'
---@return trinity.TorchTensor
function nn.cross_entropy(logits, targets, reduction) end

--- Minus the log-probabilities [..., categories] of 1-based targets [...].
---@param log_probabilities trinity.TorchTensor
---@param targets trinity.TorchTensor|integer[]
---@param reduction? trinity.LossReduction default 'mean'
---@return trinity.TorchTensor
function nn.nll(log_probabilities, targets, reduction) end

--- Squared differences of two tensors of one shape.
---@param x trinity.TorchTensor
---@param y trinity.TorchTensor
---@param reduction? trinity.LossReduction default 'mean'
---@return trinity.TorchTensor
function nn.mse(x, y, reduction) end
