-- Rollouts: what a policy saw, did and got in steps of an environment, and minibatches of it.

local core = require 'trinity.core'
local tensor = require 'trinity.nn.tensor'
local util = require 'trinity.base.util'

local rollout = {}

local columns = { 'actions', 'log_probs', 'values', 'rewards', 'dones' }

--- An agent at work: { env, policy, stream, observation, episodes (returns that ended since they were read) }. Actions
--- are sampled by `stream`, by default one made of the seed.
function rollout.begin(env, policy, seed, stream)
  return { env = env, policy = policy, stream = stream or core.random(seed, 'agent'), observation = env:reset(seed),
    timesteps = 0, episodes = {} }
end

--- Plays `steps` steps. Returns tensors [steps, num_envs, ...] actions, log_probs, values (0 without a critic),
--- rewards, dones, the observations of all steps and the next one, and what ended in each step (trinity.EnvInfo); nil
--- where the environment's budget is used up.
function rollout.play(self, steps)
  local kept = { observations = {}, infos = {}, actions = {}, log_probs = {}, values = {}, rewards = {}, dones = {} }
  for t = 1, steps do
    if not self.observation then return nil end
    local actions, log_probs, values = tensor.no_grad(self.policy.act, self.policy, self.observation, self.stream)
    local none = tensor.zeros { self.env.num_envs }
    kept.observations[t], kept.actions[t] = self.observation, actions
    kept.log_probs[t], kept.values[t] = log_probs or none, values or none
    local observation, reward, done, info = self.env:step(actions)
    if not observation then return nil end
    self.observation, kept.rewards[t], kept.dones[t], kept.infos[t] = observation, reward, done, info
    for _, value in ipairs(info.episode_returns) do table.insert(self.episodes, value) end
    self.timesteps = self.timesteps + self.env.num_envs
  end
  for _, name in ipairs(columns) do kept[name] = tensor.stack(kept[name]) end
  kept.next_observation = self.observation
  return kept
end

local function each_field(observation, change)
  local made = {}
  for name, value in util.sorted_pairs(observation) do made[name] = change(value, name) end
  return made
end

--- A rollout of the environments with these numbers, an int64 tensor.
function rollout.select(batch, envs)
  local part = { observations = util.map(batch.observations, function(o)
    return each_field(o, function(x) return x:index_select(1, envs) end)
  end) }
  for _, name in ipairs(columns) do part[name] = batch[name]:index_select(2, envs) end
  return part
end

--- Joins rollouts of the same number of steps into one.
function rollout.join(batches)
  local all = { observations = util.map(batches[1].observations, function(first, t)
    return each_field(first, function(_, field)
      return tensor.cat(util.map(batches, function(b) return b.observations[t][field] end), 1)
    end)
  end) }
  for _, name in ipairs(columns) do all[name] = tensor.cat(util.map(batches, function(b) return b[name] end), 2) end
  return all
end

--- [steps, num_envs, ...] as [steps x num_envs, ...].
function rollout.rows(x)
  local shape = x:size()
  shape[2] = shape[1] * shape[2]
  table.remove(shape, 1)
  return x:reshape(shape)
end

--- The observations of all steps as one, of steps x num_envs rows: take(indices) selects rows by an int64 tensor.
function rollout.flatten(list, num_envs)
  local fields = {}
  for name, first in util.sorted_pairs(list[1]) do
    local fixed = true
    for t = 2, #list do fixed = fixed and rawequal(list[t][name], first) end
    fields[name] = { fixed = fixed and #list > 1, value = (fixed and #list > 1) and first
      or tensor.cat(util.map(list, function(o) return o[name] end), 1) }
  end
  return function(indices)
    local rows, within = {}, nil
    for name, field in util.sorted_pairs(fields) do
      if field.fixed and not within then
        within = tensor.new(util.map(indices:totable(), function(i) return (i - 1) % num_envs + 1 end),
          { dtype = 'int64' })
      end
      rows[name] = field.value:index_select(1, field.fixed and within or indices)
    end
    return rows
  end
end

function rollout.all(batch)
  local steps, num_envs = batch.rewards:size(1), batch.rewards:size(2)
  local numbers = tensor.arange(1, steps * num_envs, 1, { dtype = 'int64' })
  return rollout.flatten(batch.observations, num_envs)(numbers), rollout.rows(batch.actions)
end

--- The numbers 1 to count in random order of a stream, as `parts` int64 tensors, at most one per number.
function rollout.minibatches(count, parts, stream)
  local order, list = {}, {}
  parts = math.min(parts, count)
  for i = 1, count do order[i] = i end
  for i = count, 2, -1 do
    local j = stream:integer(i)
    order[i], order[j] = order[j], order[i]
  end
  for p = 1, parts do
    local first, last = math.floor((p - 1) * count / parts) + 1, math.floor(p * count / parts)
    list[p] = tensor.new(util.listed(last - first + 1, function(i) return order[first + i - 1] end),
      { dtype = 'int64' })
  end
  return list
end

--- The mean of the returns of the episodes that ended since this was asked last; nil where none did.
function rollout.episode_return(self)
  local sum, count = 0, #self.episodes
  for _, value in ipairs(self.episodes) do sum = sum + value end
  self.episodes = {}
  return count > 0 and sum / count or nil
end

return rollout
