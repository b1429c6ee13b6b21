-- The examples of the reference, as calls: for every function that scripts can call the object and the arguments of its
-- documented example, in a folder with the files that examples read and objects of the names that they use. Everything
-- is small, so that thousands of calls take seconds.

local array = require 'trinity.base.array'
local core = require 'trinity.core'
local ffi = require 'ffi'
local trinity = require 'trinity'

pcall(ffi.cdef, 'int chdir(const char *path);')

local examples = {}

-- Calls of functions whose documented examples take long, run in surroundings of their own, or leave out what a later
-- argument needs.
local instead = {
  ['trinity.cluster'] = "trinity.cluster('p100x2', {})",
  ['trinity.execute'] = 'trinity.execute(executed, executed:placement(), { steps = 2, warm_up = 0 })',
  ['trinity.job'] = "trinity.job(home .. '/tests/data/jobs/pretrain.sh')",
  ['trinity.model'] = "trinity.model('vgg16', { batch_size = 1, training = false })",
  ['trinity.parallel_map'] = 'trinity.parallel_map({ 1, 2 }, function(x) return x end, { workers = 1, quiet = true })',
  ['trinity.random'] = "trinity.random(1, 'my search')",
  ['trinity.MoveTrainer.imitate'] = 'trainer:imitate(1)',
  ['trinity.MoveTrainer.reinforce'] = 'trainer:reinforce(1)',
  ['trinity.FormatsModule.export'] = "trinity.formats.export(strategy, { format = 'megatron' })",
  ['trinity.Job.mean'] = 'job:mean(1)',
  ['trinity.Job.print'] = "job:print ''",
  ['trinity.TorchTensor.max'] = 'x:max(1, true)',
  ['trinity.TorchTensor.min'] = 'x:min(1, true)',
  ['trinity.TorchTensor.prod'] = 'x:prod(1, true)',
  ['trinity.TorchTensor.transpose'] = 'x:transpose(1, 2)',
  ['trinity.PlanModule.run'] = 'trinity.plan.run(few_plans)',
  ['trinity.ProfileModule.measure'] = 'trinity.profile.measure(graph, tiny_profile)',
  ['trinity.Search.more'] = 'search:more()',
  ['trinity.Search.keep'] = 'search:resumed(); search:keep { round = 3 }',
  ['trinity.StragglersModule.run'] = 'trinity.stragglers.run(strategy, { draws = 1 })',
  ['trinity.SystemModule.stop_requested'] = 'trinity.system.stop_requested()',
}

local function small_mixture()
  local graph = dofile(core.home .. '/tests/lua/support/mixture.lua') { layers = 1, hidden = 8, heads = 2,
    num_kv_heads = 2, feed_forward = 8, experts = 2, top_k = 1, vocabulary = 16, batch_size = 1, sequence = 4 }
  return graph:to_training()
end

local function small_layers()
  local net = trinity.graph.layers.new 'example'
  net:linear('y', net:input('x', { 2, 4 }), 3)
  return net:build()
end

--- The search that a body is given, kept after its end.
local function running_search(e)
  local held
  trinity.search.run('held', e.problem, trinity.search.options('held', {}, { evaluations = 4, quiet = true }),
    function(search)
      search:evaluate { e.placement }
      held = search
    end)
  return held
