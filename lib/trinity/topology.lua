-- trinity.topology: words to write a cluster in ten lines. A new cluster, with N machines:
--
--   local topology = require 'trinity.topology'
--   return function(machines)
--     local net = topology.new { queue = 'route' }
--     for m = 0, machines - 1 do
--       local name = 'n' .. m
--       net:link(net:devices(name, 2, 'rtx2080ti'), name .. '/pcie', 'pcie3_x16')
--       net:link(name .. '/pcie', 'ethernet', 'ethernet_10g')
--     end
--     return net:spec()
--   end
--
-- In a file models/clusters/NAME.lua it answers to trinity.cluster 'NAMExCOUNT'; from any other file to
-- trinity.cluster 'path/to/file.lua'. Endpoints of links are devices, or switches, which need no other
-- mention. spec() is the plain table that trinity.cluster takes, to be changed at will before.

local core = require 'trinity.core'
local util = require 'trinity.util'

-- Links by name: what a copy or a collective gets from them in one direction, not the raw rate.
--
-- Bandwidths are what NVIDIA's NCCL reckons with (src/graph/topo.h: SM60_NVLINK_BW 18, SM70 and SM80 20,
-- SM90 20.6 GB/s a link, PCI_BW 12 for PCIe 3 x16 and in proportion for 4 and 5, BDW_QPI_BW 6,
-- SKL_QPI_BW 10, NET_BW 12 for 100 Gbit/s), raw rates in brackets. Latencies add up along a route to
-- NCCL's for one step of a ring (src/graph/tuning.cc, Ring with protocol Simple): 3.4 us over NVLink,
-- 5.7 us over PCIe, 9.6 us over a network. They include the software at both ends, so the end at a
-- device carries them and links between switches none.
local wires = {
  -- A GPU's PCIe slot [PCIe 3: 15.75, 4: 31.5, 5: 63 GB/s].
  pcie3_x16 = { bandwidth_bytes_per_s = 12e9, latency_s = 2.85e-6 },
  pcie4_x16 = { bandwidth_bytes_per_s = 24e9, latency_s = 2.85e-6 },
  pcie5_x16 = { bandwidth_bytes_per_s = 48e9, latency_s = 2.85e-6 },
  -- Between PCIe switches, or to a network card.
  pcie3_x16_inner = { bandwidth_bytes_per_s = 12e9, latency_s = 0 },
  pcie4_x16_inner = { bandwidth_bytes_per_s = 24e9, latency_s = 0 },
  pcie5_x16_inner = { bandwidth_bytes_per_s = 48e9, latency_s = 0 },
  -- From a PCIe switch to an Intel processor: it cuts what one device sends to another into packets of
  -- 64 bytes, so that 6/5 of the bytes cross (INTEL_P2P_OVERHEAD).
  pcie3_x16_root = { bandwidth_bytes_per_s = 10e9, latency_s = 0 },
  -- Between the two processors of a machine, for what GPUs send: QPI of Broadwell and before, UPI of
  -- Skylake and after.
  qpi = { bandwidth_bytes_per_s = 6e9, latency_s = 0 },
  upi = { bandwidth_bytes_per_s = 10e9, latency_s = 0 },
  -- One NVLink between two GPUs [P100 20, V100 25 GB/s]; `count` of net:link makes bundles.
  nvlink1 = { bandwidth_bytes_per_s = 18e9, latency_s = 3.4e-6 },
  nvlink2 = { bandwidth_bytes_per_s = 20e9, latency_s = 3.4e-6 },
  nvlink3 = { bandwidth_bytes_per_s = 20e9, latency_s = 3.4e-6 },
  nvlink4 = { bandwidth_bytes_per_s = 20.6e9, latency_s = 3.4e-6 },
  -- One NVLink from a GPU to an NVSwitch, half of the way [A100, H100 25 GB/s].
  nvswitch3 = { bandwidth_bytes_per_s = 20e9, latency_s = 1.7e-6 },
  nvswitch4 = { bandwidth_bytes_per_s = 20.6e9, latency_s = 1.7e-6 },
  -- A network card to its fabric, half of the way less the PCIe slot [EDR 12.5, HDR 25, NDR 50 GB/s].
  infiniband_edr = { bandwidth_bytes_per_s = 12e9, latency_s = 1.95e-6 },
  infiniband_hdr = { bandwidth_bytes_per_s = 24e9, latency_s = 1.95e-6 },
  infiniband_ndr = { bandwidth_bytes_per_s = 48e9, latency_s = 1.95e-6 },
  -- A machine to an Ethernet switch: the payload of TCP in frames of 1,500 bytes is 1448/1538 of the line
  -- rate. 15 us each way through kernel and switch is an assumption: measure yours.
  ethernet_1g = { bandwidth_bytes_per_s = 0.1177e9, latency_s = 15e-6 },
  ethernet_10g = { bandwidth_bytes_per_s = 1.177e9, latency_s = 15e-6 },
  ethernet_25g = { bandwidth_bytes_per_s = 2.942e9, latency_s = 15e-6 },
  ethernet_100g = { bandwidth_bytes_per_s = 11.77e9, latency_s = 15e-6 },
}

