-- Predictions of cluster:collective for systems whose collectives others measured. A system's words become a cluster:
-- gpus, nodes, inside ("NVSwitch, NVLink3 x12", "NVLink2 hybrid cube mesh", "xGMI full mesh", "PCIe 3 x16 through host
-- memory", "NVLink5 over the rack (domain 72)"), between ("8 x NDR 400 Gbit/s a node", "1 x 200 Gbit/s Slingshot 11 a
-- GPU"), system (names the GPU). Line rates are data sheets'; what of them is reached is collective_constants.lua's.
-- Two tables of others are read as they are: AIConfigurator's of NCCL's tests (nccl.csv; github
-- ai-dynamo/aiconfigurator), and a folder of vTrain's all-reduces of A100 by GPUs (AR_GPU2_1M_1024M_LUT ...; github
-- VIA-Research/vTrain, trace/a100), of whose steps of 1 MiB the powers of two are rows, as NCCL's tests have them.

local constants = require 'trinity.cluster.collective_constants'
local core = require 'trinity.core'
local csv = require 'studies.rows'
local devices = require 'trinity.cluster.devices'
local model = require 'trinity.graph.model'
local statistics = require 'trinity.base.statistics'
local tables = require 'studies.fidelity.tables'
local topology = require 'trinity.cluster.topology'
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

-- GPUs by words in `system`, longest first: kind of device, NVLink generation, links and bytes/s of one where it is not
-- the generation's, bytes/s of an xGMI link.
local gpus = csv.read(core.home .. '/scripts/studies/fidelity/gpus.csv', 'word', 'device', 'nvlink', 'links')

-- Bytes/s of one NVLink, one direction, by generation, and of a PCIe 3 x16 slot (each generation doubles it).
local nvlink_bytes_per_s = { 20e9, 25e9, 25e9, 25e9, 50e9 }
local pcie3_bytes_per_s = 15.75e9

local function has(text, ...)
  for _, word in ipairs { ... } do
    if text:lower():find(word, 1, true) then return true end
  end
  return false
end

--- How GPUs of a node are joined: layout, line rate of a GPU's links together and of one pair's, constants' names.
--- nil and a reason where the words do not say.
local function fabric_of(words, gpu, whole)
  local own = tonumber(gpu.nvlink)
  local generation = tonumber(words:match 'NVLink ?(%d)') or has(words, 'nvswitch', 'nvlink') and own
  if generation then
    local links = tonumber(words:match 'NVLink ?%d? x(%d+)' or gpu.links)
    local link = generation == own and tonumber(gpu.link_bytes_per_s) or nvlink_bytes_per_s[generation]
    if not links or not link then return nil, 'the number of NVLinks is not stated' end
    local mesh = has(words, 'mesh', 'all to all', 'bridge', 'direct') and not has(words, 'switch')
    local named = ('nvlink%d'):format(math.max(2, generation))
    return { layout = has(words, 'cube mesh') and 'cube_mesh' or mesh and 'mesh' or 'switch', generation = generation,
      share = named .. '_share', latency = named .. '_s', link = link, rate = links * link,
      pair = links * link / math.max(1, whole - 1) }
  end
  if has(words, 'xgmi', 'infinity fabric') then
    local pair = tonumber(gpu.xgmi_bytes_per_s)
    if not pair then return nil, 'the rate of an xGMI link is not stated' end
    return { layout = 'mesh', pair = pair, share = 'xgmi_share', latency = 'xgmi_s' }
  end
  local pcie, lanes = tonumber(words:match 'PCIe ?%a* ?(%d)'), tonumber(words:match 'x(%d+)') or 16
  if not pcie then return nil, words == '' and 'links inside are not stated' or 'unknown links inside: ' .. words end
  return { layout = has(words, 'host memory', 'no peer') and 'host' or 'pcie', latency = 'pcie_s', share = 'host_share',
    rate = pcie3_bytes_per_s * 2 ^ (pcie - 3) * lanes / 16 }
end

