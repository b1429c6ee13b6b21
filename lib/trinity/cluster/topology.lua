-- trinity.devices.topology: words to write a cluster in ten lines. A new cluster, with N machines:
--
--   local topology = require 'trinity.cluster.topology'
--   return function(machines)
--     local net = topology.new { queue = 'route' }
--     net:machines(machines, function(name)
--       net:link(net:devices(name, 2, 'rtx2080ti'), name .. '/pcie', 'pcie3_x16')
--       net:link(name .. '/pcie', 'ethernet', 'ethernet_10g')
--     end)
--     return net:spec()
--   end
--
-- In a file models/clusters/NAME.lua it answers to trinity.cluster 'NAMExCOUNT'; from any other file to
-- trinity.cluster 'path/to/file.lua'. Endpoints of links are devices, or switches, which need no other
-- mention. spec() is the plain table that trinity.cluster takes, to be changed at will before.

local check = require 'trinity.base.check'
local device_fields = require 'trinity.cluster.device_fields'
local collective_constants = require 'trinity.cluster.collective_constants'
local options_of = require 'trinity.base.options'
local units = require 'trinity.base.units'
local util = require 'trinity.base.util'

local fitted = collective_constants.fitted()

--- One NVLink from a GPU to an NVSwitch, half of the way: what measured collectives reach of its line rate.
local function nvswitch(generation, line_bytes_per_s)
  return { bandwidth_bytes_per_s = line_bytes_per_s * fitted[('nvlink%d_share'):format(generation)],
    latency_s = fitted[('nvlink%d_s'):format(generation)] / 2 }
end

