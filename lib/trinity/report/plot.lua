-- trinity.plot: plots of experiments as SVG and PNG, and their numbers as CSV.

local base = require 'trinity.base.plot'
local check = require 'trinity.base.check'
local options_of = require 'trinity.base.options'
local text = require 'trinity.base.text'
local util = require 'trinity.base.util'

--- Plots as PATH.svg and PATH.png by gnuplot; numbers as CSV. Plot functions return the path of the SVG, or nil
--- and a reason.
---@class trinity.PlotModule
---@since 0.1.0
local plot = {}

--- Returns whether gnuplot, which draws the plots, is installed. Example: `trinity.plot.available()`
---@return boolean
function plot.available() return base.available() end

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

-- Checks a point { x, y } for the axes.
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
    spec.title and ('set title %s noenhanced\n'):format(base.in_quotes(spec.title)) or '',
    ('set xlabel %s noenhanced\nset ylabel %s noenhanced\n'):format(base.in_quotes(spec.x or ''),
      base.in_quotes(spec.y or '')),
    spec.log_x and 'set logscale x\n' or '', spec.log_y and 'set logscale y\n' or '',
    -- A logarithmic axis ends at decades; a margin would add decades.
    'set key outside top center horizontal\nset autoscale noextend\n',
    ('set offsets graph %g, graph %g, graph %g, graph %g\n'):format(
      spec.log_x and 0 or 0.03, spec.log_x and 0 or 0.03, spec.log_y and 0 or 0.05, spec.log_y and 0 or 0.05) }
end

-- Plots the series `with` lines or points; `parts` are in the background, with their data in `blocks`.
local function draw(owner, path, spec, with, blocks, parts)
  for s, series in ipairs(spec.series) do
    blocks[#blocks + 1] = base.block('series' .. s, series.points)
    parts[#parts + 1] = ('$series%d using 1:2 with %s linetype %d %s'):format(s, with, s, series.name
      and ('title %s noenhanced'):format(base.in_quotes(series.name)) or 'notitle')
  end
  return base.picture(stem_of(owner, path), table.concat(blocks) .. axes_of(spec) .. 'plot '
    .. table.concat(parts, ', \\\n  '), spec.width, spec.height)
end

--- Plots curves with points. Returns the path of the SVG, or nil and a reason. Example: `trinity.plot.lines('curve', {
--- series = { { name = 'a', points = { { 1, 2 }, { 2, 3 } } } } })`
---@param path string
---@param spec trinity.PlotSpec
---@return string? svg
---@return string? reason
function plot.lines(path, spec)
  stem_of('plot.lines', path)
  return draw('plot.lines', path, check_spec('plot.lines', spec), 'linespoints', {}, {})
end

--- Plots points. Returns the path of the SVG, or nil and a reason. Example: `trinity.plot.scatter('points', { series =
--- { { points = { { 1, 2 } } } } })`
---@param path string
---@param spec trinity.PlotSpec
---@return string? svg
---@return string? reason
function plot.scatter(path, spec)
  stem_of('plot.scatter', path)
  return draw('plot.scatter', path, check_spec('plot.scatter', spec), 'points pointsize 0.9', {}, {})
end

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
function plot.pareto(path, spec)
  stem_of('plot.pareto', path)
  check_spec('plot.pareto', spec)
  local all = {}
  for _, series in ipairs(spec.series) do
    for _, point in ipairs(series.points) do all[#all + 1] = point end
  end
  local front = util.map(plot.front(all), function(point) return { point[1], point[2] } end)
  return draw('plot.pareto', path, spec, 'points pointsize 0.9', { base.block('front', front) },
    { "$front using 1:2 with steps linewidth 2 linecolor rgb '#444444' title 'Pareto front'" })
end

local bar_options = options_of.declare('trinity.BarsSpec', { help = 'Options of trinity.plot.bars.',
  { 'groups', 'table', needed = true, as = 'string[]', help = 'names of the groups' },
  { 'series', 'table', needed = true, as = 'string[]', help = 'names of the bars in a group' },
  { 'values', 'table', needed = true, as = '(number|string)[][]', help = 'values by group and series' },
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
  for g in ipairs(spec.groups) do
    for s in ipairs(spec.series) do
      local value = type(spec.values[g]) == 'table' and spec.values[g][s]
      if type(value) ~= 'string' and not (is_finite(value) and value >= 0) then
        check.refuse(owner, 'option', 'values', 'group %d, series %d: expected a number from 0 or a text, got %s', g, s,
          util.describe(value))
      end
    end
  end
  return base.bars(stem, util.merged({ y = '' }, spec))
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
    for c = 1, #head do
      local value = row[c]
      if value ~= nil and type(value) ~= 'number' and type(value) ~= 'string' and type(value) ~= 'boolean' then
        check.refuse('plot.csv', 3, 'rows', 'row %d, column %d: expected a number or a text, got %s', r, c,
          util.describe(value))
      end
    end
  end
  base.csv(path, head, rows)
  return path
end

return plot
