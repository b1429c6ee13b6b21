-- Hierarchical (Mirhoseini et al. 2018; manual/papers.md "Hierarchical"): one network draws a group for every
-- colocation unit, a sequence-to-sequence placer a device for every group; both learn by REINFORCE. See
-- trinity.learn.placer.

local features = require 'trinity.learn.features'
local nn = require 'trinity.nn'
local placer = require 'trinity.learn.placer'
local tensor = require 'trinity.nn.tensor'

-- Which groups edges join in every sample: [samples, groups, 2 groups], out and in. group_of: int64 [samples, units].
local function adjacency(told, group_of, groups)
  local samples = group_of:size(1)
  local from = group_of:index_select(2, tensor.new(told.from)) - 1
  local to = group_of:index_select(2, tensor.new(told.to)) - 1
  local base = (tensor.arange(1, samples, 1, { dtype = 'int64' }) - 1):unsqueeze(2) * (groups * groups)
  local function joined(a, b)
    local place = (base + a * groups + b + 1):flatten()
    local hits = tensor.zeros { samples * groups * groups }:index_add(1, place, tensor.ones { place:numel() })
    return hits:clamp(0, 1):reshape { samples, groups, groups }
  end
  return tensor.cat({ joined(from, to), joined(to, from) }, 3)
end

-- Group features of sampled groupings: means of the members' rows, their share of the units, adjacency.
local function sampled_rows(told, rows, group_of, groups)
  return tensor.no_grad(function()
    local member = group_of:one_hot(groups):to { dtype = 'float32' }:transpose(2, 3) -- [samples, groups, units]
    local counts = member:sum(3, true)
    local means = member:matmul(rows) / counts:clamp(1)
    return tensor.cat({ means, counts * (1 / told.units), adjacency(told, group_of, groups) }, 3)
  end)
end

local function make_policy(problem, options)
  local units, devices, unit_of = problem.graph.units, #problem.cluster.devices, problem.graph.unit_of
  local groups = options.groups > 0 and options.groups or math.min(units, 20 * devices, 256)
  -- More walks than by default: with 10 a node, one seed of three stays short of the optimum of a small graph.
  local told = features(problem, { seed = options.seed, vocabulary = 'graph',
    node2vec = { walks_per_node = 20, epochs = 3 } })
  local rows = placer.unit_rows(told)
  local grouper = nn.sequential { nn.linear { inputs = rows:size(2), outputs = 64 }, nn.relu,
    nn.linear { inputs = 64, outputs = groups }, seed = options.seed }
  local network = placer.class { features = rows:size(2) + 1 + 2 * groups, hidden = options.hidden, devices = devices,
    seed = options.seed }
  local policy = {}
  function policy.parameters()
    local list = grouper:parameters()
    for _, weight in ipairs(network:parameters()) do list[#list + 1] = weight end
    return list
  end
  function policy.sample(_, count, stream)
    return tensor.no_grad(function()
      local group_of = tensor.categorical(grouper(rows):unsqueeze(1):expand { count, units, groups }, stream)
      local encoded = network:encode(sampled_rows(told, rows, group_of, groups))
      return tensor.cat({ group_of, network:draw(encoded, stream) }, 2)
    end)
  end
  function policy.evaluate(_, actions)
    local group_of, chosen = actions:narrow(2, 1, units), actions:narrow(2, units + 1, groups)
    local log_group = grouper(rows):log_softmax(-1)
    local of_groups = log_group:gather(2, group_of:transpose(1, 2)):transpose(1, 2)
    local of_devices, spread = network:judge(network:encode(sampled_rows(told, rows, group_of, groups)), chosen)
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
  methods.register('hierarchical', placer.method('hierarchical', make_policy),
    { help = 'a grouper and a recurrent placer, by REINFORCE', budget = true, source = 'Mirhoseini et al. 2018',
      options = placer.declared })
end
