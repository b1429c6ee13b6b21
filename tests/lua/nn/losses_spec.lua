-- Losses of trinity.nn against hand-computed values and finite differences; messages.

local trinity = require 'trinity'
with_torch()
local tensor, nn = trinity.tensor, trinity.nn

local compare = dofile(root .. '/tests/lua/support/gradients.lua')(expect)
local double, close_to = compare.double, compare.close_to

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
    expect(function() nn.mse(x, double { 1, 1, 1 }) end):raises "losses_spec.lua:%d+: nn.mse: argument 2 %('y'%): expected shape %[2%]"
    expect(function() nn.mse(tensor.new({ 1 }, { dtype = 'int64' }), double { 0 }) end):raises 'expected floating point'
  end)
  it('of categories', function()
    local logits = double { { 0, log(3) }, { log(4), 0 } }
    close_to(nn.cross_entropy(logits, { 2, 2 }, 'none'), { -log(0.75), -log(0.2) })
    check_gradient({ { 0.5, -1 } }, function(v) return nn.cross_entropy(v, { 2 }, 'sum') end)
    expect(function() nn.cross_entropy(logits, { 1, 3 }) end):raises 'index 3 is outside 1 to 2'
    expect(function() nn.cross_entropy(logits, { 1 }) end):raises 'expected shape %[2%], got %[1%]'
  end)
  it('activations that they depend on', function()
    close_to(double({ 0.3, -2 }):softplus(), { log(1 + exp(0.3)), log(1 + exp(-2)) })
    close_to(double({ 0.3, -2 }):log_sigmoid(), { -log(1 + exp(-0.3)), -log(1 + exp(2)) })
    close_to(nn.silu(double { 2 }), { 2 / (1 + exp(-2)) })
  end)
end)

describe('messages', function()
  it('name what is close to an unknown name of nn', function()
    expect(function() return nn.linearr end):raises "losses_spec.lua:%d+: trinity.nn: no field 'linearr', did you mean 'linear'%?$"
  end)
  it('say where an optimiser takes its parameters', function()
    local net = nn.linear { inputs = 1, outputs = 1 }
    expect(function() nn.adam(net) end):raises(
      "nn.adam: argument 1 %('options'%): expected { parameters = network:parameters%(%), ... }, got a network")
    expect(function() nn.sgd(net:parameters()) end):raises "nn.sgd: argument 1 .*got the list alone"
  end)
end)
