-- Predictions of cluster:collective for systems whose collectives others measured. A system's words become a cluster
-- (described.lua), and its collectives are those that strategies on it would pay. Two tables of others are read as they
-- are: AIConfigurator's of NCCL's tests (nccl.csv; github ai-dynamo/aiconfigurator), and a folder of vTrain's
-- all-reduces of A100 by GPUs (AR_GPU2_1M_1024M_LUT ...; github VIA-Research/vTrain, trace/a100), of whose steps of 1
-- MiB the powers of two are rows, as NCCL's tests have them, so that small messages count.

local constants = require 'trinity.cluster.collective_constants'
local core = require 'trinity.core'
local csv = require 'trinity.base.csv'
local model = require 'trinity.graph.model'
local statistics = require 'trinity.base.statistics'
local systems = require 'studies.fidelity.described'
local util = require 'trinity.base.util'

local collectives = {
  name = 'collectives',
  quantity = 'seconds, from 1 MiB up',
  json = { predicted = 'predicted_s', algorithm = 'algorithm', refused = 'why' },
  lists_no_rows = true,
  help = 'measured all-reduces and others',
  shared = { rows = 'collectives/collectives.csv' },
  takes = 'rows also',
  priors = constants.by_name,
}

--- Where errors are counted from, by the bar of 1 MiB; smaller ones are mostly a call.
local least_bytes = 2 ^ 20

local kinds = { all_reduce = 'all_reduce', allreduce = 'all_reduce', all_gather = 'all_gather',
  allgather = 'all_gather', reduce_scatter = 'reduce_scatter', reducescatter = 'reduce_scatter',
  all_to_all = 'all_to_all', alltoall = 'all_to_all', all2all = 'all_to_all', broadcast = 'broadcast',
  reduce = 'broadcast', -- the same backwards
  sendrecv = 'broadcast' } -- between neighbours
local needed = { 'gpus', 'nodes', 'inside', 'between', 'collective', 'bytes' }

-- Systems whose links are stated: GPUs on NVSwitches, and how many.
local domains = { a100_sxm = 8, h100_sxm = 8, h200_sxm = 8, b200_sxm = 8, b300_sxm = 8, gb200 = 72, gb300 = 72 }

local function row_of(run, system, collective, gpus, bytes, time_us)
  local domain = domains[system]
  return { run = run, system = ('%d of %d x %s'):format(gpus, domain or 8, system:gsub('_sxm', ''):upper()),
    gpus = gpus, nodes = '1', inside = domain and ('NVSwitch (domain %d)'):format(domain) or '', between = '',
    collective = collective, bytes = bytes, time_us = ('%.10g'):format(time_us) }
end

