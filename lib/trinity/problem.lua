-- trinity.problem: a graph, a cluster and a reward. Prices placements, makes strategies.

local core = require 'trinity.core'
local array = require 'trinity.array'
local rewards = require 'trinity.rewards'
local simulator = require 'trinity.simulator'
local strategy = require 'trinity.strategy'
local util = require 'trinity.util'

local Problem = {}

--- lower_bound_s takes a moment on large graphs, so it is computed when first asked for.
function Problem.__index(self, key)
  if key == 'lower_bound_s' then
    local bounds = self:bounds()
    rawset(self, key, bounds.step_time_s)
    return bounds.step_time_s
  end
  return Problem[key]
end

function Problem.__tostring(self)
  return ('problem: %s on %s'):format(self.graph.name, self.cluster.name)
end

local known = { graph = true, cluster = true, reward = true, rules = true, schedule = true,
  micro_batches = true, cost = true }

--- trinity.problem { graph =, cluster =, reward = function(metrics) return number end, rules =, cost =,
--- schedule =, micro_batches = } (the last four: see trinity.simulator). Refuses a graph that no
--- placement can fit. The reward is maximised; by default it is minus the step time. Fields: graph,
--- cluster, reward, simulator, lower_bound_s.
local function new(spec)
  util.expect('trinity.problem', 'description', spec, 'table')
  util.refuse_unknown('trinity.problem', spec, known)
  local reward = spec.reward == nil and rewards.step_time() or spec.reward
  util.expect('trinity.problem', 'reward', reward, 'function')
  local prices = simulator.new { graph = spec.graph, cluster = spec.cluster, rules = spec.rules, cost = spec.cost,
    schedule = spec.schedule, micro_batches = spec.micro_batches }
  if spec.rules ~= 'compat' then prices.handle:check_memory() end
  return setmetatable({ graph = spec.graph, cluster = spec.cluster, reward = reward,
    simulator = prices, handle = prices.handle, rules = prices.rules }, Problem)
end

--- A placement to fill: the device (1-based) of every operator, an int32 array, all on device 1.
function Problem:placement()
  local placement = array.int32(self.graph.operators)
  for i = 1, #placement do placement[i] = 1 end
  return placement
end

--- A placement from a device per colocation unit, `choose(unit, first_operator)`, in order.
function Problem:placement_by_unit(choose)
  local placement, unit_of, device = self:placement(), self.graph.unit_of, {}
  for op = 1, #placement do
    local unit = unit_of[op] + 1
    if not device[unit] then device[unit] = choose(unit, op) end
    placement[op] = device[unit]
  end
  return placement
end

--- A list of `count` placements to fill.
function Problem:placements(count)
  local list = {}
  for i = 1, count do list[i] = self:placement() end
  return list
end

--- Prices one strategy or placement: metrics. What it takes: simulator:run.
function Problem:evaluate(plan) return self.simulator:run(plan) end

--- Prices a list on all threads: a list of metrics. options: see simulator:run_batch.
function Problem:evaluate_batch(plans, options) return self.simulator:run_batch(plans, options) end

--- What happened when in a step: see trinity.timeline.
function Problem:timeline(plan) return self.simulator:timeline(plan) end

--- Lower bounds that no strategy can beat: see simulator:bounds.
function Problem:bounds(micro_batches)
  local default = self.simulator.default_schedule
  return self.simulator:bounds(micro_batches or default and default.micro_batches or 1)
end

local function reward_name(reward)
  local info = debug.getinfo(reward, 'S')
  return ('%s:%d'):format(info.short_src, info.linedefined)
end

--- The reward of metrics; refuses anything but a finite number, naming the function's line.
function Problem:score(metrics)
  local value = self.reward(metrics)
  if type(value) ~= 'number' then
    error(('%s: the reward function returned %s, expected a number'):format(
      reward_name(self.reward), util.describe(value)), 0)
  end
  if value ~= value or value == math.huge or value == -math.huge then
    error(('%s: the reward function returned %s, expected a finite number'):format(
      reward_name(self.reward), value ~= value and 'NaN' or tostring(value)), 0)
  end
  return value
end

--- A strategy from a placement, or from a plan with a schedule as simulator:run takes it; `about` may
--- hold method, seed, evaluations, seconds, curve.
function Problem:strategy(plan, about) return strategy.new(self, plan, about) end

--- Loads a strategy that strategy:save() wrote, and simulates it.
function Problem:load(path) return strategy.load(self, path) end

--- A plan (placement and schedule) as JSON text; `notes` are its further facts by name.
function Problem:to_json(plan, notes)
  local placement, schedule = self.simulator:parts(plan)
  return self.handle:to_json(placement, notes, schedule)
end

--- Whether strategy or result `a` is better than `b`: one that fits before one that does not,
--- then the larger reward.
function Problem.better(a, b)
  if not b then return true end
  if a.metrics.feasible ~= b.metrics.feasible then return a.metrics.feasible end
  return a.reward > b.reward
end

--- The graph with the devices of a plan as colours, in Graphviz's DOT language. options: as of
--- graph:to_dot.
function Problem:to_dot(plan, options)
  return core.graph_to_dot(self.graph.handle, options or {}, self.handle, (self.simulator:parts(plan)))
end

--- A plan as a file for PyTorch: device of every forward operator and module, and the stages of a
--- pipeline, as JSON text (engine/formats/placement_export.h). device_names: an entry a device of the
--- cluster ('cuda:0', ...); default the cluster's own.
function Problem:placement_json(plan, device_names)
  local placement, schedule = self.simulator:parts(plan)
  return core.placement_to_json(self.handle, placement, schedule, device_names)
end

function Problem:close() self.handle:close() end

return { new = new }
