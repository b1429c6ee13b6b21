-- The study of rankers and policies: fronts, weights trained without a family, and PPO with an advantage for every action
-- on problems whose optimum is known and which a greedy scheduler does not solve.

local trinity = require 'trinity'
local comparison = require 'studies.policy.comparison'
local fronts = require 'studies.policy.move_fronts'
local known = require 'studies.policy.known_optima'

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