--- The NICs of a node: their number, line rate and latency.
local function network_of(words, gpus_a_node)
  local count = tonumber(words:match '(%d+) ?x ') or 1
  local gbit = tonumber(words:match '([%d.]+) ?Gbit/s' or words:match '([%d.]+) ?Gb/s' or words:match '([%d.]+) ?GbE'
    or tables.meaning('gbit/s', words))
  if not gbit then
    return nil, words == '' and 'links between nodes are not stated' or 'unknown links between: ' .. words
  end
  local tcp = has(words, 'tcp', 'ethernet', 'gbe', 'socket') and not has(words, 'roce', 'rdma')
  return { count = has(words, 'a gpu', 'per gpu', 'each gpu') and count * gpus_a_node or count, rate = gbit * 1e9 / 8,
    latency = has(words, 'efa', 'slingshot') and 'efa_s' or tcp and 'tcp_s' or 'infiniband_s' }
end

--- The machine that a row describes: gpus, nodes (domains of links inside, not operating systems), fabric, network,
--- in_network; nil and a reason where the widths of its links are not stated.
function collectives.describe(row)
  local count, nodes, why = tonumber(row.gpus), tonumber(row.nodes), nil
  local a_node = math.min(tonumber(row.inside:match 'domain (%d+)') or count / nodes, count)
  if count % a_node ~= 0 then return nil, ('%d GPUs do not fill domains of %g'):format(count, a_node) end
  local gpu = util.find(gpus, function(one) return row.system:find(one.word, 1, true) end) or {}
  local found = { gpus = count, nodes = count / a_node, device = devices.find(gpu.device or '') and gpu.device or nil,
    in_network = has(row.between, 'sharp on') or has(row.algorithm, 'sharp', 'collnet') }
  if a_node > 1 then
    found.fabric, why = fabric_of(row.inside, gpu, tonumber(row.system:match '%d+ of (%d+) x') or a_node)
  end
  if found.nodes > 1 and not why then found.network, why = network_of(row.between, a_node) end
  return not why and found or nil, why
end

-- NVLinks between GPUs in the order of a ring of double bundles (models/clusters/dgx1_v100.lua).
local cube = { { 1, 4, 1 }, { 1, 3, 1 }, { 1, 2, 2 }, { 1, 8, 2 }, { 4, 3, 2 }, { 4, 2, 1 }, { 4, 5, 2 }, { 3, 2, 2 },
  { 3, 6, 2 }, { 2, 7, 1 }, { 8, 5, 1 }, { 8, 6, 1 }, { 8, 7, 2 }, { 5, 6, 2 }, { 5, 7, 1 }, { 6, 7, 2 } }

--- Joins the GPUs of a node. Over PCIe peers reach each other through the switch, at the rate that NCCL reckons with;
--- without peers every byte goes into host memory and out of it, and both ways share the slot.
local function add_fabric(net, name, members, fabric, values)
  local layout, switch = fabric.layout, name .. '/switch'
  local function wire(rate, part)
    return { bandwidth_bytes_per_s = rate * values[fabric.share], latency_s = values[fabric.latency] * part }
  end
  if layout == 'mesh' then return net:mesh(members, wire(fabric.pair, 1)) end
  if layout ~= 'cube_mesh' then
    local slot_share = topology.wire('pcie3_x16').bandwidth_bytes_per_s / pcie3_bytes_per_s
    return net:link(members, switch, util.merged(wire(fabric.rate, 0.5), { duplex = layout == 'host' and 'half' or nil,
      bandwidth_bytes_per_s = layout == 'pcie' and fabric.rate * slot_share or nil }))
  end
  for _, bundle in ipairs(cube) do
    local a, b = members[bundle[1]], members[bundle[2]]
    if a and b then net:link(a, b, wire(fabric.link * bundle[3], 1)) end
  end
  net:link(members, switch, 'pcie3_x16')
end

