-- Training steps that PyTorch's profiler traced (tests/data/traces, by tests/clients/traces.py): how much of their time
-- is joined to graphs of the same modules, whether to the right operators, and files that are damaged.

local core = require 'trinity.core'
local files = require 'trinity.profile.trace.files'
local align = require 'trinity.profile.trace.align'
local attribution = require 'trinity.profile.trace.attribution'
local modules = require 'trinity.profile.trace.modules'
local trinity = require 'trinity'
local util = require 'trinity.base.util'

local folder = root .. '/tests/data/traces/'
local names = { 'densenet', 'mobilenet_v3', 'unet', 'llama', 'vit' }
local calls = trinity.json.decode(trinity.files.read(folder .. 'calls.json'))

local function options_of(base) return { kineto = base .. '.kineto.json', execution_trace = base .. '.et.json' } end

local function simulated_s(graph, trace)
  local problem = trinity.problem { graph = graph, cluster = trinity.cluster 'p100x2', cost = trace:cost() }
  return problem:evaluate(problem:placement()).step_time_s
end

--- Sums over operators and what belongs to none are the step.
local function whole(trace)
  local sum = trace.optimiser_s + trace.other_s
  for _, times in ipairs(trace.operators) do sum = sum + times.forward_s + times.backward_s + times.update_s end
  return sum
end

-- Nodes of autograd that only operators of these types make.
local makers = { ConvolutionBackward0 = 'Conv ConvTranspose', NativeBatchNormBackward0 = 'BatchNormalization',
  NativeGroupNormBackward0 = 'GroupNormalization', NativeLayerNormBackward0 = 'LayerNormalization',
  AddmmBackward0 = 'Gemm', MmBackward0 = 'Gemm', EmbeddingBackward0 = 'Gather', NllLossBackward0 =
  'SoftmaxCrossEntropyLoss', NllLoss2DBackward0 = 'SoftmaxCrossEntropyLoss', SiluBackward0 = 'Swish', GeluBackward0 = 'Gelu',
  HardswishBackward0 = 'HardSwish', CatBackward0 = 'Concat', MaxPool2DWithIndicesBackward0 = 'MaxPool',
  ScaledDotProductFlashAttentionForCpuBackward0 = 'Attention', RsqrtBackward0 = 'Sqrt', NegBackward0 = 'Neg' }

