-- trinity.plan: one search over meshes, schedules, recomputation, sharding and stages of a network on a cluster, and
-- `trinity plan`. The bounds: engine/simulator/mesh/mesh_bound.h and plan/bounds.lua; the search: plan/search.lua.

local Search = require 'trinity.plan.search'
local check = require 'trinity.base.check'
local fields = require 'trinity.base.fields'
local core = require 'trinity.core'
local dimensions = require 'trinity.plan.dimensions'
local dist = require 'trinity.dist'
local layout = require 'trinity.strategy.layout'
local model = require 'trinity.graph.model'
local moves = require 'trinity.plan.moves'
local networks = require 'trinity.plan.networks'
local options_of = require 'trinity.base.options'
local placement_methods = require 'trinity.methods'
local prices = require 'trinity.cluster.prices'
local printed = require 'trinity.base.printed'
local progress = require 'trinity.base.progress'
local space = require 'trinity.plan.space'
local stragglers = require 'trinity.stragglers'
local text = require 'trinity.plan.text'
local unequal = require 'trinity.plan.unequal'
local util = require 'trinity.base.util'

---@class trinity.PlanModule
---@overload fun(spec: trinity.PlanOptions): trinity.PlanResult
local plan = {}

local own = {}

--- Applies a value to a strategy: returns another, or changes the given one.
---@alias trinity.PlanApply fun(strategy: trinity.MeshStrategy, value: any, point: trinity.PlanPoint): table?

--- Registers a dimension under a name, in place of the script's own of that name.
--- Example: `trinity.plan.dimension('bucket', { values = { 25e6, 200e6 }, apply = function(s, bytes) s.bucket_bytes =
--- bytes end })`
---@param name string
---@param dimension trinity.PlanDimension
function plan.dimension(name, dimension)
  check.own_name('plan.dimension', 'name', name, space.names)
  check.argument('plan.dimension', 2, 'dimension', dimension, 'table')
  check.argument('plan.dimension', 2, 'dimension.values', dimension.values, 'table')
  check.argument('plan.dimension', 2, 'dimension.apply', dimension.apply, 'function')
  own[name] = { values = dimension.values, apply = dimension.apply }
end

--- Registers a move from a plan to its neighbours under a name (lib/trinity/plan/moves.lua).
--- Example: `trinity.plan.move('halve', function(point) return {} end)`
---@param name string
---@param move fun(point: trinity.PlanPoint, about: table): trinity.PlanPoint[]
function plan.move(name, move) moves.register(name, move) end

--- Names of the moves, in the order in which they are tried. Example: `trinity.plan.moves()[1]`
---@return string[]
function plan.moves() return moves.names() end

local function check_reward(owner, place, name, value)
  if type(value) ~= 'function' then check.value(owner, place, name, value, { 'choice', dimensions.rewards }) end
end

