-- Strategies executed for real: every placement computes what one device computes, and that is what a plain module of
-- trinity.nn computes.

local core = require 'trinity.core'
local nn = require 'trinity.nn'
local tensor = require 'trinity.nn.tensor'
local trinity = require 'trinity'

with_torch()

local tiny = {
  images = { images = true },
  rnnlm = { batch_size = 2, sequence = 5, hidden = 16, vocabulary = 40 },
  gnmt = { batch_size = 2, sequence = 3, hidden = 16, vocabulary = 30 },
  nmt = { batch_size = 2, sequence = 3, hidden = 16, vocabulary = 30 },
  bert_base = { batch_size = 2, layers = 2, hidden = 32, heads = 4, sequence = 8, vocabulary = 60 },
  gpt2 = { batch_size = 2, layers = 2, hidden = 32, heads = 4, sequence = 8, vocabulary = 60 },
  transformer = { batch_size = 2, sequence = 6, layers = 2, vocabulary = 40, hidden = 32, heads = 4 },
}

local function problem_of(name, options)
  return trinity.problem { graph = trinity.model(name, options), cluster = trinity.cluster 'p100x3' }
end

--- Convolutions, pools and what else image networks have, in small.
local function image_problem()
  local net = trinity.graph.layers.new('images', { batch_size = 3 })
  local function block(name, x, channels)
    local y = net:conv(name, x, { channels = channels, kernel = 3, stride = 1, padding = 1 })
    return net:relu(name .. '/relu', net:batch_norm(name .. '/bn', y))
  end
  local x = block('first', net:input('image', { 3, 2, 12, 12 }), 4)
  local a, b = block('a', x, 4), block('b', net:max_pool('pool', x, { kernel = 3, stride = 1, padding = 1 }), 4)
  local c = net:average_pool('mean', net:add('sum', a, b), { kernel = 2, stride = 2 })
  local d = net:max_pool('most', net:add('again', a, x), { kernel = 2, stride = 2 })
  local y = net:dropout('drop', net:flatten('flat', net:concat('join', { c, d })), { ratio = 0.25 })
  net:softmax_cross_entropy('loss', net:linear('out', y, 5), net:input('labels', { 3 }, 'int64'))
  return trinity.problem { graph = net:build():to_training(), cluster = trinity.cluster 'p100x3' }
end

local function random_placement(problem, seed)
  local random = trinity.random(seed, 'execute_spec')
  return problem:placement_by_unit(function() return random:integer(3) end)
end

--- Losses of some steps and all weights after them.
local function train(problem, placement, steps)
  local graph = problem.graph
  local executor = core.executor(graph.handle, placement, 3, nil, { seed = 3, learning_rate = 0.05 })
  local numbers = {}
  for step = 1, steps do numbers[step] = executor:step().loss end
  for op = 1, graph.operators do
    for i = 1, #(graph:operator(op).parameters or {}) do
      for _, value in ipairs(executor:weight(op, i)) do numbers[#numbers + 1] = value end
    end
  end
  executor:close()
  return numbers
end

describe('execution', function()
  for name, options in trinity.system.sorted_pairs(tiny) do
    it(('computes the same losses and weights of %s under every placement'):format(name), function()
      local problem = options.images and image_problem() or problem_of(name, options)
      local expected = train(problem, problem:placement(), 3)
      expect(expected[1] > 0 and expected[1] < 20):equals(true)
      local found = train(problem, random_placement(problem, 1), 3)
      expect(#found):equals(#expected)
      for i = 1, #expected do
        if found[i] ~= expected[i] then expect(found[i]):near(expected[i], 1e-5 * math.abs(expected[i])) end
      end
    end)
  end

  it('computes what a plain module computes', function()
    local layers = trinity.graph.layers
    local net = layers.new('plain', { batch_size = 4 })
    local x = net:input('x', { 4, 3 })
    local hidden = net:relu('relu', net:rms_norm('norm', net:linear('first', x, 5)))
    net:softmax_cross_entropy('loss', net:linear('second', hidden, 2), net:input('labels', { 4 }, 'int64'))
    local graph = net:build():to_training { optimizer = 'sgd' }
    local problem = trinity.problem { graph = graph, cluster = trinity.cluster 'p100x3' }
    local executor = core.executor(graph.handle, random_placement(problem, 2), 3, nil,
      { seed = 3, learning_rate = 0.5 })
    local function read(name, i, shape) return tensor.new(executor:weight(graph:find(name), i)):reshape(shape) end
    local first, second = nn.linear { inputs = 3, outputs = 5 }, nn.linear { inputs = 5, outputs = 2 }
    local parameters = {}
    for _, part in ipairs { { first, 'first', { 5, 3 }, { 5 } }, { second, 'second', { 2, 5 }, { 2 } } } do
      for i, parameter in ipairs(part[1]:parameters()) do
        tensor.no_grad(function() parameter:copy_(read(part[2], i, part[2 + i])) end)
        parameters[#parameters + 1] = parameter
      end
    end
    local scale = tensor.new(executor:weight(graph:find 'norm', 1), { requires_grad = true })
    parameters[#parameters + 1] = scale
    local function normalised(h) return h / ((h * h):mean(2, true) + 1e-5):sqrt() * scale end
    local optimiser = nn.sgd { parameters = parameters, learning_rate = 0.5 }
    for _ = 1, 5 do
      local data, labels = executor:data(graph:find 'x'), executor:data(graph:find 'labels')
      for i = 1, #labels do labels[i] = labels[i] + 1 end -- scripts count classes from 1
      local step = executor:step()
      local out = second(normalised(first(tensor.new(data):reshape { 4, 3 })):relu())
      local loss = nn.cross_entropy(out, tensor.new(labels, { dtype = 'int64' }))
      expect(step.loss):near(loss:item(), 1e-5 * loss:item())
      optimiser:zero_grad()
      loss:backward()
      optimiser:step()
    end
  end)

  it('names operators that it cannot execute', function()
    local builder = trinity.graph.new { name = 'odd' }
    local x = builder:add { name = 'x', type = 'Input', outputs = { { shape = { 4 } } } }
    builder:add { name = 'y', type = 'Nonsense', inputs = { x }, outputs = { { shape = { 4 } } } }
    local problem = trinity.problem { graph = builder:build(), cluster = trinity.cluster 'p100x3' }
    expect(function() trinity.execute(problem, problem:placement()) end)
      :raises 'graph odd: no kernel for operator type Nonsense'
    local profile = problem_of('rnnlm', tiny.rnnlm)
    expect(function() trinity.execute(profile, profile:placement(), { steps = 2, warm_up = 2 }) end)
      :raises "'warm_up': expected fewer than the 2 steps, got 2"
  end)
end)
