-- Comparison vtrain: training runs of GPT on 64 to 512 A100 that the authors of vTrain measured (Bang et al., "vTrain",
-- MICRO 2024; github VIA-Research/vTrain, data/).

local case = require 'studies.fidelity.case'
local csv = require 'studies.rows'
local fitted = require 'studies.fidelity.fitted'
local topology = require 'trinity.cluster.topology'
local util = require 'trinity.base.util'

local vtrain = {
  name = 'vtrain',
  quantity = 'seconds of a step',
  json = { predicted = 'predicted_s', refused = 'refused' },
  ranked = true,
  help = 'training runs of GPT on A100',
  shared = { rows = 'vtrain/multi.csv' },
  takes = 'rows cluster',
}

-- Columns of whole numbers, and the maximum of each.
local columns = { gpus = { '# GPUs', 4096 }, batch = { 'global batch', 2 ^ 20 }, micro_batch = { 'micro batch', 4096 },
  hidden = { 'hidden size', 2 ^ 17 }, heads = { 'attention heads', 4096 }, layers = { '# layers', 1024 },
  sequence = { 'sequence length', 2 ^ 17 }, tensor = { 'tensor parallelism', 4096 },
  data = { 'data parallelism', 4096 }, pipeline = { 'pipeline parallelism', 1024 } }
local time_column, a_node, kind = 'iteration time (ms)', 8, 'a100_80gb'

local function read_row(path, line, number)
  local row = { place = csv.place(path, line), id = tostring(number) }
  local function expect(...) csv.expect(path, line, ...) end
  for name, column in util.sorted_pairs(columns) do
    local value = csv.number(path, line, column[1], name == 'micro_batch' and 1 or nil)
    expect(value >= 1 and value % 1 == 0 and value <= column[2],
      "column '%s': expected a whole number from 1 to %d, got %s", column[1], column[2], line[column[1]])
    row[name] = value
  end
  expect(row.tensor * row.data * row.pipeline == row.gpus,
    'tensor x data x pipeline parallelism: expected %d GPUs, got %d x %d x %d', row.gpus, row.tensor, row.data,
    row.pipeline)
  local share = row.data * row.micro_batch
  expect(row.batch % share == 0, "column 'global batch': expected a multiple of %d (data x micro batch), got %d", share,
    row.batch)
  expect(row.pipeline <= row.layers, "column 'pipeline parallelism': expected at most %d (layers), got %d", row.layers,
    row.pipeline)
  local time_ms = csv.number(path, line, time_column, 0)
  expect(time_ms >= 0, "column '%s': expected more than 0, got %s", time_column, line[time_column])
  row.measured = time_ms > 0 and time_ms / 1000 or nil
  row.recompute = csv.word(path, line, 'recompute', { 'none', 'selective', 'full' }, 'full')
  return row
end

vtrain.priors = fitted.priors 'vtrain' -- of its cluster alone: its source explains neither

local function measured_cluster(gpus, values)
  values = values or require('trinity.cluster.calibrated').sources.vtrain.cluster
  local net = topology.new { name = ('%d A100'):format(gpus), queue = 'pair' }
  local hdr = topology.wire 'infiniband_hdr'
  net:machines(gpus / a_node, function(name)
    local members = net:devices(name, a_node, kind)
    net:link(members, name .. '/nvswitch', 'nvswitch3', 12)
    local function card(i) return ('%s/nic%d'):format(name, math.floor((i - 1) / 2)) end
    for i, member in ipairs(members) do net:link(member, card(i), 'pcie4_x16') end
    for i = 1, a_node, 2 do
      net:link(card(i), 'infiniband', util.merged(hdr, {
        bandwidth_bytes_per_s = values.network_share * hdr.bandwidth_bytes_per_s }))
    end
  end)
  net:collectives { shared_bandwidth = values.shared_bandwidth }
  return net:spec()
end

--- The function that describes the user's cluster; nil for vTrain's.
local function describer(path)
  if path == '' then return nil end
  local chunk, why = util.load_file(path)
  local describe = (chunk or util.fail('%s', why))()
  return type(describe) == 'function' and describe or util.fail('%s: expected a function from a number of GPUs to a '
    .. 'description, got %s', util.shortened(path), util.describe(describe))
end

--- Whether Megatron-LM's kernel of the softmax takes what a device has of a row (fused_softmax.py,
--- is_kernel_available).
local function has_softmax(row)
  return row.sequence > 16 and row.sequence <= 2048 and row.micro_batch * row.heads / row.tensor % 4 == 0
end

local function case_of(row, cluster)
  return { model = 'gpt2', model_options = { layers = row.layers, hidden = row.hidden, heads = row.heads,
      sequence = row.sequence, positions = row.sequence, batch_size = row.micro_batch, vocabulary = 51200, tied = true,
      fused = false, fused_softmax = has_softmax(row), kernels = 'megatron', dtype = 'float16',
      gradient_dtype = 'float16', optimizer = 'adam' }, runtime = 'megatron-2021', cluster = cluster,
    strategy = { mesh = { tensor = row.tensor, data = row.data, pipeline = row.pipeline },
      order = { 'tensor', 'pipeline', 'data' }, schedule = '1f1b',
      micro_batches = row.batch / row.data / row.micro_batch, stages = case.stages(row.layers, row.pipeline),
      recompute = row.recompute, zero_stage = 0, scatter_gather = true } }
end

--- The rows of a file, for runs.lua; one that is refused is { id, refused }, with the sentence.
function vtrain.read(options)
  local own = describer(options.cluster)
  local needed = util.map(util.sorted_keys(columns), function(name) return columns[name][1] end)
  return csv.attempted(csv.read(options.rows, unpack(needed)), function(line, i)
    local row = read_row(options.rows, line, i)
    csv.expect(options.rows, line, own or row.gpus % a_node == 0,
      "column '# GPUs': expected whole machines of 8, got %d", row.gpus)
    local network = ('hidden %d, %d layers'):format(row.hidden, row.layers)
    local one = case_of(row, (own or measured_cluster)(row.gpus))
    local ranked = ('%d GPUs, batch %d, %s'):format(row.gpus, row.batch, network)
    return util.merged(row, { case = one, title = ('row %s of vTrain'):format(row.id), left_out = network,
      ranked = ranked, served = ranked:gsub('%W+', '_'), network_name = network, network = { experts = 0 },
      group = network, gpus_text = ('%d A100'):format(row.gpus),
      plan_text = ('t%d p%d d%d b%d'):format(row.tensor, row.pipeline, row.data, row.micro_batch),
      kind = (one.cluster.devices[1] or one.cluster.machines[1].devices[1]).type, runtimes = case.runtimes(one),
      family = not own and 'cluster' or nil })
  end)
end

function vtrain.prediction(row, values)
  local one = row.case
  if values and row.family then
    one = util.merged(one, { cluster = measured_cluster(row.gpus, values.sources.vtrain.cluster) })
  end
  local found = case.evaluate(one, values)
  return { predicted = found.step_time_s, recompute = found.recompute }
end

return vtrain
