#!/usr/bin/env trinity
-- Compares methods under one budget. With --json one object with the fields
--   model, cluster, seed (the first), seeds, evaluations, seconds, lower_bound_s, best (a method), stopped,
--   least_infeasible (a method, where nothing fits: the infeasibility of its best run says what limits it)
--   rows   one a method: { method, median_step_time_s, mean_step_time_s, deviation_step_time_s, failures = [texts],
--          against_best = the test of its rewards against the best row's { test, p, pairs, least_p, exact },
--          runs = [one a seed: { seed, step_time_s, fits, peak_memory_bytes = [one a device],
--          peak_communication_bytes, total_communication_bytes, reward, lower_bound_s, evaluations, seconds }] }
-- Exit status 1 where a run failed, no method found anything, or a finished run could not be kept in --out.

local trinity = require 'trinity'
local cli = require 'trinity.command.cli'
local comparison_table = require 'trinity.methods.comparison_table'
local settings = require 'trinity.command.settings'
local util = require 'trinity.base.util'

local options = trinity.options(cli.declare {
  'Compares methods on a model and a cluster, with equal budgets and several seeds.',
  methods = { default = 'single_device,expert,metis,scotch,heft,m_etf,best',
    help = 'methods with commas, or all' },
  method_set = settings.of_methods,
  evaluations = { default = 0, help = 'placements that each may simulate; 0: 2000, or any number with --seconds',
    min = 0, integer = true },
  seconds = { default = math.huge, min = 0,
    help = 'wall-clock limit of each run; results then depend on the machine' },
  seeds = { default = 3, help = 'runs of every method that draws random numbers', min = 1, max = 10000,
    integer = true },
  seed = { default = 1, help = 'the first seed', min = 0, integer = true },
  columns = { default = '', help = 'of the table, with commas: ' .. table.concat(comparison_table.names(), ',') },
  format = { default = 'text', help = 'text, or the table alone as markdown, latex or csv' },
  out = { default = '', writes = '/x.json',
    help = 'a folder that keeps finished runs: the same command goes on from there' },
})

local columns = options.columns ~= '' and util.words(options.columns) or nil
comparison_table.check_words(columns, options.format)
local names = options.methods == 'all' and trinity.methods.names() or util.words(options.methods)
local problem = cli.problem(options)
local given = cli.options_by_method(options, names)
local comparison = settings.checked('method_set', given, 'methods%.([%w_]+: .*)', function()
  return trinity.compare(problem, names, util.merged(given, { seed = options.seed, seeds = options.seeds,
    evaluations = options.evaluations > 0 and options.evaluations or nil,
    seconds = options.seconds < math.huge and options.seconds or nil, out = options.out ~= '' and options.out or nil }))
end)
if options.json then
  print(trinity.json.encode(comparison:totable()))
elseif options.format ~= 'text' then
  print(comparison:table { columns = columns, format = options.format })
else
  print(columns and ('%s\n%s'):format(comparison:table { columns = columns }, comparison:notes()) or comparison)
end
if comparison.stopped then os.exit(trinity.stop_status()) end
if comparison:failed() then os.exit(1) end
