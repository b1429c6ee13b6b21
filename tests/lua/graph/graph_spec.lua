-- Graphs in scripts: building by hand, walking, algorithms, what is refused.

local trinity = require 'trinity'

-- a, b read nothing; c reads both, b's tensor twice over d; e ends it.
local function sample()
  local builder = trinity.graph.new { name = 'sample' }
  for i, name in ipairs { 'a', 'b', 'c', 'd', 'e' } do
    builder:add_operator { name = name, time_s = i * 1e-3, memory_bytes = 100 * i, flops = 10 * i }
  end
  builder:add_edge('a', 'c', 10)
  local shared = builder:add_edge('b', 'c', 20)
  builder:add_edge(shared, 'd')
  builder:add_edge('c', 'e', 5)
  builder:add_edge('c', 'e', 6)
  builder:add_edge('d', 'e', 7)
  return builder:build()
end

-- c1 with its gradients: a training step of a chain, where units hold several operators.
local function step()
  local builder = trinity.graph.new { name = 'chain' }
  local x = builder:add { name = 'data', type = 'Input', outputs = { { bytes = 8, gradient = false } } }
  for i = 1, 3 do
    x = builder:add { name = 'layer' .. i, type = 'Work', inputs = { x }, outputs = { { bytes = 100 * i } },
      parameters = { { name = 'w', shape = { 4 } } }, measured_time_s = 1e-3, measured_backward_time_s = 2e-3 }
  end
  return builder:build():to_training()
end

local function text(list) return table.concat(list, ' ') end

local function names(graph, list)
  local words = {}
  for i, op in ipairs(list) do words[i] = graph:operator(op).name end
  return text(words)
end

local function refuses(body, pattern) expect(body):raises('^[^:]*graph_spec%.lua:%d+: ' .. pattern) end

