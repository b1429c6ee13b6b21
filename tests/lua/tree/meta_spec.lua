-- The editor types against what is there at run time: options that functions know, words of choices, and names of
-- what functions give. Examples of every function are called for it; those that give more are below.

local declarations = require 'trinity.command.declarations'
local fields = require 'trinity.base.fields'
local graphs = dofile(root .. '/tests/lua/support/graphs.lua')
local trinity = require 'trinity'
local examples = dofile(root .. '/tests/lua/support/examples.lua')
examples.enter(temporary '.examples')

local common = trinity.search.common -- what a call without options runs
local evaluations, quiet = common.evaluations, common.quiet
common.evaluations, common.quiet = 4, true

local declared = declarations.read()
local classes, aliases = declared.classes, declared.aliases

-- Members of a class, with its parents' members.
local function members(class)
  local all = {}
  while class do
    for name, member in trinity.system.sorted_pairs(class.members) do all[name] = all[name] or member end
    class = classes[class.parent]
  end
  return all
end

-- The alternatives of a type, aliases taken apart but those that list words.
local function alternatives(type_text, list)
  list = list or {}
  for _, part in ipairs(declarations.alternatives((type_text:gsub('%?$', '')))) do
    if aliases[part] and not aliases[part].words then alternatives(aliases[part].type, list) else list[#list + 1] = part end
  end
  return list
end

-- The words that an error lists as known, or nil.
local function known(f, ...)
  local ok, message = pcall(f, ...)
  local list = not ok and tostring(message):match '%(known: ([^)]*)%)'
  if not list then return nil end
  local names = {}
  for name in list:gmatch '[^, ]+' do names[name] = true end
  return names
end

local function with(base, key, value)
  local changed = {}
  for k, v in pairs(type(base) == 'table' and base or {}) do changed[k] = v end -- copied: in any order
  changed[key] = value
  return changed
end

-- Names that the library lists as known, by class of options and by alias; where an unknown option is taken.
local options, words, ignored = {}, {}, {}

--- Asks `call`, which hands on a value of a declared type, what it knows; `base` is a value that it takes. what: the
--- function and its parameter.
local function probe(call, type_text, base, depth, what)
  for _, part in ipairs(alternatives(type_text)) do
    local class, element, by_name = classes[part], part:match '^(trinity[%w.]+)%[%]$', part:match '^table<string, ([%w.]+)>$'
    if aliases[part] then
      words[part] = words[part] or known(call, 'nonsense')
    elseif class and #class.methods == 0 and depth < 5 then
      local found = known(call, with(base, 'nonsense', 1))
      if what and not fields.results[part] and pcall(call, with(base, 'nonsense', 1)) then ignored[what] = true end
      options[part] = options[part] or found
      for name, field in trinity.system.sorted_pairs(found and members(class) or {}) do
        local has = type(base) == 'table' and base[name] or nil
        probe(function(value) return call(with(base, name, value)) end, field.type, has, depth + 1,
          has and what and what .. '.' .. name)
      end
    elseif element or by_name then
      local key, inner = next(type(base) == 'table' and base or {})
      probe(function(value) return call { [key or element and 1 or 'Conv'] = value } end, element or by_name, inner,
        depth + 1, inner and what)
    end
  end
end

-- Fields that are not for scripts.
local internal = { handle = true, description = true, keeping_s = true, kept_at = true }

-- Fields seen in objects and tables, by class: { name = value }; the classes that give nil for a field that they do
-- not have, and declared fields that are refused.
local seen, silent, refused = {}, {}, {}

-- Names of an object and its methods.
local function surface(object, names)
  local meta = debug.getmetatable(object)
  local index = type(meta) == 'table' and meta.__index or nil
  for _, t in ipairs { object, type(object) == 'table' and meta or {}, type(index) == 'table' and index or {} } do
    for name, value in trinity.system.sorted_pairs(type(t) == 'table' and t or {}) do
      if type(name) == 'string' and not name:match '^__' and not internal[name] then names[name] = value end
    end
  end
end

--- Keeps the names of a value that is declared to be of a type, and of what its fields hold.
local function see(type_text, value, depth)
  depth = depth or 0
  for _, part in ipairs(depth < 5 and alternatives(type_text) or {}) do
    local class, element = classes[part], part:match '^(trinity[%w.]+)%[%]$' or part:match '^table<string, ([%w.]+)>$'
    local is = type(value)
    if class and (is == 'table' or is == 'cdata' or is == 'userdata') then
      seen[part] = seen[part] or {}
      surface(value, seen[part])
      silent[part] = silent[part] or pcall(function() return value.no_such_field end)
      for name, member in trinity.system.sorted_pairs(class.members) do
        local ok, found = pcall(function() return value[name] end)
        if not ok and name:match '^%a' and tostring(found):find ': no field ' then refused[('%s.%s'):format(part, name)] = true end
        if ok and found ~= nil then
          seen[part][name] = found
          if member.type and is == 'table' then see(member.type, found, depth + 1) end
        end
      end
    elseif element and is == 'table' then
      for _, entry in trinity.system.sorted_pairs(value) do see(element, entry, depth + 1) end
    end
  end
end

-- Calls every function with its example: sees what it gives, and probes its parameters.
local function try_all()
  for _, name in ipairs(declared.order) do
    for _, method in ipairs(classes[name].methods) do
      local f, arguments, count, object = examples.call(name, method)
      see(name, object)
      local results = { f(unpack(arguments, 1, count)) }
      for i, given in ipairs(method.returns) do see(given.type, results[i]) end
      local offset = method.separator == ':' and 1 or 0
      local unchanged
      local function taken(...)
        unchanged = nil
        return ...
      end
      for i, parameter in ipairs(method.parameters) do
        probe(function(value)
          local g, changed = examples.call(name, method, unchanged)
          changed[i + offset], unchanged = value, true
          return taken(g(unpack(changed, 1, count)))
        end, parameter.type, arguments[i + offset], 0, ('%s.%s(%s)'):format(name:match '[^.]*$', method.name, parameter.name))
      end
    end
  end
end

-- A step with a collective, a plan of it with everything, and what becomes of both.
local function see_plans()
  local builder = trinity.graph.new { name = 'example' }
  local x = builder:add { name = 'x', type = 'Input', outputs = { { name = 'x', shape = { 4 }, gradient = false } } }
  local members_of = {}
  for i = 1, 2 do
    local y = builder:add { name = 'work' .. i, type = 'Work', inputs = { x }, outputs = { { shape = { 1000 } } },
      measured_time_s = i * 1e-3 }
    members_of[i] = 'sum' .. i
    builder:add { name = members_of[i], type = 'AllReduce', inputs = { y }, outputs = { { bytes = 8 } } }
  end
  builder:collective { name = 'sum', kind = 'all_reduce', bytes = 4000, members = members_of }
  local problem = trinity.problem { graph = builder:build(), cluster = trinity.cluster 'p100x2', schedule = 'fifo' }
  local placement = problem:placement()
  placement[4], placement[5] = 2, 2
  local spread = problem:placement()
  spread[1] = 2
  for _, plan in ipairs { placement, spread } do -- the path of one ends with a collective, the other's has a transfer
    local timeline = problem:timeline(plan)
    see('trinity.Timeline', timeline)
    see('trinity.Transfer[]', timeline:transfers())
    see('trinity.CollectiveRun[]', timeline:collectives())
    see('trinity.CriticalPath', timeline:critical_path())
  end
  see('trinity.Problem', problem)
  local strategy = problem:strategy({ placement = placement, schedule = 'order', order = { { 1, 2 }, { 4 } } },
    { method = 'by hand', seed = 1, evaluations = 1, seconds = 1, curve = {}, stopped = true })
  local path = temporary()
  see('trinity.Strategy', strategy)
  see('trinity.Strategy', problem:load(strategy:save(path)))
  see('trinity.Strategy', trinity.methods.random(problem))
  local step = trinity.model('vgg16', { batch_size = 1 })
  for _, graph in ipairs { problem.graph, step } do
    for _, i in ipairs { 1, 2, 3, graph.operators } do see('trinity.Operator', graph:operator(i)) end
    see('trinity.GraphRows', graph:csr())
  end
  see('trinity.Graph', trinity.model(root .. '/tests/data/onnx/vit.onnx', { training = false }))
  return problem, placement
end

-- Two units of 10 GB, which do not fit into one device.
local function see_infeasibility()
  local problem = trinity.problem { graph = graphs.heavy(2), cluster = trinity.cluster 'p100x2' }
  see('trinity.Infeasibility', problem:strategy(problem:placement()):infeasibility())
end

local function see_training()
  local problem = trinity.problem { graph = graphs.heavy(2), cluster = trinity.cluster 'p100x2' }
  see('trinity.Strategy', trinity.methods.annealing(problem, { evaluations = 40, quiet = true, rank = true,
    moves = function(state) see('trinity.MoveState', state) end }))
  local x = trinity.tensor.ones(1, { requires_grad = true })
  x:sum():backward()
  see('trinity.TorchTensor', x)
end

-- Pipelines by several methods, which say different things of them.
local function see_pipelines(problem)
  local profile = root .. '/tests/data/profiles/small.graph.txt'
  local function cut(given)
    given.devices, given.quiet = given.devices or 2, true
    see('trinity.PipelineResult', trinity.pipeline(profile, given))
  end
  for _, method in ipairs { 'pipedream', 'piper' } do cut { method = method } end
  cut { rounds = 1 }
  cut { method = 'max_load_dp', memory_bytes = 1 }
  see('trinity.PipelineResult', trinity.pipeline(problem, { method = 'max_load_dp', devices = 1 }))
  probe(function(value) return trinity.pipeline(profile, value) end, 'trinity.PipelineOptions', { quiet = true }, 0)
  probe(function(value) return trinity.job(root .. '/tests/data/jobs/pretrain.sh', value) end, 'trinity.JobFileOptions', {}, 0)
end

-- Executions and measurements on two cores.
local function see_devices()
  local graph = trinity.model('rnnlm', { batch_size = 1, sequence = 2, hidden = 4, vocabulary = 5, layers = 1 })
  local problem = trinity.problem { cluster = trinity.cluster 'p100x2', graph = graph }
  local plan = problem:placement_by_unit(function(unit) return unit > 3 and 2 or 1 end)
  see('trinity.Execution', trinity.execute(problem, plan, { steps = 2, warm_up = 0 }))
  local file = temporary '.txt'
  trinity.files.write(file, ('\1\2\3\4'):rep(40))
  local trained = trinity.execute(problem, plan, { steps = 70, data = file, keep_weights = true, quiet = true })
  see('trinity.Execution', trained)
  see('trinity.NamedWeight', trained.weights[1])
  see('trinity.Profile', trinity.profile.measure(graph, { devices = { 'cpu:0', 'cpu:1' }, steps = 1, warm_up = 0, copies = 1,
    sizes = { 64, 4096 }, quiet = true }))
end

-- Descriptions whose parts are looked into.
local function probe_parts(problem, placement)
  local cluster = { device_types = { x = { peak_flops_per_s = { float32 = 1 }, memory_bandwidth_bytes_per_s = 1,
      memory_bytes = 1, operators = {} } }, devices = { { name = 'a', type = 'x' } },
    links = { { from = 'a', to = 'b', bandwidth_bytes_per_s = 1 } }, switches = { { name = 'b', bandwidth_bytes_per_s = 1 } } }
  probe(trinity.cluster, 'trinity.ClusterSpec', cluster, 0)
  local runtime = { base = 'eager', float8 = 'mxfp8', cuda_graphs = 'none', selective = 'operators' }
  probe(function(value) return trinity.cluster('dgx_h100', value) end, 'trinity.ClusterOptions', { runtime = runtime }, 0)
  probe(function(value) return trinity.cluster('dgx_h100', { runtime = value }) end, 'trinity.Runtime', runtime, 0)
  probe(function(value)
    return require('trinity.cluster.prices').of('spec', 'joules', { devices = { { type = 'h100' } } }, { h100 = value })
  end, 'trinity.PriceRow', { watts = 1 }, 0)
  see('trinity.ClusterBasis', trinity.cluster('dgx_h200').basis)
  see('trinity.ClusterBasis', trinity.cluster('dgx_h200', { constants = { h200 = { expert = 1 } } }).basis)
  probe(function(value) return problem:evaluate(value) end, 'trinity.PlanSpec', { placement = placement }, 0)
  probe(function(value) return require 'trinity.select'({ nodes = { costs = { { 1 } } }, edges = { nodes = {}, costs = {} } }, value) end,
    'trinity.SelectOptions', { quiet = true }, 0)
  local function add(value) return trinity.graph.new({ name = 'g' }):add(value) end
  probe(require('trinity.dist.daso').schedule, 'trinity.ScheduleOptions', { epochs = 9, held = { global_skips = 2 } }, 0)
  probe(add, 'trinity.OperatorSpec', { name = 'n', type = 'Work', outputs = { { shape = { 1 } } },
    parameters = { { name = 'w', shape = { 1 } } } }, 0)
end

local function see_bounds()
  local unit = { forward_s = 1, backward_s = 1, weight_s = 0, forward_to_next_s = 1, backward_to_next_s = 1, update_s = 1,
    forward_work_s = 1, backward_work_s = 1, forward_launch_s = 0, backward_launch_s = 0, weight_bytes = 1,
    first_backward_s = 1, first_backward_to_next_s = 1, forward_hands_on_s = 1, backward_hands_on_s = 1, forward_dispatch_s = 0, backward_dispatch_s = 0,
    optimizer_bytes = 1, gradient_bytes = 1, kept_bytes = 1, spread_update_s = 0, spread_weight_bytes = 0,
    host_update_s = 1, spread_host_update_s = 0, spread_optimizer_bytes = 0, spread_gradient_bytes = 0 }
  see('trinity.PlanTotals', require('trinity.plan.bounds').totals { unit, unit, unit })
end

local function see_formats(strategy)
  see('trinity.ExportedFile', trinity.formats.files(strategy, { format = 'megatron' })[1])
  see('trinity.Strategy', strategy.problem:strategy { mesh = { pipeline = 2 },
    tasks = { '0F1,0F0,0B1,0B0', '1F1,1B1,1F0,1B0' } })
  probe(function(value) return strategy:export(value) end, 'trinity.ExportOptions', { format = 'megatron' }, 0)
end

-- The library's own: scripts may add methods.
local function see_modules()
  see('trinity', trinity)
  for _, name in ipairs(trinity.methods.names()) do
    local source = debug.getinfo(trinity.methods.info(name).run, 'S').source
    if source:find '/lib/trinity/methods/' then
      seen['trinity.MethodsModule'][name] = trinity.methods[name]
    end
  end
end

-- Options that nobody lists: of scripts, options passed on, of a link, and arguments of pipeline methods.
local unchecked = { ['trinity.OptionSpec'] = true, ['trinity.ModelOptions'] = true, ['trinity.CompareOptions'] = true,
  ['trinity.InjectedLink'] = true, ['trinity.PipelineInstance'] = true, ['trinity.PlanResult'] = true,
  ['trinity.FoundPlan'] = true, ['trinity.PlanDimension'] = true, ['trinity.PlanPoint'] = true }

-- Classes whose objects have fields of their own in addition to the declared ones.
local open = { ['trinity.Module'] = true, ['trinity.NetworkOptimiser'] = true }

-- Tables that are taken as well as given, and plain data inside objects.
local plain = {}
for name in ([[ClusterSpec CurvePoint DeviceSpec DeviceTypeSpec EfficiencySpec LinkSpec Machine Mesh
    MeshSynchronisation MoveState MoveTrainerOptions OperatorChoice ParameterSpec PipelineMachine PlanSpec
    PlanTotals ProfileKind ProfileLink ProfileResiduals Ranking SearchOptions Tensor TensorSpec TraceTimes
    Wire]]):gmatch '%S+' do
  plain['trinity.' .. name] = true
end

-- Fields that the examples lack: after Ctrl-C, of a run's folder, rare ones, and options that the engine never sees.
local rare = { ['trinity.Comparison'] = 'stopped', ['trinity.ComparisonRow'] = 'label',
  ['trinity.Search'] = 'plan stopped resumable stages updates', ['trinity.PipelineResult'] = 'stopped',
  ['trinity.Run'] = 'name path', ['trinity.PipelineInfeasibility'] = 'node',
  ['trinity.UpdateReport'] = 'approx_kl value_loss entropy policy_loss episode_return',
  ['trinity.EnvObservation'] = 'critical words facts step_time', ['trinity.Strategy'] = 'priority stage reevaluated', ['trinity.ReplicaOptions'] = 'placement',
  ['trinity.StageReplicaOptions'] = 'at_share', ['trinity.Problem'] = 'on_evaluated cost_coverage' }

local function sorted(set)
  local list = {}
  for name, value in trinity.system.sorted_pairs(set) do if value then list[#list + 1] = name end end
  return list
end

local function parameters_of(f)
  local names = {}
  f = fields.original[f] or f
  for i = 1, debug.getinfo(f, 'u').nparams do names[i] = debug.getlocal(f, i) end
  return table.concat(names, ', ')
end

describe('the editor types', function()
  local problem, placement = see_plans()
  -- A method without options of its own: what all take.
  probe(function(value) return trinity.methods.single_device(problem, value) end, 'trinity.SearchOptions', {}, 0)
  local gpt2 = trinity.problem { graph = trinity.model('gpt2', { layers = 2, batch_size = 1 }),
    cluster = trinity.cluster 'p100x2' }
  local meshed = { mesh = { data = 2 }, devices = { 1, 2 }, stages = { 2 }, virtual_stages = 1, recompute = 'none', bucket_bytes = 1e6,
    sequence_parallel = true, scatter_gather = true, overlap_tp_grad_allreduce = true, zero_stage = 1, sync = { kind = 'all_reduce' }, cp_comm_type = 'ring',
    operators = { ['block_1/feed_forward/gelu'] = { recompute = true } }, inside = function() return 1 end }
  probe(function(plan) return gpt2:strategy(plan) end, 'trinity.MeshStrategy', meshed, 0)
  see('trinity.Strategy', gpt2:strategy(meshed))
  see('trinity.Account', gpt2:strategy(meshed):breakdown())
  see_formats(gpt2:strategy(meshed))
  local slow = trinity.cluster('p100x4', { slow = { [trinity.cluster 'p100x4'.devices[1].name] = 3 } })
  see('trinity.Stragglers', trinity.stragglers(trinity.problem { cluster = slow, graph = trinity.model('gpt2', { layers = 4 }) }:strategy {
    mesh = { data = 2, pipeline = 2 } }, { draws = 1 }))
  local islands = trinity.problem { cluster = trinity.cluster 'dgx_a100:6+dgx_a100:6', graph = trinity.model('gpt2', { layers = 2 }) }
  see('trinity.RankOrder', islands:strategy({ mesh = { tensor = 4, data = 2 } }):rank_orders()[1])
  see_bounds()
  local decoder = os.tmpname() .. '.json'
  require('trinity.core').write_file(decoder, '{"model_type": "gpt2", "n_embd": 8, "n_layer": 1, "n_head": 2, "vocab_size": 9}')
  probe(function(value) return trinity.model(decoder, value) end, 'trinity.DecoderOptions', {}, 0)
  try_all()
  see_infeasibility()
  see_training()
  see_pipelines(problem)
  see_devices()
  probe_parts(problem, placement)
  see_modules()
  local parents = {}
  for _, class in trinity.system.sorted_pairs(classes) do
    if class.parent then parents[class.parent] = true end
  end

  it('declare every name that is there', function()
    local compared = 0
    for _, there in ipairs { options, seen } do
      for name, names in trinity.system.sorted_pairs(there) do
        local all = members(classes[name])
        for key in trinity.system.sorted_pairs((open[name] or unchecked[name]) and {} or names) do
          if not all[key] then error(('%s.%s: not declared'):format(name, key), 0) end
          compared = compared + 1
        end
      end
    end
    expect(1000):below(compared)
  end)
  it('declare nothing that is not there', function()
    local compared = 0
    for name, class in trinity.system.sorted_pairs(classes) do
      local there = options[name] or seen[name]
      if not there and not parents[name] and not unchecked[name] then error(name .. ': nothing to compare with', 0) end
      for key in trinity.system.sorted_pairs(there and not unchecked[name] and members(class) or {}) do
        local lacking = (' %s '):format(rare[name] or ''):find((' %s '):format(key), 1, true)
        if there[key] == nil and not lacking and not key:match '^%[' then
          error(('%s.%s: not there at run time'):format(name, key), 0)
        end
        compared = compared + 1
      end
    end
    expect(1000):below(compared)
  end)
  it('have every option of which functions take a table: others are refused', function()
    ignored['SearchModule.run(options)'] = nil -- what search.options gave, with the method's own
    expect(table.concat(sorted(ignored), ' ')):equals('')
  end)
  it('are the only names that may be read', function()
    expect(table.concat(sorted(refused), ' ')):equals('')
    for name in pairs(plain) do silent[name] = nil end -- a set: in any order
    expect(table.concat(sorted(silent), ' ')):equals('')
  end)
  it('give functions their parameters', function()
    local compared = 0
    for name, names in trinity.system.sorted_pairs(seen) do
      for _, method in ipairs(classes[name].methods) do
        local f, list = names[method.name], { method.separator == ':' and 'self' or nil }
        if type(f) ~= 'function' then error(('%s.%s is a %s'):format(name, method.name, type(f)), 0) end
        for _, parameter in ipairs(method.parameters) do
          if parameter.name ~= '...' then list[#list + 1] = parameter.name end
        end
        if debug.getinfo(fields.original[f] or f, 'S').what == 'Lua' then
          expect(('%s.%s(%s)'):format(name, method.name, parameters_of(f))):equals(('%s.%s(%s)'):format(name, method.name,
            table.concat(list, ', ')))
          compared = compared + 1
        end
      end
    end
    expect(300):below(compared)
  end)
  it('list the words of every choice', function()
    for name, alias in trinity.system.sorted_pairs(aliases) do
      if alias.words then expect(table.concat(sorted(words[name] or {}), ' ')):equals(table.concat(sorted(alias.words), ' ')) end
    end
  end)
end)

common.evaluations, common.quiet = evaluations, quiet
examples.leave()
