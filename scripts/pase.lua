#!/usr/bin/env trinity
-- PaSE (Elango, IPDPS 2021): the best split of every layer over p devices, exactly, beside the paper's own
-- figures: search times (table I), cost against other strategies, strategies (table II), simulated steps
-- on the clusters that it measured (figure 6).

local plot = require 'trinity.base.plot'
local progress = require 'trinity.base.progress'
local trinity = require 'trinity'
local util = require 'trinity.base.util'

local options = trinity.options {
  'Searches the splits of networks over devices as PaSE does, and compares.',
  models = { default = 'alexnet,inception_v3,rnnlm,transformer', help = 'networks of the paper, or any in models/' },
  devices = { default = '8,16,32,64', help = 'numbers of devices' },
  iterations = { default = 250000, help = "of FlexFlow's Markov chain; 0: without", min = 0, integer = true },
  strategy = { default = 32, help = 'print the best strategies for so many devices; 0: none', min = 0, integer = true },
  clusters = { default = 'gtx1080ti_ib,rtx2080ti_ib', help = "simulate on these with p devices; '': none" },
  queue = { default = 'fair', help = "how transfers share links: 'fair', 'route', ...; '': the cluster's own" },
  cutoff = { default = 0, help = 'smallest block of a dimension; 0: 4, for rnnlm and transformer 1', min = 0,
    integer = true },
  space = { default = 'code', help = "'code': its divisors; 'paper': all factors, windows too (few devices)" },
  seconds = { default = 60, help = 'for a search whose tables are too large', min = 0 },
  seed = { default = 1, help = "of FlexFlow's Markov chain", min = 0, integer = true },
  output = { default = '', writes = '.csv', help = "where PATH.csv, PATH.svg and PATH.png of figure 6 go; '': none" },
}

-- Models as the paper's, the search times of its table I in s by p (PaSE's, FlexFlow's, breadth-first dynamic
-- programming's: 'OOM' where it needed more than the memory), and its figure 6: measured speed-ups over data
-- parallelism by cluster and p, { expert, FlexFlow, PaSE } (0: not measured).
local paper = {
  alexnet = { options = { batch_size = 128 },
    pase_s = { [4] = 0.226, [8] = 0.253, [16] = 0.295, [32] = 0.361, [64] = 0.475 },
    breadth_first = { [4] = 0.234, [8] = 0.260, [16] = 0.303, [32] = 0.385, [64] = 0.485 },
    flexflow_s = { [4] = 2.54, [8] = 2.77, [16] = 6.98, [32] = 7.92, [64] = 257.3 },
    gtx1080ti_ib = { [4] = { 1.53, 1.53, 1.65 }, [8] = { 1.56, 1.56, 1.75 }, [16] = { 1.47, 1.47, 1.85 },
      [32] = { 0.96, 1.16, 1.44 }, [64] = { 0.84, 1.38, 1.41 } },
    rtx2080ti_ib = { [4] = { 2.96, 2.96, 3.54 }, [8] = { 3.52, 3.52, 4.01 }, [16] = { 3.37, 3.37, 4.00 },
      [32] = { 1.79, 2.33, 2.78 }, [64] = { 0.91, 1.53, 1.76 } } },
  inception_v3 = { options = { batch_size = 128, nested_concat = true },
    pase_s = { [4] = 14.398, [8] = 20.018, [16] = 39.791, [32] = 86.039, [64] = 196.253 },
    breadth_first = 'OOM',
    flexflow_s = { [4] = 69.21, [8] = 146.51, [16] = 365.82, [32] = 937.96, [64] = 2237.04 },
    gtx1080ti_ib = { [4] = { 1.00, 1.00, 1.03 }, [8] = { 1.01, 1.01, 1.08 }, [16] = { 1.00, 1.00, 1.07 },
      [32] = { 0.99, 1.01, 1.09 }, [64] = { 1.00, 0.99, 1.12 } },
    rtx2080ti_ib = { [4] = { 1.01, 1.01, 1.01 }, [8] = { 1.02, 1.02, 1.09 }, [16] = { 1.02, 1.02, 1.10 },
      [32] = { 0.99, 1.00, 1.12 }, [64] = { 1.01, 1.01, 1.18 } } },
  rnnlm = { cutoff = 1, options = { batch_size = 64 },
    pase_s = { [4] = 0.057, [8] = 0.086, [16] = 0.069, [32] = 0.131, [64] = 0.215 },
    breadth_first = { [4] = 0.070, [8] = 0.084, [16] = 0.109, [32] = 0.167, [64] = 0.271 },
    flexflow_s = { [4] = 107.07, [8] = 164.29, [16] = 432.19, [32] = 668.22, [64] = 1041.98 },
    gtx1080ti_ib = { [4] = { 1.61, 1.79, 1.85 }, [8] = { 1.36, 1.56, 1.76 }, [16] = { 0.77, 0.94, 1.45 },
      [32] = { 0.98, 1.16, 1.41 }, [64] = { 0.91, 1.30, 1.36 } },
    rtx2080ti_ib = { [4] = { 1.61, 1.88, 2.03 }, [8] = { 1.25, 1.72, 2.41 }, [16] = { 0.93, 1.10, 1.68 },
      [32] = { 1.10, 1.30, 1.62 }, [64] = { 1.19, 1.29, 1.33 } } },
  transformer = { cutoff = 1, options = { batch_size = 64 },
    pase_s = { [4] = 9.752, [8] = 28.798, [16] = 130.882, [32] = 553.022, [64] = 1883.187 },
    flexflow_s = {}, breadth_first = 'OOM',
    gtx1080ti_ib = { [4] = { 1.01, 0, 1.03 }, [8] = { 0.91, 0, 1.02 }, [16] = { 1.41, 0, 1.55 },
      [32] = { 1.39, 0, 1.51 }, [64] = { 1.43, 0, 1.43 } },
    rtx2080ti_ib = { [4] = { 0.97, 0, 1.00 }, [8] = { 0.78, 0, 1.83 }, [16] = { 1.26, 0, 1.75 },
      [32] = { 1.27, 0, 1.60 }, [64] = { 2.70, 0, 2.70 } } },
  resnet101 = { options = { batch_size = 128 }, pase_s = {}, flexflow_s = {} },
}

