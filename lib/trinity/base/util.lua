-- Small helpers shared by the library: errors that name the script's line, sorted iteration.

local clients_names = require 'trinity.base.clients_names'
local core = require 'trinity.core'
local hooks = require 'trinity.base.hooks'
local renamed = require 'trinity.base.renamed'
local units = require 'trinity.base.units'

local util = {}

--- Raises an error at the script's line (the innermost frame outside this library).
function util.fail(message, ...)
  if select('#', ...) > 0 then message = message:format(...) end
  error(core.position() .. message, 0)
end

--- Removes the position of an error raised here from a message.
function util.unplaced(message)
  local position = core.position()
  if message:sub(1, #position) == position then return message:sub(#position + 1) end
  return message
end

--- Removes the position and the name of an internal engine function from its error.
function util.plain(message) return (util.unplaced(tostring(message)):gsub('^trinity%.[%w_]+: ', '')) end

--- Raises an error of an internal engine function at the script's line, without its name or with the name `owner`.
function util.fail_as(message, owner) util.fail('%s%s', owner and owner .. ': ' or '', util.plain(message)) end

--- Returns the content of a file. Errors begin with its name or with `owner`.
function util.read_file(path, owner)
  local ok, text = pcall(core.read_file, path)
  if not ok then util.fail_as(text, owner) end
  return text
end

--- Writes a file; `owner`: function named in messages.
function util.write_file(owner, path, content)
  local ok, message = pcall(core.write_file, path, content)
  if not ok then util.fail_as(message, owner) end
end

local Usage = { __tostring = function(self) return self.message end }

--- Raises a usage error: the program prints it and exits with status 2. An option at its start has hyphens,
--- as in --help.
function util.fail_usage(message, ...)
  if select('#', ...) > 0 then message = message:format(...) end
  message = message:gsub("^option '%-%-[%w_]+'", function(option) return (option:gsub('_', '-')) end)
  error(setmetatable({ usage = true, message = message }, Usage), 0)
end

-- Order of keys: numbers, then texts, then others by their text.
local function precedes(a, b)
  local kind, other = type(a), type(b)
  if kind ~= other then return kind == 'number' or kind == 'string' and other ~= 'number' end
  if kind ~= 'number' and kind ~= 'string' then a, b = tostring(a), tostring(b) end
  return a < b
end

--- Iterates over a table in the order of its keys: numbers in ascending order, then texts. Example: `for key, value in
--- trinity.system.sorted_pairs { b = 1, a = 2 } do print(key, value) end`
---@generic K, V
---@param t table<K, V>
---@return fun(): K, V
function util.sorted_pairs(t)
  if type(t) ~= 'table' then
    util.fail("system.sorted_pairs: argument 1 ('t'): expected a table, got %s", util.describe(t))
  end
  local meta = getmetatable(t)
  if type(meta) == 'table' and rawget(meta, '__fill') then meta.__fill(t) end -- lib/trinity/base/late.lua
  local keys = {}
  for key in pairs(t) do keys[#keys + 1] = key end -- sorted below
  table.sort(keys, precedes)
  local i = 0
  return function()
    i = i + 1
    if keys[i] ~= nil then return keys[i], t[keys[i]] end
  end
end

function util.sorted_keys(t)
  local keys = {}
  for key in util.sorted_pairs(t) do keys[#keys + 1] = key end
  return keys
end

--- Returns a new table with the fields of the given tables (nil: none); later ones win.
function util.merged(...)
  local all = {}
  for i = 1, select('#', ...) do
    for key, value in util.sorted_pairs(select(i, ...) or {}) do all[key] = value end
  end
  return all
end

--- Returns a new table with the fields `names` of `from`, except values equal to `unset`.
function util.picked(from, names, unset)
  local some = {}
  for _, name in ipairs(names) do
    if from[name] ~= unset then some[name] = from[name] end
  end
  return some
end

--- Returns the list of f(entry, i) over the entries of a list.
function util.map(list, f)
  local made = {}
  for i = 1, #list do made[i] = f(list[i], i) end
  return made
end

--- Returns the entries of a list for which keep(entry) holds.
function util.filtered(list, keep)
  local kept = {}
  for i = 1, #list do
    if keep(list[i]) then kept[#kept + 1] = list[i] end
  end
  return kept
end

--- Returns the first entry of a list for which is(entry) holds, or nil.
function util.find(list, is)
  for i = 1, #list do
    if is(list[i]) then return list[i] end
  end
end

--- Returns the sum of of(entry) over the entries of a list; of the entries without `of`.
function util.sum(list, of)
  local sum = 0
  for i = 1, #list do sum = sum + (of and of(list[i]) or list[i]) end
  return sum
end

--- Returns an order of entries for table.sort: by the first of these fields in which they differ; '-name': falling.
function util.by(...)
  local names, falling = { ... }, {}
  for i, name in ipairs(names) do
    if type(name) == 'string' and name:sub(1, 1) == '-' then names[i], falling[i] = name:sub(2), true end
  end
  return function(a, b)
    for i = 1, #names do
      local x, y = a[names[i]], b[names[i]]
      if x ~= y and falling[i] then return x > y end
      if x ~= y then return x < y end
    end
    return false
  end
end

--- Returns the numbers 1 to #values by rising (or `falling`) value, equal values in order.
function util.order_of(values, falling)
  local order = util.listed(#values, function(i) return i end)
  table.sort(order, function(a, b)
    local x, y = values[a], values[b]
    if x == y then return a < b end
    if falling then return x > y end
    return x < y
  end)
  return order
end

--- Groups the entries of a list by key_of(entry): lists with `name`, in the order of their first entries.
function util.grouped(list, key_of)
  local groups, by = {}, {}
  for i = 1, #list do
    local key = key_of(list[i])
    if not by[key] then
      by[key] = { name = key }
      groups[#groups + 1] = by[key]
    end
    table.insert(by[key], list[i])
  end
  return groups
end

--- Returns the list of make(i) for i from 1 to `count`.
function util.listed(count, make)
  local made = {}
  for i = 1, count do made[i] = make(i) end
  return made
end

--- Returns the entries of all lists as one list.
function util.joined(...)
  local made = {}
  for i = 1, select('#', ...) do
    for _, entry in ipairs((select(i, ...))) do made[#made + 1] = entry end
  end
  return made
end

--- Splits a text at commas and blanks, or returns all matches of a pattern in it.
function util.words(text, pattern)
  local list = {}
  for word in text:gmatch(pattern or '[^,%s]+') do list[#list + 1] = word end
  return list
end

--- Returns the set of the entries of a list or of the words of a text: true by entry.
function util.set(entries)
  local set = {}
  for _, entry in ipairs(type(entries) == 'string' and util.words(entries) or entries) do set[entry] = true end
  return set
end

--- Returns the names of the Lua files in a folder, without the ending.
function util.lua_names(folder)
  return util.words(table.concat(core.list_folder(folder), '/') .. '/', '([^/]+)%.lua/')
end

--- Parses the comma-separated numbers of a command-line option, from `low` to `high` (each optional). unit: what the
--- text may have after numbers (lib/trinity/base/units.lua).
function util.numbers(option, text, low, high, integer, unit)
  local list = {}
  for i, word in ipairs(util.words(text)) do
    local value = units.number(word, unit)
    if not value or value < (low or value) or value > (high or value) or integer and value % 1 ~= 0 then
      util.fail_usage("option '--%s': expected %s%s%s with commas, got '%s'", option,
        units.texts[unit] or integer and 'integers' or 'numbers', low and (' from %g'):format(low) or '',
        high and (' to %g'):format(high) or '', word)
    end
    list[i] = value
  end
  return list
end

--- Returns whether a file or folder can be opened for reading.
util.exists = core.exists

--- Returns the function of a Lua file, or nil and a reason.
function util.load_file(path)
  local ok, text = pcall(core.read_file, path)
  if not ok then return nil, util.plain(text) end
  if text:sub(1, 1) == '\27' then return nil, path .. ': expected Lua as text, got compiled Lua, or another format' end
  return load((text:gsub('^#[^\n]*', '')), '@' .. path, 't')
end

--- Returns the median of numbers in any order. Raises an error for an empty list. Example:
--- `trinity.system.median { 3, 1, 2 }`
---@param list number[] at least one
---@return number
function util.median(list)
  if type(list) ~= 'table' or #list == 0 then
    util.fail("system.median: argument 1 ('list'): expected a list of numbers, got %s",
      type(list) == 'table' and 'none' or util.describe(list))
  end
  local sorted = {}
  for i, value in ipairs(list) do
    if type(value) ~= 'number' then
      util.fail("system.median: argument 1 ('list'): entry %d: expected a number, got %s", i, util.describe(value))
    end
    sorted[i] = value
  end
  table.sort(sorted)
  local low, high = sorted[math.floor((#sorted + 1) / 2)], sorted[math.floor(#sorted / 2) + 1]
  return low == high and low or (low + high) / 2
end

--- Returns a text on one line, truncated to `most` bytes (default 200).
function util.shortened(text, most)
  most = most or 200
  if #text > most then text = text:sub(1, most - 3) .. '...' end
  return (text:gsub('%c', ' '))
end

--- Returns a text in quotes on one line, truncated if long.
function util.quoted(text) return ("'%s'"):format(util.shortened(text, 40)) end

local most_listed = 20 -- names in a message

--- Returns ", did you mean 'NAME'?" if one of the names is near, or is what clients call so; else ''.
function util.near(word, names)
  local name = clients_names[word:gsub('-', '_')]
  for _, known in ipairs(names) do
    if known == name then return (", did you mean '%s'?"):format(known) end
  end
  return core.suggestion(word, names)
end

--- Formats an unknown word for a message, with a suggestion and the known `names`; `list`: the command that lists them
--- where they are many.
function util.unknown(word, names, list)
  local near = util.near(tostring(word), names)
  local known = 'known: ' .. table.concat(names, ', ')
  if #names > most_listed then
    known = list and ('%s lists all'):format(list) or near == '' and util.shortened(known, 800) or nil
  end
  return util.quoted(tostring(word)) .. near .. (known and (' (%s)'):format(known) or '')
end

--- Returns the class of an object (the __name of its metatable, or the engine's name), or nil.
function util.class_of(value)
  if type(value) == 'table' then
    local meta = getmetatable(value)
    return type(meta) == 'table' and rawget(meta, '__name') or nil
  elseif type(value) == 'userdata' then
    local name = getmetatable(value)
    return type(name) == 'string' and name or nil
  end
end

--- Describes a value for a message: its class or type, and the value if short.
function util.describe(value)
  if type(value) == 'string' then return 'string ' .. util.quoted(value) end
  if type(value) == 'number' then return ('number %.17g'):format(value) end
  if type(value) == 'boolean' then return tostring(value) end
  return util.class_of(value) or type(value)
end

--- Returns the position of a function, for messages about its results: 'exp.lua:12'.
function util.function_place(f)
  local info = debug.getinfo(f, 'S')
  if info.what == 'C' then return 'a function of C' end
  return ('%s:%d'):format(info.short_src, info.linedefined)
end

local warned = {} -- earlier names

--- Warns once that a name of an earlier version was used.
function util.warn_renamed(name, now)
  if warned[name] then return end
  warned[name] = true
  hooks.warn(("'%s' is now called '%s'"):format(name, now))
end

-- Gives keys of `given` that are names of an earlier version their present names, if these are known.
local function rename(given, known)
  for _, key in ipairs(util.sorted_keys(given)) do
    local now = known[key] == nil and type(key) == 'string' and core.renamed(key) or ''
    if now ~= '' and known[now] ~= nil and given[now] == nil then
      util.warn_renamed(key, now)
      given[now], given[key] = given[key], nil
    end
  end
end

--- Raises an error with a suggestion for keys of `given` that are not in the set `known`; names of an earlier version
--- are replaced in `given`, with a warning. `kind`: name of a key in messages (default 'option').
function util.refuse_unknown(owner, given, known, kind)
  if type(given) == 'table' and not getmetatable(given) then
    local unknown = false
    for key in pairs(given) do unknown = unknown or known[key] == nil end -- in any order
    if not unknown then return end
    rename(given, known)
  end
  for key in util.sorted_pairs(given) do
    if known[key] == nil then
      local now = renamed[('%s.%s'):format(owner, tostring(key))]
      if now then util.fail("%s: option '%s' was replaced; use %s", owner, key, now) end
      util.fail('%s: unknown %s %s', owner, kind or 'option', util.unknown(key, util.sorted_keys(known)))
    end
  end
end

return util
