-- The methods of `trinity serve`. Devices, units, nodes and actions count from 0 in requests and answers.

local check = require 'trinity.base.check'
local core = require 'trinity.core'
local env_of = require 'trinity.env'
local job = require 'trinity.job'
local json = require 'trinity.base.json'
local model = require 'trinity.graph.model'
local options_of = require 'trinity.base.options'
local plan = require 'trinity.plan'
local problems = require 'trinity.strategy.problem'
local util = require 'trinity.base.util'

local methods = { list = {} }

local problem_spec = options_of.declare(nil, { help = 'What is trained and where; the same as the options of commands.',
  { 'model', 'string', help = 'a model or a file (trinity help networks)' },
  { 'batch_size', 'integer', least = 1, most = 2 ^ 30, help = 'samples per micro-batch' },
  { 'set', 'table', json = 'object', help = 'options of the model by name' },
  { 'cluster', 'string', help = 'a cluster or a file (trinity help clusters)' },
})

local on_problem = { 'problem', problem_spec, help = "default: what the command's options say" }
local plan_help = 'devices per operator or colocation unit, from 0: a list, or a text with one of 0-9, a-z for each'
local one_placement = { 'placement', 'any', help = plan_help }
local one_mesh = { 'strategy', 'table', json = 'object',
  help = 'in its place, a strategy with a mesh: fields mesh, schedule, micro_batches, ... of trinity.MeshStrategy' }

local function fail(code, field, message, ...)
  error({ code = code, field = field, message = message:format(...) }, 0)
end

