-- trinity plan --from: searches degrees, micro-batch size, recomputation and sharding for a job file of Megatron-LM or
-- torchtitan. Other settings stay. A plan only counts if the client's rules accept the changed file.

local arguments = require 'trinity.job.arguments'
local diff = require 'trinity.job.diff'
local job_files = require 'trinity.job'
local memory = require 'trinity.job.memory'
local model = require 'trinity.graph.model'
local plan = require 'trinity.plan'
local util = require 'trinity.base.util'

local replan = {}

-- Settings of a point: { path, value }, nil to remove an argument, false to turn a flag off; false is no entry.
local settings = {}

settings['Megatron-LM'] = function(point, job)
  local full, experts = point.recompute == 'full', job.model.experts
  local given = job.given.global_batch_size or job.given.step_batch_size_schedule
  return { { 'tensor_model_parallel_size', point.tensor }, { 'pipeline_model_parallel_size', point.pipeline },
    { 'context_parallel_size', point.context }, experts and { 'expert_model_parallel_size', point.expert } or false,
    experts and { 'expert_tensor_parallel_size', 1 } or false,
    { 'sequence_parallel', point.tensor > 1 and point.sequence_parallel },
    { 'num_layers_per_virtual_pipeline_stage' }, { 'pipeline_model_parallel_layout' },
    { 'decoder_first_pipeline_num_layers' }, { 'decoder_last_pipeline_num_layers' },
    { 'account_for_embedding_in_pipeline_split', false }, { 'account_for_loss_in_pipeline_split', false },
    { 'num_virtual_stages_per_pipeline_rank', point.virtual_stages > 1 and point.virtual_stages or nil },
    { 'use_tp_pp_dp_mapping', (point.rank_order or ''):find 'pipeline%-data$' ~= nil },
    { 'micro_batch_size', point.micro_batch },
    not given and point.micro_batch * point.data ~= job.global_batch and { 'global_batch_size', job.global_batch },
    { 'recompute_granularity', point.recompute ~= 'none' and point.recompute or nil },
    { 'recompute_method', full and 'uniform' or nil }, { 'recompute_num_layers', full and 1 or nil },
    { 'recompute_modules' }, job.zero_stage < 2 and { 'use_distributed_optimizer', point.zero_stage > 0 },
    point.zero_stage == 0 and { 'overlap_param_gather', false } }
end

local schedules = { ['1f1b'] = '1F1B', interleaved = 'Interleaved1F1B', gpipe = 'GPipe' }

