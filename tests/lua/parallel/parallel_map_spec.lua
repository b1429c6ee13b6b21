-- trinity.parallel_map: values, seeds, output, failures, and files and processes that remain.

local array = require 'trinity.base.array'
local core = require 'trinity.core'
local ffi = require 'ffi'
local trinity = require 'trinity'

local function map(items, body, options)
  options = options or {}
  options.quiet = true
  return trinity.parallel_map(items, body, options)
end

-- A text that equal values have in common.
local function show(value, seen)
  if type(value) == 'number' then return ('%a'):format(value) end
  if type(value) ~= 'table' then return tostring(value) end
  seen = seen or {}
  if seen[value] then return 'again' end
  seen[value] = true
  local parts = {}
  for key, field in trinity.system.sorted_pairs(value) do parts[#parts + 1] = tostring(key) .. '=' .. show(field, seen) end
  return '{' .. table.concat(parts, ',') .. '}'
end

-- fork() leaks none of these. Both are counted without what the collector would close: handles that other
-- specs have dropped.
ffi.cdef 'int fcntl(int, int, ...);'
local F_GETFD = 1
local function open_files()
  collectgarbage()
  local count = 0
  for file = 0, 1023 do
    if ffi.C.fcntl(file, F_GETFD) >= 0 then count = count + 1 end
  end
  return count
end

local function children()
  collectgarbage()
  local pipe = io.popen 'ps -o stat= --ppid $PPID | grep -c Z'
  local count = tonumber(pipe:read '*a')
  pipe:close()
  return count
end

describe('parallel_map', function()
  it('gives the same results for any number of workers', function()
    local items = {}
    for i = 1, 40 do items[i] = { x = i / 7 } end
    local function body(item, i, seed)
      local stream = trinity.random(seed, 'draws')
      local sum = 0
      for _ = 1, 100 do sum = sum + stream:normal() end
      return { sum = sum, i = i, seed = seed, x = item.x }
    end
    local expected = show(map(items, body, { workers = 1 }))
    expect(select(3, map(5, function(i) return i == 2 and i or nil end, { workers = 2 }))):equals(5)
    for _, workers in ipairs { 2, 7, 64 } do expect(show(map(items, body, { workers = workers }))):equals(expected) end
    expect(show(map(items, body, { workers = 2, seed = 2 })) ~= expected):truthy()
  end)
  it('hands out items, numbers and seeds', function()
    local results = map(5, function(...) return { ... } end, { workers = 2 })
    expect(#results):equals(5)
    local seen = {}
    for i, result in ipairs(results) do
      expect(#result):equals(3)
      expect(result[1]):equals(i)
      expect(result[2]):equals(i)
      expect(result[3] % 1):equals(0)
      expect(result[3] >= 0 and result[3] < 2 ^ 53 and not seen[result[3]]):truthy()
      seen[result[3]] = true
    end
    expect(map({ 'a', false }, function(item) return tostring(item) end)[2]):equals 'false'
    expect(#map(0, print)):equals(0)
    expect(#map({}, print)):equals(0)
  end)
  it('lets bodies use whatever the script has, and keeps changes to the worker', function()
    local count, stream = 0, trinity.random(1, 'mine')
    local results = map(6, function(i)
      count = count + i
      return stream:uniform() < 1 and count >= i
    end, { workers = 3 })
    expect(count):equals(0)
    expect(stream:uniform()):equals(trinity.random(1, 'mine'):uniform())
    expect(#results):equals(6)
  end)
end)

describe('values from workers', function()
  -- With one worker values are copied in the same way as from a process.
  local function both(value, check)
    for workers = 1, 2 do check(map(2, function() return value end, { workers = workers })[2]) end
  end
  it('arrive as they were', function()
    both(nil, function(v) expect(v):equals(nil) end)
    both(false, function(v) expect(v):equals(false) end)
    for _, number in ipairs { 0, -0.0, 1 / 3, math.huge, -math.huge, 5e-324, 2 ^ 53, -1.7976931348623157e308 } do
      both(number, function(v) expect(('%a'):format(v)):equals(('%a'):format(number)) end)
    end
    both(0 / 0, function(v) expect(v ~= v):truthy() end)
    local text = ('\0\1\255\n'):rep(100000)
    both(text, function(v) expect(v == text):truthy() end)
    both('', function(v) expect(v):equals '' end)
    both(2LL ^ 62, function(v) expect(v == 2LL ^ 62 and ffi.istype('int64_t', v)):truthy() end)
    both(18446744073709551615ULL, function(v) expect(v == 18446744073709551615ULL):truthy() end)
  end)
  it('may be tables of all shapes', function()
    local t = { 1, 2, nil, 4, x = { y = { z = 'deep' } }, [true] = 'yes', [-1] = 'minus', [2.5] = 'half', [math.huge] = 'far' }
    both(t, function(v)
      expect(show(v)):equals(show(t))
      expect(v ~= t):truthy()
    end)
    local shared = { 'shared' }
    local cycle = { a = shared, b = shared }
    cycle.self = cycle
    both(cycle, function(v)
      expect(v.a):equals(v.b)
      expect(v.self):equals(v)
      expect(v.a[1]):equals 'shared'
    end)
    local twice = { 1 }
    for _ = 1, 100 do twice = { twice, twice } end -- 2^100 paths, 101 tables
    both(twice, function(v) expect(v[1]):equals(v[2]) end)
    local deep = {}
    for _ = 1, 20000 do deep = { deep } end
    both(deep, function(v)
      local depth = 0
      while v do v, depth = v[1], depth + 1 end
      expect(depth):equals(20001)
    end)
    local long = {}
    for i = 1, 20000 do long[i] = i / 3 end
    both(long, function(v) expect(#v == 20000 and v[20000] == 20000 / 3):truthy() end)
  end)
  it('keep the metatables that the script had', function()
    local Point = {}
    Point.__index = Point
    function Point:norm() return math.sqrt(self.x ^ 2 + self.y ^ 2) end
    local points = map(3, function(i) return setmetatable({ x = 3 * i, y = 4 * i }, Point) end, { workers = 2 })
    expect(points[2]:norm()):equals(10)
    expect(getmetatable(points[3])):equals(Point)
  end)
  it('may be arrays and metrics', function()
    local ints, doubles = array.int32(1000), array.double(3)
    for i = 1, 1000 do ints[i] = i * i end
    doubles[1], doubles[2], doubles[3] = 1 / 3, -0.0, math.huge
    both({ ints = ints, doubles = doubles }, function(v)
      expect(array.is_int32(v.ints)):truthy()
      expect(#v.ints):equals(1000)
      for i = 1, 1000 do expect(v.ints[i]):equals(i * i) end
      expect(v.doubles[1] == 1 / 3 and 1 / v.doubles[2] == -math.huge and v.doubles[3] == math.huge):truthy()
      v.ints[5] = 7
      expect(ints[5]):equals(25)
    end)
    local problem = trinity.problem { graph = trinity.model('vgg16', { batch_size = 8 }), cluster = trinity.cluster 'p100x2' }
    local metrics = problem:evaluate(problem:placement())
    both({ metrics, problem.graph.depth }, function(v)
      expect(tostring(v[1])):equals(tostring(metrics))
      expect(v[1].device_count):equals(2)
      expect(v[1]:memory_bytes(1)):equals(metrics:memory_bytes(1))
      expect(#v[2]):equals(#problem.graph.depth)
      for i = 1, #v[2] do expect(v[2][i]):equals(problem.graph.depth[i]) end
    end)
  end)
  it('are refused by name when they cannot be sent', function()
    local cases = {
      { function() return print end, 'result of item 2: cannot send a function' },
      { function() return { x = { y = print } } end, "result of item 2: field 'x.y': cannot send a function" },
      { function() return { 1, { coroutine.create(print) } } end, "result of item 2: field '2.1': cannot send a thread" },
      { function() return trinity.random(1, 'x') end, 'result of item 2: cannot send a random stream' },
      { function() return { [{}] = 1 } end, 'result of item 2: cannot send a table with a table as key' },
      { function() return setmetatable({}, {}) end, 'result of item 2: cannot send a table whose metatable was made in the worker' },
      { function() return { g = trinity.cluster 'p100x2' } end, "field 'g': cannot send a cluster that was made in the worker: make it before" },
      { function() return ffi.new 'char[4]' end, 'result of item 2: cannot send ctype<char ' },
    }
    for _, case in ipairs(cases) do
      for workers = 1, 2 do
        local function body(i) if i == 2 then return case[1]() end end
        local ok, message = pcall(map, 3, body, { workers = workers })
        expect(ok):equals(false)
        expect(message:find(case[2], 1, true) ~= nil and message):truthy()
        expect(message):matches '^[^ ]*parallel_map_spec.lua:%d+: trinity.parallel_map: result of item 2:'
      end
    end
  end)
end)

describe('searches in workers', function()
  local problem = trinity.problem { graph = trinity.model('vgg16', { batch_size = 8 }), cluster = trinity.cluster 'p100x2' }

  it('return strategies of the problem that the script has', function()
    local function body(_, _, seed) return trinity.methods.random(problem, { evaluations = 30, seed = seed, quiet = true }) end
    local serial = map(4, body, { workers = 1 })
    local parallel = map(4, body, { workers = 2 })
    for i = 1, 4 do
      expect(parallel[i].problem):equals(problem)
      expect(parallel[i].reward):equals(serial[i].reward)
      expect(tostring(parallel[i])):equals(tostring(serial[i]))
      expect(problem:to_json(parallel[i], {})):equals(problem:to_json(serial[i], {}))
      expect(problem:evaluate(parallel[i]).step_time_s):equals(serial[i].metrics.step_time_s)
    end
    local path = temporary()
    expect(problem:load(parallel[3]:save(path)).reward):equals(parallel[3].reward)
  end)
  it('compare methods over seeds, learning included, as in one process', function()
    -- Training before the fork: its threads must not be missed by workers.
    local small = { groups = 8, hidden = 16, samples = 8, epochs = 2 }
    trinity.methods.trinity(problem, { evaluations = 16, seed = 9, quiet = true, groups = 8, hidden = 16, samples = 8 })
    local function compared(workers)
      local text = {}
      for seed, comparison in ipairs(map({ 1, 2, 3 }, function(seed)
        return trinity.compare(problem, { 'random', 'trinity' }, { evaluations = 24, seed = seed, quiet = true, trinity = small })
      end, { workers = workers })) do
        expect(comparison:find 'trinity'.problem):equals(problem)
        text[seed] = tostring(comparison):gsub(' *%d+%.%d\n', '\n') -- the last column is measured
      end
      return table.concat(text)
    end
    expect(compared(2)):equals(compared(1))
  end)
end)

describe('failures in workers', function()
  it('raise the error of the first item that fails, with its position', function()
    for _, workers in ipairs { 1, 2, 7 } do
      local ok, message = pcall(map, 20, function(i)
        if i == 11 or i == 5 or i == 6 then error 'boom' end
      end, { workers = workers })
      expect(ok):equals(false)
      expect(message):matches '^[^ ]*parallel_map_spec.lua:%d+: boom %(item 5 of trinity.parallel_map%)$'
      ok, message = pcall(map, 3, function(i) if i == 3 then error({ code = 5 }) end end, { workers = workers })
      expect(ok):equals(false)
      expect(message):matches '^table: 0x%x+ %(item 3 of'
    end
  end)
  it('are collected with the results of the others', function()
    for _, workers in ipairs { 1, 3 } do
      local results, errors = map(9, function(i)
        if i % 3 == 0 then error('no ' .. i) end
        return i
      end, { workers = workers, on_error = 'collect' })
      for i = 1, 9 do
        expect(results[i]):equals(i % 3 ~= 0 and i or nil)
        if i % 3 == 0 then expect(errors[i]):matches('^[^ ]*parallel_map_spec.lua:%d+: no ' .. i .. '$')
        else expect(errors[i]):equals(nil) end
      end
    end
  end)
  it('include the death of a worker, which loses only its item', function()
    ffi.cdef 'int raise(int); void _exit(int);'
    local function body(i)
      if i == 3 then ffi.C.raise(11) end
      if i == 5 then ffi.C._exit(4) end
      return i
    end
    local ok, message = pcall(map, 8, body, { workers = 2 })
    expect(ok):equals(false)
    expect(message):matches '^[^ ]*parallel_map_spec.lua:%d+: trinity.parallel_map: worker for item 3 ended by signal 11 %(Segmentation fault%)$'
    local results, errors = map(8, body, { workers = 2, on_error = 'collect' })
    for i = 1, 8 do expect(results[i]):equals(i ~= 3 and i ~= 5 and i or nil) end
    expect(errors[5]):matches 'worker for item 5 ended with exit status 4$'
  end)
  it('leave no files and no processes', function()
    local files = open_files()
    map(300, function(i) return i end, { workers = 8 })
    pcall(map, 300, function(i) if i == 150 then error 'no' end return i end, { workers = 8 })
    pcall(map, 4, function() return print end, { workers = 2 })
    expect(open_files()):equals(files)
    expect(children()):equals(0)
  end)
  it('refuse what is not an item, a body or an option', function()
    for _, case in ipairs { { "^[^ ]*spec.lua:%d+: trinity.parallel_map: argument 1 %('items'%): expected a list", 'x', print },
      { "argument 1 %('items'%): expected an integer", 1.5, print }, { "argument 1 %('items'%): expected an integer", -1, print },
      { "option 'workers': expected an integer from 1", 1, print, { workers = 0 } },
      { "did you mean 'raise'%?", 1, print, { on_error = 'rase' } } } do
      expect(function() map(case[2], case[3], case[4]) end):raises(case[1])
    end
  end)
end)

describe('what workers print', function()
  local script = [[
    local trinity = require 'trinity'
    io.write 'before '
    local ok, message = pcall(trinity.parallel_map, 20, function(i)
      if i % 4 == 0 then for _ = 1, 2e6 do end end
      print('item', i)
      io.write('half ', i)
      io.stdout:write '\n'
      if i == LAST then error 'stop here' end
    end, { workers = WORKERS, quiet = true })
    print('after', type(message) == 'string' and message or ok)
  ]]
  it('appears in the order of the items, once', function()
    for _, last in ipairs { '13', '0' } do
      local status, expected = run_script('SCRIPT', (script:gsub('WORKERS', '1'):gsub('LAST', last)))
      expect(status):equals(0)
      for workers = 2, 7, 5 do
        local again, output = run_script('SCRIPT', (script:gsub('WORKERS', tostring(workers)):gsub('LAST', last)))
        expect(again):equals(0)
        expect(output):equals(expected)
      end
      local count = 0
      for _ in expected:gmatch 'half %d+\n' do count = count + 1 end
      expect(count):equals(last == '0' and 20 or 13)
      expect(expected):matches '^before item\t1\n'
    end
  end)
  it('leaves standard input to the script', function()
    local path = file_with [[
      local read = require('trinity').parallel_map(3, function() return io.read '*a' end, { workers = 2, quiet = true })
      print(#read[1] + #read[2] + #read[3], io.read '*a')
    ]]
    local pipe = io.popen(("echo text | '%s' %s"):format(program, path))
    expect(pipe:read '*a'):equals '0\ttext\n\n'
    pipe:close()
  end)
  it('has no progress lines of searches in it', function()
    local _, output = run_script('SCRIPT', [[
      local trinity = require 'trinity'
      local problem = trinity.problem { graph = trinity.model('vgg16', { batch_size = 8 }), cluster = trinity.cluster 'p100x2' }
      trinity.parallel_map(4, function(_, _, seed)
        trinity.methods.random(problem, { seconds = 0.8, evaluations = 1e9, seed = seed })
      end, { workers = 2 })
      print 'done'
    ]])
    expect(output:find 'evaluations/s'):equals(nil)
    expect(output):matches 'parallel_map  %d/4 items'
    expect(output):matches 'done\n$'
  end)
end)

it('maps in maps run where they are', function()
  local function nested(workers)
    return table.concat(map(4, function(i)
      return table.concat(map(3, function(j, _, seed) return ('%d %d %d %s'):format(i, j, seed, tostring(core.in_worker())) end,
        { workers = 4, seed = i }), '\n')
    end, { workers = workers }), '\n')
  end
  local parallel = nested(2)
  expect(parallel):matches '\n3 1 %d+ true\n3 2 %d+ true\n3 3 %d+ true\n'
  expect(nested(1)):equals(parallel)
end)
