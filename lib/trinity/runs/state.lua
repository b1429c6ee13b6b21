-- The run of the process: makes its folder when the first thing is saved, maintains run.json, and closes the run at the
-- script's end. lib/trinity/runs/DESIGN.md describes the folder.
--
-- Ids are counted per context: the script, or an item of trinity.parallel_map, so that they are equal for any number of
-- workers. A worker writes its rows to spool/ITEM.jsonl; the main process takes them over in the order of the items.

local core = require 'trinity.core'
local hooks = require 'trinity.base.hooks'
local json = require 'trinity.base.json'
local progress = require 'trinity.base.progress'
local run_folder = require 'trinity.runs.folder'
local run_metrics = require 'trinity.runs.metrics'
local util = require 'trinity.base.util'

--- settings: name, root, resume and options of the command line. run: nil before the first access, false for none.
--- safe_process: of a script that will be confined, the process as core.process() describes it before.
local state = { settings = {}, run = nil }

local kind, default_root = 'trinity run 1', 'runs'
local now_interval_s = 2

--- Returns a time as ISO 8601 in UTC.
function state.time_text(time_s) return os.date('!%Y-%m-%dT%H:%M:%SZ', time_s) end

local function context(prefix, parent)
  return { prefix = prefix, parent = parent, searches = 0, problems = 0, maps = 0, problem_of = {}, labels = {} }
end

--- Returns the next id of a kind ('searches', 'problems') in the current context.
function state.next_id(what)
  local c = state.run.context
  c[what] = c[what] + 1
  return c.prefix .. c[what]
end

--- Returns the folder of runs from the command line or TRINITY_RUNS; 'none' for none.
function state.root()
  local root = state.settings.root or core.environment 'TRINITY_RUNS'
  return root and root ~= '' and root or default_root
end

--- Raises a usage error if a name is no folder name. `owner`: the option with the name.
function state.check_name(name)
  if not name:match '^[%w_][%w._+-]*$' or #name > 120 then
    util.fail_usage("option '--run': expected a name of up to 120 letters, digits and . _ + -, got %s",
      util.quoted(name))
  end
end

--- Converts numbers that JSON cannot represent to text.
local function plain(options)
  local copy = {}
  for key, value in util.sorted_pairs(options or {}) do
    if type(value) == 'number' and (value ~= value or math.abs(value) == math.huge) then value = tostring(value) end
    copy[key] = value
  end
  return copy
end

--- Returns whether a process on this or another machine with access to the folder works on its run. Folders of earlier
--- versions, which are not held, name a process of this machine.
function state.is_alive(path, about)
  local held = core.is_held(path, tostring(about.system))
  if held ~= nil or type(about.pid) ~= 'number' then return held or false end
  local ok, alive = pcall(core.process_alive, about.pid, about.process_start or 0)
  return ok and alive
end

local function script_text(path)
  local ok, text = pcall(core.read_file, path)
  return ok and text or ''
end

-- Fields of run.json for a resumed run.
local types = { status = 'string', options = 'table', pid = 'number', resumed_at = 'table' }

local function read_about(path)
  local about = json.read(path)
  if type(about) ~= 'table' or about.kind ~= kind then
    util.fail_usage("option '--resume': expected the folder of a run that can resume, got %s", path)
  end
  for key, expected in util.sorted_pairs(types) do
    if about[key] ~= nil and type(about[key]) ~= expected then
      util.fail_usage("option '--resume': %s: field '%s': expected a %s, got %s", path, key, expected,
        util.describe(about[key]))
    end
  end
  return about
end

--- Returns how the run in a folder was started, { options =, arguments =, script =, folder =, safe = }, or nil. A safe
--- script can change run.json, but not this, which stands in the folder's seal (engine/base/file.h).
function state.start_of(path)
  local ok, start = pcall(json.decode, core.read_seal(path))
  return ok and type(start) == 'table' and start or nil
end

--- Returns whether a launcher restarted this process for a job that resumes: torchrun (--max-restarts), Slurm
--- (requeue), or others with TRINITY_RESUME=1.
local function is_restart()
  if core.environment 'TRINITY_RESUME' == '1' then return true end
  for _, count in ipairs { 'TORCHELASTIC_RESTART_COUNT', 'SLURM_RESTART_COUNT' } do
    if (tonumber(core.environment(count) or 0) or 0) > 0 then return true end
  end
  return false
