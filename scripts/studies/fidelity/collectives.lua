-- Predictions of cluster:collective for systems whose collectives others measured. A system's words become a cluster
-- (described.lua), and its collectives are those that strategies on it would pay.

local constants = require 'trinity.cluster.collective_constants'
local csv = require 'trinity.base.csv'
local model = require 'trinity.graph.model'
local systems = require 'studies.fidelity.described'
local tables = require 'studies.fidelity.collective_tables'
local util = require 'trinity.base.util'

local collectives = {
  name = 'collectives',
  quantity = 'seconds, from 1 MiB up',
  json = { predicted = 'predicted_s', algorithm = 'algorithm', refused = 'why' },
  decades = true,
  lists_no_rows = true,
  help = 'measured all-reduces and others',
  shared = { rows = 'collectives/collectives.csv' },
  options = {
    rows = { default = '',
      help = 'table of measurements, or of what is asked (CSV), or a folder of vTrain or Galvatron' },
    also = { default = {}, help = 'another table or folder, whose rows follow; may be given several times' },
  },
}

--- Where errors are counted from, by the bar of 1 MiB; smaller ones are mostly a call.
local least_bytes = 2 ^ 20

local kinds = { all_reduce = 'all_reduce', allreduce = 'all_reduce', all_gather = 'all_gather',
  allgather = 'all_gather', reduce_scatter = 'reduce_scatter', reducescatter = 'reduce_scatter',
  all_to_all = 'all_to_all', alltoall = 'all_to_all', all2all = 'all_to_all', broadcast = 'broadcast',
  reduce = 'broadcast', -- the same backwards
  sendrecv = 'broadcast' } -- between neighbours
local whole_column = { 'gpus', 'nodes', 'inside', 'between', 'collective', 'bytes', 'system', 'algorithm', 'run',
  'time_us', 'algbw_GBps', 'busbw_GBps' }

--- Bytes that pass a ring's link, in parts of the array (NVIDIA/nccl-tests, doc/PERFORMANCE.md).
local function bus_factor(kind, members)
  if kind == 'all_reduce' then return 2 * (members - 1) / members end
  return kind == 'broadcast' and 1 or (members - 1) / members
end

--- Seconds that were measured; nil where the row has none.
local function measured_s(path, row)
  local function number(column) return csv.number(path, row, column, 0) end
  if number 'time_us' > 0 then return number 'time_us' * 1e-6 end
  if number 'busbw_GBps' > 0 then
    return bus_factor(row.collective_kind, row.members) * row.size / (number 'busbw_GBps' * 1e9)
  end
  if number 'algbw_GBps' > 0 then return row.size / (number 'algbw_GBps' * 1e9) end
end

--- The algorithm that a row names; automatic where the library chose.
local function algorithm_of(words, size)
  local lower = words:lower()
  if lower:find('sharp', 1, true) or lower:find('collnet', 1, true) then return 'in_network' end
  if lower:find('take as ring', 1, true) or lower == 'ring' or lower:find '^ring %(' then return 'ring' end
  if lower:find 'ring.*nvls' then return 'automatic' end -- both, by size
  if lower:find('nvls', 1, true) then return size >= 2 * 2 ^ 20 and 'multicast' or 'automatic' end
  return lower:find('tree', 1, true) and 'tree' or 'automatic'
end

--- Rows as they are asked: with found (nil and a reason where a system is not described), kind, algorithm, size.
local function read(path)
  local rows = tables.read(path) or csv.read(path, 'gpus', 'nodes', 'inside', 'between', 'collective', 'bytes')
  for _, row in ipairs(rows) do
    for _, column in ipairs(whole_column) do row[column] = row[column] or '' end
    row.members = csv.number(path, row, 'gpus')
    local nodes = csv.number(path, row, 'nodes')
    row.size = csv.number(path, row, 'bytes')
    if row.members < 1 or row.members % 1 ~= 0 or nodes < 1 or nodes % 1 ~= 0 or row.members > 65536 then
      csv.refuse(path, row, "expected whole numbers 'gpus' (at most 65536) and 'nodes', got %s and %s", row.gpus,
        row.nodes)
    end
    if row.size < 0 or row.size > 2 ^ 50 then
      csv.refuse(path, row, "column 'bytes': expected from 0 to 2^50, got %s", row.bytes)
    end
    local word = row.collective:lower():gsub('[ (].*', ''):gsub('%-', '_')
    row.collective_kind, row.algorithm_asked = kinds[word], algorithm_of(row.algorithm, row.size)
    if row.collective_kind then row.found, row.why = systems.describe(row)
    else row.why = 'unknown collective ' .. util.quoted(row.collective) end
    row.measured_s = row.collective_kind and measured_s(path, row)
    row.pair = word == 'sendrecv'
    row.trap = row.system:find('(trap)', 1, true) ~= nil
  end
  return rows
end

--- A function from rows to what the engine says of them: { predicted, algorithm }.
local function teller(values)
  local clusters = {}
  local function cluster_of(row)
    local key = table.concat({ row.gpus, row.nodes, row.inside, row.between, row.system,
      tostring(row.found.in_network) }, '|')
    clusters[key] = clusters[key] or model.cluster(systems.cluster(row.found, values), { constants = 'data_sheet' })
    return clusters[key]
  end
  return function(row)
    local members = {}
    for i = 1, row.pair and math.min(2, row.members) or row.members do members[i] = i end
    local cluster = cluster_of(row)
    local query = { kind = row.collective_kind, algorithm = row.algorithm_asked, devices = members, bytes = row.size }
    local ok, cost = pcall(cluster.collective, cluster, query)
    if not ok then -- switches that the row names but its system has not
      query.algorithm = 'automatic'
      cost = cluster:collective(query)
    end
    return { predicted = cost.time_s, algorithm = cost.algorithm }
  end
end

local kept = {} -- the last values, and the function for them

function collectives.prediction(row, values)
  local wires = values and values.sources.collectives.wires or constants.fitted()
  if kept.wires ~= wires then kept = { wires = wires, tell = teller(wires) } end
  return kept.tell(row)
end

--- Rows for runs.lua: errors are counted over measured ones from 1 MiB up whose links are stated and no trap.
function collectives.read(options)
  local rows = read(options.rows)
  for _, path in ipairs(options.also) do
    for _, row in ipairs(read(path)) do rows[#rows + 1] = row end
  end
  for i, row in ipairs(rows) do
    local seconds = row.collective_kind and row.measured_s
    local counts = row.found and seconds and row.size >= least_bytes and not row.trap
    row.id, row.group, row.left_out, row.served = ('%s:%d'):format(row.run, i), row.run, row.run, row.run
    row.measured, row.refused = counts and seconds or nil, not row.found and row.why or nil
    row.family, row.runtimes = 'wires', {}
  end
  return rows
end

collectives.priors = constants.by_name

return collectives
