-- What training reaches of a cluster's data sheets: constants, at most eight a set, which are fields of a description
-- (device_types, links, collectives), so that whatever is priced on it rests on them. calibration.apply() writes them:
--
--   local calibration = require 'trinity.cluster.calibration'
--   local spec = require('trinity.cluster.nodes').spec 'dgx_a100x8'
--   local cluster = trinity.cluster(calibration.apply(spec, calibration.fitted 'a100_vtrain'))
--
-- Values are those of calibration_fitted.lua by name, which fits (`trinity fidelity vtrain --fit`) make from the rows
-- that it lists, or a table of one's own. `spread` is the deviation of the logarithm that costs a fit as much as an
-- error of one `noise`.

local util = require 'trinity.base.util'
local with_named_types = require 'trinity.cluster.own_types'

local calibration = { list = {} }

local function constant(name, unit, start, least, most, spread, meaning)
  table.insert(calibration.list, { name = name, unit = unit, start = start, least = least, most = most,
    spread = spread, meaning = meaning })
end

constant('compute_efficiency', '1', 0.8, 0.4, 0.9, 0.3, 'what wide matrix products reach, of the peak')
constant('half_width', 'columns', 60, 10, 200, 0.3, 'columns at which a product reaches half of that')
constant('memory_efficiency', '1', 0.85, 0.5, 1.05, 0.3, 'what memory-bound kernels reach, of the bandwidth')
constant('launch_s', 's', 5e-6, 1e-6, 40e-6, 0.3, 'added to every kernel: its launch and the gap before it')
constant('dispatch_s', 's', 15e-6, 2e-6, 150e-6, 0.5,
  'what the host needs to dispatch a kernel, which the device waits for')
constant('inside_share', '1', 0.95, 0.6, 1.2, 0.3, 'what links inside a machine carry, of the description')
constant('shared_bandwidth', '1', 0.8, 0.4, 1, 0.3,
  'what of the inside of a machine a group gets beside other groups (collectives.shared_bandwidth)')
constant('network_share', '1', 0.95, 0.5, 1.2, 0.3, 'what links between machines carry, of the description')

constant('loss_share', '1', 0.4, 0.1, 1, 0.4,
  "what the loss reaches of memory-bound kernels' rate: it is several of them, which move more than is counted")

constant('call_s', 's', 15e-6, 4e-6, 100e-6, 0.5,
  'a call of a collective in a step: launching it, and the members meeting (collectives.call_s)')

local of_devices = { 'compute_efficiency', 'half_width', 'memory_efficiency', 'launch_s', 'dispatch_s' }

-- What a set need not have.
local extra = { loss_share = true, call_s = true }

--- Constants of a set, in the order of the list: those that `names` has, or all but what a set need not have
--- (loss_share, call_s).
---@param names? table<string, boolean>
---@return table[]
function calibration.constants(names)
  local found = {}
  for _, one in ipairs(calibration.list) do
    local taken = not extra[one.name]
    if names then taken = names[one.name] end
    if taken then found[#found + 1] = one end
  end
  return found
end

--- Where a description's endpoint stands: the machine, nil for what machines share; and whether it is a network card.
local function place_of(endpoint)
  return endpoint:match '^([^/]+)/', endpoint:find '/nic%d' ~= nil
end

--- Links with their shares: those to network cards and between machines are the network's.
local function scaled(links, values)
  return util.map(links or {}, function(link)
    local from, from_card = place_of(link.from)
    local to, to_card = place_of(link.to)
    local inside = from ~= nil and from == to and not from_card and not to_card
    local share = inside and values.inside_share or not inside and values.network_share or 1
    return util.merged(link, { bandwidth_bytes_per_s = link.bandwidth_bytes_per_s * share })
  end)
end

--- A kind of device with its constants.
local function changed(known, changes, loss_share)
  local made = util.merged(known, changes)
  if loss_share then
    made.operators = util.merged(known.operators or {}, { SoftmaxCrossEntropyLoss = { memory_efficiency = loss_share
      * made.memory_efficiency } })
  end
  return made
end

--- A description with the constants in its fields; those that `values` lacks stay as they are. Beside them kernels are
--- those of Megatron-LM unless values say otherwise: element-wise operators that follow each other are one
--- (fuses_elementwise), queries, keys and values are one product (joins_products), and arithmetic and traffic of a
--- kernel add up (overlap = 0). Kinds of devices must be defined in `device_types` or be among trinity.devices.
---@param spec trinity.ClusterSpec
---@param values table<string, number|boolean>
---@return trinity.ClusterSpec
function calibration.apply(spec, values)
  local devices = require 'trinity.cluster.devices'
  local types, changes = {}, {}
  spec = with_named_types(spec)
  for _, name in ipairs(of_devices) do changes[name] = values[name] end
  local joined = { fuses_elementwise = true, joins_products = true, overlap = 0 }
  for name, otherwise in util.sorted_pairs(joined) do
    if values[name] ~= nil then changes[name] = values[name] else changes[name] = otherwise end
  end
  local function add(list)
    for _, device in ipairs(list or {}) do
      local kind = device.type
      local known = (spec.device_types or {})[kind] or devices.find(kind)
      if known and not types[kind] then types[kind] = changed(known, changes, values.loss_share) end
    end
  end
  add(spec.devices)
  for _, machine in ipairs(spec.machines or {}) do add(machine.devices) end
  local result = util.merged(spec, { device_types = util.merged(spec.device_types or {}, types),
    links = scaled(spec.links, values) })
  if spec.machines then
    result.machines = util.map(spec.machines, function(machine)
      return util.merged(machine, { links = scaled(machine.links, values) })
    end)
  end
  if spec.collectives then
    result.collectives = util.merged(spec.collectives, { shared_bandwidth = values.shared_bandwidth,
      call_s = values.call_s })
  end
  return result
end

--- Values by name as fits start.
---@return table<string, number>
function calibration.starts()
  local values = {}
  for _, one in ipairs(calibration.constants()) do values[one.name] = one.start end
  return values
end

--- Names of the fitted sets, sorted.
---@return string[]
function calibration.names() return util.sorted_keys(require 'trinity.cluster.calibration_fitted') end

--- Values of a fitted set, and what it was fitted to.
---@param name string
---@return table<string, number> values
---@return string rows
function calibration.fitted(name)
  local all = require 'trinity.cluster.calibration_fitted'
  local found = all[name]
  if not found then util.fail('calibration: unknown name %s', util.unknown(name, util.sorted_keys(all))) end
  return found.values, found.rows
end

return calibration
