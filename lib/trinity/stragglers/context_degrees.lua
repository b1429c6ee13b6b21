-- trinity.stragglers.context_degrees: compares context-parallel degrees for sequences of unequal length, one for all
-- micro-batches and one per micro-batch.

local check = require 'trinity.base.check'
local contexts = require 'trinity.stragglers.contexts'
local parallelism = require 'trinity.strategy.parallelism'
local printed = require 'trinity.base.printed'
local run = require 'trinity.stragglers.run'
local util = require 'trinity.base.util'

local owner = 'trinity.stragglers.context_degrees'

---@class trinity.ContextDegree
---@field what string 'context 4', or 'one per micro-batch'
---@field mesh trinity.Mesh
---@field micro_batches integer
---@field mean_s number step time, mean over the samples
---@field p50_s number median
---@field p95_s number 95th percentile
---@field error_s number standard error of the mean
---@field degrees table<integer, number> fraction of micro-batches by degree

local row_of = printed.as('context degree', { 'what', 'mean_s', 'p50_s', 'p95_s' })

--- Predicts the step with sampled sequences (option `lengths`) for every divisor of the strategy's context-parallel
--- degree, where a smaller degree means more replicas with fewer micro-batches each, and for the best degree of every
--- micro-batch within the strategy's groups. Returns what fits into memory, shortest mean first. Raises an error
--- without a mesh or lengths. Example:
--- `trinity.stragglers.context_degrees(strategy, { lengths = 'lengths.csv' })[1].what`
---@param strategy trinity.Strategy
---@param options trinity.StragglerOptions
---@return trinity.ContextDegree[]
return function(strategy, options)
  check.object(owner, 1, 'strategy', strategy, 'strategy')
  if not strategy.mesh then check.refuse(owner, 1, 'strategy', 'expected a strategy with a mesh, got a placement') end
  if not check.argument(owner, 2, 'options', options, 'table').lengths then
    check.refuse(owner, 'option', 'lengths', 'expected a histogram or a function, got none')
  end
  local plan, rows = parallelism.fields(owner, strategy, strategy.problem.graph), {}
  local function add(what, found, context)
    local sampled = run(found, util.merged(options, { context = context, remedies = false }))
    rows[#rows + 1] = row_of(util.merged({ what = what, mesh = found.mesh, micro_batches = found.micro_batches or 1 },
      util.picked(sampled, { 'mean_s', 'p50_s', 'p95_s', 'error_s', 'degrees' })))
  end
  local whole = strategy.mesh.context or 1
  for _, degree in ipairs(contexts.degrees(strategy)) do
    local micro_batches = (strategy.micro_batches or 1) * degree / whole
    if micro_batches % 1 == 0 then
      local found = degree == whole and strategy or strategy.problem:strategy(util.merged(plan, {
        mesh = util.merged(plan.mesh, { context = degree, data = (plan.mesh.data or 1) * whole / degree }),
        micro_batches = micro_batches }))
      if found.metrics.feasible then add(('context %d'):format(degree), found, 'fixed') end
    end
  end
  if whole > 1 then add('one per micro-batch', strategy, 'per_micro_batch') end
  table.sort(rows, function(a, b)
    if a.mean_s ~= b.mean_s then return a.mean_s < b.mean_s end
    return a.what < b.what
  end)
  return rows
end
