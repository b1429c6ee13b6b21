-- Learners on environments: returns against sums by hand, and every learner on a problem whose optimum is known.

local trinity = require 'trinity'
with_torch()
local learn, tensor = trinity.learn, trinity.tensor

local two_chains = dofile(root .. '/tests/lua/support/two_chains.lua')
local problem = two_chains.problem(1)
local optimum_s = two_chains.length * 1e-3

-- Rows [steps, envs] drawn: rewards, dones (one in four), values.
local function drawn(seed, steps, envs)
  local stream = trinity.random(seed, 'returns')
  local rows = { rewards = {}, dones = {}, values = {} }
  for t = 1, steps do
    for _, name in ipairs { 'rewards', 'dones', 'values' } do rows[name][t] = {} end
    for i = 1, envs do
      rows.rewards[t][i], rows.values[t][i] = stream:normal(), stream:normal()
      rows.dones[t][i] = stream:integer(4) == 1 and 1 or 0
    end
  end
  return rows
end

describe('returns', function()
  it('are discounted sums to the end of the episode', function()
    for seed = 1, draws(30) do
      local rows, gamma = drawn(seed, 9, 2), 0.9
      local after = { 0.7, -0.3 }
      local got = learn.returns(tensor.new(rows.rewards), tensor.new(rows.dones), gamma, tensor.new(after)):totable()
      for t = 1, 9 do
        for i = 1, 2 do
          local sum, factor, k = 0, 1, t
          repeat
            sum, factor, k = sum + factor * rows.rewards[k][i], factor * gamma, k + 1
          until rows.dones[k - 1][i] == 1 or k > 9
          if rows.dones[k - 1][i] == 0 then sum = sum + factor * after[i] end
          expect(got[t][i]):near(sum, 1e-5)
        end
      end
    end
  end)

  it('of gae are sums of discounted errors of the critic', function()
    for seed = 1, draws(30) do
      local rows, gamma, lambda = drawn(seed, 8, 3), 0.95, 0.8
      local after = { 0.5, -1, 2 }
      local advantages, targets = learn.gae(tensor.new(rows.rewards), tensor.new(rows.dones), tensor.new(rows.values),
        tensor.new(after), { gamma = gamma, gae_lambda = lambda })
      advantages, targets = advantages:totable(), targets:totable()
      for t = 1, 8 do
        for i = 1, 3 do
          local sum, factor = 0, 1
          for k = t, 8 do
            local done = rows.dones[k][i] == 1
            local following = done and 0 or (k == 8 and after[i] or rows.values[k + 1][i])
            sum = sum + factor * (rows.rewards[k][i] + gamma * following - rows.values[k][i])
            factor = factor * gamma * lambda
            if done then break end
          end
          expect(advantages[t][i]):near(sum, 1e-5)
          expect(targets[t][i]):near(sum + rows.values[t][i], 1e-5)
        end
      end
    end
  end)

  it('with gae_lambda = 1 are the returns less the values', function()
    local rows = drawn(3, 7, 2)
    local rewards, dones, values = tensor.new(rows.rewards), tensor.new(rows.dones), tensor.new(rows.values)
    local after = tensor.new { 1, 2 }
    local advantages = learn.gae(rewards, dones, values, after, { gae_lambda = 1 })
    local off = advantages - (learn.returns(rewards, dones, 1, after) - values)
    expect(off:abs():max():item()):below(1e-5)
  end)
end)

-- The step time of what a policy does without chance.
local function greedy_s(policy)
  local env = trinity.env(problem, { num_envs = 1 })
  local observation, info = env:reset(1), nil
  for _ = 1, env.max_steps do
    local _, _, _, ended = env:step((policy:act(observation)))
    observation, info = env:observation(), ended
  end
  return info.step_time_s[1]
end

local function fresh(seed, options)
  local env = trinity.env(problem, merged({ num_envs = 8 }, options))
  return env, learn.scorer(env, { hidden = 16, seed = seed })
end

local steps = { num_steps = 2 * two_chains.length, learning_rate = 1e-2 }

-- What every learner is asked: 50 episodes in each of 8 environments.
local learners = {
  ppo = function(env, policy, seed)
    return learn.ppo(env, policy, merged({ seed = seed, total_timesteps = 8 * 14 * 50 }, steps))
  end,
  reinforce = function(env, policy, seed)
    return learn.reinforce(env, policy, merged({ seed = seed, total_timesteps = 8 * 14 * 50 }, steps))
  end,
  evolution = function(env, policy, seed)
    return learn.evolution(env, policy, { seed = seed, generations = 40 })
  end,
}