-- Links by name: what a copy or a collective gets from them in one direction, not the raw rate.
--
-- Bandwidths are what NVIDIA's NCCL reckons with (src/graph/topo.h: SM60_NVLINK_BW 18, SM70 and SM80 20, SM86 12,
-- SM90 20.6, SM100 40.1 GB/s a link, PCI_BW 12 for PCIe 3 x16 and in proportion for 4 to 6, BDW_QPI_BW 6,
-- SKL_QPI_BW 10, SRP_QPI_BW 22, AMD_BW 16, NET_BW 12 for 100 Gbit/s), of xGMI what AMD's RCCL does (the same file:
-- MI200_XGMI_WIDTH 36, GFX94X_ and GFX95X_XGMI_WIDTH 48), raw rates in brackets. Latencies add up along a route to
-- NCCL's for one step of a ring (src/graph/tuning.cc, Ring with protocol Simple): 3.4 us over NVLink,
-- 5.7 us over PCIe, 9.6 us over a network. They include the software at both ends, so the end at a
-- device carries them and links between switches none.
local wires = {
  -- A GPU's PCIe slot [PCIe 3: 15.75, 4: 31.5, 5: 63, 6: 121 GB/s].
  pcie3_x16 = { bandwidth_bytes_per_s = 12e9, latency_s = 2.85e-6 },
  pcie4_x16 = { bandwidth_bytes_per_s = 24e9, latency_s = 2.85e-6 },
  pcie5_x16 = { bandwidth_bytes_per_s = 48e9, latency_s = 2.85e-6 },
  pcie6_x16 = { bandwidth_bytes_per_s = 96e9, latency_s = 2.85e-6 },
  -- Between PCIe switches, or from a PCIe switch to a NIC.
  pcie3_x16_inner = { bandwidth_bytes_per_s = 12e9, latency_s = 0 },
  pcie4_x16_inner = { bandwidth_bytes_per_s = 24e9, latency_s = 0 },
  pcie5_x16_inner = { bandwidth_bytes_per_s = 48e9, latency_s = 0 },
  pcie6_x16_inner = { bandwidth_bytes_per_s = 96e9, latency_s = 0 },
  -- From a PCIe switch to an Intel CPU: it cuts what one device sends to another into packets of
  -- 64 bytes, so that 6/5 of the bytes cross (INTEL_P2P_OVERHEAD).
  pcie3_x16_root = { bandwidth_bytes_per_s = 10e9, latency_s = 0 },
  -- Between the two CPUs of a machine, for what GPUs send: QPI of Broadwell and before, UPI of
  -- Skylake, of Sapphire Rapids; Infinity Fabric of EPYC.
  qpi = { bandwidth_bytes_per_s = 6e9, latency_s = 0 },
  upi = { bandwidth_bytes_per_s = 10e9, latency_s = 0 },
  upi2 = { bandwidth_bytes_per_s = 22e9, latency_s = 0 },
  infinity_fabric = { bandwidth_bytes_per_s = 16e9, latency_s = 0 },
  -- One NVLink between two GPUs [P100 20, V100 25 GB/s]; `count` of net:link makes bundles.
  nvlink1 = { bandwidth_bytes_per_s = 18e9, latency_s = 3.4e-6 },
  nvlink2 = { bandwidth_bytes_per_s = 20e9, latency_s = 3.4e-6 },
  nvlink3 = { bandwidth_bytes_per_s = 20e9, latency_s = 3.4e-6 },
  nvlink4 = { bandwidth_bytes_per_s = 20.6e9, latency_s = 3.4e-6 },
  -- The same of a GeForce or A40 of that time [14.1 GB/s], and one xGMI link between two AMD GPUs [50, 64 GB/s].
  nvlink3_bridge = { bandwidth_bytes_per_s = 12e9, latency_s = 3.4e-6 },
  xgmi_mi200 = { bandwidth_bytes_per_s = 36e9, latency_s = 3.4e-6 },
  xgmi_mi300 = { bandwidth_bytes_per_s = 48e9, latency_s = 3.4e-6 },
  -- A100, H100, B200.
  nvswitch3 = nvswitch(3, 25e9), nvswitch4 = nvswitch(4, 25e9), nvswitch5 = nvswitch(5, 50e9),
  -- From a NIC to its fabric, half of the way less the PCIe slot [EDR 12.5, HDR 25, NDR 50, XDR 100 GB/s].
  infiniband_edr = { bandwidth_bytes_per_s = 12e9, latency_s = 1.95e-6 },
  infiniband_hdr = { bandwidth_bytes_per_s = 24e9, latency_s = 1.95e-6 },
  infiniband_ndr = { bandwidth_bytes_per_s = 48e9, latency_s = 1.95e-6 },
  infiniband_xdr = { bandwidth_bytes_per_s = 96e9, latency_s = 1.95e-6 },
  -- A machine to an Ethernet switch: the payload of TCP in frames of 1,500 bytes is 1448/1538 of the line
  -- rate. 15 us each way through kernel and switch is an assumption: measure yours.
  ethernet_1g = { bandwidth_bytes_per_s = 0.1177e9, latency_s = 15e-6 },
  ethernet_10g = { bandwidth_bytes_per_s = 1.177e9, latency_s = 15e-6 },
  ethernet_25g = { bandwidth_bytes_per_s = 2.942e9, latency_s = 15e-6 },
  ethernet_100g = { bandwidth_bytes_per_s = 11.77e9, latency_s = 15e-6 },
}

