-- Strategies executed for real: whatever a strategy lowers to computes the losses and weights of one device that trains
-- the same samples, dropout included, to the order of sums.

local same = dofile(root .. '/tests/lua/support/same_training.lua')
local trinity = require 'trinity'
local util = require 'trinity.base.util'

with_torch()

local function gpt(options)
  return trinity.model('gpt2', util.merged({ batch_size = 2, sequence = 8, layers = 4, hidden = 16, heads = 4,
    vocabulary = 32, positions = 8, fused = false, dropout = 0.1, optimizer = 'adam' }, options))
end

--- A place for every operator by its name's letters: what is said of any graph.
local function by_name(op)
  local sum = 0
  for i = 1, #op.name do sum = sum + op.name:byte(i) end
  return 1 + sum % 2
end

--- A random device for every colocation unit of a graph.
local function drawn_places(of, places)
  local random, of_unit, list = trinity.random(5, 'places'), {}, {}
  for i = 1, of.operators do
    local unit = of.unit_of[i]
    of_unit[unit] = of_unit[unit] or 1 + math.floor(random:uniform() * places)
    list[i] = of_unit[unit]
  end
  return list
end

local graph = gpt()
local pipeline, data = { pipeline = 2 }, { data = 2 }
local parts = {
  { 'gpipe', 'schedule', { mesh = pipeline, schedule = 'gpipe', micro_batches = 2 } },
  { '1f1b', 'schedule', { mesh = pipeline, schedule = '1f1b', micro_batches = 2 } },
  { 'interleaved', 'schedule', { mesh = pipeline, schedule = 'interleaved', virtual_stages = 2, micro_batches = 2 } },
  { 'zb-h1', 'schedule', { mesh = pipeline, schedule = 'zb-h1', micro_batches = 2 } },
  { 'zb-h2', 'schedule', { mesh = pipeline, schedule = 'zb-h2', micro_batches = 4 } },
  { 'zb-v', 'schedule', { mesh = pipeline, schedule = 'zb-v', virtual_stages = 2, micro_batches = 4 } },
  { 'zb-interleaved', 'schedule', { mesh = pipeline, schedule = 'zb-interleaved', virtual_stages = 2, micro_batches = 2 } },
  { 'dualpipe-v', 'schedule', { mesh = pipeline, schedule = 'dualpipe-v', virtual_stages = 2, micro_batches = 4 } },
  { 'all-reduce', 'data', { mesh = data } },
  { 'ZeRO 1', 'data', { mesh = data, zero_stage = 1 } },
  { 'ZeRO 2', 'data', { mesh = data, zero_stage = 2 } },
  { 'ZeRO 3', 'data', { mesh = data, zero_stage = 3 } },
  { 'tensor', 'tensor', { mesh = { tensor = 2 } } },
  { 'sequence', 'tensor', { mesh = { tensor = 2 }, sequence_parallel = true } },
  { 'parts sent', 'tensor', { mesh = { tensor = 2 }, scatter_gather = true } },
  { 'sums overlapped', 'tensor', { mesh = { tensor = 2 }, overlap_tp_grad_allreduce = true } },
  { 'context', 'context', { mesh = { context = 2 } } },
  { 'by heads', 'context', { mesh = { context = 2 }, cp_comm_type = 'all_to_all' } },
  { 'recompute', 'recompute', { recompute = 'full' } },
  { 'selective', 'recompute', { recompute = 'selective' } },
  { 'placed inside stages', 'placement', { mesh = { placement = 2 }, inside = by_name } },
}

local trained = same.new(graph)

