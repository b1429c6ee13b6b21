-- Models of sequences: parameters and FLOP against published figures and closed formulas, options, and
-- what becomes of them in training.

local layers = require 'trinity.graph.layers'
local trinity = require 'trinity'

local products = { Gemm = true, MatMul = true, Conv = true, LSTMCell = true, LSTM = true }

-- FLOP of the matmuls of a phase, which is what papers count. A multiply-add is two.
local function product_flops(graph, phase)
  local flops = 0
  for i = 1, graph.operators do
    local op = graph:operator(i)
    if products[op.type:gsub('Grad$', '')] and op.phase == (phase or 'forward') then flops = flops + op.flops end
  end
  return flops
end

-- Attention in ONNX's parts, whose matmuls all are counted by formulas.
local parts = { gpt2 = { kernels = 'onnx', fused = true }, bert_base = { kernels = 'onnx' }, vit_b16 = { kernels = 'onnx', fused = true },
  moe_transformer = { kernels = 'onnx', fused = true } }

local function model(name, options) return trinity.model(name, merged(parts[name] or {}, options or {})) end
local function forward(name, options) return model(name, merged({ training = false }, options or {})) end

-- How many operators there are of each type, and the operators by name.
local function census(graph)
  local count, named = {}, {}
  for i = 1, graph.operators do
    local op = graph:operator(i)
    count[op.type] = (count[op.type] or 0) + 1
    named[op.name] = op
  end
  return count, named
end

local function within(value, published) expect(value):near(published, 0.02 * published) end

-- One step on two P100 of 16 GB with everything on the first, which must take at least the bound.
local function expect_simulates(graph)
  local problem = trinity.problem { graph = graph, cluster = trinity.cluster 'p100x2' }
  local metrics = problem:evaluate(problem:placement())
  expect(problem:bounds().step_time_s):below(metrics.step_time_s + 1e-12)
  expect(metrics.total_communication_bytes):equals(0)
  return problem, metrics
end

describe('published parameters', function()
  -- name, options, parameters, source
  local published = {
    -- Hugging Face Transformers, numel of all parameters: BertModel, BertForMaskedLM, and BertForPreTraining,
    -- which is the checkpoint google-bert/bert-base-uncased (safetensors metadata: 110,106,428).
    { 'bert_base', { head = 'none' }, 109482240 },
    { 'bert_base', { head = 'mlm' }, 109514298 },
    { 'bert_base', { head = 'pretraining' }, 110106428 },
    { 'bert_base', { head = 'pretraining', predictions = 20 }, 110106428 },
    -- Hugging Face Transformers: GPT2LMHeadModel of openai-community/gpt2, -medium, -large, -xl.
    { 'gpt2', { size = 'small' }, 124439808 },
    { 'gpt2', { size = 'medium' }, 354823168 },
    { 'gpt2', { size = 'large' }, 774030080 },
    { 'gpt2', { size = 'xl' }, 1557611200 },
    -- torchvision, ViT_B_16_Weights.IMAGENET1K_V1: num_params.
    { 'vit_b16', {}, 86567656 },
    -- Hugging Face Hub, safetensors metadata of ibm-granite/granite-3.0-1b-a400m-base and of
    -- mistralai/Mixtral-8x7B-v0.1.
    { 'moe_transformer', {}, 1334628352 },
    { 'moe_transformer', { size = 'mixtral_8x7b' }, 46702792704 },
  }
  for _, row in ipairs(published) do
    local name, options, parameters = unpack(row)
    it(('of %s %s'):format(name, options.size or options.head or ''), function()
      local graph = forward(name, options)
      expect(graph.parameters):equals(parameters)
      expect(graph.parameter_bytes):equals(4 * parameters)
    end)
  end
  it('do not depend on batch size, sequence or dropout', function()
    expect(forward('gpt2', { batch_size = 3, sequence = 77, dropout = 0 }).parameters):equals(124439808)
    expect(forward('bert_base', { batch_size = 5, sequence = 512 }).parameters):equals(110106428)
    expect(forward('moe_transformer', { batch_size = 1, sequence = 64, capacity_factor = 2 }).parameters):equals(1334628352)
  end)
end)

