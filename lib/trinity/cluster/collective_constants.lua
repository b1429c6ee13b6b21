-- Constants of collectives that no data sheet has, of links and of the communication library
-- (engine/cluster/library.h):
-- each with its bounds and the starting value of the fit. calibrated.lua has the fitted values (sources.collectives),
-- which `trinity study fidelity collectives --fit --save` writes.
--
-- Starts and spreads are priors: NCCL's own figures where it has some (src/graph/tuning.cc, src/graph/topo.h: latencies
-- of a step, shares of NVLink 0.8, of PCIe 0.76, of a network 0.96, of what NVLink SHARP reaches 0.85 and 0.74).
-- `spread` is the deviation of the logarithm that costs the fit as much as a row that is a tenth off.

local util = require 'trinity.base.util'

local list = {}
local function constant(name, unit, start, least, most, spread, meaning)
  list[#list + 1] = { name = name, unit = unit, start = start, least = least, most = most, spread = spread,
    meaning = meaning }
end

constant('call_s', 's', 10e-6, 4e-6, 25e-6, 0.4, 'latency of a call: launch and wait for all members')
constant('pipelining', '1', 0.3, 0.02, 3, 1, "part of the steps' latency that every chunk pays again")
constant('low_latency_hop', '1', 0.18, 0.05, 0.7, 0.5, 'latency of a step in small packets (LL), relative to chunks')
constant('low_latency_bandwidth', '1', 0.4, 0.2, 0.9, 0.4, 'bandwidth of small packets, relative to chunks')
constant('nvlink2_share', '1', 0.85, 0.7, 1, 0.1, 'what NVLink 1 and 2 carry, of the line rate')
constant('nvlink3_share', '1', 0.82, 0.7, 1, 0.1, 'what NVLink 3 carries, of the line rate')
constant('nvlink4_share', '1', 0.83, 0.7, 1, 0.1, 'what NVLink 4 carries, of the line rate')
constant('nvlink5_share', '1', 0.8, 0.7, 1, 0.1, 'what NVLink 5 carries, of the line rate')
constant('xgmi_share', '1', 0.72, 0.6, 1, 0.1, 'what xGMI links carry, of the line rate')
constant('host_share', '1', 0.76, 0.5, 1, 0.1,
  'what a PCIe slot carries to and from host memory, both ways together, of the line rate')
constant('copy_share', '1', 0.7, 0.2, 1, 0.3,
  "what a copy in a GPU's memory reaches, of half of its bandwidth: bytes are read and written")
constant('exchange_bandwidth', '1', 0.85, 0.5, 1, 0.1,
  'bandwidth of an all-to-all, which sends to each member separately, relative to rings')
constant('network_share', '1', 0.96, 0.8, 1, 0.03, 'bandwidth that NICs reach, relative to the line rate')
constant('nvlink2_s', 's', 3.4e-6, 0.4e-6, 8e-6, 0.4, 'a step over NVLink 1 or 2')
constant('nvlink3_s', 's', 3.4e-6, 0.4e-6, 8e-6, 0.4, 'a step over NVLink 3')
constant('nvlink4_s', 's', 3.4e-6, 0.4e-6, 8e-6, 0.4, 'a step over NVLink 4')
constant('nvlink5_s', 's', 3.4e-6, 0.4e-6, 8e-6, 0.4, 'a step over NVLink 5')
constant('xgmi_s', 's', 3.4e-6, 0.4e-6, 8e-6, 0.5, 'a step over xGMI')
constant('pcie_s', 's', 5.7e-6, 3e-6, 12e-6, 0.4, 'a step over PCIe')
constant('infiniband_s', 's', 9.6e-6, 4e-6, 40e-6, 0.5, 'a step over InfiniBand, or Ethernet with RDMA')
constant('efa_s', 's', 30e-6, 8e-6, 150e-6, 1, 'a step over EFA or Slingshot, which order packets in software')
constant('tcp_s', 's', 100e-6, 20e-6, 1000e-6, 1.5, 'a step over TCP between the memories of GPUs')
constant('multicast4', '1', 0.82, 0.5, 1, 0.1, 'what NVSwitches that add up reach on Hopper, of what NVLink carries')
constant('multicast5', '1', 0.75, 0.4, 1, 0.1, 'the same on Blackwell')
constant('multicast_s', 's', 25e-6, 5e-6, 60e-6, 0.5, 'latency of an all-reduce by switches that add up')
constant('rails', 'NICs', 12, 8, 72, 0.5, 'maximum number of NICs that the rings of one domain use')

local constants = { list = list, by_name = {} }
for _, one in ipairs(list) do constants.by_name[one.name] = one end

--- Values by name as the fit starts.
function constants.starts()
  local values = {}
  for _, one in ipairs(list) do values[one.name] = one.start end
  return values
end

--- Fitted values by name.
function constants.fitted()
  return util.merged(constants.starts(), require('trinity.cluster.calibrated').sources.collectives.wires)
end

--- The fitted constants that belong to the library, as clusters take them under `collectives`. (The others are
--- efficiency factors and latencies of links.)
function constants.library(values)
  values = values or constants.fitted()
  return { call_s = values.call_s, pipelining = values.pipelining, low_latency_hop = values.low_latency_hop,
    low_latency_bandwidth = values.low_latency_bandwidth, exchange_bandwidth = values.exchange_bandwidth,
    multicast_s = values.multicast_s, rails = values.rails }
end

return constants
