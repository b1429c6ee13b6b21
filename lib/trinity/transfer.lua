-- Values as bytes, for the way out of a worker process (trinity.parallel_map).
--
-- Sent: nil, booleans, numbers (every bit), strings, 64-bit integers, tables (shared and cyclic references
-- stay what they are), arrays and views (as arrays), metrics. Tables with a metatable keep it when the
-- script had that metatable before the workers began. What wraps an immutable object of the engine (a
-- graph, a cluster, a problem, a simulator) is not copied: it arrives as the one that the script had. All
-- else is refused, with the field's name.

local ffi = require 'ffi'
local buffer = require 'string.buffer'
local array = require 'trinity.array'
local util = require 'trinity.util'

-- Taken before safe.lua takes them from the library: values are looked through as they are, whatever metatables say.
local getinfo, getupvalue, getfenv = debug.getinfo, debug.getupvalue, debug.getfenv
local getmetatable, setmetatable_of = debug.getmetatable, debug.setmetatable

local transfer = {}

local max_depth = 200
local immutable = { graph = true, cluster = true, problem = true }

local structs = { int32 = ffi.typeof 'struct trinity_int32_array', double = ffi.typeof 'struct trinity_double_array',
  metrics = ffi.typeof 'struct trinity_metrics', span = ffi.typeof 'struct trinity_int32_span' }
local int64, uint64 = ffi.typeof 'int64_t', ffi.typeof 'uint64_t'
local number_bytes = ffi.new 'double[1]'

--- Whether a table wraps an immutable object of the engine.
local function wraps_engine(t)
  if not getmetatable(t) then return false end
  local handle = rawget(t, 'handle')
  return type(handle) == 'userdata' and immutable[util.class_of(handle)] or false
end

