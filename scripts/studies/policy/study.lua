#!/usr/bin/env trinity
-- The gain of a trained ranker of moves: method trinity with it compared with other searches from the
-- same placement, on a list of graphs and clusters (show), or on families of networks that it was not trained on,
-- each held out in turn (study). Whether a policy of placements learns from nothing where the optimum is known
-- (optima). How large the fronts of time and memory are that a ranked search finds on such families, its ranker with
-- or without memory features (front). What searches find by executed steps on two cores (executed).

local trinity = require 'trinity'
local ending = require 'studies.ending'
local comparison = require 'studies.policy.comparison'
local executed = require 'studies.policy.executed'
local known_optima = require 'studies.policy.known_optima'
local fronts = require 'studies.policy.move_fronts'
local study = require 'studies.policy.move_study'
local progress = require 'trinity.base.progress'
local search = require 'trinity.search'
local util = require 'trinity.base.util'

local options = trinity.options {
  'Says what a ranker of moves was trained on, and holds it against searches without one.',
  what = { default = {}, position = true,
    help = "show, and a file of weights (default: method trinity's); study; optima; front, and other weights; "
      .. 'executed' },
  graphs = { default = '', help = "MODEL or MODEL:BATCH, with commas ('': no searches); MODEL@tensorflow: "
    .. "in TensorFlow's operations" },
  clusters = { default = 'p100x4', help = 'with commas' },
  evaluations = { default = '1000', help = 'placements that each search may simulate; of a study with commas' },
  seconds = { default = 0, help = 'time limit in seconds instead of evaluations: of a search, or of a policy in optima',
    min = 0 },
  seeds = { default = 5, help = 'searches of each', min = 1, integer = true },
  families = { default = '', help = "of a study, with commas; '': all" },
  variants = { default = false, help = 'a study with untrained weights, a linear score and one made by hand, too' },
  trainings = { default = false, help = 'a study with weights that imitation, REINFORCE and PPO alone trained, too' },
  memory_features = { default = false, help = 'front: also with weights trained by rewards of time and memory, with '
    .. 'and without memory features' },
  folder = { default = 'runs/policy', help = 'of a study: trained weights, which it makes where they are not there' },
  training_seed = { default = 1, help = 'of a study and a front: seed of the trainings', min = 0, integer = true },
  against = { default = 'annealing,best,local_search', help = 'methods with commas' },
  units = { default = '100,300,1000', help = 'of optima, with commas' },
  samples = { default = 6000, help = 'optima: placements that a policy may sample', min = 20, integer = true },
  networks = { default = '', help = "executed: of its networks those with these words in their names; '': all" },
  rounds = { default = 15, help = 'executed: interleaved rounds of everything that was found', min = 1,
    integer = true },
  steps = { default = 2, help = 'executed: steps of an execution, after one that is not counted', min = 1,
    integer = true },
  json = { default = false, help = 'JSON on standard output and nothing else' },
}
-- Policies are trained and compared on machines as their data sheets describe them.
require('trinity.graph.model').set_cluster_options { constants = 'data_sheet' }
local action, file = options.what[1] or 'show', options.what[2] or trinity.search.rankers.shipped
local actions = { show = true, study = true, optima = true, front = true, executed = true }
if not actions[action] or options.what[(action == 'show' or action == 'front') and 3 or 2] then
  util.fail_usage("trinity study policy: expected show FILE, study, optima, executed or front [FILE], got '%s'",
    table.concat(options.what, ' '))
end

local budgets = util.map(util.numbers('evaluations', options.evaluations, 2, nil, true), function(count)
  return { evaluations = count }
end)
if options.seconds > 0 then budgets = { { seconds = options.seconds, evaluations = search.unlimited } } end

local looks = progress.new('policy', options.json)

-- Says how far it is.
local function say(...)
  looks:update { text = (...):format(select(2, ...)) }
end

