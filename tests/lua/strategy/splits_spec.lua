-- Splits of operators, and the laws of the graphs that they lower to (engine/strategy/splits.h).

local array = require 'trinity.base.array'
local core = require 'trinity.core'
local pase_of = require 'trinity.pase'
local splits_of = require 'trinity.strategy.splits'
local trinity = require 'trinity'

-- The graph of parts that a strategy with splits is simulated on, with their devices and operators.
local function lower(spec)
  local entries = splits_of.entries('lower', spec.graph, spec.splits or {})
  local handle, devices, origin = core.lower_splits(spec.graph.handle, #spec.cluster.devices,
    spec.placement or array.filled(spec.graph.operators, 1), entries)
  return { graph = trinity.graph.wrap(handle), placement = array.int32_of(devices), origin = origin }
end

local function alexnet(batch_size, training)
  return trinity.model('alexnet', { batch_size = batch_size, image_size = 67, classes = 64, training = training })
end

local function number_of(graph, name)
  for i = 1, graph.operators do
    if graph:operator(i).name == name then return i end
  end
end

local function each_operator(graph, body)
  for i = 1, graph.operators do body(graph:operator(i), i) end
end

local function run(lowered, cluster, plan)
  plan = plan or {}
  plan.placement = lowered.placement
  return trinity.problem({ check_memory = false, graph = lowered.graph, cluster = cluster }):evaluate(plan)
end

-- Every forward operator with a batch, split along it.
local function batch_splits(graph, factor)
  local splits = {}
  each_operator(graph, function(op, i)
    if op.phase ~= 'forward' or #op.inputs == 0 then return end
    for _, dimension in ipairs(core.iteration_space(graph.handle, i)) do
      if dimension.name == 'b' then splits[op.name] = { b = factor } end
    end
  end)
  return splits
end

local function spread(splits, devices)
  for _, split in trinity.system.sorted_pairs(splits) do split.devices = devices end
  return splits
end

describe('iteration spaces', function()
  it('have the names of their operators', function()
    local graph = alexnet(8, false)
    local function names(name)
      local list = {}
      for i, dimension in ipairs(core.iteration_space(graph.handle, number_of(graph, name))) do
        list[i] = ('%s:%d'):format(dimension.name, dimension.size)
      end
      return table.concat(list, ' ')
    end
    expect(names 'conv_2'):equals 'b:8 c:96 h:7 w:7 r:5 s:5 n:256'
    expect(names 'fc_7'):equals 'b:8 n:4096 c:4096'
    expect(names 'loss'):equals 'b:8 n:64'
    expect(names 'pool_1'):equals 'b:8 c:96 h:7 w:7'
  end)
end)

