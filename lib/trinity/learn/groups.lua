-- Contiguous groups of colocation units, and features of groups.

local array = require 'trinity.base.array'
local check = require 'trinity.base.check'
local core = require 'trinity.core'
local tensor = require 'trinity.nn.tensor'

local groups = {}

--- See trinity.learn.contiguous_groups.
function groups.contiguous(problem, count)
  check.object('learn.contiguous_groups', 1, 'problem', problem, 'problem')
  local units = problem.graph.units
  check.integer('learn.contiguous_groups', 2, 'groups', count, 1, units)
  local handle = core.features(problem.handle, { node2vec = false })
  local position, group_of, order = array.double(units), array.int32(units), {}
  handle:position(position)
  handle:close()
  for unit = 1, units do order[unit] = unit end
  table.sort(order, function(a, b)
    if position[a] ~= position[b] then return position[a] < position[b] end
    return a < b
  end)
  local group = 0
  for place, unit in ipairs(order) do
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

--- Rows of groups as means of their members' rows.
function groups.rows(rows, group_of, count)
  local index = tensor.new(group_of)
  local sums = tensor.zeros({ count, rows:size(2) }):index_add(1, index, rows)
  local counts = tensor.zeros({ count, 1 }):index_add(1, index, tensor.ones { rows:size(1), 1 })
  return sums / counts:clamp(1)
end

return groups