end

--- Raises a usage error if a run belongs to another script, is still running, or is done (unless it is restarted).
--- Returns its run.json.
local function check_resume(path, name, script, options)
  if not util.exists(path .. '/run.json') then util.fail_usage("option '--resume': no run %s", path) end
  local about = read_about(path .. '/run.json')
  if about.status == 'done' and not is_restart() then
    util.fail_usage("option '--resume': run '%s' is done; 'trinity runs show %s' shows it", name, name)
  end
  if about.status == 'running' and state.is_alive(path, about) then
    util.fail_usage("option '--resume': run '%s' is still running (process %d)", name, about.pid or 0)
  end
  if (state.start_of(path) or {}).safe and not core.is_safe() then
    util.fail_usage("option '--resume': run '%s' was made with --safe; use 'trinity runs resume %s'", name, name)
  end
  if script_text(path .. '/script.lua') ~= script then
    util.fail_usage("option '--resume': the script has changed since run '%s' started (see %s/script.lua)", name, path)
  end
  local was, is = about.options or {}, json.decode(json.encode(plain(options)))
  was.resume, is.resume = nil, nil -- an option of a script with its own checkpoints does not change its results
  for _, set in ipairs { was, is } do
    for key in util.sorted_pairs(set) do
      if json.encode(was[key]) ~= json.encode(is[key]) then
        util.fail_usage("option '--resume': run '%s': expected %s = %s, as it was started, got %s", name, key,
          util.shortened(json.encode(was[key]), 60), util.shortened(json.encode(is[key]), 60))
      end
    end
  end
  return about
end

local function check_new(path, name)
  if not util.exists(path .. '/run.json') then return end
  util.fail_usage("option '--run': run '%s' exists already (%s); use another name, or --resume", name, path)
end

--- Takes name, root, resume and the resolved options from trinity.options, and checks them immediately.
function state.configure(settings)
  -- Options as given; scripts may fill in others later.
  settings.options = settings.options and plain(settings.options)
  state.settings = settings
  local name, root = settings.name, state.root()
  if name == 'none' then settings.none, settings.name, name = true, nil, nil end
  if not name then
    if settings.resume then util.fail_usage "option '--resume': expected --run NAME with it" end
    return
  end
  state.check_name(name)
  local script = core.script()
  if root == 'none' or not script then return end
  local path = root .. '/' .. name
  local own = settings.options and settings.options.resume == true -- the script's own option
  if state.prepared then return end
  if (own or is_restart()) and util.exists(path .. '/run.json') then settings.resume = true end
  if settings.resume then
    check_resume(path, name, script_text(script), settings.options)
  else
    check_new(path, name)
  end
end