local declared = options_of.declare('trinity.PlanOptions', { help = 'What trinity.plan takes.',
  { 'graph', 'any', needed = true, as = 'trinity.Graph|fun(micro_batch: integer): trinity.Graph',
    help = 'a training step; a function of the samples of a micro-batch where these may vary' },
  { 'cluster', 'object', class = 'cluster', needed = true, help = 'where it runs' },
  { 'global_batch', 'integer', needed = true, least = 1, most = 2 ^ 30, help = 'samples of a step of all replicas' },
  { 'space', 'table', as = 'table<string, any>', otherwise = 'all of it',
    help = 'values of dimensions: one, a list, or a function of the point so far that returns a list' },
  { 'runtime', 'string', otherwise = "'any': all that trinity can say",
    help = 'whose rules the space has: what this training software runs (cluster/runtime_rules.lua)' },
  { 'cost', 'any', as = 'trinity.CostFunction|trinity.CostRow[]|string',
    help = "as of trinity.problem: a function, rows or a CSV file of seconds; rows hold for one micro-batch" },
  { 'reward', 'any', check = check_reward, as = "trinity.Reward|'dollars'|'joules'|'p95'",
    otherwise = 'minus the step time',
    help = 'is maximised; for a function, plans with the least bounds on the step are simulated. Words: minus what the '
      .. 'devices of a plan cost per step, by `prices`; the space then has plans that leave devices idle; p95: minus '
      .. 'the 95th percentile of the step with `noise` and with what is slow in the cluster' },
  { 'noise', 'number', 0.02, least = 0, most = 10,
    help = "with reward 'p95': coefficient of variation of a device's pass of one micro-batch" },
  { 'draws', 'integer', 50, least = 1, most = 1e6, help = "with reward 'p95': steps with random times of one plan" },
  { 'stragglers', 'table', as = 'trinity.StragglerOptions', otherwise = 'even work',
    help = 'rank plans by the mean of steps with these lengths and experts (by the 95th percentile with reward '
      .. "'p95'): the fastest ones without them are sampled" },
  { 'prices', 'any', as = 'table<string, trinity.PriceRow>|string', otherwise = 'list prices and board power',
    help = "with reward 'dollars' or 'joules': rows by kind of device (cluster/prices.lua), or a CSV file of these" },
  { 'included', 'table', as = 'trinity.PlanPoint[]', help = 'points that are simulated before all others' },
  { 'plans', 'integer', 5, least = 1, most = 1000, help = 'that are kept: bounds prune what cannot be among them' },
  { 'simulations', 'integer', 96, least = 1, most = 2 ^ 30, help = 'strategies that are simulated at most' },
  { 'tasks', 'integer', 20000000, least = 1, most = 2 ^ 50,
    help = 'operators in all micro-batches that one simulation runs at most; what has more is left' },
  { 'seconds', 'number', math.huge, least = 0, help = 'limit; results then depend on the machine' },
  { 'methods', 'table', as = 'string[]', otherwise = "{ 'annealing' }",
    help = 'of placement, that place operators inside stages where `space` has placement above 1: the best of them' },
  { 'evaluations', 'integer', 1000, least = 1, most = 2 ^ 30, help = 'of such a method, a stage' },
  { 'seed', 'integer', 1, least = 0, most = 2 ^ 31, help = "of such a method, and of reward 'p95'" },
  { 'quiet', 'boolean', false, help = 'shows no progress' },
})

-- Devices of the smallest machine, and whether groups of powers of two straddle machines.
local function per_node_of(cluster)
  local counts, least, most, nodes = {}, math.huge, 0, 0
  for _, device in ipairs(cluster.devices) do counts[device.node] = (counts[device.node] or 0) + 1 end
  for _, count in util.sorted_pairs(counts) do
    least, most, nodes = math.min(least, count), math.max(most, count), nodes + 1
  end
  return least, nodes > 1 and (least ~= most or math.frexp(least) ~= 0.5)
end

-- The samples of a micro-batch that the space begins with, and whether the graph has a batch of its own.
local function first_micro_batch(owner, spec, given)
  if type(spec.graph) ~= 'function' then
    local batch = networks.samples(spec.graph)
    if given.micro_batch ~= nil and given.micro_batch ~= batch then
      check.refuse(owner, 'dimension', 'micro_batch', "the graph's batch is %g: give graph = function(micro_batch)",
        batch)
    end
    given.micro_batch = batch
    return batch
  end
  local first = given.micro_batch
  if type(first) == 'table' then first = first[1] end
  return type(first) == 'number' and first or 1
end

-- The least bandwidth between a device and its host; nil unless every kind of device states what offloading takes.
local function host_bandwidth(nets, cluster)
  local least = math.huge
  for _, kind in ipairs(nets.kinds) do
    local type = model.device_type(cluster, kind.type)
    if not (type.host_bandwidth_bytes_per_s and type.host_memory_bandwidth_bytes_per_s) then return nil end
    least = math.min(least, type.host_bandwidth_bytes_per_s)
  end
  return least
end

