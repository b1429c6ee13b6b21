-- The plan that `trinity plan` names among those that were measured, in each group of vTrain's rows of equal GPUs,
-- batch and network (vtrain.lua): the space of a search are the group's rows, what else their runs did is laid over
-- every point.

local case = require 'trinity.fidelity.case'
local fit = require 'trinity.base.fit'
local model = require 'trinity.graph.model'
local plan = require 'trinity.plan'
local util = require 'trinity.base.util'
local vtrain = require 'trinity.fidelity.vtrain'

local measured = {}

--- Values of one field of the rows that agree with a point, ascending.
local function values_of(list, name, point)
  local seen, values = {}, {}
  for _, row in ipairs(list) do
    local agrees = true
    for _, other in ipairs { 'micro_batch', 'tensor', 'pipeline', 'data' } do
      agrees = agrees and (point[other] == nil or point[other] == row[other])
    end
    if agrees and not seen[row[name]] then
      seen[row[name]] = true
      values[#values + 1] = row[name]
    end
  end
  table.sort(values)
  return values
end

--- The space whose points are the rows.
local function space_of(list)
  local first = list[1]
  local space = { context = 1, expert = 1, sequence_parallel = false, recompute = first.recompute, schedule = '1f1b',
    virtual_stages = 1, shard = 0, bucket_bytes = 2 ^ 50, megatron_runs = true,
    stages = function(point) return { first.layers % point.pipeline == 0 and 'even' or 'balanced' } end }
  for _, name in ipairs { 'micro_batch', 'tensor', 'pipeline', 'data' } do
    space[name] = function(point) return values_of(list, name, point) end
  end
  space.micro_batch = values_of(list, 'micro_batch', {})
  return space
end

--- What the search names of a group, and the rows that were measured.
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
  local best, fastest, named = found.plans[1], math.huge, nil
  for _, row in ipairs(list) do
    fastest = math.min(fastest, row.measured)
    if row.tensor == best.tensor and row.pipeline == best.pipeline and row.data == best.data
      and row.micro_batch == best.micro_batch and not named then named = row end
  end
  return { group = first.ranked, rows = #list, tensor = best.tensor, pipeline = best.pipeline, data = best.data,
    micro_batch = best.micro_batch, predicted_s = best.step_time_s, measured_s = named.measured,
    fastest_s = fastest, slower = named.measured / fastest - 1, simulated = found.counts.simulated }
end

--- Every group of a table with so many measured rows, or those before Ctrl-C.
---@param path string
---@param least integer
---@return table[]
function measured.groups(path, least)
  local order, by = {}, {}
  for _, row in ipairs(vtrain.read { rows = path, cluster = '' }) do
    if row.measured then
      local key = row.ranked .. ' ' .. row.recompute
      if not by[key] then
        by[key] = {}
        order[#order + 1] = by[key]
      end
      table.insert(by[key], row)
    end
  end
  local groups = {}
  for _, group in ipairs(order) do if #group >= least then groups[#groups + 1] = group end end
  return (fit.each(groups, 'groups', choose))
end

return measured
