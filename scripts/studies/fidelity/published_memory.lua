-- Comparison published, --memory: bytes by formula (Korthikanti et al. 2022, figures 1 and 7) and bytes of the
-- strategies as they are lowered.

local case = require 'studies.fidelity.case'
local csv = require 'trinity.base.csv'
local strategies = require 'studies.fidelity.strategies'
local util = require 'trinity.base.util'

local memory = { name = 'memory', quantity = 'GiB, or percent of the same without recomputation',
  json = { id = 'row', predicted = 'predicted', refused = 'refused' } }

memory.assumptions = {
  'where a cell is empty: vocabulary 51,200, micro-batch, tensor and pipeline parallelism 1, no recomputation, no '
    .. 'sequence parallelism',
  'micro-batches: as few as fill the pipeline (p, with virtual stages 2 p)',
  'no biases, no table of positions, untied, dropout 0.1, unfused attention, gradients of 4 bytes and Adam of 12 bytes',
  'layers that do not divide: embedding and head count as one layer each, stages are as equal as they can be',
  'only the layers count, as in the figures: embedding and head are left out',
}

--- The case of a row (see strategies.lua), and whose bytes it states.
local function read_row(path, row)
  local function whole(column, otherwise) return csv.whole(path, row, column, otherwise) end
  local function word(column, known, otherwise) return csv.word(path, row, column, known, otherwise) end
  local what = row.what:lower()
  local kind = what:find('optimi[sz]er') and 'states' or what:find('activations', 1, true) and 'activations'
  if not kind then
    csv.refuse(path, row, "column 'what': expected activations, or weights, gradients and optimiser, got %s",
      util.describe(row.what))
  end
  local pipeline, chunks, hidden, layers = whole('pp', 1), whole('vpp', 1), whole 'hidden', whole 'layers'
  if pipeline * chunks > layers then
    csv.refuse(path, row, "column 'pp': expected at most %d stages (layers), got %d x %d (vpp)", layers, pipeline,
      chunks)
  end
  local asked = { name = '', model = { layers = layers, hidden = hidden, heads = whole 'heads', ffn = 4 * hidden,
    vocabulary = whole('vocab', 51200), dropout = true },
    batch = { micro_batch = whole('micro_batch', 1), sequence = whole 'sequence',
      micro_batches = chunks > 1 and 2 * pipeline or pipeline },
    strategy = { mesh = { tensor = whole('tp', 1), pipeline = pipeline }, virtual_stages = chunks,
      schedule = chunks > 1 and 'interleaved' or '1f1b', flash = false,
      stages = case.stages(layers, pipeline * chunks),
      recompute = word('recompute', { 'none', 'selective', 'full' }, 'none'),
      sequence_parallel = word('sequence_parallel', { '0', '1' }, '0') == '1' } }
  return { id = row.id, line = row.line, path = path, runtimes = {}, kind_of_bytes = kind, case = asked,
    measured = (row.value or '') ~= '' and csv.number(path, row, 'value') or nil,
    group = word('unit', { 'GiB', 'percent' }), network_name = row.model or ('hidden %d, %d layers'):format(hidden,
      layers), plan_text = ('t%d p%dx%d b%d'):format(asked.strategy.mesh.tensor, pipeline, chunks,
      asked.batch.micro_batch) }
end

function memory.read(options)
  local rows = csv.read(options.memory, 'id', 'hidden', 'layers', 'heads', 'sequence', 'what', 'unit')
  return csv.attempted(rows, function(row) return read_row(options.memory, row) end)
end

--- Bytes of the fullest device: activations, or the states of its layers.
local function bytes_of(asked, kind)
  local found = strategies.lowered('strategy', asked)
  local in_layers = strategies.weights(found.problem, found, function(low, op) return low.part[op] == 2 end)
  local most = 0
  for s, stage in ipairs(found:breakdown().stages) do
    local states = stage.weight_bytes + stage.gradient_bytes + stage.optimizer_bytes
    most = math.max(most, kind == 'states' and states * (in_layers[s] / stage.parameters) or stage.activations.layers)
  end
  found.problem:close()
  found.problem.graph:close()
  return most
end

function memory.prediction(row)
  local bytes = bytes_of(row.case, row.kind_of_bytes)
  if row.group == 'GiB' then return { predicted = bytes / 2 ^ 30 } end
  local plain = util.merged(row.case.strategy, { recompute = 'none', sequence_parallel = false })
  return { predicted = 100 * bytes / bytes_of(util.merged(row.case, { strategy = plain }), row.kind_of_bytes) }
end

return memory
