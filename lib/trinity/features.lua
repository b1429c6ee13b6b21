-- trinity.features: what policies are told of a problem, one row per colocation unit (engine/learn/features.h).

local core = require 'trinity.core'
local array = require 'trinity.array'
local tensor = require 'trinity.tensor'
local util = require 'trinity.util'

--- trinity.features(problem, { seed = 1, depth_waves = 5, raw_time = false, depth_feature = true,
--- node2vec = { dimensions = 64, ... } }) -> table with
---   units, width, type_count   counts
---   values      float32 tensor [units, width]: time, output size, depth, node2vec, each column standardised
---   types       int64 tensor [units]: the operator type of the unit's first operator, from 1
---   position    double array: the share of the work that comes before the unit's middle
---   from, to, bytes   arrays of the edges between units
return function(problem, options)
  util.expect('trinity.features', 'problem', problem, 'table')
  local handle = core.features(problem.handle, options or {})
  local self = handle:summary()
  local values, types = array.double(self.units * self.width), array.int32(self.units)
  handle:values(values)
  handle:types(types)
  self.values = tensor.new(values):to { dtype = 'float32' }:reshape { self.units, self.width }
  self.types = tensor.new(types)
  self.position = array.double(self.units)
  handle:position(self.position)
  self.from, self.to, self.bytes = array.int32(self.edges), array.int32(self.edges), array.double(self.edges)
  handle:edges(self.from, self.to, self.bytes)
  handle:close()
  return self
end
