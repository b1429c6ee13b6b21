-- Rows of vTrain's tables (Bang et al., "vTrain", MICRO 2024; github VIA-Research/vTrain, data/): the network, cluster
-- and strategy that each says, and the time that evaluating the strategy gives.

local calibration = require 'trinity.cluster.calibration'
local csv = require 'trinity.fidelity.csv'
local model = require 'trinity.graph.model'
local problems = require 'trinity.strategy.problem'
local topology = require 'trinity.cluster.topology'
local util = require 'trinity.base.util'

local rows = {}

--- What rows leave open, printed with the predictions.
rows.assumptions = {
  'the network is GPT-2 as Megatron-LM runs it: fp16 weights and gradients, Adam with fp32 states, biases, learned '
    .. 'positions, dropout 0.1, unfused attention, vocabulary 51,200, output tied to the embedding; its kernel of '
    .. 'scale, mask and softmax takes heads times micro-batch of a device where they are a multiple of 4, else they '
    .. 'are several',
  '1F1B, gradients in one all-reduce behind the last backward pass, no ZeRO; stages send each other parts that are '
    .. 'gathered there; ranks in the order tensor, pipeline, data',
  'more than 8 GPUs: layers are computed again before their backward pass (use_checkpoint of the configuration); '
    .. 'machines of 8 A100 80 GB behind NVSwitches with a network card of 200 Gbit/s for every two (800 in all)',
  'up to 8 GPUs: one machine, vocabulary 50,256, the output not tied, nothing computed again; a column `recompute` '
    .. '(none, selective, full) says otherwise',
  'a micro-batch of 1 where none is given',
  'layers that do not divide: embedding and head count as one layer each, stages are as equal as they can be',
  'memory is not checked: the source does not say which A100',
}

local columns = { gpus = '# GPUs', batch = 'global batch', micro_batch = 'micro batch', hidden = 'hidden size',
  heads = 'attention heads', layers = '# layers', sequence = 'sequence length', tensor = 'tensor parallelism',
  data = 'data parallelism', pipeline = 'pipeline parallelism' }
local time_column, a_node = 'iteration time (ms)', 8
local recomputed = { none = true, selective = true, full = true }

local most = { gpus = 4096, batch = 2 ^ 20, micro_batch = 4096, hidden = 2 ^ 17, heads = 4096, layers = 1024,
  sequence = 2 ^ 17, tensor = 4096, data = 4096, pipeline = 1024 }

--- That the numbers of a row agree with each other.
local function check_row(path, line, row)
  if row.tensor * row.data * row.pipeline ~= row.gpus then
    csv.refuse(path, line, 'tensor x data x pipeline parallelism: expected %d GPUs, got %d x %d x %d', row.gpus,
      row.tensor, row.data, row.pipeline)
  end
  if row.batch % (row.data * row.micro_batch) ~= 0 then
    csv.refuse(path, line, "column '%s': expected a multiple of %d (data x micro batch), got %d", columns.batch,
      row.data * row.micro_batch, row.batch)
  end
  if row.gpus > a_node and row.gpus % a_node ~= 0 then
    csv.refuse(path, line, "column '%s': expected up to 8, or whole machines of 8, got %d", columns.gpus, row.gpus)
  end
  for _, name in ipairs { 'heads', 'hidden' } do
    local parts = name == 'heads' and row.tensor or row.heads
    if row[name] % parts ~= 0 then
      csv.refuse(path, line, "column '%s': expected a multiple of %d (%s), got %d", columns[name], parts,
        name == 'heads' and 'tensor parallelism' or 'attention heads', row[name])
    end
  end
  if row.pipeline > row.layers then
    csv.refuse(path, line, "column '%s': expected at most %d (layers), got %d", columns.pipeline, row.layers,
      row.pipeline)
  end
end

--- A row, checked.
local function read_row(path, line, number)
  local row = { line = line.line, number = number }
  for name, column in util.sorted_pairs(columns) do
    local value = csv.number(path, line, column, name == 'micro_batch' and 1 or nil)
    if value < 1 or value % 1 ~= 0 or value > most[name] then
      csv.refuse(path, line, "column '%s': expected a whole number from 1 to %d, got %s", column, most[name],
        line[column])
    end
    row[name] = value
  end
  check_row(path, line, row)
  local time_ms = csv.number(path, line, time_column, 0)
  if time_ms < 0 then
    csv.refuse(path, line, "column '%s': expected more than 0, got %s", time_column, line[time_column])
  end
  row.measured_s = time_ms > 0 and time_ms / 1000 or nil
  row.model = ('hidden %d, %d layers'):format(row.hidden, row.layers)
  row.group = ('%d GPUs, batch %d, %s'):format(row.gpus, row.batch, row.model)
  row.composed = row.gpus <= a_node
  row.recompute = (line.recompute or '') ~= '' and line.recompute or row.composed and 'none' or 'full'
  if not recomputed[row.recompute] then
    csv.refuse(path, line, "column 'recompute': expected none, selective or full, got %s", util.quoted(row.recompute))
  end
  return row
end

