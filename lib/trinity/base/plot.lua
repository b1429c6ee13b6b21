-- Tables as CSV, and plots as SVG and PNG by gnuplot, if it is installed. Plot functions return the path of the
-- SVG, or nil and a reason. The colours are from Okabe and Ito (2008), which colour-blind people can distinguish; bars
-- also differ in their patterns, curves in their points.

local core = require 'trinity.core'
local text = require 'trinity.base.text'
local util = require 'trinity.base.util'

local plot = {}

plot.colours = { '#0072B2', '#E69F00', '#009E73', '#CC79A7', '#56B4E9', '#D55E00', '#F0E442', '#8C8C8C' }

local function cell(value)
  if type(value) == 'number' then return text.digits(value) end
  return value == nil and '' or tostring(value)
end

--- Writes rows (lists of texts and numbers) below `head` as CSV to `path`.
function plot.csv(path, head, rows)
  local cells = util.map(rows, function(row) return util.listed(#head, function(c) return cell(row[c]) end) end)
  core.write_file(path, text.csv(head, cells) .. '\n')
end

local function quoted(words) return "'" .. words:gsub("'", "'\\''") .. "'" end

-- Returns a gnuplot string, with special characters as numbers; gnuplot's '' fails if several follow each other.
local function exactly(words)
  return '"' .. words:gsub('[^%w ,.:;()=\128-\255_-]', function(c) return ('\\%03o'):format(c:byte()) end) .. '"'
end

--- Returns a text in gnuplot's quotes, on one line. SVG is XML, in which ]]>, U+FFFE and U+FFFF are invalid.
function plot.in_quotes(words)
  return exactly((tostring(words):gsub('%c', ' '):gsub(']]>', ']] >'):gsub('\239\191[\190\191]', '\239\191\189')))
end

--- Returns whether gnuplot is installed.
function plot.available() return os.execute 'command -v gnuplot >/dev/null 2>&1' == 0 end

local points = { 7, 5, 9, 13, 11, 4, 6, 8 } -- shapes, full ones first
local fillings = { 'solid 0.9', 'pattern 4', 'solid 0.55', 'pattern 5' }

local function preamble()
  local lines = { 'set encoding utf8' }
  for i, colour in ipairs(plot.colours) do
    lines[#lines + 1] = ("set linetype %d linecolor rgb '%s' linewidth 2 pointtype %d"):format(i, colour, points[i])
  end
  lines[#lines + 1] = "set grid linetype 1 linecolor rgb '#DDDDDD' linewidth 1\nset border linecolor rgb '#444444'\n"
  return table.concat(lines, '\n')
end

--- Runs gnuplot on `commands` for PATH.svg and PATH.png. Saves the commands as PATH.gp.
function plot.picture(path, commands, width, height)
  width, height = width or 800, height or 500
  if path:sub(1, 1) == '|' then path = './' .. path end -- gnuplot would start a command
  local drawing = "set output %s\n%s\nunset output\n"
  local script = ("%sset terminal svg size %d,%d font 'sans,12' background 'white'\n"):format(preamble(), width, height)
    .. drawing:format(exactly(path .. '.svg'), commands)
    .. ("reset session\n%sset terminal pngcairo size %d,%d font 'sans,10' background 'white'\n"):format(preamble(),
      width, height) .. drawing:format(exactly(path .. '.png'), commands)
  core.write_file(path .. '.gp', script)
  if not plot.available() then return nil, 'gnuplot is not installed (scripts/bootstrap installs it)' end
  local status = os.execute('gnuplot ' .. quoted(path .. '.gp'))
  if status ~= 0 then return nil, ('gnuplot failed with status %d on %s.gp'):format(status, path) end
  return path .. '.svg'
end

--- Returns data for gnuplot's commands, called `name`: one line per row of numbers.
function plot.block(name, rows)
  local lines = util.map(rows, function(row)
    return table.concat(util.map(row, function(number) return ('%.9g'):format(number) end), ' ')
  end)
  return ('$%s << EOD\n%s\nEOD\n'):format(name, table.concat(lines, '\n'))
end

-- Returns the position of a bar: groups are at 1, 2, ..., with adjacent bars in a width of 0.8.
local function bar_place(group, series, count) return group + ((series - 0.5) / count - 0.5) * 0.8 end

--- Returns lines of a data block, 'x y' each, for the bars of series s.
local function bar_block(spec, name, values, s)
  local rows = {}
  for g in ipairs(spec.groups) do
    local value = values and values[g] and values[g][s]
    if type(value) == 'number' then rows[#rows + 1] = { bar_place(g, s, #spec.series), value } end
  end
  return plot.block(name .. s, rows), #rows > 0
end

--- Returns labels instead of bars, such as 'OOM'.
local function bar_labels(spec)
  local lines = {}
  for g in ipairs(spec.groups) do
    for s in ipairs(spec.series) do
      local value = spec.values[g] and spec.values[g][s]
      if type(value) == 'string' then
        lines[#lines + 1] = ("set label %s at first %.6g, graph 0.012 rotate by 90 font ',9' noenhanced"):format(
          plot.in_quotes(value), bar_place(g, s, #spec.series))
      end
    end
  end
  return table.concat(lines, '\n') .. '\n'
end

--- Plots groups of bars. spec: { groups = labels, series = labels, values = by group and series (a number, or a text
--- instead), marks = same form (points over the bars), mark = legend of the marks, y = title of the axis, title =,
--- width =, height = }.
function plot.bars(path, spec)
  local blocks, parts, tics, marked = {}, {}, {}, false
  for g, label in ipairs(spec.groups) do tics[g] = ('%s %d'):format(plot.in_quotes(label), g) end
  for s, name in ipairs(spec.series) do
    local block, any = bar_block(spec, 'bars', spec.values, s)
    if any then
      blocks[#blocks + 1] = block
      parts[#parts + 1] = ('$bars%d using 1:2 with boxes linetype %d linewidth 1 fillstyle %s title %s noenhanced')
        :format(s, s, fillings[(s - 1) % #fillings + 1], plot.in_quotes(name))
    end
  end
  for s in ipairs(spec.series) do
    local block, any = bar_block(spec, 'marks', spec.marks, s)
    if any then
      blocks[#blocks + 1] = block
      parts[#parts + 1] = ('$marks%d using 1:2 with points pointtype 12 pointsize 0.9 linewidth 1.5 linecolor black '
        .. '%s'):format(s, marked and 'notitle' or ('title %s noenhanced'):format(plot.in_quotes(spec.mark)))
      marked = true
    end
  end
  if #parts == 0 then return nil, 'there is nothing to plot' end
  return plot.picture(path, table.concat(blocks) .. bar_labels(spec) .. ([[
set boxwidth %.6g
set xrange [0.4:%.6g]
set yrange [0:*]
set xtics (%s) rotate by 40 right noenhanced
set bmargin 9
set lmargin 13
set ylabel %s noenhanced
set key outside top center horizontal
%splot %s]]):format(0.8 / #spec.series, #spec.groups + 0.6, table.concat(tics, ', '),
    plot.in_quotes(spec.y), spec.title and 'set title ' .. plot.in_quotes(spec.title) .. ' noenhanced\n' or '',
    table.concat(parts, ', \\\n  ')), spec.width or math.max(700, 90 + #spec.groups * #spec.series * 16),
    spec.height or 480)
end

return plot
