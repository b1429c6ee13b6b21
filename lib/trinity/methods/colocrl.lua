-- ColocRL (Mirhoseini et al. 2017; papers/notes.md "ColocRL"): REINFORCE on a sequence-to-sequence placer over groups
-- that are given, here contiguous ones of colocation units. See trinity.learn.placer.

local features = require 'trinity.learn.features'
local paper_features = require 'trinity.learn.paper_features'
local placer = require 'trinity.learn.placer'
local policies = require 'trinity.learn.policies'
local tensor = require 'trinity.nn.tensor'
local util = require 'trinity.base.util'

-- Which groups edges join: [groups, groups], from rows to columns.
local function adjacency(told, group_of, groups)
  local rows = {}
  for i = 1, groups do
    rows[i] = {}
    for j = 1, groups do rows[i][j] = 0 end
  end
  for e = 1, #told.from do rows[group_of[told.from[e]]][group_of[told.to[e]]] = 1 end
  return tensor.new(rows)
end

-- Rows of groups as a function, its parameters and the rows' width.
local function default_inputs(problem, options, group_of, groups)
  local units = placer.unit_rows(features(problem, { seed = options.seed, vocabulary = 'graph' }))
  local rows = placer.group_rows(units, group_of, groups):unsqueeze(1)
  return function() return rows end, {}, rows:size(3)
end

-- The same as the paper has it: types as the mean of learned embeddings, extents of outputs added up, which groups
-- read a group's outputs.
local function paper_inputs(problem, options, group_of, groups)
  local told = paper_features.units(problem, options.seed)
  local embedded = paper_features.embedded { told = told, seed = options.seed }
  local extents = tensor.zeros({ groups, told.extents:size(2) }):index_add(1, tensor.new(group_of), told.extents)
  local fixed = tensor.cat({ (extents + 1):log(), adjacency(told, group_of, groups) }, 2)
  local size = paper_features.embedding_size
  return function()
    local types = placer.group_rows(embedded(told.rows):narrow(2, 1, size), group_of, groups)
    return tensor.cat({ types, fixed }, 2):unsqueeze(1)
  end, embedded:parameters(), size + fixed:size(2)
end

local function make_policy(problem, options)
  local groups = options.groups > 0 and options.groups or math.min(problem.graph.units, 128)
  local group_of = policies.contiguous_groups(problem, groups)
  local inputs = options.features == 'paper' and paper_inputs or default_inputs
  local rows, parameters, width = inputs(problem, options, group_of, groups)
  local network = placer.network(options, { features = width, devices = #problem.cluster.devices })
  local unit_of, policy = problem.graph.unit_of, {}
  local function encoded(samples) return network:repeated(network:encode(rows()), samples) end
  function policy.parameters()
    local list = util.merged(parameters)
    for _, weight in ipairs(network:parameters()) do list[#list + 1] = weight end
    return list
  end
  function policy.sample(self, count, stream)
    return tensor.no_grad(function()
      return network:draw(encoded(count), stream, placer.noise(options, self.updates + 1, stream))
    end)
  end
  function policy.evaluate(_, actions) return network:judge(encoded(actions:size(1)), actions) end
  function policy.placements(_, actions)
    local list, device = problem:placements(actions:size(1)), actions:to_array()
    for s, placement in ipairs(list) do
      for op = 1, #placement do placement[op] = device[(s - 1) * groups + group_of[unit_of[op]]] end
    end
    return list
  end
  return policy
end

return function(methods)
  methods.register('colocrl', placer.method('colocrl', make_policy, { valid_only_after = 5000 }),
    { help = 'a recurrent placer of given groups, by REINFORCE', budget = true, source = 'Mirhoseini et al. 2017',
      options = placer.declared })
end
