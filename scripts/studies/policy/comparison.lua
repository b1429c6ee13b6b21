-- The search with a ranker of moves compared with the same search without one.

local methods = require 'trinity.methods'
local model = require 'trinity.graph.model'
local move_training = require 'trinity.methods.move_training'
local statistics = require 'trinity.base.statistics'
local tensorflow = require 'studies.tensorflow'
local util = require 'trinity.base.util'

local comparison = {}

-- A model, or MODEL@tensorflow in TensorFlow's operations.
local function load(name, options)
  local plain = name:match '^(.*)@tensorflow$'
  if plain then return tensorflow.load(plain, options) end
  return model.load(name, options)
end

--- The cases of graphs on clusters, as training has them; a graph may be MODEL@tensorflow.
function comparison.cases(graphs, clusters) return move_training.cases(graphs, clusters, nil, load) end

--- Runs a method from the best heuristic, whose evaluation counts in the budget { evaluations = } or { seconds = }:
--- returns its strategy. rank: option of method trinity. `plain annealing` starts where annealing does by default.
function comparison.search(method, case, budget, seed, rank)
  local start, options = case.starts[1].placement, util.merged(budget, { seed = seed, quiet = true })
  if method == 'annealing' or method == 'local_search' then
    options.starts = { start }
  elseif method ~= 'plain annealing' then
    options.warm_start, options.rank = { start }, rank
  end
  local found = methods[method == 'plain annealing' and 'annealing' or method](case.problem, options)
  if found.stopped then util.fail 'interrupted' end
  return found
end

--- Returns the step time that comparison.search finds, and what a ranker came to.
function comparison.run(...)
  local found = comparison.search(...)
  return found.metrics.step_time_s, found.ranking
end

--- A ranker that gives all candidates the same score: random moves of the ranked search.
function comparison.uniform(candidates)
  return util.listed(candidates.count, function() return 0 end)
end

--- Returns the oracle of moves of a problem: a ranker that simulates every candidate, outside the budget, and takes the
--- best.
function comparison.oracle(problem)
  local best = 1e9 -- of scores relative to the best candidate, so that no other one is sampled
  return function(candidates)
    local trials, times = {}, {}
    for i = 1, candidates.count do
      local units, device = candidates:move(i)
      local moved = {}
      for _, unit in ipairs(units) do moved[unit] = device end
      trials[i] = problem:placement_by_unit(function(unit) return moved[unit] or candidates.device_of[unit] end)
    end
    for i, metrics in ipairs(#trials > 0 and problem:evaluate_batch(trials) or {}) do
      times[i] = metrics.step_time_s * (metrics.feasible and 1 or 10)
    end
    local least = math.min(math.huge, unpack(times))
    return util.map(times, function(time_s) return -best * (time_s / least - 1) end)
  end
end

--- Step times of the search with a ranker over another method's, one per seed: a list. budget: { evaluations = }
--- or { seconds = }. known: results of other methods, by method; this function adds to them.
function comparison.ratios(case, rank, other, budget, seeds, known)
  local ratios, ranking = {}, nil
  known[other] = known[other] or {}
  for seed = 1, seeds do
    known[other][seed] = known[other][seed] or comparison.run(other, case, budget, seed)
    local own_s
    own_s, ranking = comparison.run('trinity', case, budget, seed, rank)
    ratios[seed] = own_s / known[other][seed]
  end
  return ratios, ranking
end

-- The 0.975 quantile of Student's t distribution: half of a 95 % interval in standard errors of the mean. Exact for
-- 1 and 2 degrees of freedom, then within 0.02 (Abramowitz and Stegun 26.7.5).
local function student(freedom)
  if freedom == 1 then return 12.706204736 end
  if freedom == 2 then return 4.302652730 end
  local z, n = 1.959963984540054, freedom
  return z + (z ^ 3 + z) / (4 * n) + (5 * z ^ 5 + 16 * z ^ 3 + 3 * z) / (96 * n ^ 2)
    + (3 * z ^ 7 + 19 * z ^ 5 + 17 * z ^ 3 - 15 * z) / (384 * n ^ 3)
end

--- The geometric mean of ratios, the bounds of its 95 % interval by the t distribution over rows, and the chance of
--- such a difference if there is none (signed ranks, Wilcoxon).
function comparison.summary(ratios)
  local logs = util.map(ratios, function(ratio) return math.log(ratio) end)
  local mean, half = statistics.mean(logs), 0
  if #logs > 1 then
    half = student(#logs - 1) * statistics.deviation(logs) / math.sqrt(#logs)
  end
  return math.exp(mean), math.exp(mean - half), math.exp(mean + half), statistics.signed_rank(logs).p
end

return comparison