--- The rows of a file, checked: numbers by the names above, measured_s (nil where there is none), group, and which of
--- the file's rows it is (number).
---@param path string
---@param keep? boolean a row that is refused is { refused }, with the sentence; else it is an error
---@return table[]
function rows.read(path, keep)
  local needed = {}
  for _, column in util.sorted_pairs(columns) do needed[#needed + 1] = column end
  return util.map(csv.read(path, unpack(needed)), function(line, i)
    if not keep then return read_row(path, line, i) end
    local row, why = csv.attempt(read_row, path, line, i)
    return row or { refused = why }
  end)
end

--- Layers of every stage; nil where they divide.
---@param layers integer
---@param stages integer
---@return integer[]?
function rows.stages(layers, stages)
  if layers % stages == 0 then return nil end
  local each, over, list = math.floor((layers + 2) / stages), (layers + 2) % stages, {}
  for s = 1, stages do list[s] = each - (s == 1 and 1 or 0) - (s == stages and 1 or 0) end
  for i = 1, over do
    local s = i + 1 <= stages - 1 and i + 1 or i == stages - 1 and 1 or stages -- those between first
    list[s] = list[s] + 1
  end
  return list
end

--- The strategy of a row.
function rows.plan(row)
  return { mesh = { tensor = row.tensor, data = row.data, pipeline = row.pipeline },
    order = { 'tensor', 'pipeline', 'data' }, schedule = '1f1b', micro_batches = row.batch / row.data / row.micro_batch,
    stages = rows.stages(row.layers, row.pipeline), recompute = row.recompute, shard = 0,
    scatter_gather = true, bucket_bytes = 2 ^ 50 }
end

--- Whether Megatron-LM's kernel of the softmax takes what a device has of a row (fused_softmax.py,
--- is_kernel_available).
local function has_softmax(row)
  return row.sequence > 16 and row.sequence <= 2048 and row.micro_batch * row.heads / row.tensor % 4 == 0
end

--- The network of a row, of one micro-batch. (vTrain profiles GPT-2's 50,257 tokens over the tensor degree, rounded
--- down, and an output with weights of its own: src/model/gpt_modeling.py.)
function rows.graph(row)
  return model.load('gpt2', { layers = row.layers, hidden = row.hidden, heads = row.heads, sequence = row.sequence,
    positions = row.sequence, batch_size = row.micro_batch, vocabulary = row.composed and 50256 or 51200,
    tied = not row.composed, fused = false, fused_softmax = has_softmax(row), kernels = 'megatron', dtype = 'float16',
    gradient_dtype = 'float16', optimizer = 'adam' })
end

--- The description of a cluster of so many GPUs, by data sheets alone.
---@param gpus integer
---@return trinity.ClusterSpec
function rows.cluster_spec(gpus)
  local net = topology.new { name = ('%d A100'):format(gpus), queue = 'route' }
  net:device_type('a100', util.merged(require('trinity.cluster.devices').a100_80gb, { memory_bytes = 2 ^ 42 }))
  net:machines(math.max(1, gpus / a_node), function(name)
    local members = net:devices(name, math.min(gpus, a_node), 'a100')
    net:link(members, name .. '/nvswitch', 'nvswitch3', 12)
    if gpus <= a_node then return end
    for i, member in ipairs(members) do
      net:link(member, ('%s/nic%d'):format(name, math.floor((i - 1) / 2)), 'pcie4_x16')
    end
    for card = 0, 3 do net:link(('%s/nic%d'):format(name, card), 'infiniband', 'infiniband_hdr') end
  end)
  net:collectives()
  return net:spec()
end

--- What is told of rows: a function of them and of values of constants that returns seconds, in their order. Networks
--- are kept with what strategies lower to, so that other values cost less, where `keep` is true. describe: the
--- description of a cluster of so many GPUs, by default vTrain's.
---@param keep? boolean
---@param describe? fun(gpus: integer): trinity.ClusterSpec
---@return fun(list: table[], values: table<string, number>): number[]
function rows.teller(keep, describe)
  describe = describe or rows.cluster_spec
  local graphs, kept = {}, {}
  return function(list, values)
    local told, clusters, order, members = {}, {}, {}, {}
    for i, row in ipairs(list) do
      local key = ('%d %d %d %d %d %d %s'):format(row.gpus, row.hidden, row.layers, row.heads, row.sequence,
        row.micro_batch, tostring(has_softmax(row)))
      if not members[key] then
        members[key] = {}
        order[#order + 1] = key
      end
      table.insert(members[key], i)
    end
    for _, key in ipairs(order) do
      local first = list[members[key][1]]
      if not clusters[first.gpus] then
        clusters[first.gpus] = model.cluster(calibration.apply(describe(first.gpus), values))
      end
      local graph = graphs[key] or rows.graph(first)
      local problem = problems.simulator { graph = graph, cluster = clusters[first.gpus] }
      local metrics = problem:evaluate_batch(util.map(members[key], function(i) return rows.plan(list[i]) end))
      for k, i in ipairs(members[key]) do told[i] = metrics[k].step_time_s end
      if kept[key] then kept[key]:close() end -- only now: problems of one graph share what they lower to
      if keep then
        graphs[key], kept[key] = graph, problem
      else
        problem:close()
        graph:close()
      end
    end
    return told
  end
end

return rows
