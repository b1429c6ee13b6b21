-- Methods that search by training networks: their common options, their optimiser, weights from and to files,
-- checkpoints, and the loop. What a method plays and learns is its own.

local core = require 'trinity.core'
local learner_checkpoint = require 'trinity.learn.learner_checkpoint'
local nn = require 'trinity.nn'
local options_of = require 'trinity.base.options'
local reinforce = require 'trinity.learn.reinforce'
local rollout = require 'trinity.learn.rollout'
local search = require 'trinity.search'
local training = require 'trinity.learn.training'
local util = require 'trinity.base.util'

local trained = {}

-- Options of such methods, but for their defaults.
local settings = {
  samples = { 'integer', least = 1, most = 65536, help = 'placements per update' },
  epochs = { 'integer', least = 1, most = 10000, help = 'gradient steps on one batch' },
  learning_rate = { 'number', above = 0, most = 1000, help = 'of Adam' },
  entropy_weight = { 'number', least = 0, most = 1e6, help = 'bonus per choice' },
  gradient_norm = { 'number', above = 0, most = 1e9, help = 'common norm that gradients are clipped to' },
  baseline_n = { 'number', least = 1, most = 1e9, help = 'the baseline decays by (N - 1) / (N + 1)' },
  clip = { 'number', above = 0, most = 1e6, help = "PPO's epsilon, per choice" },
  elite = { 'number', above = 0, most = 1, help = 'share of the samples that are learned from' },
  normalize_advantage = { 'boolean', help = 'divides advantages by their root mean square' },
  last_learning_rate = { 'number', least = 0, most = 1000,
    help = 'what the learning rate falls to, linearly over the evaluations of the budget; 0: it stays' },
  preset = { { 'default', 'paper' },
    help = "'paper': what its authors say, where no option says otherwise (papers/notes.md)" },
  learn = { 'boolean', help = 'false: the policy samples and is not updated' },
  load = { 'string', help = 'weights of another search to begin with' },
  save = { 'string', help = 'where the weights go' },
}

--- An option of a method for options.declare, with a default and where it needs one a help of its own.
function trained.option(name, default, help)
  local setting = settings[name]
  return { name, setting[1], default, least = setting.least, above = setting.above, most = setting.most,
    help = help or setting.help }
end

--- Bounds of options that follow from the problem: its units, and at most `most`.
function trained.units(most)
  return options_of.bound(most and ('the units or %d'):format(most) or 'the units', function(problem)
    return math.min(problem.graph.units, most or math.huge)
  end)
end

--- REINFORCE with a moving average by options baseline_n and normalize_advantage (eq. 15 of papers/notes.md "Trinity:
--- equations": decay (N - 1) / (N + 1)).
function trained.reinforce(policy, options)
  return reinforce.new(policy, { gamma = 1, baseline = 'moving_average',
    baseline_decay = (options.baseline_n - 1) / (options.baseline_n + 1), norm_adv = options.normalize_advantage })
end

--- play(number) for trained.run: one step in every environment of `env`.
function trained.player(env, policy, seed)
  local agent = rollout.begin(env, policy, seed)
  return function(number)
    agent.stream = core.random(seed, 'policy', number)
    return rollout.play(agent, 1)
  end
end

-- The learning rate at the evaluations that a search has used.
local function rate_of(options, run)
  local first, last = options.learning_rate, options.last_learning_rate or 0
  return last == 0 and first or first + (last - first) * run.evaluations / options.evaluations
end

--- Runs method `name` with options seed, learning_rate, gradient_norm and optionally last_learning_rate, learn, load,
--- save. make(run) gives
---   policy                       with parameters(), which are trained
---   rate(number)                 optional: the learning rate of update `number`, nil for option learning_rate
---   play(number, stream)         a batch of episodes; nil where the budget is used up
---   learn(batch, number, step)   takes gradient steps by step(loss); returns the row of the run, nil for none
---   may(number), notes(), resume(notes, number)   optional: see training.loop
---   finish(notes)                optional: what follows the training; `notes` are those that resume() got
function trained.run(name, problem, options, make)
  return search.run(name, problem, options, function(run)
    local self, learns, notes = make(run), options.learn ~= false, {}
    local parameters = self.policy:parameters()
    local optimiser = nn.adam { parameters = parameters, learning_rate = options.learning_rate }
    if (options.load or '') ~= '' then learner_checkpoint.load(options.load, parameters, optimiser) end
    local rate
    training.loop { owner = 'methods.' .. name, search = run, parameters = parameters, optimiser = optimiser,
      max_grad_norm = options.gradient_norm, may = self.may, notes = self.notes,
      resume = function(given, number)
        notes = given
        if self.resume then self.resume(notes, number) end
      end,
      play = function(number)
        rate = learns and (self.rate and self.rate(number) or rate_of(options, run))
        return self.play(number, core.random(options.seed, name, number))
      end,
      learn = function(batch, number, step)
        if not learns then return nil end
        optimiser.learning_rate = rate or optimiser.learning_rate
        return self.learn(batch, number, step)
      end }
    if self.finish then self.finish(notes) end
    if not learns and (options.load or '') ~= '' then run.updates = nil end -- it was trained elsewhere
    if (options.save or '') ~= '' then learner_checkpoint.save(options.save, parameters, optimiser) end
  end)
end

function trained.row(report) return { loss = report.policy_loss, entropy = report.entropy } end

--- The options of a method: its preset's, overridden by the given ones.
function trained.preset(name, declared, problem, given, published)
  local options = search.options(name, declared, given, problem)
  if options.preset ~= 'paper' then return options end
  return util.merged(options, published, given)
end

return trained
