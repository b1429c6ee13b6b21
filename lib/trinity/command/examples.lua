-- Examples of public functions whose doc comments have none: by class and function. The reference shows them;
-- tests/lua/command/examples_spec.lua runs all examples, with objects of these names.

local util = require 'trinity.base.util'

local examples = {}

examples['trinity'] = {
  options = "trinity.options({ steps = { default = 3, help = 'training steps' } }, { '--steps=4' }).steps",
  env = 'local env = trinity.env(problem, { groups = 2, num_envs = 2 })',
  compare = "print(trinity.compare(problem, { 'heft', 'round_robin' }, { quiet = true }))",
  global = "trinity.global('best_so_far', 1)", random = "trinity.random(1, 'my search'):uniform()",
}

examples['trinity.ActorCritic'] = {
  act = "local actions, log_probs, values = policy:act(env:reset(), trinity.random(1, 'agent'))",
  evaluate = 'local log_probs, entropy, values = policy:evaluate(observation, (policy:act(observation)))',
  value = 'policy:value(observation)', parameters = '#policy:parameters()',
}
examples['trinity.Agent'] = {
  sample = 'local placements = agent:sample()',
  update = 'agent:sample(); agent:update(rewards)',
  imitate = 'agent:imitate { problem:placement() }',
  save = "agent:save 'policy.bin'", actions = 'agent:sample(); agent:actions()', profile = 'agent:profile()',
  greedy = 'agent:greedy()', close = 'agent:close()',
}
examples['trinity.Env'] = {
  reset = 'local observation = env:reset(1)',
  step = 'local observation, reward, done, info = env:step((policy:act(env:reset())))',
  best = 'env:reset(1); env:best()', observation = 'env:observation().mask', placements = '#env:placements()',
  graph = 'env:graph(1)',
}
examples['trinity.LearnModule'] = {
  features = 'trinity.learn.features(problem).values',
  returns = 'trinity.learn.returns(steps, dones, 0.99)', gae = 'trinity.learn.gae(steps, dones, steps, last)',
  scorer = 'local policy = trinity.learn.scorer(env, { hidden = 32 })', policy = 'trinity.learn.policy(policy.network)',
  ppo = 'trinity.learn.ppo(env, policy, { total_timesteps = 16, num_steps = 4 })',
  reinforce = 'trinity.learn.reinforce(env, policy, { total_timesteps = 16, num_steps = 4 })',
  cross_entropy = 'trinity.learn.cross_entropy(env, policy, { total_timesteps = 16, num_steps = 4 })',
  clone = 'trinity.learn.clone(env, policy, function() return { 1, 2 } end, { updates = 1 })',
  evolution = 'trinity.learn.evolution(env, policy, { generations = 1, population = 2 })',
  contiguous_groups = 'trinity.learn.contiguous_groups(problem, 2)',
  agent = 'local agent = trinity.learn.agent(problem, { groups = 2, samples = 2 })',
}

examples['trinity.Cluster'] = { close = 'cluster:close()' }
examples['trinity.Comparison'] = {
  best = 'comparison:best().method', significance = "comparison:significance('heft', 'round_robin')",
  table = "comparison:table { format = 'markdown' }", notes = 'print(comparison:notes())',
  find = "comparison:find('heft').metrics.step_time_s", summary = 'print(comparison:summary())',
  totable = 'comparison:totable()[1]', failed = 'comparison:failed()',
}
examples['trinity.DevicesModule'] = {
  names = '#trinity.devices.names()', find = "trinity.devices.find('h100').memory_bytes",
  is_gpu = "trinity.devices.is_gpu 'h100'", with = "trinity.devices.with('h100', { launch_s = 5e-6 })",
}
examples['trinity.DoubleArray'] = { totable = 'timeline.start_s:totable()[1]',
  each = 'for task, start_s in timeline.start_s:each() do print(task, start_s) end' }
examples['trinity.Int32View'] = { totable = 'graph.depth:totable()[1]',
  each = 'for operator, depth in graph.depth:each() do print(operator, depth) end' }
examples['trinity.Graph'] = {
  nodes = 'for operator, name in graph:nodes() do print(operator, name) end',
  each_edge = 'for from, to, bytes in graph:each_edge() do print(from, to, bytes) end',
}
examples['trinity.GraphModule'] = { new = "local builder = trinity.graph.new { name = 'mine' }" }

