-- Published plans of dense networks that state tensor, pipeline and data parallelism and the micro-batch
-- (published_row.lua), compared with the best that trinity.plan finds for the same network, GPUs and batch; both are
-- points of one space.

local case = require 'studies.fidelity.case'
local core = require 'trinity.core'
local csv = require 'studies.rows'
local fitted = require 'studies.fidelity.fitted'
local json = require 'trinity.base.json'
local model = require 'trinity.graph.model'
local parallel_map = require 'trinity.parallel'
local plan_space = require 'trinity.plan.space'
local plan_text = require 'trinity.plan.text'
local published_row = require 'studies.fidelity.published_row'
local rules = require 'trinity.cluster.runtime_rules'
local run = require 'trinity.runs'
local search = require 'trinity.plan'
local simulator = require 'trinity.strategy.simulator'
local text = require 'trinity.base.text'
local util = require 'trinity.base.util'

local plan = {
  help = 'plans that trinity plan finds, compared with plans that others ran',
  shared = { rows = 'llm-published/throughput.csv' },
  takes = 'rows whole simulations',
}

local most_ratio, stated = 1.05, { 'tp', 'pp', 'dp', 'micro_batch' }
local compared = { 'tensor', 'pipeline', 'data', 'micro_batch', 'virtual_stages', 'schedule', 'recompute', 'zero_stage',
  'context', 'sequence_parallel' }

--- Dense rows of a table that state their plan, in its order; not those whose note says that the source does not, and
--- that a recipe was assumed.
function plan.rows(path)
  return util.filtered(csv.accepted(published_row.all(path)), function(row)
    local assumed = (row.said 'note' or ''):find('does not state', 1, true)
    return row.network.experts == 0 and not assumed and not util.find(stated, function(column)
      return not row.said(column)
    end)
  end)
end

--- Level of sharding: FSDP's gathers of every layer are not combined with a pipeline.
local function shard_of(point, level)
  return point.data == 1 and 0 or level == 3 and point.pipeline > 1 and 1 or level
end

--- The point that a row states, with this recomputation and this number of model chunks per GPU.
local function point_of(row, recompute, virtual)
  local p, ran = row.plan, row.case.strategy
  return plan_space.point_of(util.merged(ran, { recompute = recompute, virtual_stages = virtual,
    schedule = virtual > 1 and 'interleaved' or '1f1b', stages = case.stages(row.network.layers, p.pipeline * virtual)
      or 'even', zero_stage = shard_of(ran.mesh, p.zero_stage),
    problem = { cluster = model.cluster(row.case.cluster, { runtime = row.case.runtime }) } }), p.micro_batch)
end

