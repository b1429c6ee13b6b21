-- trinity.profile: measured times of a network's operators and of copies between devices on this machine, and the
-- parameters of the cost model fitted to them.
--
--   local profile = trinity.profile.measure(graph, { devices = { 'cpu:0', 'cpu:1' } })
--   profile:save 'profile.json'
--   local problem = trinity.problem { graph = graph, profile = 'profile.json' }   -- measured times and links
--   local cluster = trinity.cluster 'profile.json' -- same; other networks get fitted efficiencies and measured links
--
-- An operator's time is the time from its start to the next start on a single device, which includes the executor's
-- work between two operators; the profile has the median over the steps after a warm-up. Copies are made as the
-- executor makes them: the receiving worker clones data that the sender has just written (engine/execute/measure.h).
-- Consecutive copies give the bandwidth of a link. Its latency is the additional time of copies within whole steps with
-- units on random devices, because a copy between kernels takes several times as long to start.
-- lib/trinity/profile/fit.lua fits the parameters.

---@class trinity.ProfileModule
local profile = { measure = require('trinity.execute.measure').run, load = require('trinity.profile.object').load }

return profile
