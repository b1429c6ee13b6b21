-- trinity.learn.features: columns by name, types numbered in the same way for all graphs, node2vec by an option.

local trinity = require 'trinity'
local tensor = trinity.tensor

-- A chain of operators of the given types.
local function chain(types)
  local builder = trinity.graph.new { name = 'chain' }
  local last
  for i, type in ipairs(types) do
    last = builder:add { name = type .. i, type = type, inputs = { last }, outputs = { { shape = { 10 * i } } },
      measured_time_s = i * 1e-3 }
  end
  return trinity.problem { graph = builder:build(), cluster = trinity.cluster 'p100x2' }
end

-- The names of the types of all units.
local function named(f)
  local names = {}
  for i, number in ipairs(f.types:to_array():totable()) do names[i] = f.type_names[number] end
  return table.concat(names, ' ')
end

local function numbers(f) return table.concat(f.types:to_array():totable(), ' ') end

local quick = { dimensions = 3, walks_per_node = 1, epochs = 1 }

local function features(problem, options)
  options = options or {}
  if options.node2vec == nil then options.node2vec = quick end
  return trinity.learn.features(problem, options)
end

describe('types', function()
  it('have the same numbers in every graph', function()
    local one, two = features(chain { 'Conv', 'Relu', 'Relu', 'MatMul' }), features(chain { 'MatMul', 'MatMul', 'Conv' })
    expect(named(one)):equals 'Conv Relu Relu MatMul'
    expect(named(two)):equals 'MatMul MatMul Conv'
    local a, b = one.types:to_array():totable(), two.types:to_array():totable()
    expect(a[1]):equals(b[3])
    expect(a[4]):equals(b[1])
    expect(one.type_count):equals(two.type_count)
    expect(#one.type_names):equals(one.type_count)
    expect(table.concat(one.type_names, ' ')):equals(table.concat(two.type_names, ' '))
  end)
  it('count by how common they are in the graph where that is wanted', function()
    local f = features(chain { 'Conv', 'Relu', 'Relu', 'MatMul' }, { vocabulary = 'graph' })
    expect(numbers(f)):equals '2 1 1 3'
    expect(table.concat(f.type_names, ' ')):equals 'Relu Conv MatMul'
    expect(f.type_count):equals(3)
    expect(function() features(chain { 'Conv' }, { vocabulary = 'grpah' }) end):raises(
      "learn.features: option 'vocabulary': unknown value 'grpah', did you mean 'graph'%?")
  end)
  it('let an embedding that one graph trained serve another', function()
    local embedding = trinity.nn.embedding { count = features(chain { 'Conv' }).type_count, size = 4, seed = 1 }
    local one = embedding(features(chain { 'Conv', 'Relu' }).types)
    local two = embedding(features(chain { 'Relu', 'Relu', 'Conv' }).types)
    expect((one:narrow(1, 1, 1) - two:narrow(1, 3, 1)):abs():max():item()):equals(0)
    expect((one:narrow(1, 2, 1) - two:narrow(1, 1, 1)):abs():max():item()):equals(0)
    expect((one:narrow(1, 1, 1) - one:narrow(1, 2, 1)):abs():max():item() > 0):equals(true)
  end)
end)

local function column(f, name)
  local at = f.columns[name]
  return f.values:narrow(2, at.first, at.count)
end

local function standardised(list)
  local values = tensor.new(list):to { dtype = 'float64' }
  local away = values - values:mean()
  return away / (away * away):mean():sqrt()
end

describe('columns', function()
  local problem = chain { 'Conv', 'Relu', 'MatMul', 'Relu' }
  it('hold what their names say', function()
    local f = features(problem, { raw_time = true, depth_waves = 1 })
    local times, logs, depth, sine = {}, {}, {}, {}
    for i = 1, f.units do
      times[i], logs[i] = f.time_s[i] * 1e6, math.log(1 + f.output_bytes[i])
      depth[i], sine[i] = (i - 1) / (f.units - 1), math.sin(math.pi * (i - 1) / (f.units - 1))
    end
    local function apart(name, list)
      return (column(f, name):narrow(2, 1, 1):flatten():to { dtype = 'float64' } - standardised(list)):abs():max():item()
    end
    expect(apart('time', times)):below(1e-5)
    expect(apart('output_bytes', logs)):below(1e-5)
    expect(apart('depth', depth)):below(1e-5)
    expect(apart('depth_waves', sine)):below(1e-5)
    expect(apart('depth', times) < 0.01 and apart('output_bytes', depth) < 0.01):equals(false)
  end)
  it('of node2vec are not there when it is off, and the others stay as they are', function()
    local with, without = features(problem), features(problem, { node2vec = false })
    expect(without.width):equals(13)
    expect(with.width):equals(16)
    expect((with.values:narrow(2, 1, 13) - without.values):abs():max():item()):equals(0)
    expect(column(with, 'node2vec'):abs():max():item() > 0):equals(true)
    expect(function() features(problem, { node2vec = true }) end):raises(
      "learn.features: option 'node2vec': expected a table or false, got true")
  end)
  it('of node2vec may be missing in the policy of trinity, too', function()
    local options = { samples = 2, hidden = 4, groups = 2 }
    local with = trinity.learn.agent(problem, options)
    options.node2vec = false
    local without = trinity.learn.agent(problem, options)
    expect(with.parameters - without.parameters):equals(64 * 64) -- weights of the first layer
    local found = trinity.methods.trinity(problem, { samples = 2, hidden = 4, groups = 2, evaluations = 8, quiet = true,
      node2vec = false })
    expect(found.metrics.feasible):equals(true)
  end)
end)