local wire_fields = { bandwidth_bytes_per_s = true, latency_s = true, duplex = true }

local topology = {}

--- Names of all wires, sorted.
function topology.wires()
  local names = {}
  for name in util.sorted_pairs(wires) do names[#names + 1] = name end
  return names
end

--- The wire called `name`, a table of its own, with `changes` to its fields.
function topology.wire(name, changes)
  local found = wires[name]
  if not found then
    local names = topology.wires()
    util.fail("no wire '%s'%s (known: %s)", tostring(name), core.suggestion(tostring(name), names),
      table.concat(names, ', '))
  end
  local wire = {}
  for key, value in util.sorted_pairs(found) do wire[key] = value end
  if changes then
    util.expect('topology.wire', 'changes', changes, 'table')
    util.refuse_unknown(("wire '%s'"):format(name), changes, wire_fields)
    for key, value in util.sorted_pairs(changes) do wire[key] = value end
  end
  return wire
end

local Topology = {}
Topology.__index = Topology

local function count_of(owner, name, value)
  if type(value) ~= 'number' or value < 1 or value % 1 ~= 0 or value > 4096 then
    util.fail("%s: '%s': expected an integer from 1 to 4096, got %s", owner, name, util.describe(value))
  end
  return value
end

--- 0, 1, ... for a number, a list as it is.
local function numbers(which)
  if type(which) == 'table' then return which end
  local list = {}
  for i = 1, count_of('devices', 'which', which) do list[i] = i - 1 end
  return list
end

--- An empty cluster. Options: name, queue (see trinity.cluster).
function topology.new(options)
  options = options or {}
  util.expect('topology.new', 'options', options, 'table')
  util.refuse_unknown('topology.new', options, { name = true, queue = true })
  return setmetatable({ description = { name = options.name, queue = options.queue, device_types = {},
    devices = {}, links = {}, switches = {} } }, Topology)
end

--- Defines a kind of device for this cluster, as device_types of a description does. Those of
--- trinity.devices need no definition.
function Topology:device_type(name, fields)
  util.expect('device_type', 'name', name, 'string')
  self.description.device_types[name] = util.expect('device_type', 'fields', fields, 'table')
end

--- Adds devices of kind `type` to machine `node`: node/gpu0, node/gpu1, ... `which` is how many, or the
--- list of the numbers behind their names, in order. Options: name (instead of 'gpu'), speed. Returns the
--- list of names.
function Topology:devices(node, which, type, options)
  util.expect('devices', 'node', node, 'string')
  util.expect('devices', 'type', type, 'string')
  util.expect('devices', 'options', options or {}, 'table')
  util.refuse_unknown('devices', options or {}, { name = true, speed = true })
  local prefix, speed = options and options.name or 'gpu', options and options.speed
  util.expect('devices', 'name', prefix, 'string')
  local names = {}
  for i, number in ipairs(numbers(which)) do
    names[i] = ('%s/%s%s'):format(node, prefix, tostring(number))
    table.insert(self.description.devices, { name = names[i], type = type, node = node, speed = speed })
  end
  return names
end

--- A switch that all its traffic together shares; switches without a limit need no mention.
function Topology:switch(name, bandwidth_bytes_per_s)
  table.insert(self.description.switches, { name = name, bandwidth_bytes_per_s = bandwidth_bytes_per_s })
end

--- What a link is made of: `count` parallel wires as one.
local function bundle(wire, count)
  if type(wire) == 'string' then wire = topology.wire(wire) end
  util.expect('link', 'wire', wire, 'table')
  util.refuse_unknown('link', wire, wire_fields)
  util.expect('link', 'bandwidth_bytes_per_s', wire.bandwidth_bytes_per_s, 'number')
  return wire, wire.bandwidth_bytes_per_s * count_of('link', 'count', count or 1)
end

--- An end of links as a list of names.
local function endpoints_of(name, value)
  local list = type(value) == 'table' and value or { value }
  if #list == 0 then
    util.fail("link: '%s': expected the name of an endpoint or a list of names, got %s", name,
      type(value) == 'table' and 'an empty table' or util.describe(value))
  end
  for _, endpoint in ipairs(list) do util.expect('link', name, endpoint, 'string') end
  return list
end

--- Links two endpoints; an end that is a list gets a link each. `wire` is a name of topology.wires() or
--- { bandwidth_bytes_per_s =, latency_s =, duplex = }; `count` parallel ones (default 1) add up.
function Topology:link(from, to, wire, count)
  local one, bandwidth = bundle(wire, count)
  for _, a in ipairs(endpoints_of('from', from)) do
    for _, b in ipairs(endpoints_of('to', to)) do
      table.insert(self.description.links, { from = a, to = b, bandwidth_bytes_per_s = bandwidth,
        latency_s = one.latency_s, duplex = one.duplex })
    end
  end
end

--- Links every two of a list of endpoints.
function Topology:mesh(endpoints, wire, count)
  util.expect('mesh', 'endpoints', endpoints, 'table')
  for i = 1, #endpoints do
    for j = i + 1, #endpoints do self:link(endpoints[i], endpoints[j], wire, count) end
  end
end

--- The description so far, as trinity.cluster takes it.
function Topology:spec() return self.description end

return topology
