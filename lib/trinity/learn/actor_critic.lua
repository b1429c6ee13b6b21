-- Policies of environments (trinity.env). Learners ask three things of one:
--   policy:act(observation, stream)         actions int64 [num_envs], their log-probabilities and values [num_envs]
--   policy:evaluate(observation, actions)   log-probabilities, entropies and values [num_envs], with gradients
--   policy:value(observation)               values [num_envs]: of the return that is to come
-- and parameters(). Here one made of a network's logits and values, and a network that scores every action by itself,
-- so that it fits environments of all sizes.

local check = require 'trinity.base.check'
local nn = require 'trinity.nn'
local options_of = require 'trinity.base.options'
local tensor = require 'trinity.nn.tensor'
local training = require 'trinity.learn.training'
local util = require 'trinity.base.util'

local actor_critic = {}

local never = -1e9 -- the logit of a masked action

--- A policy over the actions of an environment.
---@class trinity.ActorCritic
--- of an observation: logits [num_envs, num_actions], of 'joint' actions [num_envs, nodes, devices], and optionally
--- values [num_envs]; with a true field `unmasked` it ignores masks
---@field network trinity.Module
local ActorCritic = { __name = 'actor-critic' }
ActorCritic.__index = ActorCritic

-- Log-probabilities [num_envs, num_actions] or [num_envs, nodes, devices], and values.
local function distribution(self, owner, observation)
  local unmasked = rawget(self.network, 'unmasked')
  if type(observation) ~= 'table' or not unmasked and not tensor.is(rawget(observation, 'mask')) then
    check.wrong(owner, 1, 'observation', observation, 'an observation (env:reset(), env:step())')
  end
  local logits, values = self.network(observation)
  if not unmasked then
    local mask = observation.mask:eq(0)
    logits = logits:masked_fill(logits:dim() == 3 and mask:unsqueeze(2) or mask, never)
  end
  training.check_finite(owner, logits)
  return logits:log_softmax(-1), values
end

-- A tensor with dtype and shape, 'tensor float32 [3 x 2]'; other values as util.describe has them.
local function described(value)
  if not tensor.is(value) then return util.describe(value) end
  return ('tensor %s [%s]'):format(value.dtype, table.concat(value:size(), ' x '))
end

-- Log-probabilities of actions; 0 for nodes that there are not.
local function of_actions(self, observation, rows, actions)
  local last = rows:dim()
  local log_probs = rows:gather(last, actions:unsqueeze(last)):squeeze(last)
  if last == 2 or rawget(self.network, 'unmasked') or not rawget(observation, 'node_mask') then return log_probs end
  return log_probs * observation.node_mask:to { dtype = 'float32' }
end

--- Samples actions: int64 [num_envs], their log-probabilities and values.
--- Example: `local actions, log_probs, values = policy:act(env:reset(), trinity.random(1, 'agent'))`
---@param observation trinity.EnvObservation
---@param stream? trinity.RandomStream without one the most likely actions
---@return trinity.TorchTensor actions
---@return trinity.TorchTensor log_probs
---@return trinity.TorchTensor values
function ActorCritic:act(observation, stream)
  if stream ~= nil and util.class_of(stream) ~= 'random stream' then
    check.wrong('policy:act', 2, 'stream', stream, 'a random stream (trinity.random)')
  end
  return tensor.no_grad(function()
    local rows, values = distribution(self, 'policy:act', observation)
    local actions = stream and tensor.categorical(rows, stream) or rows:argmax(-1)
    return actions, of_actions(self, observation, rows, actions), values
  end)
end

--- Log-probabilities of actions, entropies and values [num_envs], with gradients.
--- Example: `local log_probs, entropy, values = policy:evaluate(observation, (policy:act(observation)))`
---@param observation trinity.EnvObservation
---@param actions trinity.TorchTensor int64 [num_envs]
---@return trinity.TorchTensor log_probs
---@return trinity.TorchTensor entropies
---@return trinity.TorchTensor values
function ActorCritic:evaluate(observation, actions)
  local rows, values = distribution(self, 'policy:evaluate', observation)
  local shape = rows:size()
  table.remove(shape)
  local expected = ('tensor int64 [%s]'):format(table.concat(shape, ' x '))
  if described(actions) ~= expected then
    check.refuse('policy:evaluate', 2, 'actions', 'expected %s, got %s', expected, described(actions))
  end
  return of_actions(self, observation, rows, actions), -(rows:exp() * rows):sum(-1), values
end

--- Values [num_envs]. Example: `policy:value(observation)`
---@param observation trinity.EnvObservation
---@return trinity.TorchTensor
function ActorCritic:value(observation)
  local _, values = distribution(self, 'policy:value', observation)
  return values
end

--- The trained parameters. Example: `#policy:parameters()`
---@return trinity.TorchTensor[]
function ActorCritic:parameters() return self.network:parameters() end

check.methods(ActorCritic, 'trinity.ActorCritic', '', 'policy')

--- A policy of a network of one's own: network(observation) gives logits [num_envs, num_actions], of 'joint' actions
--- [num_envs, nodes, devices], and where it has a critic values [num_envs].
--- Example: `trinity.learn.policy(policy.network)`
---@param network trinity.Module
---@return trinity.ActorCritic
function actor_critic.new(network)
  if not nn.is_module(network) then check.wrong('learn.policy', 1, 'network', network, 'a module (nn.class)') end
  return setmetatable({ network = network }, ActorCritic)
