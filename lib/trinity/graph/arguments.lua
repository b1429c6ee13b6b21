-- Arguments of graph methods: operators by number or name, and lists with one entry per operator or edge.

local ffi = require 'ffi'
local array = require 'trinity.base.array'
local check = require 'trinity.base.check'
local util = require 'trinity.base.util'

local arguments = {}

local double_array = ffi.typeof(array.double(0))

local function by_name(owner, place, name, graph, value)
  local found = graph.handle:find(value)
  if not found then
    check.refuse(owner, place, name, 'no operator %s%s', util.quoted(value),
      graph.handle:suggestion(value))
  end
  return found
end

function arguments.operator(owner, place, name, graph, value)
  if type(value) == 'string' then return by_name(owner, place, name, graph, value) end
  if type(value) ~= 'number' then check.wrong(owner, place, name, value, "an operator's number or name") end
  return check.integer(owner, place, name, value, 1, graph.operators)
end

--- Returns the numbers of one operator or a list, given by numbers or names.
function arguments.operators(owner, place, name, graph, value)
  if type(value) ~= 'table' then return { arguments.operator(owner, place, name, graph, value) } end
  if #value == 0 then check.refuse(owner, place, name, 'expected at least one operator, got an empty list') end
  local list = {}
  for i = 1, #value do
    local entry = value[i]
    if type(entry) == 'string' then
      entry = by_name(owner, place, name, graph, entry)
    elseif type(entry) ~= 'number' or not (entry >= 1 and entry <= graph.operators and entry % 1 == 0) then
      check.refuse(owner, place, name, 'entry %d: expected an operator (a number from 1 to %d, or a name), got %s', i,
        graph.operators, util.describe(entry))
    end
    list[i] = entry
  end
  return list
end

--- Returns a double array of `count` non-negative numbers, given as an array, a list or a function; describe(call, i)
--- calls the function for entry i.
function arguments.numbers(owner, name, value, count, describe)
  local is_function, out = type(value) == 'function', array.double(count)
  if not is_function and type(value) ~= 'table' and not ffi.istype(double_array, value) then
    check.wrong(owner, 'option', name, value, 'a list, a double array or a function')
  end
  if not is_function and #value ~= count then
    check.refuse(owner, 'option', name, 'expected %d entries, got %d', count, #value)
  end
  for i = 1, count do
    local entry
    if is_function then entry = describe(value, i) else entry = value[i] end
    if type(entry) ~= 'number' or not (entry >= 0) then
      local where = is_function and ('the function at %s returned %s for number %d, expected a number from 0'):format(
        util.function_place(value), util.describe(entry), i)
        or ('entry %d: expected a number from 0, got %s'):format(i, util.describe(entry))
      check.refuse(owner, 'option', name, '%s', where)
    end
    out[i] = entry
  end
  return out
end

return arguments
