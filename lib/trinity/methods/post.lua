-- Post (Gao, Chen, Li 2018; papers/notes.md "Post"): independent categorical distributions over groups, no network.
-- PPO learns from every few placements, cross-entropy from the best of a longer stretch of them.

local learner = require 'trinity.learn.learner'
local options_of = require 'trinity.base.options'
local policies = require 'trinity.learn.policies'
local search = require 'trinity.search'
local tensor = require 'trinity.nn.tensor'

local setting = learner.option
local declared = options_of.declare('trinity.PostOptions', { extends = search.declared,
  help = 'Settings of methods.post.',
  { 'groups', 'integer', 0, least = 0, most = learner.units(), help = '0: min(units, 20 x devices)' },
  setting('samples', 12, 'placements per step of PPO'), setting('epochs', 4), setting('clip', 0.2),
  setting('elite', 0.1, 'share of the stretch that cross-entropy learns from'),
  { 'elite_every', 'integer', 5, least = 1, most = 1e6, help = 'batches in a stretch' },
  setting('learning_rate', 5e-2), setting('entropy_weight', 1e-2), setting('gradient_norm', 1),
  setting('baseline_n', 19), setting('normalize_advantage', true),
})

local function post(problem, options)
  options = search.options('post', declared, options, problem)
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
    budget = true, source = 'Gao et al. 2018', options = declared })
end