--- Divides the NICs equally among the GPUs where they divide; otherwise all GPUs share all NICs.
local function add_network(net, name, members, network, values)
  local cards = (network.count % #members == 0) and #members or (#members % network.count == 0) and network.count or 1
  local rate = network.rate * network.count / cards * values.network_share
  local function nic(i) return ('%s/nic%d'):format(name, i % cards) end
  for i, member in ipairs(members) do
    local own, port = ('%s/port%d'):format(name, i - 1), { bandwidth_bytes_per_s = rate, latency_s = 0 }
    net:link(member, own, port)
    net:link(own, nic(i - 1), port)
  end
  for i = 0, cards - 1 do
    net:link(nic(i), 'network', { bandwidth_bytes_per_s = rate, latency_s = values[network.latency] / 2 })
  end
end

--- The description of a cluster, as trinity.cluster takes it. found: what collectives.describe returned.
function collectives.cluster(found, values)
  local net, fabric = topology.new { name = 'described', queue = 'route' }, found.fabric or {}
  for m = 0, found.nodes - 1 do
    local name = 'n' .. m
    local members = net:devices(name, found.gpus / found.nodes, found.device or 'h100') -- no collective asks
    if fabric.layout then add_fabric(net, name, members, fabric, values) end
    if found.network then add_network(net, name, members, found.network, values) end
  end
  local memory = found.device and devices.find(found.device).memory_bandwidth_bytes_per_s or 0
  return util.merged(net:spec(), { collectives = util.merged(constants.library(values), {
    multicast_bandwidth = fabric.layout == 'switch' and values['multicast' .. fabric.generation] or 0,
    in_network = found.in_network, copy_bandwidth = values.copy_share * memory / 2 }) })
end

local kinds, domains = tables.words 'collective', tables.words 'gpus on nvswitches'
local needed = { 'gpus', 'nodes', 'inside', 'between', 'collective', 'bytes' }

local function row_of(run, system, collective, count, bytes, time_us)
  local domain = domains[system]
  return { run = run, system = ('%d of %d x %s'):format(count, domain or 8, system:gsub('_sxm', ''):upper()),
    gpus = count, nodes = '1', inside = domain and ('NVSwitch (domain %d)'):format(domain) or '', between = '',
    collective = collective, bytes = bytes, time_us = ('%.10g'):format(time_us) }
end

--- Columns of the first line come twice, out of place and in place; the latter are taken.
local function of_vtrain(path)
  local names, rows = core.list_folder(path), {}
  table.sort(names)
  for _, name in ipairs(names) do
    local count = name:match '^AR_GPU(%d+)_.*_LUT$'
    local lines = count and util.read_file(('%s/%s'):format(path, name)) or ''
    for bytes, in_place_ns in lines:gmatch '(%d+),%d+,%a+,[%d.]+,[%d.]+,([%d.]+),[%d.]+' do
      if math.frexp(bytes) == 0.5 then -- a power of two
        rows[#rows + 1] = row_of('vtrain_a100', 'a100_sxm', 'all_reduce', count, bytes, in_place_ns / 1e3)
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

--- The algorithm that a row names; automatic where the library chose, as it does for small messages of NVLS.
local function algorithm_of(words, size)
  local found = tables.meaning('algorithm', words) or 'automatic'
  return found == 'multicast' and size < 2 * 2 ^ 20 and 'automatic' or found
end

--- A row as it is asked. Errors are counted over measured ones from 1 MiB up (smaller ones are mostly a call) whose
--- links are stated and no trap.
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
  local word = row.collective:lower():gsub('[ (].*', ''):gsub('[-_]', '')
  row.collective_kind, row.algorithm_asked = kinds[word], algorithm_of(row.algorithm:lower(), row.size)
  if not row.collective_kind then
    row.refused = 'unknown collective ' .. util.quoted(row.collective)
  else
    row.found, row.refused = collectives.describe(row)
    local seconds = measured_s(path, row)
    row.measured = row.found and row.size >= 2 ^ 20 and not row.system:find('(trap)', 1, true) and seconds or nil
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
  kept[key] = kept[key] or model.cluster(collectives.cluster(row.found, wires), { constants = 'data_sheet' })
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