-- The problem of a request, kept for later ones.
local function problem_of(session, given)
  local spec = util.merged(session.defaults, given or {})
  local key = json.encode(spec)
  local found = session.problems[key]
  if found then return found end
  local options = util.merged({ batch_size = spec.batch_size, cluster = spec.cluster }, spec.set or {})
  found = problems.new { graph = model.load(spec.model, options), cluster = model.cluster(spec.cluster) }
  if #session.order == session.limits.max_problems then session.problems[table.remove(session.order, 1)] = nil end
  session.problems[key], session.order[#session.order + 1] = found, key
  return found
end

local digit = {}
for value = 0, 35 do digit[('0123456789abcdefghijklmnopqrstuvwxyz'):byte(value + 1)] = value end

-- A placement of a request: by operator or by unit, as a list or a text.
local function read_placement(problem, given, field)
  local graph, devices, placement = problem.graph, #problem.cluster.devices, problem:placement()
  local is_text, unit_of = type(given) == 'string', graph.unit_of
  if not is_text and type(given) ~= 'table' then
    fail('invalid_params', field, "'%s': expected %s, got %s", field, plan_help, util.describe(given))
  end
  local by_unit = #given == graph.units and #given ~= graph.operators
  if not by_unit and #given ~= graph.operators then
    fail('invalid_params', field, "'%s': expected %d entries (operators) or %d (colocation units), got %d", field,
      graph.operators, graph.units, #given)
  end
  for op = 1, #placement do
    local i = by_unit and unit_of[op] or op
    local device
    if is_text then device = digit[given:byte(i)] else device = given[i] end
    if type(device) ~= 'number' or not (device >= 0 and device < devices and device % 1 == 0) then
      fail('invalid_params', field, "'%s': entry %d: expected a device from 0 to %d, got %s", field, i - 1, devices - 1,
        util.describe(is_text and given:sub(i, i) or device))
    end
    placement[op] = device + 1
  end
  return placement
end

-- Fields of a mesh strategy that name no file.
local allowed = util.set [[mesh schedule micro_batches virtual_stages stages layout recompute sequence_parallel
  scatter_gather overlap_tp_grad_allreduce zero_stage optimizer_offload_fraction
  activation_offload_fraction bucket_bytes cp_comm_type sync]]

local function read_plan(problem, params)
  if params.strategy then
    util.refuse_unknown('strategy', params.strategy, allowed, 'field')
    return params.strategy
  end
  return params.placement and read_placement(problem, params.placement, 'placement') or problem:placement()
end

local function method(name, help, result, params, run)
  params.help = help
  methods.list[name] = { help = help, result = result, params = options_of.declare(nil, params), run = run }
end

method('info', 'The program, its limits, and what a problem is.',
  'schema, version, limits; model, cluster, operators, units, devices, unit_of (per operator), capacity_bytes',
  { on_problem }, function(session, params)
    local problem = problem_of(session, params.problem)
    local graph, cluster = problem.graph, problem.cluster
    return { schema = session.schema, version = core.version, limits = session.limits, model = graph.name,
      cluster = cluster.name, operators = graph.operators, units = graph.units, parameters = graph.parameters,
      devices = util.map(cluster.devices, function(device) return device.name end),
      capacity_bytes = util.map(cluster.devices, function(device) return device.capacity_bytes end),
      unit_of = util.listed(graph.operators, function(op) return graph.unit_of[op] - 1 end) }
  end)

method('evaluate', 'Simulates a placement or a strategy.',
  'the fields of trinity.Metrics, reward, lower_bound_s; infeasibility where it does not fit',
  { on_problem, one_placement, one_mesh }, function(session, params)
    local problem = problem_of(session, params.problem)
    local found = problem:strategy(read_plan(problem, params))
    local why = found:infeasibility()
    return util.merged(found.metrics:totable(), { reward = found.reward, lower_bound_s = problem:bounds().step_time_s,
      infeasibility = why and why.text or nil })
  end)

method('evaluate_batch', 'Simulates placements on all threads.',
  'step_time_s, feasible, reward, peak_memory_bytes: lists',
  { on_problem, { 'placements', 'table', json = 'array', needed = true, help = 'a list; each ' .. plan_help } },
  function(session, params)
    local problem, list = problem_of(session, params.problem), params.placements
    if #list > session.limits.max_placements then
      fail('limit_exceeded', 'placements', "'placements': expected at most %d, got %d", session.limits.max_placements,
        #list)
    end
    local plans = util.map(list, function(given, i)
      return read_placement(problem, given, ('placements[%d]'):format(i - 1))
    end)
    local metrics = problem:evaluate_batch(plans)
    local result = { step_time_s = {}, feasible = {}, reward = {}, peak_memory_bytes = {} }
    for i, m in ipairs(metrics) do
      result.step_time_s[i], result.feasible[i] = m.step_time_s, m.feasible
      result.reward[i], result.peak_memory_bytes[i] = problem:score(m, plans[i]), m.peak_memory_bytes
    end
    return result
  end)

method('bounds', 'What no strategy can beat.', 'the fields of trinity.Bounds', { on_problem },
  function(session, params) return util.merged(problem_of(session, params.problem):bounds()) end)

method('plan', 'Searches the strategy of a network on a cluster.',
  'plans: a list of strategies with step_time_s and memory_bytes, best first; simulations; refused',
  { on_problem, { 'global_batch', 'integer', least = 1, most = 2 ^ 30, needed = true, help = 'samples per step' },
    { 'plans', 'integer', 3, least = 1, most = 100, help = 'how many are returned' },
    { 'simulations', 'integer', 48, least = 1, most = 10000, help = 'strategies that are simulated at most' },
    { 'runtime', 'string', help = "training software, which decides the space and the costs; default: of --runtime" },
    { 'space', 'table', json = 'object', help = 'values of dimensions (trinity help planning)' } },
  function(session, params)
    local spec = util.merged(session.defaults, params.problem or {})
    local cluster = model.cluster(spec.cluster, { runtime = params.runtime })
    local found = plan { cluster = cluster, global_batch = params.global_batch, quiet = true,
      runtime = cluster.basis.runtime, plans = params.plans, simulations = params.simulations, space = params.space,
      graph = function(micro_batch, layers)
        return model.load(spec.model, util.merged({ cluster = spec.cluster }, spec.set, { batch_size = micro_batch,
          layers = layers }))
      end }
    return { simulations = found.counts.simulated, refused = found.refused, plans = util.map(found.plans, function(one)
      local row = util.picked(one.strategy, { 'mesh', 'schedule', 'micro_batches', 'virtual_stages', 'recompute',
        'zero_stage', 'optimizer_offload_fraction', 'activation_offload_fraction', 'sequence_parallel', 'stages',
        'bucket_bytes' })
      return { strategy = row, micro_batch = one.micro_batch, step_time_s = one.step_time_s,
        memory_bytes = one.memory_bytes, lower_bound_s = one.lower_bound_s }
    end) }
  end)

method('check', "Checks a job file, or arguments of Megatron-LM or torchtitan, by its client's rules.",
  'client, legal, findings: { code, effect, arguments, text, source, nearest }',
  { { 'path', 'string', help = 'a job file' }, { 'arguments', 'list', of = 'string', help = 'in its place, the words' },
    { 'gpus', 'integer', least = 1, most = 2 ^ 20, help = 'of the job' },
    { 'launch', 'string', help = 'the command that launches it: degrees for DeepSpeed, overrides for torchtitan' } },
  function(_, params)
    if (params.path == nil) == (params.arguments == nil) then
      fail('invalid_params', 'path', "expected one of 'path' and 'arguments'")
    end
    local found = job.read(params.path or params.arguments, { gpus = params.gpus, launch = params.launch })
    return { client = found.client, legal = found.legal, gpus = found.gpus,
      findings = util.map(found.findings, function(finding)
        return util.merged(util.picked(finding, { 'code', 'effect', 'arguments', 'text', 'source' }),
          { nearest = finding.effect == 'refused' and job.nearest(found, finding) or {} })
      end) }
  end)

method('explain', 'Says what a placement or a strategy does and where its step goes.', 'text; critical_path_s by kind',
  { on_problem, one_placement, one_mesh }, function(session, params)
    local problem = problem_of(session, params.problem)
    local found = problem:strategy(read_plan(problem, params))
    local path = problem:timeline(found):critical_path()
    return { text = found:explain(), step_time_s = found.metrics.step_time_s, critical_path_s = {
      compute = path.compute_s, transfer = path.wire_s, collective = path.collective_s, queue = path.queue_s } }
  end)

-- Numbers of devices, nodes and values that count from 1 in Lua, where 0 stands for none.
local from_1 = { placement = true, current = true }
local fixed = { nodes = true, types = true, times = true, node_mask = true, device_mask = true, facts = true }

-- An observation as lists; without what no step changes, unless `all`.
local function listed(observation, all)
  local result = {}
  for name, value in util.sorted_pairs(observation) do
    if all or not fixed[name] then
      result[name] = ((from_1[name] and value - 1) or value):totable()
    end
  end
  return result
end

local function env_named(session, name)
  return session.envs[name] or fail('invalid_params', 'env', "'env': no environment %s; env.reset makes one",
    util.quoted(name))
end

local env_name = { 'env', 'string', 'env', help = 'its name, where a program has several' }

method('env.reset', 'Begins episodes; with options or a problem, or where there is none yet, of a new environment.',
  'observation, num_envs, num_actions, max_steps', { env_name, on_problem,
    { 'options', 'table', json = 'object', help = 'of trinity.EnvOptions: actions, groups, num_envs, reward, ...' },
    { 'seed', 'integer', 1, least = 0, most = 2 ^ 53, help = 'fixes every random number' } },
  function(session, params)
    local name, env = params.env, session.envs[params.env]
    if not env or params.options or params.problem then
      if not env and session.env_count == session.limits.max_envs then
        fail('limit_exceeded', 'env', "'env': expected at most %d environments", session.limits.max_envs)
      end
      for key, value in util.sorted_pairs(params.options or {}) do
        if key == 'search' or key == 'start' and value ~= 'random' and value ~= 'first' then
          check.wrong('env.reset', 'option', key, value, "what JSON can hold ('first' or 'random' for start)")
        end
      end
      local made = env_of(problem_of(session, params.problem), util.merged({ num_envs = 1 }, params.options or {}))
      session.env_count = session.env_count + (env and 0 or 1)
      session.envs[name], env = made, made
    end
    return { observation = listed(env:reset(params.seed), true), num_envs = env.num_envs,
      num_actions = env.num_actions, max_steps = env.max_steps }
  end)

method('env.step', 'Takes an action in every environment.',
  'observation, reward, done; ended: env, episode_return, step_time_s, feasible of the episodes that this step ended',
  { env_name,
    { 'actions', 'integers', needed = true, least = 0, most = 2 ^ 53, help = 'one per environment, from 0' } },
  function(session, params)
    local env = env_named(session, params.env)
    for i, action in ipairs(params.actions) do
      if action >= env.num_actions then
        fail('invalid_params', 'actions', "'actions': entry %d: expected an integer from 0 to %d, got %d", i - 1,
          env.num_actions - 1, action)
      end
    end
    local ok, observation, reward, done, info = pcall(env.step, env, util.map(params.actions, function(a)
      return a + 1
    end))
    if not ok then
      error((tostring(observation):gsub('entry (%d+): action (%d+)', function(entry, action)
        return ('entry %d: action %d'):format(entry - 1, action - 1)
      end)), 0)
    end
    local ended = {}
    for k, i in ipairs(info.envs) do
      ended[k] = { env = i - 1, episode_return = info.episode_returns[k], step_time_s = info.step_time_s[k],
        feasible = info.feasible[k] }
    end
    return { observation = listed(observation), reward = reward:totable(), done = done:gt(0):totable(), ended = ended }
  end)

method('env.best', 'The best plan that an environment has simulated.',
  'step_time_s, feasible; placement (per operator, from 0) or strategy', { env_name }, function(session, params)
    local best = env_named(session, params.env):best()
    if not best then return { step_time_s = nil, feasible = false } end
    local strategy = best.mesh
      and util.picked(best, { 'mesh', 'schedule', 'micro_batches', 'recompute', 'zero_stage' }) or nil
    return { step_time_s = best.metrics.step_time_s, feasible = best.metrics.feasible, strategy = strategy,
      placement = not strategy and util.listed(#best.placement, function(op) return best.placement[op] - 1 end) or nil }
  end)

return methods
