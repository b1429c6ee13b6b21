-- Remedies for slow devices: spares, moving layers to other stages, dropping replicas.

local fields = require 'trinity.base.fields'
local parallelism = require 'trinity.strategy.parallelism'
local printed = require 'trinity.base.printed'
local simulator = require 'trinity.strategy.simulator'
local util = require 'trinity.base.util'

local owner = 'trinity.stragglers'
local remedy = printed.as('remedy', { 'what', 'step_time_s', 'samples_per_s', 'gain' })

--- Returns the slow devices with their times relative to the healthy cluster.
local function slowed(cluster, healthy)
  local factors = {}
  for d, device in ipairs(cluster.devices) do
    if device.speed < healthy.devices[d].speed then factors[d] = healthy.devices[d].speed / device.speed end
  end
  return factors
end

--- Returns the plan with changed fields, or nil if it is impossible.
local function priced(problem, plan)
  local ok, metrics = pcall(problem.evaluate, problem, plan)
  if ok then return metrics end
  local message = tostring(metrics)
  if not message:find 'problem:evaluate' then error(metrics, 0) end -- Ctrl-C
  return nil
end

--- Moves layers, one at a time, from stages on slow devices to other stages while the step gets shorter.
local function with_layers_moved(problem, plan, low, slow)
  local on_slow, best, best_s, moved = {}, util.merged(low.layers), problem:evaluate(plan).step_time_s, false
  for device in util.sorted_pairs(slow) do
    for k = 1, #best do
      if low.pipeline[k] == (low.coordinates.pipeline[device] or -1) + 1 then on_slow[k] = true end
    end
  end
  while true do
    local next_best
    for from = 1, #best do
      for to = 1, (on_slow[from] and best[from] > 1) and #best or 0 do
        if to ~= from then
          local stages = util.merged(best)
          stages[from], stages[to] = stages[from] - 1, stages[to] + 1
          local metrics = priced(problem, util.merged(plan, { stages = stages }))
          if metrics and metrics.feasible and metrics.step_time_s < best_s then
            next_best, best_s = stages, metrics.step_time_s
          end
        end
      end
    end
    if not next_best then break end
    best, moved = next_best, true
  end
  return moved and util.merged(plan, { stages = best }) or nil
end

--- Returns the plans without the slowest replica, the two slowest and so on: the others take their micro-batches.
local function without_replicas(plan, low, slow)
  local at, worst, bad, plans = low.coordinates.data, {}, {}, {}
  for device, factor in util.sorted_pairs(slow) do
    if at[device] then worst[at[device]] = math.max(worst[at[device]] or 1, factor) end
  end
  local order = util.sorted_keys(worst)
  table.sort(order, function(a, b)
    if worst[a] ~= worst[b] then return worst[a] > worst[b] end
    return a < b
  end)
  for dropped, replica in ipairs(order) do
    local data, kept = (plan.mesh.data or 1) - dropped, {}
    bad[replica] = true
    for _, device in ipairs(plan.devices or util.sorted_keys(at)) do
      if at[device] and not bad[at[device]] then kept[#kept + 1] = device end
    end
    plans[dropped] = data > 0 and util.merged(plan, { mesh = util.merged(plan.mesh, { data = data }), devices = kept,
      micro_batches = math.ceil((plan.micro_batches or 1) * (plan.mesh.data or 1) / data) }) or nil
  end
  return plans
end

--- Returns the effect of each remedy, most samples per second first; empty without a healthy cluster to compare with.
---@param strategy trinity.Strategy
---@param healthy? trinity.Cluster
---@return trinity.Remedy[]
return function(strategy, healthy)
  if not healthy then return {} end
  local problem, list, now = strategy.problem, {}, strategy.metrics.samples_per_s
  local function add(what, plan, on)
    local metrics = plan and priced(on or problem, plan)
    if not metrics or not metrics.feasible then return end
    list[#list + 1] = fields.result('trinity.Remedy', remedy { what = what, step_time_s = metrics.step_time_s,
      samples_per_s = metrics.samples_per_s, gain = metrics.samples_per_s / now - 1 })
    return list[#list]
  end
  local spare = require('trinity.strategy.problem').simulator { graph = problem.graph, cluster = healthy,
    rules = problem.rules, cost = problem.cost }
  add('spares for what is slow', strategy, spare)
  if strategy.mesh then
    local plan = parallelism.fields(owner, strategy, problem.graph)
    local low = select(3, simulator.lowered(owner, problem, strategy))
    local slow = slowed(problem.cluster, healthy)
    if (plan.mesh.pipeline or 1) > 1 then
      local changed = with_layers_moved(problem, plan, low, slow)
      local row = add('layers moved from slow stages', changed)
      if row then row.stages = changed.stages end
    end
    local count, best = #list, nil
    for _, fewer in ipairs(without_replicas(plan, low, slow)) do
      local row = add('replicas with slow devices dropped', fewer)
      if row then row.devices, row.micro_batches = fewer.devices, fewer.micro_batches end
      if row and (not best or row.gain > best.gain) then best = row end
      list[count + 1], list[count + 2] = best, nil
    end
  end
  table.sort(list, function(a, b) return a.gain > b.gain end)
  return list
end
