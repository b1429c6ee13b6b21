-- After a safe run of an untrusted script: its files, and everything else of the program used on them. Every attack
-- tries to have a file called PWNED made next to the run's folder, by a program that runs without --safe.

local core = require 'trinity.core'

local search = [[
local trinity = require 'trinity'
local options = trinity.options { 'A search.', evaluations = { default = 40, help = 'how many' } }
local problem = trinity.problem { graph = trinity.model 'vgg16', cluster = trinity.cluster 'p100x2' }
%s
trinity.methods.random(problem, { evaluations = options.evaluations, quiet = true })
]]

-- A folder with the untrusted script, and a function that runs programs in it: (text) -> output with status=N.
local function place(script)
  local folder = temporary()
  core.write_file(folder .. '/stranger.lua', script)
  return folder, function(words)
    return output_of(("cd '%s' && unset TRINITY_RUNS; timeout 100 '%s' %s 2>&1; echo status=$?"):format(folder, program, words))
  end
end

-- A run of the untrusted script that failed, so that it can be resumed.
local function failed_run(attack, options, words)
  local folder, run = place(search:format(attack) .. "error 'stopped'\n")
  local output = run(('--safe %s stranger.lua --run r %s'):format(options or '', words or ''))
  expect(output):matches 'stopped'
  return folder, run
end

local json = require 'trinity.base.json'

local function edit(path, change)
  local about = json.read(path)
  change(about)
  core.write_file(path, core.to_json(about))
end

local function unharmed(folder) expect(core.exists(folder .. '/PWNED')):equals(false) end

local evil = "local f = io and io.open('PWNED', 'w') if f then f:close() end return {}"

describe('runs resume', function()
  it('goes on with --safe, --no-strict, limits and threads, also where the script changed its words', function()
    local folder, run = failed_run([[print(io == nil, rawget(_G, "x"), trinity.system.threads(), options.evaluations)
      undeclared = 1
      for i = -9, -1 do arg[i] = nil end
      arg[0] = '-e' arg[1] = 'os.execute "touch PWNED"'
      if rawget(_G, 'io') then io.open('PWNED', 'w') end]],
      '--no-strict --threads 3 --time-limit 50 --memory-limit 900M', '--evaluations 7')
    expect(run 'runs resume r'):matches 'true\tnil\t3\t7\n.*stopped'
    local start = json.decode(core.read_seal(folder .. '/runs/r'))
    expect(table.concat(start.options, ' ')):equals '--safe --no-strict --threads 3 --time-limit 50 --memory-limit 900M'
    unharmed(folder)
    expect(run 'stranger.lua --run r --resume'):matches "run 'r' was made with %-%-safe" -- by hand
  end)
  it('takes nothing from a run.json or script.lua that the script wrote', function()
    local folder, run = failed_run([[
      print(rawget(_G, 'io') == nil)
      trinity.run:log { a = 1 }
      local path = trinity.run.path .. '/run.json'
      local about = trinity.files.json.read(path)
      about.safe, about.start = false, { options = {}, arguments = {}, script = 'stranger.lua', folder = about.folder }
      trinity.files.write(path, trinity.files.json.encode(about))]])
    expect(run 'runs resume r'):matches 'true\n.*stopped'
    local folder_of_other, run_other = failed_run [[trinity.run:log { a = 1 }
      trinity.files.write(trinity.run.path .. '/script.lua', 'evil')]]
    expect(run_other 'runs resume r'):matches 'can only resume with its own script'
    for _, at in ipairs { folder, folder_of_other } do unharmed(at) end
  end)
  it('runs no other script or command than the script, and takes no rights that the run did not have', function()
    local folder, run = failed_run ''
    for _, path in ipairs { 'evil.lua', 'runs/r/evil.lua' } do core.write_file(folder .. '/' .. path, evil) end
    local path, seal = folder .. '/runs/r/run.json', folder .. '/runs/r/.seal'
    local original, sealed = core.read_file(path), core.read_seal(folder .. '/runs/r')
    local function set_seal(text)
      core.remove_tree(seal)
      os.execute(("ln -s -- '%s' '%s'"):format(text:gsub("'", "'\\''"), seal))
    end
    --- Expects what `runs resume` says where `field` of run.json, or of the seal ('start.NAME'), is each of `values`, as in
    --- a folder from elsewhere.
    local function forged(field, values, pattern, also)
      for i = 1, values.n or #values do
        local about, start = json.decode(original), json.decode(sealed)
        local part = field:match '^start%.' and start or about
        part[field:match '[^.]*$'] = values[i]
        if also then also(start) end
        core.write_file(path, core.to_json(about))
        set_seal(core.to_json(start))
        local output = run 'runs resume r'
        unharmed(folder)
        if not output:find(pattern) or not output:find 'status=[12]\n$' or output:find('attempt to', 1, true) then
          error(('%s = %s: %s'):format(field, tostring(values[i]), output), 0)
        end
      end
    end
    local touch = "'; touch PWNED; '"
    forged('start.script', { 'evil.lua', 'sub/../evil.lua', 'runs/r/evil.lua', '../../../../../../bin/sh', 'search', '.', '', '-',
      '-l evil', '-eos.execute "touch PWNED"', 'stranger.lua\0evil.lua', touch }, 'status=2', function(start)
      start.safe, start.options, start.arguments = false, {}, {}
    end)
    forged('start.options', { {}, { x = '--safe' }, { '--safe', '-e', 'os.execute "touch PWNED"' }, { '--safe', '--', '-e' },
      { '--safe', 7 }, { { '--safe' } }, { '--threads', '1', '-lPWNED' }, 'x' }, 'status=2')
    forged('start.safe', { false, nil, 'true', n = 3 }, 'status=2')
    forged('start.folder', { '/', '/nowhere', 'relative', '', "/tmp" .. touch, '/tmp\0x' }, 'status=2')
    forged('command', { { 'trinity', '-e', 'os.execute "touch PWNED"' } }, 'stopped') -- which is shown, not run
    forged('ranks', { 0, 1.5, 1e300, 2 ^ 40, '2', { 2 } }, "field 'ranks': expected how many there were")
    forged('start.arguments', { 'x', { 1 }, { a = 'b' }, { 'a\0b' } }, "field 'arguments': expected a list of words")
    forged('options', { 'x' }, "field 'options': expected a table, got string 'x'")
    forged('pid', { {} }, "field 'pid': expected a number, got table")
    forged('kind', { 1 }, "expected a 'trinity run 1', or it is damaged")
    core.write_file(path, original)
    for _, text in ipairs { 'x', '7', '{"options": []' } do
      set_seal(text)
      expect(run 'runs resume r'):matches 'does not record how it was started.*status=2\n$'
    end
    set_seal(sealed)
    core.write_file(folder .. '/stranger.lua', evil)
    expect(run 'runs resume r'):matches "run 'r' can only resume with its own script"
    unharmed(folder)
  end)
end)

