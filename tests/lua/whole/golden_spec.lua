-- Golden texts of what the simulator says of fixed placements, and of what every method and every planner finds at a small
-- size. A change of any prediction shows in the diff of tests/golden (support/golden.lua says how it is accepted).

local trinity = require 'trinity'
local graphs = dofile(root .. '/tests/lua/support/graphs.lua')
local varies = dofile(root .. '/tests/lua/support/varying_methods.lua')

local function playthrough(graph, cluster)
  local problem = trinity.problem { graph = graph, cluster = trinity.cluster(cluster) }
  local devices = #problem.cluster.devices
  local lines = { ('%s: %d operators, %d edges, %d units, %d parameters, %.17g FLOP'):format(graph.name,
    graph.operators, graph.edges, graph.units, graph.parameters, graph.flops) }
  local function add(...) lines[#lines + 1] = (...):format(select(2, ...)) end
  add('%s: %d devices, lower bound %.9f s', cluster, devices, problem:bounds().step_time_s)
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

describe('the simulator', function()
  local graph
  local function inception(options) return trinity.model('inception_v3', merged({ batch_size = 64 }, options or {})) end
  it_golden('inception_v3_p100x2', function()
    graph = graph or inception()
    return playthrough(graph, 'p100x2')
  end)
  it_golden('inception_v3_p100x4', function()
    graph = graph or inception()
    return playthrough(graph, 'p100x4')
  end)
  it_golden('inception_v3_free_backward_p100x2', function()
    return playthrough(inception { batch_size = 8, colocate = 'parameters', optimizer = 'adam' }, 'p100x2')
  end)
end)

-- Devices of a placement, in the order of its operators: 1 for 10 of the first is 1*10.
local function runs_of(placement)
  local parts, i = {}, 1
  while i <= #placement do
    local last = i
    while last < #placement and placement[last + 1] == placement[i] do last = last + 1 end
    parts[#parts + 1] = last > i and ('%d*%d'):format(placement[i], last - i + 1) or tostring(placement[i])
    i = last + 1
  end
  return table.concat(parts, ' ')
end

-- Budgets so small that all methods take seconds; the others' are 60 evaluations.
local budgets = { post = 16, colocrl = 16, hierarchical = 16, placeto = 24, doppler = 24, trinity = 16, tapp = 24 }

local function found_by(name, problem)
  local options = { quiet = true, seed = 1 }
  if trinity.methods.info(name).budget then options.evaluations = budgets[name] or 60 end
  local ok, found, reason = pcall(trinity.methods[name], problem, options)
  if not ok then found, reason = nil, found:gsub('^%S+:%d+: ', '') end
  if not found then return ('%s: none, %s'):format(name, reason) end
  if varies[name] then return ('%s: ~ after %d evaluations'):format(name, found.evaluations) end
  return ('%s: step %.9f s, fits %s, reward %.9f, schedule %s, %d evaluations\n  %s'):format(name, found.metrics.step_time_s,
    tostring(found.metrics.feasible), found.reward, found.schedule or 'fifo', found.evaluations, runs_of(found.placement))
end

local names = library_methods()

describe('methods', function()
  local problems = {
    branches = function()
      return trinity.problem { graph = graphs.branches(3, 16, 32, 32), cluster = trinity.cluster 'p100x4' }
    end,
    heavy = function() return trinity.problem { graph = graphs.heavy(5), cluster = trinity.cluster 'p100x4' } end,
    profile = function()
      return trinity.problem { graph = trinity.model(root .. '/tests/data/profiles/small.graph.txt'),
        cluster = trinity.cluster 'p100x2' }
    end,
  }
  for _, name in ipairs { 'branches', 'heavy', 'profile' } do
    it_golden('methods/' .. name, function()
      local problem, lines = problems[name](), {}
      for _, method in ipairs(names) do lines[#lines + 1] = found_by(method, problem) end
      return table.concat(lines, '\n') .. '\n'
    end)
  end
end)

describe('planners of pipelines', function()
  local files = { 'pipeline/training.json', 'pipeline/piper.json', 'profiles/small.graph.txt' }
  local methods = { 'gpipe', 'max_load_annealing', 'max_load_dp', 'pipedream', 'piper' }
  it_golden('planners', function()
    local lines = {}
    for _, file in ipairs(files) do
      for _, method in ipairs(methods) do
        local ok, found = pcall(trinity.pipeline, root .. '/tests/data/' .. file, { method = method, devices = 3, quiet = true })
        local text
        if ok then
          text = ('max load %s %s, optimal %s\n  %s'):format(found.max_load and ('%.9g'):format(found.max_load), found.unit,
            tostring(found.optimal), table.concat(found.assignment, ' '))
        else
          text = tostring(found):gsub(root:gsub('%p', '%%%0'), '<root>'):gsub('^%S+:%d+: ', '')
        end
        lines[#lines + 1] = ('%s by %s: %s'):format(file, method, text)
      end
    end
    return table.concat(lines, '\n') .. '\n'
  end)
end)
