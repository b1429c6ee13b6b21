-- Why AlexNet over 32 devices gains so much more here than in figure 6 of the PaSE paper: the factor over data
-- parallelism with one assumption changed at a time.

local json = require 'trinity.base.json'
local model = require 'trinity.graph.model'
local networks = require 'studies.papers.pase_networks'
local page = require 'studies.papers.page'
local util = require 'trinity.base.util'

local devices, family = 32, 'gtx1080ti_ib'
local kinds = { 'data_parallel', 'expert', 'best' }

--- The cluster with its links as `change` leaves them, and with other fields of its kind of device.
local function changed_cluster(change, fields)
  local spec = json.decode(model.cluster_json(model.cluster(('%sx%d'):format(family, devices)))).cluster
  for _, link in ipairs(spec.links) do change(link) end
  for name, kind in util.sorted_pairs(spec.device_types) do spec.device_types[name] = util.merged(kind, fields) end
  return model.cluster(spec)
end

local function as_it_is() end

local function scaled(factor)
  return function(link) link.bandwidth_bytes_per_s = factor * link.bandwidth_bytes_per_s end
end

local function no_wires(link) link.bandwidth_bytes_per_s, link.latency_s = 1e18, 0 end

--- Both CPUs of a machine as if they were one: their link is as wide as a device's.
local function no_qpi(link)
  if link.bandwidth_bytes_per_s < 10e9 then link.bandwidth_bytes_per_s = 12e9 end
end

local function narrow_network(link)
  if link.from == 'infiniband' or link.to == 'infiniband' then link.bandwidth_bytes_per_s = 1.2e9 end
end

--- Steps with data parallelism's all-reduces in two levels instead of one ring of all devices, by their bytes: within
--- a machine over its narrowest link, then a part of them between machines over the NIC.
local function two_levels(steps, graph)
  local bytes, qpi, card, inner, machines = 0, 6e9, 12e9, 8, devices / 8
  for op = 1, graph.operators do bytes = bytes + graph:operator(op).parameter_bytes end
  local flat_s = 2 * (devices - 1) / devices * bytes / qpi
  local nested_s = 2 * (inner - 1) / inner * bytes / qpi + 2 * (machines - 1) / machines * bytes / card
  return util.merged(steps, { data_parallel = steps.data_parallel - flat_s + nested_s })
end

local no_time = { cost = function() return 0 end }

--- Seconds by kind of strategy on a cluster. `given` as networks.simulator() takes it.
local function steps_of(search, cluster, given)
  local price, steps = networks.simulator(search, cluster, given), {}
  for _, kind in ipairs(kinds) do
    page.unless_stopped()
    steps[kind] = price(search[kind]).step_time_s
  end
  return steps
end

local function summed(a, b)
  local steps = {}
  for _, kind in ipairs(kinds) do steps[kind] = a[kind] + b[kind] end
  return steps
end

local function shifted(steps, seconds)
  return { data_parallel = steps.data_parallel + seconds, expert = steps.expert + seconds,
    best = steps.best + seconds }
end

