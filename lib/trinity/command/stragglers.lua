-- What `trinity simulate --noise` prints: the spread of a step, what it waits for, what helps against slow devices.

local text = require 'trinity.base.text'
local util = require 'trinity.base.util'

local stragglers = {}

--- The same as fields of JSON.
function stragglers.facts(found)
  local facts = util.picked(found, { 'step_time_s', 'mean_s', 'p95_s', 'error_s' })
  facts.draws = #found.draws_s
  facts.waits = util.map(found.waits, function(row)
    return util.picked(row, { 'device', 'stage', 'replica', 'type', 'time_s' })
  end)
  facts.remedies = util.map(found.remedies, function(row)
    return util.picked(row, { 'what', 'step_time_s', 'samples_per_s', 'gain', 'stages', 'devices', 'micro_batches' })
  end)
  return facts
end

local shown_waits = 6

--- Prints them.
function stragglers.print(found)
  print(('with noise      %.6g s in the mean of %d draws (+- %.2g), 95 %% within %.6g s'):format(found.mean_s,
    #found.draws_s, found.error_s, found.p95_s))
  print()
  local rows = {}
  for i = 1, math.min(shown_waits, #found.waits) do
    local of = found.waits[i]
    rows[i] = { of.device, of.type, of.stage and tostring(of.stage) or '', of.replica and tostring(of.replica) or '',
      ('%.6g'):format(of.time_s), ('%.1f'):format(100 * of.time_s / found.mean_s) }
  end
  print(text.format_table({ 'the step waits for', 'work', 'stage', 'replica', 'seconds', '% of the step' }, rows))
  if #found.remedies == 0 then return end
  print()
  print(text.format_table({ 'what helps', 'step s', 'samples/s', 'gain %', 'layers of stages' },
    util.map(found.remedies, function(of)
      return { of.what, ('%.6g'):format(of.step_time_s), ('%.6g'):format(of.samples_per_s),
        ('%.1f'):format(100 * of.gain), table.concat(of.stages or {}, ' ') }
    end)))
end

return stragglers
