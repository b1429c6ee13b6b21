-- The baselines of TAPP's page, on heterogeneous machines: data parallelism, GPipe, PipeDream and exact cuts.
-- The paper states neither its networks nor its machines; these are ours: machines with one GPU each, a V100, a GTX
-- 1080 Ti, a P100 and a K80 (12 GB) in turn, on 10 Gbit/s Ethernet; batches of 64, pipelines with 8 micro-batches.
--   bsp          a copy of the model a machine, equal parts of the batch, gradients all-reduced in buckets of 25 MB
--                while backward passes go on; one that does not overlap them is slower
--   bsp_speed    the same with parts in proportion to what each machine does a second
--   gpipe        parts of equal work as on equal machines, all forwards before all backwards
--   pipedream    its optimiser's stages and replicas (the costs of its code, machines taken for equal ones of mean
--                speed), in the cluster's order, asynchronous: a mini-batch is the whole batch, the weights of those
--                under way are kept; it computes something else than all others
--   pipedream_1  the same without replicas
--   least_load   the cut whose largest stage is smallest, over all orders of machines, exact; 1F1B
--   fastest      the cut into consecutive parts, one per machine, whose 1F1B step is fastest, proved by trying all
--                candidates, where these are few enough
-- BERT is without the head that shares the weights of the first layer: these would cross the whole pipeline with every
-- micro-batch. Its attention is in separate operators, and the V100 computes convolutions at half of its peak.

local devices = require 'trinity.cluster.devices'
local layer_chain = require 'trinity.search.layer_chain'
local model = require 'trinity.graph.model'
local pipelines = require 'trinity.pipeline'
local problems = require 'trinity.strategy.problem'
local topology = require 'trinity.cluster.topology'
local util = require 'trinity.base.util'

local baselines = { batch_size = 64, micro_batches = 8, most_cuts = 100000,
  models = { 'vgg16', 'resnet50', 'inception_v3', 'bert_base' } }

local gpus = { 'v100_pcie', 'gtx1080ti', 'p100', 'k80' }
local own_options = { bert_base = { head = 'none', kernels = 'onnx', optimizer = 'momentum' } }

--- A network of a name, or of a function of the samples of a batch.
function baselines.graph(name, batch_size)
  if type(name) == 'function' then return name(batch_size) end
  return model.load(name, util.merged({ batch_size = batch_size }, own_options[name]))
end

