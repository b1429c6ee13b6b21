-- The contribution of TAPP's policy: runs with and without its updates, and without it, in pairs by case and seed.

local baselines = require 'studies.papers.tapp_baselines'
local page = require 'studies.papers.page'
local studies = require 'studies.papers.tapp_studies'
local util = require 'trinity.base.util'

local comparisons = {
  { 'trained', 'frozen', 'updates, where the policy samples all' },
  { 'default', 'frozen_moves', 'updates, where moves follow' },
  { 'default', 'moves', 'the policy, compared with moves alone' },
  { 'default', 'trained', 'the moves' },
}

-- Steps of two methods over cases and seeds, as shares of the better median of the case, and who is ahead how often.
local function pairs_of(cases, ours, theirs)
  local mine, other, wins, losses = {}, {}, 0, 0
  for _, case in ipairs(cases) do
    local a, b = studies.find(case, ours), studies.find(case, theirs)
    local unit = math.min(a.step_time_s, b.step_time_s)
    for i, step_s in ipairs(a.steps_s) do
      mine[#mine + 1], other[#other + 1] = step_s / unit, b.steps_s[i] / unit
      if step_s < b.steps_s[i] * (1 - 1e-9) then wins = wins + 1 end
      if step_s > b.steps_s[i] * (1 + 1e-9) then losses = losses + 1 end
    end
  end
  return mine, other, wins, losses
end

local function of_model(cases, name)
  return util.filtered(cases, function(case) return case.model == name end)
end

local function add(rows, label, cases, comparison)
  local ours, theirs = comparison[1], comparison[2]
  local mine, other, wins, losses = pairs_of(cases, ours, theirs)
  local updates = ('%s / %s'):format(studies.updates(cases, ours), studies.updates(cases, theirs))
  local tested = page.against(mine, other)
  local seeds = #cases > 0 and #studies.find(cases[1], ours).steps_s or 0
  rows:add { what = ('%s: %s against %s'):format(label, ours, theirs), claimed = 'not stated',
    ours = ('faster in %d, slower in %d of %d'):format(wins, losses, #mine), updates = updates, seeds = seeds,
    verdict = { text = ('%s: %s'):format(comparison[3], tested.text) } }
end

-- How often each variant is as fast as the proved optimum, and how far its slowest run is off.
local function add_optimum(rows, cases, variant)
  local proved, runs, exact, worst, seeds = 0, 0, 0, 0, 0
  for _, case in ipairs(cases) do
    local best, own = studies.find(case, 'fastest'), studies.find(case, variant.name)
    if best and best.fits then
      proved, seeds = proved + 1, #own.steps_s
      for _, step_s in ipairs(own.steps_s) do
        runs, worst = runs + 1, math.max(worst, step_s / best.step_time_s)
        exact = exact + (step_s <= best.step_time_s * (1 + 1e-9) and 1 or 0)
      end
    end
  end
  if proved == 0 then return end
  rows:add { what = ('%s: runs that found the fastest cut'):format(variant.name), claimed = 'not stated',
    ours = ('%d of %d'):format(exact, runs), updates = studies.updates(cases, variant.name), seeds = seeds,
    verdict = { text = ('slowest run %.3f times it, in %d cases with a proof'):format(worst, proved) } }
end

return { name = 'learning', title = 'What the policy and its updates contribute', learns = true,
  quick = studies.quick,
  about = 'Runs of equal budgets in pairs by case and seed; a percentage below zero means that the first is faster '
    .. '(medians). moves: one sampled scheme, then moves; frozen: a policy that is never updated, with the same first '
    .. 'weights and random numbers; trained: the same, updated; default: half of the budget each; frozen_moves: '
    .. 'default without updates.',
  run = function(rows, settings)
    local cases = studies.of(settings)
    for _, comparison in ipairs(comparisons) do
      for _, name in ipairs(baselines.models) do
        local own = of_model(cases, name)
        if #own > 0 then add(rows, name, own, comparison) end
      end
      if #cases > 0 then add(rows, 'all', cases, comparison) end
    end
    for _, variant in ipairs(studies.variants) do add_optimum(rows, cases, variant) end
    return ('Every run simulates %d schemes.'):format(studies.evaluations(settings))
  end }
