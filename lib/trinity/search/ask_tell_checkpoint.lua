-- Checkpoints of searches in the engine (search/ask_tell.lua): the scores of all placements that were reported to the
-- searcher. A new searcher with the same seed asks for the same placements and gets the same scores without simulation.
-- The scores are in a file next to the checkpoint, as pairs of doubles (value, excess memory). Each checkpoint appends
-- the new ones and stores the number of bytes and their checksum, so its cost depends on the new scores only, not on
-- the length of the search.

local checkpoints = require 'trinity.runs.checkpoints'
local ffi = require 'ffi'
local tensorboard = require 'trinity.runs.tensorboard'
local util = require 'trinity.base.util'

local ask_tell_checkpoint = {}

local doubles, pair_bytes = ffi.typeof 'double[?]', 16
-- Maximum number of scores in a checkpoint. With more, the latest one stays, and a search that resumes from it takes
-- longer to the same result.
local most_scores = 4e6

local Scores = {}
Scores.__index = Scores

-- Collects the scores of a search for its checkpoints. kept: the scores of the checkpoint from which it resumes.
local function scores_of(self, kept)
  local file = self.checkpoint .. '.scores'
  local scores = setmetatable({ file = file, count = 0, new = {}, bytes = 0, sum = 0, before = '' }, Scores)
  if not kept then return scores end
  scores.count, scores.bytes, scores.sum = #kept.content / pair_bytes, #kept.content, kept.sum
  -- Appends to the file if it belongs to this search and ends where the checkpoint does.
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

--- Writes new scores to the file. Returns false if the run folder cannot be written any more.
function Scores:write(search)
  local text = ffi.string(doubles(#self.new, self.new), pair_bytes / 2 * #self.new)
  if not checkpoints.write_beside(search, self.file, self.before .. text, self.grows) then return false end
  self.bytes, self.sum = self.bytes + #text, tensorboard.crc32c(text, self.sum)
  self.new, self.before, self.grows = {}, '', true
  return true
end

-- Reads the scores that the notes of a checkpoint name: { content =, file =, length = of the file, sum = }, or nil.
local function kept_of(self, resumed)
  if not resumed or not resumed.scores then return nil end
  local owner = 'methods.' .. self.method
  local content, file, length = checkpoints.grown(owner, self.resume, resumed.scores, resumed.scores_sum,
    resumed.scores_bytes)
  if #content % pair_bytes ~= 0 then
    util.fail('%s: %s: expected pairs of doubles, got %d bytes', owner, file, #content)
  end
  return { content = content, file = file, length = length, sum = tensorboard.crc32c(content) }
end

-- Converts them for replay in ask_tell().
local function replay_of(kept)
  local scores = doubles(#kept.content / pair_bytes * 2)
  ffi.copy(scores, kept.content, ffi.sizeof(scores))
  return { scores = scores, count = #kept.content / pair_bytes, at = 0 }
end

--- Returns hooks for ask_tell(): one writes checkpoints with the method's own `notes`; the other replays the scores of
--- `resumed`, the notes of a checkpoint. `first`: evaluations of the search before the searcher's;
--- self.evaluations is set to it if the search resumes.
function ask_tell_checkpoint.hooks(self, resumed, first, notes)
  if not self.checkpoint and not resumed then return {} end
  local hooks, kept = {}, kept_of(self, resumed)
  local scores = self.checkpoint and scores_of(self, kept)
  if resumed then self.evaluations = first end
  hooks.replay = kept and replay_of(kept)
  local again = kept and hooks.replay.count or 0 -- scores still to be replayed
  function hooks.on_scores(values, excess, count)
    if not scores or scores.count > most_scores then return end
    if again <= 0 then scores:add(values, excess, count) end
    again = again - count
    -- Best and curve come from the checkpoint until all scores are replayed.
    if again > 0 then return end
    if not checkpoints.due(self) or not scores:write(self) then return end
    notes.first, notes.scores, notes.scores_bytes = first, scores.file:match '[^/]*$', scores.bytes
    notes.scores_sum = ('%08x'):format(scores.sum)
    checkpoints.write(self, notes)
  end
  return hooks
end

return ask_tell_checkpoint
