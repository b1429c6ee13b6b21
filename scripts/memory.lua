#!/usr/bin/env trinity
-- Predicts the memory of a job file, one row per class of equal ranks. With --json, prints one object:
-- path, client, gpus, cluster, capacity_bytes, step_time_s (of a step with at most two rounds of micro-batches), rows {
-- stage, layers, weights, gradients, optimizer, activations, logits, workspaces, communication, framework, peak,
-- operators { name, bytes } (activations, their gradients and logits at the peak, by operator that writes them) } in
-- bytes, fullest (a stage), at { time_s, operator, micro_batch } of its peak, helps { name, frees_bytes,
-- step_time_ratio }, unmodelled (arguments that change memory or time, but not the prediction). Exit status: 1 if the
-- fullest rank does not fit.

local trinity = require 'trinity'
local cli = require 'trinity.command.cli'
local job = require 'trinity.job'
local memory = require 'trinity.job.memory'
local util = require 'trinity.base.util'

local options = trinity.options(cli.declare('json', {
  "Predicts a job file's memory by class of ranks, and what would free most.",
  'keeps no run',
  file = { type = 'string', position = true, help = 'a launch script, YAML or TOML of the training software' },
  gpus = { type = 'number', min = 1, integer = true, help = 'GPUs of the job (default: from the file)' },
  launch = { type = 'string', help = 'the line that launches the job: overrides for torchtitan' },
  cluster = { default = 'dgx_h100', help = 'a cluster with the GPUs of the job, or a kind of machine' },
}))
if not options.file then util.fail_usage 'no file was given: trinity memory FILE --gpus N' end

local gpus = options.gpus or cli.called(memory.gpus_of, options.cluster)
local found = cli.called(job.read, options.file, { gpus = gpus, launch = options.launch })
local prediction = cli.called(memory.of, found, options.cluster)
local rows = util.map(prediction.rows, function(row, stage) return util.merged({ stage = stage }, row) end)
local unmodelled = memory.unmodelled(found)
local fits = rows[prediction.fullest].peak <= prediction.capacity_bytes

local function gigabytes(bytes) return ('%.2f'):format(bytes / 1e9) end

if options.json then
  local about = util.picked(found, { 'path', 'client', 'gpus' })
  print(trinity.files.json.encode(util.merged(about, util.picked(prediction, {
    'cluster', 'capacity_bytes', 'step_time_s', 'fullest', 'at', 'helps' }), { rows = rows, unmodelled = unmodelled })))
else
  local header = { 'stage', 'ranks', 'layers' }
  for _, name in ipairs(memory.columns) do header[#header + 1] = name end
  header[#header + 1] = 'peak'
  print(trinity.system.format_table(header, util.map(rows, function(row)
    local cells = { ('%d'):format(row.stage), ('%d'):format(found.gpus / #rows), ('%d'):format(row.layers) }
    for _, name in ipairs(memory.columns) do cells[#cells + 1] = gigabytes(row[name]) end
    cells[#cells + 1] = gigabytes(row.peak)
    return cells
  end)))
  print(('GB; %s: the fullest rank belongs to stage %d and %s %.1f GB'):format(prediction.cluster, prediction.fullest,
    fits and 'fits in' or 'does not fit in', prediction.capacity_bytes / 1e9))
  for stage, row in ipairs(rows) do
    local sum, rest, words = row.activations + row.logits, 0, {}
    for _, operator in ipairs(row.operators) do
      local small = operator.bytes < 0.02 * sum
      rest = rest + (small and operator.bytes or 0)
      if not small then words[#words + 1] = ('%s %s'):format(operator.name, gigabytes(operator.bytes)) end
    end
    if rest > 0 then words[#words + 1] = 'others ' .. gigabytes(rest) end
    print(('activations and logits of stage %d, %s: %s'):format(stage, gigabytes(sum), table.concat(words, ', ')))
  end
  local at = prediction.at
  print(('its peak is at %.3g s of %.3g s%s'):format(at.time_s, prediction.step_time_s, at.operator
    and (', while %s of micro-batch %d runs'):format(at.operator, at.micro_batch) or ''))
  for _, help in ipairs(prediction.helps) do
    if help.frees_bytes > 0 then
      print(('%s frees %s GB; the step takes %+.1f %%'):format(help.name, gigabytes(help.frees_bytes),
        100 * (help.step_time_ratio - 1)))
    end
  end
  if #unmodelled > 0 then print('not modelled: ' .. table.concat(unmodelled, ', ')) end
  for _, finding in ipairs(found.findings) do
    if finding.effect == 'refused' then print(('refused by %s: %s'):format(found.client, finding.text)) end
  end
end
if not fits then os.exit(1) end
