-- The ready-made policy: warm starts, saved policies, presets, and the same policy written in Lua.

local trinity = require 'trinity'
local learn = trinity.learn

local two_chains = dofile(root .. '/tests/lua/support/two_chains.lua')
local problem = two_chains.problem(1)

local small = { samples = 4, hidden = 8, epochs = 2, groups = 6, node2vec = { dimensions = 4, walks_per_node = 2 } }

local function settings(more)
  local all = {}
  for _, set in ipairs { small, more or {} } do
    for name, value in trinity.system.sorted_pairs(set) do all[name] = value end
  end
  return all
end

-- Samples and learns; everything that was sampled and learned as one text.
local function run(agent, batches)
  local text = {}
  for _ = 1, batches do
    local rewards = {}
    for i, placement in ipairs(agent:sample()) do
      rewards[i] = problem:score(problem:evaluate(placement))
      text[#text + 1] = table.concat(placement:totable(), ' ')
    end
    text[#text + 1] = ('%.17g'):format(agent:update(rewards).loss)
  end
  return table.concat(text, '\n')
end

describe('the policy', function()
  it('learns by action from any reward: one of metrics alone, of the plan, too, or of any number of arguments', function()
    local losses = {}
    for i, reward in ipairs { function(m) return -m.step_time_s end,
      function(m, plan) return plan.placement and plan.metrics == m and -m.step_time_s end,
      function(...) return select('#', ...) == 2 and -(...).step_time_s end } do
      local own = trinity.problem { graph = problem.graph, cluster = problem.cluster, reward = reward }
      local agent, rewards = learn.agent(own, settings()), {}
      local metrics = own:evaluate_batch(agent:sample())
      for k = 1, #metrics do rewards[k] = own:score(metrics[k], agent.batch[k]) end
      losses[i] = agent:update(rewards, nil, metrics).loss
    end
    expect(losses[2]):equals(losses[1])
    expect(losses[3]):equals(losses[1])
  end)
  it('imitates a placement and says how well', function()
    local agent, placement = learn.agent(problem, settings { hidden = 32 }), problem:placement()
    for op = 1, #placement do placement[op] = op <= #placement / 2 and 1 or 2 end
    local report = agent:imitate { placement }
    expect(report.agreement > 0.99):truthy()
    expect(report.steps):equals(0)
    expect(table.concat(agent:greedy():totable(), ' ')):equals(table.concat(placement:totable(), ' '))
    run(agent, 1)
    expect(function() agent:imitate {} end):raises 'agent:imitate: .*expected 1 to 64 placements'
    expect(function() agent:imitate { 1 } end):raises 'agent:imitate: .*entry 1: expected a placement'
    expect(function() agent:imitate({ placement }, { weights = { 0 } }) end):raises 'expected a positive number'
    expect(function() agent:imitate({ placement }, { weights = { 1, 2 } }) end):raises 'expected one weight per placement, got 2 for 1'
  end)
  it('leaves out failing samples on request', function()
    local agent = learn.agent(problem, settings { exclude_failing_after = 0 })
    agent:sample()
    expect(agent:update({ 1, 1, 1, -99 }, { false, false, false, true }).mean_reward):equals(1)
    agent:sample()
    expect(function() agent:update({ 1, 1, 1, 1 }, { true }) end):raises 'expected 4 failure flags, got 1'
    expect(function() agent:update({ 1, 1, 1, 1 }, { 1 }) end):raises "agent:update: argument 2 %('failing'%)"
  end)
  it('has the presets and readings of the paper, and refuses words that it does not know', function()
    for _, preset in ipairs { 'default', 'paper', 'code' } do
      local agent = learn.agent(problem, settings { preset = preset })
      run(agent, 1)
      agent:close()
    end
    for name, words in trinity.system.sorted_pairs { ratio = { 'action', 'joint' }, type_feature = { 'index' },
      partition_network = { 'linear', 'mlp' } } do
      local seen = {} -- each word learns something else
      for _, word in ipairs(words) do
        local text = run(learn.agent(problem, settings { [name] = word, dropout = 0.1 }), 2)
        expect(seen[text]):equals(nil)
        seen[text] = word
      end
      expect(function() learn.agent(problem, settings { [name] = 'nonsense' }) end):raises(
        ("field '%s': unknown value 'nonsense'"):format(name))
    end
    for name, value in trinity.system.sorted_pairs { samples = 0, hidden = 5000, clip = 99 } do
      expect(function() learn.agent(problem, settings { [name] = value }) end)
        :raises(("option '%s': expected .* to .*, got %d"):format(name, value))
    end
    expect(function() learn.agent(problem, settings { node2vec = { window = 0 } }) end)
      :raises "option 'node2vec.window': expected 1 to 100000, got 0"
    expect(function() learn.agent(problem, settings { device = 'cuda:99' }) end)
      :raises "option 'device': expected cpu or cuda:0 and the like, got 'cuda:99'"
    expect(function() learn.agent(problem, settings { device = 'tpu' }) end)
      :raises "option 'device': expected cpu or cuda:0 and the like, got 'tpu'"
  end)
end)

describe('learn.agent', function()
  it('driven by a loop in Lua gives what the method gives', function()
    local p = trinity.problem { graph = trinity.model('vgg16', { batch_size = 4 }), cluster = trinity.cluster 'p100x2',
      reward = trinity.rewards.mdpe {} }
    local settings_of = { samples = 8, hidden = 32, seed = 3 }
    local agent = learn.agent(p, settings_of)
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
    local agent = learn.agent(problem, { samples = 2, hidden = 8 })
    agent:sample()
    expect(function() agent:update { 1 } end):raises 'agent_spec.lua:%d+: agent:update: .*expected 2 rewards, got 1'
    expect(function() agent:update { 1, 0 / 0 } end):raises 'agent_spec.lua:%d+: agent:update: .*reward 2: expected a finite number, got %-?nan'
    expect(function() agent:update 'x' end):raises "agent:update: argument 1 %('rewards'%)"
    expect(function() agent.update { 1 } end):raises "the object before ':'"
    agent:close()
  end)
end)