describe('bert_base', function()
  -- A block: 12 H^2 weights are multiplied at every position; scores and context take 2 x 2 T^2 H.
  local function encoder(batch, t, blocks, h) return batch * blocks * (24 * t * h * h + 4 * t * t * h) end
  it('has the published FLOP', function()
    -- TinyBERT (Jiao et al. 2020), table 1: 22.5 B FLOP of BERT-base at a length of 128.
    within(product_flops(forward('bert_base', { batch_size = 1, sequence = 128, head = 'none' })), 22.5e9)
  end)
  it('has the FLOP of the closed formula, with every head and length', function()
    local pooler, h, v = 2 * 768 * 768, 768, 30522
    expect(product_flops(forward('bert_base', { batch_size = 4, sequence = 512, head = 'none' })))
      :equals(encoder(4, 512, 12, h) + 4 * pooler)
    expect(product_flops(forward('bert_base', { batch_size = 2, sequence = 128, head = 'mlm' })))
      :equals(encoder(2, 128, 12, h) + 2 * 128 * 2 * (h * h + h * v))
    expect(product_flops(forward('bert_base', { batch_size = 2, sequence = 128, predictions = 20 })))
      :equals(encoder(2, 128, 12, h) + 2 * (pooler + 2 * 2 * h) + 2 * 20 * 2 * (h * h + h * v))
    expect(product_flops(forward('bert_base', { batch_size = 1, sequence = 64, head = 'none', layers = 2, hidden = 128,
      heads = 2, feed_forward = 512 }))):equals(encoder(1, 64, 2, 128) + 2 * 128 * 128)
  end)
  it('reads the tied embedding twice and updates it once', function()
    local graph = model('bert_base', { batch_size = 2 })
    local _, named = census(graph)
    expect(#named['embedding/grad_sum'].inputs):equals(2)
    expect(named['embedding/update'].phase):equals 'update'
    expect(named['tokens_head/logits'].parameter_bytes):equals(4 * 30522) -- its bias alone
    expect_simulates(graph)
  end)
  it('refuses what does not fit', function()
    expect(function() forward('bert_base', { sequence = 513 }) end):raises 'expected positions of at least sequence = 513'
    expect(function() forward('bert_base', { predictions = 129 }) end):raises '129 predictions in a sequence of 128'
    expect(function() forward('bert_base', { head = 'pretrainig' }) end):raises "unknown value 'pretrainig'.*pretraining"
    expect(function() forward('bert_base', { heads = 7 }) end):raises 'got width 768, 7 heads'
  end)
end)

describe('gpt2', function()
  -- Narayanan et al. 2021 ("Efficient Large-Scale Language Model Training"), equation 3 without the
  -- recomputation it counts: a forward pass is 24 B s l h^2 + 4 B s^2 l h + 2 B s h V.
  local function formula(b, s, l, h, v) return 24 * b * s * l * h * h + 4 * b * s * s * l * h + 2 * b * s * h * v end
  it('has the FLOP of the published formula', function()
    expect(product_flops(forward('gpt2', { batch_size = 2 }))):equals(formula(2, 1024, 12, 768, 50257))
    expect(product_flops(forward('gpt2', { batch_size = 1, size = 'xl' }))):equals(formula(1, 1024, 48, 1600, 50257))
    expect(product_flops(forward('gpt2', { batch_size = 3, sequence = 100, layers = 2, hidden = 64, heads = 4,
      vocabulary = 1000 }))):equals(formula(3, 100, 2, 64, 1000))
  end)
  it('has twice the FLOP in its backward pass', function()
    local graph = model('gpt2', { batch_size = 1 })
    expect(product_flops(graph, 'backward')):equals(2 * formula(1, 1024, 12, 768, 50257))
    expect_simulates(graph)
  end)
  it('takes sizes from options before sizes in its name', function()
    local graph = forward('gpt2', { size = 'medium', layers = 1, batch_size = 1 })
    local h = 1024
    expect(graph.parameters):equals(50257 * h + 1024 * h + 12 * h * h + 13 * h + 2 * h)
    expect(graph.name):equals 'gpt2_medium'
  end)
  it('refuses what does not fit', function()
    expect(function() forward('gpt2', { size = 'smal' }) end):raises "unknown value 'smal'.*'small'.*large, medium, small, xl"
    expect(function() forward('gpt2', { sequence = 1025 }) end):raises 'at least sequence = 1025'
  end)
end)

describe('vit_b16', function()
  it('has the published multiply-adds', function()
    -- torchvision's model page: 17.56 G at 224 x 224.
    within(product_flops(forward('vit_b16', { batch_size = 1 })) / 2, 17.56e9)
  end)
  it('has the FLOP of the closed formula', function()
    local n, t, h = 3, 10 * 10 + 1, 768
    expect(product_flops(forward('vit_b16', { batch_size = n, image_size = 160, classes = 10 })))
      :equals(n * (2 * 100 * h * 3 * 256 + 12 * (24 * t * h * h + 4 * t * t * h) + 2 * h * 10))
    expect(function() forward('vit_b16', { image_size = 225 }) end):raises 'patches of 16 do not tile an image of 225'
  end)
  it('trains', function()
    local graph, plain = model('vit_b16', { batch_size = 2 }), forward('vit_b16', { batch_size = 2 })
    -- The image wants no gradient, so the first convolution has one backward matmul, not two.
    expect(product_flops(graph, 'backward')):equals(2 * product_flops(plain) - 2 * 2 * 196 * 768 * 768)
    expect_simulates(graph)
  end)
end)

describe('moe_transformer', function()
  local small = { layers = 2, hidden = 64, heads = 4, num_kv_heads = 2, feed_forward = 96, experts = 4, top_k = 2,
    vocabulary = 500, batch_size = 2, sequence = 32 }
  local function with(more) return merged(small, more) end
  it('computes with the published number of active parameters', function()
    -- Jiang et al. 2024: 12.9 B of Mixtral's weights work on a token. All are in a matmul, except the
    -- embedding, which is read, and the norms.
    local graph = forward('moe_transformer', { size = 'mixtral_8x7b', batch_size = 1, sequence = 64 })
    local scores = 4 * 64 * 64 * 4096 * 32
    within((product_flops(graph) - scores) / 2 / 64 + 32000 * 4096, 12.9e9)
  end)
  it('has the FLOP of the closed formula at any capacity', function()
    local s, h, kv, f, e, k, v = 64, 64, 32, 96, 4, 2, 500
    for _, capacity in ipairs { 0.5, 1, 1.25 } do
      local places = math.ceil(capacity * k * s / e)
      local block = 2 * s * (2 * h * h + 2 * h * kv) + 4 * s * 32 * h + 2 * s * h * e + e * 6 * places * h * f
      expect(product_flops(forward('moe_transformer', with { capacity_factor = capacity })))
        :equals(2 * block + 2 * s * h * v)
    end
  end)
  it('has experts in every n-th block', function()
    local h, f = 64, 96
    local all, half = forward('moe_transformer', small), forward('moe_transformer', with { every = 2 })
    expect(all.parameters - half.parameters):equals((4 - 1) * 3 * h * f + 4 * h)
    local count, named = census(half)
    expect(count.TopK):equals(2)
    expect(named['block_2/moe/expert_4/down'].type):equals 'Gemm'
    expect(named['block_1/feed_forward/down'].type):equals 'Gemm'
  end)
  it('moves tokens to an expert on another device and back, in both passes', function()
    local graph = model('moe_transformer', with { layers = 1 })
    local problem = trinity.problem { graph = graph, cluster = trinity.cluster 'p100x2' }
    local placement = problem:placement()
    for i = 1, graph.operators do
      if graph:operator(i).name:find 'expert_3/' then placement[i] = 2 end
    end
    local places, width = 2 * 64 / 4, 64
    expect(problem:evaluate(placement).total_communication_bytes):equals(4 * places * width * 4)
  end)
  it('trains, balanced or not', function()
    expect_simulates(model('moe_transformer', small))
    local graph = model('moe_transformer', with { balance = 0, top_k = 1 })
    local _, named = census(graph)
    expect(named['total_loss']):equals(nil)
    expect(named['block_1/moe/router/logits/grad'].phase):equals 'backward'
  end)
  it('refuses what does not fit', function()
    expect(function() forward('moe_transformer', with { top_k = 5 }) end):raises "'top_k': expected at most the 4 experts"
    expect(function() forward('moe_transformer', with { heads = 5 }) end):raises "'hidden': expected a multiple of 2 x 5"
    expect(function() forward('moe_transformer', { size = 'mixtral' }) end):raises "unknown value 'mixtral'"
  end)
end)

-- Weights of a BasicLSTMCell layer.
local function cell(inputs, h) return (inputs + h) * 4 * h + 4 * h end

describe('gnmt', function()
  local function parameters(h, v, depth)
    local encoder = 2 * cell(h, h) + cell(2 * h, h) + (depth - 2) * cell(h, h)
    local attention = 2 * h * h + 2 * h + 1 -- keys, query, v, b, g
    return 2 * v * h + encoder + depth * cell(2 * h, h) + attention + v * h
  end
  local function flops(n, t, h, v, depth)
    local encoder = 2 * 2 * h * 4 * h + 3 * h * 4 * h + (depth - 2) * 2 * h * 4 * h + h * h -- and the keys
    local decoder = depth * 3 * h * 4 * h + h * h + h * v -- and query, projection
    return 2 * n * t * (encoder + decoder) + 2 * n * t * t * 2 * h
  end
  it('has the parameters of the closed formula', function()
    expect(forward('gnmt').parameters):equals(parameters(1024, 32000, 2))
    expect(forward('gnmt', { hidden = 64, vocabulary = 100, layers = 4, sequence = 3 }).parameters)
      :equals(parameters(64, 100, 4))
    expect(forward('gnmt', { hidden = 64, vocabulary = 100, source_vocabulary = 70, sequence = 3 }).parameters)
      :equals(parameters(64, 100, 2) - 30 * 64)
    expect(forward('gnmt', { projection = 'step' }).parameters):equals(parameters(1024, 32000, 2))
  end)
  it('has the FLOP of the closed formula', function()
    expect(product_flops(forward('gnmt'))):equals(flops(64, 15, 1024, 32000, 2))
    expect(product_flops(forward('gnmt', { projection = 'step', sequence = 7, batch_size = 3, hidden = 32, layers = 5,
      vocabulary = 50 }))):equals(flops(3, 7, 32, 50, 5))
  end)
  it('has a cell per layer and step, and residuals from the third layer on', function()
    local count, named = census(forward('gnmt', { sequence = 6, layers = 4 }))
    expect(count.LSTMCell):equals(6 * (5 + 4))
    expect(count.Variable):equals(2 * (5 + 4) + 3)
    expect(count.Softmax):equals(6)
    expect(named['encoder/layer_2/step_1/residual']):equals(nil)
    expect(named['encoder/layer_3/step_6/residual'].type):equals 'Add'
    expect(named['decoder/layer_2/step_1/residual']):equals(nil)
    expect(named['decoder/layer_4/step_1/residual'].type):equals 'Add'
    expect(table.concat(named['decoder/layer_2/step_3'].outputs[1].shape, 'x')):equals '64x1024'
  end)
  it('trains: steps share weights, whose gradients are summed', function()
    local graph = model('gnmt')
    local _, named = census(graph)
    expect(#named['source/steps/grad'].inputs):equals(15)
    expect(#named['decoder/layer_2/weight/grad_sum'].inputs):equals(15)
    expect(named['decoder/layer_2/weight/update'].phase):equals 'update'
    expect(named['encoder/forward/step_15/grad'].flops):equals(2 * named['encoder/forward/step_15'].flops)
    local problem, alone = expect_simulates(graph)
    -- The encoder on one device, the rest on the other: the 15 outputs and the final states cross, of which
    -- the top layer's h is the last output. Back come gradients of all, two of that one.
    local placement = problem:placement()
    for i = 1, graph.operators do
      local op = graph:operator(i).name
      if not (op:find '^encoder' or op:find '^source') or op:find '^encoder/memory' then placement[i] = 2 end
    end
    local split = problem:evaluate(placement)
    expect(split.peak_memory_bytes):below(alone.peak_memory_bytes)
    expect(split.total_communication_bytes):equals((15 + 3 + 15 + 4) * 64 * 1024 * 4)
  end)
end)

describe('nmt', function()
  local function parameters(h, source, target, depth, attention)
    local decoder = cell(2 * h, h) + (depth - 1) * cell(h, h) + 2 * h * h -- and the attentional state
    return (source + target) * h + depth * cell(h, h) + decoder + attention + target * h
  end
  it('has the published parameters', function()
    -- OpenNMT-py's default model (2 layers of 500, Luong's attention, input feeding; the log of its quick start):
    -- 58,120,320. PyTorch's LSTM has a second bias (4 layers of 4 x 500), its generator a bias of 35,820.
    local graph = forward('nmt', { hidden = 500, source_vocabulary = 24997, vocabulary = 35820, sequence = 5,
      attention = 'multiplicative' })
    expect(graph.parameters):equals(58120320 - 4 * 4 * 500 - 35820)
    expect(graph.parameters):equals(parameters(500, 24997, 35820, 2, 500 * 500))
  end)
  it('has the parameters and FLOP of the closed formula', function()
    local n, t, h, v = 2, 9, 48, 70
    local options = { batch_size = n, sequence = t, hidden = h, vocabulary = v, layers = 3 }
    expect(forward('nmt', options).parameters):equals(parameters(h, v, v, 3, 2 * h * h + 2 * h + 1))
    local cells = 3 * 2 * h * 4 * h + 3 * h * 4 * h + 2 * 2 * h * 4 * h
    expect(product_flops(forward('nmt', options)))
      :equals(2 * n * t * (cells + h * h + h * h + 2 * h * h + h * v) + 2 * n * t * t * 2 * h)
    options.attention = 'multiplicative'
    expect(product_flops(forward('nmt', options)))
      :equals(2 * n * t * (cells + h * h + 2 * h * h + h * v) + 2 * n * t * t * 2 * h)
  end)
  it('has the same weights for sequences of one token', function()
    expect(forward('nmt', { sequence = 1 }).parameters):equals(forward('nmt', { sequence = 3 }).parameters)
  end)
  it('has hundreds of operators, and trains', function()
    local graph = model('nmt')
    local count = census(graph)
    expect(count.LSTMCell):equals(4 * 32)
    expect(count.SoftmaxCrossEntropyLoss):equals(32)
    expect(1000):below(graph.operators)
    expect_simulates(graph)
  end)
  it('refuses what it does not know', function()
    expect(function() forward('nmt', { attention = 'aditive' }) end):raises "unknown value 'aditive'.*'additive'"
    expect(function() forward('nmt', { projection = 'steps' }) end):raises "unknown value 'steps'.*'step'"
    expect(function() forward('gnmt', { layers = 1 }) end):raises "'layers': expected an integer from 2"
  end)
end)

describe('layers of sequences', function()
  it('have ONNX\'s LSTM, batch or time first, one way or both', function()
    local net = layers.new 'lstm'
    local x = net:input('x', { 3, 7, 5 })
    local y, h, c = net:lstm('both', x, { hidden = 4, bidirectional = true })
    expect(table.concat(y.shape, 'x')):equals '3x7x2x4'
    expect(table.concat(h.shape, 'x')):equals '3x2x4'
    expect(table.concat(c.shape, 'x')):equals '3x2x4'
    local z, last = net:lstm('time_major', x, { hidden = 6, time_major = true })
    expect(table.concat(z.shape, 'x')):equals '3x1x7x6'
    expect(table.concat(last.shape, 'x')):equals '1x7x6'
    local _, named = census(net:build())
    expect(named.both.parameter_bytes):equals(4 * 2 * (16 * 5 + 16 * 4 + 32))
    expect(named.both.flops):equals(2 * 3 * 7 * 2 * (16 * 5 + 16 * 4))
    expect(named.time_major.flops):equals(2 * 3 * 7 * (24 * 5 + 24 * 6))
  end)
  it('attend with fewer KV heads at the same cost', function()
    local function scores(num_kv_heads)
      local net = layers.new 'attention'
      local q = net:input('q', { 2, 10, 24 })
      local k = net:input('k', { 2, 7, 4 * num_kv_heads })
      local y = net:attention('a', q, k, k, { heads = 6, num_kv_heads = num_kv_heads })
      expect(table.concat(y.shape, 'x')):equals '2x10x24'
      return product_flops(net:build())
    end
    expect(scores(6)):equals(2 * 2 * 2 * 10 * 7 * 24)
    expect(scores(2)):equals(scores(6))
    expect(scores(1)):equals(scores(6))
  end)
  it('keep the type of what they move', function()
    local net = layers.new('move', { dtype = 'float16' })
    local numbers = net:input('numbers', { 4, 6 }, 'int64')
    local first = net:unstack('unstack', numbers, 2)[1]
    expect(first.dtype):equals 'int64'
    expect(net:stack('stack', { first, first }, 2).dtype):equals 'int64'
    expect(net:slice('slice', numbers, 1, 2, 2).dtype):equals 'int64'
    expect(net:embedding('embed', numbers, { rows = 5, features = 8 }).dtype):equals 'float16'
    local values, places = net:top_k('top', net:input('x', { 4, 9 }), 3)
    expect(values.dtype .. places.dtype):equals 'float16int64'
    expect(table.concat(net:one_hot('ones', places, 9, 1).shape, 'x')):equals '9x4x3'
  end)
end)
