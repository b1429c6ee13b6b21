-- The cost model against published measurements.

local trinity = require 'trinity'

--- Images a second of a training step on one device of this kind.
local function images_per_s(device, model, batch_size)
  local graph = trinity.model(model, { batch_size = batch_size, optimizer = 'sgd' })
  local problem = trinity.problem { graph = graph,
    cluster = trinity.cluster { devices = { { name = 'gpu', type = device } }, links = {} } }
  return batch_size / problem:evaluate(problem:placement()).step_time_s
end

describe('device presets', function()
  -- TensorFlow's own benchmarks, one GPU, synthetic data, SGD, batch 64 (VGG-16 on the K80: 32):
  -- tensorflow/docs, site/en/r1/guide/performance/benchmarks.md, May 2017.
  local published = {
    { 'p100_sxm2', 'inception_v3', 64, 142 }, { 'p100_sxm2', 'resnet50', 64, 219 }, { 'p100_sxm2', 'vgg16', 64, 154 },
    { 'k80', 'inception_v3', 64, 30.5 }, { 'k80', 'resnet50', 64, 51.9 }, { 'k80', 'vgg16', 32, 35.4 },
  }
  for _, case in ipairs(published) do
    local device, model, batch_size, expected = unpack(case)
    it(('reach what TensorFlow measured: %s on %s, within a fifth'):format(model, device), function()
      expect(images_per_s(device, model, batch_size)):near(expected, 0.2 * expected)
    end)
  end
  -- The same page has InceptionV3 and ResNet-50 with 64 images on a K80 of 12 GB, so they fit.
  it('have the memory that TensorFlow got by with', function()
    for _, model in ipairs { 'inception_v3', 'resnet50' } do
      local problem = trinity.problem { graph = trinity.model(model, { batch_size = 64, optimizer = 'sgd' }),
        cluster = trinity.cluster 'k80x1' }
      expect(problem:evaluate(problem:placement()).feasible):truthy()
    end
  end)
end)

describe('convolutions from Volta on', function()
  -- ResNet-50 v1.5 in training on one GPU: sources at the efficiencies (lib/trinity/cluster/devices.lua); figures of the
  -- H100 are its measured speed-up over the A100 times the A100's.
  local published = {
    { 'v100', 'float32', 128, 367 }, { 'v100', 'float16', 256, 1200 }, { 'a100_80gb', 'float32', 256, 938 },
    { 'a100_80gb', 'float16', 256, 2470 }, { 'h100', 'float32', 256, 938 * 1895 / 1066 },
    { 'h100', 'float16', 256, 2470 * 2787 / 1582 },
  }
  for _, case in ipairs(published) do
    local device, dtype, batch_size, expected = unpack(case)
    it(('train ResNet-50 as published: %s in %s, within 5 %%'):format(device, dtype), function()
      local graph = trinity.model('resnet50', { batch_size = batch_size, dtype = dtype,
        gradient_dtype = dtype ~= 'float32' and 'float32' or nil })
      local problem = trinity.problem { check_memory = false, graph = graph,
        cluster = trinity.cluster { devices = { { name = 'gpu', type = device } } } }
      expect(batch_size / problem:evaluate(problem:placement()).step_time_s):near(expected, 0.05 * expected)
    end)
  end
end)

