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

local function from_function(owner, name, call, count, describe)
  local out = array.double(count)
  for i = 1, count do
    local value = describe(call, i)
    if type(value) ~= 'number' or not (value >= 0) then
      check.refuse(owner, 'option', name, 'the function at %s returned %s for number %d, expected a number from 0',
        util.function_place(call), util.describe(value), i)
    end
    out[i] = value
  end
  return out
end

local function from_list(owner, name, list, count)
  if #list ~= count then check.refuse(owner, 'option', name, 'expected %d entries, got %d', count, #list) end
  local out = array.double(count)
  for i = 1, count do
    local value = list[i]
    if type(value) ~= 'number' or not (value >= 0) then
      check.refuse(owner, 'option', name, 'entry %d: expected a number from 0, got %s', i, util.describe(value))
    end
    out[i] = value
  end
  return out
end

--- Returns a double array of `count` non-negative numbers, given as an array, a list or a function; describe(call, i)
--- calls the function for entry i.
function arguments.numbers(owner, name, value, count, describe)
  if type(value) == 'function' then return from_function(owner, name, value, count, describe) end
  if type(value) == 'table' then return from_list(owner, name, value, count) end
  if not ffi.istype(double_array, value) then
    check.wrong(owner, 'option', name, value, 'a list, a double array or a function')
  end
  return from_list(owner, name, value, count)
end

return arguments
