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

local program = io.popen 'readlink -f /proc/$PPID/exe':read '*l'

local attempts = {
  -- Modules and globals.
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
  'return rawget(_G, "io") or rawget(_G, "package")',
  'return require "ffi"',
  'return require "io"',
  'return require "jit"',
  'return require "jit.util"',
  'return require "debug"',
  'return require "package"',
  'return require "string.buffer"',
  'return require "table.new"',
  'return require "trinity.core"',
  'return require "trinity.array"',
  'return require "trinity.safe"',
  'return require "trinity...core"',
  'return require "trinity/core"',
  'return require "trinity._meta.trinity"',
  'return require "../tests/lua/run"',
  'return require "trinity.\0core"',
  'return require(setmetatable({}, { __tostring = function() return "ffi" end }))',
  'return require(1)',
  -- Code.
  'return string.dump',
  'return ("").dump',
  'return string.dump(function() end)',
  'return load("\27LJ\2\2")',
  'return load(function() return "\27LJ" end, "x", "b")',
  'return loadstring("\27LJ\2\2")',
  'return load("return io", "x", "t", nil)()',
  'return load("return io", "x", "bt")()',
  'return loadstring("return debug")()',
  'return load("return _G", "x", "t")() ~= _G',
  'return coroutine.wrap(function() return load("return io")() end)()',
  'return coroutine.wrap(function() return io end)()',
  'return select(2, pcall(load, "return package")).x',
  -- Metatables.
  'return type(getmetatable("")) == "table"',
  'getmetatable("").__index = nil return true',
  'return setmetatable("", {})',
  'return rawset(getmetatable(""), "__index", {})',
  'return type(getmetatable(trinity.graph.new { name = "g" })) == "table"',
  'return type(getmetatable(problem)) == "table"',
  'return type(getmetatable(problem.graph)) == "table"',
  'return type(getmetatable(problem.handle)) == "table"',
  'return type(getmetatable(placement)) == "table"',
  'return type(getmetatable(1LL)) == "table"',
  'return getmetatable(problem).__index.evaluate',
  'return setmetatable(problem.handle, {})',
  -- What the library shares.
  'string.format = nil return not pcall(problem.evaluate, problem, placement)',
  'table.concat, table.sort, math.floor = nil, nil, nil return not pcall(tostring, problem.graph)',
  'trinity.model = nil return require("trinity").model == nil and not pcall(require, "trinity.model")',
  'ipairs, pairs, error, pcall, type = nil return tostring(problem.graph) == nil',
  -- Memory.
  'return placement.data[1e9].x',
  'return tonumber(placement.data[1])',
  'placement.data[1] = placement.data[2] return true',
  'return (placement.data + 1e9)[0] + 1',
  'return metrics.device[1e9] + 1',
  'return metrics.memory_bytes({ device_count = 9, device = 4096 }, 1)',
  'return problem:evaluate(0x7fffffff74723101ULL)',
  'return problem:evaluate(0x0000000174723103ULL)',
  'return problem.handle:evaluate({ 0x7fffffff74723101ULL }, { metrics })',
  'return problem.handle:evaluate({ placement }, { 0x0000000274723104ULL })',
  'return problem:score(0x0000000274723104ULL)',
  'local v = problem.graph.handle:numbers "depth" v:span(problem.graph.unit_of) return true',
  -- A view of memory that was given back would now read something else, or end the process.
  [[ local view = require("trinity.graph.arrays").view
     local v = problem.graph.handle:numbers "depth"
     local a = view(v)
     v:close()
     v = nil
     for k = 1, 20 do problem.graph.handle:numbers "unit" collectgarbage() end
     for i = 1, #a do if a[i] ~= problem.graph.depth[i] then return true end end ]],
  'placement.length = 1e9 return true',
  'placement.magic = 1 return true',
  'return placement[1e9]',
  'return placement[0 / 0]',
  'placement[-1e9] = 1 return true',
  'return trinity.graph.wrap(1)',
  -- Files.
  'return trinity.model "/etc/passwd"',
  'return trinity.model "/etc/hostname.json"',
  'return trinity.model "../outside.json"',
  'return trinity.model "/tmp/../etc/passwd"',
  'return trinity.model "out/outside.json"',
  'return trinity.model "evil.lua".graph',
  'return trinity.cluster "evil.lua".devices',
  'problem.graph:save "/tmp/trinity-escape.json" return true',
  'problem.graph:save "../escape.json" return true',
  'problem.graph:save "out/escape.json" return true',
  'problem.graph:save ".bashrc" return true',
  'problem.graph:save "sub/.hidden/x.json" return true',
  'problem.graph:save "escape.json\0.txt" return true',
  'problem.graph:save "" return true',
  'problem.graph:save(home .. "/lib/trinity/escape.json") return true',
  'problem.graph:save(home .. "/models/escape.json") return true',
  'problem.graph:save "/proc/self/cwd/../escape.json" return true',
  'return problem:load "/etc/passwd"',
  'return trinity.tensor.load "/etc/passwd"',
  'trinity.tensor.save("/tmp/trinity-escape.tensors", { x = trinity.tensor.ones { 1 } }) return true',
  'return problem:load ".secret.json"',
  'return trinity.cluster "/etc/passwd"',
  'return trinity.cluster "/proc/self/environ"',
  'return trinity.model "/proc/self/cwd/../../../../../../etc/passwd"',
  'return trinity.model "./inside/../../outside.json"',
  'return trinity.profile.load "/etc/passwd"',
  'return trinity.select "/etc/passwd"',
  'return trinity.select("../outside.json")',
  'return trinity.pipeline("/etc/passwd", { method = "max_load", devices = 2 })',
  'problem:strategy(placement):save "../escape.json" return true',
  'problem:timeline(placement):save "/tmp/trinity-escape.json" return true',
  [[ trinity.compare(problem, { "random" }, { evaluations = 2, quiet = true, out = "../escape" })
     return trinity.compare(problem, { "random" }, { evaluations = 2, quiet = true, out = "../escape" }).rows[1].best ]],
  [[ local spec = trinity.problem { graph = problem.graph, cluster = problem.cluster, reward = function() error() end }
     return not pcall(trinity.methods.random, spec, { evaluations = 2, quiet = true, rescue = "../escape.json" })
       and nil ]],
  [[ trinity.methods.trinity(problem, { evaluations = 4, samples = 2, groups = 2, hidden = 2, quiet = true,
       checkpoint = "../escape.json", checkpoint_every = 1 }) return true ]],
  'trinity.policies.trinity(problem, { samples = 2, groups = 2, hidden = 2 }):save "../escape.agent" return true',
  'return trinity.policies.trinity(problem, { samples = 2, groups = 2, hidden = 2, load = "/etc/passwd" })',
  'return require("trinity.report") and require("trinity.report.read")',
  -- Processes.
  'return trinity.dist.init()',
  'return trinity.dist.launch({ "inner/script.lua" }, { processes = 1 })',
  [[ local seen, n = {}, 0 -- no more workers than trinity.threads()
     trinity.parallel_map(64, function() return 1 end, { workers = 1024, quiet = true })
     return trinity.threads() > 4096 ]],
  -- Inner modules.
  'return require("trinity.report.pack").integers { 1 / 0 }',
  'return require("trinity.report.pack").integers { 1e300 }',
  'return require("trinity.transfer").decode("x")',
  'return require("trinity.tensorboard").crc32c(placement)',
  'return require("trinity.graph.arguments")',
  'return require("trinity.run_folder") or require("trinity.checkpoints")',
  -- The library poisoned: what is called gets nothing that the script does not have.
  'local f for k, v in next, trinity do if type(v) == "function" then trinity[k] = function(...) f = ... end end end '
    .. 'problem:evaluate(placement) return f',
  [[ local got
     local class = require("trinity.methods")
     class.finish = function(...) got = ... end
     trinity.methods.round_robin(problem, { quiet = true })
     return got ]],
  -- Handlers, coroutines and odd values.
  'return select(2, xpcall(error, function(m) return m end)).x',
  'return select(2, xpcall(function() local t = nil; return t.x end, function(m) return io end))',
  'return coroutine.wrap(function() return pcall(coroutine.yield, io) end)()',
  'local co = coroutine.create(function() error(package) end) return select(2, coroutine.resume(co))',
  'return debug and debug.getregistry or coroutine.close',
  'return os.date(("%c"):rep(2 ^ 20)) == nil',
  'return getmetatable(coroutine.create(print))',
  'return tostring(setmetatable({}, { __tostring = function() return io end }))',
  'return ("x"):format(setmetatable({}, { __index = function() return io end }).x) == io',
  'return table.concat(setmetatable({}, { __index = function() return "x" end }), "", 1, 2 ^ 31)',
  'return unpack({}, 1, 1e8)',
  'return #(("x"):rep(2 ^ 60)) > 1000',
  -- The collector.
  'return collectgarbage "stop"',
  'return collectgarbage "setpause"',
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
  'return require "trinity" == trinity and require("trinity.layers") ~= nil',
  'return coroutine.wrap(function() coroutine.yield(1) end)() == 1',
  'return trinity.model "vgg16".operators > 0',
  'return select(2, pcall(error, "x", 0)) == "x"',
  'return collectgarbage "count" > 0',
  'return trinity.tensor.ones({ 2 }):sum():item() == 2',
  'return trinity.methods.random(problem, { evaluations = 10, quiet = true }).metrics.feasible',
}

-- Runs pieces of code in one safe script below an empty folder; what each gave, as text.
local function run(pieces)
  local folder = os.tmpname()
  os.execute(("rm '%s'; mkdir -p '%s/inner'; cd '%s'; echo '{}' > outside.json; echo '{}' > inner/.secret.json; ln -s .. inner/out; "
    .. "echo 'return { graph = io, devices = io or package }' > inner/evil.lua"):format(folder, folder, folder))
  local file = assert(io.open(folder .. '/inner/script.lua', 'w'))
  file:write([[
    local pieces, home = ]], ('{'), '\n')
  for _, piece in ipairs(pieces) do file:write(('%q,\n'):format(piece)) end
  file:write('}, ', ('%q'):format(core.home), [[

    local trinity = require 'trinity'
    local names = { 'ipairs', 'pairs', 'error', 'pcall', 'type' }
    local saved = {}
    for _, name in ipairs(names) do saved[name] = _G[name] end
    local say, text, model, cluster, new_problem = print, tostring, trinity.model, trinity.cluster, trinity.problem
    for i, piece in ipairs(pieces) do
      local problem = new_problem { graph = model 'vgg16', cluster = cluster 'p100x2' }
      local placement = problem:placement()
      local chunk = assert(load('local trinity, problem, placement, metrics, home = ... ' .. piece, '=piece'))
      local ok, value = pcall(chunk, trinity, problem, placement, problem:evaluate(placement), home)
      for k = 1, #names do _G[names[k] ] = saved[names[k] ] end
      trinity.model = model
      say(i, ok, (text(value):gsub('[%c%z]', ' ')))
    end
  ]])
  file:close()
  local pipe = io.popen(("cd '%s/inner' && timeout 200 '%s' --safe --no-strict script.lua 2>&1; echo status=$?"):format(folder, program))
  local results, rest = {}, {}
  for line in pipe:lines() do
    local i, ok, value = line:match '^(%d+)\t(%a+)\t(.*)$'
    if i then results[tonumber(i)] = { ok = ok == 'true', value = value } else rest[#rest + 1] = line end
  end
  pipe:close()
  local written = io.popen(("find '%s' -name '*escape*' -o -name '.bashrc' -o -name '.hidden'"):format(folder)):read '*a'
  os.execute(("rm -r '%s'"):format(folder))
  return results, table.concat(rest, '\n'), written
end

local function exists(path)
  local file = io.open(path)
  if file then file:close() end
  return file ~= nil
end

it('refuses every attempt, and nothing crashes', function()
  local results, rest, written = run(attempts)
  expect(rest):equals 'status=0'
  for i, piece in ipairs(attempts) do
    local result = results[i] or error('no result of: ' .. piece)
    if result.ok and result.value ~= 'nil' and result.value ~= 'false' then
      error(('escaped: %s gave %s'):format(piece, result.value), 0)
    end
  end
  expect(written):equals ''
  for _, path in ipairs { '/tmp/trinity-escape.json', '/tmp/trinity-escape.tensors',
    root .. '/lib/trinity/escape.json', root .. '/models/escape.json' } do
    expect(exists(path)):equals(false)
  end
  expect(#attempts >= 120):equals(true)
end)

it('leaves what experiments need', function()
  local results, rest = run(allowed)
  expect(rest):equals 'status=0'
  for i, piece in ipairs(allowed) do
    local result = results[i] or error('no result of: ' .. piece)
    if result.value ~= 'true' then error(('%s gave %s'):format(piece, result.value), 0) end
  end
end)

-- Everything that a script can reach over fields, keys and metatables, and the built-in functions among it.
local walk = [[
  local trinity = require 'trinity'
  for _, name in ipairs { 'layers', 'model', 'graph', 'problem', 'simulator', 'search', 'tensor', 'nn', 'rewards' } do
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
  local path = os.tmpname()
  local file = assert(io.open(path, 'w'))
  file:write(walk)
  file:close()
  local status, output = run_trinity('--safe ' .. path)
  os.remove(path)
  expect(output):equals 'true\n'
  expect(status):equals(0)
end)

it('keeps every module that has the FFI inside', function()
  local pieces = {}
  local pipe = io.popen(("cd '%s/lib' && grep -rlE 'require *\\(? *.ffi' trinity --include='*.lua'"):format(root))
  for path in pipe:lines() do pieces[#pieces + 1] = ('return require %q'):format(path:gsub('%.lua$', ''):gsub('/', '.')) end
  pipe:close()
  expect(#pieces > 3):equals(true)
  local results = run(pieces)
  for i, piece in ipairs(pieces) do
    if results[i].ok and not results[i].value:find '^function' then error(piece .. ' gave ' .. results[i].value, 0) end
    if results[i].ok then error(piece, 0) end
  end
end)

describe('--allow', function()
  it('opens further folders, for reading and writing, and nothing beside them', function()
    local folder = os.tmpname()
    os.execute(("rm '%s'; mkdir -p '%s/inner' '%s/data/sub'; ln -s / '%s/data/root'"):format(folder, folder, folder, folder))
    local file = assert(io.open(folder .. '/inner/script.lua', 'w'))
    file:write [[
      local trinity = require 'trinity'
      local graph = trinity.model 'vgg16'
      for _, path in ipairs { '../data/sub/g.json', 'own.json', '../g.json', '../data/.g.json', '../data/root/tmp/g.json' } do
        local written = pcall(graph.save, graph, path)
        print(path, written, (pcall(trinity.model, path)))
      end ]]
    file:close()
    local pipe = io.popen(("cd '%s/inner' && '%s' --safe --allow ../data script.lua 2>&1"):format(folder, program))
    local output = pipe:read '*a'
    pipe:close()
    os.execute(("rm -r '%s'"):format(folder))
    expect(output):equals('../data/sub/g.json\ttrue\ttrue\nown.json\ttrue\ttrue\n../g.json\tfalse\tfalse\n'
      .. '../data/.g.json\tfalse\tfalse\n../data/root/tmp/g.json\tfalse\tfalse\n')
  end)
  it('needs folders that are there, and --safe', function()
    local status, output = run_trinity "--safe --allow /nowhere -e 'print(1)'"
    expect(output):matches '^trinity: [^\n]*/nowhere: cannot allow it to safe scripts: Not a directory\n$'
    expect(status):equals(1)
    status, output = run_trinity "--allow /tmp -e 'print(1)'"
    expect(output):equals 'trinity: --allow needs --safe: other scripts open any file\n'
    expect(status):equals(2)
  end)
end)

describe('limits from outside the interpreter', function()
  local function says(options, script, pattern)
    local path = os.tmpname()
    core.write_file(path, script)
    local start = core.clock_s()
    local status, output = run_trinity(options .. ' ' .. path)
    os.remove(path)
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
    local path = os.tmpname()
    core.write_file(path, [[
      local trinity = require 'trinity'
      for _ = 1, 3 do
        print((pcall(function() local t = {} for i = 1, 1000 do t[i] = trinity.tensor.ones { 1e6 } end end)))
        collectgarbage()
      end
      local problem = trinity.problem { graph = trinity.model 'vgg16', cluster = trinity.cluster 'p100x2' }
      print(trinity.methods.random(problem, { evaluations = 200, quiet = true }).metrics.feasible) ]])
    local status, output = run_trinity('--safe --memory-limit 128M --time-limit 100 ' .. path)
    os.remove(path)
    expect(output):equals 'false\nfalse\nfalse\ntrue\n'
    expect(status):equals(0)
  end)
end)
