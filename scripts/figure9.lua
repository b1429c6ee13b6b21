#!/usr/bin/env trinity
-- Figure 9 of the Trinity paper: do simulated and measured step times agree? For every network this machine is
-- profiled, then at least 30 placements from random to good, none of which served a fit, are simulated on the profile
-- and executed: medians of 20 steps in 10 rounds over all placements, each visit with one step of warm-up. Says mean
-- and largest error, Kendall's tau (and that of the measured times of odd rounds with those of even ones), what the
-- simulator's favourite takes beyond the best measured, and simulated over measured peak memory; writes all placements
-- as CSV and a picture.

local trinity = require 'trinity'
local fidelity = require 'trinity.paper.fidelity'
local measure = require 'trinity.execute.measure'
local plot = require 'trinity.base.plot'
local util = require 'trinity.base.util'

local options = trinity.options {
  'Simulated against measured step times of many placements on real devices.',
  networks = { default = 'inception_v3:1:image_size=139,gnmt:4:hidden=256:sequence=12:vocabulary=4000,'
    .. 'hrnet_w48:1:height=64:width=64,moe_transformer:8:hidden=256:layers=2:sequence=64:vocabulary=4000:experts=4'
    .. ':top_k=2:heads=4:key_heads=2:feed_forward=512',
    help = 'NAME:BATCH:OPTION=NUMBER... with commas' },
  devices = { default = 'cpu:0,cpu:1', help = 'workers: cpu:0,cpu:1 or cuda:0,cpu:0' },
  placements = { default = 32, help = 'placements of every network', min = 2, integer = true },
  steps = { default = 20, help = 'measured steps of every placement', min = 1, integer = true },
  warm_up = { default = 10, help = 'rounds, each with one step of warm-up', min = 1, integer = true },
  searches = { default = 4000, help = 'placements that the best search among them simulates', min = 1, integer = true },
  copies = { default = 7, help = 'copies of every size in the profile', min = 1, integer = true },
  largest_copy = { default = 2 ^ 28, help = 'bytes of the largest copy in the profile', min = 4096, unit = 'bytes' },
  seconds = { default = 240, help = 'measuring time of a network, after which rounds end early', min = 1 },
  seed = { default = 1, help = 'of placements, weights and data', min = 0, integer = true },
  output = { default = 'runs/figure9', writes = '.csv',
    help = 'where PATH.csv, PATH.svg, PATH.png and the profiles go' },
}

local devices = util.words(options.devices)

--- The networks of the command line, all made before the first is measured: { text =, name =, batch_size =, graph = }.
local function networks()
  local list = {}
  for _, text in ipairs(util.words(options.networks)) do
    local name, chosen = fidelity.network(text)
    chosen.optimiser = 'sgd' -- what the executor does
    list[#list + 1] = { text = text, name = name, batch_size = chosen.batch_size or 0,
      graph = trinity.model(name, chosen) }
  end
  return list
end

--- Begins to profile a network.
local function begin(network)
  local session = measure.start('figure9', network.graph, { devices = devices, steps = options.steps,
    warm_up = options.warm_up, seed = options.seed, copies = options.copies, model = network.name,
    batch_size = network.batch_size, sizes = measure.copy_sizes(options.largest_copy) })
  for _ = 1, options.warm_up do session:visit(false) end
  for _ = 1, options.steps do session:visit(true) end
  return session
end

--- Placements with what is measured and simulated. The machine's speed drifts (other guests, clock), so the profile is
--- measured on through the rounds, between placements, and the simulated times are those of all of it.
local function entries_of(network)
  local session, graph = begin(network), network.graph
  local problem = trinity.problem { graph = graph, profile = session:profile() }
  local entries = fidelity.placements(problem, options.placements, options.seed, options.searches)
  fidelity.measure(problem, entries, { devices = devices, steps = options.steps, warm_up = options.warm_up,
    seed = options.seed, seconds = options.seconds,
    between = function(i) if i % 8 == 1 then session:visit(true) end end,
    progress = function(round, rounds)
      io.stderr:write(('%s: round %d of %d, %d placements\n'):format(network.name, round, rounds, #entries))
    end })
  local profile = session:profile()
  session:close()
  profile:save(('%s.%s.json'):format(options.output, network.text:gsub('[:=]', '_')))
  fidelity.simulate(trinity.problem { graph = graph, profile = profile }, entries)
  return entries
end

local function percent(x) return ('%.1f %%'):format(100 * x) end

local rows, cells, blocks, names, all = {}, {}, {}, {}, {}
for _, network in ipairs(networks()) do
  local name, text, entries = network.name, network.text, entries_of(network)
  local points = util.map(entries, function(entry) return { entry.measured_s, entry.simulated_s } end)
  for _, entry in ipairs(entries) do
    cells[#cells + 1] = { text, entry.name, entry.steps, entry.measured_s, entry.simulated_s,
      entry.simulated_s / entry.measured_s - 1, fidelity.memory_ratio(entry),
      table.concat(entry.simulated_bytes, ' '), table.concat(entry.measured_bytes, ' ') }
    all[#all + 1] = entry
  end
  names[#names + 1], blocks[#blocks + 1] = name, plot.block('data' .. #names + 1, points)
  local found = fidelity.summary(entries)
  rows[#rows + 1] = { text:match '^[^:]*:?%d*', tostring(#entries), ('%.3f to %.3f s'):format(found.best_s,
    found.worst_s), percent(found.mean_error), percent(found.largest_error), ('%.3f'):format(found.tau),
    ('%.3f'):format(found.halves_tau), percent(found.regret), ('%.2f to %.2f'):format(
      found.least_memory_ratio, found.largest_memory_ratio) }
end
print(trinity.format_table({ 'network', 'placements', 'measured', 'mean error', 'largest', 'tau', 'of halves', 'regret',
  'memory: simulated over measured' }, rows))
print('of halves: tau of the times measured in odd rounds with those of even ones, which is what chance leaves')
plot.csv(options.output .. '.csv', { 'network', 'placement', 'steps', 'measured_s', 'simulated_s', 'error',
  'memory_ratio', 'simulated_bytes', 'measured_bytes' }, cells)

local parts, most = {}, 0
for i, name in ipairs(names) do
  parts[i] = ("$data%d using 1:2 with points pt %d ps 0.8 title '%s' noenhanced"):format(i, 3 + 2 * i, name)
end
for _, entry in ipairs(all) do most = math.max(most, entry.measured_s, entry.simulated_s) end
local picture, reason = plot.picture(options.output, table.concat(blocks) .. ([[
set xlabel 'measured step time in s'
set ylabel 'simulated step time in s'
set grid
set key top left
set xrange [0:%g]
set yrange [0:%g]
plot %s, \
  x with lines lc 'black' title 'equal', 1.1*x with lines dt 2 lc 'gray' title '10 %%', \
  0.9*x with lines dt 2 lc 'gray' notitle
]]):format(1.05 * most, 1.05 * most, table.concat(parts, ', \\\n  ')), 700, 650)
print(('\nin %s.csv%s'):format(options.output, picture and ' and ' .. picture or '; no picture: ' .. reason))
local machine = trinity.describe_machine()
print(('measured on %s (%s, %d cores); seed %d\nmade by: trinity scripts/figure9.lua %s'):format(options.devices,
  machine.processor, machine.cores, options.seed, table.concat(arg, ' ')))
