-- Networks: modules, losses and optimizers for trinity.tensor. Custom modules: see trinity.nn.module.

local check = require 'trinity.base.check'
local tensor = require 'trinity.nn.tensor'
local layers = require 'trinity.nn.layers'
local optimisers = require 'trinity.nn.optimisers'
local recurrent = require 'trinity.nn.recurrent'
local util = require 'trinity.base.util'
local module = require 'trinity.nn.module'

local operations = require 'trinity.nn.operations'

--- Networks: layers, losses, optimizers, and classes for custom modules. Matrices are initialized Glorot-uniform,
--- biases to 0, biases of an LSTM's forget gates to 1.
---@class trinity.NnModule
---@field relu fun(x: trinity.TorchTensor): trinity.TorchTensor Example: `trinity.nn.relu(x)`
---@field gelu fun(x: trinity.TorchTensor): trinity.TorchTensor Example: `trinity.nn.gelu(x)`
---@field silu fun(x: trinity.TorchTensor): trinity.TorchTensor Example: `trinity.nn.silu(x)`
---@field tanh fun(x: trinity.TorchTensor): trinity.TorchTensor Example: `trinity.nn.tanh(x)`
---@field sigmoid fun(x: trinity.TorchTensor): trinity.TorchTensor Example: `trinity.nn.sigmoid(x)`
--- Along the last dimension. Example: `trinity.nn.softmax(x)`
---@field softmax fun(x: trinity.TorchTensor): trinity.TorchTensor
--- Along the last dimension. Example: `trinity.nn.log_softmax(x)`
---@field log_softmax fun(x: trinity.TorchTensor): trinity.TorchTensor
--- Linear layer: x [..., inputs] to [..., outputs]. Example: `trinity.nn.linear { inputs = 4, outputs = 2 }`
---@field linear fun(options: trinity.LinearOptions): trinity.Module
--- Embedding: indices from 1 to count (an int64 tensor or a list) to [..., size]. Example: `trinity.nn.embedding {
--- count = 10, size = 4 }`
---@field embedding fun(options: trinity.EmbeddingOptions): trinity.Module
--- LSTM: m(x [T, N, inputs], { h, c } or nil) to output [T, N, hidden], { h, c }; states are [layers, N, hidden].
--- Example: `trinity.nn.lstm { inputs = 4, hidden = 8 }`
---@field lstm fun(options: trinity.RecurrentOptions): trinity.Module
--- GRU: m(x [T, N, inputs], h or nil) to output [T, N, hidden], h. Example: `trinity.nn.gru { inputs = 4, hidden = 8 }`
---@field gru fun(options: trinity.RecurrentOptions): trinity.Module
--- Scales gradients so that their common norm is at most max_norm; returns the norm before. Example:
--- `trinity.nn.clip_grad_norm(network:parameters(), 1)`
---@field clip_grad_norm fun(parameters: trinity.TorchTensor[], max_norm: number): number
--- Makes a class of modules: define build(self, options) and forward(self, ...), then call it with options. Parameters
--- are found among the fields: tensors that require gradients, modules, lists of modules. See
--- lib/trinity/nn/module.lua. Example: `local Policy = trinity.nn.class 'policy'`
---@field class fun(name: string): table
--- Returns whether a value is a module. Example: `trinity.nn.is_module(network)`
---@field is_module fun(value?: any): boolean
local nn = { adam = optimisers.adam, sgd = optimisers.sgd }

for name, class in util.sorted_pairs { linear = layers.linear, embedding = layers.embedding, lstm = recurrent.lstm,
  gru = recurrent.gru } do
  nn[name] = function(options) return class(options) end
end
function nn.cross_entropy(logits, targets, reduction) return operations.cross_entropy(logits, targets, reduction) end
function nn.mse(x, y, reduction) return operations.mse(x, y, reduction) end
function nn.clip_grad_norm(parameters, max_norm) return operations.clip_grad_norm(parameters, max_norm) end
function nn.class(name) return module.class(name) end
function nn.is_module(value) return module.is(value) end

-- Activations as functions, for nn.sequential and calls.
for _, name in ipairs { 'relu', 'gelu', 'silu', 'tanh', 'sigmoid', 'softmax', 'log_softmax' } do
  local owner = 'nn.' .. name
  nn[name] = function(x)
    if not tensor.is(x) then check.wrong(owner, 1, 'x', x, 'a tensor') end
    return x[name](x)
  end
end

local sequential = module.class 'sequential'

function sequential:build(options)
  local steps = {}
  rawset(self, 'steps', steps) -- in addition to the children, whose names are their positions
  for i, step in ipairs(options) do
    if not module.is(step) and type(step) ~= 'function' then
      check.refuse('nn.sequential', 1, 'steps', 'entry %d: expected a module or a function, got %s', i,
        util.describe(step))
    end
    steps[i] = step
    if module.is(step) then self[tostring(i)] = step end
  end
  if #steps == 0 then check.refuse('nn.sequential', 1, 'steps', 'expected at least one module or function') end
  for name in util.sorted_pairs(options) do
    if type(name) == 'string' and name ~= 'seed' then
      util.fail("nn.sequential: unknown option '%s' (known: seed)", name)
    end
  end
end

function sequential:forward(...)
  local steps = self.steps
  local x = steps[1](...)
  for i = 2, #steps do x = steps[i](x) end
  return x
end

--- Chains modules and functions: nn.sequential { nn.linear {...}, nn.relu, ..., seed = 7 }.
--- Example: `trinity.nn.sequential { trinity.nn.linear { inputs = 4, outputs = 8 }, trinity.nn.relu }`
---@param steps table
---@return trinity.Module
function nn.sequential(steps)
  return sequential(check.argument('nn.sequential', 1, 'steps', steps, 'table'))
end

return nn
