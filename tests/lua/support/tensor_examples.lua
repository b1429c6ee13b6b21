-- Valid arguments for trinity.tensor and trinity.nn: see examples.lua, whose tables this fills.

local trinity = require 'trinity'

return function(examples)
  local tensor, nn = trinity.tensor, trinity.nn
  local objects, values, arguments = examples.objects, examples.values, examples.arguments

  local function square() return tensor.new { { 1, 2 }, { 3, 4 } } end
  local function indices() return tensor.new({ { 1, 2 }, { 2, 1 } }, { dtype = 'int64' }) end
  local function adam() return nn.adam { parameters = nn.linear({ inputs = 2, outputs = 2 }):parameters() } end

  objects['trinity.TensorModule'] = function() return tensor end
  objects['trinity.NnModule'] = function() return nn end
  objects['trinity.TorchTensor'] = function(method)
    if method == 'backward' then return tensor.new({ 1, 2 }, { requires_grad = true }):sum() end
    if method == 'item' then return tensor.new { 1 } end
    if method == 'bmm' then return tensor.ones { 2, 2, 2 } end
    return method == 'one_hot' and indices() or square()
  end
  objects['trinity.Module'] = function() return nn.linear { inputs = 2, outputs = 2 } end
  objects['trinity.NetworkOptimiser'] = adam

  values['trinity.TorchTensor'] = square
  values['trinity.TorchTensor|number'] = square
  values['trinity.TorchTensor|integer[]'] = indices
  values['trinity.TorchTensor[]'] = function() return { square(), square() } end
  values['integer|integer[]'] = function() return 1 end
  values['trinity.RandomStream'] = function() return examples.shared().stream end
  values['trinity.LinearOptions'] = function() return { inputs = 2, outputs = 2 } end
  values['trinity.RecurrentOptions'] = function() return { inputs = 2, hidden = 2 } end
  values['function'] = function() return function(x) return x end end

  local function of(class, name, make) arguments[('trinity.%s.%s'):format(class, name)] = make end
  of('NnModule', 'embedding', function() return { { count = 3, size = 2 } } end)
  of('NnModule', 'sequential', function() return { { nn.linear { inputs = 2, outputs = 2 }, nn.relu } } end)
  for _, name in ipairs { 'cross_entropy', 'nll' } do
    of('NnModule', name, function() return { square(), tensor.new({ 1, 2 }, { dtype = 'int64' }), 'mean' } end)
  end
  of('NnModule', 'mse', function() return { square(), square(), 'mean' } end)
  for _, name in ipairs { 'adam', 'sgd' } do
    of('NnModule', name, function()
      return { { parameters = nn.linear({ inputs = 2, outputs = 2 }):parameters(), learning_rate = 0.1 } }
    end)
  end
  of('NnModule', 'clip_grad_norm', function() return { nn.linear({ inputs = 2, outputs = 2 }):parameters(), 1 } end)
  of('Module', 'to', function() return { { dtype = 'float32' } } end)
  of('Module', 'save', function() return { examples.path() } end)
  of('Module', 'load', function(self)
    local path = examples.path()
    self:save(path)
    return { path }
  end)
  of('NetworkOptimiser', 'load_state', function(self) return { self:state() } end)
  of('NetworkOptimiser', 'save', function() return { examples.path() } end)
  of('NetworkOptimiser', 'load', function(self)
    local path = examples.path()
    self:save(path)
    return { path }
  end)
  of('TensorModule', 'new', function() return { { 1, 2 }, { dtype = 'float64' } } end)
  for _, name in ipairs { 'zeros', 'ones' } do of('TensorModule', name, function() return { { 2, 2 }, { dtype = 'float64' } } end) end
  of('TensorModule', 'full', function() return { { 2, 2 }, 1, { dtype = 'float64' } } end)
  of('TensorModule', 'arange', function() return { 1, 4, 1, { dtype = 'float64' } } end)
  of('TensorModule', 'uniform', function() return { { 2 }, examples.shared().stream, 0, 1, { dtype = 'float64' } } end)
  of('TensorModule', 'where', function() return { square():gt(2), square(), square() } end)
  of('TensorModule', 'no_grad', function() return { function() end } end)
  of('TensorModule', 'grad', function()
    local x = tensor.new({ 1, 2 }, { requires_grad = true })
    return { x:sum(), { x }, { create_graph = false } }
  end)
  of('TensorModule', 'save', function() return { examples.path(), { x = square() } } end)
  of('TensorModule', 'load', function()
    local path = examples.path()
    tensor.save(path, { x = square() })
    return { path }
  end)
  of('TorchTensor', 'to', function() return { { dtype = 'float64' } } end)
  of('TorchTensor', 'clamp', function() return { 1, 2 } end)
  of('TorchTensor', 'masked_fill', function(x) return { x:gt(2), 0 } end)
  of('TorchTensor', 'bmm', function(x) return { x } end)
  of('TorchTensor', 'transpose', function() return { 1, 2 } end)
  of('TorchTensor', 'permute', function() return { { 2, 1 } } end)
  of('TorchTensor', 'reshape', function() return { { 4 } } end)
  of('TorchTensor', 'expand', function() return { { 2, 2 } } end)
  of('TorchTensor', 'narrow', function() return { 1, 1, 1 } end)
  for _, name in ipairs { 'index_select' } do
    of('TorchTensor', name, function() return { 1, tensor.new({ 1 }, { dtype = 'int64' }) } end)
  end
  of('TorchTensor', 'index_add', function() return { 1, tensor.new({ 1, 2 }, { dtype = 'int64' }), square() } end)
  of('TorchTensor', 'one_hot', function() return { 2 } end)
  of('TorchTensor', 'backward', function() return { tensor.new(1), true } end)
end
