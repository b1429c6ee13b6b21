-- trinity.problem: a graph, a cluster and a reward. Simulates placements and makes strategies.

local core = require 'trinity.core'
local array = require 'trinity.base.array'
local check = require 'trinity.base.check'
local costs = require 'trinity.strategy.costs'
local fields = require 'trinity.base.fields'
local graph_options = require 'trinity.graph.options'
local made_fors = require 'trinity.strategy.made_for'
local model = require 'trinity.graph.model'
local options_of = require 'trinity.base.options'
local infeasibility = require 'trinity.strategy.infeasibility'
local hooks = require 'trinity.base.hooks'
local parallelism = require 'trinity.strategy.parallelism'
local rewards = require 'trinity.strategy.rewards'
local simulator = require 'trinity.strategy.simulator'
local splits = require 'trinity.strategy.splits'
local strategy = require 'trinity.strategy.strategy'
local util = require 'trinity.base.util'


---@class trinity.Problem
---@field graph trinity.Graph
---@field cluster trinity.Cluster
---@field reward trinity.Reward
---@field on_evaluated? fun(metrics: trinity.Metrics, strategy: trinity.Strategy) see ProblemSpec
---@field rules trinity.Rules|string
---@field default_schedule? trinity.PlanSpec schedule of plain placements
---@field cost_coverage? table<string, table> with custom costs, by device type: operators, covered, by_model
local Problem = { __name = 'problem' }
Problem.__index = Problem

function Problem.__tostring(self)
  return ('problem: %s on %s'):format(self.graph.name, self.cluster.name)
end

local most_micro_batches = 2 ^ 30

local declared = options_of.declare('trinity.ProblemSpec', { help = 'What trinity.problem takes.',
  { 'graph', 'object', class = 'graph', needed = true, help = 'training step or another graph' },
  { 'cluster', 'object', class = 'cluster', otherwise = 'the devices of `profile`', help = 'devices and network' },
  { 'reward', 'function', as = 'trinity.Reward', otherwise = 'minus the step time',
    help = 'function of metrics to maximize' },
  { 'cost', 'any', as = 'trinity.CostFunction|trinity.CostRow[]|string',
    help = 'custom operator times in seconds, which also apply in proportion to parts of split operators: a function '
      .. '(nil: use the cost model), rows, or a CSV file with the fields of rows as columns' },
  { 'on_evaluated', 'function', as = 'fun(metrics: trinity.Metrics, strategy: trinity.Strategy)',
    help = 'called with every scored strategy, which has its reward and may be kept' },
  { 'rules', 'any', as = 'trinity.RulesName|trinity.Rules', otherwise = "'standard'",
    help = "'standard', 'compat', 'placeto' or 'doppler' (published simulators), or a table of deviations from the "
      .. "cluster's rules" },
  { 'schedule', 'string', as = 'trinity.ScheduleName', otherwise = "'fifo'", help = 'schedule of plain placements' },
  { 'micro_batches', 'integer', least = 1, most = most_micro_batches, otherwise = '1',
    help = 'micro-batches of plain placements' },
  { 'check_memory', 'boolean', true, help = 'raise an error if no placement can fit into memory' },
  { 'profile', 'any', as = 'trinity.Profile|string',
    help = 'profile of the graph, or its file: measured times, and the devices if no cluster is given' },
})

local problems = {}

-- Rules of published simulators.
local published = { compat = true, placeto = true, doppler = true }

--- Makes a problem: a graph, a cluster and a reward. Raises an error if no placement can fit into memory, except with
--- rules of published simulators, which have no memory limit. Example: `trinity.problem { graph = trinity.model
--- 'alexnet', cluster = trinity.cluster 'p100x2' }`
---@param spec trinity.ProblemSpec
---@return trinity.Problem
function problems.new(spec)
  local owner = 'trinity.problem'
  declared:check(owner, check.argument(owner, 1, 'spec', spec, 'table'))
  if spec.profile ~= nil or model.profile_of(spec.cluster) then
    if spec.cost ~= nil and type(spec.cost) ~= 'function' and spec.graph and spec.cluster then
      spec = util.merged(spec, { cost = costs.of(owner, spec.cost, spec.graph, spec.cluster) })
    end
    spec = require('trinity.profile.object').apply(owner, spec)
  end
  local self = setmetatable(simulator.make(owner, spec), Problem)
  self.reward, self.on_evaluated = spec.reward or rewards.step_time(), spec.on_evaluated
  if spec.check_memory == false or published[spec.rules] then return self end
  local fits, why = pcall(self.handle.check_memory, self.handle)
  if not fits then
    util.fail('%s; use check_memory = false for strategies that keep states on the host',
      (util.unplaced(tostring(why)):gsub('^problem:check_memory', owner)))
  end
  return self
