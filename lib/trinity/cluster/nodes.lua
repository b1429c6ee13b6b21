-- Machines by name, and clusters of them: 'dgx_h100x4' is four machines, 'dgx_h100:2x4' two GPUs of each of four,
-- 'dgx_h100x2+dgx_a100' different machines on one network. (Clusters that are no row of machines are files of
-- models/clusters.)
--
-- A kind says how its GPUs are connected: by switches ('switch'), each with each ('mesh'), in a cube ('cube'), or over
-- PCIe and the CPUs ('pcie': four GPUs per CPU; bridges join pairs). There is one NIC per GPU in the first two and one
-- per two GPUs in a cube; in PCIe machines the NICs are attached to the CPUs. The network between machines is
-- non-blocking (a fat tree). A part of a machine has its first GPUs and their NICs. Sources:
-- the makers' data sheets of the machine or its board, unless a kind says otherwise; sheets and pages that they were
-- read in are named at the GPUs (lib/trinity/cluster/devices.lua).

local check = require 'trinity.base.check'
local collective_constants = require 'trinity.cluster.collective_constants'
local devices = require 'trinity.cluster.devices'
local topology = require 'trinity.cluster.topology'
local util = require 'trinity.base.util'

local nodes = {}

local kinds = {}

local function switched(gpu, count, wire, links, pcie, nic)
  return { layout = 'switch', gpu = gpu, gpus = count, wire = wire, links = links, pcie = pcie, nic = nic }
end
local function meshed(gpu, count, wire, links, pcie, nic)
  return { layout = 'mesh', gpu = gpu, gpus = count, wire = wire, links = links, pcie = pcie, nic = nic }
end
--- between: link of the two CPUs; nics: their number; bridge, links: the bridge of each pair of GPUs.
local function over_pcie(gpu, count, pcie, between, nics, nic, bridge, links)
  return { layout = 'pcie', gpu = gpu, gpus = count, pcie = pcie, between = between, nics = nics, nic = nic,
    wire = bridge, links = links }
end

