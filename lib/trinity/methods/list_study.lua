-- What learned list schedulers are worth on networks of families that they were not trained on: each is held out in
-- turn. `trinity policy schedulers` prints it, and the manual's chapter "moves" has what it printed.

local core = require 'trinity.core'
local schedulers = require 'trinity.search.schedulers'
local training = require 'trinity.methods.list_training'
local move_study = require 'trinity.methods.move_study'
local move_training = require 'trinity.methods.move_training'
local util = require 'trinity.base.util'

local study = {}

--- What a training knows of every family, and on which clusters: all but those of the held-out one.
study.graphs = {
  cells = { 'nasnet_large:8', 'pnasnet_large:8' },
  recurrent = { 'gnmt:64', 'nmt:64', 'gnmt:16', 'nmt:256' },
  images = { 'inception_v3:64', 'hrnet_w48:8', 'resnet50:32', 'inception_v3:16', 'resnet101:16' },
  attention = { 'gpt2:4', 'transformer:16', 'bert_base:8' },
}
study.train_clusters, study.rounds, study.members = 'p100x2,p100x4,dgx1_v100,unlike', 200, 128

--- Heuristics that it is held against, `expert` and one device too.
study.heuristics = { 'single_device', 'contiguous', 'cpop', 'etf', 'fm', 'heft', 'm_etf', 'm_sct', 'm_topo', 'metis',
  'scotch', 'expert', 'max_load_dp' }

--- The graphs of all families but one, with commas; nil: of all.
function study.trained_on(left_out)
  local list = {}
  for _, family in ipairs(move_study.families) do
    if family.name ~= left_out then
      for _, graph in ipairs(study.graphs[family.name]) do list[#list + 1] = graph end
    end
  end
  return table.concat(list, ',')
end

local function weights_of(family, folder, say)
  local path = ('%s/%s-schedulers.safetensors'):format(folder, family.name)
  if util.exists(path) then return schedulers.load(path) end
  local scheduler, _, _, stopped = training.train({ graphs = study.trained_on(family.name),
    clusters = study.train_clusters, rounds = study.rounds, members = study.members, seed = 1 }, function(round, best)
    say(('%s: round %d of %d, %.4f'):format(family.name, round, study.rounds, best))
  end)
  if stopped then util.fail 'interrupted' end
  scheduler:save(path)
  return scheduler
end

-- Step time of a placement, infinite where it does not fit.
local function priced(problem, placement)
  local metrics = problem:evaluate(placement)
  return metrics.feasible and metrics.step_time_s or math.huge
end

local function row_of(case, family, scheduler)
  local problem = case.problem
  local best_s, times = training.best_of(problem, study.heuristics)
  local row = { label = case.label, family = family.name, best_s = best_s, heuristics = {} }
  for i, name in ipairs(study.heuristics) do row.heuristics[name] = times[i] end
  local start = core.clock_s()
  local placement, own_s = scheduler:construct(problem)
  row.seconds = core.clock_s() - start
  row.time_s, row.own_s = priced(problem, placement), own_s
  row.first_s = priced(problem, (scheduler:construct(problem, 1)))
  return row
end

--- Runs it: options { folder =, families = nil or set of names }. Adds rows { label, family, best_s of heuristics,
--- heuristics = step times by name, time_s, first_s of the first member, own_s, seconds } as they are done.
function study.run(options, say, rows)
  for _, family in ipairs(move_study.families) do
    if not options.families or options.families[family.name] then
      local scheduler = weights_of(family, options.folder, say)
      for _, entry in ipairs(family) do
        for _, case in ipairs((move_training.cases(entry[1], entry[2]))) do
          say(('%s: heuristics, then what is built'):format(case.label))
          local row = row_of(case, family, scheduler)
          if core.stop_requested() then util.fail 'interrupted' end -- a heuristic may have ended early
          rows[#rows + 1] = row
        end
      end
    end
  end
end

--- The heuristic that is the best on a row.
function study.best_name(row)
  for _, name in ipairs(study.heuristics) do
    if row.heuristics[name] == row.best_s then return name end
  end
end

--- Geometric mean of `value(row)` over the rows where it is not nil, its interval over rows, Wilcoxon's p, how many.
function study.summary(rows, value)
  local list = {}
  for _, row in ipairs(rows) do list[#list + 1] = value(row) end
  local mean, low, high, p = move_training.summary(list)
  return mean, low, high, p, #list
end

return study
