-- ColocRL (Mirhoseini et al. 2017; manual/papers.md "ColocRL"): REINFORCE on a sequence-to-sequence placer over groups
-- that are given, here contiguous ones of colocation units. See trinity.learn.placer.

local features = require 'trinity.learn.features'
local placer = require 'trinity.learn.placer'
local policies = require 'trinity.learn.policies'
local tensor = require 'trinity.nn.tensor'

local function make_policy(problem, options)
  local groups = options.groups > 0 and options.groups or math.min(problem.graph.units, 128)
  local group_of = policies.contiguous_groups(problem, groups)
  local units = placer.unit_rows(features(problem, { seed = options.seed, vocabulary = 'graph' }))
  local rows = placer.group_rows(units, group_of, groups):unsqueeze(1)
  local network = placer.class { features = rows:size(3), hidden = options.hidden, devices = #problem.cluster.devices,
    seed = options.seed }
  local unit_of, policy = problem.graph.unit_of, {}
  local function encoded(samples)
    local once = network:encode(rows)
    return once:expand { groups, samples, once:size(3) }
  end
  function policy.parameters() return network:parameters() end
  function policy.sample(_, count, stream)
    return tensor.no_grad(function() return network:draw(encoded(count), stream) end)
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
  methods.register('colocrl', placer.method('colocrl', make_policy),
    { help = 'a recurrent placer of given groups, by REINFORCE', budget = true, source = 'Mirhoseini et al. 2017',
      options = placer.declared })
end
