-- The image networks against what is published of them, and the layers that they are made of.

local layers = require 'trinity.graph.layers'
local trinity = require 'trinity'

local function forward(name, options)
  return trinity.model(name, merged({ training = false, batch_size = 1 }, options or {}))
end

-- The published figures count multiply-adds of convolutions and full layers, weights that are
-- not trained, and how many operators of each type there are.
local function facts(graph)
  local f = { multiply_adds = 0, count = setmetatable({}, { __index = function() return 0 end }) }
  for i = 1, graph.operators do
    local op = graph:operator(i)
    if op.type == 'Conv' or op.type == 'Gemm' then f.multiply_adds = f.multiply_adds + op.flops / 2 end
    f.count[op.type] = f.count[op.type] + 1
  end
  f.statistics = graph.parameter_bytes / 4 - graph.parameters
  return f
end

local function shapes(graph)
  local shape = {}
  for i = 1, graph.operators do
    local op = graph:operator(i)
    shape[op.name] = table.concat(op.outputs[1].shape, 'x')
  end
  return shape
end

-- parameters: of all that is trained. statistics: moving means and variances of batch normalisation, which
-- PyTorch and papers do not count, and Keras counts as "non-trainable".
-- Sources: torchvision's `num_params` and `_ops` (inception.py, resnet.py, vgg.py; the model pages show the
-- same); Keras: what Model.summary() prints (applications of TensorFlow 2) and its page of applications,
-- which gives the sum of both; imgclsmob: its table of parameters of networks (osmr/imgclsmob), which
-- counts as PyTorch does; the papers for multiply-adds.
local published = {
  -- torchvision: 27,161,264 with the auxiliary head, 5.713 GFLOPS (it counts a multiply-add as one).
  { model = 'inception_v3', options = { auxiliary = true }, parameters = 27161264 },
  -- The same without it: 3,326,696 fewer (98,304 + 256 + 2,457,600 + 1,536 + 769,000). Statistics: Keras.
  { model = 'inception_v3', parameters = 23834568, statistics = 34432, multiply_adds = 5.713e9 },
  -- Keras: 23,851,784 in all, 23,817,352 trained; slim's inception_v3 has no scale either. 94
  -- convolutions and the same number of shifts, with the two of the classifier its 190 trained tensors.
  { model = 'inception_v3', options = { batch_norm_scale = false }, parameters = 23817352, statistics = 34432,
    convolutions = 94, normalisations = 94 },
  -- torchvision: 25,557,032 and 4.089. Statistics: Keras (25,636,712 in all, with 26,560 biases of
  -- convolutions, which torchvision has not). 53 convolutions: He et al. 2016, 49 and 4 projections.
  { model = 'resnet50', parameters = 25557032, statistics = 53120, multiply_adds = 4.089e9, convolutions = 53,
    normalisations = 53 },
  -- He et al. 2016, table 1: 3.8e9 (version 1).
  { model = 'resnet50', options = { v1 = true }, parameters = 25557032, multiply_adds = 3.8e9 },
  -- torchvision and Keras: 138,357,544; torchvision: 15.47.
  { model = 'vgg16', parameters = 138357544, statistics = 0, multiply_adds = 15.47e9, convolutions = 13,
    normalisations = 0 },
  -- Zoph et al. 2018, table 2: 88.9 M and 23.8 G. Keras: 88,949,818 in all, 88,753,150 trained, 196,668 not;
  -- 1018 trained tensors of 1546: 264 normalisations, 488 convolutions (a separable one has two), the
  -- classifier's two.
  { model = 'nasnet_large', parameters = 88753150, statistics = 196668, multiply_adds = 23.8e9,
    convolutions = 488, normalisations = 264 },
  -- slim's auxiliary head on 2016 channels of 21 x 21, counted by hand from _build_aux_head: 258,048 + 256
  -- + 3,538,944 + 1,536 + 769,000 more.
  { model = 'nasnet_large', options = { auxiliary = true }, parameters = 88753150 + 4567784,
    statistics = 196668 + 2 * (128 + 768) },
  -- Liu et al. 2018, table 5: 86.1 M and 25.0 G; imgclsmob: 86,057,668. No count of statistics is
  -- published: see the size of the weights below.
  { model = 'pnasnet_large', parameters = 86057668, statistics = 176988, multiply_adds = 25.0e9 },
  -- The same head on 2160 channels: 276,480 + 256 + 3,538,944 + 1,536 + 769,000 more.
  { model = 'pnasnet_large', options = { auxiliary = true }, parameters = 86057668 + 4586216,
    statistics = 176988 + 2 * (128 + 768) },
}

