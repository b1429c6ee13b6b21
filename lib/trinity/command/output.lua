-- Makes printed text safe: names of operators, runs and files may come from anybody and must not control the terminal.
-- The program calls guard() before it runs a command.

local core = require 'trinity.core'

local output = {}

local function printable(...)
  local parts = {}
  for i = 1, select('#', ...) do parts[i] = core.printable(tostring((select(i, ...)))) end
  return unpack(parts, 1, select('#', ...))
end

--- Makes print and io.write in a table of globals show control characters as text. Commands send control sequences of
--- their own with io.stdout:write.
function output.guard(globals)
  local print_raw, library = rawget(globals, 'print'), rawget(globals, 'io')
  rawset(globals, 'print', function(...) print_raw(printable(...)) end)
  if library then library.write = function(...) return io.stdout:write(printable(...)) end end
end

return output
