-- strategy:breakdown(): memory, computation and communication of every device by purpose. The numbers are counted in
-- the simulated step (engine/simulator/account.h), not computed by formulas.

local parallelism = require 'trinity.strategy.parallelism'
local simulator = require 'trinity.strategy.simulator'
local util = require 'trinity.base.util'

---@class trinity.DeviceAccount
---@field device integer
---@field parameters integer trainable parameters on the device
---@field weight_bytes integer
---@field gradient_bytes integer gradients that updates and reductions after the last micro-batch read
---@field optimizer_bytes integer
---@field gathered_weight_bytes integer largest unit of weights that is gathered at once (ZeRO-3)
---@field activation_bytes integer peak of forward outputs that backward operators still need
---@field delayed_bytes integer part of activation_bytes that only delayed weight gradients need (zero-bubble schedules)
---@field peak_bytes trinity.PeakBytes by owner, at the first moment of peak memory; the sum is the peak
---@field activations? { embedding: integer, layers: integer, head: integer } with a mesh: by part of the network
---@field flops number
---@field computation_s number busy time per step, in seconds
---@field recomputation_s number part of computation_s spent on recomputation
---@field host_wait_s number part of computation_s that waits for copies of activations to or from the host
---@field exposed_s trinity.ExposedSeconds exposed communication by purpose
---@field idle_s number idle time without work: the rest of the step

---@class trinity.PeakBytes
---@field weights integer
---@field optimizer integer optimizer state
---@field gradients integer gradients of weights; all of them if gradient buffers are permanent
---@field activations integer outputs of forward operators, first or recomputed
---@field activation_gradients integer
---@field delayed integer data of activations that only delayed weight gradients still need (zero-bubble schedules)
---@field received integer tensors received from other devices and not read yet
---@field gathered integer weights gathered for use (ZeRO-3) or after their update
---@field workspace integer
---@field framework integer memory of the training software: CUDA context, communicators, workspaces of libraries

---@class trinity.ExposedSeconds
---@field splits number collectives between parts of an operator (tensor parallelism)
---@field activations number activations sent from one device to another
---@field weights number weights gathered for use or after their update
---@field gradients number

---@class trinity.Traffic
---@field kind 'send'|'all_reduce'|'reduce_scatter'|'all_gather'|'broadcast'|'all_to_all'
---@field axis? 'data'|'expert'|'tensor'|'context'|'placement'|'pipeline' along which the devices differ
---@field devices integer[]
---@field phase trinity.Phase phase of the operator that writes the data
---@field part? 'embedding'|'layers'|'head' with a mesh: part of the network
---@field bytes integer size of one message: the whole tensor, of a reduce-scatter before it
---@field count integer

---@class trinity.StageAccount: trinity.DeviceAccount
---@field stage integer
---@field layers integer
---@field traffic trinity.Traffic[] collectives in which the device takes part, and messages that it sends

---@class trinity.Account
---@field devices trinity.DeviceAccount[]
---@field traffic trinity.Traffic[]
---@field stages? trinity.StageAccount[] with a mesh: the first device of the first replica in every pipeline stage
---@field samples number samples per step
---@field samples_per_s number

local parts = { 'embedding', 'layers', 'head' }

--- Returns the axis along which devices of a mesh differ, or nil if there are several. Data and context together count
--- as 'data', because gradients and states are sharded over both.
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
  return util.find(row.devices, function(other) return other == device end) ~= nil
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

--- Scales counts over all mini-batches of an asynchronous pipeline to one step.
local function settle(devices, traffic, share)
  for _, device in ipairs(devices) do
    for _, name in ipairs { 'flops', 'computation_s', 'recomputation_s', 'host_wait_s', 'idle_s' } do
      device[name] = device[name] * share
    end
    for purpose, seconds in util.sorted_pairs(device.exposed_s) do device.exposed_s[purpose] = seconds * share end
  end
  for _, row in ipairs(traffic) do row.count = row.count * share end
end

--- Returns the account and the timeline of the step that it counts.
return function(found)
  local owner, there, low = 'strategy:breakdown', nil, nil
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
    device.peak_activations = nil -- trinity.job.memory has them by operator
  end
  for _, row in ipairs(traffic) do
    if low then row.part, row.axis = parts[row.group], axis_of(low.coordinates, row.devices) end
    if row.kind == 'all_to_all' and row.axis == 'data' then row.axis = 'expert' end -- expert is a factor of data
    row.group = nil
  end
  local account = { devices = devices, traffic = traffic,
    samples = found.metrics.samples, samples_per_s = found.metrics.samples_per_s }
  if low then account.stages = stages_of(found, low, account) end
  return account, timeline
end
