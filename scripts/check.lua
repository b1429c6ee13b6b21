#!/usr/bin/env trinity
-- Checks a client's job file by the rules that its client enforces. Prints one line per finding (FILE: EFFECT CODE:
-- ARGUMENTS: SENTENCE), and below it the nearest legal values and the client's source line. EFFECT is refused, ignored
-- or changed. With --json, prints one object: path, client, release, gpus, legal, findings { code, effect, arguments {
-- name, value }, text, nearest { name, value }, source, release }, model, mesh, micro_batch, global_batch,
-- micro_batches, precision, recompute, zero_stage, overlaps, offload, layers (of stages), collectives { axis, what,
-- count }, unknown. Exit status: 1 if the client refuses the file.

local trinity = require 'trinity'
local becomes = require 'trinity.job.becomes'
local cli = require 'trinity.command.cli'
local job = require 'trinity.job'
local util = require 'trinity.base.util'

local options = trinity.options(cli.declare('json', {
  'Checks whether the training software (Megatron-LM, torchtitan, ...) accepts a job file, and what it would change.',
  'keeps no run',
  file = { type = 'string', position = true, help = 'a launch script, YAML, TOML or JSON of the training software' },
  gpus = { type = 'number', min = 1, integer = true, help = 'GPUs of the job (default: from the file)' },
  launch = { type = 'string', help = 'the command that launches it: degrees for DeepSpeed, overrides for torchtitan' },
  capability = { default = 9, help = 'compute capability of the GPUs (Hopper: 9, Blackwell: 10)', min = 1 },
  refused = { default = false, help = 'print only what is refused' },
}))
if not options.file then util.fail_usage 'no file was given: trinity check FILE --gpus N' end

local found = cli.called(job.read, options.file, { gpus = options.gpus, launch = options.launch,
  capability = options.capability })
local findings = {}
for _, finding in ipairs(found.findings) do
  if finding.effect == 'refused' or not options.refused then
    findings[#findings + 1] = util.merged(util.picked(finding, { 'code', 'effect', 'arguments', 'text', 'source',
      'release' }), { nearest = finding.effect == 'refused' and job.nearest(found, finding) or {} })
  end
end

local function said(argument)
  if argument.value == nil or argument.value == true then return argument.name end
  return ('%s %s'):format(argument.name, tostring(argument.value))
end

-- Nearest legal values by argument: '--x 4 or 8'.
local function uses(nearest)
  local by, order = {}, {}
  for _, near in ipairs(nearest) do
    if not by[near.name] then order[#order + 1] = near.name end
    by[near.name] = by[near.name] or {}
    table.insert(by[near.name], near.value == false and 'off' or near.value == true and 'on' or tostring(near.value))
  end
  return table.concat(util.map(order, function(name) return name .. ' ' .. table.concat(by[name], ' or ') end), '; ')
end

if options.json then
  print(trinity.json.encode(util.merged(util.picked(found, { 'path', 'client', 'release', 'gpus', 'legal', 'model',
    'mesh', 'micro_batch', 'global_batch', 'micro_batches', 'precision', 'recompute', 'zero_stage', 'overlaps',
    'offload', 'unknown' }), { findings = findings, layers = becomes.layers(found),
      collectives = becomes.collectives(found) })))
else
  for _, finding in ipairs(findings) do
    print(('%s: %s %s: %s: %s'):format(options.file, finding.effect, finding.code,
      table.concat(util.map(finding.arguments, said), ', '), finding.text))
    if #finding.nearest > 0 then print('    use ' .. uses(finding.nearest)) end
    if finding.source then print(('    %s, commit %s'):format(finding.source, finding.release:sub(1, 8))) end
  end
  local counts = { refused = 0, ignored = 0, changed = 0 }
  for _, finding in ipairs(found.findings) do counts[finding.effect] = counts[finding.effect] + 1 end
  print(('%s, %s: %d refused, %d ignored, %d changed'):format(found.client,
    found.gpus and ('%d GPUs'):format(found.gpus) or 'unknown number of GPUs',
    counts.refused, counts.ignored, counts.changed))
  for _, line in ipairs(becomes.lines(found)) do print(line) end
  if #found.unknown > 0 then print('not understood: ' .. table.concat(found.unknown, ', ')) end
end
if not found.legal then os.exit(1) end
