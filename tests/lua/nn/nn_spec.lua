-- trinity.nn: layers against hand-computed values and finite differences, own modules, files, training.

local trinity = require 'trinity'
local core = require 'trinity.core'
with_torch()
local tensor, nn = trinity.tensor, trinity.nn

local compare = dofile(root .. '/tests/lua/support/gradients.lua')(expect)
local double, flat, close_to = compare.double, compare.flat, compare.close_to

local function bytes(module)
  local parts = {}
  for _, item in ipairs(module:named_parameters()) do
    parts[#parts + 1] = item[1]
    for _, value in ipairs(flat(item[2]:detach())) do parts[#parts + 1] = ('%.17g'):format(value) end
  end
  return table.concat(parts, ' ')
end

local function names(module)
  local list = {}
  for i, item in ipairs(module:named_parameters()) do list[i] = item[1] end
  return table.concat(list, ' ')
end

local function set(parameter, values)
  tensor.no_grad(parameter.copy_, parameter, double(values))
end

-- Autograd of a module in float64, for its parameters and its input, against central differences.
local function check_gradient(module, x, f)
  f = f or function(input) return (module(input)) end
  local leaves = module:to({ dtype = 'float64' }):parameters()
  if x.requires_grad then leaves[#leaves + 1] = x end
  local weights = tensor.normal(f(x):size(), trinity.random(1, 'weights'), { dtype = 'float64' })
  compare.check_gradient(function() return (f(x) * weights):sum() end, leaves)
end

local function input(...) return tensor.normal({ ... }, trinity.random(5, 'input'), { dtype = 'float64', requires_grad = true }) end

describe('layers', function()
  it('linear', function()
    local layer = nn.linear { inputs = 2, outputs = 3, seed = 1 }
    set(layer.weight, { { 1, 2 }, { 3, 4 }, { 5, 6 } })
    set(layer.bias, { 0.5, 0, -1 })
    close_to(layer(tensor.new { { 1, 10 }, { 0, 1 } }), { { 21.5, 43, 64 }, { 2.5, 4, 5 } })
    close_to(layer:forward(tensor.new { 1, 10 }), { 21.5, 43, 64 })
    expect(names(nn.linear { inputs = 2, outputs = 3, bias = false })):equals 'weight'
    expect(tostring(layer)):equals 'linear, 9 weights\n  weight [3 x 2]\n  bias [3]'
    check_gradient(nn.linear { inputs = 3, outputs = 2 }, input(4, 3))
  end)
  it('embedding, 1-based', function()
    local layer = nn.embedding { count = 3, size = 2 }
    set(layer.weight, { { 1, 2 }, { 3, 4 }, { 5, 6 } })
    close_to(layer(tensor.new({ { 3 }, { 1 } }, { dtype = 'int64' })), { { { 5, 6 } }, { { 1, 2 } } })
    close_to(layer { 2 }, { { 3, 4 } })
    expect(function() layer { 4 } end):raises "nn_spec.lua:%d+: nn.embedding: argument 1 %('indices'%): index 4 is outside 1 to 3"
    check_gradient(nn.embedding { count = 4, size = 3 }, tensor.new({ 1, 4, 4 }, { dtype = 'int64' }))
  end)
  it('lstm: one step by hand, and derivatives', function()
    local layer = nn.lstm { inputs = 1, hidden = 1, seed = 1 }
    expect(layer.input_bias_1:totable()[2]):equals(1) -- forget gate
    set(layer.input_weight_1, { { 0.1 }, { 0.2 }, { 0.3 }, { 0.4 } })
    set(layer.hidden_weight_1, { { 0.5 }, { 0.6 }, { 0.7 }, { 0.8 } })
    local function sigmoid(z) return 1 / (1 + math.exp(-z)) end
    local function tanh(z) return 2 * sigmoid(2 * z) - 1 end
    local x, h, c = 2, 0.3, -0.4
    local cell = sigmoid(0.2 * x + 0.6 * h + 1) * c + sigmoid(0.1 * x + 0.5 * h) * tanh(0.3 * x + 0.7 * h)
    local hidden = sigmoid(0.4 * x + 0.8 * h) * tanh(cell)
    local output, state = layer(tensor.new { { { x } } }, { tensor.new { { { h } } }, tensor.new { { { c } } } })
    close_to(output, { { { hidden } } })
    close_to(state[1], { { { hidden } } })
    close_to(state[2], { { { cell } } })
    local both = nn.lstm { inputs = 3, hidden = 2, layers = 2, bidirectional = true }
    local sequence, last = both(tensor.ones { 5, 4, 3 })
    expect(table.concat(sequence:size(), ' ')):equals '5 4 4'
    expect(table.concat(last[2]:size(), ' ')):equals '4 4 2'
    check_gradient(both, input(3, 2, 3))
    check_gradient(nn.lstm { inputs = 2, hidden = 2 }, input(3, 2, 2), nil)
  end)
  it('gru: one step by hand, and derivatives', function()
    local layer = nn.gru { inputs = 1, hidden = 1 }
    set(layer.input_weight_1, { { 0.1 }, { 0.2 }, { 0.3 } })
    set(layer.hidden_weight_1, { { 0.5 }, { 0.6 }, { 0.7 } })
    set(layer.hidden_bias_1, { 0, 0, 0.2 })
    local function sigmoid(z) return 1 / (1 + math.exp(-z)) end
    local x, h = 2, 0.3
    local r, z = sigmoid(0.1 * x + 0.5 * h), sigmoid(0.2 * x + 0.6 * h)
    local new = 2 * sigmoid(2 * (0.3 * x + r * (0.7 * h + 0.2))) - 1
    local output = layer(tensor.new { { { x } } }, tensor.new { { { h } } })
    close_to(output, { { { (1 - z) * new + z * h } } })
    check_gradient(nn.gru { inputs = 2, hidden = 3, layers = 2 }, input(3, 2, 2))
  end)
  it('activations are functions', function()
    close_to(nn.relu(tensor.new { -1, 2 }), { 0, 2 })
    close_to(nn.softmax(tensor.new { 0, 0 }), { 0.5, 0.5 })
  end)
end)

describe('modules', function()
  local function policy(seed)
    return nn.sequential { nn.linear { inputs = 4, outputs = 4 }, nn.relu, nn.linear { inputs = 4, outputs = 4 }, seed = seed }
  end
  it('same seed, same bytes; layers differ', function()
    expect(bytes(policy(1))):equals(bytes(policy(1)))
    expect(bytes(policy(1)) ~= bytes(policy(2))):truthy()
    for _, net in ipairs { policy(1), policy() } do
      local parameters = net:parameters()
      expect((parameters[1] - parameters[3]):abs():sum():item() > 0.1):truthy()
      expect(parameters[1]:abs():max():item()):below(math.sqrt(6 / 8))
      expect(parameters[2]:abs():sum():item()):equals(0)
    end
    expect(names(policy())):equals '1.weight 1.bias 3.weight 3.bias'
    expect(#policy():parameters()):equals(4)
  end)
  it('keep weights that were asked for or trained', function()
    local layer = nn.linear { inputs = 2, outputs = 2, seed = 8 }
    local before = bytes(layer)
    nn.sequential { layer, nn.relu }
    expect(bytes(layer)):equals(before)
    local trained = nn.linear { inputs = 2, outputs = 2 }
    tensor.no_grad(trained.weight.add_, trained.weight, 1)
    before = bytes(trained)
    nn.sequential { trained }
    expect(bytes(trained)):equals(before)
    expect(bytes(trained:initialise(1)) ~= before):truthy()
  end)
  it('written in a script: fields are found in order', function()
    local Policy = nn.class 'policy'
    function Policy:build(options)
      self.embed = nn.embedding { count = 5, size = options.width }
      self.blocks = {}
      for i = 1, 2 do self.blocks[i] = nn.linear { inputs = options.width, outputs = options.width } end
      self.scale = tensor.ones(1, { requires_grad = true })
      self.constant = tensor.ones(1)
    end
    function Policy:forward(x)
      x = self.embed(x)
      for _, block in ipairs(self.blocks) do x = block(x):tanh() end
      return x * self.scale
    end
    function Policy:width() return self.embed.size end
    local net = Policy { width = 3, seed = 7 }
    expect(names(net)):equals 'embed.weight blocks.1.weight blocks.1.bias blocks.2.weight blocks.2.bias scale'
    expect(table.concat(net { 1, 5 }:size(), ' ')):equals '2 3'
    expect(net:width()):equals(3)
    expect(bytes(net)):equals(bytes(Policy { width = 3, seed = 7 }))
    expect(bytes(net) ~= bytes(Policy { width = 3, seed = 8 })):truthy()
    net(tensor.new({ 1 }, { dtype = 'int64' })):sum():backward()
    expect(net.scale.grad ~= nil):truthy()
    net:zero_grad()
    expect(net.scale.grad):equals(nil)
    expect(nn.is_module(net)):equals(true)
    expect(nn.is_module {}):equals(false)
  end)
  it('save and load: the same bytes, names and shapes checked', function()
    local path = temporary()
    local net = policy(3)
    net:save(path)
    local other = policy(4):load(path)
    expect(bytes(other)):equals(bytes(net))
    local function fails(module, pattern)
      local before = bytes(module)
      expect(function() module:load(path) end):raises('nn_spec.lua:%d+: module:load: ' .. pattern)
      expect(bytes(module)):equals(before)
    end
    fails(nn.sequential { nn.linear { inputs = 4, outputs = 4 }, nn.relu, nn.linear { inputs = 4, outputs = 5 } },
      ".*parameter '3.weight': expected shape %[5 x 4%], got %[4 x 4%]")
    fails(nn.sequential { nn.linear { inputs = 4, outputs = 4 } }, ".*parameter '3.bias' is unknown to this module")
    fails(nn.sequential { nn.relu, nn.linear { inputs = 4, outputs = 4 } }, ".*no parameter '2.weight', did you mean '1.weight'")
    core.write_file(path, 'nonsense')
    expect(function() net:load(path) end):raises 'not a safetensors file'
  end)
  it('close: use afterwards is an error', function()
    local net = policy(1)
    net:close()
    net:close()
    expect(tostring(net)):equals 'sequential (closed)'
    expect(function() net(tensor.ones(4)) end):raises 'nn_spec.lua:%d+: sequential: this module is closed'
    expect(function() net:parameters() end):raises 'this module is closed'
  end)
  it('refuse wrong options and inputs', function()
    local function fails(body, pattern) expect(body):raises('nn_spec.lua:%d+: .-' .. pattern) end
    fails(function() nn.linear { inputs = 2 } end, "nn.linear: option 'outputs' is missing")
    fails(function() nn.linear { inputs = 0, outputs = 2 } end, "nn.linear: option 'inputs': expected an integer from 1")
    fails(function() nn.linear { inputs = 2 ^ 20, outputs = 2 ^ 20 } end, 'more than 2%^31')
    fails(function() nn.linear { inputs = 4, outputs = 1 }(tensor.ones { 2, 3 }) end,
      "nn.linear: argument 1 %('x'%): expected a last dimension of 4, got %[2 x 3 float32%]")
    fails(function() nn.linear { inputs = 4, outputs = 1 }(7) end, "nn.linear: argument 1 %('x'%): expected tensor, got 7")
    fails(function() nn.lstm { inputs = 2, hidden = 2 }(tensor.ones { 2, 2 }) end, "nn.lstm: argument 1 %('x'%)")
    fails(function() nn.lstm { inputs = 2, hidden = 2 }(tensor.ones { 2, 2, 2 }, { tensor.ones(2) }) end,
      "nn.lstm: argument 2 %('state'%): expected a tensor hidden %[1 x 2 x 2%]")
    fails(function() nn.sequential {} end, 'nn.sequential: .*expected at least one')
    fails(function() nn.sequential { 3 } end, 'entry 1: expected a module or a function, got number 3')
    fails(function() nn.class 'empty' {}(1) end, 'empty: expected a method forward%(%) in this class, got none')
  end)
end)

describe('optimisers', function()
  it('Adam: the first two steps by hand', function()
    local w = double({ 1 }, true)
    local adam = nn.adam { parameters = { w }, learning_rate = 0.1, betas = { 0.9, 0.99 }, epsilon = 1e-8 }
    local m, v, expected = 0, 0, 1
    for step = 1, 2 do
      adam:zero_grad();
      (w * w * 3):sum():backward()
      local g = 6 * expected
      m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g
      expected = expected - 0.1 * (m / (1 - 0.9 ^ step)) / (math.sqrt(v / (1 - 0.99 ^ step)) + 1e-8)
      adam:step()
      expect(w:item()):near(expected, 1e-12)
    end
    expect(adam:state()[1].step):equals(2)
    expect(adam:state()[1].exp_avg:item()):near(m, 1e-12)
  end)
  it('SGD with momentum by hand', function()
    local w = double({ 1 }, true)
    local sgd = nn.sgd { parameters = { w }, learning_rate = 0.1, momentum = 0.5 }
    local velocity, expected = 0, 1
    for _ = 1, 3 do
      sgd:zero_grad();
      (w * w):sum():backward()
      velocity = 0.5 * velocity + 2 * expected
      expected = expected - 0.1 * velocity
      sgd:step()
      expect(w:item()):near(expected, 1e-12)
    end
    sgd.learning_rate = 0
    sgd:step()
    expect(w:item()):near(expected, 1e-12)
  end)
  it('clip gradients', function()
    local w = double({ 3, 4 }, true);
    (w * w / 2):sum():backward()
    expect(nn.clip_grad_norm({ w }, 1)):near(5, 1e-12)
    expect(w.grad:norm():item()):near(1, 1e-5)
  end)

  -- A network trained for `steps` on y = 2 a - b + 0.5 with what `make` makes; the last loss, and bytes.
  local function regression(make, steps, from, to)
    local net = nn.sequential { nn.linear { inputs = 2, outputs = 8 }, nn.tanh, nn.linear { inputs = 8, outputs = 1 }, seed = 1 }
    local optimiser = make(net:parameters())
    local x = tensor.uniform({ 64, 2 }, trinity.random(1, 'data'), -1, 1)
    local target = x:matmul(tensor.new { { 2 }, { -1 } }) + 0.5
    if from then
      net:load(from .. '.net')
      optimiser:load(from .. '.optimiser')
    end
    local loss
    for _ = 1, steps do
      optimiser:zero_grad()
      loss = nn.mse(net(x), target)
      loss:backward()
      optimiser:step()
    end
    if to then
      net:save(to .. '.net')
      optimiser:save(to .. '.optimiser')
    end
    return loss:item(), bytes(net)
  end
  local function adam(parameters) return nn.adam { parameters = parameters, learning_rate = 0.02 } end

  it('train a small regression to near zero, the same bytes every time', function()
    local loss, first = regression(adam, 600)
    expect(loss):below(1e-3)
    local _, second = regression(adam, 600)
    expect(second):equals(first)
  end)
  it('continue from files as if never stopped', function()
    local path = temporary()
    for _, make in ipairs { adam, function(p) return nn.sgd { parameters = p, learning_rate = 0.05, momentum = 0.9 } end } do
      local _, whole = regression(make, 40)
      regression(make, 25, nil, path)
      local _, continued = regression(make, 15, path)
      expect(continued):equals(whole)
    end
    local sgd = nn.sgd { parameters = { double({ 1 }, true) }, learning_rate = 1 }
    expect(function() sgd:load(path .. '.net') end):raises "optimiser:load: .*entry '3.bias'"
  end)
  it('refuse wrong options', function()
    local function fails(body, pattern) expect(body):raises('nn_spec.lua:%d+: .-' .. pattern) end
    local w = double({ 1 }, true)
    fails(function() nn.adam {} end, "nn.adam: option 'parameters' is missing")
    fails(function() nn.adam { parameters = {} } end, "nn.adam: argument 1 %('parameters'%): .*empty")
    fails(function() nn.adam { parameters = { tensor.ones(1) } } end, 'entry 1 .*requires no gradients')
    fails(function() nn.adam { parameters = { w * 2 } } end, 'result of an operation')
    fails(function() nn.adam { parameters = { w }, betas = { 1, 2 } } end, "nn.adam: option 'betas': expected two numbers from 0 to below 1, got number 1")
    fails(function() nn.sgd { parameters = { w } } end, "option 'learning_rate' is missing")
    fails(function() nn.clip_grad_norm({ w }, 0) end, 'expected a positive number')
    local optimiser = nn.adam { parameters = { w } }
    fails(function() optimiser.learning_rate = -1 end, 'expected a number from 0')
    fails(function() optimiser:load_state {} end, 'expected 1 entries, got 0')
    fails(function() optimiser:load_state { { step = 1 } } end, "entry 1: field 'exp_avg': expected a tensor, got nil")
    optimiser:close()
    fails(function() optimiser:step() end, 'optimiser:step: .*this optimiser is closed')
  end)
end)
