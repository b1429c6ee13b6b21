-- The fields of the library's objects, modules and results: reading any other field is an error that suggests one. The
-- names are those that the editor types declare (lib/trinity/base/field_names.lua); an optional one reads as nil.

local core = require 'trinity.core'
local given = require 'trinity.base.field_names'
local util = require 'trinity.base.util'

local fields = {}

--- The metatables of results by class: tables that other processes know, too (lib/trinity/base/serialise.lua).
fields.results = {}

--- Raises the error about a field that `what` does not have; `names` are those that it has.
function fields.refuse(what, name, names)
  local word = tostring(name)
  local meant = core.suggestion(word, names)
  if meant == '' and #names > 0 then meant = (' (known: %s)'):format(util.shortened(table.concat(names, ', '), 800)) end
  util.fail('%s: no field %s%s', what, util.quoted(word), meant)
end

-- A set of the words of a text.
local function set_of(text, set)
  for word in text:gmatch '%S+' do set[word] = true end
  return set
end

-- The words that are keys of the tables, without metamethods, sorted.
local function names_of(t, more)
  local names, seen = {}, {}
  for _, set in ipairs { t, more } do
    for name in next, set do -- sorted below
      if type(name) == 'string' and name:match '^%a' and not seen[name] then
        names[#names + 1], seen[name] = name, true
      end
    end
  end
  table.sort(names)
  return names
end

--- What a field is that is not there: nil where Lua or a library looks for a metamethod, else an error. The names of
--- `what` are the keys of the tables given.
function fields.unknown(what, name, t, more)
  if type(name) == 'string' and name:byte(1) == 95 and name:byte(2) == 95 then return nil end
  fields.refuse(what, name, names_of(t, more))
end

--- Makes objects of `class`, a metatable in which methods are looked up, refuse fields that editor class `declared`
--- does not have. `internal`: names of further fields, which may be missing.
function fields.class(class, declared, internal)
  local public = set_of(given.names[declared], {})
  local known = set_of(internal or '', set_of(given.names[declared], {}))
  setmetatable(class, { __index = function(_, name)
    if known[name] then return nil end
    return fields.unknown(class.__name, name, class, public)
  end })
end

--- Raises the error about an argument beyond the last of the function `f`, called `what`: it takes `most` after the
--- first - 1 that are not counted. Further nils are none.
function fields.refuse_more(what, f, first, most, ...)
  local names, count = {}, select('#', ...)
  while count > most and select(count, ...) == nil do count = count - 1 end
  if count <= most then return end
  for i = first, debug.getinfo(f, 'u').nparams do names[#names + 1] = (debug.getlocal(f, i)) end
  util.fail('%s: argument %d: expected no more than %d%s, got %s', what, count, most,
    most > 0 and (' (%s)'):format(table.concat(names, ', ')) or '', util.describe((select(count, ...))))
end

--- What was made of which function, by fields.limited() and check.guard().
fields.original = setmetatable({}, { __mode = 'k' })

--- How many arguments a function in Lua takes, and those of C, math.huge for any number.
function fields.arity(f)
  local info = debug.getinfo(fields.original[f] or f, 'u')
  return info.isvararg and math.huge or info.nparams
end

--- A function that refuses arguments beyond the last that `f`, called `what`, takes (most: of a function of C), and
--- makes a result of what it gives.
function fields.limited(what, f, most)
  most = most or fields.arity(f)
  local give = fields.giver(what)
  if most == math.huge and not give or fields.original[f] then return f end
  local limited = function(...)
    if select('#', ...) > most then fields.refuse_more(what, f, 1, most, ...) end
    return f(...)
  end
  if give then
    limited = function(...)
      if select('#', ...) > most then fields.refuse_more(what, f, 1, most, ...) end
      return give(f(...))
    end
  end
  fields.original[limited] = f
  return limited
end

--- Makes a table of functions, `what` in messages, refuse names that it does not have, and the functions arguments that
--- they do not take.
function fields.module(what, module)
  local meta = getmetatable(module) or {}
  local owner = what:gsub('^trinity%.', '')
  for name, f in next, module do -- each by itself: in any order
    if type(f) == 'function' then module[name] = fields.limited(('%s.%s'):format(owner, name), f) end
  end
  if rawget(meta, '__index') == nil then
    meta.__index = function(self, name) return fields.unknown(what, name, self) end
    meta.__module = true -- safe scripts get a copy (lib/trinity/command/safe.lua)
    setmetatable(module, meta)
  end
  return module
end

-- The metatable of results of a class.
local function metatable_of(declared)
  local what, known = declared:match '[^.]*$', nil
  return { __index = function(_, name)
    known = known or set_of(given.names[declared], {})
    if known[name] then return nil end
    return fields.unknown(what, name, known)
  end }
end

for declared in next, given.names do fields.results[declared] = metatable_of(declared) end -- each by itself: any order

local nested = {} -- by class: { field, class, whether it is a list } each

-- The fields of a class that hold results.
local function nested_of(declared)
  if not nested[declared] then
    nested[declared] = {}
    for field, class, list in (given.nested[declared] or ''):gmatch '([%w_]+)=([%w_]+)(%*?)' do
      table.insert(nested[declared], { field, 'trinity.' .. class, list == '*' })
    end
  end
  return nested[declared]
end

--- A table that a function gives as editor class `declared`, and what it holds; an object, nil and others as they are.
--- What print() shows of it (lib/trinity/base/printed.lua) stays.
function fields.result(declared, value)
  local shown = type(value) == 'table' and getmetatable(value)
  if type(value) ~= 'table' or (shown and not shown.__printed) then return value end
  for _, part in ipairs(nested_of(declared)) do
    local inner = rawget(value, part[1])
    if part[3] and type(inner) == 'table' then
      for i = 1, #inner do fields.result(part[2], inner[i]) end
    else
      fields.result(part[2], inner)
    end
  end
  local class = fields.results[declared]
  if shown then class.__tostring = shown.__tostring end
  return setmetatable(value, class)
end

--- A function that makes a result of the first value that function or method `label` gives; nil where it gives none.
function fields.giver(label)
  local class, list = (given.returns[label] or ''):match '^([%w_]+)(%*?)$'
  local declared = class and 'trinity.' .. class
  return declared and function(first, ...)
    if list ~= '*' then return fields.result(declared, first), ... end
    for i = 1, type(first) == 'table' and #first or 0 do fields.result(declared, first[i]) end
    return first, ...
  end
end

return fields
