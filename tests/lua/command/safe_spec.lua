-- --safe, one test a wall: attempts of a script to reach what it must not (each piece ends with an error or with nil when it
-- is refused; anything else is an escape), what it reaches all the same, limits from outside, options and runs.

local core = require 'trinity.core'

-- Groups of pieces: what the error of each must say, or false where each must give nil or false without an error.
local no_module = 'safe scripts have trinity and its public modules only'
local no_path = '%(%-%-safe opens [^\n]* for reading and [^\n]* for writing; %-%-write FOLDER opens another%)'
local attempts = {
  { no_module,
    'return require "ffi"',
    'return require "jit.util"',
    'return require "string.buffer"',
    'return require "trinity.core"',
    'return require "trinity.command.safe"',
    'return require "trinity...core"',
    'return require "trinity/core"',
    'return require "trinity._meta.trinity"',
    'return require "../tests/lua/run"',
    'return require "trinity.\0core"',
    'return require("trinity.report.read")',
    'return require("trinity.report.plot")',
    'return require("trinity.base.serialise").decode("x")',
    'return require("trinity.runs.folder")' },
  { 'require: expected the name of a module',
    'return require(setmetatable({}, { __tostring = function() return "ffi" end }))' },
  -- Code: what it sees is `walk`, below.
  { false,
    'return load("\27LJ\2\2")',
    'return load(function() return "\27LJ" end, "x", "b")',
    'return loadstring("\27LJ\2\2")',
    'return load("return io", "x", "bt")()',
    'return loadstring("return debug")()',
    'return load("return _G", "x", "t")() ~= _G',
    'return coroutine.wrap(function() return load("return io")() end)()',
    'return getfenv or setfenv or newproxy or module or string.dump or rawget(_G, "package")' },
  -- Metatables.
  { false,
    [[ for _, value in ipairs { "", trinity.graph.new { name = "g" }, problem, problem.graph, problem.handle, placement, 1LL } do
         if type(getmetatable(value)) == "table" then return value end
       end
       return getmetatable(coroutine.create(print)) ]] },
  { false, [[ -- objects of every kind show no class, and a search no record
      local search, found = require 'trinity.search', trinity.methods.random(problem, { evaluations = 3, quiet = true })
      local objects = { problem, problem.graph, problem.cluster, found, trinity.run, trinity.graph.new { name = 'g' }, trinity.devices,
        found.metrics, found.placement, search.declared, problem:timeline(found.placement),
        trinity.random(1, 'x'), trinity.graph.layers.new 'x', trinity.devices.topology.new(), problem.graph.depth, trinity, trinity.methods,
        trinity.compare(problem, { 'random' }, { evaluations = 2, quiet = true }) }
      search.run('mine', problem, search.options('mine', {}, { evaluations = 3, quiet = true }), function(self)
        self:evaluate { problem:placement() }
        objects[20], objects[21], objects[22] = self, self.progress, { __gc = rawget(self, 'record') }
      end)
      for i = 1, 22 do
        for _, name in ipairs { '__index', '__newindex', '__tostring', '__call', '__gc' } do
          local ok, value = pcall(function() return objects[i][name] end)
          if ok and value ~= nil then return i .. name end
        end
      end ]] },
  { 'attempt to index a string value', 'getmetatable("").__index = nil return true' },
  { 'table expected, got', 'return rawset(getmetatable(""), "__index", {})', 'return setmetatable(problem.handle, {})' },
  { "attempt to index field '__index' %(a nil value%)", 'return getmetatable(problem).__index.evaluate' },
  -- Objects that the library shares, and functions that it calls.
  { false,
    'string.format = nil return not pcall(problem.evaluate, problem, placement)',
    'ipairs, pairs, error, pcall, type = nil return tostring(problem.graph) == nil',
    'trinity.model = nil return require("trinity").model == nil and not pcall(require, "trinity.graph.model")',
    [[ local got
       local class = require("trinity.methods")
       class.finish = function(...) got = ... end
       trinity.methods.round_robin(problem, { quiet = true })
       return got ]] },
  -- Memory.
  { "has no member named 'x'", 'return placement.data[1e9].x' },
  { 'attempt to write to constant location', 'placement.data[1] = placement.data[2] return true',
    'placement.length = 1e9 return true' },
  { 'attempt to perform arithmetic on', 'return (placement.data + 1e9)[0] + 1', 'return metrics.device[1e9] + 1' },
  { 'expected metrics, got table', 'return metrics.memory_bytes({ device_count = 9, device = 4096 }, 1)' },
  { 'expected a .*, got cdata',
    'return problem:evaluate(0x7fffffff74723101ULL)',
    'return problem.handle:evaluate({ placement }, { 0x0000000274723104ULL })' },
  { 'this span points at an array already',
    'local v = problem.graph.handle:numbers "depth" v:span(problem.graph.unit_of) return true' },
  { 'is outside 1 to %d+', 'return placement[1e9]', 'return placement[0 / 0]', 'placement[-1e9] = 1 return true' },
  { 'expected a graph of the engine', 'return trinity.graph.wrap(1)' },
  { false, 'return os.date(("%c"):rep(2 ^ 20)) == nil', 'return #(("x"):rep(2 ^ 60)) > 1000' },
  { 'too many results to unpack', 'return unpack({}, 1, 1e8)' },
  { "safe scripts have 'collect', 'count' and 'step'", 'return collectgarbage "stop"' },
  -- Files, by functions that read and write: tests/base/confine_test.cpp tries the walls themselves.
  { no_path,
    'return trinity.files.read "/etc/passwd"',
    'return trinity.files.read "/proc/self/environ"',
    'return trinity.files.list "/tmp"',
    'return trinity.model "../outside.lua"',
    'return trinity.model "out/outside.json"',
    'return trinity.model "/proc/self/cwd/../outside.json"',
    'return trinity.model "./inside/../../outside.json"',
    'return trinity.cluster "../outside.lua"',
    'return problem:load "../outside.json"',
    'return trinity.search.rankers.load "../outside.json"',
    'return trinity.tensor.load "../outside.json"',
    'return trinity.profile.load "../outside.json"',
    'trinity.plot.csv("../escape.csv", { "a" }, { { 1 } }) return true',
    'return trinity.plot.lines("../escape", { x = "x", y = "y", series = { { points = { { 1, 2 } } } } })',
    'return trinity.tensor.save("../escape", { x = trinity.tensor.ones { 2 } })',
    'problem.graph:save "/tmp/trinity-escape.json" return true',
    'problem.graph:save "../escape.json" return true',
    'problem.graph:save "out/escape.json" return true',
    'problem.graph:save "/proc/self/cwd/../escape.json" return true',
    'problem.graph:save(home .. "/models/escape.json") return true' },
  { 'sees nothing', 'return trinity.model "evil.lua"', 'return trinity.cluster "evil.lua"' }, -- what the script sees
  { '%-%-safe opens no hidden files', 'problem.graph:save "sub/.hidden/x.json" return true', 'return problem:load ".secret.json"' },
  { 'the file name contains a zero byte', 'problem.graph:save "escape.json\0.txt" return true' },
  { 'expected the name of a file or folder', 'problem.graph:save "" return true' },
  -- Processes.
  { 'safe scripts start no processes and join no job', 'return trinity.dist.init()' },
  { 'cannot send a function', 'return trinity.parallel_map(2, function() return print end, { workers = 2, quiet = true })' },
  { false,
    [[ local made = trinity.parallel_map(2, function() return problem end, { workers = 2, quiet = true })
       return type(getmetatable(made[1])) == "table" or type(getmetatable(made[1].handle)) == "table" ]] },
}

