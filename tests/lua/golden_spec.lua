-- What the simulator says of fixed placements, as text. A change of any prediction shows in the
-- diff of tests/golden. To write the files anew: TRINITY_REGENERATE=1 build/trinity tests/lua/run.lua golden

local core = require 'trinity.core'
local trinity = require 'trinity'

local function playthrough(graph, cluster)
  local problem = trinity.problem { graph = graph, cluster = trinity.cluster(cluster) }
  local devices = #problem.cluster.devices
  local lines = { ('%s: %d operators, %d edges, %d units, %d parameters, %.17g FLOP'):format(graph.name,
    graph.operators, graph.edges, graph.units, graph.parameters, graph.flops) }
  local function add(...) lines[#lines + 1] = (...):format(select(2, ...)) end
  add('%s: %d devices, lower bound %.9f s', cluster, devices, problem.lower_bound_s)
  local deepest = 0
  for op = 1, graph.operators do deepest = math.max(deepest, graph.depth[op]) end
  local placements = {
    { 'everything on the first device', function() return 1 end },
    { 'devices in turn by depth', function(_, op) return graph.depth[op] % devices + 1 end },
    { 'forward depth cut into equal parts', function(_, op)
      return math.min(devices, math.floor(2 * graph.depth[op] / deepest * devices) + 1)
    end },
    { 'devices in turn by unit', function(unit) return unit % devices + 1 end },
  }
  for _, entry in ipairs(placements) do
    local m = problem:evaluate(problem:placement_by_unit(entry[2]))
    add('\n%s', entry[1])
    add('  step %.9f s, %d transfers, %.0f bytes on wires, fits %s', m.step_time_s, m.transfers,
      m.total_communication_bytes, tostring(m.feasible))
    for d = 1, devices do
      add('  device %d: busy %.9f s, memory %.0f, sent %.0f, received %.0f', d, m:compute_busy_s(d),
        m:memory_bytes(d), m:sent_bytes(d), m:received_bytes(d))
    end
  end
  return table.concat(lines, '\n') .. '\n'
end

local function check(name, text)
  local path = ('%s/tests/golden/%s.txt'):format(root, name)
  if os.getenv 'TRINITY_REGENERATE' then core.write_file(path, text) end
  local golden = core.read_file(path)
  local wanted, got = golden:gmatch '[^\n]*', text:gmatch '[^\n]*'
  for line in wanted do expect(got()):equals(line) end
  expect(text):equals(golden)
end

describe('golden', function()
  it('InceptionV3 on two and four P100', function()
    local graph = trinity.model('inception_v3', { batch_size = 64 })
    check('inception_v3_p100x2', playthrough(graph, 'p100x2'))
    check('inception_v3_p100x4', playthrough(graph, 'p100x4'))
  end)
  it('InceptionV3 with free backward operators and Adam', function()
    local graph = trinity.model('inception_v3', { batch_size = 8, colocate = 'parameters', optimiser = 'adam' })
    check('inception_v3_free_backward_p100x2', playthrough(graph, 'p100x2'))
  end)
end)
