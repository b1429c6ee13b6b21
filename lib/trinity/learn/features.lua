-- trinity.learn.features: features of a problem for policies, one row per colocation unit (engine/features/features.h).

local core = require 'trinity.core'
local array = require 'trinity.base.array'
local check = require 'trinity.base.check'
local declared = require('trinity.learn.feature_options').features
local tensor = require 'trinity.nn.tensor'

--- The features of a problem that policies take as inputs, one row per colocation unit.
--- Example: `trinity.learn.features(problem).values`
---@param problem trinity.Problem
---@param options? trinity.FeatureOptions
---@return trinity.Features
return function(problem, options)
  check.object('learn.features', 1, 'problem', problem, 'problem')
  local handle = core.features(problem.handle, declared:read('learn.features', 2, 'options', options))
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
