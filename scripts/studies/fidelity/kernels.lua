-- trinity study fidelity kernels: matmuls that AIConfigurator measured one by one (github ai-dynamo/aiconfigurator),
-- as graphs of that operator on one GPU, with the copy of its input to FP8, and exchanges between experts (DeepEP, a
-- pass of normal mode), as messages of dispatcher 'deepep'. Nothing is fitted to these rows but how fast DeepEP copies:
-- kernels run one at a time, at clocks that a GPU does not hold in training.

local csv = require 'trinity.base.csv'
local dispatcher = require 'trinity.stragglers.dispatcher'
local errors = require 'studies.fidelity.errors'
local json = require 'trinity.base.json'
local layers = require 'trinity.graph.layers'
local model = require 'trinity.graph.model'
local nodes = require 'trinity.cluster.nodes'
local problems = require 'trinity.strategy.problem'
local statistics = require 'studies.statistics'
local text = require 'trinity.base.text'
local util = require 'trinity.base.util'

local kernels = {
  help = "AIConfigurator's measured matmuls and expert all-to-alls",
  shared = { rows = 'aiconfigurator/gemm.csv.gz', exchanges = 'aiconfigurator/all_to_all.csv' },
  takes = 'rows exchanges every',
}

-- Kind of GPU and machine of a system; how many times slower its network adapters are than the machine's:
-- AIConfigurator states 25 GB/s per GPU for its H100 nodes (src/aiconfigurator/systems/h100_sxm.yaml, inter_node_bw),
-- half of a DGX H100's.
local systems = { a100_sxm = { 'a100_80gb', 'dgx_a100_80gb' }, h100_sxm = { 'h100', 'dgx_h100', slow = 2 },
  h200_sxm = { 'h200', 'dgx_h200' }, b200_sxm = { 'b200', 'dgx_b200' }, b300_sxm = { 'b300', 'dgx_b300' },
  gb200 = { 'gb200', 'gb200_nvl72' }, gb300 = { 'gb300', 'gb300_nvl72' }, l40s = { 'l40s' } }
local dtypes = { bfloat16 = 'bfloat16', fp8 = 'float8' }
local classes = { { 1e10, 'below 10 GFLOP' }, { 1e11, '10 to 100 GFLOP' }, { 1e12, '0.1 to 1 TFLOP' },
  { math.huge, 'above 1 TFLOP' } }

--- Rows { group, class, order (of the class), predicted, measured } of matmuls of one system and dtype, by one graph of
--- them all.
local function matmuls_of(path, same, kind, dtype)
  local net = layers.new('kernels', { dtype = dtype })
  local rows = util.map(same, function(row, i)
    local function whole(column) return csv.whole(path, row, column) end
    local m, n, k = whole 'm', whole 'n', whole 'k'
    net:linear('row' .. i, net:operand('operand' .. i, net:input('x' .. i, { m, k })), n)
    local order = 1
    while 2 * m * n * k >= classes[order][1] do order = order + 1 end
    return { group = ('%s, %s'):format(kind, dtype), class = classes[order][2], order = order, predicted = 0,
      measured = 1e-6 * csv.number(path, row, 'time_us') }
  end)
  local graph = net:build()
  local problem = problems.simulator { graph = graph,
    cluster = model.cluster { devices = { { name = 'gpu', type = kind } } } }
  local times = problem:operator_times(1)
  for op = 1, graph.operators do
    local row = rows[tonumber(graph:operator(op).name:match '%d+$')]
    row.predicted = row.predicted + times[op]
  end
  problem:close()
  graph:close()
  return rows
end

