-- trinity.plot: plots of experiments as SVG and PNG by gnuplot, if it is installed, and their numbers as CSV. The
-- colours are from Okabe and Ito (2008), which colour-blind people can distinguish; bars also differ in their patterns,
-- curves in their points.

local check = require 'trinity.base.check'
local core = require 'trinity.core'
local options_of = require 'trinity.base.options'
local text = require 'trinity.base.text'
local util = require 'trinity.base.util'

--- Plots as PATH.svg and PATH.png by gnuplot; numbers as CSV. Plot functions return the path of the SVG, or nil
--- and a reason.
---@class trinity.PlotModule
local plot = {}

--- Returns whether gnuplot, which draws the plots, is installed. Example: `trinity.plot.available()`
---@return boolean
function plot.available() return os.execute 'command -v gnuplot >/dev/null 2>&1' == 0 end

local colours = { '#0072B2', '#E69F00', '#009E73', '#CC79A7', '#56B4E9', '#D55E00', '#F0E442', '#8C8C8C' }
local shapes = { 7, 5, 9, 13, 11, 4, 6, 8 } -- points, full ones first
local fillings = { 'solid 0.9', 'pattern 4', 'solid 0.55', 'pattern 5' }

local function quoted(words) return "'" .. words:gsub("'", "'\\''") .. "'" end

-- Returns a gnuplot string, with special characters as numbers; gnuplot's '' fails if several follow each other.
local function exactly(words)
  return '"' .. words:gsub('[^%w ,.:;()=\128-\255_-]', function(c) return ('\\%03o'):format(c:byte()) end) .. '"'
end

-- Returns a text in gnuplot's quotes, on one line. SVG is XML, in which ]]>, U+FFFE and U+FFFF are invalid.
local function in_quotes(words)
  return exactly((tostring(words):gsub('%c', ' '):gsub(']]>', ']] >'):gsub('\239\191[\190\191]', '\239\191\189')))
end

