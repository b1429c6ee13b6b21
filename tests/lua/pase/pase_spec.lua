-- PaSE: layers, configurations and costs against the reference code's own tables (../shared/data/pase) and the
-- golden costs of papers/notes.md "PaSE: golden values", and what it is compared with.

local core = require 'trinity.core'
local breadth_first = require('studies.papers.pase_networks').breadth_first
local pase_of_graph = require 'trinity.pase'
local rules = require 'trinity.pase.rules'
local trinity = require 'trinity'
local json = require 'trinity.base.json'

local function graph_of(name, options)
  return trinity.model(name, merged({ training = false }, options or {}))
end

local graphs = {
  alexnet = function() return graph_of 'alexnet' end,
  inception3 = function() return graph_of('inception_v3', { batch_size = 128, nested_concat = true }) end,
  resnet101 = function() return graph_of 'resnet101' end,
  rnnlm = function() return graph_of 'rnnlm' end,
  transformer = function() return graph_of 'transformer' end,
}
local made = {}
local function graph(name)
  made[name] = made[name] or graphs[name]()
  return made[name]
end

local function pase_of(name, devices)
  return pase_of_graph.new(graph(name), { devices = devices, cutoff = (name == 'rnnlm' or name == 'transformer') and 1 or 4 })
end

-- Strategies of a shared case as ours, by their factors.
local function numbers_of(pase, layer, configs)
  local numbers = {}
  for k, factors in ipairs(configs) do
    numbers[k] = pase.handle:find(layer, factors) or error(('layer %d: no strategy %s'):format(layer, table.concat(factors, ',')))
  end
  return numbers
end

