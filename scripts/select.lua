#!/usr/bin/env trinity
-- Solves a strategy-selection problem in the format of the IOPDDL contest (ASPLOS 2025), which is also that of PaSE's
-- tables. With --json one object with the fields of the contest, counted from 0 as in the file:
--   cost, feasible      of the best selection found; feasible: within usage_limit and nothing forbidden
--   peak_usage          the largest sum of usages over time
--   bound               no feasible selection costs less; null where there is none
--   optimal             proven
--   solution            the strategy of every node
--   seconds             of reading and solving
--   table_entries, peak_table_entries   of the exact solver's tables, 0 where it did not run

local core = require 'trinity.core'
local trinity = require 'trinity'

local options = trinity.options {
  'Chooses a strategy for every node of a graph so that costs of nodes and edges are least within a memory limit.',
  file = { default = '', position = true, help = 'a problem: .json, or .json.gz' },
  seconds = { default = 60, help = 'wall-clock limit, reading included', min = 0 },
  seed = { default = 1, help = 'fixes every random number', min = 0, integer = true },
  json = { default = false, help = 'JSON on standard output and nothing else' },
}
if options.file == '' then error('no problem was given: trinity select FILE.json', 0) end

local start = core.clock_s()
local problem = core.read_selection(options.file)
local reading_s = core.clock_s() - start
local result = trinity.select(problem, { seconds = math.max(0, options.seconds - reading_s), seed = options.seed })
result.seconds = core.clock_s() - start

if options.json then
  local solution = {}
  for v = 1, #result.solution do solution[v] = result.solution[v] - 1 end
  local facts = { solution = solution }
  for _, name in ipairs { 'name', 'cost', 'feasible', 'peak_usage', 'bound', 'optimal', 'seconds', 'table_entries',
    'peak_table_entries', 'stopped' } do facts[name] = result[name] end
  for _, name in ipairs { 'cost', 'bound' } do -- JSON has no infinity
    if math.abs(facts[name]) == math.huge then facts[name] = nil end
  end
  print(core.to_json(facts))
else
  local given = problem:describe()
  print(('%s: %d nodes, %d edges, %d strategies%s'):format(given.name, given.nodes, given.edges, given.strategies,
    given.usage_limit and (', usage limit %.0f'):format(given.usage_limit) or ''))
  local state = result.feasible and (result.optimal and 'proven optimal' or 'feasible')
    or (result.optimal and 'proven: no selection is feasible' or 'not feasible')
  print(('cost           %.17g  (%s)'):format(result.cost, state))
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
if result.stopped then os.exit(130) end