--- Rows of matmuls, one of `every`; kind: of this kind of GPU alone.
function kernels.matmuls(path, every, kind)
  local found, read = {}, csv.read(path, 'system', 'dtype', 'm', 'n', 'k', 'time_us')
  for _, same in ipairs(util.grouped(read, function(row) return row.system .. ' ' .. row.dtype end)) do
    local system, dtype = systems[same[1].system], dtypes[same[1].dtype]
    local some = util.listed(math.ceil(#same / every), function(i) return same[(i - 1) * every + 1] end)
    if system and dtype and (not kind or system[1] == kind) then
      found = util.joined(found, matmuls_of(path, some, system[1], dtype))
    end
  end
  return found
end

--- `gpus` of a system's machines with the rate of its network adapters.
local function cluster_of(system, gpus)
  local slow = {}
  for i = 0, system.slow and gpus - 1 or -1 do slow[('n%d/nic%d'):format(i / 8, i % 8)] = system.slow end
  return model.cluster(nodes.job(system[2], gpus), { slow = next(slow) and slow or nil })
end

--- Rows of all-to-alls of the same form: every GPU's tokens go to the GPUs of their experts and back, 20 or 24
--- multiprocessors copy them. Dispatch sends FP8 with a scale of 32 bits per 128 values, whatever `dtype` states:
--- between nodes it takes half as long as combination, and 16 bits would exceed the rate of the network adapters.
local function exchanges(path)
  local found, clusters = {}, {}
  for _, row in ipairs(csv.read(path, 'system', 'mode', 'ep', 'hidden', 'tokens_per_gpu', 'top_k', 'experts', 'sms')) do
    local function whole(column) return csv.whole(path, row, column) end
    local system, ep = systems[row.system], whole 'ep'
    if system and system[2] and row.mode == 'normal' and (row.sms == '20' or row.sms == '24') then
      local key, tokens, hidden = system[2] .. ep, whole 'tokens_per_gpu', whole 'hidden'
      clusters[key] = clusters[key] or cluster_of(system, ep)
      for _, pass in ipairs { 'dispatch', 'combine' } do
        local token_bytes = pass == 'combine' and 2 * hidden or hidden + hidden / 32
        local predicted_s = dispatcher.message_s('deepep', clusters[key], util.listed(ep, function(i) return i end), {
          tokens = tokens, top_k = whole 'top_k', token_bytes = token_bytes, experts = whole 'experts',
          multiprocessors = tonumber(row.sms) })
        found[#found + 1] = { group = ('%s, %s'):format(system[1], pass), order = tokens, predicted = predicted_s,
          class = ('nodes: %d, %s tokens'):format(whole 'nodes', tokens < 1024 and 'below 1,024' or '1,024 or more'),
          measured = 1e-6 * csv.number(path, row, pass .. '_us') }
      end
    end
  end
  return found
end

local function ratio(row) return row.predicted / row.measured end

--- Errors by group and class; `form`: the mean error that is left where one factor corrects all of a group.
local function summaries(rows)
  local list = {}
  for _, group in ipairs(util.grouped(rows, function(row) return row.group end)) do
    local ratios = util.map(group, ratio)
    table.sort(ratios)
    local median = ratios[math.floor((#ratios + 1) / 2)]
    table.sort(group, util.by 'order')
    for _, same in ipairs(util.grouped(group, function(row) return row.class end)) do
      local function errors_by(factor) -- mean, signed and worst
        return statistics.summary(util.map(same, function(row) return (1 + (ratio(row) - 1)) / factor - 1 end))
      end
      list[#list + 1] = util.merged(util.picked(errors_by(1), { 'mean', 'signed', 'worst' }), { group = group.name,
        class = same.name, order = same[1].order, rows = #same, form = errors_by(median).mean })
    end
  end
  return list
end

function kernels.run(options)
  local list = summaries(kernels.matmuls(options.rows, options.every))
  table.sort(list, util.by('group', 'order'))
  list = util.joined(list, summaries(exchanges(options.exchanges)))
  if options.json then return print(json.encode { kernels = list }) end
  print(text.format_table({ '', '', 'rows', 'mean error', 'mean, signed', 'worst', 'of form' }, util.map(list,
    function(one)
      return { one.group, one.class, ('%d'):format(one.rows), errors.percent(one.mean), errors.signed(one.signed),
        errors.percent(one.worst), errors.percent(one.form) }
    end)))
  print('of form: mean error where all of a group are divided by their median ratio')
end

return kernels
