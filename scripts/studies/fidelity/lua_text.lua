-- Converts values to Lua source: numbers (with the fewest exact digits), strings, booleans, and tables of these.

local text = require 'trinity.base.text'
local util = require 'trinity.base.util'

local lua_text = {}

local width = 118

local function string_text(value) return value:find "[\n\\']" and ('%q'):format(value) or ("'%s'"):format(value) end

--- Returns the source of a value. Lines after the first begin with `indent` (0) blanks; tables that do not fit one line
--- have several entries per line, except entries of several lines.
function lua_text.of(value, indent)
  if type(value) == 'number' then return text.digits(value) end
  if type(value) == 'string' then return string_text(value) end
  if type(value) ~= 'table' then return tostring(value) end
  indent = indent or 0
  local entries = util.map(value, function(entry) return lua_text.of(entry, indent + 2) end)
  for key, entry in util.sorted_pairs(value) do
    if type(key) == 'string' then
      local name = key:match '^[%a_][%w_]*$' or ('[%s]'):format(string_text(key))
      entries[#entries + 1] = ('%s = %s'):format(name, lua_text.of(entry, indent + 2))
    end
  end
  local whole = #entries > 0 and ('{ %s }'):format(table.concat(entries, ', ')) or '{}'
  if #whole + indent <= width - 30 and not whole:find '\n' then return whole end
  local blanks, lines, alone = '\n' .. (' '):rep(indent), { '{' }, true -- alone: the last line takes no more entries
  for _, entry in ipairs(entries) do
    local several = entry:find '\n' ~= nil
    if alone or several or indent + #lines[#lines] + #entry + 4 > width then lines[#lines + 1] = '' end
    lines[#lines] = ('%s %s,'):format(lines[#lines], entry)
    alone = several
  end
  return ('%s%s}'):format(table.concat(lines, blanks .. ' '), blanks)
end

return lua_text
