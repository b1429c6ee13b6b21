-- Policies and learners on a problem whose optimum is known from trying every placement.

local trinity = require 'trinity'
with_torch()
local nn, tensor, policies = trinity.nn, trinity.tensor, trinity.policies

local two_chains = dofile(root .. '/tests/lua/support/two_chains.lua')
local length, devices = two_chains.length, 2
local operators = 2 * length

local problem, negated = two_chains.problem(1), two_chains.problem(-1)

-- Step times of all placements, in ascending order.
local function all_step_times()
  local times = {}
  for code = 0, devices ^ operators - 1 do
    local placement = problem:placement()
    for op = 1, operators do placement[op] = math.floor(code / devices ^ (op - 1)) % devices + 1 end
    times[#times + 1] = problem:evaluate(placement).step_time_s
  end
  table.sort(times)
  return times
end

-- Policies of every kind; those by operator know nothing of chains but what the features say.
local kinds = {
  table = function(p) return policies.table(p, { groups = operators }) end,
  network = function(p, seed)
    return policies.network(p, { seed = seed, hidden = 16, features = { seed = seed, node2vec = { dimensions = 8 } } })
  end,
  independent = function(p, seed)
    local features = trinity.features(p, { seed = seed, node2vec = { dimensions = 8 } })
    local network = nn.sequential { nn.linear { inputs = features.width, outputs = devices }, seed = seed }
    return policies.independent { problem = p, learned = network,
      logits = function() return network(features.values) end }
  end,
  chain = function(p)
    local own = tensor.zeros({ operators, devices }, { requires_grad = true })
    local after = tensor.zeros({ operators, devices + 1, devices }, { requires_grad = true })
    return policies.chain { problem = p, learned = { own, after }, logits = function(first, last, previous)
      local count = last - first + 1
      local before = previous:one_hot(devices + 1):to { dtype = 'float32' }:unsqueeze(3)
      return own:narrow(1, first, count) + before:matmul(after:narrow(1, first, count)):squeeze(3)
    end }
  end,
}

local settings = {
  ppo = { table = { learning_rate = 5e-2 }, network = { learning_rate = 5e-3 }, independent = { learning_rate = 1e-2 },
    chain = { learning_rate = 1e-2 } },
  reinforce = { table = { learning_rate = 0.2 }, network = { learning_rate = 1e-2 },
    independent = { learning_rate = 5e-2 }, chain = { learning_rate = 5e-2 } },
  cross_entropy = { table = { learning_rate = 3e-2, elite = 0.125 }, network = { learning_rate = 1e-2, elite = 0.125 },
    independent = { learning_rate = 2e-2, elite = 0.125 }, chain = { learning_rate = 3e-2, elite = 0.125 } },
}

local function learner(name, kind)
  return trinity[name](merged({ policy = kinds[kind] }, settings[name][kind]))
end

local function options(seed, evaluations) return { seed = seed, evaluations = evaluations or 960, quiet = true } end

-- The geometric mean of the step times in the last batch of a search, s.
local function last_mean_s(found, sign) return math.exp(-sign * found.curve[#found.curve].mean_reward) end

describe('learners', function()
  local times = all_step_times()
  it('know the optimum, which one placement of 16384 has', function()
    expect(times[1]):near(length * 1e-3, 1e-9)
    expect(times[1] * 1.1):below(times[2])
    expect(#times):equals(16384)
  end)
  for name in trinity.system.sorted_pairs(settings) do
    for kind in trinity.system.sorted_pairs(kinds) do
      it(('%s with %s reaches the optimum in 960 evaluations for 3 seeds'):format(name, kind), function()
        local method = learner(name, kind)
        for seed = 1, 3 do
          local found = method(problem, options(seed))
          expect(found.metrics.step_time_s):equals(times[1])
          expect(last_mean_s(found, 1)):below(1.45 * times[1]) -- at the start: 2 x
        end
        local away = method(negated, options(1))
        expect(2 * times[1]):below(last_mean_s(away, -1))
        expect(2.5 * times[1]):below(away.metrics.step_time_s)
      end)
    end
  end
  it('start where samples are twice as slow as the optimum', function()
    expect(1.7 * times[1]):below(math.exp(-learner('ppo', 'table')(problem, options(1, 16)).curve[1].mean_reward))
  end)
end)

describe('a learner', function()
  it('is a method: registered, compared, with its settings as options', function()
    trinity.methods.register('my_table', trinity.ppo { name = 'my_table', policy = kinds.table, samples = 8 },
      { help = 'of a spec', budget = true })
    local text = tostring(trinity.compare(problem, { 'single_device', 'my_table' },
      { evaluations = 24, quiet = true, my_table = { learning_rate = 0.1, samples = 4 } }))
    expect(text):matches '\nmy_table[ *]+[%d.]+ s.* 24 '
    expect(#trinity.methods.my_table(problem, { evaluations = 24, samples = 4, quiet = true }).curve):equals(6)
    expect(trinity.methods.my_table(problem, options(1, 20)).evaluations):equals(20)
    expect(function() trinity.methods.my_table(problem, { sample = 4 }) end):raises "unknown option 'sample', did you mean 'samples'%?"
    expect(function() trinity.methods.my_table(problem, { clip = 0 }) end):raises "option 'clip': expected a number above 0"
  end)
  it('gives the same bytes from the same seed and others from another', function()
    local method = learner('ppo', 'chain')
    local function text(seed)
      local found, words = method(problem, options(seed, 64)), {}
      for _, point in ipairs(found.curve) do words[#words + 1] = ('%.17g'):format(point.mean_reward) end
      for op = 1, operators do words[#words + 1] = tostring(found.placement[op]) end
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
        local method = trinity[learner] { samples = 8, policy = function(p, seed) return trinity.policies.network(p, { seed = seed }) end }
        for _, point in ipairs(method(problem, { evaluations = 32, quiet = true }).curve) do
          print(('%.17g %.17g'):format(point.mean_reward, point.best_step_time_s))
        end
      end]]
    for threads = 1, 3 do
      local status, output = run_trinity(("--threads %d '%s'"):format(threads, path))
      if status ~= 0 then error(output) end
      outputs[threads] = output
    end
    expect(outputs[1]):matches '^%-[%d.]+ [%d.]+\n'
    expect(outputs[2]):equals(outputs[1])
    expect(outputs[3]):equals(outputs[1])
  end)
  it('goes on with a policy that is given instead of a function', function()
    local method = trinity.reinforce { policy = kinds.table(problem), learning_rate = 0.2 }
    local first = method(problem, options(1, 160)).curve[1].mean_reward
    expect(first + 0.2):below(method(problem, options(1, 160)).curve[1].mean_reward)
  end)
end)

-- A policy as a plain table: one coin for all operators of a chain. Functions in `wrong` replace its own.
local function plain_policy(wrong)
  local logits = tensor.zeros({ 2, devices }, { requires_grad = true })
  local policy = {}
  function policy.parameters() return { logits } end
  function policy:sample(count, stream)
    return tensor.categorical(logits:detach():unsqueeze(1):expand { count, 2, devices }, stream), self
  end
  function policy:evaluate(actions)
    local rows = logits:log_softmax(-1)
    local taken = rows:unsqueeze(1):expand({ actions:size(1), 2, devices }):gather(3, actions:unsqueeze(3)):squeeze(3)
    return taken, -(rows:exp() * rows):sum(-1):mean(), self
  end
  function policy:placements(actions)
    local list, device = problem:placements(actions:size(1)), actions:to_array()
    for row, placement in ipairs(list) do
      for op = 1, operators do placement[op] = device[2 * row - (op <= length and 1 or 0)] end
    end
    return list, self
  end
  for name, f in trinity.system.sorted_pairs(wrong or {}) do policy[name] = f end
  return policy
end

describe('a policy of the user', function()
  it('may be a plain table with four functions', function()
    local method = trinity.ppo { policy = function() return plain_policy() end, learning_rate = 0.1 }
    local found = method(problem, options(1, 160))
    expect(found.metrics.step_time_s):near(length * 1e-3, 1e-9)
    expect(last_mean_s(found, 1)):below(length * 1.1e-3)
  end)

  local function refuses(wrong, pattern, name)
    local method = trinity[name or 'ppo'] { policy = function() return plain_policy(wrong) end }
    local ok, message = pcall(method, problem, { evaluations = 32, quiet = true, rescue = temporary() })
    expect(ok):equals(false)
    expect(message):matches(pattern)
    expect(message):matches '^[^ ]*policies_spec%.lua:%d+: '
  end
  -- A pattern for the message about what a function returned.
  local function returned(name, what)
    return ("'%s' at [^ ]*policies_spec.lua:%%d+ returned %s"):format(name, (what:gsub('%p', '%%%0')))
  end
  it('that returns something else is named with file and line', function()
    refuses({ parameters = function() return {} end }, returned('parameters', 'an empty list'))
    refuses({ parameters = function() return { tensor.ones(1) } end }, returned('parameters', 'tensor float32 [1] as entry 1'))
    refuses({ sample = function() end }, returned('sample', 'nil, expected actions, a tensor int64 [16 x choices]'))
    refuses({ sample = function() return tensor.ones { 16, 2 } end }, returned('sample', 'tensor float32 [16 x 2]'))
    refuses({ sample = function() return tensor.ones({ 3, 2 }, { dtype = 'int64' }) end }, returned('sample', 'tensor int64 [3 x 2]'))
    refuses({ placements = function() return 3 end }, returned('placements', 'number 3, expected a list of 16 placements'))
    refuses({ placements = function() return problem:placements(15) end }, returned('placements', 'a list of 15'))
    refuses({ placements = function()
      local list = problem:placements(16)
      list[7] = {}
      return list
    end }, returned('placements', 'table as entry 7'))
    refuses({ evaluate = function() return tensor.ones { 16, 3 }, tensor.ones(1) end }, returned('evaluate', 'tensor float32 [16 x 3]'))
    refuses({ evaluate = function() return tensor.zeros { 16, 2 } * (0 / 0), tensor.ones(1) end },
      returned('evaluate', 'log-probabilities that are not finite'), 'reinforce')
    refuses({ evaluate = function() return tensor.zeros { 16, 2 }, tensor.ones(1) end },
      returned('evaluate', 'log-probabilities without gradients'))
    local weight = tensor.zeros({ 1 }, { requires_grad = true })
    refuses({ evaluate = function(_, actions) return actions:to { dtype = 'float32' } * weight, 1 end },
      returned('evaluate', 'number 1 as its second value'), 'reinforce')
  end)
  it('whose devices are none is refused by the simulator', function()
    refuses({ placements = function()
      local list = problem:placements(16)
      list[2][3] = 7
      return list
    end }, "'left3' is placed on device 7, expected 1 to 2")
  end)
  it('needs all four functions', function()
    refuses({ sample = false }, "needs the functions parameters, sample, evaluate, placements; 'sample' is false")
    expect(function() trinity.ppo { policy = { sample = print } } end):raises "trinity.ppo: a policy needs the functions .*'parameters' is nil"
    expect(function() trinity.ppo { policy = function() return 3 end } (problem, { quiet = true }) end)
      :raises 'expected a policy from the function at .*policies_spec.lua:%d+, got number 3'
  end)
  it('has logits of the right shape, finite', function()
    local function logits(value, pattern)
      local method = trinity.ppo { policy = function(p)
        return policies.independent { problem = p, learned = { tensor.ones({ 1 }, { requires_grad = true }) },
          logits = function() return value end }
      end }
      expect(function() method(problem, options(1)) end):raises("'logits' at .*policies_spec.lua:%d+ returned " .. pattern)
    end
    logits(nil, 'nil, expected a tensor of finite numbers %[14 x 2%]')
    logits(tensor.ones { 14, 3 }, 'tensor float32 %[14 x 3%]')
    logits(tensor.ones({ 14, 2 }, { dtype = 'int64' }), 'tensor int64 %[14 x 2%]')
    logits(tensor.zeros { 14, 2 } * (0 / 0), 'numbers that are not finite')
  end)
end)

describe('settings of learners', function()
  local policy = kinds.table
  it('are refused when out of range, with a suggestion when misspelt', function()
    for _, case in ipairs { { 'ppo', 'clip', 0 }, { 'ppo', 'samples', 0 }, { 'ppo', 'learning_rate', -1 }, { 'ppo', 'epochs', 0 },
      { 'reinforce', 'baseline_n', 0 }, { 'cross_entropy', 'elite', 0 }, { 'cross_entropy', 'elite', 1.5 },
      { 'ppo', 'entropy_weight', -1 }, { 'ppo', 'gradient_norm', 0 / 0 }, { 'ppo', 'normalize_advantage', 1 },
      { 'ppo', 'name', 'a b' } } do
      local name, key, value = unpack(case)
      expect(function() trinity[name] { policy = policy, [key] = value } end):raises(
        ("policies_spec%%.lua:%%d+: trinity%%.%s: option '%s': expected "):format(name, key))
    end
    expect(function() trinity.ppo { policy = policy, clipp = 0.1 } end):raises "unknown option 'clipp', did you mean 'clip'%?"
    expect(function() trinity.reinforce { policy = policy, clip = 0.1 } end):raises "unknown option 'clip'"
    expect(function() trinity.ppo {} end):raises "trinity.ppo: argument 1 %('settings'%): field 'policy' is missing"
  end)
  it('of policies too', function()
    for groups, text in trinity.system.sorted_pairs { [0] = 'number 0', [15] = 'number 15' } do
      expect(function() policies.table(problem, { groups = groups }) end):raises(
        "policies%.table: option 'groups': expected an integer from 1 to 14, got " .. text)
      expect(function() policies.contiguous_groups(problem, groups) end):raises 'expected an integer from 1 to 14'
    end
    expect(function() policies.network(problem, { hiden = 3 }) end):raises "did you mean 'hidden'%?"
    local spec = { problem = problem, learned = { tensor.ones({ 1 }, { requires_grad = true }) }, logits = print }
    local function refuses(key, value, pattern)
      local changed = {}
      for name, old in trinity.system.sorted_pairs(spec) do changed[name] = old end
      changed[key] = value
      expect(function() policies.independent(changed) end):raises('policies%.independent: .*' .. pattern)
    end
    refuses('logits', nil, "field 'logits' is missing")
    refuses('logit', print, "unknown field 'logit', did you mean 'logits'%?")
    refuses('learned', {}, 'nothing to learn')
    refuses('learned', { tensor.ones(1) }, "'learned': entry 1: expected a module or a tensor that requires gradients")
    refuses('choices', 3, "'choice_of_unit': needed where choices %(3%) are not units %(14%)")
    refuses('choice_of_unit', { 1, 2 }, 'expected 14 entries, one a unit, got 2')
    local list = {}
    for unit = 1, operators do list[unit] = unit end
    list[5] = 15
    refuses('choice_of_unit', list, 'entry 5: expected an integer from 1 to 14, got number 15')
  end)
  it('and actions of another shape, dtype or device', function()
    local made = kinds.table(problem)
    expect(function() made:evaluate(tensor.ones { 2, 14 }) end):raises 'policy:evaluate: .*expected tensor int64 %[count x 14%], got tensor float32 %[2 x 14%]'
    expect(function() made:placements(tensor.ones({ 2, 13 }, { dtype = 'int64' })) end):raises 'policy:placements: .*got tensor int64 %[2 x 13%]'
    expect(function() made:evaluate(tensor.full({ 2, 14 }, 3, { dtype = 'int64' })) end):raises 'expected devices from 1 to 2, got 3'
    expect(function() made.sample(3) end):raises "the object before ':'"
    expect(function() made:sample(1e9, trinity.random(1, 'x')) end):raises "policy:sample: argument 1 %('count'%): expected an integer from 1 to"
  end)
end)

describe('policies', function()
  -- A chain whose second choice depends on the first, on a problem of two operators.
  local builder = trinity.graph.new { name = 'pair' }
  builder:add_operator { name = 'a', time_s = 1 }
  builder:add_operator { name = 'b', time_s = 1 }
  builder:add_edge('a', 'b', 8)
  local pair = trinity.problem { graph = builder:build(), cluster = trinity.cluster 'p100x3' }
  local first = tensor.new({ { 0.5, -1, 0.2 } }, { requires_grad = true })
  local table_of = { [1] = { 1, 0, -1 }, [2] = { 0, 0, 2 }, [3] = { -1, 0.5, 0.5 } }
  local after = tensor.new { table_of[1], table_of[2], table_of[3] }
  local chain = policies.chain { problem = pair, learned = { first }, logits = function(from, to, previous)
    local count = previous:size(1)
    local rows = from == 1 and { first:unsqueeze(1):expand { count, 1, 3 } } or {}
    if to == 2 then
      local before = previous:narrow(2, from == 1 and 2 or 1, 1)
      rows[#rows + 1] = after:index_select(1, before:flatten()):unsqueeze(2)
    end
    return tensor.cat(rows, 2)
  end }
  local logits = tensor.new({ { 0.5, -1, 0.2 }, { 0, 1, 3 } }, { requires_grad = true })
  local independent = policies.independent { problem = pair, learned = { logits }, logits = function() return logits end }

  local function log_softmax(row)
    local sum = 0
    for _, x in ipairs(row) do sum = sum + math.exp(x) end
    local list = {}
    for i, x in ipairs(row) do list[i] = x - math.log(sum) end
    return list
  end
  local function entropy(row)
    local sum = 0
    for _, x in ipairs(log_softmax(row)) do sum = sum - math.exp(x) * x end
    return sum
  end
  -- By hand: log-probabilities of both choices.
  local function expected(policy, a, b)
    local second = policy == chain and table_of[a] or { 0, 1, 3 }
    return log_softmax { 0.5, -1, 0.2 }[a], log_softmax(second)[b]
  end

  for name, policy in trinity.system.sorted_pairs { chain = chain, independent = independent } do
    it(name .. ': evaluate() gives the log-probabilities that hand gives, and sample() draws by them', function()
      local every = {}
      for a = 1, 3 do for b = 1, 3 do every[#every + 1] = { a, b } end end
      local log_probability = policy:evaluate(tensor.new(every, { dtype = 'int64' })):totable()
      local count, seen = 20000, {}
      local drawn = policy:sample(count, trinity.random(3, 'frequencies')):to_array()
      for row = 1, count do
        local key = 3 * drawn[2 * row - 1] + drawn[2 * row] - 3
        seen[key] = (seen[key] or 0) + 1
      end
      for i, actions in ipairs(every) do
        local a, b = expected(policy, actions[1], actions[2])
        expect(log_probability[i][1]):near(a, 1e-5)
        expect(log_probability[i][2]):near(b, 1e-5)
        local p = math.exp(a + b)
        expect((seen[i] or 0) / count):near(p, 5 * math.sqrt(p * (1 - p) / count)) -- five standard deviations
      end
    end)
  end
  it('give the mean entropy of a choice', function()
    local actions = tensor.new({ { 1, 2 }, { 3, 1 } }, { dtype = 'int64' })
    expect((select(2, independent:evaluate(actions))):item()):near((entropy { 0.5, -1, 0.2 } + entropy { 0, 1, 3 }) / 2, 1e-6)
    expect((select(2, chain:evaluate(actions))):item()):near(
      (2 * entropy { 0.5, -1, 0.2 } + entropy(table_of[1]) + entropy(table_of[3])) / 4, 1e-6)
  end)
  it('have gradients that differences of evaluate() give', function()
    local actions = tensor.new({ { 1, 2 }, { 3, 1 } }, { dtype = 'int64' })
    for _, case in ipairs { { independent, logits }, { chain, first } } do
      local policy, weight = unpack(case)
      local function value()
        local log_probability, spread = policy:evaluate(actions)
        return log_probability:sum() + spread * 3
      end
      local gradient = tensor.grad(value(), { weight })[1]:to_array()
      local function shifted(by)
        local bump = tensor.cat({ tensor.full({ 1 }, by), tensor.zeros { weight:numel() - 1 } }, 1):reshape(weight:size())
        tensor.no_grad(weight.add_, weight, bump)
        local result = value():item()
        tensor.no_grad(weight.add_, weight, -bump)
        return result
      end
      expect(gradient[1]):near((shifted(0.01) - shifted(-0.01)) / 0.02, 2e-3)
    end
  end)
  it('spread choices over operators', function()
    local made = policies.table(problem, { groups = 2 })
    local rows = made:placements(tensor.new({ { 1, 2 }, { 2, 2 } }, { dtype = 'int64' }))
    expect(#rows):equals(2)
    for op = 1, operators do
      expect(rows[1][op]):equals(made.choice_of[op])
      expect(rows[2][op]):equals(2)
    end
  end)
  it('group units in contiguous parts, none empty', function()
    for _, model in ipairs { 'vgg16', 'inception_v3' } do
      local p = trinity.problem { graph = trinity.model(model, { batch_size = 1 }), cluster = trinity.cluster 'p100x2' }
      local position = trinity.features(p).position
      for _, groups in ipairs { 1, 2, 7, math.min(80, p.graph.units), p.graph.units } do
        local group_of, members, order = policies.contiguous_groups(p, groups), {}, {}
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
  end)
end)

describe('policies.trinity', function()
  it('driven by a loop in Lua gives what the method gives', function()
    local p = trinity.problem { graph = trinity.model('vgg16', { batch_size = 4 }), cluster = trinity.cluster 'p100x2',
      reward = trinity.rewards.mdpe {} }
    local settings_of = { samples = 8, hidden = 32, seed = 3 }
    local agent = policies.trinity(p, settings_of)
    local best, placement, means = nil, {}, {}
    for batch = 1, 4 do
      local plans = agent:sample()
      local metrics, rewards, sum = p:evaluate_batch(plans), {}, 0
      for i, m in ipairs(metrics) do
        rewards[i] = p:score(m)
        sum = sum + rewards[i]
        local result = { metrics = m, reward = rewards[i] }
        if p.better(result, best) then best, placement = result, plans[i]:totable() end
      end
      means[batch] = sum / #rewards
      local report = agent:update(rewards)
      expect(report.mean_reward):near(means[batch], 1e-12)
    end
    local found = trinity.methods.trinity(p, { samples = 8, hidden = 32, seed = 3, evaluations = 32, quiet = true,
      warm_start = false, refine = false })
    expect(#found.curve):equals(4)
    for batch = 1, 4 do expect(found.curve[batch].mean_reward):equals(means[batch]) end
    for op = 1, p.graph.operators do expect(found.placement[op]):equals(placement[op]) end
    expect(found.reward):equals(best.reward)
    expect(p:evaluate(agent:greedy()).step_time_s > 0):truthy()
    agent:close()
    expect(function() agent:sample() end):raises 'agent:sample: .*this agent is closed'
    agent:close()
  end)
  it('refuses rewards that do not fit', function()
    local agent = policies.trinity(problem, { samples = 2, hidden = 8 })
    agent:sample()
    expect(function() agent:update { 1 } end):raises 'policies_spec.lua:%d+: agent:update: .*expected 2 rewards, got 1'
    expect(function() agent:update { 1, 0 / 0 } end):raises 'policies_spec.lua:%d+: agent:update: .*reward 2 is %-?nan'
    expect(function() agent:update 'x' end):raises "agent:update: argument 1 %('rewards'%)"
    expect(function() agent.update { 1 } end):raises "the object before ':'"
    expect(function() policies.trinity(problem, { sampels = 3 }) end):raises "unknown .*'sampels', did you mean 'samples'%?"
    agent:close()
  end)
end)
