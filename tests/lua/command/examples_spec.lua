-- Every public function has an example in the reference, and it runs, in a folder of its own with objects of the names
-- that examples use.

local core = require 'trinity.core'
local declarations = require 'trinity.command.declarations'
local ffi = require 'ffi'
local trinity = require 'trinity'

ffi.cdef 'int chdir(const char *path);'

-- Examples that need more than a process and a folder; other specs call these functions.
local elsewhere = {
  ['trinity.Job'] = 'dist/dist', ['trinity.Work'] = 'dist/dist', ['trinity.DistModule'] = 'dist/dist',
  ['trinity.Search'] = 'search/search: objects of a running search', ['trinity.execute'] = 'execute/execute', ['trinity.job'] = 'job/job',
  ['trinity.Graph.fold_backward'] = 'graph/fold', ['trinity.Graph.replicate_stages'] = 'graph/replicas',
}

local quiet = { evaluations = 4, quiet = true }

-- Objects by name, made when an example first uses them.
local makers = {
  graph = function()
    local net = trinity.graph.layers.new 'example'
    local y = net:relu('y', net:linear('conv_1', net:input('x', { 2, 4 }), 3))
    net:softmax_cross_entropy('loss', y, net:input('labels', { 2 }, 'int64'))
    return net:build():to_training()
  end,
  cluster = function() return trinity.cluster 'p100x2' end,
  problem = function(e) return trinity.problem { graph = e.graph, cluster = e.cluster } end,
  p = function(e) return e.problem:placement() end,
  q = function(e) return e.problem:placement_by_unit(function(unit) return unit % 2 + 1 end) end,
  placement = function(e) return e.problem:placement() end,
  found = function(e) return e.problem:strategy(e.p) end,
  best = function(e) return e.problem:strategy(e.q) end,
  metrics = function(e) return e.found.metrics end,
  timeline = function(e) return e.problem:timeline(e.p) end,
  segment_of = function(e)
    local segment = {}
    for op = 1, e.graph.operators do segment[op] = 1 end
    return segment
  end,
  comparison = function(e) return trinity.compare(e.problem, { 'heft', 'round_robin' }, quiet) end,
  strategy = function()
    local graph = trinity.model('decoder', { layers = 4, hidden = 8, heads = 2, feed_forward = 16, vocabulary = 16, sequence = 4,
      positions = 4, batch_size = 1 })
    local problem = trinity.problem { graph = graph, cluster = trinity.cluster 'p100x2' }
    return problem:strategy { mesh = { pipeline = 2 }, micro_batches = 2 }
  end,
  builder = function()
    local builder = trinity.graph.new { name = 'example' }
    builder:add { name = 'a', type = 'Work', outputs = { { bytes = 4096 } } }
    builder:add { name = 'b', type = 'Work' }
    builder:add { name = 'sum', type = 'AllReduce', outputs = { { bytes = 8 } } }
    return builder
  end,
  tasks = function(e) return e.problem:task_graph() end,
  moves = function(e) return e.problem:moves { seed = 1 } end,
  candidates = function(e)
    e.moves:look(e.placement)
    return e.moves:draw(e.placement, 8)
  end,
  ranker = function() return trinity.search.rankers.new { hidden = { 4 }, seed = 1 } end,
  trainer = function(e)
    local trainer = trinity.search.rankers.trainer(e.ranker, { seed = 1 })
    trainer:add(e.problem, { e.placement })
    return trainer
  end,
  env = function(e) return trinity.env(e.problem, { groups = 2, num_envs = 2 }) end,
  policy = function(e) return trinity.learn.scorer(e.env, { hidden = 4 }) end,
  observation = function(e) return e.env:reset(1) end,
  agent = function(e) return trinity.learn.agent(e.problem, { groups = 2, samples = 2 }) end,
  rewards = function() return { 1, 2 } end,
  steps = function() return trinity.tensor.zeros { 4, 2 } end,
  dones = function() return trinity.tensor.zeros { 4, 2 } end,
  last = function() return trinity.tensor.zeros { 2 } end,
  network = function() return trinity.nn.linear { inputs = 2, outputs = 2 } end,
  optimiser = function(e) return trinity.nn.adam { parameters = e.network:parameters() } end,
  stream = function() return trinity.random(1, 'examples') end,
  x = function() return trinity.tensor.new { { 1, 2 }, { 3, 4 } } end,
  y = function() return trinity.tensor.new { { 1, 2 }, { 3, 4 } } end,
  w = function() return trinity.tensor.new({ 1, 2 }, { requires_grad = true }) end,
  logits = function() return trinity.tensor.new { { 1, 2 }, { 3, 4 } } end,
  log_probabilities = function(e) return e.logits:log_softmax() end,
  targets = function() return trinity.tensor.new({ 1, 2 }, { dtype = 'int64' }) end,
  loss = function(e) return e.w:sum() end,
  pase = function(e) return trinity.pase(e.graph, { devices = 2 }) end,
  profile = function(e)
    return trinity.profile.measure(e.graph, { steps = 1, warm_up = 0, copies = 1, sizes = { 64, 4096 }, quiet = true })
  end,
  replay = function() return trinity.stragglers.replay 'operations.csv' end,
}

