-- Valid arguments for plans as files of other programs (see examples.lua).

local graphs = dofile(require('trinity.core').home .. '/tests/lua/support/graphs.lua')
local trinity = require 'trinity'

local made

--- A strategy with a mesh.
local function mesh()
  if made then return made end
  made = trinity.problem { graph = graphs.blocks(2), cluster = trinity.cluster 'p100x2' }:strategy { mesh = { pipeline = 2 } }
  return made
end

return function(examples)
  examples.objects['trinity.FormatsModule'] = function() return trinity.formats end
  examples.arguments['trinity.Strategy.export'] = function() return { { format = 'accelerate' } } end
  examples.arguments['trinity.FormatsModule.files'] = function() return { mesh(), { format = 'megatron' } } end
  examples.arguments['trinity.FormatsModule.export'] = function() return { mesh(), { format = 'megatron' } } end
end