local clusters, device_counts = util.words(options.clusters), util.numbers('devices', options.devices, 1, 4096, true)

local function seconds(value) return value and ('%.3f s'):format(value) or '-' end
local function ratio(found, best) return found and ('%.3f'):format(found.cost / best.cost) or '-' end

local kinds = { 'data_parallel', 'expert', 'mcmc', 'tofu', 'best' }

--- Strategies of one network on p devices.
local function search(graph, devices, known)
  local cutoff = options.cutoff > 0 and options.cutoff or known and known.cutoff or 4
  if options.space == 'paper' then cutoff = math.max(1, options.cutoff) end
  local pase = trinity.pase(graph, { devices = devices, space = options.space, cutoff = cutoff })
  local best = pase:solve { seconds = options.seconds, quiet = true }
  if best.stopped then os.exit(130) end
  return { pase = pase, best = best, data_parallel = pase:data_parallel(), owt = pase:owt(), expert = pase:expert(),
    tofu = pase:tofu(),
    mcmc = options.iterations > 0 and pase:mcmc { iterations = options.iterations, seed = options.seed } or nil }
end

-- Rows of the tables; what the run keeps, an entry for every network and p; groups of bars of the figure.
local searches, costs, steps, strategies, kept = {}, {}, {}, {}, {}
local figure = { groups = {}, series = { 'tofu', 'expert', 'mcmc', 'best' }, values = {}, marks = {},
  mark = "in the paper (mcmc: FlexFlow)", y = 'times as fast as data parallelism' }
local figure_cells = {}

local function search_row(name, devices, found, known)
  local pase, best, baseline = found.pase, found.best, found.pase:breadth_first()
  local theirs = known and known.breadth_first
  if type(theirs) == 'table' then theirs = seconds(theirs[devices]) end
  searches[#searches + 1] = { name, tostring(devices), ('%d / %d'):format(#pase.layers, #pase.edges),
    tostring(pase.entries), tostring(best.widest_set), ('%.0f'):format(best.largest_table),
    ('%.0f'):format(best.peak_table_entries),
    seconds(best.seconds), seconds(known and known.pase_s[devices]), seconds(found.mcmc and found.mcmc.seconds),
    seconds(known and known.flexflow_s[devices]), ('%d / %.3g'):format(baseline.widest_set, baseline.largest_table),
    theirs or '-' }
