-- Learners: they improve a policy (see trinity.policies) by what its placements are worth. Each is given a
-- policy and settings and is then a method like any other: function(problem, options) -> strategy.

local check = require 'trinity.base.check'
local learner = require 'trinity.learn.learner'
local run_search = require 'trinity.runs.search'
local search = require 'trinity.search'
local util = require 'trinity.base.util'

local learning = {}

local common = { samples = 16, learning_rate = 2e-3, entropy_weight = 1e-2, gradient_norm = 1 }

-- How rewards become advantages: a word, or a function of a batch's rewards.
local function read_advantage(owner, value)
  if value == nil then return 'moving_average' end
  if type(value) == 'function' then return value end
  if type(value) ~= 'string' then
    check.wrong(owner, 'option', 'advantage', value, 'a word or a function of rewards')
  end
  return check.choice(owner, 'option', 'advantage', value,
    util.merged({ moving_average = true }, learner.advantages))
end

-- The settings of a learner: its defaults with what the script gave, which is checked.
local function read_settings(owner, defaults, given)
  check.argument(owner, 1, 'settings', given, 'table')
  local known, settings = { policy = true, name = true }, {}
  for key, default in util.sorted_pairs(defaults) do
    known[key], settings[key] = true, default
    if key == 'advantage' then settings[key] = read_advantage(owner, given[key])
    elseif given[key] ~= nil then settings[key] = check.argument(owner, 'option', key, given[key], type(default)) end
  end
  util.refuse_unknown(owner, given, known)
  learner.check_settings(owner, settings)
  if given.policy == nil then
    check.refuse(owner, 1, 'settings', "field 'policy' is missing (function(problem, seed) -> policy, or a policy)")
  end
  if type(given.policy) ~= 'function' then learner.check_policy(owner, given.policy) end
  local name = given.name
  if name ~= nil and (type(name) ~= 'string' or not name:match '^[%w_]+$' or #name > 64) then
    check.wrong(owner, 'option', 'name', name, 'up to 64 letters, digits and _')
  end
  return settings
end

local function define(name, own_defaults, update)
  local owner, defaults = 'trinity.' .. name, util.merged(common, own_defaults)
  --- trinity.NAME { policy = function(problem, seed) -> policy, or a policy that goes on learning, name = NAME,
  --- ...settings } -> method
  learning[name] = function(settings)
    local own, build, title = read_settings(owner, defaults, settings), settings.policy, settings.name or name
    return function(problem, options)
      check.object(title, 1, 'problem', problem, 'problem')
      options = search.options(title, own, options)
      learner.check_settings('methods.' .. title, options)
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

define('ppo', { epochs = 4, clip = 0.2, baseline_n = 19, normalise_advantage = true,
  advantage = 'moving_average' }, learner.ppo)
define('reinforce', { baseline_n = 19, normalise_advantage = true, advantage = 'moving_average' }, learner.reinforce)
define('cross_entropy', { epochs = 4, elite = 0.1, samples = 64, learning_rate = 2e-2, entropy_weight = 0 },
  learner.cross_entropy)

return learning
