-- trinity study fidelity published: speeds that others published of training large language models (published_row.lua
-- reads them).

local case = require 'studies.fidelity.case'
local json = require 'trinity.base.json'
local published_row = require 'studies.fidelity.published_row'
local util = require 'trinity.base.util'

local published = {
  name = 'published',
  quantity = 'tokens per second and GPU',
  json = { id = 'row', predicted = 'predicted_tokens_per_s_per_gpu', memory_bytes = 'predicted_memory_bytes',
    constants = 'constants', runtime = 'runtime', refused = 'refused' },
  help = 'published speeds of training large language models',
  shared = { rows = 'llm-published/throughput.csv' },
  takes = 'rows',
}

--- Rows of --rows, for runs.lua; rows of one configuration differ in their measurements alone.
function published.read(options)
  local rows = published_row.all(options.rows)
  for _, row in ipairs(rows) do
    row.configuration = row.case and json.encode { row.case, row.tokens }
    row.title = row.case and ('row %s: %s'):format(row.id, row.network_name)
  end
  return rows
end

--- A mixture's case with one group of replicas, which have all experts once: the other groups do the same in parallel,
--- and the additional time of gradients over more of them is some tenths of a percent.
local function folded(row)
  local plan = row.plan
  if row.network.experts == 0 or plan.data <= plan.expert then return row.case, 1 end
  local share = plan.expert / plan.data
  local strategy = row.case.strategy
  strategy = util.merged(strategy, { mesh = util.merged(strategy.mesh, { data = plan.expert }) })
  return util.merged(row.case, { cluster = row.cluster_of(plan.gpus * share), strategy = strategy }), share
end

function published.prediction(row, values, short)
  local one, share = row.case, 1
  if short then one, share = folded(row) end
  local found = case.evaluate(one, values, short)
  return { predicted = row.tokens * share / (found.step_time_s * row.gpus * share), memory_bytes = found.memory_bytes,
    recompute = found.recompute, constants = found.basis.name, runtime = found.basis.runtime }
end

return published
