-- Lists, compares, shows and removes run folders on disk (runs/DESIGN.md has the format), for `trinity runs` and
-- reports.

local core = require 'trinity.core'
local json = require 'trinity.base.json'
local progress = require 'trinity.base.progress'
local state = require 'trinity.runs.state'
local util = require 'trinity.base.util'

local run_list = {}

function run_list.absolute(path) return path:match '^/' and path or core.process().folder .. '/' .. path end

-- For scripts: the file of this program, and its replacement by another in a folder, with the same process id.
run_list.program, run_list.become = core.program, core.become

--- Returns a field of untrusted JSON if it has the expected type.
local function field(t, key, kind)
  local value = type(t) == 'table' and t[key]
  if type(value) == kind then return value end
end

local function epoch(text)
  local y, m, d, h, min, s = (text or ''):match '^(%d+)-(%d+)-(%d+)T(%d+):(%d+):(%d+)Z$'
  if not y then return nil end
  local local_s = os.time { year = y, month = m, day = d, hour = h, min = min, sec = s, isdst = false }
  local now = os.time()
  local utc = os.date('!*t', now)
  utc.isdst = false
  return local_s + now - os.time(utc)
end

--- Returns whether id or label `a` comes before `b`, with numbers in them by value ('2', '10', 'm1i2-1').
function run_list.before(a, b)
  local function key(text) return text:gsub('%d+', function(digits) return ('%9s'):format(digits) end) end
  return key(a) < key(b)
end