end

-- Makes a problem for any graph, even if no placement can fit.
function problems.simulator(spec) return problems.new(util.merged(spec, { check_memory = false })) end

--- Returns a new placement: an int32 array with the device (from 1) of every operator, all 1. Example: `local p =
--- problem:placement(); p[1] = 2`
---@return trinity.Placement
function Problem:placement() return array.filled(self.graph.operators, 1) end

local function refuse_device(choose, unit, value, devices)
  util.fail('problem:placement_by_unit: the function at %s returned %s for unit %d, expected a device from 1 to %d',
    util.function_place(choose), util.describe(value), unit, devices)
end

--- Returns a placement that puts every colocation unit on device `choose(unit, first_operator)`; units are asked in
--- order. Raises an error if the function does not return a device from 1 to the number of devices. Example:
--- `problem:placement_by_unit(function(unit) return unit % 2 + 1 end)`
---@param choose fun(unit: integer, operator: integer): integer
---@return trinity.Placement
function Problem:placement_by_unit(choose)
  check.argument('problem:placement_by_unit', 1, 'choose', choose, 'function')
  local placement, unit_of, device, devices = self:placement(), self.graph.unit_of, {}, #self.cluster.devices
  for op = 1, #placement do
    local unit = unit_of[op]
    if not device[unit] then
      local chosen = choose(unit, op)
      if type(chosen) ~= 'number' or not (chosen >= 1 and chosen <= devices and chosen % 1 == 0) then
        refuse_device(choose, unit, chosen, devices)
      end
      device[unit] = chosen
    end
    placement[op] = device[unit]
  end
  return placement
end

local most_entries = 2 ^ 28 -- maximum size of a list of placements: 1 GiB

--- Returns `count` new placements, all operators on device 1. Example: `problem:placements(16)`
---@param count integer
---@return trinity.Placement[]
function Problem:placements(count)
  local most = math.min(1e6, math.floor(most_entries / self.graph.operators))
  check.integer('problem:placements', 1, 'count', count, 0, most)
  return util.listed(count, function() return self:placement() end)
end

--- Simulates one training step of a plan. Returns metrics in seconds and bytes. Raises an error if the plan does not
--- match the graph, or if its schedule contradicts its placement. Exceeding device memory is no error:
--- `metrics.feasible` is then false. Example: `problem:evaluate { placement = p, schedule = '1f1b', micro_batches = 8
--- }`
---@param plan trinity.Plan
---@return trinity.Metrics
function Problem:evaluate(plan) return simulator.run('problem:evaluate', self, plan) end

--- Simulates a list of plans on all threads. Returns their metrics in order; errors are as of problem:evaluate.
--- Example: `problem:evaluate_batch({ p, q }, { reject_above_s = 0.5 })`
---@param plans trinity.Plan[]
---@param options? trinity.BatchOptions
---@return trinity.Metrics[]
function Problem:evaluate_batch(plans, options)
  return simulator.run_batch('problem:evaluate_batch', self, plans, options)
end

--- Returns the number of devices that are simulated for a plan. With a mesh, every other device behaves like one of
--- these (`trinity help symmetry`); without one, all devices are simulated. Example: `problem:simulated_devices { mesh
--- = { data = 2 } }`
---@param plan trinity.Plan
---@return integer
function Problem:simulated_devices(plan) return simulator.devices('problem:simulated_devices', self, plan) end

--- Simulates one step of a plan and returns its timeline. Raises the errors of problem:evaluate. Example:
--- `problem:timeline(p):save 'step.json'`
---@param plan trinity.Plan
---@return trinity.Timeline
function Problem:timeline(plan) return simulator.timeline('problem:timeline', self, plan) end

--- Returns a sampler of placement moves as in annealing, with the features of a move ranker. Example: `problem:moves {
--- seed = 1 }`
---@param options? trinity.MovesOptions
---@return trinity.Moves
function Problem:moves(options) return hooks.moves.new(self, options) end

