-- Hierarchical, ColocRL and Placeto as their authors describe them (papers/notes.md): features, attention, noise, what
-- teaches, episodes, weights that go from graph to graph.

local trinity = require 'trinity'
local two_chains = dofile(root .. '/tests/lua/support/two_chains.lua')

with_torch()

local core = require 'trinity.core'
local paper_features = require 'trinity.learn.paper_features'
local placer = require 'trinity.learn.placer'
local recurrent = require 'trinity.methods.recurrent'
local reinforce = require 'trinity.learn.reinforce'
local tensor = require 'trinity.nn.tensor'

-- Runs body() while around(policy, learn, batch, ...) takes the place of every update of REINFORCE.
local function watch(around, body)
  local new = reinforce.new
  function reinforce.new(policy, o)
    local self = new(policy, o)
    local learn = self.learn
    function self.learn(batch, ...) return around(policy, learn, batch, ...) end
    return self
  end
  local ok, message = pcall(body)
  reinforce.new = new
  expect(ok or message):equals(true)
end

local function encoded_example(spec)
  local network = placer.class(merged({ features = 3, hidden = 2, devices = 2, seed = 5 }, spec))
  local features = tensor.normal({ 1, 4, 3 }, core.random(1, 'features'))
  return network, tensor.no_grad(function() return network:encode(features) end)
end

