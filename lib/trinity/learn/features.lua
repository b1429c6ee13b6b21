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

--- What policies are told of a problem.
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
