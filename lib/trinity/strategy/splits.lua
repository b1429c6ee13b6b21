-- The `splits` of a strategy: the dimensions of an operator's iteration space along which it is split, and the
-- resulting graph. The rules: engine/strategy/splits.h.

local core = require 'trinity.core'
local array = require 'trinity.base.array'
local check = require 'trinity.base.check'
local fields = require 'trinity.base.fields'
local options_of = require 'trinity.base.options'
local graphs = require 'trinity.graph'
local util = require 'trinity.base.util'

local splits = {}

local Lowered = { __name = 'lowered graph' }
Lowered.__index = Lowered
fields.class(Lowered, 'trinity.Lowered')

function Lowered.__tostring(self)
  return ('lowered %s: %d operators, %d edges'):format(self.graph.name, self.graph.operators, self.graph.edges)
end

--- Returns the operator numbers of a graph by name.
local function numbers_of(graph)
  local numbers = {}
  for i = 1, graph.operators do numbers[graph:operator(i).name] = i end
  return numbers
end

local function divisors_of(size)
  local list = {}
  for factor = 1, math.min(size, 4096) do
    if size % factor == 0 then list[#list + 1] = tostring(factor) end
  end
  return #list <= 16 and table.concat(list, ', ') or ('%s, ...'):format(table.concat(list, ', ', 1, 16))
end

--- Raises an error for an impossible factor above 1. The message names the divisors, or the dimensions that can be
--- split.
local function check_factor(owner, graph, space, name, number, dimension, factor)
  local where = ("%s: operator '%s' (%s): dimension '%s'"):format(owner, name, graph:operator(number).type,
    dimension.name)
  if not dimension.splits then
    local others, joined = {}, graph:operator(number).type == 'Split'
    for _, other in ipairs(space) do if other.splits then others[#others + 1] = other.name end end
    util.fail('%s: expected 1, because it cannot be split, got %d; %s%s', where, factor, #others > 0
      and 'dimensions that can: ' .. table.concat(others, ', ') or 'none of its dimensions can',
      joined and '; a fused matmul before it prevents splits (gpt2: use fused = false)' or '')
  elseif factor > dimension.size then
    util.fail('%s: expected a factor from 1 to %d (%s divide it), got %d', where, dimension.size,
      divisors_of(dimension.size), factor)
  end
end

--- Converts factors by dimension to the engine's argument.
local function entry_of(owner, graph, name, number, given)
  check.argument(owner, 'split', name, given, 'table')
  local space, factors, known = core.iteration_space(graph.handle, number), {}, { copies = true, devices = true }
  for i, dimension in ipairs(space) do
    factors[i] = 1
    known[dimension.name] = i
  end
  util.refuse_unknown(("%s: operator '%s'"):format(owner, name), given, known, 'dimension')
  for i, dimension in ipairs(space) do
    local factor = given[dimension.name]
    if factor ~= nil then
      factors[i] = check.integer(owner, ("factor of operator '%s'"):format(name), dimension.name, factor, 1, 4096)
      if factor > 1 then check_factor(owner, graph, space, name, number, dimension, factor) end
    end
  end
  if given.devices ~= nil then check.integers(owner, 'split', name, given.devices, 1, 4096) end
  if given.copies ~= nil then check.integer(owner, 'split', name, given.copies, 1, 4096) end
  return { operator = number, factors = factors, copies = given.copies, devices = given.devices }
end

--- Converts { operator name = { dimension = factor, copies =, devices = } } to the engine's argument.
function splits.entries(owner, graph, given)
  local numbers, list = numbers_of(graph), {}
  for name, split in util.sorted_pairs(given) do
    check.argument(owner, 'split', tostring(name), name, 'string')
    if not numbers[name] then
      check.refuse(owner, 'split', name, 'no such operator%s',
        core.suggestion(name, util.sorted_keys(numbers)))
    end
    list[#list + 1] = entry_of(owner, graph, name, numbers[name], split)
  end
  return list
end

--- Converts the engine's list to the splits of a strategy.
function splits.named(graph, entries)
  local given = {}
  for _, entry in ipairs(entries) do
    local split = { devices = entry.devices, copies = entry.copies > 1 and entry.copies or nil }
    for i, dimension in ipairs(core.iteration_space(graph.handle, entry.operator)) do
      if (entry.factors[i] or 1) > 1 then split[dimension.name] = entry.factors[i] end
    end
    given[graph:operator(entry.operator).name] = split
  end
  return given
end

local declared = options_of.declare('trinity.LowerSpec', { kind = 'field', help = 'What trinity.lower takes.',
  { 'graph', 'object', class = 'graph', needed = true, help = 'graph whose operators are split' },
  { 'cluster', 'object', class = 'cluster', needed = true, help = 'devices and network' },
  { 'splits', 'table', as = 'trinity.Splits', help = 'split operators' },
  { 'placement', 'any', as = 'trinity.Placement', otherwise = 'device 1', help = 'devices of operators that are not '
    .. 'split' },
})

--- Returns the graph with its operators split into parts, with the slices, joins and collectives between them, and the
--- placement of each operator. Raises an error for a factor that does not divide a dimension. Example: `trinity.lower {
--- graph = graph, cluster = cluster, splits = {} }`
---@param spec trinity.LowerSpec
---@return trinity.Lowered
function splits.lower(spec)
  spec = declared:read('trinity.lower', 1, 'spec', spec)
  local placement = array.placement('trinity.lower', 'field', 'placement', spec.placement, spec.graph)
  if placement == nil then
    placement = array.filled(spec.graph.operators, 1)
  elseif not array.is_int32(placement) then
    check.wrong('trinity.lower', 'field', 'placement', placement, 'a placement (problem:placement())')
  end
  local entries = splits.entries('trinity.lower', spec.graph, spec.splits or {})
  local handle, devices, origin, part = core.lower_splits(spec.graph.handle, #spec.cluster.devices, placement, entries)
  return setmetatable({ graph = graphs.wrap(handle), placement = array.int32_of(devices), origin = origin,
    part = part }, Lowered)
end

return splits
