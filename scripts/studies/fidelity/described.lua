-- Clusters from the words that tables of measured collectives describe a system with: gpus, nodes, inside ("NVSwitch,
-- NVLink3 x12", "NVLink2 hybrid cube mesh", "xGMI full mesh", "PCIe 3 x16 through host memory", "NVLink5 over the rack
-- (domain 72)"), between ("8 x NDR 400 Gbit/s a node", "1 x 200 Gbit/s Slingshot 11 a GPU"), system (names the GPU).
-- Line rates are the data sheets'; what of them is reached is collective_constants.lua's.

local collective_constants = require 'trinity.cluster.collective_constants'
local core = require 'trinity.core'
local csv = require 'trinity.base.csv'
local devices = require 'trinity.cluster.devices'
local topology = require 'trinity.cluster.topology'
local util = require 'trinity.base.util'

local systems = {}

-- GPUs by words in `system`, longest first: kind of device, NVLink generation, links and bytes/s of one where it is not
-- the generation's, bytes/s of an xGMI link.
local gpus = csv.read(core.home .. '/scripts/studies/fidelity/gpus.csv', 'word', 'device', 'nvlink', 'links')

-- Bytes/s of one NVLink, one direction, by generation, and of a PCIe 3 x16 slot (each generation doubles it).
local nvlink_bytes_per_s = { 20e9, 25e9, 25e9, 25e9, 50e9 }
local pcie3_bytes_per_s = 15.75e9
local network_rates = { EDR = 100, HDR = 200, NDR = 400, XDR = 800 }

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
  local gbit = tonumber(words:match '([%d.]+) ?Gbit/s' or words:match '([%d.]+) ?Gb/s' or words:match '([%d.]+) ?GbE')
  for name, rate in util.sorted_pairs(network_rates) do gbit = gbit or words:find(name, 1, true) and rate end
  if not gbit then
    return nil, words == '' and 'links between nodes are not stated' or 'unknown links between: ' .. words
  end
  local tcp = has(words, 'tcp', 'ethernet', 'gbe', 'socket') and not has(words, 'roce', 'rdma')
  return { count = has(words, 'a gpu', 'per gpu', 'each gpu') and count * gpus_a_node or count, rate = gbit * 1e9 / 8,
    latency = has(words, 'efa', 'slingshot') and 'efa_s' or tcp and 'tcp_s' or 'infiniband_s' }
end

--- The machine that a row describes: gpus, nodes (domains of links inside, not operating systems), fabric, network,
--- in_network; nil and a reason where the widths of its links are not stated.
function systems.describe(row)
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
local function add_fabric(net, name, members, fabric, constants)
  local layout, switch = fabric.layout, name .. '/switch'
  local function wire(rate, part)
    return { bandwidth_bytes_per_s = rate * constants[fabric.share], latency_s = constants[fabric.latency] * part }
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
local function add_network(net, name, members, network, constants)
  local cards = (network.count % #members == 0) and #members or (#members % network.count == 0) and network.count or 1
  local rate = network.rate * network.count / cards * constants.network_share
  local function nic(i) return ('%s/nic%d'):format(name, i % cards) end
  for i, member in ipairs(members) do
    local own, port = ('%s/port%d'):format(name, i - 1), { bandwidth_bytes_per_s = rate, latency_s = 0 }
    net:link(member, own, port)
    net:link(own, nic(i - 1), port)
  end
  for i = 0, cards - 1 do
    net:link(nic(i), 'network', { bandwidth_bytes_per_s = rate, latency_s = constants[network.latency] / 2 })
  end
end

-- Where the kind is not known: collectives do not ask for it.
local any_device = { peak_flops_per_s = { float32 = 1e13 }, memory_bandwidth_bytes_per_s = 1e12, memory_bytes = 2 ^ 34 }

--- The description of a cluster, as trinity.cluster takes it. found: what systems.describe returned.
function systems.cluster(found, constants)
  local net, fabric = topology.new { name = 'described', queue = 'route' }, found.fabric or {}
  if not found.device then net:device_type('gpu', any_device) end
  for m = 0, found.nodes - 1 do
    local name = 'n' .. m
    local members = net:devices(name, found.gpus / found.nodes, found.device or 'gpu')
    if fabric.layout then add_fabric(net, name, members, fabric, constants) end
    if found.network then add_network(net, name, members, found.network, constants) end
  end
  local memory = found.device and devices.find(found.device).memory_bandwidth_bytes_per_s or 0
  return util.merged(net:spec(), { collectives = util.merged(collective_constants.library(constants), {
    multicast_bandwidth = fabric.layout == 'switch' and constants['multicast' .. fabric.generation] or 0,
    in_network = found.in_network, copy_bandwidth = constants.copy_share * memory / 2 }) })
end

return systems
