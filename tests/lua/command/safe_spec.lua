-- --safe: attempts of a script to reach what it must not. Each piece of code ends with an error or with
-- nil when it is refused; anything else is an escape. The list, by what is tried:
--   modules and globals   io, os, debug, jit, ffi, package, newproxy, fenv functions, loadfile; require of anything that
--                         is no public module of trinity, by any spelling
--   code                  bytecode by load, loadstring, string.dump; environments; coroutines
--   metatables            of strings, of engine objects and classes; __gc, __index, __tostring that lead inwards
--   the shared library    replaced functions of string, table, trinity, classes
--   memory                fake structs, views, indices out of range, inner modules that use the FFI
--   files                 every function that opens one: absolute paths, .., links, /proc, hidden files, zero bytes
--   processes             jobs, launches, workers
--   time and memory       from outside the interpreter: what no hook can stop, what Lua's allocator does not see

local core = require 'trinity.core'

-- Groups of pieces: what the error of each must say, or false where each must give nil or false without an error.
local no_module = 'safe scripts have trinity and its public modules only'
local no_path = 'which a safe script may not leave'
local attempts = {
  -- Modules and globals.
  { false,
    'return io',
    'return debug',
    'return jit',
    'return ffi',
    'return package',
    'return newproxy',
    'return getfenv or setfenv',
    'return loadfile or dofile',
    'return module',
    'return os.execute or os.remove or os.rename or os.getenv or os.tmpname or os.setlocale',
    'return _G._G._G.io',
    'return rawget(_G, "io") or rawget(_G, "package")' },
  { no_module,
    'return require "ffi"',
    'return require "io"',
    'return require "jit"',
    'return require "jit.util"',
    'return require "debug"',
    'return require "package"',
    'return require "string.buffer"',
    'return require "table.new"',
    'return require "trinity.core"',
    'return require "trinity.base.array"',
    'return require "trinity.command.safe"',
    'return require "trinity...core"',
    'return require "trinity/core"',
    'return require "trinity._meta.trinity"',
    'return require "../tests/lua/run"',
    'return require "trinity.\0core"' },
  { 'require: expected the name of a module',
    'return require(setmetatable({}, { __tostring = function() return "ffi" end }))',
    'return require(1)' },
  -- Code.
  { false,
    'return string.dump',
    'return ("").dump',
    'return load("\27LJ\2\2")',
    'return load(function() return "\27LJ" end, "x", "b")',
    'return loadstring("\27LJ\2\2")',
    'return load("return io", "x", "t", nil)()',
    'return load("return io", "x", "bt")()',
    'return loadstring("return debug")()',
    'return load("return _G", "x", "t")() ~= _G',
    'return coroutine.wrap(function() return load("return io")() end)()',
    'return coroutine.wrap(function() return io end)()',
    'return select(2, pcall(load, "return package"))()' },
  { "attempt to call field 'dump' %(a nil value%)", 'return string.dump(function() end)' },
  -- Metatables.
  { false,
    'return type(getmetatable("")) == "table"',
    'return type(getmetatable(trinity.graph.new { name = "g" })) == "table"',
    'return type(getmetatable(problem)) == "table"',
    'return type(getmetatable(problem.graph)) == "table"',
    'return type(getmetatable(problem.handle)) == "table"',
    'return type(getmetatable(placement)) == "table"',
    'return type(getmetatable(1LL)) == "table"' },
  { 'attempt to index a string value', 'getmetatable("").__index = nil return true' },
  { 'table expected, got',
    'return setmetatable("", {})',
    'return rawset(getmetatable(""), "__index", {})',
    'return setmetatable(problem.handle, {})' },
  { "attempt to index field '__index' %(a nil value%)", 'return getmetatable(problem).__index.evaluate' },
  -- What the library shares.
  { false,
    'string.format = nil return not pcall(problem.evaluate, problem, placement)',
    'table.concat, table.sort, math.floor = nil, nil, nil return not pcall(tostring, problem.graph)',
    'trinity.model = nil return require("trinity").model == nil and not pcall(require, "trinity.graph.model")',
    'ipairs, pairs, error, pcall, type = nil return tostring(problem.graph) == nil' },
  -- Memory.
  { "has no member named 'x'", 'return placement.data[1e9].x' },
  { false, 'return tonumber(placement.data[1])' },
  { 'attempt to write to constant location',
    'placement.data[1] = placement.data[2] return true',
    'placement.length = 1e9 return true',
    'placement.magic = 1 return true' },
  { 'attempt to perform arithmetic on',
    'return (placement.data + 1e9)[0] + 1',
    'return metrics.device[1e9] + 1' },
  { 'expected metrics, got table', 'return metrics.memory_bytes({ device_count = 9, device = 4096 }, 1)' },
  { 'expected a .*, got cdata',
    'return problem:evaluate(0x7fffffff74723101ULL)',
    'return problem:evaluate(0x0000000174723103ULL)',
    'return problem.handle:evaluate({ 0x7fffffff74723101ULL }, { metrics })',
    'return problem.handle:evaluate({ placement }, { 0x0000000274723104ULL })' },
  { 'expected metrics, got cdata', 'return problem:score(0x0000000274723104ULL)' },
  { 'this span shows something already',
    'local v = problem.graph.handle:numbers "depth" v:span(problem.graph.unit_of) return true' },
  { 'is outside 1 to %d+',
    'return placement[1e9]',
    'return placement[0 / 0]',
    'placement[-1e9] = 1 return true' },
  { 'expected a graph of the engine', 'return trinity.graph.wrap(1)' },
  -- Files.
  { no_path,
    'return trinity.model "/etc/hostname.json"',
    'return trinity.model "/tmp/../etc/passwd.lua"',
    'return trinity.model "../outside.json"',
    'return trinity.model "../outside.lua"',
    'return trinity.model "out/outside.json"',
    'return trinity.model "/proc/self/cwd/../../../../../../etc/passwd.txt"',
    'return trinity.model "./inside/../../outside.json"',
    'problem.graph:save "/tmp/trinity-escape.json" return true',
    'problem.graph:save "../escape.json" return true',
    'problem.graph:save "out/escape.json" return true',
    'problem.graph:save "/proc/self/cwd/../escape.json" return true',
    'return problem:load "/etc/passwd"',
    'return trinity.tensor.load "/etc/passwd"',
    'trinity.tensor.save("/tmp/trinity-escape.tensors", { x = trinity.tensor.ones { 1 } }) return true',
    'return trinity.cluster "/etc/passwd.lua"',
    'return trinity.cluster "../outside.lua"',
    'return trinity.cluster "/proc/self/environ.json"',
    'return trinity.profile.load "/etc/passwd"',
    'return trinity.select "/etc/passwd"',
    'return trinity.select("../outside.json")',
    'return trinity.execute(problem, placement, { steps = 1, warm_up = 0, devices = { "cpu:0", "cpu:0" }, data = "out/x.csv" })',
    'return trinity.execute(problem, placement, { steps = 1, warm_up = 0, devices = { "cpu:0", "cpu:0" }, load = "/etc/passwd" })',
    'return trinity.execute(problem, placement, { steps = 1, warm_up = 0, devices = { "cpu:0", "cpu:0" }, save = "out/w" })',
    [[ return trinity.execute(problem, placement, { steps = 1, warm_up = 0, devices = { "cpu:0", "cpu:0" },
         checkpoint = "../escape" }) ]],
    'return trinity.pipeline("/etc/passwd.txt", { method = "max_load_annealing", devices = 2 })',
    'problem:strategy(placement):save "../escape.json" return true',
    'problem:timeline(placement):save "/tmp/trinity-escape.json" return true',
    'return trinity.compare(problem, { "random" }, { evaluations = 2, quiet = true, out = "../escape" })',
    [[ trinity.methods.trinity(problem, { evaluations = 4, samples = 2, groups = 2, hidden = 2, quiet = true,
         checkpoint = "../escape.json", checkpoint_every = 1 }) return true ]],
    'trinity.policies.trinity(problem, { samples = 2, groups = 2, hidden = 2 }):save "../escape.agent" return true',
    'return trinity.policies.trinity(problem, { samples = 2, groups = 2, hidden = 2, load = "/etc/passwd" })',
    -- What did not end well is kept where `rescue` says: the error tells that it could not be.
    [[ local count, spec = 0
       spec = trinity.problem { graph = problem.graph, cluster = problem.cluster,
         reward = function(m) count = count + 1 if count > 1 then error "enough" end return -m.step_time_s end }
       return trinity.methods.random(spec, { evaluations = 200, quiet = true, rescue = "../escape.json" }) ]] },
  { 'sees nothing', -- files that are Lua see what the script sees
    'return trinity.model "evil.lua"',
    'return trinity.cluster "evil.lua"' },
  { 'a hidden file',
    'problem.graph:save ".bashrc" return true',
    'problem.graph:save "sub/.hidden/x.json" return true',
    'return problem:load ".secret.json"' },
  { 'a zero byte in the name', 'problem.graph:save "escape.json\0.txt" return true' },
  { 'expected the name of a file or folder', 'problem.graph:save "" return true' },
  { 'a file of trinity',
    'problem.graph:save(home .. "/lib/trinity/escape.json") return true',
    'problem.graph:save(home .. "/models/escape.json") return true' },
  -- Processes.
  { 'safe scripts start no processes and join no job',
    'return trinity.dist.init()',
    'return trinity.dist.launch({ "script.lua" }, { processes = 1 })' },
  { 'cannot send a function', 'return trinity.parallel_map(2, function() return print end, { workers = 2, quiet = true })' },
  { false,
    [[ local made = trinity.parallel_map(2, function() return problem end, { workers = 2, quiet = true })
       return type(getmetatable(made[1])) == "table" or type(getmetatable(made[1].handle)) == "table" ]] },
  -- Inner modules.
  { no_module,
    -- A view of memory that was given back would read something else, or end the process.
    'return require("trinity.graph.arrays").view(problem.graph.handle:numbers "depth")',
    'return require("trinity.report.read")',
    'return require("trinity.report.pack").integers { 1 / 0 }',
    'return require("trinity.report.pack").integers { 1e300 }',
    'return require("trinity.base.serialise").decode("x")',
    'return require("trinity.runs.tensorboard").crc32c(placement)',
    'return require("trinity.graph.arguments")',
    'return require("trinity.runs.folder")',
    'return require("trinity.runs.checkpoints")' },
  -- The library poisoned: what is called gets nothing that the script does not have.
  { false,
    'local f for k, v in next, trinity do if type(v) == "function" then trinity[k] = function(...) f = ... end end end '
      .. 'problem:evaluate(placement) return f',
    [[ local got
       local class = require("trinity.methods")
       class.finish = function(...) got = ... end
       trinity.methods.round_robin(problem, { quiet = true })
       return got ]] },
  -- Handlers, coroutines and odd values.
  { false,
    'return select(2, xpcall(function() error() end, function(m) return m end))',
    'return select(2, xpcall(function() local t = nil; return t.x end, function(m) return io end))',
    'return coroutine.wrap(function() return pcall(coroutine.yield, io) end)()',
    'local co = coroutine.create(function() error(package) end) return select(2, coroutine.resume(co))',
    'return debug and debug.getregistry or coroutine.close',
    'return os.date(("%c"):rep(2 ^ 20)) == nil',
    'return getmetatable(coroutine.create(print))',
    'return tostring(setmetatable({}, { __tostring = function() return io end }))',
    'return ("x"):format(setmetatable({}, { __index = function() return io end }).x) == io',
    'return #(("x"):rep(2 ^ 60)) > 1000' },
  { 'invalid value %(nil%)', 'return table.concat(setmetatable({}, { __index = function() return "x" end }), "", 1, 2 ^ 31 - 1)' },
  { 'too many results to unpack', 'return unpack({}, 1, 1e8)' },
  -- The collector.
  { "safe scripts have 'collect', 'count' and 'step'",
    'return collectgarbage "stop"',
    'return collectgarbage "setpause"' },
}

