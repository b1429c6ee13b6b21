-- A race of two annealing searches: one from the best start, one from a baseline, which is a partition with few bytes
-- between devices. After a quarter of the budget each, one of them continues with the rest: the one that will be better
-- if both continue as in the second half of their quarter. The race helps if the best start is near a local optimum, as
-- blocks of layers are; otherwise it costs a quarter of the budget. With a ranker and the step time as reward, such a
-- race is not worthwhile (race.pays). It has the interface of a searcher of the engine
-- (lib/trinity/search/ask_tell.lua).

local core = require 'trinity.core'
local dist_search = require 'trinity.search.shared'
local ranked = require 'trinity.search.ranked'
local rewards = require 'trinity.strategy.rewards'
local util = require 'trinity.base.util'
local warm_start = require 'trinity.search.warm_start'

local Race = {}
Race.__index = Race

local race = {}

local heat_share = 0.25    -- part of the budget for each of the two
local most_slower = 1.25   -- maximum step time of the baseline / step time of the best start
local least_budget = 200   -- minimum evaluations for a race
local least_s = 1          -- minimum seconds for a race
local imbalances = { 0.03, 0.3 }
local short_budget = 300   -- evaluations up to which a ranker chooses among few moves
local evaluation_s = 1e-7  -- approximate time per colocation unit of a ranked move and its simulation, on two threads
-- With at least this many evaluations per unit, every other move of a search with a time limit is unranked. With fewer,
-- the size of candidate sets follows the sizes that were chosen, because large sets take as long to evaluate as all
-- others together.
local many = 150
local large = 500          -- colocation units from which a long search starts hotter
local few, few_large = 2000, 20000 -- evaluations up to which each is chosen among many candidates

-- Returns whether a budget has few evaluations. Long searches on small graphs need more unranked moves
-- (scripts/studies/policy/RESULTS.md).
local function is_few(problem, evaluations)
  return evaluations <= (problem.graph.units < large and few or few_large)
end

-- Estimates the number of ranked evaluations within a budget.
local function likely_evaluations(problem, budget)
  return math.min(budget.evaluations, (budget.seconds or math.huge) / (evaluation_s * problem.graph.units))
end

-- Returns the first temperature for ranked moves with the step time as reward: 2 if each move is the best of many, 1
-- for very small budgets, 2 for small graphs with a time limit and 0.5 without. On large graphs, where 0.5 per unit is
-- little of the step, it grows with the square root of the budget beyond 1,000 evaluations, up to 8 (with a time limit,
-- from 2).
local function first_temperature(problem, budget)
  if budget.evaluations <= short_budget then return 1 end
  if is_few(problem, budget.evaluations) then return 2 end
  local likely = likely_evaluations(problem, budget)
  local by_seconds = likely < budget.evaluations
  if problem.graph.units < large then return by_seconds and 2 or 0.5 end
  return math.max(by_seconds and 2 or 0.5, math.min(8, 0.5 * math.sqrt(likely / 1000)))
end

