-- Remedies for slow devices: spares, moving layers to other stages, dropping replicas.

local csv = require 'trinity.base.csv'
local model = require 'trinity.graph.model'
local parallelism = require 'trinity.strategy.parallelism'
local simulator = require 'trinity.strategy.simulator'
local util = require 'trinity.base.util'

local owner = 'trinity.stragglers.run'

--- Returns the metrics of a plan, or nil if it is impossible.
local function evaluated(problem, plan)
  local metrics = csv.attempt(problem.evaluate, problem, plan)
  return metrics and metrics.feasible and metrics or nil
end

--- Moves layers, one at a time, from stages on slow devices to other stages while the step gets shorter.
local function with_layers_moved(problem, plan, low, slow)
  local best, best_s, on_slow = nil, problem:evaluate(plan).step_time_s, {}
  for device in util.sorted_pairs(slow) do on_slow[low.coordinates.pipeline[device] or -1] = true end
  repeat
    local stages = best and best.stages or low.layers
    local changed = false
    for from = 1, #stages do
      for to = 1, on_slow[low.pipeline[from] - 1] and stages[from] > 1 and #stages or 0 do
        local moved = util.merged(plan, { stages = util.merged(stages) })
        moved.stages[from], moved.stages[to] = stages[from] - 1, stages[to] + 1
        local metrics = to ~= from and evaluated(problem, moved)
        if metrics and metrics.step_time_s < best_s then best, best_s, changed = moved, metrics.step_time_s, true end
      end
    end
  until not changed
  return { best }
end

--- Returns the plans without the slowest replica and those that share its experts, without the two slowest and so on.
local function without_replicas(plan, low, slow)
  local at, worst, experts, data, plans = low.coordinates.data, {}, plan.mesh.expert or 1, plan.mesh.data or 1, {}
  local function group_of(device) return at[device] and math.floor(at[device] / experts) end
  for device, factor in util.sorted_pairs(slow) do
    local group = group_of(device)
    if group then worst[group] = math.max(worst[group] or 1, factor) end
  end
  local order, kept = util.sorted_keys(worst), plan.devices or util.sorted_keys(at)
  table.sort(order, function(a, b)
    if worst[a] ~= worst[b] then return worst[a] > worst[b] end
    return a < b
  end)
  for dropped = 1, math.min(#order, data / experts - 1) do
    local left, group = data - dropped * experts, order[dropped]
    kept = util.filtered(kept, function(device) return group_of(device) ~= group end)
    plans[dropped] = util.merged(plan, { mesh = util.merged(plan.mesh, { data = left }), devices = kept,
      micro_batches = math.ceil((plan.micro_batches or 1) * data / left) })
  end
  return plans
end

--- Returns the effect of each remedy, most samples per second first; empty if the cluster has no option `slow`.
return function(strategy)
  local problem, list = strategy.problem, {}
  local cluster, healthy = problem.cluster, model.healthy(problem.cluster)
  if not healthy then return list end
  --- Adds the best of some plans, with its fields that differ from the strategy's.
  local function add(what, on, plans, names)
    local best, row = nil, nil
    for _, plan in ipairs(plans) do
      local metrics = evaluated(on, plan)
      if metrics and (not best or metrics.samples_per_s > best) then
        best = metrics.samples_per_s
        row = util.merged({ what = what, step_time_s = metrics.step_time_s, samples_per_s = best,
          gain = best / strategy.metrics.samples_per_s - 1 }, util.picked(plan, names))
      end
    end
    if row then list[#list + 1] = row end
  end
  add('spares for what is slow', require('trinity.strategy.problem').simulator { graph = problem.graph,
    cluster = healthy, rules = problem.rules, cost = problem.cost }, { strategy }, {})
  if strategy.mesh then
    local plan, slow = parallelism.fields(owner, strategy, problem.graph), {}
    local low = select(3, simulator.lowered(owner, problem, strategy))
    for d, device in ipairs(cluster.devices) do
      local factor = healthy.devices[d].speed / device.speed
      slow[d] = factor > 1 and factor or nil
    end
    add('layers moved from slow stages', problem, with_layers_moved(problem, plan, low, slow), { 'stages' })
    add('replicas with slow devices dropped', problem, without_replicas(plan, low, slow),
      { 'devices', 'micro_batches' })
  end
  table.sort(list, function(a, b) return a.gain > b.gain end)
  return list
end
