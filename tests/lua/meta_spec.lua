-- The editor types in lib/trinity/_meta against what is there at run time: every name of one is in the
-- other, and functions written in Lua have the parameters that are declared.

local core = require 'trinity.core'
local declarations = require 'trinity.declarations'
local trinity = require 'trinity'

-- Declared classes as { parent =, names = { name = its parameters or true } }, and aliases that list
-- words, { word = true }.
local function read_meta()
  local declared, classes, aliases = declarations.read(), {}, {}
  for name, class in trinity.sorted_pairs(declared.classes) do
    classes[name] = { parent = class.parent, names = {} }
    for _, field in ipairs(class.fields) do
      if not field.name:match '^%[' then classes[name].names[field.name] = true end
    end
    for _, method in ipairs(class.methods) do
      local list = { method.separator == ':' and 'self' or nil }
      for _, parameter in ipairs(method.parameters) do list[#list + 1] = parameter.name end
      classes[name].names[method.name] = table.concat(list, ', ')
    end
  end
  for name, alias in trinity.sorted_pairs(declared.aliases) do aliases[name] = alias.words end
  return classes, aliases
end

-- The words that an error lists as known.
local function known(body)
  local ok, message = pcall(body)
  local list = not ok and message:match '%(known: ([^)]*)%)'
  if not list then error('no error that lists what is known: ' .. tostring(message), 2) end
  local names = {}
  for name in list:gmatch '[^, ]+' do names[name] = true end
  return names
end

-- What scripts have no business with.
local internal = { handle = true, description = true }

-- The names of objects, and of their methods.
local function surface(...)
  local names = {}
  local function add(t)
    for name, value in trinity.sorted_pairs(t) do
      if type(name) == 'string' and not name:match '^__' and not internal[name] then names[name] = value end
    end
  end
  for _, object in ipairs { ... } do
    local meta = debug.getmetatable(object)
    if type(object) == 'table' then
      add(object)
      add(meta or {})
    end
    if meta and type(meta.__index) == 'table' then add(meta.__index) end
  end
  return names
end

local function merged(...)
  local names = {}
  for _, set in ipairs { ... } do
    for name, value in trinity.sorted_pairs(set) do names[name] = value end
  end
  return names
end

local function list_of(...)
  local names = {}
  for _, name in ipairs { ... } do names[name] = true end
  return names
end

-- A small training step with a collective, and a plan of it with everything.
local function example()
  local builder = trinity.graph.new { name = 'example' }
  local x = builder:add { name = 'x', type = 'Input', outputs = { { shape = { 4 }, gradient = false } } }
  local tensors, members = {}, {}
  for i = 1, 2 do
    tensors[i] = builder:add { name = 'work' .. i, type = 'Work', inputs = { x }, outputs = { { shape = { 1000 } } },
      measured_time_s = i * 1e-3 }
    members[i] = 'sum' .. i
    builder:add { name = members[i], type = 'AllReduce', inputs = { tensors[i] }, outputs = { { bytes = 8 } } }
  end
  builder:collective { name = 'sum', kind = 'all_reduce', bytes = 4000, members = members }
  local graph = builder:build()
  local problem = trinity.problem { graph = graph, cluster = trinity.cluster 'p100x2', schedule = 'fifo' }
  local placement = problem:placement()
  placement[4], placement[5] = 2, 2
  return { builder = builder, tensor = x, graph = graph, problem = problem, placement = placement,
    timeline = problem:timeline(placement) }
end

local function modules()
  local methods = merged(surface(trinity.methods))
  for _, name in ipairs(trinity.methods.names()) do -- those that the library registers by itself
    local source = debug.getinfo(trinity.methods.info(name).run, 'S').source
    if source:find '/lib/trinity/methods/' and not source:find '/in_lua%.lua$' then methods[name] = trinity.methods[name] end
  end
  local kinds = list_of(unpack(trinity.devices.names()))
  return { ['trinity'] = surface(trinity), ['trinity.DevicesModule'] = merged(kinds, surface(trinity.devices)),
    ['trinity.TopologyModule'] = surface(trinity.topology), ['trinity.GraphModule'] = surface(trinity.graph),
    ['trinity.LayersModule'] = surface(trinity.layers), ['trinity.RewardsModule'] = surface(trinity.rewards),
    ['trinity.TensorModule'] = surface(trinity.tensor), ['trinity.NnModule'] = surface(trinity.nn),
    ['trinity.PoliciesModule'] = surface(trinity.policies), ['trinity.PipelineModule'] = surface(trinity.pipeline),
    ['trinity.SearchModule'] = surface(trinity.search), ['trinity.MethodsModule'] = methods }
end

-- Fields that the structs have, and those that their access functions know.
local function metrics_names(metrics)
  local names = known(function() return metrics.nothing end)
  local body = core.ffi_declarations:match 'struct trinity_metrics (%b{})'
  for name in body:gmatch '([%w_]+);' do
    if name ~= 'magic' then names[name] = true end
  end
  expect(names.device):equals(nil) -- an array, whose values the functions of a device give
  return names
end

local function array_names(array)
  local names = list_of 'length'
  for _, name in ipairs { 'totable', 'each' } do names[name] = array[name] end
  return names
end

local function objects(e)
  local strategy = e.problem:strategy({ placement = e.placement, schedule = 'order', micro_batches = 1, priority = nil,
    order = { { 1, 2 }, { 4 } } }, { method = 'by hand', seed = 1, evaluations = 1, seconds = 1, curve = {}, stopped = true })
  local path = os.tmpname()
  local loaded = e.problem:load(strategy:save(path))
  os.remove(path)
  local held
  local found = trinity.search.run('held', e.problem, trinity.search.options('held', {}, { evaluations = 1, quiet = true }),
    function(search)
      search:evaluate { e.placement }
      held = surface(search)
    end)
  local comparison = trinity.compare(e.problem, { found, strategy })
  local lazy = { e.problem.lower_bound_s, e.timeline.start_s, e.graph.depth, e.graph.unit_of, e.graph.flops_of,
    e.graph.output_bytes, e.graph.parameter_bytes_of, e.graph.persistent_bytes_of, e.graph.workspace_bytes_of,
    e.graph.activation_bytes_of, e.graph.measured_time_s }
  expect(#lazy):equals(11)
  local imported = trinity.model(root .. '/tests/data/onnx/vit.onnx', { training = false })
  return { ['trinity.Graph'] = surface(e.graph, imported), ['trinity.Builder'] = surface(e.builder),
    ['trinity.Layers'] = surface(trinity.layers.new 'x'), ['trinity.Cluster'] = surface(e.problem.cluster),
    ['trinity.Topology'] = surface(trinity.topology.new()),
    ['trinity.Simulator'] = surface(e.problem.simulator), ['trinity.Problem'] = surface(e.problem),
    ['trinity.Strategy'] = merged(surface(strategy, loaded, found), list_of('priority', 'stage', 'splits', 'replication')),
    ['trinity.Timeline'] = surface(e.timeline), ['trinity.Search'] = merged(held, list_of 'stopped'),
    ['trinity.Comparison'] = merged(surface(comparison), list_of 'stopped'),
    ['trinity.TorchTensor'] = merged(core.tensor.methods, list_of('dtype', 'device', 'grad', 'requires_grad')),
    ['trinity.Module'] = merged(require('trinity.nn.module').methods, list_of 'training'),
    ['trinity.NetworkOptimiser'] = merged(require('trinity.nn.optimisers').methods, list_of 'learning_rate'),
    ['trinity.RandomStream'] = surface(trinity.random(1, 'x')), ['trinity.Metrics'] = metrics_names(strategy.metrics),
    ['trinity.Placement'] = array_names(e.placement), ['trinity.DoubleArray'] = array_names(e.timeline.start_s),
    ['trinity.Int32View'] = array_names(e.graph.depth), ['trinity.CurvePoint'] = surface(found.curve[1]) }
end

-- Why two units of 10 GB do not fit into one device.
local function misfit()
  local builder = trinity.graph.new { name = 'heavy' }
  for i = 1, 2 do builder:add_operator { name = 'op' .. i, time_s = 1e-3, memory_bytes = 10e9 } end
  local problem = trinity.problem { graph = builder:build(), cluster = trinity.cluster 'p100x2' }
  return problem:strategy(problem:placement()):misfit()
end

local function results(e)
  local path, operators, tensors = e.timeline:critical_path(), {}, {}
  for i = 1, e.graph.operators do
    operators[i] = e.graph:operator(i)
    for _, key in ipairs { 'inputs', 'outputs' } do
      for _, tensor in ipairs(operators[i][key]) do tensors[#tensors + 1] = tensor end
    end
  end
  local step = trinity.model('vgg16', { batch_size = 1 })
  operators[#operators + 1] = step:operator(step.operators)
  local steps = merged(surface(unpack(path.steps)))
  -- The path of the example ends with a collective; another one has a transfer in it.
  local spread = e.problem:placement()
  spread[1] = 2
  steps = merged(steps, surface(unpack(e.problem:timeline(spread):critical_path().steps)))
  return { ['trinity.Bounds'] = surface(e.problem:bounds()), ['trinity.CriticalPath'] = surface(path),
    ['trinity.PathStep'] = steps, ['trinity.Transfer'] = surface(e.timeline:transfers()[1]),
    ['trinity.CollectiveRun'] = surface(e.timeline:collectives()[1]),
    ['trinity.MemoryLevel'] = surface(e.timeline:memory(1)[1]), ['trinity.TypeShare'] = surface(e.timeline:by_type()[1]),
    ['trinity.Device'] = surface(e.problem.cluster.devices[1]), ['trinity.Tensor'] = surface(e.tensor),
    ['trinity.GraphRows'] = surface(e.graph:csr(), e.graph:csr 'in'), ['trinity.Cut'] = surface(e.graph:min_cut(1, 2)),
    ['trinity.GraphPath'] = surface(e.graph:critical_path { time_s = e.graph.flops_of }),
    ['trinity.ComparisonRow'] = surface(trinity.compare(e.problem, { 'round_robin' }, { quiet = true }).rows[1]),
    ['trinity.MethodInfo'] = surface(trinity.methods.info 'random'),
    ['trinity.MethodOptions'] = known(function() trinity.methods.register('x', print, { nonsense = 1 }) end),
    ['trinity.Misfit'] = surface(misfit()),
    ['trinity.CollectiveCost'] = surface(e.problem.cluster:collective { kind = 'broadcast', devices = { 1, 2 }, bytes = 8 }),
    ['trinity.Operator'] = surface(unpack(operators)), ['trinity.TensorInfo'] = surface(unpack(tensors)) }
end

-- Pipelines: what methods take and give.
local function pipeline_specs(e)
  local profile = root .. '/tests/data/profiles/small.graph.txt'
  local function cut(options)
    options.devices, options.quiet = options.devices or 2, true
    return trinity.pipeline(profile, options)
  end
  local stopped = list_of 'stopped' -- there after Ctrl-C
  local found = { cut { method = 'pipedream' }, cut { method = 'piper' }, cut { method = 'expert' }, cut { rounds = 1 },
    trinity.pipeline(e.problem, { method = 'max_load_dp', devices = 1 }),
    cut { method = 'max_load_dp', memory_bytes = 1 } }
  local lacking = found[#found].misfit -- and the node where an accelerator has one that it does not support
  local stages = {}
  for _, result in ipairs(found) do
    for _, stage in ipairs(result.stages) do stages[#stages + 1] = stage end
  end
  return { ['trinity.PipelineResult'] = merged(surface(unpack(found)), stopped, list_of 'ideals'),
    ['trinity.PipelineStage'] = surface(unpack(stages)), ['trinity.PipelineMachine'] = surface(found[1].machine),
    ['trinity.PipelineMisfit'] = merged(surface(lacking), list_of 'node'),
    ['trinity.PipelineOptions'] = known(function() trinity.pipeline(profile, { nonsense = 1 }) end),
    ['trinity.PipelineMethod'] = known(function() trinity.pipeline.register('x', { nonsense = 1 }) end) }
end

-- Strategy selection: what trinity.select takes and gives.
local function selection_specs()
  local function refused(part)
    local problem = { nodes = { costs = { { 1 } } }, edges = { nodes = {}, costs = {} } }
    part(problem).nonsense = 1
    return known(function() trinity.select(problem, { quiet = true }) end)
  end
  local problem = { nodes = { costs = { { 1 } } }, edges = { nodes = {}, costs = {} }, usage_limit = 1 }
  return { ['trinity.SelectOptions'] = known(function() trinity.select(problem, { nonsense = 1 }) end),
    ['trinity.SelectResult'] = merged(surface(trinity.select(problem, { quiet = true })), list_of 'misfit'),
    ['trinity.SelectionTable'] = refused(function(p) return p end),
    ['trinity.SelectionNodes'] = refused(function(p) return p.nodes end),
    ['trinity.SelectionEdges'] = refused(function(p) return p.edges end) }
end

-- Splits: what PaSE and the lowering take and give.
local function split_specs(e)
  local graph = trinity.model('rnnlm', { training = false, sequence = 4, hidden = 8, vocabulary = 16 })
  local pase = trinity.pase(graph, { devices = 2, cutoff = 1 })
  local best = pase:solve { quiet = true }
  local cluster = trinity.cluster 'p100x2'
  return { ['trinity.PaseMethodOptions'] = known(function() trinity.methods.pase(e.problem, { nonsense = 1 }) end),
    ['trinity.PaseOptions'] = known(function() trinity.pase(graph, { nonsense = 1 }) end),
    ['trinity.PaseSolveOptions'] = known(function() pase:solve { nonsense = 1 } end),
    ['trinity.PaseWalkOptions'] = known(function() pase:mcmc { nonsense = 1 } end),
    ['trinity.LowerSpec'] = known(function() trinity.lower { nonsense = 1 } end),
    ['trinity.Lowered'] = surface(trinity.lower { graph = graph, cluster = cluster }),
    ['trinity.Pase'] = surface(pase), ['trinity.PaseLayer'] = surface(pase.layers[1]),
    ['trinity.Dimension'] = surface(pase.layers[1].dimensions[1]), ['trinity.PaseRow'] = surface(pase:rows(best)[1]),
    ['trinity.PaseStrategy'] = surface(best, pase:mcmc { iterations = 10 }) }
end

-- Policies, what they are told, and options of theirs and of learners.
local function policy_specs(e)
  local policies, problem = trinity.policies, e.problem
  local policy, agent = policies.table(problem, { groups = 1 }), policies.trinity(problem, { samples = 1, hidden = 2 })
  agent:sample()
  local there = { ['trinity.Features'] = surface(trinity.features(problem)), ['trinity.Policy'] = surface(policy),
    ['trinity.Agent'] = surface(agent), ['trinity.AgentActions'] = surface(agent:actions()),
    ['trinity.AgentProfile'] = surface(agent:profile()), ['trinity.AgentReport'] = surface(agent:update { 1 }),
    ['trinity.ImitationSettings'] = known(function() agent:imitate({ problem:placement() }, { nonsense = 1 }) end),
    ['trinity.ImitationReport'] = surface(agent:imitate { problem:placement() }),
    ['trinity.FeatureOptions'] = known(function() trinity.features(problem, { nonsense = 1 }) end),
    ['trinity.PolicySpec'] = known(function() policies.independent { nonsense = 1 } end),
    ['trinity.PolicyTableOptions'] = known(function() policies.table(problem, { nonsense = 1 }) end),
    ['trinity.PolicyNetworkOptions'] = known(function() policies.network(problem, { nonsense = 1 }) end) }
  for class, name in trinity.sorted_pairs { Post = 'post', Placer = 'colocrl', Placeto = 'placeto', Tapp = 'tapp' } do
    there['trinity.' .. class .. 'Options'] = known(function() trinity.methods[name](problem, { nonsense = 1 }) end)
  end
  local learners = { Ppo = 'ppo', Reinforce = 'reinforce', CrossEntropy = 'cross_entropy' }
  local common
  for class, name in trinity.sorted_pairs(learners) do
    local settings = known(function() trinity[name] { nonsense = 1 } end)
    there['trinity.' .. class .. 'Settings'] = settings
    local shared = {}
    for key in trinity.sorted_pairs(settings) do shared[key] = (not common or common[key]) and true or nil end
    common = shared
  end
  there['trinity.LearnerSettings'] = common
  return there
end

-- Data-parallel training, simulated and real.
local function training_specs(e)
  local nn, sync, dist, daso = trinity.nn, trinity.synchronisation, trinity.dist, trinity.daso
  local net = nn.linear { inputs = 1, outputs = 1 }
  local optimiser = nn.sgd { parameters = net:parameters(), learning_rate = 1 }
  local job = dist.init()
  local trainer = dist.trainer(job, { module = net, optimiser = optimiser, method = 'daso', schedule = { epochs = 1 } })
  local schedule = daso.schedule { epochs = 9, warmup_epochs = 0, held = { global_skips = 2 } }
  local actions = {}
  for _ = 1, 9 do
    for _, action in ipairs(schedule:after_batch(9)) do actions[#actions + 1] = action end
  end
  local placement = e.problem:placement()
  local run = sync.replicate { graph = e.graph, cluster = e.problem.cluster, policy = sync.daso {}, placement = placement }
  local result = run:train { batches = 1 }
  local policy = surface(sync.bsp {})
  policy.algorithm, policy.bucket_bytes = nil, nil
  local x = trinity.tensor.ones(1)
  local daso_rules = known(function() daso.schedule { nonsense = 1 } end)
  return { ['trinity.DistModule'] = surface(dist), ['trinity.Job'] = surface(job), ['trinity.DasoModule'] = surface(daso),
    ['trinity.Work'] = surface(job:start_all_reduce(x)), ['trinity.Trainer'] = surface(trainer),
    ['trinity.DasoSchedule'] = merged(surface(schedule), list_of 'gradients'), ['trinity.SyncAction'] = surface(unpack(actions)),
    ['trinity.SynchronisationModule'] = surface(sync), ['trinity.SyncPolicy'] = policy,
    ['trinity.Replication'] = surface(run), ['trinity.TrainingTime'] = surface(result),
    ['trinity.EpochTime'] = surface(result.epochs[1]), ['trinity.ScheduleOptions'] = daso_rules,
    ['trinity.HeldSkips'] = known(function() daso.schedule { epochs = 1, held = { nonsense = 1 } } end),
    ['trinity.JobOptions'] = known(function() dist.init { nonsense = 1 } end), ['trinity.InjectedLink'] = list_of('latency_s', 'bandwidth_bytes_per_s'),
    ['trinity.LaunchOptions'] = known(function() dist.launch({ 'x' }, { nonsense = 1 }) end),
    ['trinity.AllReduceOptions'] = known(function() job:all_reduce(x, { nonsense = 1 }) end),
    ['trinity.BroadcastOptions'] = known(function() job:broadcast(x, { nonsense = 1 }) end),
    ['trinity.TrainerOptions'] = known(function() dist.trainer(job, { nonsense = 1 }) end),
    ['trinity.BspOptions'] = known(function() sync.bsp { nonsense = 1 } end),
    ['trinity.ServerOptions'] = known(function() sync.parameter_server { nonsense = 1 } end),
    ['trinity.LocalSgdOptions'] = known(function() sync.local_sgd { nonsense = 1 } end),
    ['trinity.ReplicationSpec'] = known(function() sync.replicate { nonsense = 1 } end),
    ['trinity.ReplicatedTraining'] = known(function() run:train { nonsense = 1 } end) }
end

-- What a cluster description takes, in part `part`.
local function cluster_known(part)
  local spec = { device_types = { g = { peak_flops_per_s = { float32 = 1 }, memory_bandwidth_bytes_per_s = 1, memory_bytes = 1 } },
    devices = { { name = 'a', type = 'g' } }, links = { { from = 'a', to = 'b', bandwidth_bytes_per_s = 1 } },
    switches = { { name = 'b', bandwidth_bytes_per_s = 1 } } }
  part(spec).nonsense = 1
  return known(function() trinity.cluster(spec) end)
end

-- Options of tensors and networks.
local function network_specs()
  local tensor, nn = trinity.tensor, trinity.nn
  local x = tensor.ones(1)
  local there = { ['trinity.LayerOptions'] = list_of('seed', 'name'),
    ['trinity.TensorOptions'] = known(function() tensor.ones(1, { nonsense = 1 }) end),
    ['trinity.TensorTarget'] = known(function() x:to { nonsense = 1 } end),
    ['trinity.GradOptions'] = known(function() tensor.grad(x, { x }, { nonsense = 1 }) end),
    ['trinity.ModuleOptions'] = known(function() nn.module(print, {}, { nonsense = 1 }) end),
    ['trinity.GraphEdges'] = surface(nn.normalised_edges(1, {})) }
  local layers = { Linear = 'linear', Embedding = 'embedding', LayerNorm = 'layer_norm', Dropout = 'dropout',
    NetworkAttention = 'attention', Recurrent = 'lstm', Adam = 'adam', Sgd = 'sgd' }
  for class, name in trinity.sorted_pairs(layers) do
    there['trinity.' .. class .. 'Options'] = known(function() nn[name] { nonsense = 1 } end)
  end
  return there
end

local function specs(e)
  local problem, cluster = e.problem, e.problem.cluster
  local function add(spec)
    spec.name, spec.type = 'added', 'Work'
    return known(function() trinity.graph.new({ name = 'g' }):add(spec) end)
  end
  local common = known(function() trinity.methods.single_device(problem, { nonsense = 1 }) end)
  for name in trinity.sorted_pairs(trinity.search.common) do expect(common[name]):equals(true) end
  return {
    ['trinity.ProblemSpec'] = known(function() trinity.problem { nonsense = 1 } end),
    ['trinity.SimulatorSpec'] = known(function() trinity.simulator { nonsense = 1 } end),
    ['trinity.Rules'] = known(function() trinity.simulator { graph = e.graph, cluster = cluster, rules = { nonsense = 1 } } end),
    ['trinity.PlanSpec'] = known(function() problem:evaluate { placement = e.placement, nonsense = 1 } end),
    ['trinity.BatchOptions'] = known(function() problem:evaluate_batch({}, { nonsense = 1 }) end),
    ['trinity.ClusterSpec'] = cluster_known(function(spec) return spec end),
    ['trinity.DeviceTypeSpec'] = cluster_known(function(spec) return spec.device_types.g end),
    ['trinity.EfficiencySpec'] = cluster_known(function(spec)
      spec.device_types.g.operators = { Conv = {} }
      return spec.device_types.g.operators.Conv
    end),
    ['trinity.DotOptions'] = known(function() e.graph:to_dot { nonsense = 1 } end),
    ['trinity.DeviceSpec'] = cluster_known(function(spec) return spec.devices[1] end),
    ['trinity.LinkSpec'] = cluster_known(function(spec) return spec.links[1] end),
    ['trinity.SwitchSpec'] = cluster_known(function(spec) return spec.switches[1] end),
    ['trinity.Wire'] = known(function() trinity.topology.wire('qpi', { nonsense = 1 }) end),
    ['trinity.TopologyOptions'] = known(function() trinity.topology.new { nonsense = 1 } end),
    ['trinity.TopologyDevices'] = known(function() trinity.topology.new():devices('n', 1, 't4', { nonsense = 1 }) end),
    ['trinity.CollectiveQuery'] = known(function()
      cluster:collective { kind = 'broadcast', devices = { 1 }, bytes = 1, nonsense = 1 }
    end),
    ['trinity.CollectiveSpec'] = known(function()
      trinity.graph.new({ name = 'g' }):collective { name = 'c', kind = 'broadcast', bytes = 1, members = {}, nonsense = 1 }
    end),
    ['trinity.OperatorSpec'] = add { nonsense = 1 },
    ['trinity.HandOperatorSpec'] = known(function() trinity.graph.new({ name = 'g' }):add_operator { nonsense = 1 } end),
    ['trinity.GraphPathOptions'] = known(function() e.graph:critical_path { nonsense = 1 } end),
    ['trinity.CutOptions'] = known(function() e.graph:min_cut(1, 2, { nonsense = 1 }) end),
    ['trinity.TensorSpec'] = add { outputs = { { nonsense = 1 } } },
    ['trinity.ParameterSpec'] = add { parameters = { { name = 'w', shape = { 1 }, nonsense = 1 } } },
    ['trinity.TrainingOptions'] = known(function() e.graph:to_training { nonsense = 1 } end),
    ['trinity.RecomputeOptions'] = known(function() e.graph:recompute { stage = {}, nonsense = 1 } end),
    ['trinity.StageReplicaOptions'] = merged(list_of 'at_share', known(function()
      e.graph:replicate_stages { stage = {}, replicas = {}, nonsense = 1 }
    end)),
    ['trinity.ReplicaOptions'] = merged(list_of 'placement', known(function() e.graph:replicate { replicas = 1, nonsense = 1 } end)),
    ['trinity.MdpeOptions'] = known(function() trinity.rewards.mdpe { nonsense = 1 } end),
    ['trinity.SearchOptions'] = common,
    ['trinity.ParallelOptions'] = known(function() trinity.parallel_map(0, print, { nonsense = 1 }) end),
    ['trinity.RandomOptions'] = known(function() trinity.methods.random(problem, { nonsense = 1 }) end),
    ['trinity.AgentOptions'] = known(function() trinity.methods.trinity(problem, { nonsense = 1 }) end),
    ['trinity.Node2VecOptions'] = known(function()
      trinity.methods.trinity(problem, { node2vec = { nonsense = 1 }, quiet = true })
    end),
  }
end

-- Read by nobody who would list what he knows: options of scripts and layers, and those passed on.
local unchecked = list_of('trinity.OptionSpec', 'trinity.WindowOptions', 'trinity.AttentionOptions', 'trinity.ModelOptions',
  'trinity.CompareOptions', 'trinity.PipelinePlan')

local function words(e)
  local function evaluate(plan)
    plan.placement = e.placement
    return known(function() e.problem:evaluate(plan) end)
  end
  local function rules(value)
    return known(function() trinity.simulator { graph = e.graph, cluster = e.problem.cluster, rules = value } end)
  end
  local function collective(kind, algorithm)
    return known(function() e.problem.cluster:collective { kind = kind, algorithm = algorithm, devices = { 1 }, bytes = 1 } end)
  end
  return {
    ['trinity.ScheduleName'] = evaluate { schedule = 'nonsense' }, ['trinity.QueueModel'] = rules { queue = 'nonsense' },
    ['trinity.MemoryModel'] = rules { memory = 'nonsense' }, ['trinity.RulesName'] = rules 'nonsense',
    ['trinity.Duplex'] = known(function()
      trinity.cluster { device_types = {}, devices = {}, links = { { from = 'a', to = 'b', bandwidth_bytes_per_s = 1, duplex = 'nonsense' } } }
    end),
    ['trinity.WireName'] = known(function() trinity.topology.wire 'nonsense' end),
    ['trinity.CollectiveKind'] = collective 'nonsense', ['trinity.CollectiveAlgorithm'] = collective('broadcast', 'nonsense'),
    ['trinity.OrderKind'] = known(function() e.graph:topological_order 'nonsense' end),
    ['trinity.BackwardEdges'] = known(function() e.graph:min_cut(1, 2, { backward = 'nonsense' }) end),
    ['trinity.Colocate'] = known(function() e.graph:to_training { colocate = 'nonsense' } end),
    ['trinity.Optimiser'] = known(function() e.graph:to_training { optimiser = 'nonsense' } end),
    ['trinity.Preset'] = known(function() trinity.methods.trinity(e.problem, { preset = 'nonsense', quiet = true }) end),
    ['trinity.TappMode'] = known(function() trinity.methods.tapp(e.problem, { mode = 'nonsense' }) end),
    ['trinity.MdpeMode'] = known(function() trinity.rewards.mdpe { mode = 'nonsense' } end),
    ['trinity.MdpeScale'] = known(function() trinity.rewards.mdpe { scale = 'nonsense' } end),
    ['trinity.Dtype'] = known(function() trinity.tensor.ones(1, { dtype = 'nonsense' }) end),
    ['trinity.LossReduction'] = known(function() trinity.nn.mse(trinity.tensor.ones(1), trinity.tensor.ones(1), 'nonsense') end),
    ['trinity.Scope'] = known(function() trinity.dist.init():all_reduce(trinity.tensor.ones(1), { scope = 'nonsense' }) end),
    ['trinity.Reduction'] = known(function() trinity.dist.init():all_reduce(trinity.tensor.ones(1), { reduction = 'nonsense' }) end),
    ['trinity.TrainingMethod'] = known(function() trinity.dist.trainer(trinity.dist.init(), { method = 'nonsense' }) end),
    ['trinity.DataAge'] = known(function() trinity.daso.schedule { epochs = 1, age = 'nonsense' } end),
    ['trinity.PaseFactors'] = known(function() trinity.pase(trinity.model('alexnet', { training = false }), { factors = 'nonsense' }) end),
    ['trinity.PaseSpace'] = known(function() trinity.pase(trinity.model('alexnet', { training = false }), { space = 'nonsense' }) end),
    ['trinity.OnError'] = known(function() trinity.parallel_map(0, print, { on_error = 'nonsense' }) end),
  }
end

-- What trinity.execute takes and gives.
local function execution_specs()
  local problem = trinity.problem { cluster = trinity.cluster 'p100x2',
    graph = trinity.model('rnnlm', { batch_size = 1, sequence = 2, hidden = 4, vocabulary = 5, layers = 1 }) }
  local plan = problem:placement_by_unit(function(unit) return unit > 3 and 2 or 1 end)
  local found = trinity.execute(problem, plan, { steps = 2, warm_up = 0 })
  return { ['trinity.Execution'] = surface(found), ['trinity.ExecutedStep'] = surface(found.last),
    ['trinity.ExecutedCopy'] = surface(found.last.copies[1]),
    ['trinity.ExecuteOptions'] = known(function() trinity.execute(problem, plan, { nonsense = 1 }) end) }
end

-- The folder of a run.
local function run_specs()
  return { ['trinity.Run'] = merged(surface(trinity.run), list_of('path', 'name')) }
end

-- Profiles of real devices.
local function profile_specs()
  local graph = trinity.model('rnnlm', { batch_size = 1, sequence = 2, hidden = 4, vocabulary = 5, layers = 1 })
  local found = trinity.profile.measure(graph, { devices = { 'cpu:0', 'cpu:1' }, steps = 1, warm_up = 0, copies = 1,
    sizes = { 64, 4096 }, quiet = true })
  return { ['trinity.ProfileModule'] = surface(trinity.profile), ['trinity.Profile'] = surface(found),
    ['trinity.ProfileKind'] = surface(found.kinds.cpu), ['trinity.ProfileLink'] = surface(found.links[1]),
    ['trinity.ProfileResiduals'] = surface(found.links[1].residuals),
    ['trinity.ProfileOptions'] = known(function() trinity.profile.measure(graph, { nonsense = 1 }) end) }
end

local function parameters_of(f)
  local names = {}
  for i = 1, debug.getinfo(f, 'u').nparams do names[i] = debug.getlocal(f, i) end
  return table.concat(names, ', ')
end

describe('the editor types', function()
  local classes, aliases = read_meta()
  local e = example()
  local there = merged(modules(), objects(e), results(e), specs(e), network_specs(), policy_specs(e), training_specs(e), pipeline_specs(e), split_specs(e),
    selection_specs(), execution_specs(), profile_specs(), run_specs())

  -- Declared names, those of parents included.
  local function declared(name)
    local class = classes[name]
    return class.parent and merged(declared(class.parent), class.names) or class.names
  end
  local function compare(owner, here, other, what)
    for name in trinity.sorted_pairs(here) do
      if other[name] == nil then error(('%s.%s: %s'):format(owner, name, what), 0) end
    end
  end

  it('declare every name that is there', function()
    for name, names in trinity.sorted_pairs(there) do
      if not classes[name] then error('class ' .. name .. ' is not declared') end
      compare(name, names, declared(name), 'not in lib/trinity/_meta')
    end
  end)
  it('declare nothing that is not there', function()
    for name in trinity.sorted_pairs(classes) do
      if not there[name] and not unchecked[name] then error('class ' .. name .. ' is not compared') end
      compare(name, there[name] and declared(name) or {}, there[name] or {}, 'not there at run time')
    end
  end)
  it('give functions their parameters', function()
    local compared = 0
    for name, names in trinity.sorted_pairs(there) do
      for key, value in trinity.sorted_pairs(names) do
        local is = declared(name)[key]
        if type(is) == 'string' and value ~= true and type(value) ~= 'function' then
          error(('%s.%s is declared as a function, it is a %s'):format(name, key, type(value)))
        end
        if type(is) == 'string' and type(value) == 'function' and debug.getinfo(value, 'S').what == 'Lua' then
          if is ~= parameters_of(value) then error(('%s.%s(%s) is declared as (%s)'):format(name, key, parameters_of(value), is)) end
          compared = compared + 1
        end
      end
    end
    expect(80):below(compared)
  end)
  it('list the words of every choice', function()
    local all = words(e)
    for name, set in trinity.sorted_pairs(aliases) do
      if not all[name] then error('alias ' .. name .. ' is not compared') end
      compare(name, set, all[name], 'not known at run time')
      compare(name, all[name], set, 'not in lib/trinity/_meta')
    end
    for name in trinity.sorted_pairs(all) do expect(aliases[name] ~= nil):truthy() end
  end)
end)
