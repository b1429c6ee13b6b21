-- Shared by the sections on table 4, table 5 and figures 6 to 8 of the Trinity paper: the searches of every cell, run
-- once. Step times, traffic and memory of one GPU, the expert, Hierarchical, Trinity as the paper sets it (preset
-- paper, but for the second layer of its schedule network: trinity_policy.lua), and Trinity as it works best
-- here, with its policy and without.

local methods = require 'trinity.methods'
local page = require 'studies.papers.page'
local paper = require 'studies.papers.trinity'
local rewards = require 'trinity.strategy.rewards'
local util = require 'trinity.base.util'

local cells = {}

local found = {}

--- The runs of a method over the settings' seeds: a list of strategies.
local function runs_of(problem, method, options, seeds, first)
  return util.listed(seeds, function(i)
    return page.unless_stopped(methods[method](problem, util.merged(options, { seed = first + i - 1, quiet = true })))
  end)
end

--- The searches of one cell: lists of strategies by name. literal has one seed where it takes minutes.
local function search(problem, settings)
  local budget = { evaluations = settings.updates * paper.samples }
  local own = util.merged(budget, { samples = paper.samples })
  local seeds, seed = settings.seeds, settings.seed
  return { single = runs_of(problem, 'single_device', {}, 1, seed), expert = runs_of(problem, 'expert', {}, 1, seed),
    hierarchical = runs_of(problem, 'hierarchical', own, seeds, seed),
    hierarchical_literal = not settings.quick and runs_of(problem, 'hierarchical',
      util.merged(own, { preset = 'paper' }), 1, seed) or nil,
    literal = runs_of(problem, 'trinity', util.merged(own, { preset = 'paper', layers = 1 }), 1, seed),
    policy = runs_of(problem, 'trinity', util.merged(own, { warm_start = false, refine = false }), seeds, seed),
    trinity = runs_of(problem, 'trinity', util.merged(own, { policy = true, rank = false }), seeds, seed),
    best = runs_of(problem, 'best', budget, seeds, seed) }
end

--- Calls use(label, row, cell, runs, problem) for every cell of table 4 that the settings have. `quick` takes layers
--- for operators and two networks.
function cells.each(settings, use)
  for label, problem, row, cell in paper.rows(paper.cells(settings, 'inception_v3,gnmt'), rewards.mdpe()) do
    if not found[label] then found[label] = { runs = search(problem, settings), problem = problem } end
    use(label, row, cell, found[label].runs, found[label].problem)
  end
end

--- Medians of a metric over runs, or 'OOM' where none fits.
function cells.values(runs, field, unit)
  local list = {}
  for _, run in ipairs(runs) do
    if run.metrics.feasible then list[#list + 1] = run.metrics[field] / (unit or 1) end
  end
  return list
end

--- How often the policies of runs were updated, as a text.
function cells.updates(...)
  local parts = {}
  for _, runs in ipairs { ... } do parts[#parts + 1] = ('%d'):format(util.median(util.map(runs, function(run)
    return run.updates or 0
  end))) end
  return table.concat(parts, ' / ')
end

return cells