describe('a later GPU', function()
  local networks = { vgg16 = {}, resnet50 = {}, inception_v3 = {}, nasnet_large = { batch_size = 2 }, alexnet = {}, hrnet_w48 = { batch_size = 2 },
    gpt2 = { layers = 2, vocabulary = 512 }, bert_base = { layers = 2 }, vit_b16 = { layers = 2 }, transformer = { layers = 2, vocabulary = 512 },
    moe_transformer = { layers = 2, experts = 4, top_k = 2, vocabulary = 512 }, gnmt = {}, rnnlm = {}, mlp = {},
    ['qwen3-8b'] = { layers = 1, sequence = 512 }, ['deepseek-v3'] = { layers = 4, sequence = 64 } }
  local kernels = { gpt2 = { 'onnx', 'megatron', 'flash' }, moe_transformer = { 'onnx', 'megatron', 'flash' } }
  local mixtures = { moe_transformer = true, ['deepseek-v3'] = true }
  local later = { 'p100', 'v100', 'a100_80gb', 'h100', 'h200', 'b200' }
  local names = {}
  for name in trinity.system.sorted_pairs(networks) do names[#names + 1] = name end

  --- A random network and its description; perceptrons of any width, as narrow as one column.
  local function drawn(stream)
    local function pick(list) return list[1 + math.floor(stream:uniform() * #list)] end
    local function size() return math.floor(2 ^ (13 * stream:uniform())) end
    local name, dtype = pick(names), pick { 'float32', 'float16', 'bfloat16' }
    local options = merged(networks[name], { dtype = dtype, optimizer = pick { 'sgd', 'momentum', 'adam' } })
    options.batch_size = options.batch_size or pick { 1, 2, 4, 16 }
    options.kernels = kernels[name] and pick(kernels[name])
    if name == 'mlp' then
      options = merged(options, { batch_size = size(), inputs = size(), hidden = { size(), size(), size() }, classes = size() })
    end
    return trinity.model(name, options), ('%s in %s'):format(name, dtype), name
  end

  --- Samples networks; check(times by GPU, graph, what, name) returns what takes longer, nil for nothing.
  local function compare(how, check)
    local clusters = {}
    for i, name in ipairs(later) do clusters[i] = trinity.cluster({ devices = { { name = 'gpu', type = name } } }, how) end
    local stream = trinity.random(law_seed(), 'later GPUs')
    for _ = 1, draws(200) do
      local graph, what, name = drawn(stream)
      local times = {}
      for i, cluster in ipairs(clusters) do
        local problem = trinity.problem { check_memory = false, graph = graph, cluster = cluster }
        times[i] = problem:operator_times(1)
        problem:close()
      end
      local slower = check(times, graph, what, name)
      expect(slower):equals(nil)
    end
  end

  local function each_operator(times, graph, what)
    for op = 1, graph.operators do
      for i = 2, #later do
        if times[i][op] > times[i - 1][op] then
          local about = graph:operator(op)
          return ('%s: %s (%s) takes %g s on %s, %g s on %s'):format(what, about.name, about.type, times[i - 1][op],
            later[i - 1], times[i][op], later[i])
        end
      end
    end
  end

  -- Kernels of experts wait for the host by default, which stretches all of a layer: there a layer's sum counts.
  local function default_path(times, graph, what, name)
    if not mixtures[name] then return each_operator(times, graph, what) end
    local sums = {}
    for i = 1, #later do
      sums[i] = {}
      for op = 1, graph.operators do
        local about = graph:operator(op)
        local key = ('%s %s'):format(about.name:match '^[^/]+', about.phase)
        sums[i][key] = (sums[i][key] or 0) + times[i][op]
      end
      for key, seconds in trinity.system.sorted_pairs(i > 1 and sums[i] or {}) do
        if seconds > sums[i - 1][key] * (1 + 1e-6) then -- times are whole nanoseconds
          return ('%s: %s takes %g s on %s, %g s on %s'):format(what, key, sums[i - 1][key], later[i - 1], seconds, later[i])
        end
      end
    end
  end

  it('takes no longer for any operator type of any size by default, in float32 and in 16 bits', function()
    compare(nil, default_path)
  end)
  it('takes no longer for any operator under graphs of all kernels, which no host holds up', function()
    compare({ runtime = { base = 'megatron', cuda_graphs = 'all' } }, each_operator)
  end)
  it('takes no longer by the data sheets', function() compare({ constants = 'data_sheet' }, each_operator) end)
end)
