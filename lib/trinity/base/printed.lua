-- Texts of print() for returned tables: their type and main fields instead of an address.

local core = require 'trinity.core'

local printed = {}

local function value_text(name, value)
  if type(value) == 'number' then
    if name:match '_bytes$' or name == 'bytes' then return core.format_bytes(value) end
    return ('%.6g%s'):format(value, name:match '_s$' and not name:match '_per_s$' and ' s' or '')
  elseif type(value) == 'table' then
    return ('%d entries'):format(#value)
  end
  return tostring(value)
end

--- Returns a function that sets the text of print() for a table (its type and the named fields, or the text of a
--- function) and returns the table: 'bounds: step_time_s 0.25 s, peak_memory_bytes 3 GB'.
function printed.as(kind, fields)
  local meta = { __printed = true, __tostring = function(self)
    if type(fields) == 'function' then return ('%s: %s'):format(kind, fields(self)) end
    local parts = {}
    for _, name in ipairs(fields) do
      local value = self[name]
      if value ~= nil and value ~= '' then parts[#parts + 1] = ('%s %s'):format(name, value_text(name, value)) end
    end
    return ('%s: %s'):format(kind, table.concat(parts, ', '))
  end }
  return function(t)
    local class = getmetatable(t) -- of a result (lib/trinity/base/fields.lua)
    if not class then return setmetatable(t, meta) end
    class.__tostring = meta.__tostring
    return t
  end
end

--- Does the same for every entry of a list, and returns the list.
function printed.each(as, list)
  for i = 1, #list do as(list[i]) end
  return list
end

return printed