end

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
  candidates = function(e) -- of a search that has not ended
    local seen
    local searcher = require 'trinity.search.ranked'.searcher(e.problem, 'annealing', {}, function(given)
      local scores = {}
      for i = 1, given.count do scores[i] = 0 end
      seen = given
      return scores
    end)
    local room, scores, excess = e.problem:placements(8), array.double(8), array.double(8)
    for turn = 1, 2 do
      for i = 1, searcher:ask(room, 8) do scores[i] = turn + i end
      searcher:tell(scores, excess)
    end
    return seen
  end,
  ranker = function() return trinity.search.rankers.new { hidden = { 4 }, seed = 1 } end,
  trainer = function(e)
    local trainer = trinity.search.rankers.trainer(e.ranker, { seed = 1, evaluations = 16 })
    trainer:add(e.problem, { e.placement })
    return trainer
  end,
  search = running_search,
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
  tiny_profile = function() return { steps = 1, warm_up = 0, copies = 1, sizes = { 64, 4096 }, quiet = true } end,
  profile = function(e) return trinity.profile.measure(e.graph, e.tiny_profile) end,
  replay = function() return trinity.stragglers.replay 'operations.csv' end,
  job = function() return trinity.dist.init() end,
  executed = function()
    return trinity.problem { cluster = trinity.cluster 'p100x2',
      graph = trinity.model('rnnlm', { batch_size = 1, sequence = 2, hidden = 4, vocabulary = 5, layers = 1 }) }
  end,
  few_plans = function()
    return { graph = dofile(core.home .. '/tests/lua/support/graphs.lua').blocks(2), cluster = trinity.cluster 'p100x2',
      global_batch = 4, simulations = 2, quiet = true, space = { tensor = 1, pipeline = 1, context = 1, expert = 1,
        schedule = '1f1b', recompute = 'none', zero_stage = 0 } }
  end,
  home = function() return core.home end,
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
  ['trinity.Graph.to_training'] = function() return { graph = small_layers() } end,
  ['trinity.Graph.fold_backward'] = function()
    local builder = trinity.graph.new { name = 'profile' }
    builder:add { name = 'layer', type = 'Work', outputs = { { bytes = 8 } }, measured_time_s = 1e-3,
      measured_backward_time_s = 2e-3 }
    return { graph = builder:build() }
  end,
  ['trinity.Graph.replicate_stages'] = function()
    local graph, stage = small_layers():to_training(), {}
    for op = 1, graph.operators do stage[op] = graph:operator(op).phase == 'forward' and 1 or 2 end
    return { graph = graph, stage_of = stage }
  end,
  ['trinity.StragglersModule.expert_load'] = function()
    local problem = trinity.problem { graph = small_mixture(), cluster = trinity.cluster 'p100x2' }
    return { strategy = problem:strategy { mesh = { data = 2, expert = 2 } } }
  end,
}

local keeps, kept = { executed = true, few_plans = true, profile = true, strategy = true }, {} -- what no call changes

--- Globals of an example of a function.
function examples.environment(class, name)
  local own = of_class[class .. '.' .. name] or of_class[class]
  local env = own and own() or {}
  env.body = function(search) search:evaluate { search.problem and search.problem:placement() or {} } end
  env.trinity, env.print = trinity, function() end
  return setmetatable(env, { __index = function(self, key)
    local made = kept[key] or makers[key] and makers[key](self)
    if made == nil then return _G[key] end
    if keeps[key] then kept[key] = made end
    rawset(self, key, made)
    return made
  end })
end

--- The documented example of a function that declarations describe, or nil.
function examples.text(method) return method.description:gsub('%s+', ' '):match 'Example: `([^`]+)`' end

local before -- the working directory
local folder -- of examples

--- Goes to the folder of the examples, which is made there; leave() goes back.
function examples.enter(path)
  folder, before = path, core.home
  os.execute(("mkdir -p '%s'"):format(folder))
  local e = examples.environment('trinity', '')
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
  core.write_file(folder .. '/operations.csv', core.read_file(core.home .. '/tests/data/traces/operations.csv'))
  ffi.C.chdir(folder)
end

function examples.leave() ffi.C.chdir(before) end

--- Where the expression begins that ends before `at`: names, fields, and calls with their arguments.
local function expression_before(code, at)
  local depth = 0
  for i = at - 1, 1, -1 do
    local c = code:sub(i, i)
    if c:find '[%)%]}]' then depth = depth + 1
    elseif c:find '[%(%[{]' then
      depth = depth - 1
      if depth < 0 then return i + 1 end
    elseif depth == 0 and not c:find '[%w_.:]' then return i + 1 end
  end
  return 1
end