describe('the placer of the papers', function()
  it('attends by v . tanh(W2 h + W1 h_j), to what W1 gives', function()
    local network, encoded = encoded_example { attention = 'additive' }
    local logits, after = tensor.no_grad(function() return network:decode(encoded, 1, network:start(1)) end)
    local h = after[1]:reshape { 2 }
    local query, v = network.query(h:unsqueeze(1)):totable()[1], network.score.weight:totable()[1]
    local keys = network.key(encoded.rows:squeeze(2)):totable()
    local weights, total = {}, 0
    for j = 1, 4 do
      local score = 0
      for k = 1, 2 do score = score + v[k] * math.tanh(query[k] + keys[j][k]) end
      weights[j] = math.exp(score)
      total = total + weights[j]
    end
    local context = { 0, 0 }
    for j = 1, 4 do
      for k = 1, 2 do context[k] = context[k] + weights[j] / total * keys[j][k] end
    end
    local out = network.out(tensor.cat({ h, tensor.new(context):to { dtype = 'float32' } }, 1):unsqueeze(1)):totable()[1]
    for d = 1, 2 do expect(logits:totable()[1][1][d]):near(5 * math.tanh(out[d] / 10), 1e-5) end
  end)

  it("starts its decoder from the encoder's last state, of one sample or of many", function()
    local network, encoded = encoded_example { decoder_start = 'encoder' }
    local last = encoded.rows:totable()[4][1]
    local start = network:repeated(encoded, 3).start[1]:totable()[1]
    for s = 1, 3 do
      for k = 1, 2 do expect(start[s][k]):near(last[k], 1e-7) end
    end
    local _, other = encoded_example {}
    expect(other.start):equals(nil)
  end)

  it('has noise of its amplitude for noise_steps updates', function()
    local options = { noise_amplitude = 0.1, noise_steps = 5 }
    local noise = recurrent.noise(options, 5, core.random(1, 'noise'))(tensor.zeros { 1000 }):totable()
    local least, most = 0, 0
    for _, value in ipairs(noise) do least, most = math.min(least, value), math.max(most, value) end
    expect(least < -0.09 and least >= -0.1 and most > 0.09 and most <= 0.1):truthy()
    expect(recurrent.noise(options, 6)):equals(nil)
    expect(recurrent.noise({ noise_amplitude = 0, noise_steps = 5 }, 1)):equals(nil)
    local p = two_chains.problem(1)
    for _, name in ipairs { 'hierarchical', 'colocrl' } do
      local function drawn(o)
        return trinity.methods[name](p, merged({ evaluations = 32, hidden = 4, quiet = true }, o)).curve
      end
      local plain, loud = drawn {}, drawn { noise_amplitude = 100, noise_steps = 1 }
      expect(loud[1].mean_reward ~= plain[1].mean_reward):truthy()
      expect(drawn { noise_amplitude = 100, noise_steps = 0 }[2].mean_reward):equals(plain[2].mean_reward)
    end
  end)

  it('reads types, shapes and neighbours in breadth-first order', function()
    local b = trinity.graph.new { name = 'fork' }
    local x = b:add { name = 'a', type = 'Relu', measured_time_s = 1e-3, outputs = { { shape = { 7, 3 } } } }
    local _, z = b:add { name = 'b', type = 'Relu', measured_time_s = 1e-3, inputs = { x },
      outputs = { { shape = { 1 } }, { shape = { 2, 2, 2, 2 } } } }
    b:add { name = 'c', type = 'Tanh', measured_time_s = 1e-3, inputs = { x, z } }
    local told = paper_features.units(trinity.problem { graph = b:build(), cluster = trinity.cluster 'p100x2' }, 1)
    local rows = told.rows:totable()
    expect(#rows[1]):equals(36)
    expect(rows[1][1]):near(math.log(8), 1e-6)
    expect(rows[1][2]):near(math.log(4), 1e-6)
    for i = 3, 30 do expect(rows[1][i]):equals(-1) end
    expect(rows[1][31]):near(2 / 3, 1e-6)
    expect(rows[1][32]):near(1, 1e-6)
    expect(rows[1][33]):equals(-1)
    for i = 5, 8 do expect(rows[2][i]):near(math.log(3), 1e-6) end
    expect(rows[3][25]):near(1 / 3, 1e-6)
    expect(rows[3][26]):near(2 / 3, 1e-6)
    local member = tensor.new { { { 1, 1, 0 }, { 0, 0, 1 } } }:to { dtype = 'float32' }
    local groups = paper_features.groups(told, member):totable()[1]
    expect(#groups[1]):equals(2 + 16)
    expect(groups[1][1]):near(math.log(3), 1e-6) -- two of the commonest type
    expect(groups[2][1]):equals(0)
    expect(groups[1][3]):near(math.log(1 + 7 + 1), 1e-6)
    expect(groups[1][7]):near(math.log(1 + 2), 1e-6)
  end)
end)

describe("preset = 'paper'", function()
  local p = two_chains.problem(1)

  it('is for what no option says otherwise', function()
    for _, name in ipairs { 'hierarchical', 'colocrl' } do
      local function updates(o)
        return trinity.methods[name](p, merged({ evaluations = 16, hidden = 4, quiet = true }, o)).updates
      end
      expect(updates { preset = 'paper' }):equals(2)
      expect(updates { preset = 'paper', samples = 4 }):equals(4)
      expect(updates {}):equals(1)
      expect(function() updates { preset = 'papper' } end):raises "did you mean 'paper'"
    end
  end)

  it('trains every part of its networks', function()
    for _, name in ipairs { 'hierarchical', 'colocrl' } do
      local changed, parts = 0, 0
      watch(function(policy, learn, ...)
        local before = {}
        for i, parameter in ipairs(policy.parameters()) do before[i] = parameter:detach():clone() end
        local report = learn(...)
        for i, parameter in ipairs(policy.parameters()) do
          parts = parts + 1
          changed = changed + ((parameter:detach() - before[i]):abs():sum():item() > 0 and 1 or 0)
        end
        return report
      end, function() trinity.methods[name](p, { preset = 'paper', evaluations = 8, hidden = 4, quiet = true }) end)
      expect(parts > 15):truthy()
      expect(changed):equals(parts)
    end
  end)

  it_all('has networks that reach the optimum at a rate that trains', function()
    local trains = { samples = 16, evaluations = 1600, hidden = 32, learning_rate = 1e-2, quiet = true }
    local cases = { colocrl = { preset = 'paper', normalize_advantage = true },
      hierarchical = { attention = 'additive', decoder_start = 'encoder', entropy_weight = 1e-3 } }
    for name, case in trinity.system.sorted_pairs(cases) do
      for seed = 1, 2 do
        local found = trinity.methods[name](p, merged(trains, case, { seed = seed }))
        expect(found.metrics.step_time_s):near(two_chains.length * 1e-3, 1e-9)
        expect(math.exp(-found.curve[#found.curve].mean_reward)):below(1.25 * two_chains.length * 1e-3)
      end
    end
  end)

  it('lets placements that do not fit teach nothing after a while', function()
    local kind = { peak_flops_per_s = { float32 = 1e12 }, memory_bandwidth_bytes_per_s = 1e11, memory_bytes = 3e6 }
    local b, x = trinity.graph.new { name = 'large' }, nil
    for i = 1, 4 do
      x = b:add { name = 'v' .. i, type = 'Relu', measured_time_s = 1e-3, outputs = { { shape = { 250000 } } },
        inputs = { x }, workspace_bytes = 1.5e6 * (i % 2) }
    end
    local large = trinity.problem { graph = b:build(), cluster = trinity.cluster { name = 'two',
      device_types = { small = kind, large = merged(kind, { memory_bytes = 1e9 }) },
      devices = { { name = 'd1', type = 'small' }, { name = 'd2', type = 'large' } },
      links = { { from = 'd1', to = 'd2', bandwidth_bytes_per_s = 1e10 } } } }
    local failing, sizes = {}, {}
    watch(function(_, learn, batch, ...)
      local n, rewards = 0, batch.rewards:flatten():totable()
      for i = 1, #rewards do n = n + (rewards[i] == -10 and 1 or 0) end
      failing[#failing + 1], sizes[#sizes + 1] = n, #rewards
      expect(batch.actions:size(2)):equals(#rewards)
      return learn(batch, ...)
    end, function()
      trinity.methods.hierarchical(large, { evaluations = 64, samples = 16, hidden = 4, valid_only_after = 2, quiet = true })
    end)
    expect(failing[1] > 0 and failing[2] > 0):truthy()
    expect(failing[3] + failing[4]):equals(0)
    expect(sizes[1]):equals(16)
    expect(sizes[3] < 16):truthy()
  end)
end)

-- Two chains of equal operators on two equal devices: the optimum has one on each.
local function equal_chains(length, devices)
  local b = trinity.graph.new { name = 'chains' .. length }
  for i = 1, length do
    for _, chain in ipairs { 'a', 'b' } do
      b:add_operator { name = chain .. i, type = 'step', time_s = 1e-3 }
      if i > 1 then b:add_edge(chain .. i - 1, chain .. i, 5e5) end
    end
  end
  local kind = { peak_flops_per_s = { float32 = 1e12 }, memory_bandwidth_bytes_per_s = 1e11, memory_bytes = 1e9 }
  local cluster = { name = 'alike', device_types = { any = kind }, devices = {}, links = {} }
  for d = 1, devices or 2 do
    cluster.devices[d] = { name = 'd' .. d, type = 'any' }
    if d > 1 then
      cluster.links[d - 1] = { from = 'd' .. d - 1, to = 'd' .. d, bandwidth_bytes_per_s = 1e9 }
    end
  end
  return trinity.problem { graph = b:build(), cluster = trinity.cluster(cluster) }
end

local function placeto(p, o)
  return trinity.methods.placeto(p, merged({ features = 'paper', rounds = 8, hidden = 16, samples = 8, quiet = true }, o))
end

-- Mean step time, s, of the placements that episodes ended with.
local function episode_ends_s(p, found)
  local sum, count = 0, 0
  for i = 1 + p.graph.units, #found.curve, p.graph.units do
    sum, count = sum - found.curve[i].mean_reward, count + 1
  end
  return sum / count
end

describe('placeto', function()
  it('has a budget of episodes, each with one evaluation per node and pass', function()
    local p = equal_chains(4)
    local found = placeto(p, { episodes = 20 })
    expect(found.evaluations):equals(1 + 20 * 8)
    expect(found.updates):equals(3) -- 8, 8 and 4 episodes
    expect(placeto(p, { episodes = 20, evaluations = 70 }).evaluations):equals(70)
  end)

  it('lowers its learning rate linearly to the last episode', function()
    local path = os.tmpname()
    placeto(equal_chains(4), { preset = 'paper', episodes = 16, save = path })
    local rate = tensor.load(path)['optimiser.learning_rate']:item()
    expect(rate):near(1e-3 - 9e-4 * (1 + 64) / (1 + 128), 1e-9) -- before the second half
  end)

  it('places a graph that it never saw, after learning on two smaller ones', function()
    local path, larger = os.tmpname(), equal_chains(7)
    local untrained = placeto(larger, { episodes = 64, learn = false, seed = 2 })
    expect(untrained.updates):equals(0)
    for round = 1, 9 do
      for _, length in ipairs { 4, 5 } do
        placeto(equal_chains(length), { episodes = 40, seed = 200 + round, save = path,
          load = (round > 1 or length > 4) and path or nil })
      end
    end
    local weights = core.read_file(path)
    local trained = placeto(larger, { episodes = 64, learn = false, seed = 2, load = path, save = path })
    expect(core.read_file(path)):equals(weights)
    expect(episode_ends_s(larger, trained)):below(1.1 * 7e-3)
    expect(1.4 * 7e-3):below(episode_ends_s(larger, untrained))
    expect(trained.metrics.step_time_s):near(7e-3, 1e-9)
    expect(function() placeto(equal_chains(4, 3), { episodes = 8, load = path }) end):raises 'of this policy'
  end)

  it('refuses weights for features that are of one graph', function()
    expect(function() trinity.methods.placeto(equal_chains(4), { save = 'x', quiet = true }) end):raises(
      "methods%.placeto: option 'save': weights that other graphs can take need features = 'paper', got 'node2vec'")
  end)
end)
