-- The study of rankers and policies: fronts, weights trained without a family, and PPO with an advantage for every action
-- on problems whose optimum is known and which a greedy scheduler does not solve.

local trinity = require 'trinity'
local bayesian = require 'studies.policy.bayesian'
local comparison = require 'studies.policy.comparison'
local executed = require 'studies.policy.executed'
local fronts = require 'studies.policy.move_fronts'
local known = require 'studies.policy.known_optima'
local util = require 'trinity.base.util'

describe('fronts', function()
  local problem = trinity.problem { graph = trinity.model('vgg16', { batch_size = 8 }), cluster = trinity.cluster 'p100x4' }
  local case = { problem = problem, starts = { { placement = trinity.methods.m_etf(problem, { quiet = true }).placement } } }
  it('have the area that their best points take', function()
    expect(fronts.area {}):equals(0)
    expect(fronts.area { { 0.5, 0.5 }, { 0.75, 0.75 }, { 2, 0 } }):near(0.25, 1e-15)
    expect(fronts.area { { 0.75, 0.25 }, { 0.25, 0.75 } }):near(0.25 * 0.75 + 0.75 * 0.25 - 0.25 * 0.25, 1e-15)
  end)
  it('grow with the budget, and are the same from the same seed', function()
    local few, more = fronts.run('trinity', case, { evaluations = 20 }, 1, true), fronts.run('trinity', case, { evaluations = 120 }, 1, true)
    expect(few):below(more)
    expect(fronts.run('trinity', case, { evaluations = 20 }, 1, true)):equals(few)
  end)
  it('take a ranker with memory features', function()
    local ranker = trinity.search.rankers.new { hidden = { 4 }, seed = 3, memory_features = true }
    local area = fronts.run('trinity', case, { evaluations = 60 }, 1, ranker)
    expect(area > 0 and area < 1):equals(true)
  end)
end)

describe('searches that the study compares with', function()
  local case = comparison.cases('vgg16:8', 'p100x4')[1]
  local function step_time_s(rank, seed)
    return (comparison.run('trinity', case, { evaluations = 30 }, seed, rank))
  end
  it('have an oracle that takes the best of all candidates', function()
    local oracle = comparison.oracle(case.problem)
    local function rank(candidates)
      local scores, trials = oracle(candidates), {}
      for i = 1, candidates.count do
        local units, device = candidates:move(i)
        local placement = case.problem:placement_by_unit(function(unit)
          for _, moved in ipairs(units) do if moved == unit then return device end end
          return candidates.device_of[unit]
        end)
        trials[i] = case.problem:evaluate(placement).step_time_s
      end
      local best, least = math.max(unpack(scores)), math.min(unpack(trials))
      expect(best):equals(0)
      for i = 1, candidates.count do expect(scores[i] == best):equals(trials[i] == least) end
      return scores
    end
    expect(step_time_s(rank, 1)):equals(step_time_s(oracle, 1))
    expect(step_time_s(oracle, 1) <= step_time_s(comparison.uniform, 1)):truthy()
  end)
  it('have Bayesian optimisation, which keeps to its budget and is the same from the same seed', function()
    local function run(seed)
      return bayesian(case.problem, { start = case.starts[1].placement, evaluations = 30, seed = seed })
    end
    local found = run(1)
    expect(found.evaluations):equals(30)
    expect(found.metrics.step_time_s):below(case.starts[1].step_time_s)
    expect(table.concat(run(1).placement:totable(), ' ')):equals(table.concat(found.placement:totable(), ' '))
  end)
end)

describe('the command policy', function()
  it('says what weights were trained on and how they do', function()
    local save = temporary '.safetensors'
    trinity_says(('train --graphs vgg16:8 --clusters p100x2,p100x4 --hidden 4 --rounds 1 --output %s'):format(save), 0)
    trinity_says(('study policy show %s --graphs vgg16:8 --clusters p100x2,p100x4 --evaluations 60 --seeds 2'):format(save), 0,
      'trained_on +vgg16:8 on p100x2, vgg16:8 on p100x4', 'vgg16:8 on p100x4 %(trained on%)', 'over annealing: %d%.%d%d%d, 95 %%')
  end)
  it('refuses what it does not know before it trains anything', function()
    trinity_says('study policy study --families nasnets', 2,
      "option '%-%-families': no family 'nasnets' %(known: cells, recurrent, images, attention%)")
    local output = trinity_says('study policy front no_file.safetensors --memory-features', 1, 'no_file%.safetensors: cannot read')
    expect(output:find 'round 1'):equals(nil)
    trinity_says('study policy shwo x', 2, 'expected show FILE')
  end)
  it('has cases of layers and of TensorFlow\'s operations', function()
    local cases = comparison.cases('alexnet:8,alexnet@tensorflow:8', 'p100x2')
    expect(cases[1].problem.graph.operators):below(cases[2].problem.graph.operators)
    expect(cases[2].label):equals 'alexnet@tensorflow:8 on p100x2'
  end)
end)

with_torch()

describe('searches by executed steps', function()
  local network = { text = 'rnnlm:1:sequence=3:hidden=16:vocabulary=40' }
  local options = { devices = { 'cpu:0', 'cpu:1' }, evaluations = 3, steps = 1, rounds = 2, seed = 1 }
  local function names_of(row) return table.concat(util.map(row.entries, function(entry) return entry.name end), ' ') end
  it('give every method the same executions, and pairs of rounds', function()
    local row = executed.row(network, comparison.uniform, options, function() end)
    expect(names_of(row)):equals('start start again policy random moves annealing local_search bayesian simulated '
      .. 'policy, screened annealing, screened')
    expect(row.entries[1].ratio == 1 and row.entries[1].p == 1):truthy()
    for i, entry in ipairs(row.heuristics) do
      expect(entry.executed_s >= row.heuristics[math.max(1, i - 1)].executed_s):truthy()
    end
  end)
end)

describe('known optima', function()
  it('equal exhaustive search where that is possible', function()
    for _, kind in ipairs(known.kinds) do
      local case = known.case(kind, kind == 'blocks' and 16 or 15)
      local best = trinity.methods.exhaustive(case.problem, { evaluations = 1e6, quiet = true })
      expect(best.metrics.step_time_s):near(case.optimum_s, 1e-9)
    end
  end)
  it('of trees and blocks equal the bound by work, chains are one transfer above it', function()
    for _, kind in ipairs(known.kinds) do
      local case = known.case(kind, 400)
      local above_s = case.optimum_s - case.problem:bounds().step_time_s
      if kind == 'chains' then expect(above_s > 1e-3 and above_s < 2e-3):equals(true) else expect(above_s):near(0, 1e-9) end
    end
  end)
  for _, kind in ipairs(known.kinds) do
    it(('of %s with 100 units are learned from nothing, neither sampled nor built greedily'):format(kind), function()
      local case, most = known.case(kind, 100), 1500
      expect(known.constructed(case, 'etf')):below(0.5)
      local gain, count = known.learn(case, 2, most, 0.95)
      expect(gain >= 0.95 and count <= most):equals(true)
      expect((known.learn(case, 2, most, 0.95, true))):below(0.8)
    end)
  end
end)
