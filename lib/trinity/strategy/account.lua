-- What a strategy's devices hold, compute and exchange, by kind: strategy:account(). Counted in the step that is
-- simulated (engine/simulator/account.h), not by formulas.

local parallelism = require 'trinity.strategy.parallelism'
local printed = require 'trinity.base.printed'
local simulator = require 'trinity.strategy.simulator'
local util = require 'trinity.base.util'

---@class trinity.DeviceAccount
---@field device integer
---@field parameters integer trainable ones that it holds
---@field weight_bytes integer
---@field gradient_bytes integer what updates and reductions behind the last micro-batch read
---@field optimizer_bytes integer
---@field gathered_weight_bytes integer the largest unit of weights that is gathered for its use
---@field activation_bytes integer what backward operators wait for, when it is most
---@field delayed_bytes integer of these: what gradients of weights wait for that a zero-bubble schedule delays
---@field peak_bytes trinity.PeakBytes by owner, in the first slot in which memory is at its peak: the sum is the peak
---@field activations? { embedding: integer, layers: integer, head: integer } of a mesh: the same by who waits
---@field flops number
---@field computation_s number of a step
---@field recomputation_s number of this what is computed again
---@field exposed_s trinity.ExposedSeconds waiting for messages that no computation hides, by what they are for
---@field idle_s number for want of work: the rest of the step

---@class trinity.PeakBytes
---@field weights integer
---@field optimizer integer state that stays from step to step
---@field gradients integer of weights; with buffers that stay from step to step all of them
---@field activations integer outputs of forward operators, first or recomputed
---@field activation_gradients integer
---@field delayed integer of both, what only delayed gradients of weights still wait for (zero-bubble schedules)
---@field received integer copies from other devices that nobody has read yet
---@field gathered integer weights gathered for their use (ZeRO-3) or after their update
---@field workspace integer
---@field framework integer what the training software holds itself: context, communicators, workspaces of libraries

---@class trinity.ExposedSeconds
---@field splits number collectives between parts of operators
---@field activations number from one device to another
---@field weights number gathered for their use or when they are updated
---@field gradients number

---@class trinity.Traffic
---@field kind 'send'|'all_reduce'|'reduce_scatter'|'all_gather'|'broadcast'|'all_to_all'
---@field axis? 'data'|'expert'|'tensor'|'context'|'placement'|'pipeline' along which devices differ, where it is one
---@field devices integer[]
---@field phase trinity.Phase of what writes it
---@field part? 'embedding'|'layers'|'head' of a mesh: of the network
---@field bytes integer of one: all of an all-reduced or gathered tensor, of a scattered one before
---@field count integer

---@class trinity.StageAccount: trinity.DeviceAccount
---@field stage integer
---@field layers integer
---@field traffic trinity.Traffic[] in which the device takes part; of sends those that it sends

---@class trinity.Account
---@field devices trinity.DeviceAccount[]
---@field traffic trinity.Traffic[]
---@field stages? trinity.StageAccount[] of a mesh: the first replica's first device of every stage of the pipeline
---@field samples number that a step trains on
---@field samples_per_s number

local parts = { 'embedding', 'layers', 'head' }

--- The axis along which devices of a mesh differ; 'data' of data and context together, over which gradients and states
--- are shared; nil where it is not one.
local function axis_of(coordinates, devices)
  local found
  for _, axis in ipairs { 'tensor', 'context', 'placement', 'data', 'pipeline' } do
    local at, differ = coordinates[axis], false
    for i = 2, #devices do differ = differ or at[devices[i]] ~= at[devices[1]] end
    if differ and found and not (found == 'context' and axis == 'data') then return nil end
    found = differ and axis or found
  end
  return found
end

local function takes_part(row, device)
  if row.kind == 'send' then return row.devices[1] == device end
  for _, other in ipairs(row.devices) do
    if other == device then return true end
  end
  return false
end

local function stages_of(found, low, account)
  local pipeline, first = found.mesh.pipeline or 1, parallelism.first_devices(low)
  return util.listed(pipeline, function(s)
    local layers, device, traffic = 0, first[s], {}
    for k = 1, #low.layers do layers = layers + (low.pipeline[k] == s and low.layers[k] or 0) end
    for _, row in ipairs(account.traffic) do
      if takes_part(row, device) then traffic[#traffic + 1] = row end
    end
    return util.merged({ stage = s, layers = layers, traffic = traffic }, account.devices[device])
  end)
end

--- What is counted over all mini-batches of a stream becomes what a step has of it.
local function settle(devices, traffic, share)
  for _, device in ipairs(devices) do
    for _, name in ipairs { 'flops', 'computation_s', 'recomputation_s', 'idle_s' } do
      device[name] = device[name] * share
    end
    for purpose, seconds in util.sorted_pairs(device.exposed_s) do device.exposed_s[purpose] = seconds * share end
  end
  for _, row in ipairs(traffic) do row.count = row.count * share end
end

local device_of = printed.as('account of a device', { 'device', 'computation_s', 'weight_bytes', 'gradient_bytes',
  'optimizer_bytes', 'activation_bytes' })
local account_of = printed.as('account', { 'devices', 'stages', 'samples', 'samples_per_s' })

--- The account, and the timeline of the step that it counts.
return function(found)
  local owner, there, low = 'strategy:account', nil, nil
  if found.mesh then
    there, low = select(2, simulator.lowered(owner, found.problem, found))
  end
  local timeline = simulator.timeline(owner, found.problem, found)
  local devices, traffic = timeline.handle:account(low and low.part)
  if there and there.schedule == 'round-robin' then
    settle(devices, traffic, there.micro_batches / timeline.micro_batches)
  end
  for d, device in ipairs(devices) do
    local by_part, total = {}, 0
    for i, name in ipairs(parts) do
      by_part[name] = device.activations[i] or 0
      total = total + by_part[name]
    end
    device.device, device.activation_bytes, device.activations = d, total + device.delayed_bytes, low and by_part
  end
  for _, row in ipairs(traffic) do
    if low then row.part, row.axis = parts[row.group], axis_of(low.coordinates, row.devices) end
    if row.kind == 'all_to_all' and row.axis == 'data' then row.axis = 'expert' end -- a factor of data
    row.group = nil
  end
  local account = account_of { devices = printed.each(device_of, devices), traffic = traffic,
    samples = found.metrics.samples, samples_per_s = found.metrics.samples_per_s }
  if low then account.stages = stages_of(found, low, account) end
  return account, timeline
end
