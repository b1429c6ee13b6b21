-- The grids that AMP and Megatron-LM's rule choose from on a pool of machines, all devices used, in the order in which
-- the pool names them: tensor within a machine, data, pipeline, micro-batch. And what they are worth by AMP's formula
-- (Li et al., "AMP: Automatically Finding Model Parallel Strategies with Heterogeneity Awareness", NeurIPS 2022,
-- section 3.3; github.com/DachengLi1/AMP, src/pipe.py and src/cost_het_cluster.py):
--   (B - 1) max of the stages + sum of the stages + sum of the messages between them
--     + max over stages and pipeline groups of 2 (D - 1) / (D b) bytes of gradients
-- with B micro-batches, D replicas and b the slowest link of a ring of them.

local space = require 'trinity.plan.space'
local util = require 'trinity.base.util'

local grid = {}

--- All { tensor =, data =, pipeline =, micro_batch =, micro_batches = } of a pool. about: devices, per_node, layers,
--- batch (samples of a step), most_micro_batch (samples).
function grid.of(about)
  local list = {}
  for _, tensor in ipairs(space.divisors(about.per_node)) do
    for _, data in ipairs(space.divisors(about.devices / tensor)) do
      local pipeline = about.devices / tensor / data
      if about.batch % data == 0 and pipeline <= about.layers then
        for _, micro_batch in ipairs(space.divisors(about.batch / data, about.most_micro_batch)) do
          list[#list + 1] = { tensor = tensor, data = data, pipeline = pipeline, micro_batch = micro_batch,
            micro_batches = about.batch / data / micro_batch }
        end
      end
    end
  end
  return list
end

--- Seconds of every unit (units before the layers, the layers, units after them), forwards and backwards with
--- messages of tensor parallelism, on every kind of device; and bytes of gradients of every unit.
function grid.units(nets, point)
  local family = { micro_batch = point.micro_batch, tensor = point.tensor, context = 1, expert = 1,
    recompute = 'none', sequence_parallel = false }
  local bytes
  local seconds = util.map(nets.kinds, function(kind)
    local units = nets:units(family, kind.device)
    bytes = bytes or util.map(units, function(unit) return unit.gradient_bytes end)
    return util.map(units, function(unit) return unit.forward_to_next_s + unit.backward_to_next_s end)
  end)
  return seconds, bytes
end

-- The device of a place in the grid, all from 1: tensor innermost, then data, then pipeline.
local function device_at(point, stage, replica, lane)
  return ((stage - 1) * point.data + replica - 1) * point.tensor + lane
end

local function slowest(cluster, pairs_of)
  local least = math.huge
  for _, pair in ipairs(pairs_of) do
    local _, bandwidth = cluster:wire(pair[1], pair[2])
    least = math.min(least, bandwidth)
  end
  return least
end

-- Seconds of the message after a stage, the mean over replicas of their slowest pipeline group.
local function message_s(cluster, point, stage, bytes)
  local sum = 0
  for replica = 1, point.data do
    local lanes = util.listed(point.tensor, function(lane)
      return { device_at(point, stage, replica, lane), device_at(point, stage + 1, replica, lane) }
    end)
    sum = sum + bytes / slowest(cluster, lanes)
  end
  return sum / point.data
end

-- Seconds of the all-reduce of a stage's gradients, of its slowest pipeline group.
local function reduce_s(cluster, point, stage, bytes)
  local most, d = 0, point.data
  if d == 1 then return 0 end
  for lane = 1, point.tensor do
    local ring = util.listed(d, function(k)
      return { device_at(point, stage, k, lane), device_at(point, stage, k % d + 1, lane) }
    end)
    most = math.max(most, 2 * (d - 1) / d * bytes / slowest(cluster, ring))
  end
  return most
end

--- The step time of a point by the formula. stage_s: seconds of every stage; stage_bytes: of its gradients;
--- message_bytes: of a micro-batch between stages.
function grid.predicted_s(cluster, point, stage_s, stage_bytes, message_bytes)
  local most, sum, reduced = 0, 0, 0
  for stage = 1, point.pipeline do
    most, sum = math.max(most, stage_s[stage]), sum + stage_s[stage]
    if stage < point.pipeline then sum = sum + message_s(cluster, point, stage, message_bytes) end
    reduced = math.max(reduced, reduce_s(cluster, point, stage, stage_bytes[stage]))
  end
  return (point.micro_batches - 1) * most + sum + reduced
end

--- Sums of a unit's numbers over the stages of a split of the layers.
function grid.by_stage(list, counts)
  local sums, at = {}, 1
  for stage, count in ipairs(counts) do
    local sum = stage == 1 and list[1] or 0
    for _ = 1, count do
      at = at + 1
      sum = sum + list[at]
    end
    sums[stage] = stage == #counts and sum + list[#list] or sum
  end
  return sums
end

--- The devices of a stage of a point, in the order of the pool.
function grid.stage_devices(point, stage)
  local size = point.tensor * point.data
  return util.listed(size, function(i) return (stage - 1) * size + i end)
end

function grid.strategy(point, counts, recompute)
  return { mesh = { tensor = point.tensor, data = point.data, pipeline = point.pipeline }, schedule = '1f1b',
    micro_batches = point.micro_batches, stages = counts, recompute = recompute }
end

return grid
