-- Published plans compared with the best that `trinity plan` finds for the same network, GPUs and batch: for dense
-- rows that state tensor, pipeline and data parallelism and the micro-batch (published_row.lua). Both are points of
-- one space.

local case = require 'studies.fidelity.case'
local core = require 'trinity.core'
local csv = require 'trinity.base.csv'
local json = require 'trinity.base.json'
local fit = require 'studies.fidelity.fit'
local model = require 'trinity.graph.model'
local parallel_map = require 'trinity.parallel'
local plan = require 'trinity.plan'
local plan_space = require 'trinity.plan.space'
local plan_text = require 'trinity.plan.text'
local published_row = require 'studies.fidelity.published_row'
local runtimes = require 'trinity.cluster.runtimes'
local tables = require 'studies.fidelity.tables'
local util = require 'trinity.base.util'

local published = {}

local stated = { 'tp', 'pp', 'dp', 'micro_batch' }
local compared = { 'tensor', 'pipeline', 'data', 'micro_batch', 'virtual_stages', 'schedule', 'recompute', 'zero_stage',
  'context', 'sequence_parallel' }

--- Dense rows of a table that state their plan, in its order; not those whose note says that the source does not, and
--- that a recipe was assumed. `states_virtual`: whether model chunks of a GPU are stated, too.
function published.rows(path)
  local list, lines = {}, csv.read(path)
  local translate = lines[1] and tables.translation(lines[1])
  if not translate then csv.check(path, 'id', unpack(stated)) end
  for i, line in ipairs(lines) do
    local row = translate and (translate(util.merged(line), i) or { tp = '' }) or line
    local whole = tonumber(row.experts or '') == nil and not (row.note or ''):find('does not state', 1, true)
    for _, column in ipairs(stated) do whole = whole and row[column] ~= '' end
    if whole then
      local read = published_row.read(path, util.merged(row, { line = line.line }))
      list[#list + 1] = util.merged(read, { states_virtual = (row.vpp or '') ~= '' })
    end
  end
  return list
end

--- Level of sharding: FSDP's gathers of every layer are not combined with a pipeline.
local function shard_of(point, level)
  if point.data == 1 then return 0 end
  return level == 3 and point.pipeline > 1 and 1 or level
end

--- The point that a row states, with this recomputation and this number of model chunks per GPU.
local function point_of(row, recompute, virtual)
  local p = row.plan
  local point = { micro_batch = p.micro_batch, tensor = p.tensor, context = 1, expert = 1, data = p.data * p.context,
    sequence_parallel = p.sequence_parallel, recompute = recompute, pipeline = p.pipeline,
    schedule = virtual > 1 and 'interleaved' or '1f1b', virtual_stages = virtual, algorithm = 'automatic',
    stages = case.stages(row.network.layers, p.pipeline * virtual) or 'even', order = 'natural',
    micro_batches = p.micro_batches }
  point.zero_stage = shard_of(point, p.zero_stage)
  point.bucket_bytes = runtimes.bucket_bytes(runtimes.read(row.case.runtime),
    { mesh = point, zero_stage = point.zero_stage })
  return point
end

--- Whether a row's framework supports this number of model chunks per GPU: in Megatron-LM (and NeMo on it) layers
--- divide over all of them, or do with embedding and logits as a layer each; before it overlapped messages of stages,
--- interleaving took more than two stages (megatron/training/arguments.py, megatron/core/transformer/
--- transformer_block.py). torchtitan splits layers freely.
local function runs_chunks(row, pipeline, virtual)
  local layers, chunks = row.network.layers, pipeline * virtual
  if row.plan.torchtitan then return true end
  if virtual > 1 and row.plan.unfused and pipeline <= 2 then return false end
  return layers % chunks == 0 or not row.plan.unfused and (layers + 2) % chunks == 0
end

--- Values of tensor, pipeline, data, micro-batch and virtual stages that the row's framework runs; all else as the row
--- states it. DeepSpeed's ZeRO-3 was run "without any model parallelism" (Narayanan et al., SC 2021, section 5.2).
local function stated_space(row, batch)
  local p, layers, sizes = row.plan, row.network.layers, {}
  for _, size in ipairs { 1, 2, 4, 8, p.micro_batch } do
    if batch % size == 0 and size > (sizes[#sizes] or 0) then sizes[#sizes + 1] = size end
  end
  local alone = row.case.runtime == 'deepspeed' and 1 or nil
  return { micro_batch = sizes, context = 1, expert = 1, tensor = alone, pipeline = alone,
    recompute = row.case.recomputes or { p.recompute },
    sequence_parallel = function(point)
      return { point.tensor > 1 and (not p.unfused or point.recompute == 'selective' or p.recompute == 'selective') }
    end,
    schedule = function(point) return point.pipeline > 1 and { '1f1b', 'interleaved' } or { '1f1b' } end,
    zero_stage = function(point) return { shard_of(point, p.zero_stage) } end,
    virtual_stages = function(point)
      if point.schedule ~= 'interleaved' then return nil end
      local list = {}
      for v = 2, math.floor(layers / point.pipeline) + 1 do
        if runs_chunks(row, point.pipeline, v) then list[#list + 1] = v end
      end
      return #list > 0 and list or { 1 }
    end,
    stages = function(point)
      if p.torchtitan then return nil end
      local counted = layers % (point.pipeline * point.virtual_stages) ~= 0
        and runs_chunks(row, point.pipeline, point.virtual_stages)
      return { counted and 'balanced' or 'even' } -- 'even' of what does not divide contradicts itself
    end }
end

--- The published plan as one that the search found, simulated by its problem; nil where that would run more operators
--- than `tasks`.
local function told(found, point, tasks)
  local problem, strategy = found.networks:problem(point.micro_batch), plan_space.strategy(point)
  local bounds = problem.handle:mesh_bounds({ strategy })[1]
  if bounds.refused then util.fail('%s: %s', plan_space.text(point), bounds.refused) end
  if bounds.tasks > tasks then return nil end
  local metrics = problem:evaluate(strategy)
  return util.merged({ point = point, fields = strategy, metrics = metrics, step_time_s = metrics.step_time_s,
    networks = found.networks, bounds = bounds, feasible = metrics.feasible }, point)
end

--- Model chunks per GPU that a row may have had: the stated number, else all that its framework supports.
local function chunks_of(row)
  local p, list = row.plan, { row.plan.virtual }
  if row.states_virtual or p.pipeline == 1 or p.torchtitan then return list end
  for v = 1, math.floor(row.network.layers / p.pipeline) do
    local fills = v == 1 or p.micro_batches % p.pipeline == 0
    if v ~= p.virtual and fills and runs_chunks(row, p.pipeline, v) then list[#list + 1] = v end
  end
  return list
end

local function differences(best, other)
  local list = {}
  for _, name in ipairs(compared) do
    if best[name] ~= other[name] then
      list[#list + 1] = ('%s %s for %s'):format(name, tostring(best[name]), tostring(other[name]))
    end
  end
  return list
end

--- The row's plan, simulated: with the least recomputation that fits; where the row states no chunks, with those that
--- fit, then the fastest. No row states its buckets: of plans found that differ in nothing else the fastest.
local function told_row(row, found, tasks)
  local best
  for _, virtual in ipairs(chunks_of(row)) do
    local last
    for _, recompute in ipairs(row.case.recomputes or { row.plan.recompute }) do
      last = told(found, point_of(row, recompute, virtual), tasks)
      if not last or last.feasible then break end
    end
    local fits_alone = best and last and last.feasible ~= best.feasible
    if not best or fits_alone and last.feasible or last and not fits_alone and last.step_time_s < best.step_time_s then
      best = last
    end
  end
  for _, one in ipairs(best and found.simulated or {}) do
    if one.feasible and one.step_time_s < best.step_time_s and #differences(one, best) == 0 then best = one end
  end
  return best
end

--- One row's comparison: too_large where it is not predicted; else ratio (published over best), what differs, why;
--- times in seconds of a step.
local function compare(row, options)
  local one, batch = row.case, row.tokens / row.case.model_options.sequence
  local found = plan { global_batch = batch, quiet = true, plans = 1, simulations = options.simulations,
    tasks = options.tasks, space = options.whole and { expert = 1 } or stated_space(row, batch),
    cluster = model.cluster(one.cluster, { runtime = one.runtime }),
    graph = function(micro_batch, layers)
      return model.load(one.model, util.merged(one.model_options, { batch_size = micro_batch,
        layers = layers or row.network.layers }))
    end }
  local other, best = told_row(row, found, options.tasks), found.plans[1]
  local result = { id = row.id, model = row.network_name, gpus = row.plan.gpus }
  if not other then
    return util.merged(result, { too_large = true,
      published = plan_space.text(point_of(row, row.plan.recompute, row.plan.virtual)) })
  end
  if not best or (other.feasible and other.step_time_s < best.step_time_s) then best = other end
  return util.merged(result, { published_s = other.step_time_s, best_s = best.step_time_s,
    ratio = other.step_time_s / best.step_time_s, fits = other.feasible, published = plan_space.text(other.point),
    best = plan_space.text(best.point), why = best ~= other and plan_text.loses(best, other) or '',
    differs = differences(best, other), lower_bound_s = found.lower_bound_s, simulated = found.counts.simulated })
end

--- All rows of a table, or those before Ctrl-C, once per configuration: `ids` lists its rows.
function published.compare(path, options)
  local same = util.grouped(published.rows(path), function(row)
    return json.encode { row.case, row.tokens } .. tostring(row.states_virtual)
  end)
  local list = fit.each_piece(same, core.threads(), 'configurations', function(piece)
    return parallel_map(piece, function(rows) return compare(rows[1], options) end, { quiet = true })
  end)
  return util.map(list, function(one, i)
    return util.merged(one, { ids = util.map(same[i], function(row) return row.id end) })
  end)
end

return published
