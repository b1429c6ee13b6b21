-- Figure 9 of the Trinity paper: do simulated and measured step times agree? For every network this machine is
-- profiled, then placements from random to good, none of which served a fit, are simulated on the profile and executed:
-- medians of steps in rounds over all placements, each visit with one step of warm-up.

local core = require 'trinity.core'
local fidelity = require 'studies.papers.figure9'
local measure = require 'trinity.execute.measure'
local model = require 'trinity.graph.model'
local plot = require 'trinity.report.plot'
local problems = require 'trinity.strategy.problem'
local util = require 'trinity.base.util'

local own_devices = { 'cpu:0', 'cpu:1' } -- where the settings name none

-- Networks, and how much is measured: in full and with --quick.
local full = { placements = 32, steps = 20, warm_up = 10, searches = 4000, copies = 7, largest_copy = 2 ^ 28,
  seconds = 240, networks = { 'inception_v3:1:image_size=139', 'gnmt:4:hidden=256:sequence=12:vocabulary=4000',
    'hrnet_w48:1:height=64:width=64', 'moe_transformer:8:hidden=256:layers=2:sequence=64:vocabulary=4000:experts=4'
    .. ':top_k=2:heads=4:num_kv_heads=2:feed_forward=512' } }
local quick = { placements = 8, steps = 3, warm_up = 1, searches = 20, copies = 1, largest_copy = 65536, seconds = 30,
  networks = { 'rnnlm:1:sequence=3:hidden=16:vocabulary=40' } }

-- Errors in the paper's figure for InceptionV3, whose step takes 0.73 s and 5.3 GB.
local claims = { step = 0.05 / 0.73, memory = 0.4 / 5.3 }

local function begin(network, how, seed)
  local session = measure.start('figure9', network.graph, { devices = how.devices, steps = how.steps,
    warm_up = how.warm_up, seed = seed, copies = how.copies, model = network.name, batch_size = network.batch_size,
    sizes = measure.copy_sizes(how.largest_copy) })
  for _ = 1, how.warm_up do session:visit(false) end
  for _ = 1, how.steps do session:visit(true) end
  return session
end

--- Placements with measured and simulated values. The machine's speed drifts (other guests, clock), so the profile is
--- measured on through the rounds, between placements, and simulated times use all of it.
local function entries_of(network, how, seed)
  local session, graph = begin(network, how, seed), network.graph
  local problem = problems.new { graph = graph, profile = session:profile() }
  local entries = fidelity.placements(problem, how.placements, seed, how.searches)
  fidelity.measure(problem, entries, { devices = how.devices, steps = how.steps, warm_up = how.warm_up, seed = seed,
    seconds = how.seconds, between = function(i) if i % 8 == 1 then session:visit(true) end end })
  local profile = session:profile()
  session:close()
  fidelity.simulate(problems.new { graph = graph, profile = profile }, entries)
  return entries
end

--- The share by which simulated and measured memory of the fullest device differ at most.
local function memory_error(found)
  return math.max(math.abs(found.least_memory_ratio - 1), math.abs(found.largest_memory_ratio - 1))
end

local function percent(x) return ('%.1f %%'):format(100 * x) end

local function add(rows, name, found, count)
  local of_paper = name == 'inception_v3'
  rows:add { what = name .. ', largest error of the step time', claimed = of_paper and percent(claims.step) or nil,
    ours = percent(found.largest_error), verdict = { kind = of_paper and 'order' or nil,
      agrees = found.largest_error <= claims.step, text = ('mean %s, tau %.3f, %d placements of %.3f to %.3f s'):format(
        percent(found.mean_error), found.tau, count, found.best_s, found.worst_s) } }
  local memory = memory_error(found)
  rows:add { what = name .. ', largest error of the peak memory', claimed = of_paper and percent(claims.memory) or nil,
    ours = percent(memory), verdict = { kind = of_paper and 'order' or nil, agrees = memory <= claims.memory,
      text = ("the simulator's favourite is %s slower than the best measured"):format(percent(found.regret)) } }
end

local function draw(settings, series)
  local picture, reason = plot.scatter(settings.output .. '/figure9', { series = series, x = 'measured step time in s',
    y = 'simulated step time in s', width = 700, height = 650 })
  return picture and ('picture: %s'):format(picture) or 'no picture: ' .. reason
end

local function run(rows, settings)
  local series, cells = {}, {}
  local how = util.merged(settings.quick and quick or full, { devices = settings.devices or own_devices,
    seconds = settings.seconds })
  for _, text in ipairs(how.networks) do
    local name, chosen = fidelity.network(text)
    if not settings.models or settings.models[name] then
      chosen.optimizer = 'sgd' -- what the executor does
      local network = { name = name, batch_size = chosen.batch_size or 0, graph = model.load(name, chosen) }
      local entries = entries_of(network, how, settings.seed)
      add(rows, name, fidelity.summary(entries), #entries)
      series[#series + 1] = { name = name, points = util.map(entries, function(entry)
        cells[#cells + 1] = { text, entry.name, entry.steps, entry.measured_s, entry.simulated_s }
        return { entry.measured_s, entry.simulated_s }
      end) }
    end
  end
  plot.csv(settings.output .. '/figure9.csv', { 'network', 'placement', 'steps', 'measured_s', 'simulated_s' }, cells)
  local machine = core.describe_machine()
  return ('Measured on %s (%s, %d cores). %s.'):format(table.concat(how.devices, ' and '), machine.processor,
    machine.cores, #series > 0 and draw(settings, series) or 'Nothing was measured')
end

return { name = 'figure9', title = 'Figure 9: simulated against measured', run = run,
  quick = 'one small network, few placements and steps',
  about = 'Placements from random to good, executed on this machine and simulated on its profile, none of which served '
    .. 'a fit. The paper shows errors of at most 0.05 s and 0.4 GB for InceptionV3 on four P100, here as shares of its '
    .. '0.73 s and 5.3 GB.' }
