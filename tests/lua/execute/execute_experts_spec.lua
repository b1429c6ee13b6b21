-- Expert parallelism, executed: tokens travel to the devices that hold their experts and back, and losses and
-- weights equal those on one device that has all experts and trains on the same samples.

local same = dofile(root .. '/tests/lua/support/same_training.lua')
local trinity = require 'trinity'

with_torch()

local graph = trinity.model('moe_transformer', { batch_size = 2, sequence = 8, layers = 4, hidden = 16, heads = 4,
  num_kv_heads = 4, feed_forward = 8, experts = 4, top_k = 2, vocabulary = 32, fused = false, optimizer = 'adam' })
local trained = same.new(graph)

local shared = { mesh = { data = 2, expert = 2 } }
local pipeline = { pipeline = 2 }
local others = {
  { 'all-reduce', {} },
  { 'four ranks', { mesh = { data = 4, expert = 4 } } },
  { 'ZeRO 1', { zero_stage = 1 } },
  { 'ZeRO 2', { zero_stage = 2 } },
  { 'ZeRO 3', { zero_stage = 3 } },
  { 'ZeRO 2 over copies of the same experts', { mesh = { data = 4 }, zero_stage = 2 } },
  { 'ZeRO 3 over copies of the same experts', { mesh = { data = 4 }, zero_stage = 3 } },
  { 'gpipe', { mesh = pipeline, schedule = 'gpipe', micro_batches = 2 } },
  { '1f1b', { mesh = pipeline, schedule = '1f1b', micro_batches = 2 } },
  { 'interleaved', { mesh = pipeline, schedule = 'interleaved', virtual_stages = 2, micro_batches = 2 } },
  { 'zb-h1', { mesh = pipeline, schedule = 'zb-h1', micro_batches = 2 } },
  { 'zb-v', { mesh = pipeline, schedule = 'zb-v', virtual_stages = 2, micro_batches = 4 } },
  { 'zb-interleaved', { mesh = pipeline, schedule = 'zb-interleaved', virtual_stages = 2, micro_batches = 2 } },
  { 'dualpipe-v', { mesh = pipeline, schedule = 'dualpipe-v', virtual_stages = 2, micro_batches = 4 } },
  { 'tensor and sequence', { mesh = { tensor = 2 }, sequence_parallel = true } },
  { 'context', { mesh = { context = 2 } } },
  { 'recompute', { recompute = 'full' } },
  { 'selective recompute', { recompute = 'selective' } },
}

describe('a small mixture of experts trains as on one device with expert parallelism and', function()
  for i, other in ipairs(others) do
    local try = (i + law_seed()) % 3 == 0 and it or it_all
    try(other[1], function() expect(trained:off(same.together(shared, other[2]))):near(0, 1e-9) end)
  end
  it('ZeRO and context, also where the other weights are sharded over all ranks', function()
    for zero_stage = 0, 3 do
      for _, data_size in ipairs { 2, 4 } do
        expect(trained:off { mesh = { data = data_size, expert = 2, context = 2 }, zero_stage = zero_stage }):near(0, 1e-9)
      end
    end
  end)
end)

describe('a small mixture of experts with attention in a ring trains as on one device with expert parallelism and', function()
  local flash = same.new(trinity.model('moe_transformer', { batch_size = 2, sequence = 8, layers = 4, hidden = 16, heads = 4,
    num_kv_heads = 2, feed_forward = 8, experts = 4, top_k = 2, vocabulary = 32, fused = false, optimizer = 'adam',
    kernels = 'flash' }))
  local ring = same.together(shared, { mesh = { context = 2 }, cp_comm_type = 'ring' })
  for i, other in ipairs(others) do
    local try = (i + law_seed()) % 3 == 1 and it or it_all
    if other[1] ~= 'context' and not other[1]:find 'over copies' then
      try(other[1], function() expect(flash:off(same.together(ring, other[2]))):near(0, 1e-9) end)
    end
  end
end)

--- Experts as batched matmuls, as in decoders that a config.json describes.
local function batched()
  local net = trinity.graph.layers.new('batched', { batch_size = 4, optimizer = 'adam' })
  local x = net:relu('in/relu', net:linear('in', net:input('x', { 8, 6 }), 6))
  local function product(name, input, width)
    local e, rows, from = unpack(input.shape)
    return (net:operator('Einsum', name, { inputs = { input }, shapes = { { e, rows, width } },
      attributes = { equation = 'ecf,efo->eco' },
      parameters = { { name = 'weight', shape = { e, from, width }, trainable = true } } }))
  end
  local tokens = net:reshape('deal', x, { 4, 2, 6 })
  local y = product('experts/down', net:relu('experts/relu', product('experts/up', tokens, 5)), 6)
  local sum = net:add('sum', x, net:reshape('collect', y, { 8, 6 }))
  net:softmax_cross_entropy('loss', net:linear('out', sum, 4), net:input('labels', { 8 }, 'int64'))
  return net:build():to_training { optimizer = 'adam' }
end

describe('experts as one batched matmul', function()
  it('train as on one device', function()
    local own = same.new(batched())
    for _, strategy in ipairs { shared, { mesh = { data = 4, expert = 2 } },
      { mesh = { data = 2, expert = 2 }, zero_stage = 1 }, { mesh = { data = 4, expert = 2 }, zero_stage = 3, micro_batches = 2 } } do
      expect(own:off(strategy)):near(0, 1e-9)
    end
  end)
end)
