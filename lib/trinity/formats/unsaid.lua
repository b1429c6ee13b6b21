-- Settings of a plan that a format cannot represent. Every feature of a plan is listed here once; a format names those
-- that it supports.

local unsaid = {}

local function counted(number, what) return ('%d %s%s'):format(number, what, number == 1 and '' or 's') end

local function above_one(axis, words)
  return function(o)
    return o.mesh[axis] > 1 and ('%s = %d (%s)'):format(axis, o.mesh[axis], words) or nil
  end
end

local function offloads(field)
  return function(o)
    local fraction = o.strategy[field] or 0
    return fraction > 0 and ('%s = %g (CPU offload)'):format(field, fraction) or nil
  end
end

local shared = { 'optimizer states', 'optimizer states and gradients', 'optimizer states, gradients and weights' }

-- Features in the order of reports: a name, and a function that describes it for a plan (nil: the plan does not use
-- it).
local features = {
  { 'data', above_one('data', 'replicas; the file is for one') },
  { 'tensor', above_one('tensor', 'tensor parallelism') },
  { 'pipeline', above_one('pipeline', 'stages') },
  { 'context', above_one('context', 'context parallelism') },
  { 'expert', above_one('expert', 'expert parallelism') },
  { 'inside', above_one('placement', 'operators placed within stages') },
  { 'stages', function(o)
    return (o.broken or o.stages and #o.stages > 1) and ('layers per stage in %s%s'):format(
      o.stages and counted(#o.stages, 'stage') or 'stages', o.broken and ' (' .. o.broken .. ')' or '') or nil
  end },
  { 'schedule', function(o)
    return o.pipeline > 1 and ("schedule '%s'"):format(o.schedule) or nil
  end },
  { 'virtual_stages', function(o)
    return o.virtual_stages > 1 and counted(o.virtual_stages, 'stage') .. ' per rank' or nil
  end },
  { 'micro_batches', function(o)
    return o.micro_batches > 1 and ('%d micro-batches'):format(o.micro_batches) or nil
  end },
  { 'recompute', function(o)
    local word = o.strategy.recompute or 'none'
    return word ~= 'none' and ("recompute = '%s'"):format(word) or nil
  end },
  { 'sequence_parallel', function(o) return o.strategy.sequence_parallel and 'sequence_parallel' or nil end },
  { 'zero_stage', function(o)
    local shard = o.strategy.zero_stage or 0
    return shard > 0 and ('zero_stage = %d (%s)'):format(shard, shared[shard]) or nil
  end },
  { 'optimizer_offload_fraction', offloads 'optimizer_offload_fraction' },
  { 'activation_offload_fraction', offloads 'activation_offload_fraction' },
  { 'bucket_bytes', function(o)
    local bytes = o.strategy.bucket_bytes
    return bytes and ('bucket_bytes = %d'):format(bytes) or nil
  end },
  { 'cp_comm_type', function(o)
    return o.mesh.context > 1 and ("cp_comm_type = '%s'"):format(o.strategy.cp_comm_type or 'all_gather') or nil
  end },
  { 'sync', function(o)
    local way = o.strategy.sync
    local kind = way and way.kind or 'all_reduce'
    return way and (kind ~= 'all_reduce' or way.algorithm) and ("sync = { kind = '%s' }"):format(kind) or nil
  end },
  { 'operators', function(o)
    return o.strategy.operators and 'settings of single operators' or nil
  end },
  { 'order', function(o) return o.strategy.mesh and o.strategy.order and type(o.strategy.order[1]) == 'string'
    and 'order of the axes' or nil end },
  { 'devices', function(o) return o.strategy.mesh and o.strategy.devices and 'list of devices' or nil end },
  { 'placement', function(o)
    return not o.strategy.mesh and not o.stage_of and 'placement of operators' or nil
  end },
  { 'splits', function(o) return o.strategy.splits and next(o.strategy.splits) and 'splits of operators' or nil end },
}

--- Returns texts about the features of `outline` that are not in `said` (names as keys).
function unsaid.of(outline, said)
  local list = {}
  for _, feature in ipairs(features) do
    local text = not said[feature[1]] and feature[2](outline)
    if text then list[#list + 1] = text end
  end
  return list
end

return unsaid