end

local function cost_row(name, devices, found)
  local best = found.best
  costs[#costs + 1] = { name, tostring(devices), ('%.10g'):format(best.cost), best.optimal and 'yes' or 'no',
    ratio(found.data_parallel, best), ratio(found.owt, best), ratio(found.expert, best), ratio(found.mcmc, best),
    ratio(found.tofu, best) }
end

--- A strategy's simulated step on every cluster: { [cluster] = { step_time_s =, feasible = } }.
local function simulate(graph, devices, pase, found)
  local times, lowered = {}, nil
  for _, family in ipairs(clusters) do
    local cluster = trinity.cluster(('%sx%d'):format(family, devices))
    lowered = lowered or trinity.lower { graph = graph, cluster = cluster, splits = pase:splits(found) }
    local problem = trinity.simulator { graph = lowered.graph, cluster = cluster,
      rules = options.queue ~= '' and { queue = options.queue } or nil }
    local metrics = problem:evaluate(lowered.placement)
    times[family] = { step_time_s = metrics.step_time_s, feasible = metrics.feasible }
    problem:close()
  end
  if lowered then lowered.graph:close() end
  return times
end

local function speed_up(base_s, time) -- '!': does not fit into the devices' memory
  if not time then return '-' end
  return ('%.2f%s'):format(base_s / time.step_time_s, time.feasible and '' or '!')
end

local function paper_text(known, cluster, devices)
  local row = known and known[cluster] and known[cluster][devices]
  if not row then return '-' end
  return ('%.2f / %s / %.2f'):format(row[1], row[2] > 0 and ('%.2f'):format(row[2]) or '-', row[3])
end

