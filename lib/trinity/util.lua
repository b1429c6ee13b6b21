-- Small helpers shared by the library: errors that name the script's line, sorted iteration.

local core = require 'trinity.core'

local util = {}

--- Raises an error at the script's line (the innermost frame outside this library).
function util.fail(message, ...)
  if select('#', ...) > 0 then message = message:format(...) end
  error(core.position() .. message, 0)
end

--- A message without the position that an error raised here would carry.
function util.unplaced(message)
  local position = core.position()
  if message:sub(1, #position) == position then return message:sub(#position + 1) end
  return message
end

local Usage = { __tostring = function(self) return self.message end }

--- Raises a usage error: the program prints it and exits with status 2.
function util.fail_usage(message, ...)
  if select('#', ...) > 0 then message = message:format(...) end
  error(setmetatable({ usage = true, message = message }, Usage), 0)
end

--- Iterates over a table with string keys in sorted order.
function util.sorted_pairs(t)
  local keys = {}
  for key in pairs(t) do keys[#keys + 1] = key end -- sorted below
  table.sort(keys, function(a, b) return tostring(a) < tostring(b) end)
  local i = 0
  return function()
    i = i + 1
    if keys[i] ~= nil then return keys[i], t[keys[i]] end
  end
end

--- Describes a value for a message: its type, and itself when short.
function util.describe(value)
  if type(value) == 'string' then return ("string '%s'"):format(value) end
  if type(value) == 'number' then return ('number %.17g'):format(value) end
  return type(value)
end

--- Rows of text as a table under a head, the first column flush left, the others flush right.
function util.format_table(head, rows)
  local width, rule, lines = {}, {}, {}
  for c = 1, #head do
    width[c] = #head[c]
    for _, row in ipairs(rows) do width[c] = math.max(width[c], #row[c]) end
    rule[c] = ('-'):rep(width[c])
  end
  local function add(row)
    local cells = {}
    for c = 1, #head do cells[c] = ((c == 1 and '%-' or '%') .. width[c] .. 's'):format(row[c]) end
    lines[#lines + 1] = (table.concat(cells, '  '):gsub('%s+$', ''))
  end
  add(head)
  add(rule)
  for _, row in ipairs(rows) do add(row) end
  return table.concat(lines, '\n')
end

--- Refuses keys of `given` that are not in `known` (a set), with a suggestion.
function util.refuse_unknown(owner, given, known)
  for key in util.sorted_pairs(given) do
    if known[key] == nil then
      local names = {}
      for name in util.sorted_pairs(known) do names[#names + 1] = name end
      util.fail("%s: unknown option '%s'%s (known: %s)", owner, tostring(key),
        core.suggestion(tostring(key), names), table.concat(names, ', '))
    end
  end
end

--- Checks the type of an argument or field.
function util.expect(owner, name, value, expected)
  if type(value) ~= expected then
    util.fail("%s: '%s': expected %s, got %s", owner, name, expected, util.describe(value))
  end
  return value
end

return util
