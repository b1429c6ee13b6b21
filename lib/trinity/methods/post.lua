-- Post (Gao, Chen, Li 2018; papers/notes.md "Post"): independent categorical distributions over groups, no network.
-- PPO learns from every few placements, cross-entropy from the best of a longer stretch of them.

local actor_critic = require 'trinity.learn.actor_critic'
local cross_entropy = require 'trinity.learn.cross_entropy'
local env_of = require 'trinity.env'
local nn = require 'trinity.nn'
local options_of = require 'trinity.base.options'
local ppo = require 'trinity.learn.ppo'
local rollout = require 'trinity.learn.rollout'
local search = require 'trinity.search'
local tensor = require 'trinity.nn.tensor'
local trained = require 'trinity.learn.trained'

local setting = trained.option
local declared = options_of.declare('trinity.PostOptions', { extends = search.declared,
  help = 'Settings of methods.post.',
  { 'groups', 'integer', 0, least = 0, most = trained.units(), help = '0: min(units, 20 x devices)' },
  setting('samples', 12, 'placements per step of PPO'), setting('epochs', 4), setting('clip', 0.2),
  setting('elite', 0.1, 'share of the stretch that cross-entropy learns from'),
  { 'elite_every', 'integer', 5, least = 1, most = 1e6, help = 'batches in a stretch' },
  setting('learning_rate', 5e-2), setting('entropy_weight', 1e-2), setting('gradient_norm', 1),
  setting('normalize_advantage', true),
})

local Table = nn.class 'distributions'

function Table:build(spec) self.logits = tensor.zeros({ spec.groups, spec.devices }, { requires_grad = true }) end

--- Logits [environments, groups, devices], the same in all environments.
function Table:forward(observation)
  local groups, devices = self.logits:size(1), self.logits:size(2)
  return self.logits:unsqueeze(1):expand { observation.mask:size(1), groups, devices }
end

local function post(problem, given)
  local options = search.options('post', declared, given, problem)
  local devices = #problem.cluster.devices
  local groups = options.groups > 0 and options.groups or math.min(problem.graph.units, 20 * devices)
  return trained.run('post', problem, options, function(run)
    local env = env_of(problem, { actions = 'joint', groups = groups, num_envs = options.samples, search = run,
      signal = function(_, reward) return reward end })
    local policy, kept = actor_critic.new(Table { groups = groups, devices = devices }), {}
    local clipped = ppo.new(policy, { seed = options.seed, gamma = 1, gae_lambda = 1, num_minibatches = 1,
      update_epochs = options.epochs, norm_adv = options.normalize_advantage, clip_coef = options.clip, vf_coef = 0 })
    local elite = cross_entropy.new(policy, { gamma = 1, elite = options.elite, update_epochs = options.epochs })
    return { policy = policy, play = trained.player(env, policy, options.seed),
      learn = function(batch, number, step)
        local report = clipped.learn(batch, step, options.entropy_weight, number)
        kept[#kept + 1] = batch
        if #kept == options.elite_every then
          report, kept = elite.learn(rollout.join(kept), step, options.entropy_weight), {}
        end
        return trained.row(report)
      end,
      may = function() return #kept == 0 end }
  end)
end

return function(methods)
  methods.register('post', post, { help = 'a table of distributions over groups, by PPO and cross-entropy',
    budget = true, source = 'Gao et al. 2018', options = declared })
end
