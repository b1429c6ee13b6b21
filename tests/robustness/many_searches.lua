#!/usr/bin/env trinity
-- A long life in one process: thousands of searches, objects that nobody closes, maps and prompt lines with errors, and
-- whether memory, open files, threads, child processes and engine objects stay what they were:
--   build/trinity tests/robustness/many_searches.lua
--   build/trinity tests/robustness/many_searches.lua --searches 100000 --only searches
-- A part is flat when what it uses at its end is less than 1 % or 10 MB above what it used after a tenth of it.
-- Exit status 1 unless all are.

local core = require 'trinity.core'
local trinity = require 'trinity'

local options = trinity.options({
  'Many searches, objects, maps and prompt lines in one process.',
  searches = { default = 10000, min = 10, integer = true, help = 'of all methods on several networks' },
  only = { default = '', help = 'one part: searches, objects, maps or lines' },
})
-- Graphs, problems and tensors that are never closed; calls of trinity.parallel_map, with workers that die; lines of a
-- prompt, each an error.
local objects, maps, prompt_lines = 10000, 1000, 1000

local alive = setmetatable({}, { __mode = 'k' }) -- engine objects that were made here and not yet collected

local function count_alive()
  local count = 0
  for _ in pairs(alive) do count = count + 1 end -- a count: needs no sorted order
  return count
end

local function note(object)
  alive[object] = true
  return object
end

local function entries(folder) return #core.list_folder(folder) end

--- Resources of this process now, after everything that nobody needs has been collected.
local function usage()
  for _ = 1, 3 do collectgarbage() end
  local status = io.open '/proc/self/status'
  local text = status:read '*a'
  status:close()
  local process = text:match 'Pid:%s+(%d+)'
  local children = io.open(('/proc/%s/task/%s/children'):format(process, process))
  local _, child_count = (children and children:read '*a' or ''):gsub('%d+', '')
  if children then children:close() end
  return { rss_mb = tonumber(text:match 'VmRSS:%s+(%d+)') / 1024, lua_mb = collectgarbage 'count' / 1024,
    files = entries '/proc/self/fd', threads = tonumber(text:match 'Threads:%s+(%d+)'), children = child_count,
    objects = count_alive() }
end

local all_flat = true

local function judge(name, warm, now)
  local function flat(key) return now[key] - warm[key] < math.max(10, 0.01 * warm[key]) end
  local is_flat = flat 'rss_mb' and flat 'lua_mb' and now.files <= warm.files and now.threads <= warm.threads
    and now.children == 0 and now.objects <= warm.objects
  print(('%-9s %s: %+.2f MB (Lua %+.3f MB)'):format(name, is_flat and 'flat' or 'GROWS', now.rss_mb - warm.rss_mb,
    now.lua_mb - warm.lua_mb))
  all_flat = all_flat and is_flat
end

--- Runs step(i) `count` times and prints what the process holds after a tenth, a half and all of them.
local function part(name, count, step)
  if options.only ~= '' and options.only ~= name then return end
  local begin_s, warm = core.clock_s(), nil
  for i = 1, count do
    step(i)
    if i == math.ceil(count / 10) or i == math.ceil(count / 2) or i == count then
      local now = usage()
      warm = warm or now
      print(('%-9s %6d: %7.1f MB, Lua %5.2f MB, %2d files, %2d threads, %d children, %d objects, %.0f s'):format(
        name, i, now.rss_mb, now.lua_mb, now.files, now.threads, now.children, now.objects, core.clock_s() - begin_s))
      if i == count then
        judge(name, warm, now)
      end
      io.stdout:flush()
    end
  end
end

--- Two towers of layers, `width` wide.
local function towers(width)
  local net = trinity.graph.layers.new('towers' .. width, { batch_size = 8 })
  local x = net:input('x', { 8, width })
  local a, b = x, x
  for i = 1, 3 do
    a = net:relu('left_relu' .. i, net:linear('left' .. i, a, width))
    b = net:relu('right_relu' .. i, net:linear('right' .. i, b, width))
  end
  net:softmax_cross_entropy('loss', net:linear('out', net:add('sum', a, b), 10), net:input('labels', { 8 }, 'int64'))
  return net:build():to_training()
