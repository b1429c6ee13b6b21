-- The plan that `trinity plan` names among those that were measured, in each group of vTrain's rows of equal GPUs,
-- batch and network (vtrain.lua): the space of a search are the group's rows, what else their runs did is laid over
-- every point.

local case = require 'studies.fidelity.case'
local csv = require 'trinity.base.csv'
local fit = require 'studies.fidelity.fit'
local model = require 'trinity.graph.model'
local plan = require 'trinity.plan'
local util = require 'trinity.base.util'
local vtrain = require 'studies.fidelity.vtrain'

local measured = {}

local dimensions = { 'micro_batch', 'tensor', 'pipeline', 'data' }

--- Rows that agree with what a point says of the dimensions.
local function rows_at(list, point)
  local found = {}
  for _, row in ipairs(list) do
    local agrees = true
    for _, name in ipairs(dimensions) do agrees = agrees and (point[name] == nil or point[name] == row[name]) end
    if agrees then found[#found + 1] = row end
  end
  return found
end

local function space_of(list)
  local first = list[1]
  local space = { context = 1, expert = 1, sequence_parallel = false, recompute = first.recompute, schedule = '1f1b',
    virtual_stages = 1, zero_stage = 0, megatron_runs = true,
    stages = function(point) return { first.layers % point.pipeline == 0 and 'even' or 'balanced' } end }
  for _, name in ipairs(dimensions) do
    space[name] = function(point)
      return util.sorted_keys(util.set(util.map(rows_at(list, point), function(row) return row[name] end)))
    end
  end
  space.micro_batch = space.micro_batch {}
  return space
end

--- The plan that the search finds for a group, and the measured rows.
local function choose(list)
  local first = list[1]
  plan.dimension('megatron_runs', { values = { true }, apply = function(strategy, _, point)
    local ran = first.case.strategy
    return util.merged(strategy, { order = ran.order, stages = case.stages(first.layers, point.pipeline),
      scatter_gather = ran.scatter_gather })
  end })
  local found = plan { graph = function(b) -- one for all tensor degrees, with the softmax of the least
      return model.load('gpt2', util.merged(first.case.model_options, { batch_size = b,
        fused_softmax = vtrain.has_softmax(util.merged(first, { micro_batch = b, tensor = 1 })) }))
    end,
    cluster = model.cluster(first.case.cluster, { runtime = first.case.runtime }), global_batch = first.batch,
    space = space_of(list), plans = 1, simulations = #list, quiet = true }
  local best = found.plans[1]
  local named = rows_at(list, best)[1]
  local fastest_s = math.min(unpack(util.map(list, function(row) return row.measured end)))
  return util.merged(util.picked(best, dimensions), { group = first.ranked, rows = #list,
    predicted_s = best.step_time_s, measured_s = named.measured, fastest_s = fastest_s,
    slower = named.measured / fastest_s - 1, simulated = found.counts.simulated })
end

--- Every group of a table with at least `least` measured rows; after Ctrl-C the groups before it.
function measured.groups(path, least)
  local rows, groups = {}, {}
  for _, row in ipairs(csv.accepted(vtrain.read { rows = path, cluster = '' })) do
    if row.measured then rows[#rows + 1] = row end
  end
  for _, group in ipairs(util.grouped(rows, function(row) return row.ranked .. ' ' .. row.recompute end)) do
    if #group >= least then groups[#groups + 1] = group end
  end
  return (fit.each(groups, 'groups', choose))
end

return measured
