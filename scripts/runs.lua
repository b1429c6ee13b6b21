#!/usr/bin/env trinity
-- Lists, shows, follows, plots, compares, resumes and deletes the runs in runs/ (a folder: lib/trinity/runs/DESIGN.md).
--
--   trinity runs [FILTER]          those whose name, status, script, model or cluster contains FILTER
--   trinity runs show NAME         options, searches, results
--   trinity runs watch [NAME]      follows a run, by default the latest that runs, until it ends or Ctrl-C leaves it
--   trinity runs report NAME...    one HTML page that opens without a network: what was searched and found, comparison,
--                                  convergence, placement, timeline, memory; of up to 8 runs side by side
--   trinity runs compare A B       what differs (options, versions, CPU), searches side by side
--   trinity runs resume NAME       resumes an interrupted run: starts its script again in the same folder, with its
--                                  options and options of the program (--safe, --no-strict, limits, --threads)
--   trinity runs delete NAME...    removes folders of runs, and nothing else; running ones only with --force
--
-- With --json: of the list and `show` objects with name, path, status, note, script, model, cluster, started_s, age_s,
-- seconds, searches, step_time_s (the fastest that fits), over_bound, method; `show` adds run (its run.json),
-- all_searches and results; `compare` gives { a, b, differences = [{ name, a, b }], searches = [{ method, a, b }] },
-- `report` { output, bytes }.

local trinity = require 'trinity'
local progress = require 'trinity.base.progress'
local run_list = require 'trinity.runs.list'
local run_state = require 'trinity.runs.state'
local text = require 'trinity.base.text'
local util = require 'trinity.base.util'

local actions = { show = { 1, 1 }, watch = { 0, 1 }, report = { 1, 8 }, compare = { 2, 2 }, resume = { 1, 1 },
  delete = { 1, math.huge } } -- minimum and maximum number of names

local options = trinity.options {
  'Lists runs; show NAME, watch [NAME], report NAME..., compare A B, resume NAME, delete NAME...',
  'keeps no run',
  words = { default = {}, position = true, help = 'an action and its runs, as above; or a filter of the list' },
  sort = { default = 'age_s',
    help = 'sort by name, status, script, model, cluster, step_time_s, over_bound, age_s or seconds' },
  force = { default = false, help = 'with delete: delete running ones, too' },
  once = { default = false, help = 'with watch: print the state once and end' },
  interval_s = { default = 1, min = 0.05, max = 3600, help = 'with watch: seconds between two updates' },
  output = { type = 'string', writes = '',
    help = 'with report: the page (default: report.html in the folder of the first run)' },
  json = { default = false, help = 'print JSON and nothing else' },
}
local root, words = run_state.root(), options.words

local function bound_text(run) return run.over_bound and ('%.2fx'):format(run.over_bound) or '-' end
local function time_text(seconds) return seconds and ('%.4g s'):format(seconds) or '-' end
local function step_text(seconds) return seconds and ('%.6g s'):format(seconds) or '-' end
local function count_text(value) return type(value) == 'number' and ('%.0f'):format(value) or '-' end

local function say(line, ...) print(text.one_line(line:format(...))) end

local function script_name(run) return (run.script or '-'):match '([^/]*)$' end

local function matches(run, filter)
  for _, key in ipairs { 'name', 'status', 'script', 'model', 'cluster' } do
    if (run[key] or ''):lower():find(filter:lower(), 1, true) then return true end
  end
  return false
end

local sortable = util.set 'name status script model cluster step_time_s over_bound age_s seconds'

local function list(filter)
  if not sortable[options.sort] then
    util.fail_usage("option '--sort': unknown field %s", util.unknown(options.sort, util.sorted_keys(sortable)))
  end
  local runs = util.filtered(run_list.all(root), function(run) return matches(run, filter) end)
  run_list.sort(runs, options.sort)
  if options.json then
    for i, run in ipairs(runs) do runs[i] = run_list.plain(run) end
    return print(trinity.files.json.encode(runs))
  end
  if #runs == 0 then return print('no runs in ' .. root .. (filter ~= '' and ' match ' .. filter or '')) end
  local rows = {}
  for i, run in ipairs(runs) do
    local status = run.status .. (run.note == 'killed' and ' (killed)' or '')
    rows[i] = { run.name, status, script_name(run), run.model or '-', run.cluster or '-',
      time_text(run.step_time_s), bound_text(run), run_list.age_text(run.age_s) }
  end
  print(text.format_table({ 'name', 'status', 'script', 'model', 'cluster', 'best step', 'over bound', 'age' }, rows))
