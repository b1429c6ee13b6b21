-- Decoders that a config.json describes: weights and FLOP compared with PyTorch's counts, options, what is refused, and
-- the layers that they are made of.

local core = require 'trinity.core'
local trinity = require 'trinity'

local folder = temporary()
os.execute(('mkdir %q'):format(folder))
local path = folder .. '/config.json'

local function encode(value) return require('trinity.base.json').encode(value) end

-- The network of a config.json of this text or these fields.
local function network(config, options)
  core.write_file(path, type(config) == 'string' and config or encode(config))
  return trinity.model(path, options)
end

local llama = { model_type = 'llama', hidden_size = 64, intermediate_size = 96, num_hidden_layers = 2,
  num_attention_heads = 4, num_key_value_heads = 2, vocab_size = 100, max_position_embeddings = 64 }
local function with(changes) return merged(llama, changes) end

-- FLOP of matmuls alone, which is what PyTorch counts.
local function products(graph)
  local sum = 0
  for i = 1, graph.operators do
    local op = graph:operator(i)
    local type = op.type:gsub('Grad$', '')
    if type == 'Gemm' or type == 'MatMul' or type == 'Einsum' or type == 'Attention' then sum = sum + op.flops end
  end
  return sum
end

-- Recorded cases: the text of the file (which has nulls), and what PyTorch counts.
local function cases(file)
  local lines = core.read_file(('%s/tests/data/decoders/%s.json'):format(root, file or 'cases')):gmatch '{[^\n]*"config": [^\n]*'
  return function()
    local line = lines()
    if line then return line:match '"config": (%b{})', trinity.files.json.decode((line:gsub(',$', ''))) end
  end
end

describe('config.json', function()
  it('counts samples by its tokens, whatever other inputs it has', function()
    expect(network(llama, { batch_size = 3, sequence = 16 }).batch_size):equals(3)
  end)
  it('has the weights that PyTorch counts, of every kind and with odd options', function()
    local count = 0
    for text, case in cases() do
      local graph = network(text, { training = false, sequence = 16, batch_size = 2 })
      expect(('%s %d'):format(text, graph.parameters)):equals(('%s %d'):format(text, case.parameters))
      expect(graph.active_parameters):equals(case.active or graph.active_parameters)
      count = count + 1
    end
    expect(count):equals(72)
  end)
  it('has the weights of models that are published, whatever else their files say', function()
    local count = 0
    for text, case in cases 'models' do
      local graph = network(text, { training = false, sequence = 128 })
      expect(('%s %d'):format(case.name, graph.parameters)):equals(('%s %d'):format(case.name, case.parameters))
      expect(('%s %d'):format(case.name, graph.active_parameters)):equals(
        ('%s %d'):format(case.name, case.active or case.parameters))
      count = count + 1
    end
    expect(count):equals(25)
  end)
  it('has the FLOP that PyTorch counts, forward and backward', function()
    local count = 0
    for text, case in cases() do
      if case.training_flop then
        local graph = network(text, { sequence = 16, batch_size = 2, kernels = 'onnx', dropout = 0 })
        expect(('%s %.0f'):format(case.config.model_type, products(graph))):equals(
          ('%s %.0f'):format(case.config.model_type, case.training_flop))
        count = count + 1
      end
    end
    expect(count):equals(12)
  end)
  it('is read from a folder, too, and by info', function()
    network(llama)
    expect(trinity.model(folder).parameters):equals(trinity.model(path).parameters)
  end)
  it('is trained in mixed precision by Adam: 2 + 4 + 12 bytes a weight, or as it says', function()
    local function bytes(graph)
      local weights, gradients, states = graph.parameter_bytes, 0, 0
      for i = 1, graph.operators do
        local op = graph:operator(i)
        states = states + graph.persistent_bytes_of[i]
        if op.phase == 'update' then gradients = gradients + op.inputs[1].bytes end
      end
      return weights / graph.parameters, gradients / graph.parameters, states / graph.parameters
    end
    local function all(graph) return ('%g %g %g'):format(bytes(graph)) end
    expect(all(network(llama))):equals '2 4 12'
    expect(all(network(with { torch_dtype = 'float16' }))):equals '2 4 12'
    expect(all(network(with { dtype = 'float32' }))):equals '4 4 8'
    expect(all(network(llama, { dtype = 'float8' }))):equals '2 4 12'
    expect(all(network(llama, { gradient_dtype = 'bfloat16', optimizer = 'sgd' }))):equals '2 2 4'
  end)
  it('computes matmuls of layers in FP8 on request, and keeps one byte per element of their operands', function()
    local graph = network(llama, { dtype = 'float8', training = false })
    local eight, sixteen = 0, 0
    for i = 1, graph.operators do
      local op = graph:operator(i)
      if op.type == 'Gemm' then
        if op.inputs[1].dtype == 'float8' then eight = eight + 1 else sixteen = sixteen + 1 end
        expect(op.outputs[1].dtype):equals 'bfloat16'
      end
    end
    expect(eight):equals(2 * 7)
    expect(sixteen):equals(1) -- the logits
    local function step_time_s(options)
      local problem = trinity.problem { graph = network(with { hidden_size = 4096, intermediate_size = 14336 }, options),
        cluster = trinity.cluster 'dgx_h100' }
      return problem:evaluate(problem:placement()).step_time_s
    end
    expect(step_time_s { dtype = 'float8', sequence = 64, batch_size = 64 }):below(
      0.8 * step_time_s { sequence = 64, batch_size = 64 })
  end)
  it('counts the keys of a window alone where a kernel skips the others', function()
    local full = network(with { model_type = 'mistral', sliding_window = 64 }, { training = false })
    local narrow = network(with { model_type = 'mistral', sliding_window = 16 }, { training = false })
    local unfused = network(with { model_type = 'mistral', sliding_window = 16 }, { training = false, kernels = 'onnx' })
    expect(products(full) - products(narrow)):equals(2 * 4 * 64 * 64 * (64 - 16))
    expect(products(unfused)):equals(products(full))
  end)
end)

