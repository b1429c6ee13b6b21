-- Moves in scripts: problem:moves, step states, operator times, critical paths and unit edges as arrays.

local trinity = require 'trinity'

local problem = trinity.problem { graph = trinity.model('inception_v3', { batch_size = 8 }),
  cluster = trinity.cluster 'p100x4' }
local start = trinity.methods.m_etf(problem, { quiet = true }).placement

local function copy(placement)
  local to = problem:placement()
  for op = 1, #placement do to[op] = placement[op] end
  return to
end

local function sum(array)
  local total = 0
  for i = 1, #array do total = total + array[i] end
  return total
end

describe('problem:moves', function()
  it('samples different changes, the same from the same seed', function()
    local function keys(seed)
      local drawn, list = problem:moves({ seed = seed }):draw(start), {}
      for i = 1, drawn.count do
        local units, device, kind = drawn:move(i)
        list[i] = ('%s>%d %s'):format(table.concat(units, ','), device, kind)
      end
      expect(drawn.count):equals(16)
      return table.concat(list, ' ')
    end
    expect(keys(3)):equals(keys(3))
    expect(keys(3) ~= keys(4)):equals(true)
  end)
  it('applies what it says, and nothing else', function()
    local drawn = problem:moves({ seed = 2, groups = true }):draw(start, 40)
    local unit_of = problem.graph.unit_of
    for i = 1, drawn.count do
      local units, device = drawn:move(i)
      local chosen, after, changed = {}, copy(start), 0
      for _, unit in ipairs(units) do chosen[unit] = true end
      for op = 1, #start do expect(drawn.device_of[unit_of[op]]):equals(start[op]) end
      drawn:apply(i, after)
      for op = 1, #after do
        expect(after[op]):equals(chosen[unit_of[op]] and device or start[op])
        if after[op] ~= start[op] then changed = changed + 1 end
      end
      expect(changed > 0):equals(true)
    end
  end)
  it('has features by name, and the share of memory that it is given', function()
    local drawn = problem:moves({ memory_share = 0.3 }):draw(start, 4, 0.01)
    expect(drawn:get(1, 'temperature')):near(1, 1e-5) -- log2(1 + 100 x 0.01)
    expect(drawn:get(4, 'memory_share')):near(0.3, 1e-7)
    expect(function() drawn:get(1, 'unit_moved') end):raises "unknown feature 'unit_moved', did you mean 'units_moved'%?"
    expect(function() problem:moves { memory_share = 2 } end):raises 'memory_share'
  end)
  it('refuses what it cannot do in a sentence', function()
    local source = problem:moves()
    local old = source:draw(start)
    source:draw(start)
    expect(function() old:move(1) end):raises 'candidates:move: expected the moves of the last moves:draw%(%), got older ones'
    expect(function() source:draw(start, 0) end):raises "moves:draw: argument 2 %('count'%): expected an integer from 1"
    expect(function() source:draw({}) end):raises "placement"
    local alone = trinity.problem { graph = problem.graph, cluster = trinity.cluster 'p100x1' }
    expect(function() alone:moves() end):raises 'expected a cluster with at least two devices, got 1'
    source:close()
    expect(function() source:draw(start) end):raises 'this moves is closed'
  end)
end)

describe('problem:step_state', function()
  local state, timeline = problem:step_state(start), problem:timeline(start)
  it('has the step of the timeline', function()
    expect(state.step_time_s):near(problem:evaluate(start).step_time_s, 1e-12)
    for d = 1, 4 do
      expect(state.busy_s[d]):near(timeline.metrics:compute_busy_s(d), 1e-9)
      expect(state.memory_bytes[d]):equals(timeline.metrics:memory_bytes(d))
    end
  end)
  it('blames what the critical path spends', function()
    local path = timeline:critical_path()
    expect(sum(state.computation_blame_s)):near(path.compute_s, 1e-9)
  end)
end)

describe('arrays', function()
  it('of the critical path equal its tables', function()
    local timeline = problem:timeline(start)
    local path, steps = timeline:critical_path(), timeline:critical_steps()
    expect(steps.count):equals(#path.steps)
    local kinds = { 'compute', 'transfer', 'collective' }
    for i, step in ipairs(path.steps) do
      expect(kinds[steps.kind[i]]):equals(step.kind)
      expect(steps.end_s[i]):equals(step.end_s)
      expect(steps.start_s[i]):equals(step.start_s)
      if step.kind == 'compute' then
        expect(problem.graph:operator(steps.task[i]).name):equals(step.operator)
        expect(steps.device[i]):equals(start[steps.task[i]])
      end
    end
  end)
  it('of operator times equal a timeline on that device', function()
    local p = trinity.problem { graph = problem.graph, cluster = trinity.cluster 'heterogeneous' }
    for d = 1, #p.cluster.devices do
      local times, timeline = p:operator_times(d), p:timeline(p:placement_by_unit(function() return d end))
      for op = 1, p.graph.operators do
        expect(times[op]):near(timeline.end_s[op] - timeline.start_s[op], 1e-12)
      end
    end
    expect(function() p:operator_times(99) end):raises "problem:operator_times: argument 1 %('device'%): expected an integer from 1 to"
  end)
  it('of unit edges equal the operators\' edges between units', function()
    local graph, known = problem.graph, {}
    local edges, csr, unit_of = graph:unit_edges(), graph:csr(), graph.unit_of
    for op = 1, graph.operators do
      for e = csr.first[op], csr.first[op + 1] - 1 do
        local from, to = unit_of[op], unit_of[csr.target[e]]
        if from ~= to then known[from .. ' ' .. to] = true end
      end
    end
    local count = 0
    for _ in pairs(known) do count = count + 1 end
    expect(edges.count):equals(count)
    for e = 1, edges.count do
      expect(known[edges.from[e] .. ' ' .. edges.to[e]]):equals(true)
      expect(edges.bytes[e] > 0):equals(true)
    end
  end)
end)

describe('ranker:score', function()
  it('gives the scores by which a search chooses', function()
    local ranker = trinity.search.rankers.load(trinity.search.rankers.shipped)
    local drawn, seen = problem:moves({ seed = 3 }):draw(start, 16), 0
    local scores = ranker:score(drawn)
    expect(#scores):equals(drawn.count)
    local found = trinity.methods.annealing(problem, { evaluations = 60, starts = { start }, seed = 1, quiet = true,
      rank = function(candidates)
        seen = seen + 1
        local list = {}
        for i, score in ranker:score(candidates):each() do list[i] = score end
        return list
      end })
    expect(seen > 10):equals(true)
    expect(trinity.methods.annealing(problem, { evaluations = 60, starts = { start }, seed = 1, quiet = true,
      rank = ranker }).metrics.step_time_s):equals(found.metrics.step_time_s)
  end)
end)
