-- REINFORCE (Williams 1992) with a baseline.

local options_of = require 'trinity.base.options'
local returns = require 'trinity.learn.returns'
local rollout = require 'trinity.learn.rollout'
local tensor = require 'trinity.nn.tensor'
local training = require 'trinity.learn.training'

local declared = options_of.declare('trinity.ReinforceOptions', { extends = training.declared,
  help = 'What learn.reinforce takes. A rollout that ends within an episode counts the rewards up to there.',
  { 'baseline', options_of.words('trinity.Baseline', { 'moving_average', 'batch', 'step', 'value' }), 'batch',
    help = 'of returns: their moving average, their mean in the batch, their mean at each step, the critic' },
  { 'baseline_decay', 'number', 0.9, least = 0, most = 1, help = 'of the moving average, per update' },
  { 'norm_adv', 'boolean', true, help = 'divides advantages by their root mean square' },
  { 'vf_coef', 'number', 0.5, least = 0, most = 1e6, help = "weight of the critic's loss, for baseline 'value'" },
})

--- See trinity.learn.
return function(env, policy, options)
  training.check('learn.reinforce', env, policy, 'act evaluate parameters')
  local o = declared:read('learn.reinforce', 3, 'options', options)
  local parameters, average = policy:parameters(), nil
  local baselines = {
    moving_average = function(targets)
      local mean = targets:mean():item()
      local before = average or mean
      average = o.baseline_decay * before + (1 - o.baseline_decay) * mean
      return before
    end,
    batch = function(targets) return targets:mean() end,
    step = function(targets) return targets:mean(2, true) end,
    value = function(_, values) return values end,
  }
  return training.run(env, policy, o, function(batch, optimiser, ent_coef)
    local targets = returns.returns(batch.rewards, batch.dones, o.gamma)
    local advantages = targets - baselines[o.baseline](targets, batch.values)
    if o.norm_adv then advantages = advantages / ((advantages * advantages):mean():sqrt() + 1e-8) end
    local all = rollout.minibatches(batch.actions:numel(), 1, { integer = function(_, i) return i end })[1]
    local log_probs, entropies, values = policy:evaluate(rollout.flatten(batch.observations, env.num_envs)(all),
      batch.actions:flatten())
    local policy_loss, entropy = -(log_probs * advantages:flatten()):mean(), entropies:mean()
    local loss, value_loss = policy_loss - entropy * ent_coef, tensor.zeros { 1 }:mean()
    if o.baseline == 'value' then
      value_loss = ((values - targets:flatten()) ^ 2):mean() * 0.5
      loss = loss + value_loss * o.vf_coef
    end
    training.step(optimiser, parameters, loss, o.max_grad_norm)
    return { policy_loss = policy_loss:item(), value_loss = value_loss:item(), entropy = entropy:item() }
  end)
end
