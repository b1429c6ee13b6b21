-- Functions of higher-level modules that lower-level modules call without requiring them. lib/trinity/init.lua sets
-- these modules, which are loaded at the first call. Without them, no run is saved, and no process belongs to a job.

local hooks = {}

--- Saves the searches of a run: lib/trinity/runs/search.lua.
hooks.searches = { attach = function() return nil, function() end end, rescue = function() end, close = function() end,
  save_timelines = function() end, earlier_rows = function() end }

--- The job that this process has joined: dist.current.
function hooks.job() return nil end

--- A profile file as an object: load() of lib/trinity/profile/object.lua.
function hooks.read_profile() error('no trinity', 0) end

--- Exports strategies to other programs: export() of lib/trinity/formats.
function hooks.export() error('no trinity', 0) end

--- A strategy as a picture (SVG): lib/trinity/report/plan_picture.lua.
function hooks.picture() error('no trinity', 0) end

--- The graph of Chakra's traces: graph() of lib/trinity/formats/chakra_reader.lua.
function hooks.read_chakra() error('no trinity', 0) end

--- Moves and step states of a problem: lib/trinity/search/moves.lua.
hooks.moves = {}

--- Writes a warning: warn() of lib/trinity/base/progress.lua.
function hooks.warn() end

return hooks
