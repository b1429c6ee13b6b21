-- Strategies with a mesh: what they lower to, what is refused, files.

local core = require 'trinity.core'
local owners = require 'trinity.strategy.owners'
local simulator = require 'trinity.strategy.simulator'
local trinity = require 'trinity'
local util = require 'trinity.base.util'

local function gpt2()
  return trinity.model('gpt2', { layers = 4, hidden = 64, heads = 4, sequence = 32, positions = 32, vocabulary = 1000,
    batch_size = 2, dropout = 0, fused = false })
end

local cluster = trinity.cluster 'dgx_a100x4'
local function on(graph) return trinity.problem { graph = graph, cluster = cluster } end

describe('functions of operators in a mesh', function()
  local problem = on(gpt2())

  it('recompute what they choose: all layers as full does, none as none does, the rest between', function()
    local function cost(recompute, pipeline)
      return problem:evaluate { mesh = { pipeline = pipeline or 1, data = 2 }, micro_batches = 4, recompute = recompute }
    end
    for _, pipeline in ipairs { 1, 2 } do
      local full, none = cost('full', pipeline), cost('none', pipeline)
      expect(cost(function(op) return op.name:find '^block_' end, pipeline).step_time_s):equals(full.step_time_s)
      expect(cost(function() end, pipeline).step_time_s):equals(none.step_time_s)
      local half = cost(function(op) return op.name:find '^block_[13]/' end, pipeline)
      expect(half.step_time_s > none.step_time_s and half.step_time_s < full.step_time_s):equals(true)
      expect(half.peak_memory_bytes <= none.peak_memory_bytes and half.peak_memory_bytes >= full.peak_memory_bytes)
        :equals(true)
    end
  end)

  it('pad a vocabulary that tensor does not divide: it costs what the next one costs that it does', function()
    local function cost(vocabulary, strategy)
      local of = on(trinity.model('gpt2', { layers = 4, hidden = 64, heads = 4, sequence = 32, positions = 32,
        vocabulary = vocabulary, batch_size = 2, dropout = 0, fused = false }))
      return of:evaluate(strategy)
    end
    for _, strategy in ipairs { { mesh = { tensor = 4 } }, { mesh = { tensor = 4, pipeline = 2, data = 2 },
      micro_batches = 4, zero_stage = 3 }, { mesh = { tensor = 4, data = 2 }, sequence_parallel = true, zero_stage = 1 } } do
      local padded, even, whole = cost(1001, strategy), cost(1004, strategy), cost(1000, strategy)
      expect(padded.step_time_s / even.step_time_s):near(1, 1e-12)
      expect(padded.peak_memory_bytes):equals(even.peak_memory_bytes)
      expect(whole.step_time_s < padded.step_time_s and whole.peak_memory_bytes < padded.peak_memory_bytes):equals(true)
    end
  end)

  it('cut what they say over tensor: nothing of attention, then no heads need divide', function()
    local odd = on(trinity.model('gpt2', { layers = 2, hidden = 60, heads = 3, sequence = 32, positions = 32,
      vocabulary = 1000, batch_size = 2, dropout = 0, fused = false, kernels = 'onnx' }))
    expect(function() odd:evaluate { mesh = { tensor = 2 } } end):raises 'has 3 heads, which 2 does not divide'
    local found = odd:strategy { mesh = { tensor = 2 }, split = function(op)
      if op.name:find 'attention' then return false end
    end }
    expect(found.metrics.feasible):equals(true)
    expect(found.operators['block_1/attention/q/heads'].split):equals(false)
    for _, row in ipairs(found:breakdown().stages[1].traffic) do expect(row.axis):equals 'tensor' end
    local path = os.tmpname()
    local again = odd:load(found:save(path))
    expect(again.metrics.step_time_s):equals(found.metrics.step_time_s)
    expect(again.operators['block_2/attention/q/heads'].split):equals(false)
    expect(again.operators['block_2/feed_forward/inner']):equals(nil)
  end)
end)

