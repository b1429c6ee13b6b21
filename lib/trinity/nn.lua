-- Networks: modules, losses and optimisers over trinity.tensor. Own modules: see trinity.nn.module.

local check = require 'trinity.check'
local core = require 'trinity.core'
local tensor = require 'trinity.tensor'
local layers = require 'trinity.nn.layers'
local optimisers = require 'trinity.nn.optimisers'
local recurrent = require 'trinity.nn.recurrent'
local util = require 'trinity.util'
local module = require 'trinity.nn.module'

local operations = core.tensor.layers

local nn = {
  graph_edges = layers.graph_edges, normalised_edges = layers.normalised_edges,
  cross_entropy = operations.cross_entropy, nll = operations.nll, mse = operations.mse,
  adam = optimisers.adam, sgd = optimisers.sgd, clip_grad_norm = operations.clip_grad_norm,
}

--- x [..., inputs] to [..., outputs].
function nn.linear(options) return layers.linear(options) end

--- Indices from 1 to count, of any shape, to [..., size].
function nn.embedding(options) return layers.embedding(options) end

--- Mean 0 and variance 1 along the last dimension, then scaled and shifted.
function nn.layer_norm(options) return layers.layer_norm(options) end

--- In training, zeros with probability p, from a random stream of its own.
function nn.dropout(options) return layers.dropout(options) end

--- Multi-head scaled dot-product attention.
function nn.attention(options) return layers.attention(options) end

--- Mixes features of neighbours in a graph.
function nn.graph_convolution(options) return layers.graph_convolution(options) end

--- x [T, N, inputs] and {h, c} to output [T, N, hidden], {h, c}.
function nn.lstm(options) return recurrent.lstm(options) end

--- x [T, N, inputs] and h to output [T, N, hidden], h.
function nn.gru(options) return recurrent.gru(options) end

--- A class of modules of your own; see trinity.nn.module.
function nn.class(name) return module.class(name) end

--- Whether a value is a module.
function nn.is_module(value) return module.is(value) end

-- Activations as functions, for nn.sequential and calls.
for _, name in ipairs { 'relu', 'gelu', 'tanh', 'sigmoid', 'softmax', 'log_softmax' } do
  local owner = 'nn.' .. name
  nn[name] = function(x)
    if not tensor.is(x) then check.wrong(owner, 1, 'x', x, 'a tensor') end
    return x[name](x)
  end
end

local function seed_of(owner, options)
  return check.options(owner, 3, 'options', options, { seed = { 'integer', 0, 2 ^ 53 } }).seed
end

--- A module from a function forward(self, ...) and its children: modules and parameters by name.
function nn.module(forward, children, options)
  check.argument('nn.module', 1, 'forward', forward, 'function')
  check.argument('nn.module', 2, 'children', children, 'table')
  local class = module.class 'module'
  class.forward = forward
  function class:build()
    for i, child in ipairs(children) do self[tostring(i)] = child end
    for name, child in util.sorted_pairs(children) do
      if type(name) == 'string' then self[name] = child end
    end
  end
  return class { seed = seed_of('nn.module', options) }
end

local sequential = module.class 'sequential'

function sequential:build(options)
  local steps = {}
  rawset(self, 'steps', steps) -- beside the children, whose names are their places
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

--- Modules and functions one after another: nn.sequential { nn.linear {...}, nn.relu, ..., seed = 7 }.
function nn.sequential(steps)
  return sequential(check.argument('nn.sequential', 1, 'steps', steps, 'table'))
end

return nn