--- Simulates a placement once (fifo, one micro-batch) and returns arrays that show how to shorten the step:
--- critical-path time per unit, slack, contention. Example: `problem:step_state(problem:placement())`
---@param placement trinity.Placement
---@return trinity.StepState
function Problem:step_state(placement) return hooks.moves.state(self, placement) end

--- Returns a text on the operators that custom costs (option `cost`) cover, or nil without custom costs. Example:
--- `print(problem:cost_text())`
---@return string?
function Problem:cost_text() return costs.text(self) end

--- Returns the seconds of every operator on a device (from 1). Example: `problem:operator_times(1)`
---@param device integer
---@return trinity.DoubleArray
function Problem:operator_times(device) return hooks.moves.operator_times(self, device) end

--- The operators as tasks with their costs and the data between them, as lists: what a list scheduler works on.
--- trinity.TaskGraph has its fields (trinity help trinity.TaskGraph); lib/trinity/methods/heft.lua is a short example.
--- Example: `problem:task_graph().task_count`
---@return trinity.TaskGraph
function Problem:task_graph() return hooks.moves.task_graph(self) end

--- Returns lower bounds of step time (seconds) and peak memory (bytes) over all placements of this graph, by default
--- with the problem's number of micro-batches and schedule; a step of a mesh may be shorter. Example:
--- `problem:bounds(4).step_time_s`
---@param micro_batches? integer
---@param schedule? trinity.ScheduleName with 'pipedream', mini-batches overlap, and only the total work bounds them
---@return trinity.Bounds
function Problem:bounds(micro_batches, schedule)
  if micro_batches ~= nil then
    check.integer('problem:bounds', 1, 'micro_batches', micro_batches, 1, most_micro_batches)
  end
  if schedule ~= nil then check.argument('problem:bounds', 2, 'schedule', schedule, 'string') end
  local default = self.default_schedule or {}
  return self.handle:bounds(micro_batches or default.micro_batches or 1,
    (schedule or default.schedule) == 'pipedream')
end

local function refuse_reward(reward, value, expected)
  local text = type(value) == 'number' and tostring(value) or util.describe(value)
  if value ~= value then text = 'NaN' end
  error(('%s: the reward function returned %s, expected %s'):format(util.function_place(reward), text, expected), 0)
end

-- Number of arguments of a reward, by function: 1, 2, or 1.5 if it has '...'.
local arities = setmetatable({}, { __mode = 'k' })

local function arity_of(reward)
  local arity = arities[reward]
  if arity then return arity end
  local info = debug.getinfo(reward, 'Su')
  arity = info.nparams > 1 and 2 or info.isvararg and info.what ~= 'C' and 1.5 or 1
  arities[reward] = arity
  return arity
end

--- Returns the reward of metrics. Raises an error that names the reward function's line if the result is not a finite
--- number. A reward of two arguments and the problem's on_evaluated need the simulated plan. again: on_evaluated is not
--- called, because it has seen the plan. Example: `problem:score(problem:evaluate(p), p)`
---@param metrics trinity.Metrics
---@param plan? trinity.Plan
---@param again? boolean
---@return number
function Problem:score(metrics, plan, again)
  if not array.is_metrics(metrics) then check.wrong('problem:score', 1, 'metrics', metrics, 'metrics') end
  if plan ~= nil and not array.is_int32(plan) and type(plan) ~= 'table' then
    check.wrong('problem:score', 2, 'plan', plan, 'a placement, a strategy, { placement = ... } or { mesh = ... }')
  end
  if again ~= nil then check.argument('problem:score', 3, 'again', again, 'boolean') end
  local arity, tell, seen = arity_of(self.reward), self.on_evaluated and not again, nil
  if plan ~= nil and (tell or arity > 1) then
    seen = strategy.unrewarded('problem:score', self, plan, metrics)
  elseif tell or arity == 2 then
    check.refuse('problem:score', 2, 'plan', 'expected the plan of these metrics, which %s takes, got nil',
      tell and 'on_evaluated' or 'the reward at ' .. util.function_place(self.reward))
  elseif type(plan) == 'table' and getmetatable(plan) == nil then
    simulator.refuse_unknown('problem:score', self, plan)
  end
  local value = self.reward(metrics, seen)
  if type(value) ~= 'number' then refuse_reward(self.reward, value, 'a number') end
  if not (value > -math.huge and value < math.huge) then refuse_reward(self.reward, value, 'a finite number') end
  if tell then
    seen.reward = value
    self.on_evaluated(metrics, seen)
  end
  return value
