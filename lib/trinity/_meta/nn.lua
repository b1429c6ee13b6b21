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

--- Networks: layers, losses, optimisers, and classes of modules of your own. Matrices start Glorot-uniform,
--- biases at 0, forget gates of an LSTM at 1.
---@class trinity.NnModule
local nn = {}

--- x [..., inputs] to [..., outputs].
---@param options trinity.LinearOptions
---@return trinity.Module
function nn.linear(options) end

--- Indices from 1 to count (an int64 tensor or a list) to [..., size].
---@param options trinity.EmbeddingOptions
---@return trinity.Module
function nn.embedding(options) end

--- Mean 0 and variance 1 along the last dimension, then scaled and shifted.
---@param options trinity.LayerNormOptions
---@return trinity.Module
function nn.layer_norm(options) end

--- In training, zeros with probability p from a random stream of its own, the rest scaled up.
---@param options? trinity.DropoutOptions
---@return trinity.Module
function nn.dropout(options) end

--- Multi-head attention: m(query [N, T, size], key, value, { mask = }); m(x) is self-attention. The mask is a bool
--- tensor that broadcasts to [N, heads, T, S], true where attention is allowed.
---@param options trinity.NetworkAttentionOptions
---@return trinity.Module
function nn.attention(options) end

--- D^-1/2 (A + I) D^-1/2 x W + b: m(x [nodes, inputs], edges) to [nodes, outputs].
---@param options trinity.LinearOptions
---@return trinity.Module
function nn.graph_convolution(options) end

--- The operators of a graph joined by its tensors, for nn.graph_convolution.
---@param graph trinity.Graph
---@return trinity.GraphEdges
function nn.graph_edges(graph) end

--- The same for pairs of nodes; both directions, each once, and every node with itself.
---@param nodes integer
---@param pairs_list integer[][]
---@return trinity.GraphEdges
function nn.normalised_edges(nodes, pairs_list) end

--- m(x [T, N, inputs], { h, c } or nil) to output [T, N, hidden], { h, c }; states are [layers, N, hidden].
---@param options trinity.RecurrentOptions
---@return trinity.Module
function nn.lstm(options) end

--- m(x [T, N, inputs], h or nil) to output [T, N, hidden], h.
---@param options trinity.RecurrentOptions
---@return trinity.Module
function nn.gru(options) end

--- Modules and functions one after another: nn.sequential { nn.linear {...}, nn.relu, ..., seed = 7 }.
---@param steps table
---@return trinity.Module
function nn.sequential(steps) end

--- A module from a function forward(self, ...) and its children, modules and parameters by name.
---@param forward function
---@param children table<string, any>
---@param options? trinity.ModuleOptions
---@return trinity.Module
function nn.module(forward, children, options) end

--- A class of modules: define build(self, options) and forward(self, ...) in it; call it with options. Parameters are
--- found among the fields: tensors that require gradients, modules, lists of modules. See lib/trinity/nn/module.lua.
---@param name string
---@return table class
function nn.class(name) end

--- Whether a value is a module.
---@param value? any
---@return boolean
function nn.is_module(value) end

---@param x trinity.TorchTensor
---@return trinity.TorchTensor
function nn.relu(x) end

---@param x trinity.TorchTensor
---@return trinity.TorchTensor
function nn.gelu(x) end

---@param x trinity.TorchTensor
---@return trinity.TorchTensor
function nn.tanh(x) end

---@param x trinity.TorchTensor
---@return trinity.TorchTensor
function nn.sigmoid(x) end

--- Along the last dimension.
---@param x trinity.TorchTensor
---@return trinity.TorchTensor
function nn.softmax(x) end

--- Along the last dimension.
---@param x trinity.TorchTensor
---@return trinity.TorchTensor
function nn.log_softmax(x) end

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

--- Adam (Kingma and Ba 2015).
---@param options trinity.AdamOptions
---@return trinity.NetworkOptimiser
function nn.adam(options) end

--- Stochastic gradient descent.
---@param options trinity.SgdOptions
---@return trinity.NetworkOptimiser
function nn.sgd(options) end

--- Scales gradients so that their common norm is at most max_norm.
---@param parameters trinity.TorchTensor[]
---@param max_norm number
---@return number norm before
function nn.clip_grad_norm(parameters, max_norm) end

--- A part of a network: m(...) calls forward(...).
---@class trinity.Module
---@field training boolean set by train()
---@field forward fun(self: trinity.Module, ...: any): any what m(...) computes
local Module = {}

--- Every parameter, in order of assignment, each once.
---@return trinity.TorchTensor[]
function Module:parameters() end

--- The same as { path, tensor }.
---@return any[][]
function Module:named_parameters() end

--- Number of trainable numbers.
---@return integer
function Module:parameter_count() end

--- Training mode (default true) or evaluation, of this module and all below.
---@param on? boolean
---@return trinity.Module itself
function Module:train(on) end

--- Forgets gradients.
function Module:zero_grad() end

--- Draws all weights anew, each from the stream of `seed` and its path.
---@param seed integer
---@return trinity.Module itself
function Module:initialise(seed) end

--- Moves all parameters to another dtype or device; gradients are dropped. Make optimisers afterwards.
---@param options trinity.TensorTarget
---@return trinity.Module itself
function Module:to(options) end

--- Saves all parameters by path (safetensors).
---@param path string
function Module:save(path) end

--- Takes all parameters from such a file; names and shapes must be the same.
---@param path string
---@return trinity.Module itself
function Module:load(path) end

--- Frees all parameters; safe to repeat.
function Module:close() end

--- What stands in brackets when printed; may be defined in classes.
---@return string
function Module:describe() end

---@class trinity.NetworkOptimiser
---@field learning_rate number may be assigned
local Optimiser = {}

--- Changes the parameters by their gradients.
function Optimiser:step() end

--- Forgets gradients.
function Optimiser:zero_grad() end

--- What was gathered: for every parameter a table of tensors (and Adam's step), empty before the first step.
---@return table[]
function Optimiser:state() end

--- Takes back what state() gave.
---@param state table[]
function Optimiser:load_state(state) end

--- Saves state and learning rate (safetensors).
---@param path string
function Optimiser:save(path) end

--- Takes both from such a file.
---@param path string
function Optimiser:load(path) end

function Optimiser:close() end
