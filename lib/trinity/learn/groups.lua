-- Contiguous groups of colocation units, and features of groups.

local array = require 'trinity.base.array'
local check = require 'trinity.base.check'
local core = require 'trinity.core'
local tensor = require 'trinity.nn.tensor'
local util = require 'trinity.base.util'

local groups = {}

--- Returns the group of every unit, from 1: contiguous parts of about equal work along the graph, none empty.
function groups.contiguous(problem, count)
  check.object('learn.contiguous_groups', 1, 'problem', problem, 'problem')
  local units = problem.graph.units
  check.integer('learn.contiguous_groups', 2, 'groups', count, 1, units)
  local handle = core.features(problem.handle, { node2vec = false })
  local position, group_of, group = array.double(units), array.int32(units), 0
  handle:position(position)
  handle:close()
  for place, unit in ipairs(util.order_of(position)) do
    -- The group of the previous unit or the next one, so that no group is empty.
    local wanted = math.floor(position[unit] * count) + 1
    group = math.max(count - (units - place), math.min(group + 1, count, math.max(group, wanted)))
    group_of[unit] = group
  end
  return group_of
end

--- Features of every unit with its type, one-hot: [units, width].
function groups.unit_rows(features)
  return tensor.cat({ features.values, features.types:one_hot(features.type_count):to { dtype = 'float32' } }, 2)
end

function groups.rows(rows, group_of, count)
  local index = tensor.new(group_of)
  local sums = tensor.zeros({ count, rows:size(2) }):index_add(1, index, rows)
  local counts = tensor.zeros({ count, 1 }):index_add(1, index, tensor.ones { rows:size(1), 1 })
  return sums / counts:clamp(1)
end

return groups
