-- Learners on environments: returns against sums by hand, and every learner on a problem whose optimum is known.

local trinity = require 'trinity'
with_torch()
local learn, tensor = trinity.learn, trinity.tensor

local two_chains = dofile(root .. '/tests/lua/support/two_chains.lua')
local problem = two_chains.problem(1)
local optimum_s = two_chains.length * 1e-3

-- Random rows [steps, envs]: rewards, dones (one in four), values.
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

-- A table of logits, one row a node.
local Table = trinity.nn.class 'table'
function Table:build(spec) self.logits = tensor.zeros({ spec.nodes, spec.devices }, { requires_grad = true }) end
function Table:forward(observation)
  return self.logits:unsqueeze(1):expand { observation.mask:size(1), self.logits:size(1), self.logits:size(2) }
end

-- Policies of whole placements at once.
local joint = {
  table = function() return learn.policy(Table { nodes = 2 * two_chains.length, devices = 2 }) end,
  scorer = function(env, seed) return learn.scorer(env, { hidden = 16, seed = seed }) end,
}
local rates = { ppo = { table = 2e-2, scorer = 1e-2 }, reinforce = { table = 0.1, scorer = 2e-2 },
  cross_entropy = { table = 4e-2, scorer = 1e-2 } }

-- A search of `evaluations` placements, 16 an update, by a learner.
local function search_by(learner, kind, seed, options, more)
  local p, o = options.problem or problem, trinity.search.options('mine', {}, { evaluations = options.evaluations,
    seed = seed, quiet = true })
  return trinity.search.run('mine', p, o, function(search)
    local env = trinity.env(p, { actions = 'joint', num_envs = options.num_envs or 16, search = search, seed = seed,
      signal = function(_, reward) return reward end })
    learn[learner](env, joint[kind](env, seed), merged({ total_timesteps = o.evaluations, num_steps = 1, seed = seed,
      learning_rate = rates[learner][kind], max_grad_norm = 1 }, more))
  end)
end

