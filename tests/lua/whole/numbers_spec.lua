-- Numbers at the ends of their ranges: what is too large is refused by name before anything is computed with it, what
-- is too small rounds to what the simulator counts (nanoseconds, bytes), and no table ever holds a NaN.

local graphs = dofile(root .. '/tests/lua/support/graphs.lua')
local trinity = require 'trinity'

local quiet = { evaluations = 30, quiet = true }

local function chain(time_s, bytes, count)
  return graphs.chain(count or 3, function() return { time_s = time_s } end, bytes or 0)
end

local function problem_of(graph, more)
  local spec = more or {}
  spec.graph, spec.cluster = graph, spec.cluster or trinity.cluster 'p100x2'
  return trinity.problem(spec)
end

local function best_of(problem)
  local found = trinity.methods.local_search(problem, quiet)
  for _, value in ipairs { found.metrics.step_time_s, found.reward, found:bounds().step_time_s } do
    expect(value == value and math.abs(value) < math.huge):equals(true)
  end
  expect(found.metrics.step_time_s >= found:bounds().step_time_s - 1e-12):equals(true)
  return found
end

describe('times', function()
  it('from 1e-300 s round to nanoseconds', function()
    for time_s, step_time_s in trinity.system.sorted_pairs { ['1e-300'] = 0, ['1e-12'] = 0, ['4e-10'] = 0, ['6e-10'] = 3e-9,
      ['1e-9'] = 3e-9, ['1'] = 3, ['1e3'] = 3000, ['9.9e5'] = 2.97e6 } do
      expect(best_of(problem_of(chain(tonumber(time_s)))).metrics.step_time_s):near(step_time_s, 1e-12)
      local cost = { cost = function() return tonumber(time_s) end }
      expect(best_of(problem_of(chain(1), cost)).metrics.step_time_s):near(step_time_s, 1e-12)
    end
  end)
  it('keep their order where they differ by many magnitudes', function()
    local cluster = trinity.cluster { name = 'two kinds', device_types = { a = trinity.devices.p100, b = trinity.devices.t4 },
      devices = { { name = 'a', type = 'a' }, { name = 'b', type = 'b' } },
      links = { { from = 'a', to = 'b', latency_s = 1e-6, bandwidth_bytes_per_s = 1e9 } } }
    local problem = problem_of(chain(1, 0, 2), { cluster = cluster, cost = function(op, device)
      return op.name == 'op1' and 1e-300 or device.type == 'a' and 9e5 or 1e-9
    end })
    local found = trinity.methods.exhaustive(problem, quiet)
    expect(found.metrics.step_time_s):near(1e-9, 1e-5) -- a copy between devices at most
    expect(found.placement[2]):equals(2)
  end)
  it('from 1e6 s are refused with operator and device', function()
    for _, time_s in ipairs { 1e6, 1e9, 1e18, 1e300 } do
      expect(function() problem_of(chain(time_s)) end):raises(
        "operator 'op1' would take [%d.e+]+ s on device 'gpu0'")
      expect(function() problem_of(chain(1), { cost = function() return time_s end }) end):raises(
        "for the cost of operator 'op1' on device 'gpu0', expected 0 or more seconds or nil, below 1e6")
    end
    expect(function() chain(math.huge) end):raises "field 'time_s': expected a finite number from 0, got inf"
    expect(function() chain(0 / 0) end):raises "field 'time_s': expected a number, got %-?nan"
  end)
end)

describe('sizes', function()
  it('of petabytes are counted exactly where devices have them', function()
    local petabyte = 2 ^ 50
    local problem = problem_of(chain(1, petabyte), { cluster = trinity.cluster { name = 'large',
      device_types = { g = trinity.devices.with(trinity.devices.p100, { memory_bytes = 2 ^ 53 }) },
      devices = { { name = 'a', type = 'g' }, { name = 'b', type = 'g' } },
      links = { { from = 'a', to = 'b', latency_s = 1, bandwidth_bytes_per_s = 1e12 } } } })
    local across = problem:strategy(problem:placement_by_unit(function(unit) return unit % 2 + 1 end))
    expect(across.metrics.total_communication_bytes):equals(2 * petabyte)
    expect(across.metrics.step_time_s):near(3 + 2 + 2 * petabyte / 1e12, 1)
  end)
  it('beyond what is counted are refused where they are given', function()
    for _, bytes in ipairs { 2 ^ 51, 1e18, 1e19, 1e300, math.huge, 0 / 0, 0.5, -1 } do
      expect(function() chain(1, bytes, 2) end):raises "argument 3 %('size_bytes'%): expected an integer from 0 to 1125899906842624"
    end
    local builder = trinity.graph.new { name = 'sizes' }
    expect(function() builder:add_operator { name = 'a', time_s = 1, memory_bytes = 1e300 } end):raises
      "field 'memory_bytes': expected an integer from 0 to 1125899906842624, got 1e%+300"
    expect(function() builder:add { name = 'a', type = 'Work', outputs = { { shape = { 2 ^ 31, 2 ^ 31, 2 ^ 31 } } } } end)
      :raises "tensor 'a:0' has more than 2%^50 elements"
    for i = 1, 1100 do builder:add_operator { name = 'o' .. i, time_s = 1, memory_bytes = 2 ^ 50 } end
    expect(function() builder:build() end):raises 'more than 2%^60 bytes'
  end)
  it('of arrays, placements and tensors are refused before they are allocated', function()
    local problem = problem_of(chain(1))
    expect(function() problem:placements(2 ^ 40) end):raises 'problem:placements: argument 1'
    expect(function() trinity.random(1, 'x'):integer(2 ^ 60) end):raises "argument 1 %('bound'%): expected an integer from 1 to"
    expect(function() trinity.parallel_map(2 ^ 40, function() end) end):raises "argument 1 %('items'%): expected an integer from 0 to"
  end)
end)

