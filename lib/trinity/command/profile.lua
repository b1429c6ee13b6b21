-- `execute --profile`: measures all operators of a training graph on this machine's devices and the copies between
-- every two devices, and fits the cost model to them.

local core = require 'trinity.core'
local format_table = require('trinity.base.text').format_table
local measure = require 'trinity.execute.measure'
local text = require 'trinity.base.text'
local util = require 'trinity.base.util'

local function percent(x) return ('%.1f %%'):format(100 * x) end

local function print_profile(profile)
  print(profile)
  print(('%s, %d cores, %s; %s'):format(profile.machine.processor, profile.machine.cores,
    core.format_bytes(profile.machine.memory_bytes), profile.libraries.torch))
  local rows = {}
  for kind, of in util.sorted_pairs(profile.kinds) do
    local total = 0
    for _, time_s in util.sorted_pairs(of.operator_time_s) do total = total + time_s end
    rows[#rows + 1] = { kind, text.seconds(total), ('%.3g GFLOP/s'):format(of.peak_flops_per_s / 1e9),
      ('%.3g GB/s'):format(of.memory_bandwidth_bytes_per_s / 1e9), ('%.1f us'):format(of.launch_s * 1e6),
      percent(of.residuals.median), percent(of.residuals.mean), ('%.2f'):format(of.contention) }
  end
  print('\n' .. format_table({ 'kind', 'all operators', 'matmuls', 'memory', 'launch', 'fit: median off',
    'mean off', 'contention' }, rows))
  rows = {}
  for i, link in ipairs(profile.links) do
    rows[i] = { link.from .. ' to ' .. link.to, ('%.2f us'):format(link.latency_s * 1e6),
      ('%.2f GB/s'):format(link.bandwidth_bytes_per_s / 1e9), percent(link.residuals.median),
      percent(link.residuals.largest) }
  end
  if #rows > 0 then
    print('\n' .. format_table({ 'copies', 'latency', 'bandwidth', 'fit: median off', 'largest' }, rows))
  end
end

--- Measures a profile of `graph` on `devices`, writes it to options.profile and prints it. Operators are measured on
--- the first device. If it was stopped early, returns the number of measured steps.
return function(graph, devices, options)
  local profile, stopped = require('trinity').profile.measure(graph, { devices = devices, steps = options.steps or 10,
    warm_up = options.warm_up, copies = options.copies, sizes = measure.copy_sizes(options.largest_copy),
    gpu_memory_bytes = options.gpu_memory, seed = options.seed,
    seconds = options.seconds and math.max(options.seconds, 1e-9), model = options.model,
    batch_size = options.batch_size or 0, quiet = options.json })
  profile:save(options.profile)
  if options.json then
    io.write(util.read_file(options.profile))
  else
    print_profile(profile)
    print(('\nmeasured; the profile is in %s'):format(options.profile))
  end
  return stopped and profile.settings.steps or nil
end
