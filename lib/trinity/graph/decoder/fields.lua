-- Reads fields of a config.json (Hugging Face) with types and defaults. A missing field or a wrong type is an error; a
-- default that is used is a warning.

local core = require 'trinity.core'
local util = require 'trinity.base.util'

-- path; values, the object; text of the file, which distinguishes null from an absent field; warnings.
local Fields = {}
Fields.__index = Fields

local fields = {}

--- Returns the fields of a JSON object.
function fields.new(path, values, text)
  return setmetatable({ path = path, values = values, text = text, warnings = {} }, Fields)
end

function Fields:fail(message, ...) util.fail('%s: %s', util.shortened(self.path), message:format(...)) end

function Fields:warn(message, ...) self.warnings[#self.warnings + 1] = message:format(...) end

--- Returns the first of several names of a field that exists, and its value.
local function find(self, names)
  for name in names:gmatch '[^|]+' do
    if self.values[name] ~= nil then return name, self.values[name] end
  end
  return names:match '^[^|]+', nil
end

function Fields:null(names)
  for name in names:gmatch '[^|]+' do
    if self.text:find('"' .. name .. '"%s*:%s*null') then return true end
  end
  return false
end

--- Returns whether a field exists and is not null.
function Fields:has(names) return select(2, find(self, names)) ~= nil end

--- Returns whether two names differ in at most two letters at one place.
local function is_misspelt(a, b)
  local first, last = 0, 0
  local shorter = math.min(#a, #b)
  while first < shorter and a:byte(first + 1) == b:byte(first + 1) do first = first + 1 end
  while last < shorter - first and a:byte(-last - 1) == b:byte(-last - 1) do last = last + 1 end
  return math.max(#a, #b) - first - last <= 2
end

function Fields:missing(name)
  local near = util.filtered(util.sorted_keys(self.values), function(other) return is_misspelt(name, other) end)
  self:fail("field '%s' is missing%s", name, core.suggestion(name, near))
end

local function expected(self, name, what, value)
  self:fail("field '%s': expected %s, got %s", name, what, util.describe(value))
end

--- Returns an integer of at least `least` (default 1). otherwise: value of an absent field, with a warning; without it
--- the field is required. as_null: value of a null (default: the same). Alternative names of a field are separated by
--- '|'.
function Fields:integer(names, otherwise, o)
  o = o or {}
  local name, value = find(self, names)
  if value == nil then
    if self:null(names) and o.as_null ~= nil then return o.as_null or nil end
    if otherwise == nil then self:missing(name) end
    if otherwise and not o.quiet then
      self:warn("field '%s' is missing: using %d, the default of its model type", name, otherwise)
    end
    return otherwise or nil
  end
  local least, most = o.least or 1, o.most or 2 ^ 40
  if type(value) ~= 'number' or value % 1 ~= 0 or value < least or value > most then
    local large = type(value) == 'number' and value > most
    expected(self, name, ('an integer of at %s %d'):format(large and 'most' or 'least', large and most or least), value)
  end
  return value
end

--- Returns a number of at least 0; `otherwise` if absent.
function Fields:number(names, otherwise)
  local name, value = find(self, names)
  if value == nil then return otherwise end
  if type(value) ~= 'number' or value < 0 then expected(self, name, 'a number of at least 0', value) end
  return value
end

--- Returns true or false; `otherwise` if absent.
function Fields:boolean(names, otherwise)
  local name, value = find(self, names)
  if value == nil then return otherwise end
  if type(value) ~= 'boolean' then expected(self, name, 'true or false', value) end
  return value
end

--- Returns the entry of `known` for the field's value, which must be one of its keys.
function Fields:word(names, otherwise, known)
  local name, value = find(self, names)
  if value == nil then value = otherwise end
  if type(value) ~= 'string' then expected(self, name, 'a word', value) end
  if known[value] == nil then
    self:fail("field '%s': unknown value %s", name, util.unknown(value, util.sorted_keys(known)))
  end
  return known[value]
end

--- Returns a list, or nil if absent.
function Fields:list(names)
  local name, value = find(self, names)
  if value ~= nil and type(value) ~= 'table' then expected(self, name, 'a list', value) end
  return value
end

return fields
