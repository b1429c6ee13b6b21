-- trinity.problem: a graph, a cluster and a reward. Prices placements, makes strategies.

local core = require 'trinity.core'
local array = require 'trinity.array'
local rewards = require 'trinity.rewards'
local strategy = require 'trinity.strategy'
local util = require 'trinity.util'

local Problem = {}
Problem.__index = Problem

function Problem.__tostring(self)
  return ('problem: %s on %s'):format(self.graph.name, self.cluster.name)
end

local known = { graph = true, cluster = true, reward = true, rules = true }

--- trinity.problem { graph =, cluster =, reward = function(metrics) return number end,
--- rules = 'standard' | 'compat' }. Refuses a graph that no placement can fit. The reward is
--- maximised; by default it is minus the step time. Fields: graph, cluster, reward, lower_bound_s.
local function new(spec)
  util.expect('trinity.problem', 'description', spec, 'table')
  util.refuse_unknown('trinity.problem', spec, known)
  for _, name in ipairs { 'graph', 'cluster' } do
    local part = spec[name]
    if type(part) ~= 'table' or not part.handle then
      util.fail("trinity.problem: '%s': expected a %s, got %s", name, name, util.describe(part))
    end
  end
  local reward = spec.reward == nil and rewards.step_time() or spec.reward
  util.expect('trinity.problem', 'reward', reward, 'function')
  local self = setmetatable({ graph = spec.graph, cluster = spec.cluster, reward = reward,
    rules = spec.rules or 'standard' }, Problem)
  self.handle = core.problem(spec.graph.handle, spec.cluster.handle, self.rules)
  if self.rules == 'standard' then self.handle:check_memory() end
  self.lower_bound_s = self.handle:lower_bound_s()
  return self
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

--- Simulates a list of placements on all threads: a list of metrics.
function Problem:evaluate(placements)
  local metrics = {}
  for i = 1, #placements do metrics[i] = array.metrics(#self.cluster.devices) end
  self.handle:evaluate(placements, metrics)
  return metrics
end

--- Simulates one placement.
function Problem:simulate(placement) return self:evaluate({ placement })[1] end

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

--- A strategy from a placement; `about` may hold method, seed, evaluations, seconds, curve.
function Problem:strategy(placement, about) return strategy.new(self, placement, about) end

--- Loads a strategy that strategy:save() wrote, and simulates it.
function Problem:load(path) return strategy.load(self, path) end

--- The placement as JSON text; `notes` are its further facts by name.
function Problem:to_json(placement, notes) return self.handle:to_json(placement, notes) end

--- Whether strategy or result `a` is better than `b`: one that fits before one that does not,
--- then the larger reward.
function Problem.better(a, b)
  if not b then return true end
  if a.metrics.feasible ~= b.metrics.feasible then return a.metrics.feasible end
  return a.reward > b.reward
end

function Problem:close() self.handle:close() end

return { new = new }
