-- Plans as files of other programs: what a format cannot express, what is refused, one file or several.

local core = require 'trinity.core'
local program = require 'trinity.graph.exported.program'
local trinity = require 'trinity'
local examples = core.home .. '/tests/data/clients/models/'

local function problem_of(model, cluster, options)
  return trinity.problem { graph = trinity.model(examples .. model .. '.json', options or { sequence = 32, layers = 4 }),
    cluster = trinity.cluster(cluster or 'p100x4') }
end

local llama = problem_of 'llama'

local function plain(text) return (text:gsub('%p', '%%%0')) end

local function refused(strategy, options, message)
  expect(function() strategy:export(options) end):raises(plain(message))
end

--- A placement of whole layers: device_of(layer), the number in an operator's name; 0 before the layers, 5 after them.
local function placed(problem, device_of)
  local graph, behind = problem.graph, false
  return problem:placement_by_unit(function(_, op)
    local name = graph:operator(op).name
    local layer = tonumber(name:match '^layer_(%d+)')
    behind = behind or layer ~= nil
    return device_of(layer or (name:match '^norm' or name:match '^lo') and 5 or 0, name)
  end)
end

describe('a part of a plan that a format cannot express', function()
  local strategy = llama:strategy { mesh = { data = 2, pipeline = 2 }, micro_batches = 4, zero_stage = 1 }
  it('is returned, and refused where nothing may be lost', function()
    local text, unsaid = strategy:export { format = 'accelerate' }
    expect(trinity.files.json.decode(text)['model.layers.2']):equals(1)
    expect(table.concat(unsaid, '\n')):equals(table.concat({ 'data = 2 (replicas; the file is for one)', "schedule '1f1b'",
      '4 micro-batches', 'zero_stage = 1 (optimizer states)' }, '\n'))
    refused(strategy, { format = 'accelerate', lossless = true },
      'export: accelerate cannot represent: data = 2 (replicas; the file is for one); schedule')
    local _, nothing = strategy:export { format = 'megatron', lossless = true }
    expect(#nothing):equals(0)
  end)
  it("is not the dispatcher of tokens, which is the runtime's", function()
    local graph = trinity.model('mixtral-8x7b', { layers = 2, sequence = 128, batch_size = 1 })
    for runtime, word in pairs { megatron = 'flex', ['megatron-core-0.8'] = 'alltoall' } do -- in any order
      local problem = trinity.problem { graph = graph, cluster = trinity.cluster('dgx_h100', { runtime = runtime }) }
      local text = problem:strategy { mesh = { data = 8, expert = 8 } }:export { format = 'megatron' }
      expect(text):matches('%-%-moe%-token%-dispatcher%-type ' .. word)
    end
  end)
  it('is never the order of axes, a list of devices or what holds for single operators', function()
    local mesh = { data = 2, tensor = 2 }
    for _, further in ipairs { { order = { 'data', 'tensor' } }, { devices = { 4, 3, 2, 1 } },
      { operators = { ['layer_1/feed_forward/gate'] = { recompute = true } } },
      { sync = { kind = 'local_sgd', every = 4 } } } do
      further.mesh = mesh
      refused(llama:strategy(further), { format = 'megatron', lossless = true }, 'export: megatron cannot represent: ')
    end
  end)
end)

describe('a trace', function()
  it('needs a plan whose steps end', function()
    refused(llama:strategy { mesh = { data = 2 }, sync = { kind = 'parameter_server', asynchronous = true } },
      { format = 'chakra', folder = temporary() }, 'asynchronous schedules (pipedream, asynchronous = true) have no step boundary')
  end)
end)

describe('files', function()
  local strategy = llama:strategy { mesh = { pipeline = 2 }, micro_batches = 2, schedule = 'zb-h1' }
  it('are one text, or several in a folder', function()
    refused(strategy, { format = 'torchtitan' }, 'export: torchtitan: expected a folder for the 2 files (parallelism.py and others)')
    local folder = temporary()
    local paths = strategy:export { format = 'torchtitan', folder = folder }
    expect(table.concat(paths, ' ')):equals(('%s/parallelism.py %s/schedule.csv'):format(folder, folder))
    expect(trinity.files.read(paths[2])):equals((strategy:export { format = 'pytorch_schedule' }))
  end)
  it('do not run what a network is called', function()
    local path = os.tmpname() .. '.json'
    llama.graph:save(path)
    trinity.files.write(path, (trinity.files.read(path):gsub('"name": "llama"', '"name": "a\\ntouch PWNED\\rtouch PWNED\\n#"', 1)))
    local named = trinity.problem { graph = trinity.model(path), cluster = llama.cluster }
    expect(named.graph.name):equals 'a\ntouch PWNED\rtouch PWNED\n#'
    for _, format in ipairs { 'megatron', 'torchtitan' } do
      local exported = named:strategy({ mesh = { data = 2 } }):export { format = format }
      expect(exported):matches '^# a\\x0Atouch PWNED\\x0Dtouch PWNED\\x0A#: [^\n]*2 ranks'
    end
  end)
  it('have a format', function()
    refused(strategy, {}, 'format')
  end)
end)

describe("torchtitan's jobs", function()
  it('have no pipeline of tied weights, which it refuses', function()
    local text = (trinity.files.read(examples .. 'llama.json'):gsub('"tie_word_embeddings": false', '"tie_word_embeddings": true'))
    local tied = trinity.problem { graph = trinity.model(file_with(text, 'config.json'), { sequence = 32, layers = 4 }),
      cluster = trinity.cluster 'p100x4' }
    refused(tied:strategy { mesh = { pipeline = 2 } }, { format = 'torchtitan' },
      'export: torchtitan: expected untied embeddings with a pipeline, got a network with tied embeddings')
    expect((tied:strategy { mesh = { data = 2 } }:export { format = 'torchtitan', lossless = true })):matches 'Config'
  end)
  it('have a file of their order where Schedule1F1B wants more micro-batches', function()
    local folder = temporary()
    local function count(micro_batches)
      local strategy = llama:strategy { mesh = { pipeline = 4 }, micro_batches = micro_batches }
      return #strategy:export { format = 'torchtitan', folder = folder }
    end
    expect(count(3)):equals(2)
    expect(count(4)):equals(1)
  end)
  it('are of its models; of others that is said', function()
    local _, unsaid = problem_of('mixtral', 'p100x2', { sequence = 32, layers = 2 }):strategy { mesh = { pipeline = 2 } }
      :export { format = 'torchtitan', folder = temporary() }
    expect(unsaid[1]):matches "module names of network 'mixtral' %(torchtitan has no model of it"
  end)
end)

it('GPipe of one micro-batch is 1F1B to Megatron-LM', function()
  local function plan(micro_batches)
    return llama:strategy { mesh = { pipeline = 2 }, micro_batches = micro_batches, schedule = 'gpipe' }
  end
  expect((plan(1):export { format = 'megatron', lossless = true })):matches 'layout'
  refused(plan(2), { format = 'megatron', lossless = true }, "export: megatron cannot represent: schedule 'gpipe'")
end)

describe('device maps', function()
  it('are of the shortest modules that share a device', function()
    local strategy = llama:strategy(placed(llama, function(layer) return layer < 3 and 2 or 3 end))
    local map = trinity.files.json.decode((strategy:export { format = 'accelerate' }))
    expect(map['model.embed_tokens']):equals(1)
    expect(map['model.layers.1']):equals(1)
    expect(map['model.layers.2']):equals(2)
    expect(map['model.rotary_emb']):equals(1)
    expect(map.lm_head):equals(2)
    local named = strategy:export { format = 'accelerate', device_names = { 'cuda:0', 'cuda:1', 'cpu', 'disk' } }
    expect(trinity.files.json.decode(named)['model.norm']):equals 'cpu'
  end)
  it('cut no block', function()
    local strategy = llama:strategy(placed(llama, function(layer, name)
      return (layer > 2 or layer == 2 and name:match 'feed_forward' or name:match '^layer_2/norm_2') and 2 or 1
    end))
    refused(strategy, { format = 'accelerate' },
      'export: accelerate: layer 2 is on several devices, but LlamaDecoderLayer is kept whole')
  end)
  it('keep tied weights together, and say so', function()
    local problem = problem_of('gpt2', 'p100x2')
    local strategy = problem:strategy { mesh = { pipeline = 2 } }
    local text, unsaid = strategy:export { format = 'accelerate' }
    expect(trinity.files.json.decode(text).lm_head):equals(0)
    expect(table.concat(unsaid)):matches "shares the weight of 'transformer.wte'"
  end)
  it('of other networks have the names of their operators', function()
    local net = trinity.graph.layers.new('own', { batch_size = 8 })
    local x = net:input('x', { 8, 16 })
    for i = 1, 4 do x = net:relu(('block_%d/relu'):format(i), net:linear(('block_%d/linear'):format(i), x, 16)) end
    net:softmax_cross_entropy('loss', net:linear('last', x, 4), net:input('y', { 8 }, 'int64'))
    local problem = trinity.problem { graph = net:build():to_training(), cluster = trinity.cluster 'p100x2' }
    local text, unsaid = problem:strategy({ mesh = { pipeline = 2 } }):export { format = 'accelerate' }
    local map = trinity.files.json.decode(text)
    expect(map.block_2):equals(0)
    expect(map.block_3):equals(1)
    expect(map.last):equals(1)
    expect(unsaid[#unsaid]):matches "network 'own' has its own"
    local cut = problem:placement_by_unit(function(_, op)
      return problem.graph:operator(op).name:match '^block_2/relu' and 2 or 1
    end)
    map = trinity.files.json.decode((problem:strategy(cut):export { format = 'accelerate' }))
    expect(map.block_2):equals(nil)
    expect(map['block_2.linear']):equals(0)
    expect(map['block_2.relu']):equals(1)
    expect(map.block_3):equals(0)
  end)
end)

it('a network without layers is none of Megatron-LM, and that is said', function()
  local problem = trinity.problem { graph = trinity.model(core.home .. '/tests/data/exported/lstm.pt2'),
    cluster = trinity.cluster 'p100x2' }
  refused(problem:strategy { mesh = { data = 2 } }, { format = 'megatron', lossless = true },
    "export: megatron cannot represent: the network 'lstm' (Megatron-LM's models have repeated layers")
end)

it('device maps of other networks cut no block that a residual crosses', function()
  local net = trinity.graph.layers.new('own', { batch_size = 8 })
  local x = net:input('x', { 8, 16 })
  for i = 1, 4 do x = net:add(('block_%d/sum'):format(i), net:linear(('block_%d/linear'):format(i), x, 16), x) end
  net:softmax_cross_entropy('loss', net:linear('last', x, 4), net:input('y', { 8 }, 'int64'))
  local problem = trinity.problem { graph = net:build():to_training(), cluster = trinity.cluster 'p100x2' }
  local strategy = problem:strategy(problem:placement_by_unit(function(_, op)
    return problem.graph:operator(op).name:match '^block_2/sum' and 2 or 1
  end))
  refused(strategy, { format = 'accelerate' }, "export: accelerate: block 'block_2' is on several devices, but a block is "
    .. 'kept whole, because a residual crosses it')
end)

describe('device maps of exported programs', function()
  --- The map of a placement of a program in tests/data/exported, and what it does not say.
  local function map_of(name, device_of)
    local problem = trinity.problem { graph = trinity.model(('%s/tests/data/exported/%s.pt2'):format(core.home, name)),
      cluster = trinity.cluster 'p100x2' }
    local placement = problem:placement_by_unit(function(_, op)
      return device_of(problem.graph:operator(op).attributes.module or '')
    end)
    local text, unsaid = problem:strategy(placement):export { format = 'accelerate' }
    return trinity.files.json.decode(text), table.concat(unsaid, '\n')
  end
  it('keep modules together that share a weight, and say so', function()
    for name, pair in trinity.system.sorted_pairs { bert = { 'bert.embeddings.word_embeddings', 'cls.predictions.decoder' },
      lstm = { 'embedding', 'head' } } do
      local map, unsaid = map_of(name, function(path) return path == pair[2] and 2 or 1 end)
      expect(unsaid):matches(plain(("the device of '%s' (it shares the weight of '%s', so it is on 0 instead of 1)"):format(
        pair[2], pair[1])))
      for _, device in trinity.system.sorted_pairs(map) do expect(device):equals(0) end
    end
  end)
  it('have every weight where its module is', function()
    for _, name in ipairs { 'bert', 'densenet', 'llama', 'mobilenet_v3', 'unet', 'vit' } do
      local random, device_of, device_of_block, count = trinity.random(1, name), {}, {}, 0
      local map = map_of(name, function(path)
        local block = path:match '^.-[._]%d+' or path:match '^[^.]*%.?[^.]*' -- which is never cut
        device_of_block[block] = device_of_block[block] or random:integer(2)
        device_of[path] = device_of_block[block]
        return device_of[path]
      end)
      for _, input in ipairs(program.read(('%s/tests/data/exported/%s.pt2'):format(core.home, name)).inputs) do
        if input.kind == 'parameter' then
          local entry, module = input.name, input.name:match '^(.*)%.'
          while entry and not map[entry] do entry = entry:match '^(.*)%.' end
          if not entry then error(('%s: no entry for %s'):format(name, input.name), 0) end
          if device_of[module] and module ~= 'cls.predictions.decoder' then -- which is where the embedding is
            count = count + 1
            expect(map[entry]):equals(device_of[module] - 1)
          end
        end
      end
      expect(count > 10):equals(true)
    end
  end)
  it('say which operators without weights are elsewhere than what they read', function()
    local _, unsaid = map_of('llama', function() return 1 end)
    expect(unsaid):equals ''
    _, unsaid = map_of('vit', function(path) return path == 'encoder.dropout' and 2 or 1 end)
    expect(unsaid):matches '^the devices of %d+ operators without weights, such as \'[%w_]+\' %(they run where their inputs are%)$'
  end)
  it('cut no block', function()
    local function device_of(path) return path == 'encoder.layers.encoder_layer_1.ln_2' and 2 or 1 end
    expect(function() map_of('vit', device_of) end):raises(plain(
      "export: accelerate: block 'encoder.layers.encoder_layer_1' is on several devices, but a block is kept whole"))
    local map = map_of('vit', function(path) return path:find('encoder_layer_1', 1, true) and 2 or 1 end)
    expect(map['encoder.layers.encoder_layer_1']):equals(1)
    expect(map['encoder.layers.encoder_layer_0']):equals(0)
    expect(function()
      map_of('bert', function(path) return path == 'bert.embeddings.LayerNorm' and 2 or 1 end)
    end):raises(plain "block 'bert.embeddings' is on several devices, but a block is kept whole")
  end)
end)

describe('stages of placements', function()
  it('are written as stages of a mesh where they are whole layers', function()
    local function device(layer) return layer <= 2 and 1 or layer == 3 and 2 or 3 end
    local strategy = llama:strategy { placement = placed(llama, device), schedule = '1f1b', micro_batches = 4 }
    local text = strategy:export { format = 'megatron' }
    expect(text):matches "pipeline%-model%-parallel%-layout 'Ett|t|tL'"
    expect((strategy:export { format = 'pytorch_schedule' })):matches '^0F0,0F1,0F2,0B0,'
  end)
  it('are refused by name where they cut a layer', function()
    local strategy = llama:strategy { schedule = '1f1b', micro_batches = 4, placement = placed(llama, function(layer, name)
      return (layer > 2 or layer == 2 and name:match 'feed_forward' or name:match '^layer_2/norm_2') and 2 or 1
    end) }
    refused(strategy, { format = 'megatron' }, 'layer 2 is cut: in stages 1 and 2')
  end)
  it('are none of a placement without a pipeline', function()
    local strategy = llama:strategy(llama:placement())
    refused(strategy, { format = 'megatron' }, 'got a placement of operators')
    refused(strategy, { format = 'pytorch_schedule' }, 'expected a pipeline, got a schedule without stages')
    refused(strategy, { format = 'deepspeed' }, 'expected a mesh, got a placement of operators')
  end)
end)

describe('what programs refuse', function()
  it('is refused by name', function()
    local sharded = llama:strategy { mesh = { pipeline = 2, data = 2 }, zero_stage = 2, micro_batches = 2 }
    refused(sharded, { format = 'deepspeed' }, 'zero_stage: expected 0 or 1 with a pipeline, got 2')
  end)
end)
