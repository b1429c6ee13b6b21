-- What PPO and REINFORCE learn from (option advantage), and the most likely placement of a policy.

local learner = require 'trinity.learn.learner'
local trinity = require 'trinity'

local problem = trinity.problem { graph = trinity.model('alexnet', { batch_size = 4 }), cluster = trinity.cluster 'p100x2' }
local options = { evaluations = 48, seed = 2, quiet = true }

local function found(settings)
  return trinity.ppo(merged({ samples = 8, policy = function(p) return trinity.policies.table(p) end }, settings))(problem, options)
end

describe('advantages', function()
  it('are ranks, or against the mean of the batch', function()
    expect(table.concat(learner.advantages.ranks { 3, 1, 2 }, ' ')):equals '0.5 -0.5 0'
    expect(table.concat(learner.advantages.ranks { 1, 1, 5, 5, 5 }, ' ')):equals '-0.375 -0.375 0.25 0.25 0.25'
    expect(table.concat(learner.advantages.ranks { 7 }, ' ')):equals '0'
    expect(table.concat(learner.advantages.batch { 1, 2, 3 }, ' ')):equals '-1 0 1'
    expect(table.concat(learner.advantages.batch { 4, 4 }, ' ')):equals '0 0'
  end)
  it('are told by a word or a function, and learned from', function()
    local usual = found {}
    expect(found({ advantage = 'moving_average' }).reward):equals(usual.reward)
    local batches, curves = 0, {}
    local own = found { advantage = function(rewards)
      batches = batches + 1
      expect(#rewards):equals(8)
      return learner.advantages.ranks(rewards)
    end }
    expect(batches):equals(6)
    for _, word in ipairs { 'ranks', 'batch', 'moving_average' } do
      local parts = {}
      for i, point in ipairs(found({ advantage = word }).curve) do parts[i] = point.mean_reward end
      curves[word] = table.concat(parts, ' ')
    end
    local parts = {}
    for i, point in ipairs(own.curve) do parts[i] = point.mean_reward end
    expect(table.concat(parts, ' ')):equals(curves.ranks)
    expect(curves.batch ~= curves.moving_average and curves.ranks ~= curves.batch):equals(true)
    local reinforced = trinity.reinforce { policy = function(p) return trinity.policies.table(p) end, advantage = 'ranks' }
    expect(reinforced(problem, options).metrics.feasible):equals(true)
  end)
  it('are refused where they are none', function()
    local place = 'advantages_spec%.lua:%d+'
    expect(function() found { advantage = 'rank' } end):raises "option 'advantage': unknown value 'rank', did you mean 'ranks'%?"
    expect(function() found { advantage = true } end):raises "option 'advantage': expected a word or a function of rewards, got true"
    expect(function() found { advantage = function() return { 1 } end } end)
      :raises("option 'advantage': the function at .*" .. place .. ' returned a list of 1, expected a list of 8 finite numbers')
    expect(function() found { advantage = function(r) r[2] = 0 / 0 return r end } end):raises 'returned NaN as entry 2'
    expect(function() found { advantage = function() end } end):raises 'returned nil, expected a list of 8'
    expect(function() trinity.cross_entropy { policy = function() end, advantage = 'ranks' } end):raises "unknown option 'advantage'"
  end)
end)

describe('policy:greedy', function()
  local tensor, units, devices = trinity.tensor, problem.graph.units, #problem.cluster.devices
  local function fixed(kind, of)
    local free = tensor.zeros({ 1 }, { requires_grad = true })
    return trinity.policies[kind] { problem = problem, learned = { free }, logits = of }
  end
  it('takes the most likely device of every choice', function()
    local rows = {}
    for unit = 1, units do rows[unit] = unit % 3 == 0 and { 0, 1 } or { 2, -1 } end
    local placement = fixed('independent', function() return tensor.new(rows) end):greedy()
    for op = 1, #placement do expect(placement[op]):equals(problem.graph.unit_of[op] % 3 == 0 and 2 or 1) end
  end)
  it('takes one choice after the other of a chain', function()
    local chain = fixed('chain', function(first, last, previous) -- the other device than the one before, at first the second
      local before, rows = previous:to_array(), {}
      local count, steps = previous:size(1), last - first + 1
      for i = 1, count do
        rows[i] = {}
        for k = 1, steps do rows[i][k] = before[(i - 1) * steps + k] == 2 and { 1, 0 } or { 0, 1 } end
      end
      local flat = {}
      for i = 1, count do for k = 1, steps do flat[#flat + 1] = rows[i][k] end end
      return tensor.new(flat):reshape { count, steps, devices }
    end)
    local placement = chain:greedy()
    for op = 1, #placement do expect(placement[op]):equals(problem.graph.unit_of[op] % 2 == 1 and 2 or 1) end
  end)
end)