local duplex = options_of.words('trinity.Duplex', { 'full', 'half' })
local wire_options = options_of.declare('trinity.Wire', { kind = 'field',
  help = 'What a link is made of, without its ends.',
  { 'bandwidth_bytes_per_s', 'number', above = 0, help = 'a direction, or of both together when half duplex' },
  { 'latency_s', 'number', 0, least = 0, help = 'of a transfer' },
  { 'duplex', duplex, 'full', help = 'whether both directions go at once' },
})
local topology_options = options_of.declare('trinity.TopologyOptions', { help = 'What devices.topology.new takes.',
  { 'name', 'string', help = 'of the cluster' },
  { 'queue', options_of.words('trinity.QueueModel', { 'sender', 'pair', 'none', 'route', 'fair', 'receiver' }),
    'sender', late = true, help = 'what transfers contend for' },
})
local library = collective_constants.library(fitted)
local library_options = options_of.declare('trinity.CollectiveLibrary', { kind = 'field',
  help = 'A library of collectives (engine/cluster/library.h); defaults are fitted to measurements.',
  { 'call_s', 'number', library.call_s, least = 0, most = 1,
    help = 'latency of a call: launch and wait for all members' },
  { 'pipelining', 'number', library.pipelining, least = 0, most = 4,
    help = "part of the steps' latency that chunks pay again" },
  { 'low_latency_hop', 'number', library.low_latency_hop, least = 0, most = 1,
    help = 'latency of a step in small packets, of that in chunks' },
  { 'low_latency_bandwidth', 'number', library.low_latency_bandwidth, least = 0, most = 1,
    help = 'bandwidth of small packets, relative to chunks; 0: no such packets' },
  { 'copy_bandwidth', 'number', 0, least = 0,
    help = 'bytes/s at which a device copies the part that a ring brings it last; 0: in no time' },
  { 'exchange_bandwidth', 'number', library.exchange_bandwidth, above = 0, most = 1,
    help = 'bandwidth of an all-to-all, which sends to each member separately, relative to rings' },
  { 'multicast_bandwidth', 'number', 0, least = 0, most = 1,
    help = 'what switches in nodes that add up reach, of what a device sends; 0: they do not' },
  { 'multicast_s', 'number', library.multicast_s, least = 0, most = 1, help = 'their latency' },
  { 'rails', 'number', library.rails, least = 1,
    help = 'maximum number of NICs that the rings of one node use' },
  { 'in_network', 'boolean', false, help = 'whether switches between nodes add up' },
  { 'sends_tokens_once', 'boolean', false,
    help = 'whether all-to-alls of experts send a token once to every other node, as DeepEP and HybridEP do' },
  { 'trees', 'boolean', true, help = 'whether it takes trees where they are faster than rings' },
  { 'shared_bandwidth', 'number', 1, above = 0, most = 1,
    help = 'what of a node\'s inside a group gets that has some of its devices, beside others; 1: all' },
})
local device_options = options_of.declare('trinity.TopologyDevices', { help = 'What topology:devices takes.',
  { 'name', 'string', 'gpu', help = 'what stands before the number in their names' },
  { 'speed', 'number', 1, above = 0, late = true, help = "times the type's" },
})

---@class trinity.TopologyModule
local topology = {}

--- Names of all link types, sorted. Example: `#trinity.devices.topology.wires()`
---@return string[]
function topology.wires() return util.sorted_keys(wires) end

--- The link type called `name`: a new table, with changes to its fields.
--- Example: `trinity.devices.topology.wire('nvlink2', { latency_s = 1e-6 })`
---@param name trinity.WireName
---@param changes? trinity.Wire
---@return trinity.Wire
function topology.wire(name, changes)
  check.argument('devices.topology.wire', 1, 'name', name, 'string')
  if not wires[name] then
    check.refuse('devices.topology.wire', 1, 'name', 'unknown link %s', util.unknown(name, topology.wires()))
  end
  if changes ~= nil then
    wire_options:check('devices.topology.wire', check.argument('devices.topology.wire', 2, 'changes', changes, 'table'))
  end
  return util.merged(wires[name], changes)
end

--- A cluster that is being written.
---@class trinity.Topology
local Topology = { __name = 'topology' }
Topology.__index = Topology

local machine_at_hand = setmetatable({}, { __mode = 'k' }) -- by topology, while its machines are described

--- The table that methods add to: the machine that is being described, or the description.
local function part_of(self) return machine_at_hand[self] or self.description end

local most = 131072 -- devices of a cluster, and links of a bundle

