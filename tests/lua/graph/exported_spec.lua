-- Programs that PyTorch exported (the files of tests/data/exported): weights and
-- matmuls compared with PyTorch's counts, the whole compared with ONNX files of the same networks, and broken files.

local core = require 'trinity.core'
local trinity = require 'trinity'

local folder = root .. '/tests/data/exported'
local facts = trinity.files.json.decode(trinity.files.read(folder .. '/facts.json'))
local names = { 'bert', 'densenet', 'llama', 'lstm', 'mobilenet_v3', 'unet', 'vit' }
local products = { Gemm = true, MatMul = true, Conv = true, ConvTranspose = true, Attention = true, LSTM = true }

local function forward(name) return trinity.model(('%s/%s.pt2'):format(folder, name), { training = false }) end

describe('programs that PyTorch exported', function()
  for _, name in ipairs(names) do
    it('have the weights and matmul FLOP that PyTorch counts: ' .. name, function()
      local graph, flops = forward(name), 0
      expect(graph.parameters):equals(facts[name].parameters)
      for o = 1, graph.operators do
        if products[graph:operator(o).type] then flops = flops + graph:operator(o).flops end
      end
      expect(flops):near(2 * facts[name].macs, 1e-9)
      expect(#graph.source.unknown_types):equals(0)
    end)
  end

  it('have cells of recurrences with the products of their gates', function()
    local describe = require('trinity.graph.exported.operators').describe
    for operator, expected in trinity.system.sorted_pairs { lstm_cell = 4, gru_cell = 3, rnn_tanh_cell = 1, rnn_relu_cell = 1 } do
      local type, _, flops = describe({ operator = operator, values = {} }, { parameters = {},
        inputs = { { shape = { 3, 8 } }, { shape = { 3, 12 } } }, outputs = { { shape = { 3, 12 } } } })
      expect(type):matches '^[LGR]'
      expect(flops):equals(2 * 3 * expected * 12 * (8 + 12))
    end
  end)

  it('are within 1 % of the ONNX files of the same networks', function()
    local open = { bert = { batch = 2, sequence = 8 }, llama = { batch = 2, sequence = 8 },
      unet = { batch = 2, ['4*side'] = 32 } }
    for _, name in ipairs { 'bert', 'llama', 'lstm', 'unet', 'vit' } do
      local onnx = trinity.model(('%s/tests/data/onnx/%s.onnx'):format(root, name), { training = false,
        dimensions = open[name] })
      local graph = forward(name)
      expect(graph.flops / onnx.flops):near(1, 0.01)
      expect(graph.parameters / onnx.parameters):near(1, 0.01)
    end
  end)

  it('keep the paths of modules', function()
    for _, name in ipairs { 'llama', 'densenet' } do
      local graph, seen = forward(name), {}
      for o = 1, graph.operators do seen[graph:operator(o).attributes.module or ''] = true end
      local missing = 0
      for _, module in ipairs(facts[name].modules) do
        if not seen[module] and not module:find 'rotary_emb' then missing = missing + 1 end
      end
      expect(missing / #facts[name].modules < 0.05):equals(true)
    end
  end)

  it('train, and run on a cluster', function()
    local graph = trinity.model(folder .. '/unet.pt2')
    expect(graph.training):equals(true)
    local problem = trinity.problem { graph = graph, cluster = trinity.cluster 'p100x2' }
    expect(problem:evaluate(problem:placement()).step_time_s > 0):equals(true)
  end)

  it('may have operators that none here has: sums with batched matmuls, pools over one axis', function()
    local operators = require 'trinity.graph.exported.operators'
    expect(table.concat(operators.order 'baddbmm', ' ')):equals 'batch1 batch2 self'
    local type, attributes = operators.describe({ operator = 'max_pool1d', values = { kernel_size = { 3 } } },
      { inputs = { { shape = { 2, 4, 9 } } }, outputs = { { shape = { 2, 4, 3 } } }, parameters = {} })
    expect(type):equals 'MaxPool'
    expect(table.concat(attributes.strides, 'x')):equals '3'
  end)

  it('are read whatever the time of their entries', function()
    local path = temporary '.pt2'
    core.write_file(path, (core.read_file(folder .. '/lstm.pt2'):gsub('(PK\1\2........)..', '%1\1\2')))
    expect(trinity.model(path).flops):equals(trinity.model(folder .. '/lstm.pt2').flops)
  end)

  it('that are broken raise an error with what was found and what was expected', function()
    local text, path = core.read_file(folder .. '/lstm.pt2'), temporary '.pt2'
    expect(function() trinity.model(path) end):raises 'model file'
    core.write_file(path, 'no archive')
    expect(function() trinity.model(path) end):raises 'expected a zip archive'
    --- The error where a piece of the program, found by a pattern, is replaced by one of the same length.
    local function refusal(pattern, other)
      local old = text:match(pattern)
      local from, to = text:find(old, 1, true)
      core.write_file(path, text:sub(1, from - 1) .. other .. (' '):rep(#old - #other) .. text:sub(to + 1))
      local ok, message = pcall(trinity.model, path)
      expect(ok):equals(false)
      return message:match ': models/model.json: (.*)'
    end
    expect(refusal('"sizes":(%b[])', '{"a":1}')):matches "^tensor '.*': field 'sizes': expected a list, got an object$"
    expect(refusal('"sizes":(%b[])', '[true]')):matches 'expected sizes that are numbers or have an example, got true$'
    expect(refusal('"sizes":(%b[])', '[{"as_int":1099511627777}]')):matches 'expected sizes .*, got number 1099511627777$'
    expect(refusal('"nodes":%[{"target":"[^"]*","inputs":(%b[])', '7')):matches "^node 0: field 'inputs': expected a list, got number 7$"
    expect(refusal('"outputs":%[(%b{})%]', '{"as_tensor":{"name":"q"}}')):matches "^field 'outputs': 0: expected a tensor of a node, got 'q'$"
    expect(refusal('"outputs":%[({"as_tensor":{"name":"zeros_1"}})%]', '{"as_tensor":{"name":"zeros"}}')):matches(
      "^node %d+: expected a new tensor, got 'zeros', which exists already$")
    expect(refusal('"p_head_bias":{.-"as_int":%d+', '"p_head_bias":{"dtype":7,"sizes":[{"as_int":0')):matches
      "^operator 'linear': parameter 1: extent 0 in its shape$"
  end)
end)
