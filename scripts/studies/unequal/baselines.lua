-- Baselines of trinity.plan on pools of heterogeneous devices, as their authors describe them; all are simulated, and
-- each may have the same number of plans simulated. `trinity study unequal` prints the table.
--   plan, 1F1B      the same search within what the others choose from: 1F1B, no parts of the sequence, whole states
--   amp             AMP (unequal_grid.lua): layers take their mean time over all devices of the pool; per
--                   grid the split whose largest stage is least, exact; grids in the order of the formula are run
--                   until the budget is spent, as AMP runs its best candidates. It shards no states; a grid that
--                   does not fit is run again with full recomputation.
--   even            the same grids with layers as equal as they can be, as Megatron-LM has them
--   proportional    the same with layers in proportion to the peak of a stage's slowest device
--   batch by speed  data parallelism alone, parts of the batch in proportion to what each device does a second
--   tapp            methods.tapp: layers to devices, 1F1B, whole budget at micro-batches of 1, 2 and 4 samples each, of
--                   which the best counts; it alone is stochastic

local tapp_layers = require 'studies.papers.tapp_baselines'
local core = require 'trinity.core'
local grid = require 'studies.unequal.grid'
local methods = require 'trinity.methods'
local networks = require 'trinity.plan.networks'
local plan = require 'trinity.plan'
local problems = require 'trinity.strategy.problem'
local space = require 'trinity.plan.space'
local stages = require 'trinity.plan.stages'
local unequal = require 'trinity.plan.unequal'
local util = require 'trinity.base.util'

local baselines = {}

local most_micro_batch = 8 -- samples, as of trinity.plan

--- A pool to plan for: { graph = function(micro_batch), cluster =, batch = samples of a step, message_bytes = of a
--- sample between layers }.
function baselines.pool(given)
  local nets = networks.new('baselines', given.graph, given.cluster)
  local per_node = {}
  for _, device in ipairs(given.cluster.devices) do per_node[device.node] = (per_node[device.node] or 0) + 1 end
  local least = math.huge
  for _, count in util.sorted_pairs(per_node) do least = math.min(least, count) end
  local units = nets:problem(1).handle:mesh_units({ mesh = {} }, 1)
  return util.merged(given, { nets = nets, unlike = unequal.new(given.cluster, nets.kinds),
    about = { devices = #given.cluster.devices, per_node = least, layers = #units - 2, batch = given.batch,
      most_micro_batch = most_micro_batch } })
end

-- How a rule cuts the layers of a point: counts of every stage, and the seconds of a unit that it goes by.
local cuts = {}

-- Seconds of units, on average over the devices of the pool.
local function mean_s(pool, seconds)
  return util.listed(#seconds[1], function(i)
    local sum = 0
    for k, kind in ipairs(pool.nets.kinds) do sum = sum + seconds[k][i] * kind.count end
    return sum / pool.about.devices
  end)
end

