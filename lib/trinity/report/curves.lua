-- Convergence of searches: best step time by evaluations of every search, with a point at every change, and median and
-- range over the seeds of a method. Also values that scripts log by round or step.

local metrics = require 'trinity.runs.metrics'
local read = require 'trinity.report.read'
local util = require 'trinity.base.util'

local curves = {}

--- Returns the evaluations x and best step times y at changes and at the end of a search, from its curve or, if it has
--- not ended, from the metrics; nil if neither has a row.
local function points_of(run, id, rows_of)
  local rows = read.csv(run, ('searches/%s/curve.csv'):format(id))
  if #rows == 0 then rows = rows_of[id] or {} end
  local x, y = {}, {}
  for i, row in ipairs(rows) do
    if row.evaluations and row.best_step_time_s and (i == #rows or row.best_step_time_s ~= y[#y]) then
      x[#x + 1], y[#y + 1] = row.evaluations, row.best_step_time_s
    end
  end
  return #x > 0 and { seed = run.searches[id].seed, x = x, y = y } or nil
end

-- Cache of the rows of a run's metrics.
local function rows_of_run(run)
  run.rows = run.rows or metrics.read(run.path .. '/metrics.jsonl')
  return run.rows
end

local function metrics_by_search(run)
  local by = {}
  for _, row in ipairs(rows_of_run(run)) do
    if row.search then
      by[row.search] = by[row.search] or {}
      table.insert(by[row.search], row)
    end
  end
  return by
end

--- Returns the evaluations at which any search of a method changes, from the point where all have started.
local function all_x(searches)
  local from, seen, list = 0, {}, {}
  for _, points in ipairs(searches) do from = math.max(from, points.x[1]) end
  for _, points in ipairs(searches) do
    for _, x in ipairs(points.x) do
      if x >= from and not seen[x] then seen[x], list[#list + 1] = true, x end
    end
  end
  table.sort(list)
  return list
end

local function series_of(method, searches)
  local series = { method = method, searches = searches }
  if #searches == 1 then return series end
  local cursors, low, middle, high = {}, {}, {}, {}
  series.x, series.low, series.middle, series.high = all_x(searches), low, middle, high
  for s = 1, #searches do cursors[s] = 1 end
  for i, x in ipairs(series.x) do
    local values = {}
    for s, points in ipairs(searches) do
      local at = cursors[s]
      while points.x[at + 1] and points.x[at + 1] <= x do at = at + 1 end
      values[s], cursors[s] = points.y[at], at -- its last value if it has ended
    end
    table.sort(values)
    low[i], middle[i], high[i] = values[1], util.median(values), values[#values]
  end
  return series
end

--- Returns a list by problem of { problem = id, series = a list by method of { method, searches = a list by search of {
--- seed, x, y }; with several searches also x, low, middle, high } }; x in evaluations, the others in seconds.
function curves.of(run)
  local rows_of, by_problem, list = metrics_by_search(run), {}, {}
  for _, id in ipairs(run.search_ids) do
    local search = run.searches[id]
    local points = points_of(run, id, rows_of)
    if points then
      local problem, method = tostring(search.problem), tostring(search.method)
      by_problem[problem] = by_problem[problem] or {}
      by_problem[problem][method] = by_problem[problem][method] or {}
      table.insert(by_problem[problem][method], points)
    end
  end
  for _, id in ipairs(run.problem_ids) do
    local chart = { problem = id, series = {} }
    for method, searches in util.sorted_pairs(by_problem[id] or {}) do
      chart.series[#chart.series + 1] = series_of(method, searches)
    end
    if #chart.series > 0 then list[#list + 1] = chart end
  end
  return list
end

local most_points = 2000 -- maximum points per line

-- Returns the x axis of a logged row: name and value, or nil if the row is not plotted.
local function place_of(row)
  for _, name in ipairs { 'round', 'step' } do
    if type(row[name]) == 'number' and not row.search then return name, row[name] end
  end
end

local function add_value(lines, over, x, name, kind, y)
  lines[over] = lines[over] or {}
  lines[over][name] = lines[over][name] or {}
  local line = lines[over][name][kind] or { name = kind, x = {}, y = {} }
  lines[over][name][kind] = line
  line.x[#line.x + 1], line.y[#line.y + 1] = x, y
end

-- Returns a line of at most `most_points` points: every n-th point, and the last.
local function thinned(line)
  local count = #line.x
  local stride = math.ceil(count / most_points)
  local thin = { name = line.name, x = {}, y = {} }
  for i = 1, count do
    if i % stride == 1 % stride or i == count then
      thin.x[#thin.x + 1], thin.y[#thin.y + 1] = line.x[i], line.y[i]
    end
  end
  return thin
end

--- Returns the values that scripts log (trinity.run:log) by `round` or `step`, sorted by name: a list of { name, over =
--- 'round' or 'step', series = a list by the rows' field `kind` ('' without) of { name = kind, x, y } }.
function curves.logged(run)
  local lines, charts = {}, {}
  for _, row in ipairs(rows_of_run(run)) do
    local over, x = place_of(row)
    for name, y in pairs(over and row or {}) do -- lines are sorted below
      if type(y) == 'number' and name ~= over and name ~= 'seconds' then
        add_value(lines, over, x, name, type(row.kind) == 'string' and row.kind or '', y)
      end
    end
  end
  for over, by_name in util.sorted_pairs(lines) do
    for name, by_kind in util.sorted_pairs(by_name) do
      local chart = { name = name, over = over, series = {} }
      for _, line in util.sorted_pairs(by_kind) do chart.series[#chart.series + 1] = thinned(line) end
      charts[#charts + 1] = chart
    end
  end
  return charts
end

return curves
