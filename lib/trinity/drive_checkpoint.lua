-- What a search of the engine (lib/trinity/drive.lua) goes on from: the scores of all placements that its searcher was
-- told. A new searcher with the same seed asks for the same placements and is told the same, without any simulation.

local checkpoints = require 'trinity.checkpoints'

local drive_checkpoint = {}

--- Hooks for drive(): one that writes checkpoints with the method's own `notes`, and what `resumed`, the notes of one,
--- says was told before. `first`: evaluations of the search before the searcher's own, to which self.evaluations is set
--- where the search goes on.
function drive_checkpoint.hooks(self, resumed, first, notes)
  if not self.checkpoint and not resumed then return {} end
  local options, last, values, excess = self.options, self.evaluations, {}, {}
  local every = (options.checkpoint_every or 1) * (options.samples or 16)
  local hooks = {}
  function hooks.told(new_values, new_excess, count)
    if not self.checkpoint or checkpoints.too_many(self, #values) then return end
    for i = 1, count do
      values[#values + 1], excess[#excess + 1] = new_values[i], new_excess[i]
    end
    -- Best and curve are those of the checkpoint until all of it is told again.
    if hooks.replay and hooks.replay.at < #hooks.replay.values then return end
    -- Checkpoints grow with the search, so they become rarer: writing them stays a small part of it.
    local by_count = self.evaluations - last >= math.max(every, (last - first) / 8)
    if not checkpoints.due(self, by_count) then return end
    last = self.evaluations
    notes.first, notes.values, notes.excess = first, checkpoints.pack(values), checkpoints.pack(excess)
    checkpoints.write(self.checkpoint, self, notes)
  end
  if resumed then
    hooks.replay = { values = checkpoints.unpack(resumed.values), excess = checkpoints.unpack(resumed.excess), at = 0 }
    self.evaluations, last = first, first
  end
  return hooks
end

return drive_checkpoint
