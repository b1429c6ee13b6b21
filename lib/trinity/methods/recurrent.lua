-- The common parts of ColocRL and Hierarchical: options and presets of their sequence-to-sequence placer
-- (trinity.learn.placer), noise, which placements teach, the training by REINFORCE. Both learn from minus the square
-- root of the step time, unless published_reward = false has them learn from the problem's reward. The defaults are
-- those that train at small budgets; preset = 'paper' has the authors' settings.

local env_of = require 'trinity.env'
local options_of = require 'trinity.base.options'
local placer = require 'trinity.learn.placer'
local rollout = require 'trinity.learn.rollout'
local search = require 'trinity.search'
local tensor = require 'trinity.nn.tensor'
local trained = require 'trinity.learn.trained'
local util = require 'trinity.base.util'

local recurrent = {}

local infeasible = -10 -- papers/notes.md "Hierarchical"

local setting = trained.option
recurrent.declared = options_of.declare('trinity.PlacerOptions', { extends = search.declared,
  help = 'Settings of methods.colocrl and methods.hierarchical, with the defaults of the default preset.',
  { 'groups', 'integer', 0, least = 0, most = trained.units(),
    help = "0: colocrl min(units, 128), hierarchical min(units, 20 x devices, 256), preset 'paper' min(units, 256)" },
  setting('samples', 16),
  { 'hidden', 'integer', 64, least = 1, most = 8192, help = 'width of the LSTMs' },
  { 'published_reward', 'boolean', true,
    help = "learn from minus the root of the step time, not the problem's reward" },
  setting('learning_rate', 1e-2), setting('entropy_weight', 1e-2), setting('gradient_norm', 1),
  setting('baseline_n', 19), setting('normalize_advantage', true),
  setting('preset', 'default'),
  { 'features', { 'node2vec', 'paper' }, 'node2vec',
    help = "'paper': a learned embedding of the type, shapes of outputs, neighbours; and of a group theirs" },
  { 'attention', { 'scaled', 'additive' }, 'scaled',
    help = "the decoder's: scaled dot-product, or v . tanh(W2 h + W1 h_j)" },
  { 'decoder_start', { 'zero', 'encoder' }, 'zero', help = "the decoder's first state: zeros, or the encoder's last" },
  { 'decoder_input', { 'group_and_device', 'device' }, 'group_and_device',
    help = 'what the decoder reads: the encoded group and the device before, or the device before' },
  { 'noise_amplitude', 'number', 0, least = 0, most = 1000,
    help = 'amplitude of the uniform noise, of both signs, on the logits by which placements are sampled' },
  { 'noise_steps', 'integer', 500, least = 0, most = 1e9, help = 'updates with noise' },
  { 'valid_only_after', 'integer', 0, least = 0, most = 1e9,
    help = 'updates after which only placements that fit teach; 0: never' },
})

-- The settings of both papers.
local published = { hidden = 256, learning_rate = 0.1, entropy_weight = 0, gradient_norm = 1, baseline_n = 19,
  normalize_advantage = false, published_reward = true, samples = 8, features = 'paper', attention = 'additive',
  decoder_start = 'encoder', decoder_input = 'device' }

--- The placer of a method: `spec` has features and devices, the rest is options.
function recurrent.network(options, spec)
  return placer.class(util.merged(util.picked(options, { 'hidden', 'attention', 'decoder_start', 'decoder_input',
    'seed' }), spec))
end

--- The noise of update number `update`: disturb(logits), applied before sampling; nil for none.
function recurrent.noise(options, update, stream)
  if options.noise_amplitude == 0 or update > options.noise_steps then return nil end
  return function(logits)
    return logits + tensor.uniform(logits:size(), stream, -options.noise_amplitude, options.noise_amplitude)
  end
end

-- The part of a batch that an update learns from: after option valid_only_after only placements that fit; nil for none.
local function teaching(batch, options, number)
  local fits, count = {}, batch.rewards:size(2)
  for i, feasible in ipairs(batch.infos[1].feasible) do
    if feasible then fits[#fits + 1] = i end
  end
  if options.valid_only_after == 0 or number <= options.valid_only_after or #fits == count then return batch end
  return #fits > 0 and rollout.select(batch, tensor.new(fits, { dtype = 'int64' })) or nil
end

--- A method that trains make_policy(problem, options): an object with parameters(), draw(count, stream, disturb),
--- evaluate(_, actions) and placements(actions). own: what its paper's preset has beyond what both papers say.
function recurrent.method(name, make_policy, own)
  return function(problem, given)
    local options = trained.preset(name, recurrent.declared, problem, given, util.merged(published, own))
    return trained.run(name, problem, options, function(run)
      local policy, self, update = make_policy(problem, options), {}, 0
      function policy.act(_, _, stream)
        return policy.draw(options.samples, stream, recurrent.noise(options, update, stream))
      end
      local env = env_of(problem, { actions = 'joint', num_envs = options.samples, search = run,
        decode = policy.placements, signal = function(metrics, reward)
          if not options.published_reward then return reward end
          return metrics.feasible and -math.sqrt(metrics.step_time_s) or infeasible
        end })
      local learner, play = trained.reinforce(policy, options), trained.player(env, policy, options.seed)
      self.policy, self.notes, self.resume = policy, learner.notes, learner.resume
      function self.play(number)
        update = number
        return play(number)
      end
      function self.learn(batch, number, step)
        batch = teaching(batch, options, number)
        return batch and trained.row(learner.learn(batch, step, options.entropy_weight))
      end
      return self
    end)
  end
end

return recurrent
