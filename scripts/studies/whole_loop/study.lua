#!/usr/bin/env trinity
-- The whole loop: profile a network on this machine, search for a placement on the profile, execute what was found, and
-- compare its measured step time with a single device, the expert and METIS, and with the simulated times. A network
-- with several batch sizes says at which of them a second device pays.

local progress = require 'trinity.base.progress'
local trinity = require 'trinity'
local ending = require 'studies.ending'
local fidelity = require 'studies.papers.figure9'
local measure = require 'trinity.execute.measure'
local mixtures = require 'studies.whole_loop.mixtures'
local plot = require 'trinity.report.plot'
local text = require 'trinity.base.text'
local util = require 'trinity.base.util'

local options = trinity.options {
  'Profile, search, execute: measured step times of Trinity, a single device, expert and METIS.',
  networks = { default = 'gnmt:4:hidden=256:sequence=12:vocabulary=4000,gnmt:1:hidden=32:sequence=12:vocabulary=200,'
    .. 'inception_v3:1:image_size=139,alexnet:2,transformer:2:hidden=256:layers=3:sequence=48:vocabulary=4000',
    help = 'NAME:BATCH:OPTION=NUMBER... with commas' },
  devices = { default = 'cpu:0,cpu:1', help = 'workers: cpu:0,cpu:1 or cuda:0,cpu:0' },
  evaluations = { default = 3000, help = 'placements that the search may simulate', min = 1, integer = true },
  steps = { default = 10, help = 'measured steps', min = 1, integer = true },
  warm_up = { default = 5, help = 'steps before', min = 0, integer = true },
  copies = { default = 7, help = 'copies of every size in the profile', min = 1, integer = true },
  largest_copy = { default = 2 ^ 26, help = 'bytes of the largest copy in the profile', min = 4096, unit = 'bytes' },
  seed = { default = 1, help = 'of search, weights and data', min = 0, integer = true },
  mixtures = { type = 'number', min = 1, max = 20, integer = true,
    help = 'in place of placements, simulate and measure this number of strategies for 2 or 4 devices' },
  output = { default = 'runs/whole_loop', writes = '.csv',
    help = 'where PATH.csv, the profiles and the strategies go' },
}

local devices = util.words(options.devices)

--- Entries of what is compared, Trinity's last: one a method that finds a placement.
local function found_by(problem, name)
  local entries = {}
  for _, method in ipairs { 'single_device', 'expert', 'metis', 'trinity' } do
    local ok, found = pcall(trinity.methods[method], problem, { seed = options.seed,
      evaluations = method == 'trinity' and options.evaluations or 1, quiet = true })
    if trinity.system.was_interrupted() and not ok then error(found, 0) end
    if ok then
      entries[#entries + 1] = { name = method, placement = found.placement }
      if method == 'trinity' then found:save(('%s.%s.strategy.json'):format(options.output, name)) end
      if found.stopped then os.exit(trinity.system.stop_status()) end
    else
      progress.note(('%s: %s found nothing: %s'):format(name, method, tostring(found)))
    end
  end
  return entries
end

local rows, cells, verdicts = {}, {}, {}
for _, network in ipairs(util.words(options.networks)) do
  local name, chosen = fidelity.network(network)
  chosen.optimizer = 'sgd' -- what the executor does
  local graph = trinity.model(name, chosen)
  if options.mixtures then return mixtures.report(graph, devices, options) end
  local profile = trinity.profile.measure(graph, { devices = devices, steps = options.steps, warm_up = options.warm_up,
    copies = options.copies, sizes = measure.copy_sizes(options.largest_copy), model = name,
    batch_size = chosen.batch_size or 0, seed = options.seed })
  local label = network:gsub('[:=]', '_')
  profile:save(('%s.%s.json'):format(options.output, label))
  local problem = trinity.problem { graph = graph, profile = profile }
  local entries = found_by(problem, label)
  fidelity.measure(problem, entries, { devices = devices, steps = options.steps, warm_up = options.warm_up,
    seed = options.seed })
  local single, last = entries[1], entries[#entries]
  for _, entry in ipairs(entries) do
    rows[#rows + 1] = { entry == single and network or '', entry.name, text.seconds(entry.measured_s),
      ('%.2f'):format(single.measured_s / entry.measured_s), text.seconds(entry.simulated_s),
      ('%.2f'):format(single.simulated_s / entry.simulated_s) }
    cells[#cells + 1] = { network, entry.name, entry.measured_s, entry.simulated_s }
  end
  local gain = single.measured_s / last.measured_s
  verdicts[#verdicts + 1] = ('%s: %s'):format(network, gain > 1.02
    and ('two devices pay, %.2f times as fast as one'):format(gain)
    or ('a split does not help (%.2f times as fast as one)'):format(gain))
end
print(trinity.system.format_table({ 'network', 'method', 'measured', 'times as fast', 'simulated', 'times as fast' },
  rows))
print('\n' .. table.concat(verdicts, '\n'))
plot.csv(options.output .. '.csv', { 'network', 'method', 'measured_s', 'simulated_s' }, cells)
local machine = trinity.system.describe_machine()
print(('\nmeasured on %s (%s, %d cores), medians of %d steps after %d; in %s.csv'):format(options.devices,
  machine.processor, machine.cores, options.steps, options.warm_up, options.output))
print('made by: trinity study whole_loop ' .. ending.words())
