#!/usr/bin/env trinity
-- What each stage of the Trinity search adds: all combinations of warm start, policy (PPO) and refinement under equal
-- evaluations, on the paper's networks. Without any stage there is one placement: everything on the first card.

local trinity = require 'trinity'
local paper = require 'trinity.paper.trinity'
local plot = require 'trinity.base.plot'

local options = trinity.options(paper.declare {
  'Step time of the Trinity search with each of its stages on and off, over the lower bound.',
  evaluations = { default = 320, help = 'placements that each search may simulate', min = 1, integer = true },
  seeds = { default = 3, help = 'searches of each kind; the table has medians', min = 1, integer = true },
  csv = { default = 'runs/trinity_ablation.csv', help = 'where all runs go' },
})

local combinations = {}
for bits = 0, 7 do
  combinations[bits + 1] = { warm_start = bits % 2 == 1, policy = math.floor(bits / 2) % 2 == 1, refine = bits >= 4 }
end

local function run(problem, stages, seed)
  if not (stages.warm_start or stages.policy or stages.refine) then
    return problem:strategy(problem:placement(), { evaluations = 1, seconds = 0 })
  end
  return trinity.methods.trinity(problem, { warm_start = stages.warm_start, policy = stages.policy,
    refine = stages.refine, seed = seed, evaluations = options.evaluations })
end

local head, runs = { 'warm_start', 'policy', 'refine' }, {}
local columns, sums, seconds, fitting = {}, {}, {}, {}
for label, problem in paper.rows(options) do
  head[#head + 1] = label
  columns[#columns + 1] = {}
  for c, stages in ipairs(combinations) do
    local over, fits = {}, 0
    for seed = 1, options.seeds do
      local found = run(problem, stages, seed)
      if found.stopped then os.exit(130) end
      over[seed] = found.metrics.step_time_s / problem.lower_bound_s
      fits = fits + (found.metrics.feasible and 1 or 0)
      seconds[c] = (seconds[c] or 0) + found.seconds
      runs[#runs + 1] = { label, tostring(stages.warm_start), tostring(stages.policy), tostring(stages.refine), seed,
        found.metrics.step_time_s, problem.lower_bound_s, tostring(found.metrics.feasible), found.evaluations,
        found.seconds }
    end
    local middle = trinity.median(over)
    columns[#columns][c] = ('%.3f%s'):format(middle, fits < options.seeds and ' OOM' or '')
    sums[c], fitting[c] = (sums[c] or 0) + math.log(middle), (fitting[c] or 0) + fits
  end
  io.stderr:write(label, ' is done\n')
end

head[#head + 1], head[#head + 2], head[#head + 3] = 'mean', 'fit', 'seconds'
local rows = {}
for c, stages in ipairs(combinations) do
  local row = {}
  for _, name in ipairs { 'warm_start', 'policy', 'refine' } do row[#row + 1] = stages[name] and 'yes' or '-' end
  for _, column in ipairs(columns) do row[#row + 1] = column[c] end
  row[#row + 1] = ('%.3f'):format(math.exp(sums[c] / #columns))
  row[#row + 1] = ('%d of %d'):format(fitting[c], #columns * options.seeds)
  row[#row + 1] = ('%.1f'):format(seconds[c] / (#columns * options.seeds))
  rows[c] = row
end
print(trinity.format_table(head, rows))
plot.csv(options.csv, { 'row', 'warm_start', 'policy', 'refine', 'seed', 'step_time_s', 'lower_bound_s', 'feasible',
  'evaluations', 'seconds' }, runs)
print(('\nsimulated step time over the lower bound, median of seeds 1 to %d, at most %d evaluations; mean: geometric; '
  .. 'OOM: not all fit; all runs are in %s'):format(options.seeds, options.evaluations, options.csv))
print(('made by: trinity scripts/trinity_ablation.lua %s'):format(table.concat(arg, ' ')))
