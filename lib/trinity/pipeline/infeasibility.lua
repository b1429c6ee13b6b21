-- Explains why a pipeline does not fit: which device exceeds its memory and by how much, or which node it cannot hold.
-- If a planner found no cut, explains it for the consecutive cut with the smallest maximum memory.

local core = require 'trinity.core'

local pipeline_infeasibility = {}

local most_devices = 1024 -- maximum for consecutive cuts (engine/search/pipeline/max_load_cut.h)

local function in_words(why, instance, capacity_bytes)
  local words = {}
  if why.device then
    words[1] = ('device %d needs %s, %s (%.0f bytes) more than its %s'):format(why.device,
      core.format_bytes(why.needed_bytes), core.format_bytes(why.over_bytes), why.over_bytes,
      core.format_bytes(capacity_bytes))
  end
  if why.node then
    words[#words + 1] = ('node %s runs on CPUs alone, and an accelerator has it'):format(
      tostring(instance.about.nodes[why.node]))
  end
  if #words == 0 then words[1] = 'nodes that share a unit are on several devices' end
  return table.concat(words, '; ')
end

--- Completes `infeasibility` of a result of the engine: { text =, device =, needed_bytes =, capacity_bytes =,
--- over_bytes =, node = }, as far as known.
local function complete(cut, instance)
  local why, capacity_bytes = cut.infeasibility, instance.machine.memory_bytes
  if why.device then why.capacity_bytes, why.over_bytes = capacity_bytes, why.needed_bytes - capacity_bytes end
  why.text = in_words(why, instance, capacity_bytes)
  return why
end

--- Adds infeasibility to a result `found` that does not fit, and least_infeasible if it has no cut, with stages from
--- as_result(instance, cut).
function pipeline_infeasibility.tell(found, instance, as_result)
  if found.feasible then return end
  if #found.assignment > 0 then
    if found.infeasibility then complete(found, instance) end
    return
  end
  if instance.machine.devices < 1 or instance.machine.devices > most_devices then return end
  local cut = as_result(instance, instance.network:cuts(instance.machine, 'memory', {}))
  found.least_infeasible = cut
  if cut.feasible then
    found.infeasibility = { text = 'what it keeps for micro-batches in flight, or its order of stages: cuts fit where '
      .. 'memory is balanced and one micro-batch is kept' }
  else
    found.infeasibility = complete(cut, instance)
    found.infeasibility.text = 'where consecutive cuts balance memory, ' .. found.infeasibility.text
  end
end

return pipeline_infeasibility
