-- Lowers a plan for execution: its graph, placement and order.

local array = require 'trinity.base.array'
local check = require 'trinity.base.check'
local core = require 'trinity.core'
local graphs = require 'trinity.graph'
local simulator = require 'trinity.strategy.simulator'
local strategies = require 'trinity.strategy.strategy'
local util = require 'trinity.base.util'

-- Schedules in which every micro-batch has its own update.
local streams = { pipedream = true, ['round-robin'] = true }

--- Returns the micro-batches of a plan and the simulated end of every task. A collective counts as ended when its
--- inputs have arrived, so that a worker first runs operators that are ready earlier. rounds: number of rounds of an
--- asynchronous pipeline.
local function simulated_order(problem, plan, rounds)
  local timeline = simulator.timeline('execute', problem, plan)
  local micro_batches = rounds or timeline.micro_batches
  local tasks = timeline.tasks / timeline.micro_batches * micro_batches
  local order = array.double(tasks)
  for task = 1, tasks do
    local end_s = timeline.end_s[task]
    order[task] = end_s == end_s and end_s or 0 -- NaN: updates of earlier micro-batches, which are not executed
  end
  timeline:close()
  return order, micro_batches
end

--- Returns the problem with a graph whose operators have attributes of their meaning; lowered graphs then have them,
--- too.
local function stated(problem)
  return simulator.make('execute', { graph = graphs.wrap(core.state_meaning(problem.graph.handle)),
    cluster = problem.cluster, rules = problem.rules, cost = problem.cost })
end

--- Returns the placement of a plan, or raises an error if it cannot be executed.
local function placement_of(problem, plan)
  plan = array.placement('execute', 2, 'plan', plan, problem.graph)
  local is_plan = strategies.is(plan) or array.is_int32(plan)
    or type(plan) == 'table' and rawget(plan, 'placement') ~= nil
  if not is_plan then check.wrong('execute', 2, 'plan', plan, 'a placement or a strategy') end
  local placement, schedule = simulator.parts('execute', problem, plan)
  return placement, schedule and schedule.schedule == 'pipedream'
end

--- Returns the executed form of a plan: graph, placement, order of tasks, micro_batches, and stream: whether every
--- micro-batch has its own update.
return function(problem, plan)
  local what = {}
  for _, name in ipairs { 'optimizer_offload_fraction', 'activation_offload_fraction' } do
    if type(plan) == 'table' and (tonumber(rawget(plan, name)) or 0) > 0 then
      util.fail('execute: %s can be simulated but not executed', name)
    end
  end
  if type(plan) == 'table' and (rawget(plan, 'mesh') or next(rawget(plan, 'splits') or {}) ~= nil) then
    local own = stated(problem)
    local inner, there = simulator.lowered('execute', own, plan)
    what.graph, what.placement, what.stream = inner.graph, there.placement, streams[there.schedule] or false
    what.order, what.micro_batches = simulated_order(own, plan, there.schedule == 'round-robin' and there.micro_batches)
  else
    what.graph, what.placement, what.stream = problem.graph, placement_of(problem, plan)
    what.order, what.micro_batches = simulated_order(problem, plan)
  end
  return what
end
