-- Tables as CSV and as pictures (SVG, drawn by gnuplot where it is installed), for scripts.

local core = require 'trinity.core'

local plot = {}

local function cell(value)
  if type(value) == 'number' then return ('%.9g'):format(value) end
  value = tostring(value)
  return value:find '[",\n]' and '"' .. value:gsub('"', '""') .. '"' or value
end

--- Rows (lists of texts and numbers) below `head` as CSV at `path`.
function plot.csv(path, head, rows)
  local lines = {}
  for i, row in ipairs { head, unpack(rows) } do
    local cells = {}
    for c = 1, #head do cells[c] = cell(row[c] == nil and '' or row[c]) end
    lines[i] = table.concat(cells, ',')
  end
  core.write_file(path, table.concat(lines, '\n') .. '\n')
end

local function quoted(text) return "'" .. text:gsub("'", "'\\''") .. "'" end

--- Whether gnuplot is there.
function plot.available() return os.execute 'command -v gnuplot >/dev/null 2>&1' == 0 end

--- Runs gnuplot on `commands`, with the picture's path and size set. Keeps the commands beside the picture, as PATH.gp.
--- Returns the path, or nil and why there is no picture.
function plot.svg(path, commands, width, height)
  local script = ("set terminal svg size %d,%d font 'sans,12' background 'white'\nset output '%s'\n%s\n"):format(
    width or 800, height or 500, path, commands)
  core.write_file(path .. '.gp', script)
  if not plot.available() then return nil, 'gnuplot is not installed (scripts/bootstrap installs it)' end
  local status = os.execute('gnuplot ' .. quoted(path .. '.gp'))
  if status ~= 0 then return nil, ('gnuplot failed with status %d on %s.gp'):format(status, path) end
  return path
end

return plot
