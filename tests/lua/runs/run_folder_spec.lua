-- Folders of runs: what is in them, names, status, resuming, workers, trouble with the disk; trinity runs and watch;
-- the progress line; TensorBoard's format.

local core = require 'trinity.core'
local json = require 'trinity.base.json'
local progress = require 'trinity.base.progress'
local run_metrics = require 'trinity.runs.metrics'
local run_state = require 'trinity.runs.state'
local tensorboard = require 'trinity.runs.tensorboard'
local trinity = require 'trinity'

local folder = temporary()
local runs = folder .. '/runs'

local function read_json(path) return json.decode(core.read_file(path), path) end

local exists = require('trinity.base.util').exists

--- Writes a script into the folder and returns its path.
local function script(name, text)
  core.write_file(('%s/%s.lua'):format(folder, name), text)
  return ('%s/%s.lua'):format(folder, name)
end

--- Runs the program with its runs in the folder: status and output.
local function run(arguments) return run_trinity(('%s --runs %s'):format(arguments, runs)) end

--- Runs scripts/NAME.lua in this process, which is ten times as fast as a program: status (0 or 2) and what it printed.
local function call(name, ...)
  local words, settings, printed, given = arg, run_state.settings, {}, { ... }
  given[#given + 1], given[#given + 2] = '--runs', runs
  local env = setmetatable({ print = function(...) printed[#printed + 1] = table.concat({ ... }, '\t') end },
    { __index = _G })
  rawset(_G, 'arg', given)
  local ok, message = pcall(setfenv(assert(loadfile(('%s/scripts/%s.lua'):format(root, name))), env))
  rawset(_G, 'arg', words)
  run_state.settings = settings
  if not ok and not (type(message) == 'table' and message.usage) then error(message, 0) end
  return ok and 0 or 2, ok and table.concat(printed, '\n') .. '\n' or message.message
end

local head = [[
local trinity = require 'trinity'
local options = trinity.options { seed = { default = 3 }, evaluations = { default = 300 } }
local problem = trinity.problem { graph = trinity.model('alexnet', { batch_size = 16 }),
  cluster = trinity.cluster 'p100x2', reward = function(m) return -m.step_time_s * options.seed end }
]]

--- The rows of a run without what clocks say.
local function rows_of(name)
  local rows = run_metrics.read(('%s/%s/metrics.jsonl'):format(runs, name))
  for i, row in ipairs(rows) do
    row.seconds = nil
    rows[i] = json.encode(row)
  end
  return rows
end

local function same_rows(a, b) expect(table.concat(rows_of(a), '\n')):equals(table.concat(rows_of(b), '\n')) end

describe('tensorboard', function()
  local function hex(text) return (text:gsub('.', function(c) return ('%02x'):format(c:byte()) end)) end
  it('has the CRC of RFC 3720 and the bytes that its reader takes', function()
    expect(tensorboard.crc32c '123456789'):equals(0xe3069283)
    expect(tensorboard.crc32c(('\0'):rep(32))):equals(0x8a9136aa)
    expect(tensorboard.crc32c(('\255'):rep(32))):equals(0x62a8ab43)
    -- Read by event_accumulator of tensorboard 2.21 as a/b = 0.25 and c = -3 at step 300, wall time 2.
    expect(hex(tensorboard.head(1.5))):equals('1800000000000000a37f4b2209000000000000f83f1a0d627261696e2e4576656e743a32'
      .. '2a28646c')
    expect(hex(tensorboard.scalars(2, 300, { 'a/b', 'c' }, { 0.25, -3 }))):equals('2400000000000000422b804d09000000000000004010ac'
      .. '022a160a0a0a03612f62150000803e0a080a016315000040c0d5ffd792')
  end)
end)

local explaining

--- The script of a run called `first`, and the folder of that.
local function first()
  if explaining then return explaining, runs .. '/first/' end
  explaining = script('explain', head .. [[
local comparison = trinity.compare(problem, { 'metis', 'random', 'trinity' },
  { evaluations = options.evaluations, seed = options.seed, trinity = { policy = 0.25 } })
trinity.run:log { step = 7, value = 0.1, note = 'a "b",c' }
comparison:find('trinity'):save(arg[1] == '--quiet' and arg[2] or trinity.run.path .. '/saved.json')
]])
  local status, output = run(explaining .. ' --run first --seed 5')
  if status ~= 0 then error(output) end
  return explaining, runs .. '/first/'
end

describe('a run', function()
  it('is read back: script, graph, cluster, reward, strategies', function() -- what else is there: golden_runs_spec.lua
    local path, at = first()
    expect(table.concat(read_json(at .. 'run.json').command, ' ')):matches 'trinity .*explain%.lua %-%-run first %-%-seed 5'
    expect(core.read_file(at .. 'script.lua')):equals(core.read_file(path))
    local reward = core.read_file(at .. 'problems/1/reward.lua')
    expect(reward):matches 'return %-m%.step_time_s %* options%.seed'
    expect(reward):matches '%-%- options%.seed = 5\n'
    local about = read_json(at .. 'problems/1/problem.json')
    local original = trinity.model('alexnet', { batch_size = 16 })
    local graph, cluster = trinity.model(at .. about.graph), trinity.cluster(at .. about.cluster_file)
    expect(graph.fingerprint):equals(original.fingerprint)
    expect(cluster.fingerprint):equals(trinity.cluster('p100x2').fingerprint)
    local problem = trinity.problem { graph = graph, cluster = cluster }
    expect(problem:bounds().step_time_s):equals(about.bounds.step_time_s)
    for id = 1, 3 do
      local search = read_json(('%ssearches/%d/search.json'):format(at, id))
      local found = problem:load(('%ssearches/%d/strategy.json'):format(at, id))
      expect(found.metrics.step_time_s):equals(search.best_step_time_s)
      expect(search.status):equals 'done'
    end
    expect(core.read_file(at .. 'searches/3/strategy.json')):equals(core.read_file(at .. 'saved.json'))
    local timelines = 0
    for id = 1, 3 do if exists(('%ssearches/%d/timeline.json'):format(at, id)) then timelines = timelines + 1 end end
    expect(timelines):equals(1)
  end)
  it('has rows as lines of JSON and as events', function()
    local _, at = first()
    local rows = run_metrics.read(at .. 'metrics.jsonl')
    local last = rows[#rows]
    expect(('%g %g %s'):format(last.step, last.value, last.note)):equals '7 0.1 a "b",c'
    expect(rows[#rows - 1].method):equals 'trinity'
    local learned = 0
    for _, row in ipairs(rows) do
      if row.entropy_devices then
        expect(row.method):equals 'trinity'
        learned = learned + 1
      end
    end
    expect(learned > 0):truthy()
    local files = 0
    for _, file in ipairs(core.list_folder(at)) do
      if file:match '^events' then
        files = files + 1
        local events = core.read_file(at .. file)
        expect(events:find('alexnet/p100x2/trinity/seed5/best_step_time_s', 1, true) ~= nil):truthy()
        expect(events:find('\nvalue\21', 1, true) == nil and events:find('value\21', 1, true) ~= nil):truthy()
      end
    end
    expect(files):equals(1)
  end)
  it('has a name that nobody else has, and no existing folder is touched', function()
    local path = script('name', head .. "trinity.methods.metis(problem)\n")
    os.execute(("for i in 1 2 3; do '%s' '%s' --quiet --runs '%s' & done; wait"):format(program, path, runs))
    for i = 1, 3 do
      expect(read_json(('%s/name-alexnet-p100x2-%d/run.json'):format(runs, i)).status):equals 'done'
    end
    expect(exists(runs .. '/name-alexnet-p100x2-4/run.json')):equals(false)
    first()
    local before = core.read_file(runs .. '/first/run.json')
    local status, output = run(path .. ' --run first')
    expect(status):equals(2)
    expect(output):matches "option '%-%-run': run 'first' exists already %("
    expect(core.read_file(runs .. '/first/run.json')):equals(before)
    for _, wrong in ipairs { '../x', '.x', 'a/b', '', ('x'):rep(121) } do
      expect(function() run_state.check_name(wrong) end):raises "option '%-%-run': expected a name of up to 120 letters"
    end
    run_state.check_name(('x'):rep(120))
    expect((run(path .. ' --run none'))):equals(0)
    run_trinity(([[-e "arg = { '--runs', '%s' } require('trinity').run:log { step = 1 }"]]):format(runs))
    expect(exists(runs .. '/none')):equals(false)
    for _, name in ipairs(core.list_folder(runs)) do expect(name:find '^command'):equals(nil) end
  end)
  it('says how it ended', function()
    local function status_of(name) return read_json(('%s/%s/run.json'):format(runs, name)) end
    local path = script('bang', "local trinity = require 'trinity'\ntrinity.run:log { step = 1 }\nerror 'bang'\n")
    expect((run(path))):equals(1)
    expect(status_of 'bang-1'.status):equals 'failed'
    expect(status_of 'bang-1'.error):matches 'bang%.lua:3: bang'
    expect((run(script('leave', "require('trinity').run:log { step = 1 }\nos.exit(3)\n")))):equals(3)
    expect(status_of 'leave-1'.error):equals 'exit status 3'
  end)
  it('names LibTorch and its BLAS where they were used', function()
    with_torch()
    local path = script('tensors', "local trinity = require 'trinity'\n"
      .. 'trinity.run:log { sum = trinity.tensor.new({ 1, 2 }):sum():item() }\n')
    expect((run(path))):equals(0)
    local about = read_json(runs .. '/tensors-1/run.json')
    expect(about.versions.libtorch):matches '^%d+%.%d+'
    expect(#about.blas > 0):truthy()
  end)
  it('leaves no folder where nothing was kept', function()
    expect((run(script('nothing', "require('trinity').parallel_map(2, function(i) return i end)\n")))):equals(0)
    expect(exists(runs .. '/nothing-1/run.json')):equals(false)
  end)
  it('goes on where kill -9 ended it, to the bytes of an unbroken one', function()
    local text = head .. [[
require('trinity.runs.checkpoints').least_s = 0.05
print(trinity.compare(problem, { 'random', 'trinity' }, { evaluations = options.evaluations, seed = options.seed,
  trinity = { policy = 0.25 } }))
]]
    local path = script('long', text)
    expect((run(path .. ' --evaluations 3000 --run whole --quiet'))):equals(0)
    local broken = runs .. '/broken'
    os.execute(("'%s' '%s' --evaluations 3000 --run broken --quiet --runs '%s' >/dev/null 2>&1 & child=$!; "
      .. "for i in $(seq 1 300); do [ -e '%s/searches/2/checkpoint.json' ] && break; sleep 0.02; done; kill -9 $child; wait")
      :format(program, path, runs, broken))
    expect(exists(broken .. '/searches/2/checkpoint.json')):truthy()
    local _, listed = call('runs', 'broken')
    expect(listed):matches 'broken  interrupted %(killed%)  long%.lua'
    local status, output = run 'runs resume broken'
    if status ~= 0 then error(output) end
    expect(read_json(broken .. '/searches/2/search.json').resumed_from >= 1):truthy()
    expect(#read_json(broken .. '/run.json').resumed_at):equals(1)
    for id = 1, 2 do
      for _, file in ipairs { 'strategy.json', 'curve.csv' } do
        local a, b = ('%s/whole/searches/%d/%s'):format(runs, id, file), ('%s/searches/%d/%s'):format(broken, id, file)
        expect(core.read_file(a) == core.read_file(b)):truthy()
      end
    end
    same_rows('whole', 'broken')
    status, output = run(path .. ' --evaluations 3000 --run broken --resume')
    expect(status):equals(2)
    expect(output):matches "run 'broken' is done"
    local about = read_json(broken .. '/run.json')
    about.status, about.ended_at = 'failed', nil
    core.write_file(broken .. '/run.json', core.to_json(about))
    core.write_file(path, text .. '-- changed\n')
    status, output = run(path .. ' --evaluations 3000 --run broken --resume')
    expect(status):equals(2)
    expect(output):matches 'the script has changed'
  end)
  it('goes on with the options that were given, whatever the script made of them', function()
    local path = script('filled_in', [[
local trinity = require 'trinity'
local options = trinity.options { rate = { default = 0 }, resume = { default = false } }
if options.rate == 0 then options.rate = 0.05 end
trinity.run:log { step = 1, rate = options.rate }
if not options.resume then error 'stopped' end
]])
    expect((run(path .. ' --run filled --quiet'))):equals(1)
    expect(read_json(runs .. '/filled/run.json').options.rate):equals(0)
    local status, output = run(path .. ' --run filled --rate 1 --resume')
    expect(status):equals(2)
    expect(output):matches 'expected rate = 0, as it was started, got 1'
    status, output = run 'runs resume filled --quiet'
    expect(output):equals ''
    expect(status):equals(0)
  end)
  it('is the same for any number of workers', function()
    local path = script('map', [[
local trinity = require 'trinity'
local options = trinity.options { workers = { default = 1 } }
local graph, cluster = trinity.model('alexnet', { batch_size = 16 }), trinity.cluster 'p100x2'
trinity.parallel_map(4, function(i)
  local problem = trinity.problem { graph = graph, cluster = cluster }
  local found = trinity.methods.random(problem, { evaluations = 100 * i, seed = i })
  trinity.run:log { step = i, reward = found.reward }
end, { workers = options.workers })
]])
    for _, workers in ipairs { 1, 3 } do
      expect((run(('%s --quiet --workers %d --run workers%d'):format(path, workers, workers)))):equals(0)
    end
    same_rows('workers1', 'workers3')
    expect(#rows_of 'workers3' > 8):truthy()
    expect(table.concat(core.list_folder(runs .. '/workers3/searches'), ' ')):equals 'm1i1-1 m1i2-1 m1i3-1 m1i4-1'
    expect(#core.list_folder(runs .. '/workers3/graphs')):equals(1)
  end)
end)

describe('trinity runs', function()
  it('lists, filters, sorts, shows and compares', function()
    first()
    run(script('bang', "require('trinity').run:log { step = 1 } error 'no'") .. ' --run bang')
    run(script('leave', "require('trinity').run:log { step = 1 } os.exit(3)") .. ' --run leave')
    run(script('other', head .. "trinity.compare(problem, { 'random' }, { evaluations = 9 })\n") .. ' --run other')
    local _, all = call('runs')
    expect(all):matches 'first +done +explain%.lua +alexnet +p100x2 +0%.%d+ s +%d%.%d+x'
    local _, failed = call('runs', 'failed', '--sort', 'name')
    expect(failed):matches '\nbang .*\nleave '
    expect(failed:find 'first'):equals(nil)
    local _, text = call('runs', '--json', 'first')
    local listed = json.decode(text)
    expect(#listed):equals(1)
    expect(listed[1].searches):equals(3)
    local _, shown = call('runs', 'show', 'first')
    expect(shown):matches '3 +trinity +5 +done'
    expect(shown):matches 'comparison: Of 3 methods'
    local _, compared = call('runs', 'compare', 'other', 'first')
    expect(compared):matches 'seed +3 +5\n'
    local elsewhere = read_json(runs .. '/first/run.json')
    elsewhere.machine.processor, elsewhere.versions.libtorch, elsewhere.name = 'Z80', '0.1', 'elsewhere'
    elsewhere.options.set, elsewhere.options.method_set = { 'layers=2', 'b' }, {}
    core.write_file(runs .. '/elsewhere/run.json', core.to_json(elsewhere))
    local _, same = call('runs', 'compare', 'elsewhere', 'elsewhere')
    expect(same):matches '^the same options, versions and CPU\n'
    expect(select(2, call('runs', 'show', 'elsewhere'))):matches '\n  set +%["layers=2","b"%]\n'
    local _, other = call('runs', 'compare', 'first', 'elsewhere')
    expect(other):matches '\nset +%- +%["layers=2","b"%]\n'
    expect(other):matches '\nprocessor +%S.- +Z80\n'
    expect(other):matches '\nversion of LibTorch +[%d.]+ +0%.1\n'
    core.remove_tree(runs .. '/elsewhere')
    expect(compared):matches '\nrandom +[%d.]+ s +[%d.]+ s +%d%.%d+'
    expect((call('runs', 'shw', 'x'))):equals(2)
    expect((call('runs', '--sort', 'nam'))):equals(2)
    local _, message = call('runs', 'show', 'frist')
    expect(message):matches "no run 'frist' in .*, did you mean 'first'%?"
  end)
  it('deletes runs and nothing else, running ones only with --force', function()
    core.write_file(runs .. '/precious/data.txt', 'x')
    expect((call('runs', 'delete', 'precious'))):equals(2)
    expect(exists(runs .. '/precious/data.txt')):truthy()
    local at, process = runs .. '/alive', core.process()
    core.write_file(at .. '/run.json', core.to_json { kind = 'trinity run 1', name = 'alive', status = 'running',
      pid = process.pid, process_start = process.start })
    local status, output = call('runs', 'delete', 'alive')
    expect(status):equals(2)
    expect(output):matches 'is running %(process %d+%); use %-%-force to delete it'
    expect((call('runs', 'delete', 'alive', '--force'))):equals(0)
    expect(exists(at .. '/run.json')):equals(false)
  end)
end)

describe('trinity runs watch', function()
  it('shows what a run does, and how it ended', function()
    local at, process = runs .. '/seen', core.process()
    core.write_file(at .. '/run.json', core.to_json { kind = 'trinity run 1', name = 'seen', status = 'running',
      pid = process.pid, process_start = process.start, now = { label = 'trinity', seed = 2, items = 4, done = 1, evaluations = 100,
        share = 0.25, best_step_time_s = 0.5, lower_bound_s = 0.25, evaluations_per_s = 50, left_s = 6 } })
    local _, text = run 'runs watch seen --once'
    expect(text):matches 'trinity seed 2  1/4 items  100 evaluations  best 0%.5 s %(2%.00x bound%)  50 evaluations/s  6 s left'
    first()
    local status, ended = run 'runs watch first'
    expect(status):equals(0)
    expect(ended):matches 'trinity  seed 5  step time [%d.]+ s  %d%.%d+x bound\nfirst: done after [%d.]+ s\nOf 3 methods'
    core.remove_tree(at)
  end)
end)

describe('the progress line', function()
  local ascii, unicode = { columns = 60, utf8 = false, colour = false }, { columns = 60, utf8 = true, colour = false }
  it('has a bar that respects locale and NO_COLOR', function()
    expect(progress.bar(0.5, 8, ascii)):equals '[####----]'
    expect(progress.bar(0.3125, 4, unicode)):equals '█▎──'
    expect(progress.bar(2, 2, unicode)):equals '██'
    expect(progress.bar(0.5, 2, { utf8 = true, colour = true })):equals '\27[36m█\27[2m─\27[0m'
  end)
  it('fits the width of the terminal', function()
    local parts = { 'step 10/100', 'best 0.4 s (1.30x bound)', 'reward 1.2345', '1000 evaluations/s', '12 s left' }
    for columns = 20, 200 do
      local line = progress.fit('trinity', parts, 0.1, { columns = columns, utf8 = false })
      expect(#line):below(columns)
      expect(line):matches 'trinity'
    end
    expect(progress.fit('trinity', parts, 0.1, { columns = 200, utf8 = false })):matches '^%[##%-+%]  trinity  step 10'
  end)
  it('is redrawn on a terminal, sparse elsewhere, and absent under --quiet', function()
    local path = script('shown', [[
local progress = require 'trinity.base.progress'
local core = require 'trinity.core'
require('trinity').options {}
local now = 0
core.clock_s = function() return now end
local line = progress.new 'work'
for second = 1, 7200 do
  now = second
  line:update { step = second, steps = 7200, share = second / 7200, evaluations = second }
end
progress.quiet = true -- as --quiet does
progress.new('quiet'):update { step = 1, steps = 2, share = 0.5, evaluations = 1 }
progress.note 'a note'
]])
    local _, text = run(path)
    local _, lines = text:gsub('\n', '')
    expect(lines >= 10 and lines <= 60):truthy()
    expect(text):matches '\nwork  step %d+/7200  1 evaluations/s  %d+:%d+ min left\n'
    expect(text:find 'quiet' or text:find 'a note'):equals(nil)
    local drawn = output_of(("LC_ALL=C NO_COLOR=1 TERM=xterm script -qec \"'%s' '%s'\" /dev/null"):format(program, path))
    if drawn == '' then skip 'no script(1) here' end
    expect(drawn):matches '\r\27%[K%[#*%-*%]  work  step %d+/7200'
    expect(drawn:find('\27[36m', 1, true)):equals(nil)
  end)
end)

describe('trinity.run', function()
  it('does nothing where no run is kept, but checks what it is given', function()
    expect(trinity.run.path):equals(nil)
    expect(trinity.run:result('table', { 1 })):equals(nil)
    trinity.run:log { step = 1 }
    expect(function() trinity.run:result('a/b', {}) end):raises "run:result: argument 1 %('kind'%): expected up to 64"
    expect(function() trinity.run:log { x = {} } end):raises "run:log: argument 1 %('fields'%): field 'x'"
    expect(function() return trinity.run.pth end):raises "no field 'pth'"
  end)
end)
