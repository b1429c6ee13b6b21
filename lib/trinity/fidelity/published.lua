-- trinity fidelity published: what others published of training large language models. --rows: speeds
-- (published_row.lua reads them). --memory: bytes by formula (Korthikanti et al. 2022, figures 1 and 7), compared with
-- those of the strategies as they are lowered.

local measured_case = require 'trinity.fidelity.case'
local constants = require 'trinity.cluster.constants'
local csv = require 'trinity.base.csv'
local json = require 'trinity.base.json'
local parallel_map = require 'trinity.parallel'
local picture = require 'trinity.fidelity.picture'
local published_row = require 'trinity.fidelity.published_row'
local runs = require 'trinity.fidelity.runs'
local strategies = require 'trinity.fidelity.strategies'
local text = require 'trinity.base.text'
local util = require 'trinity.base.util'

local published = {
  name = 'published',
  quantity = 'tokens per second and GPU',
  decades = true,
  help = 'published speeds and memory of training large language models',
  options = {
    rows = { default = '', help = 'table of speeds, or of what is asked (CSV)' },
    memory = { default = '', help = 'table of bytes (CSV)' },
  },
}

local columns = { 'id', 'hidden', 'layers', 'heads', 'sequence', 'what', 'unit' }

--- What a row leaves open, printed with the predictions.
published.assumptions = {
  'where a cell is empty: vocabulary 51,200, micro-batch, tensor and pipeline parallelism 1, no recomputation, no '
    .. 'sequence parallelism',
  'micro-batches: as few as fill the pipeline (p, with virtual stages 2 p)',
  'no biases, no table of positions, untied, dropout 0.1, unfused attention, gradients of 4 bytes and Adam of 12 bytes',
  'layers that do not divide: embedding and head count as one layer each, stages are as equal as they can be',
  'everything is that of the layers, as in the figures: embedding and head are left out',
}

--- What a row asks for: { row = id, line, kind, unit, published, case of trinity.fidelity.strategies }.
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
  local case = { name = '', model = { layers = layers, hidden = hidden, heads = whole 'heads', ffn = 4 * hidden,
    vocabulary = whole('vocab', 51200), dropout = true },
    batch = { micro_batch = whole('micro_batch', 1), sequence = whole 'sequence',
      micro_batches = chunks > 1 and 2 * pipeline or pipeline },
    strategy = { mesh = { tensor = whole('tp', 1), pipeline = pipeline }, virtual_stages = chunks,
      schedule = chunks > 1 and 'interleaved' or '1f1b', flash = false,
      stages = measured_case.stages(layers, pipeline * chunks),
      recompute = word('recompute', { 'none', 'selective', 'full' }, 'none'),
      sequence_parallel = word('sequence_parallel', { '0', '1' }, '0') == '1' } }
  return { row = row.id, line = row.line, kind = kind, unit = word('unit', { 'GiB', 'percent' }),
    published = (row.value or '') ~= '' and csv.number(path, row, 'value') or nil, case = case }
end

--- The case that a row in percent relates to.
local function base_of(asked)
  if asked.unit ~= 'percent' then return nil end
  return util.merged(asked.case, { strategy = util.merged(asked.case.strategy, { recompute = 'none',
    sequence_parallel = false }) })
end

--- Bytes of the fullest device by kind: activations, and the states of its layers.
local function peak(case)
  local found = strategies.lowered('strategy', case)
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

--- peak() of the cases of rows, those that several have once, over worker processes; or { refused }.
local function peaks(all)
  local cases, at = {}, {}
  for _, asked in ipairs(all) do
    for _, case in ipairs { asked.case, asked.case and base_of(asked) } do
      local key = json.encode(case)
      if not at[key] then
        cases[#cases + 1] = case
        at[key] = #cases
      end
    end
  end
  local prediction = parallel_map(cases, function(case)
    local found, why = csv.attempt(peak, case)
    return found or { refused = why }
  end, { quiet = true })
  return function(case) return prediction[at[json.encode(case)]] end
end

--- What a row comes to in its unit, or nil and why it is refused.
local function predict(path, asked, peak_of)
  local own, base = peak_of(asked.case), base_of(asked)
  local refused = own.refused or base and peak_of(base).refused
  if refused then
    return nil, ('%s: %s'):format(csv.place(path, asked), (refused:gsub('^problem:strategy: ', '')))
  end
  return base and 100 * own[asked.kind] / peak_of(base)[asked.kind] or own[asked.kind] / 2 ^ 30
end

--- Predictions of a table's rows, in its order: { row = id, predicted = in the row's unit }, or { row, refused }.
---@param path string
---@return table[]
function published.memory(path)
  local all = util.map(csv.read(path, unpack(columns)), function(row)
    local asked, why = csv.attempt(read_row, path, row)
    return asked or { row = row.id, refused = why }
  end)
  local peak_of = peaks(all)
  return util.map(all, function(asked)
    if not asked.case then return asked end
    local predicted, why = predict(path, asked, peak_of)
    return { row = asked.row, predicted = predicted, refused = why, published = asked.published, unit = asked.unit }
  end)
end

