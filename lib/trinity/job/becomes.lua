-- The meaning of a job file on its GPUs: degrees, batches, layers per stage, and the collectives per rank and step,
-- counted by the client's schedule.

local util = require 'trinity.base.util'

local becomes = {}

--- Returns the number of decoder layers per rank (over all its virtual stages), or nil if the file does not give it.
function becomes.layers(job)
  local pipeline = job.mesh.pipeline or 1
  if not job.model.layers then return nil end
  if pipeline == 1 then return { job.model.layers } end
  if not job.stages then return nil end
  return util.listed(pipeline, function(rank)
    local sum = 0
    for at = rank, #job.stages, pipeline do sum = sum + job.stages[at] end
    return sum
  end)
end

local function words(list)
  local same = true
  for _, count in ipairs(list) do same = same and count == list[1] end
  return same and #list > 1 and ('%d each'):format(list[1]) or table.concat(list, ', ')
end

--- Returns the collectives per step { axis, what, count } of a rank with the maximum number of layers.
function becomes.collectives(job)
  local mesh, list, most = job.mesh, {}, 0
  for _, count in ipairs(becomes.layers(job) or {}) do most = math.max(most, count) end
  if most == 0 then most = math.ceil((job.model.layers or 0) / (mesh.pipeline or 1)) end
  local steps, full = job.micro_batches or 1, type(job.recompute) == 'table' and job.recompute.granularity == 'full'
  local passes = full and 3 or 2 -- forward, backward, and recomputed forward
  local function add(axis, what, count)
    if count > 0 then list[#list + 1] = { axis = axis, what = what, count = count } end
  end
  local tensor, context, data = mesh.tensor or 1, mesh.context or 1, (mesh.data or 1) * (mesh.context or 1)
  if tensor > 1 then
    if mesh.sequence_parallel then
      add('tensor', 'all-gather', 2 * most * steps * (passes + 1))
      add('tensor', 'reduce-scatter', 2 * most * steps * passes)
    else
      add('tensor', 'all-reduce', 2 * most * steps * passes)
    end
  end
  if context > 1 then add('context', 'exchange of keys and values', most * steps * passes) end
  if (mesh.expert or 1) > 1 then
    local layers = job.model.layers or 1
    add('expert', 'all-to-all', 2 * math.ceil(most * (layers - (job.dense_layers or 0)) / layers) * steps * passes)
  end
  if (mesh.pipeline or 1) > 1 then
    add('pipeline', 'send and receive', 2 * 2 * (mesh.virtual_stages or 1) * steps)
  end
  if data > 1 then
    local stage = job.zero_stage or 0
    if stage == 3 then
      add('data', 'all-gather of a layer', most * 2 * steps)
      add('data', 'reduce-scatter of a layer', most * steps)
    elseif stage > 0 then
      add('data', 'reduce-scatter of gradients', 1)
      add('data', 'all-gather of weights', 1)
    else
      add('data', 'all-reduce of gradients', 1)
    end
  end
  return list
end

function becomes.lines(job)
  local mesh, lines, degrees = job.mesh, {}, {}
  for _, name in ipairs { 'tensor', 'pipeline', 'context', 'expert', 'data' } do
    if mesh[name] then degrees[#degrees + 1] = ('%s %d'):format(name, mesh[name]) end
  end
  if #degrees > 0 then lines[1] = ('degrees: %s'):format(table.concat(degrees, ', ')) end
  local batch, micro, data = job.global_batch, job.micro_batch, mesh.data
  if batch and micro and job.micro_batches and data then
    lines[#lines + 1] = batch == micro * job.micro_batches * data
      and ('batch: %d samples per step = micro-batch %d x %d micro-batches x data %d'):format(batch, micro,
        job.micro_batches, data)
      or ('batch: %d samples per step, no multiple of micro-batch %d x data %d'):format(batch, micro, data)
  end
  local layers = becomes.layers(job)
  if layers then
    lines[#lines + 1] = ('layers of %d stage%s: %s%s'):format(#layers, #layers > 1 and 's' or '', words(layers),
      (mesh.virtual_stages or 1) > 1 and (', in %d virtual stages each'):format(mesh.virtual_stages) or '')
  end
  local parts = util.map(becomes.collectives(job), function(row)
    return ('%s: %d %s'):format(row.axis, row.count, row.what)
  end)
  if #parts > 0 then lines[#lines + 1] = 'collectives of a rank a step: ' .. table.concat(parts, '; ') end
  return lines
end

return becomes
