-- After a safe run: what a stranger's script left behind, and everything else of the program used on it. Every attack
-- tries to have a file called PWNED made beside the run's folder, by a program that runs without --safe.

local core = require 'trinity.core'

local search = [[
local trinity = require 'trinity'
local options = trinity.options { 'A search.', evaluations = { default = 40, help = 'how many' } }
local problem = trinity.problem { graph = trinity.model 'vgg16', cluster = trinity.cluster 'p100x2' }
%s
trinity.methods.random(problem, { evaluations = options.evaluations, quiet = true })
]]

-- A folder with stranger.lua, and what runs programs in it: (text) -> output with status=N.
local function place(script)
  local folder = temporary()
  core.write_file(folder .. '/stranger.lua', script)
  return folder, function(words)
    return output_of(("cd '%s' && unset TRINITY_RUNS; timeout 100 '%s' %s 2>&1; echo status=$?"):format(folder, program, words))
  end
end

-- A run of stranger.lua that failed, so that it can be resumed.
local function failed_run(attack, options)
  local folder, run = place(search:format(attack) .. "error 'stopped'\n")
  local output = run(('--safe %s stranger.lua --run r'):format(options or ''))
  expect(output):matches 'stopped'
  return folder, run
end

local function edit(folder, change)
  local path = folder .. '/runs/r/run.json'
  local about = require('trinity.base.json').read(path)
  change(about)
  core.write_file(path, core.to_json(about))
end

local function unharmed(folder) expect(core.exists(folder .. '/PWNED')):equals(false) end

describe('runs resume', function()
  it('goes on with --safe, --no-strict, limits and threads', function()
    local folder, run = failed_run('print(io == nil, rawget(_G, "x"), trinity.threads()) undeclared = 1',
      '--no-strict --threads 3 --time-limit 50 --memory-limit 900M')
    local output = run 'runs resume r'
    expect(output):matches 'true\tnil\t3\n'
    expect(output):matches 'stopped'
    local about = require('trinity.base.json').read(folder .. '/runs/r/run.json')
    expect(table.concat(about.start.options, ' ')):equals '--safe --no-strict --threads 3 --time-limit 50 --memory-limit 900M'
  end)
  it('goes on safely where the script changed its words', function()
    local folder, run = failed_run [[for i = -9, -1 do arg[i] = nil end
      arg[0] = '-e' arg[1] = 'os.execute "touch PWNED"'
      if rawget(_G, 'io') then io.open('PWNED', 'w') end]]
    expect(run 'runs resume r'):matches 'stopped'
    unharmed(folder)
  end)
  it('runs no other command than that of the script', function()
    for _, change in ipairs {
      function(about) about.command = { 'trinity', '-e', 'os.execute "touch PWNED"' } end,
      function(about) about.start.options = { '-e', 'os.execute "touch PWNED"' } end,
      function(about) about.start.options = { '--threads', '1', '-lPWNED' } end,
      function(about) about.start.script = '-eos.execute "touch PWNED"' end,
      function(about) about.start.script = "'; touch PWNED; '" end,
      function(about) about.folder = "/tmp'; touch PWNED; '" end,
      function(about) about.start.arguments = { "'; touch PWNED; '" } end,
      function(about) about.start.options = 'x' end,
      function(about) about.start = nil end } do
      local folder, run = failed_run ''
      edit(folder, change)
      expect(run 'runs resume r'):matches 'status=[12]\n$'
      unharmed(folder)
    end
  end)
  it('does not go on without --safe by hand either', function()
    local _, run = failed_run ''
    expect(run 'stranger.lua --run r --resume'):matches "run 'r' was made with %-%-safe"
  end)
end)

