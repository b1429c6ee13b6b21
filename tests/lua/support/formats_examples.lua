-- Valid arguments for plans as files of other programs (see examples.lua).

local trinity = require 'trinity'

local made

--- A strategy with a mesh, and an order for its pipeline.
local function mesh()
  if made then return made end
  local net = trinity.layers.new('blocks', { batch_size = 2 })
  local x = net:input('x', { 2, 4 })
  for i = 1, 2 do x = net:linear(('block_%d/linear'):format(i), x, 4) end
  net:softmax_cross_entropy('loss', x, net:input('y', { 2 }, 'int64'))
  local problem = trinity.problem { graph = net:build():to_training(), cluster = trinity.cluster 'p100x2' }
  made = { strategy = problem:strategy { mesh = { pipeline = 2 } }, path = os.tmpname() }
  trinity.files.write(made.path, '0F0,0B0\n1F0,1B0\n')
  made.orders = trinity.formats.read_schedule(made.path)
  return made
end

return function(examples)
  examples.objects['trinity.FormatsModule'] = function() return trinity.formats end
  examples.arguments['trinity.Strategy.export'] = function() return { { format = 'accelerate' } } end
  examples.arguments['trinity.FormatsModule.files'] = function() return { mesh().strategy, { format = 'megatron' } } end
  examples.arguments['trinity.FormatsModule.export'] = function() return { mesh().strategy, { format = 'megatron' } } end
  examples.arguments['trinity.FormatsModule.read_schedule'] = function()
    trinity.files.write(mesh().path, '0F0,0B0\n1F0,1B0\n')
    return { mesh().path }
  end
  examples.arguments['trinity.FormatsModule.simulate_schedule'] = function()
    return { mesh().strategy, mesh().orders }
  end
end
