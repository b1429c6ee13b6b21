-- Valid arguments for data-parallel training (support/examples.lua).

local trinity = require 'trinity'

local function replication(examples)
  local e = examples.shared()
  return trinity.synchronisation.replicate { graph = e.graph, cluster = e.cluster,
    synchronisation = trinity.synchronisation.bsp {} }
end

return function(examples)
  local objects, arguments = examples.objects, examples.arguments
  objects['trinity.DistModule'] = function() return trinity.dist end
  objects['trinity.Job'] = function() return trinity.dist.init() end
  objects['trinity.Work'] = function() return trinity.dist.init():start_all_reduce(trinity.tensor.ones(2)) end
  objects['trinity.DasoModule'] = function() return trinity.daso end
  objects['trinity.DasoSchedule'] = function() return trinity.daso.schedule { epochs = 9 } end
  objects['trinity.SynchronisationModule'] = function() return trinity.synchronisation end
  objects['trinity.Synchronisation'] = function() return trinity.synchronisation.bsp {} end
  objects['trinity.Replication'] = function() return replication(examples) end

  local strategy = objects['trinity.Strategy']
  objects['trinity.Strategy'] = function(method)
    return method == 'train' and replication(examples):strategy(examples.shared().problem) or strategy(method)
  end
  arguments['trinity.Strategy.train'] = function() return { { batches = 2 } } end
  arguments['trinity.DistModule.init'] = function() return { {} } end
  arguments['trinity.Job.start_all_reduce'] = function() return { trinity.tensor.ones(2), { scope = 'node' } } end
  arguments['trinity.Job.all_reduce'] = arguments['trinity.Job.start_all_reduce']
  arguments['trinity.Job.broadcast'] = function() return { trinity.tensor.ones(2), { scope = 'node', root = 0 } } end
  arguments['trinity.Job.print'] = function() return { '' } end
  arguments['trinity.Job.average_gradients'] = function() return { { trinity.tensor.ones(2) } } end
  arguments['trinity.DasoModule.schedule'] = function() return { { epochs = 9 } } end
  arguments['trinity.DasoSchedule.load_state'] = function(self) return { self:state() } end
  arguments['trinity.SynchronisationModule.bsp'] = function() return { { bucket_bytes = 0 } } end
  arguments['trinity.SynchronisationModule.parameter_server'] = function() return { { servers = 2 } } end
  arguments['trinity.SynchronisationModule.local_sgd'] = function() return { { steps = 2 } } end
  arguments['trinity.SynchronisationModule.daso'] = function() return { { max_global_skips = 2 } } end
  arguments['trinity.SynchronisationModule.replicate'] = function()
    local e = examples.shared()
    return { { graph = e.graph, cluster = e.cluster, synchronisation = trinity.synchronisation.bsp {} } }
  end
  arguments['trinity.Replication.train'] = function() return { { batches = 2 } } end
end
