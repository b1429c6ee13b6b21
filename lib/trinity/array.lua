-- Typed arrays and metrics as FFI structs: 1-based, bounds-checked, compiled by LuaJIT.

local ffi = require 'ffi'
local core = require 'trinity.core'
local util = require 'trinity.util'

ffi.cdef(core.ffi_declarations)

local array = {}
local magic = core.magic

local function totable(self)
  local t = {}
  for i = 1, #self do t[i] = self[i] end
  return t
end

local function iterate(self, i)
  i = i + 1
  if i <= self.length then return i, self.data[i - 1] end
end

local methods = {
  totable = totable,
  --- for i, value in a:each() do ... end
  each = function(self) return iterate, self, 0 end,
}

local function out_of_range(self, i)
  if type(i) ~= 'number' then util.fail("an array has no field '%s'", tostring(i)) end
  util.fail('index %s is outside 1 to %d', tostring(i), self.length)
end

local function read(self, i)
  if type(i) == 'number' then
    if i >= 1 and i <= self.length then return self.data[i - 1] end
    return out_of_range(self, i)
  end
  return methods[i] or out_of_range(self, i)
end

local function write(self, i, value)
  if type(i) ~= 'number' or not (i >= 1 and i <= self.length) then return out_of_range(self, i) end
  self.data[i - 1] = value
end

local function length(self) return self.length end

local function mutable(name)
  return ffi.metatype('struct trinity_' .. name, {
    __index = read, __newindex = write, __len = length,
    __tostring = function(self) return ('%s[%d]'):format(name, self.length) end,
  })
end

local int32_array = mutable 'int32_array'
local double_array = mutable 'double_array'

local int32_span = ffi.metatype('struct trinity_int32_span', {
  __index = read,
  __newindex = function() util.fail('this array is read-only') end,
  __len = length,
  __tostring = function(self) return ('int32 view[%d]'):format(self.length) end,
})

--- New arrays of `n` zeros.
function array.int32(n) return ffi.new(int32_array, n, magic.int32_array, n) end

function array.double(n) return ffi.new(double_array, n, magic.double_array, n) end

function array.is_int32(value) return ffi.istype(int32_array, value) end

-- A view of engine memory keeps its owner alive.
local owners = setmetatable({}, { __mode = 'k' })

--- A read-only view that `fill(span)` points at memory of `owner`.
function array.int32_view(owner, fill)
  local span = int32_span(magic.int32_span)
  fill(span)
  owners[span] = owner
  return span
end

local device_fields = { compute_busy_s = 0, send_busy_s = 1, memory_bytes = 2, sent_bytes = 3,
  received_bytes = 4 }

local metrics_methods = {}
for name, offset in util.sorted_pairs(device_fields) do
  --- metrics:memory_bytes(d) and so on: the value of one device.
  metrics_methods[name] = function(self, d)
    if not (d >= 1 and d <= self.device_count and d % 1 == 0) then
      util.fail('%s: device %s is outside 1 to %d', name, tostring(d), self.device_count)
    end
    return self.device[5 * (d - 1) + offset]
  end
end

local metrics_names = { 'step_time_s', 'peak_memory_bytes', 'peak_communication_bytes',
  'total_communication_bytes', 'excess_memory_bytes', 'transfers', 'feasible', 'rejected',
  'device_count', 'compute_busy_s', 'send_busy_s', 'memory_bytes', 'sent_bytes', 'received_bytes' }

local metrics = ffi.metatype('struct trinity_metrics', {
  __index = function(_, name)
    local method = metrics_methods[name]
    if method then return method end
    util.fail("metrics have no field '%s'%s (known: %s)", tostring(name),
      core.suggestion(tostring(name), metrics_names), table.concat(metrics_names, ', '))
  end,
  __newindex = function() util.fail('metrics are read-only') end,
  __tostring = function(self)
    if self.rejected then return 'rejected' end
    return ('step %.6g s, memory %s, communication %s%s'):format(self.step_time_s,
      core.format_bytes(self.peak_memory_bytes), core.format_bytes(self.peak_communication_bytes),
      self.feasible and '' or ', does not fit')
  end,
})

--- Metrics of a step on `devices` devices, to be filled by the engine.
function array.metrics(devices)
  return ffi.new(metrics, 5 * devices, magic.metrics, devices)
end

return array