examples['trinity.Layers'] = {
  attention = "net:attention('a', x, x, x, { heads = 2 })",
  self_attention = "net:self_attention('a', x, { heads = 2 })",
  rotary = "net:rotary('r', x, { net:input('cos', { 6, 2 }), net:input('sin', { 6, 2 }) }, 2)",
  feed_forward = "net:feed_forward('f', x, { feed_forward = 16 })",
  transformer_block = "net:transformer_block('b', x, { heads = 2, feed_forward = 16 })",
  gated_feed_forward = "net:gated_feed_forward('f', x, { feed_forward = 16 })",
  mixture_of_experts = "net:mixture_of_experts('m', x, { feed_forward = 16, experts = 4, top_k = 2 })",
  latent_attention = "net:latent_attention('a', x, { heads = 2, kv_lora_rank = 4, qk_nope_head_dim = 4, "
    .. "qk_rope_head_dim = 2, v_head_dim = 4, rotary = { net:input('cos', { 6, 1 }), net:input('sin', { 6, 1 }) } })",
  conv = "net:conv('c', image, { channels = 4, kernel = 3, padding = 'same' })",
  depthwise_conv = "net:depthwise_conv('c', image, { kernel = 3 })",
  separable_conv = "net:separable_conv('c', image, { channels = 4, kernel = 3 })",
  batch_norm = "net:batch_norm('n', image)", max_pool = "net:max_pool('p', image, { kernel = 2 })",
  average_pool = "net:average_pool('p', image, { kernel = 2 })",
  global_average_pool = "net:global_average_pool('p', image)",
  zero_pad = "net:zero_pad('p', image, { 1, 1, 1, 1 })", crop = "net:crop('p', image, { 1, 1, 1, 1 })",
  weight = "net:weight('w', { 8, 4 })",
  operator = "net:operator('Work', 'w', { shapes = { { 2, 4 } } })", input = "net:input('tokens', { 2, 6 }, 'int64')",
  constant = "net:constant('one', 1, { 2, 4 })", variable = "net:variable('state', { 2, 4 })",
  relu = "net:relu('y', x)", sigmoid = "net:sigmoid('y', x)", tanh = "net:tanh('y', x)", gelu = "net:gelu('y', x)",
  swish = "net:swish('y', x)", dropout = "net:dropout('y', x)", softmax = "net:softmax('y', x)",
  add = "net:add('y', x, x)", mul = "net:mul('y', x, x)", div = "net:div('y', x, x)",
  concat = "net:concat('y', { x, x }, 3)", reshape = "net:reshape('y', x, { 12, 8 })",
  transpose = "net:transpose('y', x, { 2, 1, 3 })", flatten = "net:flatten('y', image)",
  operand = "net:operand('y', x)", linear = "net:linear('y', x, 3, { bias = false })",
  matmul = "net:matmul('y', rows, net:input('b', { 4, 3 }))",
  softmax_cross_entropy = "net:softmax_cross_entropy('loss', rows, net:input('labels', { 6 }, 'int64'))",
  add_loss = "net:add_loss('loss', net:input('a', { 1 }), net:input('b', { 1 }), 0.4)",
  build = 'local graph = net:build()',
  gather = "net:gather('y', rows, tokens)", embedding = "net:embedding('y', tokens, { rows = 10, features = 4 })",
  layer_norm = "net:layer_norm('y', x)", rms_norm = "net:rms_norm('y', x)", split = "net:split('y', rows, 1, { 2, 4 })",
  unstack = "net:unstack('y', rows, 1)", stack = "net:stack('y', { rows, rows }, 1)",
  slice = "net:slice('y', rows, 1, 2, 3)", expand = "net:expand('y', net:input('a', { 1, 3 }), { 2, 3 })",
  top_k = "net:top_k('y', rows, 2)", one_hot = "net:one_hot('y', tokens, 10, 3)",
  scatter_add = "net:scatter_add('y', rows, net:input('at', { 2 }, 'int64'), net:input('new', { 2, 4 }))",
  reduce_sum = "net:reduce_sum('y', rows, 1)", reduce_mean = "net:reduce_mean('y', rows, 1)",
  reduce_l2 = "net:reduce_l2('y', rows, 1)", sum = "net:sum('y', { rows, rows })",
  mean = "net:mean('y', { rows, rows })",
  lstm_cell = "net:lstm_cell('y', net:input('in', { 2, 3 }), net:input('h', { 2, 5 }), net:input('c', { 2, 5 }), { "
    .. "weight = net:input('w', { 8, 20 }), bias = net:input('b', { 20 }) })",
  lstm_steps = "net:lstm_steps('y', { inputs = 3, hidden = 5, batch_size = 2 })",
  lstm = "net:lstm('y', x, { hidden = 5 })", drop = "net:drop('y', rows, 0.5)",
  additive_attention = "net:additive_attention('a', x, 4)",
  multiplicative_attention = "net:multiplicative_attention('a', x, 4)",
}

