-- PPO with an advantage for every action on problems whose optimum is known and which a greedy scheduler does not solve.

local trinity = require 'trinity'
local known = require 'trinity.methods.known_optima'
with_torch()

describe('known optima', function()
  it('are those of exhaustive search where it can say', function()
    for _, kind in ipairs(known.kinds) do
      local case = known.case(kind, kind == 'blocks' and 16 or 15)
      local best = trinity.methods.exhaustive(case.problem, { evaluations = 1e6, quiet = true })
      expect(best.metrics.step_time_s):near(case.optimum_s, 1e-9)
    end
  end)
  it('of trees and blocks are the bound by work, those of chains a transfer above it', function()
    for _, kind in ipairs(known.kinds) do
      local case = known.case(kind, 400)
      local above_s = case.optimum_s - case.problem:bounds().step_time_s
      if kind == 'chains' then expect(above_s > 1e-3 and above_s < 2e-3):equals(true) else expect(above_s):near(0, 1e-9) end
    end
  end)
  for _, kind in ipairs(known.kinds) do
    it(('of %s with 100 units are learned from nothing, neither drawn nor built greedily'):format(kind), function()
      local case, most = known.case(kind, 100), 1500
      expect(known.constructed(case, 'etf')):below(0.5)
      local gain, count = known.learn(case, 2, most, 0.95)
      expect(gain >= 0.95 and count <= most):equals(true)
      expect((known.learn(case, 2, most, 0.95, true))):below(0.8)
    end)
  end
end)
