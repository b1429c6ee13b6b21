-- trinity study fidelity published: speeds that others published of training large language models (published_row.lua
-- reads them).

local case = require 'studies.fidelity.case'
local published_row = require 'studies.fidelity.published_row'

local published = {
  name = 'published',
  quantity = 'tokens per second and GPU',
  json = { id = 'row', predicted = 'predicted_tokens_per_s_per_gpu', memory_bytes = 'predicted_memory_bytes',
    constants = 'constants', runtime = 'runtime', refused = 'refused' },
  help = 'published speeds of training large language models',
  shared = { rows = 'llm-published/throughput.csv' },
  takes = 'rows',
}

function published.read(options) return published_row.all(options.rows) end

function published.prediction(row, values)
  local found = case.evaluate(row.case, values)
  return { predicted = row.tokens / (found.step_time_s * row.gpus), memory_bytes = found.memory_bytes,
    recompute = found.recompute, constants = found.basis.name, runtime = found.basis.runtime }
end

return published