describe('published decoders', function()
  local published = require 'trinity.graph.decoder.published'
  it('have the published weights by name alone, however it is written', function()
    local count = 0
    for name, about in trinity.system.sorted_pairs(published) do
      local graph = trinity.model(name:gsub('^%l', string.upper), { training = false, sequence = 16 })
      expect(('%s %d'):format(name, graph.parameters)):equals(('%s %d'):format(name, about.parameters))
      if about.active then expect(graph.active_parameters):equals(about.active) end
      count = count + 1
    end
    expect(count):equals(11)
    expect(math.abs(published['gpt-3-175b'].parameters / 174600e6 - 1)):below(1e-3) -- table D.1 of the paper
  end)
  it('are trained as a config.json is: by Adam, in bfloat16, or in float16 where a GPU has no bfloat16', function()
    local function dtype(options)
      local graph = trinity.model('llama-3-8b', merged({ layers = 1, sequence = 16 }, options))
      for i = 1, graph.operators do
        local op = graph:operator(i)
        if op.type == 'Gemm' then return op.outputs[1].dtype end
      end
    end
    expect(dtype {}):equals 'bfloat16'
    expect(dtype { cluster = 'A100' }):equals 'bfloat16'
    expect(dtype { cluster = trinity.cluster 'V100' }):equals 'float16'
    expect(dtype { cluster = 'V100', dtype = 'float32' }):equals 'float32'
  end)
  it('are suggested and listed where a name is misspelt', function()
    expect(function() trinity.model 'llama-3-80b' end):raises "no model 'llama%-3%-80b', did you mean 'llama%-3%-70b'"
  end)
end)

describe('networks of models/ that are trained in mixed precision', function()
  it('are in bfloat16 with float32 gradients on a cluster whose devices have it, else in float32', function()
    for _, name in ipairs { 'gpt2', 'bert_base', 'vit_b16', 'moe_transformer' } do
      local function bytes(cluster)
        local graph = trinity.model(name, { layers = 1, batch_size = 1, cluster = cluster })
        return graph.parameter_bytes / graph.parameters
      end
      expect(('%s %g %g %g'):format(name, bytes(), bytes 'p100x2', bytes 'H100')):equals(name .. ' 4 4 2')
    end
  end)
  it('split heads by default', function()
    for _, name in ipairs { 'gpt2', 'bert_base', 'vit_b16', 'llama-3-8b' } do
      local problem = trinity.problem { graph = trinity.model(name, { layers = 2, batch_size = 2 }), cluster = trinity.cluster 'H100x2' }
      expect(problem:evaluate({ mesh = { tensor = 2 } }).feasible):equals(true)
    end
  end)
end)

