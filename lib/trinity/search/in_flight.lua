-- One annealing search that all threads share (engine/search/placement/in_flight.h): it runs in the engine without
-- calls of Lua, for searches with a time limit and the step time as reward. It has the interface of a searcher of the
-- engine (search/ask_tell.lua): ask() runs a round and returns the best so far, which is simulated again for the
-- statistics of the search.

local core = require 'trinity.core'
local rewards = require 'trinity.strategy.rewards'
local search = require 'trinity.search'

local Shared = {}
Shared.__index = Shared

local first_round = 16
local round_s, most_evaluations = 0.05, 2 ^ 16 -- of a round, between two checks of the clock

-- Returns whether the search `self` may run in the engine: it has a time limit, several threads, the step time as
-- its reward.
local function may_in_engine(self)
  local problem, options = self.problem, self.options
  return options.evaluations >= search.unlimited and options.seconds < math.huge and core.threads() > 1 and not self.job
    and problem.reward == rewards.step_time() and not problem.on_evaluated and not problem.default_schedule
    and not options.moves
end

--- Sets the used fraction of the time limit.
function Shared:progress(share) self.searcher:progress(math.max(0, math.min(1, share))) end

function Shared:evaluations() return self.told + self.searcher:evaluations() end

function Shared:ask(room)
  local begin = core.clock_s()
  core.run_in_flight(self.searcher, core.threads() + 1, self.each)
  local took_s = core.clock_s() - begin
  self.each = math.floor(math.max(1, math.min(most_evaluations, 4 * self.each, self.each * round_s / took_s)))
  self.searcher:best(room[1])
  self.told = self.told + 1
  return 1, math.huge
end

function Shared:tell() end -- the searcher knows its scores

--- Returns the statistics of the ranker; its seconds are wall-clock time, because threads share the work.
function Shared:ranking()
  local ranking = self.searcher:ranking()
  if ranking then ranking.seconds = ranking.seconds / core.threads() end
  return ranking
end

function Shared:close() self.searcher:close() end

--- Returns an annealing search of `self` that all threads share, if it may run in the engine; the searcher unchanged if
--- not, or if a function of the script gives or ranks its moves.
return function(self, searcher, ranker)
  if not may_in_engine(self) or type(ranker) == 'function' then return searcher end
  return setmetatable({ searcher = searcher, each = first_round, told = 0 }, Shared)
end
