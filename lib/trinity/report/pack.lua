-- Columns of integers as short texts, for the data of a page: differences between neighbours, zigzag encoded (0, -1, 1,
-- -2, ... become 0, 1, 2, 3, ...), as varints in base64. Times of 20,000 events take 3 to 4 bytes each. base.js of the
-- page decodes them (`unpack`).

local bit = require 'bit'
local ffi = require 'ffi'

local pack = {}

local alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'
local symbol = ffi.new('uint8_t[64]')
for i = 0, 63 do symbol[i] = alphabet:byte(i + 1) end

local function base64(bytes, count)
  local out, n = ffi.new('uint8_t[?]', math.ceil(count / 3) * 4), 0
  for i = 0, count - 1, 3 do
    local word = bit.bor(bit.lshift(bytes[i], 16), i + 1 < count and bit.lshift(bytes[i + 1], 8) or 0,
      i + 2 < count and bytes[i + 2] or 0)
    out[n], out[n + 1] = symbol[bit.rshift(word, 18)], symbol[bit.band(bit.rshift(word, 12), 63)]
    out[n + 2] = i + 1 < count and symbol[bit.band(bit.rshift(word, 6), 63)] or 61
    out[n + 3] = i + 2 < count and symbol[bit.band(word, 63)] or 61
    n = n + 4
  end
  return ffi.string(out, n)
end

--- Returns a list of integers (absolute values below 2 ^ 51) as text.
function pack.integers(list)
  local bytes, n, before = ffi.new('uint8_t[?]', math.max(1, 8 * #list)), 0, 0
  for i = 1, #list do
    local difference = list[i] - before
    if not (difference > -2 ^ 52 and difference < 2 ^ 52) then -- more than the eight bytes that each has
      error(('entry %d: expected an integer below 2^51 in size, got %s'):format(i, tostring(list[i])), 2)
    end
    before = list[i]
    local left = difference < 0 and -2 * difference - 1 or 2 * difference
    while left >= 128 do
      bytes[n] = left % 128 + 128
      left = math.floor(left / 128)
      n = n + 1
    end
    bytes[n], n = left, n + 1
  end
  return base64(bytes, n)
end

return pack
