#!/usr/bin/env trinity
-- How long training takes with DASO and with all-reduce in every batch (as Horovod does), simulated: ResNet-50 on
-- ImageNet and HRNet-W48 on CityScapes, on nodes of JUWELS Booster, and how the gain depends on the network's
-- bandwidth, on nodes and on skips. Writes tables, and plots with gnuplot where that is installed.
--
-- The paper (Coquelin et al. 2022) reports up to 34 % less training time than Horovod for such networks on this
-- machine. What the simulated gain is depends above all on what the all-reduce is able to hide: see the last lines.

local plot = require 'trinity.base.plot'
local trinity = require 'trinity'
local util = require 'trinity.base.util'
local sync = trinity.synchronisation

local options = trinity.options {
  'Simulates training time with DASO and with all-reduce in every batch.',
  gpus = { default = '4,16,64,256', help = 'numbers of GPUs, four a node' },
  networks = { default = 'resnet50,hrnet_w48', help = 'of resnet50, hrnet_w48' },
  resnet50_batch = { default = 256, help = 'images on a GPU', min = 1, integer = true },
  hrnet_w48_batch = { default = 2, help = 'crops of 512 x 1024 on a GPU', min = 1, integer = true },
  resnet50_epochs = { default = 90, help = 'as in the code of the paper', min = 1, integer = true },
  hrnet_w48_epochs = { default = 175, help = 'as in the multi-scale attention paper', min = 1, integer = true },
  tf32 = { default = true, help = "convolutions on the A100's tensor cores, PyTorch's default" },
  study_gpus = { default = 64, help = 'GPUs of the studies of bandwidth and skips', min = 8, integer = true },
  bandwidths = { default = '24,12,6,3,1.5,0.75,0.375', help = "of a GPU's network card, GB/s" },
  output = { default = 'runs/daso', writes = '/x.csv', help = 'folder of tables (.csv) and pictures (.svg, .png)' },
}

local per_node = 4
-- Training images of ImageNet-2012 (classification) and of CityScapes (fine annotations).
local samples = { resnet50 = 1281167, hrnet_w48 = 2975 }

local function numbers(name) return util.numbers(name, options[name], 1e-6) end

--- JUWELS Booster with `gpus` GPUs; `bandwidth_gb_s` of every network card where it is not the machine's.
local function cluster_of(gpus, bandwidth_gb_s)
  if gpus % per_node ~= 0 then util.fail_usage('%d GPUs do not fill nodes of %d', gpus, per_node) end
  local spec = assert(loadfile(trinity.home .. '/models/clusters/juwels_booster.lua'))()(gpus / per_node)
  spec.name = ('juwels_boosterx%d'):format(gpus / per_node)
  if options.tf32 then
    spec.device_types.a100 = trinity.devices.with(trinity.devices.a100, { peak_flops_per_s = { float32 = 156e12 } })
  end
  for _, link in ipairs(spec.links) do
    if bandwidth_gb_s and link.to == 'infiniband' then link.bandwidth_bytes_per_s = bandwidth_gb_s * 1e9 end
  end
  return trinity.cluster(spec)
end

local networks = {}
for _, name in ipairs(util.words(options.networks)) do
  if not samples[name] then
    util.fail_usage("option '--networks': expected resnet50 or hrnet_w48, got '%s'", name)
  end
  local batch_size = options[name .. '_batch']
  networks[#networks + 1] = { name = name, graph = trinity.model(name, { batch_size = batch_size }),
    batch_size = batch_size, epochs = options[name .. '_epochs'] }
end

--- The training of a network under a policy; hours, and the milliseconds of a batch.
local function train(network, cluster, policy)
  local run = sync.replicate { graph = network.graph, cluster = cluster, policy = policy }
  local batches = math.max(1, math.floor(samples[network.name] / (network.batch_size * run.replicas)))
  local result = run:train { epochs = network.epochs, batches = batches }
  local all = network.epochs * batches
  return { hours = result.time_s / 3600, batch_ms = result.time_s / all * 1e3, batches = batches,
    compute_ms = result.compute_s / all * 1e3, epochs = result.epochs }
end

local policies = {
  { key = 'bucketed', title = 'all-reduce in buckets during backward', policy = sync.bsp {} },
  { key = 'hierarchical', title = 'hierarchical all-reduce after backward',
    policy = sync.bsp { algorithm = 'hierarchical', bucket_bytes = 0 } },
  { key = 'flat', title = 'flat ring after backward', policy = sync.bsp { algorithm = 'ring', bucket_bytes = 0 } },
  { key = 'server', title = 'parameter server', policy = sync.parameter_server { servers = 1 } },
  { key = 'local_sgd', title = 'local SGD, 8 steps', policy = sync.local_sgd { steps = 8 } },
  { key = 'daso', title = 'DASO', policy = sync.daso {} },
}

