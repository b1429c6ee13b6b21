-- Research formats (lib/trinity/graph/instances): what is read, and what is said about files that are wrong.

local damage = dofile(root .. '/tests/lua/support/damaged_text.lua')
local core = require 'trinity.core'
local instances = require 'trinity.graph.instances'
local trinity = require 'trinity'

-- The operators of a text, the graph's facts, and the network to be cut with what the file says about it.
local function read(text, path)
  local reader, graph, network = instances.parse(text, path)
  local facts, ops = graph:summary(), {}
  for op = 1, facts.operators do ops[op] = graph:operator(op) end
  return ops, facts, network and { network() }, reader
end

local function joined(list, field)
  local words = {}
  for i, entry in ipairs(list) do
    if field then entry = entry[field] end
    words[i] = tostring(entry)
  end
  return table.concat(words, ' ')
end

-- A function that tests what is said about a text with one piece replaced.
local function refuser(text, path)
  return function(from, to, message)
    expect(damage.error_of(instances.parse, damage.replaced(text, from, to), path)):equals(path .. message)
  end
end

describe('a profile of PipeDream', function()
  local text = 'node2 -- LSTM(2048, 1024) -- forward_compute_time=3.190, backward_compute_time=5.348, '
    .. 'activation_size=[100.0; 20.0; 3.0], parameter_size=503.000 -- stage_id=1\n'
    .. 'node1 -- Input0 -- forward_compute_time=635.902, backward_compute_time=0.000, activation_size=154.0, '
    .. 'parameter_size=0.000\n\tnode1 -- node2\n\tnode1 -- node2'
  local fields = ' -- forward_compute_time=1, backward_compute_time=2, activation_size=3, parameter_size=4'
  it('is read: lists summed, loader time dropped, edges once, any order of nodes', function()
    local ops, facts, network = read(text, 'x.txt')
    expect(joined(ops, 'name')):equals 'node1 node2'
    expect(ops[1].measured_time_s):equals(0)
    expect(ops[1].attributes.loader_time_s):near(0.635902, 1e-12)
    expect(ops[2].type):equals 'LSTM'
    expect(ops[2].measured_time_s):near(3.190e-3, 1e-12)
    expect(ops[2].attributes.stage):equals(1)
    expect(ops[2].outputs[1].bytes):equals(123)
    expect(ops[2].parameter_bytes):equals(503)
    expect(facts.edges):equals(1)
    local lstm, input = network[1].nodes[1], network[1].nodes[2]
    expect(joined(network[2].nodes)):equals 'node2 node1'
    expect(lstm.time):near(8.538e-3, 1e-12)
    expect(lstm.memory_bytes):equals(626)
    expect(input.time == nil and input.output_bytes == nil and not input.planned):truthy() -- as in PipeDream
    expect(joined(network[1].edges[1])):equals '2 1'
  end)
  it("becomes types of ONNX; layers that differ by their number are of one type", function()
    for description, type in pairs { -- in any order
      ['Conv2d(3, 64, kernel_size=(11, 11))'] = 'Conv', Conv2d_1_2 = 'Conv', MaxPool2d_5 = 'MaxPool', FC1 = 'Gemm',
      ['ReLU(inplace)'] = 'Relu', Prediction = 'Gemm', ['Linear(in_features=1, out_features=2)'] = 'Gemm',
      ['Embed-Token'] = 'Gather', ['Embed-Token-Dropout'] = 'Dropout', ['Embed-Segment-one_hot'] = 'OneHot',
      softmax_loss = 'SoftmaxCrossEntropyLoss', reshape_input = 'Reshape', ['__getitem__(0)'] = 'Identity',
      ['EmuBidirLSTM(  (bidir): LSTM(1024, 1024))'] = 'LSTM', Input0 = 'Input', layer_23 = 'layer', Layer_0 = 'Layer',
      cell_3 = 'cell', cell3 = 'cell', cell_stem_1 = 'cell_stem', reduction_cell_0 = 'reduction_cell',
      ['reduction_cell_1/1x1'] = 'Conv', ['cell_3/prev_1x1'] = 'Conv', ['cell_3/Relu_1'] = 'Relu',
      XLNET_LOSS = 'XLNET_LOSS', ['12'] = 'Operator' } do
      expect(description .. ': ' .. read('n -- ' .. description .. fields, 'x.txt')[1].type):equals(description .. ': ' .. type)
    end
  end)
  it("may be DAPPLE's: whole numbers, edges indented by spaces, white space at a line's end", function()
    local ops, facts = read('node1 -- input_ids -- forward_compute_time=1, backward_compute_time=0, '
      .. 'activation_size=[9216; 4], parameter_size=0 \nnode2 -- layer_0 -- forward_compute_time=8.07, '
      .. 'backward_compute_time=13.4, activation_size=12976128, parameter_size=50384896\r\n  node1 -- node2  \n   \n', 'x.txt')
    expect(#ops):equals(2)
    expect(facts.edges):equals(1)
    expect(ops[1].outputs[1].bytes):equals(9220)
    expect(ops[2].parameter_bytes):equals(50384896)
  end)
  it('is refused with its line and field', function()
    local refuses = refuser(text, 'x.txt')
    refuses('stage_id=1', 'stage_id=0.5', ":1: field 'stage_id': expected a whole number, got 0.5")
    refuses('3.190', '-1', ":1: field 'forward_compute_time': must not be negative, got -1")
    refuses('3.190', '1e999', ":1: field 'forward_compute_time': expected a number, got '1e999'")
    refuses('3.190', '0x10', ":1: field 'forward_compute_time': expected a number, got '0x10'")
    refuses('; 3.0]', '', ":1: field 'activation_size': list without ']'")
    refuses('parameter_size=0.000', 'size=0', ":2: field 'parameter_size' is missing; there are: activation_size, "
      .. 'backward_compute_time, forward_compute_t... (the line may be cut short)')
    refuses('\tnode1 -- node2', '\tnode1 -- node1', ":3: edge from node 'node1' to itself")
    refuses('\tnode1 -- node2', '\tnode1 -- node3', ":3: edge names node 'node3', which no node line describes")
    refuses('\tnode1 -- node2', '\tnode2 -- node1', ": graph 'x' has a cycle: node2 -> node1 -> node2")
    refuses('node1 -- Input0', 'node2 -- Input0', ":2: node 'node2' appears twice")
  end)
  it('gives one error that names the place, or a graph, however it is damaged', function()
    expect(damage.check(instances.parse, text, 'x.txt', #text) > 200):truthy()
  end)
  it_shared("takes the time that PipeDream's own optimizer finds for one machine", function()
    local models, count = {}, 0
    for _, folder in ipairs { 'pipedream', 'dapple' } do
      local path = ('%s/../shared/data/%s/'):format(root, folder)
      for _, result in ipairs(trinity.files.json.read(path .. 'expected.json').results) do
        if not models[result.model] then
          local name = result.model:gsub('_compressed.*', '') .. (folder == 'dapple' and '.txt' or '.graph.txt')
          local _, _, network = read(trinity.files.read(path .. name), name)
          local sum = 0
          for _, node in ipairs(network[1].nodes) do sum = sum + (node.time or 0) end
          expect(sum):near(result.total, 1e-6 * result.total)
          models[result.model], count = true, count + 1
        end
      end
    end
    expect(count):equals(14)
  end)
end)

describe('a graph of Doppler', function()
  local text = '5\n0, 4\n0,0, 1, 0\n1,2, 2, 1\n10,20\n30,40\n50,0\n\n'
  it('is read: runs of digits, repeated edges apart, the order of the file', function()
    local ops, facts, network, reader = read(text, 'x.txt')
    expect(#ops):equals(3)
    expect(facts.edges):equals(4)
    expect(ops[1].name):equals '0'
    expect(ops[2].measured_time_s):near(30e-9, 1e-20)
    expect(joined(ops[1].outputs, 'bytes')):equals '20 20' -- 0 -> 1 twice
    expect(ops[3].attributes.file_position):equals(3)
    expect(joined(ops[2].attributes.input_positions)):equals '1 4'
    expect(joined(ops[3].attributes.input_positions)):equals '2 3'
    expect(network):equals(nil)
    expect(reader.whole_step):equals(true)
    local ties = trinity.model(root .. '/tests/data/doppler/ties.txt')
    expect(ties.name .. ' ' .. ties.source.format):equals 'ties Doppler graph'
  end)
  it('is refused in a sentence', function()
    for wrong, message in pairs { -- in any order
      ['0\n'] = '1: number of nodes: expected at least 1, got 0',
      ['99999999999999999999\n'] = '1: number of nodes: expected at most 16777216, got 99999999999999999999',
      ['5\n'] = '2: expected a list of ids of input nodes, got the end of the file',
      ['2\n1, 2\n'] = '2: expected fewer input nodes than the 2 nodes of line 1, got 2',
      ['2\n\n0, x\n'] = "3: sources of edges: expected numbers with commas, got 'x'",
      ['2\n\n0, -1\n'] = "3: sources of edges: expected numbers with commas, got '-1'",
      ['2\n\n0, 2\n'] = '3: source of edge 2: expected a node from 0 to 1, got 2',
      ['2\n\n0\n1, 1\n'] = '4: expected 1 targets, one for each source, got 2',
      ['2\n\n0\n1\n1,1\n'] = "6: expected line 2 of 2 with 'compute,communication', got the end of the file",
      ['2\n\n0\n1\n1\n'] = "5: operator 0: expected 'compute,communication', got '1'",
      ['2\n\n0\n1\n1,2.5\n'] = "5: communication: expected a whole number, got '2.5'",
      ['2\n\n0\n1\n1,-2\n'] = "5: communication: expected a whole number, got '-2'",
      ['2\n\n0\n1\n1000000000000000,2\n'] = '5: compute: expected at most 999999999999999, got 1000000000000000',
      ['2\n\n0\n1\n1,2\n1,2\n1,2\n'] = "7: expected the end of the file after 2 lines of operators, got '1,2'",
      ['2\n\n0\n0\n1,2\n1,2\n'] = '4: edge 1 goes from node 0 to itself' } do
      expect(damage.error_of(instances.parse, wrong, 'x.txt')):equals('x.txt:' .. message)
    end
    expect(damage.error_of(instances.parse, '2\n\n0, 1\n1, 0\n1,2\n1,2\n', 'x.txt')):matches "^x%.txt: graph 'x' has a cycle"
  end)
  it('gives one error that names the place, or a graph, however it is damaged', function()
    expect(damage.check(instances.parse, text, 'x.txt', 4) > 20):truthy() -- '50,' and white space after it
  end)
end)

describe('an instance of dnn-partitioning', function()
  -- Four nodes out of order: 7 -> 3 -> 5, 7 -> 5, and 5's gradient 9 of its class.
  local text = [[{"maxSizePerFPGA": 1000.0, "maxFPGAs": 2, "maxCPUs": 1, "comment": "ignored", "nodes": [
    {"id": 5, "supportedOnFpga": 1, "cpuLatency": 40.0, "fpgaLatency": 4, "isBackwardNode": 0,
     "colorClass": 2, "size": 10, "name": "MatMul12", "layerId": 3},
    {"id": 3, "supportedOnFpga": false, "cpuLatency": 20.0, "fpgaLatency": 2.0, "isBackwardNode": false},
    {"id": 9, "supportedOnFpga": true, "cpuLatency": 80.0, "fpgaLatency": 8.0, "isBackwardNode": true,
     "colorClass": 2, "size": 0.125, "name": "MatMul12_Grad/Transpose_0"},
    {"id": 7, "supportedOnFpga": true, "cpuLatency": 10.0, "fpgaLatency": 1.0, "isBackwardNode": 0,
     "colorClass": 1, "name": "MatMul12"}], "edges": [
    {"sourceId": 7, "destId": 3, "cost": 0.5, "size": 100}, {"sourceId": 7, "destId": 5, "cost": 0.5, "size": 100},
    {"sourceId": 3, "destId": 5, "cost": 0.25}, {"sourceId": 5, "destId": 9, "cost": 0.125, "size": 0.125}]}]]
  it('is read into graph and network', function()
    local ops, facts, network, reader = read(text, 'x.json')
    expect(joined(ops, 'name')):equals 'MatMul12#7 node3 MatMul12 MatMul12_Grad/Transpose_0'
    expect(joined(ops, 'type')):equals 'MatMul Operator MatMul Transpose'
    expect(joined(ops, 'persistent_bytes')):equals '0 0 10 1'
    expect(ops[4].phase .. ops[4].forward):equals 'backward3'
    expect(ops[4].unit):equals(ops[3].unit)
    expect(facts.units .. ' ' .. facts.edges):equals '3 4'
    expect(ops[3].measured_time_s):near(4e-3, 1e-12)
    expect(ops[3].attributes.cpu_time_s):near(40e-3, 1e-12)
    expect(ops[3].attributes.transfer_time_s):near(125e-6, 1e-12)
    expect(ops[2].attributes.supported_on_accelerator):equals(0)
    expect(ops[3].attributes.layer):equals(3)
    expect(ops[3].parameter_bytes):equals(0)
    expect(joined(ops[1].outputs, 'bytes')):equals '100' -- two edges of one size: one tensor
    -- Without a size: 0.25 ms at 2 GiB/s, 536870.912 bytes, rounded up.
    expect(joined(ops[2].outputs, 'bytes')):equals '536871'
    local about, nodes = network[2], network[1].nodes
    expect(about.devices .. ' ' .. about.cpus .. ' ' .. about.memory_bytes):equals '2 1 1000'
    expect(joined(about.nodes)):equals '5 3 9 7'
    expect(joined(nodes, 'time')):equals '4 2 8 1' -- in milliseconds, bit for bit
    expect(joined(nodes, 'transfer')):equals '0.125 0.25 0 0.5'
    expect(joined(nodes, 'unit')):equals '1 2 1 4'
    expect(joined(nodes, 'supported')):equals 'true false true true'
    expect(joined(nodes, 'backward')):equals 'false false true false'
    expect(reader.whole_step):equals(true)
  end)
  it('takes longer for transfers over slower links, in the order of the file', function()
    local loads = {}
    for i, bytes_per_s in ipairs { 2 ^ 31, 2 ^ 30 } do
      local _, _, network_of = instances.parse(text, 'x.json')
      local cut = core.pipeline_network((network_of())):price({ devices = 2, cpus = 1, bandwidth_bytes_per_s = bytes_per_s }, { 2, 0, 2, 1 })
      loads[i] = joined(cut.loads)
    end
    expect(loads[1]):equals '1.5 12.75 20'
    expect(loads[2]):equals '2 13.5 20'
  end)
  it('is refused with its field', function()
    local refuses = refuser(text, 'x.json')
    refuses('"maxFPGAs": 2', '"maxFPGAs": "2"', ": maxFPGAs: expected a whole number from 0 to 1048576, got string '2'")
    refuses('"id": 3', '"id": 5', ': nodes[1].id: expected a node that is not repeated, got number 5')
    refuses('"cpuLatency": 20.0', '"cpuLatency": -20', ': nodes[1].cpuLatency: expected a number of at least 0, got number -20')
    refuses('"fpgaLatency": 2.0', '"fpgaLatency": null', ": nodes[1]: field 'fpgaLatency' is missing; there are cpuLatency, "
      .. 'id, isBackwardNode, supportedOnFpga')
    refuses('"supportedOnFpga": false', '"supportedOnFpga": 2',
      ': nodes[1].supportedOnFpga: expected a whole number from 0 to 1, got number 2')
    refuses('"destId": 3', '"destId": 4', ': edges[0].destId: expected the id of a node, got number 4')
    refuses('"destId": 3', '"destId": 7', ': edges[0]: an edge from a node to itself')
    refuses('"destId": 5, "cost": 0.5', '"destId": 5, "cost": 0.75',
      ': edges[1].cost: expected 0.5, as on other edges of its source, got number 0.75')
    refuses('"cost": 0.25', '"cost": 1e300',
      ': edges[2].cost: expected a time that corresponds to at most 2^50 bytes, got number 1.0000000000000001e+300')
    refuses('"sourceId": 7, "destId": 3', '"sourceId": 9, "destId": 7',
      ": graph 'x' has a cycle: MatMul12 -> MatMul12_Grad/Transpose_0 -> MatMul12#7 -> MatMul12")
    refuses('"edges": [', '"edges": 7, "edge": [', ': edges: expected a list, got number 7')
    refuses('[\n    {', '[7, {', ': nodes[0]: expected an object, got number 7')
  end)
  it('gives one error that names it, or a graph, however it is damaged', function()
    expect(damage.check(instances.parse, text, 'x.json', 1)):equals(#text)
  end)
end)

describe('an instance of Piper', function()
  local text = [[{"maxMemoryPerDevice": 1e9, "maxDevices": 4, "bandwidth": 1e6, "mbsInBatch": 8, "nodes": [
    {"id": 20, "name": "Layer", "TMPCs": {"1": [
      {"id": "activation recomp", "timePerSample": 3.0, "parameterSize": 100.0, "memoryUsageA": 1.0,
       "memoryUsageB": 300.0, "syncTimeFw": {"10": 0.0}, "syncTimeBw": {}},
      {"id": "vanilla", "timePerSample": 2.0, "parameterSize": 100.0, "memoryUsageA": 50.0,
       "memoryUsageB": 200.0, "syncTimeFw": {"10": 5.0}, "syncTimeBw": {}}]}},
    {"id": 10, "name": "Layer", "TMPCs": {"1": [
      {"id": "vanilla", "timePerSample": 1.0, "parameterSize": 40.0, "memoryUsageA": 0, "memoryUsageB": 80.0,
       "syncTimeFw": {}, "syncTimeBw": {"20": 7.0}}], "2": []}}],
  "edges": [{"sourceId": 10, "destId": 20, "communicationCost": 64.0}]}]]
  it('is read into graph and configurations', function()
    local ops, _, network = read(text, 'x.json')
    expect(joined(ops, 'name')):equals 'Layer#10 Layer'
    expect(ops[2].type):equals 'Layer'
    expect(ops[2].measured_time_s):equals(2)
    expect(ops[2].attributes.time_includes_backward):equals(1)
    expect(ops[2].parameter_bytes):equals(100)
    expect(joined(ops[2].inputs, 'bytes')):equals '64'
    local about, made = network[2], network[1]
    expect(('%d %d %d %d'):format(about.devices, about.memory_bytes, about.bandwidth_bytes_per_s, about.micro_batches))
      :equals '4 1000000000 1000000 8'
    expect(joined(about.nodes)):equals '20 10'
    expect(joined(made.nodes, 'output_bytes')):equals '0 64'
    expect(joined(made.nodes, 'memory_bytes')):equals '250 80'
    expect(joined(made.edges[1])):equals '2 1 64'
    local recomputed, vanilla = unpack(made.layers[1][1].configurations)
    expect(('%s %d %d %d'):format(recomputed.id, recomputed.time, recomputed.bytes_per_batch, recomputed.fixed_bytes))
      :equals 'activation recomp 3 1 300'
    expect(joined(vanilla.sync_bytes)):equals '5'
    expect(#made.layers[2]):equals(1) -- without the entry of degree 2, which has none
    expect(joined(made.layers[2][1].configurations[1].sync_bytes)):equals '7'
  end)
  it('is refused with its field', function()
    local refuses = refuser(text, 'x.json')
    refuses('"bandwidth": 1e6', '"bandwidth": 0', ': bandwidth: expected a number above 0, got number 0')
    refuses('"mbsInBatch": 8,', '', ": field 'mbsInBatch' is missing; there are bandwidth, edges, maxDevices, "
      .. 'maxMemoryPerDevice, nodes')
    refuses('"mbsInBatch": 8', '"mbsInBatch": 0', ': mbsInBatch: expected a whole number from 1 to 1073741824, got number 0')
    refuses('"id": 10', '"id": 20', ': nodes[1].id: expected a layer that is not repeated, got number 20')
    refuses('"timePerSample": 2.0', '"timePerSample": -2.0',
      ': nodes[0].TMPCs.1[1].timePerSample: expected a number of at least 0, got number -2')
    refuses('"id": "vanilla"', '"id": "activation recomp"',
      ": nodes[0].TMPCs.1[1]: configuration 'activation recomp' is repeated")
    refuses('"syncTimeFw": {"10": 0.0}', '"syncTimeFw": {}',
      ': nodes[0].TMPCs.1[0].syncTimeFw: the edge with layer 10 is missing')
    refuses('"syncTimeBw": {}', '"syncTimeBw": {"10": 1}',
      ': nodes[0].TMPCs.1[0].syncTimeBw.10: no edge between these two layers')
    refuses('"syncTimeBw": {}', '"syncTimeBw": {"x": 1}',
      ": nodes[0].TMPCs.1[0].syncTimeBw: expected whole numbers as names of fields, got 'x'")
    refuses('"2": []', '"01": []', ": nodes[1].TMPCs: expected whole numbers as names of fields, got '01'")
    refuses('"1": [\n      {"id": "act', '"3": [{"id": "act', ': nodes[0].TMPCs: expected a configuration for degree "1"')
    refuses('"sourceId": 10', '"sourceId": 11', ': edges[0].sourceId: expected the id of a layer, got number 11')
    refuses('"sourceId": 10', '"sourceId": 20', ': edges[0]: an edge from a layer to itself')
    local edge = '{"sourceId": 10, "destId": 20, "communicationCost": 64.0}'
    refuses(edge, edge .. ',' .. edge, ': edges[1]: this edge is repeated')
  end)
  it('keeps every configuration', function()
    local path = root .. '/tests/data/pipeline/piper.json'
    local _, _, network = read(trinity.files.read(path), path)
    local made, written = network[1], trinity.files.json.read(path)
    expect(#made.layers .. ' ' .. #made.edges):equals '6 7'
    for n, node in ipairs(written.nodes) do
      local last = made.layers[n][2]
      local one, of = last.configurations[2], node.TMPCs[tostring(last.degree)][2]
      expect(one.time):equals(of.timePerSample)
      local sync = 0
      for _, bytes in ipairs(one.sync_bytes) do sync = sync + bytes end
      for _, key in ipairs { 'syncTimeFw', 'syncTimeBw' } do
        for _, bytes in pairs(of[key]) do sync = sync - bytes end -- in any order
      end
      expect(sync):equals(0)
    end
  end)
  it('gives one error that names it, or a graph, however it is damaged', function()
    expect(damage.check(instances.parse, text, 'x.json', 1)):equals(#text)
  end)
end)
