-- trinity expect: compares predicted and measured step times of a job, and splits the prediction by cause, with a
-- remedy for each.

local measured_runs = require 'trinity.job.measured_runs'
local memory = require 'trinity.job.memory'
local util = require 'trinity.base.util'

local expect = {}

--- Returns the step time in a log of Megatron-LM, a fork or torchtitan (median of the last two thirds), and the steps.
function expect.measured(text, job)
  local steps = {}
  for unit, time in text:gmatch 'elapsed time per iteration %((m?s)%): ([%d.]+)' do
    steps[#steps + 1] = tonumber(time) / (unit == 'ms' and 1000 or 1)
  end
  local tokens = job.global_batch * job.model.sequence / job.gpus
  for rate in text:gsub('\27%[[%d;]*m', ''):gmatch '%f[%a][tw]ps: *([%d,.]+)' do -- wps: releases of 2024
    steps[#steps + 1] = tokens / tonumber((rate:gsub(',', '')))
  end
  local kept = { unpack(steps, math.floor(#steps / 3) + 1) }
  return #kept > 0 and util.median(kept) or nil, #steps
end

-- Exposed seconds by purpose: what they are, the change that removes them, and words of a simulated change.
local waits = {
  tensor = { 'exposed tensor communication', 'less tensor parallelism, or overlap' },
  context = { 'exposed context communication', 'less context parallelism' },
  expert = { 'exposed expert communication', 'less expert parallelism, or overlap' },
  pipeline = { 'exposed communication between stages', 'fewer stages' },
  weights = { 'exposed gathering of weights', 'overlapped gathering, or less sharding' },
  gradients = { 'exposed reduction of gradients', 'overlapped reduction, or more micro-batches', '^distributed' } }

-- Returns the exposed seconds of a stage by axis or purpose. Axes share the seconds of a purpose by their bytes.
local function exposed_of(stage)
  local found = { weights = stage.exposed_s.weights, gradients = stage.exposed_s.gradients }
  for purpose, axes in util.sorted_pairs { splits = { 'tensor', 'context', 'expert' }, activations = { 'pipeline',
    'context' } } do
    local bytes, all = {}, 0
    for _, row in ipairs(stage.traffic) do
      if (row.kind == 'send') == (purpose == 'activations') and row.axis then
        bytes[row.axis] = (bytes[row.axis] or 0) + row.count * row.bytes
      end
    end
    for _, axis in ipairs(axes) do all = all + (bytes[axis] or 0) end
    for i, axis in ipairs(axes) do
      local share = all > 0 and (bytes[axis] or 0) / all or i == 1 and 1 or 0
      found[axis] = (found[axis] or 0) + share * stage.exposed_s[purpose]
    end
  end
  return found
end

-- Returns the seconds that a stage computes without the host's part, and with a larger micro-batch, or nil.
local function computing(one, s, larger)
  local function seconds(case)
    local ok, found = pcall(memory.evaluated, util.merged(case, { runtime = util.merged(case.runtime,
      { launch_share = 1e-9, dispatch_share = 1e-9 }) }))
    return ok and found.stages[s].computation_s or nil
  end
  return seconds(one), larger and seconds(larger.case)
end

--- Returns the predicted step time and its causes on the stage that computes longest: { step_time_s, mean_error (of
--- the constants; nil if no run confirms them), causes { what, seconds, remedy, change (a simulated one), gives_s },
--- changes { name, gives_s } that make the step faster, nearest (runs measured by others), flops_per_token }.
function expect.of(job, cluster)
  local one = memory.case(job, cluster, true)
  local now, s, changes = memory.evaluated(one), 1, memory.changes(job, one, true)
  for i, stage in ipairs(now.stages) do if stage.computation_s > now.stages[s].computation_s then s = i end end
  local stage, larger = now.stages[s], nil
  for _, change in ipairs(changes) do
    if change.name == ('micro-batch %d'):format(2 * job.micro_batch) then larger = change end
  end
  local bare, batched = computing(one, s, larger)
  local host = bare and math.max(0, stage.computation_s - bare) or 0
  local small = bare and batched and math.max(0, bare - batched) or 0
  local causes = { { what = 'computing', seconds = stage.computation_s - stage.recomputation_s - host - small },
    { what = 'recomputation', seconds = stage.recomputation_s, remedy = 'less recomputation', by = '^no recomp' },
    { what = 'host: launches of kernels', seconds = host, remedy = 'CUDA graphs, or fused kernels',
      by = '^use of CUDA' },
    { what = ('micro-batch %d: kernels below their rate'):format(job.micro_batch), seconds = small,
      remedy = 'a larger micro-batch', by = larger and '^' .. larger.name:gsub('%-', '%%-') .. '$' },
    { what = 'pipeline bubble and idle', seconds = stage.idle_s, remedy = 'more micro-batches or virtual stages',
      by = 'virtual stages' } }
  for purpose, seconds in util.sorted_pairs(exposed_of(stage)) do
    causes[#causes + 1] = { what = waits[purpose][1], seconds = seconds, remedy = waits[purpose][2],
      by = waits[purpose][3] }
  end
  local faster = {}
  for _, change in ipairs(changes) do
    local ok, other = pcall(memory.evaluated, change.case)
    local gives_s = ok and other.fits and now.step_time_s - other.step_time_s or 0
    if gives_s > 0 then faster[#faster + 1] = { name = change.name, gives_s = gives_s } end
    for _, cause in ipairs(gives_s > 0 and causes or {}) do
      if cause.by and change.name:find(cause.by) then cause.change, cause.gives_s = change.name, gives_s end
    end
  end
  for _, cause in ipairs(causes) do cause.by = nil end
  local model = job.model -- model FLOPs per token, both passes: PaLM, Chowdhery et al. 2022, appendix B
  local flops = 6 * now.active_parameters + 12 * model.layers * model.hidden * model.sequence
  local nearest = measured_runs.nearest({ flops_per_token = flops, gpus = job.gpus, sequence = model.sequence,
    gpu = now.gpu, mixture = (model.experts or 0) > 0, precision = one.options.dtype }, 3)
  return { flops_per_token = flops, nearest = nearest, step_time_s = now.step_time_s, mean_error = now.mean_error,
    cluster = one.cluster, causes = memory.sorted(causes, 'seconds', 'what'),
    changes = memory.sorted(faster, 'gives_s', 'name') }
end

return expect