-- Returns a table of a run's folder, or nil; `notes`, if given, get what is wrong with it.
local function read_table(run, path, notes)
  local ok, value = pcall(json.read, ('%s/%s'):format(run.path, path))
  if ok and type(value) == 'table' then return value end
  if notes then notes[#notes + 1] = util.shortened(('%s: %s'):format(path, tostring(value))) end
end

-- Returns the names in a part of a run ('searches'), in order.
local function names_in(run, part)
  local names = core.list_folder(('%s/%s'):format(run.path, part))
  table.sort(names, run_list.before)
  return names
end

--- Returns the tables FILE in the folders of a part of a run ('problems', 'searches') by id, and the ids in order.
function run_list.parts(run, part, file, notes)
  local parts, ids = {}, {}
  for _, id in ipairs(names_in(run, part)) do
    local path = ('%s/%s/%s'):format(part, id, file)
    parts[id] = util.exists(('%s/%s'):format(run.path, path)) and read_table(run, path, notes) or nil
    if parts[id] then ids[#ids + 1] = id end
  end
  return parts, ids
end

--- Returns the searches of a run in order: the content of search.json, with `id`.
function run_list.searches(run)
  local parts = run_list.parts(run, 'searches', 'search.json')
  return util.map(names_in(run, 'searches'), function(id)
    return util.merged(parts[id] or { status = 'running' }, { id = id })
  end)
end

--- Returns the results of a run in order: { kind, label, summary, data }.
function run_list.results(run, notes)
  local list = {}
  for _, file in ipairs(names_in(run, 'results')) do
    local value = file:match '%.json$' and read_table(run, 'results/' .. file, notes)
    if value and type(value.data) == 'table' then
      list[#list + 1] = { kind = tostring(value.kind), label = file:match '^(.*)%.', data = value.data,
        summary = field(value, 'summary', 'string') }
    elseif value and notes then
      notes[#notes + 1] = util.shortened(('results/%s: has no data'):format(file))
    end
  end
  return list
end

--- Returns the step time in a result: of a simulated or executed strategy, or of the best plan; nil for others.
local function step_of(result)
  local data = field(result, 'data', 'table')
  if not data then return nil end
  local best = field(data, 'plans', 'table')
  local step_time_s = field(data, 'simulated_step_time_s', 'number') or field(data, 'step_time_s', 'number')
    or best and field(best[1], 'step_time_s', 'number')
  return step_time_s, best and 'plan' or field(data, 'method', 'string')
end

--- Returns the fastest strategy that fits in the searches of a run or else in its results: { step_time_s =, over_bound
--- =, search =, method =, evaluations = }, or nil; and the number of searches.
local function best_of(run)
  local best, searches = nil, run_list.searches(run)
  local function consider(step_time_s, about)
    if step_time_s and (not best or step_time_s < best.step_time_s) then
      best = util.merged(about, { step_time_s = step_time_s })
    end
  end
  for _, about in ipairs(searches) do
    local step_time_s = about.fits ~= false and field(about, 'best_step_time_s', 'number') or nil
    local bound_s = field(about, 'lower_bound_s', 'number')
    consider(step_time_s, { over_bound = step_time_s and bound_s and bound_s > 0 and step_time_s / bound_s or nil,
      search = about.id, method = field(about, 'method', 'string'),
      evaluations = field(about, 'evaluations', 'number') })
  end
  for _, result in ipairs(best and {} or run_list.results(run)) do
    local step_time_s, method = step_of(result)
    consider(step_time_s, { method = method })
  end
  return best, #searches
end

--- Returns the current status: a run whose process has ended without a status was killed.
local function status_of(path, about)
  local status = field(about, 'status', 'string') or '?'
  if status == 'running' and not state.is_alive(path, about) then
    return 'interrupted', 'killed'
  end
  return status, field(about, 'error', 'string')
end

--- A run: { path =, name =, status =, note =, script =, model =, cluster =, started_s =, age_s =, seconds =,
--- searches =, step_time_s =, over_bound =, method =, about = its run.json }; nil and a reason if the folder is no run
--- folder.
function run_list.read(path)
  local about = json.try(path .. '/run.json')
  if not about or about.kind ~= 'trinity run 1' then return nil, ('%s is no run folder'):format(path) end
  local best, searches = best_of { path = path }
  local started_s = epoch(field(about, 'started_at', 'string'))
  local status, note = status_of(path, about)
  local run = { path = path, name = path:match '([^/]*)$', status = status, note = note, about = about,
    script = field(about, 'script', 'string'), model = field(about, 'model', 'string'),
    cluster = field(about, 'cluster', 'string'), started_s = started_s, searches = searches,
    age_s = started_s and math.max(0, os.time() - started_s), seconds = field(about, 'seconds', 'number') }
  for key, value in util.sorted_pairs(best or {}) do run[key] = run[key] or value end
  return run
end

--- Returns all runs of a folder, by name.
function run_list.all(root)
  local runs = {}
  for _, name in ipairs(core.list_folder(root)) do
    local run = run_list.read(root .. '/' .. name)
    if run then runs[#runs + 1] = run end
  end
  return runs
end

--- Returns the run called `name` (or with that path); raises a usage error with a suggestion if there is none.
function run_list.find(root, name)
  for _, path in ipairs { root .. '/' .. name, name } do
    if util.exists(path .. '/run.json') then
      local run = run_list.read((path:gsub('/+$', '')))
      if not run then util.fail_usage("%s/run.json: expected a 'trinity run 1', or it is damaged", path) end
      return run
    end
  end
  local near = core.suggestion(name, util.map(run_list.all(root), function(run) return run.name end))
  util.fail_usage("no run %s in %s%s", util.quoted(name), root, near ~= '' and near or "; 'trinity runs' lists them")
end

--- Converts a run for core.to_json.
function run_list.plain(run)
  local copy = {}
  for key, value in util.sorted_pairs(run) do if key ~= 'about' then copy[key] = value end end
  return copy
end

--- Sorts runs by a field, runs without it last; ties and texts by name.
function run_list.sort(runs, key)
  table.sort(runs, function(a, b)
    local x, y = a[key], b[key]
    if x == y or type(x) ~= type(y) and x ~= nil and y ~= nil then return a.name < b.name end
    if x == nil or y == nil then return y == nil end
    return x < y
  end)
end

--- Returns the step times of a run's searches and other results: { { method =, step_time_s = }, ... }.
function run_list.steps(run)
  local list = util.map(run_list.searches(run), function(search)
    return { method = tostring(search.method or '-'), step_time_s = tonumber(search.best_step_time_s) }
  end)
  for _, result in ipairs(run_list.results(run)) do
    local step_time_s, method = step_of(result)
    if step_time_s then list[#list + 1] = { method = method or '-', step_time_s = step_time_s } end
  end
  return list
end

--- Returns options of a run and everything else that its numbers may depend on, by name.
local function circumstances(run)
  local versions, machine = field(run.about, 'versions', 'table') or {}, field(run.about, 'machine', 'table') or {}
  return util.merged(field(run.about, 'options', 'table'), {
    script = run.script, model = run.model, cluster = run.cluster,
    ['version of trinity'] = versions.trinity, ['version of LibTorch'] = versions.libtorch,
    ['version of LuaJIT'] = versions.luajit, BLAS = run.about.blas, processor = machine.processor })
end

--- Returns an option's value as text: JSON with sorted keys for a table.
function run_list.value_text(value)
  if value == nil then return '-' end
  return type(value) == 'table' and json.encode(value) or tostring(value)
end

--- Returns the differences of two runs in options, versions and CPU: { { name =, a =, b = } ... }, values as text.
function run_list.differences(a, b)
  local list, of_a, of_b = {}, circumstances(a), circumstances(b)
  local text = run_list.value_text
  for name in util.sorted_pairs(util.merged(of_a, of_b)) do
    local one, other = text(of_a[name]), text(of_b[name])
    if one ~= other then list[#list + 1] = { name = tostring(name), a = one, b = other } end
  end
  return list
end

function run_list.remove(run, force)
  if run.status == 'running' and not force then
    util.fail_usage("run '%s' is running (process %s); use --force to delete it", run.name, tostring(run.about.pid))
  end
  core.remove_tree(run.path)
end

--- Formats an age: '12 s', '3 min', '5 h', '8 d'.
function run_list.age_text(seconds)
  if not seconds then return '-' end
  for _, unit in ipairs { { 86400, 'd' }, { 3600, 'h' }, { 60, 'min' } } do
    if seconds >= unit[1] then return ('%d %s'):format(seconds / unit[1], unit[2]) end
  end
  return ('%d s'):format(seconds)
end

local function number(t, key) return field(t, key, 'number') end

--- Returns the progress of a running run as parts of a line: { label =, parts =, share = }, or nil.
function run_list.now(run)
  local now = field(run.about, 'now', 'table')
  if not now then return nil end
  local parts, best_s, bound_s = {}, number(now, 'best_step_time_s'), number(now, 'lower_bound_s')
  if number(now, 'items') then parts[1] = ('%d/%d items'):format(number(now, 'done') or 0, now.items) end
  if number(now, 'evaluations') then parts[#parts + 1] = ('%d evaluations'):format(now.evaluations) end
  if best_s then
    local gap = bound_s and bound_s > 0 and (' (%.2fx bound)'):format(best_s / bound_s) or ''
    parts[#parts + 1] = ('best %.4g s%s%s'):format(best_s, gap, now.fits == false and ' (does not fit)' or '')
  end
  if number(now, 'evaluations_per_s') then parts[#parts + 1] = ('%.0f evaluations/s'):format(now.evaluations_per_s) end
  if number(now, 'left_s') then parts[#parts + 1] = progress.duration(now.left_s) .. ' left' end
  local label = tostring(now.label or '')
  if number(now, 'seed') then label = ('%s seed %d'):format(label, now.seed) end
  return { label = label, parts = parts, share = number(now, 'share') }
end

return run_list
