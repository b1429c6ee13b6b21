#!/usr/bin/env trinity
-- A policy of one's own, trained with trinity.ppo and compared with Trinity's built-in one. The network is
-- cut into groups of equal work; a small network gives every group a device, one after the other,
-- knowing the device of the group before.

local trinity = require 'trinity'
local nn, tensor, policies = trinity.nn, trinity.tensor, trinity.policies

local options = trinity.options {
  'Trains a policy written in this script with PPO and compares it with the built-in one.',
  model = { default = 'inception_v3', help = 'a model in models/, or a file .lua .onnx .json .txt' },
  cluster = { default = 'p100x2', help = 'a cluster in models/clusters with a count, a Lua file, a profile' },
  batch_size = { default = 64, help = 'samples per step', min = 1, integer = true },
  evaluations = { default = 1440, help = 'placements that each method may try', min = 1, integer = true },
  groups = { default = 80, help = 'groups that the policy places', min = 1, max = 4096, integer = true },
  seed = { default = 1, help = 'fixes every random number', min = 0, integer = true },
}

local graph = trinity.model(options.model, { batch_size = options.batch_size })
local problem = trinity.problem { graph = graph, cluster = trinity.cluster(options.cluster),
  reward = trinity.rewards.mdpe {} }

local Placer = nn.class 'placer'

function Placer:build(spec)
  self.previous = nn.embedding { count = spec.devices + 1, size = 16 }
  self.hidden = nn.linear { inputs = spec.features + 16, outputs = 64 }
  self.device = nn.linear { inputs = 64, outputs = spec.devices }
end

-- Logits [samples, groups, devices] from group features [groups, features] and the devices [samples, groups] that
-- were chosen just before; `stay` prefers the same device again.
function Placer:forward(features, previous, stay)
  local samples, groups = previous:size(1), previous:size(2)
  local rows = features:unsqueeze(1):expand { samples, groups, features:size(2) }
  local hidden = self.hidden(tensor.cat({ rows, self.previous(previous) }, 3)):relu()
  return self.device(hidden) + stay:index_select(1, previous:flatten()):reshape { samples, groups, -1 }
end

local function make_policy(given, seed)
  local devices, groups = #given.cluster.devices, math.min(options.groups, given.graph.units)
  local units = trinity.features(given, { seed = seed })
  local group_of = policies.contiguous_groups(given, groups)
  local index, sums = tensor.new(group_of), tensor.zeros { groups, units.width }
  local features = sums:index_add(1, index, units.values)
    / tensor.zeros({ groups, 1 }):index_add(1, index, tensor.ones { units.units, 1 }):clamp(1)
  local stay = tensor.cat({ tensor.eye(devices) * math.log(groups / 2), tensor.zeros { 1, devices } }, 1)
  local placer = Placer { seed = seed, devices = devices, features = units.width }
  return policies.chain { problem = given, choices = groups, choice_of_unit = group_of, learned = placer,
    logits = function(first, last, previous)
      return placer(features:narrow(1, first, last - first + 1), previous, stay)
    end }
end

trinity.methods.register('my_policy', trinity.ppo { name = 'my_policy', policy = make_policy, learning_rate = 5e-3 },
  { help = 'the policy of scripts/examples/custom_policy.lua', budget = true })

-- Policy against policy: Trinity's without its warm start and refinement.
print(trinity.compare(problem, { 'single_device', 'trinity', 'my_policy' }, { evaluations = options.evaluations,
  seed = options.seed, trinity = { warm_start = false, refine = false } }))