describe('a safe script writes', function()
  it('below the folder of its run, and nowhere else', function()
    local folder, run = place(search:format [[
      trinity.run:log { a = 1 }
      for _, path in ipairs { trinity.run.path .. '/mine/a.json', 'b.json', 'runs/c.json', 'runs/other/d.json',
        trinity.run.path .. '/run.json', trinity.run.path .. '/script.lua', trinity.run.path .. '/.lock',
        trinity.run.path .. '/x/run.json', 'trinity/json.lua', 'search', '../e.json' } do
        print(path, (pcall(trinity.files.write, path, '{}')))
      end]])
    expect(run '--safe stranger.lua --run r'):matches('runs/r/mine/a.json\ttrue\nb.json\tfalse\nruns/c.json\tfalse\n'
      .. 'runs/other/d.json\tfalse\nruns/r/run.json\tfalse\nruns/r/script.lua\tfalse\nruns/r/.lock\tfalse\n'
      .. 'runs/r/x/run.json\tfalse\ntrinity/json.lua\tfalse\nsearch\tfalse\n%.%./e.json\tfalse\n')
    expect(output_of(("cd '%s' && find . -newer stranger.lua -type f -not -path './runs/r/*'"):format(folder))):equals ''
  end)
  it('no record of a run below --write, and nothing beside the program', function()
    local build = program:match '^(.*)/'
    local _, run = place(([[
      local trinity = require 'trinity'
      for _, path in ipairs { 'runs/fake/run.json', 'a.json', '%s/trinity', '%s/x.json' } do
        print((pcall(trinity.files.write, path, '{}')))
      end]]):format(build, build))
    expect(run(("--safe --write . --write '%s' --write / stranger.lua"):format(build)))
      :equals 'false\ntrue\nfalse\nfalse\nstatus=0\n'
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

describe('files left beside a script', function()
  local evil = "local f = io and io.open('PWNED', 'w') if f then f:close() end return {}"
  it('do not stand for modules of the library, of LuaJIT, or for commands', function()
    local folder, run = place 'print(require("trinity").json.encode({ 1 }), require "jit.v" ~= nil)'
    for _, path in ipairs { 'trinity/json.lua', 'trinity/init.lua', 'trinity.lua', 'trinity/files/json.lua', 'trinity/core.lua',
      'trinity/base/util.lua', 'jit/v.lua', 'jit/bc.lua', 'search', 'runs', 'report', 'table3', 'pase', 'trinity/mine.lua' } do
      core.write_file(folder .. '/' .. path, evil)
    end
    expect(run 'stranger.lua'):matches '%[%s*1%s*%]\ttrue\nstatus=0'
    expect(run '-jv=/dev/null stranger.lua'):matches 'status=0'
    for _, words in ipairs { '-l trinity.mine', 'search --help', 'runs --help', 'report --help', 'table3 --help',
      'pase --help', "-e 'require \"trinity.mine\"'" } do run(words) end
    unharmed(folder)
  end)
end)

describe('a run folder is data', function()
  it('whose graph a report does not run', function()
    local folder, run = failed_run ''
    core.write_file(folder .. '/runs/r/evil.lua', "io.open('PWNED', 'w'):close() return {}")
    for _, graph in ipairs { 'evil.lua', '../../runs/r/evil.lua', 'graphs/../evil.lua', 'graphs/evil.lua', 'vgg16' } do
      local path = folder .. '/runs/r/problems/1/problem.json'
      local about = require('trinity.base.json').read(path)
      about.graph = graph
      core.write_file(path, core.to_json(about))
      expect(run 'report runs/r --out page.html'):matches 'status=0'
    end
    unharmed(folder)
  end)
  it('that every command reads without running any of it', function()
    local folder, run = failed_run ''
    for _, path in ipairs { 'trinity.lua', 'trinity/init.lua', 'searches/1/init.lua', 'report.lua', 'model.lua' } do
      core.write_file(folder .. '/runs/r/' .. path, "io.open('PWNED', 'w'):close() return {}")
    end
    for _, words in ipairs { 'runs', 'runs show r', 'runs compare r r', 'runs --json', 'watch --once r', 'report runs/r' } do
      expect(run(words)):matches 'status=%d'
    end
    unharmed(folder)
  end)
end)

it('the objects that a script is handed have no class behind them, and a search no record', function()
  local _, run = place(search:format [[
    local search = require 'trinity.search'
    local function inner(what, object)
      for _, name in ipairs { '__index', '__newindex', '__tostring', '__call', '__gc' } do
        local ok, found = pcall(function() return object[name] end)
        if ok and found ~= nil then return print(what, true) end
      end
      print(what, false)
    end
    search.run('mine', problem, search.options('mine', {}, { evaluations = 3, quiet = true }), function(self)
      self:evaluate { problem:placement() }
      inner('search', self)
      inner('progress', self.progress)
      print('record', self.record)
    end)
    local found = trinity.methods.random(problem, { evaluations = 3, quiet = true })
    for name, object in pairs { problem = problem, graph = problem.graph, cluster = problem.cluster, strategy = found,
      run = trinity.run, builder = trinity.graph.new { name = 'g' }, devices = trinity.devices, metrics = found.metrics,
      placement = found.placement, options = search.declared, policy = trinity.daso.cycling,
      timeline = problem:timeline(found.placement), stream = trinity.random(1, 'x'), layers = trinity.layers.new 'x',
      topology = trinity.topology.new(), depth = problem.graph.depth, library = trinity, methods = trinity.methods,
      comparison = trinity.compare(problem, { 'random' }, { evaluations = 2, quiet = true }) } do inner(name, object) end]])
  local output = run '--safe stranger.lua --run none'
  expect(output):matches 'status=0'
  expect(output):matches 'record\tnil'
  expect(select(2, output:gsub('\tfalse\n', ''))):equals(21)
  expect(output:find('\ttrue\n', 1, true)):equals(nil)
end)

describe('a forged run.json', function()
  -- What `runs resume` says of a run whose run.json was changed.
  local function resumed(change, before)
    local folder, run = failed_run ''
    edit(folder, change)
    if before then before(folder) end
    local output = run 'runs resume r'
    unharmed(folder)
    expect(output:find('attempt to', 1, true)):equals(nil)
    return output
  end
  it('starts no other script, whatever it names', function()
    local evil = "io.open('PWNED', 'w'):close()"
    for _, script in ipairs { 'evil.lua', './evil.lua', 'sub/../evil.lua', 'runs/r/evil.lua', '../../../../../../bin/sh', 'launch',
      'search', 'runs', '.', '', '-', '--', '-l evil', 'stranger.lua\0evil.lua' } do
      expect(resumed(function(about)
        about.start.script, about.safe, about.start.options = script, false, {}
        about.start.arguments = script == 'launch' and { '-n', '1', 'evil.lua' } or {}
      end, function(folder)
        core.write_file(folder .. '/evil.lua', evil)
        core.write_file(folder .. '/runs/r/evil.lua', evil)
      end)):matches 'status=2\n$'
    end
  end)
  it('does not go on where its script has changed, or its folder', function()
    expect(resumed(function() end, function(folder) core.write_file(folder .. '/stranger.lua', "io.open('PWNED', 'w')") end))
      :matches "run 'r' goes on with its own script alone"
    for _, path in ipairs { '/', '/nowhere', 'relative', '', "/tmp'; touch PWNED; '", '/tmp\0x' } do
      expect(resumed(function(about) about.folder = path end)):matches 'status=2\n$'
    end
  end)
  it('takes no rights that it did not have', function()
    for _, change in ipairs {
      function(about) about.start.options = {} end,
      function(about) about.start.options = { x = '--safe' } end,
      function(about) about.safe = false end,
      function(about) about.safe = nil end,
      function(about) about.safe = 'true' end,
      function(about) about.start.options = { '--safe', '-e', 'os.execute "touch PWNED"' } end,
      function(about) about.start.options = { '--safe', '--', '-e' } end,
      function(about) about.start.options = { '--safe', 7 } end,
      function(about) about.start.options = { { '--safe' } } end } do
      expect(resumed(change)):matches 'status=2\n$'
    end
  end)
  it('with numbers and kinds that it never has is refused by the name of its field', function()
    for _, ranks in ipairs { 0, -1, 1.5, 1e300, 2 ^ 40, '2', true, { 2 } } do
      expect(resumed(function(about) about.ranks = ranks end)):matches "field 'ranks': expected how many there were"
    end
    for _, words in ipairs { 'x', 7, { 1 }, { a = 'b' }, { 'a\0b' }, { {} } } do
      expect(resumed(function(about) about.start.arguments = words end)):matches "field 'start.arguments': expected a list of words"
    end
    for _, start in ipairs { 'x', 1, true } do
      expect(resumed(function(about) about.start = start end)):matches "field 'start': expected how the run was started"
    end
  end)
  it('is shown, whatever its fields hold, and makes no rows of its own', function()
    local folder, run = failed_run 'trinity.compare(problem, { "random" }, { evaluations = 5, quiet = true })'
    os.execute(("cp -r '%s/runs/r' '%s/runs/other'"):format(folder, folder))
    edit(folder, function(about)
      about.command, about.options, about.name = { 'a\nforged  done', {}, true }, { 'x', { 1 } }, { 'r' }
      about.model, about.error = 'm\nforged-run  done', 'e\nforged'
    end)
    local path = folder .. '/runs/r/results/comparison.json'
    local result = require('trinity.base.json').read(path)
    result.data.rows[1].runs = { 7, 'x', { search = {} } }
    core.write_file(path, core.to_json(result))
    for _, words in ipairs { 'runs', 'runs show r', 'runs compare r other', 'watch --once r', 'report runs/r' } do
      local output = run(words)
      expect(output):matches 'status=0\n$'
      expect(output:find '\n%s*forged'):equals(nil)
    end
    expect(run 'runs'):matches 'm\\x0Aforged%-run  done'
  end)
  it('and forged searches are shown, whatever their fields hold', function()
    local folder, run = failed_run 'trinity.methods.random(problem, { evaluations = 5, quiet = true })'
    local path = folder .. '/runs/r/searches/1/search.json'
    for _, value in ipairs { {}, { 1, 2 }, { a = { b = { 1 } } }, '\27[31m\r', 1e308, -1, false } do
      local about = require('trinity.base.json').read(path)
      for field in require('trinity').sorted_pairs(about) do
        if field ~= 'kind' and field ~= 'id' then about[field] = value end
      end
      core.write_file(path, core.to_json(about))
      local function shown(words)
        local output = run(words)
        expect(output):matches 'status=0\n$'
        expect(output:find '[\27\r]'):equals(nil)
      end
      for _, words in ipairs { 'runs', 'runs show r', 'watch --once r' } do shown(words) end
      about.best_step_time_s = 1
      core.write_file(path, core.to_json(about))
      shown 'runs compare r r'
    end
  end)
end)

describe('files that a safe script left', function()
  local function word(number) -- eight bytes, the least first
    local bytes = {}
    for i = 1, 8 do bytes[i], number = string.char(number % 256), math.floor(number / 256) end
    return table.concat(bytes)
  end
  local mark = '\27[31m\7\194\155\226\128\174'
  local code = "os.execute 'touch PWNED' io.open('PWNED', 'w'):close() return {}"
  local contents = { '', code, mark .. '\n' .. mark, ('['):rep(200000), ('{"a":'):rep(200000), '{"format":"trinity-strategy' .. mark .. '"}',
    word(2 ^ 52) .. '{}', word(8) .. '{"x": 7}', word(60) .. '{"x":{"dtype":"F32","shape":[1e18],"data_offsets":[0,4e18]}}  ',
    'PK\3\4' .. ('\255'):rep(60) .. 'PK\5\6' .. ('\255'):rep(18), '{"traceEvents":[{"ph":"X","name":"' .. mark .. '","ts":1e308,"dur":-1}],'
      .. '"nodes":[{"id":1e300}],"model_type":"llama","hidden_size":1e300,"devices":[{}],"problem":{"nodes":7}}', '1,2,' .. mark .. '\n1e999,nan,\n' }
  -- FILE is what was left, below the folder of its run.
  local uses = { 'timeline --model vgg16 --cluster p100x2 --strategy FILE', 'simulate --model vgg16 --strategy FILE',
    'export --model vgg16 --cluster p100x2 --format placement --strategy FILE', 'simulate --model vgg16 --schedule_csv FILE',
    'execute --model mlp --steps 1 --warm_up 0 --strategy FILE', 'execute --model mlp --steps 1 --load FILE',
    'execute --model mlp --steps 1 --checkpoint FILE', 'execute --model mlp --epochs 1 --data FILE', 'info FILE', 'plan FILE',
    'export --model FILE', 'select FILE', 'export --model vgg16 --cluster p100x2 --format autoparallel --nodes FILE',
    'simulate --model vgg16 --cluster FILE', 'train --graphs alexnet:8 --clusters p100x2 --rounds 1 --start FILE --save out.w',
    'search --model alexnet --cluster p100x2 --evaluations 4 --method_set rank=FILE', 'fidelity strategies --cases FILE',
    'fidelity collectives --rows FILE', 'fidelity published --rows FILE', 'fidelity vtrain --rows FILE', 'pipeline FILE --devices 2',
    'fidelity vtrain --rows runs.csv --cluster own.lua --values FILE' }
  -- What the user keeps beside it.
  local beside = { ['own.lua'] = "return function(count) return require('trinity.fidelity.vtrain_rows').cluster_spec(count) end",
    ['runs.csv'] = '# GPUs,global batch,micro batch,hidden size,attention heads,# layers,sequence length,tensor parallelism,'
      .. 'data parallelism,pipeline parallelism,iteration time (ms)\n16,32,1,64,16,4,32,2,8,1,5\n' }
  -- Every command on one of them, by the endings that its readers know.
  local function used(content, endings)
    local folder = temporary()
    for name, text in require('trinity').sorted_pairs(beside) do core.write_file(folder .. '/' .. name, text) end
    core.write_file(folder .. '/stranger.lua', ("local t = require 'trinity' t.run:log { a = 1 } for _, e in ipairs { %s } do "
      .. "t.files.write(t.run.path .. '/mine/x' .. e, t.files.read 'content') end"):format("'" .. table.concat(endings, "', '") .. "'"))
    core.write_file(folder .. '/content', content)
    local made = output_of(("cd '%s' && unset TRINITY_RUNS; '%s' --safe stranger.lua --run r 2>&1; echo status=$?"):format(folder, program))
    expect(made):matches 'status=0\n$'
    for _, ending in ipairs(endings) do
      for _, words in ipairs(uses) do
        local line = words:gsub('FILE', 'runs/r/mine/x' .. ending)
        local output = output_of(("cd '%s' && unset TRINITY_RUNS; timeout -k 1 60 '%s' --memory-limit 2G %s --runs none 2>&1; echo status=$?")
          :format(folder, program, line))
        if not output:match 'status=[012]\n$' or output:find '[\27\7]' or output:find('\194\155', 1, true)
          or output:find 'stack traceback' or output:find 'attempt to' and not output:find 'mine/x[.%w]*:1: attempt to index' then
          error(('%s on %q: %s'):format(line, content:sub(1, 60), output:sub(-400)), 0)
        end
      end
    end
    unharmed(folder)
  end
  for i, content in ipairs(contents) do
    it(('are data to every command, %d'):format(i), function()
      with_torch()
      used(content, { i % 2 == 0 and '.json' or ({ '.pt2', '.safetensors', '.csv', '.onnx', '' })[1 + i % 5] })
    end)
  end
end)
