-- Typed arrays and metrics as FFI structs: 1-based, bounds-checked, compiled by LuaJIT. Their memory is declared as
-- elements without members (engine/lua/host/trinity_ffi.h), so that scripts can neither read nor write `x.data`; only
-- these functions know its layout.

local bit = require 'bit'
local ffi = require 'ffi'
local core = require 'trinity.core'
local check = require 'trinity.base.check'
local fields = require 'trinity.base.fields'
local util = require 'trinity.base.util'

ffi.cdef(core.ffi_declarations)

local array = {}
local magic = core.magic
local int32_pointer, double_pointer = ffi.typeof 'int32_t *', ffi.typeof 'double *'

local is_array -- returns whether a value is one of our arrays

--- Raises the error about an object of a method, called `name`, that is none: methods are called with ':'.
local function refuse_self(name, expected, self)
  util.fail("%s: the object before ':' ('self'): expected %s, got %s (methods are called with ':')", name, expected,
    util.describe(self))
end

local function totable(self)
  if not is_array(self) then refuse_self('array:totable', 'an array', self) end
  return util.listed(#self, function(i) return self[i] end)
end

local function iterate(self, i)
  i = i + 1
  if i <= #self then return i, self[i] end
end

local methods = {
  totable = fields.limited('array.totable', totable),
  --- for i, value in a:each() do ... end
  each = fields.limited('array.each', function(self)
    if not is_array(self) then refuse_self('array:each', 'an array', self) end
    return iterate, self, 0
  end),
}

local function out_of_range(self, i)
  if type(i) ~= 'number' then fields.refuse('array', i, { 'each', 'length', 'totable' }) end
  util.fail('index %s is outside 1 to %d', tostring(i), self.length)
end

--- Raises the error of self[i] = value; `expected` describes the elements.
local function refuse(self, i, value, expected)
  if type(i) ~= 'number' or not (i >= 1 and i <= self.length) then out_of_range(self, i) end
  util.fail('index %s: expected %s, got %s', tostring(i), expected, util.describe(value))
end

local function length(self) return self.length end

--- Returns `self[i]` if i is no index: a method, or an error.
local function missing(self, i)
  if type(i) == 'string' and methods[i] then return methods[i] end
  if i == 'length' then return length(self) end -- from compiled code, as with metrics_fields below
  return out_of_range(self, i)
end

--- Returns a function that reads elements, and one that writes them: one pair per element type, so that LuaJIT compiles
--- each with its own types. The fast path is one line on purpose, because compiled code checks for Ctrl-C at every new
--- line (engine/lua/host/stopper.h).
local function reader(to)
  local cast, number = ffi.cast, 'number'
  return function(self, i)
    if type(i) == number and i >= 1 and i <= self.length then return cast(to, self.data)[i - 1] end
    return missing(self, i)
  end
end

local function double_writer(to)
  local cast, number = ffi.cast, 'number'
  return function(a, i, v)
    if type(v) == number and type(i) == number and i >= 1 and i <= a.length then cast(to, a.data)[i - 1] = v return end
    refuse(a, i, v, 'a number')
  end
end

--- Integers only; otherwise a device of 1.999 would become device 1.
local function int32_writer(to)
  local cast, number, tobit = ffi.cast, 'number', bit.tobit
  local function is_whole(v) return type(v) == number and tobit(v) == v end
  return function(a, i, v)
    if is_whole(v) and type(i) == number and i >= 1 and i <= a.length then cast(to, a.data)[i - 1] = v return end
    refuse(a, i, v, 'an integer of 32 bits')
  end
end

local function mutable(name, read, write)
  return ffi.metatype('struct trinity_' .. name, {
    __index = read, __newindex = write, __len = length,
    __tostring = function(self) return ('%s[%d]'):format(name, self.length) end,
  })
end

local int32_array = mutable('int32_array', reader(int32_pointer), int32_writer(int32_pointer))
local double_array = mutable('double_array', reader(double_pointer), double_writer(double_pointer))

local int32_span = ffi.metatype('struct trinity_int32_span', {
  __index = reader(int32_pointer),
  __newindex = function() util.fail('this array is read-only') end,
  __len = length,
  __tostring = function(self) return ('int32 view[%d]'):format(self.length) end,
})

function is_array(value)
  return ffi.istype(int32_array, value) or ffi.istype(double_array, value) or ffi.istype(int32_span, value)
end

local most = 2 ^ 27 -- maximum elements, so that no array takes more than 1 GiB

--- Returns new arrays of `n` zeros.
function array.int32(n)
  check.integer('array.int32', 1, 'n', n, 0, most)
  return ffi.new(int32_array, n, magic.int32_array, n)
end

function array.double(n)
  check.integer('array.double', 1, 'n', n, 0, most)
  return ffi.new(double_array, n, magic.double_array, n)
end

function array.filled(n, value)
  local made = array.int32(n)
  for i = 1, n do made[i] = value end
  return made
end

function array.int32_of(list)
  local made = array.int32(#list)
  for i = 1, #list do made[i] = list[i] end
  return made
end

function array.double_of(list)
  local made = array.double(#list)
  for i = 1, #list do made[i] = list[i] end
  return made
end

function array.copy(from)
  local made = array.int32(#from)
  ffi.copy(ffi.cast(int32_pointer, made.data), ffi.cast(int32_pointer, from.data), 4 * #from)
  return made
end

function array.is_int32(value) return ffi.istype(int32_array, value) end

--- Converts a placement given as a list of devices, one per operator of `graph`, to an int32 array; returns any other
--- value unchanged. entry: its number in a list of placements.
function array.placement(owner, place, name, value, graph, entry)
  if type(value) ~= 'table' or getmetatable(value) ~= nil or rawget(value, 1) == nil then return value end
  local prefix = entry and ('entry %d: '):format(entry) or ''
  if #value ~= graph.operators then
    check.refuse(owner, place, name, '%sexpected a list of %d devices, one per operator, got %d entries', prefix,
      graph.operators, #value)
  end
  for i = 1, #value do
    local device = value[i]
    if type(device) ~= 'number' or not (device >= 1 and device < 2 ^ 31) or device % 1 ~= 0 then
      check.refuse(owner, place, name, '%soperator %d: expected a device (an integer from 1), got %s', prefix, i,
        util.describe(device))
    end
  end
  return array.int32_of(value)
end

--- Returns a read-only view of a vector of the engine, which stays alive as long as the view.
function array.int32_view(vector)
  local span = int32_span(magic.int32_span)
  vector:span(span)
  return span
end

local metrics

local device_fields = { compute_busy_s = 0, send_busy_s = 1, memory_bytes = 2, sent_bytes = 3,
  received_bytes = 4 }

local cast = ffi.cast
local metrics_methods = {}
for name, offset in util.sorted_pairs(device_fields) do
  --- metrics:memory_bytes(d) and others: the value of one device.
  metrics_methods[name] = function(self, d)
    if not ffi.istype(metrics, self) then refuse_self('metrics:' .. name, 'metrics', self) end
    if type(d) ~= 'number' or not (d >= 1 and d <= self.device_count and d % 1 == 0) then
      check.wrong('metrics:' .. name, 1, 'd', d, 'an integer from 1 to ' .. self.device_count)
    end
    return cast(double_pointer, self.device)[5 * (d - 1) + offset]
  end
end

-- A clear error if a function of a device is used as an array; Lua's message names neither.
if debug.getmetatable(length) == nil then
  debug.setmetatable(length, { __index = function(self, key)
    for name in util.sorted_pairs(device_fields) do
      if metrics_methods[name] == self then
        util.fail('metrics.%s is a function of a device: expected metrics:%s(%s)', name, name, tostring(key))
      end
    end
    util.fail('expected a table, got a function (a call needs brackets), in which field %s was looked for',
      util.quoted(tostring(key)))
  end })
end

local metrics_names = { 'step_time_s', 'peak_memory_bytes', 'peak_communication_bytes',
  'total_communication_bytes', 'excess_memory_bytes', 'transfers', 'samples', 'samples_per_s', 'feasible', 'rejected',
  'device_count', 'compute_busy_s', 'send_busy_s', 'memory_bytes', 'sent_bytes', 'received_bytes', 'totable' }
local most_struct_fields = 11 -- of these names; then methods

-- Also handles fields of the struct: compiled code that once met an unknown name gets here with other names, because
-- LuaJIT's traces of metatypes do not check the name again.
local metrics_fields = {}
for i = 1, most_struct_fields do
  local name = metrics_names[i]
  metrics_fields[name] = function(self) return self[name] end
end
function metrics_fields.samples_per_s(self) return self.samples / self.step_time_s end

--- metrics:totable(): returns all fields as a table, with lists for values per device.
function metrics_methods.totable(self)
  if not ffi.istype(metrics, self) then refuse_self('metrics:totable', 'metrics', self) end
  local all = {}
  for name, field in util.sorted_pairs(metrics_fields) do all[name] = field(self) end
  for name in util.sorted_pairs(device_fields) do
    all[name] = util.listed(self.device_count, function(d) return metrics_methods[name](self, d) end)
  end
  return all
end

for name, method in pairs(metrics_methods) do -- each by itself: in any order
  metrics_methods[name] = fields.limited('metrics.' .. name, method)
end

metrics = ffi.metatype('struct trinity_metrics', {
  __pairs = function(self) return util.sorted_pairs(metrics_methods.totable(self)) end,
  __index = function(self, name)
    local method = metrics_methods[name]
    if method then return method end
    local field = metrics_fields[name]
    if field then return field(self) end
    util.fail('metrics have no field %s', util.unknown(name, metrics_names))
  end,
  __newindex = function() util.fail('metrics are read-only') end,
  __tostring = function(self)
    if self.rejected then return 'rejected' end
    return ('step %.6g s, memory %s, communication %s%s'):format(self.step_time_s,
      core.format_bytes(self.peak_memory_bytes), core.format_bytes(self.peak_communication_bytes),
      self.feasible and '' or ', does not fit')
  end,
})

do
  local samples = { int32_array = ffi.new(int32_array, 0, magic.int32_array, 0),
    double_array = ffi.new(double_array, 0, magic.double_array, 0),
    int32_span = int32_span(magic.int32_span), metrics = ffi.new(metrics, 0, magic.metrics, 0) }
  local types = {}
  for name, sample in util.sorted_pairs(samples) do
    types[name] = { sample, tonumber(ffi.typeof(sample)) }
  end
  core.know_structs(types)
end

--- Names of the fields of metrics.
array.metrics_fields = metrics_names

--- Returns whether a value is an array of any type.
array.is = is_array

function array.is_metrics(value) return ffi.istype(metrics, value) end

function array.changed_metrics(from, name, value)
  local copy = array.metrics(from.device_count)
  local bytes = ffi.sizeof(copy)
  ffi.copy(copy, from, bytes)
  cast(double_pointer, cast('char *', copy) + ffi.offsetof('struct trinity_metrics', name))[0] = value
  return copy
end

--- Returns metrics for the engine to fill, of a step on `devices` devices with this number of samples (default 0:
--- unknown).
function array.metrics(devices, samples)
  return ffi.new(metrics, 5 * devices, { magic = magic.metrics, device_count = devices, samples = samples or 0 })
end

return array
