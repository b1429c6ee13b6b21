-- The cross-entropy method (Rubinstein 1999): raises the likelihood of the actions with the highest returns.

local options_of = require 'trinity.base.options'
local returns = require 'trinity.learn.returns'
local rollout = require 'trinity.learn.rollout'
local tensor = require 'trinity.nn.tensor'
local training = require 'trinity.learn.training'
local util = require 'trinity.base.util'

local cross_entropy = {}

local declared = options_of.declare('trinity.CrossEntropyOptions', { extends = training.declared,
  help = 'What learn.cross_entropy takes.',
  { 'elite', 'number', 0.1, above = 0, most = 1, help = 'share of the steps that are learned from' },
  { 'update_epochs', 'integer', 4, least = 1, most = 1e4, help = 'gradient steps on one elite' },
})

-- Numbers of the share of returns that are the largest; of equals the earlier.
local function elite_of(values, share)
  local order = util.order_of(values, true)
  return tensor.new(util.listed(math.max(1, math.floor(share * #order + 0.5)), function(i) return order[i] end),
    { dtype = 'int64' })
end

--- Makes the update of a policy with options gamma, elite and update_epochs: see training.run.
function cross_entropy.new(policy, o)
  local self = {}
  function self.learn(batch, step, ent_coef)
    local targets = returns.returns(batch.rewards, batch.dones, o.gamma):flatten():totable()
    local chosen = elite_of(targets, o.elite)
    local observation = rollout.flatten(batch.observations, batch.rewards:size(2))(chosen)
    local actions, report = rollout.rows(batch.actions):index_select(1, chosen), nil
    for _ = 1, o.update_epochs do
      local log_probs, entropies = policy:evaluate(observation, actions)
      local policy_loss, entropy = -log_probs:mean(), entropies:mean()
      step(policy_loss - entropy * ent_coef)
      report = { policy_loss = policy_loss:item(), entropy = entropy:item() }
    end
    return report
  end
  return self
end

--- Trains a policy by the cross-entropy method (Rubinstein 1999): raises the likelihood of the best.
--- Example: `trinity.learn.cross_entropy(env, policy, { total_timesteps = 16, num_steps = 4 })`
---@param env trinity.Env
---@param policy trinity.ActorCritic needs no value function
---@param options trinity.CrossEntropyOptions
---@return trinity.UpdateReport[]
function cross_entropy.run(env, policy, options)
  training.check('learn.cross_entropy', env, policy, 'act evaluate parameters')
  local o = declared:read('learn.cross_entropy', 3, 'options', options)
  return training.run('learn.cross_entropy', env, policy, o, cross_entropy.new(policy, o))
end

return cross_entropy
