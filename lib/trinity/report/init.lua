-- trinity runs report: run folders (lib/trinity/runs/DESIGN.md) as one self-contained HTML page. Text, style and
-- behavior are in page.html, page.css and the *.js files next to this one. Vega (vega.lua) plots curves and bars. The
-- page has the data of the runs as JSON. All texts of a run are untrusted: scripts of the page put them into text nodes
-- only, JSON escapes '<', and the page's policy forbids addresses, `eval` and forms.

local core = require 'trinity.core'
local curves = require 'trinity.report.curves'
local json = require 'trinity.base.json'
local plan_picture = require 'trinity.report.plan_picture'
local problems = require 'trinity.report.problems'
local read = require 'trinity.report.read'
local util = require 'trinity.base.util'
local vega = require 'trinity.report.vega'

local report = {}

local scripts = { 'base', 'data', 'charts', 'tables', 'colours', 'placement', 'operators', 'timeline', 'schedule',
  'plan', 'experiments', 'pair', 'page' }

local folder = core.home .. '/lib/trinity/report/'

--- Returns the problem of a comparison, by one of its searches; nil if none of them is in the run.
local function problem_of(run, data)
  for _, row in ipairs(type(data.rows) == 'table' and data.rows or {}) do
    for _, found in ipairs(type(row) == 'table' and type(row.runs) == 'table' and row.runs or {}) do
      local search = type(found) == 'table' and run.searches[tostring(found.search)]
      if search then return tostring(search.problem) end
    end
  end
end

local states = { running = 'It is still running.', interrupted = 'It was interrupted before its end.',
  failed = 'It failed before its end.' }

--- Returns what a run found, in the sentences of its results (at most three), and the values that it logged. Scripts
--- also give names of tables as summaries, which are shown above the tables.
local function sentence_of(run, logged)
  local parts = {}
  for _, result in ipairs(run.results) do
    local summary = result.summary
    if #parts < 3 and type(summary) == 'string' and summary:find '%s.*[.!?]%s*$' then
      parts[#parts + 1] = util.shortened(summary, 300)
    end
  end
  if #logged > 0 then
    local names = util.map(logged, function(chart) return (chart.name:gsub('_', ' ')) end)
    parts[#parts + 1] = util.shortened(('This run logged %s.'):format(table.concat(names, ', ')), 300)
  end
  if #parts == 0 then parts[1] = ('Searches: %d. Results: %d.'):format(#run.search_ids, #run.results) end
  parts[#parts + 1] = states[run.about.status]
  return table.concat(parts, ' ')
end

local function run_data(page, path)
  local run = read.run(path)
  local about = run.about
  local data = util.picked(about, { 'name', 'status', 'error', 'script', 'command', 'options', 'seed', 'started_at',
    'ended_at', 'seconds', 'versions', 'blas', 'machine', 'model', 'cluster', 'ranks' })
  if type(data.name) ~= 'string' then data.name = path:match '([^/]*)/*$' end
  data.problems = problems.of(page, run)
  data.curves, data.logged = curves.of(run), curves.logged(run)
  data.results = run.results
  data.searches = #run.search_ids
  data.sentence = sentence_of(run, data.logged)
  for _, result in ipairs(run.results) do
    if result.kind == 'comparison' then result.data.problem = result.data.problem or problem_of(run, result.data) end
    if result.kind == 'plan' then plan_picture.add_to(result.data) end
    result.said = result.summary ~= nil and data.sentence:find(result.summary, 1, true) ~= nil
  end
  if page.full then
    run.notes[#run.notes + 1] = 'some placements and timelines are omitted, because the page would be too large'
  end
  data.notes = run.notes
  return data
end

function report.data(paths)
  local page = { graphs = {}, known = {}, bytes = 0 }
  local runs = util.map(paths, function(path) return run_data(page, path) end)
  return { runs = runs, graphs = page.graphs, made_by = 'trinity ' .. core.version }
end

local function part(name) return core.read_file(folder .. name) end

-- Returns JSON for an element <script>, with markup characters escaped.
local function script_text(text)
  return (text:gsub('[<>&]', function(c) return ('\\u%04x'):format(c:byte()) end))
end

function report.page(data)
  local library, reason = vega.text()
  data.no_charts = reason
  local code = util.map(scripts, function(name) return part(name .. '.js') end)
  local names = util.map(data.runs, function(run) return run.name end)
  local values = { TITLE = (table.concat(names, ' and '):gsub('[&<>"\']', function(c)
    return ('&#%d;'):format(c:byte())
  end)), STYLE = part 'page.css', DATA = script_text(json.encode(data)),
    VEGA = library or '', CODE = table.concat(code, '\n') }
  return (part('page.html'):gsub('{{(%u+)}}', values))
end

--- Writes the page of the runs in `paths` to `out`. Returns its size in bytes.
function report.write(paths, out)
  local text = report.page(report.data(paths))
  util.write_file('report', out, text)
  return #text
end

return report
