-- Every function that reads or writes a file, in a safe script: none leaves its folders, by any path, nor where a folder is
-- swapped for a link that leads outside, on and on, while the function works in it.

local core = require 'trinity.core'

-- Exchanges room/inside with room/link until the file `stop` is there; then says how often.
local swapper = [==[
local ffi = require 'ffi'
ffi.cdef 'int renameat2(int, const char *, int, const char *, unsigned); int usleep(unsigned);'
local count, pauses = 0, 0
repeat
  for _ = 1, 300 do ffi.C.renameat2(-100, 'room/inside', -100, 'room/link', 2) end
  count, pauses = count + 300, pauses + 1
  ffi.C.usleep(pauses % 4 * 10000) -- for what takes longer than a moment
  local stop = io.open 'stop'
until stop
print('swaps ' .. count)]==]

-- What the calls share, and what they read, in the folder `at`.
local prelude = [==[
local trinity = require 'trinity'
local net = trinity.layers.new('blocks', { batch_size = 2 })
local x = net:input('x', { 2, 4 })
for i = 1, 2 do x = net:linear(('block_%d/linear'):format(i), x, 4) end
net:softmax_cross_entropy('loss', x, net:input('y', { 2 }, 'int64'))
local graph, cluster = net:build():to_training(), trinity.cluster 'p100x2'
local problem = trinity.problem { graph = graph, cluster = cluster }
local placement, quiet = problem:placement(), { evaluations = 4, quiet = true }
local strategy, piped = problem:strategy(placement), problem:strategy { mesh = { pipeline = 2 } }
local weights, lists = trinity.rankers.new { hidden = { 2 } }, trinity.schedulers.load(trinity.schedulers.shipped)
local function policy(options)
  options.samples, options.groups, options.hidden = 2, 2, 2
  return trinity.policies.trinity(problem, options)
end
local layer = trinity.nn.linear { inputs = 2, outputs = 2 }
local function execute(options)
  options.steps, options.warm_up, options.devices, options.quiet = 1, 0, { 'cpu:0', 'cpu:0' }, true
  return trinity.execute(problem, placement, options)
end
local function search(options)
  options.evaluations, options.policy, options.checkpoint_every, options.quiet = 200, false, 1, true
  return trinity.methods.trinity(problem, options)
end
]==]

-- Makes what they read.
local make = [==[
os.execute('mkdir -p ' .. at)
local function path(name) return at .. '/' .. name end
graph:save(path 'graph.json')
strategy:save(path 'strategy.json')
weights:save(path 'weights')
lists:save(path 'lists', { seed = '1' })
policy {}:save(path 'policy')
layer:save(path 'layer')
trinity.tensor.save(path 'tensors', { x = trinity.tensor.ones { 2 } })
trinity.files.write(path 'data.csv', ('1,2,3,4,0\n'):rep(8))
trinity.files.write(path 'order.csv', '0F0,0B0\n1F0,1B0\n')
trinity.files.write(path 'model.lua', 'return { build = function() return require("trinity").model "mlp" end }')
trinity.files.write(path 'cluster.lua', 'return function(count) return { device_types = { k = require("trinity.cluster.devices").p100 }, '
  .. 'devices = { { name = "a", type = "k" } }, links = {} } end')
trinity.files.write(path 'select.json', '{"problem":{"name":"n","nodes":{"intervals":[[0,1]],"costs":[[1,2]],"usages":[[1,1]]},'
  .. '"edges":{"nodes":[],"costs":[]},"usage_limit":7}}')
trinity.profile.measure(problem.graph, { steps = 1, warm_up = 0, sizes = { 4096, 8192 }, quiet = true }):save(path 'profile.json')
search { checkpoint = path 'search.json', checkpoint_every = 1 }
execute { save = path 'executed' }
]==]

