-- Writes scalars as TensorBoard event files: TFRecords with an Event protocol buffer each.
--
--   record   length (8 bytes), masked CRC-32C of these 8, data, masked CRC-32C of the data; all little-endian
--   Event    1: wall_time (double), 2: step (int64), 3: file_version (text), 5: summary
--   Summary  1: value, repeated: { 1: tag (text), 2: simple_value (float) }
-- Sources: tensorflow/core/lib/io/record_writer.h, lib/hash/crc32c.h, util/event.proto, framework/summary.proto.

local bit = require 'bit'
local ffi = require 'ffi'
local wire = require 'trinity.formats.wire'

local band, bxor, bor, rshift, lshift = bit.band, bit.bxor, bit.bor, bit.rshift, bit.lshift

local tensorboard = {}

local polynomial = bit.tobit(0x82f63b78) -- Castagnoli's, reflected
local crc_of_byte = ffi.new 'int32_t[256]'
for byte = 0, 255 do
  local crc = byte
  for _ = 1, 8 do crc = bxor(rshift(crc, 1), band(crc, 1) == 1 and polynomial or 0) end
  crc_of_byte[byte] = crc
end

--- Returns the CRC-32C of a text, from 0 to 2^32 - 1; `before`: the CRC-32C of the preceding text (default 0).
function tensorboard.crc32c(text, before)
  local bytes, crc = ffi.cast('const uint8_t *', text), bxor(bit.tobit(before or 0), -1)
  for i = 0, #text - 1 do crc = bxor(crc_of_byte[band(bxor(crc, bytes[i]), 255)], rshift(crc, 8)) end
  return bxor(crc, -1) % 2 ^ 32
end

-- Buffers for one value of each type, whose bytes are read.
local single, uint32, uint64 = ffi.new 'float[1]', ffi.new 'uint32_t[1]', ffi.new 'uint64_t[1]'

local function bytes_of(kind, value)
  kind[0] = value
  return ffi.string(kind, ffi.sizeof(kind))
end

local function masked_crc(text)
  local crc = bit.tobit(tensorboard.crc32c(text))
  return bytes_of(uint32, (bor(rshift(crc, 15), lshift(crc, 17)) % 2 ^ 32 + 0xa282ead8) % 2 ^ 32)
end

local function record(data)
  local length = bytes_of(uint64, #data)
  return length .. masked_crc(length) .. data .. masked_crc(data)
end

--- Returns the beginning of an event file.
function tensorboard.head(wall_time_s)
  return record(wire.double(1, wall_time_s) .. wire.bytes(3, 'brain.Event:2'))
end

--- Encodes one event: `tags` and `values` are lists of equal length.
function tensorboard.scalars(wall_time_s, step, tags, values)
  local summary = {}
  for i, tag in ipairs(tags) do
    summary[i] = wire.bytes(1, wire.bytes(1, tag) .. '\21' .. bytes_of(single, values[i]))
  end
  return record(wire.double(1, wall_time_s) .. wire.chosen_integer(2, step) .. wire.bytes(5, table.concat(summary)))
end

return tensorboard