-- Runs the work, body(), which fills the rows of a document; keeps them in the run's folder, and prints the document as
-- JSON or calls print_rows(whether Ctrl-C ended the work).
local function show(document, noun, body, print_rows)
  local stopped, rows = false, document.rows
  trinity.system.stoppable(function(stop_requested)
    local ok, message = pcall(body)
    if ok then return end
    stopped = stop_requested() or tostring(message):match 'interrupted$' ~= nil
    if not stopped then error(message, 0) end
  end)
  looks:finish()
  trinity.run:result(action, { rows = rows }, ('trinity study policy %s: %d %s.'):format(action, #rows, noun))
  if options.json then print(trinity.files.json.encode(document)) else print_rows(stopped) end
  if stopped then ending.leave_stopped(('%d %s'):format(#rows, noun)) end
end

local function name_of(budget)
  return budget.seconds and ('%g s'):format(budget.seconds) or ('%d evaluations'):format(budget.evaluations)
end

local function family_set()
  local families, names = nil, util.map(study.families, function(family) return family.name end)
  local known = util.set(names)
  for _, name in ipairs(util.words(options.families)) do
    if not known[name] then
      util.fail_usage("option '--families': no family %s", util.unknown(name, names))
    end
    families = util.merged(families, { [name] = true })
  end
  return families
end

-- One line about ratios of the trained search over another one, or over a heuristic.
local function print_ratios(name, kind, list)
  if #list == 0 then return end
  local mean, low, high, p = comparison.summary(list)
  print(('trained over %-15s %-14s %2d rows: %.3f, 95 %% %.3f to %.3f, p %.2g; worst row %.3f'):format(name,
    kind .. ',', #list, mean, low, high, p, math.max(unpack(list))))
end

-- Ratios of the trained search over every heuristic: lists by name.
local function over_heuristics(b, rows)
  local lists = {}
  for _, row in ipairs(rows) do
    for i, heuristic in ipairs(row.heuristics) do
      for _, name in ipairs { heuristic.name, i == 1 and 'best heuristic' or nil } do
        lists[name] = lists[name] or {}
        table.insert(lists[name], study.mean_s(row, b, 'trained') / heuristic.step_time_s)
      end
    end
  end
  return lists
end

-- A study's rows under budget number b.
local function print_budget(b, rows, all)
  local with, names = {}, {}
  for _, name in ipairs(all) do if rows[1].times[b][name] then names[#names + 1] = name end end
  for _, row in ipairs(rows) do if study.has_headroom(row) then with[#with + 1] = row end end
  local heads = { 'held out', 'best heuristic', 'best known' }
  for _, name in ipairs(names) do if name ~= 'annealing' then heads[#heads + 1] = name end end
  print(('\n%s, %d seeds: step time over annealing from the same start\n'):format(name_of(budgets[b]), options.seeds))
  print(trinity.system.format_table(heads, util.map(rows, function(row)
    local annealing_s = study.mean_s(row, b, 'annealing')
    local cells = { row.label, ('%.3f'):format(row.heuristics[1].step_time_s / annealing_s),
      ('%.3f'):format(row.best_s / annealing_s) }
    for _, name in ipairs(names) do
      if name ~= 'annealing' then cells[#cells + 1] = ('%.3f'):format(study.ratio(row, b, name, 'annealing')) end
    end
    return cells
  end)))
  for _, name in ipairs(names) do
    local function ratio(row) return study.ratio(row, b, 'trained', name) end
    if name ~= 'trained' then
      print_ratios(name, 'all', util.map(rows, ratio))
      print_ratios(name, 'with headroom', util.map(with, ratio))
    end
  end
  for name, list in util.sorted_pairs(over_heuristics(b, rows)) do print_ratios(name, 'all', list) end
end

local function show_study()
  local document = { rows = {} }
  local rows = document.rows
  show(document, 'rows', function()
    document.searches = study.run({ folder = options.folder, training_seed = options.training_seed, budgets = budgets,
      seeds = options.seeds, variants = options.variants, trainings = options.trainings, families = family_set() }, say,
      rows)
  end, function(stopped)
    if stopped then
      for _, row in ipairs(rows) do
        print(('%s: trained over annealing %.3f'):format(row.label, study.ratio(row, 1, 'trained', 'annealing')))
      end
      return
    end
    for b = 1, #budgets do print_budget(b, rows, document.searches) end
    print '\nheadroom: the best heuristic is over 3 % above the best known step; plain annealing starts on one device;'
    print 'oracle: simulates every candidate move outside the budget; p: signed ranks over rows (Wilcoxon)'
    print(('made by: trinity study policy %s'):format(ending.words()))
  end)
end

-- Numbers of seeds as a cell.
local function cell(list, format)
  return table.concat(util.map(list, function(x) return x and format:format(x) or 'never' end), ', ')
end

-- Results of a policy on a problem whose optimum is known, one per seed.
local function row_of_optimum(kind, units, enough)
  local case, seconds = known_optima.case(kind, units), options.seconds > 0 and options.seconds or nil
  local row = { kind = kind, units = case.problem.graph.units, etf = known_optima.constructed(case, 'etf'),
    learned = {}, samples = {}, frozen = {} }
  for seed = 1, options.seeds do
    say('%s of %d units, seed %d of %d', kind, row.units, seed, options.seeds)
    row.learned[seed], row.samples[seed] = known_optima.learn(case, seed, options.samples, enough, false,
      seconds)
    row.samples[seed] = row.samples[seed] or false
    row.frozen[seed] = known_optima.learn(case, seed, options.samples, enough, true, seconds)
  end
  return row
end

local function show_optima()
  local enough, rows, units = 0.95, {}, util.numbers('units', options.units, 8, nil, true)
  show({ rows = rows, enough = enough }, 'rows', function()
    for _, kind in ipairs(known_optima.kinds) do
      for _, count in ipairs(units) do rows[#rows + 1] = row_of_optimum(kind, count, enough) end
    end
  end, function()
    print(('share of the optimum\'s gain over one device, best of at most %d placements, a seed each\n'):format(
      options.samples))
    print(trinity.system.format_table({ 'problem', 'units', 'ETF', 'never updated', 'learned', 'placements to 0.95' },
      util.map(rows, function(row)
        return { row.kind, ('%d'):format(row.units), ('%.2f'):format(row.etf), cell(row.frozen, '%.2f'),
          cell(row.learned, '%.2f'), cell(row.samples, '%d') }
      end)))
  end)
end

-- The searches of fronts: { name, method, rank }. given: the ranker of a file, or nil.
local function front_searches(held_out, given)
  local list = { { 'annealing', 'annealing' }, { 'best', 'best' } }
  for _, entry in ipairs(held_out) do list[#list + 1] = { entry[1], 'trinity', entry[2] } end
  if given then list[#list + 1] = { 'file', 'trinity', given } end
  return list
end

local function print_fronts(rows, names)
  local function ratios(name, other)
    return util.map(rows, function(row) return row.hypervolumes[name] / row.hypervolumes[other] end)
  end
  local function summarise(name, other)
    local list = ratios(name, other)
    local mean, low, high, p = comparison.summary(list)
    print(('%-8s over %s: %.4f, 95 %% %.4f to %.4f, p %.3g; least %.3f'):format(name, other, mean, low, high, p,
      math.min(unpack(list))))
  end
  local heads = { 'held out', 'hypervolume of annealing' }
  local cells = util.map(rows, function(row) return { row.case, ('%.4f'):format(row.hypervolumes.annealing) } end)
  for n = 2, #names do
    heads[n + 1] = names[n] .. ' over it'
    for r, ratio in ipairs(ratios(names[n], 'annealing')) do cells[r][n + 1] = ('%.3f'):format(ratio) end
  end
  print(trinity.system.format_table(heads, cells))
  for n = 2, #names do summarise(names[n], 'annealing') end
  if options.memory_features then
    for _, other in ipairs { 'without memory features', 'ranked', 'best' } do
      summarise('with memory features', other)
    end
  end
end

local function show_front()
  local rows, names = {}, {}
  local given = options.what[2] and trinity.search.rankers.load(file) or nil -- before anything is trained
  local function add(case, held_out)
    local searches, sums = front_searches(held_out, given), {}
    for i, entry in ipairs(searches) do names[i], sums[entry[1]] = entry[1], 0 end
    for seed = 1, options.seeds do
      say('%s: seed %d of %d', case.label, seed, options.seeds)
      for _, entry in ipairs(searches) do
        sums[entry[1]] = sums[entry[1]] + fronts.run(entry[2], case, budgets[1], seed, entry[3]) / options.seeds
      end
    end
    rows[#rows + 1] = { case = case.label, hypervolumes = sums }
  end
  show({ rows = rows }, 'rows', function()
    study.each_case(options, family_set(), options.memory_features and study.of_fronts or {},
      function(text) say('%s', text) end, add)
  end, function()
    if #rows > 0 then print_fronts(rows, names) end
  end)
end

local function show_executed()
  local rows, words = {}, util.words(options.networks)
  show({ rows = rows }, 'networks', function()
    for _, network in ipairs(executed.networks) do
      local chosen = #words == 0
      for _, word in ipairs(words) do chosen = chosen or network.text:find(word, 1, true) ~= nil end
      local function tell(...) say('%s: %s', network.text, (...):format(select(2, ...))) end
      if chosen then
        local ranker = study.ranker(network.family, options, say)
        rows[#rows + 1] = executed.row(network, ranker, { devices = { 'cpu:0', 'cpu:1' }, seed = 1,
          evaluations = budgets[1].evaluations, steps = options.steps, rounds = options.rounds }, tell)
      end
    end
  end, function()
    executed.print(rows)
    print(('made by: trinity study policy %s'):format(ending.words()))
  end)
end

local shown = { executed = show_executed, front = show_front, optima = show_optima, study = show_study }
if shown[action] then return shown[action]() end
local ranker = trinity.search.rankers.load(file)
local about = { file = file, weights = ranker.weights, hidden = ranker.hidden, notes = ranker.notes, rows = {} }
if not options.json then
  print(('%s: %d weights, hidden layers %s'):format(file, ranker.weights, table.concat(ranker.hidden, ', ')))
  for name, text in trinity.system.sorted_pairs(ranker.notes) do print(('%-12s %s'):format(name, text)) end
end

local others = util.words(options.against)
for _, name in ipairs(others) do
  if not trinity.methods.info(name) then util.fail_usage("option '--against': no method %s", util.quoted(name)) end
end
local budget = budgets[1]
local cells, all, trained = {}, {}, ranker.notes.trained_on or ''
local function add_case(case)
  local is_trained = trained:find(case.label, 1, true)
  local known, row = {}, { case.label .. (is_trained and ' (trained on)' or ''), case.starts[1].name }
  local found = {}
  for i, other in ipairs(others) do
    say('%s over %s', case.label, other)
    local ratios, ranking = comparison.ratios(case, ranker, other, budget, options.seeds, known)
    found[i] = { case = case.label, against = other, ratios = ratios, ranking = ranking }
  end
  for i, entry in ipairs(found) do
    all[i] = all[i] or {}
    table.insert(all[i], (comparison.summary(entry.ratios)))
    row[i + 2] = ('%.3f'):format(all[i][#all[i]])
    table.insert(about.rows, entry)
  end
  cells[#cells + 1] = row
end

show(about, 'rows', function()
  for _, case in ipairs((comparison.cases(options.graphs, options.clusters))) do add_case(case) end
end, function()
  if #cells == 0 then return end
  local heads = { 'problem', 'start' }
  for i, other in ipairs(others) do heads[i + 2] = 'over ' .. other end
  print('\nstep time of trinity with it over another search from the same start, geometric mean of '
    .. options.seeds .. ' seeds\n')
  print(trinity.system.format_table(heads, cells))
  for i, other in ipairs(#cells > 1 and others or {}) do
    local mean, low, high, p = comparison.summary(all[i])
    print(('over %s: %.3f, 95 %% of means %.3f to %.3f over %d problems, p %.3g (Wilcoxon)'):format(other, mean, low,
      high, #all[i], p))
  end
end)