-- By name, of what reads, of what writes, and of readers of other programs' files.
local calls = [==[
local at = 'inside/'
local function f(name) return at .. name end
local reads = {
  read = function() trinity.files.read(f 'graph.json') end,
  list = function() assert(#trinity.files.list(at) > 5) end,
  json = function() trinity.json.read(f 'graph.json') end,
  model = function() trinity.model(f 'graph.json') end,
  model_of_lua = function() trinity.model(f 'model.lua') end,
  cluster = function() trinity.cluster(f 'cluster.lua') end,
  strategy = function() problem:load(f 'strategy.json') end,
  ranker = function() trinity.rankers.load(f 'weights') end,
  scheduler = function() trinity.schedulers.load(f 'lists') end,
  policy = function() policy { load = f 'policy' } end,
  layer = function() trinity.nn.linear { inputs = 2, outputs = 2 }:load(f 'layer') end,
  tensors = function() trinity.tensor.load(f 'tensors') end,
  order = function() trinity.formats.read_schedule(f 'order.csv') end,
  selection = function() trinity.select(f 'select.json', { quiet = true }) end,
  profile = function() trinity.profile.load(f 'profile.json') end,
  search = function() search { resume = f 'search.json' } end,
  execute_data = function() execute { data = f 'data.csv' } end,
  execute_load = function() execute { load = f 'executed' } end,
}
local writes = {
  write = function() trinity.files.write(f 'new', 'x') end,
  write_deep = function() trinity.files.write(f 'deep/er/new', 'x') end,
  graph = function() graph:save(f 'new.json') end,
  strategy = function() strategy:save(f 'new.json') end,
  timeline = function() problem:timeline(placement):save(f 'new.json') end,
  ranker = function() weights:save(f 'new') end,
  trainer = function() trinity.rankers.trainer(weights, { seed = 1 }):save(f 'new', {}) end,
  scheduler = function() lists:save(f 'new', { seed = '1' }) end,
  policy = function() policy {}:save(f 'new') end,
  layer = function() layer:save(f 'new') end,
  tensors = function() trinity.tensor.save(f 'new', { x = trinity.tensor.ones { 2 } }) end,
  csv = function() trinity.plot.csv(f 'new.csv', { 'a' }, { { 1 } }) end,
  lines = function() trinity.plot.lines(f 'new', { x = 'x', y = 'y', series = { { name = 'a', points = { { 1, 2 } } } } }) end,
  compare = function() trinity.compare(problem, { 'random' }, { evaluations = 2, quiet = true, out = f 'compared' }) end,
  checkpoint = function() search { checkpoint = f 'new.json' } end,
  execute_save = function() execute { save = f 'new' } end,
  execute_checkpoint = function() execute { checkpoint = f 'saved' } end,
  megatron = function() piped:export { format = 'megatron', folder = f 'made' } end,
  deepspeed = function() piped:export { format = 'deepspeed', folder = f 'made' } end,
  accelerate = function() trinity.formats.export(strategy, { format = 'accelerate', folder = f 'made', cut_blocks = true }) end,
}
local others = {
  exported = function() trinity.model(f 'tiny.pt2') end,
  decoder = function() trinity.model(f 'decoder') end,
  trace = function() trinity.profile.trace(trinity.model 'tiny.pt2', { kineto = f 'unet.kineto.json' }) end,
  nodes = function() piped:export { format = 'autoparallel', nodes = f 'unet.et.json' } end,
  chakra = function() piped:export { format = 'chakra', folder = f 'made' } end,
}
]==]

-- Each call by each path that leads outside.
local by_path = [==[
for _, path in ipairs { '../outside/', 'link/', '/tmp/trinity-hidden/', '.hidden/' } do
  at = path
  for _, list in ipairs { reads, writes, others } do
    for name, call in trinity.sorted_pairs(list) do
      local ok, message = pcall(call)
      message = tostring(message)
      if ok or not (message:find('which a safe script may not leave', 1, true) or message:find('a hidden file', 1, true)) then
        print('REACHED', path, name, ok, message)
      end
    end
  end
end
print 'all tried'
]==]

-- Each call while the swapper works.
local while_swapped = [==[
local refusals = { 'which a safe script may not leave', 'Too many levels of symbolic links', 'Not a directory',
  'No such file or directory', 'no such folder', 'the folder itself', 'expected a model', 'no model', 'no cluster', 'unknown' }
local function refused(message)
  for _, text in ipairs(refusals) do if message:find(text, 1, true) then return true end end
end
local function try(kind, name, call)
  local got, no, others, begun, i = 0, 0, {}, os.time(), 0
  while i < least or (got < 3 or no < 3) and os.time() - begun < seconds do
    i = i + 1
    local ok, message = pcall(call)
    if ok then got = got + 1 elseif refused(tostring(message)) then no = no + 1 else others[#others + 1] = tostring(message) end
  end
  print(('%s %s %d got, %d refused, %d else %s'):format(kind, name, got, no, #others, others[1] or ''))
end
for name, call in trinity.sorted_pairs(reads) do try('read', name, call) end
for name, call in trinity.sorted_pairs(writes) do try('write', name, call) end
]==]

it('no function gets outside, by no path and not while folders are swapped for links', function()
  with_torch()
  local folder = temporary()
  local tries = os.getenv 'TRINITY_SWAPS' or '20, 20' -- of each: at least, and seconds in which some come through and some do not
  os.execute(("mkdir -p '%s/outside' && mkdir '%s/room' && ln -s ../outside '%s/room/link'"):format(folder, folder, folder))
  core.write_file(folder .. '/make.lua', "local at = 'room/inside'\n" .. prelude .. make)
  core.write_file(folder .. '/swap.lua', swapper)
  core.write_file(folder .. '/room/stranger.lua', ('local least, seconds = %s\n'):format(tries) .. prelude .. calls .. while_swapped)
  core.write_file(folder .. '/room/paths.lua', prelude .. calls .. by_path)
  local function shell(text)
    return output_of(("cd '%s' && unset TRINITY_RUNS; T='%s'; { %s; } 2>&1"):format(folder, program, text))
  end
  expect(shell '"$T" make.lua --run none > made 2>&1; echo status=$?; tail -3 made'):matches '^status=0\n'
  -- Outside are files of the same names, which no reader takes.
  shell "cd room/inside && for n in *; do printf 'outside' > ../../outside/$n; done"
  local before = shell 'cd outside && find . | sort && cat * | cksum'
  expect(shell(("cp '%s/tests/data/traces/tiny.pt2' room; cd room && timeout 100 \"$T\" --safe --write . paths.lua --run none --quiet")
    :format(root))):equals 'all tried\n'
  local output = shell [["$T" --no-strict swap.lua --run none > swapped &
    (cd room && timeout 500 "$T" --safe --write . stranger.lua --run none --quiet)
    echo status=$?; touch stop; wait; cat swapped]]
  expect(output):matches '\nstatus=0\n'
  expect(tonumber(output:match 'swaps (%d+)') > 30000):equals(true)
  local seen, reached, never = 0, {}, {}
  for kind, name, got, no, others, message in output:gmatch '(%a+) ([%w_]+) (%d+) got, (%d+) refused, (%d+) else ([^\n]*)' do
    seen = seen + 1
    if tonumber(others) > 0 then reached[#reached + 1] = ('%s %s: %s'):format(kind, name, message) end
    if tonumber(got) == 0 or tonumber(no) == 0 then never[#never + 1] = ('%s %s: %s got, %s refused'):format(kind, name, got, no) end
  end
  if os.getenv 'TRINITY_SWAPS' then print(output) end
  expect(table.concat(reached, '\n')):equals ''
  expect(table.concat(never, '\n')):equals ''
  expect(seen):equals(38)
  expect(shell 'cd outside && find . | sort && cat * | cksum'):equals(before)
end)
