-- The pages of the papers, by name: functions, so that only the modules of one page are read.

local function sections_of(paper, names)
  local list = {}
  for _, name in ipairs(names) do
    local made = require(('studies.papers.%s_%s'):format(paper, name))
    for _, section in ipairs(made.run and { made } or made.section and { made.section } or made) do
      list[#list + 1] = section
    end
  end
  return list
end

local pages = {}

function pages.trinity()
  local models = {}
  for _, row in ipairs(require('studies.papers.trinity').table4) do
    if models[#models] ~= row.model then models[#models + 1] = row.model end
  end
  return { name = 'trinity', title = 'Trinity', models = models, quick = { updates = 3, seeds = 1 },
    sections = sections_of('trinity', { 'sizes', 'table4', 'table5', 'policy', 'scratch', 'stages', 'rivals',
      'measured' }),
    source = 'Algorithms 2022, 15(4), 108: PPO over a partition and a schedule network. The paper measured on a '
      .. 'machine with four P100; here steps are simulated on p100_paper, whose dispatch was fitted (see table4).' }
end

function pages.tapp()
  return { name = 'tapp', title = 'TAPP', seeds = 5, quick = { updates = 100, seeds = 2 },
    models = require('studies.papers.tapp_baselines').models,
    sections = sections_of('tapp', { 'claims', 'learning', 'table' }),
    source = 'Appl. Sci. 2021, 11(11), 4785: layers into groups, groups onto nodes of a pipeline, both by policy '
      .. 'gradient. The paper states two averages and neither networks nor machines; here steps are simulated on '
      .. 'unequal machines of our choice.' }
end

function pages.daso()
  return { name = 'daso', title = 'DASO',
    sections = sections_of('daso', { 'claims', 'map', 'overlap', 'parity' }),
    source = 'Journal of Big Data 9:14, 2022: replicas that synchronise less between nodes. The paper measured on '
      .. 'JUWELS Booster, four A100 a\nnode, against Horovod: up to 34 % less training time, up to 25 % for ResNet-50. '
      .. 'Times of claims, map and skips are simulated;\noverlap and parity are trainings on this machine.' }
end

function pages.pase()
  return { name = 'pase', title = 'PaSE', models = require('studies.papers.pase_networks').names,
    sections = sections_of('pase', { 'times', 'strategies', 'speedups', 'alexnet' }),
    source = 'Elango, IPDPS 2021: the best split of every layer over p devices, exactly, under a cost model. The paper '
      .. 'measured on GTX 1080 Ti and RTX 2080 Ti, eight a machine, InfiniBand between; here steps are simulated on '
      .. 'gtx1080ti_ib and rtx2080ti_ib, of which nothing was fitted to the paper.' }
end

return pages
