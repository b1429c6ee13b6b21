-- REINFORCE (Williams 1992) with a baseline.

local options_of = require 'trinity.base.options'
local returns = require 'trinity.learn.returns'
local rollout = require 'trinity.learn.rollout'
local tensor = require 'trinity.nn.tensor'
local training = require 'trinity.learn.training'

local reinforce = {}

reinforce.declared = options_of.declare('trinity.ReinforceOptions', { extends = training.declared,
  help = 'What learn.reinforce takes. A rollout that ends within an episode counts the rewards up to there.',
  { 'baseline', options_of.words('trinity.Baseline', { 'moving_average', 'batch', 'step', 'value' }), 'batch',
    help = 'of returns: their moving average, their mean in the batch, their mean at each step, the critic' },
  { 'baseline_decay', 'number', 0.9, least = 0, most = 1, help = 'of the moving average, per update' },
  { 'norm_adv', 'boolean', true,
    help = 'divides advantages by their root mean square; with a moving average, by the larger of both averages' },
  { 'vf_coef', 'number', 0.5, least = 0, most = 1e6, help = "weight of the critic's loss, for baseline 'value'" },
})

--- Makes the update of a policy with options gamma, baseline, baseline_decay, norm_adv and vf_coef: see training.run.
function reinforce.new(policy, o)
  local self, average, squares = {}, nil, nil
  local function moved(old, new) return old and o.baseline_decay * old + (1 - o.baseline_decay) * new or new end
  local baselines = {
    moving_average = function(targets)
      local mean = targets:mean():item()
      local before = average or mean
      average = moved(average, mean)
      return before
    end,
    batch = function(targets) return targets:mean() end,
    step = function(targets) return targets:mean(2, true) end,
    value = function(_, values) return values end,
  }
  local function normalised(advantages)
    local square = (advantages * advantages):mean():item()
    squares = o.baseline == 'moving_average' and moved(squares, square) or square
    return advantages / (math.sqrt(math.max(square, squares)) + 1e-8)
  end
  function self.learn(batch, step, ent_coef)
    local targets = returns.returns(batch.rewards, batch.dones, o.gamma)
    local advantages = targets - baselines[o.baseline](targets, batch.values)
    if o.norm_adv then advantages = normalised(advantages) end
    local log_probs, entropies, values = policy:evaluate(rollout.all(batch))
    local policy_loss = -(log_probs * training.by_choice(advantages:flatten(), log_probs)):mean()
    local entropy = entropies:mean()
    local loss, value_loss = policy_loss - entropy * ent_coef, tensor.zeros { 1 }:mean()
    if o.baseline == 'value' then
      value_loss = ((values - targets:flatten()) ^ 2):mean() * 0.5
      loss = loss + value_loss * o.vf_coef
    end
    step(loss)
    return { policy_loss = policy_loss:item(), value_loss = value_loss:item(), entropy = entropy:item() }
  end
  function self.notes() return { average = average, squares = squares } end
  function self.resume(notes) average, squares = notes.average, notes.squares end
  return self
end

--- Trains a policy by REINFORCE (Williams 1992) with a baseline.
--- Example: `trinity.learn.reinforce(env, policy, { total_timesteps = 16, num_steps = 4 })`
---@param env trinity.Env
---@param policy trinity.ActorCritic needs a value function for baseline 'value' only
---@param options trinity.ReinforceOptions
---@return trinity.UpdateReport[]
function reinforce.run(env, policy, options)
  training.check('learn.reinforce', env, policy, 'act evaluate parameters')
  local o = reinforce.declared:read('learn.reinforce', 3, 'options', options)
  return training.run('learn.reinforce', env, policy, o, reinforce.new(policy, o))
end

return reinforce
