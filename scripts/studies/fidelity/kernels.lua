-- trinity study fidelity kernels: matmuls that AIConfigurator measured one by one (github ai-dynamo/aiconfigurator),
-- and its exchanges between experts (DeepEP, a pass of normal mode). A matmul is a graph of that operator, with the
-- copy of its input to FP8, on one GPU with the default constants; an exchange is a message of dispatcher 'deepep' on a
-- named machine. Nothing is fitted to these rows but how fast DeepEP copies (stragglers/dispatcher.lua): kernels
-- run one at a time, at clocks that a GPU does not hold in training.

local csv = require 'trinity.base.csv'
local dispatcher = require 'trinity.stragglers.dispatcher'
local errors = require 'studies.fidelity.errors'
local json = require 'trinity.base.json'
local layers = require 'trinity.graph.layers'
local model = require 'trinity.graph.model'
local nodes = require 'trinity.cluster.nodes'
local problems = require 'trinity.strategy.problem'
local statistics = require 'trinity.base.statistics'
local text = require 'trinity.base.text'
local util = require 'trinity.base.util'

local kernels = {
  help = "AIConfigurator's measured matmuls and expert all-to-alls",
  shared = { rows = 'aiconfigurator/gemm.csv.gz', exchanges = 'aiconfigurator/all_to_all.csv' },
  options = {
    rows = { default = '', help = 'table of matmuls (CSV: system, dtype, m, n, k, time_us)' },
    exchanges = { default = '', help = 'table of all-to-alls of experts (CSV)' },
    every = { default = 8, min = 1, help = 'takes one row of matmuls in this number' },
  },
}

local systems = { a100_sxm = { 'a100_80gb', 'dgx_a100_80gb' }, h100_sxm = { 'h100', 'dgx_h100' },
  h200_sxm = { 'h200', 'dgx_h200' }, b200_sxm = { 'b200', 'dgx_b200' }, b300_sxm = { 'b300', 'dgx_b300' },
  gb200 = { 'gb200', 'gb200_nvl72' }, gb300 = { 'gb300', 'gb300_nvl72' }, l40s = { 'l40s' } }

-- How many times slower network adapters are than the machine's: AIConfigurator states 25 GB/s per GPU for its H100
-- nodes (src/aiconfigurator/systems/h100_sxm.yaml, inter_node_bw), half of a DGX H100's.
local slow_adapters = { h100_sxm = 2 }

local dtypes = { bfloat16 = 'bfloat16', fp8 = 'float8' }

local classes = { { 1e10, 'below 10 GFLOP' }, { 1e11, '10 to 100 GFLOP' }, { 1e12, '0.1 to 1 TFLOP' },
  { math.huge, 'above 1 TFLOP' } }

--- Seconds of the matmuls of rows { m, n, k } of a kind of GPU and a dtype, by one graph of them all.
local function matmul_times(kind, dtype, rows)
  local net = layers.new('kernels', { dtype = dtypes[dtype] })
  for i, row in ipairs(rows) do
    local x = net:operand('operand' .. i, net:input('x' .. i, { row.m, row.k }))
    net:linear('row' .. i, x, row.n)
  end
  local graph = net:build()
  local problem = problems.simulator { graph = graph,
    cluster = model.cluster { devices = { { name = 'gpu', type = kind } } } }
  local times, found = problem:operator_times(1), {}
  for op = 1, graph.operators do
    local row = tonumber(graph:operator(op).name:match '%d+$')
    found[row] = (found[row] or 0) + times[op]
  end
  problem:close()
  graph:close()
  return found
end

--- Rows of matmuls { group, class, predicted, measured }; kind: of this kind of GPU alone.
local function matmuls(options, kind)
  local found, read = {}, csv.read(options.rows, 'system', 'dtype', 'm', 'n', 'k', 'time_us')
  for _, same in ipairs(util.grouped(read, function(row) return row.system .. ' ' .. row.dtype end)) do
    local system, rows = systems[same[1].system], {}
    if kind and system and system[1] ~= kind then system = nil end
    for i = 1, system and dtypes[same[1].dtype] and #same or 0, options.every do
      local row = same[i]
      local function whole(column) return csv.whole(options.rows, row, column) end
      rows[#rows + 1] = { m = whole 'm', n = whole 'n', k = whole 'k',
        measured = 1e-6 * csv.number(options.rows, row, 'time_us') }
    end
    local times = #rows > 0 and matmul_times(system[1], same[1].dtype, rows) or {}
    for i, row in ipairs(rows) do
      local class = 1
      while 2 * row.m * row.n * row.k >= classes[class][1] do class = class + 1 end
      found[#found + 1] = { group = ('%s, %s'):format(system[1], dtypes[same[1].dtype]), class = classes[class][2],
        order = class, predicted = times[i], measured = row.measured }
    end
  end
  return found