describe('a policy', function()
  for name, run in trinity.system.sorted_pairs(learners) do
    it(('trained by %s places chains on the devices of their kind'):format(name), function()
      for seed = 1, name == 'evolution' and 1 or draws(3) do -- where drawn placements take twice the optimum
        local env, policy = fresh(seed)
        local reports = run(env, policy, seed)
        expect(greedy_s(policy)):below((name == 'ppo' and 1.2 or 1.001) * optimum_s)
        expect(reports[1].episode_return):below(reports[#reports].episode_return)
      end
    end)
  end

  for _, baseline in ipairs { 'moving_average', 'step', 'value' } do
    it(('learns by REINFORCE with baseline %s'):format(baseline), function()
      local env, policy = fresh(2)
      learn.reinforce(env, policy, merged({ baseline = baseline, total_timesteps = 8 * 14 * 60 }, steps))
      expect(greedy_s(policy)):below(1.2 * optimum_s)
    end)
  end

  it('learns from a teacher, in states of both', function()
    for _, beta in ipairs { 0, 0.5, 1 } do
      local env, policy = fresh(1)
      -- Each node on the device where it is faster.
      local function teacher(observation)
        local times = observation.times:totable()
        local list = {}
        for i, node in ipairs(observation.current:totable()) do
          list[i] = times[i][node][1] < times[i][node][2] and 1 or 2
        end
        return list
      end
      local reports = learn.clone(env, policy, teacher, { updates = 40, beta = beta, learning_rate = 1e-2 })
      expect(reports[40].policy_loss):below(0.3 * reports[1].policy_loss)
      expect(greedy_s(policy)):near(optimum_s, 1e-9)
    end
  end)

  it('trained with differences and an entropy that falls learns, too, and a critic with it', function()
    local env, policy = fresh(1, { reward = 'difference' })
    local seen = 0
    local reports = learn.ppo(env, policy, merged({ total_timesteps = 8 * 14 * 40, ent_coef = 0.05, ent_coef_end = 0,
      anneal_lr = true, target_kl = 0.05, on_update = function(report)
        seen = seen + 1
        expect(report.timesteps):equals(seen * 8 * 14)
      end }, steps))
    expect(seen):equals(40)
    expect(greedy_s(policy)):below(1.2 * optimum_s)
    expect(reports[40].value_loss):below(reports[1].value_loss)
  end)

  it('is the same for the same seed', function()
    local function trained()
      local env, policy = fresh(5)
      learn.ppo(env, policy, merged({ seed = 3, total_timesteps = 8 * 14 * 3 }, steps))
      local list = {}
      for _, parameter in ipairs(policy:parameters()) do
        for _, x in parameter:detach():to_array():each() do list[#list + 1] = ('%.17g'):format(x) end
      end
      return table.concat(list, ' ')
    end
    expect(trained()):equals(trained())
  end)

  it('fits environments of other problems', function()
    local _, policy = fresh(1)
    local other = trinity.problem { graph = trinity.model('alexnet', { batch_size = 4 }), cluster = trinity.cluster 'p100x4' }
    for _, actions in ipairs { 'place', 'order', 'move' } do
      local env = trinity.env({ other, problem }, { num_envs = 2, actions = actions })
      local drawn_actions, log_probs, values = policy:act(env:reset(1), trinity.random(1, 'x'))
      expect(log_probs:numel() + values:numel()):equals(4)
      env:step(drawn_actions)
    end
  end)

  it('chooses words of a mesh', function()
    local env = trinity.env(trinity.problem { graph = trinity.model('gpt2', { layers = 2, batch_size = 1 }),
      cluster = trinity.cluster 'p100x4' }, { num_envs = 4, actions = 'mesh' })
    local policy = learn.scorer(env, { hidden = 16 })
    local reports = learn.ppo(env, policy, { total_timesteps = 4 * env.max_steps * 20, num_steps = env.max_steps,
      learning_rate = 1e-2 })
    expect(#reports):equals(20)
    expect(reports[1].episode_return):below(reports[20].episode_return)
    expect(env:best().metrics.feasible):equals(true)
  end)
end)

describe('learners', function()
  it('end with the budget of a search', function()
    local found = trinity.search.run('mine', problem, trinity.search.options('mine', {}, { evaluations = 50, quiet = true }),
      function(search)
        local env, policy = fresh(1, { search = search })
        expect(#learn.ppo(env, policy, merged({ total_timesteps = 1e6 }, steps))):equals(6)
      end)
    expect(found.evaluations):equals(48)
  end)

  it('refuse what they cannot take', function()
    local env, policy = fresh(1)
    expect(function() learn.ppo(env, {}) end):raises "learn.ppo: argument 2 %('policy'%): expected a policy with the functions act evaluate value"
    expect(function() learn.ppo(env, policy, { clip_coeff = 0.2 }) end):raises "unknown option 'clip_coeff', did you mean 'clip_coef'%?"
    expect(function() learn.policy(3) end):raises "expected a module %(nn.class%)"
    expect(function() learn.gae(tensor.zeros { 2 }, tensor.zeros { 2 }) end):raises 'expected a tensor %[steps x num_envs%]'
    expect(function() learn.gae(tensor.zeros { 2, 3 }, tensor.zeros { 2, 2 }) end):raises 'expected a tensor %[2 x 3%]'
    expect(function() learn.scorer(problem) end):raises "learn.scorer: argument 1 %('env'%): expected an env"
  end)
end)