settings.torchtitan = function(point, job)
  local list, pipeline = {}, point.pipeline > 1
  for _, name in ipairs { 'tensor', 'pipeline', 'context', 'expert' } do
    list[#list + 1] = { ('parallelism.%s_parallel_degree'):format(name), point[name] }
  end
  for _, name in ipairs { 'layers_per_stage', 'first_stage_less_layers', 'last_stage_less_layers' } do
    list[#list + 1] = { 'parallelism.pipeline_parallel_' .. name }
  end
  local own = point.micro_batch * (pipeline and point.micro_batches or 1)
  local batch = own * point.data ~= job.global_batch or job.given['training.global_batch_size']
  return util.joined(list, { { 'parallelism.data_parallel_shard_degree', -1 }, { 'training.local_batch_size', own },
    batch and { 'training.global_batch_size', job.global_batch } or false,
    { 'parallelism.pipeline_parallel_microbatch_size', pipeline and point.micro_batch or nil },
    { 'parallelism.pipeline_parallel_schedule', pipeline and schedules[point.schedule] or nil },
    { 'activation_checkpoint.mode', point.recompute },
    { 'activation_checkpoint.selective_ac_option' } })
end

-- Returns the settings that differ from the job's: { path, value, name, given, kind, now }.
local function changed(job, list)
  local kept = {}
  for _, one in ipairs(list) do
    local path, value = unpack(one or {}, 1, 2)
    local argument = path and arguments.of(job, path) or {}
    local now = argument.value
    if now ~= value and (value or now and argument.given) then
      kept[#kept + 1] = { path = path, value = value, name = argument.name, given = argument.given,
        kind = argument.kind, now = now }
    end
  end
  return kept
end

function replan.with(job, changes)
  local now = job
  for _, one in ipairs(changes) do now = arguments.with(now, one.path, one.value or nil) end
  return job_files.settle(util.merged(now))
end

local function seconds_of(job, cluster)
  local ok, found = pcall(memory.step, job, cluster) -- a point that cannot be simulated
  return ok and found or nil
end

-- Returns whether a changed job has a finding that the job has not.
local function finds_more(job, other)
  local codes = util.set(util.map(job.findings, function(finding) return finding.code end))
  for _, finding in ipairs(other.findings) do if not codes[finding.code] then return true end end
end

--- Returns the fastest plan that the client accepts, with the seconds that each change saves: { changes, job,
--- step_time_s }, or nil if none is faster; and the step time of the unchanged job. keep: settings that stay (tensor,
--- pipeline, context, expert, micro_batch, recompute, zero_stage). writes: whether the file can hold changes; if it can
--- hold none of the faster plans, the fastest is returned.
function replan.from(job, options)
  local one = memory.case(job, options.cluster)
  local make = settings[job.client]
  if not make then util.fail('trinity plan --from: %s: expected a file of Megatron-LM or torchtitan, got %s, whose '
    .. 'files can only be checked', job.path, job.client) end
  local titan = job.client == 'torchtitan'
  local recompute = type(job.recompute) == 'table' and job.recompute.granularity or 'none'
  local current = { tensor = job.mesh.tensor, pipeline = job.mesh.pipeline, context = job.mesh.context or 1,
    expert = job.mesh.expert or 1, micro_batch = job.micro_batch, recompute = recompute, zero_stage = job.zero_stage }
  local space = { stages = 'even', schedule = { '1f1b', 'interleaved' },
    recompute = titan and { 'none', 'full' } or { 'none', 'selective', 'full' },
    zero_stage = titan and { 3 } or job.zero_stage > 1 and { job.zero_stage } or { 0, 1 },
    context = { current.context, 2 * current.context } }
  for _, name in ipairs(options.keep or {}) do
    if current[name] == nil then
      util.fail("trinity plan --from: option 'keep': unknown dimension %s",
        util.unknown(name, util.sorted_keys(current)))
    end
    space[name] = current[name]
  end
  local found = plan { cluster = model.cluster(one.cluster, { runtime = one.runtime }),
    global_batch = job.global_batch,
    graph = function(micro_batch)
      return model.load('decoder', util.merged(one.options, { batch_size = micro_batch,
        sequence = job.model.sequence }))
    end, runtime = titan and 'torchtitan' or 'megatron', space = space, plans = 24,
    simulations = options.simulations or 48, quiet = options.quiet }
  local now, best, other_best = seconds_of(job, options.cluster), nil, nil
  for _, candidate in ipairs(found.plans) do
    local changes = changed(job, make(candidate.point, job))
    local other = replan.with(job, changes)
    local step = other.legal and not finds_more(job, other) and #changes > 0 and seconds_of(other, options.cluster)
    local one_plan = step and (not now or step < now) and { changes = changes, job = other, step_time_s = step }
    if one_plan and (not options.writes or options.writes(changes)) then
      if not best or step < best.step_time_s then best = one_plan end
    elseif one_plan and (not other_best or step < other_best.step_time_s) then
      other_best = one_plan
    end
  end
  best = best or other_best
  for at = best and #best.changes or 0, 1, -1 do
    local change, rest = best.changes[at], { unpack(best.changes) }
    table.remove(rest, at)
    local without = replan.with(job, rest)
    local step = without.legal and seconds_of(without, options.cluster)
    change.gives_s = step and step - best.step_time_s or nil -- nil: the other changes need it
    if change.gives_s == 0 and not finds_more(job, without) then best.changes, best.job = rest, without end
  end
  return best, now
end

-- Returns whether two values, also lists and tables, are equal.
local function same(a, b)
  if type(a) ~= 'table' or type(b) ~= 'table' then return a == b end
  for key in util.sorted_pairs(util.merged(a, b)) do if not same(a[key], b[key]) then return false end end
  return true
end

--- Returns the output of the command: { lines (a unified diff), step_time_s (of the plan; nil if no plan is faster),
--- before_s, changes { name, now, value, gives_s }, missed }. A change is written where the client then reads it, and
--- nothing else differs. A diff without missed changes gives a file that the client accepts.
---@param path string
---@param options table cluster, keep, simulations, output, quiet
---@return table
function replan.run(path, options)
  local found, text = job_files.read(path, { gpus = memory.gpus_of(options.cluster) }), util.read_file(path)
  local function apply(changes)
    local written = found
    return diff.apply(path, text, changes, function(changed_text, change)
      local wanted = arguments.with(written, change.path, change.value or nil)
      local ok, again = pcall(job_files.reread, found, changed_text)
      ok = ok and same(again.values, wanted.values) and #again.unread == #found.unread
      written = ok and wanted or written
      return ok
    end)
  end
  local best, now = replan.from(found, util.merged(options, { writes = function(changes)
    local changed_text, _, missed = apply(changes)
    return #missed == 0 and job_files.settle(job_files.reread(found, changed_text)).legal
  end }))
  if not best then
    return { before_s = now, changes = {}, missed = {}, lines = {
      now and ('no plan is faster than the file: %.4g s per step'):format(now) or 'no plan fits that the client '
        .. 'accepts' } }
  end
  local changed_text, entries, missed = apply(best.changes)
  local lines = { ('--- %s\t%s'):format(path, now and ('%.4g s per step'):format(now) or 'does not fit'),
    ('+++ %s\t%.4g s per step'):format(options.output or path, best.step_time_s) }
  for _, line in ipairs(diff.hunks(entries)) do lines[#lines + 1] = line end
  for _, change in ipairs(missed) do
    lines[#lines + 1] = ('change by hand: %s %s'):format(change.name, tostring(change.value or 'off'))
  end
  if options.output then util.write_file('plan', options.output, changed_text) end
  return { lines = lines, step_time_s = best.step_time_s, before_s = now, changes = util.map(best.changes,
    function(change) return util.picked(change, { 'name', 'now', 'value', 'gives_s' }) end),
    missed = util.map(missed, function(change) return change.name end) }
end

return replan
