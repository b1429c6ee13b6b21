#!/usr/bin/env trinity
-- TAPP (Appl. Sci. 2021, 11(11), 4785) beside data parallelism, GPipe, PipeDream and exact splits, on unequal machines.
--
-- The paper states two averages: a step 1.37 times faster than with BSP data parallelism, and a share of
-- communication in it that is 48.92 % lower. It states neither its networks nor its clusters, batches or settings, so
-- that nothing here can be its experiment: networks and machines are ours, step times are simulated, and only the
-- direction and the rough size of the two averages can be compared. What is measured (manual/papers.md "TAPP: what is
-- ours"):
--   time ratio   T_BSP / T, BSP with equal shards
--   rho          the share of a step in which a device computes nothing while something is on its way to it (a
--                transfer, or an all-reduce that it has joined), averaged over the devices in use
--   reduction    1 - rho / rho_BSP
--   / least, / fastest   T over that of the two exact splits below
--
-- The clusters: machines with one GPU each, a V100, a GTX 1080 Ti, a P100 and a K80 (12 GB) in turn, on 10 Gbit/s
-- Ethernet. The methods:
--   bsp          a copy of the model a machine, equal parts of the batch, gradients all-reduced in buckets of 25 MB
--                while backward passes go on
--   bsp_speed    the same with parts in proportion to what each machine does a second
--   gpipe        parts of equal work as on equal machines, all forwards before all backwards
--   pipedream    its optimiser's stages and replicas (the costs of its code, machines taken for equal ones of mean
--                speed), in the cluster's order, asynchronous: a mini-batch is the whole batch, the weights of those
--                under way are kept; it computes something else than all others
--   pipedream_1  the same without replicas
--   least_load   the split whose largest stage is least, over all orders of machines, exact; 1F1B
--   fastest      the split into consecutive parts, a machine each, whose 1F1B step is fastest, proved by trying all
--                that could be, where these are at most --most_splits
--   tapp         the method without the search that ends it by default (refine = 0); 1F1B; the median of its seeds
--   tapp_moves   the method as it is by default, with equally many evaluations
-- BSP overlaps all-reduces with backward passes here; one that does not is slower. BERT is without the head whose
-- weights are those of the first layer: these would cross the whole pipeline with every micro-batch.
-- As it is by default (five minutes of one core), over 12 cases: tapp 1.61 times as fast as BSP and a share of
-- communication 73 % lower, tapp_moves 1.71 times and 69 %. Every run of tapp_moves found the fastest split in the five
-- cases where that is proved; tapp alone was up to 12.5 % slower. On two machines data parallelism stays ahead for
-- ResNet-50 and InceptionV3, whose gradients are small and hidden; with parts by speed it does on four for these too.

local trinity = require 'trinity'
local layer_chain = require 'trinity.tapp.layer_chain'
local layer_split = require 'trinity.tapp.layer_split'
local pipeline_schedule = require 'trinity.pipeline.schedule'
local topology = require 'trinity.cluster.topology'
local util = require 'trinity.base.util'

local options = trinity.options {
  'TAPP on unequal machines against data parallelism, GPipe, PipeDream and exact splits.',
  models = { default = 'vgg16,resnet50,inception_v3,bert_base', help = 'models with commas' },
  nodes = { default = '2,4,8', help = 'machines of the clusters with commas, each 2 to 8' },
  batch_size = { default = 64, help = 'samples per step', min = 8, max = 65536, integer = true },
  micro_batches = { default = 8, help = 'parts of the batch in a pipeline', min = 1, max = 1024, integer = true },
  evaluations = { default = 2000, help = 'schemes that each run of TAPP simulates', min = 1, integer = true },
  seeds = { default = 3, help = 'runs of TAPP', min = 1, max = 1000, integer = true },
  seed = { default = 1, help = 'the first seed', min = 0, integer = true },
  most_splits = { default = 100000, help = 'splits that may be tried for the fastest one', min = 0, integer = true },
  json = { default = false, help = 'JSON on standard output and nothing else' },
}

local paper = { time_ratio = 1.37, reduction = 0.4892 }
local gpus = { 'v100_pcie', 'gtx1080ti', 'p100', 'k80' }
local own_options = { bert_base = { head = 'none' } }

