-- trinity.features: what policies are told of a problem, one row per colocation unit (engine/features/features.h).

local core = require 'trinity.core'
local array = require 'trinity.base.array'
local check = require 'trinity.base.check'
local tensor = require 'trinity.nn.tensor'

local rules = { seed = { 'integer', 0, 2 ^ 53 }, depth_waves = { 'integer', 0, 64 }, raw_time = 'boolean',
  depth_feature = 'boolean', node2vec = 'any', vocabulary = { 'choice', { shared = true, graph = true } } }

local size = { 'integer', 1, 1000 }
local node2vec_rules = { dimensions = { 'integer', 1, 4096 }, walk_length = size, walks_per_node = size, window = size,
  epochs = size, negatives = size, return_parameter = { 'positive' }, in_out_parameter = { 'positive' },
  learning_rate = { 'number', 1e-9, 1e3 } }

local function checked(options)
  options = check.options('trinity.features', 2, 'options', options, rules)
  local node2vec = options.node2vec
  if type(node2vec) == 'table' then
    check.fields('trinity.features', node2vec, node2vec_rules, 'node2vec option')
  elseif node2vec then
    check.wrong('trinity.features', 'option', 'node2vec', node2vec, 'a table or false')
  end
  return options
end

--- What policies are told of a problem: a table with, beside others,
---   values      float32 tensor [units, width], each column standardised over the units of the graph
---   columns     what they are: a list of { name =, first =, count = } from left to right, each also under its name:
---                 time          microseconds of the unit's operators on the mean device, log1p of them unless raw_time
---                 output_bytes  log1p
---                 depth         in the graph, 0 to 1; not there with depth_feature = false
---                 depth_waves   sine and cosine of pi 2^k depth for k = 0, 1, ...; not there with depth_waves = 0
---                 node2vec      the unit's surroundings, in directions that every graph and seed has its own of; not
---                               there with node2vec = false
---   types       int64 tensor [units]: the operator type of the unit's first operator, from 1 to type_count
---   type_names  the types by number. With vocabulary = 'shared' they are the same for all graphs: 'other 1'
---               to 'other 32' for types that the engine does not know, by a hash of their name, then the types
---               that it knows, each with its gradient behind it (shared_types() in engine/features/features.h). With
---               'graph' they are those of this graph, the most common first; from the 200th on they share a number
---@param problem trinity.Problem
---@param options? trinity.FeatureOptions
---@return trinity.Features
return function(problem, options)
  check.object('trinity.features', 1, 'problem', problem, 'problem')
  local handle = core.features(problem.handle, checked(options))
  local self = handle:summary()
  for _, column in ipairs(self.columns) do self.columns[column.name] = column end
  local values, types = array.double(self.units * self.width), array.int32(self.units)
  handle:values(values)
  handle:types(types)
  self.values = tensor.new(values):to { dtype = 'float32' }:reshape { self.units, self.width }
  self.types = tensor.new(types)
  self.position = array.double(self.units)
  handle:position(self.position)
  self.time_s, self.output_bytes = array.double(self.units), array.double(self.units)
  handle:costs(self.time_s, self.output_bytes)
  self.from, self.to, self.bytes = array.int32(self.edges), array.int32(self.edges), array.double(self.edges)
  handle:edges(self.from, self.to, self.bytes)
  handle:close()
  return self
end
