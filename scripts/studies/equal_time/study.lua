#!/usr/bin/env trinity
-- Trinity compared with every other method under equal wall-clock time, on the paper's networks and GPUs: simulated
-- step times over the lower bound, and how far Trinity is from the best other method of a row. What depends on the
-- clock depends on the machine and its load: compare figures of one run only.

local progress = require 'trinity.base.progress'
local trinity = require 'trinity'
local cli = require 'trinity.command.cli'
local paper = require 'studies.papers.trinity'
local plot = require 'trinity.base.plot'
local text = require 'trinity.base.text'
local util = require 'trinity.base.util'

local options = trinity.options(paper.declare {
  'Compares Trinity with all other methods under equal wall-clock time.',
  methods = { default = 'single_device,expert,contiguous,metis,scotch,heft,m_topo,m_etf,random,mcmc,annealing,'
    .. 'local_search,best,post,colocrl,hierarchical,placeto', help = 'the other methods, with commas' },
  seconds = { default = 10, help = 'wall-clock limit of each search', min = 0 },
  seeds = { default = 3, help = 'searches of each method; the table has medians', min = 1, integer = true },
  csv = { default = 'runs/equal_time.csv', help = 'where all runs go' },
})

local names = util.words(options.methods .. ',trinity')

--- The middle of a row's step times over the bound where all runs fit, or infinity.
local function over_bound(row, bound_s)
  local times = util.map(row.runs, function(found)
    return found.metrics.feasible and found.metrics.step_time_s / bound_s or math.huge
  end)
  table.sort(times)
  return times[math.floor((#times + 1) / 2)] or math.huge
end

local head, rows, cells = { 'row', 'bound' }, {}, {}
for i, name in ipairs(names) do head[i + 2] = name end
head[#head + 1] = 'trinity over best other'
local within, worst, stopped = 0, 0, false
for label, problem in paper.rows(options) do
  local comparison = trinity.compare(problem, names, { seconds = options.seconds, seeds = options.seeds })
  stopped = comparison.stopped
  if stopped then break end
  local values, best = {}, math.huge
  for i, row in ipairs(comparison.rows) do
    values[i] = over_bound(row, problem:bounds().step_time_s)
    if i < #names then best = math.min(best, values[i]) end
    for _, found in ipairs(row.runs) do
      cells[#cells + 1] = { label, row.method, found.seed or '', found.metrics.step_time_s,
        problem:bounds().step_time_s, tostring(found.metrics.feasible), found.evaluations or '', found.seconds or '' }
    end
  end
  local row = { label, text.seconds(problem:bounds().step_time_s) }
  for i, value in ipairs(values) do
    local mark = value <= math.min(best, values[#values]) and '*' or ''
    row[i + 2] = value == math.huge and 'OOM' or ('%.3f%s'):format(value, mark)
  end
  local ratio = values[#values] / best
  row[#row + 1] = ('%+.1f %%'):format(100 * (ratio - 1))
  within, worst = within + (ratio <= 1.01 and 1 or 0), math.max(worst, ratio)
  rows[#rows + 1] = row
  progress.note(('%s: trinity %.3f, best other %.3f'):format(label, values[#values], best))
end
if #rows > 0 then print(trinity.system.format_table(head, rows)) end
if stopped then cli.leave_stopped(('%d rows'):format(#rows)) end
plot.csv(options.csv, { 'row', 'method', 'seed', 'step_time_s', 'lower_bound_s', 'feasible', 'evaluations', 'seconds' },
  cells)
print(('\nsimulated step time over the lower bound, medians of seeds 1 to %d, %g s a search; * best of the row; '
  .. 'OOM: does not fit'):format(options.seeds, options.seconds))
print(('Trinity is the best or within 1 %% of it on %d of %d rows, at worst %+.1f %%; all runs are in %s'):format(
  within, #rows, 100 * (worst - 1), options.csv))
print(('made by: trinity study equal_time %s'):format(cli.words()))
