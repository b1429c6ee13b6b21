-- Hierarchical (Mirhoseini et al. 2018; papers/notes.md "Hierarchical"): one network samples a group for every unit, a
-- sequence-to-sequence placer a device for every group; both learn by REINFORCE. See trinity.methods.recurrent.

local features = require 'trinity.learn.features'
local groups_of = require 'trinity.learn.groups'
local nn = require 'trinity.nn'
local paper_features = require 'trinity.learn.paper_features'
local recurrent = require 'trinity.methods.recurrent'
local tensor = require 'trinity.nn.tensor'
local util = require 'trinity.base.util'

local grouper_hidden = 64

-- Adjacency of groups in every sample: [samples, groups, groups]. group_of: int64 [samples, units].
local function adjacency(edges, group_of, groups)
  local samples = group_of:size(1)
  local function ends(units) return group_of:index_select(2, tensor.new(units)) - 1 end
  local base = (tensor.arange(1, samples, 1, { dtype = 'int64' }) - 1):unsqueeze(2) * (groups * groups)
  local place = (base + ends(edges.from) * groups + ends(edges.to) + 1):flatten()
  local hits = tensor.zeros { samples * groups * groups }:index_add(1, place, tensor.ones { place:numel() })
  return hits:clamp(0, 1):reshape { samples, groups, groups }
end

-- 1 where a unit belongs to a group, [samples, groups, units].
local function members(group_of, groups)
  return group_of:one_hot(groups):to { dtype = 'float32' }:transpose(2, 3)
end

-- Inputs of the networks: group features of sampled groupings and their width, logits [units, groups] of the grouper.
-- By default a group has the means of its members' rows, their share of the units, and edges out and in.
local function default_inputs(problem, options, groups)
  -- More walks than by default: with 10 a node, one seed of three stays short of the optimum of a small graph.
  local told = features(problem, { seed = options.seed, vocabulary = 'graph',
    node2vec = { walks_per_node = 20, epochs = 3 } })
  local units = groups_of.unit_rows(told)
  local grouper = nn.sequential { nn.linear { inputs = units:size(2), outputs = grouper_hidden }, nn.relu,
    nn.linear { inputs = grouper_hidden, outputs = groups }, seed = options.seed }
  return { grouper = grouper, logits = function() return grouper(units) end, width = units:size(2) + 1 + 2 * groups,
    rows = function(group_of)
      local member, out = members(group_of, groups), adjacency(told, group_of, groups)
      local counts = member:sum(3, true)
      return tensor.cat({ member:matmul(units) / counts:clamp(1), counts * (1 / told.units), out,
        out:transpose(2, 3) }, 3)
    end }
end

-- The same as the paper has it.
local function paper_inputs(problem, options, groups)
  local told = paper_features.units(problem, options.seed)
  local grouper = nn.sequential { paper_features.embedded { told = told },
    nn.linear { inputs = paper_features.width, outputs = grouper_hidden }, nn.relu,
    nn.linear { inputs = grouper_hidden, outputs = groups }, seed = options.seed }
  return { grouper = grouper, logits = function() return grouper(told.rows) end,
    width = told.type_count + told.extents:size(2) + groups, rows = function(g)
      return tensor.cat({ paper_features.groups(told, members(g, groups)), adjacency(told, g, groups) }, 3)
    end }
end

local function group_count(problem, options)
  if options.groups > 0 then return options.groups end
  local most = options.preset == 'paper' and 256 or math.min(20 * #problem.cluster.devices, 256)
  return math.min(problem.graph.units, most)
end

local function make_policy(problem, options)
  local units, groups = problem.graph.units, group_count(problem, options)
  local inputs = (options.features == 'paper' and paper_inputs or default_inputs)(problem, options, groups)
  local network = recurrent.network(options, { features = inputs.width, devices = #problem.cluster.devices })
  local policy, width = {}, units + groups
  local function encoded(group_of) return network:encode(tensor.no_grad(inputs.rows, group_of)) end
  function policy.parameters() return util.joined(inputs.grouper:parameters(), network:parameters()) end
  function policy.draw(samples, stream, disturb)
    local logits = inputs.logits():unsqueeze(1):expand { samples, units, groups }
    local group_of = tensor.categorical(disturb and disturb(logits) or logits, stream)
    return tensor.cat({ group_of, network:draw(encoded(group_of), stream, disturb) }, 2)
  end
  function policy.evaluate(_, _, actions)
    local group_of, chosen = actions:narrow(2, 1, units), actions:narrow(2, units + 1, groups)
    local log_group = inputs.logits():log_softmax(-1)
    local of_groups = log_group:gather(2, group_of:transpose(1, 2)):transpose(1, 2)
    local of_devices, spread = network:judge(encoded(group_of), chosen)
    local group_spread = -(log_group:exp() * log_group):sum(-1):mean()
    return tensor.cat({ of_groups, of_devices }, 2), (group_spread * units + spread * groups) * (1 / width)
  end
  function policy.placements(actions)
    local values = actions:to_array()
    return util.listed(actions:size(1), function(s)
      local first = (s - 1) * width
      return problem:placement_by_unit(function(unit) return values[first + units + values[first + unit]] end)
    end)
  end
  return policy
end

return function(methods)
  methods.register('hierarchical', recurrent.method('hierarchical', make_policy,
    { noise_amplitude = 0.1, noise_steps = 500, valid_only_after = 500 }),
    { help = 'a grouper and a recurrent placer, by REINFORCE', budget = true, source = 'Mirhoseini et al. 2018',
      options = recurrent.declared })
end
