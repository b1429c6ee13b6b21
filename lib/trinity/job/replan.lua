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

local degrees = { 'tensor', 'pipeline', 'context', 'expert' }

-- Returns the arguments of a point: values by path, nil to remove an argument; `false` turns a flag off.
local settings = {}

settings['Megatron-LM'] = function(point, job)
  local list = {}
  local function set(path, value) list[#list + 1] = { path = path, value = value } end
  for _, name in ipairs { 'tensor_model', 'pipeline_model' } do
    set(name .. '_parallel_size', point[name:match '^%a+'])
  end
  set('context_parallel_size', point.context)
  if job.model.experts then
    set('expert_model_parallel_size', point.expert)
    set('expert_tensor_parallel_size', 1)
  end
  set('sequence_parallel', point.tensor > 1 and point.sequence_parallel)
  for _, path in ipairs { 'num_layers_per_virtual_pipeline_stage', 'pipeline_model_parallel_layout',
    'decoder_first_pipeline_num_layers', 'decoder_last_pipeline_num_layers' } do set(path, nil) end
  set('account_for_embedding_in_pipeline_split', false)
  set('account_for_loss_in_pipeline_split', false)
  set('num_virtual_stages_per_pipeline_rank', point.virtual_stages > 1 and point.virtual_stages or nil)
  set('use_tp_pp_dp_mapping', (point.rank_order or ''):find 'pipeline%-data$' ~= nil)
  set('micro_batch_size', point.micro_batch)
  if not job.given.global_batch_size and not job.given.step_batch_size_schedule
    and point.micro_batch * point.data ~= job.global_batch then
    set('global_batch_size', job.global_batch)
  end
  set('recompute_granularity', point.recompute ~= 'none' and point.recompute or nil)
  set('recompute_method', point.recompute == 'full' and 'uniform' or nil)
  set('recompute_num_layers', point.recompute == 'full' and 1 or nil)
  set('recompute_modules', nil)
  if job.zero_stage < 2 then set('use_distributed_optimizer', point.zero_stage > 0) end
  if point.zero_stage == 0 then set('overlap_param_gather', false) end
  return list
end

local schedules = { ['1f1b'] = '1F1B', interleaved = 'Interleaved1F1B', gpipe = 'GPipe' }

settings.torchtitan = function(point, job)
  local list = {}
  for _, name in ipairs(degrees) do
    list[#list + 1] = { path = ('parallelism.%s_parallel_degree'):format(name), value = point[name] }
  end
  local function set(path, value) list[#list + 1] = { path = path, value = value } end
  local pipeline = point.pipeline > 1
  set('parallelism.data_parallel_shard_degree', -1)
  set('training.local_batch_size', point.micro_batch * (pipeline and point.micro_batches or 1))
  local own = point.micro_batch * (pipeline and point.micro_batches or 1) * point.data
  if own ~= job.global_batch or job.given['training.global_batch_size'] then
    set('training.global_batch_size', job.global_batch)
  end
  if pipeline then
    set('parallelism.pipeline_parallel_microbatch_size', point.micro_batch)
    set('parallelism.pipeline_parallel_schedule', schedules[point.schedule])
  end
  set('activation_checkpoint.mode', point.recompute)
  set('activation_checkpoint.selective_ac_option', point.recompute == 'selective' and 'op' or nil)
  return list
end

-- Returns the arguments that differ from the job's.
local function changed(job, list)
  local kept = {}
  for _, one in ipairs(list) do
    local argument = arguments.of(job, one.path)
    local now = argument and argument.value
    if now ~= one.value and (one.value or now and argument.given) then
      kept[#kept + 1] = util.merged(one, { name = argument.name, given = argument.given, kind = argument.kind,
        now = now })
    end
  end
  return kept
end

--- Returns the job with changed arguments.
function replan.with(job, changes)
  local now = job
  for _, one in ipairs(changes) do now = arguments.with(now, one.path, one.value or nil) end
  return job_files.settle(util.merged(now))
end

-- Returns the step time of a job in seconds, or nil if it cannot be simulated.
local function seconds_of(job, cluster)
  local ok, found = pcall(memory.step, job, cluster) -- a point that cannot be simulated
  return ok and found or nil
end

--- Returns the fastest plan that the client accepts, with the seconds that each change saves: { changes, job,
--- step_time_s }, or nil if none is faster; and the step time of the unchanged job. keep: settings that stay (tensor,
--- pipeline, context, expert, micro_batch, recompute, zero_stage).
---@param job trinity.JobFile
---@param options { cluster: string, keep?: string[], simulations?: integer, quiet?: boolean }
---@return { changes: table[], job: trinity.JobFile, step_time_s: number }? best
---@return number? step_time_s
function replan.from(job, options)
  local one = memory.case(job, options.cluster)
  local make = settings[job.client]
  if not make then util.fail('trinity plan --from: %s: expected a file of Megatron-LM or torchtitan, got %s, whose '
    .. 'files can only be checked', job.path, job.client) end
  local titan = job.client == 'torchtitan'
  local recompute = type(job.recompute) == 'table' and job.recompute.granularity or 'none'
  local current = { tensor = job.mesh.tensor, pipeline = job.mesh.pipeline, context = job.mesh.context or 1,
    expert = job.mesh.expert or 1, micro_batch = job.micro_batch, recompute = recompute, zero_stage = job.zero_stage }
  local space = { stages = 'even', schedule = { '1f1b', 'interleaved' }, recompute = { 'none', 'selective', 'full' },
    zero_stage = titan and { 3 } or job.zero_stage > 1 and { job.zero_stage } or { 0, 1 }, context = current.context }
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
  local now, best = seconds_of(job, options.cluster), nil
  for _, candidate in ipairs(found.plans) do
    local changes = changed(job, make(candidate.point, job))
    local other = replan.with(job, changes)
    local step = other.legal and #changes > 0 and seconds_of(other, options.cluster)
    if step and (not now or step < now) and (not best or step < best.step_time_s) then
      best = { changes = changes, job = other, step_time_s = step }
    end
  end
  for at = best and #best.changes or 0, 1, -1 do
    local change, rest = best.changes[at], { unpack(best.changes) }
    table.remove(rest, at)
    local without = replan.with(job, rest)
    local step = without.legal and seconds_of(without, options.cluster)
    change.gives_s = step and step - best.step_time_s or nil -- nil: the other changes need it
    if change.gives_s == 0 and #without.findings <= #best.job.findings then best.changes = rest end
  end
  return best, now
end

-- Returns whether two values, also lists and tables, are equal.
local function same(a, b)
  if type(a) ~= 'table' or type(b) ~= 'table' then return a == b end
  for key in util.sorted_pairs(util.merged(a, b)) do if not same(a[key], b[key]) then return false end end
  return true
end

--- Returns the output of the command: { lines, step_time_s (of the plan; nil if no plan is faster), before_s, changes {
--- name, value, gives_s }, missed }. A change is written where the client then reads it, and nothing else differs.
---@param path string
---@param options table cluster, keep, simulations, output, quiet
---@return table
function replan.run(path, options)
  local found = job_files.read(path, { gpus = memory.gpus_of(options.cluster) })
  local best, now = replan.from(found, options)
  if not best then
    return { before_s = now, changes = {}, lines = {
      now and ('no plan is faster than the file: %.4g s per step'):format(now) or 'no plan fits that the client '
        .. 'accepts' } }
  end
  local written = found
  local text, diff_lines, missed = diff.apply(path, util.read_file(path), best.changes, function(text, change)
    local wanted = arguments.with(written, change.path, change.value or nil)
    local ok, again = pcall(job_files.reread, found, text)
    ok = ok and same(again.values, wanted.values) and #again.unread == #found.unread
    written = ok and wanted or written
    return ok
  end)
  local lines = { ('--- %s: %s'):format(path, now and ('%.4g s per step'):format(now) or 'does not fit'),
    ('+++ %s: %.4g s per step'):format(options.output or path, best.step_time_s) }
  for _, line in ipairs(diff_lines) do lines[#lines + 1] = line end
  for _, change in ipairs(missed) do
    lines[#lines + 1] = ('change by hand: %s %s'):format(change.name, tostring(change.value or 'off'))
  end
  if options.output then util.write_file('plan', options.output, text) end
  return { lines = lines, step_time_s = best.step_time_s, before_s = now, changes = util.map(best.changes,
    function(change) return util.picked(change, { 'name', 'value', 'gives_s' }) end),
    missed = util.map(missed, function(change) return change.name end) }
end

return replan
