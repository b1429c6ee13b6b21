-- --safe: attempts of a script to reach what it must not. Each piece of code ends with an error or with
-- nil when it is refused; anything else is an escape.

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
  os.execute(("rm '%s'; mkdir -p '%s/inner'; cd '%s'; echo '{}' > outside.json; ln -s .. inner/out; "
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
  expect(#attempts >= 40):equals(true)
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