describe('a mesh', function()
  local problem = on(gpt2())

  it('sends between stages what the next one reads, from every part to its own', function()
    local account = problem:strategy({ mesh = { pipeline = 2, tensor = 2 }, micro_batches = 3 }):breakdown()
    local sends = {}
    for _, row in ipairs(account.traffic) do
      if row.kind == 'send' and row.phase == 'forward' then sends[table.concat(row.devices, '>')] = row.count end
    end
    expect(trinity.files.json.encode(sends):gsub('%s', '')):equals '{"1>3":3,"2>4":3}'
  end)
  it('takes the layers of every stage, with the operators before and after them at the ends', function()
    local uneven = problem:strategy { mesh = { pipeline = 2 }, stages = { 3, 1 }, micro_batches = 2 }
    local even = problem:strategy { mesh = { pipeline = 2 }, stages = { 2, 2 }, micro_batches = 2 }
    expect(even.metrics.step_time_s):equals(
      problem:strategy({ mesh = { pipeline = 2 }, micro_batches = 2 }).metrics.step_time_s)
    expect(even.metrics:compute_busy_s(1)):below(uneven.metrics:compute_busy_s(1))
    local home = even.placement
    for i = 1, problem.graph.operators do
      local op = problem.graph:operator(i)
      local first = op.name:match '^block_[12]/' or op.name:match '^embed' or op.name == 'tokens'
        or op.name == 'positions'
      expect(home[i]):equals(first and 1 or 2)
    end
  end)
  it('is accounted for as any plan is, which has no parts of a network to count by', function()
    local account = problem:strategy(problem:placement()):breakdown()
    expect(account.stages):equals(nil)
    expect(account.devices[1].activations):equals(nil)
    expect(account.devices[1].activation_bytes):equals(problem:strategy({ mesh = {} }):breakdown().devices[1].activation_bytes)
    expect(account.devices[1].parameters):equals(problem.graph.parameters)
    expect(#account.traffic):equals(0)
  end)
  it('says what it shards, and warns of gradients that are reduced after every micro-batch', function()
    local text = problem:strategy({ mesh = { data = 2, pipeline = 2 }, micro_batches = 4, zero_stage = 2 }):explain()
    expect(text):matches "sharded over data: optimizer states and gradients\n"
    expect(text):matches 'gradients are reduced after every micro%-batch, which sends 4 times the bytes of zero_stage = 1\n'
    expect(text):matches 'messages of stage 1: data all%-gather'
    expect(problem:strategy({ mesh = { data = 2 }, zero_stage = 2 }):explain():find('after every', 1, true)):equals(nil)
  end)
  it('is refused in a file where its fields are wrong', function()
    local path = os.tmpname()
    problem:strategy({ mesh = { data = 2, pipeline = 2 }, micro_batches = 4 }):save(path)
    local text = core.read_file(path)
    core.write_file(path, (text:gsub('"pipeline": 2', '"pipline": 2')))
    expect(function() problem:load(path) end):raises "mesh: unknown field 'pipline', did you mean 'pipeline'"
    core.write_file(path, (text:gsub('"mesh": {', '"order": [1], "mesh": {')))
    expect(function() problem:load(path) end):raises 'order: expected a string, got 1'
    core.write_file(path, (text:gsub('"mesh": {', '"zero_stages": 1, "mesh": {')))
    expect(function() problem:load(path) end):raises "strategy: unknown field 'zero_stages', did you mean 'zero_stage'"
    core.write_file(path, (text:gsub('"data": 2', '"data": 3000')))
    expect(function() problem:load(path) end):raises "are 6000 devices, cluster 'dgx_a100x4' has 32"
  end)
end)

describe('operators placed inside the stages of a mesh', function()
  local graph = gpt2()
  local problem = on(graph)
  local function place_of(op) return op.name:find 'query' and 2 or op.name:find 'head' and 1 or nil end

  it('are said by a function, a list, an array, or what a method found', function()
    local pair = trinity.problem { graph = graph, cluster = trinity.cluster 'p100x2' }
    local placement = pair:placement()
    for i = 1, graph.operators do
      local op = graph:operator(i)
      if (op.forward and graph:operator(op.forward) or op).name:find 'query' then placement[i] = 2 end
    end
    local plan = { mesh = { placement = 2, data = 2 }, micro_batches = 2 }
    local said = {}
    for _, inside in ipairs { place_of, placement:totable(), placement, pair:strategy(placement) } do
      plan.inside = inside
      said[#said + 1] = problem:strategy(plan)
      expect(said[#said] == said[1]):equals(true)
      expect(said[#said].metrics.step_time_s):equals(said[1].metrics.step_time_s)
    end
    plan.inside = function() return 1 end
    expect(problem:strategy(plan) == said[1]):equals(false)
    expect(said[1]:explain()):matches 'operators by device slot of their stage: %d+, 12'
  end)

  it('run on devices of their own, in every stage and replica', function()
    local found = problem:strategy { mesh = { placement = 2, data = 2, pipeline = 2, tensor = 2 }, inside = place_of,
      micro_batches = 4 }
    local whole, devices = {}, {}
    for i = 1, graph.operators do
      local name = graph:operator(i).name
      if name:find 'query' and name:find 'block_[14]' then
        whole[name:match 'block_%d'] = found.placement[i]
      end
    end
    expect(whole.block_1):equals(3) -- after the first place's two devices
    expect(whole.block_4):equals(11) -- of the second stage, after eight
    for d = 1, 16 do devices[d] = found.metrics:compute_busy_s(d) > 0 end
    for d = 1, 16 do expect(devices[d]):equals(true) end
    local axes = {}
    for _, row in ipairs(found:breakdown().traffic) do axes[('%s %s'):format(row.axis, row.kind)] = true end
    expect(axes['placement send']):equals(true)
    expect(axes['tensor all_reduce']):equals(true)
  end)

  it('take what the two devices of a placement take, where that is all there is', function()
    local inception = trinity.model('inception_v3', { batch_size = 8 })
    local pair = trinity.problem { graph = inception, cluster = trinity.cluster 'p100x2' }
    local random = trinity.random(2, 'places')
    local placement = pair:placement_by_unit(function() return 1 + math.floor(2 * random:uniform()) end)
    local plain, placed = pair:evaluate(placement), pair:evaluate { mesh = { placement = 2 }, inside = placement }
    -- Images stand where they are read, and a sum whose terms are all in one place is made there.
    expect(placed.total_communication_bytes <= plain.total_communication_bytes):equals(true)
    expect(placed.total_communication_bytes > 0.95 * plain.total_communication_bytes):equals(true)
    local busy_s = { 0, 0 }
    for i, metrics in ipairs { plain, placed } do
      for d = 1, 2 do busy_s[i] = busy_s[i] + metrics:compute_busy_s(d) end
    end
    expect(busy_s[2]):near(busy_s[1], 1e-12)
    expect(placed.step_time_s):below(1.15 * plain.step_time_s)
  end)
end)

describe('a mesh refuses', function()
  local problem = on(gpt2())
  local function refused(plan, message) expect(function() problem:strategy(plan) end):raises(message) end

  it('in a sentence with fields, sizes and what would do', function()
    refused({ mesh = { data = 33 } }, "data 33 x tensor 1 x pipeline 1 are 33 devices, cluster 'dgx_a100x4' has 32")
    refused({ mesh = { tensor = 4096, context = 4096, placement = 4096 }, inside = function() return 1 end },
      "are 68719476736 devices, cluster 'dgx_a100x4' has 32")
    refused({ mesh = { dp = 2 } }, "unknown axis 'dp', did you mean 'data'") -- other programs' names
    refused({ mesh = { data = 2 }, fsdp = 1 }, "unknown field 'fsdp', did you mean 'zero_stage'")
    refused({ mesh = { pipeline = 3 } }, '4 layers do not divide over 3 stages')
    refused({ mesh = { pipeline = 4 }, stages = { 2, 0, 1, 1 }, micro_batches = 4 },
      'stages: stage 2 of 4 has 0 layers; expected at least 1 between the first stage and the last one')
    refused({ mesh = { pipeline = 2 }, stages = { 1, 2 } }, 'expected 2 numbers of layers .* with the sum 4, got 2 with')
    refused({ mesh = { tensor = 3 } }, "mesh: tensor = 3: operator '.*' has 4 heads, which 3 does not divide; nearest that do: 2 or 4")
    local grouped = on(trinity.model('decoder', { layers = 2, hidden = 64, heads = 8, num_kv_heads = 2, sequence = 32,
      vocabulary = 64, batch_size = 1 }))
    expect(function() grouped:evaluate { mesh = { tensor = 4 } } end)
      :raises "operator 'layer_1/attention' has 2 KV heads, which 4 does not divide; nearest that do: 2"
    refused({ mesh = { pipeline = 2 }, virtual_stages = 2 }, "schedule '1f1b' expects one stage per device")
    refused({ mesh = { pipeline = 2 }, schedule = 'interleaved', virtual_stages = 2, micro_batches = 3 },
      'expected micro_batches that pipeline = 2 divides, got 3 %(nearest: 2 or 4%)')
    refused({ mesh = { pipeline = 2 }, schedule = 'interleaved', virtual_stages = 2, micro_batches = 1 },
      'expected micro_batches that pipeline = 2 divides, got 1 %(nearest: 2%)')
    refused({ mesh = {}, order = { 'tenser' } }, "unknown axis 'tenser', did you mean 'tensor'")
    refused({ mesh = {}, order = { 1 } }, "field 'order': entry 1: expected the name of an axis, got 1")
    refused({ mesh = { data = 2 }, devices = { 1, 99 } }, "there is no device 99 in cluster 'dgx_a100x4' %(1 to 32%)")
    refused({ mesh = { context = 3 } }, "a sequence of 32 .* is not divided by 3 %(nearest that do: 2 or 4%)")
    refused({ mesh = { data = 3, expert = 2 } }, 'expert = 2 does not divide data = 3')
    expect(function() problem:evaluate_batch { problem:placement(), { mesh = { data = 99 } } } end)
      :raises 'problem:evaluate_batch: entry 2: mesh: data 99 '
    expect(function() problem:strategy { placement = problem:placement(), micro_batches = 'x' } end)
      :raises "problem:strategy: schedule: field 'micro_batches': expected a number, got string 'x'"
    refused({ mesh = { placement = 2 } }, "mesh: placement = 2: expected 'inside' with the slot of every operator .* from 1 to 2, got none")
    refused({ mesh = { placement = 2 }, inside = { 1, 2 } }, 'inside: graph .* has %d+ operators, got slots of 2')
    refused({ mesh = { placement = 2 }, inside = function() return 3 end },
      "inside: operator 'tokens' is in slot 3, expected 1 to mesh: placement = 2")
    refused({ mesh = {}, inside = function() return 2 end }, 'is in slot 2, expected 1 to mesh: placement = 1')
    refused({ mesh = { placement = 2 }, inside = function() return 'b' end },
      "inside: the function at [^ ]*mesh_spec.lua:%d+ returned string 'b' for operator 'tokens'")
    refused({ mesh = { placement = 2 }, inside = 'heft' }, "'inside': expected .*, got string 'heft'")
    refused({ mesh = { data = 2, expert = 2, placement = 2 }, inside = function() end },
      'each rank of experts would need slots of its own; use expert = 1, or placement = 1')
  end)
  it('rules of single operators that name what is not there', function()
    refused({ mesh = { tensor = 2 }, split = function() return 7 end }, "returned number 7 for operator '[^']+', expected the name of a dim")
    refused({ mesh = { tensor = 2 }, split = function(op) return op.name == 'block_1/feed_forward/inner' and 'zz' or nil end },
      "split of operator 'block_1/feed_forward/inner': it has no dimension 'zz'; use one of: ")
    refused({ mesh = {}, operators = { ['block_1/feed_forward/iner'] = { recompute = true } } },
      "has no forward operator 'block_1/feed_forward/iner', did you mean 'block_1/feed_forward/inner'")
  end)
  it('what has no heads to split by, and networks that repeat no layers where stages go by them', function()
    local joined = on(trinity.model('gpt2', { layers = 2, batch_size = 1, fused = true }))
    expect(function() joined:strategy { mesh = { tensor = 2 } } end):raises 'use a network with fused = false'
    expect(joined:strategy({ mesh = { pipeline = 2 }, micro_batches = 2 }).metrics.feasible):equals(true)
    local layers = trinity.graph.layers.new('one', { batch_size = 2 })
    layers:softmax_cross_entropy('loss', layers:linear('only', layers:input('x', { 2, 8 }), 4),
      layers:input('y', { 2 }, 'int64'))
    local single = on(layers:build())
    expect(function() single:strategy { mesh = { pipeline = 2 } } end):raises "need repeated layers, which graph 'one' does not have %(a layer is the set"
    expect(single:strategy({ mesh = { data = 2, tensor = 2 } }).metrics.feasible):equals(true)
  end)
end)

describe('words of a mesh that have no effect', function()
  local net = trinity.graph.layers.new('cnn', { batch_size = 4 })
  local x = net:input('x', { 4, 8, 16, 16 })
  for i = 1, 4 do
    local conv = net:conv(('down_%d/conv'):format(i), x, { channels = 8, kernel = 3, padding = 1 })
    x = net:relu('between_' .. i, conv)
  end
  local problem = on(net:build():to_training())
  local function refused(plan, message) expect(function() problem:evaluate(plan) end):raises(message) end

  it('are refused where they ask for devices or memory', function()
    refused({ mesh = { tensor = 2 } }, "mesh: tensor = 2 splits no operator of graph 'cnn': expected matmuls with weights .*use tensor = 1")
    refused({ mesh = { tensor = 2 }, sequence_parallel = true }, "sequence_parallel: graph 'cnn' has no sequence")
    refused({ mesh = { context = 2 } }, "mesh: context = 2: graph 'cnn' has no sequence")
    refused({ mesh = { data = 2, expert = 2 } }, "mesh: expert = 2: graph 'cnn' has no experts")
    local joined = on(trinity.model('transformer', { batch_size = 2 })) -- keys and values of a memory in one matmul
    expect(function() joined:evaluate { mesh = { data = 3, expert = 3 } } end):raises "graph 'transformer' has no experts"
    refused({ mesh = {}, recompute = 'selective' }, "recompute: selective: graph 'cnn' has no attention to recompute")
    refused({ mesh = {}, schedule = 'interleaved', virtual_stages = 2 }, 'expected a mesh with pipeline > 1')
    local function convolutions(op) return op.type == 'Conv' and 'c' or nil end
    expect(problem:evaluate({ mesh = { tensor = 2 }, split = convolutions }).feasible):equals(true)
  end)
  it('a pipeline over operators between layers that no name puts there, with the rule of names', function()
    refused({ mesh = { pipeline = 2 }, micro_batches = 4 },
      "operator 'between_%d' in stage 1 .* reads 'down_%d/conv' in .*whose stages follow layers %(a layer is the set")
  end)
  it('change nothing where the axis that they belong to is 1', function()
    local step_s = problem:evaluate({ mesh = {} }).step_time_s
    for _, word in ipairs { { sequence_parallel = true }, { overlap_tp_grad_allreduce = true }, { scatter_gather = true }, { zero_stage = 3 },
      { cp_comm_type = 'ring' }, { sync = { kind = 'hierarchical', inner = 2 } }, { bucket_bytes = 1000 },
      { schedule = 'zb-h1' }, { order = { 'pipeline', 'tensor' } }, { inside = function() return 1 end } } do
      expect(problem:evaluate(util.merged({ mesh = {} }, word)).step_time_s):equals(step_s)
    end
  end)
end)

describe('an error of a mesh on 16,384 devices', function()
  it('is computed from one replica: no graph of all devices is made for it', function()
    local status, output = run_script('SCRIPT', [[
      local trinity = require 'trinity'
      local problem = trinity.problem {
        check_memory = false, graph = trinity.model('gpt2', { layers = 16, hidden = 64, heads = 8, sequence = 32, positions = 32,
          batch_size = 1, kernels = 'onnx' }),
        cluster = trinity.cluster 'dgx_a100x2048' }
      local function refused(plan)
        plan.micro_batches = 32
        print(select(2, pcall(problem.evaluate, problem, plan)))
      end
      local mesh, stages = { data = 128, tensor = 8, pipeline = 16 }, { 2, 0 }
      for stage = 3, 16 do stages[stage] = 1 end
      refused { mesh = mesh, stages = stages }
      refused { mesh = mesh, schedule = 'interleaved', virtual_stages = 2 }
      refused { mesh = { data = 127, tensor = 8, pipeline = 16 }, sync = { algorithm = 'halving_doubling' } }
      refused { mesh = { data = 64, tensor = 16, pipeline = 16 } }
      refused { mesh = mesh, inside = function() return 2 end }
      print(io.open('/proc/self/status'):read '*a':match 'VmHWM:%s*(%d+) kB')
    ]])
    expect(status):equals(0)
    expect(output):matches('stages: stage 2 of 16 has 0 layers[^\n]*\n[^\n]*16 layers do not divide over 32 stages[^\n]*\n'
      .. "[^\n]*'halving_doubling' expects a power of two of devices, got 127\n"
      .. "[^\n]*operator 'block_1/attention/q/heads' has 8 heads, which 16 does not divide[^\n]*\n"
      .. '[^\n]*is in slot 2, expected 1 to mesh: placement = 1\n')
    expect(tonumber(output:match '(%d+)\n$')):below(200000) -- kB; graphs of all devices took 829 MB
  end)
end)

describe('the account of a mesh', function()
  local problem = on(gpt2())

  it('divides the step of every device, and says what each part costs', function()
    local found = problem:strategy { mesh = { pipeline = 2, data = 2, tensor = 2 }, micro_batches = 4,
      recompute = 'full', zero_stage = 3 }
    for d, device in ipairs(found:breakdown().devices) do
      local waits = device.exposed_s
      expect(device.computation_s + waits.splits + waits.activations + waits.weights + waits.gradients + device.idle_s)
        :near(found.metrics.step_time_s, 1e-12)
      expect(device.recomputation_s > 0):equals(d <= 8)
      expect(waits.splits > 0 and waits.weights > 0):equals(d <= 8)
    end
    local plain = problem:strategy({ mesh = { data = 2 } }):breakdown().devices[1]
    expect(plain.recomputation_s):equals(0)
    expect(plain.exposed_s.splits + plain.exposed_s.activations + plain.exposed_s.weights):equals(0)
    expect(plain.exposed_s.gradients > 0):equals(true)
  end)

  it('counts what the training software holds, and buffers of gradients where they stay', function()
    local graph = trinity.model('decoder', { layers = 2, hidden = 256, heads = 4, feed_forward = 512, vocabulary = 8192,
      sequence = 2048, dtype = 'bfloat16', gradient_dtype = 'float32' })
    local function peak_of(runtime)
      local own = trinity.problem { graph = graph, cluster = trinity.cluster('dgx_h100', { runtime = runtime }) }
      local found = own:strategy { mesh = { data = 2 } }
      local device = found:breakdown().devices[1]
      local unused = found.metrics:memory_bytes(3)
      own:close()
      return device.peak_bytes, device.gradient_bytes, found.metrics:memory_bytes(1), unused
    end
    local megatron, gradients, peak, unused = peak_of 'megatron'
    -- context and communicators 988 MB; 32 MiB for cuBLAS forward, backward and for Transformer Engine
    expect(megatron.framework):equals(988e6 + 3 * 32 * 2 ^ 20)
    expect(megatron.gradients):equals(gradients)
    expect(unused):equals(0)
    local more, _, larger = peak_of { base = 'megatron', workspace_bytes = 1e9 }
    expect(more.framework - megatron.framework):equals(1e9)
    expect(larger - peak):equals(1e9)
    local torchtitan = peak_of 'torchtitan'
    expect(torchtitan.framework):equals(988e6 + 2 * 32 * 2 ^ 20)
    expect(torchtitan.gradients < gradients):equals(true)
    expect(function()
      trinity.problem { graph = graph, cluster = trinity.cluster('dgx_h100',
        { runtime = { base = 'megatron', workspace_bytes = 84e9 } }) }
    end):raises 'framework_bytes must lie in'
  end)

  it('names the owner of every byte of a peak', function()
    local seen = {}
    for _, plan in ipairs { { mesh = { pipeline = 2, data = 2, tensor = 2 }, recompute = 'full', zero_stage = 3 },
      { mesh = { pipeline = 4, data = 2 }, schedule = 'zb-h1' }, { mesh = { data = 4, context = 2 }, zero_stage = 1 },
      { mesh = { pipeline = 2, tensor = 4 }, sequence_parallel = true, schedule = 'zb-v', virtual_stages = 2 },
      { mesh = { data = 2 }, sync = { kind = 'parameter_server', servers = 1 } } } do
      plan.micro_batches = 8
      local found = problem:strategy(plan)
      for d, device in ipairs(found:breakdown().devices) do
        local sum = 0
        for owner, bytes in trinity.system.sorted_pairs(device.peak_bytes) do
          sum = sum + bytes
          if bytes > 0 then seen[owner] = true end
        end
        expect(sum):equals(found.metrics:memory_bytes(d))
        expect(device.peak_bytes.weights):equals(device.weight_bytes)
        expect(device.peak_bytes.optimizer):equals(device.optimizer_bytes)
      end
      expect(found:explain()):matches 'peak memory [%d.e-]+ GB: weights [%d.e-]+, '
      local devices = {}
      for d = 1, #problem.cluster.devices do devices[d] = d end
      local owned = simulator.owners('test', problem, plan, devices)
      for d, device in ipairs(found:breakdown().devices) do -- of two slots that are as full either
        expect(owners.sum(owned[d])):equals(owners.sum(device.peak_bytes))
        for _, owner in ipairs { 'weights', 'optimizer', 'framework' } do
          expect(owned[d][owner]):equals(device.peak_bytes[owner])
        end
      end
    end
    for _, owner in ipairs { 'gradients', 'activations', 'activation_gradients', 'delayed', 'gathered' } do
      expect(seen[owner] and owner):equals(owner)
    end
  end)
end)
