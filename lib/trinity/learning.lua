-- Learners: they improve a policy (see trinity.policies) by what its placements are worth. Each is given a
-- policy and settings and is then a method like any other: function(problem, options) -> strategy.

local core = require 'trinity.core'
local nn = require 'trinity.nn'
local search = require 'trinity.search'
local tensor = require 'trinity.tensor'
local util = require 'trinity.util'

local learning = {}

local common = { samples = 16, learning_rate = 2e-3, entropy_weight = 1e-2, gradient_norm = 1 }
local with_baseline = { baseline_n = 19, normalise_advantage = true }

--- One gradient step on `loss`, its gradients clipped to a global norm.
local function step(self, loss)
  self.optimiser:zero_grad()
  loss:backward()
  nn.clip_grad_norm(self.policy:parameters(), self.options.gradient_norm)
  self.optimiser:step()
end

-- Rewards of a batch as advantages [count, 1] against a moving average (papers.md eq. 15: decay (N - 1) / (N + 1)),
-- divided by their root mean square in the batch or its moving average, whichever is larger.
local function advantages(self, rewards)
  local o, mean, squares = self.options, 0, 0
  for i = 1, #rewards do mean = mean + rewards[i] / #rewards end
  self.baseline = self.baseline or mean
  for i = 1, #rewards do squares = squares + (rewards[i] - self.baseline) ^ 2 / #rewards end
  local function average(old, new) return old and (2 * new + (o.baseline_n - 1) * old) / (o.baseline_n + 1) or new end
  self.squares = average(self.squares, squares)
  local scale = o.normalise_advantage and self.squares > 1e-24 and math.sqrt(math.max(squares, self.squares)) or 1
  local rows = {}
  for i = 1, #rewards do rows[i] = { (rewards[i] - self.baseline) / scale } end
  self.baseline = average(self.baseline, mean)
  return tensor.new(rows)
end

--- PPO with a ratio per choice (papers.md 1.5, 1.9 item 13).
local function ppo_update(self, actions, rewards)
  local o, advantage = self.options, advantages(self, rewards)
  local old = tensor.no_grad(function() return (self.policy:evaluate(actions)) end)
  for _ = 1, o.epochs do
    local log_probability, entropy = self.policy:evaluate(actions)
    local ratio = (log_probability - old):clamp(-20, 20):exp()
    local objective = (ratio * advantage):minimum(ratio:clamp(1 - o.clip, 1 + o.clip) * advantage):mean()
    step(self, -(objective + entropy * o.entropy_weight))
  end
end

--- REINFORCE (Williams 1992) with a moving-average baseline.
local function reinforce_update(self, actions, rewards)
  local advantage = advantages(self, rewards)
  local log_probability, entropy = self.policy:evaluate(actions)
  step(self, -((log_probability * advantage):mean() + entropy * self.options.entropy_weight))
end

-- Numbers of the `count` largest rewards; among equals the earlier sample.
local function elite(rewards, count)
  local order = {}
  for i = 1, #rewards do order[i] = i end
  table.sort(order, function(a, b)
    if rewards[a] ~= rewards[b] then return rewards[a] > rewards[b] end
    return a < b
  end)
  for i = #order, count + 1, -1 do order[i] = nil end
  return order
end

--- Cross-entropy (Rubinstein 1999; as Post uses it, papers.md 5.4): raises the likelihood of the best samples.
local function cross_entropy_update(self, actions, rewards)
  local o = self.options
  local chosen = actions:index_select(1, tensor.new(elite(rewards, math.max(1, math.floor(o.elite * #rewards + 0.5))),
    { dtype = 'int64' }))
  for _ = 1, o.epochs do
    local log_probability, entropy = self.policy:evaluate(chosen)
    step(self, -(log_probability:mean() + entropy * o.entropy_weight))
  end
end

local required = { 'parameters', 'sample', 'evaluate', 'placements' }

local function make_policy(owner, build, problem, seed)
  local policy = type(build) == 'function' and build(problem, seed) or build
  if type(policy) ~= 'table' then util.fail('%s: expected a policy, got %s', owner, util.describe(policy)) end
  for _, name in ipairs(required) do
    if type(policy[name]) ~= 'function' then
      util.fail("%s: a policy needs the method '%s' (and %s), got %s", owner, name, table.concat(required, ', '),
        util.describe(policy[name]))
    end
  end
  return policy
end

local function learner(name, own_defaults, update)
  local defaults = {}
  for _, set in ipairs { common, own_defaults } do
    for key, value in util.sorted_pairs(set) do defaults[key] = value end
  end
  --- trinity.NAME { policy = function(problem, seed) -> policy, ...settings } -> method
  learning[name] = function(spec)
    local owner = 'trinity.' .. name
    util.expect(owner, 'settings', spec, 'table')
    local known, settings = { policy = true, name = true }, {}
    for key, value in util.sorted_pairs(defaults) do
      known[key] = true
      settings[key] = value
      if spec[key] ~= nil then settings[key] = util.expect(owner, key, spec[key], type(value)) end
    end
    util.refuse_unknown(owner, spec, known)
    local title = spec.name or name
    return function(problem, options)
      options = search.options(title, settings, options)
      return search.run(title, problem, options, function(run)
        local policy = make_policy(owner, spec.policy, problem, options.seed)
        local self = { policy = policy, options = options,
          optimiser = nn.adam { parameters = policy:parameters(), learning_rate = options.learning_rate } }
        local batch = 0
        while run:more() do
          batch = batch + 1
          local actions = policy:sample(run:allowance(options.samples), core.random(options.seed, 'policy', batch))
          update(self, actions, (run:evaluate(policy:placements(actions))))
        end
      end)
    end
  end
end

local function with(set)
  for key, value in util.sorted_pairs(with_baseline) do set[key] = value end
  return set
end

learner('ppo', with { epochs = 4, clip = 0.2 }, ppo_update)
learner('reinforce', with {}, reinforce_update)
learner('cross_entropy', { epochs = 4, elite = 0.1, samples = 64, learning_rate = 2e-2, entropy_weight = 0 },
  cross_entropy_update)

return learning
