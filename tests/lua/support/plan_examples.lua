-- Valid arguments for trinity.plan (see examples.lua).

local graphs = dofile(require('trinity.core').home .. '/tests/lua/support/graphs.lua')
local trinity = require 'trinity'

local made

--- A small network on two GPUs, and a space of a few points.
local function spec()
  if made then return made end
  made = { graph = graphs.blocks(2), cluster = trinity.cluster 'p100x2', global_batch = 4,
    space = { tensor = 1, pipeline = 1, context = 1, expert = 1, schedule = '1f1b', recompute = 'none', zero_stage = 0 },
    simulations = 2, quiet = true }
  return made
end

return function(examples)
  examples.objects['trinity.PlanModule'] = function() return trinity.plan end
  examples.arguments['trinity.PlanModule.run'] = function() return { spec() } end
  examples.arguments['trinity.PlanModule.dimension'] = function()
    return { 'own', { values = { 1 }, apply = function(strategy) return strategy end } }
  end
  examples.arguments['trinity.PlanModule.move'] = function() return { 'own', function() return {} end } end
end
