-- Simulates plans, for problems, searches and strategies. The rules: engine/simulator/simulator.h. `owner` is the
-- function that messages name; `problem` has the fields of simulator.make.

local core = require 'trinity.core'
local array = require 'trinity.base.array'
local check = require 'trinity.base.check'
local costs = require 'trinity.strategy.costs'
local graphs = require 'trinity.graph'
local model = require 'trinity.graph.model'
local options_of = require 'trinity.base.options'
local parallelism = require 'trinity.strategy.parallelism'
local splits = require 'trinity.strategy.splits'
local timeline = require 'trinity.strategy.timeline'
local util = require 'trinity.base.util'

local simulator = {}

local schedule_fields = { 'schedule', 'micro_batches', 'priority', 'order', 'tasks', 'stage' }
local plan_rules = { placement = 'any', splits = 'any' }
for _, name in ipairs(schedule_fields) do plan_rules[name] = 'any' end

--- Returns the schedule fields of a plan, or nil if it has none.
local function schedule_of(plan)
  local description
  for _, name in ipairs(schedule_fields) do
    if plan[name] ~= nil then
      description = description or {}
      description[name] = plan[name]
    end
  end
  return description
end

local plan_text = 'a placement (problem:placement()), a strategy, { placement = ... } or { mesh = ... }'

local function refuse_plan(owner, name, entry, plan)
  local got = type(plan) == 'table' and rawget(plan, 'placement') or plan
  check.refuse(owner, 1, name, '%sexpected %s, got %s', entry and ('entry %d: '):format(entry) or '', plan_text,
    util.describe(got))
end

--- Returns whether a plan is lowered to another graph.
local function is_lowered(plan)
  return type(plan) == 'table' and (rawget(plan, 'splits') ~= nil or rawget(plan, 'mesh') ~= nil)
end

--- Calls a method of a problem's handle. Errors of the engine name `owner`.
local function call(owner, problem, method, ...)
  local ok, first = pcall(problem.handle[method], problem.handle, ...)
  if ok then return first end
  local message, own = util.unplaced(tostring(first)):gsub('^problem:' .. method .. ': ', '')
  if own == 0 then error(first, 0) end
  util.fail('%s: %s', owner, message)
end

--- Returns a strategy with what the runtime of the cluster overlaps.
local function overlapped(problem, given)
  local said = given.overlap_tp_grad_allreduce ~= nil
  if said or not model.overlaps_tp_grad_allreduce(problem.cluster) then return given end
  return util.merged(given, { overlap_tp_grad_allreduce = true })
end

--- Returns the fields of a plan with a mesh, with 'selective' as the runtime of the cluster defines it.
local function mesh_fields(owner, problem, plan)
  local given = parallelism.fields(owner, plan, problem.graph, model.selective(problem.cluster))
  given.bucket_bytes = given.bucket_bytes or model.bucket_bytes(problem.cluster, given)
  return overlapped(problem, given)
end

--- Returns the engine's lower bounds of strategies, tables of checked fields, as they are evaluated; layers: see
--- MeshBounder (engine/simulator/mesh/mesh_bound.h).
function simulator.mesh_bounds(problem, strategies, layers)
  return problem.handle:mesh_bounds(util.map(strategies, function(given) return overlapped(problem, given) end), layers)
end

--- Returns the engine's profiles of the units of a strategy on a stage (from 1), as it is evaluated.
function simulator.mesh_units(problem, given, stage, layers)
  return problem.handle:mesh_units(overlapped(problem, given), stage, layers)
end

--- Returns the placement of a plan and its schedule fields (nil: the default). `name` is the name of the first argument
--- ('plan'), which is the plan or a list that has it as an entry. For a mesh, the placement is the first part's
--- of each operator.
function simulator.parts(owner, problem, plan, name, entry)
  plan = array.placement(owner, 1, name or 'plan', plan, problem.graph, entry)
  if array.is_int32(plan) then return plan, problem.default_schedule end
  if parallelism.is(plan) then
    local home = array.filled(problem.graph.operators, 1)
    call(owner, problem, 'home', mesh_fields(owner, problem, plan), home)
    return home
  end
  local given = type(plan) == 'table' and rawget(plan, 'placement')
  local placement = array.placement(owner, 'field', 'placement', given, problem.graph, entry)
  if not array.is_int32(placement) then refuse_plan(owner, name or 'plan', entry, plan) end
  if getmetatable(plan) == nil then util.refuse_unknown(owner .. ': plan', plan, plan_rules, 'field') end
  return placement, schedule_of(plan)
end

--- Raises an error if `plan` is no plan or has unknown fields.
function simulator.refuse_unknown(owner, problem, plan)
  if parallelism.is(plan) then parallelism.fields(owner, plan, problem.graph)
  else simulator.parts(owner, problem, plan) end
end

--- Returns the engine's argument for a plan that is lowered.
local function engine_strategy(owner, problem, plan)
  if parallelism.is(plan) then return mesh_fields(owner, problem, plan) end
  local placement, description = simulator.parts(owner, problem, plan)
  return { placement = placement, schedule = description,
    splits = splits.entries(owner, problem.graph, plan.splits) }
end

--- Returns the engine's argument for a plan. any: a schedule that contradicts the placement is no error.
local function item(owner, problem, plan, name, entry, any)
  local placement, description = simulator.parts(owner, problem, plan, name, entry)
  if not description then return placement end
  return { placement, call(owner, problem, 'schedule', placement, description, any) }