--- 0, 1, ... for a number, a list as it is.
local function numbers(which)
  if type(which) ~= 'table' then
    local count = check.integer('topology:devices', 2, 'which', which, 1, most)
    return util.listed(count, function(i) return i - 1 end)
  end
  if #which == 0 then check.refuse('topology:devices', 2, 'which', 'expected numbers or names, got an empty table') end
  for i = 1, #which do
    if type(which[i]) ~= 'number' and type(which[i]) ~= 'string' then
      check.refuse('topology:devices', 2, 'which', 'entry %d: expected a number or a name, got %s', i,
        util.describe(which[i]))
    end
  end
  return which
end

--- An empty cluster. Example: `local net = trinity.devices.topology.new { name = 'mine' }`
---@param options? trinity.TopologyOptions
---@return trinity.Topology
function topology.new(options)
  options = topology_options:read('devices.topology.new', 1, 'options', options)
  local description = { name = options.name, queue = options.queue, device_types = {}, devices = {}, links = {},
    switches = {} }
  return setmetatable({ description = description }, Topology)
end

local most_listed = 64 -- machines that a description lists one by one, for scripts that change some of them
local machines_of = setmetatable({}, { __mode = 'k' }) -- by topology: how many it has

--- Adds `count` equal machines: n0, n1, ... `describe` is called with the name of each and adds what it has,
--- or, for many, once with the name 'n*': '*' stands for the machine's number then, names without it are shared by
--- all, and the description lists one (field `machines`).
--- Example: `net:machines(2, function(name) net:devices(name, 2, 't4') end)`
---@param count integer
---@param describe fun(name: string)
function Topology:machines(count, describe)
  check.integer('topology:machines', 1, 'count', count, 1, most)
  check.argument('topology:machines', 2, 'describe', describe, 'function')
  local whole, first = self.description, machines_of[self] or 0
  if machine_at_hand[self] then
    check.refuse('topology:machines', 2, 'describe', 'machines within machines: describe each by itself')
  end
  machines_of[self] = first + count
  if count <= most_listed then
    for m = first, first + count - 1 do describe('n' .. m) end
    return
  end
  whole.machines = whole.machines or {}
  local machine = { count = count, first = first, devices = {}, links = {}, switches = {} }
  machine_at_hand[self] = machine
  local ok, message = pcall(describe, 'n*')
  machine_at_hand[self] = nil
  if not ok then error(message, 0) end
  table.insert(whole.machines, machine)
end

--- Runs collectives as NCCL does: as many rings at once as links hold, trees, chunks and small packets, reductions in
--- switches. Without it their cost follows the textbook formulas (`trinity help simulator`).
--- Example: `net:collectives { rails = 2 }`
---@param options? trinity.CollectiveLibrary
function Topology:collectives(options)
  if options ~= nil then check.argument('topology:collectives', 1, 'options', options, 'table') end
  library_options:check('topology:collectives', options or {})
  self.description.collectives = util.merged(library, options)
end

--- Defines a device type for this cluster, as device_types of a description does. The types of trinity.devices need no
--- definition. Example: `net:device_type('mine', trinity.devices.t4)`
---@param name string
---@param fields trinity.DeviceTypeSpec
function Topology:device_type(name, fields)
  check.argument('topology:device_type', 1, 'name', name, 'string')
  self.description.device_types[name] = device_fields('topology:device_type', 2, 'fields', fields)
end

--- Adds devices of type `type` to machine `node`: node/gpu0, node/gpu1, ... `which` is their number, or the list of the
--- suffixes of their names, in order. Example: `net:devices('n0', 2, 't4')`
---@param node string
---@param which integer|(integer|string)[]
---@param type string
---@param options? trinity.TopologyDevices
---@return string[] names
function Topology:devices(node, which, type, options)
  check.argument('topology:devices', 1, 'node', node, 'string')
  check.argument('topology:devices', 3, 'type', type, 'string')
  options = device_options:read('topology:devices', 4, 'options', options)
  local prefix, speed, names = options.name, options.speed, {}
  for i, number in ipairs(numbers(which)) do
    names[i] = ('%s/%s%s'):format(node, prefix, tostring(number))
    table.insert(part_of(self).devices, { name = names[i], type = type, node = node, speed = speed })
  end
  return names
