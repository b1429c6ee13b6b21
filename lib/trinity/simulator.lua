-- trinity.simulator: a graph bound to a cluster under the simulator's rules. Prices strategies,
-- bounds them, and tells what happened when. The rules themselves: engine/simulator/simulator.h.

local core = require 'trinity.core'
local array = require 'trinity.array'
local check = require 'trinity.check'
local splits = require 'trinity.splits'
local timeline = require 'trinity.timeline'
local util = require 'trinity.util'

-- Functions here that take an `owner` are shared with trinity.problem: it is the function that
-- messages name.
local simulator = {}

---@class trinity.Simulator
---@field graph trinity.Graph
---@field cluster trinity.Cluster
---@field rules trinity.Rules|string
---@field default_schedule? trinity.PlanSpec how plain placements are scheduled
local Simulator = { __name = 'simulator' }
Simulator.__index = Simulator

function Simulator.__tostring(self)
  return ('simulator: %s on %s'):format(self.graph.name, self.cluster.name)
end

local schedule_fields = { 'schedule', 'micro_batches', 'priority', 'order', 'stage' }
local plan_rules = { placement = 'any', splits = 'any' }
for _, name in ipairs(schedule_fields) do plan_rules[name] = 'any' end

--- What of `plan` says how it is scheduled, or nil.
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

local plan_text = 'a placement (problem:placement()), a strategy or { placement = ... }'

local function refuse_plan(owner, name, entry, plan)
  local got = type(plan) == 'table' and plan.placement ~= nil and plan.placement or plan
  check.refuse(owner, 1, name, '%sexpected %s, got %s', entry and ('entry %d: '):format(entry) or '', plan_text,
    util.describe(got))
end

--- The placement of a plan, and what says how it is scheduled (nil: the default). `name` is the first
--- argument's, in which the plan is an entry or all.
local function parts(owner, self, plan, name, entry)
  if array.is_int32(plan) then return plan, self.default_schedule end
  if type(plan) ~= 'table' or not array.is_int32(plan.placement) then refuse_plan(owner, name, entry, plan) end
  if getmetatable(plan) == nil then util.refuse_unknown(owner .. ': plan', plan, plan_rules, 'field') end
  return plan.placement, schedule_of(plan)
end

--- What the engine takes for a plan. any: a schedule that the placement contradicts is no error.
local function item(owner, self, plan, name, entry, any)
  local placement, description = parts(owner, self, plan, name, entry)
  if not description then return placement end
  local ok, schedule = pcall(self.handle.schedule, self.handle, placement, description, any)
  if ok then return { placement, schedule } end
  local message, own = util.unplaced(tostring(schedule)):gsub('^problem:schedule: ', '')
  if own == 0 then error(schedule, 0) end
  util.fail('%s: %s', owner, message)
end

local function is_split(plan) return type(plan) == 'table' and plan.splits ~= nil end

--- The simulator of the graph that a plan with splits lowers to, and the plan there.
local function lowered(owner, self, plan)
  local placement, description = parts(owner, self, plan, 'plan')
  description = description or {}
  for _, name in ipairs { 'priority', 'order' } do
    if description[name] ~= nil then
      check.refuse(owner, 1, 'plan', "field '%s' numbers operators, which splits change: lower the graph first", name)
    end
  end
  local low = splits.apply(owner, self.graph, self.cluster, plan.splits, placement)
  local inner = simulator.make(owner,
    { graph = low.graph, cluster = self.cluster, rules = self.rules, cost = self.cost })
  return inner, { placement = low.placement, schedule = description.schedule, micro_batches = description.micro_batches,
    stage = description.stage and splits.stages(low, description.stage) }
end

function simulator.parts(owner, self, plan) return parts(owner, self, plan, 'plan') end

