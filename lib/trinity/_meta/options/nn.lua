---@meta _
-- Options that functions of lib/trinity/nn take, made of what its modules declare (lib/trinity/base/options.lua) by
-- `build/trinity tests/lua/golden.lua --accept options`.
error 'this file is for editors'

--- What nn.adam takes.
---@class trinity.AdamOptions
---@field parameters trinity.TorchTensor[] what it improves
---@field learning_rate? number of a step (default 0.001; 0 or more)
---@field betas? number[] decay of the moments (default { 0.9, 0.999 })
---@field epsilon? number added to the second moment's root (default 1e-8; 0 or more)
---@field weight_decay? number share of a weight that its gradient grows by (default 0; 0 or more)

--- What nn.dropout takes.
---@class trinity.DropoutOptions: trinity.LayerOptions
---@field p? number probability of a zero (default 0.5; 0 to 0.999)

--- What nn.embedding takes.
---@class trinity.EmbeddingOptions: trinity.LayerOptions
---@field count integer rows (1 to 2147483648)
---@field size integer width (1 to 2147483648)

--- What nn.layer_norm takes.
---@class trinity.LayerNormOptions: trinity.LayerOptions
---@field size integer width (1 to 2147483648)
---@field epsilon? number added to the variance (default 1e-5)

--- What every layer takes.
---@class trinity.LayerOptions
---@field seed? integer of the initial weights, until a network with a seed takes the layer (default 1; 0 to 2^53)
---@field name? string of the random streams (default: the layer's kind)

--- What nn.linear and nn.graph_convolution take.
---@class trinity.LinearOptions: trinity.LayerOptions
---@field inputs integer width of what comes in (1 to 2147483648)
---@field outputs integer width of what goes out (1 to 2147483648)
---@field bias? boolean whether something is added (default true)

--- What nn.module takes.
---@class trinity.ModuleOptions
---@field seed? integer initialises all weights anew, each by its path (default: weights stay as they are; 0 to 2^53)

--- What nn.attention takes.
---@class trinity.NetworkAttentionOptions: trinity.LayerOptions
---@field size integer width (1 to 2147483648)
---@field heads? integer among which the width is divided (default 1; 1 to 4096)

--- What nn.lstm and nn.gru take.
---@class trinity.RecurrentOptions: trinity.LayerOptions
---@field inputs integer width of what comes in (1 to 2147483648)
---@field hidden integer width of the state (1 to 2147483648)
---@field layers? integer on top of each other (default 1; 1 to 1000)
---@field bidirectional? boolean each layer runs both ways (default false)

--- What nn.sgd takes.
---@class trinity.SgdOptions
---@field parameters trinity.TorchTensor[] what it improves
---@field learning_rate number of a step (0 or more)
---@field momentum? number share of the last step that goes on (default 0)
---@field weight_decay? number share of a weight that its gradient grows by (default 0; 0 or more)