describe('a safe script writes', function()
  it('below the folder of its run, and nowhere else, also as the script of a run that is there', function()
    local folder, run = place(search:format [[
      trinity.run:log { a = 1 }
      for _, path in ipairs { trinity.run.path .. '/mine/a.json', 'b.json', 'runs/c.json', 'runs/other/d.json',
        trinity.run.path .. '/.lock', 'trinity/json.lua', 'search', '../e.json' } do
        print(path, (pcall(trinity.files.write, path, '{}')))
      end]])
    core.write_file(folder .. '/runs/other/mine.txt', 'mine')
    local written = 'mine/a.json\ttrue\nb.json\tfalse\nruns/c.json\tfalse\nruns/other/d.json\tfalse\n'
      .. '[^\n]*/.lock\tfalse\ntrinity/json.lua\tfalse\nsearch\tfalse\n%.%./e.json\tfalse\n'
    expect(run '--safe stranger.lua --run r'):matches('runs/r/' .. written .. 'status=0')
    expect(run '--safe stranger.lua'):matches('runs/stranger%-1/' .. written .. 'status=0') -- without a name, too
    expect(run '--safe stranger.lua --run r'):matches "run 'r' exists already.*status=2"
    expect(run '--safe stranger.lua --run none'):matches 'status=1' -- there is none to write in
    expect(output_of(("cd '%s' && find . -newer stranger.lua -type f -not -path './runs/*'; ls runs runs/other"):format(folder)))
      :equals 'runs:\nother\nr\nstranger-1\n\nruns/other:\nmine.txt\n'
  end)
  it('no seal below --write, and --write opens nothing with files of trinity', function()
    local build = program:match '^(.*)/'
    local folder, run = place [[
      local trinity = require 'trinity'
      for _, path in ipairs { 'runs/fake/run.json', 'runs/fake/script.lua', 'a.json' } do
        trinity.files.write(path, path:match 'run%.json' and trinity.files.json.encode { kind = 'trinity run 1', name = 'fake',
          status = 'failed', script = 'stranger.lua', folder = '.', safe = false,
          start = { options = {}, arguments = {}, script = 'stranger.lua' } } or trinity.files.read 'stranger.lua')
      end]]
    expect(run '--safe --write . stranger.lua --run none'):equals 'status=0\n'
    expect(run 'runs resume fake'):matches 'does not record how it was started.*status=2'
    for _, other in ipairs { build, build .. '/made-here', '/', root .. '/lib/trinity' } do
      if other:match 'made%-here' then os.execute(("mkdir -p '%s'"):format(other)) end
      expect(run(("--safe --write '%s' stranger.lua"):format(other)))
        :matches 'expected folders to write without files of trinity.*status=1\n$'
    end
    os.execute(("rmdir '%s/made-here'"):format(build))
    unharmed(folder)
  end)
end)

