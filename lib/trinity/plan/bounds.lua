-- Bounds that no plan of a point can beat, in closed form from sums over the units of a network
-- (engine/simulator/mesh/unit_profile.h): weak, but a thousandth of the cost of the bound of the engine
-- (engine/simulator/mesh/mesh_bound.h), which the search asks for where this one does not decide. DESIGN.md has why.

local space = require 'trinity.plan.space'
local util = require 'trinity.base.util'

local bounds = {}

---@class trinity.PlanTotals
---@field work_s number forward and backward of one micro-batch on one device of every stage
---@field gap_s number the longest waits between two units, which a cut between them takes away
---@field after_s number the longest work of a unit after what the next unit reads
---@field update_s number
---@field spread_update_s number part of update_s for weights sharded over ranks of `expert`; bytes likewise
---@field host_update_s number of all updates by the host; spread_host_update_s likewise
---@field spread_host_update_s number
---@field weight_bytes number
---@field spread_weight_bytes number
---@field optimizer_bytes number
---@field spread_optimizer_bytes number
---@field gradient_bytes number
---@field spread_gradient_bytes number
---@field kept_bytes number of one micro-batch
---@field compute_s number of work_s what is no waiting for messages
---@field layers_s number work of layers, each as short as the shortest
---@field end_s number work of the operators after them
---@field forward_share number least part of a layer's work that is forward

-- Seconds that a unit takes on one device forwards, and forwards and backwards, without waits for the next unit. Of
-- `parts` devices that share every operator none takes less than its launches, or than its host needs to dispatch them.
local function pass_of(unit, parts)
  if not parts then
    return unit.forward_s, unit.forward_s + math.min(unit.backward_s, unit.first_backward_s) + unit.weight_s
  end
  local function of(launch_s, work_s, dispatch_s)
    return math.max(launch_s + (work_s - launch_s) / parts, dispatch_s)
  end
  local forward = of(unit.forward_launch_s, unit.forward_work_s, unit.forward_dispatch_s)
  return forward, forward + of(unit.backward_launch_s, unit.backward_work_s, unit.backward_dispatch_s)
end

-- Fields of a profile that devices which share every operator divide among themselves.
local parted = { 'update_s', 'spread_update_s', 'host_update_s', 'spread_host_update_s', 'weight_bytes',
  'spread_weight_bytes', 'optimizer_bytes', 'spread_optimizer_bytes', 'gradient_bytes', 'spread_gradient_bytes',
  'kept_bytes' }

--- Sums over the units of a profile. parts: devices that share every operator; then what each takes at least, of a
--- profile of one device.
---@param units table[]
---@param parts? integer
---@return trinity.PlanTotals
function bounds.totals(units, parts)
  local sum = { work_s = 0, gap_s = 0, after_s = 0, compute_s = 0, layers_s = 0, end_s = 0, forward_share = 1 }
  for _, name in ipairs(parted) do sum[name] = 0 end
  local n, least, count, first_s = parts or 1, math.huge, #units - 2, 0
  for i, unit in ipairs(units) do
    local forward, work = pass_of(unit, parts)
    sum.after_s = math.max(sum.after_s, math.max(0, i <= count + 1 and unit.forward_s - unit.forward_hands_on_s or 0)
      + math.max(0, i > 1 and unit.backward_s - unit.backward_hands_on_s or 0))
    if not parts then
      sum.work_s = sum.work_s + unit.forward_to_next_s + unit.backward_to_next_s + unit.weight_s
      sum.gap_s = math.max(sum.gap_s, unit.forward_to_next_s - unit.forward_s
        + unit.backward_to_next_s - unit.backward_s)
      first_s = math.max(first_s, unit.backward_s - unit.first_backward_s,
        unit.backward_to_next_s - unit.first_backward_to_next_s)
    else
      sum.work_s = sum.work_s + work
    end
    if i > 1 and i <= count + 1 then
      least = math.min(least, work)
      if work > 0 then sum.forward_share = math.min(sum.forward_share, forward / work) end
    elseif i > 1 then
      sum.end_s = work
    end
    sum.compute_s = sum.compute_s + (parts and work or unit.forward_work_s + unit.backward_work_s)
    for _, name in ipairs(parted) do sum[name] = sum[name] + unit[name] / n end
  end
  sum.gap_s, sum.layers_s = sum.gap_s + first_s, count > 0 and count * least or 0
  return sum
end

--- The minimum of several sums, field by field, for devices that differ; of what a bound subtracts the maximum.
function bounds.least(list)
  local least = {}
  for name, value in pairs(list[1]) do -- in any order: each field by itself
    local of = (name == 'gap_s' or name == 'after_s') and math.max or math.min
    for i = 2, #list do value = of(value, list[i][name]) end
    least[name] = value
  end
  return least
end