describe('a mesh', function()
  it('splits decoders of every kind: matmuls by heads, columns and rows, vocabularies, stages', function()
    local cluster, count = trinity.cluster 'dgx_h100', 0
    for text, case in cases() do
      if case.training_flop then
        local problem = trinity.problem { graph = network(text, { sequence = 16, batch_size = 2 }), cluster = cluster }
        local function share(plan)
          local stages = problem:strategy(plan):breakdown().stages
          local sum = 0
          for _, stage in ipairs(stages) do sum = sum + stage.parameters end
          return sum / problem.graph.parameters
        end
        local kind = case.config.model_type
        local tied = kind == 'gemma2' or kind == 'gpt2'
        expect(share { mesh = { tensor = 2, data = 2 }, sequence_parallel = true, zero_stage = 1 }):below(0.56)
        local halves = share { mesh = { tensor = 2, pipeline = 2 }, sequence_parallel = true, micro_batches = 4 }
        expect(halves):below(tied and 0.66 or 0.56) -- tied tables are in both stages
        expect(share { mesh = { pipeline = 2 }, schedule = 'zb-h1', micro_batches = 4 }):below(tied and 1.15 or 1.0001)
        -- Two replicas of two parts of the sequence share weights out together.
        expect(share { mesh = { context = 2, data = 2 }, recompute = 'full', zero_stage = 3 }):near(0.25, 0.01)
        count = count + 1
      end
    end
    expect(count):equals(12)
  end)
end)

describe('config.json is refused', function()
  local function refused(config, message, options) expect(function() network(config, options) end):raises(message) end
  it('in a sentence that names the field', function()
    refused(with { model_type = 'lama' }, "config.json: unknown model_type 'lama', did you mean 'llama'")
    refused({ num_hidden_layers = 2 }, "config.json: field 'model_type' is missing")
    refused({ model_type = 'llama', num_hidden_layers = 2, hidden_sizes = 64 },
      "config.json: field 'hidden_size' is missing, did you mean 'hidden_sizes'")
    refused({ model_type = 'llama', num_hidden_layers = 2, hidden_act = 'silu' }, "field 'hidden_size' is missing$")
    refused(with { hidden_size = '64' }, "field 'hidden_size': expected an integer of at least 1, got string '64'")
    refused(with { num_attention_heads = 3 }, 'expected hidden_size divisible by the number of attention heads, got 64 and 3')
    refused(with { num_key_value_heads = 3 }, 'expected num_attention_heads divisible by num_key_value_heads, got 4 and 3')
    refused(with { hidden_act = 'mish' }, "field 'hidden_act': unknown value 'mish'")
    refused(with { tie_word_embeddings = 1 }, "field 'tie_word_embeddings': expected true or false, got number 1")
    refused(with { rope_scaling = { rope_type = 'yarm', factor = 2 } }, "unknown type 'yarm', did you mean 'yarn'")
    refused(with { model_type = 'mixtral', num_local_experts = 2, num_experts_per_tok = 3 }, 'expected at most 2 %(the number of experts%), got 3')
    refused('{"model_type": "llama", ', 'config.json:1:24: not valid JSON')
    refused({ model_type = 'llava', text_config = {} }, "use its field 'text_config'")
  end)
  it('where an option does not fit it', function()
    refused({ model_type = 'gpt2', n_embd = 8, n_layer = 1, n_head = 2, vocab_size = 9, n_positions = 16 },
      'expected a sequence of at most 16 tokens %(positions of the network%), got 32', { sequence = 32 })
    expect(function() trinity.model('vgg16', { dtype = 'float8' }) end):raises "dtype 'float8' needs a decoder"
  end)
end)

