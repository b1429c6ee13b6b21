-- Hierarchical (Mirhoseini et al. 2018; papers/notes.md "Hierarchical"): one network draws a group for every
-- colocation unit, a sequence-to-sequence placer a device for every group; both learn by REINFORCE. See
-- trinity.learn.placer.

local features = require 'trinity.learn.features'
local nn = require 'trinity.nn'
local paper_features = require 'trinity.learn.paper_features'
local placer = require 'trinity.learn.placer'
local tensor = require 'trinity.nn.tensor'
local util = require 'trinity.base.util'

local grouper_hidden = 64

-- Which groups edges join in every sample: [samples, groups, 2 groups], out and in, or [samples, groups, groups], out
-- alone. group_of: int64 [samples, units].
local function adjacency(told, group_of, groups, out_alone)
  local samples = group_of:size(1)
  local from = group_of:index_select(2, tensor.new(told.from)) - 1
  local to = group_of:index_select(2, tensor.new(told.to)) - 1
  local base = (tensor.arange(1, samples, 1, { dtype = 'int64' }) - 1):unsqueeze(2) * (groups * groups)
  local function joined(a, b)
    local place = (base + a * groups + b + 1):flatten()
    local hits = tensor.zeros { samples * groups * groups }:index_add(1, place, tensor.ones { place:numel() })
    return hits:clamp(0, 1):reshape { samples, groups, groups }
  end
  if out_alone then return joined(from, to) end
  return tensor.cat({ joined(from, to), joined(to, from) }, 3)
end

-- 1 where a unit is of a group, [samples, groups, units].
local function members(group_of, groups)
  return group_of:one_hot(groups):to { dtype = 'float32' }:transpose(2, 3)
end

-- Group features of sampled groupings: means of the members' rows, their share of the units, adjacency.
local function sampled_rows(told, rows, group_of, groups)
  return tensor.no_grad(function()
    local member = members(group_of, groups)
    local counts = member:sum(3, true)
    local means = member:matmul(rows) / counts:clamp(1)
    return tensor.cat({ means, counts * (1 / told.units), adjacency(told, group_of, groups) }, 3)
  end)
end

-- What the networks are told: the grouper that reads it, group features of sampled groupings, and their width.
local function default_inputs(problem, options, groups)
  -- More walks than by default: with 10 a node, one seed of three stays short of the optimum of a small graph.
  local told = features(problem, { seed = options.seed, vocabulary = 'graph',
    node2vec = { walks_per_node = 20, epochs = 3 } })
  local rows = placer.unit_rows(told)
  local grouper = nn.sequential { nn.linear { inputs = rows:size(2), outputs = grouper_hidden }, nn.relu,
    nn.linear { inputs = grouper_hidden, outputs = groups }, seed = options.seed }
  return { parameters = grouper:parameters(), grouper = function() return grouper(rows) end,
    width = rows:size(2) + 1 + 2 * groups,
    groups = function(group_of) return sampled_rows(told, rows, group_of, groups) end }
end

-- The same as the paper has it.
local function paper_inputs(problem, options, groups)
  local told = paper_features.units(problem, options.seed)
  local grouper = nn.sequential { paper_features.embedded { told = told },
    nn.linear { inputs = paper_features.width, outputs = grouper_hidden }, nn.relu,
    nn.linear { inputs = grouper_hidden, outputs = groups }, seed = options.seed }
  return { parameters = grouper:parameters(), grouper = function() return grouper(told.rows) end,
    width = told.type_count + told.extents:size(2) + groups, groups = function(group_of)
      return tensor.no_grad(function()
        return tensor.cat({ paper_features.groups(told, members(group_of, groups)),
          adjacency(told, group_of, groups, true) }, 3)
      end)
    end }
end

local function group_count(problem, options)
  if options.groups > 0 then return options.groups end
  local most = options.preset == 'paper' and 256 or math.min(20 * #problem.cluster.devices, 256)
  return math.min(problem.graph.units, most)
end

local function make_policy(problem, options)
  local units, unit_of, groups = problem.graph.units, problem.graph.unit_of, group_count(problem, options)
  local inputs = (options.features == 'paper' and paper_inputs or default_inputs)(problem, options, groups)
  local network = placer.network(options, { features = inputs.width, devices = #problem.cluster.devices })
  local policy = {}
  function policy.parameters()
    local list = util.merged(inputs.parameters)
    for _, weight in ipairs(network:parameters()) do list[#list + 1] = weight end
    return list
  end
  function policy.sample(self, count, stream)
    return tensor.no_grad(function()
      local disturb, logits = placer.noise(options, self.updates + 1, stream), inputs.grouper():unsqueeze(1)
      logits = logits:expand { count, units, groups }
      local group_of = tensor.categorical(disturb and disturb(logits) or logits, stream)
      local encoded = network:encode(inputs.groups(group_of))
      return tensor.cat({ group_of, network:draw(encoded, stream, disturb) }, 2)
    end)
  end
  function policy.evaluate(_, actions)
    local group_of, chosen = actions:narrow(2, 1, units), actions:narrow(2, units + 1, groups)
    local log_group = inputs.grouper():log_softmax(-1)
    local of_groups = log_group:gather(2, group_of:transpose(1, 2)):transpose(1, 2)
    local of_devices, spread = network:judge(network:encode(inputs.groups(group_of)), chosen)
    local group_spread = -(log_group:exp() * log_group):sum(-1):mean()
    return tensor.cat({ of_groups, of_devices }, 2), (group_spread * units + spread * groups) * (1 / (units + groups))
  end
  function policy.placements(_, actions)
    local list, values, width = problem:placements(actions:size(1)), actions:to_array(), units + groups
    for s, placement in ipairs(list) do
      local first = (s - 1) * width
      for op = 1, #placement do placement[op] = values[first + units + values[first + unit_of[op]]] end
    end
    return list
  end
  return policy
end

return function(methods)
  methods.register('hierarchical', placer.method('hierarchical', make_policy,
    { noise_amplitude = 0.1, noise_steps = 500, valid_only_after = 500 }),
    { help = 'a grouper and a recurrent placer, by REINFORCE', budget = true, source = 'Mirhoseini et al. 2018',
      options = placer.declared })
end
