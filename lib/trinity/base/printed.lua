-- Texts of print() for returned tables that need more than their fields (lib/trinity/base/fields.lua prints those).

local printed = {}

--- Returns a function that sets the text of print() for a table (`kind` and what the function `text` gives) and returns
--- the table.
function printed.as(kind, text)
  local meta = { __printed = true, __tostring = function(self) return ('%s: %s'):format(kind, text(self)) end }
  return function(t)
    local class = getmetatable(t) -- of a result
    if not class then return setmetatable(t, meta) end
    class.__tostring = meta.__tostring
    return t
  end
end

return printed
