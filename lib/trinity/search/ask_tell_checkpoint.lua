-- What a search of the engine (search/ask_tell.lua) goes on from: the scores of all placements that its searcher was
-- told. A new searcher with the same seed asks for the same placements and is told the same, without any simulation.
-- The scores lie in a file beside the checkpoint, pairs of doubles (value, excess memory), to whose end each checkpoint
-- adds what is new; the checkpoint says how many bytes of it are its own and their sum. So a checkpoint costs what it
-- adds, not what the search is long.

local check = require 'trinity.base.check'
local checkpoints = require 'trinity.runs.checkpoints'
local ffi = require 'ffi'
local tensorboard = require 'trinity.runs.tensorboard'

local ask_tell_checkpoint = {}

local doubles, pair_bytes = ffi.typeof 'double[?]', 16

local Scores = {}
Scores.__index = Scores

-- The scores that a search tells, for its checkpoints. kept: what a checkpoint that it goes on from has of them.
local function scores_of(self, kept)
  local file = self.checkpoint .. '.scores'
  local scores = setmetatable({ file = file, count = 0, new = {}, bytes = 0, sum = 0, before = '' }, Scores)
  if not kept then return scores end
  scores.count, scores.bytes, scores.sum = #kept.content / pair_bytes, #kept.content, kept.sum
  -- The file grows on where it is this search's own and ends with what the checkpoint knows of.
  if kept.file ~= file or kept.length ~= #kept.content then scores.before = kept.content end
  scores.grows = scores.before == ''
  return scores
end

function Scores:add(values, excess, count)
  for i = 1, count do
    self.new[#self.new + 1] = values[i]
    self.new[#self.new + 1] = excess[i]
  end
  self.count = self.count + count
end

--- Brings the file up to date; false where the folder of the run is given up.
function Scores:write(search)
  local text = ffi.string(doubles(#self.new, self.new), pair_bytes / 2 * #self.new)
  if not checkpoints.write_beside(search, self.file, self.before .. text, self.grows) then return false end
  self.bytes, self.sum = self.bytes + #text, tensorboard.crc32c(text, self.sum)
  self.new, self.before, self.grows = {}, '', true
  return true
end

-- What the notes of a checkpoint tell of scores: { content =, file =, length = of the file, sum = }; nil: none.
local function kept_of(self, resumed)
  if not resumed or not resumed.scores then return nil end
  local owner = 'methods.' .. self.method
  local content, file, length = checkpoints.grown(owner, self.resume, resumed.scores, resumed.scores_sum,
    resumed.scores_bytes)
  if #content % pair_bytes ~= 0 then
    check.refuse(owner, 'option', 'resume', '%s: expected pairs of doubles, got %d bytes', file, #content)
  end
  return { content = content, file = file, length = length, sum = tensorboard.crc32c(content) }
end

-- The same as ask_tell() hands them out again.
local function replay_of(kept)
  local scores = doubles(#kept.content / pair_bytes * 2)
  ffi.copy(scores, kept.content, ffi.sizeof(scores))
  return { scores = scores, count = #kept.content / pair_bytes, at = 0 }
end

--- Hooks for ask_tell(): one that writes checkpoints with the method's own `notes`, and what `resumed`, the notes of
--- one, says was told before. `first`: evaluations of the search before the searcher's own, to which self.evaluations
--- is set where the search goes on.
function ask_tell_checkpoint.hooks(self, resumed, first, notes)
  if not self.checkpoint and not resumed then return {} end
  local options, last, hooks, kept = self.options, self.evaluations, {}, kept_of(self, resumed)
  local every = (options.checkpoint_every or 1) * (options.samples or 16)
  local scores = self.checkpoint and scores_of(self, kept)
  if resumed then self.evaluations, last = first, first end
  hooks.replay = kept and replay_of(kept)
  local again = kept and hooks.replay.count or 0 -- scores that are still to be told again
  function hooks.on_scores(values, excess, count)
    if not scores or checkpoints.too_many(self, scores.count) then return end
    if again <= 0 then scores:add(values, excess, count) end
    again = again - count
    -- Best and curve are those of the checkpoint until all of it is told again.
    if again > 0 then return end
    -- They become rarer, so that writing them stays a small part of the search.
    local by_count = self.evaluations - last >= math.max(every, (last - first) / 8)
    if not checkpoints.due(self, by_count) or not scores:write(self) then return end
    last = self.evaluations
    notes.first, notes.scores, notes.scores_bytes = first, scores.file:match '[^/]*$', scores.bytes
    notes.scores_sum = checkpoints.sum_text(scores.sum)
    checkpoints.write(self.checkpoint, self, notes)
  end
  return hooks
end

return ask_tell_checkpoint
