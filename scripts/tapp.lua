#!/usr/bin/env trinity
-- TAPP (Appl. Sci. 2021, 11(11), 4785) beside data parallelism, GPipe, PipeDream and exact splits, on unequal machines.
--
-- The article states two averages: a step 1.37 times faster than with BSP data parallelism, and a share of
-- communication in it that is 48.92 % lower. It states neither its networks nor its clusters, batches or settings, so
-- that nothing here can be its experiment: networks and machines are ours, step times are simulated, and only the
-- direction and the rough size of the two averages can be compared. What is measured (papers.md 2.2):
--   time ratio   T_BSP / T, BSP with equal shards
--   rho          the share of a step in which a device computes nothing while something is on its way to it (a
--                transfer, or an all-reduce that it has joined), averaged over the devices in use
--   reduction    1 - rho / rho_BSP
--
-- The clusters: machines with one GPU each, a V100, a GTX 1080 Ti, a P100 and a K80 (12 GB) in turn, on 10 Gbit/s
-- Ethernet. The methods:
--   bsp          a copy of the model a machine, equal parts of the batch, gradients all-reduced in buckets of 25 MB
--                while backward passes go on
--   bsp_speed    the same with parts in proportion to what each machine does a second
--   gpipe        parts of equal work as on equal machines, all forwards before all backwards
--   pipedream    its split for equal machines without replication, asynchronous: a mini-batch is the whole batch, the
--                weights of those under way are kept; it computes something else than all others
--   least_load   the split whose largest stage is least, over all orders of machines, exact; 1F1B
--   best_split   the best of all splits into consecutive parts, where trying all is possible (--most_schemes); 1F1B
--   tapp         the method; 1F1B; the median of its seeds
-- With --models vgg16,resnet50 --evaluations 1500 --seeds 2: TAPP's worst step is 1.000 times best_split's and 0.998
-- times least_load's, since it learns from the step and not from its largest stage; BSP over TAPP is 1.67 and the share
-- of communication 68 % lower on average. ResNet-50 on two machines is the case where data parallelism stays ahead: its
-- gradients are small and hidden. BSP overlaps all-reduces with backward passes here; one that does not is slower.

local trinity = require 'trinity'
local core = require 'trinity.core'
local layer_chain = require 'trinity.layer_chain'
local layer_split = require 'trinity.layer_split'
local topology = require 'trinity.topology'
local util = require 'trinity.util'

local options = trinity.options {
  'TAPP on unequal machines against data parallelism, GPipe, PipeDream and exact splits.',
  models = { default = 'vgg16,resnet50,bert_base', help = 'models with commas' },
  nodes = { default = '2,4,8', help = 'machines of the clusters with commas, each 2 to 8' },
  batch_size = { default = 64, help = 'samples per step', min = 8, max = 65536, integer = true },
  micro_batches = { default = 8, help = 'parts of the batch in a pipeline', min = 1, max = 1024, integer = true },
  evaluations = { default = 2000, help = 'schemes that TAPP simulates', min = 1, integer = true },
  seeds = { default = 3, help = 'runs of TAPP', min = 1, max = 1000, integer = true },
  seed = { default = 1, help = 'the first seed', min = 0, integer = true },
  most_schemes = { default = 3000, help = 'try all splits where there are no more', min = 0, integer = true },
  json = { default = false, help = 'JSON on standard output and nothing else' },
}

local paper = { time_ratio = 1.37, reduction = 0.4892 }
local gpus = { 'v100_pcie', 'gtx1080ti', 'p100', 'k80' }

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
  local placement = problem:placement()
  for op = 1, #placement do placement[op] = d end
  local timeline = problem:timeline(placement)
  for op = 1, #placement do times[graph:operator(op).name] = timeline.end_s[op] - timeline.start_s[op] end
  return times, timeline.metrics
end

-- Data parallelism with shard[d] samples on device d. Every copy has the costs of its own shard.
local function data_parallel(method, model, cluster, shard)
  local copies, graphs = #shard, {}
  local times, fits, peak = {}, true, 0
  for d = 1, copies do
    graphs[d] = trinity.model(model, { batch_size = shard[d] })
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
  local speed = {}
  for d = 1, nodes do speed[d] = 1 end
  return shards(options.batch_size, speed)