local function gain(base, other) return 100 * (1 - other.hours / base.hours) end

--- Writes a table, and keeps it for the run and the pictures.
local function write_csv(network, what, head, rows)
  plot.csv(('%s/%s_%s.csv'):format(options.output, network.name, what), head, rows)
  network[what] = { keys = head, rows = rows }
end

--- How DASO synchronises in the epochs in which that changes.
local function schedule_of(epochs)
  local changes, last = {}, {}
  for e, epoch in ipairs(epochs) do
    if e == #epochs or epoch.global_skips ~= last.global_skips or epoch.phase ~= last.phase then
      changes[#changes + 1] = { epoch = e, phase = epoch.phase, global_skips = epoch.global_skips,
        local_skips = epoch.local_skips, wait = epoch.batches_to_wait, time_s = epoch.time_s }
    end
    last = epoch
  end
  return changes
end

local function shown(x) return ('%.4g'):format(x) end

--- Training hours of every policy over the number of GPUs.
local function study_gpus(network)
  local head, rows = { 'GPUs', 'batches', 'computing ms' }, {}
  local keys = { 'gpus', 'batches', 'compute_ms' }
  for _, entry in ipairs(policies) do head[#head + 1], keys[#keys + 1] = entry.key .. ' h', entry.key .. '_hours' end
  for _, key in ipairs { 'gain_bucketed', 'gain_hierarchical', 'gain_flat' } do
    head[#head + 1], keys[#keys + 1] = key:gsub('gain_', 'gain on ') .. ' %', key
  end
  for _, gpus in ipairs(numbers 'gpus') do
    local cluster, found = cluster_of(gpus), {}
    for _, entry in ipairs(policies) do found[entry.key] = train(network, cluster, entry.policy) end
    local row = { tostring(gpus), tostring(found.daso.batches), shown(found.daso.compute_ms) }
    for _, entry in ipairs(policies) do row[#row + 1] = shown(found[entry.key].hours) end
    for _, key in ipairs { 'bucketed', 'hierarchical', 'flat' } do
      row[#row + 1] = ('%.2f'):format(gain(found[key], found.daso))
    end
    rows[#rows + 1] = row
    network.schedule, network.gain = schedule_of(found.daso.epochs), gain(found.bucketed, found.daso)
  end
  print(('\n%s, %d a GPU, %d epochs: training hours; gain: less time with DASO (the paper: up to 34 %%)\n'):format(
    network.name, network.batch_size, network.epochs))
  print(trinity.format_table(head, rows))
  write_csv(network, 'gpus', keys, rows)
end

--- The gain over the bandwidth of a network card.
local function study_bandwidth(network)
  local rows = {}
  for _, bandwidth_gb_s in ipairs(numbers 'bandwidths') do
    local cluster, found = cluster_of(options.study_gpus, bandwidth_gb_s), {}
    for _, entry in ipairs(policies) do
      if entry.key ~= 'server' and entry.key ~= 'local_sgd' then
        found[entry.key] = train(network, cluster, entry.policy)
      end
    end
    rows[#rows + 1] = { shown(bandwidth_gb_s), shown(found.bucketed.batch_ms), shown(found.hierarchical.batch_ms),
      shown(found.flat.batch_ms), shown(found.daso.batch_ms), ('%.2f'):format(gain(found.bucketed, found.daso)),
      ('%.2f'):format(gain(found.hierarchical, found.daso)), ('%.2f'):format(gain(found.flat, found.daso)) }
  end
  print(('\n%s on %d GPUs: ms a batch and gain over the bandwidth of a network card\n'):format(network.name,
    options.study_gpus))
  print(trinity.format_table({ 'GB/s', 'bucketed ms', 'hierarchical ms', 'flat ms', 'daso ms', 'gain on bucketed %',
    'gain on hierarchical %', 'gain on flat %' }, rows))
  write_csv(network, 'bandwidth', { 'gb_s', 'bucketed_ms', 'hierarchical_ms', 'flat_ms', 'daso_ms',
    'gain_bucketed', 'gain_hierarchical', 'gain_flat' }, rows)
end

--- The gain over the skips, held through the cycling phase.
local function study_skips(network)
  local rows, slow = {}, 1.5
  local fast_cluster, slow_cluster = cluster_of(options.study_gpus), cluster_of(options.study_gpus, slow)
  local bases = { train(network, fast_cluster, sync.bsp {}), train(network, slow_cluster, sync.bsp {}) }
  for _, skips in ipairs { { 1, 1, 1 }, { 2, 1, 1 }, { 4, 1, 1 }, { 8, 1, 1 }, { 8, 2, 2 }, { 16, 1, 1 },
    { 16, 4, 4 }, { 32, 1, 1 }, { 32, 8, 8 } } do
    local policy = sync.daso { held = { global_skips = skips[1], local_skips = skips[2], batches_to_wait = skips[3] } }
    local row = { tostring(skips[1]), tostring(skips[2]), tostring(skips[3]) }
    for i, cluster in ipairs { fast_cluster, slow_cluster } do
      local found = train(network, cluster, policy)
      row[#row + 1], row[#row + 2] = shown(found.batch_ms), ('%.2f'):format(gain(bases[i], found))
    end
    rows[#rows + 1] = row
  end
  print(('\n%s on %d GPUs: gain on the bucketed all-reduce over the skips of the cycling phase\n'):format(network.name,
    options.study_gpus))
  print(trinity.format_table({ 'global skips', 'local skips', 'wait', 'ms', 'gain %', ('ms at %g GB/s'):format(slow),
    'gain %' }, rows))
  write_csv(network, 'skips', { 'global_skips', 'local_skips', 'wait', 'ms', 'gain', 'slow_ms', 'slow_gain' }, rows)
end

--- Columns of a table as curves over its column `x`; `names` by column.
local function curves(data, x, names)
  local series = {}
  for c, key in ipairs(data.keys) do
    if names[key] then
      local points = util.map(data.rows, function(row) return { tonumber(row[x]), tonumber(row[c]) } end)
      table.sort(points, function(a, b) return a[1] < b[1] end)
      series[#series + 1] = { name = names[key], points = points }
    end
  end
  return series
end

--- Names of the columns that end alike, without that ending.
local function names_of(data, pattern)
  local names = {}
  for _, key in ipairs(data.keys) do names[key] = key:match(pattern) end
  return names
end

--- A network's pictures: times of a training, and gains over GPUs, bandwidth and skips. Returns why there are none.
local function draw(network)
  local n, pictures = network.name, {
    { 'gpus', 1, '^(.*)_hours$', '_time', 'time of a training', 'GPUs', 'hours', log = true },
    { 'gpus', 1, '^gain_(.*)$', '_gpus', 'gain of DASO', 'GPUs', 'less training time, %', log = true },
    { 'bandwidth', 1, '^gain_(.*)$', '_bandwidth', 'gain of DASO', 'GB/s of a network card', 'less training time, %',
      log = true },
    { 'skips', 1, '^(.*gain)$', '_skips', 'gain on the bucketed all-reduce', 'global skips', 'less training time, %' } }
  for _, p in ipairs(pictures) do
    local data = network[p[1]]
    local picture, reason = plot.lines(('%s/%s%s'):format(options.output, n, p[4]), {
      series = curves(data, p[2], names_of(data, p[3])), title = ('%s: %s'):format(n, p[5]), x = p[6], y = p[7],
      log = p.log, width = 720, height = 480 })
    if not picture then return reason end
  end
end

for _, network in ipairs(networks) do
  study_gpus(network)
  study_bandwidth(network)
  study_skips(network)
end
local reason
for _, network in ipairs(networks) do reason = draw(network) or reason end
print(('\ntables%s in %s'):format(reason and (' (no pictures: %s)'):format(reason) or ' and pictures', options.output))
local kept = util.map(networks, function(n)
  return { network = n.name, batch_size = n.batch_size, epochs = n.epochs, gpus = n.gpus, bandwidth = n.bandwidth,
    skips = n.skips, schedule = n.schedule }
end)
trinity.run:result('daso', { networks = kept }, ('A training of %s takes %.2f %% %s time with DASO than with an '
  .. 'all-reduce in buckets on %s GPUs, simulated.'):format(networks[1].name, math.abs(networks[1].gain),
  networks[1].gain < 0 and 'more' or 'less', options.gpus:match '[^,%s]+%s*$'))
print [[
Simulated, not measured: links without blocking or noise, gradients of float32, a constant loss, on which DASO's skips
cycle every three epochs. "bucketed" hides what it can behind the backward pass, as Horovod and PyTorch do at best;
"hierarchical" and "flat" hide nothing. A gain near the paper's needs an all-reduce that is slower, or hides less,
than this network allows: the table over bandwidths says how slow.]]
