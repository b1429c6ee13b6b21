-- Checked values of a JSON file. The last arguments are the place of the object: a format and its arguments, such as
-- 'nodes[%d]', 3; '' for the whole file. Lists count from 0 there, as in jq.

local util = require 'trinity.base.util'

local json_file = {}

--- Raises an error about what is at a place.
function json_file.fail(message, place, ...)
  error(place == '' and message or ('%s: %s'):format(place:format(...), message), 0)
end

--- Raises an error about a value.
function json_file.wrong(expected, value, ...)
  json_file.fail(('expected %s, got %s'):format(expected, util.describe(value)), ...)
end

-- Raises an error about a field.
local function wrong_field(expected, value, key, place, ...)
  json_file.wrong(expected, value, place == '' and key or ('%s.%s'):format(place, key), ...)
end

--- Checks for an object. An empty list is one, too: both are empty tables.
function json_file.object(value, ...)
  if type(value) ~= 'table' or value[1] ~= nil then json_file.wrong('an object', value, ...) end
  return value
end

--- Returns a field of an object.
function json_file.field(object, key, ...)
  local value = json_file.object(object, ...)[key]
  if value ~= nil then return value end
  local names = table.concat(util.sorted_keys(object), ', ')
  json_file.fail(("field '%s' is missing%s"):format(key, names ~= '' and '; there are ' .. util.shortened(names, 100)
    or ''), ...)
end

--- Returns a field that is a list.
function json_file.list(object, key, ...)
  local value = json_file.field(object, key, ...)
  if type(value) == 'table' and (value[1] ~= nil or next(value) == nil) then return value end
  wrong_field('a list', value, key, ...)
end

--- Returns a field that is a number from low (default 0) to high (default infinity).
function json_file.number(object, key, low, high, ...)
  local value = json_file.field(object, key, ...)
  low, high = low or 0, high or math.huge
  if type(value) == 'number' and value >= low and value <= high then return value end
  local range = high == math.huge and 'a number of at least %.17g' or 'a number from %.17g to %.17g'
  wrong_field(range:format(low, high), value, key, ...)
end

--- Returns a field that is a whole number from low to high, by default any.
function json_file.integer(object, key, low, high, ...)
  local value = json_file.field(object, key, ...)
  low, high = low or -2 ^ 53, high or 2 ^ 53
  if type(value) == 'number' and value % 1 == 0 and value >= low and value <= high then return value end
  wrong_field(('a whole number from %.17g to %.17g'):format(low, high), value, key, ...)
end

--- Returns a field that is a text.
function json_file.text(object, key, ...)
  local value = json_file.field(object, key, ...)
  if type(value) ~= 'string' then wrong_field('a string', value, key, ...) end
  return value
end

--- Returns a field that is true, false, 1 or 0.
function json_file.truth(object, key, ...)
  local value = json_file.field(object, key, ...)
  if type(value) == 'boolean' then return value end
  return json_file.integer(object, key, 0, 1, ...) == 1
end

--- Returns { number =, id =, stated = its name in the file or nil, name = a unique one } of the entry `number` of a
--- list and adds it to `known` by id and name. `what` is what the list has.
function json_file.identified(entry, number, what, known, ...)
  local made = { number = number, id = json_file.integer(entry, 'id', nil, nil, ...),
    stated = entry.name ~= nil and json_file.text(entry, 'name', ...) or nil }
  if known[made.id] then wrong_field(('a %s that is not repeated'):format(what), made.id, 'id', ...) end
  made.name = made.stated ~= '' and made.stated or what .. made.id
  while known[made.name] do made.name = ('%s#%d'):format(made.name, made.id) end
  known[made.id], known[made.name] = made, made
  return made
end

--- Returns the two of `known` that an edge joins.
function json_file.ends(edge, what, known, ...)
  local found = {}
  for i, key in ipairs { 'sourceId', 'destId' } do
    found[i] = known[json_file.integer(edge, key, nil, nil, ...)]
      or wrong_field(('the id of a %s'):format(what), edge[key], key, ...)
  end
  if found[1] == found[2] then json_file.fail(('an edge from a %s to itself'):format(what), ...) end
  return unpack(found)
end

return json_file