-- Objects of other kinds for the methods of a class.
local of_class = {
  ['trinity.Layers'] = function()
    local net = trinity.graph.layers.new 'example'
    return { net = net, x = net:input('x', { 2, 6, 8 }), image = net:input('image', { 2, 8, 12, 10 }),
      rows = net:input('rows', { 6, 4 }), tokens = net:input('tokens_of_rows', { 2, 3 }, 'int64') }
  end,
  ['trinity.Topology'] = function() return { net = trinity.devices.topology.new() } end,
  ['trinity.Builder'] = function()
    local builder = makers.builder()
    return { builder = builder, x = builder:add { name = 'x', type = 'Input', outputs = { { shape = { 4 } } } } }
  end,
  ['trinity.Graph.to_training'] = function()
    local net = trinity.graph.layers.new 'example'
    net:linear('y', net:input('x', { 2, 4 }), 3)
    return { graph = net:build() }
  end,
  ['trinity.StragglersModule.expert_load'] = function()
    local graph = dofile(root .. '/tests/lua/support/mixture.lua') { layers = 1, hidden = 8, heads = 2, num_kv_heads = 2,
      feed_forward = 8, experts = 2, top_k = 1, vocabulary = 16, batch_size = 1, sequence = 4 }
    local problem = trinity.problem { graph = graph:to_training(), cluster = trinity.cluster 'p100x2' }
    return { strategy = problem:strategy { mesh = { data = 2, expert = 2 } } }
  end,
}

local function environment(class, name)
  local own = of_class[class .. '.' .. name] or of_class[class]
  local env = own and own() or {}
  env.body = function(search) search:evaluate { search.problem and search.problem:placement() or {} } end
  env.trinity, env.print = trinity, function() end
  return setmetatable(env, { __index = function(self, key)
    local made = makers[key] and makers[key](self)
    if made == nil then return _G[key] end
    rawset(self, key, made)
    return made
  end })
end

local function prepare(folder)
  local e = environment('trinity', '')
  e.strategy.problem:strategy(e.strategy.problem:placement()):save(folder .. '/other.json')
  e.found:save(folder .. '/strategy.json')
  e.profile:save(folder .. '/profile.json')
  e.network:save(folder .. '/network.safetensors')
  e.optimiser:save(folder .. '/optimiser.safetensors')
  e.trainer:save(folder .. '/moves.training')
  trinity.tensor.save(folder .. '/x.safetensors', { x = e.x })
  core.write_file(folder .. '/a.json', '{"a": 1}')
  core.write_file(folder .. '/notes.txt', 'text')
  core.write_file(folder .. '/lengths.csv', 'length,count\n2,3\n4,1\n')
  core.write_file(folder .. '/operations.csv', core.read_file(root .. '/tests/data/traces/operations.csv'))
end

describe('examples of the reference', function()
  local folder = temporary '.examples'
  os.execute(("mkdir -p '%s'"):format(folder))
  prepare(folder)
  local declared = declarations.read()
  for _, class in ipairs(declared.order) do
    for _, method in ipairs(declared.classes[class].methods) do
      local name = ('%s%s%s'):format(class, method.separator, method.name)
      it(name .. ' has one that runs', function()
        local code = method.description:gsub('%s+', ' '):match 'Example: `([^`]+)`'
        if not code then error('no example', 0) end
        expect(#code):below(400)
        if elsewhere[class] or elsewhere[class .. '.' .. method.name] then return end
        local chunk = loadstring('return ' .. code) or assert(loadstring(code))
        setfenv(chunk, environment(class, method.name))
        ffi.C.chdir(folder)
        local ok, message = pcall(chunk)
        ffi.C.chdir(root)
        expect(ok and 'runs' or ('%s: %s'):format(code, tostring(message))):equals 'runs'
      end)
    end
  end
end)