-- Permitted actions of a script, in the same surroundings.
local allowed = {
  'return problem:evaluate(placement).feasible',
  'problem.graph:save "inside/graph.json" return trinity.model("inside/graph.json").operators > 0',
  'return load("return ...", "x")(1) == 1',
  'return setmetatable({}, { __index = { x = 1 } }).x == 1',
  'local m = {} return getmetatable(setmetatable({}, m)) == m',
  'return getmetatable(problem) == "problem"',
  'return os.time() > 0 and os.clock() >= 0 and #os.date() > 0',
  'return ("%d"):format(3) == "3" and table.concat { 1, 2 } == "12" and bit.bor(1, 2) == 3',
  'return require "trinity" == trinity and require("trinity.graph.layers") ~= nil',
  'return coroutine.wrap(function() coroutine.yield(1) end)() == 1',
  'return trinity.model "vgg16".operators > 0',
  'return select(2, pcall(error, "x", 0)) == "x"',
  'return collectgarbage "count" > 0',
  'return trinity.tensor.ones({ 2 }):sum():item() == 2',
  'return trinity.methods.random(problem, { evaluations = 10, quiet = true }).metrics.feasible',
  -- Parts that are opened late, processes that are forked, and programs that are started.
  'return trinity.methods.metis(problem, { quiet = true }).metrics.feasible',
  'return trinity.model("llama.onnx").operators > 0',
}

