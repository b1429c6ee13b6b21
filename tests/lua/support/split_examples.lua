-- Valid arguments for PaSE and splits (support/examples.lua).

local trinity = require 'trinity'

return function(examples)
  local graph = trinity.model('rnnlm', { training = false, batch_size = 4, sequence = 2, hidden = 4, vocabulary = 8 })
  local function make() return trinity.pase(graph, { devices = 2, cutoff = 1 }) end
  local shared = make()

  examples.objects['trinity.Pase'] = function(method)
    return method == 'close' and make() or shared
  end
  local arguments = examples.arguments
  arguments['trinity.pase'] = function() return { graph, { devices = 2, cutoff = 1 } } end
  arguments['trinity.PipelineModule.schedule_bubble'] = function() return { { mesh = { pipeline = 2 }, micro_batches = 4 } } end
  arguments['trinity.Pase.configuration'] = function() return { 1, 1 } end
  arguments['trinity.Pase.layer_cost'] = function() return { 1, 1 } end
  arguments['trinity.Pase.edge_cost'] = function() return { 1, 1, 1 } end
  arguments['trinity.Pase.find'] = function() return { 1, { 1, 1, 1, 1 } } end
  arguments['trinity.Pase.price'] = function() return { shared:data_parallel().configurations, 'mine' } end
  arguments['trinity.Pase.solve'] = function() return { { quiet = true } } end
  arguments['trinity.Pase.mcmc'] = function() return { { iterations = 10 } } end
  arguments['trinity.Pase.splits'] = function() return { shared:data_parallel(), { 1, 2 } } end
  arguments['trinity.MethodsModule.pase'] = function() return { examples.shared().problem, { quiet = true } } end
end
