-- Checked fields of the library's objects, modules and results: reading an unknown field raises an error with a
-- suggestion. The names come from the editor types (lib/trinity/base/field_names.lua); an optional field may be nil.

local core = require 'trinity.core'
local given = require 'trinity.base.field_names'
local renamed = require 'trinity.base.renamed'
local util = require 'trinity.base.util'

local fields = {}

--- Metatables of results by class, which other processes know, too (lib/trinity/base/serialise.lua).
fields.results = {}

--- Raises the error about an unknown field of `what`; `names` are its fields.
function fields.refuse(what, name, names)
  local word = tostring(name)
  local now = renamed[('%s.%s'):format(what, word)]
  if now then util.fail('%s.%s was replaced; use %s', what, word, now) end
  local meant = core.suggestion(word, names)
  if meant == '' and #names > 0 then meant = (' (known: %s)'):format(util.shortened(table.concat(names, ', '), 800)) end
  util.fail('%s: no field %s%s', what, util.quoted(word), meant)
end

-- Returns the sorted keys of the tables, without metamethods.
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

--- Handles a missing field: returns nil if Lua or a library looks for a metamethod, otherwise raises an error. The
--- names of `what` are the keys of the given tables.
function fields.unknown(what, name, t, more)
  if type(name) == 'string' and name:byte(1) == 95 and name:byte(2) == 95 then return nil end
  fields.refuse(what, name, names_of(t, more))
end

-- By class: `known`, the set of its fields, their `names`, and a list of { name, class of its results, of a list }.
local parsed = {}

-- Returns the fields of a class, and those and its functions that give results.
local function declared_of(declared)
  local class = declared:gsub('^trinity%.', '')
  local found = parsed[class]
  if found then return found end
  found = { known = {}, names = {} }
  for name, of, list in (given[class] or ''):gmatch '([%w_]+)=?(%w*)(%*?)' do
    found.known[name], found.names[#found.names + 1] = true, name
    if of ~= '' then found[#found + 1] = { name, 'trinity.' .. of, list == '*' } end
  end
  parsed[class] = found
  return found
end

--- Makes objects of `class` (a metatable with methods) raise errors for fields that editor class `declared` does not
--- have. `internal`: names of other, optional fields.
function fields.class(class, declared, internal)
  local public, inner = declared_of(declared).known, util.set(internal or '')
  setmetatable(class, { __index = function(_, name)
    if public[name] or inner[name] then return nil end
    local now = type(name) == 'string' and rawget(class, core.renamed(name)) -- a method of an earlier version
    if now then
      util.warn_renamed(name, core.renamed(name))
      return now
    end
    return fields.unknown(class.__name, name, class, public)
  end })
end

local getlocal = debug.getlocal -- saved before safe.lua removes it

--- Returns the names of the parameters of a Lua function, from number `first` on.
function fields.parameters(f, first)
  f = fields.original[f] or f
  local names = {}
  for i = first, debug.getinfo(f, 'u').nparams do names[#names + 1] = (getlocal(f, i)) end
  return names
end

--- Raises the error about an excess argument of the function `f`, called `what`: it takes `most` arguments after the
--- first - 1 uncounted ones. Trailing nils are ignored.
function fields.refuse_more(what, f, first, most, ...)
  local names, count = fields.parameters(f, first), select('#', ...)
  while count > most and select(count, ...) == nil do count = count - 1 end
  if count <= most then return end
  util.fail('%s: argument %d: expected no more than %d%s, got %s', what, count, most,
    most > 0 and (' (%s)'):format(table.concat(names, ', ')) or '', util.describe((select(count, ...))))
end

--- Original functions by their wrappers of fields.limited() and check.guard().
fields.original = setmetatable({}, { __mode = 'k' })

--- Returns the number of arguments of a Lua or C function; math.huge for any number.
function fields.arity(f)
  local info = debug.getinfo(fields.original[f] or f, 'u')
  return info.isvararg and math.huge or info.nparams
end

--- Wraps `f`, called `what`, with a check for excess arguments (most: maximum for a C function), and converts its value
--- to a result.
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

--- Makes a table of functions, `what` in messages, raise errors for unknown names, and its functions for excess
--- arguments.
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

local shown = util.set 'number string boolean'

local function value_text(name, value)
  if type(value) == 'table' then return ('%d entries'):format(#value) end
  if type(value) ~= 'number' then return tostring(value) end
  if name:match '_bytes$' or name == 'bytes' then return core.format_bytes(value) end
  return ('%.6g%s'):format(value, name:match '_s$' and not name:match '_per_s$' and ' s' or '')
end

-- Returns the text of print() for a result: 'bounds: step_time_s 0.25 s, peak_memory_bytes 3 GB'.
local function text_of(class, value)
  local parts = {}
  for _, name in ipairs(declared_of(class).names) do
    local field = rawget(value, name)
    local plain = type(field) == 'table' and not getmetatable(field)
    if #parts < 6 and field ~= '' and (plain or shown[type(field)]) then
      parts[#parts + 1] = ('%s %s'):format(name, value_text(name, field))
    end
  end
  local kind = class:gsub('^trinity%.', ''):gsub('(%l)(%u)', '%1 %2'):lower()
  return ('%s: %s'):format(kind, table.concat(parts, ', '))
end

-- Returns the metatable of results of a class.
local function metatable_of(class)
  return {
    __index = function(_, name)
      local known = declared_of(class).known
      if known[name] then return nil end
      return fields.unknown(class, name, known)
    end,
    __tostring = function(value) return text_of(class, value) end,
  }
end

for class in next, given do fields.results['trinity.' .. class] = metatable_of(class) end -- each by itself: any order

--- Converts a returned table and its contents to editor class `declared`; objects, nil and other values are unchanged.
--- The text for print() (lib/trinity/base/printed.lua) is kept.
function fields.result(declared, value)
  local text = type(value) == 'table' and getmetatable(value)
  if type(value) ~= 'table' or (text and not text.__printed) then return value end
  for _, part in ipairs(declared_of(declared)) do
    local inner = rawget(value, part[1])
    if part[3] and type(inner) == 'table' then
      for i = 1, #inner do fields.result(part[2], inner[i]) end
    else
      fields.result(part[2], inner)
    end
  end
  local class = fields.results[declared]
  if text then class.__tostring = text.__tostring end
  return setmetatable(value, class)
end

--- Returns a function that converts the first value of function or method `label` to a result, or nil if it returns
--- none.
function fields.giver(label)
  local owner, name = label:match '^(.*)%.([^.]+)$'
  local part = owner and util.find(declared_of(owner), function(entry) return entry[1] == name end)
  return part and function(first, ...)
    if not part[3] then return fields.result(part[2], first), ... end
    for i = 1, type(first) == 'table' and #first or 0 do fields.result(part[2], first[i]) end
    return first, ...
  end
end

return fields