local function print_memory(rows)
  print(text.format_table({ 'row', 'published', 'predicted', 'unit', 'off' }, util.map(rows, function(row)
    local prediction = row.published
    return { row.row, prediction and ('%.4f'):format(prediction) or '', ('%.4f'):format(row.predicted), row.unit,
      prediction and ('%+.2f %%'):format(100 * (row.predicted / prediction - 1)) or '' }
  end)))
  for _, line in ipairs(published.assumptions) do print('assumed: ' .. line) end
end

local function draw(path, rows)
  picture.draw(path, util.map(rows, function(row)
    return { group = row.unit, measured = row.published, predicted = row.predicted }
  end), 'bytes')
end

--- Rows of one configuration, which differ in their measurements alone.
local function key(row)
  row.configuration = row.configuration or json.encode { row.case, row.tokens }
  return row.configuration
end

--- Rows of --rows, for runs.lua.
function published.read(options, keep)
  local rows = published_row.all(options.rows, keep)
  for _, row in ipairs(rows) do row.key = key end
  return rows
end

--- A mixture's case with one group of replicas, which have all experts once: the others do the same beside it, and what
--- gradients take over more of them is some tenths of a percent.
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
  local found = measured_case.evaluate(one, values, short)
  return { predicted = row.tokens * share / (found.step_time_s * row.gpus * share), memory_bytes = found.memory_bytes,
    step_time_s = found.step_time_s, recompute = found.recompute, basis = found.basis }
end

function published.json(rows)
  return { rows = util.map(rows, function(row)
    if row.refused then return { row = row.id, refused = row.refused } end
    return { row = row.id, predicted_tokens_per_s_per_gpu = row.prediction.predicted,
      predicted_memory_bytes = row.prediction.memory_bytes, constants = row.prediction.basis.name,
      runtime = row.prediction.basis.runtime }
  end) }
end

function published.script(row)
  return measured_case.script(row.case, measured_case.evaluate(row.case),
    ('row %s: %s'):format(row.id, row.network_name))
end

local of_mixtures = { routing = true, expert_dispatch_s = true, layer_dispatch_s = true, routing_speed = true }
local function is_mixture(row) return row.network.experts > 0 end

--- Priors of runtimes' fields.
local function share(start, least, most, spread)
  return { start = start, least = least, most = most, spread = spread }
end
local of_runtimes = { compute_share = share(0.9, 0.5, 1.2, 0.15), attention_share = share(0.8, 0.2, 1.5, 0.3),
  hopper_attention_share = share(0.6, 0.2, 1, 0.3), launch_share = share(2.5, 0.5, 100, 0.7),
  memory_share = share(0.6, 0.2, 1.2, 0.3), network_share = share(0.12, 0.03, 0.5, 0.3),
  inside_share = share(0.5, 0.2, 2, 0.5), async_share = share(1.4, 1, 4, 0.3), routing_speed = share(2, 1, 4, 0.3),
  rowwise_cast_share = share(0.05, 0.015, 0.1, 0.3) }

--- What a fit may change: constants of kinds that rows are of, fields of their runtimes.
function published.parameters(rows)
  local kept, found, kinds, names = require 'trinity.cluster.calibrated', {}, {}, {}
  for _, row in ipairs(rows) do
    if row.kind then kinds[(kept.kinds[row.kind] or {}).like or row.kind] = true end
    for _, name in ipairs(row.runtimes) do names[name] = true end
  end
  local function add(one)
    found[#found + 1] = util.merged(one, { serves = of_mixtures[one.name] and is_mixture or nil })
  end
  for kind in util.sorted_pairs(kinds) do
    for name in util.sorted_pairs((kept.kinds[kind] or {}).values or {}) do
      add(util.merged(constants.by_name[name], { id = ('%s.%s'):format(kind, name), kind = kind,
        start = (constants.priors[kind] or {})[name] }))
    end
  end
  for name in util.sorted_pairs(names) do
    for field in util.sorted_pairs(kept.runtimes[name] or {}) do
      add(util.merged(of_runtimes[field], { id = ('%s.%s'):format(name, field), name = field, runtime = name }))
    end
  end
  local sources = {}
  for _, row in ipairs(rows) do
    if row.family and row.source then sources[row.source.name] = row.source end
  end
  for name, source in util.sorted_pairs(sources) do
    for family, values in util.sorted_pairs(kept.sources[name]) do
      for field in util.sorted_pairs(values) do
        add(util.merged(source.priors[field], { id = ('%s.%s'):format(family, field), name = field, source = name,
          of = family }))
      end
    end
  end
  return found
end

function published.run(options)
  if options.rows ~= '' then return runs.run(published, options) end
  if options.memory == '' then
    util.fail_usage "trinity fidelity published: option '--rows' or '--memory' is missing: a table (CSV)"
  end
  local rows = published.memory(options.memory)
  local function print_json()
    print(require('trinity.files.json').encode { rows = util.map(rows, function(row)
      return { row = row.row, predicted = row.predicted, refused = row.refused }
    end) })
  end
  local prediction = csv.accepted(rows, options.json and print_json or nil)
  if options.json then return print_json() end
  print_memory(prediction)
  if options.picture ~= '' then draw(options.picture, prediction) end
end

return published
