#!/usr/bin/env trinity
-- Every method on every profile of a folder (PipeDream's graph.txt files), forward and backward pass with the measured
-- times: simulated step times over the lower bound, the best of each row marked, and the ranks.

local progress = require 'trinity.base.progress'
local trinity = require 'trinity'
local cli = require 'trinity.command.cli'
local model = require 'trinity.graph.model'
local shared = require 'studies.shared'
local text = require 'trinity.base.text'
local util = require 'trinity.base.util'

local options = trinity.options {
  'Compares placement methods on all profiles of a folder.',
  folder = { default = '', help = "a folder with files NAME.graph.txt; '': ../shared/data" },
  cluster = { default = 'p100', help = 'a cluster; a name without a count is used with each count of --devices' },
  devices = { default = '2,4', help = 'counts of --cluster' },
  methods = { default = 'single_device,contiguous,expert,metis,scotch,fm,heft,etf,m_topo,m_etf,'
    .. 'random,mcmc,annealing,local_search,best', help = 'methods with commas' },
  evaluations = { default = 1000, help = 'placements that each may simulate', min = 1, integer = true },
  seconds = { default = 0, help = 'wall-clock limit of each run in place of --evaluations; 0: none', min = 0 },
  seeds = { default = 3, help = 'runs of every stochastic method', min = 1, integer = true },
  only = { default = '', help = "one graph of the folder; '': all" },
}

local names = util.words(options.methods)
local folder = shared(options.folder, 'pipedream')

local function graphs()
  local list = {}
  for _, file in ipairs(trinity.files.list(folder)) do
    local name = file:match '^(.*)%.graph%.txt$'
    if name and (options.only == '' or options.only == name) then list[#list + 1] = name end
  end
  if #list == 0 then error(('no profile NAME.graph.txt in %s'):format(folder), 0) end
  return list
end

--- The cluster with its counts.
local function clusters()
  if model.counted(options.cluster, 1) == options.cluster then return { options.cluster } end
  return util.map(util.numbers('devices', options.devices, 1, 4096, true), function(count)
    return model.counted(options.cluster, count)
  end)
end

--- The middle of a row's step times over the lower bound; nothing where no run fits.
local function over_bound(row, bound_s)
  local times = {}
  for _, found in ipairs(row.runs) do
    if found.metrics.feasible then times[#times + 1] = found.metrics.step_time_s / bound_s end
  end
  table.sort(times)
  return times[math.floor((#times + 1) / 2)]
end

local head, rows, ranks = { 'graph', 'devices', 'bound' }, {}, {}
for i, name in ipairs(names) do
  head[i + 3] = name
  ranks[name] = 0
end
local listed, stopped = graphs(), false
for _, name in ipairs(listed) do
  if stopped then break end
  local graph = trinity.model(('%s/%s.graph.txt'):format(folder, name))
  for _, name_of_cluster in ipairs(clusters()) do
    local cluster = trinity.cluster(name_of_cluster)
    local problem = trinity.problem { graph = graph, cluster = cluster }
    local comparison = trinity.compare(problem, names, { seeds = options.seeds, quiet = true,
      evaluations = options.seconds == 0 and options.evaluations or nil,
      seconds = options.seconds > 0 and options.seconds or nil })
    stopped = comparison.stopped
    if stopped then break end
    local cells, best = {}, math.huge
    for i, row in ipairs(comparison.rows) do
      cells[i] = over_bound(row, problem:bounds().step_time_s)
      best = math.min(best, cells[i] or math.huge)
    end
    local texts = { name, tostring(#cluster.devices), text.seconds(problem:bounds().step_time_s) }
    for i = 1, #names do
      texts[i + 3] = cells[i] and ('%.3f%s'):format(cells[i], cells[i] == best and '*' or '') or 'OOM'
      for j = 1, #names do
        if (cells[j] or math.huge) < (cells[i] or math.huge) then ranks[names[i]] = ranks[names[i]] + 1 end
      end
    end
    rows[#rows + 1] = texts
    progress.note(('%s on %d devices: best %.3f times the bound'):format(name, #cluster.devices, best))
  end
end

if stopped then
  if #rows > 0 then print(trinity.system.format_table(head, rows)) end
  cli.leave_stopped(('%d of %d rows'):format(#rows, #listed * #clusters()))
end
local order = { 'mean rank', '', '' }
for i, name in ipairs(names) do order[i + 3] = ('%.1f'):format(ranks[name] / #rows + 1) end
rows[#rows + 1] = order
print(trinity.system.format_table(head, rows))
print(('\nsimulated step time over the lower bound, median of seeds 1 to %d, at most %s; '
  .. '* best of the row; OOM does not fit'):format(options.seeds, options.seconds > 0
  and ('%g s'):format(options.seconds) or ('%d evaluations'):format(options.evaluations)))
print(('made by: trinity study placement %s'):format(cli.words()))
