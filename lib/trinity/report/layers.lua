-- A layout of a graph with thousands of operators as a map of at most a few hundred layers.
--
-- layers.of(graph) gives
--   operators  { name = list, type = list of distinct types, type_of = packed, layer_of = packed, phase = packed }
--   layers     names
--   edges      packed from, to (layers, from 1) and bytes: data between forward operators of different layers
--   inner      packed from, to (operators, from 1) of the edges inside a layer
--   layout     see layout.lua
-- A layer has all operators with a common name prefix ('cell_3/block_1/...'), up to the depth at which there are at
-- most 200 layers. If names have no parts, a layer has operators at neighbouring depths of the graph. Backward and
-- update operators belong to the layer of the forward operators in their colocation unit.

local pack = require 'trinity.report.pack'
local layout = require 'trinity.report.layout'
local util = require 'trinity.base.util'

local layers = {}

local most_layers = 200
local deepest = 8

--- Returns the parts of a name; for a gradient, of the name of its operator.
local function parts_of(name) return util.words((name:gsub('^gradients/', '')), '[^/]+') end

local function prefix(parts, depth) return table.concat(parts, '/', 1, math.min(depth, #parts)) end

local function read_operators(graph)
  local about = {}
  for i = 1, graph.operators do
    local op = graph:operator(i)
    about[i] = { name = op.name, type = op.type, phase = op.phase, parts = parts_of(op.name) }
  end
  return about
end

--- Returns the number of layers at a depth of names; stops counting beyond `most`.
local function count_at(about, depth, most)
  local seen, count = {}, 0
  for _, op in ipairs(about) do
    if op.phase == 'forward' then
      local key = prefix(op.parts, depth)
      if not seen[key] then seen[key], count = true, count + 1 end
      if count > most then return count end
    end
  end
  return count
end

--- Returns a function from a forward operator's number to the name of its layer.
local function namer(graph, about)
  local depth = 0
  while depth < deepest and count_at(about, depth + 1, most_layers) <= most_layers do depth = depth + 1 end
  if depth > 0 then return function(i) return prefix(about[i].parts, depth) end end
  local depths, most = graph.depth, 0
  for i = 1, #about do most = math.max(most, depths[i]) end
  local step = math.ceil((most + 1) / 100)
  return function(i)
    local first = math.floor(depths[i] / step) * step
    return step > 1 and ('depth %d to %d'):format(first, first + step - 1) or ('depth %d'):format(first)
  end
end

--- Returns the layer of every operator, numbered by first appearance, and the names of layers.
local function assign(graph, about)
  local name_of, names, number, layer_of, of_unit = namer(graph, about), {}, {}, {}, {}
  local function number_of(name)
    if not number[name] then
      names[#names + 1] = name
      number[name] = #names
    end
    return number[name]
  end
  for i, op in ipairs(about) do
    if op.phase == 'forward' then
      layer_of[i] = number_of(name_of(i))
      of_unit[graph.unit_of[i]] = of_unit[graph.unit_of[i]] or layer_of[i]
    end
  end
  for i in ipairs(about) do
    layer_of[i] = layer_of[i] or of_unit[graph.unit_of[i]] or number_of(name_of(i))
  end
  return layer_of, names
end

local function collect_edges(graph, about, layer_of)
  local inner, between, seen = { from = {}, to = {} }, { from = {}, to = {}, bytes = {} }, {}
  for from, to, bytes in graph:each_edge() do
    local a, b = layer_of[from], layer_of[to]
    if a == b then
      inner.from[#inner.from + 1], inner.to[#inner.to + 1] = from, to
    elseif about[from].phase == 'forward' and about[to].phase == 'forward' then
      local key = a * 65536 + b
      local at = seen[key]
      if not at then
        at = #between.from + 1
        seen[key], between.from[at], between.to[at], between.bytes[at] = at, a, b, 0
      end
      between.bytes[at] = between.bytes[at] + (bytes or 0)
    end
  end
  return inner, between
end

local phases = { forward = 0, backward = 1, update = 2 }

local function operator_columns(about, layer_of)
  local names, types, type_number, type_of, phase = {}, {}, {}, {}, {}
  for i, op in ipairs(about) do
    if not type_number[op.type] then
      types[#types + 1] = op.type
      type_number[op.type] = #types
    end
    names[i], type_of[i], phase[i] = op.name, type_number[op.type], phases[op.phase] or 0
  end
  return { name = names, type = types, type_of = pack.integers(type_of), layer_of = pack.integers(layer_of),
    phase = pack.integers(phase) }
end

--- Returns the layers of a graph: names, the layer of every operator, edges between layers { from =, to =, bytes = } (a
--- list each), edges inside layers { from =, to = }, and { name =, type =, phase =, parts = } by operator.
function layers.collapse(graph)
  local about = read_operators(graph)
  local layer_of, names = assign(graph, about)
  local inner, between = collect_edges(graph, about, layer_of)
  return names, layer_of, between, inner, about
end

--- Returns the map of a graph, and the numbers of its operators by name.
function layers.of(graph)
  local names, layer_of, between, inner, about = layers.collapse(graph)
  local index_of = {}
  for i, op in ipairs(about) do index_of[op.name] = i end
  return { operators = operator_columns(about, layer_of), layers = names,
    edges = { from = pack.integers(between.from), to = pack.integers(between.to),
      bytes = pack.integers(between.bytes) },
    inner = { from = pack.integers(inner.from), to = pack.integers(inner.to) },
    layout = layout.of(#names, between) }, index_of
end

return layers
