-- Two searches one after the other: annealing from the best start with the first half of the budget, iterated local
-- search from one device alone with the second. Where the best start is near a local optimum, annealing from it ends
-- early and not far away. Spoken to like one searcher of the engine (lib/trinity/drive.lua).

local core = require 'trinity.core'

local Relay = {}
Relay.__index = Relay

local first_share = 0.5 -- of the budget

--- budget: evaluations of both together, about. The result depends on the seed and the budget alone where progress() is
--- not used.
function Relay.new(problem, start, seed, budget)
  return setmetatable({ used = 0, share = 0, budget = budget,
    first = core.searcher(problem.handle, 'annealing', { seed = seed, evaluations = 2 ^ 40, starts = { start } }),
    second = core.searcher(problem.handle, 'local_search', { seed = seed, evaluations = 2 ^ 40 }),
  }, Relay)
end

--- The share of a wall-clock budget that is used.
function Relay:progress(share) self.share = share end

function Relay:evaluations() return self.used end

--- As a searcher's ask(): how many placements it wrote to `room`, and the limit beyond which they do not matter.
function Relay:ask(room, most)
  local share = math.max(self.share, self.used / self.budget) / first_share -- by whichever clock is further
  self.now = share < 1 and self.first or self.second
  if share < 1 then self.now:progress(share) end
  self.before = self.now:evaluations()
  return self.now:ask(room, most)
end

function Relay:tell(values, excess)
  self.now:tell(values, excess)
  self.used = self.used + self.now:evaluations() - self.before
end

function Relay:close()
  self.first:close()
  self.second:close()
end

return Relay
