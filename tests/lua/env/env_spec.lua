-- Environments: episodes, rewards, masks and what is observed, against placements simulated by hand.

local trinity = require 'trinity'
with_torch()

local graphs = dofile(root .. '/tests/lua/support/graphs.lua')

local function problem_of(model, cluster, options)
  return trinity.problem { graph = trinity.model(model, options), cluster = trinity.cluster(cluster) }
end

local small = { batch_size = 2, sequence = 3, hidden = 8, vocabulary = 16, layers = 2 }
local rnn, vgg = problem_of('rnnlm', 'p100x2', small), problem_of('alexnet', 'p100x4', { batch_size = 4 })

-- Allowed actions sampled by a stream: a list.
local function draw(env, observation, stream)
  local logits = trinity.tensor.zeros({ env.num_envs, env.num_actions }):masked_fill(observation.mask:eq(0), -1e9)
  return trinity.tensor.categorical(logits, stream)
end

-- Plays `steps` random steps; calls seen(env, observation, reward, done, info, actions) after each.
local function play(env, seed, steps, seen)
  local observation, stream = env:reset(seed), trinity.random(seed, 'agent')
  for _ = 1, steps do
    local actions = draw(env, observation, stream)
    local reward, done, info
    observation, reward, done, info = env:step(actions)
    if seen then seen(env, observation, reward, done, info, actions) end
  end
  return observation
end

local function bound_s(problem) return problem:bounds().step_time_s end

