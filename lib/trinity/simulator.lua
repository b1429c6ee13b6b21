-- trinity.simulator: a graph bound to a cluster under the simulator's rules. Prices strategies,
-- bounds them, and tells what happened when. The rules themselves: engine/simulator/simulator.h.

local core = require 'trinity.core'
local array = require 'trinity.array'
local timeline = require 'trinity.timeline'
local util = require 'trinity.util'

local Simulator = {}
Simulator.__index = Simulator

function Simulator.__tostring(self)
  return ('simulator: %s on %s'):format(self.graph.name, self.cluster.name)
end

local schedule_fields = { 'schedule', 'micro_batches', 'priority', 'order', 'stage' }
local known_plan = { placement = true }
for _, name in ipairs(schedule_fields) do known_plan[name] = true end

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

--- The placement of a plan and what says how it is scheduled (nil: the default).
local function parts(self, plan)
  local placement, description = plan, self.default_schedule
  if type(plan) == 'table' then
    if plan.placement ~= nil and getmetatable(plan) == nil then
      util.refuse_unknown('plan', plan, known_plan)
    end
    placement, description = plan.placement, schedule_of(plan)
  end
  if not array.is_int32(placement) then
    util.fail('expected a placement (problem:placement()), a strategy or { placement = ... }, got %s',
      util.describe(placement == nil and plan or placement))
  end
  return placement, description
end

Simulator.parts = parts

--- What the engine takes for a plan.
local function item(self, plan)
  local placement, description = parts(self, plan)
  if not description then return placement end
  return { placement, self.handle:schedule(placement, description) }
end

--- Simulates one plan: a placement (int32 array), a strategy, or a table
--- { placement =, schedule = 'fifo' | 'lifo' | 'critical_path' | 'priority' | 'order' | 'gpipe' |
--- '1f1b' | 'interleaved', micro_batches =, priority =, order =, stage = }. Returns metrics.
function Simulator:run(plan) return self:run_batch({ plan })[1] end

--- Simulates a list of plans on all threads: a list of metrics. options.reject_above_s: a plan whose
--- step is longer is given up as soon as that is certain; its metrics say `rejected`.
function Simulator:run_batch(plans, options)
  util.expect('run_batch', 'plans', plans, 'table')
  options = options or {}
  util.refuse_unknown('run_batch', options, { reject_above_s = true })
  local items, metrics = {}, {}
  for i = 1, #plans do
    items[i] = item(self, plans[i])
    metrics[i] = array.metrics(#self.cluster.devices)
  end
  self.handle:evaluate(items, metrics, options.reject_above_s)
  return metrics
end

--- Simulates one plan and keeps every operator, transfer and collective: see trinity.timeline.
function Simulator:timeline(plan)
  return timeline.new(self, self.handle:timeline(item(self, plan)))
end

--- What no strategy can beat: { step_time_s =, critical_path_s =, work_s =, interval_s =,
--- peak_memory_bytes =, least_devices = } (engine/simulator/bounds.h).
function Simulator:bounds(micro_batches) return self.handle:bounds(micro_batches or 1) end

function Simulator:close() self.handle:close() end

local known = { graph = true, cluster = true, rules = true, schedule = true, micro_batches = true, cost = true }

--- trinity.simulator { graph =, cluster =, rules =, schedule =, micro_batches = }. `rules` is
--- 'standard', 'compat' (the published simulator), or a table of deviations from the cluster's rules:
--- queue = 'sender' | 'pair' | 'none' | 'route' | 'fair', memory = 'slots' | 'none',
--- device_pause_s =, link_pause_s =. `schedule` and `micro_batches` hold for plain placements.
local function new(spec)
  util.expect('trinity.simulator', 'description', spec, 'table')
  util.refuse_unknown('trinity.simulator', spec, known)
  for _, name in ipairs { 'graph', 'cluster' } do
    local part = spec[name]
    if type(part) ~= 'table' or not part.handle then
      util.fail("trinity.simulator: '%s': expected a %s, got %s", name, name, util.describe(part))
    end
  end
  local cost
  if spec.cost ~= nil then
    util.expect('trinity.simulator', 'cost', spec.cost, 'function')
    cost = function(op, device, default_s) return spec.cost(spec.graph:operator(op), device, default_s) end
  end
  return setmetatable({ graph = spec.graph, cluster = spec.cluster, rules = spec.rules or 'standard',
    default_schedule = schedule_of(spec),
    handle = core.problem(spec.graph.handle, spec.cluster.handle, spec.rules, cost) }, Simulator)
end

return { new = new }