describe('traced steps', function()
  for _, name in ipairs(names) do
    local graph = trinity.model(folder .. name .. '.pt2')

    it('are joined to the graph of the same module: ' .. name, function()
      local trace = trinity.profile.trace(graph, options_of(folder .. name))
      expect(trace.attributed >= 0.95):equals(true)
      expect(trace.named >= 0.95):equals(true)
      expect(trace.joined):equals(1)
      expect(trace.operator_time_s < trace.step_time_s):equals(true)
      expect(whole(trace) / trace.step_time_s):near(1, 1e-6) -- Kineto's begins have 1 ns
      expect(simulated_s(graph, trace) / trace.step_time_s):near(1, 0.05)
    end)

    it('have the paths of modules that hooks saw: ' .. name, function()
      local _, events = files.kineto(folder .. name .. '.kineto.json')
      local outermost = modules.of_events(events)
      local path_of, called, known, total = modules.paths(outermost, modules.of_graph(graph)), 0, 0, 0
      for _, event in ipairs(events) do
        if event.kind == 'module' then
          called, total = called + 1, total + (event.busy and 1 or 0)
          if path_of[event] then
            known = known + 1
            expect(path_of[event]):equals(calls[name][called])
          end
        end
      end
      expect(called):equals(#calls[name])
      expect(known):equals(total)
    end)

    it('have nodes of autograd at the operators that make such: ' .. name, function()
      local step, events = files.kineto(folder .. name .. '.kineto.json')
      local spans, seen = attribution.spans(graph, modules.of_graph(graph), step, events), 0
      for _, span in ipairs(spans) do
        local types = makers[span.event.name:match 'evaluate_function: (.*)' or '']
        if types then
          seen = seen + 1
          local type = graph:operator(span.forward).type
          if not (' ' .. types .. ' '):find(' ' .. type .. ' ', 1, true) then
            error(('%s is at %s'):format(span.event.name, type), 0)
          end
          expect(graph:operator(span.operator).forward):equals(span.forward)
        end
      end
      expect(seen > 10):equals(true)
    end)
  end

  it('may have a loss outside the module (a step of ../shared)', function()
    local base = root .. '/../shared/data/formats/tiny_step'
    if not pcall(core.read_file, base .. '.kineto.json') then skip 'needs ../shared/data/formats' end
    local graph = trinity.model(folder .. 'tiny.pt2')
    local trace = trinity.profile.trace(graph, options_of(base))
    expect(trace.attributed >= 0.95):equals(true)
    expect(trace.step_time_s):near(2772.809e-6, 1e-12)
    expect(simulated_s(graph, trace) / trace.step_time_s):near(1, 0.05)
    -- read off the file: from aten::linear of head to aten::cross_entropy_loss, its AddmmBackward0 to AccumulateGrad and
    -- TBackward0 to the next, the first AccumulateGrad to TBackward0 and the second to AddBackward0
    local head
    for _, times in ipairs(trace.operators) do
      if times.name == 'linear_2' then head = times end
    end
    expect(head.forward_s):near(151.5e-6, 0.2e-6)
    expect(head.backward_s):near((251.6 + 45.3) * 1e-6, 0.2e-6)
    expect(head.update_s):near((31.0 + 24.4) * 1e-6, 0.2e-6)
  end)

  it('give the time of an operator by its name', function()
    local graph = trinity.model(folder .. 'unet.pt2')
    local cost, device = trinity.profile.trace(graph, options_of(folder .. 'unet')):cost(), { speed = 2 }
    local op = graph:operator(4)
    expect(op.type):equals 'GroupNormalization'
    expect(cost(op, device, 7) > 0):equals(true)
    expect(cost({ name = 'all_reduce' }, device, 7)):equals(nil)
  end)

  it('align lists', function()
    local function at(a, b)
      local found, same = {}, align.words(util.words(a), util.words(b))
      for i = 1, #util.words(a) do found[i] = same[i] or 0 end
      return table.concat(found, ' ')
    end
    expect(at('a b c', 'a b c')):equals '1 2 3'
    expect(at('a x b c y', 'a b z c')):equals '1 0 2 4 0'
    expect(at('x', 'a b')):equals '0'
  end)
end)

describe('files of traces', function()
  local graph = trinity.model(folder .. 'unet.pt2')
  local text, other = core.read_file(folder .. 'unet.kineto.json'), core.read_file(folder .. 'unet.et.json')

  local function read(kineto, execution_trace)
    local path, second = temporary '.json', execution_trace and temporary '.et.json'
    core.write_file(path, kineto)
    if second then core.write_file(second, execution_trace) end
    return path, second, pcall(trinity.profile.trace, graph, { kineto = path, execution_trace = second })
  end

  it('may be compressed', function()
    local network, plain = trinity.model(folder .. 'unet.pt2'), options_of(folder .. 'unet')
    local packed = {}
    for kind, path in trinity.system.sorted_pairs(plain) do
      packed[kind] = temporary '.json.gz'
      expect(os.execute(("gzip -c '%s' > '%s'"):format(path, packed[kind]))):equals(0)
    end
    local trace, same = trinity.profile.trace(network, packed), trinity.profile.trace(network, plain)
    expect(simulated_s(network, trace)):equals(simulated_s(network, same))
    core.write_file(packed.kineto, core.read_file(packed.kineto):sub(1, -9))
    expect(function() trinity.profile.trace(network, packed) end):raises(
      packed.kineto:match '[^/]*$':gsub('%p', '%%%0') .. ": byte %d+: expected a whole file of gzip's format")
  end)

  it('are refused with file and field', function()
    local function refused(kineto, execution_trace, expected)
      local path, second, ok, message = read(kineto, execution_trace)
      expect(ok):equals(false)
      if not tostring(message):find(expected, 1, true) then error(('%s, not %s'):format(message, expected), 0) end
      expect(message:find(execution_trace and second or path, 1, true) ~= nil):equals(true)
    end
    refused('[]', nil, "field 'traceEvents': expected a list, got nil")
    refused('{"traceEvents":[]}', nil, "field 'traceEvents': expected at least one entry")
    refused((text:gsub('ProfilerStep', 'Profiler')), nil, "expected a user_annotation 'ProfilerStep#N'")
    refused((text:gsub('nn%.Module: ', 'nn: ')), nil, "which a profile with_stack=True has")
    refused((text:gsub('"cpu_op"', '"op"')), nil, "expected operators (cat 'cpu_op') in ProfilerStep#5")
    refused((text:gsub('"dur":%s*[%d.]+', '"dur":"x"', 1)), nil, "traceEvents[0]: field 'dur': expected a number from 0")
    refused((text:gsub('"cpu_op"', '"kernel"', 1)), nil, 'got the kernel of a GPU')
    refused(text, '{"nodes":[{"id":1}]}', "nodes[0]: field 'attrs': expected a list, got nil")
    refused(text, (other:gsub('aten::conv2d', 'aten::conv3d', 1)), "expected 'aten::conv2d', which Kineto's record")
    refused(text, (other:gsub('rf_id', 'id')), "field 'nodes': expected attributes 'rf_id' with records of Kineto's step, got none")
  end)

  it('are refused in a sentence or read where they are damaged', function()
    local random, refused = trinity.random(1, 'traces'), 0
    for round = 1, 60 do
      local made = round % 2 == 0 and text or other
      for _ = 1, random:integer(4) do
        local at = random:integer(#made)
        made = made:sub(1, at - 1) .. string.char(31 + random:integer(95)) .. made:sub(at + 1)
      end
      if random:integer(4) == 1 then made = made:sub(1, random:integer(#made)) end
      local path, second, ok, message = read(round % 2 == 0 and made or text, round % 2 == 1 and made or nil)
      if not ok then
        refused = refused + 1
        if not tostring(message):find(second or path, 1, true) or message:find 'attempt to' or message:find '\n' then
          error(message, 0)
        end
      end
    end
    expect(refused > 10):equals(true)
  end)

  it('need a graph with paths', function()
    local kineto = { kineto = folder .. 'unet.kineto.json' }
    expect(function() trinity.profile.trace(trinity.model 'mlp', kineto) end):raises 'got a graph without paths'
    expect(function() trinity.profile.trace(trinity.model(folder .. 'unet.pt2', { training = false }), kineto) end):raises(
      'got a forward pass')
    expect(function() trinity.profile.trace(graph, {}) end):raises "option 'kineto' is missing"
    expect(function() trinity.profile.trace(graph, { kineto = 'nowhere.json' }) end):raises 'nowhere.json'
  end)
end)