describe('a lowered graph', function()
  local cluster = trinity.cluster 'p100x4'
  it('is the graph itself where nothing is split', function()
    for _, name in ipairs { 'alexnet', 'rnnlm', 'resnet50', 'gnmt' } do
      local graph = trinity.model(name, { batch_size = 2 })
      local lowered = lower { graph = graph, cluster = cluster }
      expect(lowered.graph.fingerprint):equals(graph.fingerprint)
      local problem = trinity.problem { graph = graph, cluster = cluster }
      local placement = problem:placement_by_unit(function(unit) return unit % 4 + 1 end)
      lowered = lower { graph = graph, cluster = cluster, placement = placement }
      expect(lowered.graph.fingerprint):equals(graph.fingerprint)
      for i = 1, #placement do expect(lowered.placement[i]):equals(placement[i]) end
    end
  end)

  -- FLOP of forward and backward operators but for sums of gradients, and bytes of distinct blocks of weights.
  local function totals(graph, origin, whole)
    local flops, weights, seen = 0, 0, {}
    each_operator(graph, function(op, i)
      local of = origin and origin[i] or i
      if of == 0 then return end
      local source = whole:operator(of)
      if op.phase ~= 'update' and op.type ~= 'Sum' then flops = flops + op.flops end
      seen[source.name] = seen[source.name] or {}
      local blocks = seen[source.name]
      blocks[#blocks + 1] = op.parameter_bytes
    end)
    for _, blocks in trinity.system.sorted_pairs(seen) do
      for _, bytes in ipairs(blocks) do weights = weights + bytes end
    end
    return flops, weights
  end
  it('has the FLOP of the graph, and its weights once for every copy', function()
    local graph = alexnet(8)
    local flops, weights = totals(graph, nil, graph)
    local cases = {
      { splits = { conv_2 = { n = 4 }, fc_6 = { n = 2, c = 2 }, fc_7 = { c = 4 } }, copies = {}, biases = 16384 + 3 * 16384 },
      { splits = { conv_2 = { b = 2, c = 2 }, fc_7 = { b = 4 } }, copies = { conv_2 = 2, fc_7 = 4 },
        biases = 2 * 1024 },
      { splits = { pool_1 = { c = 4 }, conv_3 = { r = 3 }, loss = { n = 4 } }, copies = {}, biases = 2 * 1536 } }
    for _, case in ipairs(cases) do
      local lowered = lower { graph = graph, cluster = cluster, splits = case.splits }
      local got_flops, got_weights = totals(lowered.graph, lowered.origin, graph)
      local extra = 0
      each_operator(graph, function(op)
        if case.copies[op.name] then extra = extra + (case.copies[op.name] - 1) * op.parameter_bytes end
      end)
      expect(got_flops):near(flops, 1e-9 * flops)
      expect(got_weights):equals(weights + extra + case.biases) -- each part of a sum holds the bias
    end
  end)

  it('is data parallelism where the batch alone is split, however that is written', function()
    local graph, devices = alexnet(8), { 1, 2, 3, 4 }
    local split = lower { graph = graph, cluster = cluster, splits = spread(batch_splits(graph, 4), devices) }
    local got = run(split, cluster)
    local replicas, origin, replica = alexnet(2):replicate { replicas = 4, bucket_bytes = 1 }
    local placement = trinity.problem({ graph = replicas, cluster = cluster }):placement()
    for i = 1, #placement do placement[i] = replica[i] + 1 end
    local wanted = trinity.problem({ check_memory = false, graph = replicas, cluster = cluster }):evaluate(placement)
    expect(#origin):equals(replicas.operators)
    expect(split.graph.operators):equals(replicas.operators)
    expect(split.graph.edges):equals(replicas.edges)
    expect(got.step_time_s):equals(wanted.step_time_s)
    for d = 1, 4 do expect(got:memory_bytes(d)):equals(wanted:memory_bytes(d)) end
    -- The same from PaSE's rule for data parallelism.
    local pase = pase_of.new(graph, { devices = 4, cutoff = 1 })
    local again = lower { graph = graph, cluster = cluster, splits = pase:splits(pase:by_rule 'data_parallel') }
    expect(again.graph.fingerprint):equals(split.graph.fingerprint)
  end)

  it('runs whatever PaSE, its baselines and chance choose', function()
    local random = trinity.random(1, 'splits')
    for _, case in ipairs { { 'alexnet', { batch_size = 16, image_size = 67 } },
      { 'rnnlm', { batch_size = 16, sequence = 8, hidden = 64, vocabulary = 128 } },
      { 'transformer', { batch_size = 8, sequence = 16, hidden = 32, feed_forward = 64, heads = 4, layers = 1, vocabulary = 64 } } } do
      local graph = trinity.model(case[1], case[2])
      local pase = pase_of.new(graph, { devices = 4, cutoff = 1 })
      local serial = trinity.problem({ check_memory = false, graph = graph, cluster = cluster })
        :evaluate(trinity.problem({ graph = graph, cluster = cluster }):placement())
      local list = { pase:solve { quiet = true }, pase:by_rule 'data_parallel', pase:by_rule 'expert', pase:tofu() }
      for _ = 1, 3 do
        local configurations = {}
        for i, layer in ipairs(pase.layers) do
          configurations[i] = pase.handle:configuration(i, random:integer(layer.configurations))
        end
        list[#list + 1] = pase:price(configurations)
      end
      for _, found in ipairs(list) do
        local lowered = lower { graph = graph, cluster = cluster, splits = pase:splits(found) }
        local metrics = run(lowered, cluster)
        expect(0):below(metrics.step_time_s)
        local again = lower { graph = graph, cluster = cluster, splits = pase:splits(found) }
        expect(again.graph.fingerprint):equals(lowered.graph.fingerprint)
      end
      expect(0):below(serial.step_time_s)
    end
  end)

  it('combines with placement, micro-batches and replicas', function()
    local graph = alexnet(8)
    local pair = trinity.cluster 'p100x4'
    local problem = trinity.problem { graph = graph, cluster = pair }
    -- Convolutions on devices 1 and 2 as data parallel parts, dense layers on 3 and 4 by their outputs.
    local splits = {}
    for name, split in trinity.system.sorted_pairs(batch_splits(graph, 2)) do
      local dense = name:find '^fc' or name == 'loss'
      splits[name] = { devices = dense and { 3, 4 } or { 1, 2 } }
      if dense and graph:operator(name).type == 'Gemm' then splits[name].n = 2 else splits[name].b = split.b end
    end
    local lowered = lower { graph = graph, cluster = pair, splits = splits, placement = problem:placement() }
    for i = 1, lowered.graph.operators do
      local origin = lowered.origin[i]
      local name = origin > 0 and graph:operator(origin).name or ''
      if name:find '^conv' then expect(lowered.placement[i] <= 2):truthy() end
      if name:find '^fc' then expect(lowered.placement[i] >= 3):truthy() end
    end
    local once, twice = run(lowered, pair), run(lowered, pair, { micro_batches = 4, schedule = 'critical_path' })
    expect(once.step_time_s):below(twice.step_time_s)
    -- Two such groups as replicas.
    local copies, origin, replica = lowered.graph:replicate { replicas = 2, placement = lowered.placement }
    local wide = trinity.cluster 'p100_ibx2'
    local placement = trinity.problem({ graph = copies, cluster = wide }):placement()
    each_operator(copies, function(op, i)
      local all_reduce = origin[i] == 0 -- where its first gradient is
      placement[i] = all_reduce and placement[op.inputs[1].producer] or lowered.placement[origin[i]] + 4 * replica[i]
    end)
    expect(once.step_time_s):below(trinity.problem({ check_memory = false, graph = copies, cluster = wide }):evaluate(placement).step_time_s)
  end)

  it('combines with pipelines whose stages are several devices', function()
    local graph = alexnet(8)
    local problem = trinity.problem { graph = graph, cluster = cluster }
    local splits, stage = batch_splits(graph, 2), {}
    each_operator(graph, function(op, i)
      local dense = op.name:find '^fc' or op.name:find '^loss' or op.name:find '^labels'
      stage[i] = dense and 2 or 1
      if splits[op.name] then splits[op.name].devices = dense and { 3, 4 } or { 1, 2 } end
    end)
    local function step(micro_batches)
      return problem:evaluate({ placement = problem:placement(), splits = splits, stage = stage, schedule = '1f1b',
        micro_batches = micro_batches }).step_time_s / micro_batches
    end
    expect(step(8)):below(step(1)) -- stages overlap
  end)

  it('is what a plan with splits runs, a strategy saves, and a method finds', function()
    local graph = alexnet(8)
    local problem = trinity.problem { graph = graph, cluster = cluster }
    local splits = spread(batch_splits(graph, 4), { 1, 2, 3, 4 })
    local plan = { placement = problem:placement(), splits = splits }
    local metrics = problem:evaluate(plan)
    expect(metrics.step_time_s):equals(run(lower { graph = graph, cluster = cluster, splits = splits }, cluster).step_time_s)
    expect(problem:evaluate_batch({ plan, problem:placement() })[1].step_time_s):equals(metrics.step_time_s)
    expect(problem:timeline(plan).metrics.step_time_s):equals(metrics.step_time_s)
    local strategy, path = problem:strategy(plan), temporary()
    local loaded = problem:load(strategy:save(path))
    expect(loaded.metrics.step_time_s):equals(metrics.step_time_s)
    expect(loaded.splits.conv_1.b):equals(4)
    local priority = {}
    for i = 1, graph.operators do priority[i] = i end
    expect(function()
      problem:evaluate { placement = plan.placement, splits = splits, schedule = 'priority', priority = priority }
    end)
      :raises "field 'priority' cannot be combined with 'splits'"
    for _, choose in ipairs { 'best', 'data_parallel', 'expert' } do
      local found = trinity.methods.pase(problem, { choose = choose, quiet = true })
      expect(found.metrics.step_time_s):equals(problem:evaluate(found).step_time_s)
    end
  end)

  it('refuses what makes no sense', function()
    local graph = alexnet(8)
    local function lowering(splits) return function() lower { graph = graph, cluster = cluster, splits = splits } end end
    expect(lowering { conv_9 = { b = 2 } }):raises "split 'conv_9': no such operator, did you mean 'conv_1'"
    expect(lowering { conv_1 = { q = 2 } }):raises "unknown dimension 'q'"
    expect(lowering { conv_1 = { b = 16 } }):raises "dimension 'b': expected a factor from 1 to 8 %(1, 2, 4, 8 divide it%), got 16"
    expect(lowering { conv_1 = { b = 8 } }):raises 'expected at most one part per device %(4%), got 8'
    expect(lowering { conv_1 = { b = 2, devices = { 1, 1 } } }):raises 'listed twice'
    expect(lowering { conv_1 = { b = 2, devices = { 1, 9 } } }):raises 'from 1 to 4'
    expect(lowering { ['conv_1/grad'] = { b = 2 } }):raises "unknown dimension 'b'"
    expect(function()
      core.lower_splits(graph.handle, 4, trinity.problem({ graph = graph, cluster = cluster }):placement(),
        { { operator = graph.operators, copies = 2 } })
    end):raises 'a backward operator is split as its forward operator'
    expect(function() core.lower_splits(graph.handle, 4, 7, {}) end):raises "argument 3 %('placement'%): expected an int32 array, got 7"
  end)
end)

describe('heads of GPT-2', function()
  local cluster = trinity.cluster 'p100x2'
  local function gpt2(fused)
    return trinity.model('gpt2', { layers = 1, hidden = 50, heads = 5, vocabulary = 96, sequence = 8, batch_size = 4, fused = fused,
      kernels = 'onnx' })
  end
  local function part(name) return 'block_1/attention/' .. name end
  local function of_heads(graph, splits) return lower { graph = graph, cluster = cluster, splits = splits } end
  it('can be split where queries, keys and values are matmuls of their own', function()
    local apart, fused = gpt2(false), gpt2(true)
    expect(apart.parameters):equals(fused.parameters)
    expect(gpt2().fingerprint):equals(apart.fingerprint)
    local splits = {}
    for _, name in ipairs { 'query', 'key', 'value' } do splits[part(name)] = { n = 2 } end
    splits[part 'scores'], splits[part 'context'] = { g1 = 2 }, { g1 = 2 }
    local lowered = of_heads(apart, splits) -- 5 heads: 3 and 2
    expect(lowered.graph.operators > apart.operators):equals(true)
    expect(run(lowered, cluster).step_time_s > 0):equals(true)
    trinity_says('info gpt2 --set fused=false,layers=1,batch_size=1 --run none', 0, '\nGemm ')
  end)
  it('say what divides them, and what stands in the way', function()
    expect(function() of_heads(gpt2(true), { [part 'scores'] = { g1 = 6 } }) end)
      :raises "operator 'block_1/attention/scores' %(MatMul%): dimension 'g1': expected a factor from 1 to 5 %(1, 5 divide it%), got 6"
    expect(function() of_heads(gpt2(true), { [part 'split'] = { d = 2 } }) end)
      :raises "dimension 'd': expected 1, because it cannot be split, got 2; dimensions that can: b, s; .*%(gpt2: use fused = false%)"
    expect(function() trinity.model('gpt2', { layers = 1, size = 'xl', heads = 24 }) end)
      :raises '%d KV heads; heads may be 1, 2, 4, 5, 8, 10, 16, 20, 25,'
  end)
end)
