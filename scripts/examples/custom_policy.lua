#!/usr/bin/env trinity
-- A custom policy, trained with trinity.learn.ppo and compared with Trinity's built-in policy. The graph is cut into
-- groups of equal work. A small network chooses a device for one group after the other, given the device of the
-- previous group.

local trinity = require 'trinity'
local nn, tensor = trinity.nn, trinity.tensor

local options = trinity.options {
  'Trains a policy written in this script with PPO and compares it with the built-in one.',
  model = { default = 'inception_v3', help = 'model by name, or a file (.lua .onnx .json .txt)' },
  cluster = { default = 'p100x2', help = "cluster with a number of devices ('p100x2'), a Lua file, or a profile" },
  batch_size = { default = 64, help = 'samples per step', min = 1, integer = true },
  evaluations = { default = 1440, help = 'placements that each method may simulate', min = 1, integer = true },
  groups = { default = 80, help = 'groups that the policy places', min = 1, max = 4096, integer = true },
  seed = { default = 1, help = 'random seed', min = 0, integer = true },
}

local graph = trinity.model(options.model, { batch_size = options.batch_size })
local problem = trinity.problem { graph = graph, cluster = trinity.cluster(options.cluster),
  reward = trinity.rewards.mdpe {} }

local Placer = nn.class 'placer'

function Placer:build(spec)
  self.previous = nn.embedding { count = spec.devices + 1, size = 16 }
  self.hidden = nn.linear { inputs = spec.features + 16, outputs = 64 }
  self.device = nn.linear { inputs = 64, outputs = spec.devices }
  -- Biases the choice towards the previous device.
  self.stay = tensor.cat({ tensor.eye(spec.devices) * math.log(spec.groups / 2), tensor.zeros { 1, spec.devices } }, 1)
end

-- Returns logits [environments, devices] of the current groups.
function Placer:forward(observation)
  local at, features, placement = observation.current:unsqueeze(2), observation.nodes, observation.placement
  local rows = features:gather(2, at:unsqueeze(3):expand { at:size(1), 1, features:size(3) }):squeeze(2)
  -- The first group reads its own device: devices + 1, since it is not placed.
  local previous = placement:gather(2, (at - 1):clamp(1)):squeeze(2)
  return self.device(self.hidden(tensor.cat({ rows, self.previous(previous) }, 2)):relu())
    + self.stay:index_select(1, previous)
end

local function my_policy(given, own)
  local settings = trinity.search.options('my_policy', { samples = 16, learning_rate = 5e-3 }, own)
  return trinity.search.run('my_policy', given, settings, function(search)
    local groups = math.min(options.groups, given.graph.units)
    local env = trinity.env(given, { num_envs = settings.samples, groups = groups, search = search,
      features = { seed = settings.seed, node2vec = {} }, seed = settings.seed })
    local placer = Placer { seed = settings.seed, devices = env.num_actions, groups = groups,
      features = env:observation().nodes:size(3) }
    trinity.learn.ppo(env, trinity.learn.policy(placer), { total_timesteps = settings.evaluations * groups,
      num_steps = groups, learning_rate = settings.learning_rate, num_minibatches = 1, gae_lambda = 1,
      max_grad_norm = 1, seed = settings.seed })
  end)
end

trinity.methods.register('my_policy', my_policy,
  { help = 'the policy of scripts/examples/custom_policy.lua', budget = true })

-- Compares the policies alone: Trinity without its warm start and refinement.
print(trinity.compare(problem, { 'single_device', 'trinity', 'my_policy' }, { evaluations = options.evaluations,
  seed = options.seed, trinity = { warm_start = false, refine = false } }))
