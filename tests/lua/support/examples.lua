-- Valid arguments for every function that scripts can call: what tests/lua/whole/arguments_spec.lua replaces
-- one by one with values of the wrong kind. Everything is small, so that thousands of calls take seconds.

local core = require 'trinity.core'
local ffi = require 'ffi'
local trinity = require 'trinity'

local examples = {}

local paths = {}

--- A file to write, which clean() removes.
function examples.path()
  paths[#paths + 1] = os.tmpname()
  return paths[#paths]
end

--- Makes the graph that plans are made for: two devices' work and a collective.
local function small_graph()
  local builder = trinity.graph.new { name = 'example' }
  local x = builder:add { name = 'x', type = 'Input', outputs = { { shape = { 4 }, gradient = false } } }
  for i = 1, 2 do
    builder:add { name = 'work' .. i, type = 'Work', inputs = { x }, outputs = { { shape = { 1000 } } },
      measured_time_s = i * 1e-3 }
  end
  return builder:build()
end

--- A graph with measured times alone, as profiles hold.
local function profile_graph()
  local builder = trinity.graph.new { name = 'profile' }
  builder:add { name = 'layer', type = 'Work', outputs = { { bytes = 8 } }, measured_time_s = 1e-3,
    measured_backward_time_s = 2e-3 }
  return builder:build()
end

local function forward_graph()
  local net = trinity.graph.layers.new 'forward'
  net:linear('linear', net:input('x', { 2, 4 }), 3)
  return net:build()
end

local made = {}

--- Objects that calls do not change, made once.
function examples.shared()
  if made.problem then return made end
  made.graph, made.forward, made.cluster = small_graph(), forward_graph(), trinity.cluster 'p100x2'
  made.problem = trinity.problem { graph = made.graph, cluster = made.cluster }
  made.placement = made.problem:placement()
  made.strategy = made.problem:strategy(made.placement, { method = 'by hand' })
  made.metrics, made.timeline = made.strategy.metrics, made.problem:timeline(made.placement)
  made.comparison = trinity.compare(made.problem, { made.strategy })
  made.stream = trinity.random(1, 'examples')
  made.path = examples.path()
  made.strategy:save(made.path)
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

--- Removes what the examples have written.
function examples.clean()
  for _, path in ipairs(paths) do os.remove(path) end
  os.remove 'name' -- the word that strings are, which some functions take for a file to write
  paths, made = {}, {}
end

local function builder()
  local object = trinity.graph.new { name = 'example' }
  object:add { name = 'first', type = 'Work', outputs = { { bytes = 8 } } }
  object:add { name = 'second', type = 'Work' }
  return object
end

-- Tensors that layers take, made by the object that a method is called on.
local function tensors_of(net)
  return {
    image = function(channels) return net:input('image', { 2, channels or 8, 12, 10 }) end,
    rows = function() return net:input('rows', { 6, 4 }) end,
    sequence = function(name) return net:input(name or 'sequence', { 2, 6, 8 }) end,
    numbers = function() return net:input('numbers', { 2, 3 }, 'int64') end,
    state = function(name) return net:input(name, { 2, 5 }) end,
    of = function(name, shape) return net:input(name, shape) end,
  }
end

local function topology()
  local net = trinity.devices.topology.new()
  net:devices('n0', 2, 't4')
  return net
end

--- The search that a body is given, kept after its end.
local function running_search()
  local e, held = examples.shared(), nil
  trinity.search.run('held', e.problem, trinity.search.options('held', {}, { evaluations = 4, quiet = true }),
    function(search)
      search:evaluate { e.placement }
      held = search
    end)
  return held
end

local tiny_profile = { steps = 1, warm_up = 0, copies = 1, sizes = { 64, 4096 }, quiet = true }

--- A network that is executed in no time, a profile of it, and that profile's file; made once.
local function profiled()
  if made.profile then return made end
  made.network = trinity.model('rnnlm', { batch_size = 1, sequence = 2, hidden = 4, vocabulary = 5, layers = 1 })
  made.profile, made.profile_path = trinity.profile.measure(made.network, tiny_profile), examples.path()
  made.profile:save(made.profile_path)
  return made
end

local recorded = core.home .. '/tests/data/traces/operations.csv'

--- A strategy of a network with experts; made once.
local function experts()
  if made.experts then return made.experts end
  local graph = dofile(core.home .. '/tests/lua/support/mixture.lua') { layers = 1, hidden = 8, heads = 2, num_kv_heads = 2,
    feed_forward = 8, experts = 2, top_k = 1, vocabulary = 16, batch_size = 1, sequence = 4 }
  local problem = trinity.problem { graph = graph:to_training(), cluster = made.cluster or trinity.cluster 'p100x2' }
  made.experts = problem:strategy { mesh = { data = 2, expert = 2 } }
  return made.experts
end

--- An object of a class to call methods on, a new one where calls change it.
examples.objects = {
  ['trinity'] = function() return trinity end,
  ['trinity.DevicesModule'] = function() return trinity.devices end,
  ['trinity.SystemModule'] = function() return trinity.system end,
  ['trinity.PlotModule'] = function() return trinity.plot end,
  ['trinity.TopologyModule'] = function() return trinity.devices.topology end,
  ['trinity.GraphModule'] = function() return trinity.graph end,
  ['trinity.LayersModule'] = function() return trinity.graph.layers end,
  ['trinity.FilesModule'] = function() return trinity.files end,
  ['trinity.JsonModule'] = function() return trinity.files.json end,
  ['trinity.RewardsModule'] = function() return trinity.rewards end,
  ['trinity.MethodsModule'] = function() return trinity.methods end,
  ['trinity.PipelineModule'] = function() return trinity.pipeline end,
  ['trinity.ProfileModule'] = function() return trinity.profile end,
  ['trinity.Profile'] = function() return profiled().profile end,
  ['trinity.SearchModule'] = function() return trinity.search end,
  ['trinity.StragglersModule'] = function() return trinity.stragglers end,
  ['trinity.Run'] = function() return trinity.run end,
  ['trinity.Graph'] = function(method)
    if method == 'close' then return small_graph() end
    if method == 'fold_backward' then return profile_graph() end
    if method == 'recompute' then return examples.shared().forward:to_training() end
    return method == 'to_training' and examples.shared().forward or examples.shared().graph
  end,
  ['trinity.Builder'] = builder,
  ['trinity.Layers'] = function(method)
    local net = trinity.graph.layers.new 'example'
    if method == 'build' then net:input('x', { 4 }) end
    return net
  end,
  ['trinity.Topology'] = topology,
  ['trinity.Cluster'] = function(method)
    return method == 'close' and trinity.cluster 'p100x2' or examples.shared().cluster
  end,
  ['trinity.Problem'] = function(method)
    local e = examples.shared()
    return method == 'close' and trinity.problem { graph = e.graph, cluster = e.cluster } or e.problem
  end,
  ['trinity.Strategy'] = function(method)
    return method == 'rank_orders' and experts() or examples.shared().strategy
  end,
  ['trinity.Timeline'] = function(method)
    local e = examples.shared()
    return method == 'close' and e.problem:timeline(e.placement) or e.timeline
  end,
  ['trinity.Search'] = running_search,
  ['trinity.Replay'] = function() return trinity.stragglers.replay(recorded) end,
  ['trinity.Comparison'] = function() return examples.shared().comparison end,
  ['trinity.Metrics'] = function() return examples.shared().metrics end,
  ['trinity.RandomStream'] = function(method)
    return method == 'close' and trinity.random(1, 'closed') or examples.shared().stream
  end,
  ['trinity.Placement'] = function() return examples.shared().problem:placement() end,
  ['trinity.DoubleArray'] = function() return examples.shared().timeline.start_s end,
  ['trinity.Int32View'] = function() return examples.shared().graph.depth end,
}

--- A value of a declared type; `self` is the object that the method is called on.
examples.values = {
  ['string'] = function() return 'name' end,
  ['integer'] = function() return 1 end,
  ['number'] = function() return 1 end,
  ['boolean'] = function() return true end,
  ['any'] = function() return 1 end,
  ['integer[]'] = function() return { 1 } end,
  ['number[]'] = function() return { 3, 1, 2 } end,
  ['string[]'] = function() return { 'a', 'b' } end,
  ['string[][]'] = function() return { { 'a', 'b' } } end,
  ['table<string, any>'] = function() return {} end,
  ['table<string, number>'] = function() return { loss = 1 } end,
  ['table<string|integer, any>'] = function() return { 1, 2 } end,
  ['table<string, number|string|boolean>'] = function() return { step = 1 } end,
  ['trinity.Tensor'] = function(self) return (self.builder or self):add { name = 'tensor' .. math.random(1e9), type = 'Input',
    outputs = { { shape = { 2, 6, 8 }, gradient = false } } } end,
  ['trinity.Plan'] = function() return examples.shared().placement end,
  ['trinity.Plan[]'] = function() return { examples.shared().placement } end,
  ['trinity.Placement[]'] = function() return { examples.shared().placement } end,
  ['trinity.Metrics'] = function() return examples.shared().metrics end,
  ['trinity.Problem'] = function() return examples.shared().problem end,
  ['trinity.Strategy'] = function() return examples.shared().strategy end,
  ['trinity.SearchOptions'] = function() return { evaluations = 2, quiet = true } end,
  ['trinity.OperatorRef'] = function() return 'work1' end,
  ['trinity.OperatorRef|trinity.OperatorRef[]'] = function() return { 'work1', 3 } end,
  ['trinity.WireName'] = function() return 'qpi' end,
  ['trinity.Method'] = function() return function(problem) return problem:placement() end end,
}

-- All operators of a graph as one stage.
local function one_stage(graph)
  local stage = {}
  for i = 1, graph.operators do stage[i] = 1 end
  return stage
end

local function plotted() return { examples.path(), { series = { { name = 'a', points = { { 1, 2 } } } }, x = 's' } } end

--- Arguments of a function as a list, where those by type do not do.
examples.arguments = {
  ['trinity.options'] = function() return { { steps = { default = 3 } }, { '--steps=4' } } end,
  ['trinity.model'] = function() return { 'vgg16', { batch_size = 1, training = false } } end,
  ['trinity.cluster'] = function() return { 'p100x2' } end,
  ['trinity.problem'] = function()
    local e = examples.shared()
    return { { graph = e.graph, cluster = e.cluster } }
  end,
  ['trinity.compare'] = function()
    return { examples.shared().problem, { 'round_robin' }, { quiet = true } }
  end,
  ['trinity.job'] = function() return { core.home .. '/tests/data/jobs/pretrain.sh' } end,
  ['trinity.execute'] = function()
    local problem = trinity.problem { cluster = trinity.cluster 'p100x2',
      graph = trinity.model('rnnlm', { batch_size = 1, sequence = 2, hidden = 4, vocabulary = 5, layers = 1 }) }
    return { problem, problem:placement(), { steps = 2, warm_up = 0 } }
  end,
  ['trinity.ProfileModule.measure'] = function() return { profiled().network, tiny_profile } end,
  ['trinity.ProfileModule.load'] = function() return { profiled().profile_path } end,
  ['trinity.Profile.save'] = function() return { examples.path() } end,
  ['trinity.Profile.is_of'] = function() return { profiled().network } end,
  ['trinity.Profile.cost'] = function() return { profiled().network, function(_, _, default_s) return default_s end } end,
  ['trinity.StragglersModule.replay'] = function() return { recorded } end,
  ['trinity.StragglersModule.run'] = function() return { examples.shared().strategy, { draws = 1 } } end,
  ['trinity.StragglersModule.expert_load'] = function() return { experts(), { load = 'uniform' } } end,
  ['trinity.StragglersModule.context_degrees'] = function()
    return { experts(), { lengths = function() return 4 end, draws = 1 } }
  end,
  ['trinity.Replay.what_if'] = function() return { { stage = 0 } } end,
  ['trinity.parallel_map'] = function() return { { 1, 2 }, function(x) return x end, { workers = 1, quiet = true } } end,
  ['trinity.FilesModule.read'] = function() return { core.home .. '/README.md' } end,
  ['trinity.FilesModule.write'] = function() return { examples.path(), 'text' } end,
  ['trinity.FilesModule.list'] = function() return { core.home .. '/models' } end,
  ['trinity.JsonModule.decode'] = function() return { '{}' } end,
  ['trinity.JsonModule.read'] = function() return { core.home .. '/tests/data/selection/example.json' } end,
  ['trinity.PlotModule.lines'] = plotted,
  ['trinity.PlotModule.scatter'] = plotted,
  ['trinity.PlotModule.pareto'] = plotted,
  ['trinity.PlotModule.front'] = function() return { { { 1, 2 } } } end,
  ['trinity.PlotModule.bars'] = function()
    return { examples.path(), { groups = { 'a' }, series = { 'b' }, values = { { 1 } }, y = 's' } }
  end,
  ['trinity.PlotModule.csv'] = function() return { examples.path(), { 'a' }, { { 1 } } } end,
  ['trinity.Search.keep'] = function(search)
    search:resumed()
    return { { round = 1 } }
  end,
  ['trinity.Comparison.significance'] = function() return { 'by hand', 'by hand' } end,
  ['trinity.SystemModule.stoppable'] = function() return { function() end } end,
  ['trinity.global'] = function() return { 'example_of_a_global', 1 } end,
  ['trinity.SystemModule.sorted_pairs'] = function() return { { a = 1 } } end,
  ['trinity.SystemModule.format_table'] = function() return { { 'a' }, { { 'b' } } } end,
  ['trinity.DevicesModule.find'] = function() return { 'p100' } end,
  ['trinity.DevicesModule.with'] = function() return { 'p100', { launch_s = 1e-6 } } end,
  ['trinity.TopologyModule.new'] = function() return { { name = 'net' } } end,
  ['trinity.TopologyModule.wire'] = function() return { 'qpi', { latency_s = 1e-6 } } end,
  ['trinity.GraphModule.new'] = function() return { { name = 'graph' } } end,
  ['trinity.GraphModule.wrap'] = function() return { examples.shared().graph.handle } end,
  ['trinity.LayersModule.new'] = function() return { 'net', { dtype = 'float32' } } end,
  ['trinity.LayersModule.choice'] = function() return { 'model', 'size', 'small', { small = 1, large = 2 } } end,
  ['trinity.RewardsModule.mdpe'] = function() return { { alpha = 1 } } end,
  ['trinity.MethodsModule.register'] = function()
    return { 'example', function(problem) return problem:placement() end, { help = 'text' } }
  end,
  ['trinity.MethodsModule.info'] = function() return { 'random' } end,
  ['trinity.PipelineModule.register'] = function() return { 'x', { run = function() end } } end,
  ['trinity.PipelineModule.help'] = function() return { 'gpipe' } end,
  ['trinity.MethodsModule.get'] = function() return { 'random' } end,
  ['trinity.MethodsModule.trinity'] = function()
    return { examples.shared().problem, { evaluations = 2, samples = 2, groups = 2, epochs = 1, quiet = true } }
  end,
  ['trinity.SearchModule.options'] = function() return { 'mine', { batch = 1 }, { batch = 2 } } end,
  ['trinity.SearchModule.run'] = function()
    local e = examples.shared()
    return { 'mine', e.problem, trinity.search.options('mine', {}, { evaluations = 1, quiet = true }),
      function(search) search:evaluate { e.placement } end }
  end,
  ['trinity.Graph.operator'] = function() return { 1 } end,
  ['trinity.Graph.csr'] = function() return { 'in' } end,
  ['trinity.Graph.topological_order'] = function() return { 'depth_first' } end,
  ['trinity.Graph.critical_path'] = function() return { { time_s = function() return 1 end } } end,
  ['trinity.Graph.min_cut'] = function() return { 1, { 'work1', 3 }, { backward = 'counted' } } end,
  ['trinity.Graph.to_training'] = function() return { { optimizer = 'sgd' } } end,
  ['trinity.Graph.replicate'] = function() return { { replicas = 2 } } end,
  ['trinity.Graph.save'] = function() return { examples.path() } end,
  ['trinity.Graph.recompute'] = function(graph) return { { segment = one_stage(graph) } } end,
  ['trinity.Graph.replicate_stages'] = function(graph)
    return { { stage = one_stage(graph), replicas = { 1 } } }
  end,
  ['trinity.Builder.add'] = function() return { { name = 'added', type = 'Work', outputs = { { bytes = 8 } } } } end,
  ['trinity.Builder.add_operator'] = function() return { { name = 'added', time_s = 1e-3 } } end,
  ['trinity.Builder.add_edge'] = function() return { 'first', 'second', 8 } end,
  ['trinity.Builder.collective'] = function(self)
    self:add { name = 'sum', type = 'AllReduce', outputs = { { bytes = 8 } } }
    return { { name = 'all', kind = 'all_reduce', bytes = 8, members = { 'sum' } } }
  end,
  ['trinity.Cluster.wire'] = function() return { 1, 2 } end,
  ['trinity.Cluster.route'] = function() return { 1, 2 } end,
  ['trinity.Cluster.collective'] = function() return { { kind = 'all_reduce', devices = { 1, 2 }, bytes = 8 } } end,
  ['trinity.Topology.device_type'] = function() return { 'mine', trinity.devices.t4 } end,
  ['trinity.Topology.devices'] = function() return { 'n1', 2, 't4', { speed = 1 } } end,
  ['trinity.Topology.link'] = function() return { 'n0/gpu0', { 'a', 'b' }, 'qpi', 2 } end,
  ['trinity.Topology.machines'] = function(net) return { 2, function(name) net:devices(name, 2, 't4') end } end,
  ['trinity.Topology.mesh'] = function() return { { 'a', 'b' }, 'qpi', 2 } end,
  ['trinity.Problem.placement_by_unit'] = function() return { function() return 1 end } end,
  ['trinity.Problem.load'] = function() return { examples.shared().path } end,
  ['trinity.Problem.to_json'] = function() return { examples.shared().placement, { note = 1 } } end,
  ['trinity.Problem.better'] = function()
    local e = examples.shared()
    return { e.strategy, { metrics = e.metrics, reward = 1 } }
  end,
  ['trinity.Strategy.save'] = function() return { examples.path() } end,
  ['trinity.Timeline.save'] = function() return { examples.path() } end,
}

--- Arguments of layers: { name, tensors and the rest }.
local function layer(name, make)
  examples.arguments['trinity.Layers.' .. name] = function(net) return make(tensors_of(net)) end
end

layer('weight', function() return { 'w', { 1, 2 }, false } end)
layer('operator', function() return { 'Work', 'work', { shapes = { { 1 } } } } end)
layer('input', function() return { 'x', { 1, 2 }, 'float32' } end)
layer('constant', function() return { 'x', 1, { 1, 2 }, 'float32' } end)
layer('concat', function(t) return { 'y', { t.of('a', { 2, 3 }), t.of('b', { 2, 4 }) }, 2 } end)
layer('reshape', function(t) return { 'y', t.rows(), { -1, 2 } } end)
layer('transpose', function(t) return { 'y', t.rows(), { 2, 1 } } end)
layer('linear', function(t) return { 'y', t.rows(), 3, { bias = false } } end)
layer('matmul', function(t) return { 'y', t.of('a', { 2, 3 }), t.of('b', { 3, 4 }) } end)
layer('softmax_cross_entropy', function(t) return { 'y', t.rows(), t.of('labels', { 6 }) } end)
layer('add_loss', function(t) return { 'y', t.of('a', { 1 }), t.of('b', { 1 }), 0.4 } end)
layer('conv', function(t) return { 'y', t.image(), { channels = 4, kernel = 3, padding = 'same' } } end)
layer('depthwise_conv', function(t) return { 'y', t.image(), { kernel = 3 } } end)
layer('separable_conv', function(t) return { 'y', t.image(), { channels = 4, kernel = 3 } } end)
layer('batch_norm', function(t) return { 'y', t.image(), { scale = false } } end)
layer('max_pool', function(t) return { 'y', t.image(), { kernel = 2 } } end)
layer('average_pool', function(t) return { 'y', t.image(), { kernel = 2 } } end)
layer('global_average_pool', function(t) return { 'y', t.image() } end)
layer('zero_pad', function(t) return { 'y', t.image(), { 1, 1, 1, 1 } } end)
layer('crop', function(t) return { 'y', t.image(), { 1, 1, 1, 1 } } end)
layer('gather', function(t) return { 'y', t.rows(), t.numbers() } end)
layer('embedding', function(t) return { 'y', t.numbers(), { rows = 10, features = 4 } } end)
layer('split', function(t) return { 'y', t.rows(), 1, { 2, 4 } } end)
layer('unstack', function(t) return { 'y', t.rows(), 1 } end)
layer('stack', function(t) return { 'y', { t.of('a', { 2, 3 }), t.of('b', { 2, 3 }) }, 1 } end)
layer('slice', function(t) return { 'y', t.rows(), 1, 2, 3 } end)
layer('expand', function(t) return { 'y', t.of('a', { 1, 3 }), { 2, 3 } } end)
layer('top_k', function(t) return { 'y', t.rows(), 2 } end)
layer('one_hot', function(t) return { 'y', t.numbers(), 5, 3 } end)
layer('scatter_add', function(t) return { 'y', t.rows(), t.of('n', { 2 }), t.of('r', { 2, 4 }) } end)
for _, name in ipairs { 'reduce_sum', 'reduce_mean', 'reduce_l2' } do
  layer(name, function(t) return { 'y', t.rows(), 1 } end)
end
for _, name in ipairs { 'sum', 'mean' } do
  layer(name, function(t) return { 'y', { t.of('a', { 2 }), t.of('b', { 2 }) } } end)
end
layer('lstm_cell', function(t)
  return { 'y', t.of('x', { 2, 3 }), t.state 'h', t.state 'c', { weight = t.of('w', { 8, 20 }), bias = t.of('b', { 20 }) } }
end)
layer('lstm_steps', function() return { 'y', { inputs = 3, hidden = 5, batch_size = 2 } } end)
layer('lstm', function(t) return { 'y', t.sequence(), { hidden = 5 } } end)
layer('drop', function(t) return { 'y', t.rows(), 0.5 } end)
layer('attention', function(t) return { 'y', t.sequence 'q', t.sequence 'k', t.sequence 'v', { heads = 2 } } end)
layer('self_attention', function(t) return { 'y', t.sequence(), { heads = 2 } } end)
layer('rotary', function(t) return { 'y', t.sequence(), { t.of('cos', { 6, 2 }), t.of('sin', { 6, 2 }) }, 2 } end)
layer('feed_forward', function(t) return { 'y', t.sequence(), { heads = 2, feed_forward = 16 } } end)
layer('transformer_block', function(t) return { 'y', t.sequence(), { heads = 2, feed_forward = 16 } } end)
layer('gated_feed_forward', function(t) return { 'y', t.sequence(), { feed_forward = 16 } } end)
layer('mixture_of_experts', function(t) return { 'y', t.sequence(), { feed_forward = 16, experts = 4, top_k = 2 } } end)
layer('latent_attention', function(t)
  return { 'y', t.sequence(), { heads = 2, kv_lora_rank = 4, qk_nope_head_dim = 4, qk_rope_head_dim = 2, v_head_dim = 4,
    rotary = { t.of('cos', { 6, 1 }), t.of('sin', { 6, 1 }) } } }
end)
layer('additive_attention', function(t) return { 'y', t.sequence(), 4 } end)
layer('multiplicative_attention', function(t) return { 'y', t.sequence(), 4 } end)

for _, part in ipairs { 'tensor', 'policy', 'distribute', 'split', 'formats', 'plan' } do
  dofile(('%s/tests/lua/support/%s_examples.lua'):format(core.home, part))(examples)
end

--- A function of a class that declarations describe with valid arguments, the object first where it has one.
function examples.call(class, method)
  local self = examples.objects[class](method.name)
  local key = class .. '.' .. method.name
  local given = examples.arguments[key] and examples.arguments[key](self)
  local arguments = method.separator == ':' and { self } or {}
  for i, parameter in ipairs(method.parameters) do
    local value
    if given then value = given[i]
    elseif parameter.name ~= '...' then
      local make = examples.values[parameter.type]
      if make then value = make(self)
      elseif not parameter.optional then
        error(('%s: no example of type %s for %s'):format(key, parameter.type, parameter.name), 0)
      end
    end
    arguments[#arguments + 1] = value
    if value == nil then break end -- the rest is optional too
  end
  return self[method.name], arguments, #method.parameters + (method.separator == ':' and 1 or 0)
end

return examples
