-- Proximal policy optimisation (Schulman et al. 2017), as in CleanRL's ppo.py; the critic is optional. Where an action
-- consists of several choices, each has a ratio of its own (papers/notes.md "Trinity: contradictions and gaps", 13).

local core = require 'trinity.core'
local options_of = require 'trinity.base.options'
local returns = require 'trinity.learn.returns'
local rollout = require 'trinity.learn.rollout'
local tensor = require 'trinity.nn.tensor'
local training = require 'trinity.learn.training'
local util = require 'trinity.base.util'

local ppo = {}

ppo.declared = options_of.declare('trinity.PpoOptions', { extends = training.declared, help = 'What learn.ppo takes.',
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

local function value_loss_of(o, values, b)
  if not values then return tensor.zeros { 1 }:mean() end
  local loss = (values - b.returns) ^ 2
  if o.clip_vloss then
    local clipped = b.values + (values - b.values):clamp(-o.clip_coef, o.clip_coef)
    loss = loss:maximum((clipped - b.returns) ^ 2)
  end
  return loss:mean() * 0.5
end

local function losses(policy, o, b)
  local log_probs, entropies, values = policy:evaluate(b.observation, b.actions)
  local log_ratio = log_probs - b.log_probs
  local ratio = log_ratio:clamp(-20, 20):exp()
  local advantages = training.by_choice(o.norm_adv and training.normalised(b.advantages) or b.advantages, log_probs)
  local policy_loss = -(advantages * ratio):minimum(advantages * ratio:clamp(1 - o.clip_coef, 1 + o.clip_coef)):mean()
  return policy_loss, value_loss_of(o, values, b), entropies:mean(), tensor.no_grad(function()
    return (ratio - 1 - log_ratio):mean()
  end)
end

--- Makes the update of a policy with the options of ppo.declared: see training.run.
function ppo.new(policy, o)
  local self = {}
  function self.learn(batch, step, ent_coef, number)
    local num_envs, next_value = batch.rewards:size(2), nil
    if policy.value then next_value = tensor.no_grad(policy.value, policy, batch.next_observation) end
    local advantages, targets = returns.gae(batch.rewards, batch.dones, batch.values,
      next_value or tensor.zeros { num_envs }, { gamma = o.gamma, gae_lambda = o.gae_lambda })
    local take, report = rollout.flatten(batch.observations, num_envs), {}
    local columns = { actions = batch.actions, log_probs = batch.log_probs, values = batch.values,
      advantages = advantages, returns = targets }
    local stream = core.random(o.seed, 'minibatches', number)
    for _ = 1, o.update_epochs do
      for _, indices in ipairs(rollout.minibatches(batch.rewards:numel(), o.num_minibatches, stream)) do
        local b = { observation = take(indices) }
        for name, column in util.sorted_pairs(columns) do b[name] = rollout.rows(column):index_select(1, indices) end
        local policy_loss, value_loss, entropy, approx_kl = losses(policy, o, b)
        step(policy_loss - entropy * ent_coef + value_loss * o.vf_coef)
        report = { policy_loss = policy_loss:item(), value_loss = value_loss:item(), entropy = entropy:item(),
          approx_kl = approx_kl:item() }
      end
      if o.target_kl and report.approx_kl > o.target_kl then break end
    end
    return report
  end
  return self
end

--- Trains a policy by proximal policy optimisation (Schulman et al. 2017), with a critic where the policy has one.
--- Example: `trinity.learn.ppo(env, policy, { total_timesteps = 16, num_steps = 4 })`
---@param env trinity.Env
---@param policy trinity.ActorCritic
---@param options trinity.PpoOptions
---@return trinity.UpdateReport[]
function ppo.run(env, policy, options)
  training.check('learn.ppo', env, policy, 'act evaluate parameters')
  local o = ppo.declared:read('learn.ppo', 3, 'options', options)
  return training.run('learn.ppo', env, policy, o, ppo.new(policy, o))
end

return ppo