--- Makes the annealing search of both racers, and of a search without a race. It is cooler than by default, because it
--- starts from a good placement, and it moves whole layers, with most pivot units on the critical path
--- (engine/search/placement/moves.h). With a ranker and the step time as reward, its temperature depends on the budget.
--- With few evaluations it ranks more candidates and tries few moves of the same state, as with a time limit; with very
--- few, it ranks still more candidates, nearly all around the critical path. budget: { evaluations =, seconds = nil or
--- the search's }. moves: nil, or a function that returns moves (search/ranked.lua).
function race.annealing(problem, start, seed, budget, ranker, moves)
  local evaluations = budget.evaluations
  local options = { seed = seed, evaluations = math.min(evaluations, 2 ^ 40), starts = { start },
    first_temperature = 1, groups = true, evenly_one_in = 5 }
  local by_time, short = problem.reward == rewards.step_time(), evaluations <= short_budget
  if ranker and by_time then options.first_temperature = first_temperature(problem, budget) end
  if ranker and not by_time then options.candidates = 16 end
  if ranker and (short or by_time and is_few(problem, evaluations)) then
    options.candidates, options.plain_one_in, options.batch = 24, 50, 3
  elseif ranker and by_time and (budget.seconds or math.huge) < math.huge then
    local are_many = likely_evaluations(problem, budget) > many * problem.graph.units
    options.plain_one_in, options.fit_sizes = are_many and 2 or 50, not are_many
    options.batch, options.look_every = 4, 120
  end
  if ranker and short then
    options.candidates, options.batch, options.evenly_one_in, options.sharpness = 48, 2, 20, 3
  end
  return ranked.searcher(problem, 'annealing', options, ranker, nil, moves)
end

--- Returns whether the search `self` should race. A ranker does better without a race if the reward is the step time,
--- for which it was trained, and with one for other rewards (scripts/studies/policy/RESULTS.md).
function race.pays(self) return not self.ranker or self.problem.reward ~= rewards.step_time() end

-- Returns whether a race fits the remaining budget of the search `self`; the ranks of a job agree on it.
local function has_room(self)
  local options = self.options
  return dist_search.agreed(self.job, not warm_start.is_large(self.problem.graph)
    and options.evaluations - self.evaluations >= least_budget
    and options.seconds - (core.clock_s() - self.start) >= least_s)
end

--- Returns the baseline of the best placement so far of the search `self`, simulated within its budget, or nil if it is
--- too slow.
function race.rival(self)
  if not self.best or not has_room(self) then return nil end
  local best_s, list, rival = self.best.metrics.step_time_s, {}, nil
  for _, imbalance in ipairs(imbalances) do
    local placement = self.problem:placement()
    core.construct(self.problem.handle, 'fm', { seed = self.options.seed, imbalance = imbalance }, placement)
    list[#list + 1] = placement
  end
  local before = self.best
  local _, metrics = self:evaluate(list)
  for i, m in ipairs(metrics) do
    local slowest_s = rival and metrics[rival].step_time_s or most_slower * best_s
    if m.feasible and m.step_time_s < slowest_s then rival = i end
  end
  if self.best ~= before then return nil end -- a partition is the best start itself
  return list[rival]
end

--- Makes a race of two. budget: { evaluations =, seconds = } of the whole race. shared(searcher) wraps each searcher
--- (search/in_flight.lua). moves: as in race.annealing. The result depends only on the seed and the budget if
--- progress() is not called.
function race.new(problem, start, rival, seed, budget, ranker, shared, moves)
  local own = { evaluations = 2 ^ 40, seconds = budget.seconds }
  local racers = util.map({ start, rival }, function(placement)
    return shared(race.annealing(problem, placement, seed, own, ranker, moves))
  end)
  return setmetatable({ used = 0, share = 0, budget = budget.evaluations, now = 1, best = {}, half = {},
    racers = racers }, Race)
end

function Race:progress(share) self.share = share end

function Race:evaluations() return self.used end

-- Extrapolates the value of a racer from its improvement since the middle of its heat.
local function hope(self, racer)
  local best = self.best[racer]
  if not best or best.excess > 0 then return math.huge end
  local half = self.half[racer] or best.value
  return best.value - (half - best.value)
end

-- Returns whose turn it is and its cooling progress after `share` of the budget.
local function turn(self, share)
  if not self.winner and share >= 2 * heat_share then self.winner = hope(self, 2) < hope(self, 1) and 2 or 1 end
  if self.winner then return self.winner, (share - heat_share) / (1 - heat_share) end
  local racer = share < heat_share and 1 or 2
  local own = share - (racer - 1) * heat_share
  local best = self.best[racer]
  if best and best.excess <= 0 and not self.half[racer] and own >= heat_share / 2 then
    self.half[racer] = best.value
  end
  return racer, own / (1 - heat_share)
end

--- As a searcher's ask(): returns the number of placements written to `room`, and the value above which they do not
--- matter.
function Race:ask(room, most)
  local progress
  self.now, progress = turn(self, math.max(self.share, self.used / self.budget)) -- whichever is further
  local searcher = self.racers[self.now]
  searcher:progress(math.max(0, math.min(1, progress)))
  self.before = searcher:evaluations()
  local count, limit = searcher:ask(room, most)
  self.count = count
  return count, limit
end

function Race:tell(values, excess)
  local best = self.best[self.now]
  for i = 1, self.count do
    if not best or excess[i] < best.excess or excess[i] == best.excess and values[i] < best.value then
      best = { value = values[i], excess = excess[i] }
    end
  end
  self.best[self.now] = best
  local searcher = self.racers[self.now]
  searcher:tell(values, excess)
  self.used = self.used + searcher:evaluations() - self.before
end

--- Returns the summed statistics of the ranker, or nil without one.
function Race:ranking()
  local sum = self.racers[1]:ranking()
  for key, value in util.sorted_pairs(sum and self.racers[2]:ranking() or {}) do sum[key] = sum[key] + value end
  return sum
end

function Race:close()
  for _, searcher in ipairs(self.racers) do searcher:close() end
end

return race