-- What a script may do, in the same surroundings.
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
  os.execute(("mkdir -p '%s/inner'; cd '%s'; echo '{}' > outside.json; echo '{}' > inner/.secret.json; ln -s .. inner/out; "
    .. "echo 'return {}' > outside.lua; "
    .. "echo 'if io or package or debug or jit then error [[sees too much]] end error [[sees nothing]]' > inner/evil.lua")
    :format(folder, folder))
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
  return #pieces
end

it('refuses every attempt for its own reason, and nothing crashes', function()
  expect(try(attempts) >= 120):equals(true)
end)

it('refuses every attempt in workers of parallel_map, too', function()
  -- Maps inside a worker run there: what they give needs no way out.
  local groups = {}
  for _, group in ipairs(attempts) do
    if group[1] ~= 'cannot send a function' then groups[#groups + 1] = group end
  end
  expect(try(groups, true) >= 120):equals(true)
end)

it('leaves what experiments need, in workers too', function()
  for _, in_workers in ipairs { false, true } do
    local results, rest = run(allowed, in_workers)
    expect(rest):equals 'status=0'
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
  it('gives what it gives without --safe', function()
    local script = [[
      local trinity = require 'trinity'
      local problem = trinity.problem { graph = trinity.model 'vgg16', cluster = trinity.cluster 'p100x2' }
      local class = { __index = { name = 'mine' } }
      local rows, errors = trinity.parallel_map({ 'a', 'b', 'c' }, function(item, i, seed)
        print('item', i)
        if i == 3 then error('no ' .. item, 0) end
        local placement = problem:placement()
        placement[i] = 2
        return setmetatable({ item, i, seed, problem = problem, placement = placement,
          metrics = problem:evaluate(placement) }, class)
      end, { workers = 2, quiet = true, seed = 7, on_error = 'collect' })
      for i = 1, 2 do
        local row = rows[i]
        print(row[1], row[2], row[3], row.name, row.problem == problem, row.placement[1], row.placement[2],
          row.metrics.step_time_s)
      end
      print(rows[3], errors[1], errors[3])
      for _, row in ipairs(trinity.compare(problem, { 'random' }, { evaluations = 20, seeds = 3, quiet = true }).rows) do
        for _, run in ipairs(row.runs) do print(run.seed, run.reward) end
      end ]]
    local status, expected = run_script('SCRIPT', script)
    expect(status):equals(0)
    expect(expected):matches('^item\t1\nitem\t2\nitem\t3\na\t1\t%d%.%d+e%+15\tmine\ttrue\t2\t1\t0%.%d+\n'
      .. 'b\t2\t%d%.%d+e%+15\tmine\ttrue\t1\t2\t0%.%d+\nnil\tnil\tno c\n1\t%-0%.%d+\n2\t%-0%.%d+\n3\t%-0%.%d+\n$')
    local output
    status, output = run_script('--safe SCRIPT', script)
    expect(output):equals(expected)
    expect(status):equals(0)
  end)
  it('has no more workers than trinity.threads()', function()
    local script = [[
      local n = 0
      local runs = require('trinity').parallel_map(64, function() n = n + 1 return n end, { workers = 64, quiet = true })
      local workers = 0
      for i = 1, 64 do if runs[i] == 1 then workers = workers + 1 end end
      print(workers) ]]
    expect(select(2, run_script('--threads 3 SCRIPT', script))):equals '64\n'
    expect(select(2, run_script('--safe --threads 3 SCRIPT', script))):equals '3\n'
  end)
  it('is held to the limit of time', function()
    local _, output = run_script('--safe --time-limit 0.5 SCRIPT',
      'require("trinity").parallel_map(2, function() while true do end end, { workers = 2, quiet = true })')
    expect(output):matches '^trinity: [^\n]*time limit of 0.5 s'
    _, output = run_script('--safe --time-limit 0.5 SCRIPT', [[require("trinity").parallel_map(2, function()
      return ("a"):rep(1e5):find(("a*"):rep(30) .. "b") end, { workers = 2, quiet = true })]])
    expect(output):matches '^trinity: [^\n]*time limit of 0.5 s'
  end)
  it('is held to the limit of memory by tensors, too', function()
    with_torch()
    local _, output = run_script('--safe --memory-limit 100M SCRIPT', [[local trinity = require 'trinity'
      local _, errors = trinity.parallel_map(2, function()
        local t = {}
        for i = 1, 1000 do t[i] = trinity.tensor.ones { 1e6 } end
      end, { workers = 2, quiet = true, on_error = 'collect' })
      print(errors[1] and errors[1]:match 'not enough memory', errors[2] and errors[2]:match 'not enough memory') ]])
    expect(output):equals 'not enough memory\tnot enough memory\n'
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
  it('opens further folders, for reading and writing, and nothing beside them', function()
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
    local status, output = run_trinity "--safe --write /nowhere -e 'print(1)'"
    expect(output):matches '^trinity: [^\n]*/nowhere: cannot allow it to safe scripts: Not a directory\n$'
    expect(status):equals(1)
    status, output = run_trinity "--write /tmp -e 'print(1)'"
    expect(output):equals 'trinity: --write needs --safe: other scripts open any file\n'
    expect(status):equals(2)
  end)
end)

describe('limits from outside the interpreter', function()
  local function says(options, script, pattern)
    local start = core.clock_s()
    local status, output = run_script(options .. ' SCRIPT', script)
    expect(output):matches(pattern)
    expect(status):equals(1)
    return core.clock_s() - start
  end
  it('end what no hook can stop', function()
    says('--safe --time-limit 0.2', 'local s = ("a"):rep(1e5) print(s:find(("a*"):rep(30) .. "b"))',
      '^trinity: time limit of 0.2 s reached: what ran did not stop within 2 s more, and the process was ended\n$')
  end)
  it('end a finaliser that loops', function()
    says('--time-limit 0.2', 'getmetatable(newproxy(true)).__gc = function() while true do end end collectgarbage()',
      'time limit of 0.2 s reached')
  end)
  it('count tensors', function()
    says('--safe --memory-limit 100M', [[local t = {} for i = 1, 1000 do t[i] = require("trinity").tensor.ones { 1e6 } end]],
      '^trinity: [^\n]*:1: tensor.ones: not enough memory %(limit 100 MB%)\n$')
  end)
  it('count one tensor of any size', function()
    says('--safe --memory-limit 100M', [[require("trinity").tensor.ones { 1e5, 1e4 }]],
      '^trinity: [^\n]*:1: tensor[.:]ones: [^\n]*memory[^\n]*\n$')
  end)
  it('leave the script what it needs, and let it go on after a refusal', function()
    script_says(0, '^false\nfalse\nfalse\ntrue\n$', '--safe --memory-limit 128M --time-limit 100 SCRIPT', [[
      local trinity = require 'trinity'
      for _ = 1, 3 do
        print((pcall(function() local t = {} for i = 1, 1000 do t[i] = trinity.tensor.ones { 1e6 } end end)))
        collectgarbage()
      end
      local problem = trinity.problem { graph = trinity.model 'vgg16', cluster = trinity.cluster 'p100x2' }
      print(trinity.methods.random(problem, { evaluations = 200, quiet = true }).metrics.feasible) ]])
  end)
end)