describe('the cost tables', function()
  for _, case in ipairs { { 'alexnet', 4, 128 }, { 'alexnet', 32, 128 }, { 'rnnlm', 8, 64 }, { 'inception3', 4, 128 },
    { 'resnet101', 4, 128 } } do
    local name, devices, batch = unpack(case)
    it_shared(('of %s for p = %d agree with the reference code, entry by entry'):format(name, devices), function()
      local path = shared(('pase/%s-p%d-b%d.json.gz'):format(name, devices, batch))
      local pipe = io.popen("zcat '" .. path .. "'")
      local data = json.decode(pipe:read '*a', path).problem
      pipe:close()
      local pase, strategy = pase_of(name, devices), {}
      expect(#pase.layers):equals(#data.nodes.op)
      expect(#pase.edges):equals(#data.edges.nodes)
      for i = 1, #pase.layers do
        expect(pase.layers[i].configurations):equals(#data.nodes.configs[i])
        strategy[i] = numbers_of(pase, i, data.nodes.configs[i])
        for k, number in ipairs(strategy[i]) do
          local compute, communication = pase.handle:layer_cost(i, number)
          expect(compute + communication):near(data.nodes.costs[i][k], 1e-12 * data.nodes.costs[i][k])
        end
      end
      for e, ends in ipairs(data.edges.nodes) do
        local from, to, at = ends[1] + 1, ends[2] + 1, 0
        expect(pase.edges[e][1]):equals(from)
        expect(pase.edges[e][2]):equals(to)
        for _, s in ipairs(strategy[from]) do
          for _, t in ipairs(strategy[to]) do
            at = at + 1
            local cost = data.edges.costs[e][at]
            expect(pase.handle:edge_cost(e, s, t)):near(cost, 1e-12 * cost)
          end
        end
      end
    end)
  end
end)

-- papers/notes.md "PaSE: golden values": p, optimum, data parallelism (false: not expressible or not stated).
local golden = {
  alexnet = { { 1, 4.36245066e11, 4.36245066e11 }, { 2, 2.457000617e11, 5.30452933e11 },
    { 4, 1.482157196e11, 5.775568665e11 }, { 8, 9.709829651e10, 6.011088332e11 }, { 16, 7.032071267e10, 6.128848166e11 },
    { 32, 5.313634955e10, 6.187728083e11 }, { 64, 4.112045605e10, false } },
  inception3 = { { 1, 2.212587922e12, 2.212587922e12 }, { 4, 9.867570446e11, 1.00066514e12 },
    { 8, 7.821406024e11, 7.986780102e11 }, { 16, 6.730459493e11, 6.976844451e11 },
    { 32, 6.024255998e11, 6.471876626e11 } },
  resnet101 = { { 8, 1.42526285e12, 1.445917812e12 } },
  rnnlm = { { 2, 1.205578999e13, 1.410362614e13 }, { 8, 4.024963187e12, 7.101223014e12 },
    { 32, 1.491938058e12, 5.350622234e12 }, { 64, 9.358186332e11, 5.058855437e12 } },
  transformer = { { 4, 2.189181321e12, false }, { 8, 1.421082829e12, false } },
}

describe('the optimum', function()
  for _, name in ipairs { 'alexnet', 'inception3', 'resnet101', 'rnnlm', 'transformer' } do
    it(('of %s is the published one, as is the cost of data parallelism'):format(name), function()
      for _, row in ipairs(golden[name]) do
        local devices, optimum, data_parallel = unpack(row)
        local pase = pase_of(name, devices)
        local best = pase:solve { quiet = true }
        expect(best.optimal):equals(true)
        expect(best.cost):near(optimum, 1e-6 * optimum)
        local plain = pase:by_rule 'data_parallel'
        if data_parallel then
          expect(plain.cost):near(data_parallel, 1e-6 * data_parallel)
          expect(plain.in_space):equals(true)
        elseif name == 'alexnet' then
          expect(plain.in_space):equals(false) -- blocks of 2 images are below the cutoff
        end
        for _, other in ipairs { pase:by_rule 'expert', pase:by_rule 'owt', pase:tofu() } do
          if other.in_space then expect(best.cost):below(other.cost * (1 + 1e-12)) end
        end
      end
    end)
  end
  it('has the sizes of the published graphs and tables for p = 8', function()
    -- papers/notes.md "PaSE: golden values": vertices, edges, largest dependent set, combinations, breadth-first set.
    local sizes = { alexnet = { 14, 13, 1, 672, 1 }, inception3 = { 219, 253, 2, 25200, 11 },
      rnnlm = { 4, 3, 1, 1080, 1 }, transformer = { 204, 256, 3, 160000, 37 }, resnet101 = { 245, 277, 2, 12500, 7 } }
    for name, size in trinity.system.sorted_pairs(sizes) do
      local pase = pase_of(name, 8)
      local best = pase:solve { quiet = true }
      expect(#pase.layers):equals(size[1])
      expect(#pase.edges):equals(size[2])
      expect(best.widest_set):equals(size[3])
      expect(best.largest_table):equals(size[4])
      local baseline = breadth_first(pase)
      expect(baseline.widest_set):equals(size[5])
      if size[5] == size[3] and size[3] == 1 then expect(baseline.largest_table):equals(size[4]) end
    end
  end)
  it('has the published costs at single points', function()
    local pase = pase_of('alexnet', 8)
    local number = {}
    for i, layer in ipairs(pase.layers) do number[layer.name] = i end
    local function cost(name, factors)
      local compute, communication = pase.handle:layer_cost(number[name], pase.handle:find(number[name], factors))
      return compute + communication
    end
    expect(cost('conv_1', { 1, 1, 1, 1, 1, 1, 1 })):equals(40590950400)
    expect(cost('conv_1', { 8, 1, 1, 1, 1, 1, 1 })):equals(5378788800)
    expect(cost('fc_6', { 1, 1, 1 })):equals(14497087488)
    expect(cost('fc_6', { 8, 1, 1 })):equals(332113575936)
    local e
    for i, ends in ipairs(pase.edges) do
      if ends[1] == number.fc_6 and ends[2] == number.fc_7 then e = i end
    end
    local function edge(a, b) return pase.handle:edge_cost(e, pase.handle:find(number.fc_6, a), pase.handle:find(number.fc_7, b)) end
    expect(edge({ 1, 2, 4 }, { 1, 4, 2 })):equals(0)
    expect(edge({ 8, 1, 1 }, { 1, 8, 1 })):equals(4.58752e9)
  end)
end)

describe("FlexFlow's chain", function()
  it('never beats the optimum, improves on its start, and repeats itself', function()
    local pase = pase_of('rnnlm', 8)
    local best = pase:solve { quiet = true }
    local first = pase:mcmc(20000, 3)
    local again = pase:mcmc(20000, 3)
    expect(first.cost):equals(again.cost)
    expect(best.cost):below(first.cost * (1 + 1e-12))
    expect(first.cost):below(pase:by_rule('expert').cost)
    expect(first.iterations <= 20000):truthy()
  end)
end)

describe('spaces', function()
  it('nest: more strategies never cost more', function()
    local alexnet = graph 'alexnet'
    local code = pase_of_graph.new(alexnet, { devices = 4 }):solve { quiet = true }
    local finer = pase_of_graph.new(alexnet, { devices = 4, cutoff = 1 }):solve { quiet = true }
    local all = pase_of_graph.new(alexnet, { devices = 4, cutoff = 1, factors = 'all', halo = true }):solve { quiet = true }
    expect(finer.cost):below(code.cost * (1 + 1e-12))
    expect(all.cost):below(finer.cost * (1 + 1e-12))
  end)
  it('take any network of layers', function()
    for _, name in ipairs { 'resnet50', 'vgg16' } do
      local pase = pase_of_graph.new(graph_of(name, { batch_size = 32 }), { devices = 4 })
      local best = pase:solve { quiet = true }
      expect(best.cost):below(pase:by_rule('data_parallel').cost * (1 + 1e-12))
    end
  end)
end)

describe('the method pase', function()
  it('computes transfer costs with its bandwidth option, else with the bandwidth of the slowest route', function()
    local problem = trinity.problem { graph = graph_of('alexnet', { batch_size = 4 }):to_training(), cluster = trinity.cluster 'p100x4' }
    local function splits_at(bandwidth)
      return json.encode(trinity.methods.pase(problem, { quiet = true, bandwidth_bytes_per_s = bandwidth }).splits)
    end
    expect(splits_at(nil)):equals(splits_at(12e9))
    expect(splits_at(1e15) ~= splits_at(1e6)):truthy()
    expect(splits_at(nil) ~= splits_at(1e15)):truthy()
    expect(splits_at(0.5) ~= splits_at(nil)):truthy()
  end)
end)

describe('misuse of pase', function()
  it('is one clear error', function()
    local g = graph 'alexnet'
    expect(function() pase_of_graph.new(g, { devices = 0 }) end):raises "trinity.pase: option 'devices': expected an integer from 1"
    expect(function() pase_of_graph.new(g, { factors = 'divisor' }) end):raises 'divisors'
    local pase = pase_of_graph.new(g, { devices = 4 })
    local list = pase:by_rule('data_parallel').configurations
    list[1] = { 4, 4, 1, 1, 1, 1, 1 }
    expect(function() pase:price(list) end):raises "layer 'conv_1'"
    expect(function() core.pase(g.handle, { devices = 1e9 }) end):raises 'devices'
    expect(function() pase_of_graph.new(g, { devices = 4096, cutoff = 1, factors = 'all', halo = true }) end)
      :raises 'configurations'
  end)
end)

describe("Mesh-TensorFlow's split of an expert", function()
  it('has the widest batch of those that cost least', function()
    local function chosen(costs)
      local layer = { kind = 'softmax', dimensions = { { name = 'b', size = 8, splits = true }, { name = 'h', size = 8, splits = true } } }
      local list = rules.expert { layers = { layer }, devices = 6, handle = { price = function(_, factors)
        return costs[factors[1][2]]
      end } }
      return ('%d x %d'):format(list[1][1], list[1][2])
    end
    expect(chosen { 1, 1 }):equals '4 x 1' -- batch x heads; 6 devices cut 8 in 4
    expect(chosen { 2, 1 }):equals '2 x 2'
  end)
end)