--- Whether a row's runtime supports this number of model chunks per GPU (cluster/runtime_rules.lua): layers divide over
--- all of them, or do with embedding and logits as a layer each (megatron/core/transformer/transformer_block.py:
--- account_for_embedding_in_pipeline_split). torchtitan splits layers freely.
local function runs_chunks(row, pipeline, virtual)
  local layers, chunks, list = row.network.layers, pipeline * virtual, rules.of(row.runtimes[#row.runtimes])
  local point = { pipeline = pipeline, virtual_stages = virtual }
  if row.plan.torchtitan then return true end
  if rules.broken(list, 'virtual_stages', virtual, point) then return false end
  return layers % chunks == 0 or (layers + 2) % chunks == 0 and not rules.broken(list, 'stages', 'balanced', point)
end

--- Values of tensor, pipeline, data, micro-batch and virtual stages that the row's framework runs; all else as the row
--- states it. DeepSpeed's ZeRO-3 was run "without any model parallelism" (Narayanan et al., SC 2021, section 5.2).
local function stated_space(row, batch)
  local p, layers, sizes, on_host = row.plan, row.network.layers, {}, row.case.strategy.activation_offload_fraction
  for _, size in ipairs { 1, 2, 4, 8, p.micro_batch } do
    if batch % size == 0 and size > (sizes[#sizes] or 0) then sizes[#sizes + 1] = size end
  end
  local alone = row.case.runtime == 'deepspeed' and 1 or nil
  return { micro_batch = sizes, context = 1, expert = 1, optimizer_offload_fraction = 0,
    tensor = alone, pipeline = alone,
    recompute = row.case.recomputes or { p.recompute },
    sequence_parallel = function(point)
      return { point.tensor > 1 and (not p.unfused or point.recompute == 'selective' or p.recompute == 'selective') }
    end,
    activation_offload_fraction = function(point) return { point.pipeline == 1 and on_host or 0 } end,
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

--- The published plan as one that the search found, simulated by its problem.
local function told(found, point)
  local problem, strategy = found.networks:problem(point.micro_batch), plan_space.strategy(point)
  local bounds = simulator.mesh_bounds(problem, { strategy })[1]
  if bounds.refused then util.fail('%s: %s', plan_space.text(point), bounds.refused) end
  local metrics = problem:evaluate(strategy)
  return util.merged({ point = point, fields = strategy, metrics = metrics, step_time_s = metrics.step_time_s,
    networks = found.networks, bounds = bounds, feasible = metrics.feasible }, point)
end

--- Model chunks per GPU that a row may have had: the stated number, else all that its framework supports.
local function chunks_of(row)
  local p, list = row.plan, { row.plan.virtual }
  if row.said 'vpp' or p.pipeline == 1 or p.torchtitan then return list end
  for v = 1, math.floor(row.network.layers / p.pipeline) do
    local fills = v == 1 or p.micro_batches % p.pipeline == 0
    if v ~= p.virtual and fills and runs_chunks(row, p.pipeline, v) then list[#list + 1] = v end
  end
  return list
end

local function differences(best, other)
  return util.map(util.filtered(compared, function(name) return best[name] ~= other[name] end), function(name)
    return ('%s %s for %s'):format(name, tostring(best[name]), tostring(other[name]))
  end)
end

--- The row's plan, simulated: with the least recomputation that fits; where the row states no chunks, with those that
--- fit, then the fastest. No row states its buckets: of plans found that differ in nothing else the fastest.
local function told_row(row, found)
  local best
  for _, virtual in ipairs(chunks_of(row)) do
    local last
    for _, recompute in ipairs(row.case.recomputes or { row.plan.recompute }) do
      last = told(found, point_of(row, recompute, virtual))
      if last.feasible then break end
    end
    local fits_alone = best and last.feasible ~= best.feasible
    if not best or fits_alone and last.feasible or not fits_alone and last.step_time_s < best.step_time_s then
      best = last
    end
  end
  for _, one in ipairs(found.simulated) do
    if one.feasible and one.step_time_s < best.step_time_s and #differences(one, best) == 0 then best = one end
  end
  return best
end

--- One row's comparison: ratio (published over best), what differs, why; times in seconds of a step.
local function compare(row, options)
  local one, batch = row.case, row.tokens / row.case.model_options.sequence
  local found = search { global_batch = batch, quiet = true, plans = 1, simulations = options.simulations,
    space = options.whole and { expert = 1 } or stated_space(row, batch),
    cluster = model.cluster(one.cluster, { runtime = one.runtime }),
    graph = function(micro_batch, layers)
      return model.load(one.model, util.merged(one.model_options, { batch_size = micro_batch,
        layers = layers or row.network.layers }))
    end }
  local other, best = told_row(row, found), found.plans[1]
  if not best or (other.feasible and other.step_time_s < best.step_time_s) then best = other end
  return { id = row.id, model = row.network_name, gpus = row.plan.gpus, published_s = other.step_time_s,
    best_s = best.step_time_s, ratio = other.step_time_s / best.step_time_s, fits = other.feasible,
    published = plan_space.text(other.point), best = plan_space.text(best.point),
    why = best ~= other and plan_text.loses(best, other) or '', differs = differences(best, other),
    lower_bound_s = found.lower_bound_s, simulated = found.counts.simulated }
end

local function print_published(list)
  print(text.format_table({ 'rows', 'network', 'GPUs', 'published', 'best', 'ratio', 'fits' }, util.map(list,
    function(one)
      local ids = #one.ids > 2 and ('%s and %d'):format(one.id, #one.ids - 1) or table.concat(one.ids, ', ')
      return { ids, one.model, ('%d'):format(one.gpus), ('%.4g s'):format(one.published_s),
        ('%.4g s'):format(one.best_s), ('%.3f'):format(one.ratio), one.fits and 'yes' or 'no' }
    end)))
  for _, one in ipairs(list) do
    if one.ratio > most_ratio then
      print(('%s: %s\n  published: %s\n  best:      %s\n  the published is %s'):format(one.id,
        table.concat(one.differs, ', '), one.published, one.best, one.why))
    end
  end
end

--- Compares all rows of a table, or those before Ctrl-C, once per configuration: `ids` lists its rows.
function plan.run(options)
  local same = util.grouped(plan.rows(options.rows), function(row)
    return row.configuration .. tostring(row.said 'vpp' ~= false)
  end)
  local rows = fitted.each_piece(same, core.threads(), 'configurations', function(piece)
    return parallel_map(piece, function(alike) return compare(alike[1], options) end, { quiet = true })
  end)
  for i, one in ipairs(rows) do one.ids = util.map(same[i], function(row) return row.id end) end
  local function counted(most) -- by rows, not by configurations
    return util.sum(rows, function(one) return one.ratio <= most and #one.ids or 0 end)
  end
  local data = { rows = rows, within = counted(most_ratio), compared = counted(math.huge) }
  run:result('plan', data)
  if options.json then return print(json.encode(data)) end
  print_published(rows)
  print(('%d of %d rows: the published plan takes at most %.2f times the best'):format(data.within, data.compared,
    most_ratio))
end

return plan