end

local Scorer = nn.class 'action_scorer'

local type_count, type_size = 512, 8

function Scorer:build(spec)
  self.num_actions, self.num_words, self.is_joint = spec.num_actions, spec.num_words, spec.is_joint
  self.type = not spec.num_words and nn.embedding { count = type_count, size = type_size } or nil
  self.first = nn.linear { inputs = spec.inputs, outputs = spec.hidden }
  self.second = nn.linear { inputs = spec.hidden, outputs = spec.hidden }
  self.logit = nn.linear { inputs = spec.hidden, outputs = 1 }
  self.critic = nn.sequential { nn.linear { inputs = spec.hidden, outputs = spec.hidden }, nn.tanh,
    nn.linear { inputs = spec.hidden, outputs = 1 } }
end

-- Rows of a mesh's actions [num_envs, num_actions, width]: the word, the value, words so far, facts.
function Scorer:word_rows(o)
  local n, actions = o.current:size(1), self.num_actions
  local state = tensor.cat({ o.current:one_hot(self.num_words):to { dtype = 'float32' },
    o.words:to { dtype = 'float32' } * (1 / actions), o.facts * (1 / 32) }, 2)
  local numbers = tensor.eye(actions):unsqueeze(1):expand { n, actions, actions }
  return tensor.cat({ state:unsqueeze(2):expand { n, actions, state:size(2) }, numbers }, 3)
end

-- Rows [num_envs, nodes, devices, width] of nodes on devices: the node's features and type, its time there, the
-- device's load and memory, and whether it is there now.
function Scorer:node_rows(o, nodes, types, times, here)
  local n, count, devices = times:size(1), times:size(2), times:size(3)
  local own = tensor.cat({ nodes, self.type(types) }, 3)
  own = own:unsqueeze(3):expand { n, count, devices, own:size(3) }
  local of_device = tensor.stack({ o.load, o.memory }, 3):unsqueeze(2):expand { n, count, devices, 2 }
  return tensor.cat({ own, times:unsqueeze(4) * 10, of_device, here:unsqueeze(4) }, 4)
end

function Scorer:rows(o)
  if self.num_words then return self:word_rows(o) end
  local devices = o.times:size(3)
  local here = o.placement:one_hot(devices + 1):to { dtype = 'float32' }:narrow(3, 1, devices)
  local nodes, types, times = o.nodes, o.types, o.times
  if o.current then
    local function taken(x)
      local index = o.current:reshape { o.current:size(1), 1, 1 }:expand { x:size(1), 1, x:size(3) }
      return x:gather(2, index)
    end
    nodes, times, here = taken(nodes), taken(times), taken(here)
    types = types:gather(2, o.current:unsqueeze(2))
  end
  local rows = self:node_rows(o, nodes, types, times, here)
  return rows:reshape { rows:size(1), rows:size(2) * rows:size(3), rows:size(4) }
end

function Scorer:forward(o)
  local hidden = self.second(self.first(self:rows(o)):tanh()):tanh()
  local allowed, logits = o.mask:to { dtype = 'float32' }, self.logit(hidden):squeeze(3)
  if self.is_joint then
    allowed = allowed:unsqueeze(2) * o.node_mask:to { dtype = 'float32' }:unsqueeze(3)
    logits = logits:reshape(allowed:size())
    allowed = allowed:reshape { hidden:size(1), hidden:size(2) }
  end
  allowed = allowed:unsqueeze(3)
  local mean = (hidden * allowed):sum(2) / allowed:sum(2):clamp(1)
  return logits, self.critic(mean):squeeze(2)
end

local scorer_options = options_of.declare('trinity.ScorerOptions', { help = 'What learn.scorer takes.',
  { 'hidden', 'integer', 64, least = 1, most = 65536, help = 'width of the layers' },
  { 'seed', 'integer', 1, least = 0, most = 2 ^ 53, help = 'of the initial weights' },
})

--- A policy whose network scores every action of an environment by itself: nodes on devices by the node's features and
--- the device's state, values of words by the words so far. Its weights fit environments of other problems.
--- Example: `local policy = trinity.learn.scorer(env, { hidden = 32 })`
---@param env trinity.Env
---@param options? trinity.ScorerOptions
---@return trinity.ActorCritic
function actor_critic.scorer(env, options)
  check.object('learn.scorer', 1, 'env', env, 'env')
  local o, observation = scorer_options:read('learn.scorer', 2, 'options', options), env:observation()
  if env.description.options.decode then
    check.refuse('learn.scorer', 1, 'env', 'expected an environment whose actions are of nodes, got option decode; use '
      .. 'learn.policy')
  end
  local words = observation.words and observation.words:size(2)
  local inputs = words and 2 * words + 4 + env.num_actions
    or observation.nodes:size(3) + type_size + 4
  return actor_critic.new(Scorer { inputs = inputs, hidden = o.hidden, num_actions = env.num_actions,
    num_words = words, is_joint = env.description.is_joint, seed = o.seed })
end

return actor_critic
