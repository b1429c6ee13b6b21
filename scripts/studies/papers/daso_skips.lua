-- DASO's gain on the overlapped all-reduce over its skips, held through the cycling phase.

local daso = require 'studies.papers.daso_networks'
local training = require 'studies.papers.daso_training'

local all = { { 1, 1, 1 }, { 2, 1, 1 }, { 4, 1, 1 }, { 8, 1, 1 }, { 8, 2, 2 }, { 16, 4, 4 }, { 32, 8, 8 } }
local few = { { 1, 1, 1 }, { 8, 2, 2 }, { 32, 8, 8 } }
local slow_gb_s = 1.5

return { name = 'skips', title = 'What skips bring',
  about = ('Global skips, local skips and batches to wait on 64 GPUs: less training time than with the overlapped '
    .. 'all-reduce, at the\nmachine\'s 24 GB/s a network card and at %g GB/s.'):format(slow_gb_s),
  run = function(rows, settings)
    for _, network in ipairs(daso.chosen(settings, true)) do
      local trainings = { daso.trainings(network, 64), daso.trainings(network, 64, slow_gb_s) }
      for _, skips in ipairs(settings.quick and few or all) do
        local synchronization = training.daso { held = { global_skips = skips[1], local_skips = skips[2],
          batches_to_wait = skips[3] } }
        local gains = {}
        for i, of in ipairs(trainings) do
          gains[i] = ('%+.2f'):format(daso.gain(of:of(daso.baselines[1].synchronization), of:of(synchronization)))
        end
        rows:add { what = ('%s, %d/%d/%d'):format(network.name, unpack(skips)),
          ours = ('%s %% at 24, %s %% at %g GB/s'):format(gains[1], gains[2], slow_gb_s) }
      end
    end
  end }