function baselines.cluster(nodes)
  local net = topology.new { queue = 'route' }
  local half = { compute_efficiency = 0.5 }
  net:device_type('v100_pcie', devices.with('v100_pcie', { operators = { ['Conv:float32'] = half,
    ['Conv3x3:float32'] = half } }))
  for n = 1, nodes do
    local name = 'n' .. n
    net:link(net:devices(name, 1, gpus[(n - 1) % #gpus + 1]), name .. '/pcie', 'pcie3_x16')
    net:link(name .. '/pcie', 'ethernet', 'ethernet_10g')
  end
  return model.cluster(net:spec())
end

-- The share of a step that devices wait for communication (a transfer on its way to them, an all-reduce that they have
-- joined) and compute nothing, averaged over those that compute.
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

--- The metrics of a plan of a problem: step_time_s, fits, peak_memory_bytes, rho (the share above).
function baselines.result(method, problem, plan)
  local metrics, timeline = problem:evaluate(plan), problem:timeline(plan)
  local result = { method = method, step_time_s = metrics.step_time_s, fits = metrics.feasible,
    peak_memory_bytes = metrics.peak_memory_bytes, rho = share_of(timeline, metrics) }
  timeline:close()
  return result
end

-- Seconds of every operator by name on device `d`, and what it holds there.
local function times_on(graph, cluster, d)
  local problem, times = problems.new { graph = graph, cluster = cluster }, {}
  local timeline = problem:timeline(problem:placement_by_unit(function() return d end))
  for op = 1, graph.operators do times[graph:operator(op).name] = timeline.end_s[op] - timeline.start_s[op] end
  return times, timeline.metrics
end

--- Data parallelism with shard[d] samples on device d. Every copy has the costs of its own shard.
local function data_parallel(method, name, cluster, shard)
  local copies, graphs = #shard, {}
  local times, fits, peak = {}, true, 0
  for d = 1, copies do
    graphs[d] = baselines.graph(name, shard[d])
    local metrics
    times[d], metrics = times_on(graphs[d], cluster, d)
    fits, peak = fits and metrics.feasible, math.max(peak, metrics.peak_memory_bytes)
  end
  local graph, _, replica = graphs[1]:replicate { replicas = copies }
  local problem = problems.new { graph = graph, cluster = cluster, rules = { memory = 'none' },
    cost = function(op)
      local own, copy = op.name:match '^(.*)@(%d+)$'
      return own and times[copy + 1][own]
    end }
  local placement = problem:placement()
  for op = 1, #placement do placement[op] = replica[op] + 1 end
  local result = baselines.result(method, problem, placement)
  result.fits, result.peak_memory_bytes = fits, peak
  return result
end

--- Parts of a batch in proportion to `speed` that sum to it: the largest remainders are rounded up. Every machine gets
--- a sample first.
function baselines.shards(batch, speed)
  local sum, parts, remainders, left = 0, {}, {}, batch
  for d = 1, #speed do sum = sum + speed[d] end
  local function wanted(d) return 1 + (batch - #speed) * speed[d] / sum end
  for d = 1, #speed do
    parts[d] = math.floor(wanted(d))
    left, remainders[d] = left - parts[d], wanted(d) - parts[d]
  end
  local order = util.order_of(remainders, true)
  for i = 1, left do
    local d = order[(i - 1) % #order + 1]
    parts[d] = parts[d] + 1
  end
  return parts
end

--- Data parallelism with equal shards, then with shards by what each machine does a second of its equal one.
function baselines.add_replicas(rows, name, cluster, batch_size)
  local nodes, speed, batch = #cluster.devices, {}, batch_size or baselines.batch_size
  local parts = baselines.shards(batch, util.listed(nodes, function() return 1 end))
  for d = 1, nodes do
    local _, metrics = times_on(baselines.graph(name, parts[d]), cluster, d)
    speed[d] = parts[d] / metrics.step_time_s
  end
  rows[#rows + 1] = data_parallel('bsp', name, cluster, parts)
  rows[#rows + 1] = data_parallel('bsp_speed', name, cluster, baselines.shards(batch, speed))
end

-- The stage of every operator: the stage of its layer's first forward operator, in a plan of trinity.pipeline.
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

-- The plan of PipeDream's optimiser for the whole batch, with the costs of replicas for their part of it.
local function pipedream(method, name, cluster, straight)
  local batch = baselines.batch_size
  local graph = baselines.graph(name, batch)
  local problem = problems.new { graph = graph, cluster = cluster }
  local _, bandwidth = cluster:wire(1, 2)
  local plan = pipelines(problem, { method = 'pipedream', devices = #cluster.devices, quiet = true,
    bandwidth_bytes_per_s = bandwidth, straight = straight })
  if not plan.feasible then return nil end
  local replicas, shares = {}, {}
  for s, about in ipairs(plan.stages) do
    replicas[s] = about.devices
    local part = math.max(1, math.floor(batch / about.devices + 0.5))
    shares[s] = about.devices > 1 and baselines.graph(name, part)
  end
  local copies, _, stage, replica = graph:replicate_stages { replicas = replicas, at_share = shares,
    stage = stages_by_operator(graph, layer_chain.of(problem), plan) }
  local wide = problems.new { graph = copies, cluster = cluster }
  local placement = wide:placement()
  for op = 1, #placement do placement[op] = plan.stages[stage[op]].first_device + replica[op] - 1 end
  local result = baselines.result(method, wide, { placement = placement, schedule = 'pipedream', stage = stage })
  result.replicas = replicas
  return result
end

--- The problem that cuts are of: a micro-batch and its schedule.
function baselines.problem(name, cluster)
  local micro_batches = baselines.micro_batches
  return problems.new { graph = baselines.graph(name, baselines.batch_size / micro_batches), cluster = cluster,
    schedule = '1f1b', micro_batches = micro_batches }
end

function baselines.add_pipelines(rows, name, problem, chain)
  local micro_batches, cluster = baselines.micro_batches, problem.cluster
  rows[#rows + 1] = baselines.result('gpipe', problem, { schedule = 'gpipe', micro_batches = micro_batches,
    placement = layer_chain.placement(problem, chain, chain.row:equal_work()) })
  rows[#rows + 1] = pipedream('pipedream', name, cluster, false)
  rows[#rows + 1] = pipedream('pipedream_1', name, cluster, true)
  local cut = chain.row:least_load(micro_batches)
  if not cut then return end
  local placement = layer_chain.placement(problem, chain, cut)
  rows[#rows + 1] = baselines.result('least_load', problem, placement)
  rows[#rows].placement = placement
end

--- Finds the cut into consecutive parts, each on its own node, with the fastest step by the problem's schedule; cuts
--- that keep a node busy for too long are skipped. options: micro_batches (default: the problem's, or 1); below_s, a
--- known step time: only faster ones are searched; most, the maximum number of cuts to try (100000). Returns { tried =,
--- device_of =, step_time_s = }, without the last two if nothing is faster; nil if more cuts would have to be tried.
function baselines.fastest_cut(problem, chain, options)
  return chain.row:fastest(options, function(cuts, below_s)
    local placements = util.map(cuts, function(device_of) return layer_chain.placement(problem, chain, device_of) end)
    local limit = below_s < math.huge and { reject_above_s = below_s } or nil
    return util.map(problem:evaluate_batch(placements, limit), function(metrics)
      return metrics.feasible and metrics.step_time_s or math.huge
    end)
  end)
end

--- The fastest cut by 1F1B, proved, as a row; nil where there are too many. `known`: rows with placements that were
--- found by other means.
function baselines.fastest(problem, chain, known)
  local best
  for _, row in ipairs(known) do
    if row.fits and (not best or row.step_time_s < best.step_time_s) then best = row end
  end
  local found = baselines.fastest_cut(problem, chain, { micro_batches = baselines.micro_batches,
    below_s = best and best.step_time_s or math.huge, most = baselines.most_cuts })
  if not found then return nil end
  local placement = found.device_of and layer_chain.placement(problem, chain, found.device_of)
    or best and best.placement
  if not placement then return nil end
  local result = baselines.result('fastest', problem, placement)
  result.tried = found.tried
  return result
end

return baselines
