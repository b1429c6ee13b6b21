-- Graphs in TensorFlow 1.15's operations (scripts/studies/tensorflow). Expected operations come from TensorFlow itself: the same
-- layers were built with its Python API (slim.batch_norm, tf.layers, rnn_cell, ...; version 1.15.0 of PyPI),
-- optimised with apply_gradients(compute_gradients(loss, colocate_gradients_with_ops=True)), joined with the
-- moving averages by tf.group, and counted in graph_util.extract_sub_graph of that operation and the loss:
-- operations by type, distinct inputs that are tensors (`data`), and distinct control inputs (`control`).

local layers = require 'trinity.graph.layers'
local tensorflow = require 'studies.tensorflow'
local trinity = require 'trinity'
local util = require 'trinity.base.util'

--- Operations by type, data and control edges.
local function count(graph)
  local types, data, control = {}, 0, 0
  for i = 1, graph.operators do
    local op, seen = graph:operator(i), {}
    types[op.type] = (types[op.type] or 0) + 1
    for _, tensor in ipairs(op.inputs) do
      local key = tensor.producer .. tensor.name
      if not seen[key] and tensor.name:sub(1, 1) == '^' then control = control + 1
      elseif not seen[key] then data = data + 1 end
      seen[key] = true
    end
  end
  return types, data, control
end

local function image_network()
  local net = layers.new 'unfused'
  local x = net:conv('conv', net:input('image', { 2, 3, 9, 9 }), { channels = 4, kernel = 3 })
  x = net:relu('relu', net:batch_norm('bn', x, { fused = 0 }))
  x = net:flatten('flatten', net:max_pool('pool', x, { kernel = 2, stride = 2 }))
  net:softmax_cross_entropy('loss', net:linear('classifier', x, 5), net:input('labels', { 2 }, 'int64'))
  return net:build()
end

