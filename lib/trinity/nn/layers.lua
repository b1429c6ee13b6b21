-- Layers without recurrent state. trinity.nn describes them.

local options_of = require 'trinity.base.options'
local tensor = require 'trinity.nn.tensor'
local module = require 'trinity.nn.module'

local operations = require 'trinity.nn.operations'
local layers = {}

local max_size = 2 ^ 31

--- Common options of all layers.
layers.declared = options_of.declare('trinity.LayerOptions', { help = 'Options of every layer.',
  { 'seed', 'integer', 1, least = 0, most = 2 ^ 53, late = true,
    help = 'random seed of the initial weights, unless the layer becomes part of a network with a seed' },
  { 'name', 'string', otherwise = "the layer's type", help = 'name of its random streams' },
})

--- Returns a required width or count for options.declare.
function layers.size(name, help)
  return { name, 'integer', least = 1, most = max_size, needed = true, help = help }
end

local size = layers.size

local function parameter(shape) return tensor.zeros(shape, { requires_grad = true }) end

--- Fills a matrix [outputs, inputs] with uniform numbers within sqrt(6 / (outputs + inputs)), from a stream.
local function glorot(weight, stream)
  local limit = math.sqrt(6 / (weight:size(1) + weight:size(2)))
  tensor.no_grad(weight.copy_, weight, tensor.uniform(weight:size(), stream, -limit, limit))
end

local function fill(weight, value) tensor.no_grad(weight.fill_, weight, value) end

layers.parameter, layers.glorot, layers.fill = parameter, glorot, fill

local linear_options = options_of.declare('trinity.LinearOptions', { extends = layers.declared,
  help = 'Options of nn.linear.',
  size('inputs', 'width of what comes in'), size('outputs', 'width of what goes out'),
  { 'bias', 'boolean', true, help = 'add a bias' },
})
local linear = module.class('linear', linear_options)
layers.linear = linear

function linear:build(options)
  self.inputs, self.outputs = options.inputs, options.outputs
  self.weight = parameter { self.outputs, self.inputs }
  self.bias = options.bias and parameter { self.outputs } or nil
end

function linear:reset(stream_of)
  glorot(self.weight, stream_of 'weight')
  if self.bias then fill(self.bias, 0) end
end

function linear:forward(x) return operations.linear(x, self.weight, self.bias) end

local embedding = module.class('embedding', options_of.declare('trinity.EmbeddingOptions', {
  extends = layers.declared, help = 'Options of nn.embedding.', size('count', 'rows'), size('size', 'width') }))
layers.embedding = embedding

function embedding:build(options)
  self.count, self.size = options.count, options.size
  self.weight = parameter { self.count, self.size }
end

function embedding:reset(stream_of) glorot(self.weight, stream_of 'weight') end

function embedding:forward(indices) return operations.embedding(indices, self.weight) end

return layers