end

local function show(name)
  local run = run_list.find(root, name)
  local searches, results, about = run_list.searches(run), run_list.results(run), run.about
  if options.json then
    local plain = run_list.plain(run)
    plain.run, plain.all_searches, plain.results = about, searches, results
    return print(trinity.files.json.encode(plain))
  end
  say('%s: %s%s, %s searches, started %s%s', run.name, run.status, run.note and ' (' .. run.note .. ')' or '',
    run.searches, tostring(about.started_at), run.seconds and (', %.1f s'):format(run.seconds) or '')
  say('command  %s', table.concat(util.map(type(about.command) == 'table' and about.command or {}, tostring), ' '))
  for key, value in util.sorted_pairs(type(about.options) == 'table' and about.options or {}) do
    say('  %-20s %s', key, run_list.value_text(value))
  end
  local rows = {}
  for i, search in ipairs(searches) do
    local best_s, bound_s = tonumber(search.best_step_time_s), tonumber(search.lower_bound_s)
    rows[i] = { search.id, tostring(search.method or '-'), count_text(search.seed),
      tostring(search.status), time_text(best_s), best_s and bound_s and ('%.2fx'):format(best_s / bound_s) or '-',
      count_text(search.evaluations), time_text(tonumber(search.seconds)) }
  end
  if #rows > 0 then
    print(text.format_table({ 'search', 'method', 'seed', 'status', 'best step', 'over bound', 'evaluations', 'took' },
      rows))
  end
  for _, result in ipairs(results) do
    say('%s: %s', tostring(result.label), tostring(result.summary or result.kind))
  end
end

-- Returns the fastest step of each method of a run, and of its plans and strategies.
local function by_method(run)
  local best = {}
  for _, of in ipairs(run_list.steps(run)) do
    if of.step_time_s and (not best[of.method] or of.step_time_s < best[of.method]) then
      best[of.method] = of.step_time_s
    end
  end
  return best
end