it('a result does not take the name of the record', function()
  local _, run = place(search:format [[
    for _, name in ipairs { 'run', '../run', '.lock', 'a/run' } do
      print(name, (pcall(trinity.run.result, trinity.run, name, { 1 })), (pcall(trinity.run.result, trinity.run, 'a', { 1 }, nil, name)))
    end
    trinity.run:result('kept', { 1 })]])
  local output = run '--safe stranger.lua --run r'
  expect(output):matches 'run\tfalse\tfalse\n%.%./run\tfalse\tfalse\n%.lock\tfalse\tfalse\na/run\tfalse\tfalse\n'
  expect(output:find('given up', 1, true)):equals(nil)
  expect(run 'runs show r --json'):matches '"kept"'
end)

it('files left next to a script do not replace modules of the library, of LuaJIT, or for commands', function()
  local folder, run = place 'print(require("trinity").files.json.encode({ 1 }), require "jit.v" ~= nil)'
  for _, path in ipairs { 'trinity/json.lua', 'trinity/init.lua', 'trinity.lua', 'trinity/core.lua', 'trinity/base/util.lua',
    'jit/v.lua', 'search', 'report', 'table3', 'trinity/mine.lua' } do
    core.write_file(folder .. '/' .. path, evil)
  end
  expect(run 'stranger.lua'):matches '%[%s*1%s*%]\ttrue\nstatus=0'
  expect(run '-jv=/dev/null stranger.lua'):matches 'status=0'
  for _, words in ipairs { '-l trinity.mine', 'search --help', 'runs --help', 'info --help', "-e 'require \"trinity.mine\"'" } do
    run(words)
  end
  unharmed(folder)
end)

it('a run folder is data, which every command reads without running any of it', function()
  local folder, run = failed_run ''
  for _, path in ipairs { 'evil.lua', 'trinity.lua', 'trinity/init.lua', 'searches/1/init.lua', 'report.lua', 'model.lua' } do
    core.write_file(folder .. '/runs/r/' .. path, evil)
  end
  for _, words in ipairs { 'runs', 'runs show r', 'runs compare r r', 'runs --json', 'runs watch --once r' } do
    expect(run(words)):matches 'status=%d'
  end
  for _, graph in ipairs { 'evil.lua', '../../runs/r/evil.lua', 'graphs/../evil.lua', 'vgg16' } do
    edit(folder .. '/runs/r/problems/1/problem.json', function(about) about.graph = graph end)
    expect(run 'runs report runs/r --output page.html'):matches 'status=0'
  end
  unharmed(folder)
end)

describe('a forged run is shown, whatever its fields hold, and makes no rows of its own:', function()
  it('a run.json', function()
    local folder, run = failed_run 'trinity.compare(problem, { "random" }, { evaluations = 5, quiet = true })'
    os.execute(("cp -r '%s/runs/r' '%s/runs/other'"):format(folder, folder))
    edit(folder .. '/runs/r/run.json', function(about)
      about.command, about.options, about.name = { 'a\nforged  done', {}, true }, { 'x', { 1 } }, { 'r' }
      about.model, about.error = 'm\nforged-run  done', 'e\nforged'
    end)
    edit(folder .. '/runs/r/results/comparison.json', function(result) result.data.rows[1].runs = { 7, 'x', { search = {} } } end)
    for _, words in ipairs { 'runs', 'runs show r', 'runs compare r other', 'runs watch --once r', 'runs report runs/r' } do
      local output = run(words)
      expect(output):matches 'status=0\n$'
      expect(output:find '\n%s*forged'):equals(nil)
    end
    expect(run 'runs'):matches 'm\\x0Aforged%-run  done'
  end)
  it('searches', function()
    local folder, run = failed_run 'trinity.methods.random(problem, { evaluations = 5, quiet = true })'
    local path = folder .. '/runs/r/searches/1/search.json'
    for _, value in ipairs { {}, { 1, 2 }, { a = { b = { 1 } } }, '\27[31m\r', 1e308, -1, false } do
      local about = json.read(path)
      for field in require('trinity').system.sorted_pairs(about) do
        if field ~= 'kind' and field ~= 'id' then about[field] = value end
      end
      core.write_file(path, core.to_json(about))
      local function shown(words)
        local output = run(words)
        expect(output):matches 'status=0\n$'
        expect(output:find '[\27\r]'):equals(nil)
      end
      for _, words in ipairs { 'runs', 'runs show r', 'runs watch --once r' } do shown(words) end
      about.best_step_time_s = 1
      core.write_file(path, core.to_json(about))
      shown 'runs compare r r'
    end
  end)
end)