-- NVSwitch: six of them with 12 NVLinks a GPU (DGX A100), four with 18 (DGX H100 and H200), two (DGX B200, B300).
kinds.dgx_a100 = switched('a100', 8, 'nvswitch3', 12, 'pcie4', 'infiniband_hdr')
kinds.dgx_a100_80gb = switched('a100_80gb', 8, 'nvswitch3', 12, 'pcie4', 'infiniband_hdr')
kinds.dgx_h100 = switched('h100', 8, 'nvswitch4', 18, 'pcie5', 'infiniband_ndr')
kinds.dgx_h200 = switched('h200', 8, 'nvswitch4', 18, 'pcie5', 'infiniband_ndr')
kinds.dgx_b200 = switched('b200', 8, 'nvswitch5', 18, 'pcie5', 'infiniband_ndr')
kinds.dgx_b300 = switched('b300', 8, 'nvswitch5', 18, 'pcie6', 'infiniband_xdr')
-- HGX boards: of eight GPUs as Meta's Grand Teton has them (torchtitan, its benchmark of Llama 3 on H100, December
-- 2024: 400 Gbit/s a GPU); of four, 12 or 18 NVLinks a GPU in equal bundles to the three others (A100: as JUWELS
-- Booster's).
kinds.hgx_h100_96gb = switched('h100_96gb', 8, 'nvswitch4', 18, 'pcie5', 'infiniband_ndr')
-- GPUs with fewer NVLinks (DeepSeek-AI, "DeepSeek-V3 Technical Report", 2024, 3.1: H800, a NIC for each).
kinds.hgx_a800 = switched('a800_80gb', 8, 'nvswitch3', 8, 'pcie4', 'infiniband_hdr')
kinds.hgx_h800 = switched('h800', 8, 'nvswitch4', 8, 'pcie5', 'infiniband_ndr')
kinds.hgx_h20 = switched('h20', 8, 'nvswitch4', 18, 'pcie5', 'infiniband_ndr')
-- Jean Zay's partition of A100: a port of 100 Gbit/s (Omni-Path) for every two GPUs (github
-- bigscience-workshop/bigscience, chronicles of BLOOM).
kinds.jean_zay_a100 = switched('a100_80gb', 8, 'nvswitch3', 12, 'pcie4', 'infiniband_edr')
kinds.jean_zay_a100.gpus_per_nic = 2
-- DGX-1: six NVLinks a GPU, one or two to each of four others.
kinds.dgx1_v100 = { layout = 'cube', gpu = 'v100', gpus = 8, wire = 'nvlink2', pcie = 'pcie3', nic = 'infiniband_edr' }
kinds.hgx_a100_4 = meshed('a100', 4, 'nvlink3', 4, 'pcie4', 'infiniband_hdr')
kinds.hgx_h100_4 = meshed('h100', 4, 'nvlink4', 6, 'pcie5', 'infiniband_ndr')
-- NVLink domains: 18 trays with four GPUs each, all 72 on the same switches.
kinds.gb200_nvl72 = switched('gb200', 72, 'nvswitch5', 18, 'pcie5', 'infiniband_ndr')
kinds.gb300_nvl72 = switched('gb300', 72, 'nvswitch5', 18, 'pcie6', 'infiniband_xdr')
-- Four GH200 with six NVLinks to each of three others (HPE Cray EX254n), and one a host.
kinds.gh200_4 = meshed('gh200', 4, 'nvlink4', 6, 'pcie5', 'infiniband_hdr')
kinds.gh200_1 = meshed('gh200_141gb', 1, 'nvlink4', 1, 'pcie5', 'infiniband_ndr')
-- AMD: eight MI300X to MI355X with one xGMI link between every two; four MI250X (HPE Cray EX235a).
kinds.mi300x_8 = meshed('mi300x', 8, 'xgmi_mi300', 1, 'pcie5', 'infiniband_ndr')
kinds.mi325x_8 = meshed('mi325x', 8, 'xgmi_mi300', 1, 'pcie5', 'infiniband_ndr')
kinds.mi355x_8 = meshed('mi355x', 8, 'xgmi_mi300', 1, 'pcie5', 'infiniband_ndr')
kinds.mi250x_4 = meshed('mi250x', 4, 'xgmi_mi200', 1, 'pcie4', 'infiniband_hdr')
-- Servers and workstations without NVSwitch; their NICs are common choices, not the only ones.
kinds.p100_4 = over_pcie('p100', 4, 'pcie3', 'upi', 1, 'infiniband_edr')
kinds.v100_pcie_4 = over_pcie('v100_pcie', 4, 'pcie3', 'upi', 1, 'infiniband_edr')
kinds.v100_pcie_32gb_4 = over_pcie('v100_pcie_32gb', 4, 'pcie3', 'upi', 1, 'infiniband_edr')
kinds.t4_4 = over_pcie('t4', 4, 'pcie3', 'upi', 1, 'infiniband_edr')
kinds.titan_rtx_4 = over_pcie('titan_rtx', 4, 'pcie3', 'upi', 1, 'infiniband_edr', 'nvlink2', 2)
kinds.rtx2080ti_8 = over_pcie('rtx2080ti', 8, 'pcie3', 'upi', 1, 'infiniband_edr')
kinds.rtx3090_8 = over_pcie('rtx3090', 8, 'pcie4', 'infinity_fabric', 1, 'infiniband_edr')
kinds.rtx4090_8 = over_pcie('rtx4090', 8, 'pcie4', 'infinity_fabric', 1, 'infiniband_edr')
kinds.a40_8 = over_pcie('a40', 8, 'pcie4', 'infinity_fabric', 1, 'infiniband_edr', 'nvlink3_bridge', 4)
kinds.a10_4 = over_pcie('a10', 4, 'pcie4', 'infinity_fabric', 1, 'infiniband_edr')
kinds.l4_8 = over_pcie('l4', 8, 'pcie4', 'infinity_fabric', 1, 'infiniband_edr')
kinds.l40s_8 = over_pcie('l40s', 8, 'pcie4', 'infinity_fabric', 2, 'infiniband_hdr')
kinds.a100_pcie_8 = over_pcie('a100_pcie', 8, 'pcie4', 'infinity_fabric', 2, 'infiniband_hdr', 'nvlink3', 12)
kinds.a100_pcie_80gb_8 = over_pcie('a100_pcie_80gb', 8, 'pcie4', 'infinity_fabric', 2, 'infiniband_hdr', 'nvlink3', 12)
kinds.h100_pcie_8 = over_pcie('h100_pcie', 8, 'pcie5', 'upi2', 2, 'infiniband_ndr', 'nvlink4', 12)

