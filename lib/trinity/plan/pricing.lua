-- Prices plans of a search: settles what a point leaves open, asks the engine for bounds, simulates.
--
-- Kinds of variation settle their part of a point: devices (unequal.lua), layers of stages (stages.lua), operators
-- inside stages (inside.lua), recomputation by layer (by_layer.lua).

local by_layer = require 'trinity.plan.by_layer'
local growth = require 'trinity.plan.growth'
local inside = require 'trinity.plan.inside'
local simulator = require 'trinity.strategy.simulator'
local space = require 'trinity.plan.space'
local stages = require 'trinity.plan.stages'
local util = require 'trinity.base.util'

local Pricing = {}
Pricing.__index = Pricing

--- options: networks, space, own (dimensions), unequal (nil for equal devices), capacity_bytes, methods and
--- method_options (of placement inside stages).
function Pricing.new(options)
  return setmetatable(util.merged({ splits = {}, places = {}, memory = growth.new(0.02, 0.03) }, options), Pricing)
end

--- Bytes of the least device of a stage of a strategy.
function Pricing:room(strategy, stage)
  return self.unequal and self.unequal:room(strategy, stage) or self.capacity_bytes
end

--- The problem that bounds of a point are of, and the layers that it stands for.
function Pricing:bounder(point)
  if next(self.own) then return self.networks:problem(point.micro_batch) end
  return self.networks:bounder(by_layer.is(point) and util.merged(point, { recompute = 'full' }) or point)
end

--- The strategy of a plan; nil where another point has the same stages. Throws why no method places its operators.
local function settle(self, plan)
  local point = plan.point
  local moved = type(point.order) == 'table' and point.order or nil
  point.devices = self.unequal and self.unequal:devices_of(point) or moved
  if not plan.settled and point.stages == 'balanced' and point.pipeline > 1 and not stages.settle(self, plan) then
    return nil
  end
  local strategy = space.strategy(point)
  if point.placement > 1 then
    point.inside = inside.settle(self, strategy, point.micro_batch)
    strategy.inside = point.inside
  end
  for name, value in util.sorted_pairs(point.own or {}) do
    strategy = self.own[name].apply(strategy, value, point) or strategy
  end
  return strategy
end

-- The key of the problem that plans share.
local function problem_of(plan)
  local point = plan.point
  return ('%d %s %s'):format(point.micro_batch, tostring(by_layer.is(point)), tostring(point.placement > 1))
end

--- Gives plans a strategy and the engine's bounds, with `fullest_bytes` and `excess_bytes` (of the stage that exceeds
--- its device most); or `refused` (why), or `duplicate`.
function Pricing:bound(plans)
  local settled = {}
  for _, plan in ipairs(plans) do
    local ok, strategy = pcall(settle, self, plan)
    plan.refused, plan.duplicate = not ok and strategy or nil, ok and not strategy
    if ok and strategy then plan.strategy, settled[#settled + 1] = strategy, plan end
  end
  for _, list in ipairs(util.grouped(settled, problem_of)) do
    local problem, layers = self:bounder(list[1].point)
    local found = by_layer.is(list[1].point) and by_layer.bounds(self, problem, list, layers)
      or simulator.mesh_bounds(problem, util.map(list, function(plan) return plan.strategy end), layers)
    for i, plan in ipairs(list) do
      plan.bounds, plan.refused, plan.duplicate = found[i], found[i].refused, found[i].duplicate
      plan.fullest_bytes, plan.excess_bytes = 0, -math.huge
      for stage, bytes in ipairs(found[i].memory_bytes or {}) do
        plan.fullest_bytes = math.max(plan.fullest_bytes, bytes)
        plan.excess_bytes = math.max(plan.excess_bytes, bytes - self:room(plan.strategy, stage))
      end
    end
  end
end

--- Simulates plans: gives them `metrics` and their `problem`, or `refused`.
function Pricing:simulate(plans)
  for _, list in ipairs(util.grouped(plans, function(plan) return plan.point.micro_batch end)) do
    local problem = self.networks:problem(list.name)
    local strategies = util.map(list, function(plan)
      if by_layer.is(plan.point) then
        plan.strategy.operators = util.merged(by_layer.operators(problem.graph, plan.point, self.space.about.layers),
          plan.strategy.operators)
      end
      return plan.strategy
    end)
    local ok, metrics = pcall(problem.evaluate_batch, problem, strategies)
    for i, plan in ipairs(list) do
      local fine, what = ok, ok and metrics[i] or nil
      if not ok then fine, what = pcall(problem.evaluate, problem, strategies[i]) end
      if not fine and tostring(what):find('interrupted', 1, true) then error(what, 0) end
      plan.problem, plan.metrics, plan.refused = problem, fine and what or nil, not fine and what or nil
      if fine then self.memory:add(plan.features, what.peak_memory_bytes / plan.fullest_bytes) end
    end
  end
end

return Pricing
