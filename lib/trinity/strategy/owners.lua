-- Owners of a device's peak memory (trinity.PeakBytes): names and colours, in the order of tables and pictures. The
-- palette is Okabe and Ito's (2008; report/colours.js), partly paler.

local core = require 'trinity.core'
local parallelism = require 'trinity.strategy.parallelism'
local simulator = require 'trinity.strategy.simulator'
local util = require 'trinity.base.util'

local owners = {}

owners.list = {
  { key = 'weights', name = 'weights', colour = '#56B4E9' },
  { key = 'optimizer', name = 'optimizer state', colour = '#CC79A7' },
  { key = 'gradients', name = 'gradients', colour = '#D55E00' },
  { key = 'activations', name = 'activations', colour = '#F0E442' },
  { key = 'activation_gradients', name = 'gradients of activations', colour = '#E69F00' },
  { key = 'delayed', name = 'waiting for weight gradients', colour = '#B59A00' },
  { key = 'received', name = 'received', colour = '#009E73' },
  { key = 'gathered', name = 'gathered weights', colour = '#0072B2' },
  { key = 'workspace', name = 'workspace', colour = '#999999' },
  { key = 'framework', name = 'framework', colour = '#666666' },
}

--- Returns the owners with any memory in one of these peaks.
function owners.of_any(peaks)
  local found = {}
  for _, owner in ipairs(owners.list) do
    local most = 0
    for _, peak in ipairs(peaks) do most = math.max(most, peak[owner.key] or 0) end
    if most > 0 then found[#found + 1] = owner end
  end
  return found
end

--- Returns the sum over owners.
function owners.sum(peak)
  local sum = 0
  for _, bytes in util.sorted_pairs(peak) do sum = sum + bytes end
  return sum
end

-- Returns the peaks of devices by owner. Except with gpipe, memory reaches its peak after a few of many micro-batches,
-- so fewer are simulated. All are simulated for a custom order.
local function peaks_of(strategy, devices)
  local all, few = strategy.micro_batches or 1, 4 * (strategy.mesh.pipeline or 1) * (strategy.virtual_stages or 1)
  local function found(count)
    return simulator.owners('strategy:picture', strategy.problem, strategy, devices, count)
  end
  if few >= all or strategy.schedule == 'gpipe' or strategy.schedule == 'order' then return found(all) end
  local list = found(few)
  for i, device in ipairs(devices) do
    if owners.sum(list[i]) ~= strategy.metrics:memory_bytes(device) then return found(all) end
  end
  return list
end

local stages = setmetatable({}, { __mode = 'k' }) -- by strategy; shared by tables and pictures

--- Returns for the first device of every stage of a mesh: stage, device, layers, chunks (parallelism.chunks),
--- peak_bytes, memory_bytes, compute_busy_s.
function owners.of_stages(strategy)
  if stages[strategy] then return stages[strategy] end
  local first = parallelism.first_devices { coordinates = core.mesh_coordinates(util.picked(strategy, { 'mesh', 'order',
    'devices' })) }
  local chunks = parallelism.chunks(strategy, (core.repeated_layers(strategy.problem.graph.handle)))
  local peaks, metrics = peaks_of(strategy, first), strategy.metrics
  stages[strategy] = util.map(first, function(device, stage)
    local layers = util.sum(chunks[stage], function(chunk) return chunk[2] - chunk[1] + 1 end)
    return { stage = stage, device = device, layers = layers, chunks = chunks[stage], peak_bytes = peaks[stage],
      memory_bytes = metrics:memory_bytes(device), compute_busy_s = metrics:compute_busy_s(device) }
  end)
  return stages[strategy]
end

return owners
