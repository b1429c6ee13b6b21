-- Losses of trinity.nn against hand-computed values and finite differences; batches of graphs; messages.

local trinity = require 'trinity'
with_torch()
local tensor, nn = trinity.tensor, trinity.nn

local compare = dofile(root .. '/tests/lua/support/gradients.lua')(expect)
local double, flat, close_to = compare.double, compare.flat, compare.close_to

-- Derivatives of loss(x) by x against central differences.
local function check_gradient(x, loss)
  x = double(x, true)
  compare.check_gradient(function() return loss(x) end, { x })
end

local log, exp = math.log, math.exp

describe('losses', function()
  it('mse: values, reductions, derivatives', function()
    local x, y = double { 1, 3 }, double { 0.5, 0 }
    close_to(nn.mse(x, y, 'none'), { 0.25, 9 })
    close_to(nn.mse(x, y, 'sum'), { 9.25 })
    close_to(nn.mse(x, y), { 9.25 / 2 })
    check_gradient({ 1, 3 }, function(v) return nn.mse(v, y, 'sum') end)
    expect(function() nn.mse(x, y, 'men') end):raises "nn.mse: argument 3 %('reduction'%): unknown value 'men', did you mean 'mean'%?"
    expect(function() nn.mse(x, double { 1, 1, 1 }) end):raises "losses_spec.lua:%d+: nn.mse: argument 2 %('y'%): expected shape %[2%]"
    expect(function() nn.mse(tensor.new({ 1 }, { dtype = 'int64' }), double { 0 }) end):raises 'expected floating point'
  end)
  it('of categories', function()
    local logits = double { { 0, log(3) }, { log(4), 0 } }
    close_to(nn.cross_entropy(logits, { 2, 2 }, 'none'), { -log(0.75), -log(0.2) })
    close_to(nn.nll(logits:log_softmax(), { 1, 1 }), { (log(4) - log(0.8)) / 2 })
    check_gradient({ { 0.5, -1 } }, function(v) return nn.cross_entropy(v, { 2 }, 'sum') end)
    expect(function() nn.nll(logits, { 1, 3 }) end):raises 'index 3 is outside 1 to 2'
    expect(function() nn.cross_entropy(logits, { 1 }) end):raises 'expected shape %[2%], got %[1%]'
  end)
  it('activations that they stand on', function()
    close_to(nn.softplus(double { 0.3, -2 }), { log(1 + exp(0.3)), log(1 + exp(-2)) })
    close_to(nn.log_sigmoid(double { 0.3, -2 }), { -log(1 + exp(-0.3)), -log(1 + exp(2)) })
    close_to(nn.silu(double { 2 }), { 2 / (1 + exp(-2)) })
  end)
end)

describe('messages', function()
  it('name what is close to an unknown name of nn', function()
    expect(function() return nn.linearr end):raises "losses_spec.lua:%d+: trinity.nn: no 'linearr', did you mean 'linear'%? %(known: adam, "
    expect(function() return nn.huber end):raises "trinity.nn: the loss 'huber' was removed; use tensor operations"
  end)
  it('say where an optimiser takes its parameters', function()
    local net = nn.linear { inputs = 1, outputs = 1 }
    expect(function() nn.adam(net) end):raises(
      "nn.adam: argument 1 %('options'%): expected { parameters = network:parameters%(%), ... }, got a network")
    expect(function() nn.sgd(net:parameters()) end):raises "nn.sgd: argument 1 .*got the list alone"
  end)
end)

describe('a batch of graphs', function()
  local parts = {
    { values = double { { 1, 2 }, { 3, 4 } }, from = { 1 }, to = { 2 } },
    { values = double { { 5, 6 }, { 7, 8 }, { 9, 10 } }, from = { 1, 2 }, to = { 2, 3 } },
  }
  it('passes a network over all of them as over each', function()
    local layer = nn.graph_convolution { inputs = 2, outputs = 3, seed = 4 }:to { dtype = 'float64' }
    local batch = nn.graph_batch(parts)
    expect(batch.nodes):equals(5)
    local together = nn.graph_split(layer(batch.values, batch.edges), batch)
    for i, part in ipairs(parts) do
      local alone = nn.graph_batch { part }
      close_to(together[i], flat(layer(alone.values, alone.edges)))
    end
  end)
  it('sums and means by graph', function()
    local batch = nn.graph_batch(parts)
    close_to(nn.graph_sum(batch.values, batch), { 4, 6, 21, 24 })
    close_to(nn.graph_mean(batch.values, batch), { 2, 3, 7, 8 })
    expect(batch.first[2]):equals(3)
    close_to(batch.graph, { 1, 1, 2, 2, 2 })
  end)
  it('takes what trinity.features gives', function()
    local list = {}
    for i, name in ipairs { 'alexnet', 'vgg16' } do
      list[i] = trinity.features(trinity.problem { graph = trinity.model(name, { batch_size = 8 }),
        cluster = trinity.cluster 'p100x2' }, { node2vec = false })
    end
    local batch = nn.graph_batch(list)
    expect(batch.nodes):equals(list[1].units + list[2].units)
    expect(batch.types:numel()):equals(batch.nodes)
    close_to(nn.graph_split(batch.values, batch)[2], flat(list[2].values))
  end)
  it('refuses parts that do not fit', function()
    expect(function() nn.graph_batch {} end):raises 'expected at least one graph'
    expect(function() nn.graph_batch { parts[1], { values = double { { 1 } }, from = {}, to = {} } } end):raises(
      "entry 2: field 'values': expected width 2 as before, got 1")
    expect(function() nn.graph_batch { { values = double { { 1 } }, from = { 1 }, to = { 2 } } } end):raises(
      'entry 1: edge 1: expected nodes from 1 to 1, got 1 and 2')
    expect(function() nn.graph_batch { 3 } end):raises 'entry 1: expected features'
    expect(function() nn.graph_mean(double { 1 }, nn.graph_batch(parts)) end):raises "expected a tensor %[5 x ...%]"
  end)
end)
