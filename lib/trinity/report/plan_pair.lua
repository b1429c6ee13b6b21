-- Compares two saved plans: `trinity plan --compare a.json b.json`. Each is evaluated on the problem that it was made
-- for; equal settings are omitted.

local calibrate = require 'trinity.cluster.calibrate'
local core = require 'trinity.core'
local format_table = require('trinity.base.text').format_table
local made_for = require 'trinity.strategy.made_for'
local model = require 'trinity.graph.model'
local networks = require 'trinity.plan.networks'
local simulator = require 'trinity.strategy.simulator'
local space = require 'trinity.plan.space'
local text = require 'trinity.plan.text'
local util = require 'trinity.base.util'

local plan_pair = {}

--- Returns the plan of a file on its own network, cluster and batch, in the form of a search result.
function plan_pair.read(path)
  local made = made_for.read(path)
  if not (made.model and made.cluster and made.micro_batch) then
    util.fail('%s: expected a plan with model, cluster and micro-batch, as trinity plan --output writes, got none of '
      .. 'them', path)
  end
  local nets = networks.new('trinity plan', function(micro_batch, layers)
    return model.load(made.model, util.merged(made.options, { batch_size = micro_batch, layers = layers }))
  end, model.cluster(made.cluster, made.cluster_options), made.cost)
  local problem = nets:problem(made.micro_batch)
  local found = problem:load(path)
  if not found.mesh then util.fail('%s: expected a plan with a mesh, got a placement of operators', path) end
  local point = space.point_of(found, made.micro_batch)
  local fields = space.strategy(point)
  return util.merged({ path = path, made = made, point = point, fields = fields, metrics = found.metrics,
    step_time_s = found.metrics.step_time_s, networks = nets, problem = problem,
    bounds = simulator.mesh_bounds(problem, { fields })[1],
    tokens = select(2, networks.samples(problem.graph)) }, point)
end

local function seconds(value) return ('%.4g s'):format(value) end

-- Rows that are shown if they differ, and rows that are always shown.
local facts = {
  { 'network', function(p) return p.problem.graph.name end },
  { 'cluster', function(p) return p.problem.cluster.name end },
  { 'prices', function(p) return calibrate.text(p.problem.cluster.basis) end },
  { 'global batch', function(p) return p.made.global_batch end },
  { 'tokens of a sample', function(p) return p.tokens end },
  { 'stages', function(p) return type(p.stages) == 'table' and table.concat(p.stages, ' ') or p.stages end },
}
for _, name in ipairs { 'tensor', 'context', 'expert', 'pipeline', 'data', 'micro_batch', 'micro_batches', 'schedule',
  'virtual_stages', 'recompute', 'zero_stage', 'optimizer_offload_fraction', 'activation_offload_fraction',
  'sequence_parallel', 'bucket_bytes', 'placement', 'algorithm' } do
  table.insert(facts, #facts, { (name:gsub('_', ' ')), function(p) return p[name] end })
end
local results = {
  { 'step', function(p) return seconds(p.step_time_s) end },
  { 'tokens/s', function(p) return ('%.5g'):format(p.made.global_batch * p.tokens / p.step_time_s) end },
  { 'memory', function(p) return core.format_bytes(p.metrics.peak_memory_bytes) end },
}
for _, part in ipairs(text.parts) do
  results[#results + 1] = { part[2], function(p) return seconds(p.shares[part[1]]) end }
end

--- Returns a table of two files and a sentence.
function plan_pair.text(a, b)
  local plans, rows = { plan_pair.read(a), plan_pair.read(b) }, {}
  for _, plan in ipairs(plans) do plan.shares = text.shares(plan) end
  local function add(row, always)
    local x, y = tostring(row[2](plans[1])), tostring(row[2](plans[2]))
    if always or x ~= y then rows[#rows + 1] = { row[1], x, y } end
  end
  for _, row in ipairs(facts) do add(row) end
  for _, row in ipairs(results) do add(row, true) end
  local best, other = 1, 2
  if plans[2].step_time_s < plans[1].step_time_s then best, other = 2, 1 end
  return ('%s\n%s: %s'):format(format_table({ '', a, b }, rows), plans[other].path,
    text.loses(plans[best], plans[other]))
end

return plan_pair