describe('a small GPT trains as on one device:', function()
  -- A commit tries a fifth of the pairs, in which every part stands about four times: pairs at two distances in a cycle.
  for i, first in ipairs(parts) do
    for k = i + 1, #parts do
      local second = parts[k]
      if first[2] ~= second[2] then
        local distance = math.min(k - i, #parts - (k - i))
        local try = (distance + law_seed()) % 5 == 0 and it or it_all
        try(first[1] .. ' and ' .. second[1], function()
          expect(trained:off(same.together(first[3], second[3]))):near(0, 1e-9)
        end)
      end
    end
  end
  it('zero bubble, ZeRO 3, tensor and recompute', function()
    expect(trained:off { mesh = { pipeline = 2, data = 2, tensor = 2 }, schedule = 'zb-h1', micro_batches = 2, zero_stage = 3,
      recompute = 'full' }):near(0, 1e-9)
  end)
  for zero_stage = 0, 3 do
    it(('zero bubble with twice the memory, parts of sequences, replicas, zero_stage %d'):format(zero_stage), function()
      expect(trained:off { mesh = { pipeline = 2, context = 2, data = 2 }, schedule = 'zb-h2', micro_batches = 4,
        zero_stage = zero_stage }):near(0, 1e-9)
    end)
  end
  it('interleaved, ZeRO 2, context and recompute', function()
    expect(trained:off { mesh = { pipeline = 2, data = 2, context = 2 }, schedule = 'interleaved', virtual_stages = 2,
      micro_batches = 2, zero_stage = 2, recompute = 'full' }):near(0, 1e-9)
  end)
  it('operators placed inside stages, alone and with zero bubble, ZeRO 3, tensor and recompute', function()
    expect(trained:off { mesh = { placement = 3 }, inside = drawn_places(graph, 3) }):near(0, 1e-9)
    expect(trained:off { mesh = { pipeline = 2, data = 2, tensor = 2, placement = 2 }, inside = drawn_places(graph, 2),
      schedule = 'zb-h1', micro_batches = 2, zero_stage = 3, recompute = 'full' }):near(0, 1e-9)
    expect(trained:off { mesh = { pipeline = 2, data = 2, context = 2, placement = 2 }, inside = drawn_places(graph, 2),
      schedule = 'interleaved', virtual_stages = 2, micro_batches = 2, zero_stage = 1 }):near(0, 1e-9)
  end)
  it('ZeRO 0 to 3 over data and context, with tensor and the sequence, without what Adam makes of factors, too', function()
    local plain = same.new(gpt { optimizer = 'sgd', layers = 2 })
    for zero_stage = 0, 3 do
      local strategy = { mesh = { data = 2, context = 2, tensor = 2 }, sequence_parallel = true, zero_stage = zero_stage }
      expect(trained:off(strategy)):near(0, 1e-9)
      expect(plain:off(strategy)):near(0, 1e-9)
    end
  end)
  it('ZeRO 2 and 3 over context alone, and over data and context with stages, recomputation and heads', function()
    local both = { data = 2, context = 2 }
    for _, strategy in ipairs { { mesh = { context = 2 }, zero_stage = 2 }, { mesh = { context = 2 }, zero_stage = 3 },
      { mesh = both, zero_stage = 2, micro_batches = 2, recompute = 'full' },
      { mesh = util.merged(both, pipeline), zero_stage = 3, micro_batches = 2, schedule = '1f1b' },
      { mesh = util.merged(both, pipeline), zero_stage = 2, micro_batches = 2, schedule = 'zb-h1' },
      { mesh = util.merged(both, { tensor = 2 }), zero_stage = 3, cp_comm_type = 'all_to_all' } } do
      expect(trained:off(strategy)):near(0, 1e-9)
    end
  end)
end)

describe('a vocabulary that tensor does not divide trains as on one device:', function()
  for _, vocabulary in ipairs { 5, 33, 34 } do -- 5 over 4: the last part is padding alone
    it(vocabulary .. ' tokens', function()
      for _, tied in ipairs { true, false } do
        local padded = same.new(gpt { layers = 2, vocabulary = vocabulary, tied = tied })
        for _, strategy in ipairs { { mesh = { tensor = 4 } }, { mesh = { tensor = 4 }, sequence_parallel = true },
          { mesh = { tensor = 4, data = 2 }, zero_stage = 1 }, { mesh = { tensor = 4, data = 2 }, zero_stage = 3 },
          { mesh = { tensor = 4, context = 2 } }, { mesh = { tensor = 4, pipeline = 2 }, micro_batches = 2,
            schedule = 'zb-h1', recompute = 'full' },
          { mesh = { tensor = 4 }, operators = { loss = { split = false } } },
          { mesh = { tensor = 4 }, operators = { logits = { split = false }, loss = { split = false } } },
          { mesh = { tensor = 4 }, operators = { ['embed/token'] = { split = false } } } } do
          expect(padded:off(strategy)):near(0, 1e-9)
        end
      end
    end)
  end
end)

describe('hierarchical all-reduce of gradients trains as on one device:', function()
  for zero_stage = 0, 3 do
    it('ZeRO ' .. zero_stage, function()
      local way = { sync = { kind = 'hierarchical', inner = 2 }, zero_stage = zero_stage, bucket_bytes = 500 }
      expect(trained:off(util.merged({ mesh = { data = 4 } }, way))):near(0, 1e-9)
      expect(trained:off(util.merged({ mesh = { data = 4, tensor = 2 } }, way))):near(0, 1e-9)
    end)
  end
end)

describe('attention that is one operator', function()
  local flash = same.new(gpt { layers = 2, dropout = 0, kernels = 'flash' })
  it('is cut by heads and by rows as on one device', function()
    for _, strategy in ipairs { { mesh = { tensor = 2 } }, { mesh = { tensor = 2 }, sequence_parallel = true },
      { mesh = { context = 2 } }, { mesh = { context = 2 }, cp_comm_type = 'all_to_all' },
      { mesh = { context = 2, tensor = 2 }, cp_comm_type = 'all_to_all' } } do
      expect(flash:off(strategy)):near(0, 1e-9)
    end
  end)
end)

describe('attention in a ring trains as on one device,', function()
  local flash = same.new(gpt { kernels = 'flash' })
  local function ring(parts_of_sequence) return { mesh = { context = parts_of_sequence }, cp_comm_type = 'ring' } end
  for _, c in ipairs { 2, 4 } do
    it(('in %d parts'):format(c), function() expect(flash:off(ring(c))):near(0, 1e-9) end)
  end
  for _, part in ipairs(parts) do
    if part[2] ~= 'context' then
      it('with ' .. part[1], function() expect(flash:off(same.together(ring(2), part[3]))):near(0, 1e-9) end)
    end
  end
  it('with interleaved, ZeRO 2 and recompute; zero bubble, ZeRO 3 and tensor', function()
    expect(flash:off { mesh = { pipeline = 2, data = 2, context = 2 }, cp_comm_type = 'ring', schedule = 'interleaved',
      virtual_stages = 2, micro_batches = 2, zero_stage = 2, recompute = 'full' }):near(0, 1e-9)
    expect(flash:off { mesh = { pipeline = 2, data = 2, context = 2, tensor = 2 }, cp_comm_type = 'ring', schedule = 'zb-h1',
      micro_batches = 2, zero_stage = 3 }):near(0, 1e-9)
  end)
  it('bit by bit as often as it is repeated', function()
    local first, second = flash:run(ring(4)), flash:run(ring(4))
    expect(same.difference(first, second)):equals(0)
  end)
  it('of bounded scores, heads that share keys, wider values and queries that see all or the nearest', function()
    local function network(causal, window, softcap, kernels, groups)
      local net = trinity.graph.layers.new('attention', { batch_size = 2 })
      local x = net:embedding('embed', net:input('tokens', { 2, 8 }, 'int64'), { weight = net:variable('table', { 9, 12 }) })
      local y = net:attention('attend', net:linear('query', x, 16), net:linear('key', x, 4 * groups),
        net:linear('value', x, 6 * groups), { heads = 4, num_kv_heads = groups, causal = causal, window = window, softcap = softcap, kernels = kernels })
      net:softmax_cross_entropy('loss', net:linear('out', y, 5), net:input('labels', { 2, 8 }, 'int64'))
      return same.new(net:build():to_training { optimizer = 'adam' })
    end
    local losses = {}
    for _, case in ipairs { { false }, { true }, { true, 3 }, { true, 3, true }, { false, nil, true } } do
      local one = network(case[1], case[2], case[3], 'flash', 2)
      local in_parts = network(case[1], case[2], case[3], 'onnx', 2)
      local expected = in_parts:on_one(1)
      expect(same.difference(expected, one:on_one(1))):near(0, 1e-9)
      -- Context parallelism of ONNX's operators, too: keys and values are gathered.
      for _, c in ipairs { 2, 4, 8 } do expect(in_parts:off { mesh = { context = c } }):near(0, 1e-9) end
      expect(in_parts:off { mesh = { context = 2, tensor = 2 }, sequence_parallel = true }):near(0, 1e-9)
      for _, c in ipairs { 2, 4, 8 } do expect(one:off(ring(c))):near(0, 1e-9) end
      expect(one:off { mesh = { context = 2, tensor = 2 }, cp_comm_type = 'ring', sequence_parallel = true }):near(0, 1e-9)
      losses[#losses + 1] = expected.losses[1]
      -- One head of keys serves all.
      in_parts = network(case[1], case[2], case[3], 'onnx', 1)
      expect(same.difference(network(case[1], case[2], case[3], 'flash', 1):on_one(1), in_parts:on_one(1))):near(0, 1e-9)
      for _, strategy in ipairs { { mesh = { context = 2 } }, { mesh = { context = 8 } }, { mesh = { tensor = 2 } },
        { mesh = { tensor = 4 }, sequence_parallel = true }, { mesh = { context = 2, tensor = 2 } },
        { mesh = { context = 2, tensor = 2, data = 2 }, sequence_parallel = true, zero_stage = 3 },
        { mesh = { context = 2 }, cp_comm_type = 'all_to_all' } } do
        expect(in_parts:off(strategy)):near(0, 1e-9)
      end
    end
    for i = 2, #losses do expect(math.abs(losses[i] - losses[1]) > 1e-9):equals(true) end
  end)
end)

describe('where sums keep their order', function()
  it('results are bit-identical: with recomputation, and in a pipeline without shared weights', function()
    local again, expected = trained:run { mesh = {}, micro_batches = 2, recompute = 'full' }, trained:on_one(2)
    for i, loss in ipairs(expected.losses) do expect(again.losses[i]):equals(loss) end
    local mlp = trinity.model('mlp', { inputs = 6, hidden = { 5 }, classes = 3, batch_size = 4, optimizer = 'adam' })
    local rows = same.new(mlp)
    local one = rows:on_one(4)
    for _, schedule in ipairs { 'gpipe', '1f1b', 'zb-h1' } do
      local two = rows:run { mesh = { pipeline = 2 }, schedule = schedule, micro_batches = 4 }
      for i, loss in ipairs(one.losses) do
        if schedule == 'gpipe' then
          expect(two.losses[i]):near(loss, 1e-14) -- it adds its gradients up in reverse
        else
          expect(two.losses[i]):equals(loss)
        end
      end
    end
  end)
  it('another seed gives other numbers, and a test that compares them fails', function()
    local other = trained:run({ mesh = {}, micro_batches = 2 }, { seed = 2 })
    expect(same.difference(trained:on_one(2), other) > 1e-3):equals(true)
  end)
end)
