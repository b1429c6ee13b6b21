-- What ColocRL and Hierarchical have in common (papers/notes.md "Hierarchical", "ColocRL"): the sequence-to-sequence
-- placer, where a bidirectional LSTM reads the groups and another one gives every group a device in turn, knowing the
-- device before and attending to all groups; and its training by REINFORCE. Both learn from minus the square root of
-- the step time, unless published_reward = false has them learn from the problem's reward. The defaults are those that
-- train at small budgets; preset = 'paper' has the authors' settings.

local learner = require 'trinity.learn.learner'
local nn = require 'trinity.nn'
local options_of = require 'trinity.base.options'
local search = require 'trinity.search'
local tensor = require 'trinity.nn.tensor'
local util = require 'trinity.base.util'

local placer = {}

local device_size = 16 -- of a device's embedding
local temperature, tanh_constant = 10, 5 -- logits are C tanh(u / T), papers/notes.md "Hierarchical"

local Placer = nn.class 'placer'
placer.class = Placer

--- { features = width of a group's features, hidden =, devices =, seed =, and of the options below attention,
--- decoder_start and decoder_input }.
function Placer:build(spec)
  local wide, additive = 2 * spec.hidden, spec.attention == 'additive'
  self.devices, self.from_encoder = spec.devices, spec.decoder_start == 'encoder'
  self.of_group = spec.decoder_input ~= 'device'
  self.encoder = nn.lstm { inputs = spec.features, hidden = spec.hidden, bidirectional = true }
  self.device = nn.embedding { count = spec.devices + 1, size = device_size }
  self.decoder = nn.lstm { inputs = (self.of_group and wide or 0) + device_size, hidden = spec.hidden }
  self.additive = additive
  local attended = additive and spec.hidden or wide
  self.query = nn.linear { inputs = spec.hidden, outputs = attended, bias = false }
  if additive then
    self.key = nn.linear { inputs = wide, outputs = attended, bias = false }
    self.score = nn.linear { inputs = attended, outputs = 1, bias = false }
  end
  self.out = nn.linear { inputs = spec.hidden + attended, outputs = spec.devices }
end

--- Group features [samples, groups, features] to what decode() takes: `rows` [groups, samples, 2 hidden], and where
--- the decoder starts from the encoder, `start`, the state that reading forwards ends with.
function Placer:encode(features)
  local rows, last = self.encoder(features:transpose(1, 2))
  local encoded = { rows = rows, groups = rows:size(1), samples = rows:size(2) }
  if self.from_encoder then encoded.start = { last[1]:narrow(1, 1, 1), last[2]:narrow(1, 1, 1) } end
  return encoded
end

--- What one sample's features were encoded to, for `samples` samples.
function Placer:repeated(encoded, samples)
  local function wider(x) return x:expand { x:size(1), samples, x:size(3) } end
  local start = encoded.start and { wider(encoded.start[1]):contiguous(), wider(encoded.start[2]):contiguous() }
  return { rows = wider(encoded.rows), groups = encoded.groups, samples = samples, start = start }
end

-- What of all groups decoder states [samples, count, hidden] attend to: by scaled products, or as v . tanh(W2 h + m_j)
-- with m_j = W1 h_j, of which the context is made too (papers/notes.md "Trinity: networks").
local function context_of(self, encoded, hidden)
  if not self.additive then
    local memory = encoded.rows:transpose(1, 2)
    local scores = self.query(hidden):matmul(memory:transpose(2, 3)) * (1 / math.sqrt(memory:size(3)))
    return scores:softmax(-1):matmul(memory)
  end
  encoded.keys = encoded.keys or self.key(encoded.rows):transpose(1, 2)
  local scores = self.score((self.query(hidden):unsqueeze(3) + encoded.keys:unsqueeze(2)):tanh()):squeeze(4)
  return scores:softmax(-1):matmul(encoded.keys)
end

--- Logits [samples, count, devices] of groups `first` to first + count - 1 and the next state. previous: int64
--- [samples, count], the devices chosen just before, devices + 1 before the first.
function Placer:decode(encoded, first, previous, state)
  local count = previous:size(2)
  local inputs = self.device(previous:transpose(1, 2))
  if self.of_group then inputs = tensor.cat({ encoded.rows:narrow(1, first, count), inputs }, 3) end
  local hidden, after = self.decoder(inputs, state or encoded.start)
  hidden = hidden:transpose(1, 2)
  local seen = tensor.cat({ hidden, context_of(self, encoded, hidden) }, 3)
  return (self.out(seen) * (1 / temperature)):tanh() * tanh_constant, after
end

function Placer:start(samples) return tensor.full({ samples, 1 }, self.devices + 1, { dtype = 'int64' }) end

--- Draws a device for every group: int64 [samples, groups]. disturb(logits), if given, is what they are drawn by.
function Placer:draw(encoded, stream, disturb)
  local previous, state, chosen = self:start(encoded.samples), nil, {}
  for group = 1, encoded.groups do
    local logits
    logits, state = self:decode(encoded, group, previous, state)
    previous = tensor.categorical(disturb and disturb(logits) or logits, stream)
    chosen[group] = previous
  end
  return tensor.cat(chosen, 2)
