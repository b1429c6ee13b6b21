-- trinity expect: the step time of a job as predicted and measured, and where the time goes, each with what removes it.

local measured_runs = require 'trinity.job.measured_runs'
local memory = require 'trinity.job.memory'
local util = require 'trinity.base.util'

local expect = {}

--- Seconds of a step in a log of Megatron-LM or torchtitan: the median of the last two thirds; how many there are.
---@param text string
---@param job trinity.JobFile
---@return number? step_s
---@return integer count
function expect.measured(text, job)
  local steps = {}
  for milliseconds in text:gmatch 'elapsed time per iteration %(ms%): ([%d.]+)' do
    steps[#steps + 1] = tonumber(milliseconds) / 1000
  end
  local tokens = job.global_batch * job.model.sequence / job.gpus
  for rate in text:gsub('\27%[[%d;]*m', ''):gmatch 'tps: ([%d,]+)' do
    steps[#steps + 1] = tokens / tonumber((rate:gsub(',', '')))
  end
  local kept = { unpack(steps, math.floor(#steps / 3) + 1) }
  return #kept > 0 and util.median(kept) or nil, #steps
end

-- Exposed seconds of a device by what they wait for.
local waits = { splits = { 'exposed tensor, context and expert communication', 'less tensor parallelism, or overlap' },
  activations = { 'exposed communication between stages', 'fewer stages' },
  weights = { 'exposed gathering of weights', 'overlapped gathering, or less sharding' },
  gradients = { 'exposed reduction of gradients', 'overlapped reduction, or more micro-batches' } }

--- Predicted seconds of a step and where they go on the device that computes most: { step_time_s, mean_error (of the
--- constants, nil where no run confirms them), causes { what, seconds, remedy }, the most first, changes { name,
--- gives_s } that are faster, nearest (runs that others measured), flops_per_token }.
---@param job trinity.JobFile
---@param cluster string as memory.case
---@return table
function expect.of(job, cluster)
  local one = memory.case(job, cluster, true)
  local now = memory.evaluated(one)
  local busiest = now.devices[1]
  for _, device in ipairs(now.devices) do
    if device.computation_s > busiest.computation_s then busiest = device end
  end
  local causes = { { what = 'computing', seconds = busiest.computation_s - busiest.recomputation_s },
    { what = 'recomputation', seconds = busiest.recomputation_s, remedy = 'less recomputation' },
    { what = 'pipeline bubble and idle', seconds = busiest.idle_s, remedy = 'more micro-batches or virtual stages' } }
  for purpose, seconds in util.sorted_pairs(busiest.exposed_s) do
    causes[#causes + 1] = { what = waits[purpose][1], seconds = seconds, remedy = waits[purpose][2] }
  end
  table.sort(causes, function(a, b)
    if a.seconds ~= b.seconds then return a.seconds > b.seconds end
    return a.what < b.what
  end)
  local faster = {}
  for _, change in ipairs(memory.changes(job, one, true)) do
    local ok, other = pcall(memory.evaluated, change.case)
    if ok and other.fits and other.step_time_s < now.step_time_s then
      faster[#faster + 1] = { name = change.name, gives_s = now.step_time_s - other.step_time_s }
    end
  end
  table.sort(faster, function(a, b)
    if a.gives_s ~= b.gives_s then return a.gives_s > b.gives_s end
    return a.name < b.name
  end)
  local model = job.model
  local flops = measured_runs.flops_per_token(now.active_parameters, model.layers, model.hidden, model.sequence)
  local nearest = measured_runs.nearest({ flops_per_token = flops, gpus = job.gpus, sequence = model.sequence,
    gpu = now.gpu, mixture = (model.experts or 0) > 0, precision = one.options.dtype }, 3)
  return { flops_per_token = flops, nearest = nearest,
    step_time_s = now.step_time_s, mean_error = now.mean_error, causes = causes, changes = faster,
    cluster = one.cluster }
end

return expect
