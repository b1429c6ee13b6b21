-- Searches whose moves a ranker chooses: functions of a script, weights, their training, the commands.

local trinity = require 'trinity'
local core = require 'trinity.core'

local function problem_of(reward)
  return trinity.problem { graph = trinity.model('vgg16', { batch_size = 8 }), cluster = trinity.cluster 'p100x4',
    reward = reward }
end
local problem = problem_of()

local function annealed(rank, own)
  return trinity.methods.annealing(problem, merged({ evaluations = 120, quiet = true, rank = rank }, own))
end

local function zeros(candidates)
  local scores = {}
  for i = 1, candidates.count do scores[i] = 0 end
  return scores
end

--- Expects two searches to have come to the same.
local function expect_same(found, expected)
  expect(found.metrics.step_time_s):equals(expected.metrics.step_time_s)
  for op = 1, #expected.placement do expect(found.placement[op]):equals(expected.placement[op]) end
end

local function weights()
  local path = temporary '.safetensors'
  trinity.search.rankers.new({ hidden = { 4 }, seed = 3 }):save(path)
  return path
end

describe('a rank function', function()
  it('sees candidates by feature and chooses among them', function()
    local asked, most = 0, 0
    local found = annealed(function(candidates)
      asked, most = asked + 1, math.max(most, candidates.count)
      local scores = {}
      for i = 1, candidates.count do
        scores[i] = candidates:get(i, 'transfer_blame') - candidates:get(i, 'exposed_added')
        expect(candidates:get(i, 'units_moved') >= 1):equals(true)
      end
      return scores
    end)
    expect(asked > 20):equals(true)
    expect(most):equals(10)
    expect(found.ranking.trials <= asked and found.ranking.trials > 60):equals(true) -- some choices are known already
    expect(found.evaluations):equals(120)
  end)
  it('sees a state that was looked at as often as is said', function()
    local function looks(every)
      local ranking = annealed(zeros, { look_every = every }).ranking
      return 120 - 1 - ranking.trials - ranking.plain_trials -- without the start
    end
    local often, seldom = looks(5), looks(40)
    expect(seldom >= 1 and seldom <= 3):equals(true)
    expect(often > seldom and often <= 24):equals(true)
    expect(looks(1000)):equals(1)
  end)
  it('decides: a search that takes the worst ends worse than one that takes the best', function()
    local scored = {}
    for i, sign in ipairs { 1, -1 } do
      local sum = 0
      for seed = 1, 3 do
        local found = annealed(function(candidates)
          local scores = {}
          for c = 1, candidates.count do
            scores[c] = sign * (candidates:get(c, 'computation_blame') + candidates:get(c, 'queue_blame')
              - 2 * candidates:get(c, 'collision_there') - 2 * candidates:get(c, 'exposed_added'))
          end
          return scores
        end, { seed = seed, sharpness = 5, plain_one_in = 1000 })
        sum = sum + found.metrics.step_time_s
      end
      scored[i] = sum
    end
    expect(scored[1]):below(scored[2])
  end)
end)

it('what a rank, moves or accept function gives wrongly is refused in a sentence', function()
  local function scores(change)
    return function(c)
      local list = zeros(c)
      list[1] = change
      return list
    end
  end
  local here = '^[^\n]*ranked_spec.lua:%d+: '
  for _, case in ipairs {
    { 'rank: expected a list of %d+ scores, got 1', { rank = function() return { 1 } end } },
    { 'rank: expected a list of %d+ scores, got nil', { rank = function() end } },
    { here .. "rank: score 1: expected a finite number, got string 'x'", { rank = scores 'x' } },
    { 'rank: score 1: expected a finite number, got number %-?nan', { rank = scores(0 / 0) } },
    { "candidates:get: argument 2 %('name'%): unknown feature 'blame'", { rank = function(c) return { c:get(1, 'blame') } end } },
    { 'my own', { rank = function() error 'my own' end } },
    { "option 'rank': expected true, false, a file of weights, a ranker or a function", { rank = 3 } },
    { here .. 'moves: expected a list of units, got number 3', { moves = function() return 3 end } },
    { ('moves: unit 2: expected an integer from 1 to %d, got number 0'):format(problem.graph.units),
      { moves = function() return { 5, 0 }, 1 end } },
    { 'moves: unit 1: expected an integer', { moves = function() return { 1.5 }, 1 end } },
    { 'moves: unit 3: expected different units, got 2 twice', { moves = function() return { 2, 3, 2 }, 1 end } },
    { 'moves: expected units and a device from 1 to 4, got device number 5', { moves = function() return { 2 }, 5 end } },
    { 'moves: expected units and a device from 1 to 4, got device nil', { moves = function() return { 2 } end } },
    { "option 'moves': expected a function", { moves = 3 } },
    { here .. 'accept: expected a finite number, got nil', { accept = function() end } },
    { 'accept: expected a finite number', { accept = function() return 0 / 0 end } },
    { "option 'accept': expected a function", { accept = 3 } } } do
    expect(function() annealed(case[2].rank or false, case[2]) end):raises(case[1])
  end
end)

