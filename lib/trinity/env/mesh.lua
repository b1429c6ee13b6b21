-- Environments in which actions are the words of a mesh, one after the other: degrees of parallelism, the schedule,
-- what is recomputed, the ZeRO stage. Devices that tensor, context and pipeline leave over are replicas. The graph's
-- batch is a micro-batch; replicas and micro-batches share the global batch.

local check = require 'trinity.base.check'
local util = require 'trinity.base.util'

local mesh = {}

local axes = { tensor = true, context = true, pipeline = true }
local known = util.set [[tensor context pipeline expert schedule zero_stage recompute sequence_parallel virtual_stages
  bucket_bytes]]

local function powers_of_two(most)
  local list = { 1 }
  while 2 * list[#list] <= most do list[#list + 1] = 2 * list[#list] end
  return list
end

--- The words of an environment on `devices` devices: a list of { name, values }; `given` or the default ones, checked.
function mesh.words(owner, given, devices)
  given = given or { { 'tensor', powers_of_two(devices) }, { 'pipeline', powers_of_two(devices) },
    { 'schedule', { '1f1b', 'gpipe', 'zb-h1' } }, { 'zero_stage', { 0, 1, 2, 3 } },
    { 'recompute', { 'none', 'full' } } }
  for i, word in ipairs(given) do
    if type(word) ~= 'table' or type(word[1]) ~= 'string' or type(word[2]) ~= 'table' or #word[2] == 0 then
      check.refuse(owner, 'option', 'words', "entry %d: expected { name, { values } }, as { 'tensor', { 1, 2, 4 } }", i)
    end
    check.choice(owner, 'option', ("words[%d][1]"):format(i), word[1], known)
    if axes[word[1]] then check.integers(owner, 'option', word[1], word[2], 1, 4096) end
  end
  return given
end

-- The degree that words so far leave to the replicas; nil where they do not divide the devices, nor replicas the batch.
local function replicas(of, chosen)
  local used = (chosen.tensor or 1) * (chosen.context or 1) * (chosen.pipeline or 1)
  local left = of.devices / used
  return left % 1 == 0 and left or nil
end

-- Schedules of several stages per device.
local interleaved = { interleaved = true, ['zb-interleaved'] = true, ['zb-v'] = true, ['dualpipe-v'] = true }

-- Whether stages per device fit the schedule and the pipeline, as far as these are chosen.
local function allows_stages(chosen)
  local several = chosen.virtual_stages and chosen.virtual_stages > 1
  if several and chosen.pipeline == 1 then return false end
  return several == nil or not chosen.schedule or several == (interleaved[chosen.schedule] or false)
end

--- Whether value `value` of word `name` may follow what is chosen.
function mesh.allows(of, chosen, name, value)
  local after = util.merged(chosen, { [name] = value })
  local data = replicas(of, after)
  if not data then return false end
  if name == 'schedule' and (after.pipeline or 1) == 1 then return value == '1f1b' end
  if not allows_stages(after) then return false end
  if name == 'zero_stage' and data == 1 then return value == 0 end
  if name == 'expert' then return data % value == 0 end
  return true
end

--- The plan of all words; nil and why where replicas do not share the global batch.
function mesh.plan(of, chosen)
  local data = replicas(of, chosen)
  if not data then return nil end
  local micro_batches = of.global_batch / (data * of.batch)
  if micro_batches % 1 ~= 0 then return nil end
  local plan = { micro_batches = micro_batches, mesh = { data = data, tensor = chosen.tensor, context = chosen.context,
    pipeline = chosen.pipeline, expert = chosen.expert } }
  for name, value in util.sorted_pairs(chosen) do
    if not axes[name] and name ~= 'expert' then plan[name] = value end
  end
  return plan
end

--- Whether the simulator's error says that degrees do not divide what they cut (layers, heads, a sequence, experts,
--- micro-batches), or that micro-batches are too few for the schedule. Such plans are infeasible, other errors are not.
function mesh.is_indivisible(message)
  return message:find 'divide' ~= nil or message:find 'expected at least %d+ micro_batches' ~= nil
end

--- The data of a problem that its environments share.
function mesh.new(problem, global_batch)
  local devices, batch = #problem.cluster.devices, math.max(1, problem.graph.batch_size)
  return { problem = problem, devices = devices, batch = batch, global_batch = global_batch or 4 * devices * batch,
    bound_s = problem:bounds().work_s * (global_batch or 4 * devices * batch) / batch }
end

return mesh
