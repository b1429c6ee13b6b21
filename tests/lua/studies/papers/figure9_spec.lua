-- Figure 9 of the Trinity paper, placements simulated and executed: its statistics, its measurements, its networks.

local figure9 = require 'studies.papers.figure9'
local trinity = require 'trinity'

describe('figure 9', function()
  it('is judged by error, order and memory', function()
    local function entry(simulated_s, measured_s, simulated_bytes)
      return { simulated_s = simulated_s, measured_s = measured_s, simulated_bytes = { 3, simulated_bytes },
        measured_bytes = { 100, 9 } }
    end
    local found = figure9.summary { entry(1, 1.25, 90), entry(2, 2, 110), entry(3, 1, 100) }
    expect(found.mean_error):near((0.2 + 0 + 2) / 3, 1e-12)
    expect(found.largest_error):near(2, 1e-12)
    expect(found.regret):near(0.25, 1e-12)
    expect(found.least_memory_ratio):near(0.9, 1e-12)
    expect(found.tau):near(-1 / 3, 1e-12)
    local halves = { { 1, 2 }, { 2, 1 }, { 3, 3 } }
    local judged = {}
    for i, half in ipairs(halves) do
      judged[i] = entry(i, i, 9)
      judged[i].halves_s = half
    end
    expect(figure9.summary(judged).halves_tau):near(1 / 3, 1e-12)
  end)

  it('measures every placement, each once among the placements', function()
    local net = trinity.graph.layers.new('small', { batch_size = 8 })
    local x = net:input('x', { 8, 64 })
    local sum = net:add('sum', net:relu('relu', net:linear('first', x, 96)), net:linear('second', x, 96))
    net:softmax_cross_entropy('loss', net:linear('last', sum, 10), net:input('labels', { 8 }, 'int64'))
    local graph = net:build():to_training()
    local profile = trinity.profile.measure(graph, { devices = { 'cpu:0', 'cpu:1' }, steps = 2, warm_up = 1, copies = 1,
      sizes = { 1024, 65536 }, quiet = true, model = 'small', batch_size = 8 })
    local problem = trinity.problem { graph = graph, profile = profile }
    local entries = figure9.placements(problem, 12, 1)
    expect(#entries >= 12):equals(true)
    figure9.measure(problem, entries, { devices = { 'cpu:0', 'cpu:1' }, steps = 2, warm_up = 1, seed = 1 })
    for _, entry in ipairs(entries) do
      expect(entry.measured_s > 0 and entry.simulated_s > 0):equals(true)
      expect(entry.loss):equals(entries[1].loss)
      expect(entry.measured_bytes[1] + entry.measured_bytes[2] >= graph.parameter_bytes):equals(true)
    end
  end)

  it('names networks with their sizes', function()
    local name, chosen = figure9.network 'gnmt:4:hidden=64:sequence=6'
    expect(name):equals 'gnmt'
    expect(chosen.batch_size + chosen.hidden + chosen.sequence):equals(74)
    expect(function() return figure9.network 'gnmt:4:hidden' end):raises "expected NAME:BATCH:OPTION=NUMBER"
  end)
end)
