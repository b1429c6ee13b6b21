-- The neural baselines on a problem whose optimum is known (tests/lua/learn/learn_spec.lua tries all its placements).

local core = require 'trinity.core'
local trinity = require 'trinity'
local two_chains = dofile(root .. '/tests/lua/support/two_chains.lua')

with_torch()

local optimum_s = two_chains.length * 1e-3

local cases = {
  post = { evaluations = 960, learning_rate = 3e-2 },
  colocrl = { evaluations = 960, hidden = 32 },
  hierarchical = { evaluations = 960, hidden = 32, entropy_weight = 1e-3 },
  placeto = { evaluations = 2016, hidden = 16, samples = 8 },
  doppler = { evaluations = 960, hidden = 16 },
}
local episode_steps = { placeto = 2 * two_chains.length } -- a batch of the others is a whole placement

local function run(name, problem, seed, changed)
  return trinity.methods[name](problem, merged({ seed = seed, quiet = true }, cases[name], changed or {}))
end

-- Geometric means of the step times, s, of the first and the last placements that were finished.
local function first_and_last_s(name, found, sign)
  local steps = episode_steps[name] or 1
  local start = steps > 1 and 1 or 0 -- the placement that episodes begin with
  local last = start + math.floor((#found.curve - start) / steps) * steps
  local function mean_s(i) return math.exp(-sign * found.curve[i].mean_reward) end
  return mean_s(start + steps), mean_s(last)
end

describe('neural methods', function()
  local problem, negated = two_chains.problem(1), two_chains.problem(-1)
  for name in trinity.system.sorted_pairs(cases) do
    it(name .. ' learns to reach the optimum, for 3 seeds or one', function()
      for seed = 1, math.min(3, draws(10)) do
        local found = run(name, problem, seed)
        local first, last = first_and_last_s(name, found, 1)
        expect(found.metrics.step_time_s):near(optimum_s, 1e-9)
        expect(last):below(1.25 * optimum_s)
        expect(last):below(0.8 * first)
      end
    end)
    it(name .. ' learns the opposite of a negated reward', function()
      local published = name == 'colocrl' or name == 'hierarchical'
      local found = run(name, negated, 1, published and { published_reward = false } or nil)
      local _, last = first_and_last_s(name, found, -1)
      expect(2 * optimum_s):below(last)
    end)
    it(name .. ' keeps to its budget and seed, on the smallest graph too', function()
      local a, b = run(name, problem, 4, { evaluations = 70 }), run(name, problem, 4, { evaluations = 70 })
      expect(a.evaluations <= 70 and a.evaluations > 60):truthy()
      for i = 1, #a.curve do expect(a.curve[i].mean_reward):equals(b.curve[i].mean_reward) end
      local builder = trinity.graph.new { name = 'one' }
      builder:add_operator { name = 'a', time_s = 1e-3 }
      local one = trinity.problem { graph = builder:build(), cluster = trinity.cluster 'p100x2' }
      expect(run(name, one, 1, { evaluations = 20 }).metrics.step_time_s):near(1e-3, 1e-9)
    end)
    if name == 'hierarchical' then
      it('hierarchical distinguishes its units by 20 walks from each', function()
        local features, walks = core.features, nil
        core.features = function(handle, options)
          walks = options.node2vec and options.node2vec.walks_per_node or walks
          return features(handle, options)
        end
        local ok, message = pcall(run, name, problem, 1, { evaluations = 10 })
        core.features = features
        expect(ok or message):equals(true)
        expect(walks):equals(20)
      end)
    end
    it(name .. ' refuses options out of range', function()
      expect(function() run(name, problem, 1, { groups = 15 }) end):raises(
        ("methods%%.%s: option 'groups': expected an integer from 0 to 14, got number 15"):format(name))
      expect(function() run(name, problem, 1, { learning_rate = 0 }) end):raises "option 'learning_rate': expected a number above 0"
      expect(function() run(name, problem, 1, { learning_rat = 1 }) end):raises "did you mean 'learning_rate'%?"
    end)
  end
  it('are known with their sources', function()
    for name in trinity.system.sorted_pairs(cases) do
      expect(trinity.methods.info(name).source):matches ' et al%. 20%d%d$'
      expect(trinity.methods.info(name).budget):equals(true)
    end
  end)
end)