describe('an episode of', function()
  it("'place' ends when every node has a device, and its reward is the step time over its bound", function()
    local env = trinity.env(rnn, { num_envs = 1 })
    local episodes, chosen = 0, {}
    expect(env.num_actions):equals(2)
    play(env, 3, 3 * rnn.graph.units, function(_, observation, reward, done, info, actions)
      chosen[#chosen + 1] = actions:item()
      expect(done:item()):equals(#chosen == rnn.graph.units and 1 or 0)
      if done:item() == 0 then return expect(reward:item()):equals(0) end
      local node_of = env:graph().node_of
      local own = rnn:placement_by_unit(function(unit) return chosen[node_of[unit]] end)
      local step_s = rnn:evaluate(own).step_time_s
      expect(info.step_time_s[1]):equals(step_s)
      expect(reward:item()):near(-step_s / bound_s(rnn), 1e-5)
      expect(info.episode_returns[1]):near(-step_s / bound_s(rnn), 1e-5)
      expect(observation.placement:min():item()):equals(3) -- the next episode has placed nothing
      episodes, chosen = episodes + 1, {}
    end)
    expect(episodes):equals(3)
    expect(env.evaluations):equals(3)
  end)

  it("'order' takes nodes whose parents are placed", function()
    local env = trinity.env(rnn, { num_envs = 1, actions = 'order' })
    local graph, parents = env:graph(), {}
    for e = 1, #graph.from do
      parents[graph.to[e]] = parents[graph.to[e]] or {}
      table.insert(parents[graph.to[e]], graph.from[e])
    end
    local placed, count = {}, 0
    play(env, 1, 2 * graph.nodes, function(_, observation, _, done, _, actions)
      local node = math.floor((actions:item() - 1) / 2) + 1
      expect(placed[node]):equals(nil)
      for _, parent in ipairs(parents[node] or {}) do expect(placed[parent]):equals(true) end
      placed[node], count = true, count + 1
      if done:item() == 1 then
        expect(count):equals(graph.nodes)
        placed, count = {}, 0
      else
        expect(observation.placement:select(1, 1):select(1, node):item()):equals((actions:item() - 1) % 2 + 1)
      end
    end)
    expect(#graph.from):equals(#graph.to)
    expect(count):equals(0)
  end)

  it("'move' changes one node's device, and differences add up to what the episode gained", function()
    local env = trinity.env(vgg, { num_envs = 2, actions = 'move', reward = 'difference', steps = 5, start = 'random' })
    env:reset(7)
    local before = env:placements()
    local first_s = { vgg:evaluate(before[1]).step_time_s, vgg:evaluate(before[2]).step_time_s }
    local ended
    play(env, 7, 5, function(_, observation, _, done, info, actions)
      local after = env:placements()
      if done:sum():item() == 2 then
        ended = info
        return
      end
      for i, action in ipairs(actions:totable()) do
        local node, device = math.floor((action - 1) / 4) + 1, (action - 1) % 4 + 1
        local node_of, unit_of = env:graph().node_of, vgg.graph.unit_of
        for op = 1, vgg.graph.operators do
          expect(after[i][op]):equals(node_of[unit_of[op]] == node and device or before[i][op])
        end
        local m = vgg:evaluate(after[i])
        expect(observation.step_time:totable()[i]):near(m.step_time_s / bound_s(vgg), 1e-4)
        expect(observation.load:totable()[i][device]):near(m:compute_busy_s(device) / bound_s(vgg), 1e-5)
      end
      before = after
    end)
    for k, i in ipairs(ended.envs) do
      expect(ended.episode_returns[k]):near((first_s[i] - ended.step_time_s[k]) / bound_s(vgg), 1e-4)
    end
  end)

  it("'joint' is one step, of a device for each node or of what decode makes placements of", function()
    local seen
    local function decode(actions)
      seen = actions
      return rnn:placements(2)
    end
    for _, given in ipairs { false, decode } do
      local env = trinity.env(rnn, { num_envs = 2, groups = 3, actions = 'joint', decode = given or nil })
      local observation = env:reset(1)
      expect(table.concat(observation.mask:size(), ' ')):equals '2 2'
      local actions = trinity.tensor.new({ { 1, 2, 1 }, { 2, 2, 1 } }, { dtype = 'int64' })
      local _, reward, done, info = env:step(actions)
      expect(done:sum():item()):equals(2)
      for i, row in ipairs(actions:totable()) do
        local own = given and rnn:placement() or rnn:placement_by_unit(function(unit) return row[env:graph().node_of[unit]] end)
        expect(info.step_time_s[i]):equals(rnn:evaluate(own).step_time_s)
        expect(reward:totable()[i]):near(-info.step_time_s[i] / bound_s(rnn), 1e-5)
      end
    end
    expect(seen:size(2)):equals(3)
  end)

  it("'mesh' is a plan, and words that contradict each other are masked", function()
    local env = trinity.env(rnn, { num_envs = 3, actions = 'mesh' })
    expect(env.max_steps):equals(5)
    local seen = 0
    play(env, 2, 30, function(_, _, reward, done, info)
      for k, i in ipairs(info.envs) do
        seen = seen + 1
        expect(done:totable()[i]):equals(1)
        if info.step_time_s[k] < math.huge then expect(reward:totable()[i]):below(0) end
      end
    end)
    expect(seen):equals(18)
    local best = env:best()
    expect(best.mesh.data * (best.mesh.tensor or 1) * (best.mesh.pipeline or 1)):equals(2)
    expect(rnn:evaluate(best).step_time_s):equals(best.metrics.step_time_s)
    local observation = env:reset(1)
    expect(observation.mask:totable()[1][2]):equals(true) -- tensor = 2
    observation = env:step { 2, 1, 1 }
    expect(table.concat(observation.words:totable()[1], ' ')):equals '2 0 0 0 0'
    expect(observation.mask:totable()[1][2]):equals(false) -- tensor = 2 and pipeline = 2 are four devices
    expect(observation.mask:totable()[2][2]):equals(true)
  end)

  it("'mesh' is infeasible where degrees do not divide what they cut; other errors are raised", function()
    local layers = problem_of('gpt2', 'p100x4', { layers = 3, batch_size = 1 })
    local function ends(problem, words, actions, reward)
      local own = reward and trinity.problem { graph = problem.graph, cluster = problem.cluster, reward = reward } or problem
      local env = trinity.env(own, { num_envs = 1, actions = 'mesh', words = words })
      env:reset(1)
      local info
      for _, action in ipairs(actions) do info = select(4, env:step { action }) end
      return info
    end
    local whole = ends(layers, { { 'pipeline', { 1, 2 } } }, { 1 })
    expect(whole.step_time_s[1] < math.huge and whole.feasible[1]):equals(true)
    local cut = ends(layers, { { 'pipeline', { 1, 2 } } }, { 2 }) -- three layers on two stages
    expect(cut.step_time_s[1]):equals(math.huge)
    expect(cut.feasible[1]):equals(false)
    expect(function() ends(vgg, { { 'context', { 1, 2 } } }, { 2 }) end):raises 'has no sequence'
    expect(function() ends(layers, { { 'expert', { 1, 2 } } }, { 2 }) end):raises 'has no experts'
    expect(function() ends(layers, { { 'pipeline', { 1 } } }, { 1 }, function() error 'own reward' end) end):raises 'own reward'
    local stages = { { 'pipeline', { 1, 2 } }, { 'schedule', { '1f1b', 'interleaved' } }, { 'virtual_stages', { 1, 2 } } }
    local env = trinity.env(rnn, { num_envs = 3, actions = 'mesh', words = stages })
    env:reset(1)
    env:step { 1, 2, 2 }
    local masks = env:step({ 1, 1, 2 }).mask:totable()
    for i, allowed in ipairs { { true, false }, { true, false }, { false, true } } do
      for v = 1, 2 do expect(masks[i][v]):equals(allowed[v]) end
    end
  end)

  it("'mesh' evaluates every ZeRO stage", function()
    local env = trinity.env(rnn, { num_envs = 4, actions = 'mesh', words = { { 'zero_stage', { 0, 1, 2, 3 } } } })
    env:reset(1)
    local _, _, _, info = env:step { 1, 2, 3, 4 }
    for stage = 0, 3 do
      expect(info.step_time_s[stage + 1]):equals(
        rnn:evaluate({ mesh = { data = 2 }, micro_batches = 4, zero_stage = stage }).step_time_s)
    end
  end)
end)

describe('rewards', function()
  it("of reward = 'difference' and 'bound' add up to the final reward minus the initial one", function()
    for _, kind in ipairs { 'difference', 'bound' } do
      local env = trinity.env(vgg, { num_envs = 2, groups = 6, reward = kind })
      local sums, checked = { 0, 0 }, 0
      play(env, 5, 12, function(_, _, reward, done, info)
        local rewards = reward:totable()
        for i = 1, 2 do sums[i] = sums[i] + rewards[i] end
        for k, i in ipairs(info.envs) do
          local start = kind == 'bound' and -1 or -vgg:evaluate(vgg:placement()).step_time_s / bound_s(vgg)
          expect(sums[i]):near(-info.step_time_s[k] / bound_s(vgg) - start, 1e-4)
          expect(done:totable()[i]):equals(1)
          sums[i], checked = 0, checked + 1
        end
      end)
      expect(checked):equals(4)
    end
  end)

  it('are what option signal makes of metrics', function()
    local env = trinity.env(rnn, { num_envs = 1, groups = 2, signal = function(m, reward)
      expect(reward):equals(-m.step_time_s)
      return 42
    end })
    play(env, 1, 2, function(_, _, reward, done) expect(reward:item()):equals(42 * done:item()) end)
  end)
end)

describe('masks', function()
  it('keep what does not fit together apart', function()
    local problem = trinity.problem { graph = graphs.heavy(4, 7e9), cluster = trinity.cluster 'p100x2' } -- two per device
    local env = trinity.env(problem, { num_envs = 4 })
    play(env, 1, 20, function(_, _, _, _, info)
      for _, fits in ipairs(info.feasible) do expect(fits):equals(true) end
    end)
    expect(env:best().metrics.feasible):equals(true)
    env:reset(1)
    local observation
    for _ = 1, 2 do observation = env:step { 1, 1, 2, 2 } end
    expect(observation.mask:totable()[1][1]):equals(false)
    expect(observation.mask:totable()[1][2]):equals(true)
    expect(function() env:step { 1, 2, 1, 1 } end):raises "env:step: argument 1 %('actions'%): entry 1: action 1 is masked"
  end)

  it('of moves are what masks from nothing are, whatever was moved before', function()
    local problem = trinity.problem { graph = graphs.heavy(6, 4e9), cluster = trinity.cluster 'p100x4' }
    local env = trinity.env(problem, { num_envs = 2, actions = 'move', steps = 100 })
    local width = #problem.cluster.devices
    play(env, 4, 30, function(_, observation)
      local placements, mask = env:placements(), observation.mask:totable()
      for i = 1, 2 do
        local held = { 0, 0, 0, 0 }
        for op = 1, 6 do held[placements[i][op]] = held[placements[i][op]] + 4e9 end
        for node = 1, 6 do
          local operator = problem.graph:unit(node)[1]
          for d = 1, width do
            local fits = held[d] + 4e9 <= problem.cluster.devices[d].capacity_bytes
            expect(mask[i][(node - 1) * width + d]):equals(fits and placements[i][operator] ~= d)
          end
        end
      end
    end)
  end)
end)

describe('an environment', function()
  it('takes problems of different sizes, padded', function()
    local env = trinity.env({ rnn, vgg }, { num_envs = 4, critical_path = true, actions = 'move', steps = 3 })
    local observation = play(env, 1, 7)
    local most = math.max(rnn.graph.units, vgg.graph.units)
    expect(table.concat(observation.nodes:size(), ' ')):matches('^4 ' .. most .. ' ')
    expect(env.num_actions):equals(most * 4)
    local masks = observation.node_mask:to { dtype = 'float32' }:sum(2):totable()
    expect(masks[1]):equals(rnn.graph.units)
    expect(masks[2]):equals(vgg.graph.units)
    expect(env:best(1).problem):equals(rnn)
    expect(env:best(2).problem):equals(vgg)
    expect(observation.device_mask:totable()[1][3]):equals(false)
  end)

  it('observes the critical path as a timeline has it', function()
    local env = trinity.env(vgg, { num_envs = 1, actions = 'move', critical_path = true, start = 'random' })
    play(env, 9, 3, function(_, observation)
      local placement, shares, node_of = env:placements()[1], {}, env:graph().node_of
      for node = 1, env:graph().nodes do shares[node] = 0 end
      local timeline = vgg:timeline(placement)
      for _, step in ipairs(timeline:critical_path().steps) do
        local node = node_of[vgg.graph.unit_of[vgg.graph:find(step.operator)]]
        shares[node] = shares[node] + (step.end_s - step.ready_s) / timeline.metrics.step_time_s
      end
      for node, share in ipairs(observation.critical:totable()[1]) do expect(share):near(shares[node], 1e-5) end
    end)
  end)

  it('gives the same bytes for the same seed, whatever the threads', function()
    local script = [[
      local trinity = require 'trinity'
      local function problem(name) return trinity.problem { cluster = trinity.cluster 'p100x2',
        graph = trinity.model(name, { batch_size = 2 }) } end
      for _, options in ipairs { { actions = 'move', reward = 'difference', critical_path = true, start = 'random', steps = 4 },
        { actions = 'place', groups = 8, reward = 'bound' }, { actions = 'mesh', num_envs = 2 } } do
        local env = trinity.env({ problem 'alexnet', problem 'resnet50' }, options)
        local observation, stream = env:reset(11), trinity.random(1, 'agent')
        for _ = 1, 9 do
          local logits = trinity.tensor.zeros({ env.num_envs, env.num_actions }):masked_fill(observation.mask:eq(0), -1e9)
          local reward
          observation, reward = env:step(trinity.tensor.categorical(logits, stream))
          for _, name in ipairs { 'placement', 'load', 'memory', 'step_time', 'critical', 'words' } do
            if rawget(observation, name) then
              for _, x in observation[name]:to_array():each() do io.write(('%.17g '):format(x)) end
            end
          end
          for _, x in reward:to_array():each() do io.write(('%.17g '):format(x)) end
        end
      end]]
    local path = file_with(script)
    local one, many = output_of(('"%s" --threads 1 "%s"'):format(program, path)),
      output_of(('"%s" --threads 3 "%s"'):format(program, path))
    expect(5000):below(#one)
    expect(many):equals(one)
  end)

  it('spends the budget of a search, and no more', function()
    local found = trinity.search.run('mine', rnn, trinity.search.options('mine', {}, { evaluations = 10, quiet = true }),
      function(search)
        local env = trinity.env(rnn, { num_envs = 4, groups = 3, search = search })
        local observation, steps = env:reset(1), 0
        local stream = trinity.random(1, 'agent')
        while observation do
          observation, steps = env:step(draw(env, observation, stream)), steps + 1
        end
        expect(steps):equals(9) -- in the ninth there are evaluations left for two of four
        expect(env:best().metrics.step_time_s):equals(search.best.metrics.step_time_s)
        expect(function() env:step { 1, 1, 1, 1 } end):raises 'budget that is left'
      end)
    expect(found.evaluations):equals(10)
  end)

  it('refuses what it cannot take', function()
    local function refused(pattern, problems, options)
      expect(function() trinity.env(problems, options) end):raises(pattern)
    end
    refused('trinity%.env: argument 1 %(\'problems\'%): expected a problem or a list of problems, got number 3', 3)
    refused("option 'reward': 'bound' is for actions 'place' and 'order', got 'move'", rnn,
      { actions = 'move', reward = 'bound' })
    refused("option 'reward': 'joint' actions have 'final' rewards, got 'difference'", rnn,
      { actions = 'joint', reward = 'difference' })
    refused("option 'decode': is for 'joint' actions of one problem", rnn, { decode = print })
    local joint = trinity.env(rnn, { num_envs = 1, groups = 2, actions = 'joint' })
    joint:reset(1)
    local function row(list) return trinity.tensor.new({ list }, { dtype = 'int64' }) end
    expect(function() joint:step { 1 } end):raises "argument 1 %('actions'%): expected a tensor int64 %[1 x 2%]"
    expect(function() joint:step(row { 1, 2, 1 }) end):raises 'expected a tensor int64 %[1 x 2%]'
    expect(function() joint:step(row { 1, 3 }) end):raises 'row 1: expected devices from 1 to 2, got 3'
    for value, text in pairs { [3] = 'number 3', [print] = 'function' } do
      local decoding = trinity.env(rnn, { num_envs = 1, actions = 'joint', decode = function() return value end })
      decoding:reset(1)
      expect(function() decoding:step(row { 1 }) end):raises(
        "option 'decode': the function at .*env_spec.lua:%d+ returned " .. text .. '[^,]*, expected a list of 1 placements')
    end
    local empty = trinity.env(rnn, { num_envs = 1, actions = 'joint', decode = function() return { {} } end })
    empty:reset(1)
    expect(function() empty:step(row { 1 }) end):raises 'returned table as entry 1, expected a placement'
    refused("entry 1: expected { name, { values } }", rnn, { actions = 'mesh', words = { 'tensor' } })
    refused("unknown value 'tensors', did you mean 'tensor'%?", rnn, { actions = 'mesh', words = { { 'tensors', { 1 } } } })
    local env = trinity.env(rnn, { num_envs = 2 })
    expect(function() env:step { 1, 1 } end):raises 'env:step: expected env:reset%(%) before'
    env:reset(1)
    expect(function() env:step { 1 } end):raises "expected 2 actions, a list or a tensor int64, got"
    expect(function() env:step { 1, 3 } end):raises 'entry 2: expected an integer from 1 to 2, got number 3'
    local wrong = trinity.env(rnn, { start = function() return 3 end, actions = 'move' })
    expect(function() wrong:reset() end):raises "option 'start': the function at .* returned number 3, expected a placement"
  end)
end)
