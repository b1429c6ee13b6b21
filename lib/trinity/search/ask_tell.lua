-- The ask/tell loop of searches in the engine (engine/search/placement/searcher.h): asks for placements, simulates them
-- within the budget of a search, and reports their scores. Rewards, budgets and Ctrl-C work as for every method.

local array = require 'trinity.base.array'
local core = require 'trinity.core'
local rewards = require 'trinity.strategy.rewards'
local util = require 'trinity.base.util'

local batch_size = 256

--- Replays recorded scores in their order without simulation, to resume an interrupted search. Fills `values` and
--- `excess`; returns false at their end.
local function replayed(replay, count, values, excess)
  if not replay or replay.at >= replay.count then return false end
  if replay.at + count > replay.count then
    util.fail('checkpoint: its %d scores do not match the placements of this search', replay.count)
  end
  for i = 1, count do
    local at = 2 * (replay.at + i - 1)
    values[i], excess[i] = replay.scores[at], replay.scores[at + 1]
  end
  replay.at = replay.at + count
  return true
end

--- Simulates a batch. If the reward is the step time alone, simulations stop early once a placement is certainly too
--- slow to matter.
local function price(self, batch, limit, values, excess)
  local options
  if limit < math.huge and self.problem.reward == rewards.step_time() and not self.problem.on_evaluated then
    -- One nanosecond is added so that rounding does not reject the limit itself. The limit may be negative (option
    -- accept).
    options = { reject_above_s = math.max(0, limit) + 1e-9 }
  end
  local scores, metrics = self:evaluate(batch, options)
  for i = 1, #batch do
    values[i] = metrics[i].rejected and metrics[i].step_time_s or -scores[i]
    excess[i] = metrics[i].excess_memory_bytes
  end
end

--- Runs the engine's `searcher` with the remaining budget of the search `self`. Optional hooks: on_scores(values,
--- excess, count) after every batch, replay = { scores = doubles from 0: value, excess, value, ..., count =, at = 0 }
--- for replayed(). Returns when the budget is used up or the searcher has nothing left to try. self.ranking has the
--- statistics of its ranker, also after Ctrl-C.
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
      local batch = util.listed(count, function(i) return room[i] end)
      price(self, batch, limit, values, excess)
    end
    searcher:tell(values, excess)
    self.evaluations = math.max(self.evaluations, first + searcher:evaluations()) -- including its own simulations
    self.ranking = searcher:ranking()
    if hooks.on_scores then hooks.on_scores(values, excess, count) end
  end
end

return ask_tell
