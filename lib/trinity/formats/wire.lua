-- Messages of protocol buffers, written: https://protobuf.dev/programming-guides/encoding. A message is the text that
-- its fields join to; fields of value 0 or '' are left out, as proto3 has it, but where a oneof says that they are set.

local ffi = require 'ffi'

local wire = {}

--- A number from 0 to 2^53 as a varint.
---@param value integer
---@return string
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

--- A field of a whole number from 0, left out where it is 0.
function wire.integer(number, value) return value == 0 and '' or key(number, 0) .. wire.varint(value) end

--- The same, also where it is 0: as a member of a oneof.
function wire.chosen_integer(number, value) return key(number, 0) .. wire.varint(value) end

--- A field of text, bytes or a message; messages stand there also where they are empty.
function wire.bytes(number, text) return key(number, 2) .. wire.varint(#text) .. text end

--- A field of text, left out where it is empty.
function wire.text(number, text) return text == '' and '' or wire.bytes(number, text) end

--- A packed list of whole numbers, left out where it is empty.
function wire.packed(number, values)
  local parts = {}
  for i, value in ipairs(values) do parts[i] = wire.varint(value) end
  return #parts == 0 and '' or wire.bytes(number, table.concat(parts))
end

--- A number of 64 bits, as a member of a oneof.
function wire.double(number, value)
  return key(number, 1) .. ffi.string(ffi.new('double[1]', value), 8)
end

--- A message with its length before it.
function wire.record(message) return wire.varint(#message) .. message end

return wire
