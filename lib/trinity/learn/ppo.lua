-- Proximal policy optimisation (Schulman et al. 2017) with a critic, as in CleanRL's ppo.py.

local core = require 'trinity.core'
local options_of = require 'trinity.base.options'
local returns = require 'trinity.learn.returns'
local rollout = require 'trinity.learn.rollout'
local tensor = require 'trinity.nn.tensor'
local training = require 'trinity.learn.training'

local declared = options_of.declare('trinity.PpoOptions', { extends = training.declared, help = 'What learn.ppo takes.',
  { 'gae_lambda', 'number', 0.95, least = 0, most = 1, help = 'weight of longer estimates' },
  { 'num_minibatches', 'integer', 4, least = 1, most = 2 ^ 20, help = 'per epoch' },
  { 'update_epochs', 'integer', 4, least = 1, most = 1e4, help = 'passes over a rollout' },
  { 'norm_adv', 'boolean', true, help = 'advantages have mean 0 and deviation 1 in each minibatch' },
  { 'clip_coef', 'number', 0.2, above = 0, most = 1e6, help = 'epsilon: how far a probability may go in one update' },
  { 'clip_vloss', 'boolean', true, help = 'clips values, too' },
  { 'vf_coef', 'number', 0.5, least = 0, most = 1e6, help = "weight of the critic's loss" },
  { 'target_kl', 'number', above = 0, most = 1e6, otherwise = 'none',
    help = 'an update ends after the epoch in which the policy went further' },
})

-- The losses of a minibatch.
local function losses(policy, o, b)
  local log_probs, entropies, values = policy:evaluate(b.observation, b.actions)
  local log_ratio = log_probs - b.log_probs
  local ratio = log_ratio:clamp(-20, 20):exp()
  local advantages = o.norm_adv and training.normalised(b.advantages) or b.advantages
  local policy_loss = -(advantages * ratio):minimum(advantages * ratio:clamp(1 - o.clip_coef, 1 + o.clip_coef)):mean()
  local value_loss = (values - b.returns) ^ 2
  if o.clip_vloss then
    local clipped = b.values + (values - b.values):clamp(-o.clip_coef, o.clip_coef)
    value_loss = value_loss:maximum((clipped - b.returns) ^ 2)
  end
  return policy_loss, value_loss:mean() * 0.5, entropies:mean(), tensor.no_grad(function()
    return (ratio - 1 - log_ratio):mean()
  end)
end

--- See trinity.learn.
return function(env, policy, options)
  training.check('learn.ppo', env, policy, 'act evaluate value parameters')
  local o = declared:read('learn.ppo', 3, 'options', options)
  local parameters, updates = policy:parameters(), 0
  return training.run(env, policy, o, function(batch, optimiser, ent_coef, agent)
    local next_value = agent.observation and tensor.no_grad(policy.value, policy, agent.observation)
      or tensor.zeros { env.num_envs }
    local advantages, targets = returns.gae(batch.rewards, batch.dones, batch.values, next_value,
      { gamma = o.gamma, gae_lambda = o.gae_lambda })
    local take, report = rollout.flatten(batch.observations, env.num_envs), {}
    local columns = { actions = batch.actions, log_probs = batch.log_probs, values = batch.values,
      advantages = advantages, returns = targets }
    updates = updates + 1
    local stream = core.random(o.seed, 'minibatches', updates)
    for _ = 1, o.update_epochs do
      for _, indices in ipairs(rollout.minibatches(batch.actions:numel(), o.num_minibatches, stream)) do
        local b = { observation = take(indices) }
        for name, column in pairs(columns) do b[name] = column:flatten():index_select(1, indices) end -- in any order
        local policy_loss, value_loss, entropy, approx_kl = losses(policy, o, b)
        training.step(optimiser, parameters, policy_loss - entropy * ent_coef + value_loss * o.vf_coef, o.max_grad_norm)
        report = { policy_loss = policy_loss:item(), value_loss = value_loss:item(), entropy = entropy:item(),
          approx_kl = approx_kl:item() }
      end
      if o.target_kl and report.approx_kl > o.target_kl then break end
    end
    return report
  end)
end
