-- The race of two annealings that refines what the Trinity search begins with (lib/trinity/search/race.lua).

local trinity = require 'trinity'
local array = require 'trinity.base.array'
local core = require 'trinity.core'
local graphs = dofile(root .. '/tests/lua/support/graphs.lua')
local kept = dofile(root .. '/tests/lua/support/kept.lua')
local race = require 'trinity.search.race'

local function problem_of(reward)
  return trinity.problem { graph = graphs.branches(16, 16, 32, 32), cluster = trinity.cluster 'p100x2', reward = reward }
end

local problem = problem_of()

-- A searcher that asks for one placement at a time, and the value of its n-th.
local function scripted(value)
  local searcher = { asked = 0, progressed = 0 }
  function searcher:progress(share)
    self.first, self.progressed = self.first or share, share
  end
  function searcher:evaluations() return self.asked end
  function searcher:ask()
    self.asked = self.asked + 1
    return 1, math.huge
  end
  function searcher:tell() end
  function searcher:value() return value(self.asked) end
  return searcher
end

--- Runs a race of two scripted searchers over 100 evaluations; excess: bytes over the memory, of either.
local function run(first, second, excess)
  local place = problem:placement()
  local r = race.new(problem, place, place, 1, { evaluations = 100 })
  for _, searcher in ipairs(r.racers) do searcher:close() end
  r.racers = { scripted(first), scripted(second) }
  local values, bytes = array.double(1), array.double(1)
  for _ = 1, 100 do
    expect(r:ask(nil, 1)):equals(1)
    values[1] = r.racers[r.now]:value()
    bytes[1] = excess and excess[r.now] or 0
    r:tell(values, bytes)
  end
  expect(r:evaluations()):equals(100)
  return r.racers[1], r.racers[2]
end

describe('a race', function()
  it('is won by the searcher that leads where both improve equally fast', function()
    local first, second = run(function(n) return 20 - n / 10 end, function(n) return 25 - n / 10 end)
    expect(first.asked):equals(75)
    expect(second.asked):equals(25)
    expect(first.first):equals(0) -- both cool from the beginning of their heats
    expect(second.first):equals(0)
  end)
  it('is won by the slower start if it improves fast enough to overtake', function()
    local first, second = run(function() return 10 end, function(n) return 20 - n * 0.35 end)
    expect(first.asked):equals(25)
    expect(second.asked):equals(75)
    expect(second.progressed):near(74 / 75, 0.02)
  end)
  it('is worth 200 evaluations and a second at least', function()
    local function evaluations(options)
      return trinity.search.run('mine', problem, trinity.search.options('mine', {}, merged({ quiet = true }, options)), function(search)
        search:evaluate { problem:placement() }
        race.rival(search)
      end).evaluations
    end
    expect(evaluations { evaluations = 200 }):equals(1)
    expect(evaluations { evaluations = 201 }):equals(3)
    expect(evaluations { evaluations = 201, seconds = 0.9 }):equals(1)
  end)
  it('has a number of twins that grows with the seconds', function()
    local function twins(seconds, changed)
      local ranker = trinity.search.rankers.load(trinity.search.rankers.shipped)
      return race.twins(merged({ problem = problem, ranker = ranker, start = core.clock_s(),
        options = { evaluations = trinity.search.unlimited, seconds = seconds } }, changed or {}))
    end
    local a_unit_s = 1e-7 * problem.graph.units ^ 2 -- an evaluation a unit
    for a_unit, count in trinity.system.sorted_pairs { [19] = 1, [21] = 2, [61] = 3, [201] = 4 } do
      expect(twins(a_unit * a_unit_s + 0.0005)):equals(count)
    end
    expect(twins(math.huge)):equals(1)
    local moves = { options = { evaluations = trinity.search.unlimited, moves = function() end } } -- of a script
    for a_unit, count in trinity.system.sorted_pairs { [79] = 1, [81] = 2, [241] = 3, [801] = 4 } do
      moves.options.seconds = a_unit * a_unit_s + 0.0005
      expect(twins(nil, moves)):equals(count)
    end
    expect(twins(1e6, { options = { evaluations = 19 * problem.graph.units, seconds = 1e6 } })):equals(1)
    expect(twins(1e6, { ranker = function() end })):equals(1)
    expect(twins(1e6, { ranker = false })):equals(1)
    expect(twins(1e6, { problem = problem_of(function(m) return -m.step_time_s end) })):equals(1)
  end)
  it('of twins has equal heats, and the one ahead goes on', function()
    local values = { 30, 20, 25 }
    local r = race.of_twins(problem, 3, problem:placement(), 1, { evaluations = 160 })
    for _, searcher in ipairs(r.racers) do searcher:close() end
    -- The last improves, and would win a race of different starts.
    for i, value in ipairs(values) do
      r.racers[i] = scripted(function(n) return value - (i == 3 and n / 8 or 0) end)
    end
    local found, bytes = array.double(1), array.double(1)
    for _ = 1, 160 do
      r:ask(nil, 1)
      found[1] = r.racers[r.now]:value()
      r:tell(found, bytes)
    end
    local asked = { r.racers[1].asked, r.racers[2].asked, r.racers[3].asked }
    expect(table.concat(asked, ' ')):equals '30 100 30' -- three tenths of 100, which one has in the end
    for i, progressed in ipairs { 0.3, 1, 0.3 } do expect(r.racers[i].progressed):near(progressed, 0.02) end
  end)
  it('is lost by one that does not fit', function()
    local first, second = run(function() return 10 end, function() return 1 end, { 0, 5 })
    expect(first.asked):equals(75)
    expect(second.asked):equals(25)
  end)
end)

