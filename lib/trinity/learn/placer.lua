-- What ColocRL and Hierarchical have in common (manual/papers.md "Hierarchical", "ColocRL"): the sequence-to-sequence
-- placer, where a bidirectional LSTM reads the groups and another one gives every group a device in turn, knowing the
-- device before and attending to all groups; and its training by REINFORCE. Both learn from minus the square root of
-- the step time, unless published_reward = false has them learn from the problem's reward. The published learning rate
-- of 0.1 does not train here; the default does.

local learner = require 'trinity.learn.learner'
local nn = require 'trinity.nn'
local options_of = require 'trinity.base.options'
local search = require 'trinity.search'
local tensor = require 'trinity.nn.tensor'

local placer = {}

local device_size = 16 -- of a device's embedding
local temperature, tanh_constant = 10, 5 -- logits are C tanh(u / T), manual/papers.md "Hierarchical"

local Placer = nn.class 'placer'
placer.class = Placer

--- { features = width of a group's features, hidden =, devices =, seed = }.
function Placer:build(spec)
  local wide = 2 * spec.hidden
  self.devices = spec.devices
  self.encoder = nn.lstm { inputs = spec.features, hidden = spec.hidden, bidirectional = true }
  self.device = nn.embedding { count = spec.devices + 1, size = device_size }
  self.decoder = nn.lstm { inputs = wide + device_size, hidden = spec.hidden }
  self.query = nn.linear { inputs = spec.hidden, outputs = wide, bias = false }
  self.out = nn.linear { inputs = spec.hidden + wide, outputs = spec.devices }
end

--- Group features [samples, groups, features] to what decode() takes, [groups, samples, 2 hidden].
function Placer:encode(features) return (self.encoder(features:transpose(1, 2))) end

--- Logits [samples, count, devices] of groups `first` to first + count - 1 and the next state. previous: int64
--- [samples, count], the devices chosen just before, devices + 1 before the first.
function Placer:decode(encoded, first, previous, state)
  local count = previous:size(2)
  local inputs = tensor.cat({ encoded:narrow(1, first, count), self.device(previous:transpose(1, 2)) }, 3)
  local hidden, after = self.decoder(inputs, state)
  hidden = hidden:transpose(1, 2)
  local memory = encoded:transpose(1, 2)
  local scores = self.query(hidden):matmul(memory:transpose(2, 3)) * (1 / math.sqrt(memory:size(3)))
  local context = scores:softmax(-1):matmul(memory)
  return (self.out(tensor.cat({ hidden, context }, 3)) * (1 / temperature)):tanh() * tanh_constant, after
end

function Placer:start(samples) return tensor.full({ samples, 1 }, self.devices + 1, { dtype = 'int64' }) end

--- Draws a device for every group: int64 [samples, groups].
function Placer:draw(encoded, stream)
  local previous, state, chosen = self:start(encoded:size(2)), nil, {}
  for group = 1, encoded:size(1) do
    local logits
    logits, state = self:decode(encoded, group, previous, state)
    previous = tensor.categorical(logits, stream)
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

local infeasible = -10 -- manual/papers.md "Hierarchical"

local setting = learner.option
placer.declared = options_of.declare('trinity.PlacerOptions', { extends = search.declared,
  help = 'Settings of methods.colocrl and methods.hierarchical.',
  { 'groups', 'integer', 0, least = 0, most = learner.units(),
    help = '0: colocrl min(units, 128), hierarchical min(units, 20 x devices, 256)' },
  setting('samples', 16),
  { 'hidden', 'integer', 64, least = 1, most = 8192, help = 'width of the LSTMs' },
  { 'published_reward', 'boolean', true,
    help = "learn from minus the root of the step time, not the problem's reward" },
  setting('learning_rate', 1e-2), setting('entropy_weight', 1e-2), setting('gradient_norm', 1),
  setting('baseline_n', 19), setting('normalise_advantage', true),
})

local function signal(metrics) return metrics.feasible and -math.sqrt(metrics.step_time_s) or infeasible end

--- A method that trains the policy make_policy(problem, options), without `groups` of its own choice.
function placer.method(name, make_policy)
  return function(problem, options)
    local owner = 'methods.' .. name
    options = search.options(name, placer.declared, options, problem)
    return search.run(name, problem, options, function(run)
      local self = learner.new(owner, make_policy(problem, options), problem, options)
      learner.train(self, run, learner.reinforce, options.published_reward and signal or nil)
    end)
  end
end

return placer