end

--- A switch that all its traffic together shares; switches without a limit need no mention.
--- Example: `net:switch('n0/switch', 100e9)`
---@param name string
---@param bandwidth_bytes_per_s number
function Topology:switch(name, bandwidth_bytes_per_s)
  check.argument('topology:switch', 1, 'name', name, 'string')
  check.positive('topology:switch', 2, 'bandwidth_bytes_per_s', bandwidth_bytes_per_s)
  table.insert(part_of(self).switches, { name = name, bandwidth_bytes_per_s = bandwidth_bytes_per_s })
end

--- The properties of a link: `count` parallel ones of a type as one.
local function bundle(owner, place, wire, count)
  local rate = type(wire) == 'string' and wire:find '^%d.*%a' and units.number(wire, 'bytes/s')
  if rate then
    wire = { bandwidth_bytes_per_s = rate, latency_s = 0 }
  elseif type(wire) == 'string' then
    check.choice(owner, place, 'wire', wire, wires)
    wire = wires[wire]
  end
  if type(wire) ~= 'table' then check.wrong(owner, place, 'wire', wire, 'the name of a link type or a table') end
  wire_options:check(owner .. ': wire', wire)
  check.positive(owner .. ': wire', 'field', 'bandwidth_bytes_per_s', wire.bandwidth_bytes_per_s)
  if count ~= nil then check.integer(owner, place + 1, 'count', count, 1, most) end
  return wire, wire.bandwidth_bytes_per_s * (count or 1)
end

local function endpoints_of(place, name, value)
  if type(value) == 'string' then return { value } end
  if type(value) ~= 'table' or #value == 0 then
    check.refuse('topology:link', place, name, 'expected the name of an endpoint or a list of names, got %s',
      type(value) == 'table' and 'an empty table' or util.describe(value))
  end
  return check.list('topology:link', place, name, value, 'string')
end

local function add_link(self, from, to, wire, bandwidth_bytes_per_s)
  table.insert(part_of(self).links, { from = from, to = to, bandwidth_bytes_per_s = bandwidth_bytes_per_s,
    latency_s = wire.latency_s, duplex = wire.duplex })
end

--- Links two endpoints; an end that is a list gets one link per entry. `wire` is a name of topology.wires(), a table or
--- a bandwidth with its unit ('400 Gbit/s', '3,200 Gbit/s', '50GB/s'), which has no latency;
--- the bandwidths of `count` parallel links (default 1) are added.
--- Example: `net:devices('n0', 2, 't4'); net:link('n0/gpu0', 'n0/gpu1', 'nvlink2', 2)`
---@param from string|string[]
---@param to string|string[]
---@param wire trinity.WireName|trinity.Wire
---@param count? integer
function Topology:link(from, to, wire, count)
  local sources, targets = endpoints_of(1, 'from', from), endpoints_of(2, 'to', to)
  local one, bandwidth = bundle('topology:link', 3, wire, count)
  for _, a in ipairs(sources) do
    for _, b in ipairs(targets) do add_link(self, a, b, one, bandwidth) end
  end
end

--- Links every two of a list of endpoints. Example: `net:mesh(net:devices('n0', 4, 't4'), 'nvlink2')`
---@param endpoints string[]
---@param wire trinity.WireName|trinity.Wire
---@param count? integer
function Topology:mesh(endpoints, wire, count)
  check.list('topology:mesh', 1, 'endpoints', endpoints, 'string')
  local one, bandwidth = bundle('topology:mesh', 2, wire, count)
  for i = 1, #endpoints do
    for j = i + 1, #endpoints do add_link(self, endpoints[i], endpoints[j], one, bandwidth) end
  end
end

--- The description so far, as trinity.cluster takes it.
--- Example: `net:mesh(net:devices('n0', 2, 't4'), 'nvlink2'); trinity.cluster(net:spec())`
---@return trinity.ClusterSpec
function Topology:spec() return self.description end

check.methods(Topology, 'trinity.Topology')

return topology