local function make_space(owner, spec, nets, own_used, devices)
  local given = util.merged({}, spec.space or {})
  local first = first_micro_batch(owner, spec, given)
  space.check(owner, given, own_used)
  local graph = nets:problem(first).graph
  if given.layout then
    if given.stages then check.refuse(owner, 'dimension', 'layout', "expected no dimension 'stages' with it") end
    given.stages, given.layout = { layout.stages(given.layout, 1, graph, owner .. ': layout') }, nil
  end
  local units = nets:problem(first).handle:mesh_units({ mesh = {} }, 1)
  local per_node, straddles = per_node_of(spec.cluster)
  return space.new(owner, given, { devices = #spec.cluster.devices, per_node = per_node, straddles = straddles,
    list = spec.cluster.devices, layers = #units - 2, batch = spec.global_batch,
    experts = graph.active_parameters < graph.parameters,
    host_bandwidth_bytes_per_s = host_bandwidth(nets, spec.cluster),
    selective = function(point) return (nets:selective_frees(point) or 0) > 0.01 end,
    modules = function(micro_batch) return nets:modules(micro_batch) end,
    unequal = #nets.kinds > 1, counts = devices.counts, fewer = devices.fewer,
    natural_sorted = devices.natural_sorted }, own_used, spec.runtime), first
end

local point_of = printed.as('point', space.text)

local FoundPlan = { __name = 'plan' }

function FoundPlan.__tostring(self)
  return ('plan: %s: a step of %.6g s'):format(space.text(self.point), self.step_time_s)
end

fields.class(FoundPlan, 'trinity.FoundPlan',
  'bounds feasible fields included moved networks order placement point problem rank variants')

--- The strategy is made when it is first read.
function FoundPlan.__index(self, key)
  if key ~= 'strategy' then return FoundPlan[key] end
  local strategy = self.problem:strategy(self.fields, { method = 'plan' })
  rawset(self, key, strategy)
  return strategy
end

