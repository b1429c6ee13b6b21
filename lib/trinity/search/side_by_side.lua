-- Annealings side by side, one a thread, by step times: for a search of seconds over a graph so small that a simulation
-- is over before threads could share it out, and lasting enough for each. They run in the engine without a way through
-- Lua (engine/search/placement/side_by_side.h), every other from the rival of the best start (search/race.lua) where
-- there is one. Spoken to like one searcher of the engine (search/ask_tell.lua): what it hands out are the best of each
-- so far, which are priced once more for the search's own account. Moves are tried as they are drawn: with so many
-- evaluations a ranker of moves has nothing left to say.

local core = require 'trinity.core'
local race = require 'trinity.search.race'
local rewards = require 'trinity.strategy.rewards'
local search = require 'trinity.search'

local Team = {}
Team.__index = Team

local side_by_side = {}

-- Evaluations a unit that each must be able to make: with 450 two are 0.3 % behind one that has both threads, with 1500
-- they are even.
local least_evaluations = 1200
local least_s = 6e-5 -- for the square of the units: where there is less, there is nothing to judge
local probe = 512    -- evaluations of each, by which it is judged
-- Of every other: so many evaluations reach what single small operators are worth; the cooler ones find it sooner,
-- if not as often.
local last_temperatures = { 1e-3, 1e-4 }
local first_round = 16
local round_s, most_evaluations = 0.05, 2 ^ 16 -- of a searcher between two looks at the clock

-- Whether the search `self` may run in the engine: it goes by seconds, has threads and the reward for it, and no
-- checkpoints of the caller's, which go by evaluations.
local function may_in_engine(self)
  local problem, options = self.problem, self.options
  return options.evaluations >= search.unlimited and options.seconds < math.huge and core.threads() > 1 and not self.job
    and (options.checkpoint or '') == '' and (options.resume or '') == ''
    and problem.reward == rewards.step_time() and not problem.on_evaluated and not problem.default_schedule
    and not options.moves
end

--- Whether the search `self` may, and has the seconds for several.
function side_by_side.may(self)
  local left_s = self.options.seconds - (core.clock_s() - self.start)
  return may_in_engine(self) and left_s >= least_s * self.problem.graph.units ^ 2
end

-- Whether they get through enough evaluations in what is left of the seconds.
local function is_quick(self, searchers)
  local begin = core.clock_s()
  core.run_searchers(searchers, probe)
  local each_s = (core.clock_s() - begin) / probe
  local left_s = self.options.seconds - (core.clock_s() - self.start)
  return left_s >= each_s * least_evaluations * self.problem.graph.units
end

--- From a start, and from its rival, if any; nil where the search `self` is not for it.
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

--- One annealing of the search `self` that all threads share (engine/search/placement/in_flight.h), where it may run
--- in the engine; as it is where not, and where a function of the script gives or ranks its moves.
function side_by_side.shared(self, searcher, ranker)
  if not may_in_engine(self) or type(ranker) == 'function' then return searcher end
  local function run(each) core.run_in_flight(searcher, core.threads() + 1, each) end
  return setmetatable({ searchers = { searcher }, run = run, each = first_round, best = {}, told = 0 }, Team)
end

--- The share of a wall-clock budget that is used.
function Team:progress(share)
  for _, searcher in ipairs(self.searchers) do searcher:progress(math.max(0, math.min(1, share))) end
end

function Team:evaluations()
  local sum = self.told
  for _, searcher in ipairs(self.searchers) do sum = sum + searcher:evaluations() end
  return sum
end

--- A round of all, then what became better, or the first's best where nothing did.
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

function Team:tell() end -- they know

--- What a ranker came to; its seconds are of the clock, as threads share the work.
function Team:ranking()
  local ranking = self.searchers[1]:ranking()
  if ranking then ranking.seconds = ranking.seconds / core.threads() end
  return ranking
end

function Team:close()
  for _, searcher in ipairs(self.searchers) do searcher:close() end
end

return side_by_side
