-- What overlap brings the real baseline: trainings on this machine over an injected slow link.

local jobs = require 'trinity.paper.daso_jobs'
local page = require 'trinity.paper.page'
local util = require 'trinity.base.util'

local variants = {
  { name = 'behind backward, one buffer', options = { overlap = 'false', bucket_bytes = 0 } },
  { name = 'behind backward, buckets', options = { overlap = 'false' } },
  { name = 'overlapped, buckets', options = { overlap = 'true' } },
}

return { name = 'overlap', title = 'What overlap brings, measured here',
  about = 'Seconds of a training in step: train_distributed --task deep, two processes as two nodes, batches of 256, '
    .. 'buckets of 1 MB, over an\ninjected link. Variants take turns; medians and ranges over rounds. Run on this '
    .. 'machine, not simulated.',
  run = function(rows, settings)
    local rounds = settings.quick and 3 or 5
    for _, mbit_s in ipairs(settings.quick and { 1000 } or { 1000, 250 }) do
      local seconds = util.map(variants, function() return {} end)
      for round = 1, rounds do
        for v, variant in ipairs(variants) do
          local found = jobs.train(2, util.merged({ task = 'deep', method = 'bsp', epochs = 1, link_mbit_s = mbit_s,
            link_ms = 0.1, batch_size = 256, bucket_bytes = 1048576, batches = settings.quick and 8 or 20 },
            variant.options))
          seconds[v][round] = found[1].seconds
        end
      end
      for v, variant in ipairs(variants) do
        rows:add { what = ('%g Mbit/s, %s'):format(mbit_s, variant.name), ours = page.runs(seconds[v], 's'),
          seeds = rounds, verdict = v > 1 and page.against(seconds[v], seconds[1]) or { text = 'the slowest way' } }
      end
    end
    return 'Seeds: rounds. The link stretches sends by what they would take on it; what computes does so on this '
      .. "machine's cores."
  end }
