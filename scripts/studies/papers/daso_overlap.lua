-- The gain of overlap for the real baseline: trainings on this machine over an injected slow link.

local core = require 'trinity.core'
local jobs = require 'studies.papers.daso_jobs'
local page = require 'studies.papers.page'
local util = require 'trinity.base.util'

local variants = { 'one buffer, after backward', 'buckets, overlapped' }

return { name = 'overlap', title = 'What overlap brings, measured here',
  about = 'Milliseconds of a step of trinity.execute: six layers of 512 x 512, batches of 256, two processes as two '
    .. 'nodes over an injected link,\nan all-reduce of everything or of buckets of 1 MB. Variants take turns, round by '
    .. 'round; medians and ranges over rounds. Run here, not simulated.',
  run = function(rows, settings)
    local rounds, steps = settings.quick and 10 or 30, 4
    for _, mbit_s in ipairs(settings.quick and { 1000 } or { 2000, 1000, 250 }) do
      local found = jobs.run(2, core.home .. '/scripts/studies/papers/daso_overlap_job.lua', { mbit_s, rounds, steps })
      if not found.alike then util.fail 'gradients in buckets gave other losses' end
      local ms = util.map(found.seconds, function(list)
        return util.map(list, function(seconds) return 1e3 * seconds end)
      end)
      for v, variant in ipairs(variants) do
        rows:add { what = ('%g Mbit/s, %s'):format(mbit_s, variant), ours = page.runs(ms[v], 'ms'), seeds = rounds,
          verdict = v > 1 and page.against(ms[v], ms[1]) or nil }
      end
    end
    return "Seeds: rounds. The link delays what crosses it by what it would take; computation shares this machine's "
      .. 'cores.'
  end }