describe('published figures:', function()
  for _, row in ipairs(published) do
    local words = { row.model }
    for key, value in trinity.system.sorted_pairs(row.options or {}) do words[#words + 1] = key .. '=' .. tostring(value) end
    it(table.concat(words, ' '), function()
      local graph = forward(row.model, row.options)
      local f = facts(graph)
      expect(graph.parameters):equals(row.parameters)
      if row.statistics then expect(f.statistics):equals(row.statistics) end
      if row.multiply_adds then expect(f.multiply_adds):near(row.multiply_adds, 0.02 * row.multiply_adds) end
      if row.convolutions then expect(f.count.Conv):equals(row.convolutions) end
      if row.normalisations then expect(f.count.BatchNormalization):equals(row.normalisations) end
    end)
  end
  it('multiply-adds to the last digit of torchvision', function()
    expect(('%.3f'):format(facts(forward 'inception_v3').multiply_adds / 1e9)):equals '5.713'
    expect(('%.3f'):format(facts(forward 'resnet50').multiply_adds / 1e9)):equals '4.089'
    expect(('%.2f'):format(facts(forward 'vgg16').multiply_adds / 1e9)):equals '15.47'
  end)
end)

-- Shapes at the ends of stages with two images.
local ends = {
  -- Szegedy et al. 2016, table 1, and torchvision's comments.
  inception_v3 = { ['stem_1/relu'] = '2x32x149x149', ['stem_3/relu'] = '2x64x147x147', ['stem/pool_1'] = '2x64x73x73',
    ['stem/pool_2'] = '2x192x35x35', ['mixed_a1/concat'] = '2x256x35x35', ['mixed_a2/concat'] = '2x288x35x35',
    ['mixed_a3/concat'] = '2x288x35x35', ['mixed_b/concat'] = '2x768x17x17', ['mixed_c4/concat'] = '2x768x17x17',
    ['mixed_d/concat'] = '2x1280x8x8', ['mixed_e1/concat'] = '2x2048x8x8', ['mixed_e2/concat'] = '2x2048x8x8',
    classifier = '2x1000' },
  -- He et al. 2016, table 1.
  resnet50 = { ['stem/relu'] = '2x64x112x112', ['stem/pool'] = '2x64x56x56', ['stage_1/block_3/relu_3'] = '2x256x56x56',
    ['stage_2/block_4/relu_3'] = '2x512x28x28', ['stage_3/block_6/relu_3'] = '2x1024x14x14',
    ['stage_4/block_3/relu_3'] = '2x2048x7x7', pool = '2x2048x1x1', classifier = '2x1000' },
  -- Simonyan and Zisserman 2015, table 1.
  vgg16 = { ['stage_1/pool'] = '2x64x112x112', ['stage_2/pool'] = '2x128x56x56', ['stage_3/pool'] = '2x256x28x28',
    ['stage_4/pool'] = '2x512x14x14', ['stage_5/pool'] = '2x512x7x7', flatten = '2x25088', classifier = '2x1000' },
  -- slim's nasnet_test.py, testAllEndPointsShapesLargeModel (its Cell_5 is cell_6, and so on).
  nasnet_large = { ['stem_2/concat'] = '2x336x42x42', ['cell_1/concat'] = '2x1008x42x42',
    ['cell_6/concat'] = '2x1008x42x42', ['reduction_1/concat'] = '2x1344x21x21', ['cell_7/concat'] = '2x2016x21x21',
    ['cell_12/concat'] = '2x2016x21x21', ['reduction_2/concat'] = '2x2688x11x11', ['cell_13/concat'] = '2x4032x11x11',
    ['cell_18/concat'] = '2x4032x11x11', classifier = '2x1000' },
  -- slim's pnasnet_test.py, testAllEndPointsShapesLargeModel (Cell_4 is reduction_1, Cell_8 reduction_2), and
  -- the sizes in Cadene's port of the stem.
  pnasnet_large = { ['stem/bn'] = '2x96x165x165', ['stem_1/concat'] = '2x270x83x83', ['stem_2/concat'] = '2x540x42x42',
    ['cell_1/concat'] = '2x1080x42x42', ['cell_4/concat'] = '2x1080x42x42', ['reduction_1/concat'] = '2x2160x21x21',
    ['cell_7/concat'] = '2x2160x21x21', ['reduction_2/concat'] = '2x4320x11x11', ['cell_10/concat'] = '2x4320x11x11',
    pool = '2x4320x1x1', classifier = '2x1000' },
}

describe('stages', function()
  for name, wanted in trinity.system.sorted_pairs(ends) do
    it('of ' .. name .. ' have the published shapes', function()
      local shape = shapes(forward(name, { batch_size = 2 }))
      for operator, text in trinity.system.sorted_pairs(wanted) do expect(shape[operator]):equals(text) end
    end)
  end
  it('of auxiliary heads', function()
    -- Szegedy et al. 2016 and slim: 5 x 5 to 1 x 1 at 299; 6 x 6 at 331, all of it in one convolution.
    local inception, nasnet = shapes(forward('inception_v3', { auxiliary = true })), shapes(forward('nasnet_large', { auxiliary = true }))
    expect(inception['auxiliary/pool']):equals '1x768x5x5'
    expect(inception['auxiliary/2/conv']):equals '1x768x1x1'
    expect(nasnet['auxiliary/pool']):equals '1x2016x6x6'
    expect(nasnet['auxiliary/conv_2']):equals '1x768x1x1'
    expect(nasnet['total_loss']):equals '1'
  end)
end)

local names = { 'inception_v3', 'nasnet_large', 'pnasnet_large', 'resnet50', 'vgg16' }

describe('every image network', function()
  for _, name in ipairs(names) do
    it(name .. ' has another classifier for other classes, and no more', function()
      local thousand, ten = forward(name), forward(name, { classes = 10 })
      local features = ({ vgg16 = 4096, nasnet_large = 4032, pnasnet_large = 4320 })[name] or 2048
      expect(thousand.parameters - ten.parameters):equals(990 * (features + 1))
      expect(shapes(ten).classifier):equals '1x10'
    end)
    it(name .. ' costs three times as much for three images, with the same weights', function()
      local one, three = forward(name), forward(name, { batch_size = 3 })
      expect(three.flops):equals(3 * one.flops)
      expect(three.parameter_bytes):equals(one.parameter_bytes)
      expect(three.operators):equals(one.operators)
    end)
    it(name .. ' needs gradients of both operands of its matmuls, but not of the images', function()
      local graph, first = trinity.model(name, { batch_size = 1 }), nil
      local flops = { forward = 0, backward = 0 }
      for i = 1, graph.operators do
        local op = graph:operator(i)
        if op.type:match '^Conv' or op.type:match '^Gemm' then flops[op.phase] = flops[op.phase] + op.flops end
        if op.type == 'Conv' then first = first or op.flops end
      end
      expect(flops.backward):equals(2 * flops.forward - first)
    end)
  end
  it('has operators by the layer: tens to little more than a thousand', function()
    local count = {}
    for _, name in ipairs(names) do count[name] = forward(name).operators end
    expect(count.inception_v3):equals(313)
    expect(count.vgg16):below(50)
    expect(count.resnet50):below(200)
    expect(count.pnasnet_large):below(1000)
    expect(count.nasnet_large):below(1300)
  end)
  it('takes other image sizes', function()
    -- A convolution's FLOP follow its output's area; VGG's first full layer its input's.
    local small, large = facts(forward('resnet50', { image_size = 224 })), facts(forward('resnet50', { image_size = 448 }))
    local full = 2048 * 1000
    expect(large.multiply_adds - full):equals(4 * (small.multiply_adds - full))
    expect(forward('vgg16', { image_size = 448 }).parameters):equals(138357544 + 512 * (14 * 14 - 7 * 7) * 4096)
    for _, name in ipairs { 'inception_v3', 'nasnet_large', 'pnasnet_large', 'resnet50' } do
      expect(forward(name, { image_size = 100 }).parameters):equals(forward(name).parameters)
    end
  end)
  it('says what is wrong with an option', function()
    expect(function() forward('resnet50', { image_size = 16 }) end):raises "model 'resnet50': option 'image_size': expected an integer from 32, got number 16"
    expect(function() forward('vgg16', { classes = 0 }) end):raises "'classes': expected an integer from 1"
    expect(function() forward('inception_v3', { image_size = 75, auxiliary = true }) end):raises
      "'auxiliary/pool': expected a kernel that fits the image, got 5x5 on 3x3"
  end)
end)

describe('training as published', function()
  it('frees the backward operators without weights when asked', function()
    local all = trinity.model('inception_v3', { batch_size = 1 })
    local free = trinity.model('inception_v3', { batch_size = 1, colocate = 'parameters' })
    expect(free.operators):equals(all.operators)
    expect(all.units):below(free.units)
  end)
  it('adds the auxiliary loss to the loss', function()
    for _, name in ipairs { 'inception_v3', 'nasnet_large', 'pnasnet_large' } do
      local graph = forward(name, { auxiliary = true })
      local last = graph:operator(graph.operators)
      expect(last.name):equals 'total_loss'
      expect(last.inputs[1].name):equals 'loss:0'
      expect(last.inputs[2].name):equals 'total_loss/scaled:0'
    end
  end)
  it('drops paths of searched cells', function()
    -- The ten operations of a cell without "none": 8 in a normal cell of NASNet, 9 in the others.
    expect(forward('nasnet_large', { drop_path = true }).operators - forward('nasnet_large').operators):equals(18 * 8 + 4 * 9)
    expect(forward('pnasnet_large', { drop_path = true }).operators - forward('pnasnet_large').operators):equals(14 * 9)
    expect(forward('nasnet_large', { drop_path = true }).parameters):equals(88753150)
  end)
end)

-- Shape, weights and FLOP of one layer over an image, and the layer; `add` takes the layers and the image.
local function layer(shape, add)
  local net = layers.new('layer', {})
  add(net, net:input('x', shape))
  local graph = net:build()
  local last = graph:operator(graph.operators)
  return table.concat(last.outputs[1].shape, 'x'), graph.parameters, graph.flops, last
end

describe('layers of images:', function()
  local image = { 2, 8, 12, 10 }
  local function conv(o)
    return function(net, x)
      o.channels = o.channels or 16
      net:conv('conv', x, o)
    end
  end
  it("padding 'same' rounds up, as TensorFlow's SAME", function()
    for _, case in ipairs { { 12, 3, 2, 6 }, { 11, 3, 2, 6 }, { 7, 1, 2, 4 }, { 5, 7, 1, 5 }, { 83, 7, 2, 42 }, { 10, 2, 3, 4 } } do
      local size, kernel, stride, wanted = unpack(case)
      expect((layer({ 1, 3, size, size }, conv { kernel = kernel, stride = stride, padding = 'same' })))
        :equals(('1x16x%dx%d'):format(wanted, wanted))
    end
  end)
  it('padding on each side', function()
    expect((layer(image, conv { kernel = 3, padding = { 1, 0, 0, 2 } }))):equals '2x16x11x10'
    expect((layer(image, conv { kernel = { 3, 1 }, padding = { 1, 0 } }))):equals '2x16x12x10'
    expect(function() layer(image, conv { kernel = 3, padding = { 1, 2, 3 } }) end):raises "conv 'conv': padding: expected"
    expect(function() layer(image, conv { kernel = 3, padding = 'valid' }) end):raises "got string 'valid'"
    expect(function() layer(image, conv { kernel = 3, padding = -1 }) end):raises 'got number %-1'
  end)
  it('kernels and strides that are none', function()
    expect(function() layer(image, conv {}) end):raises "layers:conv: option 'kernel' is missing"
    expect(function() layer(image, conv { kernel = 3, stride = 0 }) end):raises 'stride: expected an integer from 1'
    expect(function() layer(image, conv { kernel = 1.5 }) end):raises 'kernel: expected an integer from 1'
    expect(function() layer(image, conv { kernel = 3, group = 3 }) end):raises
      "conv 'conv': group: expected a divisor of 8 input and 16 output channels, got number 3"
    expect(function() layer(image, conv { kernel = 3, channels = 0.5 }) end):raises "option 'channels': expected an integer from 1"
    expect(function() layer(image, conv { kernel = 13 }) end):raises 'expected a kernel that fits the image, got 13x13 on 12x10'
    expect(function() layer({ 2, 8 }, conv { kernel = 1 }) end):raises 'expected an image %[N, C, H, W%], got a tensor of 2 axes'
  end)
  it('ceil counts windows that only begin inside', function()
    local function pooled(size, o)
      return (layer({ 1, 3, size, size }, function(net, x) net:max_pool('pool', x, o) end))
    end
    -- GoogLeNet's first pooling: 112 to 56 (torchvision's comments).
    expect(pooled(112, { kernel = 3, stride = 2, ceil = true })):equals '1x3x56x56'
    expect(pooled(112, { kernel = 3, stride = 2 })):equals '1x3x55x55'
    expect(pooled(113, { kernel = 3, stride = 2, ceil = true })):equals '1x3x56x56'
    -- A window that begins in the padding at the end does not count (PyTorch, ONNX).
    expect(pooled(2, { kernel = 1, stride = 2, ceil = true })):equals '1x3x1x1'
    expect(pooled(4, { kernel = 2, stride = 3, padding = 1, ceil = true })):equals '1x3x2x2'
  end)
  it('crop and zero_pad', function()
    local sides = { 1, 2, 0, 3 }
    expect((layer(image, function(net, x) net:zero_pad('pad', x, sides) end))):equals '2x8x13x15'
    local shape, _, _, cropped = layer(image, function(net, x) net:crop('crop', x, sides) end)
    expect(shape):equals '2x8x11x5'
    expect(trinity.files.json.encode(cropped.attributes):gsub('%s', '')):equals '{"axes":[2,3],"ends":[12,7],"starts":[1,2]}'
    expect(function() layer(image, function(net, x) net:crop('crop', x, { 6, 0, 6, 0 }) end) end):raises
      "crop 'crop': expected sides smaller than the image of 12x10"
    expect(function() layer(image, function(net, x) net:zero_pad('pad', x, { 1, 1 }) end) end):raises
      "layers:zero_pad: argument 3 %('sides'%): expected { top, left, bottom, right }"
  end)
  it('statistics of batch normalisation are not trained', function()
    local function norm(o)
      local net = layers.new('norm', {})
      net:batch_norm('bn', net:input('x', image), o)
      return net:build()
    end
    expect(norm().parameters):equals(16)
    expect(norm().parameter_bytes):equals(4 * 32)
    expect(norm({ scale = false }).parameters):equals(8)
  end)
end)