end

--- Simulates a plan and returns it as a strategy with metrics and reward; `about` may have method, seed, evaluations,
--- seconds and curve. Raises the errors of problem:evaluate. Example: `problem:strategy { mesh = { data = 2 },
--- micro_batches = 4 }`
---@param plan trinity.Plan
---@param about? table<string, any>
---@return trinity.Strategy
function Problem:strategy(plan, about)
  if about ~= nil then check.argument('problem:strategy', 2, 'about', about, 'table') end
  return strategy.new('problem:strategy', self, plan, about)
end

--- Loads a strategy that strategy:save() wrote, with its schedule, and simulates it. Raises an error if it was made for
--- another graph, micro-batch, cluster, rules or costs, or if this version predicts another step time. Example:
--- `problem:load 'strategy.json'`
---@param path string
---@param options? trinity.LoadOptions
---@return trinity.Strategy
function Problem:load(path, options)
  return strategy.load(self, check.path('problem:load', 1, 'path', path), options)
end

--- Returns a plan (placement and schedule) as JSON text; `notes` are additional facts by name. Example:
--- `problem:to_json(p, { method = 'by hand' })`
---@param plan trinity.Plan
---@param notes table<string, string|number>
---@param made_for? table the problem that it is made for (default: this one)
---@return string
function Problem:to_json(plan, notes, made_for)
  local placement, schedule = simulator.parts('problem:to_json', self, plan)
  local parts = type(plan) == 'table' and plan or {}
  return self.handle:to_json(placement, check.argument('problem:to_json', 2, 'notes', notes, 'table'), schedule,
    parallelism.is(plan) and parallelism.fields('problem:to_json', plan, self.graph) or nil,
    parts.splits and splits.entries('problem:to_json', self.graph, parts.splits) or nil,
    made_for and check.argument('problem:to_json', 3, 'made_for', made_for, 'table') or made_fors.of(self, plan))
end

--- Returns the graph in Graphviz's DOT language, coloured by device. Example: `problem:to_dot(p, { units = true })`
---@param plan trinity.Plan
---@param options? trinity.DotOptions
---@return string
function Problem:to_dot(plan, options)
  local placement = simulator.parts('problem:to_dot', self, plan)
  options = graph_options.dot:read('problem:to_dot', 2, 'options', options)
  return core.graph_to_dot(self.graph.handle, options.units, self.handle, placement)
end

--- Returns a plan as JSON text for PyTorch: the device of every forward operator and module, and the pipeline stages
--- (engine/formats/export/placement_export.h). Example: `problem:placement_json(p, { 'cuda:0', 'cuda:1' })`
---@param plan trinity.Plan
---@param device_names? string[] names of devices: 'cuda:0', ... (default: those of the cluster)
---@return string
function Problem:placement_json(plan, device_names)
  local placement, schedule = simulator.parts('problem:placement_json', self, plan)
  if device_names ~= nil then check.list('problem:placement_json', 2, 'device_names', device_names, 'string') end
  return core.placement_to_json(self.handle, placement, schedule, device_names)
end

--- Frees the engine's memory. Any later use of the problem is an error. Example: `problem:close()`
function Problem:close() check.closing('problem:close', self, 'problem').handle:close() end

check.methods(Problem, 'trinity.Problem', 'cost')

local function check_result(place, name, result)
  if type(result) ~= 'table' or not array.is_metrics(result.metrics) or type(result.reward) ~= 'number' then
    check.wrong('problem.better', place, name, result, 'a strategy or { metrics =, reward = }')
  end
end

--- Returns whether strategy or result `a` is better than `b` (nil: always). A strategy that fits is better than one
--- that does not; if neither fits, the one with less excess memory is better; otherwise the larger reward. Example:
--- `problem.better(found, best)`
---@param a trinity.Strategy|{ metrics: trinity.Metrics, reward: number }
---@param b? trinity.Strategy|{ metrics: trinity.Metrics, reward: number }
---@return boolean
function Problem.better(a, b)
  check_result(1, 'a', a)
  if b ~= nil then check_result(2, 'b', b) end
  return infeasibility.better(a, b)
end

Problem.better = fields.limited('problem.better', Problem.better)

return problems
