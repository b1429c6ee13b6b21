-- trinity.problem: a graph, a cluster and a reward. Prices placements, makes strategies.

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
local printed = require 'trinity.base.printed'
local parallelism = require 'trinity.strategy.parallelism'
local replication_fields = require 'trinity.strategy.replication'
local rewards = require 'trinity.strategy.rewards'
local simulator = require 'trinity.strategy.simulator'
local splits = require 'trinity.strategy.splits'
local strategy = require 'trinity.strategy.strategy'
local util = require 'trinity.base.util'


---@class trinity.Problem
---@since 0.1.0
---@field graph trinity.Graph
---@field cluster trinity.Cluster
---@field reward trinity.Reward
---@field on_evaluated? fun(metrics: trinity.Metrics, strategy: trinity.Strategy) see ProblemSpec
---@field rules trinity.Rules|string
---@field default_schedule? trinity.PlanSpec how plain placements are scheduled
---@field cost_coverage? table<string, table> of a cost model of one's own, by device type: operators, covered, by_model
local Problem = { __name = 'problem' }
Problem.__index = Problem

function Problem.__tostring(self)
  return ('problem: %s on %s'):format(self.graph.name, self.cluster.name)
end

local most_micro_batches = 2 ^ 30

local declared = options_of.declare('trinity.ProblemSpec', { help = 'What trinity.problem takes.',
  { 'graph', 'object', class = 'graph', needed = true, help = 'a training step or another graph' },
  { 'cluster', 'object', class = 'cluster', otherwise = 'of the devices of `profile`', help = 'where it runs' },
  { 'reward', 'function', as = 'trinity.Reward', otherwise = 'minus the step time', help = 'is maximised' },
  { 'cost', 'any', as = 'trinity.CostFunction|trinity.CostRow[]|string',
    help = "seconds of operators instead of the cost model's, by their share also of parts that plans make of them: a "
      .. 'function (nil: the cost model holds), rows, or a CSV file with their fields as columns' },
  { 'on_evaluated', 'function', as = 'fun(metrics: trinity.Metrics, strategy: trinity.Strategy)',
    help = 'called with every strategy that is scored, which has its reward then and may be kept' },
  { 'rules', 'any', as = 'trinity.RulesName|trinity.Rules', otherwise = "'standard'",
    help = "'compat', 'placeto', 'doppler': published simulators; a table: deviations from the cluster's rules" },
  { 'schedule', 'string', as = 'trinity.ScheduleName', otherwise = "'fifo'", help = 'of plain placements' },
  { 'micro_batches', 'integer', least = 1, most = most_micro_batches, otherwise = '1', help = 'of plain placements' },
  { 'profile', 'any', as = 'trinity.Profile|string',
    help = 'of the graph, or its file: measured times, and devices where no cluster is given' },
})

local problems = {}

local function make(owner, spec)
  declared:check(owner, check.argument(owner, 1, 'spec', spec, 'table'))
  if spec.profile ~= nil or model.profile_of(spec.cluster) then
    if spec.cost ~= nil and type(spec.cost) ~= 'function' and spec.graph and spec.cluster then
      spec = util.merged(spec, { cost = costs.of(owner, spec.cost, spec.graph, spec.cluster) })
    end
    spec = require('trinity.profile.object').apply(owner, spec)
  end
  local self = setmetatable(simulator.make(owner, spec), Problem)
  self.reward, self.on_evaluated = spec.reward or rewards.step_time(), spec.on_evaluated
  return self
end

-- Rules of published simulators.
local published = { compat = true, placeto = true, doppler = true }

--- What methods work on: a graph, a cluster and a reward. Refuses a graph that no placement can fit, except under rules
--- of published simulators, which know no limit of memory.
---@param spec trinity.ProblemSpec
---@return trinity.Problem
function problems.new(spec)
  local self = make('trinity.problem', spec)
  if published[spec.rules] then return self end
  local fits, why = pcall(self.handle.check_memory, self.handle)
  if not fits then util.fail('%s', (util.unplaced(tostring(why)):gsub('^problem:check_memory', 'trinity.problem'))) end
  return self
end

--- The same for any graph, whether or not a placement can fit.
---@param spec trinity.ProblemSpec
---@return trinity.Problem
function problems.simulator(spec) return make('trinity.simulator', spec) end