--- A function of an environment that gives the object and the arguments of an example's call.
local function compiled(class, method)
  local name = class .. '.' .. method.name
  local code = instead[name] or examples.text(method)
  local at, from = code:match('()[:.]' .. method.name .. '()%s*[%({\'"]')
  if not at then error(('%s: no call in its example: %s'):format(name, code), 0) end
  local begin, rest = expression_before(code, at), code:sub(from):gsub('^%s+', '')
  local prelude = code:sub(1, begin - 1):match '^(.*;)' or ''
  local given = rest:sub(1, 1) == '(' and rest:match '^%b()':sub(2, -2) or rest:match '^%b{}'
    or rest:match "^'[^']*'" or rest:match '^"[^"]*"'
  return assert(loadstring(('local pack = ... %s return %s, pack(%s)'):format(prelude, code:sub(begin, at - 1), given),
    '=' .. name))
end

local function pack(...) return { n = select('#', ...), ... } end

local known = {} -- by function: its example and its surroundings

--- A function of a class that declarations describe with valid arguments, the object first where it has one, the number
--- of its parameters, and its object; new ones, but for what changes nothing. `unchanged`: the last call was refused, and
--- its objects are as they were.
function examples.call(class, method, unchanged)
  local name = class .. '.' .. method.name
  local about = known[name] or { make = compiled(class, method) }
  known[name] = about
  local fresh = not unchanged or of_class[class] ~= nil -- where arguments are added to a graph
  if fresh or not about.environment then about.environment = examples.environment(class, method.name) end
  local self, given = setfenv(about.make, about.environment)(pack)
  local offset = method.separator == ':' and 1 or 0
  local arguments = offset == 1 and { self } or {}
  for i = 1, given.n do arguments[i + offset] = given[i] end
  return self[method.name], arguments, #method.parameters + offset, self
end

local made = {}

--- Objects that calls do not change, made once.
function examples.shared()
  if made.problem then return made end
  local builder = trinity.graph.new { name = 'example' }
  local x = builder:add { name = 'x', type = 'Input', outputs = { { shape = { 4 }, gradient = false } } }
  for i = 1, 2 do
    builder:add { name = 'work' .. i, type = 'Work', inputs = { x }, outputs = { { shape = { 1000 } } },
      measured_time_s = i * 1e-3 }
  end
  made.graph, made.cluster = builder:build(), trinity.cluster 'p100x2'
  made.problem = trinity.problem { graph = made.graph, cluster = made.cluster }
  made.placement = made.problem:placement()
  made.strategy = made.problem:strategy(made.placement, { method = 'by hand' })
  made.metrics, made.timeline = made.strategy.metrics, made.problem:timeline(made.placement)
  made.stream = trinity.random(1, 'examples')
  return made
end

--- Values of every kind: { label, value }; nil is not among them.
function examples.kinds()
  local e = examples.shared()
  local closed = trinity.problem { graph = e.graph, cluster = e.cluster }
  closed:close()
  local closed_graph = trinity.graph.layers.new 'closed'
  closed_graph:input('x', { 1 })
  closed_graph = closed_graph:build()
  closed_graph:close()
  return {
    { 'true', true }, { 'number', 3 }, { '-1', -1 }, { '0', 0 }, { '0.5', 0.5 }, { 'nan', 0 / 0 }, { 'inf', math.huge },
    { '1e300', 1e300 }, { 'empty string', '' }, { 'text', '/proc/nowhere/text' }, { 'text with NUL', '/proc/nowhere/te\0xt' },
    { 'long text', '/proc/nowhere/' .. ('x'):rep(2 ^ 20) }, { '{}', {} }, { '{ 1 }', { 1 } },
    { 'wrong keys', { nonsense = 1 } }, { 'mixed keys', { 1, 'a', nonsense = {}, [0.5] = true } },
    { 'function', function() end }, { 'function of C', type }, { 'coroutine', coroutine.create(function() end) },
    { 'cdata number', ffi.new 'int64_t' }, { 'cdata array', ffi.new 'double[3]' }, { 'file', io.stdout },
    { 'closed problem', closed }, { 'closed graph', closed_graph }, { 'handle', e.graph.handle },
    { 'graph', e.graph }, { 'cluster', e.cluster }, { 'problem', e.problem }, { 'strategy', e.strategy },
    { 'placement', e.placement }, { 'metrics', e.metrics }, { 'stream', e.stream },
    { 'tensor', trinity.tensor.new { 1, 2 } },
  }
end

return examples
