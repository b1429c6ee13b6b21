-- The fields of the library's objects, modules and results: reading any other field is an error that suggests one. The
-- names are those that the editor types declare (lib/trinity/base/field_names.lua); an optional one reads as nil.

local core = require 'trinity.core'
local field_names = require 'trinity.base.field_names'
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
      if type(name) == 'string' and name:match '^%a' and not seen[name] then names[#names + 1], seen[name] = name, true end
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
  local public = set_of(field_names[declared], {})
  local known = set_of(internal or '', set_of(field_names[declared], {}))
  setmetatable(class, { __index = function(_, name)
    if known[name] then return nil end
    return fields.unknown(class.__name, name, class, public)
  end })
end

--- Makes a table of functions, `what` in messages, refuse names that it does not have.
function fields.module(what, module)
  local meta = getmetatable(module) or {}
  if rawget(meta, '__index') == nil then
    meta.__index = function(self, name)
      return fields.unknown(what, name, self)
    end
    meta.__module = true -- safe scripts get a copy (lib/trinity/command/safe.lua)
    setmetatable(module, meta)
  end
  return module
end

-- The metatable of results of a class.
local function metatable_of(declared)
  local what, known = declared:match '[^.]*$', nil
  return { __index = function(_, name)
    known = known or set_of(field_names[declared], {})
    if known[name] then return nil end
    return fields.unknown(what, name, known)
  end }
end

for declared in next, field_names do fields.results[declared] = metatable_of(declared) end -- each by itself: any order

--- A table that a function gives as editor class `declared`, or nil.
function fields.result(declared, t)
  return t and setmetatable(t, fields.results[declared])
end

return fields
