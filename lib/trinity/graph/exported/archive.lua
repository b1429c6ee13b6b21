-- Zip archives whose entries are stored without compression, as PyTorch writes them (APPNOTE.TXT of PKWARE, 4.3: end of
-- the central directory, its headers, and the local headers before the entries).

local util = require 'trinity.base.util'

local archive = {}

local function fail(path, ...) util.fail('%s: %s', util.shortened(path), (...):format(select(2, ...))) end

--- Returns a little-endian integer of `count` bytes at a position from 1, or nil beyond the end.
local function number(text, at, count)
  if at < 1 or at + count - 1 > #text then return nil end
  local value = 0
  for i = count, 1, -1 do value = value * 256 + text:byte(at + i - 1) end
  return value
end

--- Returns the position of the central directory and its number of entries.
local function directory(path, text)
  for at = #text - 21, math.max(1, #text - 21 - 65535), -1 do
    if text:sub(at, at + 3) == 'PK\5\6' then
      local count, from = number(text, at + 10, 2), number(text, at + 16, 4)
      local wide = number(text, at - 20, 4) == 0x07064b50 and number(text, at - 12, 8) -- zip64: its own end
      if wide and text:sub(wide + 1, wide + 4) == 'PK\6\6' then
        count, from = number(text, wide + 33, 8), number(text, wide + 49, 8)
      end
      return from + 1, count
    end
  end
  fail(path, 'expected a zip archive, found no end of its directory')
end

--- Reads the sizes and position of an entry from its zip64 extra field, if the header refers to it.
local function wide_fields(text, from, to, size, offset)
  local at = from
  while at + 3 < to do
    local id, length = number(text, at, 2), number(text, at + 2, 2)
    if not length then break end
    if id == 1 then
      local field = at + 4
      if size == 0xffffffff then size, field = number(text, field, 8), field + 16 end -- both sizes, the same if stored
      if offset == 0xffffffff then offset = number(text, field, 8) end
      return size, offset
    end
    at = at + 4 + length
  end
  return size, offset
end

--- Opens an archive. Returns { path, names = of its entries, in order } and a function that reads one.
function archive.open(path)
  local text = util.read_file(path)
  local at, count = directory(path, text)
  local names, places = {}, {}
  for e = 1, count do
    if text:sub(at, at + 3) ~= 'PK\1\2' then fail(path, 'entry %d of its directory: expected a header', e) end
    local method, size, offset = number(text, at + 10, 2), number(text, at + 24, 4), number(text, at + 42, 4)
    local name_length, extra, comment = number(text, at + 28, 2), number(text, at + 30, 2), number(text, at + 32, 2)
    if not comment or not offset then fail(path, 'entry %d of its directory: expected the whole entry, got the end of '
      .. 'the file', e) end
    local name = text:sub(at + 46, at + 45 + name_length)
    size, offset = wide_fields(text, at + 46 + name_length, at + 46 + name_length + extra, size, offset)
    names[e], places[name] = name, { method = method, size = size, offset = offset }
    at = at + 46 + name_length + extra + comment
  end
  return { path = path, names = names }, function(name)
    local place = places[name]
    if not place then return nil end
    if place.method ~= 0 then fail(path, "entry '%s': expected a stored entry, as PyTorch writes them, got a "
      .. "compressed one", name) end
    local header = place.offset and place.offset + 1 or 0
    local skipped = number(text, header + 26, 2)
    local extra = number(text, header + 28, 2)
    if text:sub(header, header + 3) ~= 'PK\3\4' or not extra then fail(path,
      "entry '%s': expected a header, got none", name) end
    local first = header + 30 + skipped + extra
    if not place.size or first + place.size - 1 > #text then fail(path, "entry '%s': expected the whole entry, got "
      .. "the end of the file", name) end
    return text:sub(first, first + place.size - 1)
  end
end

return archive
