-- Every case of TAPP's page by every method.

local baselines = require 'studies.papers.tapp_baselines'
local core = require 'trinity.core'
local page = require 'studies.papers.page'
local studies = require 'studies.papers.tapp_studies'
local util = require 'trinity.base.util'

local function notes_of(case, row)
  local bsp, best = studies.find(case, 'bsp'), studies.find(case, 'fastest')
  local notes = { ('share of communication %.1f %%, less by %.1f %%'):format(100 * row.rho,
    100 * (1 - row.rho / bsp.rho)) }
  if best and row ~= best then notes[2] = ('%.3f of the fastest'):format(row.step_time_s / best.step_time_s) end
  if row.tried then notes[#notes + 1] = ('%d tried'):format(row.tried) end
  if row.replicas and #row.replicas < 9 then notes[#notes + 1] = 'replicas ' .. table.concat(row.replicas, '-') end
  if row.found_by and row.updates[1] == 0 then notes[#notes + 1] = 'by ' .. row.found_by end
  notes[#notes + 1] = core.format_bytes(row.peak_memory_bytes)
  if not row.fits then notes[#notes + 1] = 'does not fit' end
  return table.concat(notes, ', ')
end

return { name = 'cases', title = 'Every case', learns = true, quick = studies.quick,
  heads = { literal = 'times as fast as equal shards' },
  about = ('Simulated steps in ms; batch %d, pipelines with %d micro-batches, machines with a V100, GTX 1080 Ti, P100 '
    .. 'and K80 in turn on 10 Gbit/s Ethernet.'):format(baselines.batch_size, baselines.micro_batches),
  run = function(rows, settings)
    for _, case in ipairs(studies.of(settings)) do
      local bsp = studies.find(case, 'bsp')
      for _, row in ipairs(case.rows) do
        local steps = util.map(row.steps_s or { row.step_time_s }, function(step_s) return 1000 * step_s end)
        rows:add { what = ('%s, %d machines: %s'):format(case.model, case.nodes, row.method), claimed = 'not stated',
          literal = ('%.2f'):format(bsp.step_time_s / row.step_time_s), ours = page.runs(steps, 'ms'),
          updates = row.updates and row.updates[1], seeds = row.steps_s and #row.steps_s,
          verdict = { text = notes_of(case, row) } }
      end
    end
  end }
