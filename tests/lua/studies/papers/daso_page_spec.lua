-- The training times that the page of DASO compares; tests/golden/studies/papers_daso.txt has its tables.

local daso = require 'studies.papers.daso_networks'
local trinity = require 'trinity'

local training = require 'studies.papers.daso_training'

describe('the page of DASO', function()
  it('has nodes with one NIC, which all GPUs share', function()
    local function exchange_s(one_card)
      local cluster = daso.cluster(8, 6, one_card)
      return cluster:collective({ kind = 'all_reduce', algorithm = 'ring', devices = { 1, 5 }, bytes = 6e9 }).time_s,
        cluster:collective({ kind = 'all_reduce', algorithm = 'hierarchical', bytes = 6e9,
          devices = { 1, 2, 3, 4, 5, 6, 7, 8 } }).time_s
    end
    local two, all = exchange_s(false)
    local two_shared, all_shared = exchange_s(true)
    expect(two_shared):near(two, 1e-3 * two) -- one GPU per node has the NIC to itself
    expect(all_shared > 2 * all):equals(true)
  end)
end)

-- A network of two layers with 8 MB of weights each, some milliseconds a step on an A100.
local function small_network()
  local net = trinity.graph.layers.new 'small'
  local x = net:input('x', { 4096, 1414 })
  for i = 1, 2 do x = net:relu('relu' .. i, net:linear('linear' .. i, x, 1414)) end
  net:softmax_cross_entropy('loss', x, net:input('labels', { 4096 }, 'int64'))
  return net:build():to_training()
end

describe('training time', function()
  local graph = small_network()
  local function train(nodes, synchronization, epochs, batches)
    return training.new(graph, trinity.cluster('juwels_boosterx' .. nodes), synchronization):train(epochs, batches)
  end
  it('of an all-reduce after the backward pass is its cost beyond the computation', function()
    local cost = trinity.cluster('juwels_boosterx2'):collective { kind = 'all_reduce', algorithm = 'ring',
      devices = { 1, 2, 3, 4, 5, 6, 7, 8 }, bytes = graph.parameter_bytes }
    local alone = training.new(graph, trinity.cluster 'p100', training.all_reduce('ring', 0)):train(1, 1)
    local problem = trinity.problem { graph = graph, cluster = trinity.cluster 'p100' }
    expect(alone):near(problem:evaluate(problem:placement()).step_time_s, 1e-12)
    local a100 = trinity.problem { graph = graph, cluster = trinity.cluster 'juwels_booster' }
    expect(train(2, training.all_reduce('ring', 0), 1, 1) - a100:evaluate(a100:placement()).step_time_s)
      :near(cost.time_s, 1e-8)
  end)
  it('of an all-reduce in buckets hides what it can, and hierarchical beats flat between nodes', function()
    local flat = train(4, training.all_reduce('ring', 0), 1, 10)
    local hierarchical = train(4, training.all_reduce('hierarchical', 0), 1, 10)
    expect(hierarchical):below(flat)
    expect(train(4, training.all_reduce('hierarchical', 4e6), 1, 10)):below(hierarchical)
  end)
  it('of DASO without skips is the time of an all-reduce', function()
    expect(train(2, training.daso { max_global_skips = 0 }, 12, 7))
      :near(train(2, training.all_reduce('automatic', 25e6), 12, 7), 1e-12)
  end)
  it('of DASO follows its cost model, batch by batch', function()
    local cluster = trinity.cluster 'juwels_boosterx3'
    local function collective(kind, devices, share)
      return cluster:collective({ kind = kind, devices = devices, bytes = graph.parameter_bytes * share }).time_s
    end
    local local_s = train(1, training.all_reduce('automatic', 25e6), 1, 1)
    local global_s, half_s = collective('all_reduce', { 1, 5, 9 }, 1), collective('all_reduce', { 1, 5, 9 }, 0.5)
    local node_s = collective('broadcast', { 1, 2, 3, 4 }, 1)
    local _, epochs = train(3, training.daso { warmup_epochs = 1, cooldown_epochs = 1 }, 3, 9)
    local warm, cycling = epochs[1], epochs[2]
    expect(warm.phase):equals 'warm-up'
    local copies_s = (warm.time_s - 9 * (local_s + half_s + node_s)) / 9 -- pack and unpack
    expect(copies_s > 0 and copies_s < 2e-4):truthy()
    expect(epochs[3].time_s):near(warm.time_s, 1e-12)
    -- Cycling with 4, 1, 1: sends after batches 0 and 4, merged after 1 and 5; the last batch, 8, blocks.
    expect(cycling.global_skips):equals(4)
    local exposed_s = math.max(0, global_s - local_s)
    local expected_s = 9 * local_s + 2 * exposed_s + 2 * node_s + global_s + node_s
    -- A broadcast goes with every synchronization that has a previous group: at batches 4 and 8, too.
    expect(cycling.time_s - expected_s - 2 * node_s):near(0, 6 * 2e-4)
    expect(expected_s):below(cycling.time_s)
  end)
end)
