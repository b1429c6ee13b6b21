-- What commands print: names of operators, runs and files are anybody's, and must not command a terminal. The program
-- calls guard() before it runs a script of its own.

local core = require 'trinity.core'

local output = {}

local function printable(...)
  local parts = {}
  for i = 1, select('#', ...) do parts[i] = core.printable(tostring((select(i, ...)))) end
  return unpack(parts, 1, select('#', ...))
end

--- Has print and io.write of a table of globals show control characters as text. What a command says to the terminal
--- itself goes through io.stdout:write.
---@param globals table<string, any>
function output.guard(globals)
  local print_raw, library = rawget(globals, 'print'), rawget(globals, 'io')
  rawset(globals, 'print', function(...) print_raw(printable(...)) end)
  if library then library.write = function(...) return io.stdout:write(printable(...)) end end
end

return output
