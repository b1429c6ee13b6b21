-- Behaviour cloning: a policy learns what a teacher does in the states that it comes to itself (beta = 0, as DAgger,
-- Ross et al. 2011) or in the teacher's own (beta = 1).

local check = require 'trinity.base.check'
local core = require 'trinity.core'
local nn = require 'trinity.nn'
local options_of = require 'trinity.base.options'
local tensor = require 'trinity.nn.tensor'
local training = require 'trinity.learn.training'

local declared = options_of.declare('trinity.CloningOptions', { help = 'What learn.clone takes.',
  { 'updates', 'integer', needed = true, least = 1, most = 1e9, help = 'gradient steps' },
  { 'num_steps', 'integer', 16, least = 1, most = 2 ^ 20, help = 'of every environment per update' },
  { 'beta', 'number', 1, least = 0, most = 1, help = "share of updates in which the teacher's actions are taken" },
  { 'learning_rate', 'number', 2.5e-3, above = 0, most = 1000, help = 'of Adam' },
  { 'max_grad_norm', 'number', 0.5, above = 0, most = 1e9, help = 'common norm that gradients are clipped to' },
  { 'seed', 'integer', 1, least = 0, most = 2 ^ 53, help = 'of the environment and of sampling' },
  { 'on_update', 'function', as = 'fun(report: trinity.UpdateReport)', help = 'called after each update' },
})

--- Behaviour cloning: trains a policy to do as a teacher does. teacher(observation, env) gives the actions of all
--- environments. Example: `trinity.learn.clone(env, policy, function() return { 1, 2 } end, { updates = 1 })`
---@param env trinity.Env
---@param policy trinity.ActorCritic
---@param teacher fun(observation: trinity.EnvObservation, env: trinity.Env): trinity.TorchTensor|integer[]
---@param options trinity.CloningOptions
---@return trinity.UpdateReport[]
return function(env, policy, teacher, options)
  training.check('learn.clone', env, policy, 'act evaluate parameters')
  check.argument('learn.clone', 3, 'teacher', teacher, 'function')
  local o = declared:read('learn.clone', 4, 'options', options)
  local parameters, reports, timesteps = policy:parameters(), {}, 0
  local optimiser, stream = nn.adam { parameters = parameters, learning_rate = o.learning_rate },
    core.random(o.seed, 'cloning')
  local observation = env:reset(o.seed)
  for update = 1, o.updates do
    local losses, teaches = {}, stream:uniform() < o.beta
    for t = 1, o.num_steps do
      if not observation then return reports end
      local actions = teacher(observation, env)
      if type(actions) == 'table' then actions = tensor.new(actions, { dtype = 'int64' }) end
      losses[t] = -policy:evaluate(observation, actions):mean()
      observation = env:step(teaches and actions or policy:act(observation, stream))
      timesteps = timesteps + env.num_envs
    end
    local loss = tensor.stack(losses):mean()
    training.step(optimiser, parameters, loss, o.max_grad_norm)
    reports[update] = { timesteps = timesteps, policy_loss = loss:item() }
    if o.on_update then o.on_update(reports[update]) end
  end
  return reports
end
