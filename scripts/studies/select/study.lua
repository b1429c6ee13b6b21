#!/usr/bin/env trinity
-- Solves a strategy-selection problem in the format of the IOPDDL contest (ASPLOS 2025). With --json one object with
-- fields of the result of lib/trinity/select: name, cost, feasible, infeasibility, peak_usage, bound (null where there
-- is none, or where nothing is feasible), optimal, solution (counted from 0 as in the file), seconds, stopped (the exit
-- status is then 130 or 143), table_entries, peak_table_entries.

local trinity = require 'trinity'
local progress = require 'trinity.base.progress'
local select_strategies = require 'trinity.select'
local util = require 'trinity.base.util'

local options = trinity.options {
  'Chooses a strategy for every node of a graph so that costs of nodes and edges are least within a memory limit.',
  file = { default = '', position = true, help = 'a problem: .json or .json.gz' },
  seconds = { default = 60, help = 'wall-clock limit, reading the file included', min = 0 },
  seed = { default = 1, help = 'fixes every random number', min = 0, integer = true },
  rounds = { default = 0, help = 'of search; 0: until the time is over', min = 0, integer = true },
  json = { default = false, help = 'JSON on standard output and nothing else' },
}
if options.file == '' then util.fail_usage 'no problem was given: trinity study select FILE.json' end

local ok, result = pcall(select_strategies, options.file, { seconds = options.seconds, seed = options.seed,
  rounds = options.rounds > 0 and options.rounds or nil })
if not ok then error((tostring(result):gsub('^.-: select: ', '')), 0) end

local facts = util.picked(result, { 'name', 'cost', 'feasible', 'peak_usage', 'bound', 'optimal', 'seconds',
  'table_entries', 'peak_table_entries', 'stopped', 'infeasibility' })
facts.solution = util.map(result.solution, function(strategy) return strategy - 1 end)
trinity.run:result('selection', facts, ('%s: cost %.10g%s.'):format(result.name, result.cost,
  result.optimal and ', proven' or ''))
if options.json then
  print(trinity.files.json.encode(facts)) -- which writes an infinite number as null
else
  print(('%s: %d nodes, %d edges, %d strategies%s'):format(result.name, result.nodes, result.edges, result.strategies,
    result.usage_limit and (', usage limit %.0f'):format(result.usage_limit) or ''))
  local state = result.feasible and (result.optimal and 'proven optimal' or 'feasible')
    or (result.optimal and 'proven: no selection is feasible' or 'not feasible')
  if result.stopped then state = state .. ', stopped by ' .. trinity.system.stop_name() end
  print(('cost           %.17g  (%s)'):format(result.cost, state))
  if result.infeasibility then print('infeasibility  ' .. result.infeasibility) end
  if math.abs(result.bound) < math.huge then
    print(('bound          %.17g  (gap %.3g %%)'):format(result.bound,
      100 * (result.cost - result.bound) / math.max(math.abs(result.cost), 1e-300)))
  end
  print(('peak usage     %.0f'):format(result.peak_usage))
  if result.table_entries > 0 then
    print(('table entries  %d, at most %d at a time'):format(result.table_entries, result.peak_table_entries))
  end
  print(('seconds        %.3f'):format(result.seconds))
end
if result.stopped then
  progress.warn(('stopped by %s with the best so far; it cannot be resumed: a new search starts from scratch'):format(
    trinity.system.stop_name()))
  os.exit(trinity.system.stop_status())
end
