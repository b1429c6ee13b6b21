-- trinity.stragglers: steps of a strategy on slow devices, with noise, unequal sequences and unequal experts; recorded
-- steps replayed. The module is also a function, trinity.stragglers(strategy, options), which is its run().

---@class trinity.StragglersModule
---@since 0.1.0
---@overload fun(strategy: trinity.Strategy, options?: trinity.StragglerOptions): trinity.Stragglers
local stragglers = {
  context_degrees = require 'trinity.stragglers.context_degrees',
  expert_load = require 'trinity.stragglers.expert_load',
  replay = require 'trinity.stragglers.replay',
  run = require 'trinity.stragglers.run',
}

return setmetatable(stragglers, { __call = function(_, ...) return stragglers.run(...) end })