--- How many times as long as on the fastest kind of device every unit takes at least, by kind. units: by kind; totals:
--- of these; parts: as of totals().
function bounds.slower(units, totals, parts)
  local fastest = 1
  for k, sums in ipairs(totals) do
    if sums.work_s < totals[fastest].work_s then fastest = k end
  end
  local function times(unit)
    if parts then return { select(2, pass_of(unit, parts)) } end
    return { unit.forward_to_next_s + unit.backward_to_next_s + unit.weight_s,
      unit.forward_work_s + unit.backward_work_s }
  end
  return util.map(units, function(list)
    local factor = math.huge
    for i, unit in ipairs(list) do
      local least = times(units[fastest][i])
      for j, seconds in ipairs(times(unit)) do
        if least[j] > 0 then factor = math.min(factor, seconds / least[j]) end
      end
    end
    return factor < math.huge and factor or 1
  end)
end

--- Devices that ZeRO divides states over: replicas with their parts of the sequence (shard_group() of
--- engine/strategy/lowering.h).
local function sharing(point) return point.data * point.context end

--- A device's part of a total that these devices shard; for experts the ones that hold the same experts.
local function shared(point, totals, name)
  local replicas = sharing(point)
  local spread = totals['spread_' .. name]
  return (totals[name] - spread) / replicas + spread / math.max(1, replicas / point.expert)
end

--- Seconds of updates of which the host computes a share at the same time.
function bounds.update_s(fraction, device_s, host_s)
  return math.max((1 - fraction) * device_s, fraction * host_s)
end

--- No step of the point is shorter. stages: of heterogeneous devices how many stages of the fastest kind work as fast
--- as all of them (Unequal:stages_of).
---@param point trinity.PlanPoint
---@param totals trinity.PlanTotals
---@param stages? number
---@return number
function bounds.step_time_s(point, totals, stages)
  local p, m, v, places = point.pipeline, point.micro_batches, point.virtual_stages, point.placement or 1
  local joint = p > 1 and point.schedule == 'dualpipe-v' or places > 1 -- other work fills what messages leave
  local work = joint and totals.compute_s or totals.work_s
  if p > 1 and not joint then work = math.max(0, work - (p * v - 1) * totals.gap_s) end
  local function of(name) return point.zero_stage > 0 and shared(point, totals, name) or totals[name] end
  local update = bounds.update_s(point.optimizer_offload_fraction or 0, of 'update_s', of 'host_update_s')
  local least = stages and m * work / stages or (m * work + update) / p
  if p > 1 then
    local delays, after = space.delays(point.schedule, p), (p - 1) * totals.after_s
    if v == 1 and not delays then least = math.max(least, work / (1 - (1 - 1 / m) ^ p) - after) end
    local head, rest = delays and totals.forward_share or 1, totals.layers_s
    if point.schedule ~= 'zb-v' then rest = rest + totals.end_s end -- there it is on the first device
    if head > 0 and not joint and type(point.stages) ~= 'table' then -- a layout's first chunk may be shorter
      least = math.max(least, rest * head / (v * (1 - (1 - head / (m * v)) ^ p)) - after)
    end
  end
  return least / places * (1 - 1e-9) -- sums of doubles
end

--- Micro-batches in flight on stage r of p, from 0, at the start of a backward pass; whether gradients have begun.
local function in_flight(point, r)
  local p, m = point.pipeline, point.micro_batches
  local schedule = point.schedule
  if p == 1 then return 1, m > 1 end
  if schedule == 'gpipe' then return m > 1 and m - 1 or 1, m > 1 end
  if schedule == '1f1b' or schedule == 'zb-h1' or schedule == 'zb-h2' then
    if m == 1 then return 1, false end
    return math.min(m - 1, schedule == 'zb-h2' and 2 * (p - r) - 1 or p - r), schedule == '1f1b'
  end
  if schedule == 'interleaved' then return math.max(1, math.min(m, p, 2 * (p - r) - 1)), false end
  return 1, false
end

-- Resident bytes of all stages, the sum of 1 / c_r, and the largest c_r.
local function held(point, totals)
  local p, shard = point.pipeline, sharing(point) > 1 and point.zero_stage or 0
  local function share(name, level) return shard >= level and shared(point, totals, name) or totals[name] end
  local kept = 1 - (point.optimizer_offload_fraction or 0)
  local resident = share('weight_bytes', 3) + kept * share('optimizer_bytes', 1)
  local inverse, most, gradients = 0, 0, true
  for r = 0, p - 1 do
    local count, begun = in_flight(point, r)
    inverse, most, gradients = inverse + 1 / count, math.max(most, count), gradients and begun
  end
  if gradients then resident = resident + share('gradient_bytes', 2) end
  return resident, inverse, most
end

--- No plan of the point has a fullest device with fewer bytes.
---@param point trinity.PlanPoint
---@param totals trinity.PlanTotals
---@return number
function bounds.memory_bytes(point, totals)
  totals = totals.full or totals
  local resident, inverse, most = held(point, totals)
  local kept = (1 - (point.activation_offload_fraction or 0)) * totals.kept_bytes
  if (point.placement or 1) > 1 then return resident / point.pipeline / point.placement * (1 - 1e-9) end
  return math.max((resident + kept) / point.pipeline, (resident / most + kept) / inverse) * (1 - 1e-9)
end

return bounds
