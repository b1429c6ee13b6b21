-- Context-parallel degrees per micro-batch (option `context` of trinity.stragglers): the context group splits into
-- equal parts, which share the sequences of the micro-batch, as in Megatron-LM's dynamic context parallelism.

local util = require 'trinity.base.util'

local kinds = { AllGather = 'all_gather', ReduceScatter = 'reduce_scatter', AllToAllParts = 'all_to_all' }
local token_bytes = 28 -- input, label and position in 64 bits, loss mask in 32

local contexts = {}

--- Returns whether a message carries weights or their gradients, whose bytes do not depend on sequences.
function contexts.is_of_weights(op)
  return op.phase == 'update' or op.type == 'WeightGather' or op.name:find '^shared_gradients' ~= nil
end

--- Returns the divisors of a degree, ascending.
function contexts.degrees(whole)
  local list = {}
  for degree = 1, whole do if whole % degree == 0 then list[#list + 1] = degree end end
  return list
end

--- Returns a function: node of a message within the context group, degree -> factor of its time if every part has
--- the same number of tokens per GPU.
function contexts.factors(strategy)
  local cluster, whole, known = strategy.problem.cluster, strategy.mesh.context or 1, {}
  return function(node, degree)
    if degree == whole then return 1 elseif degree == 1 then return 0 end
    if node.kind == 'send' then return (degree - 1) / (whole - 1) * whole / degree end -- around a ring
    local op, kind = node.op, kinds[node.op.type]
    local bytes = (op.type == 'AllGather' and op.outputs or op.inputs)[1].bytes
    local key = ('%s/%d/%d/%s'):format(op.type, bytes, degree, table.concat(node.devices, ','))
    local function time_s(count)
      return cluster:collective({ kind = kind, devices = { unpack(node.devices, 1, count) },
        bytes = math.floor(kind == 'all_to_all' and bytes or bytes * count / whole) }).time_s
    end
    known[key] = known[key] or kind and time_s(degree) / time_s(whole) or 1
    return known[key]
  end
end

--- Returns a function: tokens of a micro-batch -> seconds in which the members of a context group exchange them, and
--- the nodes that wait for that: the first ones of a micro-batch on devices of the first and the last stage.
function contexts.switching(step, strategy)
  local at, first, waiting, group = step.low.coordinates, {}, {}, {}
  for d in util.sorted_pairs(at.context) do
    if at.data[d] == 0 and at.pipeline[d] == 0 and at.tensor[d] == 0 then group[#group + 1] = d end
  end
  for i, node in ipairs(step.nodes) do
    local stage, key = at.pipeline[node.device], ('%d/%d'):format(node.device, node.micro_batch)
    if node.kind == 'forward' and (stage == 0 or stage == (strategy.mesh.pipeline or 1) - 1)
      and (not first[key] or node.start_s < step.nodes[first[key]].start_s) then first[key] = i end
  end
  for _, i in pairs(first) do waiting[i] = true end -- in any order: a set
  return function(tokens)
    return strategy.problem.cluster:collective({ kind = 'all_to_all', devices = group,
      bytes = math.floor(tokens * token_bytes / #group) }).time_s
  end, waiting
end

return contexts
