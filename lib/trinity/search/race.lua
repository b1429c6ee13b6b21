-- A race of two annealings: from the best start, and from a rival, a partition with few bytes between devices. After a
-- quarter of the budget each, one goes on with the rest: the one that will be further ahead if both go on as in the
-- second half of their quarter. A best start near a local optimum, as blocks of layers are, falls behind here though
-- its rival begins far above it; where it does not, the race costs a quarter of the budget. Where a ranker chooses the
-- moves by the step time such a race does not pay (race.pays); but where seconds are plenty, a few annealings that
-- differ by their seeds race from the best start (race.of_twins): by three tenths of its cooling most of where one ends
-- is decided. Spoken to like one searcher of the engine (lib/trinity/search/ask_tell.lua).

local core = require 'trinity.core'
local dist_search = require 'trinity.search.shared'
local ranked = require 'trinity.search.ranked'
local rewards = require 'trinity.strategy.rewards'
local util = require 'trinity.base.util'
local warm_start = require 'trinity.search.warm_start'

local Race = {}
Race.__index = Race

local race = {}

local heat_share = 0.25    -- of the budget, for each of the two
local most_slower = 1.25   -- step time of a rival over the best start's
local least_budget = 200   -- evaluations that are worth a race
local least_s = 1          -- seconds that are
local imbalances = { 0.03, 0.3 }
local short_budget = 300   -- evaluations in which a ranker's choice is not to be widened
local evaluation_s = 1e-7  -- a colocation unit: of a ranked move and its simulation on two threads, about
local scripted = 4         -- times as long where a function of a script gives the moves, at most, if it is quick
-- Evaluations a unit from which on every other move of a search by seconds is plain; with fewer, candidates are as
-- large as is chosen now and then, since large sets take as long to look at as all others.
local many = 150
local twin_heat = 0.3      -- of the cooling of each of several that differ by their seeds
local plenty = { 20, 60, 200 } -- evaluations a unit from which on two, three and four of them race, by seconds
local large = 500          -- colocation units from which on a long search begins hotter
local few, few_large = 2000, 20000 -- evaluations of which each is worth a choice of many candidates

-- Whether the evaluations of a budget are few: on small graphs long searches need their breadth
-- (scripts/studies/policy/RESULTS.md).
local function is_few(problem, evaluations)
  return evaluations <= (problem.graph.units < large and few or few_large)
end

-- How many ranked evaluations a budget is likely to hold.
local function likely_evaluations(problem, budget)
  return math.min(budget.evaluations, (budget.seconds or math.huge) / (evaluation_s * problem.graph.units))
end

-- The first temperature of ranked moves by the step time: hot where the choice is the best of many, a half as hot where
-- no more than a descent fits, and on small graphs by seconds; on large ones, where 0.5 a unit is little of the step,
-- beyond 1,000 evaluations by the root of the budget, up to 8, by seconds from 2.
local function first_temperature(problem, budget)
  if budget.evaluations <= short_budget then return 1 end
  if is_few(problem, budget.evaluations) then return 2 end
  local likely = likely_evaluations(problem, budget)
  local by_seconds = likely < budget.evaluations
  if problem.graph.units < large then return by_seconds and 2 or 0.5 end
  return math.max(by_seconds and 2 or 0.5, math.min(8, 0.5 * math.sqrt(likely / 1000)))
end

--- Annealing as both do it, and as a search that does not race: cooler than by default, since it begins
--- from a good placement, with moves of whole layers and most seeds on the critical path
--- (engine/search/placement/moves.h); where a ranker chooses moves by the step time as hot as the budget says; where
--- evaluations are few, of more candidates, with few trials of the same state, as by seconds; where they are very
--- few, of more candidates still, next to all of them around the critical path.
--- budget: { evaluations =, seconds = nil or those of the search, last_temperature = nil for the default }. moves: nil,
--- or a function that gives them (search/ranked.lua).
function race.annealing(problem, start, seed, budget, ranker, moves)
  local evaluations = budget.evaluations
  local options = { seed = seed, evaluations = math.min(evaluations, 2 ^ 40), starts = { start },
    first_temperature = 1, last_temperature = budget.last_temperature, groups = true, evenly_one_in = 5 }
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

--- Whether the search `self` shall race: a ranker by the step time, which it was trained for, does better without
--- (scripts/studies/policy/RESULTS.md), by other rewards with one.
function race.pays(self) return not self.ranker or self.problem.reward ~= rewards.step_time() end