describe('placements', function()
  local problem = problem_of(chain(1))
  it('take integers only: a device of 1.999 is not device 1', function()
    local placement = problem:placement()
    for _, value in ipairs { 1.999, 1.5, -1e-9, 0 / 0, math.huge, -math.huge, 2 ^ 31, -2 ^ 31 - 1, 2 ^ 53, 'x' } do
      expect(function() placement[2] = value end):raises 'numbers_spec.lua:%d+: index 2: expected an integer of 32 bits, got'
      expect(function() problem:placement_by_unit(function() return value end) end):raises '.'
      expect(placement[2]):equals(1)
    end
    expect(function() placement[2] = nil end):raises 'numbers_spec.lua:%d+: index 2: expected an integer of 32 bits, got nil'
    expect(function() placement[4] = nil end):raises 'numbers_spec.lua:%d+: index 4 is outside 1 to 3'
    for _, value in ipairs { 2, -2 ^ 31, 2 ^ 31 - 1, -0 } do
      placement[2] = value
      expect(placement[2]):equals(value)
    end
  end)
  it('do so in loops that are compiled, too', function()
    local placement, written = problem:placement(), 0
    local ok = pcall(function()
      for i = 1, 2000 do
        placement[1] = i < 1990 and i or 1.25
        written = i
      end
    end)
    expect(ok):equals(false)
    expect(written):equals(1989)
    expect(placement[1]):equals(1989)
  end)
  it('and so do lists next to them, and the command line', function()
    local placement = problem:placement()
    for field, value in trinity.system.sorted_pairs { stage = { 1, 1.999, 1 }, order = { { 1, 2.5, 3 }, {} } } do
      expect(function() problem:evaluate { placement = placement, schedule = field == 'stage' and '1f1b' or 'order',
        [field] = value } end):raises 'entry 2: expected an integer, got'
    end
    for _, word in ipairs { '1.999', 'nan', '1e-3' } do
      trinity_says(('simulate --model alexnet --run none --placement 0,%s'):format(word), 2,
        "option '%-%-placement': entry 2: expected a device from 0 to 1, got '" .. word:gsub('%p', '%%%0'))
    end
  end)
end)

describe('rewards', function()
  local methods = { 'random', 'annealing', 'trinity', 'hierarchical', 'tapp', 'exhaustive' }
  it('that are not finite are refused with the place of their function', function()
    for _, reward in ipairs { 0 / 0, 1 / 0, -1 / 0 } do
      for _, name in ipairs(methods) do
        local problem = problem_of(chain(1e-3, 100, 6), { reward = function() return reward end })
        expect(function() trinity.methods[name](problem, quiet) end):raises
          'numbers_spec%.lua:%d+: the reward function returned [%a-]+, expected a finite number'
      end
    end
  end)
  it('of any finite size give a strategy, or an error that says what overflowed', function()
    for _, size in ipairs { 1e308, -1e308, 1e-320, 0 } do
      for _, name in ipairs(methods) do
        local problem = problem_of(chain(1e-3, 100, 6), { reward = function(m) return size * (1 + m.step_time_s) end })
        local found = trinity.methods[name](problem, quiet)
        expect(found.reward):equals(size * (1 + found.metrics.step_time_s))
      end
      local problem = problem_of(chain(1e-3, 100, 6), { reward = function(m) return size * (1 + m.step_time_s) end })
      local ok, message = pcall(trinity.methods.post, problem, quiet)
      if not ok then expect(message):matches 'numbers that are not finite' end
    end
  end)
end)

describe('a policy that diverges', function()
  local problem = problem_of(chain(1e-3, 100, 6))
  it('ends with the best so far, or with an error that says so', function()
    local function tried(name, call)
      local ok, found = pcall(call)
      if ok then
        expect(found.reward == found.reward and found.metrics.feasible):equals(true)
      elseif not tostring(found):find 'diverged' and not tostring(found):find 'not finite' then
        error(name .. ': ' .. tostring(found))
      else
        expect(found):matches 'the best so far %('
      end
    end
    for _, name in ipairs { 'post', 'placeto', 'doppler', 'hierarchical', 'colocrl', 'tapp' } do
      tried(name, function() return trinity.methods[name](problem, { evaluations = 60, learning_rate = 1000, quiet = true }) end)
    end
    for _, name in ipairs { 'ppo', 'reinforce', 'cross_entropy' } do
      tried(name, function()
        local options = trinity.search.options(name, {}, { evaluations = 60, quiet = true })
        return trinity.search.run(name, problem, options, function(search)
          local env = trinity.env(problem, { actions = 'joint', num_envs = 4, search = search })
          trinity.learn[name](env, trinity.learn.scorer(env, { hidden = 4 }), { total_timesteps = 60, num_steps = 1,
            learning_rate = 1000 })
        end)
      end)
    end
    tried('trinity', function() return trinity.methods.trinity(problem, { evaluations = 100, policy = 1, patience = 100,
      samples = 4, groups = 3, hidden = 4, learning_rate = 10, quiet = true }) end)
  end)
end)
