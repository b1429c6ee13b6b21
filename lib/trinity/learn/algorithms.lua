-- Learners: they improve a policy (see trinity.policies) by what its placements are worth. Each is given a
-- policy and settings and is then a method like any other: function(problem, options) -> strategy.

local check = require 'trinity.base.check'
local learner = require 'trinity.learn.learner'
local options_of = require 'trinity.base.options'
local run_search = require 'trinity.runs.search'
local search = require 'trinity.search'
local util = require 'trinity.base.util'

local learning = {}

-- How rewards become advantages: a word, or a function of a batch's rewards.
local function check_advantage(owner, place, name, value)
  if type(value) == 'function' then return end
  if type(value) ~= 'string' then check.wrong(owner, place, name, value, 'a word or a function of rewards') end
  check.choice(owner, place, name, value, util.merged({ moving_average = true }, learner.advantages))
end

local function check_policy(owner, _, _, policy)
  if type(policy) ~= 'function' then learner.check_policy(owner, policy) end
end

local function check_name(owner, place, _, name)
  if type(name) ~= 'string' or not name:match '^[%w_]+$' or #name > 64 then
    check.wrong(owner, place, 'name', name, 'up to 64 letters, digits and _')
  end
end

local setting = learner.option
local common = options_of.declare('trinity.LearnerSettings', {
  help = 'What every learner takes; all but policy and name are also options of the method that it makes.',
  { 'policy', 'any', check = check_policy, needed = true, help = 'a policy goes on learning',
    as = 'trinity.Policy|fun(problem: trinity.Problem, seed: integer): trinity.Policy' },
  { 'name', 'string', check = check_name, otherwise = "the learner's", help = 'of the method' },
  setting('samples', 16), setting('learning_rate', 2e-3), setting('entropy_weight', 1e-2), setting('gradient_norm', 1),
})
local reinforce = options_of.declare('trinity.ReinforceSettings', { extends = common, help = 'Of trinity.reinforce.',
  setting('baseline_n', 19), setting('normalize_advantage', true),
  { 'advantage', 'any', 'moving_average', check = check_advantage,
    as = "'moving_average'|'batch'|'ranks'|fun(rewards: number[]): number[]",
    help = "what is learned from: rewards less their moving average, less the batch's mean over its deviation, "
      .. "their ranks from -0.5 to 0.5, or a function of the batch's rewards" },
})
local ppo = options_of.declare('trinity.PpoSettings', { extends = reinforce, help = 'Of trinity.ppo.',
  setting('epochs', 4), setting('clip', 0.2, 'epsilon, per choice'),
})
local cross_entropy = options_of.declare('trinity.CrossEntropySettings', { extends = common,
  help = 'Of trinity.cross_entropy.',
  setting('epochs', 4, 'gradient steps on one elite'), setting('elite', 0.1), setting('samples', 64),
  setting('learning_rate', 2e-2), setting('entropy_weight', 0),
})

-- The settings of a learner with defaults, checked.
local function read_settings(owner, declared, given)
  if type(given) == 'table' and given.policy == nil then
    declared:check_some(owner, given)
    check.refuse(owner, 1, 'settings', "field 'policy' is missing (function(problem, seed) -> policy, or a policy)")
  end
  local settings = declared:read(owner, 1, 'settings', given)
  settings.policy, settings.name = nil, nil
  return settings
end

local function define(name, declared, update)
  local owner = 'trinity.' .. name
  --- trinity.NAME { policy = function(problem, seed) -> policy, or a policy that goes on learning, name = NAME,
  --- ...settings } -> method
  learning[name] = function(settings)
    local own, build, title = read_settings(owner, declared, settings), settings.policy, settings.name or name
    return function(problem, options)
      check.object(title, 1, 'problem', problem, 'problem')
      options = search.options(title, own, options)
      declared:check_some('methods.' .. title, options)
      local made = type(build) == 'function'
      local function body()
        return search.run(title, problem, options, function(run)
          local policy = made and learner.check_policy(owner, build(problem, options.seed), build) or build
          local self = learner.new(owner, policy, problem, options)
          self.keeps = made
          learner.train(self, run, update)
        end)
      end
      -- A policy that goes on learning is more than the strategy that a resumed run has of this search: it learns anew.
      if not made then return body() end
      return run_search.record(title, problem, options, body)
    end
  end
end

define('ppo', ppo, learner.ppo)
define('reinforce', reinforce, learner.reinforce)
define('cross_entropy', cross_entropy, learner.cross_entropy)

return learning