examples['trinity.MethodsModule'] = {
  register = "trinity.methods.register('all_on_one', function(p) return p:placement() end)",
  names = '#trinity.methods.names()', info = "trinity.methods.info('heft').help", get = "trinity.methods.get 'heft'",
}
for _, name in ipairs { 'contiguous', 'cpop', 'etf', 'fm', 'heft', 'm_etf', 'm_topo', 'max_load_dp', 'metis', 'scotch',
  'expert',
  'single_device', 'round_robin', 'heuristics', 'exhaustive' } do
  examples['trinity.MethodsModule'][name] = ('trinity.methods.%s(problem)'):format(name)
end
for _, name in ipairs { 'annealing', 'local_search', 'mcmc', 'random', 'post', 'colocrl', 'hierarchical', 'placeto',
  'doppler',
  'tapp', 'pase', 'best', 'trinity' } do
  examples['trinity.MethodsModule'][name] = ('trinity.methods.%s(problem, { evaluations = 32, quiet = true '
    .. '})'):format(name)
end

examples['trinity.Metrics'] = {
  compute_busy_s = 'metrics:compute_busy_s(1)', send_busy_s = 'metrics:send_busy_s(1)',
  memory_bytes = 'metrics:memory_bytes(1)', sent_bytes = 'metrics:sent_bytes(1)',
  received_bytes = 'metrics:received_bytes(1)', totable = 'metrics:totable().step_time_s',
}
examples['trinity.Module'] = { describe = 'print(network:describe())' }
examples['trinity.NetworkOptimiser'] = { state = 'optimiser:state()',
  load_state = 'optimiser:load_state(optimiser:state())', close = 'optimiser:close()' }
examples['trinity.NnModule'] = {
  sequential = 'trinity.nn.sequential { trinity.nn.linear { inputs = 4, outputs = 8 }, trinity.nn.relu }',
}
for _, name in ipairs { 'relu', 'gelu', 'silu', 'tanh', 'sigmoid', 'log_sigmoid', 'softplus', 'softmax',
  'log_softmax' } do
  examples['trinity.NnModule'][name] = ('trinity.nn.%s(x)'):format(name)
end
examples['trinity.Pase'] = { find = "pase:find(1, { 1, 2, 1 })", close = 'pase:close()' }
examples['trinity.Placement'] = { totable = 'problem:placement():totable()[1]',
  each = 'for operator, device in problem:placement():each() do print(operator, device) end' }
examples['trinity.PlanModule'] = {
  dimension = "trinity.plan.dimension('bucket', { values = { 25e6, 200e6 }, apply = function(s, bytes) s.bucket_bytes "
    .. "= bytes end })",
  move = "trinity.plan.move('halve', function(point) return {} end)", moves = 'trinity.plan.moves()[1]',
  run = "trinity.plan.run { graph = function(micro_batch) return trinity.model('llama-3-8b', { batch_size = "
    .. "micro_batch, layers = 2 }) end, cluster = trinity.cluster 'dgx_h100:2', global_batch = 2 }",
}
examples['trinity.Problem'] = { task_graph = 'problem:task_graph().task_count' }
examples['trinity.RandomStream'] = { uniform = 'stream:uniform()', normal = 'stream:normal()',
  integer = 'stream:integer(6)',
  close = 'stream:close()' }
