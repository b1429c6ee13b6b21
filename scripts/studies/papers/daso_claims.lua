-- DASO's claims (34 % less training time than Horovod, 25 % for ResNet-50), simulated against three baselines.

local daso = require 'studies.papers.daso_networks'
local page = require 'studies.papers.page'

local function signed(percent) return ('%+.2f %%'):format(percent) end

--- How DASO synchronises in the epochs in which that changes, for reports.
local function schedule_of(epochs)
  local changes, last = {}, {}
  for e, epoch in ipairs(epochs) do
    if e == #epochs or epoch.global_skips ~= last.global_skips or epoch.phase ~= last.phase then
      changes[#changes + 1] = { epoch = e, phase = epoch.phase, global_skips = epoch.global_skips,
        local_skips = epoch.local_skips, wait = epoch.batches_to_wait, time_s = epoch.time_s }
    end
    last = epoch
  end
  return changes
end

--- Rows of a number of GPUs; adds its gains to `all`, by baseline, and its hours to what is `kept` for reports.
local function add_count(rows, network, gpus, all, kept)
  local trainings = daso.trainings(network, gpus)
  local example, best, text = trainings:of(daso.example), trainings:best_of_ours()
  local hours = { tostring(gpus), ('%.4g'):format(example.hours) }
  kept.gpus.rows[#kept.gpus.rows + 1], kept.schedule = hours, schedule_of(example.epochs)
  for _, baseline in ipairs(daso.baselines) do
    local base = trainings:of(baseline.synchronization)
    hours[#hours + 1] = ('%.4g'):format(base.hours)
    local literal, ours = daso.gain(base, example), daso.gain(base, best)
    rows:add { what = ('%s, %d GPUs, %s'):format(network.name, gpus, baseline.key),
      claimed = 'DASO ahead', literal = signed(literal), ours = ('%s (%s)'):format(signed(ours), text),
      verdict = page.order(100 - network.claimed, 100, best.hours, base.hours) }
    local gains = all[baseline.key] or { literal = -math.huge, ours = -math.huge }
    all[baseline.key] = { literal = math.max(gains.literal, literal), ours = math.max(gains.ours, ours) }
  end
end

return { name = 'claims', title = 'Less training time than all-reduce in every batch',
  about = 'Less time of a whole training with DASO, simulated on JUWELS Booster, against (bucketed) an all-reduce in '
    .. 'buckets that overlaps the\nbackward pass, as Horovod and PyTorch do, and, after the backward pass, '
    .. '(hierarchical) one in, between and in nodes and\n(flat) one ring. Paper settings: the example code, at most 4 '
    .. 'global skips; ours: the fastest of four fixed skips\n(global/local/wait).',
  run = function(rows, settings)
    local counts = settings.quick and { 16, 64 } or { 8, 16, 64, 256 }
    local networks = {}
    for n, network in ipairs(daso.chosen(settings, true)) do
      local all = {}
      networks[n] = { network = network.name, batch_size = network.batch_size, epochs = network.epochs,
        gpus = { keys = { 'gpus', 'daso_hours', 'bucketed_hours', 'hierarchical_hours', 'flat_hours' }, rows = {} } }
      for _, gpus in ipairs(counts) do add_count(rows, network, gpus, all, networks[n]) end
      for _, baseline in ipairs(daso.baselines) do
        local gains = all[baseline.key]
        rows:add { what = ('%s, most, %s'):format(network.name, baseline.key), claimed = network.claimed,
          literal = gains.literal, ours = gains.ours, unit = '%',
          verdict = page.verdict { claimed = network.claimed, got = gains.ours } }
      end
    end
    if settings.keep then
      settings.keep('daso', { networks = networks }, 'Trainings with DASO and with all-reduce, simulated.')
    end
    return 'Links without blocking or noise and a constant loss, on which the skips of the example code cycle every '
      .. 'three epochs.\nFixed skips hold through the cycling phase whatever the loss does: their time is a bound, '
      .. 'not a recommendation.'
  end }
