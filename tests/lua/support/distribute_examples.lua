-- Valid arguments for data-parallel training (support/examples.lua).

local trinity = require 'trinity'

return function(examples)
  local objects, arguments = examples.objects, examples.arguments
  objects['trinity.DistModule'] = function() return trinity.dist end
  objects['trinity.Job'] = function() return trinity.dist.init() end
  arguments['trinity.DistModule.init'] = function() return { {} } end
  arguments['trinity.Job.all_reduce'] = function() return { trinity.tensor.ones(2), { scope = 'node' } } end
  arguments['trinity.Job.broadcast'] = function() return { trinity.tensor.ones(2), { scope = 'node', root = 0 } } end
  arguments['trinity.Job.print'] = function() return { '' } end
end
