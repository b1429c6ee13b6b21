-- trinity.profile: what a network's operators and the copies between devices take on this machine, measured, and the
-- cost model's parameters fitted to it.
--
--   local profile = trinity.profile.measure(graph, { devices = { 'cpu:0', 'cpu:1' } })
--   profile:save 'profile.json'
--   local problem = trinity.problem { graph = graph, profile = 'profile.json' }   -- measured times and links
--   local cluster = trinity.cluster 'profile.json' -- the same; other networks get fitted efficiencies, measured links
--
-- An operator's time is that from its start to the start of the next on a single device, so that what the executor
-- does between two operators is in it; a median over the steps after a warm-up. A link's copies are made as the
-- executor makes them: the receiving worker clones what the sender has just written (engine/execute/measure.h). Rows of
-- such copies give a link's bandwidth; its latency is what the copies of whole steps take beyond that, where the units
-- are on devices by chance: between kernels a copy takes several times as long to begin as in a row. How parameters are
-- fitted: lib/trinity/profile/fit.lua.
--
-- Steps that PyTorch's profiler traced: trinity.profile.trace, lib/trinity/profile/trace.

---@class trinity.ProfileModule
---@since 0.1.0
local profile = { measure = require('trinity.execute.measure').run, load = require('trinity.profile.object').load,
  trace = require('trinity.profile.trace').read }

return profile
