-- Names of 100,000 letters: what reads, prints or refuses them takes no time that grows with the square of their
-- length, which was 26 s for the table of `info` and 15 s for one error that suggested another name.

local core = require 'trinity.core'
local trinity = require 'trinity'

local long = ('A'):rep(100000)
local near = ('A'):rep(99999) .. 'B'

local function quickly(what, run)
  it(what, function()
    local start = os.clock()
    run()
    local took_s = os.clock() - start
    if took_s > 3 then error(('%s took %.1f s'):format(what, took_s)) end
  end)
end

local function load(text, extension)
  local name = temporary()
  core.write_file(name .. extension, text)
  local ok, graph = pcall(trinity.model, name .. extension)
  if not ok then error(graph, 0) end
  return graph
end

local function graph_json(fields)
  return ([[{"format": "trinity.graph", "version": 1, "name": "%s", "operators": [
    {"name": "%s", "type": "%s", "outputs": [{"name": "%s", "shape": [4]}]%s},
    {"name": "last", "type": "Relu", "inputs": ["%s"], "outputs": [{"shape": [4]}]}]}]]):format(fields.graph or 'g',
    fields.name or 'first', fields.type or 'Relu', fields.tensor or 't', fields.more or '',
    fields.reads or fields.tensor or 't')
end

local function cluster_of(a, b, from)
  return { devices = { { name = a, type = 'p100' }, { name = b, type = 'p100' } },
    links = { { from = from or a, to = b, bandwidth_bytes_per_s = 1e9, latency_s = 0 } } }
end

describe('names of 100,000 letters', function()
  for _, field in ipairs { 'graph', 'name', 'type', 'tensor' } do
    quickly(('of a graph (%s) are read, simulated and written'):format(field), function()
      local graph = load(graph_json { [field] = long }, '.json')
      local problem = trinity.problem { graph = graph, cluster = trinity.cluster 'p100x2' }
      local placement = problem:placement()
      expect(problem:evaluate(placement).feasible):truthy()
      expect(#(graph:to_dot() .. problem:to_dot(placement) .. tostring(problem)) > 0):truthy()
      expect(#trinity.system.format_table({ 'name', 'n' }, { { long, '1' }, { 'b', near } }) > 6 * 100000):truthy()
    end)
  end
  quickly('of a profile are read, and refused', function()
    local costs = 'forward_compute_time=1.0, backward_compute_time=2.0, activation_size=4.0, parameter_size=8.0'
    expect(load(('%s -- Linear -- %s\n'):format('node1', costs), '.txt').operators > 0):truthy()
    load(('node1 -- %s(%s) -- %s\n'):format(long, long, costs), '.txt')
    local unknown = ('%s -- Linear -- %s\n\t%s -- %s\n'):format(long, costs, long, near)
    expect(function() load(unknown, '.txt') end):raises 'node'
  end)
  quickly('of devices, switches and device types', function()
    local cluster = trinity.cluster(cluster_of(long, near))
    expect(#cluster:route(1, 2)[1] > 200000):truthy()
    expect(function() trinity.cluster(cluster_of(long, near, long .. 'C')) end):raises 'no route'
    local spec = cluster_of(long, near)
    spec.switches = { { name = long .. 'C', bandwidth_bytes_per_s = 1 } }
    expect(function() trinity.cluster(spec) end):raises "switch 'AAA"
    spec = cluster_of('a', 'b')
    spec.device_types, spec.devices[1].type = { [long] = trinity.devices.p100 }, near
    expect(function() trinity.cluster(spec) end):raises 'unknown device type'
  end)
  quickly('of what scripts misspell', function()
    trinity.global(long, 1)
    for _, wrong in ipairs { function() return _G[near] end, function() trinity.model(near) end,
      function() trinity.cluster(near) end, function() trinity.methods.get(near) end,
      function() trinity.problem { [near] = 1 } end } do pcall(wrong) end
    expect(core.suggestion(near, { long })):equals ''
  end)
end)