examples['trinity.SystemModule'] = {
  has_torch = 'trinity.system.has_torch()', describe_torch = 'trinity.system.describe_torch()',
  format_bytes = 'trinity.system.format_bytes(1.5e9)', threads = 'trinity.system.threads()',
  clock_s = 'trinity.system.clock_s()', describe_machine = 'trinity.system.describe_machine()',
  stop_requested = 'if trinity.system.stop_requested() then return end',
  was_interrupted = 'trinity.system.was_interrupted()', stop_status = 'trinity.system.stop_status()',
  stop_name = 'trinity.system.stop_name()',
}
examples['trinity.TaskGraph'] = {
  transfer_ns = 'tasks:transfer_ns(1, 2, 4096)', mean_transfer_ns = 'tasks:mean_transfer_ns(4096)',
  awaited_inputs = 'tasks:awaited_inputs()[1]', missing_followers = 'tasks:missing_followers({}, 1)',
  upward_ranks = 'tasks:upward_ranks()[1]', downward_ranks = 'tasks:downward_ranks()[1]',
  static_levels = 'tasks:static_levels()[1]',
}
examples['trinity.TensorModule'] = {
  uniform = 'trinity.tensor.uniform({ 2, 3 }, stream)', normal = 'trinity.tensor.normal({ 2, 3 }, stream)',
  categorical = 'trinity.tensor.categorical(x:log_softmax(), stream)',
  no_grad = 'trinity.tensor.no_grad(function() return x:mul(2) end)', new = 'trinity.tensor.new { { 1, 2 }, { 3, 4 } }',
  zeros = 'trinity.tensor.zeros { 2, 3 }', ones = 'trinity.tensor.ones { 2, 3 }',
  full = 'trinity.tensor.full({ 2 }, 7)',
  arange = 'trinity.tensor.arange(1, 4)', eye = 'trinity.tensor.eye(3)', cat = 'trinity.tensor.cat({ x, x }, 2)',
  stack = 'trinity.tensor.stack { x, x }', where = 'trinity.tensor.where(x:gt(2), x, 0)',
  grad = 'trinity.tensor.grad(w:pow(2):sum(), { w })[1]', live_bytes = 'trinity.tensor.live_bytes()',
}
examples['trinity.Timeline'] = { close = 'timeline:close()' }
examples['trinity.Topology'] = {
  machines = "net:machines(2, function(name) net:devices(name, 2, 't4') end)",
  collectives = 'net:collectives { rails = 2 }', device_type = "net:device_type('mine', trinity.devices.t4)",
  devices = "net:devices('n0', 2, 't4')", switch = "net:switch('n0/switch', 100e9)",
  link = "net:devices('n0', 2, 't4'); net:link('n0/gpu0', 'n0/gpu1', 'nvlink2', 2)",
  mesh = "net:mesh(net:devices('n0', 4, 't4'), 'nvlink2')",
  spec = "net:mesh(net:devices('n0', 2, 't4'), 'nvlink2'); trinity.cluster(net:spec())",
}
examples['trinity.TopologyModule'] = {
  wires = '#trinity.devices.topology.wires()', wire = "trinity.devices.topology.wire('nvlink2', { latency_s = 1e-6 })",
  new = "local net = trinity.devices.topology.new { name = 'mine' }",
}

local tensor = {}
for name in ('mean var std norm logsumexp max min argmax argmin sort dim numel totable clone detach contiguous close '
  .. 'neg exp log sqrt abs tanh sigmoid relu gelu silu softplus log_sigmoid sin cos sum prod softmax log_softmax '
  .. 'cumsum transpose flatten squeeze tril zero_grad'):gmatch '%S+' do
  tensor[name] = ('x:%s()'):format(name)
end
for name in ('add sub mul div pow minimum maximum eq ne lt le gt ge add_ mul_ fill_'):gmatch '%S+' do
  tensor[name] = ('x:%s(2)'):format(name)
end
tensor = util.merged(tensor, {
  scatter_add = "x:scatter_add(2, trinity.tensor.new({ { 1, 2 }, { 2, 1 } }, { dtype = 'int64' }), x)",
  index_add = 'x:index_add(1, { 2, 1 }, x)',
  topk = 'local values, indices = x:topk(1)', backward = 'w:pow(2):sum():backward()', size = 'x:size(1)',
  item = 'x:sum():item()', to = "x:to { dtype = 'float64' }", clamp = 'x:clamp(0, 3)',
  masked_fill = 'x:masked_fill(x:gt(2), 0)', copy_ = 'x:copy_(x)', matmul = 'x:matmul(x)',
  bmm = 'x:unsqueeze(1):bmm(x:unsqueeze(1))', permute = 'x:permute { 2, 1 }', reshape = 'x:reshape { 4 }',
  expand = 'x:unsqueeze(1):expand { 3, 2, 2 }', unsqueeze = 'x:unsqueeze(1)', narrow = 'x:narrow(1, 1, 1)',
  select = 'x:select(1, 2)', index_select = 'x:index_select(1, { 2, 1 })',
  gather = "x:gather(2, trinity.tensor.new({ { 1 }, { 2 } }, { dtype = 'int64' }))",
  chunk = 'x:chunk(2)[1]', one_hot = 'trinity.tensor.new({ 1, 3 }, { dtype = "int64" }):one_hot(3)',
  requires_grad_ = 'x:requires_grad_()',
})
examples['trinity.TorchTensor'] = tensor

return examples