--- The changed assumptions, and the steps by kind then: a list of { what, steps, note }.
local function assumptions()
  local search, cluster = networks.search('alexnet', devices), changed_cluster(as_it_is)
  local plain, free = steps_of(search, cluster), steps_of(search, changed_cluster(no_wires))
  local alone = steps_of(search, cluster, no_time)
  local list = { { 'as simulated', plain, 'reductions and copies overlap computation, links shared fairly' } }
  local function add(what, steps, note) list[#list + 1] = { what, steps, note } end
  add('computation alone, links free', free, 'what splitting computes')
  add('communication alone, computation free', alone, 'what it sends')
  add('nothing overlaps', summed(free, alone), 'the two above one after the other')
  add('a copy has its whole route to itself', steps_of(search, cluster, { rules = { queue = 'route' } }),
    "the cluster's own queue: copies between machines wait for each other")
  add('no QPI: CPUs joined at 12 GB/s', steps_of(search, changed_cluster(no_qpi)),
    'the ring of all devices crosses it at 6 GB/s')
  add('all links twice as wide', steps_of(search, changed_cluster(scaled(2))), 'as if sums took half the time')
  add('all links half as wide', steps_of(search, changed_cluster(scaled(0.5))), '')
  add('machines joined at 1.2 GB/s', steps_of(search, changed_cluster(narrow_network)), 'as by 10 Gbit/s Ethernet')
  add('rings within machines, then between', two_levels(plain, search.graph),
    "data parallelism's sum by formula: scatter, ring of shares, gather, one after the other")
  add('launches of 100 us', steps_of(search, changed_cluster(as_it_is, { launch_s = 100e-6 })),
    '5 us here; an interpreted framework takes longer')
  add('whole routes and launches of 100 us', steps_of(search, changed_cluster(as_it_is, { launch_s = 100e-6 }),
    { rules = { queue = 'route' } }), 'both together')
  add('a batch of 128 a device', steps_of(networks.search('alexnet', devices, 128 * devices), cluster),
    'the paper says 128: of all devices as read here')
  for _, ms in ipairs { 20, 50, 100 } do
    add(('%d ms more a step'):format(ms), shifted(plain, ms / 1000), 'whatever all strategies wait for, such as input')
  end
  return list, plain
end

local function add_fitted(rows, plain, claimed)
  local seconds = (plain.data_parallel - claimed * plain.best) / (claimed - 1)
  local steps = shifted(plain, seconds)
  local got = steps.data_parallel / steps.best
  rows:add { what = ('%.0f ms more a step'):format(1000 * seconds), claimed = claimed,
    literal = steps.data_parallel / steps.expert, ours = got,
    verdict = page.verdict { claimed = claimed, got = got, fitted = 'the milliseconds' } }
  return seconds
end

--- Whether the milliseconds that one cell gave explain the others of this cluster: those were not fitted.
local function add_held(rows, seconds)
  for _, p in ipairs { 4, 8, 16, 64 } do
    local cluster = model.cluster(('%sx%d'):format(family, p))
    local steps = shifted(steps_of(networks.search('alexnet', p), cluster), seconds)
    local claimed, got = networks.claimed.alexnet[family][p][3], steps.data_parallel / steps.best
    rows:add { what = ('the same number of ms more per step, p = %d'):format(p), claimed = claimed,
      literal = steps.data_parallel / steps.expert, ours = got,
      verdict = page.verdict { claimed = claimed, got = got } }
  end
end

return { name = 'alexnet', title = 'AlexNet over 32 GTX 1080 Ti: what its factor depends on',
  heads = { literal = 'expert', ours = 'PaSE' },
  about = "Steps of data parallelism over the expert's (paper: 0.96) and PaSE's (1.44), simulated with one "
    .. 'assumption changed at a time.',
  run = function(rows, settings)
    if settings.models and not settings.models.alexnet then return end
    local claimed = networks.claimed.alexnet[family][devices][3]
    local list, plain = assumptions()
    for _, about in ipairs(list) do
      local steps = about[2]
      rows:add { what = about[1], claimed = claimed, literal = steps.data_parallel / steps.expert,
        ours = steps.data_parallel / steps.best, verdict = { text = ('%.1f / %.1f / %.1f ms%s'):format(
          1000 * steps.data_parallel, 1000 * steps.expert, 1000 * steps.best,
          about[3] ~= '' and '; ' .. about[3] or '') } }
    end
    local seconds = add_fitted(rows, plain, claimed)
    add_held(rows, seconds)
    return ("The last column has the steps of data parallelism, expert and PaSE. PaSE's step of %.1f ms is %.0f images "
      .. 'a second; the %.0f ms that all strategies would have to wait in addition to the simulation make it %.0f.')
      :format(1000 * plain.best, 128 / plain.best, 1000 * seconds, 128 / (plain.best + seconds))
  end }
