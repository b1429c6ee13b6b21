#!/usr/bin/env trinity
-- Plans for heterogeneous GPUs (mixed A100, V100 and RTX machines) compared with AMP, TAPP and proportional splits,
-- all simulated, each with the same number of plans (baselines.lua). Rows that are ahead of trinity.plan stand in the
-- table as the others. Exit status 130 after Ctrl-C, with the rows that are whole.

local trinity = require 'trinity'
local ending = require 'studies.ending'
local plot = require 'trinity.report.plot'
local progress = require 'trinity.base.progress'
local baselines = require 'studies.unequal.baselines'
local util = require 'trinity.base.util'

local pools = { 'dgx_a100:4+dgx1_v100:4', 'dgx1_v100:4+rtx2080ti_8:4+dgx_a100:4',
  'hgx_a100_4+v100_pcie_4x2+titan_rtx_4' }
local sizes = { gpt2_350m = { layers = 24, hidden = 1024, heads = 16 },
  gpt2_1b3 = { layers = 24, hidden = 2048, heads = 16 },
  tiny = { layers = 4, hidden = 256, heads = 4, vocabulary = 4096, sequence = 128 } }

local options = trinity.options {
  'Plans for heterogeneous GPUs, compared with AMP, TAPP and proportional splits.',
  'keeps no run',
  pools = { default = table.concat(pools, ','), help = 'clusters, with commas' },
  networks = { default = 'gpt2_350m,gpt2_1b3', help = 'with commas: gpt2_350m (24 layers, hidden 1024: the network of '
    .. "AMP's own pool), gpt2_1b3 (hidden 2048), tiny" },
  batch = { default = 48, help = 'samples of a step', min = 1, integer = true },
  evaluations = { default = 60, help = 'plans that each method has simulated at most', min = 3, integer = true },
  seeds = { default = 5, help = 'runs of stochastic methods; the table has medians', min = 1, integer = true },
  seed = { default = 1, help = 'the first', min = 0, integer = true },
  csv = { default = '', writes = '', help = 'a file for all runs' },
}

local function graph_of(name)
  local size = sizes[name]
  if not size then
    util.fail_usage("option '--networks': unknown network %s", util.unknown(name, util.sorted_keys(sizes)))
  end
  local sequence = size.sequence or 1024
  return function(samples)
    return trinity.model('gpt2', util.merged({ vocabulary = 50304, sequence = sequence, positions = sequence,
      batch_size = samples, fused = false, dropout = 0, kernels = 'flash', dtype = 'float16',
      gradient_dtype = 'float32', optimizer = 'adam' }, size))
  end, 2 * sequence * size.hidden
end

local rows, cells = {}, {}

-- Adds a row to the table: the median of a method's runs, and how many times as long as the first's. Returns the
-- median; nil after Ctrl-C.
local function measure(label, pool, method, first_s)
  local steps, found = {}, nil
  for seed = options.seed, options.seed + (method.draws and options.seeds or 1) - 1 do
    local one = method.run(pool, options.evaluations, seed)
    if trinity.system.was_interrupted() then return nil end -- the row would not be whole
    steps[#steps + 1] = one.step_time_s
    cells[#cells + 1] = { label, method.name, method.draws and seed or '', one.step_time_s, one.evaluations, one.what }
    if not found or one.step_time_s < found.step_time_s then found = one end
  end
  table.sort(steps)
  local median = util.median(steps)
  local spread = steps[1] ~= steps[#steps] and (' [%.4g - %.4g]'):format(steps[1], steps[#steps]) or ''
  rows[#rows + 1] = { label, method.name, median < math.huge and ('%.4g s%s'):format(median, spread) or '-',
    first_s and median < math.huge and ('%.2f'):format(median / first_s) or '', ('%d'):format(found.evaluations),
    found.what }
  return median
end

local function measure_all()
  for _, network in ipairs(util.words(options.networks)) do
    local graph, message_bytes = graph_of(network)
    for _, name in ipairs(util.words(options.pools)) do
      local pool = baselines.pool { graph = graph, cluster = trinity.cluster(name), batch = options.batch,
        message_bytes = message_bytes }
      local label, first_s = ('%s on %s'):format(network, name), nil
      for _, method in ipairs(baselines.list) do
        local median = measure(label, pool, method, first_s)
        if not median then return end
        first_s = first_s or median
      end
      progress.note(('%s: plan %.4g s'):format(label, first_s))
    end
  end
end

local stopped = trinity.system.stoppable(measure_all) or trinity.system.was_interrupted()
if #rows > 0 then
  print(trinity.system.format_table({ 'pool', 'method', 'step', 'times plan', 'simulated', 'what' }, rows))
end
if stopped then ending.leave_stopped(('%d rows'):format(#rows)) end
if options.csv ~= '' then
  plot.csv(options.csv, { 'pool', 'method', 'seed', 'step_time_s', 'evaluations', 'what' }, cells)
end
print(('\nsimulated; batch %d, at most %d plans a method, medians of seeds %d to %d of stochastic methods')
  :format(options.batch, options.evaluations, options.seed, options.seed + options.seeds - 1))
print(('made by: trinity study unequal %s'):format(ending.words()))
