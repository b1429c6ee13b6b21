-- trinity.execute: runs training steps of a strategy for real on LibTorch devices (engine/execute/executor.h),
-- operators in the order in which the simulator starts them, and measures them.

local array = require 'trinity.array'
local check = require 'trinity.check'
local core = require 'trinity.core'
local strategies = require 'trinity.strategy'

local rules = { steps = { 'integer', 1 }, warm_up = { 'integer', 0 }, seed = { 'integer', 0 },
  learning_rate = { 'number', 0 } }

local function median(list)
  table.sort(list)
  return (list[math.floor((#list + 1) / 2)] + list[math.ceil((#list + 1) / 2)]) / 2
end

--- The simulated start of every operator. A plan of several micro-batches has another graph to run.
local function simulated_order(problem, plan)
  local timeline = problem:timeline(plan)
  if timeline.micro_batches ~= 1 then
    check.refuse('execute', 2, 'plan', 'expected a plan of one micro-batch, got one of %d', timeline.micro_batches)
  end
  local order = array.double(problem.graph.operators)
  for op = 1, problem.graph.operators do order[op] = timeline.start_s[op] end
  timeline:close()
  return order
end

--- Executes `plan` (a placement or a strategy) of a problem, device i as worker i: a thread on the processor. Options
--- and result: lib/trinity/_meta/execute.lua.
return function(problem, plan, options)
  check.object('execute', 1, 'problem', problem, 'problem')
  local placement = strategies.is(plan) and plan.placement or plan
  if not array.is_int32(placement) then check.wrong('execute', 2, 'plan', plan, 'a placement or a strategy') end
  options = check.options('execute', 3, 'options', options, rules)
  local steps, warm_up = options.steps or 15, options.warm_up or 5
  if warm_up >= steps then
    check.refuse('execute', 3, 'options', "'warm_up': expected fewer than the %d steps, got %d", steps, warm_up)
  end
  local executor = core.executor(problem.graph.handle, placement, #problem.cluster.devices,
    simulated_order(problem, plan), { seed = options.seed, learning_rate = options.learning_rate })
  local result, times = { losses = {}, steps = steps, warm_up = warm_up }, {}
  for step = 1, steps do
    local took = executor:step()
    result.losses[step] = took.loss
    if step > warm_up then times[#times + 1] = took.step_time_s end
    result.last = took
  end
  executor:close()
  result.step_time_s = median(times)
  result.transferred_bytes = result.last.transferred_bytes
  result.peak_memory_bytes = result.last.peak_memory_bytes
  return result
end