local function preamble()
  local lines = { 'set encoding utf8' }
  for i, colour in ipairs(colours) do
    lines[#lines + 1] = ("set linetype %d linecolor rgb '%s' linewidth 2 pointtype %d"):format(i, colour, shapes[i])
  end
  lines[#lines + 1] = "set grid linetype 1 linecolor rgb '#DDDDDD' linewidth 1\nset border linecolor rgb '#444444'\n"
  return table.concat(lines, '\n')
end

-- Runs gnuplot on `commands` for PATH.svg and PATH.png. Saves the commands as PATH.gp.
local function picture(path, commands, width, height)
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

-- Returns data for gnuplot's commands, called `name`: one line per row of numbers.
local function block(name, rows)
  local lines = util.map(rows, function(row)
    return table.concat(util.map(row, function(number) return ('%.9g'):format(number) end), ' ')
  end)
  return ('$%s << EOD\n%s\nEOD\n'):format(name, table.concat(lines, '\n'))
end

local y = { 'y', 'string', help = 'title of the y axis' }
local title = { 'title', 'string', help = 'title above the plot' }
local width = { 'width', 'integer', 800, least = 100, most = 10000, late = true, help = 'width in pixels' }
local height = { 'height', 'integer', 500, least = 100, most = 10000, late = true, help = 'pixels' }
local plot_options = options_of.declare('trinity.PlotSpec', { help = 'Options of trinity.plot.lines, scatter and '
  .. 'pareto.',
  { 'series', 'table', needed = true, as = '{ name?: string, points: number[][] }[]',
    help = 'series with points { x, y }' },
  { 'x', 'string', help = 'title of the x axis' }, y, title,
  { 'log_x', 'boolean', false, help = 'logarithmic x axis' },
  { 'log_y', 'boolean', false, help = 'logarithmic y axis' }, width, height,
})

local function refuse_series(owner, s, message, ...)
  check.refuse(owner, 'option', 'series', 'entry %d: %s', s, message:format(...))
end

local function is_finite(value) return type(value) == 'number' and value > -math.huge and value < math.huge end

local function check_point(owner, s, i, point, spec)
  if type(point) ~= 'table' or not is_finite(point[1]) or not is_finite(point[2]) then
    refuse_series(owner, s, 'point %d: expected { x, y }, two finite numbers, got %s', i,
      type(point) == 'table' and ('{ %s, %s }'):format(tostring(point[1]), tostring(point[2])) or util.describe(point))
  end
  for axis, name in ipairs { 'log_x', 'log_y' } do
    if spec[name] and point[axis] <= 0 then
      refuse_series(owner, s, 'point %d: expected a number above 0 (%s), got %s', i, name, text.digits(point[axis]))
    end
  end
end

local function check_spec(owner, spec)
  plot_options:check(owner, check.argument(owner, 2, 'spec', spec, 'table'))
  if #spec.series == 0 then check.refuse(owner, 'option', 'series', 'expected at least one entry, got none') end
  for s, series in ipairs(check.list(owner, 'option', 'series', spec.series, 'table')) do
    util.refuse_unknown(owner .. ': series', series, { name = true, points = true }, 'field')
    if series.name ~= nil and type(series.name) ~= 'string' then
      refuse_series(owner, s, "field 'name': expected a string, got %s", util.describe(series.name))
    end
    if type(series.points) ~= 'table' or #series.points == 0 then
      refuse_series(owner, s, "field 'points': expected a list of { x, y }, got %s",
        type(series.points) == 'table' and 'an empty one' or util.describe(series.points))
    end
    for i, point in ipairs(series.points) do check_point(owner, s, i, point, spec) end
  end
  return spec
end

--- Returns a path without the ending of a picture. Raises an error if it cannot be written.
local function stem_of(owner, path)
  check.path(owner, 1, 'path', path)
  local stem = path:gsub('%.svg$', ''):gsub('%.png$', '')
  if stem:match '[^/]*$' == '' then check.wrong(owner, 1, 'path', path, 'the name of a file') end
  return stem
end

-- The range of an axis with a single value: gnuplot's own choice, without its warning.
local function range_of(spec, axis, name)
  local least, most = math.huge, -math.huge
  for _, series in ipairs(spec.series) do
    for _, point in ipairs(series.points) do
      least, most = math.min(least, point[axis]), math.max(most, point[axis])
    end
  end
  if least < most then return '' end
  local wide = least == 0 and 1 or math.abs(least) / 100
  return ('set %srange [%.17g:%.17g]\n'):format(name, least - wide, most + wide)
end

local function axes_of(spec)
  return table.concat { range_of(spec, 1, 'x'), range_of(spec, 2, 'y'),
    spec.title and ('set title %s noenhanced\n'):format(in_quotes(spec.title)) or '',
    ('set xlabel %s noenhanced\nset ylabel %s noenhanced\n'):format(in_quotes(spec.x or ''),
      in_quotes(spec.y or '')),
    spec.log_x and 'set logscale x\n' or '', spec.log_y and 'set logscale y\n' or '',
    -- A logarithmic axis ends at decades; a margin would add decades.
    'set key outside top center horizontal\nset autoscale noextend\n',
    ('set offsets graph %g, graph %g, graph %g, graph %g\n'):format(
      spec.log_x and 0 or 0.03, spec.log_x and 0 or 0.03, spec.log_y and 0 or 0.05, spec.log_y and 0 or 0.05) }
end

-- Plots the series `with` lines or points; has_front: after the Pareto front of all of them.
local function draw(owner, path, spec, with, has_front)
  local stem, blocks, parts, all = stem_of(owner, path), {}, {}, {}
  check_spec(owner, spec)
  for s, series in ipairs(spec.series) do
    blocks[s] = block('series' .. s, series.points)
    parts[s] = ('$series%d using 1:2 with %s linetype %d %s'):format(s, with, s, series.name
      and ('title %s noenhanced'):format(in_quotes(series.name)) or 'notitle')
    for _, point in ipairs(series.points) do all[#all + 1] = { point[1], point[2] } end
  end
  if has_front then
    table.insert(blocks, 1, block('front', plot.front(all)))
    table.insert(parts, 1, "$front using 1:2 with steps linewidth 2 linecolor rgb '#444444' title 'Pareto front'")
  end
  return picture(stem, table.concat(blocks) .. axes_of(spec) .. 'plot ' .. table.concat(parts, ', \\\n  '), spec.width,
    spec.height)
end

--- Plots curves with points. Returns the path of the SVG, or nil and a reason. Example: `trinity.plot.lines('curve', {
--- series = { { name = 'a', points = { { 1, 2 }, { 2, 3 } } } } })`
---@param path string
---@param spec trinity.PlotSpec
---@return string? svg
---@return string? reason
function plot.lines(path, spec) return draw('plot.lines', path, spec, 'linespoints') end

--- Plots points. Returns the path of the SVG, or nil and a reason. Example: `trinity.plot.scatter('points', { series =
--- { { points = { { 1, 2 } } } } })`
---@param path string
---@param spec trinity.PlotSpec
---@return string? svg
---@return string? reason
function plot.scatter(path, spec) return draw('plot.scatter', path, spec, 'points pointsize 0.9') end

--- Returns the Pareto front of points, where smaller x and y are better: entries of the list that no other entry
--- dominates, sorted by x; of equal points the first. Example: `trinity.plot.front { { 1, 3 }, { 2, 2 }, { 3, 3 } }`
---@param points number[][] { x, y }
---@return number[][]
function plot.front(points)
  check.list('plot.front', 1, 'points', points, 'table')
  local order, front, least = {}, {}, math.huge
  for i, point in ipairs(points) do
    check_point('plot.front', 1, i, point, {})
    order[i] = i
  end
  table.sort(order, function(a, b)
    local p, q = points[a], points[b]
    if p[1] ~= q[1] then return p[1] < q[1] end
    if p[2] ~= q[2] then return p[2] < q[2] end
    return a < b
  end)
  for _, i in ipairs(order) do
    if points[i][2] < least then
      least = points[i][2]
      front[#front + 1] = points[i]
    end
  end
  return front
end

--- Plots points with the Pareto front of all series together, where smaller x and y are better. Example:
--- `trinity.plot.pareto('front', { series = { { points = { { 1, 3 }, { 2, 2 } } } } })`
---@param path string
---@param spec trinity.PlotSpec
---@return string? svg
---@return string? reason
function plot.pareto(path, spec) return draw('plot.pareto', path, spec, 'points pointsize 0.9', true) end

-- Returns the position of a bar: groups are at 1, 2, ..., with adjacent bars in a width of 0.8.
local function bar_place(group, series, count) return group + ((series - 0.5) / count - 0.5) * 0.8 end

-- Checks the option `name` of bars and returns, by series, the rows { x, y } of its numbers, and labels of its texts.
local function bar_rows(owner, spec, name, expected, fits)
  local rows, labels = {}, {}
  for g in ipairs(spec.groups) do
    for s in ipairs(spec.series) do
      local value, x = type(spec[name][g]) == 'table' and spec[name][g][s] or nil, bar_place(g, s, #spec.series)
      if not fits(value) then
        check.refuse(owner, 'option', name, 'group %d, series %d: expected %s, got %s', g, s, expected,
          util.describe(value))
      end
      rows[s] = rows[s] or {}
      if type(value) == 'number' then rows[s][#rows[s] + 1] = { x, value } end
      if type(value) == 'string' then
        labels[#labels + 1] = ("set label %s at first %.6g, graph 0.012 rotate by 90 font ',9' noenhanced\n"):format(
          in_quotes(value), x)
      end
    end
  end
  return rows, table.concat(labels)
end

local bar_options = options_of.declare('trinity.BarsSpec', { help = 'Options of trinity.plot.bars.',
  { 'groups', 'table', needed = true, as = 'string[]', help = 'names of the groups' },
  { 'series', 'table', needed = true, as = 'string[]', help = 'names of the bars in a group' },
  { 'values', 'table', needed = true, as = '(number|string)[][]', help = 'values by group and series' },
  { 'marks', 'table', as = 'number[][]', help = 'points over the bars, by group and series' },
  { 'mark', 'string', help = 'name of the marks' },
  y, title, width, height,
})

--- Plots groups of bars: values[g][s] is the value of group g and series s, a number from 0, or a text instead of a bar
--- ('out of memory'). Example: `trinity.plot.bars('bars', { groups = { 'a' }, series = { 's' }, values = { { 1 } } })`
---@param path string
---@param spec trinity.BarsSpec
---@return string? svg
---@return string? reason
function plot.bars(path, spec)
  local owner = 'plot.bars'
  local stem = stem_of(owner, path)
  bar_options:check(owner, check.argument(owner, 2, 'spec', spec, 'table'))
  check.list(owner, 'option', 'groups', spec.groups, 'string')
  check.list(owner, 'option', 'series', spec.series, 'string')
  local bars, labels = bar_rows(owner, spec, 'values', 'a number from 0 or a text', function(value)
    return type(value) == 'string' or is_finite(value) and value >= 0
  end)
  local marks = spec.marks and bar_rows(owner, spec, 'marks', 'a number or nil', function(value)
    return value == nil or is_finite(value)
  end) or {}
  local blocks, parts, legend = {}, {}, spec.mark and ('title %s noenhanced'):format(in_quotes(spec.mark)) or 'notitle'
  local tics = util.map(spec.groups, function(label, g) return ('%s %d'):format(in_quotes(label), g) end)
  local function add(name, rows, how)
    if not rows or #rows == 0 then return false end
    blocks[#blocks + 1], parts[#parts + 1] = block(name, rows), ('$%s using 1:2 with %s'):format(name, how)
    return true
  end
  for s, name in ipairs(spec.series) do
    add('bars' .. s, bars[s], ('boxes linetype %d linewidth 1 fillstyle %s title %s noenhanced'):format(s,
      fillings[(s - 1) % #fillings + 1], in_quotes(name)))
  end
  for s in ipairs(spec.series) do
    if add('marks' .. s, marks[s], 'points pointtype 12 pointsize 0.9 linewidth 1.5 linecolor black ' .. legend) then
      legend = 'notitle'
    end
  end
  if #parts == 0 then return nil, 'there is nothing to plot' end
  return picture(stem, table.concat(blocks) .. labels .. ([[
set boxwidth %.6g
set xrange [0.4:%.6g]
set yrange [0:*]
set xtics (%s) rotate by 40 right noenhanced
set bmargin 9
set lmargin 13
set ylabel %s noenhanced
set key outside top center horizontal
%splot %s]]):format(0.8 / #spec.series, #spec.groups + 0.6, table.concat(tics, ', '),
    in_quotes(spec.y or ''), spec.title and 'set title ' .. in_quotes(spec.title) .. ' noenhanced\n' or '',
    table.concat(parts, ', \\\n  ')), spec.width or math.max(700, 90 + #spec.groups * #spec.series * 16),
    spec.height or 480)
end

local function cell(value)
  if type(value) == 'number' then return text.digits(value) end
  return value == nil and '' or tostring(value)
end

--- Writes rows of texts and numbers below `head` as CSV; numbers keep all their digits. Example:
--- `trinity.plot.csv('table.csv', { 'x', 'y' }, { { 1, 2 } })`
---@param path string
---@param head string[]
---@param rows (string|number)[][]
---@return string path
function plot.csv(path, head, rows)
  check.path('plot.csv', 1, 'path', path)
  check.list('plot.csv', 2, 'head', head, 'string')
  for r, row in ipairs(check.list('plot.csv', 3, 'rows', rows, 'table')) do
    if #row == 0 and next(row) ~= nil then
      check.refuse('plot.csv', 3, 'rows', 'row %d: expected a list of %d values, got a table with fields', r, #head)
    end
    for c = 1, #head do
      local value = row[c]
      if value ~= nil and type(value) ~= 'number' and type(value) ~= 'string' and type(value) ~= 'boolean' then
        check.refuse('plot.csv', 3, 'rows', 'row %d, column %d: expected a number or a text, got %s', r, c,
          util.describe(value))
      end
    end
  end
  local cells = util.map(rows, function(row) return util.listed(#head, function(c) return cell(row[c]) end) end)
  core.write_file(path, text.csv(head, cells) .. '\n')
  return path
end

return plot
