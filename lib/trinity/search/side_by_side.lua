-- Independent annealing searches, one per thread, with the step time as reward. They are for searches with a time limit
-- on graphs so small that threads cannot divide one simulation, with enough time for each. They run in the engine
-- without calls of Lua (engine/search/placement/side_by_side.h). Every other one starts from the baseline of the best
-- start (search/race.lua), if there is one. The team has the interface of a searcher of the engine
-- (search/ask_tell.lua): ask() returns the best of each search so far, which are simulated again for the statistics of
-- the search. Moves are not ranked, because a ranker does not help with that many evaluations.

local core = require 'trinity.core'
local race = require 'trinity.search.race'
local rewards = require 'trinity.strategy.rewards'
local search = require 'trinity.search'

local Team = {}
Team.__index = Team

local side_by_side = {}

-- Minimum evaluations per unit for each search: with 450, two searches are 0.3 % slower than one on both threads; with
-- 1500 they are equal.
local least_evaluations = 1200
local least_s = 6e-5 -- per squared number of units: minimum time for the test
local probe = 512    -- evaluations of each search in the test
-- Alternating between searches: with that many evaluations, even single small operators matter; the cooler searches
-- find these gains sooner, but less often.
local last_temperatures = { 1e-3, 1e-4 }
local first_round = 16
local round_s, most_evaluations = 0.05, 2 ^ 16 -- of a searcher between two checks of the clock

-- Returns whether the search `self` may run in the engine: it has a time limit, several threads, the step time as
-- its reward.
local function may_in_engine(self)
  local problem, options = self.problem, self.options
  return options.evaluations >= search.unlimited and options.seconds < math.huge and core.threads() > 1 and not self.job
    and problem.reward == rewards.step_time() and not problem.on_evaluated and not problem.default_schedule
    and not options.moves
end

--- Returns whether the search `self` may run in the engine and has time for several searches.
function side_by_side.may(self)
  local left_s = self.options.seconds - (core.clock_s() - self.start)
  return may_in_engine(self) and left_s >= least_s * self.problem.graph.units ^ 2
end

-- Returns whether the searches can make enough evaluations in the remaining time.
local function is_quick(self, searchers)
  local begin = core.clock_s()
  core.run_searchers(searchers, probe)
  local each_s = (core.clock_s() - begin) / probe
  local left_s = self.options.seconds - (core.clock_s() - self.start)
  return left_s >= each_s * least_evaluations * self.problem.graph.units
end

--- Makes a team from a start and its baseline, if any; nil if the search `self` is not suited.
function side_by_side.new(self, start, rival)
  if not side_by_side.may(self) then return nil end
  local searchers, seed = {}, self.options.seed
  for i = 1, core.threads() do
    local own = i == 1 and seed or core.random(seed, 'side by side', i):integer(2 ^ 53) - 1
    searchers[i] = race.annealing(self.problem, i % 2 == 0 and rival or start, own,
      { evaluations = 2 ^ 40, last_temperature = last_temperatures[(i - 1) % 2 + 1] })
  end
  local function run(each) core.run_searchers(searchers, each) end
  local team = setmetatable({ searchers = searchers, run = run, each = probe, best = {}, told = 0 }, Team)
  if is_quick(self, searchers) then return team end
  self.evaluations = self.evaluations + team:evaluations()
  team:close()
  return nil
end

--- Returns one annealing search of `self` that all threads share (engine/search/placement/in_flight.h) if it may run in
--- the engine. Returns the searcher unchanged if not, or if a function of the script gives or ranks its moves.
function side_by_side.shared(self, searcher, ranker)
  if not may_in_engine(self) or type(ranker) == 'function' then return searcher end
  local function run(each) core.run_in_flight(searcher, core.threads() + 1, each) end
  return setmetatable({ searchers = { searcher }, run = run, each = first_round, best = {}, told = 0 }, Team)
end

--- Sets the used fraction of the time limit.
function Team:progress(share)
  for _, searcher in ipairs(self.searchers) do searcher:progress(math.max(0, math.min(1, share))) end
end

function Team:evaluations()
  local sum = self.told
  for _, searcher in ipairs(self.searchers) do sum = sum + searcher:evaluations() end
  return sum
end

--- Runs a round of all searches. Returns the improved bests, or the best of the first search if none improved.
function Team:ask(room)
  local begin, count = core.clock_s(), 0
  self.run(self.each)
  local took_s = core.clock_s() - begin
  self.each = math.floor(math.max(1, math.min(most_evaluations, 4 * self.each, self.each * round_s / took_s)))
  for i, searcher in ipairs(self.searchers) do
    local value = searcher:best(room[count + 1])
    if count + 1 < #room and value ~= self.best[i] then
      self.best[i], count = value, count + 1
    end
  end
  if count == 0 then
    self.searchers[1]:best(room[1])
    count = 1
  end
  self.told = self.told + count
  return count, math.huge
end

function Team:tell() end -- the searchers know their scores

--- Returns the statistics of the ranker; its seconds are wall-clock time, because threads share the work.
function Team:ranking()
  local ranking = self.searchers[1]:ranking()
  if ranking then ranking.seconds = ranking.seconds / core.threads() end
  return ranking
end

function Team:close()
  for _, searcher in ipairs(self.searchers) do searcher:close() end
end

return side_by_side