--- any: a plan that contradicts its schedule is priced first in, first out, and does not fit, where
--- otherwise it is an error; searches need that.
function simulator.run(owner, self, plan, any)
  if is_split(plan) then
    local inner, there = lowered(owner, self, plan)
    return simulator.run(owner, inner, there, any)
  end
  local metrics = array.metrics(#self.cluster.devices)
  self.handle:evaluate({ item(owner, self, plan, 'plan', nil, any) }, { metrics }, nil, any)
  return metrics
end

local batch_rules = { reject_above_s = { 'number', 0 } }

function simulator.run_batch(owner, self, plans, options, any)
  check.argument(owner, 1, 'plans', plans, 'table')
  options = check.options(owner, 2, 'options', options, batch_rules)
  local items, metrics, devices = {}, {}, #self.cluster.devices
  for i = 1, #plans do
    if is_split(plans[i]) then -- each has a graph of its own
      for k = 1, #plans do metrics[k] = simulator.run(owner, self, plans[k], any) end
      return metrics
    end
    items[i] = item(owner, self, plans[i], 'plans', i, any)
    metrics[i] = array.metrics(devices)
  end
  self.handle:evaluate(items, metrics, options.reject_above_s, any)
  return metrics
end

function simulator.timeline(owner, self, plan)
  if is_split(plan) then
    local inner, there = lowered(owner, self, plan)
    return simulator.timeline(owner, inner, there)
  end
  return timeline.new(self, self.handle:timeline(item(owner, self, plan, 'plan')))
end

local most_micro_batches = 2 ^ 30

function simulator.bounds(owner, self, micro_batches, schedule)
  if micro_batches ~= nil then check.integer(owner, 1, 'micro_batches', micro_batches, 1, most_micro_batches) end
  if schedule ~= nil then check.argument(owner, 2, 'schedule', schedule, 'string') end
  local default = self.default_schedule or {}
  return self.handle:bounds(micro_batches or default.micro_batches or 1, (schedule or default.schedule) == 'pipedream')
end

--- The placement of a plan and what says how it is scheduled (nil: the default).
---@param plan trinity.Plan
---@return trinity.Placement
---@return trinity.PlanSpec?
function Simulator:parts(plan)
  check.self('simulator:parts', self, 'simulator')
  return parts('simulator:parts', self, plan, 'plan')
end

--- Simulates one plan.
---@param plan trinity.Plan
---@return trinity.Metrics
function Simulator:run(plan)
  check.self('simulator:run', self, 'simulator')
  return simulator.run('simulator:run', self, plan)
end

--- Simulates a list of plans on all threads.
---@param plans trinity.Plan[]
---@param options? trinity.BatchOptions
---@return trinity.Metrics[]
function Simulator:run_batch(plans, options)
  check.self('simulator:run_batch', self, 'simulator')
  return simulator.run_batch('simulator:run_batch', self, plans, options)
end

--- Simulates one plan and keeps every operator, transfer and collective.
---@param plan trinity.Plan
---@return trinity.Timeline
function Simulator:timeline(plan)
  check.self('simulator:timeline', self, 'simulator')
  return simulator.timeline('simulator:timeline', self, plan)
end

--- What no strategy can beat (engine/simulator/bounds.h), by default for the micro-batches and the schedule that hold
--- for plain placements.
---@param micro_batches? integer
---@param schedule? trinity.ScheduleName 'pipedream': mini-batches overlap, and work alone binds them
---@return trinity.Bounds
function Simulator:bounds(micro_batches, schedule)
  check.self('simulator:bounds', self, 'simulator')
  return simulator.bounds('simulator:bounds', self, micro_batches, schedule)
end

function Simulator:close() check.closing('simulator:close', self, 'simulator').handle:close() end

--- What trinity.simulator takes; trinity.problem adds to it.
simulator.rules = { graph = { 'object', 'graph' }, cluster = { 'object', 'cluster' }, rules = 'any', cost = 'function',
  schedule = 'string', micro_batches = { 'integer', 1, most_micro_batches } }

--- A cost function for the engine, which numbers operators, from one of a script.
local function checked_cost(owner, cost, graph)
  return function(i, device, default_s)
    local op = graph:operator(i)
    local time_s = cost(op, device, default_s)
    if time_s ~= nil and (type(time_s) ~= 'number' or not (time_s >= 0 and time_s < 1e6)) then
      util.fail("%s: the cost function at %s returned %s for the cost of operator '%s' on device '%s', expected "
        .. '0 or more seconds or nil%s', owner, util.function_place(cost), util.describe(time_s), op.name, device.name,
        type(time_s) == 'number' and time_s >= 1e6 and ', below 1e6' or '')
    end
    return time_s
  end
end

--- A simulator from a checked description.
function simulator.make(owner, spec)
  for _, name in ipairs { 'graph', 'cluster' } do check.object(owner, 'option', name, spec[name], name) end
  if spec.rules ~= nil and type(spec.rules) ~= 'table' and type(spec.rules) ~= 'string' then
    check.wrong(owner, 'option', 'rules', spec.rules, "'standard', 'compat' or a table")
  end
  local cost = spec.cost and checked_cost(owner, spec.cost, spec.graph)
  return setmetatable({ graph = spec.graph, cluster = spec.cluster, rules = spec.rules or 'standard',
    default_schedule = schedule_of(spec), cost = spec.cost,
    handle = core.problem(spec.graph.handle, spec.cluster.handle, spec.rules, cost) }, Simulator)
end

--- Prices plans without a reward.
---@param spec trinity.SimulatorSpec
---@return trinity.Simulator
function simulator.new(spec)
  check.argument('trinity.simulator', 1, 'spec', spec, 'table')
  return simulator.make('trinity.simulator', check.fields('trinity.simulator', spec, simulator.rules))
end

return simulator
