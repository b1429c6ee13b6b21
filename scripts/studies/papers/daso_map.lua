-- Where DASO wins: its gain over the overlapped all-reduce by NIC bandwidth, number of GPUs and network.

local daso = require 'studies.papers.daso_networks'
local training = require 'studies.papers.daso_training'
local plot = require 'trinity.report.plot'
local util = require 'trinity.base.util'

--- Gains over numbers of GPUs at a bandwidth: texts by synchronisation, the counts at which ours is ahead, numbers.
local function gains_at(network, counts, bandwidth_gb_s, one_card)
  local texts, ahead, numbers = { literal = {}, ours = {} }, {}, {}
  for i, gpus in ipairs(counts) do
    local trainings = daso.trainings(network, gpus, bandwidth_gb_s, one_card)
    local base = trainings:of(daso.baselines[1].synchronization)
    texts.literal[i] = ('%+.1f'):format(daso.gain(base, trainings:of(daso.example)))
    numbers[i] = daso.gain(base, (trainings:best_of_ours()))
    texts.ours[i] = ('%+.1f'):format(numbers[i])
    if numbers[i] >= 1 then ahead[#ahead + 1] = tostring(gpus) end
  end
  return texts, ahead, numbers
end

local function draw(name, counts, bandwidths, gains, settings)
  local series = util.map(counts, function(gpus, c)
    return { name = ('%d GPUs'):format(gpus), points = util.map(bandwidths, function(bandwidth_gb_s, b)
      return { bandwidth_gb_s, gains[b][c] }
    end) }
  end)
  for _, one in ipairs(series) do table.sort(one.points, function(a, b) return a[1] < b[1] end) end
  return plot.lines(('%s/%s_bandwidth'):format(settings.output, name), { series = series, log_x = true,
    title = name .. ': gain of DASO on the overlapped all-reduce', x = 'GB/s of a NIC',
    y = 'less training time, %', width = 720, height = 480 })
end

local function verdict_of(ahead)
  return { text = #ahead == 0 and 'nowhere ahead by 1 %' or ('ahead at %s GPUs'):format(table.concat(ahead, ', ')) }
end

local function add_network(rows, network, one_card, counts, bandwidths, settings)
  local gains, cards = {}, one_card and 'one NIC per node' or 'one NIC per GPU'
  for b, bandwidth_gb_s in ipairs(bandwidths) do
    local texts, ahead, numbers = gains_at(network, counts, bandwidth_gb_s, one_card)
    gains[b] = numbers
    rows:add { what = ('%s, %s, %g GB/s'):format(network.name, cards, bandwidth_gb_s),
      literal = table.concat(texts.literal, ' '), ours = table.concat(texts.ours, ' '), verdict = verdict_of(ahead) }
  end
  draw(network.name .. (one_card and '_one_card' or ''), counts, bandwidths, gains, settings)
end

local map = { name = 'map', title = 'Where DASO wins: bandwidth, GPUs, network',
  about = 'Less training time than with the overlapped all-reduce in buckets, in percent, at each number of GPUs; '
    .. 'negative: DASO takes longer.\nThe machine has one NIC of 24 GB/s per GPU; nodes of others one for all '
    .. 'four. Paper settings: at most 4 skips; ours: the\nfastest of four fixed skips.',
  run = function(rows, settings)
    local counts = settings.quick and { 16, 64 } or { 8, 16, 64 }
    local bandwidths = settings.quick and { 24, 0.375 } or { 24, 6, 1.5, 0.375 }
    for _, network in ipairs(daso.chosen(settings)) do
      add_network(rows, network, false, counts, bandwidths, settings)
      add_network(rows, network, true, counts, bandwidths, settings)
    end
    return ('Gains at %s GPUs, in that order. Pictures, where gnuplot is installed: %s/NETWORK_bandwidth.svg')
      :format(table.concat(counts, ', '), settings.output)
  end }

-- Skips, held through the cycling phase.
local all = { { 1, 1, 1 }, { 2, 1, 1 }, { 4, 1, 1 }, { 8, 1, 1 }, { 8, 2, 2 }, { 16, 4, 4 }, { 32, 8, 8 } }
local few = { { 1, 1, 1 }, { 8, 2, 2 }, { 32, 8, 8 } }
local slow_gb_s = 1.5

local skips = { name = 'skips', title = 'What skips bring',
  about = ('Global skips, local skips and batches to wait on 64 GPUs: less training time than with the overlapped '
    .. 'all-reduce, at the\nmachine\'s 24 GB/s a network card and at %g GB/s.'):format(slow_gb_s),
  run = function(rows, settings)
    for _, network in ipairs(daso.chosen(settings, true)) do
      local trainings = { daso.trainings(network, 64), daso.trainings(network, 64, slow_gb_s) }
      for _, held in ipairs(settings.quick and few or all) do
        local synchronization = training.daso { held = { global_skips = held[1], local_skips = held[2],
          batches_to_wait = held[3] } }
        local gains = util.map(trainings, function(of)
          return ('%+.2f'):format(daso.gain(of:of(daso.baselines[1].synchronization), of:of(synchronization)))
        end)
        rows:add { what = ('%s, %d/%d/%d'):format(network.name, unpack(held)),
          ours = ('%s %% at 24, %s %% at %g GB/s'):format(gains[1], gains[2], slow_gb_s) }
      end
    end
  end }

return { map, skips }
