#!/usr/bin/env trinity
-- Replays a trace of operations (CSV, also gzip, with the columns of ByteDance's StragglerAnalysis) and computes the
-- cost of stragglers. With --json, prints one object with the fields
--   path, steps, workers, stages
--   recorded_s, replayed_s, busy_s, typical_s   mean step: recorded, replayed, without gaps, all operations typical
--   slowdown                                    busy_s over typical_s
--   error                                       mean of |busy_s / recorded_s - 1| of the steps
--   answers    a list of { type, worker, stage, slowdown, alone_s, without_s, saved }
--   waits      a list of { worker, stage, type, time_s }: the longest path

local trinity = require 'trinity'
local statistics = require 'trinity.base.statistics'
local util = require 'trinity.base.util'

local options = trinity.options(require 'trinity.command.shared'('json', {
  'Replays a recorded step and says which type of operations, replica or stage slows it down.',
  'keeps no run',
  trace = { type = 'string', position = true, help = 'trace of the operations of some steps: .csv or .csv.gz' },
  what_if = { type = 'string', help = 'operations to keep as recorded: type=forward-compute or worker=3,stage=0, '
    .. 'a worker being a replica (default: each in turn)' },
}))
if not options.trace then util.fail_usage 'no trace was given: trinity replay TRACE.csv' end

--- Parses --what-if: { type, worker, stage }.
local function choice_of(text)
  local found = {}
  for _, part in ipairs(util.words(text)) do
    local name, value = part:match '^([^=]+)=(.+)$'
    local number = tonumber(value)
    if found[name or ''] then
      util.fail_usage("option '--what-if': expected each name once, got %s twice", util.quoted(name))
    end
    if name == 'type' then found.type = value
    elseif (name == 'worker' or name == 'stage') and number then found[name] = number
    else
      util.fail_usage("option '--what-if': expected type=NAME, worker=NUMBER or stage=NUMBER with commas, got %s",
        util.quoted(part))
    end
  end
  return found
end

local replay = trinity.stragglers.replay(options.trace)
local choices = {}
if options.what_if then choices[1] = choice_of(options.what_if)
else
  for _, kind in ipairs(replay.types) do choices[#choices + 1] = { type = kind } end
  for worker = 0, replay.workers - 1 do choices[#choices + 1] = { worker = worker } end
  for stage = 0, replay.stages - 1 do choices[#choices + 1] = { stage = stage } end
end

local mean = statistics.mean
local answers = util.map(choices, function(choice)
  local found = replay:what_if(choice)
  return util.merged(choice, { slowdown = found.slowdown, alone_s = mean(found.alone_s),
    without_s = mean(found.without_s), saved = found.saved })
end)
local errors = {}
for i, recorded_s in ipairs(replay.recorded_s) do errors[i] = math.abs(replay.busy_s[i] / recorded_s - 1) end
local facts = { path = options.trace, steps = replay.steps, workers = replay.workers, stages = replay.stages,
  recorded_s = mean(replay.recorded_s), replayed_s = mean(replay.replayed_s), busy_s = mean(replay.busy_s),
  typical_s = mean(replay.typical_s), slowdown = replay.slowdown, error = mean(errors), answers = answers,
  waits = replay:waits() }
if options.json then
  print(trinity.files.json.encode(facts))
  return
end

local function said(of)
  local parts = {}
  for _, name in ipairs { 'type', 'worker', 'stage' } do
    if of[name] then parts[#parts + 1] = ('%s %s'):format(name, of[name]) end
  end
  return table.concat(parts, ', ')
end

print(('%d steps, %d replicas, %d stages'):format(#replay.steps, replay.workers, replay.stages))
print(('recorded       %.6g s (mean step), replayed %.6g s'):format(facts.recorded_s, facts.replayed_s))
print(('without gaps   %.6g s (steps are off by %.2f %% on average)'):format(facts.busy_s, 100 * facts.error))
print(('all typical    %.6g s: slowdown %.4f'):format(facts.typical_s, facts.slowdown))
print()
print(trinity.system.format_table({ 'as recorded, all others typical', 'slowdown', 'step s', 'if typical s',
  'saved %' }, util.map(answers, function(of)
    return { said(of), ('%.4f'):format(of.slowdown), ('%.6g'):format(of.alone_s), ('%.6g'):format(of.without_s),
      ('%.1f'):format(100 * of.saved) }
  end)))
if options.what_if then return end
print()
local rows = {}
for i = 1, math.min(5, #facts.waits) do
  local of = facts.waits[i]
  rows[i] = { said(of), ('%.6g'):format(of.time_s), ('%.1f'):format(100 * of.time_s / facts.busy_s) }
end
print(trinity.system.format_table({ 'the step waits for', 'seconds', '% of the step' }, rows))
