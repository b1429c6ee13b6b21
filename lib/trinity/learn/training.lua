-- What the learners of trinity.learn share: options, the loop of updates and their reports, gradient steps.

local check = require 'trinity.base.check'
local nn = require 'trinity.nn'
local options_of = require 'trinity.base.options'
local rollout = require 'trinity.learn.rollout'
local tensor = require 'trinity.nn.tensor'
local util = require 'trinity.base.util'

local training = {}

training.declared = options_of.declare('trinity.LearnOptions', { help = 'What every learner takes.',
  { 'total_timesteps', 'integer', needed = true, least = 1, most = 2 ^ 53,
    help = 'steps of all environments together' },
  { 'num_steps', 'integer', 32, least = 1, most = 2 ^ 20, help = 'of every environment per update' },
  { 'learning_rate', 'number', 2.5e-3, above = 0, most = 1000, help = 'of Adam' },
  { 'anneal_lr', 'boolean', false, help = 'the learning rate falls to 0 over total_timesteps' },
  { 'gamma', 'number', 1, least = 0, most = 1, help = 'discount per step' },
  { 'ent_coef', 'number', 1e-2, least = 0, most = 1e6, help = 'weight of the entropy bonus' },
  { 'ent_coef_end', 'number', least = 0, most = 1e6, otherwise = 'ent_coef',
    help = 'what ent_coef becomes over total_timesteps' },
  { 'max_grad_norm', 'number', 0.5, above = 0, most = 1e9, help = 'common norm that gradients are clipped to' },
  { 'seed', 'integer', 1, least = 0, most = 2 ^ 53, help = 'of the environment and of what is drawn' },
  { 'on_update', 'function', as = 'fun(report: trinity.UpdateReport)', help = 'called after each update' },
})

local function field(policy, name) return policy[name] end

--- Refuses what is no environment, or no policy of one with the functions that are named.
function training.check(owner, env, policy, names)
  check.object(owner, 1, 'env', env, 'env')
  for name in names:gmatch '%S+' do
    local ok, found = pcall(field, policy, name)
    if type(policy) ~= 'table' or not ok or type(found) ~= 'function' then
      check.refuse(owner, 2, 'policy', 'expected a policy with the functions %s, got %s', names, util.describe(policy))
    end
  end
  return policy
end

--- One gradient step on a loss, its gradients clipped to a common norm.
function training.step(optimiser, parameters, loss, max_grad_norm)
  optimiser:zero_grad()
  loss:backward()
  nn.clip_grad_norm(parameters, max_grad_norm)
  optimiser:step()
end

--- Zero mean and unit deviation.
function training.normalised(values)
  if values:numel() < 2 then return values - values:mean() end
  return (values - values:mean()) / (values:std() + 1e-8)
end

--- Plays and updates until total_timesteps: update(batch, optimiser, ent_coef, agent) gives the fields of its report,
--- `batch` is what rollout.play() gives. Returns the reports; training ends early where the environment's budget does.
function training.run(env, policy, o, update)
  local parameters, reports = policy:parameters(), {}
  local optimiser = nn.adam { parameters = parameters, learning_rate = o.learning_rate, epsilon = 1e-5 }
  local agent = rollout.begin(env, policy, o.seed)
  while agent.timesteps < o.total_timesteps do
    local passed = agent.timesteps / o.total_timesteps
    if o.anneal_lr then optimiser.learning_rate = o.learning_rate * (1 - passed) end
    local batch = rollout.play(agent, o.num_steps)
    if not batch then break end
    local report = update(batch, optimiser, o.ent_coef + ((o.ent_coef_end or o.ent_coef) - o.ent_coef) * passed, agent)
    report.timesteps, report.episode_return = agent.timesteps, rollout.episode_return(agent)
    reports[#reports + 1] = report
    if o.on_update then o.on_update(report) end
  end
  return reports
end

--- The mean of a list of numbers of tensors.
function training.mean(list) return tensor.stack(list):mean():item() end

return training