describe('a race with moves of a script', function()
  it('has each of its annealings ask the function, with a random stream of its own', function()
    local asked = {}
    local ranker = trinity.search.rankers.load(trinity.search.rankers.shipped)
    local r = race.of_twins(problem, 3, problem:placement(), 1, { evaluations = 300 }, ranker, nil, function(state)
      asked[state.random] = (asked[state.random] or 0) + 1
      return { state.random:integer(5) }, 2
    end)
    local room, values, excess = problem:placements(8), array.double(8), array.double(8)
    while r:evaluations() < 300 do
      local count = r:ask(room, 8)
      for i = 1, count do
        values[i] = problem:evaluate(room[i]).step_time_s
        for op = 1, #room[i] do
          if problem.graph.unit_of[op] > 5 then expect(room[i][op]):equals(1) end
        end
      end
      r:tell(values, excess)
    end
    local streams = 0
    for _, count in pairs(asked) do
      streams = streams + 1
      expect(count > 10):equals(true)
    end
    expect(streams):equals(3)
    r:close()
  end)
  it('is what method trinity runs where its seconds are plenty', function()
    local streams, count = {}, 0
    trinity.methods.trinity(problem, { seconds = 0.5, evaluations = trinity.search.unlimited, quiet = true, moves = function(state)
      if not streams[state.random] then streams[state.random], count = true, count + 1 end
      return { state.unit }, state.random:integer(2)
    end })
    expect(count > 1):equals(true)
  end)
end)

describe('the refinement of a larger graph', function()
  local scored, last = 0, math.huge
  local function reward(m)
    scored = scored + 1
    if scored > last then error 'the plug was pulled' end
    return -m.step_time_s
  end
  local function search(p, options)
    options.policy, options.quiet = false, true
    if options.rank == nil then options.rank = false end
    options.evaluations = options.evaluations or 400
    return trinity.methods.trinity(p, options)
  end
  local function saved(found)
    local path = temporary()
    found:save(path)
    return core.read_file(path)
  end
  it('begins with a second searcher where a partition is nearly as fast', function()
    expect(problem.graph.units > 64):truthy()
    local path = temporary()
    local found = kept.search(path, function() return search(problem, {}) end)
    expect(core.read_file(path)):matches '\\"rival\\":%['
    expect(found.evaluations <= 400):truthy()
    kept.search(path, function() return search(problem, { evaluations = 150 }) end)
    expect(core.read_file(path):find('rival', 1, true)):equals(nil)
  end)
  it('is no race where a ranker chooses the moves', function()
    local path = temporary()
    local found = kept.search(path, function() return search(problem, { rank = true }) end)
    expect(core.read_file(path):find('rival', 1, true)):equals(nil)
    expect(found.ranking.trials > 200):truthy()
  end)
  it('gives the bytes of an unbroken search when it is interrupted in either heat or after', function()
    local whole = saved(search(problem_of(reward), {}))
    for _, count in ipairs { 90, 180, 330 } do
      local path = temporary()
      scored, last = 0, count
      local function again() return search(problem_of(reward), {}) end
      expect(function() kept.search(path, again) end):raises 'the plug was pulled'
      last = math.huge
      expect(core.read_file(path)):matches '\\"stage\\":\\"refine\\"'
      expect(saved(kept.search(path, again, true))):equals(whole)
    end
  end)
end)
