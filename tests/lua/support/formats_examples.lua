-- Valid arguments for plans as files of other programs (see examples.lua).

local trinity = require 'trinity'

local made

--- A strategy with a mesh.
local function mesh()
  if made then return made end
  local net = trinity.layers.new('blocks', { batch_size = 2 })
  local x = net:input('x', { 2, 4 })
  for i = 1, 2 do x = net:linear(('block_%d/linear'):format(i), x, 4) end
  net:softmax_cross_entropy('loss', x, net:input('y', { 2 }, 'int64'))
  local problem = trinity.problem { graph = net:build():to_training(), cluster = trinity.cluster 'p100x2' }
  made = problem:strategy { mesh = { pipeline = 2 } }
  return made
end

return function(examples)
  examples.objects['trinity.FormatsModule'] = function() return trinity.formats end
  examples.arguments['trinity.Strategy.export'] = function() return { { format = 'accelerate' } } end
  examples.arguments['trinity.FormatsModule.files'] = function() return { mesh(), { format = 'megatron' } } end
  examples.arguments['trinity.FormatsModule.export'] = function() return { mesh(), { format = 'megatron' } } end
end
