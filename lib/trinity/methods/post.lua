-- Post (Gao, Chen, Li 2018; manual/papers.md "Post"): independent categorical distributions over groups, no network.
-- PPO learns from every few placements, cross-entropy from the best of a longer stretch of them.

local learner = require 'trinity.learn.learner'
local policies = require 'trinity.learn.policies'
local search = require 'trinity.search'
local tensor = require 'trinity.nn.tensor'

local defaults = { samples = 12, epochs = 4, clip = 0.2, learning_rate = 5e-2, entropy_weight = 1e-2, gradient_norm = 1,
  baseline_n = 19, normalise_advantage = true, elite = 0.1, elite_every = 5, groups = 0 }

local function post(problem, options)
  options = search.options('post', defaults, options)
  learner.check_settings('methods.post', options, { groups = { 'integer', 0, problem.graph.units },
    elite_every = { 'integer', 1, 1e6 } })
  return search.run('post', problem, options, function(run)
    local policy = policies.table(problem, { groups = options.groups > 0 and options.groups or nil })
    local kept, values = {}, {}
    learner.train(learner.new('methods.post', policy, problem, options), run, function(self, actions, rewards, batch)
      learner.ppo(self, actions, rewards)
      kept[#kept + 1] = actions
      for i = 1, #rewards do values[#values + 1] = rewards[i] end
      if batch % options.elite_every == 0 then
        learner.cross_entropy(self, tensor.cat(kept, 1), values)
        kept, values = {}, {}
      end
    end, nil, { may = function() return #kept == 0 end })
  end)
end

return function(methods)
  methods.register('post', post, { help = 'a table of distributions over groups, by PPO and cross-entropy',
    budget = true, source = 'Gao et al. 2018' })
end
