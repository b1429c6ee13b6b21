-- Chakra's traces read: what was written comes back, Chakra's own traces have what its reader counts in them, damaged
-- ones are refused by one sentence.

local core = require 'trinity.core'
local json = require 'trinity.base.json'
local trinity = require 'trinity'
local wire = require 'trinity.formats.wire'
local cases = dofile(core.home .. '/tests/clients/cases.lua')

local data = core.home .. '/tests/data/clients/'
local folder = temporary()

local function write(name, text)
  trinity.files.write(('%s/%s'):format(folder, name), text)
  return ('%s/%s'):format(folder, name)
end

local taken = json.decode(trinity.files.read(data .. 'chakra.json')).cases
local own = json.decode(trinity.files.read(data .. 'chakra_own.json')).traces

local kind_of = { Metadata = 'METADATA_NODE', Load = 'MEM_LOAD_NODE', Store = 'MEM_STORE_NODE', Work = 'COMP_NODE',
  Send = 'COMM_SEND_NODE', Receive = 'COMM_RECV_NODE' }

--- By rank: nodes by Chakra's names of kinds, and what they wait for on their own rank.
local function counts_of(graph)
  local ranks = {}
  for r = 1, graph.source.ranks do ranks[r] = { edges = 0, nodes = 0 } end
  for i = 1, graph.operators do
    local op = graph:operator(i)
    local rank = ranks[op.attributes.rank + 1]
    local kind = kind_of[op.type] or 'COMM_COLL_NODE'
    rank[kind], rank.nodes = (rank[kind] or 0) + 1, rank.nodes + 1
    for _, input in ipairs(op.inputs) do
      if graph:operator(input.producer).attributes.rank == op.attributes.rank then rank.edges = rank.edges + 1 end
    end
  end
  return ranks
end

-- Two of the cases are 1.2 and 1.3 % off; all others keep within one.
local off_by = { llama_v = 0.015, mixtral_pipeline = 0.015 }

