-- trinity.pipeline: cuts a network into the stages of a pipeline, by exact planners and by rules.

local core = require 'trinity.core'
local check = require 'trinity.base.check'
local fields = require 'trinity.base.fields'
local instances = require 'trinity.graph.instances'
local model = require 'trinity.graph.model'
local pipeline_machine = require 'trinity.pipeline.machine'
local pipeline_infeasibility = require 'trinity.pipeline.infeasibility'
local options_of = require 'trinity.base.options'
local progress = require 'trinity.base.progress'
local util = require 'trinity.base.util'

local name = 'trinity.pipeline'
--- Cuts networks into pipelines. The module is also a function: trinity.pipeline(source, options), where `source` is a
--- file (dnn-partitioning or Piper .json, PipeDream or DAPPLE .txt, .onnx, or trinity's), a model or a problem.
---@class trinity.PipelineModule
---@overload fun(source: string|trinity.Problem, options?: trinity.PipelineOptions): trinity.PipelineResult
local pipeline = {
  schedule_bubble = require('trinity.strategy.parallelism').schedule_bubble,
}

-- Methods by name: { run = function(instance) return result end, help = }.
local methods, builtin = {}, {}

local most_devices = 65536

local declared = options_of.declare('trinity.PipelineOptions', { help = 'Options of trinity.pipeline.',
  { 'method', 'string', 'max_load_annealing', help = 'planning method; see trinity.pipeline.methods()' },
  { 'devices', 'any', as = 'integer|integer[]',
    otherwise = "the file's, the cluster's (in a node and nodes, where these hold equally many), or 4",
    help = 'number of accelerators, or one number per level, innermost first' },
  { 'bandwidth_bytes_per_s', 'any', as = 'number|number[]',
    otherwise = "the file's, or the slowest link between the devices used",
    help = 'bandwidth between devices, or one number per level' },
  { 'memory_bytes', 'number', least = 0, most = 2 ^ 60,
    otherwise = "from the file, or the smallest of the cluster's devices", help = 'memory of one device; 0: '
      .. 'unlimited' },
  { 'cpus', 'integer', least = 0, most = 1024, otherwise = 'from the file', help = 'CPUs that may hold nodes, too' },
  { 'micro_batches', 'integer', least = 1, most = 2 ^ 30, otherwise = "the file's, or 32",
    help = 'piper: micro-batches per batch' },
  { 'seconds', 'number', math.huge, least = 0, otherwise = 'no limit', help = 'time limit of planning; the result is '
    .. 'the best found, and marked optimal only if that is proved; it then depends on the machine' },
  { 'seed', 'integer', 1, least = 0, help = 'random seed' },
  { 'rounds', 'integer', least = 1, most = 1e6, otherwise = '10, or any number within `seconds`',
    help = 'max_load_annealing: rounds of annealing' },
  { 'quiet', 'boolean', false, help = 'print no progress line' },
  { 'cluster', 'string', 'p100', help = "device type for which built-in models and ONNX files are costed, or a whole "
    .. "cluster ('dgx_a100x2'); a problem has its own" },
  { 'model', 'table', as = 'trinity.ModelOptions',
    help = 'options of trinity.model for a model or a file of a network' },
  { 'cost', { 'code', 'paper' }, 'code', help = 'pipedream: costs of the code or of the paper' },
  { 'straight', 'boolean', false, help = 'pipedream: no replicas, one stage per device' },
  { 'activation_compression', 'number', 1, least = 0,
    help = 'pipedream: factor by which transfers are smaller; 0: ignore transfers' },
  { 'compress_branches', { 'auto', 'yes', 'no' }, 'auto', help = 'pipedream: join chains after branches to one layer' },
  { 'data_parallel', 'boolean', true, help = 'piper: stages may be replicated' },
  { 'tensor_parallel', 'boolean', true, help = 'piper: layers may be split' },
})

--- Returns one number per level, innermost first, from a number or a list.
local function levels_of(option, value, low, integer)
  local list = type(value) == 'table' and value or { value }
  if #list == 0 then
    check.refuse(name, 'option', option, 'expected a number or a list of numbers, got an empty list')
  end
  for i = 1, #list do
    if integer then
      check.integer(name, 'option', option, list[i], low, most_devices)
    else
      check.number(name, 'option', option, list[i], 0, 1e30)
      if list[i] == 0 then check.positive(name, 'option', option, list[i]) end
    end
  end
  return list
end

-- The description of a network that is not in a file with costs.
local function about_model(graph, nodes) return { name = graph.name, format = 'model', unit = 's', nodes = nodes } end

--- Returns the network of a file with costs and what the file says about it, or nil for another file.
local function read_file(path, options)
  if not util.exists(path) then util.fail('no file %s', util.shortened(path)) end
  local reader, _, network_of = instances.read(path)
  if not network_of then return nil end
  if next(options.model or {}) then
    check.refuse(name, 'option', 'model', '%s is a file with costs, which has no options', util.shortened(path))
  end
  local network, about = network_of()
  about.name, about.format = path:match '[^/]*$':match '^[^.]*', reader.network_format
  return core.pipeline_network(network), about
end

--- Returns the network of a file, model or problem; what is known about it; the cluster for which it is costed (nil
--- for a file with costs); and whether all its devices are used.
local function read(source, options)
  if type(source) ~= 'string' then
    local network, nodes = core.pipeline_of(source.handle)
    return network, about_model(source.graph, nodes), source.cluster, true
  end
  if instances.reads(source:match '%.(%w+)$') then
    local network, about = read_file(source, options)
    if network then return network, about end
  end
  local graph = model.load(source, options.model)
  local cluster, whole = pipeline_machine.named(options.cluster)
  local network, nodes = core.pipeline_of(core.problem(graph.handle, cluster.handle))
  return network, about_model(graph, nodes), cluster, whole
end

--- Makes a machine from the options, the file and the cluster, in this order of precedence.
local function machine_of(about, cluster, whole, options)
  local devices = levels_of('devices', options.devices or (about.devices or 0) > 0 and about.devices
    or whole and pipeline_machine.levels(cluster) or 4, 0, true)
  local bandwidth = levels_of('bandwidth_bytes_per_s', options.bandwidth_bytes_per_s or about.bandwidth_bytes_per_s
    or cluster and pipeline_machine.bandwidths(cluster, devices) or 1e9)
  if #bandwidth ~= #devices and #bandwidth ~= 1 then
    check.refuse(name, 'option', 'bandwidth_bytes_per_s',
      'expected one number, or one per level of devices (%d), got %d', #devices, #bandwidth)
  end
  local all, levels = 1, {}
  for i = 1, #devices do
    all = all * devices[i]
    levels[i] = { workers = devices[i], bandwidth_bytes_per_s = bandwidth[i] or bandwidth[1] }
  end
  if all > most_devices then
    check.refuse(name, 'option', 'devices', 'expected at most %d devices in total, got %d', most_devices, all)
  end
  local memory = options.memory_bytes or ((about.memory_bytes or 0) > 0 and about.memory_bytes)
    or cluster and pipeline_machine.memory_bytes(cluster) or 0
  return { devices = all, cpus = options.cpus or about.cpus or 0, memory_bytes = math.floor(memory),
    bandwidth_bytes_per_s = levels[#levels].bandwidth_bytes_per_s,
    micro_batches = options.micro_batches or about.micro_batches or 32 }, levels
end

--- Returns the stages of a cut with one device per node.
local function stages_by_device(cut, cpus)
  local by_device, stages = {}, {}
  for node = 1, #cut.assignment do
    local device = cut.assignment[node]
    if not by_device[device] then
      by_device[device] = { nodes = {}, devices = 1, first_device = device }
      stages[#stages + 1] = by_device[device]
    end
    local nodes = by_device[device].nodes
    nodes[#nodes + 1] = node
  end
  table.sort(stages, function(a, b)
    if (a.first_device > 0) ~= (b.first_device > 0) then return a.first_device > 0 end
    return math.abs(a.first_device) < math.abs(b.first_device)
  end)
  for _, stage in ipairs(stages) do
    local device = stage.first_device
    stage.load = cut.loads[device > 0 and device or #cut.loads - cpus + 1 - device]
  end
  return stages
end

local function cut_result(instance, cut)
  if cut.assignment then cut.stages = stages_by_device(cut, instance.machine.cpus) end
  return cut
end

local method_spec = options_of.declare('trinity.PipelineMethod', { kind = 'field',
  help = 'A custom method for trinity.pipeline.',
  { 'run', 'function', needed = true, as = 'fun(instance: trinity.PipelineInstance): trinity.PipelineResult',
    help = 'function that returns feasible, max_load, optimal, stages, assignment' },
  { 'help', 'string', '', help = 'description in one line' },
})

--- Adds a custom method, or replaces the custom method of that name. Raises an error for a built-in name. Example:
--- `trinity.pipeline.register('mine', { run = function(instance) return {} end })`
---@param method string
---@param spec trinity.PipelineMethod
function pipeline.register(method, spec)
  check.own_name(name .. '.register', 'method', method, builtin)
  check.argument(name .. '.register', 2, 'spec', spec, 'table')
  method_spec:check(name .. '.register', spec)
  methods[method] = { run = spec.run, help = spec.help or '' }
end

--- Returns the sorted names of the methods. Example: `trinity.pipeline.methods()[1]`
---@return string[]
function pipeline.methods() return util.sorted_keys(methods) end

--- Returns the description of a method. Example: `trinity.pipeline.help 'piper'`
---@param method string
---@return string
function pipeline.help(method)
  return methods[check.choice(name .. '.help', 1, 'method', method, methods)].help
end

local function register_rule(method, rule, help)
  pipeline.register(method, { help = help, run = function(instance)
    return cut_result(instance, instance.network:cuts(instance.machine, rule, { seed = instance.options.seed,
      seconds = instance.options.seconds }))
  end })
end

register_rule('gpipe', 'balanced', 'consecutive parts whose largest sum of times is least (GPipe; exact)')
register_rule('torchgpipe', 'torchgpipe', "consecutive parts by torchgpipe's block partition")
register_rule('equal', 'equal', 'consecutive parts of equally many layers')
register_rule('random', 'random', 'consecutive parts at random cuts')
register_rule('local_search', 'search', 'consecutive parts, cuts moved while that helps')

local exact_s = 120 -- time limit of a proof; a result without a proof is not marked optimal

pipeline.register('max_load_dp', {
  help = 'smallest maximum load over contiguous parts (dynamic program over down-sets; exact)', run = function(instance)
    return cut_result(instance, instance.network:max_load(instance.machine, {
      seconds = math.min(instance.options.seconds, exact_s), orders = 8,
      most_ideals = 400000, most_pairs = 2e8 }))
  end })

-- Without a time limit, rounds end a search, except on a machine so busy that they would take longer than this.
local longest_s = 50

--- Returns the initial contiguous cut of a search; bounded by counts, so that it is deterministic.
local function contiguous_start(instance, share)
  local ok, cut = pcall(instance.network.max_load, instance.network, instance.machine,
    { most_pairs = 1e8, seconds = math.min(instance.options.seconds, longest_s) * share })
  if not ok and core.stop_requested() then error(cut, 0) end
  return ok and cut.feasible and cut or nil
end

local function better(a, b) return b == nil or not b.feasible or (a.feasible and a.max_load < b.max_load) end

--- Runs rounds of annealing until rounds or time are used, or a stop is requested.
local function search_rounds(instance, best, start)
  local options, shown = instance.options, progress.new('max_load_annealing', instance.options.quiet)
  local limited = options.seconds < math.huge
  local rounds = options.rounds or (limited and 1e6 or 10)
  local most_s = limited and options.seconds or longest_s
  for round = 1, rounds do
    local elapsed = core.clock_s() - start
    if elapsed >= most_s or (best and best.bound) or core.stop_requested() then break end
    local starts = {}
    if best then starts[1] = best.assignment end
    if instance.contiguous then starts[#starts + 1] = instance.contiguous.assignment end
    local ok, found = pcall(instance.network.search, instance.network, instance.machine, { seed = options.seed,
      rounds = 1, first_round = round - 1, trials = math.min(2e6, 20000 * #instance.about.nodes), starts = starts,
      seconds = most_s - elapsed })
    if not ok then
      if best and core.stop_requested() then break end -- in its first moments it has nothing itself
      error(found, 0)
    end
    found.bound = found.optimal
    if better(found, best) then best = found end
    local share = math.max(limited and elapsed / options.seconds or 0, round / rounds)
    shown.label = 'max_load_annealing'
      .. (best.feasible and ('  best %.9g %s'):format(best.max_load, instance.about.unit) or '')
    shown:update { items = limited and 100 or rounds, done = limited and math.floor(100 * math.min(1, share)) or round,
      share = math.min(1, share) }
    if found.bound then break end
  end
  shown:finish()
  return best
end

pipeline.register('max_load_annealing', {
  help = 'smallest maximum load found; parts need not be contiguous (annealing from max_load_dp)',
    run = function(instance)
    local start = core.clock_s()
    instance.contiguous = instance.options.seconds > 0.1 and contiguous_start(instance, 0.25) or nil
    local best = search_rounds(instance, instance.contiguous, start)
    if not best then
      best = instance.network:max_load(instance.machine, { orders = 1, most_ideals = 0,
        seconds = math.max(0, instance.options.seconds - (core.clock_s() - start)) })
    end
    local contiguous_load = instance.contiguous and instance.contiguous.max_load
    best.optimal, best.bound = best.bound or (not best.feasible and best.optimal) or false, nil
    best.contiguous_max_load = contiguous_load
    return cut_result(instance, best)
  end })

pipeline.register('pipedream', {
  help = "PipeDream's optimizer: stages and replicas, levels of bandwidth", run = function(instance)
  local options = instance.options
  local compression = options.activation_compression
  local unit_s = instance.about.unit == 'ms' and 1e-3 or 1
  local found = require('trinity.pipeline.pipedream')(instance.network, unit_s, instance.levels, {
    transfers = compression > 0, compression = compression > 0 and compression or 1, straight = options.straight,
    paper = options.cost == 'paper', memory_bytes = options.memory_bytes or 0,
    seconds = options.seconds, compress = options.compress_branches })
  found.optimal, found.complete = found.complete and found.cuts ~= 'one order', nil
  return found
end })

pipeline.register('piper', {
  help = "Piper's planner: data and tensor degrees, recomputation; max_load: time per sample", run = function(instance)
    local options = instance.options
    return instance.network:piper(instance.machine, {
      seconds = options.seconds < math.huge and options.seconds or nil, data_parallel = options.data_parallel,
      tensor_parallel = options.tensor_parallel })
  end })

--- Returns the first cut without a search that fits, for a method that had no time.
local function simple_cuts(instance)
  local cut
  for _, rule in ipairs { 'memory', 'equal', 'balanced' } do
    local other = instance.network:cuts(instance.machine, rule, {})
    other.optimal = false
    if not cut or other.feasible then cut = other end
  end
  return cut_result(instance, cut)
end

--- Runs a method as a search: Ctrl-C ends it with the best so far, if any. A method that ignores its time limit is
--- interrupted soon after it.
local function run(instance, method)
  local seconds, start = instance.options.seconds, core.clock_s()
  core.begin_search()
  local limited = seconds < math.huge
  if limited then core.begin_limit(seconds + math.max(0.5, seconds * 0.05)) end
  local ok, found = pcall(methods[method].run, instance)
  local stopped = core.stop_requested()
  local late = limited and core.end_limit()
  core.end_search()
  if not ok and late and not stopped and tostring(found):match 'interrupted$' then
    ok, found = true, simple_cuts(instance)
  end
  if not ok then error(found, 0) end
  if type(found) ~= 'table' then
    util.fail("%s: method '%s' returned %s, expected a result", name, method, util.describe(found))
  end
  found.seconds = core.clock_s() - start
  if stopped then found.stopped, found.optimal = true, false end
  return found
end

-- Minimum and maximum devices per level, for methods with limits.
local limits_of = { pipedream = { 1, 1024 }, piper = { 1, most_devices } }

local function check_levels(method, levels)
  local limits = limits_of[method]
  for _, level in ipairs(limits and levels or {}) do
    if level.workers < limits[1] or level.workers > limits[2] then
      check.refuse(name, 'option', 'devices', '%s: expected %d to %d per level, got %d', method, limits[1], limits[2],
        level.workers)
    end
  end
end

-- The function that a call of the module runs.
local function plan_pipeline(_, source, options)
  if type(source) ~= 'string' and util.class_of(source) ~= 'problem' then
    check.wrong(name, 1, 'source', source, 'a file, the name of a model or a problem')
  end
  options = declared:read(name, 2, 'options', options)
  local method = check.choice(name, 'option', 'method', options.method, methods)
  local network, about, cluster, whole = read(source, options)
  local instance = { network = network, about = about, source = source, options = options }
  instance.machine, instance.levels = machine_of(instance.about, cluster, whole, instance.options)
  check_levels(method, instance.levels)
  local found = run(instance, method)
  found.method, found.unit, found.nodes = method, instance.about.unit, instance.about.nodes
  found.network, found.format, found.machine = instance.about.name, instance.about.format, instance.machine
  found.stages, found.assignment = found.stages or {}, found.assignment or {}
  if found.optimal == nil then found.optimal = false end
  if not found.feasible and #found.assignment == 0 then found.max_load = nil end
  pipeline_infeasibility.tell(found, instance, cut_result)
  return fields.result('trinity.PipelineResult', found)
end

for method in util.sorted_pairs(methods) do builtin[method] = true end

return setmetatable(pipeline, { __call = plan_pipeline })
