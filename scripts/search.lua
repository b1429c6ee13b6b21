#!/usr/bin/env trinity
-- Searches with one method. With --json one object with the fields of scripts/simulate.lua, and
--   method, seed            what searched
--   evaluations, seconds    what it took
--   saved                   where the strategy is, with --out
-- Exit status 1 where no strategy that fits was found: what is shown and saved is then the least infeasible one, and
-- infeasibility says what limits it.

local trinity = require 'trinity'
local cli = require 'trinity.command.cli'
local settings = require 'trinity.command.settings'

local options = trinity.options(cli.declare {
  'Searches for a strategy of a model on a cluster with one method (trinity help methods lists them).',
  method = { default = 'best', help = "a method; best is what we recommend" },
  method_set = settings.of_method,
  evaluations = { default = 0, help = 'placements to simulate; 0: 2000, or any number with --seconds', min = 0,
    integer = true },
  seconds = { default = math.huge, help = 'wall-clock limit; results then depend on the machine', min = 0 },
  seed = { default = 1, help = 'fixes every random number', min = 0, integer = true },
  out = { default = '', writes = '/strategy.json', help = 'a folder for strategy.json' },
})

local problem = cli.problem(options)
local limited = options.seconds < math.huge
local evaluations = options.evaluations > 0 and options.evaluations or (limited and trinity.search.unlimited or 2000)
local ok, found, reason = pcall(cli.run_method, options, problem, { evaluations = evaluations,
  seconds = options.seconds, seed = options.seed })
if not ok then
  local best = trinity.search.rescued[1] -- which no file keeps
  if best then cli.report(options, best, { method = best.method, seed = best.seed }) end
  error(found, 0)
end
if not found then error(("method '%s' found nothing: %s"):format(options.method, reason), 0) end
local saved, path, why = true, options.out ~= '' and options.out .. '/strategy.json' or nil, nil
if path then saved, why = pcall(found.save, found, path) end
cli.report(options, found, { saved = saved and path or nil })
if found.ranking and not options.json then
  local r = found.ranking
  local function percent(part, whole) return 100 * part / math.max(1e-9, whole) end
  print(('ranked moves    %.1f %% of %d improved, of %d as they were drawn %.1f %%; %.0f %% of the improvements, '
    .. '%.0f %% of the time'):format(percent(r.improving, r.trials), r.trials, r.plain_trials,
    percent(r.plain_improving, r.plain_trials), percent(r.improving, r.improving + r.plain_improving),
    percent(r.seconds, found.seconds)))
end
if not saved then error(why, 0) end
if not found.metrics.feasible then os.exit(1) end
