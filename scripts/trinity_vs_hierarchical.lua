#!/usr/bin/env trinity
-- Trinity against Hierarchical under equal evaluations, on the paper's networks and cards: step times, and how long
-- Trinity takes until its best is as good as Hierarchical's last one. The paper reports 36.4 % less search time on
-- average (manual/papers.md "Trinity: experiments").

local trinity = require 'trinity'
local paper = require 'trinity.paper.trinity'
local plot = require 'trinity.base.plot'
local util = require 'trinity.base.util'

local options = trinity.options(paper.declare {
  'Compares Trinity and Hierarchical under equal evaluations: step time and search time.',
  evaluations = { default = 320, help = 'placements that each search may simulate', min = 1, integer = true },
  seeds = { default = 5, help = 'searches of each; the table has medians', min = 1, integer = true },
  policy_only = { default = false, help = 'also Trinity without warm start and refinement' },
  csv = { default = 'runs/trinity_vs_hierarchical.csv', help = 'where all runs go' },
})

-- Minus the step time, and when which step time was first reached.
local trace
local function reward(m)
  if trace and m.feasible and m.step_time_s < trace.best_s then
    trace.best_s = m.step_time_s
    trace[#trace + 1] = { seconds = trinity.clock_s() - trace.start_s, step_time_s = m.step_time_s }
  end
  return -m.step_time_s * (m.feasible and 1 or 10)
end

local function run(problem, method, settings, seed)
  trace = { best_s = math.huge, start_s = trinity.clock_s() }
  local found = trinity.methods[method](problem, util.merged(settings, { seed = seed,
    evaluations = options.evaluations }))
  if found.stopped then os.exit(130) end
  return { step_time_s = found.metrics.step_time_s, fits = found.metrics.feasible, seconds = found.seconds,
    trace = trace, evaluations = found.evaluations }
end

--- Seconds until a run reached step_time_s; all its seconds where it never did.
local function reached(found, step_time_s)
  for _, point in ipairs(found.trace) do
    if point.step_time_s <= step_time_s then return point.seconds end
  end
  return found.seconds
end

--- The median of value(run) over runs.
local function median(runs, value) return trinity.median(util.map(runs, value)) end

local kinds = { { 'hierarchical', 'hierarchical', {} }, { 'trinity', 'trinity', {} } }
if options.policy_only then
  kinds[3] = { 'policy only', 'trinity', { warm_start = false, refine = false } }
end

local head = { 'row', 'bound', 'hierarchical', 'trinity', 'ratio', 'hierarchical s', 'trinity s', 'as good after',
  'share' }
if options.policy_only then head[#head + 1], head[#head + 2] = 'policy only', 'its s' end
local rows, all, sums = {}, {}, { ratio = 0, share = 0, worse = 0 }
for label, problem in paper.rows(options, reward) do
  local runs = {}
  for k, kind in ipairs(kinds) do
    runs[k] = {}
    for seed = 1, options.seeds do
      local found = run(problem, kind[2], kind[3], seed)
      runs[k][seed] = found
      all[#all + 1] = { label, kind[1], seed, found.step_time_s, tostring(found.fits), found.evaluations, found.seconds,
        k > 1 and reached(found, runs[1][seed].step_time_s) or '' }
    end
  end
  local function step_time(found) return found.fits and found.step_time_s or math.huge end
  local function seconds(found) return found.seconds end
  local theirs, ours = median(runs[1], step_time), median(runs[2], step_time)
  local ratio = ours < math.huge and (theirs < math.huge and ours / theirs or 0) or math.huge
  local after = median(runs[2], function(found, i) return reached(found, runs[1][i].step_time_s) end)
  local share = after / median(runs[1], seconds)
  sums.ratio, sums.share = sums.ratio + (ratio > 0 and ratio or 1), sums.share + share
  sums.worse = sums.worse + (ratio > 1 and 1 or 0)
  local function text(value) return value < math.huge and ('%.4f s'):format(value) or 'OOM' end
  local row = { label, text(problem.lower_bound_s), text(theirs), text(ours), ('%.3f'):format(ratio),
    ('%.1f'):format(median(runs[1], seconds)), ('%.1f'):format(median(runs[2], seconds)), ('%.2f s'):format(after),
    ('%.1f %%'):format(100 * share) }
  if runs[3] then
    row[#row + 1], row[#row + 2] = text(median(runs[3], step_time)), ('%.1f'):format(median(runs[3], seconds))
  end
  rows[#rows + 1] = row
  io.stderr:write(table.concat(row, '  '), '\n')
end

print(trinity.format_table(head, rows))
plot.csv(options.csv, { 'row', 'method', 'seed', 'step_time_s', 'feasible', 'evaluations', 'seconds',
  'seconds_until_as_good_as_hierarchical' }, all)
print(("\nsimulated; medians of seeds 1 to %d, at most %d evaluations; share: of Hierarchical's search time until "
  .. 'Trinity is as good as its result'):format(options.seeds, options.evaluations))
print(('Trinity is worse on %d of %d rows; mean ratio of step times %.3f, mean share of search time %.1f %% '
  .. '(the paper: 63.6 %%)'):format(sums.worse, #rows, sums.ratio / #rows, 100 * sums.share / #rows))
print(('all runs are in %s\nmade by: trinity scripts/trinity_vs_hierarchical.lua %s'):format(options.csv,
  table.concat(arg, ' ')))
