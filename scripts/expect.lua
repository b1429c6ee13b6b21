#!/usr/bin/env trinity
-- Predicts the step time of a job file and compares it with what was measured. With --json one object: path, client,
-- gpus, cluster, predicted_s, mean_error, low, high (of predicted_s), measured_s, ratio (measured / predicted),
-- ratio_low, ratio_high, causes { what, seconds, remedy, change, gives_s }, changes { name, gives_s },
-- tokens_per_s_per_gpu (predicted), flops_per_token, unmodelled (arguments that change memory or time, but not the
-- prediction), and nearest: runs that others measured { id, network, gpu, gpus, sequence, precision, plan,
-- tokens_per_s_per_gpu, flops_per_s_per_gpu, source }.

local trinity = require 'trinity'
local cli = require 'trinity.command.cli'
local expect = require 'trinity.job.expect'
local job = require 'trinity.job'
local memory = require 'trinity.job.memory'
local util = require 'trinity.base.util'

local options = trinity.options(cli.declare('json', {
  "Predicts a job file's step time, compares it with a measured one, and says where the time goes.",
  'keeps no run',
  file = { type = 'string', position = true, help = 'a launch script, YAML or TOML of the training software' },
  gpus = { type = 'number', min = 1, integer = true, help = 'GPUs of the job (default: from the file)' },
  launch = { type = 'string', help = 'the line that launches the job: overrides for torchtitan' },
  cluster = { default = 'dgx_h100', help = 'a cluster with the GPUs of the job, or a kind of machine' },
  measured = { type = 'string', help = 'a measured step time: 4.1, 4.1s or 850ms' },
  log = { type = 'string', help = 'a log of Megatron-LM or torchtitan: the median of its last two thirds counts' },
}))
if not options.file then util.fail_usage 'no file was given: trinity expect FILE --gpus N' end

local gpus = options.gpus or cli.called(memory.gpus_of, options.cluster)
local found = cli.called(job.read, options.file, { gpus = gpus, launch = options.launch })
local prediction = cli.called(expect.of, found, options.cluster)

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
local predicted, off = prediction.step_time_s, prediction.mean_error or 0
local tokens = found.global_batch * found.model.sequence / found.gpus

local function teraflops(flops_per_s) return ('%.0f'):format(flops_per_s / 1e12) end

--- The runs that others measured and the job, as a table.
local function print_nearest()
  local cells = util.map(prediction.nearest, function(run)
    return { run.network, ('%d %s'):format(run.gpus, run.gpu), run.precision, run.plan,
      ('%.0f'):format(run.tokens_per_s_per_gpu), teraflops(run.flops_per_s_per_gpu), run.source }
  end)
  local function add(what, step_s)
    cells[#cells + 1] = { what, '', '', '', ('%.0f'):format(tokens / step_s),
      teraflops(tokens / step_s * prediction.flops_per_token), '' }
  end
  add('this job, predicted', predicted)
  if measured then add('this job, measured', measured) end
  print 'nearest runs that others measured, per GPU:'
  print(trinity.system.format_table({ 'network', 'GPUs', 'precision', 'degrees', 'tokens/s', 'TFLOP/s', 'source' },
    cells))
end
local unmodelled = memory.unmodelled(found)
local low, high = predicted * (1 - off), predicted * (1 + off)

if options.json then
  local about = util.picked(found, { 'path', 'client', 'gpus' })
  print(trinity.files.json.encode(util.merged(about, util.picked(prediction, {
    'cluster', 'mean_error', 'causes', 'changes', 'flops_per_token' }), { tokens_per_s_per_gpu = tokens / predicted,
      nearest = util.map(prediction.nearest, function(run)
        return util.picked(run, { 'id', 'network', 'gpu', 'gpus', 'sequence', 'precision', 'plan',
          'tokens_per_s_per_gpu', 'flops_per_s_per_gpu', 'source' })
      end), predicted_s = predicted, measured_s = measured, unmodelled = unmodelled, low = low, high = high,
      ratio = measured and measured / predicted, ratio_low = measured and measured / high,
      ratio_high = measured and low > 0 and measured / low or nil })))
else
  print(('predicted %.4g s per step on %s%s'):format(predicted, prediction.cluster, prediction.mean_error
    and (' (%.4g to %.4g s by the mean error of the constants, %.1f %%)'):format(low, high, 100 * off) or ''))
  if measured then
    local interval = off > 0 and off < 1 and (' (%.2f to %.2f)'):format(measured / high, measured / low) or ''
    print(('measured %.4g s%s: %.2f%s times the prediction, %s'):format(measured, steps
      and (' (%d steps)'):format(steps) or '', measured / predicted, interval, measured > high
      and 'slower than it should be' or measured < low and 'faster than predicted' or 'as predicted'))
  end
  local shown = {}
  for _, cause in ipairs(prediction.causes) do
    if cause.seconds > 0.001 * predicted then
      shown[cause.change or 0] = true
      print(('%8.4g s  %4.1f %%  %s%s%s'):format(cause.seconds, 100 * cause.seconds / predicted, cause.what,
        cause.remedy and ': ' .. cause.remedy or '', cause.change
        and (' (%s saves %.4g s)'):format(cause.change, cause.gives_s) or ''))
    end
  end
  for _, change in ipairs(prediction.changes) do
    if not shown[change.name] then print(('%s saves %.4g s'):format(change.name, change.gives_s)) end
  end
  if #unmodelled > 0 then print('not modelled: ' .. table.concat(unmodelled, ', ')) end
  print_nearest()
end