local program_line = "cd '%s/inner' && timeout 200 '%s' --safe --no-strict --write . script.lua 2>&1; echo status=$?"

-- The script that runs pieces, each with a problem of its own and libraries as they were: in its own process, or in
-- workers of trinity.parallel_map.
local runner = [[
    local trinity = require 'trinity'
    local libraries = { _G, string, table, math, trinity }
    local copies = {}
    local function copy(t)
      local made = {}
      for key, value in next, t do made[key] = value end
      return made
    end
    for i = 1, #libraries do copies[i] = copy(libraries[i]) end
    local say, text, find, call, next_of, new_problem = print, tostring, ("").gsub, pcall, next, trinity.problem
    local model, cluster, load_text, map = trinity.model, trinity.cluster, load, trinity.parallel_map
    local function body(i)
      local problem = new_problem { graph = model 'vgg16', cluster = cluster 'p100x2' }
      local placement = problem:placement()
      local chunk = load_text('local trinity, problem, placement, metrics, home = ... ' .. pieces[i], '=piece')
      local ok, value = call(chunk, trinity, problem, placement, problem:evaluate(placement), home)
      for k = 1, #libraries do
        for key, entry in next_of, copies[k] do libraries[k][key] = entry end
      end
      return { ok, (find(text(value), '[%c%z]', ' ')) }
    end
    local found = {}
    if in_workers then
      found = map(#pieces, body, { workers = 2, quiet = true })
    else
      for i = 1, #pieces do found[i] = body(i) end
    end
    for i = 1, #pieces do say(i, found[i][1], found[i][2]) end
]]

-- Runs pieces of code in one safe script below a folder of its own; what each gave, as text.
local function run(pieces, in_workers)
  local folder = temporary()
  os.execute(("mkdir -p '%s/inner/inside'; cd '%s'; echo '{}' > outside.json; echo '{}' > inner/.secret.json; ln -s .. inner/out; "
    .. "cp '%s/tests/data/onnx/llama.onnx' inner; "
    .. "echo 'return {}' > outside.lua; "
    .. "echo 'if io or package or debug or jit then error [[sees too much]] end error [[sees nothing]]' > inner/evil.lua")
    :format(folder, folder, root))
  local file = assert(io.open(folder .. '/inner/script.lua', 'w'))
  file:write('local pieces, home, in_workers = {\n')
  for _, piece in ipairs(pieces) do file:write(('%q,\n'):format(piece)) end
  file:write('}, ', ('%q, %s\n'):format(core.home, tostring(in_workers or false)), runner)
  file:close()
  local pipe = io.popen(program_line:format(folder, program))
  local results, rest = {}, {}
  for line in pipe:lines() do
    local i, ok, value = line:match '^(%d+)\t(%a+)\t(.*)$'
    if i then results[tonumber(i)] = { ok = ok == 'true', value = value } else rest[#rest + 1] = line end
  end
  pipe:close()
  local written = io.popen(("find '%s' -name '*escape*' -o -name '.bashrc' -o -name '.hidden'"):format(folder)):read '*a'
  return results, table.concat(rest, '\n'), written
end

local exists = require('trinity.base.util').exists

-- Runs attempts; every one must end as its group says, and leave no file.
local function try(groups, in_workers)
  local pieces, wanted = {}, {}
  for _, group in ipairs(groups) do
    for i = 2, #group do pieces[#pieces + 1], wanted[#wanted + 1] = group[i], group[1] end
  end
  local results, rest, written = run(pieces, in_workers)
  expect((rest:gsub('run: runs/[^\n]*\n', ''))):equals 'status=0'
  for i, piece in ipairs(pieces) do
    local result = results[i] or error('no result of: ' .. piece)
    local refused = not result.ok and wanted[i] and result.value:find(wanted[i])
    local nothing = result.ok and not wanted[i] and (result.value == 'nil' or result.value == 'false')
    if not refused and not nothing then
      error(('%s: expected %s, got %s %s'):format(piece, wanted[i] or 'nil or false', result.ok and 'value' or 'error',
        result.value), 0)
    end
  end
  expect(written):equals ''
  for _, path in ipairs { '/tmp/trinity-escape.json', '/tmp/trinity-escape.tensors',
    root .. '/lib/trinity/escape.json', root .. '/models/escape.json' } do
    expect(exists(path)):equals(false)
  end
end

it('refuses every attempt for its own reason, and nothing crashes, in workers of parallel_map, too', function()
  try(attempts)
  -- Maps inside a worker run there: what they give needs no way out.
  local groups = {}
  for _, group in ipairs(attempts) do
    if group[1] ~= 'cannot send a function' then groups[#groups + 1] = group end
  end
  try(groups, true)
end)

it('leaves what experiments need, in workers too', function()
  for _, in_workers in ipairs { false, true } do
    local results, rest = run(allowed, in_workers)
    expect((rest:gsub('trinity: warning: llama.onnx: [^\n]*\n', ''))):equals 'status=0'
    for i, piece in ipairs(allowed) do
      local result = results[i] or error('no result of: ' .. piece)
      if result.value ~= 'true' then error(('%s gave %s'):format(piece, result.value), 0) end
    end
  end
end)

-- Everything that a script can reach over fields, keys and metatables, and the built-in functions among it.
local walk = [[
  local trinity = require 'trinity'
  for _, name in ipairs { 'graph.layers', 'graph.model', 'graph', 'strategy.problem', 'strategy.simulator', 'search', 'nn.tensor',
    'nn', 'strategy.rewards' } do
    require('trinity.' .. name)
  end
  local known = {}
  local function allow(t) for _, value in pairs(t) do known[value] = true end end
  for _, name in ipairs { 'bit', 'coroutine', 'math', 'string', 'table', 'os' } do allow(_G[name]) end
  for _, name in ipairs { 'assert', 'error', 'ipairs', 'next', 'pairs', 'pcall', 'print', 'rawequal', 'rawget', 'rawset',
    'select', 'tonumber', 'tostring', 'type', 'unpack', 'xpcall' } do known[_G[name] ] = true end
  local problem = trinity.problem { graph = trinity.model 'vgg16', cluster = trinity.cluster 'p100x2' }
  local seen, list = {}, {}
  local function visit(value, path)
    if value == nil or seen[value] then return end
    seen[value] = true
    if type(value) == 'function' and tostring(value):find 'builtin' and not known[value] then print('builtin ' .. path) end
    local kind = type(value)
    if kind == 'table' or kind == 'string' or kind == 'userdata' then list[#list + 1] = { value, path } end
  end
  visit(_G, '_G')
  visit(trinity, 'trinity')
  visit(problem, 'problem')
  visit(problem:strategy(problem:placement()), 'strategy')
  visit(trinity.graph.new { name = 'g' }, 'builder')
  visit('', 'string')
  visit(trinity.parallel_map(2, function() return { problem, problem:evaluate(problem:placement()), problem:placement() }
  end, { workers = 2, quiet = true }), 'mapped')
  local done = 0
  while done < #list do
    done = done + 1
    local value, path = list[done][1], list[done][2]
    visit(getmetatable(value), path .. '.meta')
    if type(value) == 'table' then
      for key, entry in next, value do
        visit(key, path .. '.key')
        visit(entry, path .. '.' .. tostring(key))
      end
    end
  end
  print(done > 100 or done)
]]

it('leads to no built-in function but those it gives', function()
  script_says(0, '^true\n$', '--safe SCRIPT', walk)
end)

describe('parallel_map', function()
  it('has no more workers than trinity.system.threads()', function()
    local script = [[
      local n = 0
      local runs = require('trinity').parallel_map(64, function() n = n + 1 return n end, { workers = 64, quiet = true })
      local workers = 0
      for i = 1, 64 do if runs[i] == 1 then workers = workers + 1 end end
      print(workers) ]]
    expect(select(2, run_script('--threads 3 SCRIPT', script))):equals '64\n'
    expect(select(2, run_script('--safe --threads 3 SCRIPT', script))):equals '3\n'
  end)
  it('is held to the limits', function()
    expect(select(2, run_script('--safe --time-limit 0.5 SCRIPT', [[require("trinity").parallel_map(2, function()
      return ("a"):rep(1e5):find(("a*"):rep(30) .. "b") end, { workers = 2, quiet = true })]])))
      :matches '^trinity: [^\n]*time limit of 0.5 s'
    with_torch()
    expect(select(2, run_script('--safe --memory-limit 100M SCRIPT', [[local trinity = require 'trinity'
      local _, errors = trinity.parallel_map(2, function()
        local t = {}
        for i = 1, 1000 do t[i] = trinity.tensor.ones { 1e6 } end
      end, { workers = 2, quiet = true, on_error = 'collect' })
      print(errors[1] and errors[1]:match 'not enough memory', errors[2] and errors[2]:match 'not enough memory') ]])))
      :equals 'not enough memory\tnot enough memory\n'
  end)
end)

it('keeps every module that has the FFI inside', function()
  local pieces = {}
  local pipe = io.popen(("cd '%s/lib' && grep -rlE 'require *\\(? *.ffi' trinity --include='*.lua'"):format(root))
  for path in pipe:lines() do pieces[#pieces + 1] = ('return require %q'):format(path:gsub('%.lua$', ''):gsub('/', '.')) end
  pipe:close()
  expect(#pieces > 3):equals(true)
  local results = run(pieces)
  for i, piece in ipairs(pieces) do
    if results[i].ok or not results[i].value:find(no_module) then error(piece .. ' gave ' .. results[i].value, 0) end
  end
end)

describe('--write', function()
  it('opens further folders, for reading and writing, and nothing next to them', function()
    local folder = temporary()
    os.execute(("mkdir -p '%s/inner' '%s/data/sub'; ln -s / '%s/data/root'"):format(folder, folder, folder))
    core.write_file(folder .. '/inner/script.lua', [[
      local trinity = require 'trinity'
      local graph = trinity.model 'vgg16'
      for _, path in ipairs { '../data/sub/g.json', 'own.json', '../g.json', '../data/.g.json', '../data/root/tmp/g.json' } do
        local written = pcall(graph.save, graph, path)
        print(path, written, (pcall(trinity.model, path)))
      end ]])
    local output = output_of(("cd '%s/inner' && '%s' --safe --write ../data script.lua 2>&1"):format(folder, program))
    expect(output):equals('../data/sub/g.json\ttrue\ttrue\nown.json\tfalse\tfalse\n../g.json\tfalse\tfalse\n'
      .. '../data/.g.json\tfalse\tfalse\n../data/root/tmp/g.json\tfalse\tfalse\n')
  end)
  it('needs folders that are there, and --safe', function()
    trinity_says("--safe --write /nowhere -e 'print(1)'", 1, '^trinity: /nowhere: cannot open it to a safe script: No such file')
    local status, output = run_trinity "--write /tmp -e 'print(1)'"
    expect(output):equals 'trinity: --write needs --safe: other scripts open any file\n'
    expect(status):equals(2)
  end)
end)

describe('limits from outside the interpreter', function()
  it('end what no hook can stop, and a finaliser that loops', function()
    script_says(1, '^trinity: time limit of 0.2 s reached: what ran did not stop within 2 s more, and the process was ended\n$',
      '--safe --time-limit 0.2 SCRIPT', 'local s = ("a"):rep(1e5) print(s:find(("a*"):rep(30) .. "b"))')
    script_says(1, 'time limit of 0.2 s reached', '--time-limit 0.2 SCRIPT',
      'getmetatable(newproxy(true)).__gc = function() while true do end end collectgarbage()')
  end)
  it('count tensors, leave the script what it needs, and let it go on after a refusal', function()
    script_says(0, '^false\t[^\n]*:4: tensor.ones: not enough memory\nfalse\t[^\n]*memory[^\n]*\ntrue\n$',
      '--safe --memory-limit 128M --time-limit 100 SCRIPT', [[
      local trinity = require 'trinity'
      print(pcall(function()
        local t = {}
        for i = 1, 1000 do t[i] = trinity.tensor.ones { 1e6 } end
      end))
      collectgarbage()
      print(pcall(trinity.tensor.ones, { 1e5, 1e4 }))
      local problem = trinity.problem { graph = trinity.model 'vgg16', cluster = trinity.cluster 'p100x2' }
      print(trinity.methods.random(problem, { evaluations = 200, quiet = true }).metrics.feasible) ]])
  end)
end)

it('Graphviz lays out the page of a run, and LibTorch opens in workers, within the walls', function()
  with_torch()
  local folder = temporary()
  core.write_file(folder .. '/s.lua', [[
    local trinity = require 'trinity'
    local problem = trinity.problem { graph = trinity.model 'alexnet', cluster = trinity.cluster 'p100x2' }
    trinity.methods.random(problem, { evaluations = 20, quiet = true })
    print(require('trinity.report').write({ trinity.run.path }, trinity.run.path .. '/page.html') > 1000)
    local sums = trinity.parallel_map(2, function(i) return trinity.tensor.ones({ i }):sum():item() end, { workers = 2, quiet = true })
    print(sums[1] + sums[2])]])
  expect(output_of(("cd '%s' && unset TRINITY_RUNS; '%s' --safe --memory-limit 2G s.lua --run r --quiet 2>&1; ls runs/r"):format(folder, program)))
    :matches '^run: runs/r\ntrue\n3\n'
  local layout = require 'trinity.report.layout'
  if layout.of(2, { from = { 1 }, to = { 2 } }).by == 'dot' then
    expect(core.read_file(folder .. '/runs/r/page.html')):matches '"by":"dot"'
  end
end)

it('every model and cluster of the library is there for a safe script', function()
  script_says(0, '^true\n$', '--safe SCRIPT', [[
    local trinity = require 'trinity'
    local count = 0
    for folder, make in trinity.system.sorted_pairs { ['models'] = trinity.model, ['models/clusters'] = trinity.cluster } do
      for _, file in ipairs(trinity.files.list(trinity.system.home .. '/' .. folder)) do
        local name = file:match '^(.*)%.lua$'
        if name then
          count = count + 1
          local ok, message = pcall(make, name)
          if not ok then print(name, message) end
        end
      end
    end
    print(count > 20)]])
end)

it('options arrive, wherever --safe stands, and are checked; after the script they are the script\'s', function()
  local script = [[
    local trinity = require 'trinity'
    local options = trinity.options { 'x', seed = { default = 1, help = 's' }, name = { default = 'none', help = 'n' } }
    print(options.seed, options.name, arg[1], (...)) ]]
  for _, line in ipairs { '--safe SCRIPT --seed 3', '--threads 2 --safe SCRIPT --seed 3', '--safe -- SCRIPT --seed 3' } do
    expect(select(2, run_script(line, script))):equals '3\tnone\t--seed\t--seed\n'
  end
  script_says(2, "^trinity: unknown option '%-%-sede', did you mean '%-%-seed'%? %(%-%-help lists them%)\n$", '--safe SCRIPT --sede 3', script)
  script_says(2, "^trinity: unknown option '%-%-safe'", 'SCRIPT --seed 3 --safe', script)
  trinity_says('--safe simulate --model alexnet --cluster p100x3', 0, 'alexnet', 'p100x3')
end)
