-- Evolution strategies (Salimans et al. 2017): Gaussian perturbations of the weights in pairs of both signs, weighted
-- by the ranks of their returns. No gradient is computed.

local core = require 'trinity.core'
local options_of = require 'trinity.base.options'
local tensor = require 'trinity.nn.tensor'
local training = require 'trinity.learn.training'
local util = require 'trinity.base.util'

local declared = options_of.declare('trinity.EvolutionOptions', {
  help = 'What learn.evolution takes.',
  { 'generations', 'integer', needed = true, least = 1, most = 1e9, help = 'updates of the weights' },
  { 'population', 'integer', 8, least = 1, most = 65536, help = 'pairs of perturbations per generation' },
  { 'num_steps', 'integer', least = 1, most = 2 ^ 30, otherwise = 'an episode',
    help = 'that one of them is judged by' },
  { 'sigma', 'number', 0.2, above = 0, most = 1000, help = 'deviation of perturbations' },
  { 'learning_rate', 'number', 0.5, above = 0, most = 1000, help = 'of the estimated gradient' },
  { 'seed', 'integer', 1, least = 0, most = 2 ^ 53, help = 'of the environment and of sampling' },
  { 'on_update', 'function', as = 'fun(report: trinity.UpdateReport)', help = 'called after each generation' },
})

-- The mean reward that every environment collects in `steps` steps; nil where the budget ends.
local function judge(env, policy, seed, steps, stream)
  local observation, sum = env:reset(seed), 0
  for _ = 1, steps do
    if not observation then return nil end
    local reward
    observation, reward = env:step((policy:act(observation, stream)))
    if not observation then return nil end
    sum = sum + reward:sum():item()
  end
  return sum / env.num_envs
end

-- Ranks of values from -0.5 to 0.5; among equals the earlier is lower.
local function ranks(values)
  local list = {}
  for place, i in ipairs(util.order_of(values)) do list[i] = #values > 1 and (place - 1) / (#values - 1) - 0.5 or 0 end
  return list
end

local function shift(parameters, noise, factor)
  tensor.no_grad(function()
    for p, parameter in ipairs(parameters) do parameter:add_(noise[p] * factor) end
  end)
end

--- Trains a policy by evolution strategies (Salimans et al. 2017).
--- Example: `trinity.learn.evolution(env, policy, { generations = 1, population = 2 })`
---@param env trinity.Env
---@param policy trinity.ActorCritic only its act and parameters are used
---@param options trinity.EvolutionOptions
---@return trinity.UpdateReport[]
return function(env, policy, options)
  training.check('learn.evolution', env, policy, 'act parameters')
  local o, reports, timesteps = declared:read('learn.evolution', 3, 'options', options), {}, 0
  local parameters, steps = policy:parameters(), o.num_steps or env.max_steps
  for generation = 1, o.generations do
    local noises, values = {}, {}
    for k = 1, o.population do
      local stream = core.random(o.seed, 'evolution', (generation - 1) * o.population + k)
      noises[k] = util.map(parameters, function(p) return tensor.normal(p:size(), stream) end)
      for _, sign in ipairs { 1, -1 } do
        shift(parameters, noises[k], sign * o.sigma)
        local actor = core.random(o.seed, 'evolution acts', generation * o.population + k)
        local value = judge(env, policy, o.seed + generation, steps, actor)
        shift(parameters, noises[k], -sign * o.sigma)
        if not value then return reports end
        values[#values + 1], timesteps = value, timesteps + steps * env.num_envs
      end
    end
    local weights, mean = ranks(values), 0
    for _, value in ipairs(values) do mean = mean + value / #values end
    for k, noise in ipairs(noises) do
      shift(parameters, noise, o.learning_rate * (weights[2 * k - 1] - weights[2 * k]) / (2 * o.population * o.sigma))
    end
    reports[generation] = { timesteps = timesteps, episode_return = mean }
    if o.on_update then o.on_update(reports[generation]) end
  end
  return reports
end
