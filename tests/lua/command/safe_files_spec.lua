-- Every function that reads or writes a file, in a safe script: none leaves its folders, by any path. All of them open files
-- through engine/base (whole/door_spec.lua), which holds where a folder is swapped for a link, too (tests/base/door_test.cpp).

local core = require 'trinity.core'

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
local weights = trinity.rankers.new { hidden = { 2 } }
local function policy(options)
  options.samples, options.groups, options.hidden = 2, 2, 2
  return trinity.learn.agent(problem, options)
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
  policy = function() policy { load = f 'policy' } end,
  layer = function() trinity.nn.linear { inputs = 2, outputs = 2 }:load(f 'layer') end,
  tensors = function() trinity.tensor.load(f 'tensors') end,
  order = function() problem:strategy { mesh = { pipeline = 2 }, tasks = f 'order.csv' } end,
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

it('no function that reads or writes a file leaves the folders of a safe script', function()
  with_torch()
  local folder = temporary()
  core.write_file(folder .. '/room/paths.lua', prelude .. calls .. by_path)
  local output = output_of(([[cd '%s' && unset TRINITY_RUNS; mkdir outside && ln -s ../outside room/link && cp '%s/tests/data/traces/tiny.pt2' room
    cd room && timeout 300 '%s' --safe --write . paths.lua --run none --quiet 2>&1; ls -A ../outside]]):format(folder, root, program))
  expect((output:gsub('trinity: warning[^\n]*\n', ''))):equals 'all tried\n'
end)
