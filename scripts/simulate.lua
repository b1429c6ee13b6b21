#!/usr/bin/env trinity
-- Prices one strategy on the simulator. With --json one object with the fields
--   model, cluster          names
--   step_time_s             of the whole strategy
--   fits                    whether every device has the memory
--   peak_memory_bytes       a list, one number a device
--   peak_communication_bytes, total_communication_bytes   of the busiest device, of all
--   lower_bound_s           no strategy of the problem is faster
--   placement               devices from 0, one an operator in the order of the model's file
--   makespan                under --rules doppler: the step time in the whole units of its files
--   reward, evaluations, seconds, schedule, micro_batches
--   reevaluated             what a strategy was made for that is evaluated on something else (--reevaluate)
--   cost                    what own costs (--cost) cover

local trinity = require 'trinity'
local cli = require 'trinity.command.cli'
local parallelism = require 'trinity.strategy.parallelism'
local util = require 'trinity.base.util'

local options = trinity.options(cli.declare(util.merged(cli.strategy_options, {
  'Simulates a step of a model on a cluster under a placement or a saved strategy.',
  placement = { default = '', help = 'devices from 0 with commas, one an operator in file order or one a unit; '
    .. 'default: all on device 0' },
  schedule_csv = { default = '', help = "of a strategy with a mesh: the order of its pipeline in place of its "
    .. "schedule, as PyTorch's schedules are dumped" },
  save = { default = '', writes = '', help = 'a file for the strategy: every command reads it' },
  picture = { default = '', writes = '', help = 'a file for a picture of the strategy (SVG)' },
})))

cli.complete(options)

local problem = cli.problem(options)
if options.placement ~= '' and options.strategy ~= '' then
  util.fail_usage "options '--placement' and '--strategy' exclude each other"
end
local found
if options.strategy ~= '' then
  found = cli.load_strategy(options, problem)
else
  local placement = options.placement ~= '' and cli.read_placement(problem, options.placement) or problem:placement()
  found = problem:strategy(placement, { method = 'given', evaluations = 1 })
end
local further
if options.schedule_csv ~= '' then
  if not found.mesh then
    util.fail_usage "option '--schedule_csv': expected a --strategy with a mesh, got a placement of operators"
  end
  found = cli.called(parallelism.with_tasks, found, options.schedule_csv)
  further = { order = ('%s (%s)'):format(options.schedule_csv, found.tasks and 'no named schedule' or found.schedule) }
end
if options.save ~= '' then found:save(options.save) end
if options.picture ~= '' then found:picture(options.picture) end
cli.keep(found)
cli.report(options, found, further)