describe('a function that gives moves', function()
  local units, devices = problem.graph.units, 4
  local function one(state) return { state.unit }, state.random:integer(devices) end
  -- Requests to a search of a seed, and its results.
  local function course(seed)
    local list = {}
    local found = annealed(false, { seed = seed, moves = function(state)
      local units_moved, device = one(state)
      list[#list + 1] = ('%d>%d'):format(units_moved[1], device)
      return units_moved, device
    end })
    for op = 1, #found.placement do list[#list + 1] = found.placement[op] end
    return table.concat(list, ' ')
  end
  it('has its units moved to its device, and nothing else', function()
    local expected, asked = {}, 0
    for unit = 1, units do expected[unit] = 1 end
    annealed(false, { batch = 1, accept = function() return 1e9 end, moves = function(state) -- every move is made
      for unit = 1, units do expect(state.device_of[unit]):equals(expected[unit]) end
      local list, device = { state.unit, state.unit % units + 1 }, state.random:integer(devices)
      for _, unit in ipairs(list) do expected[unit] = device end
      asked = asked + 1
      return list, device
    end })
    expect(asked > 60):equals(true)
  end)
  it('is the same search from the same seed, and another from another', function()
    expect(course(3)):equals(course(3))
    expect(course(3) ~= course(4)):equals(true)
  end)
  it('that gives nothing, or no units, leaves the search as it is, with a ranker, too', function()
    for _, rank in ipairs { false, true } do
      local plain = annealed(rank, { seed = 3 })
      for _, nothing in ipairs { function() end, function() return {} end } do
        local same = annealed(rank, { seed = 3, moves = nothing })
        expect_same(same, plain)
      end
    end
  end)
  it('gives a rank function its candidates, which says what they move', function()
    local seen = 0
    annealed(function(candidates)
      local scores = {}
      for i = 1, candidates.count do
        local list, device, kind = candidates:move(i)
        expect(#list):equals(2)
        expect(kind):equals 'group'
        expect(candidates.device_of[list[1]] ~= device or candidates.device_of[list[2]] ~= device):equals(true)
        expect(2 ^ candidates:get(i, 'units_moved') <= 3.001):equals(true)
        scores[i], seen = -list[1], seen + 1
      end
      expect(function() candidates:move(candidates.count + 1) end):raises 'candidates:move'
      return scores
    end, { plain_one_in = 1000, moves = function(state)
      return { state.unit, state.unit % units + 1 }, state.random:integer(devices)
    end })
    expect(seen > 100):equals(true)
  end)
  it('is what local search takes its other moves from', function()
    -- Worth something is one placement alone, which moves of annealing's own do not reach.
    local half, seen, unit_of = {}, {}, problem.graph.unit_of
    for unit = 2, units, 2 do half[#half + 1] = unit end
    local whole = problem_of(function(_, strategy)
      for op = 1, #strategy.placement do
        if strategy.placement[op] ~= (unit_of[op] % 2 == 0 and 3 or 1) then return 0 end
      end
      return 1
    end)
    local function search(moves)
      return trinity.methods.local_search(whole, { evaluations = 40, seed = 2, quiet = true, moves = moves }).reward
    end
    expect(search(function(state)
      seen[state.device_of[1]] = true
      return half, 3
    end)):equals(1)
    expect(search()):equals(0)
    expect(seen[1]):equals(true)
    local plain = trinity.methods.local_search(problem, { evaluations = 90, quiet = true })
    local same = trinity.methods.local_search(problem, { evaluations = 90, quiet = true, moves = function() end })
    expect_same(same, plain)
  end)
  it('refines in trinity and best, where it leaves all else in its place', function()
    local large = trinity.problem { graph = trinity.model('resnet50', { batch_size = 8 }), cluster = trinity.cluster 'p100x4' }
    local start, unit_of = large:placement(), large.graph.unit_of
    for op = 1, #start do start[op] = 1 + unit_of[op] % 4 end
    local asked
    local function search(method, of, budget)
      asked = 0
      return trinity.methods[method](of, merged({ warm_start = { start }, quiet = true, moves = function(state)
        asked = asked + 1
        return { state.random:integer(20) }, state.random:integer(4)
      end }, budget))
    end
    for _, method in ipairs { 'trinity', 'best' } do
      for _, budget in ipairs { { evaluations = 150 }, { seconds = 0.2 } } do
        local found = search(method, large, budget)
        expect(asked > 30):equals(true)
        for op = 1, #start do
          if unit_of[op] > 20 then expect(found.placement[op]):equals(start[op]) end
        end
      end
      search(method, large, { evaluations = 400 }) -- best races against a partition
      expect(asked > 200):equals(true)
      search(method, problem, { evaluations = 40, warm_start = { 'm_etf' } }) -- so few units that it is local search
      expect(asked > 5):equals(true)
    end
  end)
  it('is refused where nothing is refined', function()
    expect(function()
      trinity.methods.trinity(problem, { evaluations = 40, quiet = true, preset = 'paper', moves = one })
    end):raises "option 'moves': nothing is refined"
    expect(function() trinity.methods.mcmc(problem, { evaluations = 40, quiet = true, moves = one }) end):raises 'moves'
  end)
end)

describe('an accept function', function()
  local function metropolis(progress, drawn) return -2 * (0.01 / 2) ^ progress * math.log(1 - drawn) end
  it('by temperature is the same search as without, with a rank function, too', function()
    for _, rank in ipairs { false, zeros } do
      local plain, same = annealed(rank, { seed = 3 }), annealed(rank, { seed = 3, accept = metropolis })
      expect_same(same, plain)
    end
  end)
  it('decides: accepting everything ends worse than accepting nothing worse; it sees progress and even numbers', function()
    local greedy, wild, drawn_sum, count = 0, 0, 0, 0
    for seed = 1, 3 do
      local last = 0
      greedy = greedy + annealed(false, { seed = seed, accept = function() return 0 end }).metrics.step_time_s
      wild = wild + annealed(false, { seed = seed, accept = function(progress, drawn)
        expect(progress >= last and progress <= 1 and drawn >= 0 and drawn < 1):equals(true)
        last, drawn_sum, count = progress, drawn_sum + drawn, count + 1
        return 1e9
      end }).metrics.step_time_s
      expect(last > 0.8):equals(true)
    end
    expect(greedy):below(wild)
    expect(drawn_sum / count):near(0.5, 0.1)
  end)
end)

describe('weights', function()
  it('search to the same bytes with the same seed, by name, as a ranker and as what comes with trinity', function()
    local path = weights()
    local found = annealed(path, { seed = 2 })
    expect(annealed(trinity.search.rankers.load(path), { seed = 2 }).metrics.step_time_s):equals(found.metrics.step_time_s)
    expect(annealed(true, { seed = 2 }).metrics.step_time_s):equals(
      annealed(trinity.search.rankers.shipped, { seed = 2 }).metrics.step_time_s)
  end)
  it('come with what made them, and fit in a megabyte', function()
    local ranker = trinity.search.rankers.load(trinity.search.rankers.shipped)
    for _, name in ipairs { 'command', 'trained_on', 'seed', 'rounds', 'hours' } do
      expect(ranker.notes[name] ~= nil):equals(true)
    end
    expect(#core.read_file(trinity.search.rankers.shipped)):below(1e6)
  end)
  it('choose in method trinity, which says what they were worth; best has none', function()
    local graph = trinity.model('inception_v3', { batch_size = 8 })
    local p = trinity.problem { graph = graph, cluster = trinity.cluster 'p100x2' }
    local found = trinity.methods.trinity(p, { evaluations = 300, quiet = true })
    expect(found.ranking.trials > 100):equals(true)
    expect(found:found_by()):equals 'trinity'
    expect(found.updates):equals(nil)
    local without = trinity.methods.trinity(p, { evaluations = 300, quiet = true, rank = false })
    expect(without:found_by()):equals 'warm start + annealing'
    expect(without.metrics.step_time_s):equals(
      trinity.methods.best(p, { evaluations = 300, quiet = true }).metrics.step_time_s)
    expect(trinity.methods.best(p, { evaluations = 60, quiet = true }).ranking):equals(nil)
  end)
end)

describe('the commands', function()
  local save = temporary '.safetensors'
  local common = ('--graphs vgg16:8 --clusters p100x2,p100x4 --hidden 4 --seed 2 --output %s'):format(save)
  local function run(arguments)
    local status, output = run_trinity(arguments)
    return output, status
  end
  it('train refuses another training than that which it is to go on from', function()
    run('train --rounds 1 ' .. common)
    trinity_says('train --rounds 6 --resume ' .. common:gsub('%-%-seed 2', '--seed 3'), 1,
      'a training with seed 2 on 2 problems, expected seed 3 and 2 problems')
    trinity_says('train --graphs vgg16:8:what:else', 2, 'expected MODEL or MODEL:BATCH')
  end)
  it('train learns as its options say: by imitation, REINFORCE, PPO alone', function()
    local output = run('train --rounds 3 --imitation 1 --clip 0 ' .. common)
    expect(output):matches '1 +imitate.*\n2 +reinforce.*\n3 +reinforce'
    expect(trinity.search.rankers.load(save).notes.command):matches '%-%-imitation 1 %-%-clip 0$'
    expect(run('train --rounds 1 --imitation 0 ' .. common)):matches '\n1 +ppo'
    trinity_says('train --clip 2 ' .. common, 2, "option '%-%-clip'")
  end)
  it('search says how many of the improvements came from ranked moves', function()
    local output, status = run 'search --model inception_v3 --batch_size 8 --cluster p100x2 --method trinity --evaluations 400 --seed 5'
    expect(status):equals(0)
    local p = trinity.problem { graph = trinity.model('inception_v3', { batch_size = 8 }), cluster = trinity.cluster 'p100x2' }
    local r = trinity.methods.trinity(p, { evaluations = 400, quiet = true, seed = 5 }).ranking
    expect(r.improving > r.plain_improving and r.plain_improving > 0):equals(true)
    local text = ('  %.1f %% of %d improved, of %d unranked moves %.1f %%; %.0f %% of the improvements, '):format(
      100 * r.improving / r.trials, r.trials, r.plain_trials, 100 * r.plain_improving / r.plain_trials,
      100 * r.improving / (r.improving + r.plain_improving))
    expect(output:find(text, 1, true) and output or text):matches 'ranked moves .* of the improvements, %d+ %% of the time'
  end)
  it('train ends after --minutes, and refuses what is none', function()
    local begun = core.clock_s()
    local output, status = run('train --minutes 0.01 ' .. common)
    expect(status):equals(0)
    expect(output):matches 'trained on 2 problems; 0%.01 minutes'
    expect(core.clock_s() - begun):below(30) -- of the 3 minutes that it takes without
    trinity_says('train --minutes=-1', 2, "option '%-%-minutes': expected a number from 0, got %-1")
  end)
  it_all('train shows the newest 50 rounds', function()
    local output, status = run('train --rounds 52 --graphs alexnet:8 --clusters p100x2 --hidden 4 --output ' .. temporary '.safetensors')
    expect(status):equals(0)
    expect(output):matches '\nthe newest 50 rounds; metrics%.jsonl in the run folder has all\nround [^\n]+\n[- ]*\n*3 +imitate'
    expect(output):matches '\n52 +ppo'
  end)
end)

describe('the memory of a training', function()
  -- Read by the command before its script: appends the largest resident memory so far, after every round.
  local watch = [[
    local state = require 'trinity.runs.state'
    local log = state.log
    function state.log(fields)
      log(fields)
      if not fields.round then return end
      collectgarbage()
      local file = assert(io.open('peaks', 'a'))
      file:write(fields.round, ' ', io.open '/proc/self/status':read '*a':match 'VmHWM:%s+(%d+)', '\n')
      file:close()
    end]]
  it('is the same after 3 and after 12 rounds, by any reward, where a round learns from 10 MB', function()
    for _, reward in ipairs { 'step_time', 'mdpe' } do
      local folder, peaks = temporary(), {}
      core.write_file(folder .. '/watch.lua', watch)
      output_of(("cd '%s' && '%s' -e 'dofile \"watch.lua\"' train --graphs vgg16:8 --clusters p100x2,p100x4 --hidden 4 --rounds 12 "
        .. '--reward %s --output w --run r 2>&1'):format(folder, program, reward))
      for round, kb in core.read_file(folder .. '/peaks'):gmatch '(%d+) (%d+)' do peaks[tonumber(round)] = tonumber(kb) / 1024 end
      expect(#peaks):equals(12)
      expect(peaks[3]):below(150)
      expect(peaks[12] - peaks[3]):below(4) -- MB; measured 0.1
    end
  end)
  it('has the same number of episodes in a round, whatever the number of problems', function()
    local training, asked = require 'trinity.methods.move_training', {}
    local trainer = { set = function() end, options = { clip = 0.2 } }
    for _, kind in ipairs { 'imitate', 'reinforce' } do
      trainer[kind] = function(_, episodes) asked[#asked + 1] = ('%d'):format(episodes) end
    end
    for _, problems in ipairs { 8, 32, 33, 48, 1000 } do
      training.round(trainer, 1, problems)
      training.round(trainer, 5, problems)
    end
    expect(table.concat(asked, ' ')):equals '24 16 96 64 96 66 96 96 96 96'
  end)
end)

describe('a trainer by another reward', function()
  local reward = trinity.rewards.mdpe { alpha = 0.3, beta = 0.1, gamma = 0.6 }
  local p = problem_of(reward)
  local start = trinity.methods.m_etf(p, { quiet = true }).placement
  local function trained(seed)
    local ranker = trinity.search.rankers.load(trinity.search.rankers.shipped)
    local trainer = trinity.search.rankers.trainer(ranker, { seed = seed, evaluations = 200 })
    trainer:add(p, { start, p:placement() })
    local reports = { trainer:imitate(2), trainer:reinforce(2) }
    local path = temporary '.safetensors'
    ranker:save(path, {})
    return core.read_file(path), reports
  end
  it('learns from episodes through it, to the same bytes with the same seed', function()
    local bytes, reports = trained(1)
    for _, report in ipairs(reports) do
      expect(report.trials > 200 and report.improving > 0):equals(true)
      expect(report.best_share <= 1):equals(true)
    end
    expect(trained(1)):equals(bytes)
    expect(trained(2) ~= bytes):equals(true)
  end)
end)

describe('a ranker with memory features', function()
  local training = require 'trinity.methods.move_training'
  local start = trinity.methods.m_etf(problem, { quiet = true }).placement
  local function reward(share) return training.memory_reward(problem:evaluate(start), share) end
  it('reads how much of the reward is memory, whatever its form', function()
    local function shares_of(p)
      local seen = {}
      trinity.methods.annealing(p, { evaluations = 60, quiet = true, starts = { start }, rank = function(candidates)
        for i = 1, candidates.count do seen[('%.3f'):format(candidates:get(i, 'memory_share'))] = true end
        return zeros(candidates)
      end })
      return table.concat(require('trinity.base.util').sorted_keys(seen), ' ')
    end
    expect(shares_of(problem)):equals '0.000'
    for _, share in ipairs { 0, 0.25, 0.9 } do
      expect(shares_of(problem_of(reward(share)))):equals(('%.3f'):format(share))
    end
    expect(shares_of(problem_of(function(m) return -m.peak_memory_bytes end))):equals '1.000'
    expect(shares_of(problem_of(function(m, plan)
      return -math.log(m.step_time_s) - math.log(m.peak_memory_bytes) + 0 * #plan.placement
    end))):equals '0.500'
  end)
  it('goes on from a training of its own kind alone', function()
    local path = temporary()
    local function trainer(memory_features)
      local made = trinity.search.rankers.trainer(trinity.search.rankers.new { hidden = { 8 }, seed = 2,
        memory_features = memory_features })
      made:add(problem, { start })
      return made
    end
    trainer(true):save(path)
    expect(function() trainer(false):resume(path) end):raises 'with the same features'
  end)
  it('is what train --memory-features --reward front makes', function()
    local save = temporary '.safetensors'
    local status, output = run_trinity(('train --graphs vgg16:8 --clusters p100x2 --rounds 1 --memory-features --reward front '
      .. '--evaluations 60 --output %s'):format(save))
    expect(status):equals(0)
    expect(output):matches '2593 weights'
    local ranker = trinity.search.rankers.load(save)
    expect(ranker.memory_features):equals(true)
    expect(ranker.notes.command):matches '%-%-reward front %-%-memory%-features %-%-evaluations 60$'
    status, output = run_trinity(('train --memory-features --start %s'):format(trinity.search.rankers.shipped))
    expect(status):equals(2)
    expect(output):matches "option '%-%-memory%-features': the weights of %-%-start take none"
  end)
end)