--- A placement to fill: the device (1-based) of every operator, an int32 array, all on device 1.
---@return trinity.Placement
function Problem:placement() return array.filled(self.graph.operators, 1) end

local function refuse_device(choose, unit, value, devices)
  util.fail('problem:placement_by_unit: the function at %s returned %s for unit %d, expected a device from 1 to %d',
    util.function_place(choose), util.describe(value), unit, devices)
end

--- A placement from a device per colocation unit, `choose(unit, first_operator)`, in order.
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

local most_entries = 2 ^ 28 -- of a list of placements: a gibibyte

--- A list of `count` placements to fill.
---@param count integer
---@return trinity.Placement[]
function Problem:placements(count)
  local most = math.min(1e6, math.floor(most_entries / self.graph.operators))
  check.integer('problem:placements', 1, 'count', count, 0, most)
  local list = {}
  for i = 1, count do list[i] = self:placement() end
  return list
end

--- Prices one plan.
---@param plan trinity.Plan
---@return trinity.Metrics
function Problem:evaluate(plan) return simulator.run('problem:evaluate', self, plan) end

--- Prices a list of plans on all threads.
---@param plans trinity.Plan[]
---@param options? trinity.BatchOptions
---@return trinity.Metrics[]
function Problem:evaluate_batch(plans, options)
  return simulator.run_batch('problem:evaluate_batch', self, plans, options)
end

--- How many devices are simulated when a plan is priced: of one with a mesh each of the others behaves as one of these
--- does (`trinity help symmetry`), of any other all are.
---@param plan trinity.Plan
---@return integer
function Problem:simulated_devices(plan) return simulator.devices('problem:simulated_devices', self, plan) end

--- What happened when in a step.
---@param plan trinity.Plan
---@return trinity.Timeline
function Problem:timeline(plan) return simulator.timeline('problem:timeline', self, plan) end

--- Draws moves of placements as annealing does, with the features that a ranker sees.
---@param options? trinity.MovesOptions
---@return trinity.Moves
function Problem:moves(options) return hooks.moves.new(self, options) end

--- What the step of a placement looks like to somebody who wants to shorten it, as arrays: blame, slack, collisions,
--- room. Simulates it once, first in, first out, as one micro-batch.
---@param placement trinity.Placement
---@return trinity.StepState
function Problem:step_state(placement) return hooks.moves.state(self, placement) end

--- What a cost model of one's own covers and what not, in words; nil without one.
---@return string?
function Problem:cost_text() return costs.text(self) end

--- Seconds of every operator on a device.
---@param device integer
---@return trinity.DoubleArray
function Problem:operator_times(device) return hooks.moves.operator_times(self, device) end

--- The operators as tasks with their costs and the data between them, as lists: what a list scheduler works on.
--- lib/trinity/methods/heft.lua is a short example.
---@return trinity.TaskGraph
function Problem:task_graph() return hooks.moves.task_graph(self) end

local bounds = printed.as('bounds', { 'step_time_s', 'critical_path_s', 'work_s', 'interval_s', 'peak_memory_bytes' })

--- What no strategy can beat, by default with the problem's number of micro-batches and schedule.
---@param micro_batches? integer
---@param schedule? trinity.ScheduleName 'pipedream': mini-batches overlap, and work alone binds them
---@return trinity.Bounds
function Problem:bounds(micro_batches, schedule)
  if micro_batches ~= nil then
    check.integer('problem:bounds', 1, 'micro_batches', micro_batches, 1, most_micro_batches)
  end
  if schedule ~= nil then check.argument('problem:bounds', 2, 'schedule', schedule, 'string') end
  local default = self.default_schedule or {}
  return bounds(self.handle:bounds(micro_batches or default.micro_batches or 1,
    (schedule or default.schedule) == 'pipedream'))
end

local function refuse_reward(reward, value, expected)
  local text = type(value) == 'number' and tostring(value) or util.describe(value)
  if value ~= value then text = 'NaN' end
  error(('%s: the reward function returned %s, expected %s'):format(util.function_place(reward), text, expected), 0)
end

-- How many arguments a reward has, by the function: 1, 2, or 1.5 where it has '...'.
local arities = setmetatable({}, { __mode = 'k' })

