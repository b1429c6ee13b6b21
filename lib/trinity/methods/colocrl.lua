-- ColocRL (Mirhoseini et al. 2017; papers/notes.md "ColocRL"): REINFORCE on a sequence-to-sequence placer over groups
-- that are given, here contiguous ones of colocation units. See trinity.methods.recurrent.

local features = require 'trinity.learn.features'
local groups = require 'trinity.learn.groups'
local paper_features = require 'trinity.learn.paper_features'
local recurrent = require 'trinity.methods.recurrent'
local tensor = require 'trinity.nn.tensor'
local util = require 'trinity.base.util'

-- Which groups edges join: [count, count], from rows to columns.
local function adjacency(told, group_of, count)
  local rows = {}
  for i = 1, count do
    rows[i] = {}
    for j = 1, count do rows[i][j] = 0 end
  end
  for e = 1, #told.from do rows[group_of[told.from[e]]][group_of[told.to[e]]] = 1 end
  return tensor.new(rows)
end

-- Rows of groups as a function, its parameters and the rows' width.
local function default_inputs(problem, options, group_of, count)
  local units = groups.unit_rows(features(problem, { seed = options.seed, vocabulary = 'graph' }))
  local rows = groups.rows(units, group_of, count):unsqueeze(1)
  return function() return rows end, {}, rows:size(3)
end

-- The same as the paper has it: types as the mean of learned embeddings, extents of outputs added up, which groups
-- read a group's outputs.
local function paper_inputs(problem, options, group_of, count)
  local told = paper_features.units(problem, options.seed)
  local embedded = paper_features.embedded { told = told, seed = options.seed }
  local extents = tensor.zeros({ count, told.extents:size(2) }):index_add(1, tensor.new(group_of), told.extents)
  local fixed = tensor.cat({ (extents + 1):log(), adjacency(told, group_of, count) }, 2)
  local size = paper_features.embedding_size
  return function()
    local types = groups.rows(embedded(told.rows):narrow(2, 1, size), group_of, count)
    return tensor.cat({ types, fixed }, 2):unsqueeze(1)
  end, embedded:parameters(), size + fixed:size(2)
end

local function make_policy(problem, options)
  local count = options.groups > 0 and options.groups or math.min(problem.graph.units, 128)
  local group_of = groups.contiguous(problem, count)
  local inputs = options.features == 'paper' and paper_inputs or default_inputs
  local rows, parameters, width = inputs(problem, options, group_of, count)
  local network = recurrent.network(options, { features = width, devices = #problem.cluster.devices })
  local function encoded(samples) return network:repeated(network:encode(rows()), samples) end
  return {
    parameters = function() return util.joined(parameters, network:parameters()) end,
    draw = function(samples, stream, disturb) return network:draw(encoded(samples), stream, disturb) end,
    evaluate = function(_, _, actions) return network:judge(encoded(actions:size(1)), actions) end,
    placements = function(actions)
      local device = actions:to_array()
      return util.listed(actions:size(1), function(s)
        return problem:placement_by_unit(function(unit) return device[(s - 1) * count + group_of[unit]] end)
      end)
    end,
  }
end

return function(methods)
  methods.register('colocrl', recurrent.method('colocrl', make_policy, { valid_only_after = 5000 }),
    { help = 'a recurrent placer of given groups, by REINFORCE', budget = true, source = 'Mirhoseini et al. 2017',
      options = recurrent.declared })
end