describe('a graph', function()
  local graph = sample()

  it('is built by hand from operators and edges', function()
    expect(graph.operators):equals(5)
    expect(graph.edges):equals(6)
    local c, d = graph:operator 'c', graph:operator(4)
    expect(c.type):equals 'Work'
    expect(c.measured_time_s):equals(3e-3)
    expect(c.persistent_bytes):equals(300)
    expect(d.inputs[1].bytes):equals(20)
    expect(d.inputs[1].producer):equals(2)
    expect(#graph:operator('b').outputs):equals(1) -- its readers share a tensor
    expect(#c.outputs):equals(2)
  end)
  it('finds operators by name', function()
    expect(graph:find 'd'):equals(4)
    expect(graph:find 'x'):equals(nil)
    refuses(function() graph:operator 'cc' end, "graph:operator: argument 1 %('i'%): no operator 'cc', did you mean 'c'%?")
    refuses(function() graph:operator(6) end, "graph:operator: argument 1 %('i'%): expected an integer from 1 to 5, got number 6")
    refuses(function() graph:successors 'cc' end, "graph:successors: argument 1 %('i'%): no operator 'cc', did you mean 'c'%?")
  end)
  it('is walked over', function()
    local seen = {}
    for i in graph:nodes() do seen[#seen + 1] = i end
    expect(text(seen)):equals '1 2 3 4 5'
    local edges = {}
    for from, to, bytes in graph:each_edge() do edges[#edges + 1] = ('%d>%d:%d'):format(from, to, bytes) end
    expect(text(edges)):equals '1>3:10 2>3:20 2>4:20 3>5:5 3>5:6 4>5:7'
    expect(text(graph:successors 'c')):equals '5'
    expect(text(graph:successors(2))):equals '3 4'
    expect(text(graph:predecessors 'e')):equals '3 4'
    expect(text(graph:inputs 'e')):equals '3 3 4'
  end)
  it('gives its edges as rows, both ways', function()
    local out, into = graph:csr(), graph:csr 'in'
    expect(text(out.first:totable())):equals '1 2 4 6 7 7'
    expect(text(out.target:totable())):equals '3 3 4 5 5 5'
    expect(text(out.bytes:totable())):equals '10 20 20 5 6 7'
    expect(text(into.first:totable())):equals '1 1 1 3 4 7'
    expect(text(into.source:totable())):equals '1 2 2 3 3 4'
    expect(text(into.edge:totable())):equals '1 2 3 4 5 6'
    expect(text(into.bytes:totable())):equals '10 20 20 5 6 7'
  end)
  it('has arrays with an entry an operator', function()
    expect(text(graph.depth:totable())):equals '0 0 1 1 2'
    expect(text(graph.unit_of:totable())):equals '1 2 3 4 5'
    expect(text(graph.flops_of:totable())):equals '10 20 30 40 50'
    expect(text(graph.output_bytes:totable())):equals '10 20 11 7 0'
    expect(text(graph.parameter_bytes_of:totable())):equals '0 0 0 0 0'
    local trained = trinity.model 'resnet50'
    for i = 1, trained.operators, 97 do
      local op = trained:operator(i)
      expect(trained.persistent_bytes_of[i]):equals(op.persistent_bytes)
      expect(trained.workspace_bytes_of[i]):equals(op.workspace_bytes)
      expect(trained.activation_bytes_of[i]):equals(op.type == 'Variable' and 0 or trained.output_bytes[i])
    end
    expect(graph.measured_time_s[5]):equals(5e-3)
    refuses(function() graph.depth[1] = 1 end, 'this array is read%-only')
  end)
  it('numbers colocation units from 1', function()
    local training = step()
    local unit_of = training.unit_of
    local members = 0
    for u = 1, training.units do
      for _, op in ipairs(training:unit(u)) do
        expect(unit_of[op]):equals(u)
        expect(training:operator(op).unit):equals(u)
        members = members + 1
      end
    end
    expect(members):equals(training.operators)
    expect(#training:unit(unit_of[training:find 'layer2'])):equals(3) -- forward, backward, update
    expect(training.measured_time_s[training:find 'data'] ~= training.measured_time_s[training:find 'data']):truthy()
    refuses(function() training:unit(0) end, "graph:unit: argument 1 %('u'%): expected an integer from 1 to 4, got number 0")
  end)
end)

describe('graph algorithms', function()
  local graph = sample()

  it('order operators', function()
    expect(text(graph:topological_order():totable())):equals '1 2 3 4 5'
    expect(text(graph:topological_order('breadth_first'):totable())):equals '1 2 3 4 5'
    for _, kind in ipairs { 'number', 'depth_first', 'breadth_first' } do
      local place, order = {}, graph:topological_order(kind)
      for i = 1, #order do place[order[i]] = i end
      for from, to in graph:each_edge() do expect(place[from]):below(place[to]) end
    end
  end)
  it('find the critical path', function()
    local path = graph:critical_path { time_s = graph.measured_time_s }
    expect(names(graph, path.operators)):equals 'b d e'
    expect(path.length_s):near(11e-3, 1e-15)
    expect(path.start_s[5]):near(6e-3, 1e-15)
    expect(path.tail_s[1]):near(9e-3, 1e-15)
    local again = graph:critical_path { time_s = function(i) return graph.measured_time_s[i] end }
    expect(again.length_s):equals(path.length_s)
    -- With links of 1 ms per byte: a 1 + 10 + c 3 + 6 + e 5; b 2 + 20 + d 4 + 7 + e 5.
    local wires = graph:critical_path { time_s = { 1e-3, 2e-3, 3e-3, 4e-3, 5e-3 },
      transfer_s = function(bytes) return bytes * 1e-3 end }
    expect(names(graph, wires.operators)):equals 'b d e'
    expect(wires.length_s):near(38e-3, 1e-15)
    local ends = {}
    graph:critical_path { time_s = graph.measured_time_s, transfer_s = function(_, from, to)
      ends[#ends + 1] = from .. to
      return 0
    end }
    expect(text(ends)):equals '13 23 24 35 35 45'
  end)
  it('refuse times that are none', function()
    local function bad(options, pattern) refuses(function() graph:critical_path(options) end, 'graph:critical_path: ' .. pattern) end
    bad({}, "option 'time_s' is missing")
    bad({ time_s = graph.depth }, "option 'time_s': expected a list, a double array or a function, got")
    bad({ time_s = { 1, 2 } }, "option 'time_s': expected 5 entries, got 2")
    bad({ time_s = { 1, 2, 'x', 4, 5 } }, "option 'time_s': entry 3: expected a number from 0, got string 'x'")
    bad({ time_s = { 1, 2, -1, 4, 5 } }, "option 'time_s': entry 3: expected a number from 0, got number %-1")
    bad({ time_s = function(i) return i < 3 and i or nil end },
      "option 'time_s': the function at .*graph_spec%.lua:%d+ returned nil for number 3, expected a number from 0")
    bad({ time_s = { 1, 2, math.huge, 4, 5 } }, '.*operator 3 takes inf s')
    bad({ time_s = { 1, 2, 3, 4, 5 }, transfer_s = { 1 } }, "option 'transfer_s': expected 6 entries, got 1")
  end)
  it('cut', function()
    local cut = graph:min_cut({ 'a', 'b' }, 'e')
    expect(cut.bytes):equals(18) -- c's 5 + 6 and d's 7
    expect(cut.capacity):equals(18)
    expect(text(cut.source_side)):equals '1 2 3 4'
    expect(graph:min_cut('b', { 'c', 'd' }).bytes):equals(20) -- a tensor counts once
    expect(graph:min_cut('b', { 'c', 'd' }, { capacity = graph:csr().bytes }).capacity):equals(40)
    local few = graph:min_cut({ 'a', 'b' }, 'e', { capacity = function() return 1 end })
    expect(few.capacity):equals(3)
    local barred = graph:min_cut({ 'a', 'b' }, 'e', { capacity = { 4, 5, 6, math.huge, 1, 1 } })
    expect(barred.capacity):equals(10) -- a-c, b-c, d-e
    expect(text(barred.source_side)):equals '1 2 4'
    -- One stage before another: c needs a and b with it, and then d is cheaper there (18) than not (31).
    local stages = graph:min_cut('c', 'e', { backward = 'forbidden' })
    expect(text(stages.source_side)):equals '1 2 3 4'
    expect(stages.capacity):equals(18)
    expect(text(graph:min_cut('c', 'e').source_side)):equals '3'
  end)
  it('refuse cuts that are none', function()
    local function bad(sources, sinks, options, pattern)
      refuses(function() graph:min_cut(sources, sinks, options) end, 'graph:min_cut: ' .. pattern)
    end
    bad(1, {}, nil, "argument 2 %('sinks'%): expected at least one operator")
    bad(1, 'ee', nil, "argument 2 %('sinks'%): no operator 'ee'")
    bad(1, 1, nil, "operator 'a' is both a source and a sink")
    bad('e', 'a', { backward = 'forbidden' }, "no cut can separate 'e' from 'a'")
    bad(1, 5, { capacity = 'byte' }, "option 'capacity': expected a list, a double array or a function, got string 'byte'")
  end)
end)

describe('a graph builder', function()
  it('refuses edges that are none', function()
    local graph = trinity.graph.new { name = 'g' }
    refuses(function() graph:add_edge('a', 'b', 1) end, "builder:add_edge: argument 1 %('from'%): no operator 'a'")
    graph:add_operator { name = 'alpha' }
    graph:add_operator { name = 'beta' }
    refuses(function() graph:add_edge('alpha', 'beta', -1) end, "builder:add_edge: argument 3 %('size_bytes'%): expected an integer from 0")
    refuses(function() graph:add_edge('alpha', 'bet', 1) end, "builder:add_edge: argument 2 %('to'%): no operator 'bet', did you mean 'beta'")
    refuses(function() graph:add_edge('alpha', 'alpha', 1) end, "builder:add_edge: argument 2 %('to'%): 'alpha' cannot read its own output")
    refuses(function() graph:add_edge({ number = 9 }, 'beta') end, ".*argument 1 %('from'%).*there are no tensors yet")
    local tensor = graph:add_edge('alpha', 'beta', 4)
    refuses(function() graph:add_edge(tensor, 'beta', 5) end, "builder:add_edge: argument 3 %('size_bytes'%): the tensor has 4 bytes, got 5")
    refuses(function() graph:add_edge({ number = 9 }, 'beta') end, "builder:add_edge: argument 1 %('from'%): expected an integer from 1 to 1, got 9")
    refuses(function() graph:add_operator {} end, "builder:add_operator: field 'name' is missing")
    refuses(function() graph:add {} end, "builder:add: field 'name' is missing")
    refuses(function() graph:add { name = 'c' } end, "builder:add: field 'type' is missing")
    graph:add_edge('beta', 'alpha', 1)
    refuses(function() graph:build() end, "builder:build: graph 'g' has a cycle: ")
  end)
  it('takes tensors and operators of layers', function()
    local builder = trinity.graph.new { name = 'mixed' }
    local x = builder:add { name = 'x', type = 'Input', outputs = { { shape = { 2, 3 } } } }
    expect(builder:add_operator { name = 'y', inputs = { x }, outputs = { { bytes = 8 } } }):equals 'y'
    builder:add_operator { name = 'z' }
    expect(builder:add_edge(x, 'z', 24)):equals(x)
    builder:add_edge('y', 'z', 16)
    local graph = builder:build()
    expect(graph.edges):equals(3)
    expect(graph.output_bytes[graph:find 'y']):equals(24)
  end)
end)

describe('a closed graph', function()
  it('refuses every array, and arrays taken before stay', function()
    local graph = step()
    local depth, unit_of, rows, order = graph.depth, graph.unit_of, graph:csr(), graph:topological_order()
    local flops = graph.flops_of
    graph:close()
    graph:close()
    for _ = 1, 3 do collectgarbage() end
    expect(depth[1] + unit_of[1] + rows.first[1] + order[1]):equals(3)
    expect(#flops):equals(graph.operators)
    for _, name in ipairs { 'depth', 'unit_of', 'flops_of', 'output_bytes', 'parameter_bytes_of', 'persistent_bytes_of',
      'workspace_bytes_of', 'activation_bytes_of', 'measured_time_s' } do
      refuses(function() return graph[name] end, ('graph%%.%s: this graph is closed'):format(name))
    end
    refuses(function() return graph.no_such_field end, "graph: no field 'no_such_field'")
  end)
  it('leaves its problem working', function()
    local graph = step()
    local problem = trinity.problem { graph = graph, cluster = trinity.cluster 'p100x2' }
    local placement = problem:placement()
    local before = problem:evaluate(placement).step_time_s
    graph:close()
    expect(problem:evaluate(placement).step_time_s):equals(before)
  end)
end)