local function arity_of(reward)
  local arity = arities[reward]
  if arity then return arity end
  local info = debug.getinfo(reward, 'Su')
  arity = info.nparams > 1 and 2 or info.isvararg and info.what ~= 'C' and 1.5 or 1
  arities[reward] = arity
  return arity
end

--- The reward of metrics; refuses anything but a finite number, naming the function's line. A reward of two arguments,
--- and the problem's on_evaluated, need the plan that was priced. again: on_evaluated has seen it before.
---@param metrics trinity.Metrics
---@param plan? trinity.Plan
---@param again? boolean
---@return number
function Problem:score(metrics, plan, again)
  if not array.is_metrics(metrics) then check.wrong('problem:score', 1, 'metrics', metrics, 'metrics') end
  if plan ~= nil and not array.is_int32(plan) and type(plan) ~= 'table' then
    check.wrong('problem:score', 2, 'plan', plan, 'a placement, a strategy or { placement = ... }')
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

--- Prices a plan and makes a strategy of it; `about` may hold method, seed, evaluations, seconds, curve.
---@param plan trinity.Plan
---@param about? table<string, any>
---@return trinity.Strategy
function Problem:strategy(plan, about)
  if about ~= nil then check.argument('problem:strategy', 2, 'about', about, 'table') end
  return strategy.new('problem:strategy', self, plan, about)
end

--- Loads a strategy that strategy:save() wrote, schedule included, and simulates it. It is refused if it was made for
--- another graph, micro-batch, cluster, rules or costs, or if this program simulates another step.
---@param path string
---@param options? trinity.LoadOptions
---@return trinity.Strategy
function Problem:load(path, options)
  return strategy.load(self, check.path('problem:load', 1, 'path', path), options)
end

--- A plan (placement and schedule) as JSON text; `notes` are its further facts by name.
---@param plan trinity.Plan
---@param notes table<string, string|number>
---@param made_for? table what it is made for (default: this problem)
---@return string
function Problem:to_json(plan, notes, made_for)
  local placement, schedule = simulator.parts('problem:to_json', self, plan)
  local parts = type(plan) == 'table' and plan or {}
  return self.handle:to_json(placement, check.argument('problem:to_json', 2, 'notes', notes, 'table'), schedule,
    parallelism.is(plan) and parallelism.fields('problem:to_json', plan, self.graph) or nil,
    parts.splits and splits.entries('problem:to_json', self.graph, parts.splits) or nil,
    parts.replication and replication_fields(parts.replication) or nil,
    made_for and check.argument('problem:to_json', 3, 'made_for', made_for, 'table') or made_fors.of(self, plan))
end

--- The graph with the devices of a plan as colours, in Graphviz's DOT language.
---@param plan trinity.Plan
---@param options? trinity.DotOptions
---@return string
function Problem:to_dot(plan, options)
  local placement = simulator.parts('problem:to_dot', self, plan)
  options = graph_options.dot:read('problem:to_dot', 2, 'options', options)
  return core.graph_to_dot(self.graph.handle, options.units, self.handle, placement)
end

--- A plan as a file for PyTorch: device of every forward operator and module, and the stages of a pipeline, as JSON
--- text (engine/formats/export/placement_export.h).
---@param plan trinity.Plan
---@param device_names? string[] 'cuda:0', ... (default the cluster's)
---@return string
function Problem:placement_json(plan, device_names)
  local placement, schedule = simulator.parts('problem:placement_json', self, plan)
  if device_names ~= nil then check.list('problem:placement_json', 2, 'device_names', device_names, 'string') end
  return core.placement_to_json(self.handle, placement, schedule, device_names)
end

--- Frees the engine's memory; any further use is an error.
function Problem:close() check.closing('problem:close', self, 'problem').handle:close() end

check.methods(Problem, 'trinity.Problem', 'cost')

local function check_result(place, name, result)
  if type(result) ~= 'table' or not array.is_metrics(result.metrics) or type(result.reward) ~= 'number' then
    check.wrong('problem.better', place, name, result, 'a strategy or { metrics =, reward = }')
  end
end

--- Whether strategy or result `a` is better than `b`: one that fits before one that does not; of two that do not fit
--- the one with the smaller excess of memory; then the larger reward.
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
