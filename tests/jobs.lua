-- The jobs of tests/run: `core/FOLDER` and `torch/FOLDER` (C++ tests of the folder tests/FOLDER, without and with
-- LibTorch), `lua/FOLDER/NAME` (a spec), `fuzz`, `luacheck`. Use:
--   trinity tests/jobs.lua list                    names what can be asked for
--   trinity tests/jobs.lua TIER all|quick|shared   prints jobs, the longest of the tier (commit, all) first
--   trinity tests/jobs.lua TIER NAME ...           jobs by name: folders, specs; NAME/WORDS: its tests whose
--                                                  name holds the words; cpp/NAME, lua/NAME: only C++ tests, specs
--   trinity tests/jobs.lua TIER touched COMMIT     jobs of files that changed since a commit
--   trinity tests/jobs.lua TIER changed PATH ...   jobs of these paths
--   trinity tests/jobs.lua TIER record FILE        keeps seconds, lines 'JOB CPU_S WALL_S', in tests/times.txt
-- Jobs are printed as lines 'JOB waits|works WORDS', separated by tabs.

local core = require 'trinity.core'
local home = core.home
local specs = dofile(home .. '/tests/lua/support/specs.lua')
local times_path = home .. '/tests/times.txt'

local function lines_of(command)
  local pipe = io.popen(("cd '%s' && %s"):format(home, command))
  local list = {}
  for line in pipe:lines() do list[#list + 1] = line end
  pipe:close()
  return list
end

--- The jobs of C++ tests: job -> folder of its files.
local function cpp_jobs()
  local jobs = {}
  for _, path in ipairs(lines_of "find tests -name '*_test.cpp' | sort") do
    local room = path:match '^tests/([^/]+)/'
    local torch = path:find '^tests/[^/]+/torch/' or room == 'distribute' or room == 'execute'
    jobs[(torch and 'torch/' or 'core/') .. room] = room
  end
  return jobs
end

local cpp, names = cpp_jobs(), specs.all()

local chosen, listed = {}, {} -- 'JOB WORDS' -> true; { job =, words = }

--- Chooses a job; with words only its tests that hold these.
local function choose(job, words)
  words = words or ''
  if chosen[job .. '\t'] or chosen[job .. '\t' .. words] then return end
  chosen[job .. '\t' .. words] = true
  listed[#listed + 1] = { job = job, words = words }
end

local function choose_everything()
  for _, name in ipairs(names) do choose('lua/' .. name) end
  for job in pairs(cpp) do choose(job) end -- in any order: they are sorted by seconds and name
  choose 'fuzz'
  choose 'luacheck'
end

local function choose_shared()
  for _, path in ipairs(lines_of "grep -lrE 'it_shared|test::shared' tests --include=*_*.lua --include=*_test.cpp") do
    local spec = path:match '^tests/lua/(.*)_spec%.lua$'
    if spec then choose('lua/' .. spec) end
    for _, kind in ipairs { 'core/', 'torch/' } do
      local job = kind .. path:match '^tests/([^/]+)/'
      if cpp[job] then choose(job) end
    end
  end
end

--- Chooses the jobs that a name calls, of the kind 'cpp' or 'lua' or of both. Whether there are any.
local function choose_called(name, kind, words)
  local found = false
  for _, job in ipairs(kind ~= 'lua' and { 'core/' .. name, 'torch/' .. name } or {}) do
    if cpp[job] then
      choose(job, words)
      found = true
    end
  end
  for _, spec in ipairs(kind ~= 'cpp' and names or {}) do
    if specs.is_called(spec, name) then
      choose('lua/' .. spec, words)
      found = true
    end
  end
  return found
end

--- Chooses what is asked for by a name, NAME/WORDS, cpp/... or lua/....
local function choose_named(asked)
  if asked == 'fuzz' or asked == 'luacheck' then return choose(asked) end
  local kind, rest = asked:match '^(%l+)/(.+)$'
  if kind ~= 'cpp' and kind ~= 'lua' then kind, rest = nil, asked end
  local name, words = rest, nil
  while not choose_called(name, kind, words) do
    name = name:match '^(.*)/'
    if not name then
      local known = specs.words(names)
      for _, room in pairs(cpp) do known[#known + 1] = room end
      table.sort(known)
      io.stderr:write(("no folder or spec '%s'%s; 'scripts/bootstrap test list' names them all\n"):format(asked,
        core.suggestion(rest, known)))
      os.exit(2)
    end
    words = rest:sub(#name + 2)
  end
end

-- Jobs that changed paths call: the first pattern that a path matches. %1 is the folder or file that it found.
local also = { -- folders of the engine or the library: specs of others that exercise them
  base = 'files whole parallel', cluster = 'strategy studies/fidelity', data = 'execute', distribute = 'dist execute',
  features = 'learn', formats = 'graph strategy select pipeline', graph = 'formats',
  kernels = 'learn features', launch = 'dist learn', learn = 'methods search', libtorch = 'nn execute',
  lua = 'command whole/arguments whole/host', nn = 'learn methods', report = 'runs',
  runs = 'search command/manual', search = 'methods pipeline pase', selection = 'select',
  simulator = 'strategy search plan', strategy = 'simulator plan execute studies/fidelity',
}
local calls = {
  { '^tests/lua/support/(.*)%.lua$', 'mention:support/%1' }, { '^tests/lua/(.*)_spec%.lua$', 'lua/%1' },
  { '^tests/golden/', 'mention:it_golden' }, { '^tests/data/([^/]*)', 'mention:data/%1' },
  { '^tests/support/', 'cpp' }, { '^tests/fuzz/', 'fuzz' }, { '^tests/([^/]*)/', '%1' },
  { '^engine/([^/]*)/', '%1 fuzz whole/golden' },
  { '^lib/trinity/manual/', 'command/manual tree' }, { '^lib/trinity/_meta/', 'tree' },
  { '^lib/trinity/([^/]*)/', '%1 tree whole/golden whole/arguments command/reference' },
  { '^lib/', 'tree whole/golden whole/arguments command/reference' },
  { '^scripts/studies/([^/]*)', 'studies whole/scripts tree' },
  { '^scripts/study%.lua$', 'studies whole/scripts' }, { '^tests/golden/studies/', 'studies' },
  { '^scripts/(.*)%.lua$', [[whole/golden whole/scripts command/reference mention:'%1\b]] },
  { '^models/', 'graph cluster whole/golden' }, { '^README', 'command/manual tree' },
  { 'CMakeLists%.txt$', 'whole/embed whole/packages' }, { '^tests/', 'tree/leftovers' },
}

--- Chooses what one word of a call says.
local function choose_word(word)
  local text = word:match '^mention:(.*)'
  if word == 'cpp' then
    for job in pairs(cpp) do choose(job) end -- in any order: they are sorted by seconds and name
  elseif text then
    for _, path in ipairs(lines_of(('grep -lrE "%s" tests/lua --include=*_spec.lua'):format(text))) do
      choose('lua/' .. path:match '^tests/lua/(.*)_spec%.lua$')
    end
    for _, path in ipairs(lines_of(('grep -lrE "%s" tests --include=*_test.cpp'):format(text))) do
      choose_called(path:match '^tests/([^/]*)/', 'cpp')
    end
  elseif word == 'fuzz' then
    choose 'fuzz'
  else
    choose_called(word:match '^lua/(.*)' or word, word:find '^lua/' and 'lua' or nil)
  end
end

local function choose_changed(paths)
  for _, path in ipairs(paths) do
    for _, call in ipairs(calls) do
      local found = path:match(call[1])
      if found then
        for word in call[2]:gsub('%%1', (found:gsub('%%', '%%%%'))):gmatch '%S+' do choose_word(word) end
        for word in (also[found] or ''):gmatch '%S+' do choose_called(word, 'lua') end
        break
      end
    end
  end
  choose 'luacheck'
end

local function choose_touched(commit)
  choose_changed(lines_of(("git diff --name-only '%s' -- && git ls-files --others --exclude-standard"):format(commit)))
end

-- CPU seconds of the jobs that take a second at least, by tier: job -> { commit =, all =, waits = }.
local function read_times()
  local times = {}
  local file = io.open(times_path)
  for line in file and file:lines() or function() end do
    local job, commit, all, waits = line:match '^([^#%s]+)%s+(%S+)%s+(%S+)%s*(%S*)$'
    if job then times[job] = { commit = tonumber(commit), all = tonumber(all), waits = waits == 'waits' } end
  end
  if file then file:close() end
  return times
end

local function exists(job)
  return cpp[job] or job == 'fuzz' or job == 'luacheck' or core.exists(('%s/tests/%s_spec.lua'):format(home, job))
end

local function record(tier, path)
  local times, jobs = read_times(), {}
  for line in io.lines(path) do
    local job, processor_s, wall_s = line:match '^(%S+) (%S+) (%S+)$'
    if not times[job] then times[job] = { commit = 0, all = 0 } end
    processor_s, wall_s = tonumber(processor_s), tonumber(wall_s)
    times[job][tier] = processor_s
    times[job].waits = wall_s - processor_s > 5 and wall_s > 2 * processor_s
  end
  for job, found in pairs(times) do -- in any order: they are sorted below
    if exists(job) and math.max(found.commit, found.all) >= 1 then jobs[#jobs + 1] = job end
  end
  table.sort(jobs)
  local text = { '# CPU seconds of jobs (tests/jobs.lua) for a commit and for `test all`, and which ones wait.',
    '# `scripts/bootstrap test --record` and `test all --record` write it; jobs below a second are not listed.' }
  for _, job in ipairs(jobs) do
    local found = times[job]
    text[#text + 1] = ('%-34s %7.1f %7.1f%s'):format(job, found.commit, found.all, found.waits and ' waits' or '')
  end
  core.write_file(times_path, table.concat(text, '\n') .. '\n')
end

local function print_jobs(tier)
  local times = read_times()
  local function seconds(job) return times[job] and times[job][tier] or 0.5 end
  table.sort(listed, function(a, b)
    local a_s, b_s = seconds(a.job), seconds(b.job)
    if a_s ~= b_s then return a_s > b_s end
    return a.job .. a.words < b.job .. b.words
  end)
  for _, asked in ipairs(listed) do
    local waits = times[asked.job] and times[asked.job].waits
    print(('%s\t%s\t%s'):format(asked.job, waits and 'waits' or 'works', asked.words))
  end
end

local function quick_names()
  local list = {}
  for line in io.lines(home .. '/tests/quick.txt') do
    for name in line:match '^[^#]*':gmatch '%S+' do list[#list + 1] = name end
  end
  return list
end

local tier, what = arg[1], arg[2]
if tier == 'list' then
  local rooms = {}
  for _, room in pairs(cpp) do rooms[room] = true end
  local sorted = {}
  for room in pairs(rooms) do sorted[#sorted + 1] = room end -- in any order: they are sorted below
  table.sort(sorted)
  print('folders of C++ tests: ' .. table.concat(sorted, ' '))
  print('specs: ' .. table.concat(names, ' '))
elseif what == 'record' then
  record(tier, arg[3])
else
  if what == 'all' then choose_everything()
  elseif what == 'shared' then choose_shared()
  elseif what == 'touched' then choose_touched(arg[3])
  elseif what == 'changed' then choose_changed { select(3, unpack(arg)) }
  elseif what == 'quick' then
    for _, name in ipairs(quick_names()) do choose_named(name) end
    choose 'luacheck'
  else
    for i = 2, #arg do choose_named(arg[i]) end
  end
  print_jobs(tier)
end
