-- Converts values to Lua source: numbers (with the fewest exact digits), strings, booleans, and tables of these.

local text = require 'trinity.base.text'
local util = require 'trinity.base.util'

local lua_text = {}

local width = 118

local function string_text(value) return value:find "[\n\\']" and ('%q'):format(value) or ("'%s'"):format(value) end

--- Returns entries of a table as text: its list, then fields sorted by name.
local function entries_of(value, indent)
  local entries = util.map(value, function(entry) return lua_text.of(entry, indent) end)
  for key, entry in util.sorted_pairs(value) do
    if type(key) == 'string' then
      local name = key:match '^[%a_][%w_]*$' or ('[%s]'):format(string_text(key))
      entries[#entries + 1] = ('%s = %s'):format(name, lua_text.of(entry, indent))
    end
  end
  return entries
end

--- Returns the source of a value. Lines after the first begin with `indent` (0) blanks; tables that do not fit one line
--- have several entries per line, except entries of several lines.
function lua_text.of(value, indent)
  if type(value) == 'number' then return text.digits(value) end
  if type(value) == 'string' then return string_text(value) end
  if type(value) ~= 'table' then return tostring(value) end
  indent = indent or 0
  local entries = entries_of(value, indent + 2)
  if #entries == 0 then return '{}' end
  local whole = ('{ %s }'):format(table.concat(entries, ', '))
  if #whole + indent <= width - 30 and not whole:find '\n' then return whole end
  local lines, line = { '{' }, ''
  local function add()
    if line ~= '' then lines[#lines + 1] = (' '):rep(indent + 1) .. line end
    line = ''
  end
  for _, entry in ipairs(entries) do
    if entry:find '\n' or indent + #line + #entry + 4 > width then add() end
    line = ('%s %s,'):format(line, entry)
    if entry:find '\n' then add() end
  end
  add()
  lines[#lines + 1] = (' '):rep(indent) .. '}'
  return table.concat(lines, '\n')
end

return lua_text