end

local clusters = { 'p100x2', 'p100x4', 'dgx1_v100' }
local function new_problem(i)
  local graph = i % 4 == 3 and trinity.model('alexnet', { batch_size = 2 }) or towers(8 + i % 5)
  return note(trinity.problem { graph = note(graph), cluster = trinity.cluster(clusters[i % 3 + 1]) })
end

local names = trinity.methods.names()
local problem
local outcomes = {} -- a strategy, or why there is none
part('searches', options.searches, function(i)
  if i % 20 == 1 then
    if problem and i % 40 == 1 then problem:close() end -- half of them are closed, half are left to the collector
    problem = new_problem(i % 13)
  end
  local name = names[i % #names + 1]
  local evaluations = trinity.methods.info(name).budget and 16 or nil
  -- One that refuses, as `exhaustive` does with too many placements, is as good a guest.
  local _, found = pcall(trinity.methods[name], problem,
    { quiet = true, seed = i, evaluations = evaluations })
  if type(found) == 'table' then note(found) end
  local kind = type(found) == 'table' and 'strategy' or 'reason why there is none'
  outcomes[kind] = (outcomes[kind] or 0) + 1
end)
problem = nil
for kind, count in trinity.system.sorted_pairs(outcomes) do print(('searches  %6d gave a %s'):format(count, kind)) end

part('objects', objects, function(i)
  local made = new_problem(i)
  note(trinity.tensor.zeros { 64, 64 })
  note(made:strategy(made:placement()))
  if i % 10 == 0 then made:timeline { placement = made:placement() } end
end)

part('maps', maps, function(i)
  local result = trinity.parallel_map({ 1, 2, 3, 4 }, function(item)
    if item == 3 and i % 5 == 0 then error 'expected here' end
    if item == 2 and i % 7 == 0 then os.execute 'kill -9 $PPID' end
    return ('x'):rep(1000 * item)
  end, { workers = 2, quiet = true, on_error = 'collect' })
  assert(#result[1] == 1000)
end)

-- The prompt is another process; it says itself what it holds after a tenth and after all lines.
part('lines', prompt_lines, (function()
  local errors = { 'error "expected here"', 'local x = nil + 1', 'x y z', 'return trinity.model "inceptoin_v3"',
    'misspelt()', 'error({})',
    '(function() local function f() return 1 + f() end f() end)()', 'trinity.tensor.zeros(-1)' }
  local path = os.tmpname()
  local file = io.open(path, 'w')
  file:write("function held() for _ = 1, 3 do collectgarbage() end ",
    "return io.open '/proc/self/status':read '*a':match 'VmRSS:%s+(%d+)' end\n")
  for i = 1, prompt_lines do
    file:write(errors[i % #errors + 1], '\n')
    if i == prompt_lines / 10 or i == prompt_lines then file:write "print('held', held())\n" end
  end
  file:close()
  local program = io.open('/proc/self/cmdline'):read '*a':match '^[^%z]+'
  local pipe = io.popen(("'%s' -i < '%s' 2>&1"):format(program, path))
  local output = pipe:read '*a'
  pipe:close()
  os.remove(path)
  local held = {}
  for kilobytes in output:gmatch 'held%s+(%d+)' do held[#held + 1] = tonumber(kilobytes) / 1024 end
  local _, messages = output:gsub('trinity: ', '')
  return function(i)
    if i > 1 then return end
    assert(#held == 2, output)
    print(('lines     %6d: the prompt held %.1f MB, before %.1f MB; %d messages'):format(prompt_lines, held[2],
      held[1], messages))
    all_flat = all_flat and held[2] - held[1] < 10
  end
end)())

print(all_flat and 'all flat' or 'something grows')
os.exit(all_flat and 0 or 1)
