-- Figure 6 of the PaSE paper: steps over data parallelism, by the expert, FlexFlow and PaSE, judged by the event
-- simulator and by PaSE's costs.

local dist = require 'trinity.dist'
local flexflow = require 'studies.papers.pase_flexflow'
local model = require 'trinity.graph.model'
local networks = require 'studies.papers.pase_networks'
local page = require 'studies.papers.page'
local parallel_map = require 'trinity.parallel'
local plot = require 'trinity.report.plot'
local util = require 'trinity.base.util'

-- Proposals of FlexFlow's chain. A state of InceptionV3 over 32 devices is 33,000 operators, half a second.
local proposals = { alexnet = 500, rnnlm = 500, inception_v3 = 30, transformer = 30 }
local quick_proposals = { alexnet = 100, rnnlm = 100, inception_v3 = 5, transformer = 5 }

local function cells_of(settings)
  local cells = {}
  for name, p in networks.cells(settings) do
    for c, cluster in ipairs(networks.clusters) do
      if c == 1 or not settings.quick then cells[#cells + 1] = { name = name, p = p, cluster = cluster } end
    end
  end
  return cells
end

--- One network on one cluster: per kind { step_time_s =, cost =, fits = }; of FlexFlow's chain a list over seeds.
local function study(cell, settings)
  local search = networks.search(cell.name, cell.p)
  local cluster = model.cluster(('%sx%d'):format(cell.cluster, cell.p))
  local price, result = networks.simulator(search, cluster), {}
  local function judged(found)
    local metrics = price(found)
    return { step_time_s = metrics.step_time_s, cost = found.cost, fits = metrics.feasible }
  end
  for _, kind in ipairs { 'data_parallel', 'expert', 'best' } do result[kind] = judged(search[kind]) end
  if networks.claimed[cell.name][cell.cluster][cell.p][2] then
    local budget = (settings.quick and quick_proposals or proposals)[cell.name]
    result.flexflow = util.listed(settings.seeds, function(i)
      local found = flexflow(search, cluster, { proposals = budget, seed = settings.seed + i - 1 })
      return util.merged(judged(found), util.picked(found, { 'proposals', 'simulated', 'seconds' }))
    end)
    table.sort(result.flexflow, function(a, b) return a.step_time_s < b.step_time_s end)
  end
  return result
end

local function middle(list) return list[math.floor(#list / 2) + 1] end

local kinds = { { 'expert', 'expert', 1 }, { 'flexflow', 'FlexFlow', 2 }, { 'best', 'PaSE', 3 } }

local function add_kind(rows, cell, found, kind, claimed)
  local base, one = found.data_parallel, found[kind[1]]
  local seeds, by
  if kind[1] == 'flexflow' then
    seeds, one = #one, middle(one)
    by = ('%d proposals, %d simulated'):format(one.proposals, one.simulated)
  end
  if not one.fits then by = (by and by .. '; ' or '') .. 'exceeds the memory of a device' end
  local factor = base.step_time_s / one.step_time_s
  rows:add { what = ('%s, %s, p = %d: %s'):format(cell.name, cell.cluster:match '^[^_]*', cell.p, kind[2]),
    claimed = claimed, literal = base.cost / one.cost, ours = factor, seeds = seeds,
    verdict = page.verdict { claimed = claimed, got = factor, by = by } }
  return factor
end

local function add_cell(rows, cell, found, figure)
  local claimed, factors = networks.claimed[cell.name][cell.cluster][cell.p], {}
  for _, kind in ipairs(kinds) do
    if found[kind[1]] then
      factors[kind[1]] = add_kind(rows, cell, found, kind, claimed[kind[3]])
      figure[#figure + 1] = { cell.name, cell.cluster, cell.p, kind[2], factors[kind[1]], claimed[kind[3]] }
    end
  end
  if factors.flexflow then
    rows:add { what = ('%s, %s, p = %d: FlexFlow over PaSE'):format(cell.name, cell.cluster:match '^[^_]*', cell.p),
      claimed = claimed[2] / claimed[3], literal = found.best.cost / middle(found.flexflow).cost,
      ours = factors.flexflow / factors.best, verdict = page.order(claimed[2], claimed[3], factors.flexflow,
        factors.best) }
  end
end

local function draw(path, cells, all)
  local figure = { groups = {}, series = {}, values = {}, marks = {}, mark = 'in the paper',
    y = 'times as fast as data parallelism' }
  for k, kind in ipairs(kinds) do figure.series[k] = kind[2] end
  for c, cell in ipairs(cells) do
    figure.groups[c] = ('%s %d, %s'):format(cell.name, cell.p, cell.cluster)
    figure.values[c], figure.marks[c] = {}, {}
    for k, kind in ipairs(kinds) do
      local one = all[c][kind[1]]
      if one and #one > 0 then one = middle(one) end
      figure.values[c][k] = one and all[c].data_parallel.step_time_s / one.step_time_s or ''
      figure.marks[c][k] = networks.claimed[cell.name][cell.cluster][cell.p][kind[3]] or nil
    end
  end
  return plot.bars(path, figure)
end

return { name = 'figure6', title = 'Figure 6: steps over data parallelism', quick = networks.quick,
  heads = { literal = "by PaSE's costs", ours = 'simulated' },
  about = 'Measured by the paper with Mesh-TensorFlow, here simulated (links shared fairly) and by the costs of '
    .. "PaSE's code. FlexFlow's chain minimises the simulated step, from the expert's strategy, with a budget of its "
    .. "own (proposals) far below the paper's 250,000; medians over seeds.",
  run = function(rows, settings)
    local cells, figure = cells_of(settings), {}
    local all = parallel_map(cells, function(cell) return study(cell, settings) end,
      { quiet = settings.json, workers = dist.current() and 1 or nil })
    for c, cell in ipairs(cells) do add_cell(rows, cell, all[c], figure) end
    if not settings.output or #cells == 0 then return end
    local path = settings.output .. '/figure6'
    plot.csv(path .. '.csv', { 'network', 'cluster', 'devices', 'strategy', 'speed_up', 'paper' }, figure)
    local picture, reason = draw(path, cells, all)
    return ('Data in %s.csv%s.'):format(path, picture and ', picture in .svg and .png' or '; no picture: ' .. reason)
  end }