-- Step times of all placements, in ascending order.
local function all_step_times()
  local times, operators = {}, 2 * two_chains.length
  for code = 0, 2 ^ operators - 1 do
    local placement = problem:placement()
    for op = 1, operators do placement[op] = math.floor(code / 2 ^ (op - 1)) % 2 + 1 end
    times[#times + 1] = problem:evaluate(placement).step_time_s
  end
  table.sort(times)
  return times
end

describe('a policy of whole placements', function()
  it('has an optimum to find, which one placement of 16384 has', function()
    local times = all_step_times()
    expect(times[1]):near(optimum_s, 1e-9)
    expect(times[1] * 1.1):below(times[2])
    expect(#times):equals(16384)
  end)
  local more = { ppo = { num_minibatches = 1 }, reinforce = { baseline = 'moving_average' },
    cross_entropy = { elite = 0.125, ent_coef = 0 } }
  for learner in trinity.system.sorted_pairs(rates) do
    for kind in trinity.system.sorted_pairs(joint) do
      it(('%s reaches it by %s in 960 evaluations for 3 seeds'):format(kind, learner), function()
        local budget = { evaluations = 960, num_envs = learner == 'cross_entropy' and 64 or 16 }
        for seed = 1, 3 do
          local found = search_by(learner, kind, seed, budget, more[learner])
          expect(found.metrics.step_time_s):near(optimum_s, 1e-9)
          expect(math.exp(-found.curve[#found.curve].mean_reward)):below(1.45 * optimum_s) -- at the start: 2 x
        end
        local away = search_by(learner, kind, 1, merged(budget, { problem = two_chains.problem(-1) }), more[learner])
        expect(2.5 * optimum_s):below(away.metrics.step_time_s)
      end)
    end
  end
  it('uses its whole budget, gives the same bytes for the same seed and others for another', function()
    local function text(seed)
      local found, words = search_by('ppo', 'scorer', seed, { evaluations = 70 }), {}
      expect(found.evaluations):equals(70)
      expect(found.updates):equals(4)
      for _, point in ipairs(found.curve) do words[#words + 1] = ('%.17g'):format(point.mean_reward) end
      return table.concat(words, ' ')
    end
    local first = text(1)
    expect(text(1)):equals(first)
    expect(text(2) == first):equals(false)
  end)
  it('gives the same bytes from any number of threads', function()
    local outputs = {}
    local path = file_with [[
      local trinity = require 'trinity'
      local problem = trinity.problem { graph = trinity.model('vgg16', { batch_size = 4 }), cluster = trinity.cluster 'p100x4' }
      for _, learner in ipairs { 'ppo', 'reinforce', 'cross_entropy' } do
        local env = trinity.env(problem, { actions = 'joint' })
        for _, report in ipairs(trinity.learn[learner](env, trinity.learn.scorer(env), { total_timesteps = 32,
          num_steps = 1 })) do
          print(('%.17g %.17g'):format(report.episode_return, report.policy_loss))
        end
      end]]
    for threads = 1, 3 do
      local status, output = run_trinity(("--threads %d '%s'"):format(threads, path))
      if status ~= 0 then error(output) end
      outputs[threads] = output
    end
    expect(outputs[1]):matches '^%-[%d.]+ %-?[%d.e-]+\n'
    expect(outputs[2]):equals(outputs[1])
    expect(outputs[3]):equals(outputs[1])
  end)
  it('has the log-probabilities and entropies of its logits, and samples by them', function()
    local env = trinity.env(problem, { actions = 'joint', groups = 2, num_envs = 2 })
    local policy = learn.policy(Table { nodes = 2, devices = 2 })
    tensor.no_grad(function() policy.network.logits:copy_(tensor.new { { 0.5, -1 }, { 0, 2 } }) end)
    local function log_softmax(a, b) return a - math.log(math.exp(a) + math.exp(b)) end
    local observation = env:reset(1)
    local log_probs, entropies = policy:evaluate(observation, tensor.new({ { 1, 2 }, { 2, 1 } }, { dtype = 'int64' }))
    local rows, first = log_probs:totable(), log_softmax(0.5, -1)
    expect(rows[1][1]):near(first, 1e-6)
    expect(rows[1][2]):near(log_softmax(2, 0), 1e-6)
    expect(rows[2][1]):near(log_softmax(-1, 0.5), 1e-6)
    expect(entropies:totable()[1][1]):near(-math.exp(first) * first - (1 - math.exp(first)) * log_softmax(-1, 0.5), 1e-6)
    expect(table.concat(policy:act(observation):totable()[1], ' ')):equals '1 2'
    local count, stream = 0, trinity.random(3, 'frequencies')
    for _ = 1, 4000 do count = count + (policy:act(observation, stream):totable()[1][1] == 1 and 1 or 0) end
    local p = math.exp(first)
    expect(count / 4000):near(p, 5 * math.sqrt(p * (1 - p) / 4000)) -- five standard deviations
  end)
  it('of several problems counts no nodes that there are not', function()
    local other = trinity.problem { graph = trinity.model('alexnet', { batch_size = 4 }), cluster = trinity.cluster 'p100x4' }
    local env = trinity.env({ problem, other }, { actions = 'joint', num_envs = 2 })
    local _, log_probs = learn.scorer(env):act(env:reset(1), trinity.random(1, 'x'))
    expect(log_probs:size(2)):equals(other.graph.units)
    for node, value in ipairs(log_probs:totable()[1]) do expect(value == 0):equals(node > problem.graph.units) end
    expect(#learn.ppo(env, learn.scorer(env), { total_timesteps = 4, num_steps = 1 })):equals(2)
  end)
end)

describe('groups', function()
  local groups_of = require 'trinity.learn.groups'
  it('are contiguous parts, none empty', function()
    for _, model in ipairs { 'vgg16', 'inception_v3' } do
      local p = trinity.problem { graph = trinity.model(model, { batch_size = 1 }), cluster = trinity.cluster 'p100x2' }
      local position = trinity.learn.features(p).position
      for _, groups in ipairs { 1, 2, 7, math.min(80, p.graph.units), p.graph.units } do
        local group_of, members, order = groups_of.contiguous(p, groups), {}, {}
        for unit = 1, p.graph.units do
          members[group_of[unit]] = (members[group_of[unit]] or 0) + 1
          order[unit] = unit
        end
        for group = 1, groups do expect(members[group] ~= nil):truthy() end
        table.sort(order, function(a, b)
          if position[a] ~= position[b] then return position[a] < position[b] end
          return a < b
        end)
        for i = 2, #order do expect(group_of[order[i - 1]] <= group_of[order[i]]):truthy() end
      end
    end
    for _, groups in ipairs { 0, 15 } do
      expect(function() groups_of.contiguous(problem, groups) end):raises 'expected an integer from 1 to 14'
    end
  end)
end)

-- The task of every learner: 50 episodes in each of 8 environments.
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
      for seed = 1, name == 'evolution' and 1 or draws(3) do -- where random placements take twice the optimum
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
    expect(found.evaluations):equals(50)
    expect(found.updates):equals(6)
  end)

  it('refuse what they cannot take', function()
    local env = fresh(1)
    expect(function() learn.ppo(env, {}) end):raises "learn.ppo: argument 2 %('policy'%): expected a policy with the functions act evaluate parameters"
    expect(function() learn.policy(3) end):raises "expected a module %(nn.class%)"
    expect(function() learn.gae(tensor.zeros { 2 }, tensor.zeros { 2 }) end):raises 'expected a tensor %[steps x num_envs%]'
    expect(function() learn.gae(tensor.zeros { 2, 3 }, tensor.zeros { 2, 2 }) end):raises 'expected a tensor %[2 x 3%]'
    local decoding = trinity.env(problem, { actions = 'joint', decode = print })
    expect(function() learn.scorer(decoding) end):raises "learn.scorer: argument 1 %('env'%): expected an environment whose"
    expect(function() learn.scorer(problem) end):raises "learn.scorer: argument 1 %('env'%): expected an env"
  end)
end)
