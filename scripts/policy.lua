#!/usr/bin/env trinity
-- What a trained ranker of moves is, and what it is worth: method trinity with it beside other searches that begin from
-- the same placement, on a list of graphs and clusters.

local trinity = require 'trinity'
local training = require 'trinity.learn.move_training'
local util = require 'trinity.base.util'

local options = trinity.options {
  'Says what a ranker of moves was trained on, and holds it against searches without one.',
  what = { default = {}, position = true, help = 'show, and the file of weights: those that come with trinity' },
  graphs = { default = '', help = "MODEL, MODEL:BATCH or MODEL:BATCH:GRANULARITY, with commas; '': no searches" },
  clusters = { default = 'p100x4', help = 'with commas' },
  evaluations = { default = 1000, help = 'placements that each search may simulate', min = 2, integer = true },
  seconds = { default = 0, help = 'instead of evaluations: seconds of each search', min = 0 },
  seeds = { default = 5, help = 'searches of each', min = 1, integer = true },
  against = { default = 'annealing,best,local_search', help = 'methods with commas' },
  json = { default = false, help = 'JSON on standard output and nothing else' },
}
local action, file = options.what[1] or 'show', options.what[2] or trinity.rankers.shipped
if action ~= 'show' or options.what[3] then
  util.fail_usage("trinity policy: expected show FILE, got '%s'", table.concat(options.what, ' '))
end
local ranker = trinity.rankers.load(file)
local about = { file = file, weights = ranker.weights, hidden = ranker.hidden, notes = ranker.notes, rows = {} }
if not options.json then
  print(('%s: %d weights, hidden layers %s'):format(file, ranker.weights, table.concat(ranker.hidden, ', ')))
  for name, text in trinity.sorted_pairs(ranker.notes) do print(('%-12s %s'):format(name, text)) end
end

local others = util.words(options.against)
for _, name in ipairs(others) do
  if not trinity.methods.info(name) then util.fail_usage('option --against: no method %s', util.quoted(name)) end
end
local budget = options.seconds > 0 and { seconds = options.seconds, evaluations = 2 ^ 40 }
  or { evaluations = options.evaluations }
local cells, all, trained = {}, {}, ranker.notes.trained_on or ''
for _, case in ipairs((training.cases(options.graphs, options.clusters))) do
  local is_trained = trained:find(case.label, 1, true)
  local known, row = {}, { case.label .. (is_trained and ' (trained on)' or ''), case.starts[1].name }
  for i, other in ipairs(others) do
    local ratios, ranking = training.ratios(case, ranker, other, budget, options.seeds, known)
    all[i] = all[i] or {}
    all[i][#all[i] + 1] = (training.summary(ratios))
    row[i + 2] = ('%.3f'):format(all[i][#all[i]])
    about.rows[#about.rows + 1] = { case = case.label, against = other, ratios = ratios, ranking = ranking }
  end
  cells[#cells + 1] = row
end
if options.json then
  print(trinity.json.encode(about))
elseif #cells > 0 then
  local heads = { 'problem', 'start' }
  for i, other in ipairs(others) do heads[i + 2] = 'over ' .. other end
  print('\nstep time of trinity with it over that of another search from the same start, geometric mean of '
    .. options.seeds .. ' seeds\n')
  print(trinity.format_table(heads, cells))
  for i, other in ipairs(others) do
    local mean, low, high, p = training.summary(all[i])
    print(('over %s: %.3f, 95 %% of means %.3f to %.3f over %d problems, p %.3g (Wilcoxon)'):format(other, mean, low,
      high, #all[i], p))
  end
end
