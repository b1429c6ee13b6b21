-- Comparison sailor: plans that Sailor's authors measured (seconds of an iteration, memory of the fullest GPU)
-- predicted by problem:evaluate over their profiles of layers (sailor_step.lua). --plans: a folder of
-- plans; --data: one with llm_info.json, profiles_tmp.json, providers/multizone_bandwidths_het.json, and, where they
-- exist, NETWORK_GPU_measured.json, profiles that replace others, and measured_again.csv, times of a second run.

local core = require 'trinity.core'
local csv = require 'trinity.base.csv'
local json = require 'trinity.base.json'
local sailor_plan = require 'studies.fidelity.sailor_plan'
local sailor_step = require 'studies.fidelity.sailor_step'
local util = require 'trinity.base.util'

local sailor = {
  name = 'sailor',
  quantity = 'seconds of an iteration',
  list = 'plans',
  json = { id = 'plan', predicted = 'predicted_s', memory_bytes = 'predicted_memory_bytes', refused = 'refused' },
  help = 'measured plans of Sailor, over its profiles of layers',
  shared = { data = 'sailor', plans = 'sailor/plans' },
  options = {
    plans = { default = '', help = 'folder of plans, with what is in it (JSON)' },
    data = { default = '', help = 'folder of profiles, sizes and bandwidths' },
  },
}

--- Assumptions where a plan is open, printed with the predictions.
sailor.assumptions = {
  "the network has the plan's number of layers (of several the one that its path names)",
  'a pass takes no longer than the same with a larger micro-batch: profiles of small ones hold the cost of launching',
  'GPUs of a group work in step; groups of GH200 have one NIC per GPU, the NICs of other groups are shared',
  'the time of a plan that ran twice is the geometric mean of both',
}

--- Constants of predictions in addition to the profiles, by kind of machines (calibrated.lua, sources).
sailor.priors = {
  network_share = { unit = '1', start = 0.8, least = 0.4, most = 1, spread = 0.2,
    meaning = 'share of a NIC, or of a measured rate, that sends between stages and all-reduces reach' },
  slot_s = { unit = 's', start = 2e-3, least = 0.2e-3, most = 10e-3, spread = 0.7,
    meaning = 'what the pipeline engine costs a forward and backward pass of a stage in addition to its layers' },
  state_bytes = { unit = 'B', start = 20, least = 16, most = 24, spread = 0.05,
    meaning = 'a weight: float32 with gradient and Adam 16, and a buffer that gradients are reduced in' },
  activation_share = { unit = '1', start = 1.1, least = 1, most = 1.3, spread = 0.1,
    meaning = 'activations in memory over those that layers keep (allocator, gradients of activations)' },
  logits_share = { unit = '1', start = 0.5, least = 0.05, most = 1.5, spread = 0.5,
    meaning = 'gradients of logits while the last layer runs over what it keeps' },
  context_bytes = { unit = 'B', start = 4e9, least = 1e9, most = 6e9, spread = 0.3,
    meaning = "what driver, libraries and workspaces take of a GPU's memory" },
}

--- The object of a file of --data; nil where it is `optional` and there is none.
local function object(folder, name, optional)
  local path = ('%s/%s'):format(folder, name)
  if not core.exists(path) then
    if optional then return nil end
    util.fail("trinity study fidelity sailor: option '--data': no file %s in %s", name, util.shortened(folder))
  end
  local found = json.read(path)
  if type(found) ~= 'table' then
    util.fail('%s: expected an object, got %s', util.shortened(path), util.describe(found))
  end
  return found
end

--- Sizes of layers (info), profiles and bandwidths of a folder.
function sailor.data(folder)
  local data = { info = object(folder, 'llm_info.json'), profiles = object(folder, 'profiles_tmp.json'),
    bandwidths = object(folder, 'providers/multizone_bandwidths_het.json'), again_s = {} }
  local again = folder .. '/measured_again.csv'
  for _, row in ipairs(core.exists(again) and csv.read(again, 'plan', 'real_again_s') or {}) do
    data.again_s[row.plan] = csv.number(again, row, 'real_again_s')
  end
  for network, by_gpu in util.sorted_pairs(data.profiles) do
    for gpu, profile in util.sorted_pairs(by_gpu) do
      by_gpu[gpu] = object(folder, ('%s_%s_measured.json'):format(network, gpu), true) or profile
    end
  end
  return data
end

local function names_below(folder, under, found)
  for _, name in ipairs(core.list_folder(folder .. under)) do
    local path = ('%s/%s'):format(under, name)
    if name:match '%.json$' then found[#found + 1] = { id = path:sub(2) }
    elseif core.exists(('%s%s/.'):format(folder, path)) then names_below(folder, path, found) end
  end
  return found
end

--- The memory that was measured; nil where it is less than half of what the plan's tensors take: it was measured on
--- another GPU than the plan's.
local function bytes_of(plan, data, values)
  local prediction = plan.measured_bytes and csv.attempt(sailor_step.predict, plan, data, values)
  local least = prediction and 0.5 * (prediction.predicted_memory_bytes - values.context_bytes)
  return not (least and plan.measured_bytes < least) and plan.measured_bytes or nil
end

local function row_of(plan, id, data)
  local family = sailor_plan.family(plan)
  local gpus = family == 'gh200' and 'GH200' or 'mixed nodes'
  local first_s = plan.measured_s
  return { id = id, plan = plan, data = data, family = family,
    measured = first_s and math.sqrt(first_s * (data.again_s[id] or first_s)),
    measured_bytes = bytes_of(plan, data, require('trinity.cluster.calibrated').sources.sailor[family]),
    group = ('%s, %s'):format(plan.network, gpus), left_out = sailor_plan.configuration(plan), runtimes = {},
    network_name = plan.network, gpus_text = gpus, plan_text = ('%d stages, %d replicas, micro-batch %d'):format(
      #plan.stages, plan.replicas, plan.micro_batch) }
end

--- All plans of a folder, each with `id`, its path there; one that is refused is { id, refused }.
function sailor.read(options)
  local data, folder = sailor.data(options.data), options.plans
  if not core.exists(folder .. '/.') then
    util.fail("trinity study fidelity sailor: option '--plans': %s: no such folder", util.shortened(folder))
  end
  return csv.attempted(names_below(folder, '', {}), function(one)
    local path = ('%s/%s'):format(folder, one.id)
    return row_of(sailor_plan.read(path, json.read(path), data.info), one.id, data)
  end)
end

function sailor.prediction(row, values)
  local all = values and values.sources or require('trinity.cluster.calibrated').sources
  local ok, found = pcall(sailor_step.predict, row.plan, row.data, all.sailor[row.family])
  if ok then return { predicted = found.predicted_s, memory_bytes = found.predicted_memory_bytes } end
  local why = tostring(found)
  util.fail('%s', why:find(row.plan.path, 1, true) and why or ('%s: %s'):format(row.plan.path, why))
end


return sailor