describe('traces that trinity wrote', function()
  for _, case in ipairs(cases.list) do
    if case.formats.chakra then
      it(('come back with the nodes that Chakra counts, and take the step that they were made of: %s'):format(case.name), function()
        local strategy = cases.strategy(case)
        local paths = strategy:export { format = 'chakra', folder = ('%s/%s'):format(folder, case.name) }
        local graph = trinity.model(paths[#paths - 1])
        local ranks = counts_of(graph)
        expect(#ranks):equals(#taken[case.name].answer.ranks)
        for r, counted in ipairs(taken[case.name].answer.ranks) do
          for key, number in trinity.system.sorted_pairs(counted) do
            if key ~= 'computation_micros' then expect(ranks[r][key]):equals(number, ('%d %s'):format(r, key)) end
          end
        end
        local problem = trinity.problem { graph = graph, cluster = trinity.cluster(case.cluster) }
        local placement = problem:placement_by_unit(function(_, op) return graph:operator(op).attributes.rank + 1 end)
        local metrics, wanted = problem:evaluate(placement), strategy.metrics
        expect(metrics.transfers):equals(taken[case.name].answer.messages)
        -- Times are whole microseconds, and collectives of a step may have other turns.
        expect(metrics.step_time_s / wanted.step_time_s):near(1, off_by[case.name] or 0.01)
      end)
    end
  end
end)

describe('traces of its own generator', function()
  for name, trace in trinity.system.sorted_pairs(own) do
    if name:match '%.0%.et$' then
      local other = name:gsub('%.0%.et$', '.1.et')
      local function text_of(one) return (own[one].hex:gsub('%x%x', function(two) return string.char(tonumber(two, 16)) end)) end
      it(('have what its reader counts: %s'):format(name), function()
        write(other, text_of(other))
        local path = write(name, text_of(name))
        if name:find 'send' then -- which nobody receives, and which do not say where to
          expect(function() trinity.model(path) end):raises "record 1: attribute 'comm_size': expected a whole number"
          return
        end
        local graph = trinity.model(path)
        local ranks, seconds = counts_of(graph), 0
        for r, one in ipairs { trace, own[other] } do
          for kind, number in trinity.system.sorted_pairs(one.kinds) do expect(ranks[r][kind]):equals(number, kind) end
          expect(ranks[r].edges):equals(one.edges)
        end
        local problem = trinity.problem { graph = graph, cluster = trinity.cluster 'p100x2' }
        local alone = problem:timeline(problem:placement_by_unit(function() return 1 end))
        for task = 1, alone.tasks do
          if graph:operator(task).type == 'Work' then seconds = seconds + alone.end_s[task] - alone.start_s[task] end
        end
        if trace.micros > 0 then expect(seconds * 1e6):near(trace.micros + own[other].micros, 1e-6) end
      end)
    end
  end
end)

-- A trace of records by hand.
local function attribute(name, field, value)
  return wire.bytes(10, wire.text(1, name) .. (type(value) == 'string' and wire.bytes(field, value)
    or wire.chosen_integer(field, value)))
end

local function node(id, kind, more) return wire.record(wire.integer(1, id) .. wire.integer(3, kind) .. (more or '')) end

local head = wire.record(wire.text(1, '1.0.0'))

describe('traces by hand', function()
  it('cost what their numbers say', function()
    write('groups.json', '{ "7": [0, 1] }')
    local compute = node(0, 4, wire.integer(7, 100)) .. node(1, 4, attribute('num_ops', 9, 5e9) .. wire.packed(5, { 0 }))
    local sum = attribute('comm_type', 9, 0) .. attribute('comm_size', 9, 8e6) .. attribute('pg_name', 29, '7')
    local message = attribute('comm_src', 7, 0) .. attribute('comm_dst', 7, 1) .. attribute('comm_size', 9, 1e6)
    local path = write('hand.0.et', head .. compute .. node(2, 7, sum .. wire.packed(5, { 1 }))
      .. node(3, 5, message .. wire.packed(5, { 2 })))
    write('hand.1.et', head .. node(9, 7, sum) .. node(5, 6, message) .. node(6, 4, wire.integer(7, 50) .. wire.packed(5, { 5 })))
    local graph = trinity.model(path)
    expect(graph.operators):equals(7)
    local problem = trinity.problem { graph = graph, cluster = trinity.cluster 'p100x2' }
    local timeline = problem:timeline(problem:placement_by_unit(function(_, op) return graph:operator(op).attributes.rank + 1 end))
    local second = timeline.end_s[2] - timeline.start_s[2]
    expect(second > 0):equals(true)
    local collective = problem.cluster:collective { kind = 'all_reduce', devices = { 1, 2 }, bytes = 8e6 }.time_s
    local latency, bandwidth = problem.cluster:wire(1, 2)
    expect(timeline.metrics.step_time_s):near(100e-6 + second + collective + latency + 1e6 / bandwidth + 50e-6, 1e-9)
    os.remove(folder .. '/groups.json')
  end)
  it('are refused by file, place and expectation', function()
    local function refused(text, message, name)
      local path = write(name or 'bad.et', text)
      local ok, told = pcall(trinity.model, path)
      expect(ok):equals(false)
      expect(told):matches(message)
      expect(select(2, told:gsub('\n', ''))):equals(0)
    end
    local one = node(1, 4)
    refused('', 'bad%.et: record 0: expected a length and that number of bytes, got the end of the file')
    refused('hello', 'bad%.et: record 0: ')
    refused(wire.record(wire.text(1, '0.0.4')) .. one, "bad%.et: record 0: field 'version': expected '1%.0%.0', got .0%.0%.4")
    refused(head, 'bad%.et: expected a node')
    refused(head .. one:sub(1, -2), 'bad%.et: record 1: .*got the end of the file')
    refused(head .. one .. one, "record 2: field 'id': expected a unique number, got 1 twice")
    refused(head .. node(1, 0), "record 1: field 'type': expected METADATA_NODE to COMM_COLL_NODE %(1 to 7%), got 0")
    refused(head .. node(1, 4, wire.text(7, 'long')), "record 1: field 'duration_micros': expected a number")
    refused(head .. node(1, 4, wire.packed(5, { 4 })), "record 1: field 'data_deps': expected a node of the rank, got 4")
    refused(head .. node(1, 4, wire.packed(5, { 2 })) .. node(2, 4, wire.packed(5, { 1 })), 'bad%.et: .*cycle')
    refused(head .. node(1, 7), "record 1: attribute 'comm_type': expected a whole number from 0 to 9, got nil")
    refused(head .. node(1, 7, attribute('comm_type', 9, 3)), "attribute 'comm_type': expected one of ALL_REDUCE")
    local sum = attribute('comm_type', 9, 0) .. attribute('comm_size', 9, 4)
    refused(head .. node(1, 7, sum .. attribute('pg_name', 29, '3')), "attribute 'pg_name': no group '3' in .*groups%.json")
    local send = attribute('comm_src', 7, 0) .. attribute('comm_dst', 7, 1) .. attribute('comm_size', 9, 4)
    write('pair.1.et', head .. one)
    refused(head .. node(1, 5, send), 'pair%.0%.et: record 1: expected a receive for the send of node 1, got none', 'pair.0.et')
    refused(head .. node(1, 6, send), "attribute 'comm_dst': expected the rank of the file, 0", 'pair.0.et')
    refused(head .. node(1, 7, sum), 'record 1: expected all ranks of the group in the collective, got 1 of 2 for this all_reduce of 4 bytes', 'pair.0.et')
    write('pair.3.et', head .. one)
    refused(head .. one, 'pair%.3%.et: expected the traces of all lower ranks, got no .*/pair%.2%.et$', 'pair.0.et')
    os.remove(folder .. '/pair.3.et')
    os.remove(folder .. '/pair.0.et')
    refused(head .. one, 'pair%.1%.et: expected the traces of all lower ranks', 'pair.1.et')
  end)
end)