--- Keeps the speed-ups on a cluster for the run and for the figure. `times` by kind and cluster.
local function keep_step(entry, name, family, devices, times, known)
  local base_s = times.data_parallel[family] and times.data_parallel[family].step_time_s
  local row = known and known[family] and known[family][devices] or {}
  local measured = { expert = row[1], mcmc = row[2] ~= 0 and row[2] or nil, best = row[3] }
  local step, group = { cluster = family, data_parallel_s = base_s, best_s = times.best[family].step_time_s,
    speed_up = {}, fits = {}, measured = measured }, #figure.groups + 1
  figure.groups[group] = ('%s %d, %s'):format(name, devices, family)
  figure.values[group], figure.marks[group] = {}, {}
  for s, kind in ipairs(figure.series) do
    local time = times[kind][family]
    if time and base_s then
      step.speed_up[kind], step.fits[kind] = base_s / time.step_time_s, time.feasible
      figure.values[group][s] = base_s / time.step_time_s
    end
    figure.marks[group][s] = measured[kind]
    figure_cells[#figure_cells + 1] = { name, family, devices, kind, step.speed_up[kind] or '', measured[kind] or '' }
  end
  entry.steps[#entry.steps + 1] = step
end

local function step_rows(name, devices, graph, found, known, entry)
  local times = {}
  for _, kind in ipairs(kinds) do
    times[kind] = found[kind] and simulate(graph, devices, found.pase, found[kind]) or {}
  end
  for _, family in ipairs(clusters) do
    local base, best = times.data_parallel[family], times.best[family]
    local base_s = base and base.step_time_s or 0 / 0
    local row = { name, family, tostring(devices), ('%.4f s'):format(base_s), ('%.4f s'):format(best.step_time_s) }
    for _, kind in ipairs(figure.series) do
      row[#row + 1] = speed_up(base_s, times[kind][family])
    end
    row[#row + 1] = paper_text(known, family, devices)
    steps[#steps + 1] = row
    keep_step(entry, name, family, devices, times, known)
  end
end

--- What the run keeps of a search: costs, the split of every layer; speed-ups come later.
local function keep_search(name, devices, found)
  local best, over_best = found.best, {}
  for _, kind in ipairs { 'data_parallel', 'owt', 'expert', 'mcmc', 'tofu' } do
    over_best[kind] = found[kind] and found[kind].cost / best.cost or nil
  end
  local entry = { network = name, devices = devices, cost = best.cost, optimal = best.optimal, seconds = best.seconds,
    over_best = over_best, steps = {}, strategy = {} }
  for i, row in ipairs(found.pase:rows(best)) do
    entry.strategy[i] = { layers = row.layers, type = row.type, dimensions = row.dimensions, factors = row.factors }
  end
  kept[#kept + 1] = entry
  return entry
end

local line, start = progress.new 'pase', trinity.clock_s()

local function study(name, devices, graph)
  local known = paper[name]
  line:update { text = ('%s, p = %d: searching'):format(name, devices) }
  local found = search(graph, devices, known)
  search_row(name, devices, found, known)
  cost_row(name, devices, found)
  local entry = keep_search(name, devices, found)
  if devices == options.strategy then
    for _, row in ipairs(found.pase:rows(found.best)) do
      strategies[#strategies + 1] = { name, row.layers, row.type, row.dimensions, row.factors }
    end
  end
  line:update { text = ('%s, p = %d: simulating'):format(name, devices) }
  if #clusters > 0 then step_rows(name, devices, graph, found, known, entry) end
  found.pase:close()
end

for _, name in ipairs(util.words(options.models)) do
  local graph = trinity.model(name, paper[name] and paper[name].options or {})
  for _, devices in ipairs(device_counts) do study(name, devices, graph) end
end
line:finish()

print 'Search: layers and edges, entries of the cost tables, the largest dependent set, combinations of a layer and'
print 'its set, entries of tables at a time, seconds beside those of table I (another machine, in Python); what a'
print 'search in breadth-first order would need (largest set / combinations), and the time of that in the paper.\n'
print(trinity.format_table({ 'network', 'p', 'layers / edges', 'entries', 'set', 'combinations', 'at a time', 'PaSE',
  'paper', 'FlexFlow chain', 'paper', 'breadth first', 'paper' }, searches))
print "\nCost in FLOP equivalents of the best strategy, and of others over it:\n"
print(trinity.format_table({ 'network', 'p', 'best', 'optimal', 'data parallel', 'owt', 'expert', 'mcmc', 'tofu' },
  costs))
if #strategies > 0 then
  print(('\nBest strategies for p = %d:\n'):format(options.strategy))
  print(trinity.format_table({ 'network', 'layers', 'type', 'dimensions', 'factors' }, strategies))
end
if #steps > 0 then
  print '\nSimulated steps, and speed-ups over data parallelism beside the measured ones of figure 6 (! exceeds the'
  print 'memory of a device):\n'
  print(trinity.format_table({ 'network', 'cluster', 'p', 'data parallel', 'PaSE', 'tofu', 'expert', 'mcmc', 'PaSE',
    'paper: expert / FlexFlow / PaSE' }, steps))
  print '\nLikely reasons for what differs from figure 6: simulated collectives and copies run beside computation and'
  print "nothing else takes time, where the measured Mesh-TensorFlow steps have a framework's overheads, which level"
  print 'the ratios of short steps (AlexNet). A copy between machines shares one network card with those of seven'
  print "other GPUs, where a ring of all GPUs crosses each card once; PaSE's cost model prices both alike. On 64 GPUs"
  print 'blocks of 2 images are below the cutoff, so that convolutions run on 32 or are resharded (InceptionV3).'
end
if options.output ~= '' then
  plot.csv(options.output .. '.csv', { 'network', 'cluster', 'devices', 'strategy', 'speed_up', 'paper' }, figure_cells)
  local picture, reason = plot.bars(options.output, figure)
  print(('\nfigure 6 in %s.csv%s'):format(options.output, picture and ', .svg and .png' or '; no picture: ' .. reason))
end
local first = kept[1]
trinity.run:result('pase', { networks = kept, seed = options.seed }, first
  and ('The splits of %d searches: that of %s over %d devices costs %s.'):format(#kept, first.network, first.devices,
    first.over_best.data_parallel and ('%.2f times less than data parallelism'):format(first.over_best.data_parallel)
    or ('%.4g'):format(first.cost)))
print(('\nseed %d, %d iterations of the chain, %.0f s in all; made by: trinity scripts/pase.lua %s'):format(
  options.seed, options.iterations, trinity.clock_s() - start, table.concat(arg, ' ')))
