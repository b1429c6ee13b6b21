-- Which method wins under equal conditions: every method that learns, from nothing and inside Trinity's search, where
-- all have the same warm start before and the same annealing after. Equal placements, the same reward, seeds in pairs.

local methods = require 'trinity.methods'
local page = require 'studies.papers.page'
local paper = require 'studies.papers.trinity'
local rewards = require 'trinity.strategy.rewards'
local util = require 'trinity.base.util'

local policy_only = { warm_start = false, refine = false }

-- Methods that learn, and what they are given.
local learners = { { 'trinity', policy_only }, { 'hierarchical', {} }, { 'colocrl', {} }, { 'placeto', {} },
  { 'post', {} } }

local share = 0.25 -- of the budget, for what learns in the frame: Trinity's own

local function run(problem, name, options, budget, seed)
  return page.unless_stopped(methods[name](problem, util.merged(options, { evaluations = budget, seed = seed,
    quiet = true })))
end

--- A search in the frame: the best heuristic, then `learner` (nil: none) with its share, then annealing from the best.
local function framed(problem, learner, budget, seed)
  local best = run(problem, 'heuristics', {}, budget, seed)
  local left, updates = budget - best.evaluations, nil
  if learner then
    local found = run(problem, learner[1], learner[2], math.floor(share * budget), seed)
    left, updates = left - found.evaluations, found.updates
    if problem.better(found, best) then best = found end
  end
  local refined = run(problem, 'annealing', { starts = { best.placement } }, math.max(1, left), seed)
  return problem.better(refined, best) and refined or best, updates
end

--- Step times of a method on all problems and seeds, and the mean number of its updates.
local function measure(problems, settings, search)
  local steps, updates, count = {}, 0, 0
  for _, problem in ipairs(problems) do
    for i = 1, settings.seeds do
      local found, learned = search(problem, settings.seed + i - 1)
      steps[#steps + 1] = found.metrics.step_time_s / problem:bounds().step_time_s
      updates, count = updates + (learned or found.updates or 0), count + 1
    end
  end
  return steps, updates / count
end

local function problems_of(settings)
  local list = {}
  local cells = paper.cells(settings, 'gnmt', 'inception_v3,nmt,nasnet_large,pnasnet_large,gnmt', '2')
  for _, problem, _, cell in paper.rows(cells, rewards.step_time()) do
    if cell.cards == 2 then list[#list + 1] = problem end
  end
  return list
end

local function add(rows, settings, what, steps, updates, against)
  rows:add { what = updates == 0 and what .. ', untrained' or what, ours = page.runs(steps), seeds = settings.seeds,
    updates = updates and ('%.0f'):format(updates) or nil,
    verdict = against and { text = page.against(steps, against).text } or nil }
end

local function rival_rows(rows, settings)
  local problems, budget = problems_of(settings), settings.updates * paper.samples
  local annealing = measure(problems, settings, function(problem, seed)
    return run(problem, 'annealing', {}, budget, seed)
  end)
  add(rows, settings, 'from nothing: annealing', annealing)
  for _, learner in ipairs(learners) do
    local steps, updates = measure(problems, settings, function(problem, seed)
      return run(problem, learner[1], learner[2], budget, seed)
    end)
    add(rows, settings, ('from nothing: %s'):format(learner[1]), steps, updates, annealing)
  end
  local plain = measure(problems, settings, function(problem, seed) return framed(problem, nil, budget, seed) end)
  add(rows, settings, 'in the frame: no learner', plain)
  for _, learner in ipairs(learners) do
    local steps, updates = measure(problems, settings, function(problem, seed)
      return framed(problem, learner, budget, seed)
    end)
    add(rows, settings, ('in the frame: %s'):format(learner[1]), steps, updates, plain)
  end
end

return { name = 'rivals', title = 'Who wins under equal rules', learns = true, run = rival_rows,
  quick = 'in layers on two GPUs, GNMT where --models names none', heads = { ours = 'step over bound' },
  about = 'Step time over the lower bound, medians over networks and seeds, 20 placements per update of the budget. '
    .. 'From nothing: each by itself, compared with annealing. In the frame: all with the same warm start before, a '
    .. 'quarter of the budget, and the same annealing from the best after, compared with the frame without a learner. '
    .. 'Negative is faster.' }