local function graph_of(model, batch_size)
  return trinity.model(model, util.merged({ batch_size = batch_size }, own_options[model]))
end

local function cluster_of(nodes)
  local net = topology.new { queue = 'route' }
  for n = 1, nodes do
    local name = 'n' .. n
    net:link(net:devices(name, 1, gpus[(n - 1) % #gpus + 1]), name .. '/pcie', 'pcie3_x16')
    net:link(name .. '/pcie', 'ethernet', 'ethernet_10g')
  end
  return trinity.cluster(net:spec())
end

-- The share of `span_s` that devices wait for communication, averaged over those that compute.
local function share_of(timeline, metrics)
  local span_s, waiting, used = 0, 0, 0
  for task = 1, timeline.tasks do
    if timeline.end_s[task] == timeline.end_s[task] then span_s = math.max(span_s, timeline.end_s[task]) end
  end
  local _, waits = timeline:exposed_communication()
  for d = 1, metrics.device_count do
    if metrics:compute_busy_s(d) > 0 then waiting, used = waiting + waits[d] / span_s, used + 1 end
  end
  return waiting / used
end

local function result_of(method, problem, plan)
  local metrics, timeline = problem:evaluate(plan), problem:timeline(plan)
  local result = { method = method, step_time_s = metrics.step_time_s, fits = metrics.feasible,
    peak_memory_bytes = metrics.peak_memory_bytes, rho = share_of(timeline, metrics) }
  timeline:close()
  return result
end

-- Seconds of every operator by name on device `d`, and what it holds there.
local function times_on(graph, cluster, d)
  local problem, times = trinity.problem { graph = graph, cluster = cluster }, {}
  local timeline = problem:timeline(problem:placement_by_unit(function() return d end))
  for op = 1, graph.operators do times[graph:operator(op).name] = timeline.end_s[op] - timeline.start_s[op] end
  return times, timeline.metrics
end

-- Data parallelism with shard[d] samples on device d. Every copy has the costs of its own shard.
local function data_parallel(method, model, cluster, shard)
  local copies, graphs = #shard, {}
  local times, fits, peak = {}, true, 0
  for d = 1, copies do
    graphs[d] = graph_of(model, shard[d])
    local metrics
    times[d], metrics = times_on(graphs[d], cluster, d)
    fits, peak = fits and metrics.feasible, math.max(peak, metrics.peak_memory_bytes)
  end
  local graph, _, replica = graphs[1]:replicate { replicas = copies }
  local problem = trinity.problem { graph = graph, cluster = cluster, rules = { memory = 'none' },
    cost = function(op)
      local name, copy = op.name:match '^(.*)@(%d+)$'
      return name and times[copy + 1][name]
    end }
  local placement = problem:placement()
  for op = 1, #placement do placement[op] = replica[op] + 1 end
  local result = result_of(method, problem, placement)
  result.fits, result.peak_memory_bytes = fits, peak
  return result
end

-- Parts of the batch in proportion to `speed` that sum to it: the largest remainders are rounded up. Every machine gets
-- a sample first.
local function shards(batch, speed)
  local sum, parts, order, left = 0, {}, {}, batch
  for d = 1, #speed do sum = sum + speed[d] end
  local function wanted(d) return 1 + (batch - #speed) * speed[d] / sum end
  for d = 1, #speed do
    parts[d] = math.floor(wanted(d))
    left, order[d] = left - parts[d], d
  end
  local function remainder(d) return wanted(d) - parts[d] end
  table.sort(order, function(a, b)
    if remainder(a) ~= remainder(b) then return remainder(a) > remainder(b) end
    return a < b
  end)
  for i = 1, left do
    local d = order[(i - 1) % #order + 1]
    parts[d] = parts[d] + 1
  end
  return parts
end

local function equal_shards(nodes)
  local speed = util.listed(nodes, function() return 1 end)
  return shards(options.batch_size, speed)
end

-- What each machine does a second of its equal shard.
local function speeds(model, cluster, parts)
  local speed = {}
  for d = 1, #parts do
    local _, metrics = times_on(graph_of(model, parts[d]), cluster, d)
    speed[d] = parts[d] / metrics.step_time_s
  end
  return speed
end

-- The stage of every operator: that of its layer's first forward operator, in a plan of trinity.pipeline.
local function stages_by_operator(graph, chain, plan)
  local stage_of_name, stage_of_layer, stage = {}, {}, {}
  for s, about in ipairs(plan.stages) do
    for _, node in ipairs(about.nodes) do stage_of_name[plan.nodes[node]] = s end
  end
  for op = 1, graph.operators do
    local layer = chain.layer_of[op]
    stage_of_layer[layer] = stage_of_layer[layer] or stage_of_name[graph:operator(op).name]
  end
  for op = 1, graph.operators do stage[op] = stage_of_layer[chain.layer_of[op]] end
  return stage
end

-- What PipeDream's optimiser plans for the whole batch, its replicas' costs those of their part of it.
local function pipedream(method, model, cluster, straight)
  local graph = graph_of(model, options.batch_size)
  local problem = trinity.problem { graph = graph, cluster = cluster }
  local _, bandwidth = cluster:wire(1, 2)
  local plan = trinity.pipeline(problem, { method = 'pipedream', devices = #cluster.devices, quiet = true,
    bandwidth_bytes_per_s = bandwidth, straight = straight })
  if not plan.feasible then return nil end
  local replicas, shares = {}, {}
  for s, about in ipairs(plan.stages) do
    replicas[s] = about.devices
    local part = math.max(1, math.floor(options.batch_size / about.devices + 0.5))
    shares[s] = about.devices > 1 and graph_of(model, part)
  end
  local copies, _, stage, replica = graph:replicate_stages { replicas = replicas, at_share = shares,
    stage = stages_by_operator(graph, layer_chain.of(problem), plan) }
  local wide = trinity.problem { graph = copies, cluster = cluster }
  local placement = wide:placement()
  for op = 1, #placement do placement[op] = plan.stages[stage[op]].first_device + replica[op] - 1 end
  local result = result_of(method, wide, { placement = placement, schedule = 'pipedream', stage = stage })
  result.replicas = replicas
  return result
end

local function tapp(method, problem, refine)
  local runs = {}
  for i = 1, options.seeds do
    local seed = options.seed + i - 1
    local found = trinity.methods.tapp(problem, { seed = seed, evaluations = options.evaluations, refine = refine,
      quiet = true })
    if found.stopped then os.exit(130) end
    runs[i] = result_of(method, problem, found)
    runs[i].seed, runs[i].placement = seed, found.placement
  end
  table.sort(runs, function(a, b)
    if a.step_time_s ~= b.step_time_s then return a.step_time_s < b.step_time_s end
    return a.seed < b.seed
  end)
  local middle = runs[math.floor(#runs / 2) + 1] -- the slower of two
  middle.least_s, middle.most_s = runs[1].step_time_s, runs[#runs].step_time_s
  return middle, runs[1]
end

-- The fastest split by 1F1B, proved. `known`: those found by other means.
local function fastest(problem, chain, known)
  local best
  for _, row in ipairs(known) do
    if row.fits and (not best or row.step_time_s < best.step_time_s) then best = row end
  end
  local found = layer_split.fastest(problem, chain, { micro_batches = options.micro_batches,
    below_s = best and best.step_time_s or math.huge, most = options.most_splits })
  if not found then return nil end
  local placement = found.device_of and layer_chain.placement(problem, chain, found.device_of)
    or best and best.placement
  if not placement then return nil end
  local result = result_of('fastest', problem, placement)
  result.tried = found.tried
  return result
end

-- Everything that keeps the weights of one step: GPipe, the exact splits and TAPP.
local function add_splits(rows, model, cluster)
  local micro_batches = options.micro_batches
  local problem = trinity.problem { graph = graph_of(model, options.batch_size / micro_batches), cluster = cluster,
    schedule = '1f1b', micro_batches = micro_batches }
  local chain = layer_chain.of(problem)
  rows[#rows + 1] = result_of('gpipe', problem, { schedule = 'gpipe', micro_batches = micro_batches,
    placement = layer_chain.placement(problem, chain, layer_split.equal_work(problem, chain)) })
  rows[#rows + 1] = pipedream('pipedream', model, cluster, false)
  rows[#rows + 1] = pipedream('pipedream_1', model, cluster, true)
  local split = layer_split.least_load(problem, chain, { micro_batches = micro_batches })
  local least
  if split then
    least = result_of('least_load', problem, layer_chain.placement(problem, chain, split))
    least.placement = layer_chain.placement(problem, chain, split)
    rows[#rows + 1] = least
  end
  local plain, best_plain = tapp('tapp', problem, 0)
  local moved, best_moved = tapp('tapp_moves', problem, nil)
  rows[#rows + 1] = fastest(problem, chain, { best_moved, best_plain, least })
  rows[#rows + 1], rows[#rows + 2] = plain, moved
  local timeline = problem:timeline(best_moved.placement)
  local spans = pipeline_schedule.spans(timeline, problem.graph)
  timeline:close()
  return spans
end

local function find(rows, method)
  for _, row in ipairs(rows) do if row.method == method then return row end end
end

local function study(case)
  local model, nodes = case.model, case.nodes
  local cluster, rows = cluster_of(nodes), {}
  local parts = equal_shards(nodes)
  rows[1] = data_parallel('bsp', model, cluster, parts)
  rows[2] = data_parallel('bsp_speed', model, cluster, shards(options.batch_size, speeds(model, cluster, parts)))
  local schedule = add_splits(rows, model, cluster)
  local least, best = find(rows, 'least_load'), find(rows, 'fastest')
  for _, row in ipairs(rows) do
    row.placement = nil
    row.time_ratio, row.reduction = rows[1].step_time_s / row.step_time_s, 1 - row.rho / rows[1].rho
    row.over_least_load = least and least.fits and row.step_time_s / least.step_time_s or nil
    row.over_fastest = best and row.step_time_s / best.step_time_s or nil
  end
  return { number = case.number, model = model, nodes = nodes, rows = rows, schedule = schedule }
end

local function cases_of()
  local cases = {}
  for _, model in ipairs(util.words(options.models)) do
    for _, nodes in ipairs(util.numbers('nodes', options.nodes, 2, 8, true)) do
      cases[#cases + 1] = { number = #cases + 1, model = model, nodes = nodes }
    end
  end
  table.sort(cases, function(a, b) -- the longest first: processes end together
    if a.nodes ~= b.nodes then return a.nodes > b.nodes end
    return a.number < b.number
  end)
  return cases
end

-- Of a method over all cases: averages of what it gains over BSP, and how far its slowest run is from the exact splits.
local function summary_of(studies, method)
  local result = { time_ratio = 0, reduction = 0, cases = #studies, least_load = { cases = 0, most = 0 },
    fastest = { cases = 0, most = 0 } }
  for _, case in ipairs(studies) do
    local row = find(case.rows, method)
    result.time_ratio = result.time_ratio + row.time_ratio / #studies
    result.reduction = result.reduction + row.reduction / #studies
    for _, other in ipairs { 'least_load', 'fastest' } do
      local exact, about = find(case.rows, other), result[other]
      if exact and exact.fits then
        about.cases, about.most = about.cases + 1, math.max(about.most, row.most_s / exact.step_time_s)
      end
    end
  end
  return result
end

local function notes_of(row)
  local notes = {}
  if not row.fits then notes[1] = 'does not fit' end
  if row.replicas and #row.replicas < 9 then notes[#notes + 1] = 'replicas ' .. table.concat(row.replicas, '-') end
  if row.tried then notes[#notes + 1] = ('%d tried'):format(row.tried) end
  if row.seed and options.seeds > 1 then
    notes[#notes + 1] = ('seeds: %.4f to %.4f'):format(row.least_s, row.most_s)
  end
  return table.concat(notes, ', ')
end

local function ratio_text(value) return value and ('%.3f'):format(value) or '-' end

local function table_text(studies)
  local head = { 'model, nodes', 'method', 'step, s', 'T_BSP / T', 'rho', 'reduction', '/ least', '/ fastest',
    'peak memory', '' }
  local lines = {}
  for _, case in ipairs(studies) do
    for i, row in ipairs(case.rows) do
      lines[#lines + 1] = { i == 1 and ('%s, %d'):format(case.model, case.nodes) or '', row.method,
        ('%.4f'):format(row.step_time_s), ('%.2f'):format(row.time_ratio), ('%.1f %%'):format(100 * row.rho),
        ('%.1f %%'):format(100 * row.reduction), ratio_text(row.over_least_load), ratio_text(row.over_fastest),
        trinity.format_bytes(row.peak_memory_bytes), notes_of(row) }
    end
  end
  return trinity.format_table(head, lines)
end

local function print_summary(method, summary)
  print(('%-10s  over BSP with equal shards, mean of %d cases: %.2f times as fast (paper, its own cases: %.2f), '
    .. 'share of communication %.1f %% lower (paper: %.2f %%)'):format(method, summary.cases, summary.time_ratio,
    paper.time_ratio, 100 * summary.reduction, 100 * paper.reduction))
  for _, pair in ipairs { { 'least_load', 'the exact split of least load' },
    { 'fastest', 'the fastest of all splits' } } do
    local about = summary[pair[1]]
    if about.cases > 0 then
      print(('            its slowest run takes at most %.3f times %s (%d cases)'):format(about.most, pair[2],
        about.cases))
    end
  end
end

-- The command that gives the same again.
local function command()
  local words = { 'trinity tapp' }
  for _, name in ipairs { 'models', 'nodes', 'batch_size', 'micro_batches', 'evaluations', 'seeds', 'seed',
    'most_splits' } do
    words[#words + 1] = ('--%s %s'):format(name, tostring(options[name]))
  end
  return table.concat(words, ' ')
end

if options.batch_size % options.micro_batches ~= 0 then
  util.fail_usage("option '--micro_batches': expected a divisor of the batch of %d, got %d", options.batch_size,
    options.micro_batches)
end
-- Ranks of a job share every search, so they study the cases in turn.
local studies = trinity.parallel_map(cases_of(), study, { quiet = options.json,
  workers = trinity.dist.current() and 1 or nil })
table.sort(studies, function(a, b) return a.number < b.number end)

--- Keeps the cases for the run: a table of all, and the schedule of each one's best split by TAPP.
local function keep()
  local head, rows = { 'network', 'nodes', 'method', 'step time in s', 'times as fast as BSP', 'rho', 'fits' }, {}
  for _, case in ipairs(studies) do
    local stages = {}
    for _, span in ipairs(case.schedule) do
      local stage = stages[span.device + 1] or { devices = 1, load = 0 }
      stages[span.device + 1] = stage
      stage.load = stage.load + span.busy_ns / 1e9
    end
    for d = 1, case.nodes do stages[d] = stages[d] or { devices = 1, load = 0 } end
    trinity.run:result('pipeline', { network = ('%s, %d machines'):format(case.model, case.nodes), method = 'tapp',
      unit = 's', stages = stages, schedule = case.schedule, schedule_name = ('1F1B, %d micro-batches'):format(
        options.micro_batches) })
    case.schedule = nil
    for _, row in ipairs(case.rows) do
      rows[#rows + 1] = { case.model, case.nodes, row.method, row.step_time_s, row.time_ratio, row.rho,
        row.fits and 'yes' or 'no' }
    end
  end
  trinity.run:result('table', { head = head, rows = rows }, ('Pipelines on unequal machines, simulated: %d %s.')
    :format(#studies, #studies == 1 and 'case' or 'cases'))
end
keep()

local means = { tapp = summary_of(studies, 'tapp'), tapp_moves = summary_of(studies, 'tapp_moves') }
if options.json then
  print(trinity.json.encode { command = command(), seed = options.seed, seeds = options.seeds,
    evaluations = options.evaluations, batch_size = options.batch_size, micro_batches = options.micro_batches,
    cases = studies, mean = means, paper = paper })
  return
end
print(table_text(studies) .. '\n')
print_summary('tapp', means.tapp)
print_summary('tapp_moves', means.tapp_moves)
print(('The paper does not name its networks, clusters or batches; these are ours (see the script). Simulated; '
  .. 'batch %d in %d micro-batches, %d schemes a run, seeds %d to %d:\n  %s'):format(options.batch_size,
  options.micro_batches, options.evaluations, options.seed, options.seed + options.seeds - 1, command()))
