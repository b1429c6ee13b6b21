#!/usr/bin/env trinity
-- Measures a network on this machine's devices: times of all operators of its training graph, copies between every two
-- devices, and the parameters of the cost model fitted to them. The file serves as a cluster (--cluster FILE.json in
-- every command, trinity.cluster 'FILE.json') and brings its times to the network that it was made of
-- (trinity.problem { graph =, profile = 'FILE.json' }). With --json the profile itself on standard output; its fields:
-- trinity help Profile.

local trinity = require 'trinity'
local cli = require 'trinity.command.cli'
local measure = require 'trinity.execute.measure'
local progress = require 'trinity.base.progress'
local text = require 'trinity.base.text'
local util = require 'trinity.base.util'

local options = trinity.options {
  'Times operators and copies on real devices and fits the cost model to them.',
  'keeps no run',
  set = require('trinity.command.settings').of_model,
  model = { default = 'inception_v3', help = 'a model in models/, or a file .lua .onnx .json' },
  batch_size = { default = 4, help = 'samples per step; 0: what the model has', min = 0, integer = true },
  device = { default = 'cpu:0', help = 'the device on which operators are timed' },
  devices = { default = '', help = 'all devices of the cluster, with commas: cpu:0,cpu:1; default: that one' },
  steps = { default = 10, help = 'measured training steps, whose medians count', min = 1, integer = true },
  warm_up = { default = 5, help = 'steps before', min = 0, integer = true },
  seconds = { default = math.huge, help = 'after which no step begins, once one is measured', min = 0 },
  copies = { default = 7, help = 'copies of every size', min = 1, integer = true },
  largest_copy = { default = 2 ^ 28, help = 'bytes of the largest copy', min = 4096, unit = 'bytes' },
  gpu_memory = { default = 2 ^ 34, help = 'bytes of memory of a GPU', min = 1, unit = 'bytes' },
  seed = { default = 1, help = 'of weights and data', min = 0, integer = true },
  out = { default = 'runs/profile.json', writes = '', help = 'where the profile goes' },
  json = { default = false, help = 'JSON on standard output and nothing else' },
}

local devices = { options.device }
for _, name in ipairs(util.words(options.devices)) do
  if name ~= options.device then devices[#devices + 1] = name end
end
local graph = cli.load_model(options)
local profile, stopped = trinity.profile.measure(graph, { devices = devices, steps = options.steps,
  warm_up = options.warm_up, copies = options.copies, sizes = measure.copy_sizes(options.largest_copy),
  gpu_memory_bytes = options.gpu_memory, seed = options.seed,
  seconds = options.seconds < math.huge and math.max(options.seconds, 1e-9) or nil,
  model = options.model, batch_size = options.batch_size, quiet = options.json })
profile:save(options.out)

local function leave()
  if not stopped then return end
  progress.warn(('stopped by %s after %d of %d measured steps, whose profile is in %s; a new one begins at step 1')
    :format(trinity.stop_name(), profile.settings.steps, options.steps, options.out))
  os.exit(trinity.stop_status())
end

if options.json then
  io.write(trinity.files.read(options.out))
  return leave()
end

local function percent(x) return ('%.1f %%'):format(100 * x) end

print(profile)
print(('%s, %d cores, %s; %s'):format(profile.machine.processor, profile.machine.cores,
  trinity.format_bytes(profile.machine.memory_bytes), profile.libraries.torch))
local rows = {}
for kind, of in trinity.sorted_pairs(profile.kinds) do
  local total = 0
  for _, time_s in trinity.sorted_pairs(of.operator_time_s) do total = total + time_s end
  rows[#rows + 1] = { kind, text.seconds(total), ('%.3g GFLOP/s'):format(of.peak_flops_per_s / 1e9),
    ('%.3g GB/s'):format(of.memory_bandwidth_bytes_per_s / 1e9), ('%.1f us'):format(of.launch_s * 1e6),
    percent(of.residuals.median), percent(of.residuals.mean), ('%.2f'):format(of.contention) }
end
print('\n' .. trinity.format_table({ 'kind', 'all operators', 'products', 'memory', 'launch', 'fit: median off',
  'mean off', 'contention' }, rows))
rows = {}
for i, link in ipairs(profile.links) do
  rows[i] = { link.from .. ' to ' .. link.to, ('%.2f us'):format(link.latency_s * 1e6),
    ('%.2f GB/s'):format(link.bandwidth_bytes_per_s / 1e9), percent(link.residuals.median),
    percent(link.residuals.largest) }
end
if #rows > 0 then
  print('\n' .. trinity.format_table({ 'copies', 'latency', 'bandwidth', 'fit: median off', 'largest' }, rows))
end
print(('\nmeasured; in %s'):format(options.out))
leave()