local fitted = collective_constants.fitted()

--- The library of collectives of a machine with NVSwitches, nil for others. Switches of Hopper and later add up.
local function library_of(kind)
  if kind.layout ~= 'switch' then return nil end
  local memory = devices.find(kind.gpu).memory_bandwidth_bytes_per_s
  return { multicast_bandwidth = fitted['multicast' .. kind.wire:match '%d$'] or 0,
    copy_bandwidth = fitted.copy_share * memory / 2 }
end

local function each_with_a_card(net, kind, name, gpus)
  local card = kind.nic
  if kind.layout == 'switch' then -- as measured collectives say
    card = topology.wire(card, { latency_s = fitted.infiniband_s / 2 - topology.wire(kind.pcie .. '_x16').latency_s })
  end
  for i, gpu in ipairs(gpus) do
    local share = kind.gpus_per_nic or 1
    local nic = ('%s/nic%d'):format(name, math.floor((i - 1) / share))
    net:link(gpu, nic, kind.pcie .. '_x16')
    if (i - 1) % share == 0 then net:link(nic, 'infiniband', card) end
  end
end

local layouts = {}

function layouts.switch(net, kind, name, gpus)
  net:link(gpus, name .. '/nvswitch', kind.wire, kind.links)
  each_with_a_card(net, kind, name, gpus)
end

function layouts.mesh(net, kind, name, gpus)
  if #gpus > 1 then net:mesh(gpus, kind.wire, kind.links) end
  each_with_a_card(net, kind, name, gpus)
end

--- Pairs of the hybrid cube mesh and their NVLinks (DGX-1 With Tesla V100 System Architecture, white paper, 2017).
local cube = { { 1, 2, 1 }, { 1, 3, 1 }, { 1, 4, 2 }, { 1, 5, 2 }, { 2, 3, 2 }, { 2, 4, 1 }, { 2, 6, 2 }, { 3, 4, 2 },
  { 3, 7, 1 }, { 4, 8, 1 }, { 5, 6, 1 }, { 5, 7, 1 }, { 5, 8, 2 }, { 6, 7, 2 }, { 6, 8, 1 }, { 7, 8, 2 } }

function layouts.cube(net, kind, name, gpus)
  for _, pair in ipairs(cube) do
    local a, b = gpus[pair[1]], gpus[pair[2]]
    if a and b then net:link(a, b, kind.wire, pair[3]) end
  end
  for i, gpu in ipairs(gpus) do
    local nic = ('%s/nic%d'):format(name, math.floor((i - 1) / 2))
    net:link(gpu, nic, kind.pcie .. '_x16')
    if i % 2 == 1 then net:link(nic, 'infiniband', kind.nic) end
  end
end

