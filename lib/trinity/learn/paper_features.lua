-- Inputs of the networks of Hierarchical and ColocRL from operators and groups (papers/notes.md "Hierarchical"): type,
-- output shapes, neighbours. Here a row is a colocation unit; its outputs are the outputs of its first operator.
-- Extents and counts are log1p, because raw values saturate an LSTM; neighbours are fractions of the number of units.

local features = require 'trinity.learn.features'
local nn = require 'trinity.nn'
local tensor = require 'trinity.nn.tensor'

local most_outputs, axes, most_neighbours = 6, 4, 6
local group_outputs = 4 -- outputs of a unit whose shapes a group adds up: 16 numbers
local embedding_size = 20

local paper_features = {}

-- Units in breadth-first order from those that read nothing: number -> place.
local function breadth_first(units, leave, indegree)
  local place, queue = {}, {}
  local function meet(unit)
    if place[unit] then return end
    queue[#queue + 1] = unit
    place[unit] = #queue
  end
  local function spread(at)
    while queue[at] do
      for _, to in ipairs(leave[queue[at]]) do meet(to) end
      at = at + 1
    end
    return at
  end
  for unit = 1, units do
    if indegree[unit] == 0 then meet(unit) end
  end
  local at = spread(1)
  for unit = 1, units do -- in cycles
    meet(unit)
    at = spread(at)
  end
  return place
end

-- Neighbours of every unit: those that it feeds and those that feed it.
local function neighbours(told)
  local leave, enter, indegree = {}, {}, {}
  for unit = 1, told.units do leave[unit], enter[unit], indegree[unit] = {}, {}, 0 end
  for e = 1, told.edges do
    local from, to = told.from[e], told.to[e]
    if from ~= to then
      table.insert(leave[from], to)
      table.insert(enter[to], from)
      indegree[to] = indegree[to] + 1
    end
  end
  return leave, enter, breadth_first(told.units, leave, indegree)
end

local function add_neighbours(row, list, place, units)
  local places = {}
  for i, unit in ipairs(list) do places[i] = place[unit] end
  table.sort(places)
  for i = 1, most_neighbours do row[#row + 1] = places[i] and places[i] / units or -1 end
end

-- Extents of the first `count` outputs, 4 an output: of(extent), and `none` where there is none.
local function extents_row(operator, count, none, of)
  local row = {}
  for i = 1, count do
    local shape = operator.outputs[i] and operator.outputs[i].shape or {}
    for axis = 1, axes do row[#row + 1] = shape[axis] and of(shape[axis]) or none end
  end
  return row
end

local function log1p(extent) return math.log(1 + extent) end
local function unchanged(extent) return extent end

--- Features of a problem's units: { types = int64 [units], type_count = at most 200, rows = [units, 36] (shapes of
--- outputs, neighbours that feed it, neighbours that it feeds), extents = [units, 16], from, to, units }.
function paper_features.units(problem, seed)
  local told = features(problem, { seed = seed, vocabulary = 'graph', node2vec = false })
  local leave, enter, place = neighbours(told)
  local rows, extents = {}, {}
  for unit = 1, told.units do
    local operator = problem.graph:operator(problem.graph:unit(unit)[1])
    local row = extents_row(operator, most_outputs, -1, log1p)
    add_neighbours(row, enter[unit], place, told.units)
    add_neighbours(row, leave[unit], place, told.units)
    rows[unit], extents[unit] = row, extents_row(operator, group_outputs, 0, unchanged)
  end
  return { types = told.types, type_count = told.type_count, rows = tensor.new(rows), extents = tensor.new(extents),
    one_hot = told.types:one_hot(told.type_count):to { dtype = 'float32' }, from = told.from, to = told.to,
    units = told.units }
end

--- Types as the groups' members have them and the sum of their outputs' extents: [samples, groups, types + 16], of
--- `member` [samples, groups, units].
function paper_features.groups(told, member)
  return (tensor.cat({ member:matmul(told.one_hot), member:matmul(told.extents) }, 3) + 1):log()
end

local Units = nn.class 'paper_units'

--- Rows of units with a learned embedding of their type before them: [units, 20 + 36]. { told = units(...), seed = }
function Units:build(spec)
  self.told = spec.told
  self.type = nn.embedding { count = spec.told.type_count, size = embedding_size }
end

function Units:forward() return tensor.cat({ self.type(self.told.types), self.told.rows }, 2) end

paper_features.embedded, paper_features.embedding_size = Units, embedding_size
paper_features.width = embedding_size + most_outputs * axes + 2 * most_neighbours

return paper_features
