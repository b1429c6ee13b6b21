-- Where nothing fits into memory: every method says so, returns the least infeasible plan that it met, or why it has
-- none, and what limits it; so do comparisons, the commands and the folder of a run.

local core = require 'trinity.core'
local graphs = dofile(root .. '/tests/lua/support/graphs.lua')
local json = require 'trinity.base.json'
local trinity = require 'trinity'

--- Operators in a row, of 10 GB by default, so that with three of them one of two devices has two.
local function heavy(units, bytes, reward)
  return trinity.problem { graph = graphs.heavy(units, bytes), cluster = trinity.cluster 'p100x2', reward = reward }
end

local limits = "device 'gpu[01]' needs [23]0 GB, [%d.]+ GB %(%d+ bytes%) more than the 16.6 GB that a step may use"

local names = library_methods()

-- Those that look for what is best, and so for what is nearest to fitting.
local searching = { annealing = true, best = true, exhaustive = true, local_search = true, mcmc = true, random = true,
  trinity = true, post = true, placeto = true, doppler = true, hierarchical = true, colocrl = true }

describe('a problem that nothing fits', function()
  local problem = heavy(3)
  for _, name in ipairs(names) do
    it('is reported by ' .. name, function()
      local found, reason = trinity.methods[name](problem, { evaluations = 20, quiet = true })
      if not found then
        expect(reason):matches "the largest of 2 devices, 'gpu0', has 16642998272 bytes for a step"
        return
      end
      expect(found.metrics.feasible):equals(false)
      local why = found:infeasibility()
      expect(why.text):matches('^' .. limits)
      expect(why.needed_bytes - why.capacity_bytes):equals(why.over_bytes)
      expect(why.over_bytes):equals(found.metrics.excess_memory_bytes)
      expect(why.needed_bytes):equals(found.metrics:memory_bytes(why.device))
      expect(tostring(found)):matches('does not fit, .*' .. limits)
      if searching[name] then expect(why.needed_bytes):near(20e9, 1e5) end -- and what is copied
    end)
  end
  it('is reported on standard error, but not with `quiet`', function()
    local script = [[-e "local t = require 'trinity' local b = t.graph.new { name = 'g' } for i = 1, 3 do
      b:add_operator { name = 'o' .. i, time_s = 1, memory_bytes = 1e10 } end
      local p = t.problem { graph = b:build(), cluster = t.cluster 'p100x2' }
      print(t.methods.random(p, { evaluations = 9, quiet = %s }).metrics.feasible)"]]
    local _, loud = run_trinity(script:format 'false')
    expect(loud):matches('random found no strategy that fits; the least infeasible one: ' .. limits)
    local _, still = run_trinity(script:format 'true')
    expect(still):equals 'false\n'
  end)
end)

describe('the least infeasible plan', function()
  it('is the one with the least excess, whatever its reward', function()
    -- The reward prefers all on one device.
    local problem = heavy(5, 6e9, function(m) return m.peak_memory_bytes end)
    for _, name in ipairs { 'exhaustive', 'random', 'annealing' } do
      local found = trinity.methods[name](problem, { evaluations = 200, quiet = true })
      expect(found:infeasibility().needed_bytes):near(18e9, 1e5)
    end
  end)
  it('gives way to anything that fits', function()
    local problem = heavy(3)
    local small, large = problem:placement_by_unit(function(unit) return unit == 1 and 1 or 2 end), problem:placement()
    local near, far = problem:strategy(small), problem:strategy(large)
    expect(problem.better(near, far)):equals(true)
    expect(problem.better(far, near)):equals(false)
    local fits = heavy(2)
    local good = fits:strategy(fits:placement_by_unit(function(unit) return unit end))
    expect(good:infeasibility()):equals(nil)
    expect(fits.better(good, near)):equals(true)
    expect(fits.better(near, good)):equals(false)
  end)
  it('is the one that the ranks of a job take', function()
    local best = require('trinity.dist.ranks').best
    expect(best({ { 0, 5e9, -1 }, { 0, 2e9, -9 }, { 0, 3e9, -2 } }, 1)):equals(1)
    expect(best({ { 0, 5e9, -1 }, { 0, 0, 9 }, { 1, 0, -20 } }, 1)):equals(2)
    expect(best({ { 7, 1, 0, -3 }, { 7, 1, 0, -3 } }, 2)):equals(0)
  end)
  it('is named by a comparison, and by its summary and data', function()
    local comparison = trinity.compare(heavy(3), { 'single_device', 'm_etf', 'random' }, { quiet = true, evaluations = 50 })
    local sentence = 'the least infeasible, by random: ' .. limits
    expect(tostring(comparison)):matches('no method found a strategy that fits; ' .. sentence)
    expect(comparison:summary()):matches('none found a strategy that fits; ' .. sentence)
    expect(comparison:best()):equals(nil)
    local data = comparison:totable()
    expect(data.least_infeasible):equals 'random'
    expect(data.rows[3].runs[1].infeasibility.over_bytes):equals(comparison:find('random').metrics.excess_memory_bytes)
    expect(core.to_json(data)):matches '"least_infeasible"'
  end)
  it('is not named where something fits', function()
    local comparison = trinity.compare(heavy(2), { 'single_device', 'round_robin' }, { quiet = true })
    expect(tostring(comparison):find('least infeasible', 1, true)):equals(nil)
    expect(comparison:totable().least_infeasible):equals(nil)
  end)
end)

describe('the command search where nothing fits', function()
  local command = 'search --model vgg16 --batch_size 256 --cluster p100x2 --evaluations 40 --method '
  it('shows and saves the least infeasible strategy, and ends with status 1', function()
    local folder = temporary()
    local status, output = run_trinity(("%s round_robin --output_dir '%s' --quiet"):format(command, folder))
    expect(output):matches "fits +no: device 'gpu[01]' needs [%d.]+ GB, [%d.]+ MB %(%d+ bytes%) more than the"
    expect(output):matches 'saved '
    expect(status):equals(1)
    local saved = json.decode(core.read_file(folder .. '/strategy.json'))
    expect(tostring(saved.notes.feasible)):equals 'false'
  end)
  it('says what limits it in JSON, and in the folder of its run', function()
    local folder = temporary()
    local output = trinity_says(("%s round_robin --json --runs '%s' --run x --quiet"):format(command, folder), 1)
    local told = json.decode(output)
    expect(told.fits):equals(false)
    expect(told.infeasibility.over_bytes):equals(told.infeasibility.needed_bytes - told.infeasibility.capacity_bytes)
    local about = json.decode(core.read_file(folder .. '/x/searches/1/search.json'))
    expect(about.fits):equals(false)
    expect(about.infeasibility.text):equals(told.infeasibility.text)
  end)
end)