describe('TensorFlow\'s operations', function()
  it('has TensorFlow\'s number of operations of each type', function()
    local types, data, control = count(tensorflow.lower(image_network()))
    local lines = {}
    for type, number in util.sorted_pairs(types) do lines[#lines + 1] = ('%s = %d'):format(type, number) end
    expect(table.concat(lines, ', ')):equals(
      'AddN = 2, AddV2 = 2, ApplyMomentum = 5, AssignSub = 2, BiasAdd = 1, BiasAddGrad = 1, Const = 33, Conv2D = 1, '
      .. 'Conv2DBackpropFilter = 1, Conv2DBackpropInput = 1, ExpandDims = 1, Fill = 1, Identity = 24, MatMul = 3, '
      .. 'MaxPool = 1, MaxPoolGrad = 1, Mean = 3, Mul = 14, Neg = 2, NoOp = 12, Placeholder = 2, PreventGradient = 1, '
      .. 'RealDiv = 3, Relu = 1, ReluGrad = 1, Reshape = 11, Rsqrt = 1, RsqrtGrad = 1, ShapeN = 1, '
      .. 'SparseSoftmaxCrossEntropyWithLogits = 1, SquaredDifference = 1, Squeeze = 2, StopGradient = 1, Sub = 4, '
      .. 'Sum = 4, Tile = 3, VariableV2 = 12')
    expect(data):equals(189)
    expect(control):equals(47)
  end)
end)

-- Whole networks with Momentum: operators, data and control edges of TensorFlow's graph; what the paper's
-- table 3 has.
local networks = {
  inception_v3 = { 11144, 13658, 3586, table_3 = { 12745, 21928 }, options = { batch_size = 2 } },
  nasnet_large = { 15740, 22789, 5162, table_3 = { 18644, 27505 }, options = { batch_size = 2 } },
  pnasnet_large = { 11838, 17191, 3855, table_3 = { 14063, 20718 }, options = { batch_size = 2 } },
  gnmt = { 9148, 11820, 3188, table_3 = { 8738, 16564 }, options = { sequence = 15 } },
  nmt = { 16524, 21420, 5734, table_3 = { 16432, 24235 }, options = { sequence = 32 } },
}

--- FLOP of matmuls and convolutions, bytes of weights and of the optimiser's state.
local function facts(graph)
  local products, weights, state = 0, 0, 0
  local matrix = { Conv = true, Gemm = true, MatMul = true, LSTMCell = true, ConvGrad = true, GemmGrad = true,
    MatMulGrad = true, LSTMCellGrad = true, BatchMatMulV2 = true }
  for i = 1, graph.operators do
    local op = graph:operator(i)
    if matrix[op.type] or op.type:find 'Conv2' then products = products + op.flops end
    weights, state = weights + op.parameter_bytes, state + op.persistent_bytes
  end
  return products, weights, state
end

describe('TensorFlow\'s operations of whole networks', function()
  for name, network in util.sorted_pairs(networks) do
    local function graph(more) return trinity.model(name, merged(network.options, more)) end
    local function lowered(more) return tensorflow.load(name, merged(network.options, more)) end
    it('is TensorFlow\'s graph, of table 3\'s size: ' .. name, function()
      local made = lowered {}
      local _, data, control = count(made)
      expect(made.operators):equals(network[1])
      expect(data):equals(network[2])
      expect(control):equals(network[3])
      expect(made.edges):equals(network[2] + network[3])
      expect(made.operators):near(network.table_3[1], 0.25 * network.table_3[1])
      expect(made.edges):near(network.table_3[2], 0.25 * network.table_3[2])
    end)
    it('has the weights, state and matmul FLOP of the layers: ' .. name, function()
      local products, weights, state = facts(graph { optimizer = 'momentum' })
      local made = lowered {}
      local its_products, its_weights, its_state = facts(made)
      expect(made.parameters):equals(graph({}).parameters)
      expect(its_weights):equals(weights)
      expect(its_state):equals(state)
      expect(its_products):near(products, 0.01 * products)
    end)
  end
end)

describe('a graph of TensorFlow\'s operations', function()
  local forward = trinity.model('inception_v3', { batch_size = 8, training = false })
  local graph = tensorflow.lower(forward)

  it('is the same every time', function()
    expect(tensorflow.lower(forward).fingerprint):equals(graph.fingerprint)
  end)
  it('knows all its types', function()
    for i = 1, graph.operators do
      local op = graph:operator(i)
      if not op.known then error('no rule for ' .. op.type) end
    end
    expect(100):below(graph.operators)
  end)
  it('runs about as long as the layers, in as much memory', function()
    local cluster, took, used = trinity.cluster 'p100x2', {}, {}
    for i, made in ipairs { forward:to_training(), graph } do
      local problem = trinity.problem { graph = made, cluster = cluster }
      local metrics = problem:evaluate(problem:placement())
      took[i], used[i] = metrics.step_time_s, metrics.peak_memory_bytes
      -- Cut in two, with and without micro-batches.
      local half = problem:placement_by_unit(function(unit) return unit > made.units / 2 and 2 or 1 end)
      expect(problem:evaluate(half).feasible):truthy()
      local pipelined = trinity.problem { graph = made, cluster = cluster, schedule = 'gpipe', micro_batches = 4 }
      expect(pipelined:evaluate(half).step_time_s > 0):truthy()
    end
    -- TensorFlow's batch normalisation without a fused kernel moves the data several times.
    expect(took[1]):below(took[2])
    expect(took[2]):below(2 * took[1])
    expect(used[2]):near(used[1], 0.1 * used[1])
  end)
  it('counts no time for views and for what is known before the step', function()
    local views = 0
    for i = 1, graph.operators do
      local op = graph:operator(i)
      local free = op.type == 'Const' or op.type == 'Identity' or op.type == 'Reshape' or op.type == 'ConcatOffset'
        or op.type == 'VariableV2' or op.type == 'NoOp' or op.name:find 'reduction_indices$'
      if free and (op.flops ~= 0 or op.traffic_bytes ~= 0) then error(op.name .. ' costs something') end
      if free then views = views + 1 end
    end
    expect(20):below(views)
    expect(views):below(graph.operators - 20)
  end)
end)

describe('devices that operations share', function()
  local function units()
    local graph, unit = tensorflow.lower(image_network()), {}
    for i = 1, graph.operators do
      local op = graph:operator(i)
      unit[op.name] = op.unit
    end
    return unit, graph
  end

  it('keep a weight with its read, its state, its average and its update', function()
    local unit = units()
    for _, name in ipairs { 'conv/weights/read', 'conv/weights/Momentum', 'Momentum/update_conv/weights/ApplyMomentum' } do
      expect(unit[name]):equals(unit['conv/weights'])
    end
    expect(unit['bn/moving_mean/read']):equals(unit['bn/moving_mean'])
    expect(unit['bn/AssignMovingAvg/AssignSub']):equals(unit['bn/moving_mean'])
    expect(unit['conv/weights'] == unit['conv/Conv2D']):equals(false)
  end)
  it('keep gradients with their forward operation, and constants with their readers', function()
    local unit, graph = units()
    for i = 1, graph.operators do
      local op = graph:operator(i)
      local forward = op.name:match '^gradients/(.-)_grad/'
      if forward then
        expect(op.unit):equals(unit[forward])
        expect(op.phase):equals 'backward'
        expect(graph:operator(op.forward).name):equals(forward)
      end
      if op.type == 'Conv2D' or op.type == 'Relu' or op.type == 'MaxPool' then expect(op.phase):equals 'forward' end
      if op.type == 'ApplyMomentum' then expect(op.phase):equals 'update' end
    end
    expect(unit['bn/moments/mean/reduction_indices']):equals(unit['bn/moments/mean'])
    expect(unit['gradients/AddN']):equals(unit['bn/batchnorm/mul'])
    expect(unit['bn/batchnorm/mul'] == unit['bn/batchnorm/mul_1']):equals(false)
  end)
end)

describe('lowering to the framework', function()
  it('refuses what it cannot build', function()
    expect(function() tensorflow.lower(image_network():to_training()) end)
      :raises "operator 'loss/grad' %(SoftmaxCrossEntropyLossGrad%): expected a layer of the paper's networks in float32"
    local profile = trinity.model(root .. '/tests/data/profiles/small.graph.txt', { training = false })
    expect(function() tensorflow.lower(profile) end):raises "expected a layer of the paper's networks"
    local net = layers.new('half', { dtype = 'float16' })
    net:softmax_cross_entropy('loss', net:linear('first', net:input('x', { 4, 8 }), 8), net:input('l', { 4 }, 'int64'))
    expect(function() tensorflow.lower(net:build()) end):raises "operator 'first' %(Gemm%): expected a layer"
  end)
end)

describe('a graph builder', function()
  local function build(...)
    local builder = require('trinity.graph').new { name = 'by hand' }
    for _, spec in ipairs { { name = 'w', type = 'VariableV2', outputs = { { shape = { 4 } } } }, ... } do builder:add(spec) end
    return builder:build()
  end
  it('takes phases, forward operations, shared devices and resident bytes', function()
    local graph = build({ name = 'g', type = 'ReluGrad', phase = 'backward', forward = 'w' },
      { name = 'u', type = 'ApplyAdam', phase = 'update', forward = 'w', colocate_with = 'g', persistent_bytes = 32 })
    local g, u = graph:operator(2), graph:operator(3)
    expect(g.phase .. ' ' .. u.phase):equals 'backward update'
    expect(g.forward + u.forward):equals(2)
    expect(u.unit):equals(g.unit)
    expect(u.persistent_bytes):equals(32)
    expect(graph.units):equals(2)
    expect(graph.training):truthy()
  end)
  it('refuses names that it does not know', function()
    expect(function() build { name = 'g', type = 'Relu', phase = 'backwards' } end)
      :raises "operator 'g': unknown phase 'backwards', did you mean 'backward'%? %(known: forward, backward, update%)"
    expect(function() build { name = 'g', type = 'Relu', forward = 'v' } end)
      :raises "operator 'g': field 'forward': no operator 'v'"
    expect(function() build { name = 'g', type = 'Relu', colocate_with = 'v' } end)
      :raises "operator 'g': field 'colocate_with': no operator 'v'"
    expect(function() build { name = 'g', type = 'Relu', persistent_bytes = -1 } end):raises 'persistent_bytes'
  end)
  it('returns what was given: attributes, weights, dtypes', function()
    local op = build { name = 'c', type = 'Conv', outputs = { { shape = { 1, 2 }, dtype = 'float16', gradient = false } },
      attributes = { strides = { 1, 2 }, epsilon = 0.5, group = 3, mode = 'same' },
      parameters = { { name = 'weight', shape = { 2, 3 }, dtype = 'int8', trainable = false } } }:operator(2)
    expect(('%d %d'):format(unpack(op.attributes.strides))):equals '1 2'
    expect(op.attributes.epsilon + op.attributes.group):equals(3.5)
    expect(op.attributes.mode):equals 'same'
    local weight, output = op.parameters[1], op.outputs[1]
    expect(('%s %s %s %dx%d'):format(weight.name, weight.dtype, tostring(weight.trainable), unpack(weight.shape)))
      :equals 'weight int8 false 2x3'
    expect(('%s %s'):format(output.dtype, tostring(output.gradient))):equals 'float16 false'
  end)
end)

describe('a loaded graph', function()
  it('reduces the gradients of replicas and nothing else', function()
    local graph = tensorflow.load('resnet50', { batch_size = 2 })
    local copies, origin = graph:replicate { replicas = 2 }
    local reduced_bytes = 0
    for i = 1, copies.operators do
      if origin[i] == 0 then
        for _, tensor in ipairs(copies:operator(i).outputs) do reduced_bytes = reduced_bytes + tensor.bytes end
      end
    end
    expect(reduced_bytes):equals(2 * 4 * graph.parameters)
  end)
  it('takes the options of the model', function()
    expect(function() tensorflow.load('vgg16', { batchsize = 1 }) end):raises "did you mean 'batch_size'"
  end)
  it('is the graph that a file keeps: a command takes it as a model', function()
    local path = temporary '.json'
    trinity_says(("study tensorflow alexnet --batch_size 1 --save '%s'"):format(path), 0, '^alexnet: 202 operations, 353 edges\n')
    trinity_says(("info '%s' --run none"):format(path), 0, 'operators +202\nedges +353\n')
  end)
  it('is not executed, and the message says what is', function()
    local graph = tensorflow.load('alexnet', { batch_size = 1 })
    local problem = trinity.problem { graph = graph, cluster = trinity.cluster 'p100x1' }
    expect(function() trinity.execute(problem, problem:placement()) end):raises 'use the network built of layers'
  end)
end)

describe('table 4 of the paper Trinity, one GPU', function()
  local function one_card(model, options)
    local problem = trinity.problem { check_memory = false, graph = tensorflow.load(model, options), cluster = trinity.cluster 'p100_paper' }
    return problem:evaluate(problem:placement())
  end
  it('has a GNMT that fits in 0.30 s and a PNASNet-Large (8) in 1.45 s, within 2 times', function()
    local gnmt, pnasnet = one_card('gnmt', {}), one_card('pnasnet_large', { batch_size = 8 })
    expect(gnmt.feasible):truthy()
    expect(gnmt.step_time_s):near(0.30, 0.15)
    expect(pnasnet.feasible):truthy()
    expect(pnasnet.step_time_s >= 1.45 / 2 and pnasnet.step_time_s <= 1.45 * 2):truthy()
  end)
  it('has no NASNet-Large (32) and no NMT of 1,728 units that fit', function()
    expect(one_card('nasnet_large', { batch_size = 32 }).feasible):equals(false)
    expect(one_card('nmt', { hidden = 1728 }).feasible):equals(false)
  end)
end)