--- Everything that can be reached from the values given: tables and functions get numbers that are the same in
--- this process and in workers that start later. `numbers[object]` and `objects[number]`.
function transfer.reachable(...)
  local numbers, objects = {}, {}
  local function visit(value)
    local kind = type(value)
    if (kind == 'table' or kind == 'function') and not numbers[value] then
      objects[#objects + 1] = value
      numbers[value] = #objects
    end
  end
  for i = 1, select('#', ...) do visit((select(i, ...))) end
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
      for key, field in next, value do -- need not be sorted: nobody sees the numbers
        visit(key)
        visit(field)
      end
    end
  end
  return { numbers = numbers, objects = objects }
end

local Writer = {}
Writer.__index = Writer

--- The place of the value at hand: " field 'rows.2.reward':", or '' at the top.
local function place(path)
  if #path == 0 then return '' end
  local words = {}
  for i, key in ipairs(path) do words[i] = tostring(key) end
  local text = table.concat(words, '.')
  return (" field '%s':"):format(#text > 200 and text:sub(1, 197) .. '...' or text)
end

function Writer:refuse(message, ...) error({ refused = place(self.path) .. ' ' .. message:format(...) }, 0) end

local function by_kind_and_value(a, b)
  if type(a) ~= type(b) then return type(a) < type(b) end
  if type(a) == 'boolean' then return a and not b end
  return a < b
end

--- Keys after the list part, sorted, so that equal tables are equal bytes.
local function other_keys(t, length)
  local keys = {}
  for key in next, t do
    if not (type(key) == 'number' and key >= 1 and key <= length and key % 1 == 0) then keys[#keys + 1] = key end
  end
  return keys
end

function Writer:number(value)
  number_bytes[0] = value
  self.bytes:put('d'):putcdata(number_bytes, 8)
end

function Writer:raw(tag, count, data, size)
  self.bytes:put(tag)
  self:number(count)
  self.bytes:put(ffi.string(data, size))
end

function Writer:cdata(value)
  if ffi.istype(structs.int32, value) then self:raw('i', #value, value, ffi.sizeof(value))
  elseif ffi.istype(structs.double, value) then self:raw('D', #value, value, ffi.sizeof(value))
  elseif ffi.istype(structs.metrics, value) then self:raw('m', value.device_count, value, ffi.sizeof(value))
  elseif ffi.istype(structs.span, value) then
    local copy = array.int32(#value)
    for i = 1, #value do copy[i] = value[i] end
    self:cdata(copy)
  elseif ffi.istype(int64, value) then self.bytes:put('l'):put(ffi.string(ffi.new('int64_t[1]', value), 8))
  elseif ffi.istype(uint64, value) then self.bytes:put('u'):put(ffi.string(ffi.new('uint64_t[1]', value), 8))
  else self:refuse('cannot send %s', tostring(ffi.typeof(value))) end
end

function Writer:field(key, value)
  self.path[#self.path + 1] = key
  self:value(value)
  self.path[#self.path] = nil
end

function Writer:metatable(t)
  local meta = getmetatable(t)
  if not meta then return false end
  local number = self.known.numbers[meta]
  if not number then self:refuse('cannot send a table whose metatable was made in the worker') end
  self.bytes:put 'M'
  self:number(number)
  return true
end

--- A list of numbers in one piece, its length below zero; false for other lists.
function Writer:number_list(t, length)
  for i = 1, length do
    if type(t[i]) ~= 'number' then return false end
  end
  local data = ffi.new('double[?]', length)
  for i = 1, length do data[i - 1] = t[i] end
  self:number(-length)
  self.bytes:put(ffi.string(data, 8 * length))
  return true
end

function Writer:fields(t)
  local length = #t
  self.bytes:put '{'
  if length == 0 or not self:number_list(t, length) then
    self:number(length)
    for i = 1, length do self:field(i, t[i]) end
  end
  local keys = other_keys(t, length)
  for _, key in ipairs(keys) do
    local kind = type(key)
    if kind ~= 'string' and kind ~= 'number' and kind ~= 'boolean' then
      self:refuse('cannot send a table with a %s as key', kind)
    end
  end
  table.sort(keys, by_kind_and_value)
  self:number(#keys)
  for _, key in ipairs(keys) do
    self:value(key)
    self:field(key, t[key])
  end
end

function Writer:table(t)
  if self.written[t] then
    self.bytes:put 'r'
    return self:number(self.written[t])
  end
  if #self.path >= max_depth then self:refuse('nested deeper than %d tables', max_depth) end
  self.count = self.count + 1
  self.written[t] = self.count
  if wraps_engine(t) then
    local number = self.known.numbers[t]
    if not number then self:refuse('cannot send a %s that was made in the worker', util.describe(t)) end
    self.bytes:put 'k'
    return self:number(number)
  end
  local described = self:metatable(t)
  self:fields(t)
  return described
end

local writers = {
  ['nil'] = function(self) self.bytes:put 'n' end,
  boolean = function(self, value) self.bytes:put(value and 't' or 'f') end,
  number = Writer.number,
  string = function(self, value)
    self.bytes:put 's'
    self:number(#value)
    self.bytes:put(value)
  end,
  table = Writer.table,
  cdata = Writer.cdata,
}

function Writer:value(value)
  local write = writers[type(value)]
  if not write then self:refuse('cannot send a %s', util.describe(value)) end
  write(self, value)
end

--- A value as text, or nil and why not (" field 'x': cannot send a function"). `known`: see reachable().
function transfer.encode(value, known)
  local self = setmetatable({ bytes = buffer.new(), path = {}, written = {}, count = 0, known = known }, Writer)
  local ok, problem = pcall(self.value, self, value)
  if ok then return self.bytes:tostring() end
  if type(problem) == 'table' and problem.refused then return nil, problem.refused end
  error(problem, 0)
end

local Reader = {}
Reader.__index = Reader

function Reader:take(count)
  local text = self.text:sub(self.at, self.at + count - 1)
  self.at = self.at + count
  return text
end

function Reader:number()
  ffi.copy(number_bytes, self:take(9):sub(2), 8)
  return number_bytes[0]
end

function Reader:struct(value)
  local size = ffi.sizeof(value)
  ffi.copy(value, self:take(size), size)
  return value
end

function Reader:integer(kind)
  local value = ffi.new(kind)
  ffi.copy(value, self:take(8), 8)
  return value[0]
end

function Reader:remember(t)
  self.tables[#self.tables + 1] = t
  return t
end

function Reader:fields(meta)
  local t, length = self:remember {}, self:number()
  if length < 0 then
    local data = ffi.new('double[?]', -length)
    ffi.copy(data, self:take(-8 * length), -8 * length)
    for i = 1, -length do t[i] = data[i - 1] end
  end
  for i = 1, length do t[i] = self:value() end
  for _ = 1, self:number() do
    local key = self:value()
    t[key] = self:value()
  end
  if meta then setmetatable_of(t, meta) end
  return t
end

local readers = {
  n = function() return nil end,
  t = function() return true end,
  f = function() return false end,
  s = function(self) return self:take(self:number()) end,
  i = function(self) return self:struct(array.int32(self:number())) end,
  D = function(self) return self:struct(array.double(self:number())) end,
  m = function(self) return self:struct(array.metrics(self:number())) end,
  l = function(self) return self:integer 'int64_t[1]' end,
  u = function(self) return self:integer 'uint64_t[1]' end,
  r = function(self) return self.tables[self:number()] end,
  k = function(self) return self:remember(self.known.objects[self:number()]) end,
  M = function(self)
    local meta = self.known.objects[self:number()]
    self.at = self.at + 1
    return self:fields(meta)
  end,
  ['{'] = Reader.fields,
}

function Reader:value()
  local tag = self:take(1)
  if tag == 'd' then
    self.at = self.at - 1
    return self:number()
  end
  return readers[tag](self)
end

--- The value of a text that encode() wrote in this process or in a worker that it started.
function transfer.decode(text, known)
  return setmetatable({ text = text, at = 1, tables = {}, known = known }, Reader):value()
end

return transfer
