-- Readable JSON with keys in the given order.

local core = require 'trinity.core'

local ordered = {}

local Object = {}

--- Returns an object of pairs { key, value }, in order.
function ordered.object(pairs_of) return setmetatable(pairs_of, Object) end

local function scalar(value) return (core.to_json(value):gsub('%s+$', '')) end

local function is_flat(value)
  for _, entry in ipairs(value) do
    if type(entry) == 'table' then return false end
  end
  return true
end

local write

-- Entries between brackets, one per line; lists of plain values in one line.
local function write_all(value, indent, out)
  local object = getmetatable(value) == Object
  local open, close = object and '{' or '[', object and '}' or ']'
  if #value == 0 then
    out[#out + 1] = open .. close
    return
  end
  local flat = not object and is_flat(value)
  out[#out + 1] = open
  for i, entry in ipairs(value) do
    out[#out + 1] = (i > 1 and (flat and ', ' or ',') or '') .. (flat and '' or '\n' .. indent .. '  ')
    if object then out[#out + 1] = scalar(entry[1]) .. ': ' end
    local inside = entry
    if object then inside = entry[2] end
    write(inside, indent .. '  ', out)
  end
  out[#out + 1] = (flat and '' or '\n' .. indent) .. close
end

function write(value, indent, out)
  if type(value) ~= 'table' then
    out[#out + 1] = scalar(value)
  else
    write_all(value, indent, out)
  end
end

--- Returns JSON text of objects (ordered.object), lists and plain values, with a final newline.
function ordered.text(value)
  local out = {}
  write(value, '', out)
  return table.concat(out) .. '\n'
end

return ordered
