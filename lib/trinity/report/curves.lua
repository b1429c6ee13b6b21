-- How searches converge: the best step time over evaluations, seeds of a method as a band.

local read = require 'trinity.report.read'
local util = require 'trinity.util'

local curves = {}

local most_points = 240

--- Points { evaluations, best step time } of a search, from its curve or, where it has not ended, the metrics.
local function points_of(run, id, rows_of)
  local rows = read.csv(run, ('searches/%s/curve.csv'):format(id))
  if #rows == 0 then rows = rows_of[id] or {} end
  local points = {}
  for _, row in ipairs(rows) do
    if row.evaluations and row.best_step_time_s then
      points[#points + 1] = { row.evaluations, row.best_step_time_s }
    end
  end
  return points
end

--- Rows of metrics.csv by search. Texts there may be quoted, so that the numbers are taken from the JSON lines.
local function metrics_by_search(run)
  local by = {}
  local json = require 'trinity.json'
  for line in (read.text(run, 'metrics.jsonl') or ''):gmatch '[^\n]+' do
    local ok, row = pcall(json.decode, line)
    if ok and type(row) == 'table' and row.search then
      by[row.search] = by[row.search] or {}
      table.insert(by[row.search], row)
    end
  end
  return by
end

--- The evaluations at which the curve of a method is told: those of its searches from where all have begun, thinned.
local function grid_of(searches)
  local from, seen, list = 0, {}, {}
  for _, points in ipairs(searches) do from = math.max(from, points[1][1]) end
  for _, points in ipairs(searches) do
    for _, point in ipairs(points) do
      if point[1] >= from and not seen[point[1]] then seen[point[1]], list[#list + 1] = true, point[1] end
    end
  end
  table.sort(list)
  local step, thin = #list / most_points, {}
  if step <= 1 then return list end
  for i = 1, most_points - 1 do thin[i] = list[math.floor((i - 1) * step) + 1] end
  thin[most_points] = list[#list]
  return thin
end

--- The value that a search has reached at `evaluations`; its last one where it has ended before.
local function value_at(points, cursor, evaluations)
  while points[cursor + 1] and points[cursor + 1][1] <= evaluations do cursor = cursor + 1 end
  return points[cursor][2], cursor
end

local function series_of(method, searches)
  local series = { method = method, seeds = #searches, x = grid_of(searches), low = {}, middle = {}, high = {} }
  local cursors = {}
  for s = 1, #searches do cursors[s] = 1 end
  for i, x in ipairs(series.x) do
    local values = {}
    for s, points in ipairs(searches) do values[s], cursors[s] = value_at(points, cursors[s], x) end
    table.sort(values)
    series.low[i], series.middle[i], series.high[i] = values[1], util.median(values), values[#values]
  end
  return series
end

--- A list by problem of { problem = id, series = a list by method of { method, seeds, x, low, middle, high } }.
function curves.of(run)
  local rows_of, by_problem, list = metrics_by_search(run), {}, {}
  for _, id in ipairs(run.search_ids) do
    local search = run.searches[id]
    local points = points_of(run, id, rows_of)
    if #points > 0 then
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

return curves
