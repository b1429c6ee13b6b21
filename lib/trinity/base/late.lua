-- Tables with lazy fields: modules are loaded at their first use, and LibTorch, which takes half a second to load, when
-- it is needed. Functions that list the fields of a table fill it first, by `__fill` of its metatable:
-- trinity.system.sorted_pairs and the prompt's completion.

local fields_of = require 'trinity.base.fields'
local util = require 'trinity.base.util'

local late = {}

--- Returns a table that gets the fields of open() at the first use of a field not in `fields`. If open() fails, that
--- use fails, and the next one tries again. Unknown fields then raise errors, which call the table `what`.
function late.table(what, open, fields)
  local function fill(self)
    local source = open()
    fields_of.module(what, setmetatable(self, nil))
    for name, value in util.sorted_pairs(source) do
      if rawget(self, name) == nil then self[name] = value end
    end
  end
  return setmetatable(fields or {}, { __fill = fill, __index = function(self, name)
    fill(self)
    return self[name]
  end })
end

--- require(name) without a memory of failures (Ctrl-C, a limit): the next call loads the module again.
function late.require(name)
  local ok, module = pcall(require, name)
  if ok then return module end
  package.loaded[name] = nil
  error(module, 0)
end

local Later = {} -- represents a module that is not loaded yet, or a field of one

function Later.__index(self, field) return setmetatable({ module = self.module, field = field }, Later) end

local function loaded(later)
  local module, field = late.require(later.module), rawget(later, 'field')
  if field == nil then return module end
  return module[field]
end

--- Returns the table `what` of `build`, in which `require` is executed at the first use of a field. A name `a.b` is
--- field b of module a.
function late.modules(what, build)
  setfenv(build, { require = function(name) return setmetatable({ module = name }, Later) end })
  local waiting, fields, inner = {}, {}, {}
  for name, value in util.sorted_pairs(build()) do
    local outer, field = name:match '^(.*)%.(.*)$'
    if outer then
      inner[outer] = util.merged(inner[outer], { [field] = value })
    elseif getmetatable(value) == Later then
      waiting[name] = value
    else
      fields[name] = value
    end
  end
  local function get(self, name)
    local later = waiting[name]
    if not later then return fields_of.unknown(what, name, self, waiting) end
    local value = loaded(later)
    local kind, full = type(value), ('%s.%s'):format(what, name)
    for field, module in util.sorted_pairs(inner[name] or {}) do
      value[field] = fields_of.module(('%s.%s'):format(full, field), loaded(module))
    end
    if kind == 'table' then fields_of.module(full, value) end
    if kind == 'function' then value = fields_of.limited(full, value) end
    self[name], waiting[name] = value, nil
    return value
  end
  local function fill(self)
    for name in util.sorted_pairs(waiting) do get(self, name) end
  end
  return setmetatable(fields, { __index = get, __fill = fill })
end

return late
