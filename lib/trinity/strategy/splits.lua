-- The `splits` of a strategy: the dimensions of an operator's iteration space along which it is split. The
-- rules: engine/strategy/splits.h.

local core = require 'trinity.core'
local check = require 'trinity.base.check'
local util = require 'trinity.base.util'

local splits = {}

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

return splits
