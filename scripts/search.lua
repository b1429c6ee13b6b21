#!/usr/bin/env trinity
-- Searches a strategy with one method, or compares several methods (--method a,b,c or all) or seeds (--seeds) under one
-- budget.
--
-- With one method, --json prints one object with the fields of scripts/simulate.lua, and
--   method, seed            of the search
--   evaluations, seconds    that it used
--   saved                   file of the strategy, with --output-dir
-- The exit status is 1 if no strategy fits. The least infeasible one is then shown and saved, and infeasibility names
-- the limit.
--
-- With several methods or seeds, one object with the fields
--   model, cluster, seed (the first), seeds, evaluations, seconds, lower_bound_s, best (a method), stopped,
--   least_infeasible (a method, if nothing fits: the infeasibility of its best run names the limit)
--   rows   one per method: { method, median_step_time_s, mean_step_time_s, deviation_step_time_s, failures = [texts],
--          against_best = the test of its rewards against the best row's { test, p, pairs, least_p, exact },
--          runs = [one per seed: { seed, step_time_s, fits, peak_memory_bytes = [one per device],
--          peak_communication_bytes, total_communication_bytes, reward, lower_bound_s, evaluations, seconds }] }
-- The exit status is 1 if a run failed or no method found anything.

local trinity = require 'trinity'
local cli = require 'trinity.command.cli'
local comparison_table = require 'trinity.methods.comparison_table'
local settings = require 'trinity.command.settings'
local util = require 'trinity.base.util'

local options = trinity.options(cli.declare('model set batch_size cluster rules devices cost method method_set '
    .. 'evaluations seconds seed json', {
  'Searches for a strategy of a model on a cluster; compares methods (--method a,b,c).',
  method = { help = 'a method (trinity help methods), several to compare them (a,b,c), or all' },
  method_set = { help = "method's options: policy=false,batch=16; of several METHOD.NAME=VALUE" },
  evaluations = { help = 'placements that each method may simulate (default: 2000 without --seconds)' },
  seed = { help = 'fixes every random number; the first of --seeds' },
  seeds = { type = 'number', help = 'runs of every random method (default: 1, in a comparison 3)',
    min = 1, max = 10000, integer = true },
  columns = { type = 'string',
    help = 'of a comparison, with commas: ' .. table.concat(comparison_table.names(), ',') },
  format = { default = 'text', help = 'format of a comparison: text, or the table alone as markdown, latex or csv' },
  output_dir = { type = 'string', writes = '/strategy.json', help = 'write the best strategy to strategy.json here' },
}, 'columns cost devices rules'))

local names = options.method == 'all' and trinity.methods.names() or util.words(options.method)

--- Searches with one method.
local function search()
  local problem = cli.problem(options)
  local evaluations = options.evaluations or options.seconds and trinity.search.unlimited or 2000
  local ok, found, reason = pcall(cli.run_method, options, problem, { evaluations = evaluations,
    seconds = options.seconds, seed = options.seed })
  if not ok then
    local best = trinity.search.rescued[1] -- which was not saved
    if best then cli.report(options, best, { method = best.method, seed = best.seed }) end
    error(found, 0)
  end
  if not found then error(("method '%s' found nothing: %s"):format(options.method, reason), 0) end
  local saved, path, why = true, options.output_dir and options.output_dir .. '/strategy.json', nil
  if path then saved, why = pcall(found.save, found, path) end
  cli.report(options, found, { saved = saved and path or nil })
  if found.ranking and not options.json then
    local r = found.ranking
    local function percent(part, whole) return 100 * part / math.max(1e-9, whole) end
    print(('ranked moves    %.1f %% of %d improved, of %d unranked moves %.1f %%; %.0f %% of the improvements, '
      .. '%.0f %% of the time'):format(percent(r.improving, r.trials), r.trials, r.plain_trials,
      percent(r.plain_improving, r.plain_trials), percent(r.improving, r.improving + r.plain_improving),
      percent(r.seconds, found.seconds)))
  end
  if not saved then error(why, 0) end
  if not found.metrics.feasible then os.exit(1) end
end

--- Compares the methods.
local function compare()
  local columns = options.columns and util.words(options.columns)
  comparison_table.check_words(columns, options.format)
  local problem = cli.problem(options)
  local given = cli.options_by_method(options, names)
  local comparison = settings.checked('method_set', given, 'methods%.([%w_]+: .*)', function()
    return trinity.compare(problem, names, util.merged(given, { seed = options.seed, seeds = options.seeds or 3,
      evaluations = options.evaluations, seconds = options.seconds }))
  end)
  local best = comparison:best()
  if options.output_dir and best then best.best:save(options.output_dir .. '/strategy.json') end
  if options.json then
    print(trinity.files.json.encode(comparison:totable()))
  elseif options.format ~= 'text' then
    print(comparison:table { columns = columns, format = options.format })
  else
    print(columns and ('%s\n%s'):format(comparison:table { columns = columns }, comparison:notes()) or comparison)
  end
  if comparison.stopped then os.exit(trinity.system.stop_status()) end
  if comparison:failed() then os.exit(1) end
end

if #names > 1 or options.seeds then return compare() end
cli.refuse(options, 'columns format', 'belongs to a comparison (--method a,b or --seeds)')
search()
