-- trinity fidelity published: what others published of training large language models. --rows: speeds
-- (published_speeds.lua). --memory: bytes by formula (Korthikanti et al. 2022, figures 1 and 7), beside those of the
-- strategies as they are lowered.

local csv = require 'trinity.fidelity.csv'
local json = require 'trinity.base.json'
local parallel_map = require 'trinity.parallel'
local speeds = require 'trinity.fidelity.published_speeds'
local strategies = require 'trinity.fidelity.strategies'
local text = require 'trinity.base.text'
local util = require 'trinity.base.util'

local published = {
  help = 'published speeds and memory of training large language models',
  options = {
    rows = { default = '', help = 'table of speeds, or of what is asked (CSV)' },
    memory = { default = '', help = 'table of bytes (CSV)' },
    fit = { default = false, help = 'fits the constants to the rows and prints these' },
    left_out = { default = false, help = 'fits without each network on each kind of GPU in turn, and tells that one' },
    only = { default = '', help = 'with --fit, --left_out: rows whose group has these words in its name; other '
      .. 'constants stay' },
    record = { default = '', help = 'with --left_out: the file for errors of rows' },
    save = { default = '', help = 'with --fit: the file for the constants' },
    picture = { default = '', help = 'told against published speeds (with --left_out: of networks left out), as '
      .. 'PATH.svg and PATH.png' },
  },
}

local columns = { 'id', 'hidden', 'layers', 'heads', 'sequence', 'micro_batch', 'tp', 'pp', 'vpp', 'recompute',
  'sequence_parallel', 'what', 'unit' }

--- What a row leaves open, printed with the predictions.
published.assumptions = {
  'vocabulary 51,200 where none is given; micro-batches: as few as fill the pipeline (p, with virtual stages 2 p)',
  'no biases, no table of positions, untied, dropout 0.1, unfused attention, gradients of 4 bytes and Adam of 12 bytes',
  'everything is that of the layers, as in the figures: embedding and head are left out',
}

--- A row as a case of trinity.fidelity.strategies.
local function case_of(path, row, changes)
  local function number(column, otherwise) return csv.number(path, row, column, otherwise) end
  local pipeline, chunks = number 'pp', number('vpp', 1)
  local hidden = number 'hidden'
  return { name = row.id, model = { layers = number 'layers', hidden = hidden, heads = number 'heads', ffn = 4 * hidden,
    vocabulary = number('vocab', 51200), dropout = true },
    batch = { micro_batch = number 'micro_batch', sequence = number 'sequence',
      micro_batches = chunks > 1 and 2 * pipeline or pipeline },
    strategy = util.merged({ mesh = { tensor = number 'tp', pipeline = pipeline }, virtual_stages = chunks,
      schedule = chunks > 1 and 'interleaved' or '1f1b', flash = false,
      recompute = row.recompute ~= '' and row.recompute or 'none',
      sequence_parallel = number('sequence_parallel', 0) == 1 }, changes) }
end

--- Bytes of the fullest device by kind: activations, and the states of its layers.
local function peak(path, row, changes)
  local owner = ('%s: row %d'):format(util.shortened(path), row.line)
  local found = strategies.lowered(owner, case_of(path, row, changes))
  local in_layers = strategies.layer_parameters(found)
  local states, activations = 0, 0
  for s, stage in ipairs(found:account().stages) do
    local of_layers = in_layers[s] / stage.parameters
    states = math.max(states, (stage.weight_bytes + stage.gradient_bytes + stage.optimizer_bytes) * of_layers)
    activations = math.max(activations, stage.activations.layers)
  end
  found.problem:close()
  found.problem.graph:close()
  return { activations = activations, states = states }
end

--- What rows in percent are of.
local whole = { recompute = 'none', sequence_parallel = false }

local function key_of(row, changes)
  local key = {}
  for _, column in ipairs { 'hidden', 'layers', 'heads', 'vocab', 'sequence', 'micro_batch', 'tp', 'pp', 'vpp' } do
    key[#key + 1] = row[column] or ''
  end
  local o = util.merged({ recompute = row.recompute, sequence_parallel = row.sequence_parallel == '1' }, changes)
  return ('%s %s %s'):format(table.concat(key, ' '), o.recompute, tostring(o.sequence_parallel))
end

--- peak() of rows by strategy: those that several have once, over worker processes; what a strategy is refused for is
--- said of every row that has it.
local function peaks(path, rows)
  local kept, asked = {}, {}
  local function ask(row, changes)
    local key = key_of(row, changes)
    if kept[key] == nil then
      kept[key] = false
      asked[#asked + 1] = { key = key, row = row, changes = changes }
    end
  end
  for _, row in ipairs(rows) do
    ask(row)
    if row.unit == 'percent' then ask(row, whole) end
  end
  local found = parallel_map(asked, function(one)
    return csv.attempt(peak, path, one.row, one.changes) or false
  end, { quiet = true })
  for i, one in ipairs(asked) do kept[one.key] = found[i] end
  return function(row, changes) return kept[key_of(row, changes)] or peak(path, row, changes) end
end

local function predict(path, row, peak_of)
  local what = row.what:lower()
  local kind = what:find('optimi[sz]er') and 'states' or what:find('activations', 1, true) and 'activations'
  if not kind then
    util.fail("%s: row %d: column 'what': expected activations, or weights, gradients and optimiser, got %s",
      util.shortened(path), row.line, util.describe(row.what))
  end
  local own = peak_of(row)[kind]
  if row.unit == 'GiB' then return own / 2 ^ 30 end
  if row.unit == 'percent' then
    return 100 * own / peak_of(row, whole)[kind]
  end
  util.fail("%s: row %d: column 'unit': expected GiB or percent, got %s", util.shortened(path), row.line,
    util.describe(row.unit))
end

--- Predictions of a table's rows, in its order: { row = id, predicted = in the row's unit }, or { row, refused }.
---@param path string
---@return table[]
function published.memory(path)
  local rows = csv.read(path, unpack(columns))
  local peak_of = peaks(path, rows)
  return util.map(rows, function(row)
    local predicted, why = csv.attempt(predict, path, row, peak_of)
    return { row = row.id, predicted = predicted, refused = why, published = tonumber(row.value), unit = row.unit }
  end)
end

local function print_memory(rows)
  print(text.format_table({ 'row', 'published', 'predicted', 'unit', 'off' }, util.map(rows, function(row)
    local told = row.published
    return { row.row, told and ('%.4f'):format(told) or '', ('%.4f'):format(row.predicted), row.unit,
      told and ('%+.2f %%'):format(100 * (row.predicted / told - 1)) or '' }
  end)))
  for _, line in ipairs(published.assumptions) do print('assumed: ' .. line) end
end

function published.run(options)
  if options.rows ~= '' then return speeds.run(options) end
  if options.memory == '' then
    util.fail_usage "trinity fidelity published: option '--rows' or '--memory' is missing: a table (CSV)"
  end
  local rows = published.memory(options.memory)
  local told = csv.accepted(rows)
  if not options.json then return print_memory(told) end
  print(require('trinity.files.json').encode { rows = json.list(util.map(rows, function(row)
    return { row = row.row, predicted = row.predicted, refused = row.refused }
  end)) })
end

published.constants = speeds.constants

return published