--- Columns of the first line come twice, out of place and in place; the latter are taken.
local function of_vtrain(path)
  local names, rows = core.list_folder(path), {}
  table.sort(names)
  for _, name in ipairs(names) do
    local gpus = name:match '^AR_GPU(%d+)_.*_LUT$'
    local lines = gpus and util.read_file(('%s/%s'):format(path, name)) or ''
    for bytes, in_place_ns in lines:gmatch '(%d+),%d+,%a+,[%d.]+,[%d.]+,([%d.]+),[%d.]+' do
      if math.frexp(bytes) == 0.5 then -- a power of two
        rows[#rows + 1] = row_of('vtrain_a100', 'a100_sxm', 'all_reduce', gpus, bytes, in_place_ns / 1e3)
        rows[#rows].number = #rows
      end
    end
  end
  if #rows > 0 then return rows end
  util.fail("%s: no measured collectives: expected files 'AR_GPU8_1M_1024M_LUT' and their like", util.shortened(path))
end

--- The rows of AIConfigurator's table, repeated measurements averaged. Systems whose links the source does not state
--- have none.
local function of_aiconfigurator(rows, path)
  return util.map(util.grouped(rows, function(row)
    return table.concat({ row.system, row.nccl, row.collective, row.gpus, row.bytes }, ' ')
  end), function(same)
    local row, times_us = same[1], util.map(same, function(one) return csv.number(path, one, 'time_us') end)
    return row_of(('%s_nccl_%s'):format(row.system, row.nccl), row.system, row.collective, row.gpus, row.bytes,
      statistics.mean(times_us))
  end)
end

--- The rows of a file, or of all tables of a folder, by csv.read.
local function rows_of(path)
  if core.exists(path .. '/.') then return of_vtrain(path) end
  local rows = csv.read(path)
  if rows[1] and rows[1].nccl and not rows[1].inside then return of_aiconfigurator(rows, path) end
  csv.check(path, unpack(needed))
  return rows
end

--- Seconds that were measured; nil where the row has none. Bytes that pass a ring's link are parts of the array
--- (NVIDIA/nccl-tests, doc/PERFORMANCE.md).
local function measured_s(path, row)
  local function number(column) return csv.number(path, row, column, 0) end
  local passes = row.collective_kind == 'broadcast' and 1 or (row.members - 1) / row.members
  if row.collective_kind == 'all_reduce' then passes = 2 * passes end
  if number 'time_us' > 0 then return number 'time_us' * 1e-6 end
  if number 'busbw_GBps' > 0 then return passes * row.size / (number 'busbw_GBps' * 1e9) end
  return number 'algbw_GBps' > 0 and row.size / (number 'algbw_GBps' * 1e9) or nil
end

-- Algorithms by patterns of the words that name them, of which the first one that is found counts.
local algorithms = { { 'sharp', 'in_network' }, { 'collnet', 'in_network' }, { 'take as ring', 'ring' },
  { '^ring$', 'ring' }, { '^ring %(', 'ring' }, { 'ring.*nvls', 'automatic' }, -- both, by size
  { 'nvls', 'multicast' }, { 'tree', 'tree' } }

--- The algorithm that a row names; automatic where the library chose, as it does for small messages of NVLS.
local function algorithm_of(words, size)
  local found = util.find(algorithms, function(one) return words:find(one[1]) end)
  if not found or found[2] == 'multicast' and size < 2 * 2 ^ 20 then return 'automatic' end
  return found[2]
end

--- A row as it is asked. Errors are counted over measured ones from 1 MiB up whose links are stated and no trap.
local function read_row(path, row)
  for _, column in ipairs { 'inside', 'between', 'collective', 'system', 'algorithm', 'run' } do
    row[column] = row[column] or ''
  end
  row.members, row.size = csv.number(path, row, 'gpus'), csv.number(path, row, 'bytes')
  local nodes = csv.number(path, row, 'nodes')
  csv.expect(path, row, row.members >= 1 and row.members % 1 == 0 and nodes >= 1 and nodes % 1 == 0
    and row.members <= 65536, "expected whole numbers 'gpus' (at most 65536) and 'nodes', got %s and %s", row.gpus,
    row.nodes)
  csv.expect(path, row, row.size >= 0 and row.size <= 2 ^ 50, "column 'bytes': expected from 0 to 2^50, got %s",
    row.bytes)
  local word = row.collective:lower():gsub('[ (].*', ''):gsub('%-', '_')
  row.collective_kind, row.algorithm_asked = kinds[word], algorithm_of(row.algorithm:lower(), row.size)
  if not row.collective_kind then
    row.refused = 'unknown collective ' .. util.quoted(row.collective)
  else
    row.found, row.refused = systems.describe(row)
    local seconds = measured_s(path, row)
    row.measured = row.found and row.size >= least_bytes and not row.system:find('(trap)', 1, true) and seconds or nil
  end
  row.pair, row.family, row.runtimes = word == 'sendrecv', 'wires', {}
  row.group, row.left_out, row.served = row.run, row.run, row.run
  return row
end

local calibrated, kept = constants.fitted(), {} -- kept: the last values, and their clusters

local function cluster_of(row, wires)
  if kept.wires ~= wires then kept = { wires = wires } end
  local key = table.concat({ row.gpus, row.nodes, row.inside, row.between, row.system,
    tostring(row.found.in_network) }, '|')
  kept[key] = kept[key] or model.cluster(systems.cluster(row.found, wires), { constants = 'data_sheet' })
  return kept[key]
end

function collectives.prediction(row, values)
  local cluster = cluster_of(row, values and values.sources.collectives.wires or calibrated)
  local query = { kind = row.collective_kind, algorithm = row.algorithm_asked, bytes = row.size,
    devices = util.listed(row.pair and math.min(2, row.members) or row.members, function(i) return i end) }
  local ok, cost = pcall(cluster.collective, cluster, query)
  if not ok then -- switches that the row names but its system has not
    query.algorithm = 'automatic'
    cost = cluster:collective(query)
  end
  return { predicted = cost.time_s, algorithm = cost.algorithm }
end

function collectives.read(options)
  local rows = {}
  for _, path in ipairs(util.joined({ options.rows }, options.also)) do
    for _, row in ipairs(rows_of(path)) do
      rows[#rows + 1] = read_row(path, row)
      rows[#rows].id = ('%s:%d'):format(row.run, #rows)
    end
  end
  return rows
end

return collectives