function cuts.amp(pool, point, mean)
  local layers = { unpack(mean, 2, #mean - 1) }
  if point.micro_batches == 1 then return cuts.even(pool, point) end
  return stages.split(layers, point.pipeline, mean[1], mean[#mean])
end

function cuts.even(pool, point)
  local p, n = point.pipeline, pool.about.layers
  return util.listed(p, function(stage) return math.floor(n / p) + (stage <= n % p and 1 or 0) end)
end

function cuts.proportional(pool, point)
  local speed = util.listed(point.pipeline, function(stage)
    local least = math.huge
    for _, d in ipairs(grid.stage_devices(point, stage)) do
      least = math.min(least, pool.unlike.rate[pool.unlike.kind_of[d]])
    end
    return least
  end)
  return tapp_layers.shards(pool.about.layers, speed)
end

-- The grids of a rule by what the formula says of them: { point =, counts =, predicted_s = }.
local function ranked(pool, rule)
  local list = {}
  for i, point in ipairs(grid.of(pool.about)) do
    local ok, seconds, bytes = pcall(grid.units, pool.nets, point)
    if not ok and not tostring(seconds):find('divide', 1, true) then error(seconds, 0) end
    if ok then -- else tensor does not divide the heads
      local mean = mean_s(pool, seconds)
      local counts = cuts[rule](pool, point, mean)
      list[#list + 1] = { point = point, counts = counts, number = i, predicted_s = grid.predicted_s(pool.cluster,
        point, grid.by_stage(mean, counts), grid.by_stage(bytes, counts), pool.message_bytes * point.micro_batch) }
    end
  end
  table.sort(list, util.by('predicted_s', 'number'))
  return list
end

local function text_of(point, recompute)
  return ('tensor %d x pipeline %d x data %d, micro-batch %d x %d%s'):format(point.tensor, point.pipeline, point.data,
    point.micro_batch, point.micro_batches, recompute == 'full' and ', recompute full' or '')
end

--- Runs the grids of a rule in order until `evaluations` are spent: { step_time_s =, what =, evaluations = }, the best
--- that fits; step_time_s is infinite where none does.
local function run_grids(rule)
  return function(pool, evaluations)
    local best = { step_time_s = math.huge, what = 'nothing fits', evaluations = 0 }
    for _, entry in ipairs(ranked(pool, rule)) do
      for _, recompute in ipairs { 'none', 'full' } do
        if best.evaluations >= evaluations then return best end
        local ok, metrics = pcall(function()
          return pool.nets:problem(entry.point.micro_batch):evaluate(grid.strategy(entry.point, entry.counts,
            recompute))
        end)
        if not ok and core.was_interrupted() then return best end
        if not ok then error(metrics, 0) end
        best.evaluations = best.evaluations + 1
        if metrics.feasible and metrics.step_time_s < best.step_time_s then
          best.step_time_s, best.what = metrics.step_time_s, text_of(entry.point, recompute)
        end
        if metrics.feasible then break end
      end
    end
    return best
  end
end

local function ours(within)
  return function(pool, evaluations)
    local found = plan { graph = pool.graph, cluster = pool.cluster, global_batch = pool.batch, quiet = true,
      plans = 1, simulations = evaluations, space = within }
    local best = found.plans[1]
    return { step_time_s = best and best.step_time_s or math.huge, evaluations = found.counts.simulated,
      what = best and space.text(best.point) or 'nothing fits' }
  end
end

local function batch_by_speed(pool)
  local rows = {}
  tapp_layers.add_replicas(rows, pool.graph, pool.cluster, pool.batch)
  local row = rows[2]
  return { step_time_s = row.fits and row.step_time_s or math.huge, evaluations = 1,
    what = row.fits and ('data %d'):format(pool.about.devices) or 'does not fit' }
end

local function tapp(pool, evaluations, seed)
  local best
  for _, micro_batch in ipairs { 1, 2, 4 } do
    if pool.batch % micro_batch == 0 then
      local problem = problems.new { graph = pool.graph(micro_batch), cluster = pool.cluster, schedule = '1f1b',
        micro_batches = pool.batch / micro_batch }
      local found = methods.tapp(problem, { evaluations = evaluations, seed = seed, quiet = true })
      local step_s = found.metrics.feasible and found.metrics.step_time_s or math.huge
      if not best or step_s < best.step_time_s then
        best = { step_time_s = step_s, evaluations = 3 * evaluations, what = step_s < math.huge
          and ('micro-batch %d x %d'):format(micro_batch, pool.batch / micro_batch) or 'nothing fits' }
      end
    end
  end
  return best
end

--- In the order of the table; 'draws': whether a seed changes what is found. run(pool, evaluations, seed).
baselines.list = {
  { name = 'plan', run = ours() },
  { name = 'plan, 1F1B', run = ours { schedule = '1f1b', context = 1, zero_stage = 0 } },
  { name = 'amp', run = run_grids 'amp' },
  { name = 'even', run = run_grids 'even' },
  { name = 'proportional', run = run_grids 'proportional' },
  { name = 'batch by speed', run = batch_by_speed },
  { name = 'tapp', draws = true, run = tapp },
}

return baselines
