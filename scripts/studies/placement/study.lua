#!/usr/bin/env trinity
-- Every method on every problem: simulated step times over the lower bound, the best of each row marked, and the ranks.
-- Problems are the profiles of a folder (PipeDream's graph.txt files), or the networks and GPUs of the Trinity paper.
-- With --seconds all methods have equal time; what depends on the clock depends on the machine and its load: compare
-- figures of one run only.

local progress = require 'trinity.base.progress'
local trinity = require 'trinity'
local ending = require 'studies.ending'
local model = require 'trinity.graph.model'
local paper = require 'studies.papers.trinity'
local plot = require 'trinity.report.plot'
local shared = require 'studies.shared'
local text = require 'trinity.base.text'
local util = require 'trinity.base.util'

local options = trinity.options {
  'Compares placement methods on all profiles of a folder, or on the networks of the Trinity paper.',
  folder = { default = '', help = "a folder with files NAME.graph.txt; '': ../shared/data; 'paper': the paper's "
    .. 'networks' },
  cluster = { default = '', help = "a cluster; a name without a count is used with each count of --devices; '': p100, "
    .. "of the paper p100_paper" },
  devices = { default = '2,4', help = 'counts of --cluster' },
  granularity = paper.granularity,
  methods = { default = 'single_device,contiguous,expert,metis,scotch,fm,heft,etf,m_topo,m_etf,'
    .. 'random,mcmc,annealing,local_search,best', help = 'methods with commas' },
  evaluations = { default = 1000, help = 'placements that each may simulate', min = 1, integer = true },
  seconds = { default = 0, help = 'wall-clock limit of each run in place of --evaluations; 0: none', min = 0 },
  seeds = { default = 3, help = 'runs of every stochastic method', min = 1, integer = true },
  only = { default = '', help = "one graph of the folder, models of the paper with commas; '': all" },
  csv = { default = '', writes = '', help = 'a file for all runs' },
}

local names = util.words(options.methods)

-- Calls visit(label, problem) for every profile on every cluster, until it returns true.
local function each_profile(visit)
  local folder, found = shared(options.folder, 'pipedream'), false
  local name_of = options.cluster ~= '' and options.cluster or 'p100'
  local clusters = { name_of }
  if model.counted(name_of, 1) ~= name_of then
    clusters = util.map(util.numbers('devices', options.devices, 1, 4096, true), function(count)
      return model.counted(name_of, count)
    end)
  end
  for _, file in ipairs(trinity.files.list(folder)) do
    local name = file:match '^(.*)%.graph%.txt$'
    if name and (options.only == '' or options.only == name) then
      local graph = trinity.model(('%s/%s'):format(folder, file))
      for _, cluster in ipairs(clusters) do
        found = true
        if visit(name, trinity.problem { graph = graph, cluster = trinity.cluster(cluster) }) then return end
      end
    end
  end
  if not found then error(('no profile NAME.graph.txt in %s'):format(folder), 0) end
end

-- The same for the cells of the paper's table 4.
local function each_cell(visit)
  for label, problem in paper.rows { only = options.only, cards = options.devices, granularity = options.granularity,
    cluster = options.cluster ~= '' and options.cluster or 'p100_paper' } do
    if visit(label:match '^(.*) x%d+$', problem) then return end
  end
end

local head, rows, ranks, cells, stopped = { 'graph', 'devices', 'bound' }, {}, {}, {}, false
for i, name in ipairs(names) do head[i + 3], ranks[name] = name, 0 end

local each = options.folder == 'paper' and each_cell or each_profile
each(function(label, problem)
  local comparison = trinity.compare(problem, names, { seeds = options.seeds, quiet = true,
    evaluations = options.seconds == 0 and options.evaluations or nil,
    seconds = options.seconds > 0 and options.seconds or nil })
  stopped = comparison.stopped
  if stopped then return true end
  local bound_s, over, best = problem:bounds().step_time_s, {}, math.huge
  for i, row in ipairs(comparison.rows) do
    local times = {}
    for _, found in ipairs(row.runs) do
      local m = found.metrics
      if m.feasible then times[#times + 1] = m.step_time_s / bound_s end
      cells[#cells + 1] = { label, #problem.cluster.devices, row.method, found.seed or '', m.step_time_s, bound_s,
        tostring(m.feasible), found.evaluations or '', found.seconds or '' }
    end
    table.sort(times)
    over[i] = times[math.floor((#times + 1) / 2)] or math.huge -- where no run fits
    best = math.min(best, over[i])
  end
  local row = { label, tostring(#problem.cluster.devices), text.seconds(bound_s) }
  for i, name in ipairs(names) do
    row[i + 3] = over[i] < math.huge and ('%.3f%s'):format(over[i], over[i] == best and '*' or '') or 'OOM'
    for j = 1, #names do ranks[name] = ranks[name] + (over[j] < over[i] and 1 or 0) end
  end
  rows[#rows + 1] = row
  progress.note(('%s on %d devices: best %.3f times the bound'):format(label, #problem.cluster.devices, best))
end)

if stopped then
  if #rows > 0 then print(trinity.system.format_table(head, rows)) end
  ending.leave_stopped(('%d rows'):format(#rows))
end
rows[#rows + 1] = util.joined({ 'mean rank', '', '' }, util.map(names, function(name)
  return ('%.1f'):format(ranks[name] / #rows + 1)
end))
print(trinity.system.format_table(head, rows))
if options.csv ~= '' then
  plot.csv(options.csv, { 'graph', 'devices', 'method', 'seed', 'step_time_s', 'lower_bound_s', 'feasible',
    'evaluations', 'seconds' }, cells)
end
print(('\nsimulated step time over the lower bound, median of seeds 1 to %d, at most %s; '
  .. '* best of the row; OOM does not fit'):format(options.seeds, options.seconds > 0
  and ('%g s'):format(options.seconds) or ('%d evaluations'):format(options.evaluations)))
print(('made by: trinity study placement %s'):format(ending.words()))
