-- Serializes values that a worker process returns (trinity.parallel_map).
--
-- Supported: nil, booleans, numbers (exactly), strings, 64-bit integers, tables (including shared and cyclic
-- references), arrays and views (as arrays), metrics. A table keeps its metatable if the script had it before the
-- workers started. Wrappers of immutable engine objects (graph, cluster, problem, simulator) are not copied but
-- replaced by the script's own. All other values raise an error that names the field.
--
-- The bytes are string.buffer's, of { root =, tables =, metatables = }. It supports neither shared tables nor our
-- arrays, so `tables` are flat copies, in which a list of a tag and its data represents a nested value.

local ffi = require 'ffi'
local buffer = require 'string.buffer'
local array = require 'trinity.base.array'
local fields = require 'trinity.base.fields'
local util = require 'trinity.base.util'

-- Saved before safe.lua removes them from the library: values are traversed without their metatables.
local getinfo, getupvalue, getfenv = debug.getinfo, debug.getupvalue, debug.getfenv
local getmetatable, setmetatable_of = debug.getmetatable, debug.setmetatable
local encode, decode = buffer.encode, buffer.decode

local serialise = {}

local immutable = { graph = true, cluster = true, problem = true }

local span = ffi.typeof 'struct trinity_int32_span'
local int64, uint64 = ffi.typeof 'int64_t', ffi.typeof 'uint64_t'
-- Structures of variable length: their type, what makes one, and its length.
local structs = {
  { ffi.typeof 'struct trinity_int32_array', array.int32, function(value) return #value end },
  { ffi.typeof 'struct trinity_double_array', array.double, function(value) return #value end },
  { ffi.typeof 'struct trinity_metrics', array.metrics, function(value) return value.device_count end },
}

--- Returns whether a table wraps an immutable object of the engine.
local function wraps_engine(t)
  if not getmetatable(t) then return false end
  local handle = rawget(t, 'handle')
  return type(handle) == 'userdata' and immutable[util.class_of(handle)] or false
end

--- Numbers all tables and functions reachable from the given values, equally in this process and in workers started
--- later. `numbers[object]` and `objects[number]`.
function serialise.reachable(...)
  local numbers, objects = {}, {}
  local function visit(value)
    local kind = type(value)
    if (kind == 'table' or kind == 'function') and not numbers[value] then
      objects[#objects + 1] = value
      numbers[value] = #objects
    end
  end
  for i = 1, select('#', ...) do visit((select(i, ...))) end
  for _, meta in util.sorted_pairs(fields.results) do visit(meta) end
  local next_number = 1
  while objects[next_number] do
    local value = objects[next_number]
    next_number = next_number + 1
    if type(value) == 'function' then
      for i = 1, getinfo(value, 'u').nups do
        local _, upvalue = getupvalue(value, i)
        visit(upvalue)
      end
      visit(getfenv(value))
    else
      visit(getmetatable(value))
      for key, field in next, value do -- the order does not matter: the numbers are internal
        visit(key)
        visit(field)
      end
    end
  end
  return { numbers = numbers, objects = objects }
end

local Writer = {}
Writer.__index = Writer

--- Returns the position of a field: " field 'rows.2.reward':", or '' at the top.
local function place(table_of, key)
  local words, text = {}, ''
  while table_of do
    words[#words + 1] = tostring(key)
    table_of, key = table_of.parent, table_of.key
  end
  if #words == 0 then return '' end
  for i = #words, 1, -1 do
    if #text <= 200 then text = text .. words[i] .. (i > 1 and '.' or '') end
  end
  return (" field '%s':"):format(#text > 200 and text:sub(1, 197) .. '...' or text)
end

local function refuse(parent, key, message, ...)
  error({ refused = place(parent, key) .. ' ' .. message:format(...) }, 0)
end

local function cdata(value, parent, key)
  if ffi.istype(int64, value) or ffi.istype(uint64, value) then return value end
  if ffi.istype(span, value) then
    local copy = array.int32(#value)
    for i = 1, #value do copy[i] = value[i] end
    value = copy
  end
  for k, struct in ipairs(structs) do
    if ffi.istype(struct[1], value) then return { k, struct[3](value), ffi.string(value, ffi.sizeof(value)) } end
  end
  refuse(parent, key, 'cannot send %s', tostring(ffi.typeof(value)))
end

local made_there = 'cannot send a %s that was made in the worker: make it before trinity.parallel_map, or return what '
  .. 'it holds (found.reward, found.metrics, found.placement, or the path that found:save gave)'

--- Adds a table to those to send and returns its representation; a known table has a number already.
function Writer:table(t, parent, key)
  if wraps_engine(t) then
    local number = self.known.numbers[t]
    if not number then refuse(parent, key, made_there, util.describe(t)) end
    return { 'known', number }
  end
  local number = self.number_of[t]
  if not number then
    local meta = getmetatable(t)
    number = #self.waiting + 1
    self.waiting[number] = { table = t, parent = parent, key = key }
    self.number_of[t], self.metatables[number] = number, meta and self.known.numbers[meta] or false
    if meta and not self.metatables[number] then
      refuse(parent, key, 'cannot send a table whose metatable was made in the worker')
    end
  end
  return { 'table', number }
end

--- Returns the representation of a value, the field `key` of `parent`.
function Writer:value(value, parent, key)
  local kind = type(value)
  if kind == 'table' then return self:table(value, parent, key) end
  if kind == 'cdata' then return cdata(value, parent, key) end
  if kind == 'nil' or kind == 'boolean' or kind == 'number' or kind == 'string' then return value end
  refuse(parent, key, 'cannot send a %s', util.describe(value))
end

local function by_kind_and_value(a, b)
  if type(a) ~= type(b) then return type(a) < type(b) end
  if type(a) == 'boolean' then return a and not b end
  return a < b
end

--- Keys after the list part, sorted, so that errors are deterministic.
local function other_keys(t, length, entry)
  local keys = {}
  for key in next, t do
    local kind = type(key)
    if kind ~= 'string' and kind ~= 'number' and kind ~= 'boolean' then
      refuse(entry.parent, entry.key, 'cannot send a table with a %s as key', kind)
    end
    if not (kind == 'number' and key >= 1 and key <= length and key % 1 == 0) then keys[#keys + 1] = key end
  end
  table.sort(keys, by_kind_and_value)
  return keys
end

--- Makes a flat copy of a waiting table.
function Writer:copy(entry)
  local t, copy = entry.table, {}
  for i = 1, #t do copy[i] = self:value(t[i], entry, i) end
  for _, key in ipairs(other_keys(t, #t, entry)) do copy[key] = self:value(t[key], entry, key) end
  return copy
end

--- Returns a value as text, or nil and a reason (" field 'x': cannot send a function"). `known`: see reachable().
function serialise.encode(value, known)
  local self = setmetatable({ waiting = {}, number_of = {}, metatables = {}, known = known }, Writer)
  local ok, result = pcall(function()
    local root, tables = self:value(value), {}
    while self.waiting[#tables + 1] do tables[#tables + 1] = self:copy(self.waiting[#tables + 1]) end
    return encode { root = root, tables = tables, metatables = self.metatables }
  end)
  if ok then return result end
  if type(result) == 'table' and result.refused then return nil, result.refused end
  error(result, 0)
end

--- Returns the value of a text from encode() in this process or in a worker that it started.
function serialise.decode(text, known)
  local sent = decode(text)
  local function value_of(value)
    if type(value) ~= 'table' then return value end
    local kind, number = value[1], value[2]
    if kind == 'table' then return sent.tables[number] end
    if kind == 'known' then return known.objects[number] end
    local struct = structs[kind][2](number)
    ffi.copy(struct, value[3], ffi.sizeof(struct))
    return struct
  end
  for number, t in ipairs(sent.tables) do
    for key, field in next, t do t[key] = value_of(field) end -- each by itself: in any order
    if sent.metatables[number] then setmetatable_of(t, known.objects[sent.metatables[number]]) end
  end
  return value_of(sent.root)
end

return serialise