--- How many annealings of ranked moves race from one start in what is left of the seconds of the search `self`. One
--- where a function of the script ranks, which takes most of the seconds.
function race.twins(self)
  local problem, left_s = self.problem, self.options.seconds - (core.clock_s() - self.start)
  if race.pays(self) or self.job or type(self.ranker) == 'function' or left_s == math.huge then return 1 end
  local seconds = self.options.moves and left_s / scripted or left_s
  local likely, count = likely_evaluations(problem, { evaluations = self.options.evaluations, seconds = seconds }), 1
  for _, least in ipairs(plenty) do
    if likely >= least * problem.graph.units then count = count + 1 end
  end
  return count
end

-- Whether a race fits what is left of the budget of the search `self`; ranks of a job agree on it.
local function has_room(self)
  local options = self.options
  return dist_search.agreed(self.job, not warm_start.is_large(self.problem.graph)
    and options.evaluations - self.evaluations >= least_budget
    and options.seconds - (core.clock_s() - self.start) >= least_s)
end

--- The rival of the best placement so far of the search `self`, priced within its budget; nil where it is too slow.
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

-- A race of `racers`, of a budget of evaluations: heat_share of it is for each of them.
local function among(racers, evaluations, share)
  return setmetatable({ used = 0, share = 0, budget = evaluations, now = 1, best = {}, half = {}, heat_share = share,
    racers = racers }, Race)
end

-- An annealing from a placement that is spoken to through `shared`, if anything (search/side_by_side.lua).
local function racer_from(problem, start, seed, budget, ranker, shared, moves)
  local own = { evaluations = 2 ^ 40, seconds = budget.seconds }
  local searcher = race.annealing(problem, start, seed, own, ranker, moves)
  return shared and shared(searcher) or searcher
end

--- budget: { evaluations =, seconds = } of the whole race. shared: nil, or what gives what each searcher is spoken to
--- through. moves: as race.annealing has them. Its result depends on the seed and the budget alone where progress() is
--- not used.
function race.new(problem, start, rival, seed, budget, ranker, shared, moves)
  return among({ racer_from(problem, start, seed, budget, ranker, shared, moves),
    racer_from(problem, rival, seed, budget, ranker, shared, moves) }, budget.evaluations, heat_share)
end

--- The same of `count` annealings that differ by their seeds; who is ahead after the heats goes on. Each calls `moves`
--- with a random stream of its own.
function race.of_twins(problem, count, start, seed, budget, ranker, shared, moves)
  local racers = {}
  for i = 1, count do
    local own = i == 1 and seed or core.random(seed, 'twin', i):integer(2 ^ 53) - 1
    racers[i] = racer_from(problem, start, own, budget, ranker, shared, moves)
  end
  local self = among(racers, budget.evaluations, twin_heat / (1 + (count - 1) * twin_heat))
  self.are_twins = true
  return self
end

--- The share of a wall-clock budget that is used.
function Race:progress(share) self.share = share end

function Race:evaluations() return self.used end

-- What a racer will have come to, by how far it came since the middle of its heat; twins are compared as they are.
local function hope(self, racer)
  local best = self.best[racer]
  if not best or best.excess > 0 then return math.huge end
  local half = not self.are_twins and self.half[racer] or best.value
  return best.value - (half - best.value)
end

-- Who goes on after the heats.
local function winner_of(self)
  local winner = 1
  for i = 2, #self.racers do
    if hope(self, i) < hope(self, winner) then winner = i end
  end
  return winner
end

-- Whose turn it is, and how far its own cooling is, where `share` of the budget is used.
local function turn(self, share)
  local heat, others = self.heat_share, #self.racers - 1
  if not self.winner and share >= #self.racers * heat then self.winner = winner_of(self) end
  if self.winner then return self.winner, (share - others * heat) / (1 - others * heat) end
  local racer = math.min(#self.racers, 1 + math.floor(share / heat))
  local own = share - (racer - 1) * heat
  local best = self.best[racer]
  if best and best.excess <= 0 and not self.half[racer] and own >= heat / 2 then self.half[racer] = best.value end
  return racer, own / (1 - others * heat)
end

--- As a searcher's ask(): how many placements it wrote to `room`, and the limit beyond which they do not matter.
function Race:ask(room, most)
  local progress
  self.now, progress = turn(self, math.max(self.share, self.used / self.budget)) -- by whichever clock is further
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

--- What a ranker came to in all; nil without one.
function Race:ranking()
  local sum = self.racers[1]:ranking()
  if not sum then return nil end
  for i = 2, #self.racers do
    for key, value in util.sorted_pairs(self.racers[i]:ranking()) do sum[key] = sum[key] + value end
  end
  return sum
end

function Race:close()
  for _, searcher in ipairs(self.racers) do searcher:close() end
end

return race