function layouts.pcie(net, kind, name, gpus)
  local processors = math.max(1, math.ceil(#gpus / 4))
  local function processor(i) return ('%s/cpu%d'):format(name, i) end
  for i, gpu in ipairs(gpus) do net:link(gpu, processor(math.floor((i - 1) / 4)), kind.pcie .. '_x16') end
  for i = 2, kind.wire and #gpus or 0, 2 do net:link(gpus[i - 1], gpus[i], kind.wire, kind.links) end
  for i = 1, processors - 1 do net:link(processor(0), processor(i), kind.between) end
  for i = 0, kind.nics - 1 do
    local nic = ('%s/nic%d'):format(name, i)
    net:link(processor(i % processors), nic, kind.pcie .. '_x16_inner')
    net:link(nic, 'infiniband', kind.nic)
  end
end

function nodes.names() return util.sorted_keys(kinds) end

--- The machine of the same name whose GPUs have more memory ('dgx_a100_80gb' of 'dgx_a100x2'), or nil.
function nodes.larger(name)
  local family = (name:match '^[%w_]*'):gsub('x%d+$', '')
  for _, known in ipairs(nodes.names()) do
    if known:sub(1, #family + 1) == family .. '_' and known:match('^%d+gb$', #family + 2) then return known end
  end
end

--- The GPUs of a machine of this kind, and which; nil where there is none.
function nodes.find(name)
  local kind = kinds[check.argument('nodes.find', 1, 'name', name, 'string')]
  if kind then return kind.gpus, kind.gpu end
end

local most = 131072

local function refuse(name, message, ...) util.fail('cluster %s: %s', util.quoted(name), message:format(...)) end

--- The parts of a name: kind, GPUs of each machine, machines; nil where one is no kind of machine.
local function parse(name)
  local parts = {}
  for word in (name .. '+'):gmatch '([^+]*)%+' do
    local rest, count = word:match '^(.-)x(%d+)$'
    if not rest then rest = word end
    local kind, gpus = rest:match '^(.-):(%d+)$'
    kind = kind or rest
    if not kinds[kind] then return nil, kind end
    parts[#parts + 1] = { kind = kind, gpus = tonumber(gpus or kinds[kind].gpus), count = tonumber(count or 1) }
  end
  return parts
end

--- Whether a name consists of machines alone; if it has the form of several machines or of parts, also the word that
--- names no machine.
function nodes.is(name)
  local parts, unknown = parse(name)
  return parts ~= nil, not parts and name:find '[+:]' and unknown or nil
end

--- The description of a cluster by the names of its machines.
function nodes.spec(name)
  local parts = parse(check.argument('nodes.spec', 1, 'name', name, 'string'))
  if not parts then refuse(name, 'expected kinds of machines') end
  local net, total = topology.new { queue = 'route' }, 0
  local library = library_of(kinds[parts[1].kind])
  for _, part in ipairs(parts) do
    local kind = kinds[part.kind]
    if part.gpus < 1 or part.gpus > kind.gpus then
      refuse(name, '%s has %d GPUs, got a part of %.0f', part.kind, kind.gpus, part.gpus)
    end
    if part.count < 1 then refuse(name, 'expected at least 1 %s, got %.0f', part.kind, part.count) end
    total = total + part.gpus * part.count
    if total > most then refuse(name, 'has %.0f devices, more than %d', total, most) end
    net:machines(part.count, function(at)
      layouts[kind.layout](net, kind, at, net:devices(at, part.gpus, kind.gpu))
    end)
    local other = library and library_of(kind)
    library = other and { multicast_bandwidth = math.min(library.multicast_bandwidth, other.multicast_bandwidth),
      copy_bandwidth = math.min(library.copy_bandwidth, other.copy_bandwidth) }
  end
  if library then net:collectives(library) end
  return net:spec()
end

--- A function of a count, as a file of models/clusters returns it.
function nodes.machines(name)
  return function(machines) return nodes.spec(('%sx%d'):format(name, machines)) end
end

--- Machines with `gpus` GPUs for a job, as a name that trinity.cluster takes. Schedulers give a job segments of equal
--- size (64 of a rack's 72 GPUs for 256): the fewest machines that divide the GPUs, up to twice the minimum, or else
--- full machines and a last one with the remainder.
function nodes.job(machine, gpus)
  local whole = nodes.find(machine)
  local fewest = math.ceil(gpus / whole)
  for count = fewest, 2 * fewest do
    if gpus % count == 0 then return ('%s:%dx%d'):format(machine, gpus / count, count) end
  end
  return ('%s:%dx%d+%s:%d'):format(machine, whole, fewest - 1, machine, gpus - whole * (fewest - 1))
end

return nodes
