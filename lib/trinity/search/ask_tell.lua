-- The ask-tell loop of searches whose moves live in the engine (engine/search/placement/searcher.h): asks for
-- placements, prices them within the budget of a search, tells their scores. Any reward, budget and Ctrl-C hold for
-- them as for every method.

local array = require 'trinity.base.array'
local core = require 'trinity.core'
local rewards = require 'trinity.strategy.rewards'
local util = require 'trinity.base.util'

local batch_size = 256

--- Scores that were told before, handed out again in their order without any simulation: what continues an interrupted
--- search. Fills `values` and `excess`; false at their end.
local function replayed(replay, count, values, excess)
  if not replay or replay.at >= replay.count then return false end
  if replay.at + count > replay.count then
    util.fail('checkpoint: it holds the scores of %d placements, which this search does not ask for', replay.count)
  end
  for i = 1, count do
    local at = 2 * (replay.at + i - 1)
    values[i], excess[i] = replay.scores[at], replay.scores[at + 1]
  end
  replay.at = replay.at + count
  return true
end

--- Prices a batch. What is certain to be too slow to matter is given up early, where the reward is the step time alone.
local function price(self, batch, limit, values, excess)
  local options
  if limit < math.huge and self.problem.reward == rewards.step_time() and not self.problem.on_evaluated then
    -- A nanosecond more: the limit itself must not be lost in rounding. A function may accept nothing (option accept).
    options = { reject_above_s = math.max(0, limit) + 1e-9 }
  end
  local scores, metrics = self:evaluate(batch, options)
  for i = 1, #batch do
    values[i] = metrics[i].rejected and metrics[i].step_time_s or -scores[i]
    excess[i] = metrics[i].excess_memory_bytes
  end
end

--- Runs the engine's `searcher` with what is left of the budget of the search `self`. Optional hooks: on_scores(values,
--- excess, count) after every batch, replay = { scores = doubles from 0: value, excess, value, ..., count =, at = 0 }
--- as replayed() takes it. Returns when the budget is used up or the searcher has nothing left to try; self.ranking is
--- what its ranker came to, of a search that Ctrl-C ends, too.
local function ask_tell(self, searcher, hooks)
  hooks = hooks or {}
  local options, first, begin = self.options, self.evaluations, core.clock_s()
  local most = math.min(batch_size, options.evaluations)
  local room, values, excess = self.problem:placements(most), array.double(most), array.double(most)
  local left_s = options.seconds - (begin - self.start)
  while self:more() do
    if left_s < math.huge then searcher:progress((core.clock_s() - begin) / left_s) end
    local count, limit = searcher:ask(room, math.min(most, self:allowance(most)))
    if count == 0 then break end
    if replayed(hooks.replay, count, values, excess) then
      self.evaluations = self.evaluations + count
    else
      local batch = {}
      for i = 1, count do batch[i] = room[i] end
      price(self, batch, limit, values, excess)
    end
    searcher:tell(values, excess)
    self.evaluations = math.max(self.evaluations, first + searcher:evaluations()) -- with its own simulations
    self.ranking = searcher:ranking()
    if hooks.on_scores then hooks.on_scores(values, excess, count) end
  end
end

return ask_tell
