-- Writes and reads protocol buffer messages: https://protobuf.dev/programming-guides/encoding. A message is the
-- concatenation of its fields. As in proto3, fields with value 0 or '' are omitted, except in a oneof.

local ffi = require 'ffi'
local util = require 'trinity.base.util'

local wire = {}

--- Encodes a number from 0 to 2^53 as a varint.
function wire.varint(value)
  local bytes = {}
  repeat
    local low = value % 128
    value = (value - low) / 128
    bytes[#bytes + 1] = string.char(value > 0 and low + 128 or low)
  until value == 0
  return table.concat(bytes)
end

local function key(number, kind) return wire.varint(number * 8 + kind) end

--- Encodes a field with a non-negative integer; omitted if 0.
function wire.integer(number, value) return value == 0 and '' or key(number, 0) .. wire.varint(value) end

--- Same, but also encoded if 0, as a member of a oneof.
function wire.chosen_integer(number, value) return key(number, 0) .. wire.varint(value) end

--- Encodes a field with text, bytes or a message, even if it is empty.
function wire.bytes(number, text) return key(number, 2) .. wire.varint(#text) .. text end

--- Encodes a field with text; omitted if empty.
function wire.text(number, text) return text == '' and '' or wire.bytes(number, text) end

--- Encodes a packed list of integers; omitted if empty.
function wire.packed(number, values)
  return #values == 0 and '' or wire.bytes(number, table.concat(util.map(values, wire.varint)))
end

--- Encodes a 64-bit number, as a member of a oneof.
function wire.double(number, value)
  return key(number, 1) .. ffi.string(ffi.new('double[1]', value), 8)
end

--- Encodes a message preceded by its length.
function wire.record(message) return wire.varint(#message) .. message end

local largest = 2 ^ 53

--- Decodes the varint at a position (from 1) and returns it with the position after it; false for a number of more than
--- 53 bits (including negative ones), nil if the text ends within it or it has more than ten bytes.
function wire.read_varint(text, at)
  local value, scale = 0, 1
  for _ = 1, 10 do
    local byte = text:byte(at)
    if not byte then return nil, at end
    value, scale, at = value + byte % 128 * scale, scale * 128, at + 1
    if byte < 128 then return value <= largest and value, at end
  end
  return nil, at
end

local fixed = { [1] = 8, [5] = 4 }

--- Decodes one field of the message that ends before position `stop`: its number, its value (a number, false for one of
--- more than 53 bits, or the bytes of a field with a length or a fixed size) and the position after it; nil if it is
--- damaged.
local function read_field(text, at, stop)
  local tag, behind = wire.read_varint(text, at)
  if not tag or tag < 8 then return nil end
  local kind, value = tag % 8
  if kind == 0 then
    value, behind = wire.read_varint(text, behind)
    if value == nil then return nil end
  else
    local size = fixed[kind]
    if kind == 2 then size, behind = wire.read_varint(text, behind) end
    if not size or behind + size > stop then return nil end
    value, behind = text:sub(behind, behind + size - 1), behind + size
  end
  if behind > stop then return nil end
  return (tag - kind) / 8, value, behind
end

--- Calls body(number, value) for every field of a message, from position `from` to before `stop`. Returns whether all
--- of it was valid.
function wire.each_field(text, from, stop, body)
  local at = from or 1
  stop = stop or #text + 1
  while at < stop do
    local number, value, behind = read_field(text, at, stop)
    if not number then return false end
    body(number, value)
    at = behind
  end
  return true
end

return wire