local result_of_plans = printed.as('plans', function(self)
  local best = self.plans[1]
  if not best then return table.concat(text.nothing(self), '\n') end
  return ('%d of %s on %s\n%s'):format(#self.plans, best.problem.graph.name, self.cluster.name, text.plans(self, 1))
end)

local shown_of_points = { 'tensor', 'pipeline', 'virtual_stages', 'data', 'expert', 'context', 'micro_batch',
  'micro_batches', 'schedule', 'recompute', 'recomputed', 'zero_stage', 'sequence_parallel', 'bucket_bytes',
  'algorithm', 'order', 'placement', 'rank_order', 'segment_size', 'optimizer_offload_fraction',
  'activation_offload_fraction' }

--- A result as users see it.
local function public(result, nets, spec, peak)
  local point, metrics = result.point, result.metrics
  local problem = nets:problem(point.micro_batch)
  local flop = nets:model_flop(point.micro_batch) * spec.global_batch
  local made = { metrics = metrics, reward = result.reward, step_time_s = metrics.step_time_s,
    lower_bound_s = math.min(result.bounds.step_time_s, metrics.step_time_s),
    samples_per_s = spec.global_batch / metrics.step_time_s,
    mfu = flop / (metrics.step_time_s * peak(result)), memory_bytes = metrics.peak_memory_bytes,
    feasible = metrics.feasible, cost = result.cost, point = point_of(point), fields = result.strategy,
    bounds = result.bounds, moved = result.moved, included = result.included, variants = {}, problem = problem,
    networks = nets, stages = result.strategy.stages }
  return setmetatable(util.merged(util.picked(point, shown_of_points), made), FoundPlan)
end

--- FLOP per second of the devices of a result in the type that matmuls of the network are computed in, as a function.
local function peak_of(cluster, nets, micro_batch)
  local graph, most, dtype, peak = nets:problem(micro_batch).graph, -1, 'float32', {}
  for i = 1, graph.operators do
    local op = graph:operator(i)
    if op.phase == 'forward' and op.flops > most and op.outputs[1] then most, dtype = op.flops, op.outputs[1].dtype end
  end
  for _, kind in ipairs(nets.kinds) do
    local peaks = model.peak_flops_per_s(cluster, kind.type)
    peak[kind.type] = peaks[dtype] or peaks.float32
  end
  return function(result)
    local sum, devices = 0, result.strategy.devices
    for rank = 1, space.used(result.point) do
      local device = cluster.devices[devices and devices[rank] or rank]
      sum = sum + peak[device.type] * device.speed
    end
    return sum
  end
end

local function result_of(search, nets, given, first)
  local peak = peak_of(given.cluster, nets, first)
  local function shown(result) return public(result, nets, given, peak) end
  local best, by_shape, listed = {}, {}, {} -- plans of other shapes; equal-looking ones are variants
  for _, result in ipairs(search.results) do
    local looks, shape = ('%s %.4g s %.3g'):format(space.text(result.point), result.metrics.step_time_s,
      result.metrics.peak_memory_bytes), space.shape(result.point)
    if result.metrics.feasible and not listed[looks] and (result.drawn or not search.quantile) then
      listed[looks] = true
      if by_shape[shape] and not result.included then
        table.insert(by_shape[shape].variants, shown(result))
      else
        local one = shown(result)
        best[#best + 1], by_shape[shape] = one, by_shape[shape] or one
        one.rank = #best
      end
    end
  end
  local plans = {}
  for i, one in ipairs(best) do
    if i <= given.plans or one.included then plans[#plans + 1] = one end
  end
  local lower = search.lower_bound_s
  if best[1] then lower = math.min(lower, best[1].cost) end
  local nearest = not best[1] and search:find_nearest() or nil
  if nearest then nearest.helps = text.helps(nearest.point, given.space or {}, given.cluster) end
  return fields.result('trinity.PlanResult', result_of_plans {
    plans = plans, runtime = given.runtime or 'any', straddles = search.space.about.straddles,
    cost_of = search.cost_of, fused = search.fused or false,
    pareto = util.map(search:front(), shown), simulated = util.map(search.results, shown),
    refused = search.refused, counts = search.counts, pruned = search.pruned, left = search.left or 0,
    too_large = search.too_large,
    lower_bound_s = lower, stopped = search.stopped, nearest = nearest,
    impossible = not best[1] and not nearest and (search.impossible and { search.impossible }
      or text.invalid_reasons(search)) or nil, capacity_bytes = search.capacity_bytes,
    global_batch = given.global_batch, cluster = given.cluster, networks = nets,
    seconds = core.clock_s() - search.started_s })
end

-- Ranks that each search the whole would cost as much as one and find the same.
local function refuse_ranks(owner)
  local job = dist.current()
  if job then
    util.fail('%s: one process searches a plan, and its threads share the work (--threads); %d ranks would all do '
      .. 'the same', owner, job.size)
  end
end

local function check_methods(owner, names)
  check.list(owner, 'option', 'methods', names, 'string')
  if names[1] == nil then check.refuse(owner, 'option', 'methods', 'expected names of methods, got none') end
  for _, name in ipairs(names) do
    if not pcall(placement_methods.get, name) then
      check.refuse(owner, 'option', 'methods', 'no method %s', util.unknown(name, placement_methods.names()))
    end
  end
end

-- Rows were measured at one size of micro-batch.
local function check_cost(owner, given)
  if given.cost == nil or type(given.cost) == 'function' or type(given.graph) ~= 'function' then return end
  local micro_batch = (given.space or {}).micro_batch
  if type(micro_batch) == 'number' or type(micro_batch) == 'table' and #micro_batch == 1 then return end
  check.refuse(owner, 'option', 'cost', 'rows are seconds at one micro-batch: expected dimension micro_batch '
    .. '(--micro-batch) with one value')
end

local sampled_slack = 0.2 -- a plan whose step with even work is so much longer may be the best with uneven work

--- The cost of plans by sampled steps, a function of a problem and a strategy, and its words.
local function sampled(owner, given)
  local uneven, is_p95 = given.stragglers, given.reward == 'p95'
  if given.reward and not is_p95 then
    check.refuse(owner, 'option', 'stragglers', "expected reward = 'p95' or none with it")
  end
  local options = util.merged({ noise = is_p95 and given.noise or 0, draws = given.draws, seed = given.seed },
    uneven or {}, { remedies = false })
  if options.noise == 0 and not options.lengths then options.draws = 1 end
  local function cost(problem, fields_of_plan)
    local strategy = problem:strategy(fields_of_plan)
    if options.experts then
      local loaded = stragglers.expert_load(strategy, options.experts)
      for _, device in ipairs(given.cluster.devices) do
        if device.name == loaded.fullest_device and loaded.peak_memory_bytes > device.capacity_bytes then
          util.fail('with this load of experts %s needs more memory than it has', device.name)
        end
      end
    end
    return stragglers(strategy, options)[is_p95 and 'p95_s' or 'mean_s']
  end
  local said = ('%s of %d step%s with noise %g%s%s'):format(is_p95 and '95th percentile' or 'mean', options.draws,
    options.draws > 1 and 's' or '', options.noise, options.lengths and ', unequal sequences' or '',
    options.experts and ', uneven experts' or '')
  local name = is_p95 and 'p95' or 'mean step'
  return cost, { name = name, unit = 's', text = said, line = ('%s: %s, of the plans shown; %s'):format(name, said,
    uneven and 'only the fastest plans with even work are sampled'
      or 'plans whose step without noise is longer are not sampled') }
end

--- Searches a strategy for a network on a cluster. Not by the ranks of a job (trinity.dist.alone() lets each).
--- Example: `trinity.plan.run { graph = function(micro_batch) return trinity.model('llama-3-8b', { batch_size =
--- micro_batch, layers = 2 }) end, cluster = trinity.cluster 'dgx_h100:2', global_batch = 2 }`
---@param spec trinity.PlanOptions
---@return trinity.PlanResult
function plan.run(spec)
  local owner = 'trinity.plan'
  local given = declared:read(owner .. '.run', 1, 'spec', spec)
  refuse_ranks(owner)
  if given.methods then check_methods(owner, given.methods) end
  if type(given.graph) ~= 'function' then check.object(owner, 'option', 'graph', given.graph, 'graph') end
  check_cost(owner, given)
  local nets = networks.new(owner, given.graph, given.cluster, given.cost)
  local used = util.picked(own, util.sorted_keys(given.space or {})) -- in any order: a set
  local rated, quantile, cost_of = type(given.reward) == 'string' and given.reward ~= 'p95', nil, nil
  local per_s, unit, said
  if given.reward == 'p95' or given.stragglers then quantile, cost_of = sampled(owner, given) end
  if rated then per_s, unit, said = prices.of(owner, given.reward, given.cluster, given.prices)
  elseif given.prices then
    check.refuse(owner, 'option', 'prices', "expected reward = 'dollars' or 'joules' with it")
  end
  if rated then
    cost_of = { name = given.reward, unit = unit, text = said,
      line = ('%s of a step, of the GPUs that a plan uses: %s'):format(given.reward, said) }
  end
  local devices = unequal.new(given.cluster, nets.kinds, per_s)
  local made, first = make_space(owner, given, nets, used, devices)
  local line = progress.new('plan', given.quiet)
  local search = Search.new { owner = owner, networks = nets, space = made, count = given.plans,
    simulations = math.max(given.simulations, 1), tasks = given.tasks, seconds = given.seconds,
    reward = type(given.reward) == 'function' and given.reward or nil, quantile = quantile,
    slack = quantile and math.max(given.noise, given.stragglers and sampled_slack or 0) or nil,
    uneven = given.stragglers ~= nil, rate = rated and devices:rate_of(per_s) or function() return 1 end,
    cost_of = cost_of, own = used, included = given.included,
    methods = given.methods or { 'annealing' },
    method_options = { evaluations = given.evaluations, seed = given.seed, quiet = true },
    cluster = given.cluster, capacity_bytes = devices.capacity_bytes, unequal = #nets.kinds > 1 and devices or nil,
    say = function(search)
      line:update { text = search:progress_text(), share = math.min(1, search.counts.simulated / given.simulations) }
    end }
  core.begin_search()
  local ok, message = pcall(search.run, search)
  if not ok then search:stopping() end
  core.end_search()
  line:finish()
  if not ok and not (search.stopped and search.results[1]) then error(message, 0) end
  return result_of(search, nets, given, first)
end

return setmetatable(plan, { __call = function(_, spec) return plan.run(spec) end })