local function compare(first, second)
  local a, b = run_list.find(root, first), run_list.find(root, second)
  local differences, of_a, of_b = run_list.differences(a, b), by_method(a), by_method(b)
  local names, searches = {}, {}
  for _, set in ipairs { of_a, of_b } do
    for method in util.sorted_pairs(set) do names[method] = true end
  end
  for method in util.sorted_pairs(names) do
    searches[#searches + 1] = { method = method, a = of_a[method], b = of_b[method] }
  end
  if options.json then
    return print(trinity.files.json.encode { a = run_list.plain(a), b = run_list.plain(b), differences = differences,
      searches = searches })
  end
  local rows = util.map(differences, function(difference) return { difference.name, difference.a, difference.b } end)
  print(#rows > 0 and text.format_table({ 'differing', a.name, b.name }, rows)
    or 'the same options, versions and CPU')
  rows = {}
  for i, search in ipairs(searches) do
    local ratio = search.a and search.b and ('%.3f'):format(search.b / search.a) or '-'
    rows[i] = { search.method, step_text(search.a), step_text(search.b), ratio }
  end
  print ''
  print(text.format_table({ 'best step', a.name, b.name, 'ratio' }, rows))
end

-- Options of the program that a resumed run keeps: without a value, and with one.
local flags = util.set '--safe --no-strict -joff --stop-on-usr1'
local valued = util.set '--write --memory-limit --time-limit --threads'

-- A run may come from an untrusted author. Only the run's own script, its arguments and these options are used.
local function check_options(run, given)
  local i = 1
  while i <= #given do
    local word = given[i]
    if not flags[word] and not valued[word:match '^(%-%-[^=]*)=' or ''] and not word:match '^%-O%d?$' then
      if not valued[word] or not given[i + 1] then
        util.fail_usage("run '%s' was started with %s, which runs resume does not repeat; start it by hand with "
          .. "--resume",
          run.name, util.quoted(word))
      end
      i = i + 1
    end
    i = i + 1
  end
end

local function is_word(value) return type(value) == 'string' and not value:find '%z' end

-- Whether a value is a list of words, and nothing else.
local function is_words(value)
  if type(value) ~= 'table' then return false end
  local count = 0
  for _, word in util.sorted_pairs(value) do
    if not is_word(word) then return false end
    count = count + 1
  end
  return count == #value
end

-- Returns the file of a script, given its name in scripts/ or its path relative to a folder.
local function script_file(script, folder)
  local own = ('%s/scripts/%s.lua'):format(trinity.system.home, script)
  if not script:find '/' and util.exists(own) then return own end
  return script:match '^/' and script or folder .. '/' .. script
end

-- Returns how a run was started, from its seal: { options =, script =, arguments =, folder =, ranks = }. A run
-- resumes only with its own script, whose text is stored next to run.json, and with --safe if it was started so.
local function start_of(run)
  local function expect(holds, field, expected)
    if not holds then util.fail_usage("%s: field '%s': expected %s", run.path, field, expected) end
  end
  local start = require('trinity.runs.state').start_of(run.path)
  if not start then
    util.fail_usage("run '%s' does not record how it was started, which runs resume needs; start it by hand with "
      .. "--resume", run.name)
  end
  for _, key in ipairs { 'options', 'arguments' } do expect(is_words(start[key]), key, 'a list of words') end
  expect(is_word(start.script) and start.script ~= '' and not start.script:match '^%-', 'script', 'a script')
  expect(is_word(start.folder) and start.folder:match '^/', 'folder', 'the folder that it was started in')
  local ranks = run.about.ranks == nil and 1 or run.about.ranks
  expect(type(ranks) == 'number' and ranks >= 1 and ranks <= 4096 and ranks % 1 == 0, 'ranks', 'how many there were')
  check_options(run, start.options)
  local safe = util.find(start.options, function(word) return word == '--safe' end) ~= nil
  expect(start.safe == safe, 'options', "--safe where 'safe' is true")
  local file = script_file(start.script, start.folder)
  local ok, now = pcall(trinity.files.read, file)
  local own, known = pcall(trinity.files.read, run.path .. '/script.lua')
  if not ok or not own or now ~= known then
    util.fail_usage("run '%s' can only resume with its own script, which differs from %s (see %s/script.lua)",
      run.name, file, run.path)
  end
  return { options = start.options, script = start.script, arguments = start.arguments, folder = start.folder,
    ranks = ranks }
end

-- Removes the options about the run from the arguments of its script.
local function own_arguments(given)
  local kept, drop = {}, false
  for _, word in ipairs(given) do
    if drop then drop = false
    elseif word == '--run' or word == '--runs' then drop = true
    elseif not word:match '^%-%-runs?=' and word ~= '--resume' then kept[#kept + 1] = word end
  end
  return kept
end

-- Starts a run's script again, with --run and --resume.
local function resume(name)
  local run = run_list.find(root, name)
  if run.status == 'done' then
    util.fail_usage("run '%s' is done; 'trinity runs show %s' shows it", run.name, run.name)
  end
  if run.status == 'running' then util.fail_usage("run '%s' is still running", run.name) end
  local start = start_of(run)
  if start.ranks > 1 then
    util.fail_usage("run '%s' has %d ranks; start them again with their launcher and TRINITY_RESUME=1 (trinity help "
      .. "processes)", run.name, start.ranks)
  end
  local line = { run_list.program() }
  local function add(more) for _, word in ipairs(more) do line[#line + 1] = word end end
  add(start.options)
  add { start.script }
  add(own_arguments(start.arguments))
  add { '--run', run.name, '--runs', run_list.absolute(root), '--resume' }
  run_list.become(start.folder, line)
end

local function latest()
  local runs, chosen = run_list.all(root), nil
  for _, run in ipairs(runs) do
    local better = not chosen or (run.status == 'running') ~= (chosen.status == 'running') and run.status == 'running'
      or (run.status == 'running') == (chosen.status == 'running') and (run.started_s or 0) > (chosen.started_s or 0)
    if better then chosen = run end
  end
  return chosen or util.fail_usage('there are no runs in %s', root)
end

local look = progress.terminal(1)

local function show_line(run)
  local now = run_list.now(run)
  if not now then return end
  if look.redraws then
    io.stdout:write('\r\27[K', progress.fit(text.one_line(progress.printable(now.label)), now.parts, now.share, look))
    io.flush()
  else
    say('%s  %s', now.label, table.concat(now.parts, '  '))
  end
end

local shown = {}

-- Prints the searches that ended since the last update.
local function tell_searches(run)
  for _, search in ipairs(run_list.searches(run)) do
    if search.status ~= 'running' and not shown[search.id] then
      shown[search.id] = true
      local best_s, bound_s = tonumber(search.best_step_time_s), tonumber(search.lower_bound_s)
      if look.redraws then io.stdout:write '\r\27[K' end
      say('%s  seed %s  %s%s', tostring(search.method), tostring(search.seed or '-'),
        best_s and ('step time %.4g s'):format(best_s) or tostring(search.error or search.nothing or 'nothing'),
        best_s and bound_s and bound_s > 0 and ('  %.2fx bound'):format(best_s / bound_s) or '')
    end
  end
end

local function tell_end(run)
  if look.redraws then io.stdout:write '\r\27[K' end
  say('%s: %s%s%s', run.name, run.status, run.note and ' (' .. run.note .. ')' or '',
    run.seconds and (' after %.1f s'):format(run.seconds) or '')
  for _, result in ipairs(run_list.results(run)) do
    if result.summary then say('%s', tostring(result.summary)) end
  end
end

-- Follows a run, by default the latest running one, until it ends or Ctrl-C.
local function watch(name)
  local run = name and run_list.find(root, name) or latest()
  say('%s: %s on %s, started %s', run.path, run.model or '?', run.cluster or '?', tostring(run.about.started_at))
  trinity.system.stoppable(function(stop_requested)
    local shown_s, wait_s = -math.huge, options.interval_s
    while true do
      tell_searches(run)
      local running = run.status == 'running'
      local due = look.redraws or options.once or trinity.system.clock_s() - shown_s >= wait_s
      if running and due then
        show_line(run)
        -- In a file or pipe, lines become rarer with time.
        if shown_s > -math.huge and not look.redraws then wait_s = math.min(600, 1.25 * wait_s) end
        shown_s = trinity.system.clock_s()
      end
      if options.once or not running or stop_requested() then break end
      os.execute(('sleep %.3f'):format(options.interval_s))
      local path = run.path
      run = run_list.read(path)
      if not run then util.fail('%s no longer exists', path) end
    end
  end)
  if run.status ~= 'running' then tell_end(run) elseif look.redraws then print '' end
end

local function delete(names)
  local runs = util.map(names, function(name) return run_list.find(root, name) end)
  for _, run in ipairs(runs) do
    run_list.remove(run, options.force)
    if not options.json then print('deleted ' .. run.path) end
  end
end

local function report(names)
  local folders = util.map(names, function(name) return run_list.find(root, name).path end)
  local output = options.output or folders[1] .. (#folders == 1 and '/report.html' or '/report-together.html')
  local bytes = require('trinity.report').write(folders, output)
  if options.json then return print(trinity.files.json.encode { output = output, bytes = bytes }) end
  print(('%s (%s), open it in any browser'):format(output, trinity.system.format_bytes(bytes)))
end

local action = actions[words[1]] and table.remove(words, 1)
local least, most = unpack(actions[action] or { 0, 1 })
if #words < least or #words > most then
  if not action then
    util.fail_usage("runs: expected one filter, or show, watch, report, compare, resume or delete; got '%s'",
      table.concat(words, ' '))
  end
  util.fail_usage('runs %s: expected %s, got %d', action, least == most
    and ('%d name%s'):format(least, least > 1 and 's' or '') or most < math.huge
    and ('%d to %d names'):format(least, most) or 'names of runs', #words)
end
if action == 'show' then show(words[1])
elseif action == 'watch' then watch(words[1])
elseif action == 'report' then report(words)
elseif action == 'compare' then compare(words[1], words[2])
elseif action == 'resume' then resume(words[1])
elseif action == 'delete' then delete(words)
else list(words[1] or '') end