end

-- What each machine does a second of its equal shard.
local function speeds(model, cluster, parts)
  local speed = {}
  for d = 1, #parts do
    local _, metrics = times_on(trinity.model(model, { batch_size = parts[d] }), cluster, d)
    speed[d] = parts[d] / metrics.step_time_s
  end
  return speed
end

-- Calls use(device_of) for every split into consecutive parts on different nodes; returns how many there are, and
-- stops counting above `most`.
local function each_split(layers, nodes, most, use)
  local count, used, device_of = 0, {}, {}
  local function place(from)
    if from > layers then
      count = count + 1
      if use then use(device_of) end
      return
    end
    for d = 1, nodes do
      if not used[d] then
        used[d] = true
        for last = from, layers do
          device_of[last] = d
          if count <= most then place(last + 1) end
          device_of[last] = nil
        end
        used[d] = nil
      end
    end
  end
  place(1)
  return count
end

local function best_split(problem, chain)
  local nodes = #problem.cluster.devices
  if each_split(chain.layers, nodes, options.most_schemes) > options.most_schemes then return nil end
  local best, batch = nil, {}
  local function flush()
    for i, metrics in ipairs(problem:evaluate_batch(batch)) do
      if metrics.feasible and (not best or metrics.step_time_s < best.step_time_s) then
        best = { step_time_s = metrics.step_time_s, placement = batch[i] }
      end
    end
    batch = {}
  end
  each_split(chain.layers, nodes, options.most_schemes, function(device_of)
    local whole, device = {}, nil
    for l = chain.layers, 1, -1 do
      device = device_of[l] or device
      whole[l] = device
    end
    batch[#batch + 1] = layer_chain.placement(problem, chain, whole)
    if #batch == 256 then flush() end
  end)
  if #batch > 0 then flush() end
  return best and result_of('best_split', problem, best.placement)
end

local function tapp(problem, seed)
  local found = trinity.methods.tapp(problem, { seed = seed, evaluations = options.evaluations, quiet = true })
  local result = result_of('tapp', problem, found)
  result.seed = seed
  return result
end

-- The run in the middle (the slower of two), and the fewest and most seconds of all.
local function median_run(runs)
  table.sort(runs, function(a, b)
    if a.step_time_s ~= b.step_time_s then return a.step_time_s < b.step_time_s end
    return a.seed < b.seed
  end)
  local middle = runs[math.floor(#runs / 2) + 1]
  middle.least_s, middle.most_s = runs[1].step_time_s, runs[#runs].step_time_s
  return middle
end

local function add_splits(rows, model, problem, cluster)
  local chain = layer_chain.of(problem)
  local micro_batches = options.micro_batches
  local function add(method, device_of, plan, of)
    if not device_of then return end
    plan.placement = layer_chain.placement(of or problem, chain, device_of)
    rows[#rows + 1] = result_of(method, of or problem, plan)
  end
  add('gpipe', layer_split.equal_work(problem, chain), { schedule = 'gpipe', micro_batches = micro_batches })
  local whole = trinity.problem { graph = trinity.model(model, { batch_size = options.batch_size }), cluster = cluster }
  local equal = layer_split.least_load(whole, layer_chain.of(whole), { in_order = true, equal = true })
  add('pipedream', equal, { schedule = 'pipedream' }, whole)
  local least = layer_split.least_load(problem, chain, { micro_batches = micro_batches })
  add('least_load', least, { schedule = '1f1b', micro_batches = micro_batches })
  rows[#rows + 1] = best_split(problem, chain)
end

local function study(case)
  local model, nodes = case.model, case.nodes
  local cluster, rows = cluster_of(nodes), {}
  local parts = equal_shards(nodes)
  rows[1] = data_parallel('bsp', model, cluster, parts)
  rows[2] = data_parallel('bsp_speed', model, cluster, shards(options.batch_size, speeds(model, cluster, parts)))
  local graph = trinity.model(model, { batch_size = options.batch_size / options.micro_batches })
  local problem = trinity.problem { graph = graph, cluster = cluster, schedule = '1f1b',
    micro_batches = options.micro_batches }
  add_splits(rows, model, problem, cluster)
  local runs = {}
  for i = 1, options.seeds do runs[i] = tapp(problem, options.seed + i - 1) end
  rows[#rows + 1] = median_run(runs)
  for _, row in ipairs(rows) do
    row.time_ratio, row.reduction = rows[1].step_time_s / row.step_time_s, 1 - row.rho / rows[1].rho
  end
  return { model = model, nodes = nodes, rows = rows }
end

local function cases_of()
  local cases = {}
  for model in options.models:gmatch '[^,%s]+' do
    for text in options.nodes:gmatch '[^,%s]+' do
      local nodes = tonumber(text)
      if not nodes or nodes < 2 or nodes > 8 or nodes % 1 ~= 0 then
        util.fail_usage("option '--nodes': expected integers from 2 to 8 with commas, got '%s'", text)
      end
      cases[#cases + 1] = { model = model, nodes = nodes }
    end
  end
  return cases
end

local function find(rows, method)
  for _, row in ipairs(rows) do if row.method == method then return row end end
end

-- Averages over all cases of what TAPP gains over BSP, and its largest step over those of the two exact splits.
local function summarise(studies)
  local ratio, reduction, over = 0, 0, {}
  for _, case in ipairs(studies) do
    local row = find(case.rows, 'tapp')
    ratio, reduction = ratio + row.time_ratio / #studies, reduction + row.reduction / #studies
    for _, method in ipairs { 'least_load', 'best_split' } do
      local other = find(case.rows, method)
      if other and other.fits then over[method] = math.max(over[method] or 0, row.step_time_s / other.step_time_s) end
    end
  end
  return { time_ratio = ratio, reduction = reduction, over_least_load = over.least_load,
    over_best_split = over.best_split }
end

local function table_text(studies)
  local head = { 'model, nodes', 'method', 'step, s', 'T_BSP / T', 'rho', 'reduction', 'peak memory', '' }
  local lines = {}
  for _, case in ipairs(studies) do
    for i, row in ipairs(case.rows) do
      local note = row.fits and '' or 'does not fit'
      if row.seed and options.seeds > 1 then note = ('seeds: %.4f to %.4f'):format(row.least_s, row.most_s) end
      lines[#lines + 1] = { i == 1 and ('%s, %d'):format(case.model, case.nodes) or '', row.method,
        ('%.4f'):format(row.step_time_s), ('%.2f'):format(row.time_ratio), ('%.1f %%'):format(100 * row.rho),
        ('%.1f %%'):format(100 * row.reduction), core.format_bytes(row.peak_memory_bytes), note }
    end
  end
  return trinity.format_table(head, lines)
end

if options.batch_size % options.micro_batches ~= 0 then
  util.fail_usage("option '--micro_batches': expected a divisor of the batch of %d, got %d", options.batch_size,
    options.micro_batches)
end
local studies = trinity.parallel_map(cases_of(), study, { quiet = options.json })
local summary = summarise(studies)
if options.json then
  print(core.to_json { seed = options.seed, seeds = options.seeds, evaluations = options.evaluations,
    batch_size = options.batch_size, micro_batches = options.micro_batches, cases = studies, mean = summary,
    paper = paper })
  return
end
print(table_text(studies))
print(('\nTAPP over BSP with equal shards, mean of %d cases: %.2f times as fast (article, its own cases: %.2f), share '
  .. 'of communication %.1f %% lower (article: %.2f %%)'):format(#studies, summary.time_ratio, paper.time_ratio,
  100 * summary.reduction, 100 * paper.reduction))
for _, pair in ipairs { { 'least_load', 'the split of least load' }, { 'best_split', 'the best of all splits' } } do
  local over = summary['over_' .. pair[1]]
  if over then print(('TAPP against %s: at most %.3f times its step'):format(pair[2], over)) end
end
print(('The article does not name its networks, clusters or batches; these are ours (see the script). Simulated; '
  .. 'batch %d in %d micro-batches, %d schemes a run, seeds %d to %d.'):format(options.batch_size,
  options.micro_batches, options.evaluations, options.seed, options.seed + options.seeds - 1))
