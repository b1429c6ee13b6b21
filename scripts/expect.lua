#!/usr/bin/env trinity
-- Predicts the step time of a job file and compares it with a measured one. With --json, prints one object: path,
-- client, gpus, cluster, predicted_s, mean_error, measured_s, ratio (measured / predicted), low, high (of predicted_s),
-- causes { what, seconds, remedy }, changes { name, gives_s }.

local trinity = require 'trinity'
local cli = require 'trinity.command.cli'
local expect = require 'trinity.job.expect'
local job = require 'trinity.job'
local memory = require 'trinity.job.memory'
local util = require 'trinity.base.util'

local options = trinity.options(cli.declare('json', {
  "Predicts a job file's step time, compares it with a measured one, and says where the time goes.",
  'keeps no run',
  file = { type = 'string', position = true, help = 'job file: a launch script, YAML or TOML' },
  gpus = { type = 'number', min = 1, integer = true, help = 'number of GPUs (default: from the file)' },
  launch = { type = 'string', help = 'command line that launches the job (overrides for torchtitan)' },
  cluster = { default = 'dgx_h100', help = "cluster of the job ('dgx_h100x4'), or a machine type, of which enough for "
    .. "the GPUs are taken" },
  measured = { type = 'string', help = 'measured step time: 4.1, 4.1s or 850ms' },
  log = { type = 'string', help = 'log of Megatron-LM or torchtitan: the measured time is the median of its last two '
    .. 'thirds' },
}))
if not options.file then util.fail_usage 'no file was given: trinity expect FILE --gpus N' end

local gpus = options.gpus or cli.called(memory.gpus_of, options.cluster)
local found = cli.called(job.read, options.file, { gpus = gpus, launch = options.launch })
local told = cli.called(expect.of, found, options.cluster)

local measured, steps
if options.measured then
  local number, unit = options.measured:match '^([%d.]+)%s*(m?s?)$'
  measured = tonumber(number) and tonumber(number) * (unit == 'ms' and 1e-3 or 1)
  if not measured then
    util.fail_usage("option '--measured': expected seconds as 4.1, 4.1s or 850ms, got '%s'", options.measured)
  end
elseif options.log then
  measured, steps = expect.measured(trinity.files.read(options.log), found)
  if not measured then
    util.fail("option '--log': %s: expected lines with 'elapsed time per iteration (ms)' or 'tps'", options.log)
  end
end
local predicted, off = told.step_time_s, told.mean_error or 0
local low, high = predicted * (1 - off), predicted * (1 + off)

if options.json then
  print(trinity.json.encode(util.merged(util.picked(found, { 'path', 'client', 'gpus' }), util.picked(told, { 'cluster',
    'mean_error', 'causes', 'changes' }), { predicted_s = predicted, measured_s = measured, low = low, high = high,
      ratio = measured and measured / predicted })))
else
  print(('predicted %.4g s per step on %s%s'):format(predicted, told.cluster, told.mean_error
    and (' (%.4g to %.4g s by the mean error of the constants, %.1f %%)'):format(low, high, 100 * off) or ''))
  if measured then
    print(('measured %.4g s%s: %.2f times the prediction, %s'):format(measured, steps and (' (%d steps)'):format(steps)
      or '', measured / predicted, measured > high and 'slower than it should be' or measured < low
      and 'faster than predicted' or 'as predicted'))
  end
  for _, cause in ipairs(told.causes) do
    if cause.seconds > 0.001 * predicted then
      print(('%8.4g s  %4.1f %%  %s%s'):format(cause.seconds, 100 * cause.seconds / predicted, cause.what,
        cause.remedy and ': ' .. cause.remedy or ''))
    end
  end
  for _, change in ipairs(told.changes) do print(('%s saves %.4g s'):format(change.name, change.gives_s)) end
end