--- Settings of a script that did not read its options: --run, --runs and --resume still apply.
local function read_words()
  local words, settings = rawget(_G, 'arg') or {}, {}
  for i, word in ipairs(words) do
    for option, key in util.sorted_pairs { run = 'name', runs = 'root' } do
      if word == '--' .. option then settings[key] = words[i + 1] end
      if word:sub(1, #option + 3) == '--' .. option .. '=' then settings[key] = word:sub(#option + 4) end
    end
    if word == '--resume' then settings.resume = true end
  end
  return settings
end

local function stem(path)
  if path == '-' then return 'stdin' end
  return (path:match '([^/]*)$':gsub('%.lua$', ''))
end

--- Returns how the script was started, for `trinity runs resume`: options of the program, name of the script, its
--- arguments. A safe script cannot change these, because its `arg` is a copy.
local function start_words(script)
  local given, scripts = rawget(_G, 'arg') or {}, core.home .. '/scripts/'
  local start = { options = {}, arguments = {}, script = script, folder = core.process().folder,
    safe = state.safe_process ~= nil }
  if script:sub(1, #scripts) == scripts then start.script = stem(script) end
  local first = -1
  while given[first - 1] do first = first - 1 end -- the program comes first
  for i = first + 1, -1 do table.insert(start.options, given[i]) end
  table.insert(start.arguments, given.study) -- removed by scripts/study.lua
  for _, word in ipairs(given) do table.insert(start.arguments, word) end
  return start
end

--- Same, as a readable command line.
local function command(start)
  local words = { 'trinity' }
  for _, part in ipairs { start.options, { start.script }, start.arguments } do
    for _, word in ipairs(part) do words[#words + 1] = word end
  end
  return words
end

local function library_versions()
  local jit_version = rawget(_G, 'jit') and jit.version or 'LuaJIT'
  return { trinity = core.version, luajit = jit_version }
end

--- Adds what is known once the script uses its run.
local function describe_use(about, problem)
  local options = state.settings.options
  about.options, about.seed = plain(options), options and tonumber(options.seed) or nil
  about.model, about.cluster = problem and problem.graph.name or nil, problem and problem.cluster.name or nil
  return about
end

--- Returns this process as run.json names it. A confined one cannot read all of it any more.
local function this_process() return state.safe_process or core.process() end

--- Returns the initial content of run.json.
local function describe(name, script, problem)
  local process = this_process()
  return describe_use({ kind = kind, name = name, status = 'running', script = script,
    command = command(start_words(script)), system = process.system, folder = process.folder,
    started_at = state.time_text(os.time()), pid = process.pid, process_start = process.start,
    versions = library_versions(), machine = core.describe_machine() }, problem)
end

--- Returns run.json as text; it names LibTorch and the BLAS once the run has used them.
local function about_text(about)
  if core.torch_is_open() then
    local text = core.describe_torch()
    about.versions.libtorch, about.blas = text:match '^LibTorch (%S+)' or text, text:match ' with (.*)$' or text
  end
  return core.to_json(about)
end

function state.save()
  local run = state.run
  return run.folder:keep('run.json', about_text(run.about))
end

local function base_name(script, problem)
  local parts = { run_folder.word((rawget(_G, 'arg') or {}).study or stem(script)) }
  if problem then
    parts[2], parts[3] = run_folder.word(problem.graph.name), run_folder.word(problem.cluster.name)
  end
  return table.concat(parts, '-')
end

--- Makes the new folder of the settings. Returns it and its name; about(name) returns the content of run.json.
local function make_folder(script, problem, about, unheld)
  local name, root, text = state.settings.name, state.root(), script_text(script)
  local seal = json.encode(start_words(script))
  if not name then return run_folder.make_next(root, base_name(script, problem), about, text, seal, unheld) end
  local made = run_folder.make(root, name, about(name), text, seal, unheld)
  if not made then util.fail("run '%s' exists already (%s/%s)", name, root, name) end
  return made, name
end

--- Resumes in the folder of an interrupted run. Returns the run, or raises an error.
local function reopen(script)
  local name, root = state.settings.name, state.root()
  local folder = run_folder.at(root .. '/' .. name)
  local about = check_resume(folder.path, name, script_text(script), state.settings.options)
  if not core.hold_folder(folder.path) then util.fail("run '%s' is still running", name) end
  core.remove_leftovers(folder.path)
  local process = this_process()
  about.status, about.error, about.ended_at, about.now = 'running', nil, nil, nil
  about.pid, about.process_start, about.system = process.pid, process.start, process.system
  about.resumed_at = about.resumed_at or {}
  table.insert(about.resumed_at, state.time_text(os.time()))
  return { folder = folder, name = name, about = about, resumed = true }
end

--- Only rank 0 of a job has a run folder.
local function is_first_rank(about)
  local job = hooks.job()
  if about and job then about.ranks = job.size end
  return not job or job.rank == 0
end

--- Makes the run folder of a script that will be confined (--safe), before the script is read, or finds the folder that
--- it resumes. Returns its path and the folder of runs, or nil for no run. A folder that the script does not use is
--- removed at its end.
function state.prepare()
  local script, about = core.script(), nil
  state.safe_process, state.settings = core.process(), read_words()
  local settings, root = state.settings, state.root()
  if settings.name == 'none' then settings.none, settings.name = true, nil end
  if settings.none or root == 'none' then return nil end
  if settings.name then
    state.check_name(settings.name)
    local path = root .. '/' .. settings.name
    if (settings.resume or is_restart()) and util.exists(path .. '/run.json') then return path, root end
    check_new(path, settings.name)
  end
  if settings.resume then return nil end
  local ok, folder, name = pcall(make_folder, script, nil, function(name)
    about = describe(name, script)
    return core.to_json(about)
  end, 'unheld')
  if not ok then -- the script runs without a run, unless it was given the name of one
    if settings.name then util.fail('no run is kept: %s', util.unplaced(tostring(folder))) end
    return nil
  end
  state.prepared = { folder = folder, name = name, about = about, prepared = true }
  core.at_end(function(status)
    pcall(core.remove_tree, folder.path)
    return status
  end)
  return folder.path, root
end

local function open(script, problem)
  if state.settings.resume then return reopen(script) end
  if state.prepared then
    core.hold_folder(state.prepared.folder.path)
    describe_use(state.prepared.about, problem)
    return state.prepared
  end
  local about
  local folder, name = make_folder(script, problem, function(name)
    about = describe(name, script, problem)
    is_first_rank(about)
    return core.to_json(about)
  end)
  return { folder = folder, name = name, about = about }
end

local function start(script, problem)
  if not state.settings.options and not state.settings.name then
    for key, value in util.sorted_pairs(read_words()) do state.settings[key] = value end
    if state.settings.name or state.settings.resume then state.configure(state.settings) end
  end
  if state.settings.none or state.root() == 'none' or not is_first_rank() then return false end
  local ok, run = pcall(open, script, problem)
  if not ok then
    if type(run) ~= 'string' then error(run, 0) end
    if state.settings.name then util.fail_as(run, 'no run is kept') end
    progress.warn('no run is kept: ' .. util.plain(run))
    return false
  end
  run.path, run.context, run.started, run.now_at = run.folder.path, context '', core.clock_s(), core.clock_s()
  run.kept, run.results, run.best, run.started_s, run.saving_s = 0, 0, {}, os.time(), 0
  return run
end

local function begin(script, problem)
  state.run = start(script, problem)
  local run = state.run
  if not run then return end
  core.at_end(state.finish)
  if run.resumed or run.prepared then state.save() end
  local earlier = run.resumed and hooks.searches.earlier_rows(run) or nil
  run.metrics = run_metrics.new(run.folder, run.started_s, earlier)
  progress.listener = state.note_now
  progress.note(run.resumed and ('run: %s resumes: %s'):format(run.path, run.earlier_text)
    or ('run: %s'):format(run.path))
end

--- Returns the run of this process, made now if needed, or nil without one. `problem` is used for its name.
function state.current(problem)
  if state.run ~= nil then return state.run or nil end
  local script = core.script()
  if not script then return nil end
  local before = core.was_interrupted()
  core.begin_series() -- delays Ctrl-C until the new folder is complete
  local ok, message = pcall(begin, script, problem)
  core.end_series()
  if not ok then error(message, 0) end
  if core.was_interrupted() and not before and not core.stop_requested() and not core.keeps_what_is_found() then
    util.fail 'interrupted'
  end
  return state.run or nil
end

--- Leaves the run folder to rank 0 of a job.
function state.leave_to_first_rank()
  if state.run then state.finish(0) end
  state.run = false
end

--- Saves the state of the progress line, at most every two seconds.
function state.note_now(line, shown)
  local run, clock = state.run, core.clock_s()
  if not run or core.in_worker() then return end
  if clock - run.now_at < math.max(now_interval_s, 400 * run.saving_s) then return end
  run.now_at = clock
  local elapsed, best = clock - line.start, shown.best
  local now = { label = line.label, step = shown.step, evaluations = shown.evaluations, share = shown.share,
    done = shown.done, items = shown.items, seconds = elapsed, lower_bound_s = shown.lower_bound_s,
    search = shown.search, method = shown.method, seed = shown.seed }
  if shown.share and shown.share > 0 then now.left_s = elapsed / shown.share * (1 - shown.share) end
  if shown.evaluations then now.evaluations_per_s = shown.evaluations / math.max(elapsed, 1e-9) end
  if best then
    now.best_step_time_s, now.best_reward, now.fits = best.metrics.step_time_s, best.reward, best.metrics.feasible
  end
  run.about.now, run.about.seconds = now, clock - run.started
  state.save()
  run.saving_s = core.clock_s() - clock -- replacing a file takes milliseconds on some disks
end

--- Starts a map of trinity.parallel_map; nil without a run.
function state.begin_map()
  local run = state.current()
  if not run then return nil end
  run.context.maps = run.context.maps + 1
  return { parent = run.context, name = run.context.prefix .. 'm' .. run.context.maps }
end

--- Starts item i of a map. Returns a function that ends it.
function state.begin_item(map, i)
  local run = state.run
  if not map or not run then return function() end end
  local outer, metrics, best = run.context, run.metrics, run.best
  run.context, run.best = context(('%si%d-'):format(map.name, i), map.parent), {}
  if core.in_worker() and not metrics.lines_only then
    local path = ('spool/%si%d.jsonl'):format(map.name, i)
    run.folder:write(path, '')
    run.metrics = run_metrics.spool(run.folder, path)
  end
  return function()
    hooks.searches.save_timelines(run)
    run.context, run.metrics, run.best = outer, metrics, best
  end
end

--- Takes over the rows of item i from its worker.
function state.take_item(map, i)
  local run = state.run
  local path = map and run and ('%s/spool/%si%d.jsonl'):format(run.path, map.name, i)
  if not path or not util.exists(path) then return end
  for _, row in ipairs(run_metrics.read(path)) do run.metrics:write(row, run.started_s + (row.seconds or 0)) end
  pcall(core.remove_tree, path)
end

local stops = { [130] = true, [143] = true } -- after Ctrl-C, after SIGTERM

local function ending(status, message)
  if core.was_interrupted() or stops[status] then return 'interrupted' end
  if status == 0 then return 'done' end
  return 'failed', message or ('exit status %d'):format(status)
end

--- Ends the run and records how the script ended. Removes an empty folder. Returns the exit status: the script's,
--- but 1 instead of 0 if the folder could not be written, and the signal's after Ctrl-C or SIGTERM if it came before
--- the end was recorded.
function state.finish(status, message)
  local run = state.run
  if not run then return status end
  if progress.listener == state.note_now then progress.listener = nil end
  if package.loaded['trinity.runs.search'] or core.was_interrupted() then -- otherwise there were no searches
    hooks.searches.close(run)
  end
  run.metrics:flush()
  local about = run.about
  about.status, about.error = ending(status, message)
  about.ended_at, about.seconds, about.now = state.time_text(os.time()), core.clock_s() - run.started, nil
  state.run = false
  if run.folder.broken then
    if util.exists(run.path .. '/run.json') then
      pcall(core.write_file, run.path .. '/run.json', about_text(about))
    end
  elseif run.kept == 0 and run.results == 0 and not run.metrics.begun and not run.resumed and about.status == 'done'
    and #core.list_folder(run.path .. '/searches') == 0 then
    pcall(core.remove_tree, run.path)
  else
    run.folder:keep('run.json', about_text(about))
    pcall(core.remove_tree, run.path .. '/spool')
  end
  if about.status == 'interrupted' then return stops[status] and status or core.stop_status() end
  return status == 0 and run.folder.broken and 1 or status
end

--- Adds a row of the script.
function state.log(fields)
  local run = state.current()
  if not run then return end
  local row = { seconds = core.clock_s() - run.started }
  for name, value in util.sorted_pairs(fields) do
    row[name] = type(value) == 'boolean' and (value and 1 or 0) or value
  end
  run.kept = run.kept + 1
  run.metrics:write(row, os.time())
end

--- Writes a result file: { kind =, label =, summary =, data = }. Returns its path in the folder, or nil without a run.
function state.keep_result(result_kind, data, label, summary, problem)
  local run = state.current(problem)
  if not run then return nil end
  local labels, base = run.context.labels, label or result_kind
  labels[base] = (labels[base] or 0) + 1
  local name = run.context.prefix .. base .. (labels[base] > 1 and '-' .. labels[base] or '')
  run.results = run.results + 1
  local path = ('results/%s.json'):format(name)
  local text = core.to_json { kind = result_kind, label = name, summary = summary, data = data }
  local kept = run.folder:write(path, text)
  return kept and path or nil
end

return state
