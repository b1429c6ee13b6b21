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
  local r = race.new(problem, place, place, 1, { evaluations = 100 }, nil, function(searcher) return searcher end)
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
  it('is lost by one that does not fit', function()
    local first, second = run(function() return 10 end, function() return 1 end, { 0, 5 })
    expect(first.asked):equals(75)
    expect(second.asked):equals(25)
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