end

--- Lowers a plan with splits or a mesh. Returns a problem with the lowered graph, the plan for it, and facts about its
--- operators: origin, part, layers, pipeline, coordinates (engine/strategy/lower.h).
function simulator.lowered(owner, problem, plan)
  local low = call(owner, problem, 'lower', engine_strategy(owner, problem, plan))
  local inner = { graph = graphs.wrap(low.graph), cluster = problem.cluster, rules = problem.rules,
    handle = low.problem }
  return inner, { placement = array.int32_of(low.placement), schedule = low.schedule,
    micro_batches = low.micro_batches, tasks = low.tasks, stage = low.stage }, low
end

--- Returns empty metrics for a plan. The batch of the graph is one micro-batch of one replica.
local function empty_metrics(problem, plan)
  local said = type(plan) == 'table' and plan or problem.default_schedule or {}
  local replicas = parallelism.is(plan) and plan.mesh.data or 1
  return array.metrics(#problem.cluster.devices, problem.graph.batch_size * (said.micro_batches or 1) * replicas)
end

--- Simulates a plan. any (for searches): a plan that contradicts its schedule is simulated with fifo and counts as
--- infeasible, instead of an error. reject_above_s: see trinity.BatchOptions.
function simulator.run(owner, problem, plan, any, reject_above_s)
  local lowers = is_lowered(plan)
  local taken = lowers and engine_strategy(owner, problem, plan) or item(owner, problem, plan, 'plan', nil, any)
  local metrics = empty_metrics(problem, plan)
  if lowers then
    call(owner, problem, 'price', { taken }, { metrics }, reject_above_s, any)
  else
    problem.handle:evaluate({ taken }, { metrics }, reject_above_s, any)
  end
  return metrics
end

local batch_options = options_of.declare('trinity.BatchOptions', { help = 'How a list of plans is simulated.',
  { 'reject_above_s', 'number', least = 0, otherwise = 'none',
    help = 'step time in seconds above which the simulation of a plan stops early' },
})

function simulator.run_batch(owner, problem, plans, options, any)
  check.argument(owner, 1, 'plans', plans, 'table')
  if options ~= nil then batch_options:check(owner, check.argument(owner, 2, 'options', options, 'table')) end
  local reject_above_s = options and options.reject_above_s
  local metrics, placed, lowered = {}, { {}, {} }, { {}, {}, {} } -- arguments of the engine, metrics, entries
  for i = 1, #plans do
    local plan = plans[i]
    local own = is_lowered(plan) and lowered or placed
    if own == lowered then
      lowered[1][#lowered[1] + 1] = engine_strategy(('%s: entry %d'):format(owner, i), problem, plan)
      lowered[3][#lowered[3] + 1] = i
    else
      placed[1][#placed[1] + 1] = item(owner, problem, plan, 'plans', i, any)
    end
    metrics[i] = empty_metrics(problem, plan)
    own[2][#own[2] + 1] = metrics[i]
  end
  problem.handle:evaluate(placed[1], placed[2], reject_above_s, any)
  if #lowered[1] > 0 then
    call(owner, problem, 'price', lowered[1], lowered[2], reject_above_s, any, lowered[3])
  end
  return metrics
end

--- Returns the problem whose graph is simulated for a plan, and the engine's argument for it.
local function priced_in(owner, problem, plan)
  if not is_lowered(plan) then return problem, item(owner, problem, plan, 'plan') end
  local inner, there = simulator.lowered(owner, problem, plan)
  return inner, item(owner, inner, there, 'plan')
end

--- Returns the number of devices that are simulated for a plan.
function simulator.devices(owner, problem, plan)
  if not parallelism.is(plan) then
    item(owner, problem, plan, 'plan') -- raises an error if it is no plan
    return problem.cluster.device_count
  end
  return call(owner, problem, 'simulated_devices', mesh_fields(owner, problem, plan))
end

--- Returns the peaks of these devices by owner (trinity.PeakBytes) for a plan with a mesh and this number of
--- micro-batches (default: the plan's).
function simulator.owners(owner, problem, plan, devices, micro_batches)
  local given = util.merged(mesh_fields(owner, problem, plan), { micro_batches = micro_batches })
  return call(owner, problem, 'owners', given, devices)
end

function simulator.timeline(owner, problem, plan)
  local inner, priced = priced_in(owner, problem, plan)
  return timeline.new(inner.handle:timeline(priced), problem.cluster, empty_metrics(problem, plan))
end

--- Binds a graph to a cluster, from a checked description. Returns graph, cluster, rules, cost (unchanged) and its
--- coverage, default_schedule and the engine's handle.
function simulator.make(owner, spec)
  for _, name in ipairs { 'graph', 'cluster' } do check.object(owner, 'option', name, spec[name], name) end
  local coverage = spec.cost and {}
  local own = coverage and costs.of(owner, spec.cost, spec.graph, spec.cluster)
  local cost = own and costs.asked(owner, own, spec.graph, coverage)
  return { graph = spec.graph, cluster = spec.cluster, rules = spec.rules or 'standard', cost = spec.cost,
    cost_coverage = coverage, default_schedule = schedule_of(spec),
    handle = core.problem(spec.graph.handle, model.handle_for(spec.graph, spec.cluster), spec.rules, cost) }
end

return simulator