describe('config.json warns', function()
  local function warnings(changes)
    return table.concat(network(with(changes), { training = false }).source.warnings, '; ')
  end
  it('in a sentence of what changes nothing, or nothing here', function()
    expect(warnings {}):equals ''
    expect(warnings { rope_scaling = { rope_type = 'llama3' } }):matches "^rope_scaling 'llama3' changes the rotation angles"
    expect(warnings { quantization_config = { quant_method = 'fp8' } }):matches "use dtype = 'float8' for matmuls in FP8"
    expect(warnings { quantization_config = { quant_method = 'gptq' } }):matches 'stored for inference'
    expect(warnings { model_type = 'qwen3' }):matches "field 'head_dim' is missing: using 128, the default of its model type"
  end)
  it('once, however often the file is read', function()
    local once = folder .. '/once.json'
    core.write_file(once, encode(with { quantization_config = { quant_method = 'gptq' } }))
    local progress, lines = require 'trinity.base.progress', {}
    local say = progress.say
    progress.say = function(text) lines[#lines + 1] = text end
    for batch_size = 1, 3 do pcall(trinity.model, once, { batch_size = batch_size, sequence = 16 }) end
    progress.say = say
    expect(#lines):equals(1)
    expect(lines[1]):matches 'once%.json: .*stored for inference'
  end)
end)

describe('activations of a GPT layer', function()
  -- Korthikanti et al. 2022, equation 1: a layer keeps s b h (34 + 5 a s / h) bytes; with flash attention, of which the
  -- core keeps 4 bytes a row and head, and no masks: s b h 34 - 2 s b h (masks of a byte) + 4 s b a.
  local function kept(kernels, dropout)
    local b, s, h, a = 2, 64, 128, 4
    local function total(layers)
      local problem = trinity.problem { cluster = trinity.cluster 'dgx_a100', graph = network({ model_type = 'gpt2',
        n_embd = h, n_layer = layers, n_head = a, vocab_size = 50, n_positions = s }, { sequence = s, batch_size = b,
        kernels = kernels, dropout = dropout }) }
      return problem:strategy({ mesh = {} }):breakdown().stages[1].activation_bytes
    end
    return total(3) - total(2), s * b * h, a * s / h, 4 * s * b * a
  end
  it('follow the published formula', function()
    local bytes, sbh, scores = kept('megatron', 0.1)
    expect(bytes):equals(sbh * (34 + 5 * scores))
    local flash, _, _, rows = kept('flash', 0)
    expect(flash):equals(sbh * 32 + rows)
  end)
end)

describe('layers of decoders', function()
  local net = trinity.graph.layers.new('pieces', { dtype = 'bfloat16' })
  local x = net:input('x', { 2, 16, 64 })
  it('refuse what does not fit', function()
    expect(function() net:mixture_of_experts('m', x, { experts = 2, top_k = 3, feed_forward = 8 }) end):raises(
      'expected at most 2 %(the number of experts%), got 3')
    expect(function() net:gated_feed_forward('g', x, {}) end):raises 'feed_forward'
    expect(function() net:latent_attention('l', x, { heads = 2 }) end):raises 'kv_lora_rank'
  end)
  it('gather tokens for experts so that the load is even', function()
    net:mixture_of_experts('even', x, { experts = 5, top_k = 2, feed_forward = 8, kernels = 'flash' })
    net:softmax_cross_entropy('loss', net:linear('logits', net:rms_norm('norm', x), 4), net:input('y', { 2, 16 }, 'int64'))
    local graph = net:build()
    local shape = graph:operator('even/dispatch').outputs[1].shape
    expect(table.concat(shape, ' ')):equals '5 13 64' -- 2 x 16 x 2 choices over 5 experts, rounded up
    expect(graph:operator('even/experts/up').flops):equals(2 * 5 * 13 * 64 * 8)
    expect(graph.active_parameters):equals(graph.parameters - 3 * 5 * 64 * 8 * 3 / 5)
  end)
  it('have experts of two matmuls without gates, and rows that parts divide', function()
    for _, kernels in ipairs { 'onnx', 'flash' } do
      local plain = trinity.graph.layers.new('plain', { dtype = 'bfloat16' })
      local input = plain:input('x', { 2, 16, 64 })
      local y = plain:mixture_of_experts('m', input, { experts = 5, top_k = 2, feed_forward = 8, gated = false, divisible_by = 4,
        kernels = kernels })
      plain:softmax_cross_entropy('loss', plain:linear('logits', y, 4, { bias = false }), plain:input('y', { 2, 16 }, 'int64'))
      local graph = plain:build()
      expect(table.concat(graph:operator('m/dispatch').outputs[1].shape, ' ')):equals '5 16 64' -- 13 rows, rounded up
      expect(graph.parameters):equals(64 * 5 + 2 * 5 * 64 * 8 + 64 * 4)
      expect(graph:find 'm/experts/gate'):equals(nil)
      expect(graph:find(kernels == 'onnx' and 'm/experts/activation/gelu' or 'm/experts/activation') ~= nil):equals(true)
    end
  end)
  it('multiply by router probabilities in float32, with gradients that are kernels of their own', function()
    local plain = trinity.graph.layers.new('plain', { dtype = 'bfloat16' })
    local input = plain:input('x', { 2, 16, 64 })
    local y = plain:mixture_of_experts('m', input, { experts = 4, top_k = 2, feed_forward = 8, gated = false, kernels = 'flash',
      apart = true, router_dtype = 'float32' })
    plain:reduce_mean('loss', plain:reshape('flat', y, { 2 * 16 * 64 }), 1)
    local graph = plain:build():to_training { optimizer = 'sgd' }
    local product, elements, rows = graph:operator 'm/experts/activation/weighted', 4 * 16 * 8, 4 * 16
    expect(graph:operator('m/dispatch').outputs[2].dtype):equals 'float32'
    expect(product.outputs[1].dtype):equals 'float32'
    expect(product.traffic_bytes):equals((2 + 4) * elements + 4 * rows)
    expect(graph:operator('m/experts/activation/cast').outputs[1].dtype):equals 'bfloat16'
    -- two kernels read the gradient and write float32, which two others cast or sum; one reads the result of the GELU
    local gradient = graph:operator 'm/experts/activation/weighted/grad'
    expect(gradient.traffic_bytes):equals((2 * 4 + 2 * 8 + 2 + 2) * elements + 2 * 4 * rows)
    expect(gradient.workspace_bytes):equals(2 * 4 * elements)
  end)
end)