end

--- Log-probabilities [samples, groups] of devices and the mean entropy of a choice.
function Placer:judge(encoded, chosen)
  local groups, previous = chosen:size(2), self:start(chosen:size(1))
  if groups > 1 then previous = tensor.cat({ previous, chosen:narrow(2, 1, groups - 1) }, 2) end
  local rows = self:decode(encoded, 1, previous):log_softmax(-1)
  return rows:gather(3, chosen:unsqueeze(3)):squeeze(3), -(rows:exp() * rows):sum(-1):mean()
end

--- What a unit is told of itself: its features and its type, one-hot, [units, width].
function placer.unit_rows(told)
  return tensor.cat({ told.values, told.types:one_hot(told.type_count):to { dtype = 'float32' } }, 2)
end

--- Rows of groups as means of their members' rows.
function placer.group_rows(rows, group_of, groups)
  local index = tensor.new(group_of)
  local sums = tensor.zeros({ groups, rows:size(2) }):index_add(1, index, rows)
  local counts = tensor.zeros({ groups, 1 }):index_add(1, index, tensor.ones { rows:size(1), 1 })
  return sums / counts:clamp(1)
end

local infeasible = -10 -- papers/notes.md "Hierarchical"

local setting = learner.option
placer.declared = options_of.declare('trinity.PlacerOptions', { extends = search.declared,
  help = 'Settings of methods.colocrl and methods.hierarchical, with the defaults of the default preset.',
  { 'groups', 'integer', 0, least = 0, most = learner.units(),
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
  { 'attention', { 'scaled', 'additive' }, 'scaled', help = 'of the decoder: by products, or v . tanh(W2 h + W1 h_j)' },
  { 'decoder_start', { 'zero', 'encoder' }, 'zero', help = "the decoder's first state: zeros, or the encoder's last" },
  { 'decoder_input', { 'group_and_device', 'device' }, 'group_and_device',
    help = 'what the decoder reads: the encoded group and the device before, or the device before' },
  { 'noise_amplitude', 'number', 0, least = 0, most = 1000,
    help = 'placements are drawn by logits with even noise up to it, of both signs' },
  { 'noise_steps', 'integer', 500, least = 0, most = 1e9, help = 'updates with noise' },
  { 'valid_only_after', 'integer', 0, least = 0, most = 1e9,
    help = 'updates after which only placements that fit teach; 0: never' },
})

-- What both papers say.
local published = { hidden = 256, learning_rate = 0.1, entropy_weight = 0, gradient_norm = 1, baseline_n = 19,
  normalize_advantage = false, published_reward = true, samples = 8, features = 'paper', attention = 'additive',
  decoder_start = 'encoder', decoder_input = 'device' }

--- The options of method `name`, complete: those given, else those of the preset, `own` beyond what both papers say.
local function options_with_preset(name, problem, given, own)
  local options = search.options(name, placer.declared, given, problem)
  if options.preset ~= 'paper' then return options end
  return util.merged(options, published, own, given)
end

--- Part of a spec of placer.class that is options.
function placer.network(options, spec)
  return placer.class(util.merged(util.picked(options, { 'hidden', 'attention', 'decoder_start', 'decoder_input',
    'seed' }), spec))
end

--- Noise for the logits that sample number `update` is drawn by: disturb(logits), or nil for none.
function placer.noise(options, update, stream)
  if options.noise_amplitude == 0 or update > options.noise_steps then return nil end
  return function(logits)
    return logits + tensor.uniform(logits:size(), stream, -options.noise_amplitude, options.noise_amplitude)
  end
end

-- What an update learns from: placements that fit alone, once option valid_only_after says so. `fits` has whether they
-- do.
local function update_of(options, fits)
  return function(self, actions, rewards, batch)
    local chosen, kept = {}, {}
    for i = 1, #rewards do
      if fits[i] then chosen[#chosen + 1], kept[#kept + 1] = i, rewards[i] end
    end
    self.policy.updates = batch
    if options.valid_only_after == 0 or batch <= options.valid_only_after or #kept == #rewards then
      return learner.reinforce(self, actions, rewards)
    end
    if #kept == 0 then return end
    learner.reinforce(self, actions:index_select(1, tensor.new(chosen, { dtype = 'int64' })), kept)
  end
end

--- A method that trains the policy make_policy(problem, options), whose field `updates` counts, without `groups` of
--- its own choice. own: what its paper's preset has beyond what both papers say.
function placer.method(name, make_policy, own)
  return function(problem, given)
    local owner, options = 'methods.' .. name, options_with_preset(name, problem, given, own)
    return search.run(name, problem, options, function(run)
      local policy, fits, at = make_policy(problem, options), {}, 0
      policy.updates = 0
      local update = update_of(options, fits)
      learner.train(learner.new(owner, policy, problem, options), run, function(...)
        at = 0
        return update(...)
      end, function(metrics, reward)
        at = at + 1
        fits[at] = metrics.feasible
        if not options.published_reward then return reward end
        return metrics.feasible and -math.sqrt(metrics.step_time_s) or infeasible
      end, { resume = function(notes) policy.updates = tonumber(notes.batch) end })
    end)
  end
end

return placer