end

--- Machines of a system with the rate of its network adapters.
local function cluster_of(system, name)
  local slow, factor = {}, slow_adapters[system]
  for _, link in ipairs(factor and nodes.spec(name).links or {}) do
    for _, adapter in ipairs { link.from, link.to } do
      if tostring(adapter):find '/nic%d+$' then slow[adapter] = factor end
    end
  end
  return model.cluster(name, { slow = next(slow) and slow or nil })
end

--- Rows of all-to-alls of the same form: every GPU's tokens go to the GPUs of their experts and back, 20 or 24
--- multiprocessors copy them. Dispatch sends FP8 with a scale of 32 bits per 128 values, whatever `dtype` states:
--- between nodes it takes half as long as combination, and 16 bits would exceed the rate of the network adapters.
local function exchanges(path)
  local found, clusters = {}, {}
  for _, row in ipairs(csv.read(path, 'system', 'mode', 'ep', 'hidden', 'tokens_per_gpu', 'top_k', 'experts',
    'sms')) do
    local system, ep = systems[row.system], csv.whole(path, row, 'ep')
    if system and system[2] and row.mode == 'normal' and (row.sms == '20' or row.sms == '24') then
      local key = system[2] .. ep
      clusters[key] = clusters[key] or cluster_of(row.system, nodes.job(system[2], ep))
      local tokens, top_k = csv.whole(path, row, 'tokens_per_gpu'), csv.whole(path, row, 'top_k')
      local members = util.listed(ep, function(i) return i end)
      local hidden = csv.whole(path, row, 'hidden')
      for _, pass in ipairs { { 'dispatch', hidden + hidden / 32 }, { 'combine', 2 * hidden } } do
        local predicted_s = dispatcher.message_s('deepep', clusters[key], members, { tokens = tokens, top_k = top_k,
          token_bytes = pass[2], experts = csv.whole(path, row, 'experts'), multiprocessors = tonumber(row.sms) })
        local size = tokens < 1024 and 'below 1,024' or '1,024 or more'
        found[#found + 1] = { group = ('%s, %s'):format(system[1], pass[1]), order = tokens,
          class = ('nodes: %d, %s tokens'):format(csv.whole(path, row, 'nodes'), size), predicted = predicted_s,
          measured = 1e-6 * csv.number(path, row, pass[1] .. '_us') }
      end
    end
  end
  return found
end

--- By group of wide matmuls of a kind of GPU, the factor that corrects its rate: the median of predicted / measured.
function kernels.factors(path, kind)
  local found = {}
  for _, group in ipairs(util.grouped(matmuls({ rows = path, every = kernels.options.every.default }, kind),
    function(row) return row.group end)) do
    local ratios = {}
    for _, row in ipairs(group) do
      if row.order > 2 then ratios[#ratios + 1] = row.predicted / row.measured end -- from 0.1 TFLOP up
    end
    found[group.name] = #ratios > 0 and util.median(ratios) or nil
  end
  return found
end

local function off(row) return row.predicted / row.measured - 1 end

--- Errors by group and class; `form`: the mean error that is left where one factor corrects all of a group.
local function summaries(rows)
  local list = {}
  for _, group in ipairs(util.grouped(rows, function(row) return row.group end)) do
    local ratios = util.map(group, function(row) return row.predicted / row.measured end)
    table.sort(ratios)
    local median = ratios[math.floor((#ratios + 1) / 2)]
    table.sort(group, function(a, b) return a.order < b.order end)
    for _, same in ipairs(util.grouped(group, function(row) return row.class end)) do
      local s = statistics.summary(util.map(same, off))
      local scaled = statistics.summary(util.map(same, function(row) return (1 + off(row)) / median - 1 end))
      list[#list + 1] = { group = group.name, class = same.name, order = same[1].order, rows = #same, mean = s.mean,
        signed = s.signed, worst = s.worst, form = scaled.mean }
    end
  end
  return list
end

function kernels.run(options)
  local list = summaries(matmuls(options))
  table.sort(list, util.by('group', 'order'))
  for _, one in ipairs(summaries(exchanges(options.exchanges))) do list[#list + 1] = one end
  if options.json then return print(json.encode { kernels = list }) end
  print(text.format_table({ '', '', 'rows', 'mean error', 'mean, signed', 'worst', 'of form' }, util.map(list,
    function(one)
      return { one.group, one.class, ('%d'):format(one.rows), errors.percent(one.mean), errors.signed(one.signed),
        errors.percent(one.worst), errors.percent(one.form) }
    end)))
  print('of form: mean error where all of a group are divided by their median ratio')
end

return kernels
